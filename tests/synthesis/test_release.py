"""Synthetic files from private ones: charged once, written completely or not at all, resumable without further loss."""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import dptext
from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.features.pool import Pool
from dptext.io import atomic, batches
from dptext.io.artifacts import SavedFolder, file_digest
from dptext.ledger.ledger import Ledger
from dptext.representations.encoders import MeanOfWords
from dptext.synthesis import release as release_module
from dptext.synthesis import synthesizer as synthesizer_module
from dptext.synthesis.release import Draw, PrivateFiles, draw_file, earlier, synthesize_file
from secrecy import MARKER, assert_error, assert_silent

DRINKS, RULES = ["tea", "cup", "cocoa"], ["tax", "law", "court"]
WORDS = [*DRINKS, *RULES]
VECTORS = dptext.load_vectors((WORDS, np.random.default_rng(1).normal(size=(6, 3))))
OUT, FOLDER, BOOK = Path("made.jsonl"), Path("made.jsonl.distribution"), "book"
PEOPLE = 12
START = ["in.jsonl", "pool.txt"]
WHOLE = [*START, "made.jsonl", "made.jsonl.distribution", "made.jsonl.privacy.json"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder with private rows and a public pool; ten rows per block."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(batches, "BATCH_ROWS", 10)
    write()
    Path("pool.txt").write_text("".join(f"{one} {other}\n" for one in WORDS for other in WORDS))
    return tmp_path


def rows(count=2 * PEOPLE):
    for n in range(count):
        topic, words = ("drinks", DRINKS) if n % 2 else ("rules", RULES)
        text = f"{words[n % 3]} {words[n % 2]} {MARKER}"
        yield {"text": text, "author": f"{MARKER}{n % PEOPLE}", "topic": topic, "stars": n % 3}


def write(count=2 * PEOPLE, more=()):
    Path("in.jsonl").write_text("".join(f"{line}\n" for line in [*map(json.dumps, rows(count)), *more]))


def synthesizer(**changes):
    fields = {"epsilon": 2.0, "labels": {"topic": ["drinks", "rules"]}, "features": MeanOfWords(VECTORS)}
    return dptext.Synthesizer(**{**fields, "cache": False, "public_users": 1000, **changes})


def make(out=OUT, *, source="in.jsonl", n=5, changes=None, files=None, draw=None, **options):
    draw = {"public": Path("pool.txt"), "cache": False, **(draw or {})}
    if isinstance(draw["public"], Path):
        draw["public"] = Pool([draw["public"]])
    rows_of_files = PrivateFiles(paths=source, **{"user": "author", **(files or {})})
    return synthesize_file(rows_of_files, out, synthesizer(**(changes or {})), Draw(n=n, **draw), **options)


def assert_refused(error, *parts, **options):
    return assert_error(error, lambda: make(**options), *parts)


def names():
    return sorted(path.name for path in Path().iterdir())


def contents():
    return {path: path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def states():
    return [release.state for release in Ledger(BOOK).releases()]


def check_complete(out=OUT, folder=FOLDER):
    """Check that the corpus agrees with its statement and with the release in the folder."""
    statement = dptext.PrivacyStatement.from_json(Path(f"{out}.privacy.json").read_text())
    assert statement.data_sha256 == file_digest(out)
    distribution = dptext.TextDistribution.load(folder)
    assert statement.release_id == distribution.statement.release_id
    assert statement.guarantee == distribution.statement.guarantee
    return statement


# -- one run ----------------------------------------------------------------------------------------------------------


def test_a_run_reserves_sums_saves_settles_and_then_draws(monkeypatch):
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    seen = []

    def record(owner, name, step):
        real = getattr(owner, name)

        def call(*args, **options):
            seen.append((step, states(), FOLDER.exists(), OUT.exists()))
            return real(*args, **options)

        monkeypatch.setattr(owner, name, call)

    record(Ledger, "reserve", "reserve")
    record(synthesizer_module.SynthesisPlan, "total", "sum")
    record(SavedFolder, "write", "save")
    record(Ledger, "settle", "settle")
    record(dptext.TextDistribution, "sample", "draw")
    record(release_module, "write_statement", "statement")
    release = make(ledger=BOOK)
    assert seen == [
        ("reserve", [], False, False),
        ("sum", ["pending"], False, False),
        ("save", ["pending"], False, False),
        ("settle", ["pending"], True, False),
        ("draw", ["released"], True, False),
        ("statement", ["released"], True, False),
    ]
    assert names() == sorted([*WHOLE, BOOK])
    assert (release.documents, release.skipped, release.out) == (5, 0, OUT)
    statement = check_complete()
    assert statement == release.statement
    assert statement.parameters["texts"] == 5
    assert statement.parameters["pool_sha256"] == Pool([Path("pool.txt")]).sha256
    assert not statement.seeded
    public = {path: content for path, content in contents().items() if path.name not in ("in.jsonl", BOOK)}
    assert not any(MARKER.encode() in content for content in public.values())


def test_several_label_columns_and_texts_in_blocks(monkeypatch):
    monkeypatch.setattr(release_module, "_ROWS_AT_ONCE", 7)
    labels = {"topic": ["drinks", "rules"], "stars": [0, 1, 2]}
    release = make("made.parquet", n=20, changes={"labels": labels})
    table = pq.read_table("made.parquet").to_pylist()
    assert [set(row) for row in table] == [{"text", "topic", "stars"}] * 20
    assert len({row["text"] for row in table}) == 20
    assert [(row["topic"], row["stars"]) for row in table] == release.labels
    assert pq.ParquetFile("made.parquet").num_row_groups == 1
    check_complete("made.parquet", "made.parquet.distribution")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
def test_a_pipe_is_read_once_and_refused_with_a_ledger():
    os.mkfifo("pipe.jsonl")
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    assert_refused(ParameterError, "reads the input twice", "name files", source="pipe.jsonl", ledger=BOOK)
    content = Path("in.jsonl").read_bytes()
    writer = threading.Thread(target=lambda: Path("pipe.jsonl").write_bytes(content))
    writer.start()
    assert make(source="pipe.jsonl").documents == 5
    writer.join()
    check_complete()


def test_a_generator_gets_the_examples_and_on_request_the_pool(monkeypatch):
    seen = []

    def generate(self, source, n, *, public, examples, candidates, rounds, **_):
        seen.append((source, n, public and public.texts[0], examples, candidates, rounds))
        return self.sample(["tea"], 1)

    monkeypatch.setattr(dptext.TextDistribution, "generate", generate)
    for with_pool in (False, True):
        draw = {"generator": "a source", "examples": {"drinks": ["cocoa"]}, "with_pool": with_pool, "candidates": 3}
        make(n=30, draw={**draw, "rounds": 1}, force=True)
    assert seen == [("a source", 30, pool, {"drinks": ["cocoa"]}, 3, 1) for pool in (None, "tea tea")]


# -- interruptions ----------------------------------------------------------------------------------------------------

BEFORE_RELEASE = ("reserving", "noise", "saving")
AFTER_RELEASE = ("saved", "settling", "drawing", "statement", "data")


def interrupt_at(step, monkeypatch, error=KeyboardInterrupt, **options):
    """Run until a step raises an error, and return the advice in its notes."""

    def stop(*_args, **_options):
        raise error("stopped here")

    with monkeypatch.context() as patch:
        if step == "saved":
            real = SavedFolder.write
            patch.setattr(SavedFolder, "write", lambda *args, **more: (real(*args, **more), stop()))
        elif step == "data":
            publish = atomic.publish
            patch.setattr(
                atomic, "publish", lambda part, to, **more: stop() if to == OUT else publish(part, to, **more)
            )
        else:
            owner, name = {
                "reserving": (Ledger, "reserve"),
                "noise": (synthesizer_module, "noisy_matrix"),
                "saving": (SavedFolder, "write"),
                "settling": (Ledger, "settle"),
                "drawing": (dptext.TextDistribution, "sample"),
                "statement": (release_module, "write_statement"),
            }[step]
            patch.setattr(owner, name, stop)
        with pytest.raises(error) as caught:
            make(**options)
    notes = " ".join(getattr(caught.value, "__notes__", ()))
    assert MARKER not in repr(caught.value) + notes
    return notes


@pytest.mark.parametrize("step", [*BEFORE_RELEASE, *AFTER_RELEASE])
def test_an_interrupted_run_is_charged_once_and_resumed(step, monkeypatch):
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    error = {"saving": StorageError, "data": MemoryError}.get(step, KeyboardInterrupt)
    notes = interrupt_at(step, monkeypatch, error, ledger=BOOK)
    assert not OUT.exists()
    charged = Ledger(BOOK).releases()
    if step in BEFORE_RELEASE:
        assert names() == sorted([*START, BOOK])
        assert "--resume" not in notes
        assert len(charged) == (step != "reserving")
        for release in charged:  # no output exists, and still only the owner refunds the budget
            assert release.state == "pending"
            assert f"dptext ledger void {BOOK} {release.release_id}" in notes
            Ledger(BOOK).void(release.release_id)
        make(ledger=BOOK, resume=True)  # there is no description to resume
    else:
        content = (FOLDER / "privacy.json").read_bytes()
        assert [entry.release_id for entry in charged] == [json.loads(content)["release_id"]]
        assert "--resume" in notes
        assert str(FOLDER) in notes
        assert_refused(
            ParameterError, str(FOLDER), "--resume", "without further privacy loss", "spends budget again", ledger=BOOK
        )
        with monkeypatch.context() as patch:  # private texts are not read again
            patch.setattr(PrivateFiles, "read", None)
            make(ledger=BOOK, resume=True)
        assert (FOLDER / "privacy.json").read_bytes() == content
    assert states() == ["released"]
    assert Ledger(BOOK).left(f"{MARKER}3").spent == 2.0
    check_complete()
    assert names() == sorted([*WHOLE, BOOK])


@pytest.mark.parametrize("step", ["saving", "drawing"])
def test_a_replaced_release_stays_until_the_new_one_is_saved(step, monkeypatch):
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    make(ledger=BOOK)
    old, content = check_complete(), OUT.read_bytes()
    interrupt_at(step, monkeypatch, ledger=BOOK, force=True)
    assert OUT.read_bytes() == content
    new = dptext.TextDistribution.load(FOLDER).statement.release_id
    assert len(states()) == 2
    if step == "saving":
        assert new == old.release_id
        check_complete()
        return
    assert new != old.release_id
    assert_refused(ParameterError, "--resume", "--force", "without further privacy loss", ledger=BOOK, resume=True)
    make(ledger=BOOK, resume=True, force=True)
    assert check_complete().release_id == new
    assert states() == ["released"] * 2


def test_force_charges_again_unless_it_resumes():
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    make(ledger=BOOK)
    before = check_complete(), OUT.read_bytes()
    for options in ({}, {"resume": True}):
        assert_refused(ParameterError, "already", "spends budget again", ledger=BOOK, **options)
        assert (check_complete(), OUT.read_bytes()) == before
    make(ledger=BOOK, force=True)
    assert check_complete().release_id != before[0].release_id
    assert Ledger(BOOK).left(f"{MARKER}3").spent == 4.0
    make(ledger=BOOK, force=True, resume=True)
    assert Ledger(BOOK).left(f"{MARKER}3").spent == 4.0


def test_a_refused_charge_leaves_no_output():
    Ledger.create(BOOK, epsilon=1, delta=1e-5)
    assert_refused(RefusedError, f"{PEOPLE} of {PEOPLE}", ledger=BOOK)
    assert_refused(ParameterError, "a seed voids the guarantee", ledger=BOOK, changes={"seed": 1})
    assert names() == sorted([*START, BOOK])
    assert not Ledger(BOOK).releases()


def test_private_texts_in_the_pool_and_changed_input_are_not_released(monkeypatch):
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    texts = [f"{row['text']} {place}" for place, row in enumerate(rows())]
    private = [{**row, "text": text} for row, text in zip(rows(), texts, strict=True)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in private))
    assert_refused(ParameterError, "public pool", "Nothing was released", ledger=BOOK, n=2, draw={"public": texts})
    assert not Ledger(BOOK).releases()
    reserve = Ledger.reserve

    def reserve_and_change(*args, **options):
        reserve(*args, **options)
        write(2 * PEOPLE + 1)

    monkeypatch.setattr(Ledger, "reserve", reserve_and_change)
    assert_refused(RefusedError, "the input changed while it was being read", ledger=BOOK)
    assert names() == sorted([*START, BOOK])
    assert states() == ["pending"]


def test_voided_and_killed_releases_are_not_saved_or_refunded(monkeypatch):
    Ledger.create(BOOK, epsilon=2, delta=1e-5)
    total = synthesizer_module.SynthesisPlan.total

    def void(*args, **options):
        Ledger(BOOK).void(Ledger(BOOK).releases()[0].release_id)
        return total(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(synthesizer_module.SynthesisPlan, "total", void)
        assert_refused(RefusedError, "was voided in the ledger", ledger=BOOK)
    assert names() == sorted([*START, BOOK])
    interrupt_at("settling", monkeypatch, SystemExit, ledger=BOOK)
    FOLDER.rename("moved")
    assert_refused(RefusedError, "would be overspent", "1 pending", "until it is settled or voided", ledger=BOOK)
    assert "pending" in states()
    assert Ledger(BOOK).left(f"{MARKER}3").spent == 2.0


def test_locks_exclude_other_runs_and_stale_ones_are_taken():
    for lock in (OUT, FOLDER):
        with atomic.file_lock(lock):
            assert_refused(StorageError, "another process is writing")
    assert names() == START
    for stale in (".made.jsonl.lock", ".made.jsonl.distribution.lock"):
        Path(stale).touch(mode=0o600)
    make()
    assert names() == sorted(WHOLE)
    draw = Draw(n=3, public=["tea", "tax", "law"])
    with atomic.file_lock(OUT):
        assert_error(StorageError, lambda: draw_file(FOLDER, OUT, draw, force=True), "another process is writing")


# -- files that must stay ---------------------------------------------------------------------------------------------

OPTIONS = [{}, {"force": True}, {"resume": True}, {"force": True, "resume": True}]


@pytest.fixture
def unread(monkeypatch):
    """Fail if a private file is opened."""
    monkeypatch.setattr(PrivateFiles, "read", lambda *_: pytest.fail("a private file was opened"))


@pytest.mark.usefixtures("unread")
def test_no_output_replaces_an_input():
    Ledger.create("book.jsonl", epsilon=10, delta=1e-5)
    os.link("in.jsonl", "linked.jsonl")
    before = contents()
    for out, folder, role in [
        ("./in.jsonl", None, "IN"),
        ("linked.jsonl", None, "IN"),
        ("pool.txt", None, "the public texts"),
        ("book.jsonl", None, "the ledger"),
        ("made.jsonl", "in.jsonl", "contains data other than"),
        ("made.jsonl", "pool.txt", "contains data other than"),
        ("made.jsonl", "book.jsonl", "contains data other than"),
        ("made.jsonl", "made.jsonl", "must not be or contain OUT"),
        ("made.jsonl", "made.jsonl.privacy.json", "must not be or contain OUT"),
        ("made.jsonl", ".", "must not be or contain OUT"),
        ("made.jsonl", "..", "must not be or contain OUT"),
    ]:
        for options in OPTIONS:
            changes = {"labels": None} if out == "pool.txt" else {}
            with pytest.raises(ParameterError, match=role):
                make(out, distribution=folder, ledger="book.jsonl", changes=changes, **options)
    assert contents() == before


@pytest.mark.usefixtures("unread")
def test_private_files_are_refused_as_public_pool():
    os.link("in.jsonl", "linked.jsonl")
    Path("pointer.jsonl").symlink_to("in.jsonl")
    before = names()
    for pool in ("in.jsonl", "./in.jsonl", "linked.jsonl", "pointer.jsonl"):
        with pytest.raises(ParameterError, match="both a file of IN and of the public texts"):
            make(draw={"public": Pool([Path("pool.txt"), Path(pool)])})
    assert names() == before


def test_foreign_files_and_folders_are_never_replaced(unread):
    FOLDER.mkdir()
    (FOLDER / "mine").write_text("mine")
    for options in OPTIONS:
        assert_refused(ParameterError, str(FOLDER), **options)
    (FOLDER / "mine").unlink()
    FOLDER.rmdir()
    for file in (OUT, Path("made.jsonl.privacy.json")):
        file.write_text("mine")
        for options in ({}, {"resume": True}):
            assert_refused(ParameterError, "already", **options)
            assert names() == sorted([*START, file.name])
        file.unlink()


def test_a_distribution_with_a_foreign_file_is_never_replaced():
    make()
    make(force=True)
    (FOLDER / "mine").write_text("mine")
    for options in OPTIONS:
        with pytest.raises((ParameterError, DataError)):
            make(**options)
    assert (FOLDER / "mine").read_text() == "mine"


def test_more_texts_of_a_distribution():
    make()
    draw = Draw(n=30, public=Pool([Path("pool.txt")]))
    before = contents()
    for out, part in [
        ("pool.txt", "the public texts"),
        ("made.jsonl.distribution/more.jsonl", "is inside the folder"),
        ("made.jsonl.distribution", "is inside the folder"),
    ]:
        assert_error(ParameterError, lambda out=out: draw_file(FOLDER, out, draw, force=True), part)
    assert contents() == before
    assert draw_file(FOLDER, "more.csv", draw).documents == 30
    assert check_complete("more.csv").parameters["texts"] == 30
    before = contents()
    assert_error(ParameterError, lambda: draw_file(FOLDER, "more.csv", draw), "already")
    assert_error(DataError, lambda: draw_file("nowhere", "more.csv", draw, force=True), "nowhere")
    assert contents() == before


# -- rows and formats -------------------------------------------------------------------------------------------------


def test_unreadable_rows_stop_a_run_or_are_listed_for_the_owner(monkeypatch):
    write(more=['{"text": "' + MARKER, json.dumps({"text": 7, "author": "x", "topic": MARKER})])
    assert_refused(DataError, "in.jsonl", "row 25")
    assert names() == START
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    skip = {"files": {"on_error": "skip"}, "ledger": BOOK}
    interrupt_at("drawing", monkeypatch, **skip)
    rejects = Path("made.jsonl.rejects.jsonl")
    assert [entry["row"] for entry in map(json.loads, rejects.read_text().splitlines())] == [25, 26]
    assert rejects.stat().st_mode & 0o777 == 0o600
    assert MARKER not in rejects.read_text()
    listed = rejects.read_bytes()
    make(resume=True, **skip)
    assert rejects.read_bytes() == listed
    assert Ledger(BOOK).summary().units == PEOPLE
    # a noisy sum does not show missing rows: the guarantee covers them, and the statement does not mention them
    assert "could not be read" not in check_complete().to_json()
    assert make(force=True, **skip).skipped == 2
    write()
    make(force=True, **skip)
    assert not rejects.exists()
    Path("in.jsonl").write_text("{\n[]\n")
    assert_refused(DataError, "row 1", files={"on_error": "skip"}, force=True)


@pytest.mark.usefixtures("unread")
def test_public_arguments_are_checked_before_private_rows_are_read():
    for draw, part in [
        ({"variety": 2.0}, "variety"),
        ({"shares": "mine"}, "shares"),
        ({"rounds": 0}, "rounds"),
        ({"candidates": 0}, "candidates"),
        ({"seed": "x"}, "seed"),
        ({"cache": 7}, "cache"),
        ({"public": ["tea"]}, "n must be at most"),
    ]:
        with pytest.raises(ParameterError, match=part) as caught:
            make(draw=draw)
        assert_silent(caught.value)
    for files in ({"text": "topic"}, {"user": "topic"}):
        with pytest.raises(ParameterError):
            make(files=files)

    class Broken:
        def prepare(self):
            raise ParameterError("cannot load the model")

    for draw, part in [
        ({"generator": Broken()}, "cannot load"),
        ({"generator": "a source", "examples": {"Drinks": ["tea"]}}, "by label name"),
    ]:
        assert_refused(ParameterError, part, draw=draw, ledger=BOOK)
    assert names() == START


# -- resuming with the right description ------------------------------------------------------------------------------


def test_a_description_of_another_plan_is_not_resumed(monkeypatch):
    interrupt_at("drawing", monkeypatch)
    before = contents()
    other = MeanOfWords(dptext.load_vectors((WORDS, np.random.default_rng(2).normal(size=(6, 3)))))
    for changes, part in [
        ({"epsilon": 1.0}, "epsilon"),
        ({"delta": 1e-7}, "delta"),
        ({"most_documents": 3}, "most_documents"),
        ({"unit": "document"}, "unit"),
        ({"labels": {"topic": ["rules", "drinks"]}}, "labels"),
        ({"labels": {"subject": ["drinks", "rules"]}}, "label_columns"),
        ({"labels": None}, "classes"),
        ({"seed": 3}, "seeded"),
        ({"features": other}, "sha256"),
    ]:
        files = {"user": None} if "unit" in changes else {}
        assert_refused(
            ParameterError,
            *("made with other arguments", part, "spends budget again"),
            changes=changes,
            files=files,
            resume=True,
        )
    assert contents() == before
    Path("pool.txt").write_text(Path("pool.txt").read_text() + "cocoa tax tea\n")
    assert_refused(ParameterError, "features_fitted_on_sha256", resume=True)
    assert draw_file(FOLDER, OUT, Draw(n=5, public=Pool([Path("pool.txt")]))).documents == 5
    parameters = check_complete().parameters
    assert parameters["pool_sha256"] != parameters["features_fitted_on_sha256"]


def test_an_uncharged_description_is_not_resumed_with_a_ledger(monkeypatch):
    interrupt_at("drawing", monkeypatch)
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    assert_refused(ParameterError, "was not charged to this ledger", ledger=BOOK, resume=True)
    assert not Ledger(BOOK).releases()
    make(resume=True)


def test_a_changed_folder_is_not_resumed(monkeypatch):
    interrupt_at("drawing", monkeypatch)
    for name, old, new in [("distribution.safetensors", b"\x00", b"\x01"), ("privacy.json", b"1000", b"1001")]:
        content = (FOLDER / name).read_bytes()
        (FOLDER / name).write_bytes(new.join(content.rsplit(old, 1)))
        with pytest.raises((DataError, ParameterError)):
            make(resume=True)
        (FOLDER / name).write_bytes(content)
    assert not OUT.exists()
    make(resume=True)


def test_equal_budgets_for_another_unit_are_told_apart():
    plan = synthesizer().plan(Pool([Path("pool.txt")]))
    source = PrivateFiles(paths="in.jsonl", user="author")
    release_id = source.describe(FOLDER, synthesizer(), plan)[0].statement.release_id
    assert earlier(Path("elsewhere"), plan) is None
    assert earlier(FOLDER, plan).statement.release_id == release_id
    other = synthesizer(unit="document").plan(Pool([Path("pool.txt")]))
    assert other.future_statement.guarantee == plan.future_statement.guarantee
    assert dict(other.future_statement.parameters) == dict(plan.future_statement.parameters)
    with pytest.raises(ParameterError, match="unit"):
        earlier(FOLDER, other)
    assert_error(ParameterError, lambda: source.describe(FOLDER, synthesizer(), plan), "already")
