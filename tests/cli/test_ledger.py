"""``dptext ledger``."""

import io
import json
import os
import re
import shlex
import stat
import sys
from pathlib import Path

import pytest
from rich.console import Console

from cli.conftest import SECRET, plain
from dptext.ledger.ledger import Ledger
from dptext.ledger.store import TEXT
from dptext.privacy.guarantee import MetricDP, Relation, Unit

TERMS = {"unit": Unit.DOCUMENT, "relation": Relation.SUBSTITUTION, "by": TEXT}
SPACE = "c112bcd7aa3aa6b8f96ed1ea7104e6fc4d14b1dd333dab29d740bcf7ec2ae639"


@pytest.fixture
def ledger(run, work):
    def call(*arguments):
        return run("ledger", *arguments)

    return call


@pytest.fixture
def book(work):
    book = Ledger.create("my.ledger", epsilon=12, releases=4)
    guarantee = MetricDP(5.0, "summed euclidean", 104.9, SPACE)
    rows = [SECRET, *(f"t{n}" for n in range(99))]
    book.reserve("9" * 32, guarantee, rows, mechanism="TEM", **TERMS).settle()
    book.reserve("9" * 31 + "8", guarantee, rows[:10], mechanism="a mechanism of a long name", **TERMS)
    book.reserve("nightly", MetricDP(2.0, "summed euclidean", None, SPACE), rows[:10], **TERMS)
    return book


def test_create_makes_a_file_that_only_its_owner_reads(ledger):
    code, out, err = ledger("create", "my.ledger", "--epsilon", 10, "--delta", 1e-6, "--releases", 3)
    assert (code, out, "limits: epsilon 10, delta 1e-06, 3 releases" in err) == (0, "", True)
    assert os.name == "nt" or stat.S_IMODE(os.stat("my.ledger").st_mode) == 0o600
    code, out, err = ledger("create", "another.ledger", "--releases", 1, "--json", "--quiet")
    limits = {"epsilon": None, "delta": None, "releases": 1}
    assert (code, err, json.loads(out)) == (0, "", {"ledger": "another.ledger", "limits": limits})


def test_show_lists_releases_and_the_remaining_budget(ledger, book, monkeypatch):
    monkeypatch.setattr("dptext.cli.console.stdout", lambda: Console(width=80))
    code, out, err = ledger("show", "my.ledger")
    assert (code, err, max(map(len, out.splitlines())) <= 80) == (0, "", True)
    for line in (
        "  limits    epsilon 12, 4 releases, per unit",
        "  currency  epsilon per unit of summed euclidean distance",
        "  unit      a document, identified by its text (relation: substitution)",
        "  charged   100 texts; 10 of them have no budget left",
        "  median    spent epsilon 5; left epsilon 7 and 3 releases",
        "  most      spent epsilon 12; left epsilon 0 and 1 release",
        "2 releases pending: the run continues, or it died. If its output exists:",
        "  dptext ledger void my.ledger RELEASE_ID",
    ):
        assert line in re.sub(r" +\n", "\n", out), line
    rows = [line.split() for line in out.splitlines() if re.match(r" ?(999|nightly)", line)]
    assert [(row[0], row[3], row[-1]) for row in rows] == [
        ("999999999999…", "released", "100"), ("999999999999…", "pending", "10"), ("nightly", "pending", "10")
    ]  # fmt: skip
    data = json.loads(ledger("show", "my.ledger", "--json")[1])
    assert (data["limits"], data["terms"]["by"]) == ({"epsilon": 12, "delta": None, "releases": 4}, "text")
    assert [release["state"] for release in data["releases"]] == ["released", "pending", "pending"]
    assert data["releases"][2]["guarantee"]["epsilon"] == 2
    assert (data["units"], data["exhausted"], data["pending"]) == (100, 10, 2)
    assert (data["highest"]["left"], data["median"]["spent"]) == (0, 5)


def test_left_reads_a_value_from_standard_input(ledger, book, monkeypatch):
    def left(value, *options):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(value)))
        return ledger("left", "my.ledger", *options)

    for ending in ("", "\n", "\r\n"):
        expected = "in 3 releases; spent epsilon 12; left epsilon 0 and 1 release\n"
        assert left((SECRET + ending).encode()) == (0, expected, "")
    assert left(b"nobody")[1].startswith("in 0 releases; spent epsilon 0; left epsilon 12")
    assert json.loads(left(SECRET.encode(), "--json")[1])["releases"] == 3
    assert left(b"abc\xff")[::2] == (2, "dptext: standard input must be UTF-8, byte 4 is not\n")


def test_void_and_settle_take_a_unique_beginning_of_a_pending_release(ledger, book):
    code, _, err = ledger("void", "my.ledger", "999")
    assert (code, err) == (2, "dptext: the ids of 2 releases begin with '999': give the whole id\n")
    assert ledger("void", "my.ledger", "night") == (0, "", "Voided nightly: the budget of 10 texts is refunded.\n")
    assert book.left(SECRET).spent == 10
    code, out, err = ledger("void", "my.ledger", "9" * 31 + "8", "--json", "--quiet")
    assert (code, json.loads(out), err) == (0, {"voided": "9" * 31 + "8", "units": 10}, "")
    book.reserve("f" * 32, book.releases()[0].guarantee, ["t1"], **TERMS)
    assert ledger("settle", "my.ledger", "f" * 12 + "…", "-q") == (0, "", "")  # as show abbreviates it
    code, _, err = ledger("void", "my.ledger", "nightly")
    assert (code, err) == (2, "dptext: my.ledger has no release 'nightly'. To list them, run dptext ledger show\n")
    for released in ("9" * 32, "f" * 32):
        code, out, err = ledger("void", "my.ledger", released)
        assert (code, out, "was published and cannot be voided: others" in err) == (3, "", True)
    assert book.left(SECRET).spent == 5


@pytest.mark.skipif(os.name == "nt", reason="the example is for a POSIX shell")
def test_the_console_lines_of_the_documentation_are_true(ledger, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "howto" / "ledger.md").read_text(encoding="utf-8")
    block, *_ = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        feed, _, arguments = line.rpartition("| ")
        value = shlex.split(feed)[-1].replace("\\n", "\n") if feed else ""
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(value.encode())))
        code, out, err = ledger(*shlex.split(arguments)[2:])
        printed, expected = (re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", plain(text)) for text in (out + err, output))
        assert (code, printed) == (0, expected)
