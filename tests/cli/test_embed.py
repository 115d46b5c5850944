"""``dptext embed`` in a shell as a user has it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dptext
from dptext.cli import main
from dptext.embeddings import cooccurrence, sharing
from dptext.ledger.ledger import Ledger
from dptext.privacy.guarantee import as_approx
from dptext.release.run import Charges

MARKER = "qsecretq"
FILES = ["README.md", "config.json", "privacy.json", "vectors.bin", "vectors.safetensors", "words.txt"]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory, glove):
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    dptext.save_vectors(dptext.load_vectors(glove, limit=300), path)
    return str(path)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("in.jsonl", 60)
    return tmp_path


def write(name, count, people=10, **changes):
    known = ["the", "man", "of", "city", "war", "music", "water", "year"]
    with open(name, "w") as stream:
        for n in range(count):
            text = f"{' '.join(known[(n + place) % 8] for place in range(9))} {MARKER} zyzzogeton {n}"
            wish = ["strict", "open", None][n % 10 % 3]
            row = {"text": text, "author": f"{MARKER}{n % people}", "wish": wish, **changes}
            stream.write(json.dumps({key: value for key, value in row.items() if value is not ...}) + "\n")


def statement_of(name):
    return dptext.PrivacyStatement.from_json(Path(name).read_text())


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert MARKER not in captured.err + captured.out
        return code, captured.out, captured.err

    return call


@pytest.fixture
def embed(run, vectors):
    def call(*arguments):
        options = list(map(str, arguments))
        options += [] if "--vectors" in options else ["--vectors", vectors]
        options += [] if {"--user", "--unit"} & set(options) else ["--user", "author"]
        options += [] if {"--epsilon", "--levels"} & set(options) else ["--epsilon", "8"]
        return run("embed", *options)

    return call


# -- output ---------------------------------------------------------------------------------------------------


def test_a_folder_to_share(work, embed):
    code, out, err = embed("in.jsonl", "-o", "shared", "--text", "text", "--user", "author", "--delta", "1e-6")
    assert (code, out) == (0, "")
    assert "co-occurrences on small.txt (300 words, 50 dimensions)" in err
    assert "unit      user (all texts of one 'author'); relation: add/remove; central" in err
    assert "guarantee epsilon 8, delta 1e-06\n" in err
    assert "(under substitution epsilon 18.66, delta 1e-06)" in err
    assert "Wrote vectors of 300 words to shared" in err
    assert sorted(os.listdir("shared")) == FILES
    assert sorted(os.listdir()) == ["in.jsonl", "shared"]
    back = dptext.load_vectors("shared")
    assert back.statement.guarantee == dptext.ApproxDP(8.0, 1e-6)
    assert not any(MARKER.encode() in Path("shared", name).read_bytes() for name in FILES)
    assert "60" not in err  # neither rows nor users are counted


def test_levels_have_their_statements(work, embed):
    options = ["--level", "wish", "--levels", "strict=1,open=8", "--json"]
    code, out, err = embed("in.jsonl", "-o", "shared", *options)
    assert code == 0
    assert "strict    epsilon 1, delta 1e-06\n" in err
    assert "open      epsilon 8, delta 1e-06\n" in err
    result = json.loads(out)
    assert result["statements"].keys() == {"strict", "open"}
    assert result["statement"] == result["statements"]["open"]
    assert statement_of("shared/privacy-strict.json").guarantee == dptext.ApproxDP(1.0, 1e-6)
    assert statement_of("shared/privacy.json").parameters["default_level"] == "strict"


# -- who declared no level -------------------------------------------------------------------------------------

LEVELS = ["--level", "wish", "--levels", "strict=1,open=8"]


def test_new_words_are_learned_first_and_counted_in(work, embed):
    pytest.importorskip("opendp")
    write("in.jsonl", 60, people=40)  # enough for the noise on the numbers of people
    options = ["--new-words", 100, "--public-users", 50]
    code, _, err = embed("in.jsonl", "-o", "shared", *options)
    assert code == 0
    assert "guarantee epsilon 108, delta 2e-06\n" in err
    assert "including epsilon 100, delta 1e-06 for new words" in err
    back = dptext.load_vectors("shared")
    new = back.words[300:]
    assert f"words ({len(new)} of them new)" in err
    assert {MARKER, "zyzzogeton"} & set(new)  # all users wrote them
    assert back.statement.epsilon == 108.0


def test_explain_verifies_the_folder(work, embed, run):
    assert embed("in.jsonl", "-o", "shared", "--level", "wish", "--levels", "strict=1,open=8", "-q")[0] == 0
    for file in ("shared", "shared/privacy.json", "shared/privacy-strict.json"):
        code, out, _ = run("explain", file)
        assert code == 0
        assert "The privacy unit is the user" in out
        assert "shared: verified, all files of the folder match" in out
    Path("shared/another.privacy.json").write_text(Path("shared/privacy.json").read_text())
    assert "Not verified" in run("explain", "shared/another.privacy.json")[1]
    strict = Path("shared/privacy-strict.json")
    strict.write_text(strict.read_text().replace('"epsilon": 1.0', '"epsilon": 0.1'))
    code, _, err = run("explain", "shared/privacy-strict.json")
    assert code == 1
    assert "privacy-strict.json is not the file that config.json announces" in err


# -- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--user", "writer"], 1, "row 1: expected a column 'writer', the row has none"),
        (["--epsilon", "0"], 2, "epsilon"),
        (["--epsilon", "0.01"], 2, "below the floor of 0.05"),
        (["--delta", "0"], 2, "delta"),
        (["--vectors", "nowhere.txt"], 4, "nowhere.txt"),
        (["--unit", "document", "--user", "author"], 2, "--unit document protects no users"),
        (["--unit", "document", "--new-words", "1"], 2, "--new-words protects users"),
        (["--levels", "a=1"], 2, "must be given together"),
        (["--level", "wish", "--levels", "a=1", "--epsilon", "8"], 2, "leave --epsilon out"),
        (["--level", "wish", "--levels", "a=1,a=2"], 2, "each name once"),
        (["--new-words", "1", "--seed", "1"], 2, "takes no seed"),
        (["--ledger", "none.ledger"], 4, "none.ledger"),
        (["-o", "in.jsonl"], 2, "is there already"),
    ],
)
def test_a_bad_option_is_one_clear_error_and_leaves_nothing(work, embed, options, code, message):
    out = [] if "-o" in options else ["-o", "shared"]
    result, stdout, err = embed("in.jsonl", *out, *options)
    assert (result, stdout) == (code, "")
    assert message in err
    assert err.splitlines()[-1].startswith("dptext: ")
    assert "Traceback" not in err
    assert os.listdir() == ["in.jsonl"]


def test_texts_without_one_known_word_show_nothing(work, embed):
    """The texts are private, so texts without a known word cause neither an error nor a warning."""
    write("in.jsonl", 5, text="qwxz zzqx")
    silent = embed("in.jsonl", "-o", "a", "-q")
    write("in.jsonl", 5, text="the city of water")
    assert embed("in.jsonl", "-o", "b", "-q") == silent == (0, "", "")


def test_vectors_with_a_statement_about_others_are_refused_before_anything_is_read(work, embed):
    write("in.jsonl", 5)
    assert embed("in.jsonl", "-o", "mine", "--unit", "document", "-q")[0] == 0
    code, _, err = embed("in.jsonl", "-o", "shared", "--vectors", "mine")
    assert (code, "the two have no proved sum" in err) == (3, True)
    assert not Path("shared").exists()
    assert embed("in.jsonl", "-o", "first", "-q")[0] == 0
    code, _, err = embed("in.jsonl", "-o", "second", "--vectors", "first")  # the same people twice: it adds up
    assert (code, "guarantee epsilon 16, delta 2e-06" in err) == (0, True)
    assert statement_of("second/privacy.json").epsilon == 16.0


def test_what_is_said_before_the_start_is_what_the_statement_says(work, embed):
    """The slack of earlier releases is included."""
    assert embed("in.jsonl", "-o", "first", "-q")[0] == 0
    before = dptext.load_vectors("first")
    before = dptext.WordVectors(before.words, before.matrix, statement=before.statement.replace(slack=0.5))
    dptext.save_vectors(before, Path("slack"))
    code, _, err = embed("in.jsonl", "-o", "second", "--vectors", "slack")
    assert (code, statement_of("second/privacy.json").epsilon) == (0, 16.5)
    assert "guarantee epsilon 16.5, delta 2e-06" in err


def test_what_is_there_stays_without_force(work, embed):
    assert embed("in.jsonl", "-o", "shared", "-q")[0] == 0
    before = statement_of("shared/privacy.json")
    code, _, err = embed("in.jsonl", "-o", "shared")
    assert (code, "'shared' is there already" in err) == (2, True)
    assert statement_of("shared/privacy.json") == before
    assert embed("in.jsonl", "-o", "shared", "--force", "-q")[0] == 0
    assert statement_of("shared/privacy.json") != before
    Path("shared/mine.txt").write_text("mine")
    code, _, err = embed("in.jsonl", "-o", "shared", "--force")
    assert (code, "would delete that" in err) == (2, True)


@pytest.mark.slow
def test_an_interrupt_leaves_nothing(work, vectors):
    os.mkfifo("pipe.jsonl")
    command = [sys.executable, "-m", "dptext", "embed", "pipe.jsonl", "-o", "shared", "--vectors", vectors]
    command += ["--user", "author", "--epsilon", "8"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        pipe = os.open("pipe.jsonl", os.O_RDWR)  # does not wait for a reader
        os.write(pipe, Path("in.jsonl").read_bytes())
        message = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 130
        os.close(pipe)
        assert message.startswith("co-occurrences on")
        assert "interrupted. If the output exists, it is complete" in process.stderr.read()
    assert sorted(os.listdir()) == ["in.jsonl", "pipe.jsonl"]


# -- the ledger -----------------------------------------------------------------------------------------------


def test_a_ledger_charges_every_user_once_and_refuses(work, embed):
    Ledger.create("book", epsilon=10, delta=1e-5)
    assert embed("in.jsonl", "-o", "shared", "--ledger", "book", "-q")[0] == 0
    (release,) = Ledger("book").releases()
    assert (release.state, release.release_id) == ("released", statement_of("shared/privacy.json").release_id)
    balance = Ledger("book").left(f"{MARKER}3")
    assert (balance.spent, balance.releases) == (8.0, 1)
    code, _, err = embed("in.jsonl", "-o", "again", "--ledger", "book")
    assert (code, "the ledger refuses" in err) == (3, True)
    assert not Path("again").exists()
    assert embed("in.jsonl", "-o", "again", "--ledger", "book", "--epsilon", "2", "-q")[0] == 0


METHODS = {"co-occurrences": [], "skip-gram": ["--method", "skip-gram", "--steps", "3", "--sampling-rate", "1"]}


def method(name):
    if name == "skip-gram":
        pytest.importorskip("numba")
    return [*METHODS[name], "--ledger", "book", "-q"]


def states():
    return [release.state for release in Ledger("book").releases()]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_the_ledger_is_asked_before_the_work_and_settles_once_the_folder_stands(work, embed, monkeypatch, name):
    Ledger.create("book", epsilon=10, delta=1e-5)
    model = cooccurrence.Cooccurrence if name == "co-occurrences" else dptext.SkipGram
    fit, save, settle, seen = model.fit, model.save, Ledger.settle, []

    def record(step, call):
        def then(*arguments, **options):
            seen.append((step, states(), sorted(os.listdir("shared")) if Path("shared").exists() else None))
            return call(*arguments, **options)

        return then

    monkeypatch.setattr(model, "fit", record("fit", fit))
    monkeypatch.setattr(model, "save", record("save", save))
    monkeypatch.setattr(Ledger, "settle", record("settle", settle))
    assert embed("in.jsonl", "-o", "shared", *method(name))[0] == 0
    assert seen == [("fit", ["pending"], None), ("save", ["pending"], None), ("settle", ["pending"], FILES)]
    assert states() == ["released"]
    (charged,) = Ledger("book").releases()
    statement = statement_of("shared/privacy.json")
    assert (charged.guarantee, charged.mechanism) == (statement.guarantee, statement.mechanism)
    assert (charged.terms.unit, charged.terms.relation) == (statement.unit, statement.relation)
    seen.clear()
    assert embed("in.jsonl", "-o", "again", *method(name))[0] == 3
    assert seen == []  # refused before the work
    assert sorted(os.listdir()) == ["book", "in.jsonl", "shared"]


@pytest.mark.parametrize("name", METHODS)
def test_a_run_that_fails_stays_charged_until_the_owner_voids_it(work, embed, monkeypatch, name):
    Ledger.create("book", epsilon=10, delta=1e-5)
    with monkeypatch.context() as full:
        full.setattr(sharing, "write_folder", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left")))
        code, _, err = embed("in.jsonl", "-o", "shared", *method(name))
    assert (code, "No space left" in err) == (4, True)
    (pending,) = Ledger("book").releases()
    assert err.endswith(f"dptext ledger void book {pending.release_id}\n")
    assert (states(), sorted(os.listdir())) == (["pending"], ["book", "in.jsonl"])
    code, _, err = embed("in.jsonl", "-o", "shared", *method(name))
    assert (code, "1 pending" in err) == (3, True)
    Ledger("book").void(pending.release_id)
    assert embed("in.jsonl", "-o", "shared", *method(name))[0] == 0


def test_levels_and_new_words_are_charged_as_they_are_stated(work, embed):
    pytest.importorskip("opendp")
    Ledger.create("book", epsilon=20, delta=1e-5)
    levels = ["--level", "wish", "--levels", "strict=1,open=4", "--new-words", "1"]
    assert embed("in.jsonl", "-o", "shared", *levels, "--public-users", "500", *method("co-occurrences"))[0] == 0
    (charged,) = Ledger("book").releases()
    statement = statement_of("shared/privacy.json")
    assert as_approx(charged.guarantee).epsilon == pytest.approx(statement.epsilon, rel=1e-12)
    assert as_approx(charged.guarantee).delta == pytest.approx(statement.guarantee.delta, rel=1e-12)
    assert statement_of("shared/privacy-strict.json").release_id == statement.release_id == charged.release_id


def test_an_input_that_changed_under_a_ledger_is_not_released(work, embed, monkeypatch):
    Ledger.create("book", epsilon=10, delta=1e-5)
    fit = cooccurrence.Cooccurrence.fit

    def meddle(self, documents, **options):
        write("in.jsonl", 61)
        fit(self, documents, **options)

    monkeypatch.setattr(cooccurrence.Cooccurrence, "fit", meddle)
    code, _, err = embed("in.jsonl", "-o", "shared", "--ledger", "book")
    assert (code, "the input changed while it was being read" in err) == (3, True)
    assert states() == ["pending"]
    assert not Path("shared").exists()


def test_the_reading_for_new_words_has_to_be_of_the_rows_that_are_charged_as_well(work, embed, monkeypatch):
    Ledger.create("book", epsilon=10, delta=1e-5)
    reserve = Charges.reserve

    def meddle(*arguments, **options):
        reserve(*arguments, **options)
        write("in.jsonl", 59)

    monkeypatch.setattr(Charges, "reserve", meddle)
    code, _, err = embed("in.jsonl", "-o", "shared", "--ledger", "book", "--new-words", 1)
    assert (code, "the input changed while it was being read" in err) == (3, True)
    assert states() == ["pending"]
    assert not Path("shared").exists()


# -- what a budget buys ------------------------------------------------------------------------------------------------


def test_a_plan_reads_public_texts_and_writes_nothing(work, run, vectors):
    Path("public.txt").write_text("\n".join(f"the word{n % 7} of word{n % 5} and word{n % 3}" for n in range(60)))
    before = sorted(os.listdir())
    command = ["embed", "--vectors", vectors, "--plan"]
    code, out, err = run(*command, "--people", "1000", "--public", "public.txt")
    assert (code, err) == (0, "")
    assert "no\nprivate text was read" in out
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = run(*command, "--people", "1000", "--public", "public.txt", "--epsilon", "8", "--json")
    assert [row["epsilon"] for row in json.loads(out)] == [8.0]
    assert sorted(os.listdir()) == before
    for further, message in (
        ([], "--people 1000"),
        (["--people", "10"], "--public FILE"),
        (["--people", "10", "in.jsonl"], "reads no private text"),
    ):
        code, _, err = run(*command, *further)
        assert (code, message in err) == (2, True)
    code, _, err = run("embed", "in.jsonl", "-o", "out", "--people", "10")
    assert (code, "are for --plan" in err) == (2, True)
    code, _, err = run("embed", "in.jsonl", "-o", "out", "--user", "author")
    assert (code, "dptext advise FILE" in err) == (2, True)
