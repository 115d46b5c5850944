"""The commands that ``dptext advise`` prints for a real table, run as a data steward would."""

import json
import re
import shlex
from pathlib import Path

import pytest

from cli.conftest import names, read_rows, statement_of
from dptext.vectors import formats
from reviews import KINDS, RATINGS, ROWS, write_reviews

ANSWERS = ("--purpose", "read", "--recipient", "public", "--trust", "central")
PLACEHOLDERS = {"PUBLIC.jsonl": "pool.jsonl", "LABEL1,LABEL2": RATINGS, "LICENCE": "CC0-1.0"}
SMALL = 1_500
AUTHORS = re.compile(r"u\d{5}|@example\.org|[A-Z][a-z]+ [A-M]\. [A-Z][a-z]+")
SIZES = {"csv": (SMALL, ROWS), "xlsx": (ROWS,), "parquet": (SMALL,), "jsonl": (SMALL,)}
TABLES = [
    pytest.param(kind, rows, marks=[pytest.mark.slow] if rows == ROWS or kind != "csv" else [])
    for kind in KINDS
    for rows in SIZES[kind]
]


@pytest.fixture
def walk(run, work):
    """Run command lines as printed, apart from the placeholders that the advice names."""

    def call(lines):
        for line in lines:
            for placeholder, value in PLACEHOLDERS.items():
                line = line.replace(placeholder, value)
            program, *arguments = shlex.split(line.replace("\\\n", " "))
            code, out, err = run(*arguments)
            assert (program, code) == ("dptext", 0), (line, err)
            assert not AUTHORS.search(out + err), line
        return [shlex.split(line.replace("\\\n", " "))[1] for line in lines]

    return call


@pytest.mark.parametrize(("kind", "rows"), TABLES)
def test_a_steward_walks_from_advice_to_report_and_card(walk, run, kind, rows):
    write_reviews(Path(), rows, [kind])
    code, page, err = run("advise", f"reviews.{kind}", *ANSWERS)
    assert (code, err) == (0, "")
    assert page.startswith("Make a synthetic corpus (dptext synthesize).")
    assert not AUTHORS.search(page)
    printed = page.partition("For you alone")[0]
    assert all(placeholder in printed for placeholder in ("PUBLIC.jsonl", "LABEL1,LABEL2"))
    lines = re.findall(r"^(dptext (?:.*\\\n)*.*)$", printed, re.MULTILINE)
    assert walk(lines) == ["synthesize", "explain", "audit", "report"]
    pool = {row["text"] for row in read_rows("pool.jsonl")}
    corpus = read_rows("reviews.synthetic.jsonl")
    assert {row["text"] for row in corpus} <= pool
    assert {str(row["rating"]) for row in corpus} <= set(RATINGS.split(","))
    assert statement_of("reviews.synthetic.jsonl").unit == "user"
    outputs = [
        path for path in Path().rglob("*") if path.is_file() and path.name not in ("pool.jsonl", f"reviews.{kind}")
    ]
    assert {"reviews.synthetic.html", "reviews.synthetic.md"} <= {path.name for path in outputs}
    for path in outputs:
        assert not AUTHORS.search(path.read_text(encoding="utf-8", errors="ignore")), path


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_commands_of_the_other_methods_run_too(walk, run, monkeypatch, kind):
    load = formats._load
    monkeypatch.setattr(formats, "_load", lambda source, limit: load(source, min(limit, 2_000) if limit else None))
    write_reviews(Path(), SMALL, [kind])
    code, page, _ = run("advise", f"reviews.{kind}", "--json")
    assert code == 0
    methods = {method["name"]: method["commands"] for method in json.loads(page)["methods"]}
    usual = ["explain", "audit", "report"]
    assert {name: walk(lines) for name, lines in methods.items() if name != "synthetic corpus"} == {
        "text summary": ["describe", *usual],
        "texts of a bank": ["bank", "privatize", *usual],
        "shared word vectors": ["embed", "explain", "audit"],
        "private vectors": ["encode", *usual],
        "words": ["privatize", *usual],
    }
    assert len(names()) > 12
