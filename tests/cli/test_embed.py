"""``dptext embed``: shared folders of vectors, levels, new words, skip-gram, ledgers and plans."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import dptext
from cli.conftest import SECRET, command, names, statement_of, write_rows
from dptext.embeddings import cooccurrence, sharing
from dptext.embeddings.skipgram import SkipGramPlan
from dptext.ledger.ledger import Ledger
from dptext.privacy.guarantee import Unit, as_approx
from dptext.release.run import Charges

FILES = ["README.md", "config.json", "privacy.json", "vectors.bin", "vectors.safetensors", "words.txt"]
LEVELS = ["--level", "level", "--levels", "strict=1,open=8"]
SKIP_GRAM = ["--method", "skip-gram", "--steps", "5", "--sampling-rate", "1", "--public-users", "50"]
METHODS = {"co-occurrences": [], "skip-gram": SKIP_GRAM}


@pytest.fixture
def embed(run, work, vectors):
    write_rows("in.jsonl", 60, people=10)

    def call(*arguments):
        usual = [] if "--vectors" in arguments else ["--vectors", vectors]
        usual += [] if {"--user", "--unit"} & {*arguments} else ["--user", "author"]
        usual += [] if {"--epsilon", "--levels"} & {*arguments} else ["--epsilon", "8"]
        return run("embed", "in.jsonl", *arguments, *usual)

    return call


def states():
    return [release.state for release in Ledger("book").releases()]


# -- output --------------------------------------------------------------------------------------------------------


def test_embed_writes_a_folder_to_share(embed):
    code, out, err = embed("-o", "shared", "--delta", "1e-6")
    assert (code, out) == (0, "")
    for line in (
        "co-occurrences on small.txt (300 words, 50 dimensions)",
        "unit      user (all texts of one 'author'); relation: add/remove; central",
        "guarantee epsilon 8, delta 1e-06\n",
        "(under substitution epsilon 18.66, delta 1e-06)",
        "Wrote vectors of 300 words to shared",
    ):
        assert line in err
    assert "60" not in err  # neither rows nor users are counted
    assert (names("shared"), names()) == (FILES, ["in.jsonl", "shared"])
    assert dptext.load_vectors("shared").statement.guarantee == dptext.ApproxDP(8.0, 1e-6)
    assert not any(SECRET.encode() in Path("shared", name).read_bytes() for name in FILES)
    before = statement_of("shared")
    code, _, err = embed("-o", "shared")
    assert (code, "'shared' already exists" in err, statement_of("shared")) == (2, True, before)
    assert embed("-o", "shared", "--force", "-q")[0] == 0 and statement_of("shared") != before
    Path("shared/mine.txt").write_text("mine")
    code, _, err = embed("-o", "shared", "--force")
    assert (code, "replacing it would delete" in err) == (2, True)


def test_levels_have_a_statement_each_and_explain_verifies_them(embed, run):
    code, out, err = embed("-o", "shared", *LEVELS, "--json")
    assert code == 0
    assert "strict    epsilon 1, delta 1e-06\n" in err and "open      epsilon 8, delta 1e-06\n" in err
    result = json.loads(out)
    assert result["statements"].keys() == {"strict", "open"}
    assert result["statement"] == result["statements"]["open"]
    assert statement_of("shared/privacy-strict.json").guarantee == dptext.ApproxDP(1.0, 1e-6)
    assert statement_of("shared").parameters["default_level"] == "strict"
    for file in ("shared", "shared/privacy.json", "shared/privacy-strict.json"):
        code, out, _ = run("explain", file)
        assert (code, "The privacy unit is the user" in out) == (0, True)
        assert "shared: verified, all files of the folder match" in out
    Path("shared/another.privacy.json").write_text(Path("shared/privacy.json").read_text())
    assert "Not verified" in run("explain", "shared/another.privacy.json")[1]
    strict = Path("shared/privacy-strict.json")
    strict.write_text(strict.read_text().replace('"epsilon": 1.0', '"epsilon": 0.1'))
    code, _, err = run("explain", strict)
    assert (code, "privacy-strict.json does not match its digest in config.json" in err) == (1, True)


def test_new_words_are_learned_first_and_added_to_the_guarantee(embed):
    write_rows("in.jsonl", 60, people=40, word="zyzzogeton")  # enough for the noise on the numbers of people
    code, _, err = embed("-o", "shared", "--new-words", 100, "--public-users", 50)
    assert code == 0
    assert "guarantee epsilon 108, delta 2e-06\n" in err
    assert "including epsilon 100, delta 1e-06 for new words" in err
    back = dptext.load_vectors("shared")
    new = back.words[300:]
    assert f"words ({len(new)} of them new)" in err
    assert {SECRET, "zyzzogeton"} & set(new)  # all users wrote them
    assert back.statement.epsilon == 108.0


def test_skip_gram_states_its_training_and_its_unit(embed):
    pytest.importorskip("numba")
    code, out, err = embed("-o", "shared", *SKIP_GRAM, "--json")
    assert code == 0
    assert "skip-gram from small.txt (300 words, 50 dimensions)\n" in err
    assert "training  5 steps, each user in 100% of them, noise" in err and "guarantee epsilon 7.99" in err
    assert max(map(len, err.partition("Wrote")[0].splitlines())) <= 80
    assert ("60" in err, names("shared")) == (False, FILES)
    statement = statement_of("shared")
    assert json.loads(out)["statement"] == json.loads(statement.to_json()) and 7.9 < statement.epsilon <= 8
    parameters = [statement.parameters[name] for name in ("steps", "pairs", "window", "public_users")]
    assert parameters == [5, 500, 5, 50]
    assert not any(SECRET.encode() in Path("shared", name).read_bytes() for name in FILES)
    code, _, err = embed("-o", "pairs", *SKIP_GRAM, "--unit", "pair")
    assert "unit      pair of neighbouring words (no guarantee for a text or a person);" in err
    assert (code, statement_of("pairs").unit) == (0, Unit.EXAMPLE)


def test_texts_without_a_known_word_cause_neither_error_nor_warning(embed):
    Path("in.jsonl").write_text('{"text": "qwxz zzqx", "author": "a"}\n')
    silent = embed("-o", "a", "-q")
    Path("in.jsonl").write_text('{"text": "the city of water", "author": "a"}\n')
    assert embed("-o", "b", "-q") == silent == (0, "", "")


def test_guarantees_of_earlier_vectors_are_added_before_and_in_the_statement(embed):
    assert embed("-o", "other", "--unit", "document", "-q")[0] == embed("-o", "first", "-q")[0] == 0
    code, _, err = embed("-o", "shared", "--vectors", "other")
    assert (code, "the two have no proved sum" in err, Path("shared").exists()) == (3, True, False)
    before = dptext.load_vectors("first")
    before = dptext.WordVectors(before.words, before.matrix, statement=before.statement.replace(slack=0.5))
    dptext.save_vectors(before, Path("slack"))
    for source, epsilon in (("first", 16), ("slack", 16.5)):  # with the slack of finite arithmetic
        code, _, err = embed("-o", f"after {source}", "--vectors", source)
        assert (code, statement_of(f"after {source}").epsilon) == (0, epsilon)
        assert f"guarantee epsilon {epsilon}, delta 2e-06" in err


# -- interruptions -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_interrupt_leaves_nothing(embed, vectors):
    os.mkfifo("pipe.jsonl")
    usual = ("-o", "shared", "--vectors", vectors, "--user", "author", "--epsilon", "8")
    with subprocess.Popen(command("embed", "pipe.jsonl", *usual), stderr=subprocess.PIPE, text=True) as process:
        pipe = os.open("pipe.jsonl", os.O_RDWR)  # does not wait for a reader
        os.write(pipe, Path("in.jsonl").read_bytes())
        assert process.stderr.readline().startswith("co-occurrences on")
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 130
        os.close(pipe)
        assert "interrupted. If the output exists, it is complete" in process.stderr.read()
    assert names() == ["in.jsonl", "pipe.jsonl"]


def test_a_resumed_training_ends_with_the_same_vectors(embed, monkeypatch):
    pytest.importorskip("numba")
    Path("run").write_text("mine")
    code, _, err = embed("-o", "shared", *SKIP_GRAM, "--checkpoint", "run")
    assert (code, "already exists" in err, Path("run").read_text()) == (2, True, "mine")
    assert embed("-o", "shared", *SKIP_GRAM, "--checkpoint", "run", "--resume")[0] == 1
    Path("run").unlink()
    train = SkipGramPlan.train

    def stopped(plan, *arguments, progress, every, **settings):
        def show(step):
            if step == 3:
                raise KeyboardInterrupt

        return train(plan, *arguments, every=2, progress=show, **settings)

    usual = [*SKIP_GRAM, "--seed", "1", "-q"]
    with monkeypatch.context() as patched:
        patched.setattr(SkipGramPlan, "train", stopped)
        code, _, err = embed(*usual, "--checkpoint", "run", "-o", "shared")
    assert (code, "add --resume" in err, names()) == (130, True, ["in.jsonl", "run"])
    code, _, err = embed(*usual, "--checkpoint", "run", "--resume", "-o", "shared", "--steps", 6)
    assert (code, "other parameters" in err, Path("run").exists()) == (3, True, True)
    assert embed(*usual, "--checkpoint", "run", "--resume", "-o", "shared") == (0, "", "")
    assert embed(*usual, "-o", "whole") == (0, "", "")
    assert dptext.load_vectors("shared").fingerprint == dptext.load_vectors("whole").fingerprint
    assert names() == ["in.jsonl", "shared", "whole"]


# -- ledgers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_ledger_reserves_before_the_work_and_settles_after_the_folder_exists(embed, monkeypatch, method):
    model, seen = cooccurrence.Cooccurrence if method == "co-occurrences" else dptext.SkipGram, []
    if method == "skip-gram":
        pytest.importorskip("numba")

    def record(step, call):
        def then(*arguments, **options):
            seen.append((step, states(), names("shared") if Path("shared").exists() else None))
            return call(*arguments, **options)

        return then

    Ledger.create("book", epsilon=10, delta=1e-5)
    for owner, name in ((model, "fit"), (model, "save"), (Ledger, "settle")):
        monkeypatch.setattr(owner, name, record(name, getattr(owner, name)))
    usual = (*METHODS[method], "--ledger", "book", "-q")
    assert embed("-o", "shared", *usual)[0] == 0
    assert seen == [("fit", ["pending"], None), ("save", ["pending"], None), ("settle", ["pending"], FILES)]
    (charged,) = Ledger("book").releases()
    statement = statement_of("shared")
    assert (charged.state, charged.release_id) == ("released", statement.release_id)
    assert (charged.guarantee, charged.mechanism) == (statement.guarantee, statement.mechanism)
    assert (charged.terms.unit, charged.terms.relation) == (statement.unit, statement.relation)
    balance = Ledger("book").left("a3")
    assert (balance.spent, balance.releases) == (statement.epsilon, 1)
    seen.clear()
    code, _, err = embed("-o", "again", *usual)
    assert (code, "the ledger refuses" in err, seen) == (3, True, [])  # before the work
    assert names() == ["book", "in.jsonl", "shared"]
    assert embed("-o", "again", *usual, "--epsilon", "1")[0] == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_fails_stays_charged_until_the_owner_voids_it(embed, monkeypatch, method):
    if method == "skip-gram":
        pytest.importorskip("numba")
    Ledger.create("book", epsilon=10, delta=1e-5)
    usual = ("-o", "shared", *METHODS[method], "--ledger", "book", "-q")
    with monkeypatch.context() as full:
        full.setattr(sharing, "write_folder", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left")))
        code, _, err = embed(*usual)
    (pending,) = Ledger("book").releases()
    assert (code, "No space left" in err) == (4, True)
    assert err.endswith(f"dptext ledger void book {pending.release_id}\n")
    assert (states(), names()) == (["pending"], ["book", "in.jsonl"])
    code, _, err = embed(*usual)
    assert (code, "1 pending" in err) == (3, True)
    Ledger("book").void(pending.release_id)
    assert embed(*usual)[0] == 0


def test_levels_and_new_words_are_charged_as_they_are_stated(embed):
    Ledger.create("book", epsilon=20, delta=1e-5)
    levels = ["--level", "level", "--levels", "strict=1,open=4", "--new-words", "1"]
    assert embed("-o", "shared", *levels, "--public-users", "500", "--ledger", "book", "-q")[0] == 0
    (charged,) = Ledger("book").releases()
    statement = statement_of("shared")
    assert as_approx(charged.guarantee).epsilon == pytest.approx(statement.epsilon, rel=1e-12)
    assert as_approx(charged.guarantee).delta == pytest.approx(statement.guarantee.delta, rel=1e-12)
    assert statement_of("shared/privacy-strict.json").release_id == statement.release_id == charged.release_id


@pytest.mark.parametrize(
    ("owner", "name", "options"),
    [(cooccurrence.Cooccurrence, "fit", []), (Charges, "reserve", ["--new-words", 1])],
)
def test_an_input_that_changes_after_its_charge_is_not_released(embed, monkeypatch, owner, name, options):
    """The reading for new words has to be of the charged rows as well."""
    Ledger.create("book", epsilon=10, delta=1e-5)
    call = getattr(owner, name)

    def meddle(*arguments, **settings):
        if name == "fit":
            write_rows("in.jsonl", 61, people=10)
        call(*arguments, **settings)
        write_rows("in.jsonl", 59, people=10)

    monkeypatch.setattr(owner, name, meddle)
    code, _, err = embed("-o", "shared", "--ledger", "book", *options)
    assert (code, "the input changed while it was being read" in err) == (3, True)
    assert (states(), Path("shared").exists()) == (["pending"], False)


# -- plan ----------------------------------------------------------------------------------------------------------


def test_a_plan_reads_public_texts_and_writes_nothing(run, work, vectors):
    Path("public.txt").write_text("\n".join(f"the word{n % 7} of word{n % 5} and word{n % 3}" for n in range(60)))
    usual = ["embed", "--vectors", vectors, "--plan"]
    code, out, err = run(*usual, "--people", "1000", "--public", "public.txt")
    assert (code, err, "no\nprivate text was read" in out) == (0, "", True)
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = run(*usual, "--people", "1000", "--public", "public.txt", "--epsilon", "8", "--json")
    assert [row["epsilon"] for row in json.loads(out)] == [8.0]
    for further, message in (
        ([], "--people 1000"),
        (["--people", "10"], "--public FILE"),
        (["--people", "10", "in.jsonl"], "reads no private text"),
    ):
        code, _, err = run(*usual, *further)
        assert (code, message in err) == (2, True)
    code, _, err = run("embed", "in.jsonl", "-o", "out", "--user", "author")
    assert (code, "dptext advise FILE" in err, names()) == (2, True, ["public.txt"])
