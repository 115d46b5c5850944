"""Private rows on Spark: every row once, one release after retries, and the statement of one machine."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import dptext
from dptext.cli import main
from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.io.artifacts import folder_digest
from dptext.ledger.ledger import Ledger
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import PrivacyStatement
from dptext.representations.bounds import Bound
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import MeanOfWords
from dptext.representations.privunit import PrivUnit
from dptext.spark import frames
from secrecy import MARKER, assert_error

TEXTS = [f"the doctor of town {n % 7} said it is fine" for n in range(400)] + [None, "", "a@b.org"]


@pytest.fixture(scope="module")
def frame(spark):
    rows = [(text, n, n % 5) for n, text in enumerate(TEXTS)]
    return spark.createDataFrame([*rows, rows[0]], "text string, n int, stars int")  # the last one is there twice


@pytest.fixture(autouse=True)
def few_groups(monkeypatch):
    monkeypatch.setattr(frames, "GROUPS", 16)


@pytest.fixture(scope="module")
def device(glove):
    words = dptext.load_vectors(glove, limit=300)
    return DeviceEncoder(MeanOfWords(words), Bound(mean=words.matrix.mean(axis=0)), PrivUnit(epsilon=4.0))


def privatize(*args, **options):
    return frames.privatize(*args, **{"partitions": 2, **options})  # each has a price, and two cores work


def rows_of(rows):
    return sorted(map(tuple, rows), key=repr)


def same_statement(statement, other):
    """Compare two statements without the engine's name and the names of the release."""
    parameters = dict(statement.parameters)
    assert parameters.pop("engine") == "spark"
    plain = {"release_id": None, "data_sha256": None, "software": None}
    return statement.replace(**plain, parameters=parameters) == other.replace(**plain)


def test_shuffled_rows_other_partitions_and_dying_workers_give_the_same_release(spark, frame, mechanism, die_once):
    from pyspark.sql import functions

    options = {"keep": ["stars"], "seed": 1}
    release = privatize(frame, mechanism, **options)
    once = rows_of(release.df.collect())
    assert len(once) == len(TEXTS) + 1
    moved = frame.repartition(5, functions.rand(3))
    assert rows_of(privatize(moved, mechanism, **options, partitions=3).df.collect()) == once
    # in the same task as the noise, after it: some rows were out when the worker died
    disturbed = release.df.mapInArrow(die_once(lambda batches: batches), release.df.schema).collect()
    assert rows_of(disturbed) == once
    equal = spark.createDataFrame([("doctor music town street",)] * 300, "text string")
    texts = [row.text for row in privatize(equal, mechanism).df.collect()]
    assert len(texts) == 300 and len(set(texts)) > 200, "equal rows have noise of their own"


def test_the_statement_is_that_of_one_machine_and_the_audit_passes(frame, mechanism, tmp_path, capsys):
    out = str(tmp_path / "private.parquet")
    release = privatize(frame, mechanism, keep=["stars"])
    written = release.write(out)
    one_machine = dptext.privatize(TEXTS, mechanism).statement
    assert same_statement(written, one_machine.replace(exposed=(*one_machine.exposed, "the column 'stars', unchanged")))
    assert written == PrivacyStatement.from_json((tmp_path / "private.parquet.privacy.json").read_text())
    assert written.data_sha256 == folder_digest(Path(out))
    assert (tmp_path / "private.parquet" / "_SUCCESS").exists()
    assert len(pa.parquet.read_table(out)) == len(TEXTS) + 1
    assert main(["audit", out, "--samples", "2000"]) == 0
    assert "its SHA-256 agrees" in capsys.readouterr().out
    assert_error(ParameterError, lambda: release.write(out), "already exists")
    fresh = privatize(frame, mechanism, keep=["stars"])
    assert fresh.statement.parameters["words_counted"] == written.parameters["words_counted"]
    after = privatize(frame.limit(6), mechanism).write(out, force=True)
    assert folder_digest(Path(out)) == after.data_sha256 != written.data_sha256
    names = sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(".crc"))
    assert names == ["private.parquet", "private.parquet.privacy.json"]


def test_neither_the_secret_nor_metadata_of_columns_gets_out(spark, frame, mechanism, event_log, tmp_path):
    """pyspark.ml writes all values of a column into its metadata, including those of filtered rows."""
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

    privatize(frame, mechanism, keep=["stars"], seed=77).df.count()
    secret = NoiseKey(77).secret()
    logged = b"".join(path.read_bytes() for path in event_log.rglob("*") if path.is_file())
    assert b"privatize_rows" in logged  # the plan is there
    assert secret not in logged and secret.hex().encode() not in logged
    metadata = {"ml_attr": {"vals": [MARKER]}}
    inner = StructType([StructField("code", IntegerType(), metadata=metadata)])
    kinds = {"text": StringType(), "label": IntegerType(), "labels": ArrayType(inner)}
    schema = StructType([StructField(name, kind, metadata=metadata) for name, kind in kinds.items()])
    marked = spark.createDataFrame([("the doctor", 1, [(2,)])], schema)
    marked.write.parquet(str(tmp_path / "original"))
    assert any(MARKER.encode() in path.read_bytes() for path in (tmp_path / "original").iterdir())
    for keep in (["label", "labels"], []):
        release = privatize(marked, mechanism, keep=keep)
        assert MARKER not in release.df.schema.json()
        out = tmp_path / f"out{len(keep)}"
        release.write(str(out))
        assert not any(MARKER.encode() in path.read_bytes() for path in out.iterdir())
    field = StructField("x", ArrayType(VectorUDT()), metadata={"a": MARKER})
    assert_error(DataError, lambda: frames._bare_field(field), "the kept column 'x' has values of type 'VectorUDT")


def test_the_command_line(spark, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"text": f"the doctor, {n}\nfine", "stars": n} for n in range(40)]
    pa.parquet.write_table(pa.Table.from_pylist(rows), "in.parquet")
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("some.jsonl").write_text('{"text": "a", "stars": 1, "who": "b"}\n' + 2 * '{"text": "a", "who": " "}\n')
    Path("in.csv").write_text("text,stars\n" + "".join(f'"{row["text"]}",{row["stars"]}\n' for row in rows))
    usual = ["--epsilon", "4", "--limit", "300", "--keep", "stars", "--engine", "spark", "--quiet"]

    def run(source, out, *more, options=usual):
        code = main(["privatize", str(tmp_path / source), "-o", str(tmp_path / out), *options, *more])
        return code, " ".join(capsys.readouterr().err.split())

    for kind in ("parquet", "jsonl", "csv"):
        assert run(f"in.{kind}", f"{kind}-out.parquet", "--seed", "3") == (0, "")
        table = pa.parquet.read_table(f"{kind}-out.parquet")
        assert [str(entry) for entry in table["stars"].to_pylist()] == [str(n) for n in range(40)]
        assert all("\n" in text and "<number>" in text for text in table["text"].to_pylist())
        statement = PrivacyStatement.from_json(Path(f"{kind}-out.parquet.privacy.json").read_text())
        assert (statement.parameters["engine"], statement.parameters["words_counted"]) == ("spark", 3)
    Ledger.create("ledger.db", epsilon=500.0)
    code, message = run("in.parquet", "a.parquet", "--ledger", "ledger.db", "--user", "stars", options=usual[:-1])
    assert code == 0
    assert "the guarantee is per text, and the losses of one 'stars'" in message
    assert "The 'stars' with the most texts has " in message
    assert [(release.state, release.units) for release in Ledger("ledger.db").releases()] == [("released", 40)]
    for source, out, more, code, part in (
        ("in.parquet", "a.parquet", [], 2, "already exists"),
        ("in.parquet", "b.parquet", ["--resume"], 2, "--resume"),
        ("in.parquet", "b.parquet", ["--processes", "2"], 2, "--processes"),
        ("in.parquet", "b.parquet", ["--on-error", "skip"], 2, "--on-error"),
        ("in.parquet", "b.jsonl", [], 2, ""),
        ("some.jsonl", "b.parquet", ["--user", "who"], 1, "2 of 3 rows have no usable value in the column 'who'"),
        ("nowhere.parquet", "b.parquet", [], 4, "the cluster sees"),
    ):
        result = run(source, out, *more)
        assert result[0] == code and part in result[1]


def test_a_scan_is_written_once_and_used_in_no_other_way(spark, mechanism, tmp_path):
    path = tmp_path / "in.parquet"
    pa.parquet.write_table(pa.table({"text": ["a doctor"] * 5}), path)
    scan = spark.read.parquet(str(path))
    shuffled = scan.repartition(3)
    assert_error(
        ParameterError, lambda: frames.privatize(shuffled, mechanism, scan=True), "this DataFrame is not a plain scan:"
    )
    release = frames.privatize(scan, mechanism, scan=True)
    path.unlink()
    assert_error(StorageError, lambda: release.write(str(tmp_path / "out.parquet")), "does not find a file")
    assert not (tmp_path / "out.parquet").exists()
    for use in (lambda: release.df, lambda: release.statement, lambda: release.write(str(tmp_path / "b.parquet"))):
        assert_error(RefusedError, use, "once")


def test_private_vectors_are_those_of_one_release(spark, frame, device, tmp_path, capsys):
    out = str(tmp_path / "vectors.parquet")
    statement = frames.encode(frame, device, keep=["stars"], seed=2, partitions=2).write(out)
    assert same_statement(statement, device.statement.replace(seeded=True, exposed=statement.exposed))
    vectors = np.array(pa.parquet.read_table(out)["vector"].to_pylist())
    assert vectors.shape == (len(TEXTS) + 1, device.width)
    assert len(np.unique(vectors, axis=0)) == len(vectors)
    assert main(["audit", out, "--samples", "2000"]) == 0
    assert "404 vectors, 0 of them do not" in capsys.readouterr().out
    repeated = frames.encode(frame.repartition(4), device, keep=["stars"], seed=2, partitions=1).df.collect()
    assert rows_of([(str(row.vector),) for row in repeated]) == rows_of(
        [(str(row.vector),) for row in spark.read.parquet(out).collect()]
    )


def test_a_bank_is_sent_once_and_gives_the_release_of_one_machine(spark, frame, glove, tmp_path, capsys):
    from pyspark import SparkFiles

    words = dptext.load_vectors(glove, limit=300)
    public = [f"{one} {other}" for one in words.words[:60] for other in words.words[:60]]
    dptext.TextBank(public, encoder=dptext.MeanOfWords(words), cache=False).save(tmp_path / "bank")
    bank = dptext.TextBank.load(tmp_path / "bank")
    rewriter = dptext.BankRewriter(bank, epsilon=3.0, max_sentences=2)
    sent = Path(SparkFiles.getRootDirectory()).parent
    before = {*sent.glob("*.tables")}
    options = {"keep": ["stars"], "seed": 4}
    once = rows_of(privatize(frame, rewriter, **options).df.collect())
    [tables] = {*sent.glob("*.tables")} - before
    assert tables.stat().st_size < 1.2 * (bank.vectors.nbytes + sum(map(len, public)) + 9 * len(bank)) + 200_000
    repeated = privatize(frame.repartition(4), rewriter, **options, partitions=3)
    assert rows_of(repeated.df.collect()) == once and {*sent.glob("*.tables")} - before == {tables}
    assert len(once) == len(TEXTS) + 1
    assert all(text is None or text == "" or text in bank.texts for text, _ in once)
    Ledger.create(tmp_path / "book", epsilon=100.0)
    fresh = privatize(frame, rewriter, keep=["stars"])
    written = fresh.write(str(tmp_path / "out.parquet"), ledger=str(tmp_path / "book"), user="n")
    assert Ledger(tmp_path / "book").left("3").spent == 6.0  # of two sentences, which it may have
    one_machine = dptext.privatize(TEXTS, rewriter).statement
    assert same_statement(written, one_machine.replace(exposed=(*one_machine.exposed, "the column 'stars', unchanged")))
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:40]))
    values = [str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "texts.parquet"), "--engine", "spark", "--epsilon", "3"]
    assert main(["privatize", *values, "--mechanism", "bank", "--bank", str(tmp_path / "bank")]) == 0
    assert "on the bank 'a public pool' (3,600 public texts)" in capsys.readouterr().err
    assert set(pa.parquet.read_table(tmp_path / "texts.parquet")["text"].to_pylist()) <= {*public}


def test_shared_vectors_are_those_of_one_machine_to_the_last_bit(spark, glove):
    rng = np.random.default_rng(5)
    vectors = dptext.load_vectors(glove, limit=600)
    words = list(vectors.words[:-1])
    rows = [
        (" ".join(rng.choice(words, 12)), f" {n % 23}" if n % 2 else str(n % 23), ["a", "b"][n % 2]) for n in range(300)
    ]
    rows += [(None, "24", "a"), ("", "25", None)]
    documents = [dptext.Document(text, user=user, attributes={"level": level}) for text, user, level in rows]
    settings = {"epsilon": {"a": 1.0, "b": 4.0}, "delta": 1e-6, "level": "level", "seed": 9}
    frame = spark.createDataFrame(rows, "text string, who string, level string").repartition(4)
    for unit in ("user", "document"):
        one = dptext.Cooccurrence(vectors, unit=unit, **settings).fit(documents)
        many = frames.fit(dptext.Cooccurrence(vectors, unit=unit, **settings), frame, user="who", partitions=2)
        assert (one.release_ == many.release_).all()
        assert (one.vectors_.matrix == many.vectors_.matrix).all()
        assert one.statement_.replace(release_id=None) == many.statement_.replace(release_id=None)
    model = dptext.Cooccurrence(vectors, epsilon=8.0, delta=1e-6)
    blank = frame.selectExpr("text", "' ' as who")
    assert_error(DataError, lambda: frames.fit(model, blank, user="who"), "has no user")
    assert_error(DataError, lambda: frames.fit(model, frame.filter("1 = 0"), user="who"), "no documents")


def test_texts_per_person_are_counted_where_the_rows_are(spark, mechanism, tmp_path):
    names = ["ann"] * 5 + ["bob", None, "", " ann ", "7.0", " 7", "7"]
    for kind, rows, expected in (
        ("string", [*(("the doctor", name) for name in names), (None, "ann")], (6, 2)),
        ("string", [("the doctor", "José"), ("the doctor", "Jose\u0301")], (2, 0)),
        ("double", [("the doctor", entry) for entry in (1.0, 7.0, 7.0, None)], (2, 1)),
    ):
        release = privatize(spark.createDataFrame(rows, f"text string, who {kind}"), mechanism)
        assert release.most_texts is None
        out = str(tmp_path / f"{kind}{len(rows)}.parquet")
        assert_error(ParameterError, lambda: release.write(out, user="person"), "expected a column 'person'")  # noqa: B023
        assert "who" not in release.write(out, user="who").to_json()
        assert release.most_texts == expected
