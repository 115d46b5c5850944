"""``dptext encode --hide``: train, apply, and say who is not protected."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import dptext
from dptext.representations.device import vectors_in

pytest.importorskip("torch")
pytest.importorskip("pyarrow")

SECRET = "qsecretq"


@pytest.fixture
def work(tmp_path, monkeypatch, glove):
    monkeypatch.chdir(tmp_path)
    dptext.save_vectors(dptext.load_vectors(glove, limit=300), "small.txt")
    write("in.jsonl", 60, 1)
    write("public.jsonl", 80, 2)
    return tmp_path


def write(name, count, seed):
    draw = np.random.default_rng(seed)
    with open(name, "w") as stream:
        for number in range(count):
            topic, gender = draw.integers(0, 2, 2)
            words = [["war", "city"], ["music", "water"]][topic] + [["man"], ["year"]][gender]
            row = {"text": " ".join([*draw.choice(words, 6), SECRET]), "topic": int(topic), "gender": "fm"[gender]}
            stream.write(json.dumps(row | {"age": [20, 30, None][number % 3], "id": number}) + "\n")


def hide(run, *more, name="in.jsonl"):
    usual = ["--encoder", "small.txt", "--epsilon", 8] if "--encoder" not in more else ["--epsilon", 8]
    usual += [] if "--train" in more else ["--yes"]
    return run(
        "encode", name, "-o", "out.parquet", "--hide", "gender", "--task", "topic",
        *usual, *more,
    )  # fmt: skip


def statement():
    return dptext.PrivacyStatement.from_json(Path("out.parquet.privacy.json").read_text())


NO_TRAIN = ("encode", "in.jsonl", "-o", "out.parquet", "--hide", "gender", "--task", "topic", "--epsilon", 8)


@pytest.mark.parametrize("more", [(), ("-q",)])
def test_without_public_rows_and_a_terminal_it_wants_a_yes(work, run, more):
    code, out, err = run(*NO_TRAIN, "--encoder", "small.txt", *more)
    assert (code, out) == (2, "")
    assert "name public rows (--train FILE), or confirm with --yes" in err
    assert not Path("out.parquet").exists()


def test_without_public_rows_it_asks_before_it_trains(work, run, monkeypatch):
    questions = []
    monkeypatch.setattr("dptext.cli.hide.can_ask", lambda: True)
    monkeypatch.setattr("dptext.cli.hide.confirm", lambda question, **_: questions.append(question))
    code, out, err = run(*NO_TRAIN, "--encoder", "small.txt")
    assert (code, out) == (1, "")
    assert "trained on IN, and its documents are not protected" in questions[0]
    assert len(questions) == 1
    assert "Training on" not in err
    assert "Nothing was written" in err
    assert not Path("out.parquet").exists()


@pytest.mark.slow
def test_without_public_rows_it_says_loudly_who_is_not_protected(work, run):
    code, out, err = hide(run, "--hide", "age", "--keep", "id!", "--json")
    assert code == 0, err
    assert "Training on 60 rows of IN, which the training does not protect" in err
    share = r"(\d\.\d\d|unknown)"  # six rows are held out, which may be of one class
    assert re.search(rf"  epoch (\d+) of \1: topic {share} \| gender {share}, age {share}", err)
    assert re.search(rf"Kept epoch \d+: topic {share} \| gender", err)
    assert max(map(len, err.split("PrivUnit on")[0].splitlines())) <= 80  # what a terminal shows of it on one line
    assert "NOT PROTECTED by the training" in err
    assert SECRET not in out + err
    statement_data = json.loads(out)["statement"]
    assert any("ARE NOT PROTECTED" in sentence for sentence in statement_data["exposed"])
    assert statement().neighbours.endswith("the trained encoder staying the same")
    assert statement().parameters["encoder_hides"] == "gender, age"
    assert np.concatenate([*vectors_in("out.parquet")]).shape == (60, 64)
    assert "NOT PROTECTED" in hide(run, "--force", "-q")[2]  # quiet or not


def test_public_rows_are_trained_on_and_named(work, run):
    code, _, err = hide(run, "--train", "public.jsonl", "--seed", 3)
    assert code == 0, err
    assert "Training on 80 public rows" in err
    assert "NOT PROTECTED" not in err
    assert statement().parameters["encoder_trained_on"] == "public.jsonl"
    assert statement().parameters["encoder_trained_on_public"] is True
    assert statement().neighbours == "any two texts"
    first = Path("out.parquet").read_bytes()
    assert hide(run, "--train", "public.jsonl", "--seed", 3, "--force")[0] == 0
    assert Path("out.parquet").read_bytes() == first
