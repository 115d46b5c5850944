"""Tests of ``--redact`` and its options: output, refusals, attacks and audits."""

import csv

import pytest

import dptext

TEXTS = [
    f"Mr. {name}, call 212-555-{1000 + place} the man of Acme said that" for place, name in enumerate(["Lee", "Ray"])
]
SECRET = "acme"


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["the", "man", "of", "said", "that", "mr", "call", "lee"]
    vectors = dptext.load_vectors((words, [[float(place), 0.0] for place in range(len(words))]))
    dptext.save_vectors(vectors, tmp_path / "small.txt")
    with open("in.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([["text"], *([text] for text in TEXTS * 20)])
    (tmp_path / "list.txt").write_text(f"{SECRET}\n")
    return tmp_path


def privatize(run, *more):
    return run(
        "privatize", "in.csv", "-o", "out.csv", "--vectors", "small.txt", "--epsilon", 3, "--quiet", "--force", *more
    )


def test_pieces_become_placeholders_and_the_list_stays_with_its_owner(run, work):
    code, _, err = privatize(run, "--redact", "--redact-list", "list.txt")
    assert code == 0, err
    out = (work / "out.csv").read_text()
    assert out.count("<phone>") == out.count("<listed>") == 40
    statement = (work / "out.csv.privacy.json").read_text()
    assert SECRET not in statement + err and "after redaction" in statement
    assert run("audit", "out.csv", "--samples", 200)[0] == 0
    assert run("attack", "linkage", "in.csv", "out.csv")[0] == 1
    code, out, err = run("attack", "linkage", "in.csv", "out.csv", "--redact-list", "list.txt")
    assert code == 0 and "shared words" in out
    assert SECRET not in out + err


def test_the_list_is_never_written_over(run, work):
    """Not with ``--force`` either: it may be the only one."""
    (work / "out.csv").write_text(f"{SECRET}\n")
    code, _, err = privatize(run, "--redact-list", "out.csv")
    assert code == 2, err
    assert "is the redaction list" in err
    assert (work / "out.csv").read_text() == f"{SECRET}\n"
