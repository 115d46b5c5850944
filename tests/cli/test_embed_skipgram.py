"""``dptext embed --method skip-gram`` in a shell as a user has it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dptext
from dptext.cli import console, main
from dptext.embeddings.skipgram import Run
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
        given = [*map(str, arguments), "--vectors", vectors]
        given += [] if {"--user", "--unit"} & set(given) else ["--user", "author"]
        given += [] if {"--epsilon", "--levels"} & set(given) else ["--epsilon", "8"]
        code = main(["embed", *given])
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
    assert "promise   epsilon 7.99" in err
    assert "Wrote vectors of 300 words to shared" in err
    assert max(map(len, err.partition("Wrote")[0].splitlines())) <= 80
    assert "60" not in err  # neither rows nor users are counted
    assert sorted(os.listdir("shared")) == FILES
    assert sorted(os.listdir()) == ["in.jsonl", "shared"]
    statement = statement_of("shared/privacy.json")
    assert json.loads(out)["statement"] == json.loads(statement.to_json())
    assert 7.9 < statement.epsilon <= 8
    said = statement.parameters
    assert (said["steps"], said["pairs"], said["window"], said["public_users"]) == (5, 500, 5, 50)
    assert not any(MARKER.encode() in Path("shared", name).read_bytes() for name in FILES)


@pytest.mark.slow
def test_levels_have_their_statements(work, embed):
    options = ["--level", "wish", "--levels", "strict=1,open=8"]
    code, _, err = embed("in.jsonl", "-o", "shared", *LITTLE, *options)
    assert code == 0
    assert "each user in at most 100% of them" in err
    assert max(map(len, err.partition("Wrote")[0].splitlines())) <= 80
    strict, everybody = statement_of("shared/privacy-strict.json"), statement_of("shared/privacy.json")
    assert 0.9 < strict.epsilon <= 1.0
    assert 7.9 < everybody.epsilon <= 8.0
    assert everybody.parameters["default_level"] == "strict"
    assert strict.parameters["sampling_rate"] < 1


def test_a_pair_as_unit_is_named_for_what_it_is(work, embed):
    code, _, err = embed("in.jsonl", "-o", "shared", *LITTLE, "--unit", "pair")
    assert code == 0
    assert "unit      pair of neighbouring words (no promise to a text or a person);" in err
    assert statement_of("shared/privacy.json").unit is Unit.EXAMPLE


def test_new_words_are_learned_first_and_counted_in(work, embed):
    pytest.importorskip("opendp")
    rows = [json.loads(line) for line in Path("in.jsonl").read_text().splitlines()]
    rows = [row | {"author": f"{MARKER}{n % 40}"} for n, row in enumerate(rows)]  # enough for the noise on their number
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--new-words", 100]
    code, _, err = embed("in.jsonl", "-o", "shared", *LITTLE, *options)
    assert code == 0
    assert "promise   epsilon 108, delta 2e-06\n" in err
    back = dptext.load_vectors("shared")
    assert "zyzzogeton" in back.words[300:]
    assert 107.9 < back.statement.epsilon <= 108


def test_a_ledger_charges_every_user_once(work, embed):
    Ledger.create("book", epsilon=10, delta=1e-5)
    assert embed("in.jsonl", "-o", "shared", *LITTLE, "--ledger", "book", "-q") == (0, "", "")
    (release,) = Ledger("book").releases()
    assert release.release_id == statement_of("shared/privacy.json").release_id
    code, _, err = embed("in.jsonl", "-o", "again", *LITTLE, "--ledger", "book")
    assert (code, "the ledger refuses" in err, Path("again").exists()) == (3, True, False)


@pytest.mark.parametrize(
    ("options", "said"),
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
def test_a_bad_option_is_one_clear_error_and_leaves_nothing(work, embed, options, said):
    code, out, err = embed("in.jsonl", "-o", "shared", *options)
    assert (code, out) == (2, "")
    assert said in err
    assert err.splitlines()[-1].startswith("dptext: ")
    assert os.listdir() == ["in.jsonl"]


def test_progress_shows_steps_and_what_is_spent(work, embed, monkeypatch):
    shown = []
    monkeypatch.setattr(console.Bar, "is_visible", property(lambda _bar: True))
    monkeypatch.setattr(console.Bar, "step", lambda _bar, done, steps, what: shown.append((done, steps, what)))
    assert embed("in.jsonl", "-o", "shared", *LITTLE, "-q") == (0, "", "")
    assert [(done, steps) for done, steps, _ in shown] == [(n, 5) for n in range(6)]
    spent = [float(what.split()[2]) for _, _, what in shown]
    assert spent == sorted(spent)
    assert (spent[0], spent[-1]) == (0.0, 8.0)  # 7.99..., never rounded down


# -- interruptions ------------------------------------------------------------------------------------------------


def test_a_checkpoint_that_is_there_is_not_overwritten(work, embed):
    Path("run").write_text("mine")
    code, _, err = embed("in.jsonl", "-o", "shared", *LITTLE, "--checkpoint", "run")
    assert (code, "is there already" in err, Path("run").read_text()) == (2, True, "mine")
    code, _, err = embed("in.jsonl", "-o", "shared", *LITTLE, "--checkpoint", "run", "--resume")
    assert (code, "no checkpoint" in err) == (1, True)


@pytest.mark.slow
def test_an_interrupted_training_goes_on(work, vectors):
    command = [sys.executable, "-m", "dptext", "embed", "in.jsonl", "-o", "shared", "--vectors", vectors]
    command += [
        "--user",
        "author",
        "--epsilon",
        "8",
        *LITTLE,
        "--steps",
        "100000",
        "--checkpoint",
        "run",
        "--seed",
        "1",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not Path("run").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 130
        said = process.stderr.read()
    assert "dptext: interrupted\n" in said
    assert "what is done is kept in run (private): run the same command with --resume to go on" in said
    assert sorted(os.listdir()) == ["in.jsonl", "run"]
    assert Path("run").stat().st_mode & 0o777 == 0o600
    assert MARKER.encode() not in Path("run").read_bytes()


def test_a_resumed_training_ends_where_an_uninterrupted_one_does(work, embed, monkeypatch):
    on = Run.on

    def stopped(self, store, key, progress):
        self.every = 2

        def show(step):
            if step == 3:
                raise KeyboardInterrupt
            progress(step)

        return on(self, store, key, show)

    options = ["in.jsonl", *LITTLE, "--seed", "1", "-q"]
    with monkeypatch.context() as patched:
        patched.setattr(Run, "on", stopped)
        code, _, err = embed(*options, "--checkpoint", "run", "-o", "shared")
    assert (code, "add --resume" in err, sorted(os.listdir())) == (130, True, ["in.jsonl", "run"])
    code, _, err = embed(*options, "--checkpoint", "run", "--resume", "-o", "shared", "--steps", 6)
    assert (code, "other parameters" in err, Path("run").exists()) == (3, True, True)
    assert embed(*options, "--checkpoint", "run", "--resume", "-o", "shared") == (0, "", "")
    assert embed(*options, "-o", "whole") == (0, "", "")
    assert dptext.load_vectors("shared").fingerprint == dptext.load_vectors("whole").fingerprint
    assert sorted(os.listdir()) == ["in.jsonl", "shared", "whole"]
