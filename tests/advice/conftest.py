"""Rows of made-up people, with secrets in every column that no output may show."""

import json

import pytest

SECRET = "zzsecret"
"""Part of every value of the private rows, but for labels and numbers."""


SPOKEN = "the visit was long and nobody spoke to us about what came next so we went home"


def made_up_rows(people=40, each=5):
    words = SPOKEN.split()
    rows = []
    for number in range(people * each):
        text = " ".join(words[(number * 7 + step) % len(words)] for step in range(12 + number % 5))
        rows.append(
            {
                "author": f"{SECRET} person {number % people}",
                "mail": f"{SECRET}{number % people}@example.org",
                "topic": [f"{SECRET}A", f"{SECRET}B", f"{SECRET}C"][number % 3],
                "stars": number % 5,
                "day": f"2024-0{1 + number % 9}-1{number % 10}",
                "note": f"{SECRET}{number} {text}",
            }
        )
    return rows


@pytest.fixture(scope="session")
def rows():
    return made_up_rows()


@pytest.fixture
def notes(tmp_path, rows):
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
