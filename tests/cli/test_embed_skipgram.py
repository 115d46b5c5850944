"""``dptext embed --method skip-gram`` in a shell as a user has it."""

import json
import os
from pathlib import Path

import pytest

import dptext
from dptext.cli import main
from dptext.embeddings.skipgram import SkipGramPlan
from dptext.ledger.ledger import Ledger
from dptext.privacy.guarantee import Unit

pytest.importorskip("numba")

MARKER = "qsecretq"
FILES = ["README.md", "config.json", "privacy.json", "vectors.bin", "vectors.safetensors", "words.txt"]
KNOWN = ["the", "man", "of", "city", "war", "music", "water", "year"]
LITTLE = ["--method", "skip-gram", "--steps", "5", "--sampling-rate", "1"]
LITTLE += ["--public-users", "50"]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory, glove):
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    dptext.save_vectors(dptext.load_vectors(glove, limit=300), path)
    return str(path)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("in.jsonl", "w") as stream:
        for n in range(60):
            text = f"{' '.join(KNOWN[(n + place) % 8] for place in range(9))} {MARKER} zyzzogeton"
            row = {"text": text, "author": f"{MARKER}{n % 10}", "wish": ["strict", "open", None][n % 10 % 3]}
            stream.write(json.dumps(row) + "\n")


@pytest.fixture
def embed(capsys, vectors):
    def call(*arguments):
        options = [*map(str, arguments), "--vectors", vectors]
        options += [] if {"--user", "--unit"} & set(options) else ["--user", "author"]
        options += [] if {"--epsilon", "--levels"} & set(options) else ["--epsilon", "8"]
        code = main(["embed", *options])
        captured = capsys.readouterr()
        assert MARKER not in captured.err + captured.out
        return code, captured.out, captured.err

    return call


def statement_of(name):
    return dptext.PrivacyStatement.from_json(Path(name).read_text())


def test_a_folder_to_share(work, embed):
    code, out, err = embed("in.jsonl", "-o", "shared", *LITTLE, "--json")
    assert code == 0
    assert "skip-gram from small.txt (300 words, 50 dimensions)\n" in err
    assert "unit      user (all texts of one 'author'); relation: add/remove; central\n" in err
    assert "training  5 steps, each user in 100% of them, noise" in err
    assert "guarantee epsilon 7.99" in err
    assert "Wrote vectors of 300 words to shared" in err
    assert max(map(len, err.partition("Wrote")[0].splitlines())) <= 80
    assert "60" not in err  # neither rows nor users are counted
    assert sorted(os.listdir("shared")) == FILES
    assert sorted(os.listdir()) == ["in.jsonl", "shared"]
    statement = statement_of("shared/privacy.json")
    assert json.loads(out)["statement"] == json.loads(statement.to_json())
    assert 7.9 < statement.epsilon <= 8
    message = statement.parameters
    assert (message["steps"], message["pairs"], message["window"], message["public_users"]) == (5, 500, 5, 50)
    assert not any(MARKER.encode() in Path("shared", name).read_bytes() for name in FILES)


def test_a_pair_as_unit_is_named_for_what_it_is(work, embed):
    code, _, err = embed("in.jsonl", "-o", "shared", *LITTLE, "--unit", "pair")
    assert code == 0
    assert "unit      pair of neighbouring words (no guarantee for a text or a person);" in err
    assert statement_of("shared/privacy.json").unit is Unit.EXAMPLE


def test_a_ledger_charges_every_user_once(work, embed):
    Ledger.create("book", epsilon=10, delta=1e-5)
    assert embed("in.jsonl", "-o", "shared", *LITTLE, "--ledger", "book", "-q") == (0, "", "")
    (release,) = Ledger("book").releases()
    assert release.release_id == statement_of("shared/privacy.json").release_id
    code, _, err = embed("in.jsonl", "-o", "again", *LITTLE, "--ledger", "book")
    assert (code, "the ledger refuses" in err, Path("again").exists()) == (3, True, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps", "5"], "--steps is for --method skip-gram"),
        (["--resume", "--checkpoint", "c"], "--checkpoint, --resume is for --method skip-gram"),
        (["--unit", "pair"], "--unit pair is for --method skip-gram"),
        (["--method", "skip-grams"], "skip-grams"),
        ([*LITTLE, "--resume"], "--checkpoint FILE of the interrupted run"),
        ([*LITTLE, "--checkpoint", "c", "--new-words", "1"], "leave out --checkpoint"),
        ([*LITTLE, "--checkpoint", "c", "--ledger", "book"], "leave out --checkpoint"),
        ([*LITTLE, "--unit", "pair", "--ledger", "book"], "charges users or documents"),
        ([*LITTLE, "--unit", "pair", "--user", "author"], "--unit pair protects no users"),
        ([*LITTLE, "--unit", "pair", "--new-words", "1"], "--unit user"),
        ([*LITTLE, "--steps", "0"], "steps must be"),
        ([*LITTLE, "--sampling-rate", "2"], "sampling_rate must be"),
        ([*LITTLE, "--epsilon", "0"], "epsilon must be"),
        ([*LITTLE, "--public-users", "0"], "public_users must be"),
    ],
)
def test_a_bad_option_is_one_clear_error_and_leaves_nothing(work, embed, options, message):
    code, out, err = embed("in.jsonl", "-o", "shared", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.splitlines()[-1].startswith("dptext: ")
    assert os.listdir() == ["in.jsonl"]


# -- interruptions ------------------------------------------------------------------------------------------------


def test_a_checkpoint_that_is_there_is_not_overwritten(work, embed):
    Path("run").write_text("mine")
    code, _, err = embed("in.jsonl", "-o", "shared", *LITTLE, "--checkpoint", "run")
    assert (code, "is there already" in err, Path("run").read_text()) == (2, True, "mine")
    code, _, err = embed("in.jsonl", "-o", "shared", *LITTLE, "--checkpoint", "run", "--resume")
    assert (code, "run" in err) == (1, True)


def test_a_resumed_training_ends_where_an_uninterrupted_one_does(work, embed, monkeypatch):
    train = SkipGramPlan.train

    def stopped(plan, *arguments, progress, every, **settings):
        def show(step):
            if step == 3:
                raise KeyboardInterrupt

        return train(plan, *arguments, every=2, progress=show, **settings)

    options = ["in.jsonl", *LITTLE, "--seed", "1", "-q"]
    with monkeypatch.context() as patched:
        patched.setattr(SkipGramPlan, "train", stopped)
        code, _, err = embed(*options, "--checkpoint", "run", "-o", "shared")
    assert (code, "add --resume" in err, sorted(os.listdir())) == (130, True, ["in.jsonl", "run"])
    code, _, err = embed(*options, "--checkpoint", "run", "--resume", "-o", "shared", "--steps", 6)
    assert (code, "other parameters" in err, Path("run").exists()) == (3, True, True)
    assert embed(*options, "--checkpoint", "run", "--resume", "-o", "shared") == (0, "", "")
    assert embed(*options, "-o", "whole") == (0, "", "")
    assert dptext.load_vectors("shared").fingerprint == dptext.load_vectors("whole").fingerprint
    assert sorted(os.listdir()) == ["in.jsonl", "shared", "whole"]
