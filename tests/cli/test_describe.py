"""``dptext describe``."""

import hashlib
import json
import os
from dataclasses import replace
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


def test_skipped_rows_are_counted_and_listed(describe):
    with open("in.jsonl", "a") as stream:
        stream.write('{"text": "no author"}\nnot json\n')
    code, _, err = describe("--on-error", "skip", "--phrases", "0")
    assert code == 0, err
    assert "Skipped rows that cannot be read or have no author: 2" in err
    assert len(Path("summary.rejects.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("change", ["page", "numbers", "weight"])
def test_a_changed_summary_is_refuted(describe, run, change):
    assert describe("--phrases", "0")[0] == 0
    summary = dptext.TextSummary.load("summary")
    if change == "weight":
        changed = replace(summary, scales={**summary.scales, "topics": 2 * summary.scales["topics"]})
        changed.save("changed")
    else:
        name = {"page": "page.html", "numbers": "summary.json"}[change]
        content = Path("summary", name).read_bytes().replace(b"9", b"8")
        Path("summary", name).write_bytes(content)
        config = json.loads(Path("summary/config.json").read_text())
        config["sha256"][name] = hashlib.sha256(content).hexdigest()
        Path("summary/config.json").write_text(json.dumps(config))
        Path("summary").rename("changed")
    code, out, _ = run("audit", "changed", "--json")
    assert code == 3
    assert [check["name"] for check in json.loads(out)["checks"] if check["passed"] is False]
