"""``dptext classify``: predicted labels of texts, from a release that was made before."""

import json
from pathlib import Path

import pytest

import dptext
from repeated import same_draws

pytest.importorskip("sklearn")

DRINKS, RULES = ["tea", "cup", "cocoa", "milk", "sugar"], ["tax", "law", "court", "judge", "vote"]
MARKER = "qsecretq"
COUNT = 40


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return released(tmp_path_factory.mktemp("release") / "release", {"topic": ["rules", "drinks"]})


def released(folder, labels):
    pool = [f"{one} and {other} with {third}" for words in (DRINKS, RULES) for one in words for other in words
            for third in words]  # fmt: skip
    documents = [
        dptext.Document(f"{pool[n]} {MARKER}", user=f"user {n}", attributes={"topic": kind, "stars": str(n % 2)})
        for n, kind in enumerate(["drinks"] * 125 + ["rules"] * 125)
    ]
    synthesizer = dptext.Synthesizer(epsilon=4.0, labels=labels, features="words", cache=False, seed=1)
    with same_draws():
        synthesizer.fit(documents, public=pool).save(folder)
    return folder


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("in.jsonl", "w") as stream:
        for n in range(COUNT):
            words = (DRINKS, RULES)[n % 2]
            row = {"text": f"{words[n % 5]} {words[n % 3]} {MARKER}", "id": n, "topic": ("drinks", "rules")[n % 2]}
            stream.write(json.dumps(row) + "\n")
    return tmp_path


def rows(name):
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def test_labels_are_predicted_row_by_row_next_to_kept_columns(work, release, run):
    code, out, err = run("classify", "--distribution", release, "in.jsonl", "-o", "out.jsonl", "--keep", "id",
                         "--keep", "topic")  # fmt: skip
    assert (code, out) == (0, ""), err
    labelled = rows("out.jsonl")
    assert [list(row) for row in labelled] == [["predicted_topic", "id", "topic"]] * COUNT
    assert [row["id"] for row in labelled] == list(range(COUNT))
    assert all(row["predicted_topic"] == row["topic"] for row in labelled)
    assert MARKER not in err + Path("out.jsonl").read_text()
    assert err == (
        f"Wrote the predicted labels of {COUNT} texts to out.jsonl. Treat it like IN: the guarantee of the release "
        "does not cover the texts of IN or their predicted labels.\n"
    )
    assert sorted(path.name for path in work.iterdir()) == ["in.jsonl", "out.jsonl"]  # no statement, no temporary file


def test_rows_without_a_text_get_no_label_and_broken_ones_stop_the_command(work, release, run):
    command = ("classify", "--distribution", release, "gaps.jsonl", "-o", "out.jsonl")
    Path("gaps.jsonl").write_text('{"text": "tea"}\n{"text": null}\nbroken\n')
    code, _, err = run(*command)
    assert (code, "row 3" in err, Path("out.jsonl").exists()) == (1, True, False)
    Path("gaps.jsonl").write_text('{"text": "tea"}\n{"text": null}\n{"text": "law"}\n')
    assert run(*command)[0] == 0
    assert [row["predicted_topic"] for row in rows("out.jsonl")] == ["drinks", None, "rules"]


def test_nothing_is_overwritten_and_no_statement_is_left_to_claim_it(work, release, run):
    command = ("classify", "--distribution", release, "in.jsonl", "-o", "out.jsonl")
    Path("out.jsonl").write_text("precious")
    code, _, err = run(*command)
    assert code == 2
    assert "'out.jsonl' is there already: choose another name, or add --force" in err
    assert Path("out.jsonl").read_text() == "precious"
    assert run(*command, "--force")[0] == 0
    Path("out.jsonl.privacy.json").write_text("{}")
    code, _, err = run(*command, "--force")
    assert code == 2
    assert "exists, and covers no labels" in err
    assert run(*command[:-1], "in.jsonl", "--force")[0] == 2
    code, _, err = run(*command[:-1], release / "out.jsonl")
    assert code == 2
    assert "lies in the folder of the release" in err
