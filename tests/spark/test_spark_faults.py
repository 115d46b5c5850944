"""Tests of runs on Spark that are stopped, killed or fail: their files and messages."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import dptext
from dptext.errors import DataError, DptextError, ParameterError, RefusedError, StorageError
from dptext.io.artifacts import folder_digest
from dptext.io.documents import read_documents
from dptext.ledger.ledger import Ledger
from dptext.spark.release import OutputFolder, SparkRelease
from dptext.spark.session import plain_errors

pytestmark = [
    # pyspark's own, about the version of pandas, and sockets that it leaves to the garbage collector
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _hears_interrupts():
    """A shell's background job ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def mechanism():
    return dptext.TEM(dptext.load_vectors("glove-6b-50d", limit=300), epsilon=3.0)


@pytest.fixture(scope="module")
def promise(mechanism):
    return dptext.privatize(["a"], mechanism).statement.replace(data_sha256=None)


def release_of(frame, promise, text="text"):
    """Release the rows of a frame; the engine stops it, independent of the rows."""
    promise = promise.replace(release_id=f"r{time.monotonic_ns()}")
    return SparkRelease(
        source=frame,
        text=text,
        rows=frame,
        statement_of=lambda _: promise,
        statement_before=lambda: promise,
        release_id=promise.release_id,
        counts=(),
    )


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# -- stopped -------------------------------------------------------------------------------------------------------


def test_an_interrupt_leaves_nothing_even_of_tasks_that_still_write(spark, promise, tmp_path):
    marks, place = tmp_path / "marks", tmp_path / "place"
    place.mkdir()
    marks.mkdir()

    def slow(batches):
        for batch in batches:
            (marks / str(time.monotonic_ns())).touch()
            time.sleep(0.3)
            yield batch

    frame = spark.range(0, 40, numPartitions=20).selectExpr("cast(id as string) text")
    frame = frame.mapInArrow(slow, frame.schema)
    Ledger.create(tmp_path / "ledger.db", epsilon=1e6)

    def interrupt_when(is_time):
        while not is_time():
            time.sleep(0.001)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def job_is_set_up():
        return any(place.rglob("_temporary"))

    def tasks_have_begun(count):
        return lambda: len(names(marks)) >= count

    def a_task_is_committed():
        return any(place.rglob("task_*"))

    active = spark.sparkContext.statusTracker().getActiveJobsIds
    for moment in (job_is_set_up, tasks_have_begun(1), a_task_is_committed):
        for mark in marks.iterdir():
            mark.unlink()
        threading.Thread(target=interrupt_when, args=(moment,), daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            release_of(frame, promise).write(str(place / "out.parquet"), ledger=str(tmp_path / "ledger.db"))
        assert not active(), "a job goes on"
        assert names(place) == []
    assert {release.state for release in Ledger(tmp_path / "ledger.db").releases()} <= {"pending"}
    count = len(names(marks))
    time.sleep(1)
    assert names(place) == []
    assert len(names(marks)) == count, "tasks went on"


def test_an_interrupt_between_statement_and_rows_waits_for_both(spark, promise, tmp_path, monkeypatch):
    original = OutputFolder._check_free

    def interrupted(self):
        original(self)
        if any(tmp_path.rglob("privacy.json")):  # of the work: the next step puts it in place
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(0.3)

    monkeypatch.setattr(OutputFolder, "_check_free", interrupted)
    frame = spark.createDataFrame([("a",)], "text string")
    Ledger.create(tmp_path / "ledger.db", epsilon=1e6)
    out = tmp_path / "out.parquet"
    with pytest.raises(KeyboardInterrupt) as caught:
        release_of(frame, promise).write(str(out), ledger=str(tmp_path / "ledger.db"))
    assert "in place, and complete" in " ".join(caught.value.__notes__)
    assert names(tmp_path) == ["ledger.db", "out.parquet", "out.parquet.privacy.json"]
    assert [release.state for release in Ledger(tmp_path / "ledger.db").releases()] == ["released"]


# -- a step that fails -------------------------------------------------------------------------------------------------


class Failing:
    """A file system whose rename fails once, after so many."""

    def __init__(self, system, good):
        self._system, self._good = system, good

    def __getattr__(self, name):
        return getattr(self._system, name)

    def rename(self, source, target):
        self._good -= 1
        return self._good != -1 and self._system.rename(source, target)


def run_folder(spark, out, statement, content, *, good=10**6, force=False):
    """Publish without the engine."""
    with OutputFolder(spark, str(out), force=force) as folder:
        folder.begin(spark.range(1))
        (Path(folder.rows) / "part-0.parquet").write_text(content)
        text = statement.replace(data_sha256=folder.digest())
        folder._system = Failing(folder._system, good)
        folder.publish(text)


@pytest.mark.parametrize("replaces", [False, True])
def test_a_step_that_fails_leaves_what_was_there(spark, promise, tmp_path, replaces):
    out, statement_file = tmp_path / "out", tmp_path / "out.privacy.json"
    if replaces:
        run_folder(spark, out, promise.replace(release_id="old"), "old")
    for good in range(4 if replaces else 2):
        with pytest.raises(StorageError, match="does not rename"):
            run_folder(spark, out, promise.replace(release_id="new"), "new", good=good, force=replaces)
        assert names(tmp_path) == (["out", "out.privacy.json"] if replaces else [])
        if replaces:
            assert (out / "part-0.parquet").read_text() == "old"
            assert json.loads(statement_file.read_text())["data_sha256"] == folder_digest(out)
    run_folder(spark, out, promise.replace(release_id="new"), "new", force=replaces)
    assert (out / "part-0.parquet").read_text() == "new"
    assert json.loads(statement_file.read_text())["data_sha256"] == folder_digest(out)


def test_what_a_killed_run_reserved_stays_charged_and_its_work_is_its_owners_alone(spark, promise, tmp_path):
    ledger, out = tmp_path / "ledger.db", tmp_path / "out.parquet"
    Ledger.create(ledger, epsilon=1e6)
    Ledger(ledger).reserve("killed", promise, ["a"], by="text")
    with OutputFolder(spark, str(out)) as folder:
        folder.begin(spark.range(1))
        (work,) = (path for path in tmp_path.iterdir() if path.is_dir())
        assert stat.S_IMODE(work.stat().st_mode) & 0o077 == 0
    release_of(spark.createDataFrame([("a",)], "text string"), promise).write(str(out), ledger=str(ledger))
    assert [release.state for release in Ledger(ledger).releases()] == ["pending", "released"]


# -- failing -------------------------------------------------------------------------------------------------------


def test_a_failure_leaves_no_files_and_a_pending_charge(spark, promise, tmp_path):
    ledger = tmp_path / "ledger.db"
    Ledger.create(ledger, epsilon=1e6)
    frame = spark.createDataFrame([("a",), ("b",)], "text string")

    def fail(batches):
        yield from batches
        raise dptext.errors.DataError("no")

    out = str(tmp_path / "out.parquet")
    with pytest.raises(DataError, match="no"):
        release_of(frame.mapInArrow(fail, frame.schema), promise).write(out)
    gone = release_of(frame, promise)
    gone.statement_of = lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError) as caught:
        gone.write(out, ledger=str(ledger))
    assert names(tmp_path) == ["ledger.db"]
    assert [release.state for release in Ledger(ledger).releases()] == ["pending"]
    assert "dptext ledger void" in " ".join(caught.value.__notes__)


def test_the_ledger_is_settled_when_the_output_stands(spark, promise, tmp_path, monkeypatch):
    ledger, out = tmp_path / "ledger.db", tmp_path / "out.parquet"
    Ledger.create(ledger, epsilon=1e6)
    frame = spark.createDataFrame([("a",)], "text string")

    def full(_self, _release):
        raise StorageError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "settle", full)
        with pytest.raises(StorageError, match="the disk is full") as caught:
            release_of(frame, promise).write(str(out), ledger=str(ledger))
    assert "in place, and complete" in " ".join(caught.value.__notes__)
    assert out.exists()
    assert [release.state for release in Ledger(ledger).releases()] == ["pending"]
    release_of(frame, promise).write(str(out), ledger=str(ledger), force=True)
    assert [release.state for release in Ledger(ledger).releases()] == ["pending", "released"]


def test_vectors_of_missing_texts_are_charged_as_those_of_the_empty_one(spark, glove, tmp_path):
    import dptext.spark.frames
    from dptext.representations.bounds import Bound
    from dptext.representations.device import DeviceEncoder
    from dptext.representations.encoders import MeanOfWords
    from dptext.representations.privunit import PrivUnit

    words = dptext.load_vectors(glove, limit=300)
    device = DeviceEncoder(MeanOfWords(words), Bound(mean=words.matrix.mean(axis=0)), PrivUnit(epsilon=4.0))
    (tmp_path / "in.jsonl").write_text('{"text": null}\n{"text": "a"}\n')
    Ledger.create(tmp_path / "ledger.db", epsilon=5.0)
    from dptext.spark.frames import read_files

    release = dptext.spark.frames.encode(read_files([str(tmp_path / "in.jsonl")]), device, scan=True)
    release.write(str(tmp_path / "out.parquet"), ledger=str(tmp_path / "ledger.db"))
    assert Ledger(tmp_path / "ledger.db").left("").spent == 4.0


def test_rows_that_change_after_they_were_charged_are_not_released(spark, promise, tmp_path):
    source = tmp_path / "in.parquet"
    frame = spark.createDataFrame([("a",), ("b",)], "text string")
    Ledger.create(tmp_path / "ledger.db", epsilon=1e6)
    for now in ("b", "c"):
        frame.write.mode("overwrite").parquet(str(source))
        release = release_of(spark.read.parquet(str(source)), promise)
        part = next(source.glob("part-00001*")) if len(list(source.glob("part-*"))) > 1 else next(source.glob("part-*"))
        original = release._compute

        def changed(path, original=original, part=part, now=now):
            counts = original(path)
            pa.parquet.write_table(pa.table({"text": [now]}), part)
            part.with_name(f".{part.name}.crc").unlink(missing_ok=True)
            return counts

        release._compute = changed
        out = tmp_path / f"{now}.parquet"
        if now == "b":
            release.write(str(out), ledger=str(tmp_path / "ledger.db"))
        else:
            with pytest.raises(RefusedError, match="the input changed"):
                release.write(str(out), ledger=str(tmp_path / "ledger.db"))
            assert not out.exists()
    assert [entry.state for entry in Ledger(tmp_path / "ledger.db").releases()] == ["released", "pending"]


def test_nothing_but_a_release_is_replaced(spark, promise, tmp_path):
    frame = spark.createDataFrame([("a",)], "text string")
    frame.write.parquet(str(tmp_path / "in put.parquet"))
    (tmp_path / "link.parquet").symlink_to(tmp_path / "in put.parquet")
    (tmp_path / "file.parquet").write_text("a ledger")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.pdf").touch()
    before = sorted(tmp_path.rglob("*"))
    scan = spark.read.parquet(str(tmp_path / "in put.parquet"))
    for source, out, remedy in (
        (scan, "in put.parquet", "same folder as IN"),
        (scan, "link.parquet", "same folder as IN"),
        (frame, "file.parquet", "is a file"),
        (frame, "home", "other files"),
    ):
        with pytest.raises(ParameterError, match=remedy):
            release_of(source, promise).write(str(tmp_path / out), force=True)
    assert sorted(tmp_path.rglob("*")) == before


# -- said ----------------------------------------------------------------------------------------------------------


def test_a_place_that_cannot_be_written_to_is_named_before_any_row_is_read(spark, promise, tmp_path):
    (tmp_path / "file").touch()

    def read(batches):
        raise AssertionError("rows were read")
        yield from batches

    frame = spark.createDataFrame([("a",)], "text string")
    frame = frame.mapInArrow(read, frame.schema)
    for place in (tmp_path / "file", Path("/proc")):
        with pytest.raises(StorageError, match=r"folders? to which you"):
            release_of(frame, promise).write(str(place / "out.parquet"))
    for path, kind, remedy in (
        ("nothing://x/out.parquet", StorageError, "scheme"),
        ("hdfs://localhost:1/out.parquet", StorageError, "does not answer"),
    ):
        with pytest.raises(kind, match=remedy):
            release_of(frame, promise).write(path)


def test_a_column_that_is_missing_is_answered_with_those_that_are_there(spark, mechanism, tmp_path):
    from dptext.spark.frames import privatize, read_files

    frame = spark.createDataFrame([("a", 1)], "body string, stars int")
    with pytest.raises(ParameterError, match=r"the DataFrame has none among its 2: 'body', 'stars'$"):
        privatize(frame, mechanism)
    many = frame.selectExpr(*(f"stars as c{n}" for n in range(30)))
    with pytest.raises(ParameterError, match=r"'c19' and 10 more$"):
        privatize(many, mechanism)
    (tmp_path / "in.csv").write_text("a private text,5\nanother,3\n")  # without a header
    with pytest.raises(DataError, match="the header has none among its 2") as caught:
        read_files([str(tmp_path / "in.csv")])
    assert "private" not in str(caught.value)


def test_an_output_that_is_there_is_answered_with_the_option(spark, promise, tmp_path):
    frame = spark.createDataFrame([("a",)], "text string")
    release_of(frame, promise).write(str(tmp_path / "out.parquet"))
    with pytest.raises(ParameterError, match="add --force"):
        release_of(frame, promise).write(str(tmp_path / "out.parquet"))
    # no Hadoop checksum of the statement, and no outdated one
    assert names(tmp_path) == ["out.parquet", "out.parquet.privacy.json"]


def test_errors_of_the_engine_name_what_they_can(spark):
    def raised(module, text_):
        kind = type("ToldError", (Exception,), {"__module__": module})
        with pytest.raises(DptextError) as caught, plain_errors():
            raise kind(text_)
        return str(caught.value)

    assert "a process of Spark ended" in raised("pyspark.errors", "Python worker exited unexpectedly (crashed)")
    with pytest.raises(StorageError, match="a process of Spark ended"), plain_errors():
        raise ConnectionRefusedError
    with pytest.raises(StorageError, match=r"\(ArithmeticException\)") as caught, plain_errors():
        spark._jvm.java.lang.Math.addExact(2**31 - 1, 1)
    assert "overflow" not in str(caught.value)  # the rest of the message may quote a row


# -- read ----------------------------------------------------------------------------------------------------------

READ = {
    "a number.jsonl": '{"text": "a"}\n{"text": 5}\n',
    "numbers.jsonl": '{"text": 5}\n{"text": 6}\n',
    "a list.jsonl": '{"text": "a"}\n{"text": ["b"]}\n',
    "a truth.jsonl": '{"text": "a"}\n{"text": true}\n',
    "no text.jsonl": '{"text": "a"}\n{"other": "b"}\n',
    "null.jsonl": '{"text": "a"}\n{"text": null}\n',
    "all null.jsonl": '{"text": null}\n',
    "letters.jsonl": '{"text": "ä\\u00e4 \\n 5"}\n{"text": "5"}\n{"text": ""}\n',
    "cut.jsonl": '{"text": "a"}\n{"text": "b\n',
    "carriage.txt": "a\rb\r\nc\n\nd",
    "quote.tsv": 'text\tn\n"he said\t1\nshe said\t2\n',
    "wide.csv": "text,n\na,1\nb,2,3\n",
    "narrow.csv": "text,n\na,1\nb\n",
    "quoted.csv": 'text,n\n"a\n""b""",1\n,2\n',
}


@pytest.mark.parametrize("name", READ)
def test_files_are_read_as_on_one_machine(spark, tmp_path, name):
    from dptext.spark.frames import read_files

    (tmp_path / name).write_text(READ[name], newline="")
    keep = [] if name.endswith((".jsonl", ".txt")) else ["n"]

    def outcome(read):
        try:
            return read()
        except DataError as error:
            assert "\n" not in str(error)
            return "refused"

    def local():
        documents = read_documents(tmp_path / name, keep=keep)
        return [(entry.text, *(entry.attributes or {}).values()) for entry in documents]

    def on_spark():
        with plain_errors():
            frame = read_files([str(tmp_path / name)], keep=keep).select("text", *keep)
            return [tuple(row) for row in frame.collect()]

    assert outcome(on_spark) == outcome(local)


def test_files_whose_columns_are_in_another_order_are_no_mixture_of_them(spark, mechanism, tmp_path):
    from dptext.spark.frames import read_files

    for name, content in (("a.csv", "text,stars\na secret,5\n"), ("b.csv", "stars,text\n5,a secret\n")):
        (tmp_path / name).write_text(content)
    out = tmp_path / "out.parquet"
    with pytest.raises(DataError, match="give all files one header"):
        frame = read_files([str(tmp_path / entry) for entry in ("a.csv", "b.csv")], keep=["stars"])
        dptext.spark.frames.privatize(frame, mechanism, keep=["stars"], scan=True).write(str(out))
    assert not out.exists()


# -- a session of our own ------------------------------------------------------------------------------------------

OWN = """
import os, pathlib, signal, warnings
import dptext
from dptext.cli import main
from dptext.spark.session import session

usual = ["--epsilon", "4", "--limit", "300", "--engine", "spark"]
assert main(["privatize", "in.jsonl", "-o", "/proc/out.parquet", *usual, "--quiet"]) == 4
assert main(["privatize", "bad.jsonl", "-o", "bad.parquet", *usual, "--quiet"]) == 1
spark = session()
scratch = pathlib.Path(spark.conf.get("spark.local.dir"))
assert scratch.stat().st_mode & 0o777 == 0o700, scratch
assert spark.conf.get("spark.master").endswith(",4]")

warnings.simplefilter("ignore")  # pyspark's own, about the version of pandas

def die_once(batches):
    for batch in batches:
        if not os.path.exists("died"):
            open("died", "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch

frame = spark.range(10, numPartitions=1)
assert frame.mapInArrow(die_once, frame.schema).count() == 10
assert os.path.exists("died")
assert main(["privatize", "in.jsonl", "-o", "out.parquet", *usual, "--quiet"]) == 0
print(scratch)
"""


def test_a_session_of_ours_tries_again_keeps_to_itself_and_says_one_line_an_error(spark, tmp_path):
    rows = "".join(json.dumps({"text": f"the {word} of"}) + "\n" for word in ("and", "in"))
    (tmp_path / "in.jsonl").write_text(rows)
    (tmp_path / "bad.jsonl").write_text(rows + '{"text": 5}\n')
    (tmp_path / "tmp").mkdir()
    (tmp_path / "script.py").write_text(OWN)
    settings = {"TMPDIR": str(tmp_path / "tmp"), "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **settings}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    text = done.stderr.splitlines()
    assert [entry[:30] for entry in text] == [entry[:30] for entry in text if entry.startswith("dptext: ")], done.stderr
    assert len(text) == 2, done.stderr
    assert "to which you" in text[0]
    assert "expected a string in 'text'" in text[1]
    scratch = Path(done.stdout.split()[-1])
    assert scratch.parent == tmp_path / "tmp"
    until = time.monotonic() + 60  # Java ends after Python
    while scratch.exists() and time.monotonic() < until:
        time.sleep(0.2)
    assert not scratch.exists()
    assert names(tmp_path / "tmp") == [] or all("hsperf" in name for name in names(tmp_path / "tmp"))
