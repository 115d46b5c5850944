"""Runs on Spark that are stopped, killed or fail: their files, their charges and their messages."""

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
from dptext.errors import DataError, MissingExtraError, ParameterError, RefusedError, StorageError
from dptext.io.artifacts import folder_digest
from dptext.io.documents import read_documents
from dptext.ledger.ledger import Ledger
from dptext.spark import frames
from dptext.spark.frames import read_files
from dptext.spark.release import OutputFolder, SparkRelease
from dptext.spark.session import plain_errors
from secrecy import MARKER, assert_error


@pytest.fixture(autouse=True)
def _hears_interrupts():
    """A shell's background job ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def statement(mechanism):
    return dptext.privatize(["a"], mechanism).statement.replace(data_sha256=None)


@pytest.fixture
def release_of(statement):
    """Return a function from a frame to its release, which changes no row."""

    def build(frame):
        of = statement.replace(release_id=f"r{time.monotonic_ns()}")
        options = {"statement_of": lambda _: of, "statement_before": lambda: of, "release_id": of.release_id}
        return SparkRelease(source=frame, text="text", rows=frame, counts=(), **options)

    return build


@pytest.fixture
def book(tmp_path):
    Ledger.create(tmp_path / "ledger.db", epsilon=1e6)
    return str(tmp_path / "ledger.db")


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame([("a",)], "text string")


def states(book):
    return [release.state for release in Ledger(book).releases()]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# -- stopped -------------------------------------------------------------------------------------------------------


def test_an_interrupt_leaves_nothing_even_of_tasks_that_still_write(spark, release_of, book, tmp_path):
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

    def interrupt_when(is_time):
        while not is_time():
            time.sleep(0.001)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    moments = (lambda: any(place.rglob("_temporary")), lambda: names(marks), lambda: any(place.rglob("task_*")))
    for moment in moments:
        for mark in marks.iterdir():
            mark.unlink()
        threading.Thread(target=interrupt_when, args=(moment,), daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            release_of(frame).write(str(place / "out.parquet"), ledger=book)
        assert not spark.sparkContext.statusTracker().getActiveJobsIds(), "a job is running"
        assert names(place) == []
    assert set(states(book)) <= {"pending"}
    count = len(names(marks))
    time.sleep(1)
    assert names(place) == [] and len(names(marks)) == count, "tasks went on"


def test_an_interrupt_between_statement_and_rows_waits_for_both(frame, release_of, book, tmp_path, monkeypatch):
    original = OutputFolder._check_free

    def interrupted(self):
        original(self)
        if any(tmp_path.rglob("privacy.json")):  # of the work: the next step puts it in place
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(0.3)

    monkeypatch.setattr(OutputFolder, "_check_free", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        release_of(frame).write(str(tmp_path / "out.parquet"), ledger=book)
    assert "in place, and complete" in " ".join(caught.value.__notes__)
    assert names(tmp_path) == ["ledger.db", "out.parquet", "out.parquet.privacy.json"]
    assert states(book) == ["released"]


# -- failing -------------------------------------------------------------------------------------------------------


class Failing:
    """A file system whose rename fails once, after so many."""

    def __init__(self, system, good):
        self._system, self._good = system, good

    def __getattr__(self, name):
        return getattr(self._system, name)

    def rename(self, source, target):
        self._good -= 1
        return self._good != -1 and self._system.rename(source, target)


@pytest.mark.parametrize("replaces", [False, True])
def test_a_step_that_fails_leaves_the_old_output(spark, statement, tmp_path, replaces):
    out, statement_file = tmp_path / "out", tmp_path / "out.privacy.json"

    def publish(content, *, good=10**6, force=replaces):
        with OutputFolder(spark, str(out), force=force) as folder:
            folder.begin(spark.range(1))
            (work,) = (path for path in tmp_path.iterdir() if path.is_dir() and path.name.startswith("."))
            assert stat.S_IMODE(work.stat().st_mode) & 0o077 == 0, "unfinished rows are their owner's alone"
            (Path(folder.rows) / "part-0.parquet").write_text(content)
            text = statement.replace(release_id=content, data_sha256=folder.digest())
            folder._system = Failing(folder._system, good)
            folder.publish(text)

    if replaces:
        publish("old", force=False)
    for good in range(4 if replaces else 2):
        with pytest.raises(StorageError, match="does not rename"):
            publish("new", good=good)
        assert names(tmp_path) == (["out", "out.privacy.json"] if replaces else [])
        if replaces:
            assert (out / "part-0.parquet").read_text() == "old"
            assert json.loads(statement_file.read_text())["data_sha256"] == folder_digest(out)
    publish("new")
    assert (out / "part-0.parquet").read_text() == "new"
    assert json.loads(statement_file.read_text())["data_sha256"] == folder_digest(out)


def test_a_failed_run_leaves_no_files_and_stays_charged(spark, frame, release_of, book, tmp_path):
    def fail(batches):
        yield from batches
        raise dptext.errors.DataError("no")

    out = str(tmp_path / "out.parquet")
    failing = release_of(frame.mapInArrow(fail, frame.schema))
    assert_error(DataError, lambda: failing.write(out), "no")
    gone = release_of(frame)
    gone.statement_of = lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError) as caught:
        gone.write(out, ledger=book)
    assert names(tmp_path) == ["ledger.db"] and states(book) == ["pending"]
    assert "dptext ledger void" in " ".join(caught.value.__notes__)
    small = str(tmp_path / "small.db")
    Ledger.create(small, epsilon=1e-6)
    assert_error(RefusedError, lambda: release_of(frame).write(out, ledger=small), "the ledger refuses")
    assert not Path(out).exists()


def test_the_ledger_settles_once_rows_and_statement_are_in_place(frame, release_of, book, tmp_path, monkeypatch):
    out = tmp_path / "out.parquet"
    seen, settle = [], Ledger.settle

    def settle_and_check(ledger, release_id):
        files = (out / "_SUCCESS", tmp_path / "out.parquet.privacy.json")
        seen.append([*(path.exists() for path in files), ledger.summary().pending])
        settle(ledger, release_id)

    def full(_self, _release):
        raise StorageError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "settle", full)
        with pytest.raises(StorageError, match="the disk is full") as caught:
            release_of(frame).write(str(out), ledger=book)
    assert "in place, and complete" in " ".join(caught.value.__notes__)
    assert out.exists() and states(book) == ["pending"]
    monkeypatch.setattr(Ledger, "settle", settle_and_check)
    release_of(frame).write(str(out), ledger=book, force=True)
    assert seen == [[True, True, 2]] and states(book) == ["pending", "released"]


def test_missing_texts_are_charged_as_empty_ones_where_they_become_vectors(spark, glove, tmp_path):
    from dptext.representations.bounds import Bound
    from dptext.representations.device import DeviceEncoder
    from dptext.representations.encoders import MeanOfWords
    from dptext.representations.privunit import PrivUnit

    words = dptext.load_vectors(glove, limit=300)
    device = DeviceEncoder(MeanOfWords(words), Bound(mean=words.matrix.mean(axis=0)), PrivUnit(epsilon=4.0))
    (tmp_path / "in.jsonl").write_text('{"text": null}\n{"text": "a"}\n')
    Ledger.create(tmp_path / "five.db", epsilon=5.0)
    release = frames.encode(read_files([str(tmp_path / "in.jsonl")]), device, scan=True)
    release.write(str(tmp_path / "out.parquet"), ledger=str(tmp_path / "five.db"))
    assert Ledger(tmp_path / "five.db").left("").spent == 4.0


def test_rows_that_change_after_they_were_charged_are_not_released(spark, release_of, book, tmp_path):
    source = tmp_path / "in.parquet"
    frame = spark.createDataFrame([("a",), ("b",)], "text string").repartition(1)
    for now in ("b", "c"):
        frame.write.mode("overwrite").parquet(str(source))
        release = release_of(spark.read.parquet(str(source)))
        (part,) = source.glob("part-*")

        def changed(path, original=release._compute, part=part, now=now):
            counts = original(path)
            pa.parquet.write_table(pa.table({"text": ["a", now]}), part)
            part.with_name(f".{part.name}.crc").unlink(missing_ok=True)
            return counts

        release._compute = changed
        out = tmp_path / f"{now}.parquet"
        if now == "b":
            release.write(str(out), ledger=book)
        else:
            assert_error(RefusedError, lambda: release.write(str(out), ledger=book), "the input changed")  # noqa: B023
            assert not out.exists()
    assert states(book) == ["released", "pending"]


def test_an_output_that_may_not_be_written_is_refused_before_any_row_is_read(spark, frame, release_of, tmp_path):
    frame.write.parquet(str(tmp_path / "in put.parquet"))
    (tmp_path / "link.parquet").symlink_to(tmp_path / "in put.parquet")
    (tmp_path / "file.parquet").write_text("a ledger")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.pdf").touch()
    before = sorted(tmp_path.rglob("*"))
    scan = spark.read.parquet(str(tmp_path / "in put.parquet"))

    def read(batches):
        raise AssertionError("rows were read")
        yield from batches

    unread = frame.mapInArrow(read, frame.schema)
    for source, out, kind, remedy in (
        (scan, tmp_path / "in put.parquet", ParameterError, "same folder as IN"),
        (scan, tmp_path / "link.parquet", ParameterError, "same folder as IN"),
        (unread, tmp_path / "file.parquet", ParameterError, "is a file"),
        (unread, tmp_path / "home", ParameterError, "files other than parquet"),
        (unread, tmp_path / "file.parquet" / "out", StorageError, "to which you"),
        (unread, "nothing://x/out.parquet", StorageError, "Spark failed"),
    ):
        assert_error(kind, lambda s=source, o=out: release_of(s).write(str(o), force=True), remedy)
    assert sorted(tmp_path.rglob("*")) == before
    release_of(frame).write(str(tmp_path / "out.parquet"))
    assert_error(ParameterError, lambda: release_of(frame).write(str(tmp_path / "out.parquet")), "add --force")
    # no Hadoop checksum of the statement, and no outdated one
    assert {*names(tmp_path)} - {path.name for path in before} == {"out.parquet", "out.parquet.privacy.json"}


# -- messages ------------------------------------------------------------------------------------------------------


def test_errors_of_the_engine_are_one_line_without_rows(spark, mechanism, monkeypatch):
    class EngineError(Exception):
        __module__ = "pyspark.errors"

    def fail(error):
        with plain_errors():
            raise error

    for error, kind, part in (
        (EngineError("ModuleNotFoundError: No module named 'dptext'"), MissingExtraError, "PYSPARK_PYTHON"),
        (EngineError("[JAVA_GATEWAY_EXITED] Java gateway process exited"), MissingExtraError, "Java did not start"),
        (EngineError(f"[PATH_NOT_FOUND] Path does not exist: file:/{MARKER}"), StorageError, "does not find a file"),
        (EngineError(f"[SOMETHING_ELSE.OF] the row '{MARKER}' ..."), StorageError, "(SOMETHING_ELSE.OF)"),
        (EngineError("Python worker exited unexpectedly (crashed)"), StorageError, "a process of Spark ended"),
        (ConnectionRefusedError(), StorageError, "a process of Spark ended"),
    ):
        assert MARKER not in assert_error(kind, lambda error=error: fail(error), part)
    with pytest.raises(StorageError, match=r"\(ArithmeticException\)") as caught, plain_errors():
        spark._jvm.java.lang.Math.addExact(2**31 - 1, 1)
    assert "overflow" not in str(caught.value)  # the rest of the message may quote a row
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    assert_error(MissingExtraError, lambda: frames.privatize([], mechanism), "dptext[spark]")


# -- read ----------------------------------------------------------------------------------------------------------

READ = {
    "null.jsonl": '{"text": "a"}\n{"text": null}\n',
    "letters.jsonl": '{"text": "ä\\u00e4 \\n 5"}\n{"text": "5"}\n{"text": ""}\n',
    "cut.jsonl": '{"text": "a"}\n{"text": "b\n',
    "wide.csv": "text,n\na,1\nb,2,3\n",
    "quoted.csv": 'text,n\n"a\n""b""",1\n,2\n',
}


@pytest.mark.parametrize("name", READ)
def test_files_are_read_as_on_one_machine(spark, tmp_path, name):
    (tmp_path / name).write_text(READ[name], newline="")
    keep = [] if name.endswith(".jsonl") else ["n"]

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


# -- a session of our own ------------------------------------------------------------------------------------------

OWN = """
import pathlib
from dptext.cli import main
from dptext.spark.session import session

usual = ["--epsilon", "4", "--limit", "300", "--engine", "spark", "--quiet"]
assert main(["privatize", "bad.jsonl", "-o", "bad.parquet", *usual]) == 1
assert main(["privatize", "in.jsonl", "-o", "out.parquet", *usual]) == 0
scratch = pathlib.Path(session().conf.get("spark.local.dir"))
assert scratch.stat().st_mode & 0o777 == 0o700, scratch
print(scratch)
"""


def test_a_session_of_ours_has_private_scratch_files_and_errors_of_one_line(spark, tmp_path):
    rows = "".join(json.dumps({"text": f"the {word} of"}) + "\n" for word in ("and", "in"))
    (tmp_path / "in.jsonl").write_text(rows)
    (tmp_path / "bad.jsonl").write_text(rows + '{"text": "a\n')
    (tmp_path / "tmp").mkdir()
    settings = {"TMPDIR": str(tmp_path / "tmp"), "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    command = [sys.executable, "-c", OWN]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **settings})
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = done.stderr.splitlines()
    assert line.startswith("dptext: ") and "a file of the input is malformed" in line
    scratch = Path(done.stdout.split()[-1])
    assert scratch.parent == tmp_path / "tmp"
    until = time.monotonic() + 60  # Java ends after Python
    while scratch.exists() and time.monotonic() < until:
        time.sleep(0.2)
    assert not scratch.exists()
