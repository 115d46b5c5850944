"""Tests on Spark: every row once, one release after retries, and the statement of one machine."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import dptext
from dptext.cli import main
from dptext.errors import DataError, DptextError, MissingExtraError, ParameterError, RefusedError, StorageError
from dptext.io.artifacts import folder_digest
from dptext.ledger.ledger import Ledger
from dptext.privacy.statement import PrivacyStatement
from dptext.spark import frames
from dptext.spark.release import OutputFolder
from dptext.spark.session import plain_errors

pytestmark = [
    # pyspark's own, about the version of pandas, and sockets that it leaves to the garbage collector
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TEXTS = [f"the doctor of town {n % 7} said it is fine" for n in range(400)] + [None, "", "a@b.org"]


@pytest.fixture(scope="module")
def mechanism():
    return dptext.TEM(dptext.load_vectors("glove-6b-50d", limit=300), epsilon=3.0)


@pytest.fixture(scope="module")
def frame(spark):
    rows = [(text, n, n % 5) for n, text in enumerate(TEXTS)]
    return spark.createDataFrame([*rows, rows[0]], "text string, n int, stars int")  # the last one is there twice


@pytest.fixture(autouse=True)
def few_groups(monkeypatch):
    monkeypatch.setattr(frames, "GROUPS", 16)


def privatize(*args, **options):
    import dptext.spark.frames

    return dptext.spark.frames.privatize(*args, **{"partitions": 2, **options})  # each has a price, and two cores work


def collected(release):
    return sorted(map(tuple, release.df.collect()), key=repr)


def same_promise(statement, other):
    """But for the engine's name, and what names a release."""
    parameters_value = dict(statement.parameters)
    assert parameters_value.pop("engine") == "spark"
    plain = {"release_id": None, "data_sha256": None, "software": None}
    return statement.replace(**plain, parameters=parameters_value) == other.replace(**plain)


def test_shuffled_rows_and_other_partitions_are_the_same_release(frame, mechanism):
    from pyspark.sql import functions

    for ids in (["n", "copy"], None):
        values = frame.withColumn("copy", functions.expr("0")) if ids is None else numbered(frame)
        once = collected(privatize(values, mechanism, keep=["stars"], id=ids, seed=1))
        moved = values.repartition(5, functions.rand(3))
        assert collected(privatize(moved, mechanism, keep=["stars"], id=ids, seed=1, partitions=3)) == once
        assert len(once) == len(TEXTS) + 1


def numbered(frame):
    from pyspark.sql import Window, functions

    return frame.withColumn("copy", functions.row_number().over(Window.partitionBy("n").orderBy("n")))


def test_rows_that_agree_in_everything_get_noise_of_their_own(spark, mechanism):
    df = spark.createDataFrame([("doctor music town street",)] * 300, "text string")
    texts = [row.text for row in privatize(df, mechanism).df.collect()]
    assert len(texts) == 300
    assert len(set(texts)) > 200


def test_a_worker_that_dies_changes_nothing(frame, mechanism, tmp_path):
    release = privatize(frame, mechanism, keep=["stars"])
    undisturbed = collected(release)
    marker = str(tmp_path / "died")

    def die_once(batches):
        for batch in batches:
            yield batch
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    # in the same task as the noise, behind it: some of the rows were out when the worker died
    disturbed = release.df.mapInArrow(die_once, release.df.schema).collect()
    assert os.path.exists(marker)
    assert sorted(map(tuple, disturbed), key=repr) == undisturbed


def test_the_statement_is_that_of_one_machine_and_the_audit_passes(frame, mechanism, tmp_path, capsys):
    out = str(tmp_path / "private.parquet")
    release = privatize(frame, mechanism, keep=["stars"])
    written = release.write(out)
    one_machine = dptext.privatize(TEXTS, mechanism).statement
    assert same_promise(written, one_machine.replace(exposed=(*one_machine.exposed, "the column 'stars', unchanged")))
    assert written == PrivacyStatement.from_json((tmp_path / "private.parquet.privacy.json").read_text())
    assert written.data_sha256 == folder_digest(Path(out))
    assert (tmp_path / "private.parquet" / "_SUCCESS").exists()
    assert len(pa.parquet.read_table(out)) == len(TEXTS) + 1
    assert main(["audit", out, "--samples", "2000"]) == 0
    assert "its SHA-256 agrees" in capsys.readouterr().out
    with pytest.raises(ParameterError, match="exists already"):
        release.write(out)
    fresh = privatize(frame, mechanism, keep=["stars"])
    assert fresh.statement.parameters["words_counted"] == written.parameters["words_counted"]


def test_the_secret_is_in_no_event_log(frame, mechanism, event_log, spark):
    release = privatize(frame, mechanism, keep=["stars"], seed=77)
    release.df.count()
    from dptext.privacy.randomness import NoiseKey

    secret = NoiseKey(77).secret()
    logged = b"".join(path.read_bytes() for path in event_log.rglob("*") if path.is_file())
    assert b"privatize_rows" in logged  # the plan is there
    assert secret not in logged
    assert secret.hex().encode() not in logged


def test_metadata_of_columns_does_not_come_along(spark, mechanism, tmp_path):
    """pyspark.ml writes all values of a column into its metadata, including those of filtered rows."""
    from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

    metadata_value = {"ml_attr": {"vals": ["qsecretq"]}}
    inner = StructType([StructField("code", IntegerType(), metadata=metadata_value)])
    fields = [
        StructField("text", StringType(), metadata=metadata_value),
        StructField("label", IntegerType(), metadata=metadata_value),
    ]
    schema = StructType([*fields, StructField("labels", ArrayType(inner), metadata=metadata_value)])
    frame = spark.createDataFrame([("the doctor", 1, [(2,)])], schema)
    for keep in (["label", "labels"], []):
        release = privatize(frame, mechanism, keep=keep)
        assert "qsecretq" not in release.df.schema.json()
        out = tmp_path / f"out{len(keep)}"
        release.write(str(out))
        assert out.is_dir()
        assert not any(b"qsecretq" in path.read_bytes() for path in out.iterdir())
    frame.write.parquet(str(tmp_path / "original"))
    assert any(b"qsecretq" in path.read_bytes() for path in (tmp_path / "original").iterdir())


def test_a_type_that_somebody_defined_is_not_kept():
    types = pytest.importorskip("pyspark.sql.types")
    linalg = pytest.importorskip("pyspark.ml.linalg")
    field = types.StructField("x", types.ArrayType(linalg.VectorUDT()), metadata={"a": "qsecretq"})
    with pytest.raises(DataError, match="the kept column 'x' holds values of the type 'VectorUDT'"):
        frames._bare_field(field)


def test_the_command_line(spark, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"text": f"the doctor, {n}\nfine", "stars": n} for n in range(40)]
    pa.parquet.write_table(pa.Table.from_pylist(rows), "in.parquet")
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "in.csv").write_text("text,stars\n" + "".join(f'"{row["text"]}",{row["stars"]}\n' for row in rows))
    usual = ["--epsilon", "4", "--limit", "300", "--keep", "stars", "--engine", "spark", "--quiet"]
    for kind in ("parquet", "jsonl", "csv"):
        out = f"{kind}-out.parquet"
        assert (
            main(["privatize", str(tmp_path / f"in.{kind}"), "-o", str(tmp_path / out), "--seed", "3", *usual]) == 0
        ), capsys.readouterr().err
        table = pa.parquet.read_table(out)
        assert [str(entry) for entry in table["stars"].to_pylist()] == [str(n) for n in range(40)]
        assert all("\n" in text and "<number>" in text for text in table["text"].to_pylist())
        statement = PrivacyStatement.from_json((tmp_path / f"{out}.privacy.json").read_text())
        assert statement.parameters["engine"] == "spark"
        assert statement.parameters["words_counted"] == 3
    assert main(["audit", "parquet-out.parquet", "--samples", "2000", "--quiet"]) == 0
    capsys.readouterr()
    Ledger.create("ledger.db", epsilon=500.0)
    values = str(tmp_path / "in.parquet")
    charged = ["privatize", values, *usual, "--ledger", "ledger.db", "--user", "stars"]
    charged.remove("--quiet")
    assert main([*charged, "-o", str(tmp_path / "a.parquet")]) == 0
    message = " ".join(capsys.readouterr().err.split())
    assert "the guarantee is per text, and the losses of one 'stars'" in message
    assert "The 'stars' with the most texts has " in message
    assert [(release.state, release.units) for release in Ledger("ledger.db").releases()] == [("released", 40)]
    assert main(["privatize", values, "-o", str(tmp_path / "a.parquet"), *usual]) == 2
    assert "exists already" in capsys.readouterr().err
    for wrong in (["--resume"], ["--processes", "2"], ["--on-error", "skip"]):
        assert main(["privatize", values, "-o", "b.parquet", *usual, *wrong]) == 2
        assert wrong[0] in capsys.readouterr().err
    assert main(["privatize", values, "-o", "b.jsonl", *usual]) == 2
    assert main(["privatize", "nowhere.parquet", "-o", "b.parquet", *usual]) == 4
    assert "the cluster sees" in capsys.readouterr().err


def test_a_scan_that_is_none_is_refused_and_a_file_that_goes_is_named_by_its_remedy(spark, mechanism, tmp_path):
    import dptext.spark.frames

    path = tmp_path / "in.parquet"
    pa.parquet.write_table(pa.table({"text": ["a doctor"] * 5}), path)
    scan = spark.read.parquet(str(path))
    with pytest.raises(ParameterError, match="another order"):
        dptext.spark.frames.privatize(scan.repartition(3), mechanism, scan=True)
    release = dptext.spark.frames.privatize(scan, mechanism, scan=True)
    path.unlink()
    with pytest.raises(StorageError, match="does not find a file"):
        release.write(str(tmp_path / "out.parquet"))
    assert not (tmp_path / "out.parquet").exists()
    for use in (lambda: release.df, lambda: release.statement, lambda: release.write(str(tmp_path / "b.parquet"))):
        with pytest.raises(RefusedError, match="once"):
            use()


def test_what_is_replaced_stays_until_the_new_one_is_there(spark, frame, mechanism, tmp_path):
    out = str(tmp_path / "out.parquet")
    before = privatize(frame.limit(5), mechanism).write(out)
    with pytest.raises(DataError, match="same 'n'"):
        privatize(frame, mechanism, id="n").write(out, force=True)
    assert folder_digest(Path(out)) == before.data_sha256
    after = privatize(frame.limit(6), mechanism).write(out, force=True)
    assert folder_digest(Path(out)) == after.data_sha256 != before.data_sha256
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(".crc")) == [
        "out.parquet",
        "out.parquet.privacy.json",
    ]


def test_what_does_not_fit_is_said_in_one_line(spark, frame, mechanism):
    for options, remedy in (
        ({"text": "n"}, "cast"),
        ({"text": "nothing"}, "expected one column"),
        ({"keep": ["text"]}, "holds the text"),
        ({"keep": "stars"}, "list"),
        ({"id": "text"}, "leave id out"),
        ({"partitions": 0}, "at least 1"),
    ):
        with pytest.raises(ParameterError, match=remedy) as caught:
            privatize(frame, mechanism, **options)
        assert "\n" not in str(caught.value)
    with pytest.raises(ParameterError, match="DataFrame of pyspark"):
        privatize(TEXTS, mechanism)


def test_private_vectors(spark, frame, glove, tmp_path, capsys):
    import dptext.spark.frames
    from dptext.representations.bounds import Bound
    from dptext.representations.device import DeviceEncoder
    from dptext.representations.encoders import MeanOfWords
    from dptext.representations.privunit import PrivUnit

    words = dptext.load_vectors(glove, limit=300)
    device = DeviceEncoder(MeanOfWords(words), Bound(mean=words.matrix.mean(axis=0)), PrivUnit(epsilon=4.0))
    out = str(tmp_path / "vectors.parquet")
    release = dptext.spark.frames.encode(frame, device, keep=["stars"], seed=2, partitions=2)
    statement = release.write(out)
    assert same_promise(statement, device.statement.replace(seeded=True, exposed=statement.exposed))
    vectors = np.array(pa.parquet.read_table(out)["vector"].to_pylist())
    assert vectors.shape == (len(TEXTS) + 1, device.width)
    assert len(np.unique(vectors, axis=0)) == len(vectors)
    assert main(["audit", out, "--samples", "2000"]) == 0
    assert "404 vectors, 0 of them otherwise" in capsys.readouterr().out
    repeated = dptext.spark.frames.encode(
        frame.repartition(4), device, keep=["stars"], seed=2, partitions=1
    ).df.collect()
    assert sorted(map(str, (row.vector for row in repeated))) == sorted(
        map(str, (row.vector for row in spark.read.parquet(out).collect()))
    )


def test_texts_of_a_bank(spark, frame, glove, tmp_path, capsys):
    """Vectors are sent once, as a file; the release and its statement equal those of one machine."""
    from pyspark import SparkFiles

    words = dptext.load_vectors(glove, limit=300)
    public = [f"{one} {other}" for one in words.words[:60] for other in words.words[:60]]
    dptext.TextBank(public, encoder=dptext.MeanOfWords(words), cache=False).save(tmp_path / "bank")
    bank = dptext.TextBank.load(tmp_path / "bank")
    rewriter = dptext.BankRewriter(bank, epsilon=3.0, max_sentences=2)
    sent = Path(SparkFiles.getRootDirectory()).parent
    before = {*sent.glob("*.tables")}
    release = privatize(numbered(frame), rewriter, keep=["stars"], id=["n", "copy"], seed=4)
    [tables] = {*sent.glob("*.tables")} - before
    assert tables.stat().st_size < 1.2 * (bank.vectors.nbytes + sum(map(len, public)) + 9 * len(bank)) + 200_000
    once = collected(release)
    repeated = privatize(
        numbered(frame).repartition(4), rewriter, keep=["stars"], id=["n", "copy"], seed=4, partitions=3
    )
    assert collected(repeated) == once
    assert {*sent.glob("*.tables")} - before == {tables}
    assert len(once) == len(TEXTS) + 1
    assert all(text is None or text == "" or text in bank.texts for text, _ in once)
    fresh = privatize(frame, rewriter, keep=["stars"])
    Ledger.create(tmp_path / "book", epsilon=100.0)
    written = fresh.write(str(tmp_path / "out.parquet"), ledger=str(tmp_path / "book"), user="n")
    assert Ledger(tmp_path / "book").left("3").spent == 6.0  # of two sentences, which it may have
    one_machine = dptext.privatize(TEXTS, rewriter).statement
    assert same_promise(written, one_machine.replace(exposed=(*one_machine.exposed, "the column 'stars', unchanged")))
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:40]))
    values = [str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "texts.parquet"), "--engine", "spark", "--epsilon", "3"]
    assert main(["privatize", *values, "--mechanism", "bank", "--bank", str(tmp_path / "bank")]) == 0
    assert "on the bank 'a public pool' (3,600 public texts)" in capsys.readouterr().err
    assert set(pa.parquet.read_table(tmp_path / "texts.parquet")["text"].to_pylist()) <= {*public}


def test_shared_vectors_are_those_of_one_machine_to_the_last_bit(spark, glove):
    import dptext.spark.frames

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
        many = dptext.spark.frames.fit(
            dptext.Cooccurrence(vectors, unit=unit, **settings), frame, user="who", partitions=2
        )
        assert (one.release_ == many.release_).all()
        assert (one.vectors_.matrix == many.vectors_.matrix).all()
        assert one.statement_.replace(release_id=None) == many.statement_.replace(release_id=None)
    model = dptext.Cooccurrence(vectors, epsilon=8.0, delta=1e-6)
    with pytest.raises(DataError, match="has no user"):
        dptext.spark.frames.fit(model, frame.selectExpr("text", "' ' as who"), user="who")
    with pytest.raises(DataError, match="no documents"):
        dptext.spark.frames.fit(model, frame.filter("1 = 0"), user="who")


def test_the_texts_of_a_person_are_counted_where_the_rows_are(spark, mechanism, tmp_path):
    names = ["ann"] * 5 + ["bob", None, "", " ann ", "7.0", " 7", "7"]
    rows = [("the doctor", name) for name in names] + [(None, "ann")]
    frame = spark.createDataFrame(rows, "text string, who string")
    release = privatize(frame, mechanism)
    assert release.most_texts is None
    with pytest.raises(ParameterError, match="expected a column 'person'"):
        release.write(str(tmp_path / "out.parquet"), user="person")
    statement = release.write(str(tmp_path / "out.parquet"), user="who")
    assert release.most_texts == (6, 2)
    assert "who" not in statement.to_json()
    accents = spark.createDataFrame([("the doctor", "José"), ("the doctor", "Jose\u0301")], "text string, who string")
    release = privatize(accents, mechanism)
    release.write(str(tmp_path / "accents.parquet"), user="who")
    assert release.most_texts == (2, 0)
    numbers = spark.createDataFrame(
        [("the doctor", entry) for entry in (1.0, 7.0, 7.0, None)], "text string, who double"
    )
    release = privatize(numbers, mechanism)
    release.write(str(tmp_path / "numbers.parquet"), user="who")
    assert release.most_texts == (2, 1)


def test_a_ledger_that_refuses_leaves_nothing(spark, frame, mechanism, tmp_path):
    Ledger.create(tmp_path / "ledger.db", epsilon=1.0)
    release = privatize(frame, mechanism)
    with pytest.raises(RefusedError):
        release.write(str(tmp_path / "out.parquet"), ledger=str(tmp_path / "ledger.db"), user="n")
    assert not (tmp_path / "out.parquet").exists()


def test_the_ledger_settles_once_the_folder_and_its_statement_stand(frame, mechanism, tmp_path, monkeypatch):
    out, book = tmp_path / "out.parquet", tmp_path / "ledger.db"
    Ledger.create(book, epsilon=1e6)
    seen, settle = [], Ledger.settle

    def watched(ledger, release_id):
        seen.append(
            [(out / "_SUCCESS").exists(), (tmp_path / "out.parquet.privacy.json").exists(), ledger.summary().pending]
        )
        settle(ledger, release_id)

    charged = {"ledger": str(book), "user": "n"}
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "settle", watched)
        privatize(frame, mechanism).write(str(out), **charged)
    assert seen == [[True, True, 1]]
    with monkeypatch.context() as full:
        full.setattr(OutputFolder, "publish", no_more)
        full.setattr(Ledger, "void", no_more)
        with pytest.raises(StorageError, match="no space left") as caught:
            privatize(frame, mechanism).write(str(tmp_path / "b.parquet"), **charged)
    released, pending = Ledger(book).releases()
    assert (released.state, pending.state, (tmp_path / "b.parquet").exists()) == ("released", "pending", False)
    assert caught.value.__notes__[0].endswith(f"dptext ledger void {book} {pending.release_id}")


def no_more(*_, **__):
    raise StorageError("no space left")


def test_no_java_and_no_pyspark_are_answered_with_what_installs_them(monkeypatch, mechanism):
    script = "from dptext.spark.session import session; session()"
    env = {**os.environ, "JAVA_HOME": "/nonexistent"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)
    assert "MissingExtraError: Java did not start" in done.stderr
    assert "apt install openjdk" in done.stderr
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r"dptext\[spark\]"):
        privatize(TEXTS, mechanism)


def test_engine_errors_become_one_line_without_rows():
    class ToldError(Exception):
        __module__ = "pyspark.errors"

    for text, kind in (
        ("ModuleNotFoundError: No module named 'dptext'", MissingExtraError),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited", MissingExtraError),
        ("[PATH_NOT_FOUND] Path does not exist: file:/secret", StorageError),
        ("[SOMETHING_ELSE.OF] the row 'secret' ...", StorageError),
    ):
        with pytest.raises(kind) as caught, plain_errors():
            raise ToldError(text)
        assert isinstance(caught.value, DptextError)
        assert "\n" not in str(caught.value)
        assert "secret" not in str(caught.value)
