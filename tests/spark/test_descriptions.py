"""Descriptions on Spark: equal to one machine to the last bit, after retries and in any order of rows."""

import hashlib
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import dptext
from dptext.cli import main
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.ledger.ledger import Ledger
from dptext.spark import frames, tasks
from dptext.synthesis.distribution import TextDistribution
from dptext.synthesis.moments import Labels
from dptext.synthesis.servers import ShareSum
from secrecy import assert_error

WORDS = ["tea", "cup", "cocoa", "tax", "law", "court"]
VECTORS = dptext.load_vectors((WORDS, [[2, 0.1], [1.5, 0.3], [2, 0.4], [-1, 2], [-2, 2], [-1.5, 1.8]]))
POOL = [f"{one} {other} {number}" for one in WORDS for other in WORDS for number in ("", "please", "today")]
LABELS = {"topic": ["drinks", "rules"], "stars": [1, 2, 3]}
SCHEMA = "text string, who string, topic string, stars int, at int"
MOST = 4


def made_up(count=400):
    """Rows of people who write more than `MOST`, less, nothing, with labels that are foreign or missing."""
    rng = np.random.default_rng(5)
    topics = ["drinks", " rules", "other", None, ""]
    rows = []
    for index in range(count):
        someone = int(rng.integers(40)) if index % 3 else int(rng.integers(3))
        text = " ".join(rng.choice(WORDS, 3))
        rows.append((text, f" {someone}" if index % 2 else str(someone), topics[rng.integers(5)], index % 4, index))
    return [*rows, (None, "51", "rules", 1, 900), ("", "52", "rules", 2, 901), ("tea", "53", None, None, 902)]


ROWS = made_up()


def digest_of(row):
    """The stated order: documents with the same text by class, and those without a class first."""
    text, _, topic, stars, _ = row
    return hashlib.sha256((text or "").encode()).digest(), Labels.of(LABELS).code([topic, stars])


def documents(rows):
    return [dptext.Document(row[0], user=row[1], attributes={"topic": row[2], "stars": row[3]}) for row in rows]


def synthesizer(**changes):
    fields = {"epsilon": 2.0, "labels": LABELS, "features": dptext.MeanOfWords(VECTORS), "cache": False, "seed": 9}
    return dptext.Synthesizer(**fields | {"most_documents": MOST} | changes)


def described(df, fitted_with, **settings):
    return frames.fit_distribution(df, fitted_with, **{"public": POOL, "user": "who", "partitions": 2, **settings})


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(ROWS, SCHEMA)


def test_it_is_the_description_of_one_machine_to_the_last_bit(frame):
    """The first documents of a user are those with the smallest digests."""
    one = synthesizer().fit(documents(sorted(ROWS, key=digest_of)), public=POOL)
    plan = synthesizer().plan(POOL)
    for values, settings in ((frame.repartition(5), {"partitions": 3}), (frame.orderBy("at"), {"partitions": 1})):
        many = described(values, synthesizer(), public=plan, **settings)
        assert (many.matrix == one.matrix).all()
        assert many.statement.replace(release_id=None) == one.statement.replace(release_id=None)
    last = synthesizer().fit(documents(ROWS[::-1]), public=POOL)
    assert (last.matrix != one.matrix).any(), "no user had more documents than the limit: the test has no power"
    for changes in (
        {"unit": "document"},
        {"unit": "document", "labels": None},
        {"labels": None, "most_documents": 999},
    ):
        one = synthesizer(**changes).fit(documents(ROWS), public=POOL)
        many = described(frame, synthesizer(**changes), user=None if "unit" in changes else "who")
        assert (many.matrix == one.matrix).all()


def test_without_an_order_the_engine_would_decide_which_documents_count(frame, monkeypatch):
    """A known-broken version: rows of a person in the order in which they arrive."""
    output, plan = synthesizer(), synthesizer().plan(POOL)
    once = described(frame, output, public=plan).matrix
    monkeypatch.setattr(type(frame), "sortWithinPartitions", lambda rows, *_: rows)
    results = [described(frame.orderBy(by), output, public=plan).matrix for by in ("at", "stars")]
    assert not all((entry == once).all() for entry in results)
    assert (results[0] != results[1]).any()


def test_a_task_that_dies_and_is_repeated_adds_up_to_the_same(frame, monkeypatch, tmp_path, die_once):
    undisturbed = described(frame, synthesizer()).matrix
    named = tasks.named
    monkeypatch.setattr(tasks, "named", lambda task, name: die_once(named(task, name), name))
    assert (described(frame, synthesizer()).matrix == undisturbed).all()
    assert sorted(os.listdir(tmp_path)) == ["add_slices", "digest_users", "sum_users"]


def test_the_ledger_charges_people_first_and_settles_when_the_folder_is_in_place(frame, tmp_path, monkeypatch):
    out, book = tmp_path / "description", tmp_path / "ledger.db"
    Ledger.create(book, epsilon=3.0, delta=1e-5)
    seen, settle = [], Ledger.settle

    def settle_and_check(ledger, release_id):
        seen.append((out.exists(), ledger.summary().pending))
        settle(ledger, release_id)

    monkeypatch.setattr(Ledger, "settle", settle_and_check)
    output = synthesizer(seed=None)
    plan = output.plan(POOL)
    result = described(frame, output, public=plan, out=out, ledger=book)
    assert seen == [(True, 1)]
    (release,) = Ledger(book).releases()
    assert (release.state, release.units) == ("released", len({row[1].strip() for row in ROWS}))
    assert release.release_id == result.statement.release_id
    assert (TextDistribution.load(out).matrix == result.matrix).all()
    for kind, model, folder, message in (
        (ParameterError, output, out, "already exists"),
        (RefusedError, output, tmp_path / "other", "would be overspent"),  # 2 of 3 are spent
        (ParameterError, synthesizer(), tmp_path / "other", "a seed voids the guarantee"),
    ):
        assert_error(kind, lambda m=model, f=folder: described(frame, m, public=plan, out=f, ledger=book), message)
    assert not (tmp_path / "other").exists()

    def fail(*_, **__):
        assert Ledger(book).summary().pending == 1
        raise DataError("the disk is full")

    Ledger.create(tmp_path / "second.db", epsilon=3.0, delta=1e-5)
    book = tmp_path / "second.db"
    monkeypatch.setattr(frames.PrivateFrame, "total", fail)
    broken = {"out": tmp_path / "other", "ledger": book}
    assert_error(DataError, lambda: described(frame, synthesizer(seed=None), **broken), "the disk is full")
    assert Ledger(book).summary().pending == 1 and not (tmp_path / "other").exists()


def test_the_command_line(spark, tmp_path, capsys, monkeypatch):
    """The same description as on one machine; refused is what Spark has no use for."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"text": f"{one} and {other}", "who": f"{one} {n}", "topic": "drinks" if one in WORDS[:3] else "rules"}
        for n in range(20) for one in WORDS for other in WORDS
    ]  # fmt: skip
    pa.parquet.write_table(pa.Table.from_pylist(rows), "in.parquet")
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "pool.txt").write_text("\n".join(f"{text} {n}" for text in POOL for n in range(3)))
    assert frames.PrivateFrame(spark.read.parquet(str(tmp_path / "in.parquet"))).first()[0] == rows[0]["text"]
    usual = ["--user", "who", "--label", "topic", "--labels", "drinks,rules", "--epsilon", "4", "--public", "pool.txt"]
    usual += ["--features", "words", "-n", "20", "--quiet"]
    result = []
    for name, engine in (("in.jsonl", "local"), ("in.parquet", "spark"), ("in.jsonl", "spark")):
        out = f"{engine}-{name}"
        values = [str(tmp_path / name), "-o", out, "--engine", engine, "--seed", "3"]
        assert main(["synthesize", *values, *usual]) == 0, capsys.readouterr().err
        matrix = TextDistribution.load(f"{out}.distribution").matrix
        result.append(matrix.tobytes())
        assert len(list(dptext.read_documents(out))) == 20
    assert result[0] == result[1] == result[2]
    Ledger.create("ledger.db", epsilon=5.0, delta=1e-5)
    on_spark = ["synthesize", str(tmp_path / "in.parquet"), "-o", "charged.jsonl", "--engine", "spark", *usual]
    wrong = ["taxes" if entry == "drinks,rules" else entry for entry in on_spark]
    assert main([*wrong, "--ledger", "ledger.db"]) == 2
    assert "no row of IN has one of the --labels" in capsys.readouterr().err
    assert not Ledger("ledger.db").releases()
    assert main([*on_spark, "--ledger", "ledger.db"]) == 0, capsys.readouterr().err
    assert [(release.state, release.units) for release in Ledger("ledger.db").releases()] == [("released", 120)]
    assert main([*on_spark, "--resume", "--force", "--ledger", "ledger.db"]) == 0  # of the same description
    assert len(Ledger("ledger.db").releases()) == 1
    capsys.readouterr()
    assert main([*on_spark, "--on-error", "skip", "--force"]) == 2
    assert "--on-error" in capsys.readouterr().err
    (tmp_path / "some.jsonl").write_text('{"text": "a", "who": "b", "topic": "rules"}\n{"text": "a", "who": null}\n')
    on_spark[1] = str(tmp_path / "some.jsonl")
    assert main([*on_spark, "--force"]) == 1
    assert "1 of 2 rows have no usable value in the column 'who'. Leave such rows out of" in capsys.readouterr().err
    on_spark[1] = on_spark[3] = str(tmp_path / "in.parquet")
    assert main([*on_spark, "--force"]) == 2
    assert "the same file as IN" in capsys.readouterr().err


def test_shares_add_up_as_on_one_machine(spark):
    plan = dptext.Synthesizer(
        epsilon=2.0, labels=LABELS["topic"], features=dptext.MeanOfWords(VECTORS), cache=False
    ).plan(POOL)
    users = [[dptext.Document(WORDS[user % 6], label="drinks" if user % 6 < 3 else "rules")] for user in range(30)]
    messages = [plan.contribution(documents).shares() for documents in users]
    for place in range(2):
        rows = [(bytearray(message[place]),) for message in (*messages, messages[0])]  # one arrives twice
        total, expected = frames.sum_shares(spark.createDataFrame(rows, "message binary"), plan), ShareSum(plan)
        for message in messages:
            expected.add(message[place])
        assert (total.ids, total.server) == (expected.ids, expected.server)
        assert total.part()["sum"] == expected.part()["sum"]
    mixed = spark.createDataFrame([(bytearray(message),) for message in messages[0]], "message binary")
    with pytest.raises(DataError, match="server"):
        frames.sum_shares(mixed, plan)
    foreign = dptext.Synthesizer(epsilon=2.0, labels=LABELS["topic"], features="static", cache=False).plan(POOL)
    with pytest.raises(DataError, match="share"):
        frames.sum_shares(mixed, foreign)
