"""Before a release: weak guarantees are named, questions asked, columns and outputs checked. Nothing is overwritten."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import dptext
from cli.conftest import names, plain, statement_of, write_rows
from dptext.cli import outputs
from dptext.io import batches, documents
from dptext.io.documents import DocumentReader
from dptext.ledger.ledger import Ledger
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import UNBOUNDED, Strength, strength_in_brief
from dptext.words.registry import MECHANISMS
from evaluation.languages import TEXTS as LANGUAGES

TEXTS = [f"the {noun} was {kind}, they said" for noun in ("tea", "room", "staff") for kind in ("good", "bad", "late")]
RELEASES = {
    **{f"privatize {name}": ["privatize", "--mechanism", name, "--vectors", "{public}/v.txt"] for name in MECHANISMS},
    "document": ["privatize", "--vectors", "{public}/v.txt", "--set", "document_epsilon={epsilon}",
                 "--set", "max_words=3"],
    "pure": ["privatize", "--vectors", "{public}/v.txt", "--set", "pure_epsilon={epsilon}"],
    "bank": ["privatize", "--mechanism", "bank", "--bank", "{public}/bank", "--set", "size=1"],
    "bank, document": ["privatize", "--mechanism", "bank", "--bank", "{public}/bank", "--unit", "document",
                       "--set", "size=1"],
    "encode": ["encode", "--encoder", "{public}/v.txt"],
    "embed": ["embed", "--user", "author", "--vectors", "{public}/v.txt"],
    "synthesize": ["synthesize", "--user", "author", "--public", "pool.txt", "--features", "words", "-n", "6"],
}  # fmt: skip


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    folder = tmp_path_factory.mktemp("public")
    words = sorted({word for text in TEXTS for word in text.replace(",", "").split()})
    vectors = dptext.load_vectors((words, np.random.default_rng(2).normal(size=(len(words), 6))))
    dptext.save_vectors(vectors, folder / "v.txt")
    dptext.TextBank(TEXTS, encoder=dptext.MeanOfWords(vectors), name="hotels", cache=False).save(folder / "bank")
    return folder


@pytest.fixture
def rows(work):
    with open("in.jsonl", "w") as stream:
        for number in range(60):
            row = {"text": TEXTS[number % 9], "author": f"a{number % 7}", "stars": number % 5}
            stream.write(json.dumps(row) + "\n")
    Path("pool.txt").write_text("\n".join(f"{text} again" for text in TEXTS) + "\n")


# -- rows without an author ----------------------------------------------------------------------------------------

NAMELESS = {4: None, 9: "  ", 33: float("nan")}


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("release", ["privatize tem", "bank", "encode", "embed", "synthesize"])
def test_rows_without_an_author_stop_a_release_before_any_work_or_are_left_out(run, public, monkeypatch, release):
    name, *options = RELEASES[release]
    out = {"encode": "out.parquet", "embed": "out"}.get(name, "out.jsonl")
    options += ["-o", out, "--epsilon", "4", "--yes", *([] if "--user" in options else ["--user", "author"])]
    lines = [json.loads(line) for line in Path("in.jsonl").read_text().splitlines()]
    changed = [row | {"author": NAMELESS.get(number, row["author"])} for number, row in enumerate(lines, 1)]
    write_lines(Path("named.jsonl"), [row for number, row in enumerate(lines, 1) if number not in NAMELESS])
    write_lines(Path("in.jsonl"), changed)
    before = names()
    with monkeypatch.context() as patched:  # vectors, bank and pool are needed later only
        patched.setattr("dptext.synthesis.synthesizer.Synthesizer.plan", None)
        code, _, err = run(name, "in.jsonl", *(option.format(public="nowhere") for option in options))
    error = (
        "3 of 60 rows have no usable value in the column 'author' (first: in.jsonl, row 4). Leave such rows out with"
    )
    assert (code, error in err, "--unit document" in err) == (1, True, name in ("embed", "synthesize"))
    assert names() == before
    options = [option.format(public=public) for option in options]
    code, _, err = run(name, "in.jsonl", *options, "--seed", 1, "--on-error", "skip")
    assert (code, "Skipped rows that cannot be read or have no author: 3 (for you alone" in err) == (0, True)
    skipped = content(out)
    code, _, err = run(name, "named.jsonl", *options, "--seed", 1, "--force", "--on-error", "skip")
    assert (code, "Skipped" in err, content(out)) == (0, False, skipped)


def content(out):
    """Return the bytes of an output, which do not depend on the id of the release."""
    if Path(f"{out}.distribution").exists():
        return dptext.TextDistribution.load(f"{out}.distribution").matrix.tobytes()
    return Path(out, "vectors.bin").read_bytes() if Path(out).is_dir() else Path(out).read_bytes()


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.usefixtures("rows")
def test_an_author_missing_from_all_rows_or_from_a_late_one_is_one_error(run, public, monkeypatch):
    options = ["-o", "out", "--user", "author", "--vectors", f"{public}/v.txt", "--epsilon", 4, "--yes"]
    write_lines(Path("none.jsonl"), [{"text": "a", "author": None}] * 5)
    code, _, err = run("embed", "none.jsonl", *options, "--on-error", "skip")
    assert (code, err) == (
        1,
        "dptext: no row could be read; the first error is none.jsonl, row 1: the row has no author\n",
    )
    write_lines(Path("late.jsonl"), [{"text": "a", "author": "b"}] * 50 + [{"text": "a", "author": None}])
    monkeypatch.setattr(batches, "BATCH_ROWS", 8)
    monkeypatch.setattr(documents, "_COUNTED_ROWS", 20)
    code, _, err = run("embed", "late.jsonl", *options)
    assert (code, "late.jsonl, row 51 has no usable value in the column 'author'. Leave such rows" in err) == (1, True)
    write_lines(Path("early.jsonl"), [{"text": "a", "author": None}, *[{"text": "a", "author": "b"}] * 50])
    code, _, err = run("embed", "early.jsonl", *options)
    assert (code, "1 of the first 25 rows has no usable value" in err, os.path.lexists("out")) == (1, True, False)


# -- words of the public side --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("release", ["privatize tem", "bank", "encode", "embed", "synthesize"])
def test_the_owner_is_warned_of_texts_in_another_language(run, public, release):
    name, *options = RELEASES[release]
    options = [option.format(public=public) for option in options]
    out = {"encode": "out.parquet", "embed": "shared"}.get(name, "out.jsonl")
    usual = (name, "in.jsonl", "-o", out, "--epsilon", "2", *options, "--force", "--seed", "1")
    code, _, err = run(*usual)
    assert (code, "another language" in err) == (0, False)
    rows = [{"text": text, "author": f"a{number % 7}"} for number, text in enumerate(LANGUAGES["German"] * 10)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, printed, err = run(*usual)
    text = plain(err)
    assert (code, printed) == (0, "")  # the run goes on, whatever the texts are
    assert text.index("For you alone") < text.index("0% of the words") < text.index("in another language")
    assert text.index("another language") < text.index("guarantee")
    assert {"privatize": "--mechanism bank", "encode": "--encoder PATH", "embed": "--vectors FILE",
            "synthesize": "--features FOLDER"}[name] in text or release == "bank"  # fmt: skip
    assert "another language" not in statement_of(out).to_json()
    assert run(*usual, "-q") == (0, "", "")


@pytest.mark.usefixtures("rows")
def test_features_that_do_not_know_the_language_of_the_pool_are_named(run):
    for language, expected in {"English": False, "French": True}.items():
        Path("pool.txt").write_text("\n".join(LANGUAGES[language]) + "\n")
        for encoder, flag in ((["--encoder", "static"], "The text features know"), (["--encoder", "words"], "know")):
            code, _, err = run("bank", "pool.txt", "-o", "bank", "--force", *encoder)
            assert (code, flag in plain(err)) == (0, expected and encoder[1] == "static")
        usual = ("synthesize", "in.jsonl", "-o", "out.jsonl", "--force", "--user", "author", "--epsilon", "1")
        code, _, err = run(*usual, "--public", "pool.txt", "-n", "2", "--features", "static")
        assert (code, "The text features know" in plain(err)) == (0, expected)


@pytest.mark.usefixtures("rows")
def test_a_pipe_is_not_read_for_a_comparison(public, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert dptext.TextFiles("-").first() == []
    assert dptext.TextFiles("in.jsonl").first()[:9] == TEXTS


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("release", RELEASES)
def test_a_weak_guarantee_is_named_before_anything_is_written(run, public, release):
    name, *options = RELEASES[release]
    out = {"encode": "out.parquet", "embed": "shared"}.get(name, "out.jsonl")
    for epsilon in (0.4, 2.0, 8.0, 11.0):
        options_here = [option.format(epsilon=epsilon, public=public) for option in options]
        usual = ("in.jsonl", "-o", out, "--epsilon", epsilon, "--seed", "1", "--force")
        code, _, err = run(name, *usual, *options_here)
        assert code == 0, err
        before = err.split("\nWrote ")[0]
        is_named = any(phrase in plain(before) for phrase in (Strength.TOO_LARGE.value, UNBOUNDED))
        statements = [*Path().rglob("*privacy.json")]
        assert statements
        for path in statements:
            assert is_named or strength_in_brief(PrivacyStatement.from_json(path.read_text()))[1] is not False, epsilon
        assert max(map(len, before.splitlines())) <= 80 or str(public) in before


# -- questions on a terminal ---------------------------------------------------------------------------------------


@pytest.fixture
def at_terminal(run, rows, monkeypatch, public):
    """Run a command with an answer to its questions, and count these."""

    def call(answer, *arguments, epsilon=11):
        questions = []

        def answered(question, *, yes, quiet):
            if not yes and not quiet:
                questions.append(question)
            return answer or yes or quiet

        monkeypatch.setattr(outputs, "confirm", answered)
        vectors = public / "v.txt"
        options = {"encode": ["--encoder", vectors], "synthesize": []}.get(arguments[0], ["--vectors", vectors])
        code, out, err = run(*arguments, "--epsilon", epsilon, *options)
        return (code, len(questions)), out, err

    return call


def test_an_unprotected_release_is_written_only_after_a_yes(at_terminal):
    of_corpus = ("--user", "author", "--public", "pool.txt", "--features", "words", "-n", 6)
    for arguments in (
        ("privatize", "in.jsonl", "-o", "out.jsonl"),
        ("encode", "in.jsonl", "-o", "out.parquet"),
        ("embed", "in.jsonl", "-o", "shared", "--user", "author"),
        ("synthesize", "in.jsonl", "-o", "out.jsonl", *of_corpus),
    ):
        result, _, err = at_terminal(False, *arguments)
        assert (result, "Nothing was written." in err) == ((1, 1), True)
        assert names() == ["in.jsonl", "pool.txt"]
    protects = ("--set", "document_epsilon=2", "--set", "max_words=3")
    assert at_terminal(False, "privatize", "in.jsonl", "-o", "a.jsonl", *protects, epsilon=0.5)[0] == (0, 0)
    assert at_terminal(False, "encode", "in.jsonl", "-o", "out.parquet", epsilon=2)[0] == (0, 0)
    assert at_terminal(False, "embed", "in.jsonl", "-o", "shared", "--user", "author", epsilon=2)[0] == (0, 0)
    usual = ("privatize", "in.jsonl", "-o", "out.jsonl", "--keep")
    assert at_terminal(True, *usual, "author!")[0] == (0, 1)


def test_missing_columns_are_reported_before_questions_and_loading(at_terminal):
    for wrong in (["--text", "txet"], ["--keep", "strs"]):
        result, _, err = at_terminal(True, "privatize", "in.jsonl", "-o", "out.jsonl", *wrong)
        assert (result, f"expected a column {wrong[1]!r}" in err, "strength" in err) == ((1, 0), True, False)
        assert names() == ["in.jsonl", "pool.txt"]


@pytest.mark.parametrize("command", ["privatize", "encode"])
def test_a_kept_column_that_looks_like_an_identifier_needs_a_confirmation(at_terminal, command):
    usual = (command, "in.jsonl", "-o", "out.parquet", "--keep", "stars", "--keep")
    result, _, err = at_terminal(True, *usual, "author")
    assert (result, err.count("\n"), names()) == ((2, 0), 1, ["in.jsonl", "pool.txt"])
    assert "'author' (its name suggests that it identifies a person)" in err
    assert "--keep 'author!'" in err and "'stars'" not in err
    assert at_terminal(True, *usual, "author!")[0][0] == 0
    assert "the column 'author', unchanged" in statement_of("out.parquet").exposed


# -- for the owner of the data -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("rows")
def test_the_limits_of_a_ledger_are_named_before_it_charges(run, public):
    usual = ("privatize", "in.jsonl", "--epsilon", "1", "--vectors", public / "v.txt", "--yes", "--ledger")
    for name in ("near", "pure"):
        Ledger.create(name, epsilon=9)
    code, _, err = run(*usual, "near", "-o", "a.jsonl")
    assert (code, "not the total loss of a text or a person" in plain(err)) == (0, True)
    pure = ("--mechanism", "subsetselection", "--set", "max_words=6")
    code, _, err = run(*usual, "pure", "-o", "b.jsonl", *pure)
    assert (code, "total loss" in plain(err)) == (0, False)


@pytest.mark.usefixtures("rows")
def test_the_number_of_unchanged_texts_is_told_to_the_owner_only(run, public):
    certain = ["--epsilon", "60", "--set", "beta=1e-8", "--seed", "1"]  # a seed: a word in a hundred million moves
    code, out, err = run("privatize", "in.jsonl", "-o", "o.jsonl", *certain, "--vectors", public / "v.txt")
    assert (code, out, "360 of 360 words and 60 of 60 texts are unchanged." in err) == (0, "", True)
    assert "Do not share the unchanged texts" in plain(err)
    for path in Path().glob("o.*"):
        assert not re.search(r"\b360\b", path.read_text())  # as a number: a release has a name of random digits


@pytest.mark.parametrize("command", ["privatize", "encode"])
def test_the_guarantee_for_all_texts_of_an_author_is_told_to_the_owner_only(at_terminal, command):
    result, out, err = at_terminal(True, command, "in.jsonl", "-o", "out.parquet", "--user", "author", "--json")
    before, _, after = plain(err).partition("Wrote ")
    assert result[0] == 0
    assert "the guarantee is per text, and the losses of one 'author''s texts add up" in before
    assert "For you alone (it is in no statement): " in after
    assert "The 'author' with the most texts has 9. The guarantee for all of them together: epsilon at most" in after
    assert Strength.TOO_LARGE.value in after.partition("together")[2]
    assert "most texts" not in out + "".join(path.read_text() for path in Path().glob("out.*.json"))


# -- outputs -------------------------------------------------------------------------------------------------------

ENDINGS = {"privatize": ".jsonl", "encode": ".parquet", "embed": "", "report": ".html"}
on_posix = pytest.mark.skipif(os.name == "nt", reason="links, pipes and devices of POSIX")


@pytest.fixture
def write(run, work, vectors, monkeypatch):
    """Run a command that should refuse its output before it reads a row, and check that it changes no file."""
    write_rows("in.jsonl", 3)
    assert run("privatize", "in.jsonl", "-o", "private.jsonl", "--epsilon", 4, "--vectors", vectors, "-q")[0] == 0
    Ledger.create("my.ledger", epsilon=10)

    def no_reading(*_, **__):
        raise AssertionError("rows are read")

    monkeypatch.setattr(DocumentReader, "batches", no_reading)
    monkeypatch.setattr("dptext.cli.releases.make_report", no_reading)

    def tree():
        paths = {str(path): path for path in work.rglob("*")}
        is_file = {name: path.is_file() and not path.is_symlink() for name, path in paths.items()}
        return {name: path.read_bytes() if is_file[name] else path.lstat().st_mode for name, path in paths.items()}

    def call(command, target, message, *further):
        source = "private.jsonl" if command == "report" else "in.jsonl"
        options = {"encode": ["--encoder", vectors], "report": ["--original", "in.jsonl"]}
        options = options.get(command, ["--vectors", vectors]) + (["--user", "author"] if command == "embed" else [])
        options += [] if command == "report" else ["--epsilon", 4]
        before = tree()
        code, out, err = run(command, source, "-o", target, "--force", *options, *further, "-q")
        assert (code, out, err.count("\n"), tree() == before) == (2, "", 1, True), err
        assert message in err

    return call


@on_posix
@pytest.mark.parametrize("command", ENDINGS)
def test_links_pipes_and_folders_are_neither_followed_nor_replaced(write, command):
    ending = ENDINGS[command]
    Path("victim").mkdir() if command == "embed" else Path("victim").write_text("years of work")
    for name, leads_to in (("device", os.devnull), ("nowhere", "nothing"), ("link", "victim")):
        Path(f"{name}{ending}").symlink_to(leads_to)
        write(command, f"{name}{ending}", "is a link")
    if ending:
        os.mkfifo(f"pipe{ending}")
        write(command, f"pipe{ending}", f"'pipe{ending}' is a pipe, not a regular file: choose another name, or")
        Path(f"folder{ending}").mkdir()
        write(command, f"folder{ending}", "is a folder: choose a file name in it")


@on_posix
@pytest.mark.parametrize("command", ["privatize", "encode"])
def test_neither_ledger_nor_input_is_overwritten(write, command):
    out = f"out{ENDINGS[command]}"
    for pattern in ("{}", "{}.privacy.json", "{}.rejects.jsonl", ".{}.rows", ".{}.job", ".{}.made"):
        name = Path(pattern.format(out))
        Path("my.ledger").rename(name)
        write(command, out, "is the same file as the ledger: choose another name", "--ledger", name)
        name.rename("my.ledger")
        Path("in.jsonl").rename(name)
        Path("in.jsonl").symlink_to(name)
        write(command, out, "is the same file as IN: choose another name")
        Path("in.jsonl").unlink()
        name.rename("in.jsonl")
