"""Tests of ``dptext demo`` right after an installation."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from rich.console import Console

import dptext
from dptext.cli import start as module

PARTS = ("Synthetic texts", "The released distribution", "Utility", "Guarantee")
INTENTS = 7


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_half_of_the_sample_is_private_and_half_is_a_pool(tmp_path):
    sample = module._Sample(tmp_path / "demo")
    assert (len(sample.private), len(sample.public), len(sample.test)) == (6542, 6542, 700)
    assert all(len({row.label for row in part}) == INTENTS for part in (sample.private, sample.public, sample.test))
    sample.save()
    assert len({row["user"] for row in rows(sample.private_file)}) == 6542
    assert {name for row in rows(sample.pool_file) for name in row} == {"text"}
    held_out, private = rows(sample.test_file), rows(sample.private_file)
    assert list(held_out[0]) == list(private[0])  # so that a report takes it as --held-out with --user
    assert len({row["user"] for row in held_out + private}) == 6542 + 700
    sample.save()  # it is its own


@pytest.mark.slow
def test_the_demo_shows_readable_texts_their_use_and_the_promise(work, run, monkeypatch):
    monkeypatch.setattr("dptext.cli.console.stdout", lambda: Console(highlight=False, width=80))
    code, out, err = run("demo", "--seed", "1")
    assert code == 0
    assert max(len(line) for line in (out + err).split("\n")) <= 80
    places = [out.index(part) for part in PARTS]
    assert places == sorted(places)  # what can be read comes first
    assert "6,542 utterances" in err
    statement = dptext.PrivacyStatement.from_json((work / "dptext-demo/synthetic.jsonl.privacy.json").read_text())
    assert (str(statement.guarantee), statement.unit) == ("(1, 1e-06)-differential privacy", "user")
    corpus = rows(work / "dptext-demo/synthetic.jsonl")
    assert {row["text"] for row in corpus} <= {row["text"] for row in rows(work / "dptext-demo/pool.jsonl")}
    assert len({row["intent"] for row in corpus}) == INTENTS

    commands = re.findall(r"^ *(dptext (?:explain|audit|synthesize --dist)(?:.*\\\n)?.*)$", out, re.MULTILINE)
    pasted = [command.replace("\\\n", " ").split()[1:] for command in commands]
    assert [command[0] for command in pasted] == ["explain", "audit", "synthesize"]
    assert [run(*command)[0] for command in pasted] == [0, 0, 0]
    assert len(rows(work / "more.jsonl")) == 500


@pytest.fixture(scope="module")
def lean(tmp_path_factory):
    """Run the demo in a separate process; return its folder, its output, and the heavy packages that it imported."""
    where = tmp_path_factory.mktemp("lean")
    heavy = {"sklearn", "scipy", "torch", "sentence_transformers"}
    script = f"import sys; from dptext.cli import main; main(['demo']); sys.exit(str({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], cwd=where, capture_output=True, text=True)
    return where / "dptext-demo", done.stdout, done.stderr


@pytest.mark.slow
def test_a_second_run_replaces_the_first_and_says_what_a_classifier_reaches(work, run, lean):
    shutil.copytree(lean[0], "dptext-demo")
    first = (work / "dptext-demo/synthetic.jsonl").read_bytes()
    code, out, err = run("demo", "--json", "--quiet", "--seed", "2")
    assert (work / "dptext-demo/synthetic.jsonl").read_bytes() != first
    assert (code, err) == (0, "")
    accuracy = json.loads(out)["accuracy"]
    synthetic, real, names, random, nothing = accuracy.values()
    assert synthetic > 0.9 > nothing > 0.75
    assert nothing > names > 0.4
    assert real > 0.94
    assert random < 0.35


@pytest.mark.parametrize("name", ["people.jsonl", "pool.jsonl", "synthetic.jsonl"])
def test_the_demo_does_not_overwrite_files_of_somebody_else(work, run, name):
    (work / "mine").mkdir()
    (work / "mine" / name).write_text("precious")
    code, _, err = run("demo", "--folder", "mine", "-q")
    assert code == 2
    assert "files that are not the demo's" in err
    assert (work / "mine" / name).read_text() == "precious"
    assert len(list((work / "mine").iterdir())) == 1
