"""``dptext audit`` and ``dptext explain`` of a synthetic corpus and of the description behind it."""

import json
import shutil

import pytest

from dptext.release.release import statement_path
from reports.corpora import SECRET, edit, make


@pytest.fixture(scope="module")
def corpus_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    make(folder)
    return folder


@pytest.fixture
def copy(corpus_folder, tmp_path, monkeypatch):
    """A copy that may be changed, and the place where commands run."""
    shutil.copytree(corpus_folder, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def checks_of(text):
    return {check["name"]: check["passed"] for check in json.loads(text)["checks"]}


def test_a_corpus_is_kept_by_exact_computation(copy, run):
    code, out, err = run("audit", "made.jsonl", "--public", "pool.txt")
    assert code == 0, err
    assert "THE GUARANTEE FOR A USER" in out
    assert "exact trade-off of the stated Gaussian noise" in out
    assert "NO " not in out
    assert SECRET not in out + err
    assert max(map(len, out.splitlines())) <= 100
    code, out, _ = run("audit", "made.jsonl", "--public", "pool.txt", "--json", "-q")
    result = json.loads(out)
    assert code == 0
    assert (result["refuted"], result["verdict"]["outcome"]) == (False, "exact")
    assert result["verdict"]["loss"] <= result["verdict"]["allowed"] == 4.0
    assert set(checks_of(out).values()) == {True}
    assert len(checks_of(out)) == 8


def test_what_is_not_at_hand_is_not_checked_and_said_so(copy, run):
    (copy / "made.jsonl.distribution").rename("elsewhere")
    result = checks_of(run("audit", "made.jsonl", "--json", "-q")[1])
    assert result["every text is one of the public pool"] is None
    assert result["every label is one of the public set"] is None
    assert checks_of(run("audit", "made.jsonl", "--distribution", "elsewhere", "--json", "-q")[1])[
        "every label is one of the public set"
    ]


def test_a_description_is_audited_and_explained(copy, run):
    for named in ("made.jsonl.distribution", "made.jsonl.distribution/privacy.json"):
        code, out, err = run("audit", named)
        assert code == 0, err
        assert "all files are those that config.json announces" in out
        assert "THE GUARANTEE FOR A USER" in out
        code, out, _ = run("explain", named)
        assert code == 0
        assert "made.jsonl.distribution: verified, all files of the folder match its config.json" in " ".join(
            out.split()
        )
    code, out, _ = run("explain", "made.jsonl")
    assert code == 0
    assert "verified, its SHA-256" in out


@pytest.mark.parametrize(
    ("changes", "refuted"),
    [
        ({"sigma": 0.9}, True),
        ({"epsilon": 2.0}, True),
        ({"sensitivity": 0.5}, True),
        ({"epsilon_under_substitution": 4.0}, True),
        ({"most_documents": 7}, False),
    ],
)
def test_a_statement_that_promises_more_than_its_noise_keeps_is_refuted(copy, run, changes, refuted):
    statement_file = statement_path(copy / "made.jsonl")
    edit(statement_file, **changes)
    code, out, err = run("audit", "made.jsonl", "--distribution", "made.jsonl.distribution")
    assert code == 3, err
    assert "refuted: the guarantee of made.jsonl.privacy.json does not hold" in err
    assert ("the guarantee follows from the parameters" in out) and ("NO  the guarantee" in out) == refuted
    assert "NO  the corpus was made from this" in out  # which has another statement


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda rows: [{**rows[0], "text": "of nobody's pool"}, *rows[1:]], "every text is one of the public pool"),
        (lambda rows: [{**rows[0], "topic": "weather"}, *rows[1:]], "every label is one of the public set"),
        (lambda rows: [{"text": row["text"]} for row in rows], "every label is one of the public set"),
        (lambda rows: rows[1:], "there are as many texts as the statement says"),
        (lambda rows: [rows[1], *rows[1:]], "no text occurs twice"),
    ],
)
def test_a_changed_corpus_is_refuted(copy, run, change, check):
    rows = change([json.loads(line) for line in (copy / "made.jsonl").read_text().splitlines()])
    with open("made.jsonl", "w") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    code, out, _ = run("audit", "made.jsonl", "--public", "pool.txt", "--json", "-q")
    assert code == 3
    assert checks_of(out)[check] is False
    assert checks_of(out)["the data is the data of the statement"] is False
