"""``dptext ledger`` as a privacy officer meets it."""

import io
import json
import os
import re
import shlex
import stat
import sys
from pathlib import Path

import pytest

from dptext.cli import main
from dptext.ledger.ledger import Ledger
from dptext.ledger.store import TEXT
from dptext.privacy.guarantee import MetricDP, Relation, Unit

SECRET = "Zebulon"
WHO = {"unit": Unit.DOCUMENT, "relation": Relation.SUBSTITUTION}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main(["ledger", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def filled(run):
    ledger = Ledger.create("my.ledger", epsilon=12, releases=4)
    space = "c112bcd7aa3aa6b8f96ed1ea7104e6fc4d14b1dd333dab29d740bcf7ec2ae639"
    promise = MetricDP(5.0, "summed euclidean", 104.9, space)
    rows = [SECRET, *(f"t{n}" for n in range(99))]
    ledger.reserve("9" * 32, promise, rows, by=TEXT, mechanism="TEM", **WHO).settle()
    ledger.reserve("9" * 31 + "8", promise, rows[:10], by=TEXT, mechanism="a mechanism of a long name", **WHO)
    ledger.reserve("nightly", MetricDP(2.0, "summed euclidean", None, space), rows[:10], by=TEXT, **WHO)
    return ledger


def test_create_makes_a_file_for_its_owner(run):
    code, out, err = run("create", "my.ledger", "--epsilon", 10, "--delta", 1e-6, "--releases", 3)
    assert (code, out) == (0, "")
    assert "limits: epsilon 10, delta 1e-06, 3 releases" in err
    if os.name != "nt":
        assert stat.S_IMODE(os.stat("my.ledger").st_mode) == 0o600
    code, out, err = run("create", "another.ledger", "--releases", 1, "--json", "--quiet")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "ledger": "another.ledger",
        "limits": {"epsilon": None, "delta": None, "releases": 1},
    }


def test_show_fits_into_eighty_columns_and_names_nobody(run, filled, monkeypatch):
    monkeypatch.setattr("dptext.cli.console.stdout", lambda: __import__("rich.console").console.Console(width=80))
    code, out, err = run("show", "my.ledger")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert SECRET not in out
    for line in (
        "  limits    epsilon 12, 4 releases, per unit",
        "  currency  epsilon per unit of summed euclidean distance",
        "  charged   100 texts; 10 of them have no budget left",
        "  median    spent epsilon 5; left epsilon 7 and 3 releases",
        "  most      spent epsilon 12; left epsilon 0 and 1 release",
        "2 releases pending: still running, or died. If its output exists:",
        "  dptext ledger void my.ledger RELEASE_ID",
    ):
        assert line in re.sub(r" +\n", "\n", out), line
    rows = [line.split() for line in out.splitlines() if re.match(r" ?(999|nightly)", line)]
    assert [row[0] for row in rows] == ["999999999999…", "999999999999…", "nightly"]
    assert [row[3] for row in rows] == ["released", "pending", "pending"]
    assert [row[-1] for row in rows] == ["100", "10", "10"]


def test_show_as_json(run, filled):
    code, out, err = run("show", "my.ledger", "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert data["limits"] == {"epsilon": 12, "delta": None, "releases": 4}
    assert data["terms"]["by"] == "text"
    assert [release["state"] for release in data["releases"]] == ["released", "pending", "pending"]
    assert data["releases"][2]["guarantee"]["epsilon"] == 2
    assert (data["units"], data["exhausted"], data["pending"]) == (100, 10, 2)
    assert data["highest"]["left"] == 0
    assert data["median"]["spent"] == 5


def test_left_reads_the_value_from_standard_input(run, filled, monkeypatch):
    def left(value, *options):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(value)))
        return run("left", "my.ledger", *options)

    for ending in ("", "\n", "\r\n"):
        output = left((SECRET + ending).encode())
        assert output == (0, "in 3 releases; spent epsilon 12; left epsilon 0 and 1 release\n", "")
    assert left(b"nobody")[1].startswith("in 0 releases; spent epsilon 0; left epsilon 12")
    assert json.loads(left(SECRET.encode(), "--json")[1])["releases"] == 3
    assert left(b"abc\xff")[::2] == (2, "dptext: standard input must be UTF-8, byte 4 is not\n")


def test_void_takes_a_unique_beginning(run, filled):
    code, _, err = run("void", "my.ledger", "999")
    assert (code, err) == (2, "dptext: 2 releases begin with '999': give more of the id\n")
    code, out, err = run("void", "my.ledger", "night")
    assert (code, out, err) == (0, "", "Voided nightly: the budget of 10 texts is refunded.\n")
    assert filled.left(SECRET).spent == 10
    code, out, err = run("void", "my.ledger", "9" * 31 + "8", "--json", "--quiet")
    assert (code, json.loads(out), err) == (0, {"voided": "9" * 31 + "8", "units": 10}, "")
    filled.reserve("f" * 32, filled.releases()[0].guarantee, ["t1"], by=TEXT, **WHO)
    assert run("void", "my.ledger", "f" * 12 + "…", "-q") == (0, "", "")  # as show abbreviates it
    code, _, err = run("void", "my.ledger", "nightly")
    assert (code, err) == (2, "dptext: my.ledger holds no release 'nightly': dptext ledger show lists them\n")


def test_void_of_what_is_out_is_refused(run, filled):
    code, out, err = run("void", "my.ledger", "9" * 32)
    assert (code, out) == (3, "")
    assert err == f"dptext: the release {'9' * 32} is out and cannot be voided: its readers have seen it\n"
    assert filled.left(SECRET).spent == 12


@pytest.mark.skipif(os.name == "nt", reason="the example is for a POSIX shell")
def test_the_console_lines_of_the_documentation_are_true(run, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "howto" / "ledger.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    expected = {}
    for line in block.splitlines():
        if line.startswith("$ "):
            command = line.removeprefix("$ ")
            expected[command] = ""
        else:
            expected[command] += line + "\n"
    assert len(expected) >= 3
    for command, output in expected.items():
        feed, _, arguments = command.rpartition("| ")
        if feed:
            value = shlex.split(feed)[-1].replace("\\n", "\n")
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(value.encode())))
        program, *words = shlex.split(arguments)
        assert program == "dptext"
        code, out, err = run(*words[1:])
        assert (code, re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", " ".join((out + err).split()))) == (
            0,
            re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", " ".join(output.split())),
        )
