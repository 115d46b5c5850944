"""A synthetic file out of private ones: released once, charged once, whole or not at all, and safe to go on with."""

import gzip
import json
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dptext
from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.features.pool import Pool
from dptext.io import atomic, batches
from dptext.io.artifacts import SavedFolder, file_digest
from dptext.io.documents import DocumentWriter
from dptext.ledger.ledger import Ledger
from dptext.representations.encoders import MeanOfWords
from dptext.synthesis import release as release_module
from dptext.synthesis import synthesizer as synthesizer_module
from dptext.synthesis.release import (
    Draw,
    PrivateFiles,
    draw_file,
    earlier,
    synthesize_file,
)
from secrecy import MARKER, assert_error, assert_silent

DRINKS, RULES = ["tea", "cup", "cocoa"], ["tax", "law", "court"]
WORDS = [*DRINKS, *RULES]
VECTORS = dptext.load_vectors((WORDS, np.random.default_rng(1).normal(size=(6, 3))))
OUT, FOLDER, BOOK = Path("made.jsonl"), Path("made.jsonl.distribution"), "book"
PEOPLE = 12


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """In a folder with people's rows and a public pool, with blocks of ten rows."""
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


def write(count=2 * PEOPLE, name="in.jsonl", more=()):
    lines = [*map(json.dumps, rows(count)), *more]
    Path(name).write_text("".join(f"{line}\n" for line in lines))


def synthesizer(**how):
    fields = {"epsilon": 2.0, "labels": {"topic": ["drinks", "rules"]}, "features": MeanOfWords(VECTORS)}
    return dptext.Synthesizer(**{**fields, "cache": False, "public_users": 1000, **how})


def made(out=OUT, *, source="in.jsonl", n=5, how=None, files=None, draw=None, **options):
    files = {"user": "author", **(files or {})}
    draw = {"public": Path("pool.txt"), "cache": False, **(draw or {})}
    if isinstance(draw["public"], Path):
        draw["public"] = Pool([draw["public"]])
    return synthesize_file(
        PrivateFiles(paths=source, **files), out, synthesizer(**(how or {})), Draw(n=n, **draw), **options
    )


def names():
    return sorted(path.name for path in Path().iterdir())


START = ["in.jsonl", "pool.txt"]
WHOLE = [*START, "made.jsonl", "made.jsonl.distribution", "made.jsonl.privacy.json"]


def stated(file):
    return dptext.PrivacyStatement.from_json(Path(file).read_text())


def check_whole(out=OUT, folder=FOLDER):
    """The corpus is what its statement says, of the release that stands in the folder."""
    statement = stated(f"{out}.privacy.json")
    assert statement.data_sha256 == file_digest(out)
    result = dptext.TextDistribution.load(folder)
    assert statement.release_id == result.statement.release_id
    assert statement.guarantee == result.statement.guarantee
    return statement


# -- one run ----------------------------------------------------------------------------------------------------------


def test_the_order_is_reserve_add_up_folder_settle_texts(monkeypatch):
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    seen = []

    def note(place, name, what):
        real = getattr(place, name)

        def call(*given, **more):
            ledger = [release.state for release in Ledger(BOOK).releases()]
            seen.append((what, ledger, FOLDER.exists(), OUT.exists()))
            return real(*given, **more)

        monkeypatch.setattr(place, name, call)

    note(Ledger, "reserve", "reserve")
    note(synthesizer_module.SynthesisPlan, "total", "add up")
    note(SavedFolder, "write", "save")
    note(Ledger, "settle", "settle")
    note(dptext.TextDistribution, "sample", "draw")
    note(release_module, "write_statement", "statement")
    release = made(ledger=BOOK)
    assert seen == [
        ("reserve", [], False, False),
        ("add up", ["pending"], False, False),
        ("save", ["pending"], False, False),
        ("settle", ["pending"], True, False),
        ("draw", ["released"], True, False),
        ("statement", ["released"], True, False),
    ]
    assert sorted(names()) == sorted([*WHOLE, BOOK])
    assert (release.documents, release.skipped, release.out) == (5, 0, OUT)
    statement = check_whole()
    assert statement == release.statement
    assert statement.parameters["texts"] == 5
    assert statement.parameters["pool_sha256"] == Pool([Path("pool.txt")]).sha256
    assert not statement.seeded
    assert not [path for path in Path().rglob("*") if path.is_file() and path.name not in ("in.jsonl", BOOK)
                and MARKER.encode() in path.read_bytes()]  # fmt: skip


@pytest.mark.parametrize("name", ["in.csv", "in.tsv", "in.jsonl.gz", "in.parquet"])
def test_every_format_of_people_gives_the_same_description(name):
    values = [{**row, "stars": str(row["stars"])} for row in rows()]
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(values), name)
    elif name.endswith(".gz"):
        with gzip.open(name, "wt") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in values)
    else:
        sign = "," if name.endswith(".csv") else "\t"
        lines = [values[0].keys(), *(row.values() for row in values)]
        Path(name).write_text("".join(sign.join(line) + "\n" for line in lines))
    for source, out in ((name, "one.jsonl"), ("in.jsonl", "two.jsonl")):
        made(out, source=source, how={"seed": 1})
    one, two = (dptext.TextDistribution.load(f"{entry}.jsonl.distribution") for entry in ("one", "two"))
    assert np.array_equal(one.matrix, two.matrix)


def test_several_columns_of_labels_and_more_texts_than_a_block(monkeypatch):
    monkeypatch.setattr(release_module, "_ROWS_AT_ONCE", 7)
    labels = {"topic": ["drinks", "rules"], "stars": [0, 1, 2]}
    release = made("made.parquet", n=20, how={"labels": labels})
    table = pq.read_table("made.parquet").to_pylist()
    assert [set(row) for row in table] == [{"text", "topic", "stars"}] * 20
    assert len({row["text"] for row in table}) == 20
    assert [(row["topic"], row["stars"]) for row in table] == release.labels
    assert pq.ParquetFile("made.parquet").num_row_groups == 1
    check_whole("made.parquet", "made.parquet.distribution")


@pytest.mark.slow
def test_a_large_corpus_in_parquet():
    pool = [f"{WORDS[n % 6]} {WORDS[n // 6 % 6]} {n}" for n in range(25_000)]
    made("made.parquet", n=21_000, draw={"public": pool})
    pylist = pq.read_table("made.parquet").column("text").to_pylist()
    assert len(set(pylist)) == 21_000
    assert set(pylist) < set(pool)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
def test_a_pipe_is_read_once_and_a_ledger_refuses_it():
    os.mkfifo("pipe.jsonl")
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    message = assert_error(ParameterError, lambda: made(source="pipe.jsonl", ledger=BOOK), "reads the input twice")
    assert "name files" in message
    content = Path("in.jsonl").read_bytes()
    writer = threading.Thread(target=lambda: Path("pipe.jsonl").write_bytes(content))
    writer.start()
    assert made(source="pipe.jsonl").documents == 5
    writer.join()
    check_whole()


# -- stopped ----------------------------------------------------------------------------------------------------------

BEFORE, AFTER = "before the release", "after it"
STEPS = {
    "reading": BEFORE,
    "reserving": BEFORE,
    "adding": BEFORE,
    "noise": BEFORE,
    "saving": BEFORE,
    "saved": AFTER,
    "settling": AFTER,
    "listing rejects": AFTER,
    "drawing": AFTER,
    "texts": AFTER,
    "statement": AFTER,
    "data": AFTER,
}
ERRORS = {"interrupt": KeyboardInterrupt, "disk": StorageError, "memory": MemoryError}
KINDS = ["interrupt", *(pytest.param(entry, marks=pytest.mark.slow) for entry in ("disk", "memory"))]


def break_at(step, error, patch):
    def stop(*_given, **_more):
        raise error("stopped here")

    if step == "saved":
        real = SavedFolder.write

        def write_and_stop(*given, **more):
            real(*given, **more)
            stop()

        patch.setattr(SavedFolder, "write", write_and_stop)
    elif step == "data":
        publish = atomic.publish
        patch.setattr(atomic, "publish", lambda part, to, **more: stop() if to == OUT else publish(part, to, **more))
    elif step != "reading":
        place, name = {
            "reserving": (Ledger, "reserve"),
            "adding": (synthesizer_module.SynthesisPlan, "total"),
            "noise": (synthesizer_module, "noisy_matrix"),
            "saving": (SavedFolder, "write"),
            "settling": (Ledger, "settle"),
            "listing rejects": (release_module, "write_rejects"),
            "drawing": (dptext.TextDistribution, "sample"),
            "texts": (DocumentWriter, "write"),
            "statement": (release_module, "write_statement"),
        }[step]
        patch.setattr(place, name, stop)
    return {"files": {"watch": (lambda reader: reader.watch(stop),)}} if step == "reading" else {}


def stop_run(step, kind, monkeypatch, **options):
    with monkeypatch.context() as patch:
        more = break_at(step, ERRORS[kind], patch)
        with pytest.raises(ERRORS[kind]) as caught:
            made(**more, **options)
    assert MARKER not in repr(caught.value) + " ".join(getattr(caught.value, "__notes__", ()))
    return " ".join(getattr(caught.value, "__notes__", ()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", STEPS)
def test_whatever_stops_a_run_people_are_counted_once_if_the_description_stands(step, kind, monkeypatch):
    """And it is finished for nothing, by the same command with --resume alone."""
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    notes = stop_run(step, kind, monkeypatch, ledger=BOOK)
    assert not OUT.exists()
    charged = Ledger(BOOK).releases()
    if STEPS[step] == BEFORE:
        assert names() == sorted([*START, BOOK])
        assert "--resume" not in notes
        assert len(charged) == (step != "reserving")
        for release in charged:  # no output exists, and still only the owner gives the budget back
            assert release.state == "pending"
            assert f"dptext ledger void {BOOK} {release.release_id}" in notes
            Ledger(BOOK).void(release.release_id)
        made(ledger=BOOK, resume=True)  # there is no description to go on with
    else:
        before = stated(FOLDER / "privacy.json")
        assert [entry.release_id for entry in charged] == [before.release_id]
        assert "--resume" in notes
        assert str(FOLDER) in notes
        content = (FOLDER / "privacy.json").read_bytes()
        message = assert_error(ParameterError, lambda: made(ledger=BOOK), str(FOLDER), "--resume", "costs again")
        assert "no further cost" in message
        with monkeypatch.context() as patch:  # nobody's texts are read again
            patch.setattr(PrivateFiles, "read", None)
            made(ledger=BOOK, resume=True)
        assert (FOLDER / "privacy.json").read_bytes() == content
    assert [entry.state for entry in Ledger(BOOK).releases()] == ["released"]
    assert Ledger(BOOK).left(f"{MARKER}3").spent == 2.0
    check_whole()
    assert names() == sorted([*WHOLE, BOOK])


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_release_in_place_of_another_stands_until_the_new_one_does(step, monkeypatch):
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    made(ledger=BOOK)
    old, content = check_whole(), OUT.read_bytes()
    notes = stop_run(step, "interrupt", monkeypatch, ledger=BOOK, force=True)
    assert OUT.read_bytes() == content
    name = stated(FOLDER / "privacy.json").release_id
    known = [release.release_id for release in Ledger(BOOK).releases()]
    if STEPS[step] == BEFORE:
        assert name == old.release_id
        assert len(known) == 1 + (step != "reserving")
        check_whole()
        assert "--resume" not in notes
        return
    assert name != old.release_id
    assert known == [old.release_id, name]
    assert "--resume" in notes
    message = assert_error(ParameterError, lambda: made(ledger=BOOK, resume=True), "--resume and --force together")
    assert "no further cost" in message
    assert OUT.read_bytes() == content
    made(ledger=BOOK, resume=True, force=True)
    assert check_whole().release_id == name
    assert [release.state for release in Ledger(BOOK).releases()] == ["released"] * 2
    assert names() == sorted([*WHOLE, BOOK])


@pytest.mark.parametrize("step", [entry for entry in STEPS if entry not in ("reserving", "settling")])
def test_without_a_ledger_a_stopped_run_goes_on_as_well(step, monkeypatch):
    stop_run(step, "interrupt", monkeypatch)
    assert FOLDER.is_dir() == (STEPS[step] == AFTER)
    made(resume=True)
    check_whole()
    assert names() == sorted(WHOLE)


def test_force_is_a_new_release_that_costs_again_and_a_finished_one_is_left():
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    made(ledger=BOOK)
    before = check_whole(), OUT.read_bytes()
    for options in ({}, {"resume": True}):
        assert_error(
            ParameterError, lambda options=options: made(ledger=BOOK, **options), "is there already", "costs again"
        )
        assert (check_whole(), OUT.read_bytes()) == before
    made(ledger=BOOK, force=True)
    assert check_whole().release_id != before[0].release_id
    assert Ledger(BOOK).left(f"{MARKER}3").spent == 4.0
    made(ledger=BOOK, force=True, resume=True)
    assert Ledger(BOOK).left(f"{MARKER}3").spent == 4.0


def test_a_ledger_that_refuses_leaves_nothing():
    Ledger.create(BOOK, epsilon=1, delta=1e-5)
    assert_error(RefusedError, lambda: made(ledger=BOOK), f"{PEOPLE} of {PEOPLE}")
    assert names() == sorted([*START, BOOK])
    assert not Ledger(BOOK).releases()
    assert_error(ParameterError, lambda: made(ledger=BOOK, how={"seed": 1}), "a seed voids the promise")


def test_an_input_that_changes_after_it_was_charged_is_not_released(monkeypatch):
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    reserve = Ledger.reserve

    def reserve_and_change(*given, **more):
        result = reserve(*given, **more)
        write(2 * PEOPLE + 1)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "reserve", reserve_and_change)
        # the reader is opened before: a file that is written in place changes under it
        assert_error(RefusedError, lambda: made(ledger=BOOK), "the input changed while it was being read")
    assert [release.state for release in Ledger(BOOK).releases()] == ["pending"]
    assert names() == sorted([*START, BOOK])


def test_a_pool_of_the_private_texts_is_refused_before_the_ledger_charges_anything():
    Ledger.create(BOOK, epsilon=2, delta=1e-5)
    texts = [f"{row['text']} {place}" for place, row in enumerate(rows())]
    private = [{**row, "text": text} for row, text in zip(rows(), texts, strict=True)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in private))
    message = assert_error(ParameterError, lambda: made(ledger=BOOK, n=2, draw={"public": texts}), "public pool")
    assert "Nothing was released" in message
    assert not Ledger(BOOK).releases()
    made(ledger=BOOK)


def test_a_release_that_is_voided_while_it_is_made_is_not_saved(monkeypatch):
    Ledger.create(BOOK, epsilon=2, delta=1e-5)
    total = synthesizer_module.SynthesisPlan.total

    def void(*given, **more):
        Ledger(BOOK).void(Ledger(BOOK).releases()[0].release_id)
        return total(*given, **more)

    monkeypatch.setattr(synthesizer_module.SynthesisPlan, "total", void)
    assert_error(RefusedError, lambda: made(ledger=BOOK), "was voided in the ledger")
    assert names() == sorted([*START, BOOK])


def test_a_release_that_was_killed_and_moved_away_stays_charged(monkeypatch):
    Ledger.create(BOOK, epsilon=2, delta=1e-5)
    with monkeypatch.context() as killed:  # after the folder is in place, before the ledger is settled
        killed.setattr(Ledger, "settle", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            made(ledger=BOOK)
    FOLDER.rename("handed on")
    message = assert_error(RefusedError, lambda: made(ledger=BOOK), "would be overspent", "1 pending")
    assert "until it is settled or you void it" in message
    assert [release.state for release in Ledger(BOOK).releases()] == ["pending"]
    assert Ledger(BOOK).left(f"{MARKER}3").spent == 2.0


@pytest.mark.parametrize("lock", [OUT, FOLDER])
def test_another_run_at_the_same_place_is_refused(lock):
    with atomic.file_lock(lock):
        assert_error(StorageError, made, "another process is writing")
    assert names() == START
    made()
    with atomic.file_lock(OUT):
        assert_error(StorageError, lambda: draw_file(FOLDER, OUT, Draw(n=3, public=["tea", "tax", "law"]), force=True))


def test_a_lock_that_a_killed_run_left_is_taken():
    left = [Path(".made.jsonl.lock"), Path(".made.jsonl.distribution.lock")]
    for entry in left:
        entry.touch(mode=0o600)
    made()
    assert names() == sorted(WHOLE)


# -- what must stay ---------------------------------------------------------------------------------------------------


def before_anything_is_read(monkeypatch):
    monkeypatch.setattr(PrivateFiles, "read", lambda *_: pytest.fail("a private file was opened"))


@pytest.mark.parametrize("options", [{}, {"force": True}, {"resume": True}, {"force": True, "resume": True}])
@pytest.mark.parametrize(
    ("out", "folder", "what"),
    [
        ("in.jsonl", None, "IN"),
        ("./in.jsonl", None, "IN"),
        ("linked.jsonl", None, "IN"),
        ("pool.txt", None, "the public texts"),
        ("book.jsonl", None, "the ledger"),
        ("made.jsonl", "in.jsonl", "IN"),
        ("made.jsonl", "pool.txt", "the public texts"),
        ("made.jsonl", "book.jsonl", "the ledger"),
        ("made.jsonl", "made.jsonl", "OUT"),
        ("made.jsonl", "made.jsonl.privacy.json", "OUT"),
        ("made.jsonl", ".", "lies around it"),
        ("made.jsonl", "..", "lies around it"),
    ],
)
def test_nothing_takes_the_place_of_what_it_is_made_from(out, folder, what, options, monkeypatch):
    Ledger.create("book.jsonl", epsilon=10, delta=1e-5)
    os.link("in.jsonl", "linked.jsonl")
    before = {name: Path(name).read_bytes() for name in names()}
    before_anything_is_read(monkeypatch)
    fields = {"labels": None} if out == "pool.txt" else {}
    with pytest.raises(ParameterError, match=what):
        made(out, distribution=folder, ledger="book.jsonl", how=fields, **options)
    assert {name: Path(name).read_bytes() for name in names()} == before


@pytest.mark.parametrize("pool", ["in.jsonl", "./in.jsonl", "linked.jsonl", "pointer.jsonl"])
def test_private_files_are_no_public_pool(pool, monkeypatch):
    """Its texts would come out as they are, under a promise."""
    os.link("in.jsonl", "linked.jsonl")
    Path("pointer.jsonl").symlink_to("in.jsonl")
    before = names()
    values = Pool([Path("pool.txt"), Path(pool)])
    before_anything_is_read(monkeypatch)
    with pytest.raises(ParameterError, match="both a file of IN and of the public pool"):
        made(draw={"public": values})
    assert names() == before


@pytest.mark.parametrize("options", [{}, {"force": True}, {"resume": True}])
def test_a_folder_of_somebody_else_is_never_replaced(options, monkeypatch):
    before_anything_is_read(monkeypatch)
    FOLDER.mkdir()
    (FOLDER / "mine").write_text("mine")
    with pytest.raises(ParameterError, match=r"there already|holds something besides"):
        made(**options)
    assert (FOLDER / "mine").read_text() == "mine"
    assert names() == sorted([*START, FOLDER.name])


def test_a_description_with_something_besides_is_never_replaced():
    made()
    (FOLDER / "mine").write_text("mine")
    for options in ({}, {"force": True}, {"resume": True}):
        with pytest.raises(ParameterError):
            made(**options)
    assert (FOLDER / "mine").read_text() == "mine"


def test_an_output_of_somebody_else_is_replaced_by_force_alone():
    OUT.write_text("mine")
    for options in ({}, {"resume": True}):
        assert_error(ParameterError, lambda options=options: made(**options), "is there already")
        assert OUT.read_text() == "mine"
        assert not FOLDER.exists()
    OUT.unlink()
    Path("made.jsonl.privacy.json").write_text("mine")
    for options in ({}, {"resume": True}):
        assert_error(ParameterError, lambda options=options: made(**options), "is there already")
    made(force=True)
    check_whole()


@pytest.mark.parametrize(
    ("out", "what"),
    [("pool.txt", "the public texts"), ("made.jsonl.distribution/more.jsonl", "lies in the folder"),
     ("made.jsonl.distribution/privacy.json", "lies in the folder"), ("made.jsonl.distribution", "lies in the folder")],
)  # fmt: skip
def test_more_texts_never_take_the_place_of_pool_or_description(out, what):
    made()
    before = {path: path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}
    with pytest.raises(ParameterError, match=what):
        draw_file(FOLDER, out, Draw(n=3, public=Pool([Path("pool.txt")])), force=True)
    assert {path: path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()} == before


def test_more_texts_of_a_description_for_nothing():
    made()
    draw = Draw(n=30, public=Pool([Path("pool.txt")]))
    release = draw_file(FOLDER, "more.csv", draw)
    assert release.documents == 30
    assert check_whole("more.csv").parameters["texts"] == 30
    assert_error(ParameterError, lambda: draw_file(FOLDER, "more.csv", draw), "is there already")
    before = Path("more.csv").read_bytes()
    assert_error(DataError, lambda: draw_file("nowhere", "more.csv", draw, force=True), "nowhere")
    assert Path("more.csv").read_bytes() == before


# -- rows that cannot be read -----------------------------------------------------------------------------------------


def test_rows_that_cannot_be_read_are_named_or_left_out_and_listed_for_the_owner():
    write(more=['{"text": "' + MARKER, json.dumps({"text": 7, "author": "x", "topic": MARKER})])
    assert_error(DataError, made, "in.jsonl", "row 25")
    assert names() == START
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    release = made(files={"on_error": "skip"}, ledger=BOOK)
    assert release.skipped == 2
    listed = Path("made.jsonl.rejects.jsonl")
    assert [(entry["first"], entry["last"]) for entry in map(json.loads, listed.read_text().splitlines())] == [
        (25, 25),
        (26, 26),
    ]
    assert listed.stat().st_mode & 0o777 == 0o600
    assert MARKER not in listed.read_text()
    assert Ledger(BOOK).summary().units == PEOPLE
    # in a noisy sum nobody sees that a row is missing: the promise covers it, and the statement says nothing of it
    assert "could not be read" not in check_whole().to_json()
    write()
    made(files={"on_error": "skip"}, ledger=BOOK, force=True)
    assert not listed.exists()


def test_a_run_that_goes_on_leaves_the_list_of_rejects(monkeypatch):
    write(more=["{"])
    stop_run("drawing", "interrupt", monkeypatch, files={"on_error": "skip"})
    listed = Path("made.jsonl.rejects.jsonl").read_bytes()
    made(files={"on_error": "skip"}, resume=True)
    assert Path("made.jsonl.rejects.jsonl").read_bytes() == listed


def test_nothing_but_bad_rows_is_an_error():
    Path("in.jsonl").write_text("{\n[]\n")
    assert_error(DataError, lambda: made(files={"on_error": "skip"}), "row 1")
    assert names() == START


# -- what is public is checked before anything is spent ---------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["txt", "txt.gz"])
def test_a_text_that_the_format_cannot_hold_is_found_before_the_release(suffix, monkeypatch):
    before_anything_is_read(monkeypatch)
    pool = ["tea", "tea", "tax law", "cup\nof tea"]
    fields = {"labels": None} if "txt" in suffix else {}
    assert_error(
        DataError, lambda: made(f"made.{suffix}", n=2, draw={"public": pool}, how=fields), "pool", "row 3", ".jsonl"
    )
    assert names() == START


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "csv.gz"])
def test_odd_characters_come_back_as_they_were(suffix):
    pool = [
        'tea "quoted", with comma',
        "tax\nlaw",
        "tax\r\nlaw cup",
        "cup\x00tea",
        "law\u2028tea",
        "\ufefflaw",
        "'=1+1 tea",
    ]
    made(f"made.{suffix}", n=len(pool), draw={"public": pool})
    read = {document.text for document in dptext.read_documents(f"made.{suffix}")}
    assert read == set(Pool(pool).texts)


@pytest.mark.parametrize(
    ("draw", "what"),
    [({"variety": 2.0}, "variety"), ({"shares": "mine"}, "shares"), ({"rounds": 0}, "rounds"), ({"seed": "x"}, "seed"),
     ({"cache": 7}, "cache"), ({"public": ["tea"]}, "n must be at most")],
)  # fmt: skip
def test_what_is_wrong_with_a_draw_is_found_before_the_release(draw, what, monkeypatch):
    before_anything_is_read(monkeypatch)
    with pytest.raises(ParameterError, match=what) as caught:
        made(draw=draw)
    assert_silent(caught.value)
    assert names() == START


def test_text_user_and_labels_are_different_columns():
    for files in ({"text": "topic"}, {"user": "topic"}):
        with pytest.raises(ParameterError):
            made(files=files)
    assert names() == START


# -- going on with the right description ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"epsilon": 1.0}, "epsilon"),
        ({"delta": 1e-7}, "delta"),
        ({"most_documents": 3}, "most_documents"),
        ({"unit": "document"}, "unit"),
        ({"labels": {"topic": ["rules", "drinks"]}}, "labels"),
        ({"labels": {"topic": ["drinks", "rule"]}}, "labels"),
        ({"labels": {"subject": ["drinks", "rules"]}}, "label_columns"),
        ({"labels": None}, "classes"),
        ({"seed": 3}, "seeded"),
        (
            {"features": MeanOfWords(dptext.load_vectors((WORDS, np.random.default_rng(2).normal(size=(6, 3)))))},
            "sha256",
        ),
        ({"features": MeanOfWords(dptext.load_vectors((WORDS, np.eye(6))))}, "features_dimension"),
    ],
)
def test_a_description_of_another_plan_is_not_gone_on_with(how, what, monkeypatch):
    stop_run("drawing", "interrupt", monkeypatch)
    before = {path: path.read_bytes() for path in sorted(FOLDER.iterdir())}
    files = {"user": None} if how.get("unit") == "document" else {}
    message = assert_error(
        ParameterError, lambda: made(how=how, files=files, resume=True), "made with other arguments", what
    )
    assert "costs again" in message
    assert {path: path.read_bytes() for path in sorted(FOLDER.iterdir())} == before
    made(resume=True)


def test_a_description_that_the_ledger_does_not_count_is_not_gone_on_with(monkeypatch):
    stop_run("drawing", "interrupt", monkeypatch)
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    assert_error(ParameterError, lambda: made(ledger=BOOK, resume=True), "was not charged to this ledger")
    assert not Ledger(BOOK).releases()
    made(resume=True)


def test_a_release_that_is_pending_is_settled_even_if_the_job_beside_it_is_lost(monkeypatch):
    Ledger.create(BOOK, epsilon=10, delta=1e-5)
    stop_run("settling", "disk", monkeypatch, ledger=BOOK)
    for path in Path().glob(".made*"):
        path.unlink()
    assert [release.state for release in Ledger(BOOK).releases()] == ["pending"]
    made(ledger=BOOK, resume=True)
    assert [release.state for release in Ledger(BOOK).releases()] == ["released"]


def test_a_pool_that_changed_is_another_plan(monkeypatch):
    stop_run("drawing", "interrupt", monkeypatch)
    with open("pool.txt", "a") as stream:
        stream.write("cocoa tax tea\n")
    assert_error(ParameterError, lambda: made(resume=True), "made with other arguments", "features_fitted_on_sha256")
    assert draw_file(FOLDER, OUT, Draw(n=5, public=Pool([Path("pool.txt")]))).documents == 5  # as it is, it may be used
    parameters = check_whole().parameters
    assert parameters["pool_sha256"] != parameters["features_fitted_on_sha256"]


def test_a_folder_that_was_changed_is_refused_when_a_run_goes_on(monkeypatch):
    stop_run("drawing", "interrupt", monkeypatch)
    content = (FOLDER / "distribution.safetensors").read_bytes()
    (FOLDER / "distribution.safetensors").write_bytes(content[:-1] + b"x")
    with pytest.raises(DataError):
        made(resume=True)
    assert not OUT.exists()
    statement = stated(FOLDER / "privacy.json")
    (FOLDER / "distribution.safetensors").write_bytes(content)
    changed = statement.replace(parameters={**statement.parameters, "most_documents": 7})
    (FOLDER / "privacy.json").write_text(changed.to_json())
    with pytest.raises((DataError, ParameterError)):
        made(resume=True)
    assert not OUT.exists()


def test_a_description_without_texts_and_its_twin_that_forgets_to_compare():
    plan = synthesizer().plan(Pool([Path("pool.txt")]))
    source = PrivateFiles(paths="in.jsonl", user="author")
    result = source.describe(FOLDER, synthesizer(), plan)
    assert earlier(Path("elsewhere"), plan) is None
    assert earlier(FOLDER, plan).statement.release_id == result.statement.release_id
    other = synthesizer(unit="document").plan(Pool([Path("pool.txt")]))
    assert other.promise.guarantee == plan.promise.guarantee  # what a comparison of budgets alone would let pass
    assert dict(other.promise.parameters) == dict(plan.promise.parameters)
    with pytest.raises(ParameterError, match="unit"):
        earlier(FOLDER, other)
    assert_error(ParameterError, lambda: source.describe(FOLDER, synthesizer(), plan), "is there already")
