"""Rows of made-up people, with secrets in every column that no output may show."""

import json

import numpy as np
import pytest

import dptext
from dptext.methods.advise import compare
from dptext.methods.base import AdviceInput, PublicTexts
from dptext.methods.data import Requirements, look

SECRET = "zzsecret"
"""Part of every value of the private rows, but for labels and numbers."""


SPOKEN = "the visit was long and they spoke to us about the next steps so we went home"


def made_up_rows(people=40, texts=5):
    words = SPOKEN.split()
    rows = []
    for number in range(people * texts):
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


@pytest.fixture(scope="session")
def toy():
    """Public texts with word vectors of a few words: what takes seconds with GloVe takes none."""
    words = [f"{first}{second}" for first in "abcdefgh" for second in "klmnoprst"]
    generator = np.random.default_rng(4)
    vectors = dptext.load_vectors((words, generator.normal(size=(len(words), 4))))
    texts = tuple(" ".join(generator.choice(words, 6)) for _ in range(400))
    public = PublicTexts(texts, "toy texts")
    vars(public)["vectors"] = vectors
    vars(public)["features"] = dptext.MeanOfWords(vectors, weighting=1e-3)
    return public


@pytest.fixture(scope="session")
def advise(toy):
    """`dptext.advise` with the toy texts; equal questions are computed once."""
    kept = {}

    def call(source, *, text=None, user=None, label=None, public=toy, **answers):
        question = (id(source), text, user, label, id(public), *sorted(answers.items()))
        if question not in kept:
            data = look(source, text=text, user=user, labels=label)
            result = compare(AdviceInput(data, Requirements(**answers), public))
            kept[question] = result, source, public  # an id is another's when its object is gone
        return kept[question][0]

    return call
