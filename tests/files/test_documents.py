"""Documents: what is read beside the text, files one after the other, what is skipped, and what stays open."""

import gc
import hashlib
import io
import itertools
import os
import sys
import tracemalloc

import pytest
from sample_files import (
    LINES,
    SUFFIXES,
    WITH_COLUMNS,
    WITH_NULL,
    damage,
    packed,
    put,
    raw,
    read,
    rows_and_rejects,
    table,
)
from secrecy import MARKER, assert_error

from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.batches import Reject, as_lists
from dptext.io.documents import Document, read_documents


def opened(path):
    """How often this process has a file open."""
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):
        pytest.skip("needs /proc")
    found = [os.path.join(folder, name) for name in os.listdir(folder)]
    return sum(os.path.realpath(name) == os.path.realpath(path) for name in found)


def test_a_document_shows_nothing_of_what_it_holds():
    document = Document(MARKER, user=MARKER, label=5, attributes={"name": MARKER})
    assert MARKER not in f"{document!r} {document}"
    assert document == Document(MARKER, user=MARKER, label=5, attributes={"name": MARKER})


# -- what is read beside the text -----------------------------------------------------------------------------

ROWS = [
    {"text": "one", "author": 7, "stars": 5, "age": 30, "name": "x"},
    {"text": "two", "author": None, "stars": None, "age": 31, "name": "y"},
]


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_user_label_and_kept_columns_are_read_and_all_others_are_dropped(tmp_path, suffix):
    columns = {name: [row[name] for row in ROWS] for name in ("author", "stars", "age", "name")}
    path = put(tmp_path / f"a{suffix}", ["one", "two"], columns)
    typed = suffix in WITH_NULL
    expected = [
        Document("one", user="7", label=5 if typed else "5", attributes={"age": 30 if typed else "30"}),
        Document(
            "two",
            user=None if typed else "",
            label=None if typed else "",
            attributes={"age": 31 if typed else "31"},
        ),
    ]
    assert list(read_documents(path, user="author", label="stars", keep=("age",))) == expected
    assert list(read_documents(path)) == [Document("one"), Document("two")]


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_a_column_may_be_user_label_and_kept_at_once(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", ["one"], {"name": ["x"]})
    (document,) = read_documents(path, user="name", label="name", keep=("name",))
    assert document == Document("one", user="x", label="x", attributes={"name": "x"})


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_a_label_may_be_the_text(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", ["one", "two"])
    assert [document.label for document in read_documents(path, label="text")] == ["one", "two"]


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_the_text_column_may_have_another_name(tmp_path, suffix):
    path = put(tmp_path / f"data{suffix}", ["one"], text="review, full")
    assert read(path, text="review, full") == ["one"]


@pytest.mark.parametrize("options", [{"user": "who"}, {"label": "stars"}, {"keep": ("age",)}])
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.zst"])
def test_a_txt_file_has_no_columns(tmp_path, options, suffix):
    path = raw(tmp_path / f"a{suffix}", f"{MARKER}\n")
    assert assert_error(ParameterError, lambda: read_documents(path, **options)) == (
        f"a .txt file has no columns to keep ('a{suffix}'): use .jsonl or .csv, or keep nothing"
    )


@pytest.mark.parametrize("on_error", ["ignore", "", None, True])
def test_what_to_do_with_broken_rows_is_one_of_two(tmp_path, on_error):
    path = raw(tmp_path / "a.txt", "one\n")
    assert assert_error(ParameterError, lambda: read_documents(path, on_error=on_error)) == (
        f"on_error must be one of 'fail', 'skip', got {repr(on_error) if on_error != '' else 'another text'}"
    )


# -- where it comes from --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_format_may_be_told_where_the_name_does_not(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", ["one", "two"]).rename(tmp_path / "a.download")
    assert read(path, suffix=suffix) == ["one", "two"]
    assert read(path.rename(tmp_path / "a.txt.zst"), suffix=suffix) == ["one", "two"]


@pytest.mark.parametrize("suffix", LINES)
def test_standard_input_is_read_as_it_is_told(monkeypatch, suffix):
    header = "text\n" if ".csv" in suffix or ".tsv" in suffix else ""
    lines = ['{"text": "one"}\n', '{"text": "two"}'] if "json" in suffix else ["one\n", "two"]
    stream = io.TextIOWrapper(io.BytesIO(packed(f"a{suffix}", header + "".join(lines))))
    monkeypatch.setattr(sys, "stdin", stream)
    reader = read_documents("-", suffix=suffix)
    assert [document.text for document in reader] == ["one", "two"]
    assert (reader.size, reader.position) == (0, 0)


def test_a_broken_row_of_standard_input_is_named(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{MARKER}\n".encode())))
    message = assert_error(DataError, lambda: list(read_documents("-", suffix=".jsonl")))
    assert message.startswith("standard input, row 1: expected a JSON object")


def test_files_follow_each_other_and_count_their_own_rows(tmp_path):
    first = raw(tmp_path / "a.jsonl", '{"text": "a1", "n": 1}\nbroken\n')
    second = put(tmp_path / "b.csv.gz", ["b1", "b2"], {"n": ["2", "3"]})
    third = put(tmp_path / "c.parquet", ["c1"], {"n": [4]})
    fourth = raw(tmp_path / "d.tsv", "n\ttext\n5\td1\n6\n")
    reader = read_documents([first, second, third, fourth], keep=("n",), on_error="skip")
    assert reader.size == sum(path.stat().st_size for path in (first, second, third, fourth))
    found = [(document.text, document.attributes["n"]) for document in reader]
    assert found == [("a1", 1), ("b1", "2"), ("b2", "3"), ("c1", 4), ("d1", "5")]
    assert [(reject.file, reject.first) for reject in reader.rejects] == [("a.jsonl", 2), ("d.tsv", 2)]
    assert reader.count == 5
    assert reader.position == reader.size


def test_blocks_never_hold_rows_of_two_files(tmp_path):
    paths = [raw(tmp_path / f"{name}.txt", f"{name}\n") for name in "abc"]
    assert [list(block.texts) for block in read_documents(paths).batches()] == [["a"], ["b"], ["c"]]


def test_a_file_that_is_missing_is_found_out_before_the_first_is_read(tmp_path):
    path = raw(tmp_path / "a.txt", "one\n")
    assert_error(StorageError, lambda: read_documents([path, tmp_path / "no.txt"]), "cannot open", "no.txt")
    assert opened(path) == 0


def test_an_empty_file_among_others_is_no_error_and_empty_files_alone_are(tmp_path):
    paths = [raw(tmp_path / f"{name}.txt", data) for name, data in [("a", ""), ("b", "b\n"), ("c", ""), ("d", "")]]
    assert read(paths[:3]) == ["b"]
    others = [paths[0], *paths[2:], raw(tmp_path / "e.txt", "")]
    assert assert_error(DataError, lambda: read(others)) == (
        "a.txt, c.txt, d.txt holds no documents: expected at least one row"
    )
    assert_error(DataError, lambda: read([]), "holds no documents")


@pytest.mark.skipif(sys.platform != "linux", reason="sets a limit")
def test_more_files_than_the_system_opens_at_once_are_read(tmp_path):
    import resource

    paths = [raw(tmp_path / f"{n}.txt", f"{n}\n") for n in range(60)]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = len(os.listdir("/proc/self/fd")) + 30
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        assert read(paths) == [str(n) for n in range(60)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.skipif(os.name == "nt", reason="Windows does not allow such names")
@pytest.mark.parametrize(
    ("suffix", "data"), [(".txt", b"\xff"), (".jsonl", b"\n"), (".csv", b"a\n"), (".tsv", b"a\n"), (".parquet", b"")]
)
def test_a_line_break_in_a_file_name_breaks_no_message(tmp_path, suffix, data):
    path = raw(tmp_path / f"a\nb{suffix}", data)
    assert_error(DataError, lambda: read(path))


# -- what is skipped ------------------------------------------------------------------------------------------


def test_rows_that_cannot_be_read_are_left_out_in_order_and_listed(tmp_path):
    good = [f'{{"text": "{n}", "n": {n}}}' for n in range(6)]
    lines = [good[0], MARKER, good[1], f'{{"text": 5, "n": "{MARKER}"}}', '{"text": "x"}', good[2], "", *good[3:], "["]
    reader = read_documents(raw(tmp_path / "a.jsonl", "\n".join(lines)), keep=("n",), on_error="skip")
    found = list(reader)
    assert found == [Document(str(n), attributes={"n": n}) for n in range(6)]
    cut = "repair it, or copy the file again if it was cut"
    assert reader.rejects == [
        Reject("a.jsonl", 2, 2, f"expected a JSON object, the line is not valid JSON; {cut}"),
        Reject("a.jsonl", 4, 4, "expected a string in 'text', the value is of type int"),
        Reject("a.jsonl", 5, 5, "expected a column 'n', the row has none; name the right column or repair the row"),
        Reject("a.jsonl", 7, 7, f"expected a JSON object, the line is empty; {cut}"),
        Reject("a.jsonl", 11, 11, f"expected a JSON object, the line is not valid JSON; {cut}"),
    ]
    assert MARKER not in repr(reader.rejects)
    assert reader.count == 6


def test_rejects_are_there_when_their_block_is(tmp_path):
    reader = read_documents(raw(tmp_path / "a.jsonl", "[\n" + '{"text": "x"}\n' * 3), on_error="skip")
    assert reader.rejects == []
    next(reader)
    assert [reject.first for reject in reader.rejects] == [1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_is_rejected_where_nothing_is_broken(tmp_path, suffix):
    assert rows_and_rejects(put(tmp_path / f"a{suffix}", ["one", "two"])) == (["one", "two"], [])


# -- blocks and their order -----------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
@pytest.mark.parametrize(
    ("suffix", "first", "broken"),
    [
        (".txt", b"one\n", b"\xff\n"),
        (".jsonl", b'{"text": "one"}\n', b"{\n"),
        (".csv", b"text\none\n", b'"a"b\n'),
        (".tsv", b"text\none\n", b"a\tb\n"),
    ],
)
def test_a_full_block_is_there_before_a_later_row_is_looked_at(
    tmp_path, monkeypatch, suffix, first, broken, compression
):
    monkeypatch.setattr("dptext.io.batches.BATCH_ROWS", 1)
    reader = read_documents(raw(tmp_path / f"a{suffix}{compression}", first + broken))
    assert next(reader).text == "one"
    with pytest.raises(DataError):
        next(reader)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_reader_reads_as_far_as_it_was_asked(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("dptext.io.batches.BATCH_ROWS", 200)
    lines = [hashlib.sha512(f"incompressible {n}".encode()).hexdigest() for n in range(10_000)]
    path = put(tmp_path / f"a{suffix}", lines)
    reader = read_documents(path)
    assert reader.size == path.stat().st_size
    assert reader.position == 0
    assert [document.text for document in itertools.islice(reader, 100)] == lines[:100]
    assert 0 < reader.position < 0.5 * reader.size
    assert [document.text for document in reader] == lines[100:]
    assert reader.position == reader.size
    assert reader.count == len(lines)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".txt", ".jsonl.gz", ".csv.zst", ".tsv"])
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("dptext.io.batches.BATCH_ROWS", 500)
    lines = [hashlib.sha512(f"incompressible {n}".encode()).hexdigest() for n in range(20_000)]
    reader = read_documents(put(tmp_path / f"a{suffix}", lines))
    del lines
    gc.collect()
    tracemalloc.start()
    try:
        assert sum(len(as_lists(block.columns)) + len(block.texts) for block in reader.batches()) == 20_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 << 20, "the texts alone have more"


# -- how it ends ----------------------------------------------------------------------------------------------


def test_a_reader_is_read_once_and_stays_at_its_end(tmp_path):
    reader = read_documents(raw(tmp_path / "a.txt", "one\ntwo\n"))
    assert iter(reader) is reader
    assert len(list(reader)) == 2
    assert list(reader) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_reader_leaves_no_file_open_however_it_ends(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("dptext.io.batches.BATCH_ROWS", 1)
    path = put(tmp_path / f"a{suffix}", ["one", "two"])
    finished, closed, abandoned = read_documents(path), read_documents(path), read_documents(path)
    list(finished)
    next(closed)
    closed.close()
    closed.close()
    next(abandoned)
    del abandoned
    gc.collect(1)  # what was made just now: all of it would take a second in a long run
    assert opened(path) == 0
    unread = read_documents(path)
    assert opened(path) <= 1
    del unread
    gc.collect(1)
    assert opened(path) == 0


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_reader_closes_its_file_when_a_row_is_broken(tmp_path, suffix):
    if suffix == ".parquet":
        path = damage(table(tmp_path / "a.parquet", {"text": ["one", "two"]}), 0)
    else:
        path = raw(tmp_path / f"a{suffix}", b"text\n\xff\n")
    reader = read_documents(path)
    with pytest.raises(DataError):
        list(reader)
    assert opened(path) == 0


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_a_reader_that_cannot_begin_leaves_no_file_open(tmp_path, suffix, on_error):
    first = put(tmp_path / f"a{suffix}", ["one"])
    second = table(tmp_path / "b.parquet", {"other": ["one"]})
    third = raw(tmp_path / "c.parquet", b"PAR1")
    for bad in (second, third, tmp_path / "no.txt"):
        with pytest.raises((DataError, StorageError)):
            list(read_documents([first, bad], on_error=on_error))
        assert [opened(path) for path in (first, second, third)] == [0, 0, 0]


def test_a_watcher_sees_every_block_before_it_is_worked_on(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    reader = read_documents(tmp_path / "a.txt")
    seen = []
    reader.watch(lambda block: seen.append((list(block.texts), reader.count)))
    for block in reader.batches(by_rows=2):
        assert seen[-1] == (list(block.texts), reader.count)
    assert [count for _, count in seen] == [2, 3]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("suffix", [".txt", ".jsonl", ".csv.gz", ".tsv.zst"])
def test_a_named_pipe_is_read_once_from_start_to_end(tmp_path, suffix):
    source, pipe = put(tmp_path / f"a{suffix}", ["one", "two"]), tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    # both ends, so that no opening waits; the few bytes fit into the pipe
    held = os.open(pipe, os.O_RDWR)
    os.write(held, source.read_bytes())
    reader = read_documents([pipe, source])
    os.close(held)
    assert [document.text for document in reader] == ["one", "two", "one", "two"]
    assert reader.size == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_parquet_is_not_read_from_a_pipe_or_a_device(tmp_path):
    os.mkfifo(tmp_path / "a.parquet")
    held = os.open(tmp_path / "a.parquet", os.O_RDWR)
    try:
        with pytest.raises(ParameterError, match=r"cannot be read from 'a\.parquet', a pipe or a device: name"):
            read_documents(tmp_path / "a.parquet")
    finally:
        os.close(held)
    with pytest.raises(ParameterError, match="cannot be read from 'null', a pipe or a device: name a file"):
        read_documents(os.devnull, suffix=".parquet")


def test_a_device_without_rows_holds_no_documents():
    with pytest.raises(DataError, match="null holds no documents"):
        list(read_documents(os.devnull, suffix=".jsonl"))
