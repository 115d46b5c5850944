"""``dptext describe``."""

import json
import os
from pathlib import Path

import pytest

import dptext
from cli.conftest import SECRET, names
from dptext.ledger.ledger import Ledger
from dptext.summary import describe as describe_module

USUAL = ("--user", "author", "--epsilon", "4", "-o", "summary")
TIMES = ("--time", "date", "--bins", "2004-01..2004-03")


@pytest.fixture
def describe(run, work):
    with open("in.jsonl", "w") as stream:
        for number in range(400):
            text = f"{'a cup of tea' if number % 4 else 'our team won the game'} {SECRET}{number}"
            row = {"text": text, "author": f"{SECRET}{number}", "date": f"2004-0{1 + number % 3}-17"}
            stream.write(json.dumps(row) + "\n")
    Path("pool.txt").write_text("green tea with milk\nthe team lost the game\nan old law\na new school\n")

    def call(*arguments, usual=USUAL):
        return run("describe", "in.jsonl", *usual, *arguments)

    return call


def test_describe_writes_a_folder_to_share(describe, run):
    code, out, err = describe(*TIMES, "--public", "pool.txt", "--json")
    assert code == 0, err
    assert "unit      user (all texts of one 'author'); relation: add/remove; central" in err
    assert "guarantee epsilon 4, delta 1e-06, for all parts together" in err
    assert "topics 23%" in " ".join(err.split())
    result = json.loads(out)
    assert result["shares"]["food and cooking"]["high"] > 0.5
    assert result["statement"]["mechanism"] == "text summary"
    assert len(result["shares_by_time"]) == 3
    for path in Path("summary").iterdir():
        assert SECRET.encode() not in path.read_bytes(), path.name
    code, out, err = run("audit", "summary", "--json")
    assert code == 0, err
    assert all(check["passed"] for check in json.loads(out)["checks"])
    assert run("explain", "summary")[0] == 0
    code, out, err = run("report", "summary", "--original", "in.jsonl", "--user", "author", "-o", "report.html")
    assert code == 0, err
    assert "the noise has the stated distribution" in Path("report.html").read_text()
    code, out, err = run("attack", "membership", "summary", "--json")
    assert code == 0, err


def test_a_ledger_is_charged_once_and_refuses_the_next_release(describe, run):
    assert run("ledger", "create", "book.db", "--epsilon", "6", "--delta", "1e-5")[0] == 0
    assert describe("--ledger", "book.db")[0] == 0
    release_id = dptext.TextSummary.load("summary").statement.release_id
    assert Ledger("book.db").state(release_id) == "released"
    code, _, err = describe("--ledger", "book.db", usual=(*USUAL[:-1], "second"))
    assert code != 0
    assert "exceed" in err or "budget" in err
    assert not Path("second").exists()


def test_an_error_writes_nothing_and_keeps_the_charge_that_may_be_needed(describe, run, monkeypatch):
    assert run("ledger", "create", "book.db", "--epsilon", "6", "--delta", "1e-5")[0] == 0

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(describe_module.SummaryPlan, "released", interrupt)
    code, _, err = describe("--ledger", "book.db")
    assert code != 0
    assert "dptext ledger void" in err
    assert not os.path.lexists("summary")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "summary", "--user", "author"), "--epsilon is required"),
        (("-o", "summary", "--epsilon", "1"), "--user COLUMN is required"),
        (("--user", "author", "--epsilon", "1"), "--out FOLDER"),
        ((*USUAL, "--time", "date"), "belong together"),
        ((*USUAL, "--time", "date", "--bins", "month"), "2004-01..2004-12"),
        ((*USUAL, "--time", "nothing", "--bins", "2004..2005"), "nothing"),
        ((*USUAL, "--topics", "missing.txt"), "missing.txt"),
        ((*USUAL, "--public", "in.jsonl"), "both a file of IN and of the public texts"),
        ((*USUAL, "--ledger", "book.db", "--seed", "1"), "book.db"),
        (("-o", "in.jsonl", "--user", "author", "--epsilon", "1"), "in.jsonl"),
    ],
)
def test_wrong_commands_are_refused_before_anything_is_written(describe, arguments, message):
    before = Path("in.jsonl").read_bytes()
    code, _, err = describe(usual=arguments)
    assert code != 0
    assert message in " ".join(err.split())
    assert names() == ["in.jsonl", "pool.txt"]
    assert Path("in.jsonl").read_bytes() == before


def test_a_seed_and_an_existing_folder(describe):
    assert describe("--seed", "1", "--phrases", "0")[0] == 0
    first = dptext.TextSummary.load("summary")
    assert first.statement.seeded
    code, _, err = describe("--phrases", "0")
    assert code != 0
    assert "already exists" in err
    assert describe("--seed", "1", "--phrases", "0", "--force")[0] == 0
    assert dptext.TextSummary.load("summary").as_dict() == first.as_dict()
