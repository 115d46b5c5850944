"""``dptext synthesize`` in a shell as a user has it."""

import io
import json
import sys
from pathlib import Path

import pytest

import dptext
from dptext.cli import main
from dptext.ledger.ledger import Ledger
from dptext.synthesis import release as release_module
from synthesis.chat_server import running

MARKER = "qsecretq"
DRINKS, RULES = ["tea", "cup", "cocoa", "milk", "sugar"], ["tax", "law", "court", "judge", "vote"]


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path / "cache"))
    write("in.jsonl", 300)
    with open("pool.txt", "w") as stream:
        for words in (DRINKS, RULES):
            stream.writelines(
                f"{one} and {other} with {third}\n" for one in words for other in words for third in words
            )
    return tmp_path


def write(name, count):
    with open(name, "w") as stream:
        for n in range(count):
            topic, words = ("drinks", DRINKS) if n % 2 else ("rules", RULES)
            text = f"{words[n % 5]} {words[n % 3]} {words[n % 4]} {MARKER}"
            stream.write(json.dumps({"text": text, "author": f"{MARKER}{n}", "topic": topic}) + "\n")


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert MARKER not in captured.err + captured.out
        return code, captured.out, captured.err

    return call


HOW = ("--user", "author", "--label", "topic", "--labels", "drinks,rules", "--epsilon", "4", "--features", "words")


@pytest.fixture
def synthesize(run, work):
    def call(*arguments, options=HOW):
        return run("synthesize", *arguments, "--public", "pool.txt", *options)

    return call


def rows(name):
    return list(dptext.read_documents(name, keep=["topic"]))


@pytest.mark.usefixtures("same_draws")
def test_a_corpus_its_statement_and_the_description_beside_it(synthesize, run):
    code, out, err = synthesize("in.jsonl", "-o", "made.jsonl", "-n", "40")
    assert code == 0, err
    assert "unit      user (all texts of one 'author'); relation: add/remove; central" in err
    assert "guarantee epsilon 4, delta 1e-06" in err
    corpus = rows("made.jsonl")
    assert len(corpus) == len({row.text for row in corpus}) == 40
    right = [(row.text.split()[0] in DRINKS) == (row.attributes["topic"] == "drinks") for row in corpus]
    assert sum(right) > 36
    statement = dptext.PrivacyStatement.from_json(Path("made.jsonl.privacy.json").read_text())
    result = dptext.TextDistribution.load("made.jsonl.distribution")
    assert statement.release_id == result.statement.release_id
    assert statement.parameters["texts"] == 40
    for path in Path().rglob("*"):
        assert path.name == "in.jsonl" or path.is_dir() or MARKER.encode() not in path.read_bytes()
    code, out, err = run("explain", "made.jsonl")
    assert code == 0
    assert "verified" in out


def replace_labels(labels, *more):
    return tuple(labels if argument == "drinks,rules" else argument for argument in HOW) + more


MADE = ("in.jsonl", "-o", "made.jsonl", "-n", "10")


def test_labels_that_no_row_has_are_refused_before_anything_is_spent(synthesize):
    Ledger.create("book", epsilon=4, delta=1e-5)
    for ledger in ([], ["--ledger", "book"]):
        code, _, err = synthesize(*MADE, "-y", *ledger, options=replace_labels("Drinks,taxes"))
        assert code == 2
        assert "no row of IN has one of the --labels of 'topic'. Nothing was released" in err
        assert "'drinks'" not in err  # a script's messages are kept in logs
        assert Ledger("book").left(f"{MARKER}3").spent == 0.0
        assert not list(Path().glob("made*"))
    assert (
        synthesize(*MADE, "-q", "--ledger", "book", options=replace_labels("Drinks,taxes", "--labels-as-given"))[0] == 0
    )
    assert Ledger("book").left(f"{MARKER}3").spent == 4.0


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_a_terminal_shows_how_many_rows_have_a_label_and_asks(synthesize, monkeypatch, answer, code):
    monkeypatch.setattr("dptext.cli.labels.can_ask", lambda: True)
    monkeypatch.setattr("dptext.cli.console.can_ask", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{answer}\n"))
    result, out, err = synthesize(*MADE, options=replace_labels("drinks,Rules"))
    assert result == code
    assert "  150 of 300 rows have one of the --labels.\n" in err
    assert err.count("[y/N]") == 1
    assert Path("made.jsonl.distribution").exists() == (answer == "y")
    assert "150" not in out
    if answer == "y":  # an earlier release is used: nothing private is read, and no question is asked
        Path("made.jsonl").unlink()
        _, _, err = synthesize(*MADE, "--resume", options=replace_labels("drinks,Rules"))
        assert "rows have" not in err


def test_label_descriptions_are_kept_with_the_description(synthesize):
    Path("labels.json").write_text('{"drinks": "tea, milk", "rules": "tax, law"}')
    labels = ["--labels-file", "labels.json"]
    options = ("--user", "author", "--label", "topic", "--epsilon", "4", "--features", "words", *labels)
    code, _, err = synthesize("in.jsonl", "-o", "made.jsonl", "-n", "20", options=options)
    assert code == 0, err
    distribution = dptext.TextDistribution.load("made.jsonl.distribution")
    assert [text.split()[0].strip(",") for text in distribution.labels.described] == ["tea", "tax"]
    assert distribution.predict(["a cup of tea", "the court and the law"]).tolist() == ["drinks", "rules"]
    assert {row.attributes["topic"] for row in rows("made.jsonl")} == {"drinks", "rules"}


@pytest.mark.parametrize(
    ("labels", "code", "message"),
    [
        (["--labels-file", "none.json"], 4, "none.json: No such file"),
        (["--labels-file", "pool.txt"], 1, "not JSON"),
        (["--labels-file", "pool.txt", "--labels", "a"], 2, "leave out --labels"),
    ],
)
def test_label_descriptions_that_do_not_fit_get_one_clear_line(synthesize, labels, code, message):
    options = ("--user", "author", "--epsilon", "4", "--features", "words", *labels)
    result, _, err = synthesize("in.jsonl", "-o", "made.jsonl", "-n", "20", options=options)
    assert (result, len(err.strip().splitlines())) == (code, 1), err
    assert message in err
    assert not list(Path().glob("made*"))


def test_more_texts_of_an_earlier_description_for_nothing(synthesize, run):
    Ledger.create("book", epsilon=4, delta=1e-5)
    assert synthesize("in.jsonl", "-o", "made.jsonl", "-n", "10", "-q", "--ledger", "book")[0] == 0
    assert Ledger("book").left(f"{MARKER}3").spent == 4.0
    command = ("synthesize", "--distribution", "made.jsonl.distribution", "--public", "pool.txt", "-o", "more.csv")
    assert run(*command, "-n", "100", "-q") == (0, "", "")
    assert len(rows("more.csv")) == 100
    assert Ledger("book").left(f"{MARKER}3").spent == 4.0
    code, _, err = synthesize("in.jsonl", "-o", "other.jsonl", "-n", "10", "--ledger", "book")
    assert code == 3
    assert "Nothing" in err or "refuse" in err or "budget" in err
    assert not list(Path().glob("other.jsonl*"))


def test_what_is_there_is_not_overwritten_and_a_stopped_run_goes_on_for_nothing(synthesize, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    Ledger.create("book", epsilon=4, delta=1e-5)
    arguments = ("in.jsonl", "-o", "made.jsonl", "-n", "10", "--ledger", "book")
    with monkeypatch.context() as patch:
        patch.setattr(release_module, "write_corpus", stop)
        code, _, err = synthesize(*arguments)
    assert code == 130
    assert "--resume" in err
    assert not Path("made.jsonl").exists()
    first = Path("made.jsonl.distribution/privacy.json").read_text()
    code, _, err = synthesize(*arguments)
    assert code == 2
    assert "is there already" in err
    assert synthesize(*arguments, "--resume", "-q")[0] == 0
    assert Path("made.jsonl.distribution/privacy.json").read_text() == first
    assert Ledger("book").left(f"{MARKER}3").spent == 4.0
    assert synthesize(*arguments)[0] == 2
    Path("made.jsonl").unlink()
    code, _, err = synthesize(
        "in.jsonl", "-o", "made.jsonl", "-n", "10", "--resume", options=(*HOW[:-4], "--epsilon", "2")
    )
    assert code == 2
    assert "made with other arguments" in err


def test_a_run_that_is_interrupted_before_the_release_stays_charged(synthesize, monkeypatch):
    Ledger.create("book", epsilon=4, delta=1e-5)
    arguments = ("in.jsonl", "-o", "made.jsonl", "-n", "10", "--ledger", "book")
    with monkeypatch.context() as patch:
        patch.setattr(dptext.TextDistribution, "save", lambda *_args, **_more: (_ for _ in ()).throw(KeyboardInterrupt))
        code, _, err = synthesize(*arguments)
    (pending,) = Ledger("book").releases()
    assert (code, f"dptext ledger void book {pending.release_id}" in err) == (130, True)
    assert not list(Path().glob("made.jsonl*"))
    assert Ledger("book").left(f"{MARKER}3").spent == 4.0
    assert synthesize(*arguments)[0] == 3
    Ledger("book").void(pending.release_id)
    assert synthesize(*arguments, "-q")[0] == 0


@pytest.fixture(scope="module")
def server():
    with running() as started:
        yield started


@pytest.mark.slow
def test_a_model_behind_an_address_writes(synthesize, run, server):
    url = server.url("500,ok")
    arguments = ("in.jsonl", "-o", "made.jsonl", "-n", "20", "--about", "short notes")
    code, _, err = synthesize(*arguments, "--generator", url)
    assert code == 2
    assert "--model NAME" in err
    code, _, err = synthesize(*arguments, "--generator", url, "--model", "tiny")
    assert code == 0, err
    assert len(rows("made.jsonl")) == 20
    assert not Path("made.jsonl.answers.jsonl").exists()
    requests = "".join(server.requests(url))
    assert "drinks" in requests
    assert "short notes" in requests
    assert MARKER not in requests
    code, out, _ = run("explain", "made.jsonl")
    assert "no private text" in " ".join(out.split())


def test_answers_are_kept_until_the_corpus_is_there(synthesize, server, monkeypatch):
    url = server.url("ok")
    arguments = ("in.jsonl", "-o", "made.jsonl", "-n", "20", "--generator", url, "--model", "tiny")

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(release_module, "write_corpus", stop)
        assert synthesize(*arguments)[0] == 130
    requests = len(server.requests(url))
    assert Path("made.jsonl.answers.jsonl").exists()
    assert synthesize(*arguments, "--resume", "-q")[0] == 0
    assert len(server.requests(url)) == requests


@pytest.mark.slow  # torch and transformers
def test_a_local_model_writes(synthesize, tiny_model_folder):
    arguments = ("in.jsonl", "-o", "made.jsonl", "-n", "3", "--model", tiny_model_folder)
    assert synthesize(*arguments, "-q")[0] == 0
    assert len(rows("made.jsonl")) == 3


def test_a_plan_predicts_accuracy_where_public_texts_have_labels(run, work):
    texts = Path("pool.txt").read_text().splitlines()
    labelled = [{"text": text, "topic": "drinks" if text.split()[0] in DRINKS else "rules"} for text in texts]
    Path("labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labelled))
    arguments = ("--people", "2000", "--epsilon", "1", "--public", "labelled.jsonl", "--features", "words")
    code, out, err = run("synthesize", "--plan", *arguments, "--public-label", "topic")
    assert code == 0, err
    assert "unknown" not in out
    assert "Warning" not in out
    assert max(map(len, out.splitlines())) <= 80
    [result] = json.loads(run("synthesize", "--plan", *arguments, "--public-label", "topic", "--json")[1])
    low, high = result["accuracy"]
    assert 0.9 < low <= high <= 1.0
    code, out, _ = run("synthesize", "--plan", *arguments, "--label", "topic", "--labels", "drinks,rules")
    assert "Accuracy is unknown" in " ".join(out.split())
    assert "Agreement is with the noise-free labels" in " ".join(out.split())
    few = ("--people", "5", *arguments[2:], "--public-label", "topic")
    assert "Warning: 5 people are too few" in " ".join(run("synthesize", "--plan", *few)[1].split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["in.jsonl", "-n", "5"], "--out OUT"),
        (["in.jsonl", "-o", "made.jsonl"], "--count N is required"),
        (["in.jsonl", "-o", "made.jsonl", "-n", "5", "--label", "topic", "--labels", "a"], "names a column twice"),
        (["in.jsonl", "-o", "made.jsonl", "-n", "5000"], "250"),
        (["in.jsonl", "-o", "in.jsonl", "-n", "5", "--force"], "IN"),
        (["in.jsonl", "-o", "made.jsonl", "-n", "5", "--public", "in.jsonl"], "both a file of IN and of the public"),
    ],
)
def test_bad_usage_gets_one_clear_line(synthesize, arguments, message):
    code, out, err = synthesize(*arguments)
    assert code == 2, err
    assert message in err
    assert not out
    assert not list(Path().glob("made*"))


def test_what_was_decided_at_the_release_is_not_asked_of_a_draw(synthesize):
    """Nothing of it would happen: a budget, or a label, would be taken for the corpus' own."""
    assert synthesize("in.jsonl", "-o", "made.jsonl", "-n", "5")[0] == 0
    draw = ("--distribution", "made.jsonl.distribution", "-o", "more.jsonl", "-n", "5")
    code, _, err = synthesize(*draw)
    assert code == 2
    assert "--epsilon, --features, --user, --label, --labels cannot change" in err
    for option in (["--delta", "1e-9"], ["--unit", "document"], ["--ledger", "book"], ["--resume"], ["--seed", "1"]):
        code, _, err = synthesize(*draw, *option, options=())
        assert code == 2
        assert f"{option[0]} cannot change" in err
    assert not Path("more.jsonl").exists()
    assert synthesize(*draw, options=())[0] == 0


def test_rows_that_are_left_out_are_counted_and_listed_for_the_owner(synthesize, work):
    with open("in.jsonl", "a") as stream:
        stream.write('{"text": "' + MARKER + "\n")
    code, _, err = synthesize("in.jsonl", "-o", "made.jsonl", "-n", "5", "--on-error", "skip")
    assert code == 0
    assert "Skipped 1 unreadable rows; they are listed in made.jsonl.rejects.jsonl" in err
    assert json.loads(Path("made.jsonl.rejects.jsonl").read_text())["row"] == 301


def test_a_run_that_goes_on_says_that_nothing_is_read_again(synthesize):
    assert synthesize("in.jsonl", "-o", "made.jsonl", "-n", "5", "-q")[0] == 0
    name = Path("made.jsonl.distribution/privacy.json").read_text()
    code, _, err = synthesize("in.jsonl", "-o", "made.jsonl", "-n", "9", "--resume", "--force")
    assert code == 0, err
    assert (
        "Resumes from the distribution in made.jsonl.distribution: IN is not read again, and no budget is spent." in err
    )
    assert Path("made.jsonl.distribution/privacy.json").read_text() == name
    assert len(rows("made.jsonl")) == 9


def test_neither_pool_nor_description_nor_anything_beside_is_overwritten(synthesize, run):
    assert synthesize("in.jsonl", "-o", "made.jsonl", "-n", "5", "-q")[0] == 0
    Path("made.jsonl.answers.jsonl").write_text("mine")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    options = (*HOW[:2], *HOW[6:])  # no labels, which a .txt cannot hold
    command = (
        "synthesize",
        "--distribution",
        "made.jsonl.distribution",
        "--public",
        "pool.txt",
        "-n",
        "3",
        "--force",
        "-o",
    )
    for code, _, err in (
        synthesize("in.jsonl", "-o", "pool.txt", "-n", "5", "--force", options=options),
        synthesize("in.jsonl", "-o", "made.jsonl", "-n", "5", "--resume"),
        run(*command, "pool.txt"),
        run(*command, "made.jsonl.distribution/privacy.jsonl"),
    ):
        assert code == 2
        assert "pool.txt" in err or "made.jsonl" in err
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    assert run(*command, "made.jsonl", "-q") == (0, "", "")
    assert Path("made.jsonl.answers.jsonl").read_text() == "mine"
