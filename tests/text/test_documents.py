"""Documents and their files: what is written is read back, broken rows are named and never quoted."""

import csv
import errno
import gc
import gzip
import hashlib
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dptext.errors import DataError, ParameterError, StorageError
from dptext.text import documents
from dptext.text.documents import Document, DocumentWriter, file_digest, read_documents, replacing

MARKER = "qsecretq"
"""Stands in every broken row; no message may hold it."""

SUFFIXES = [".txt", ".jsonl", ".csv", ".txt.gz", ".jsonl.gz", ".csv.gz"]
encodable = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
awkward = st.lists(
    st.sampled_from(
        ["\r", "\n", "\r\n", '"', '""', ",", ";", "\t", "\x00", "\x1a", "\u2028", "\u0085", "\ufeff", " ", "a"]
    ),
    max_size=6,
).map("".join)
texts = encodable | awkward


def in_txt(text):
    return "\n" not in text and not text.endswith("\r")


def put(path, texts, **options):
    with replacing(path) as stream:
        writer = DocumentWriter(path, stream, **options)
        for text in texts:
            writer.write(text if isinstance(text, Document) else Document(text))
        writer.close()
    return path


def read(path, **options):
    return [document.text for document in read_documents(path, **options)]


def raw(path, data):
    """A file with these bytes, compressed if its name says so."""
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def assert_error(kind, act, *parts):
    """The error names each part on one line, quotes no row, and drags no other error along."""
    with pytest.raises(kind) as caught:
        act()
    error = caught.value
    message = str(error)
    for part in parts:
        assert part in message
    assert len(message.splitlines()) == 1
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    # errors of decoders carry what they were decoding
    assert not any(MARKER in repr(value) for value in (vars(error.__context__) if error.__context__ else {}).values())
    assert MARKER not in repr(getattr(error.__context__, "object", ""))
    assert MARKER not in message + repr(error) + "".join(traceback.format_exception(error))
    return message


def test_a_document_shows_nothing_of_what_it_holds():
    document = Document(MARKER, user=MARKER, label=5, attributes={"name": MARKER})
    assert MARKER not in f"{document!r} {document}"
    assert document == Document(MARKER, user=MARKER, label=5, attributes={"name": MARKER})


# -- round trips ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_documents_are_read_back_as_they_were_written(suffix):
    @settings(deadline=None, max_examples=150)
    @given(st.lists(texts.filter(in_txt) if ".txt" in suffix else texts, min_size=1, max_size=5))
    @example([""])
    @example(["", ""])
    @example([" "])
    @example(["a\rb"])
    @example(["\rb"])
    @example(['"', "'", ",", "\\"])
    @example(["\u2028\u2029\u0085\x0b\x0c\x1c"])
    @example(["\x00"])
    @example(["x", "\ufeffx"])
    def check(written):
        with tempfile.TemporaryDirectory() as folder:
            path = put(Path(folder) / f"data{suffix}", written)
            assert read(path) == written

    check()


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".jsonl.gz", ".csv.gz"])
@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\r", "\n", "\r", "\r\n", "a\rb", "\ufeffa"])
def test_line_breaks_survive_in_formats_that_have_quotes(tmp_path, suffix, text):
    assert read(put(tmp_path / f"data{suffix}", [text, "next"])) == [text, "next"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_byte_order_mark_at_the_start_of_the_first_text_is_not_lost(tmp_path, suffix):
    assert read(put(tmp_path / f"data{suffix}", ["\ufefffirst", "second"])) == ["\ufefffirst", "second"]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_kept_columns_of_csv_come_back_as_text(tmp_path, suffix):
    @settings(deadline=None, max_examples=50)
    @given(texts, texts, st.integers())
    def check(text, stars, number):
        path = put(
            tmp_path / f"data{suffix}",
            [Document(text, attributes={"stars": stars, "number": number, "dropped": "x"})],
            keep=("stars", "number"),
        )
        (document,) = read_documents(path, keep=("stars", "number"))
        assert document == Document(text, attributes={"stars": stars, "number": str(number)})

    check()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | encodable,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(encodable, inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_kept_columns_of_jsonl_come_back_with_their_types(tmp_path, suffix):
    @settings(deadline=None, max_examples=50)
    @given(texts, json_values)
    def check(text, value):
        path = put(tmp_path / f"data{suffix}", [Document(text, attributes={"stars": value})], keep=("stars",))
        (document,) = read_documents(path, keep=("stars",))
        assert document == Document(text, attributes={"stars": value})

    check()


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_the_text_column_may_have_another_name(tmp_path, suffix):
    path = put(tmp_path / f"data{suffix}", ["one"], text="review, full")
    assert read(path, text="review, full") == ["one"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_equal_documents_give_equal_bytes(tmp_path, suffix):
    (tmp_path / "elsewhere").mkdir()
    first = put(tmp_path / f"first{suffix}", ["one", "two"])
    second = put(tmp_path / "elsewhere" / f"second{suffix}", ["one", "two"])
    os.utime(first, (0, 0))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != put(first, ["one", "too"]).read_bytes()


def test_a_gzip_header_holds_neither_name_nor_time(tmp_path):
    header = put(tmp_path / "named.txt.gz", ["one"]).read_bytes()[:10]
    assert header[:2] == b"\x1f\x8b"
    assert header[3] == 0, "no name"
    assert header[4:8] == bytes(4), "no time"


def test_files_are_what_other_programs_read(tmp_path):
    written = ["plain", 'with "quotes", and\nbreaks\r\n', "Ünïcödé 😀\u2028"]
    lines = put(tmp_path / "data.jsonl", written).read_bytes().decode().split("\n")
    assert [json.loads(line)["text"] for line in lines[:-1]] == written
    put(tmp_path / "data.csv", written)
    with (tmp_path / "data.csv").open(newline="", encoding="utf-8") as stream:
        assert list(csv.DictReader(stream)) == [{"text": text} for text in written]
    assert gzip.decompress(put(tmp_path / "data.txt.gz", ["a", "b"]).read_bytes()) == b"a\nb\n"


# -- reading: what is accepted --------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", "one\ntwo\n"),
        ("a.txt", "one\ntwo"),
        ("a.txt", "one\r\ntwo\r\n"),
        ("a.txt", "one\r\r\ntwo\r"),
        ("a.txt", "\ufeffone\ntwo\n"),
        ("a.TXT", "one\ntwo\n"),
        ("a.b.txt", "one\ntwo\n"),
        ("a.jsonl", '{"text": "one"}\n{"text": "two"}'),
        ("a.jsonl", '{"text": "one"}\r\n{"text": "two"}\r\n'),
        ("a.jsonl", '\ufeff{"text": "one"}\n {"x": 1, "text": "\\u0074wo"} \n'),
        ("a.csv", "text\none\ntwo\n"),
        ("a.csv", "\ufefftext\r\none\r\ntwo"),
        ("a.csv", '\ufeff"text"\r\n"one"\r\n"two"\r\n'),
        ("a.csv", "id,text\n1,one\n2,two\n"),
        ("a.csv", 'text,id\n"one",""\ntwo,\n'),
    ],
)
def test_files_of_other_programs_are_read(tmp_path, name, data, zipped):
    assert read(raw(tmp_path / (name + zipped), data)) == ["one", "two"]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_a_line_feed_ends_a_line(tmp_path, separator):
    assert read(raw(tmp_path / "a.txt", f"one{separator}still one\ntwo\n")) == [f"one{separator}still one", "two"]


def test_a_byte_order_mark_is_dropped_at_the_start_only(tmp_path):
    assert read(raw(tmp_path / "a.txt", "\ufeffone\n\ufefftwo\n")) == ["one", "\ufefftwo"]


def test_empty_lines_of_a_txt_file_are_empty_documents(tmp_path):
    assert read(raw(tmp_path / "a.txt", "\n\none\n\n")) == ["", "", "one", ""]


def test_quoted_cells_of_csv_hold_commas_quotes_and_line_breaks(tmp_path):
    data = 'text,id\n"a, ""b""\r\nc\n",1\n'
    assert read(raw(tmp_path / "a.csv", data)) == ['a, "b"\r\nc\n']


def test_user_label_and_kept_columns_are_read_and_all_others_are_dropped(tmp_path):
    rows = [
        {"text": "one", "author": 7, "stars": 5, "age": 30, "name": "x"},
        {"text": "two", "author": None, "stars": None, "age": [1], "name": "y"},
    ]
    path = raw(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    assert list(read_documents(path, user="author", label="stars", keep=("age",))) == [
        Document("one", user="7", label=5, attributes={"age": 30}),
        Document("two", user=None, label=None, attributes={"age": [1]}),
    ]
    assert list(read_documents(path)) == [Document("one"), Document("two")]


def test_a_cell_of_csv_may_be_longer_than_the_csv_module_allows_by_itself(tmp_path):
    long = "x" * 300_000
    assert read(put(tmp_path / "a.csv", [long])) == [long]


def test_members_of_a_gzip_file_follow_each_other(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert read(path) == ["one", "two"]


# -- reading: what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "a.xml", "a.gz", "a.tsv", "a.txt.zip", "a.csv.gz.gz", ".txt", "a.json", "a."])
def test_an_unknown_suffix_is_refused_with_those_that_are_known(tmp_path, name):
    (tmp_path / name).write_text("one\n")
    assert_error(ParameterError, lambda: read_documents(tmp_path / name), ".txt, .jsonl or .csv", repr(name))
    assert_error(ParameterError, lambda: DocumentWriter(name, io.BytesIO()), ".txt, .jsonl or .csv", repr(name))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_and_a_folder_are_storage_errors(tmp_path, suffix):
    assert_error(StorageError, lambda: read_documents(tmp_path / f"no{suffix}"), f"no{suffix}", "No such file")
    (tmp_path / f"folder{suffix}").mkdir()
    assert_error(StorageError, lambda: read_documents(tmp_path / f"folder{suffix}"), f"folder{suffix}")


def test_a_file_that_may_not_be_read_is_a_storage_error(tmp_path):
    path = raw(tmp_path / "a.txt", "one\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert_error(StorageError, lambda: read_documents(path), "Permission denied")


def test_a_disk_that_fails_while_reading_is_a_storage_error():
    class Failing(io.BytesIO):
        def readline(self, *_):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    assert_error(StorageError, lambda: list(documents._lines(Failing(), "a.txt")), "a.txt", os.strerror(errno.EIO))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_file_holds_no_documents(tmp_path, suffix):
    path = raw(tmp_path / f"a{suffix}", b"")
    assert_error(DataError, lambda: list(read_documents(path)), f"a{suffix} holds no documents")
    path.write_bytes(b"")
    assert_error(DataError, lambda: list(read_documents(path)), f"a{suffix} holds no documents")


@pytest.mark.parametrize("data", ["text\n", "text", "\ufefftext,id\r\n"])
def test_a_header_alone_holds_no_documents(tmp_path, data):
    path = raw(tmp_path / "a.csv", data)
    assert_error(DataError, lambda: list(read_documents(path)), "holds no documents")


BROKEN = {
    # name of the file, content, options, what the message must name
    "latin-1 in txt": ("a.txt", f"one\ntwo\n{MARKER}é".encode("latin-1"), {}, ["line 3", "UTF-8", "byte 9"]),
    "latin-1 in jsonl": ("a.jsonl", f'{{"text": "{MARKER}é"}}\n'.encode("latin-1"), {}, ["line 1", "UTF-8"]),
    "latin-1 in csv": ("a.csv", f"text\n{MARKER}é\n".encode("latin-1"), {}, ["line 2", "UTF-8"]),
    "latin-1 in gz": ("a.txt.gz", f"{MARKER}é\n".encode("latin-1"), {}, ["line 1", "UTF-8"]),
    "utf-16": ("a.txt", f"{MARKER}\n".encode("utf-16"), {}, ["line 1", "UTF-8"]),
    "half a character": ("a.txt", f"{MARKER}é".encode()[:-1], {}, ["line 1", "UTF-8"]),
    "encoded surrogate": ("a.txt", MARKER.encode() + b"\xed\xa0\x80\n", {}, ["line 1", "UTF-8"]),
    "no json": ("a.jsonl", f'{{"text": "one"}}\n{MARKER}\n', {}, ["row 2", "not valid JSON"]),
    "cut json": ("a.jsonl", f'{{"text": "one"}}\n{{"text": "{MARKER}', {}, ["row 2", "not valid JSON", "cut"]),
    "trailing json": ("a.jsonl", f'{{"text": "{MARKER}"}} {{}}\n', {}, ["row 1", "not valid JSON"]),
    "raw break in json": ("a.jsonl", f'{{"text": "{MARKER}\n"}}\n', {}, ["row 1", "not valid JSON"]),
    "empty json line": ("a.jsonl", f'{{"text": "{MARKER}"}}\n\n{{"text": "x"}}\n', {}, ["row 2", "is empty"]),
    "blank json line": ("a.jsonl", f'{{"text": "{MARKER}"}}\n  \t\n', {}, ["row 2", "is empty"]),
    "deep json": ("a.jsonl", f'{{"{MARKER}": ' + "[" * 100_000, {}, ["row 1", "not valid JSON"]),
    "long number": ("a.jsonl", f'{{"text": "{MARKER}", "n": {"1" * 5000}}}\n', {}, ["row 1"]),
    "json list": ("a.jsonl", f'["{MARKER}"]\n', {}, ["row 1", "JSON object"]),
    "json string": ("a.jsonl", f'"{MARKER}"\n', {}, ["row 1", "JSON object"]),
    "json null": ("a.jsonl", "null\n", {}, ["row 1", "JSON object"]),
    "no text column": ("a.jsonl", f'{{"review": "{MARKER}"}}\n', {}, ["row 1", "'text'"]),
    "lost text column": ("a.jsonl", f'{{"text": "x"}}\n{{"tex": "{MARKER}"}}\n', {}, ["row 2", "'text'"]),
    "null text": ("a.jsonl", f'{{"text": null, "x": "{MARKER}"}}\n', {}, ["row 1", "'text'", "null"]),
    "number text": ("a.jsonl", f'{{"text": 5, "x": "{MARKER}"}}\n', {}, ["row 1", "'text'", "int"]),
    "list text": ("a.jsonl", f'{{"text": ["{MARKER}"]}}\n', {}, ["row 1", "'text'", "list"]),
    "no user": ("a.jsonl", f'{{"text": "{MARKER}"}}\n', {"user": "who"}, ["row 1", "'who'"]),
    "no label": ("a.jsonl", f'{{"text": "{MARKER}"}}\n', {"label": "stars"}, ["row 1", "'stars'"]),
    "no kept column": ("a.jsonl", f'{{"text": "{MARKER}"}}\n', {"keep": ("age",)}, ["row 1", "'age'"]),
    "no column in csv": ("a.csv", f"review\n{MARKER}\n", {}, ["row 1", "'text'"]),
    "no kept column in csv": ("a.csv", f"text\n{MARKER}\n", {"keep": ["age"]}, ["row 1", "'age'"]),
    "too many cells": ("a.csv", f"text,id\n{MARKER},1\n{MARKER},2,3\n", {}, ["row 2", "line 3", "2 columns", "got 3"]),
    "too few cells": ("a.csv", f"text,id\n{MARKER}\n", {}, ["row 1", "line 2", "2 columns", "got 1"]),
    "cells after breaks": ("a.csv", f'text,id\n"{MARKER}\n\n",1\n{MARKER}\n', {}, ["row 2", "line 5", "got 1"]),
    "cut in quotes": ("a.csv", f'text,id\n{MARKER},1\n"{MARKER}', {}, ["row 2", "line 3", "ends inside quotes"]),
    "cut in a quoted break": ("a.csv", f'text\n"{MARKER}\n{MARKER}\n', {}, ["row 1", "ends inside quotes"]),
    "letters after quotes": ("a.csv", f'text\n"one"{MARKER}\n', {}, ["row 1", "line 2", "not valid CSV"]),
    "bare carriage return": ("a.csv", f"text\n{MARKER}\r{MARKER}\n", {}, ["row 1", "not valid CSV"]),
    "broken header": ("a.csv", f'"{MARKER}', {}, ["line 1", "ends inside quotes"]),
    "header twice": ("a.csv", f"text,{MARKER},{MARKER}\na,b,c\n", {}, ["header", "same name"]),
    "text twice": ("a.csv", f"text,text\n{MARKER},{MARKER}\n", {}, ["header", "same name"]),
}


@pytest.mark.parametrize(("name", "data", "options", "parts"), BROKEN.values(), ids=BROKEN)
def test_a_broken_row_is_named_and_never_quoted(tmp_path, name, data, options, parts):
    path = raw(tmp_path / name, data)
    assert_error(DataError, lambda: list(read_documents(path, **options)), name, *parts)


@pytest.mark.parametrize("suffix", [".txt.gz", ".jsonl.gz", ".csv.gz"])
def test_a_compressed_file_that_was_cut_is_named_wherever_it_was_cut(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", [f"{MARKER} {n}" for n in range(50)])
    whole = path.read_bytes()
    for size in (1, 5, 15, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert_error(
            DataError, lambda: list(read_documents(path)), f"a{suffix}", "broken or ends early", "copy the file"
        )


@pytest.mark.parametrize("damage", [lambda data: data[:-8] + bytes(8), lambda data: data + MARKER.encode()])
def test_a_compressed_file_that_was_damaged_is_named(tmp_path, damage):
    path = put(tmp_path / "a.txt.gz", [MARKER] * 50)
    path.write_bytes(damage(path.read_bytes()))
    assert_error(DataError, lambda: list(read_documents(path)), "broken or ends early")


def test_damage_inside_the_compressed_data_is_named(tmp_path):
    path = put(tmp_path / "a.txt.gz", [f"{MARKER} {n * n}" for n in range(500)])
    data = bytearray(path.read_bytes())
    for place in range(15, len(data) - 10, 3):
        data[place] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        list(read_documents(path))
    assert MARKER not in str(caught.value)


def test_what_is_not_compressed_is_no_gzip_file(tmp_path):
    (tmp_path / "a.txt.gz").write_text(MARKER)
    assert_error(DataError, lambda: list(read_documents(tmp_path / "a.txt.gz")), "compressed data is broken")


@pytest.mark.parametrize("options", [{"user": "who"}, {"label": "stars"}, {"keep": ("age",)}])
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_a_txt_file_has_no_columns(tmp_path, options, suffix):
    path = raw(tmp_path / f"a{suffix}", f"{MARKER}\n")
    assert_error(ParameterError, lambda: read_documents(path, **options), "no columns", ".jsonl or .csv")


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_the_text_is_no_column_to_keep_or_the_raw_text_would_leave_beside_the_private_one(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", [MARKER])
    assert_error(ParameterError, lambda: read_documents(path, keep=("text",)), "'text'")
    assert_error(ParameterError, lambda: DocumentWriter(path, io.BytesIO(), keep=("text",)), "'text'")
    assert_error(
        ParameterError, lambda: DocumentWriter(path, io.BytesIO(), text="private", keep=("private",)), "'private'"
    )


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_a_column_is_kept_once(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", [Document("x", attributes={"age": 3})], keep=("age",))
    assert_error(ParameterError, lambda: read_documents(path, keep=("age", "age")), "'age'")
    assert_error(ParameterError, lambda: DocumentWriter(path, io.BytesIO(), keep=("age", "age")), "'age'")


# -- reading: lazily ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", ["", ".gz"])
@pytest.mark.parametrize(
    ("suffix", "first", "broken"),
    [
        (".txt", b"one\n", b"\xff\n"),
        (".jsonl", b'{"text": "one"}\n', b"{\n"),
        (".csv", b"text\none\n", b'"a"b\n'),
    ],
)
def test_the_first_document_is_there_before_a_later_row_is_looked_at(tmp_path, suffix, first, broken, zipped):
    reader = read_documents(raw(tmp_path / f"a{suffix}{zipped}", first + broken))
    assert next(reader).text == "one"
    with pytest.raises(DataError):
        next(reader)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_reader_reads_as_far_as_it_was_asked(tmp_path, suffix):
    noise = hashlib.shake_128(b"incompressible").hexdigest(100)
    lines = [hashlib.sha256(f"{noise}{n}".encode()).hexdigest() for n in range(20_000)]
    path = put(tmp_path / f"a{suffix}", lines)
    reader = read_documents(path)
    assert reader.size == path.stat().st_size
    assert reader.position == 0
    assert [document.text for document in itertools.islice(reader, 100)] == lines[:100]
    assert 0 < reader.position < 0.3 * reader.size
    assert [document.text for document in reader] == lines[100:]
    assert reader.position == reader.size


def test_a_reader_is_read_once_and_stays_at_its_end(tmp_path):
    reader = read_documents(raw(tmp_path / "a.txt", "one\ntwo\n"))
    assert iter(reader) is reader
    assert len(list(reader)) == 2
    assert list(reader) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_reader_leaves_no_file_open_however_it_ends(tmp_path, suffix, recwarn):
    path = put(tmp_path / f"a{suffix}", ["one", "two"])
    finished, closed = read_documents(path), read_documents(path)
    list(finished)
    next(closed)
    closed.close()
    closed.close()
    for reader in (finished, closed):
        assert reader._file.closed
    abandoned = read_documents(path)
    next(abandoned)
    stream = abandoned._file
    del abandoned
    gc.collect()
    assert stream.closed
    assert not recwarn.list


def test_a_reader_closes_its_file_when_a_row_is_broken(tmp_path):
    reader = read_documents(raw(tmp_path / "a.jsonl", "{"))
    with pytest.raises(DataError):
        next(reader)
    assert reader._file.closed


# -- writing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a\nb", "\n", "a\r\nb", "a\r", "\r"])
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_a_text_with_a_line_break_is_refused_by_txt(tmp_path, suffix, text):
    writer = DocumentWriter(tmp_path / f"a{suffix}", io.BytesIO())
    writer.write(Document("fine"))
    assert_error(DataError, lambda: writer.write(Document(MARKER + text)), "row 2", "line break", ".jsonl or .csv")


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_columns_to_keep_are_refused_by_txt(suffix):
    assert_error(ParameterError, lambda: DocumentWriter(f"a{suffix}", io.BytesIO(), keep=("age",)), ".jsonl or .csv")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_half_a_surrogate_pair_is_no_text(suffix):
    writer = DocumentWriter(f"a{suffix}", io.BytesIO())
    writer.write(Document("fine"))
    assert_error(DataError, lambda: writer.write(Document(f"{MARKER}\ud800")), "row 2", "surrogate")


def test_half_a_surrogate_pair_in_a_kept_column_is_no_text():
    writer = DocumentWriter("a.csv", io.BytesIO(), keep=("age",))
    document = Document("x", attributes={"age": f"{MARKER}\ud800"})
    assert_error(DataError, lambda: writer.write(document), "row 1", "surrogate")


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize("attributes", [None, {}, {"name": MARKER}])
def test_a_document_without_a_column_that_is_to_be_kept_is_named(suffix, attributes):
    writer = DocumentWriter(f"a{suffix}", io.BytesIO(), keep=("age",))
    assert_error(DataError, lambda: writer.write(Document(MARKER, attributes=attributes)), "row 1", "attribute 'age'")


def test_a_kept_value_that_json_does_not_know_is_named():
    writer = DocumentWriter("a.jsonl", io.BytesIO(), keep=("age",))
    document = Document("x", attributes={"age": {MARKER}})
    assert_error(DataError, lambda: writer.write(document), "row 1")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_writer_counts_its_documents_and_leaves_the_stream_open(suffix):
    stream = io.BytesIO()
    writer = DocumentWriter(f"a{suffix}", stream)
    assert writer.count == 0
    for _ in range(3):
        writer.write(Document("x"))
    writer.close()
    writer.close()
    assert writer.count == 3
    assert not stream.closed


def test_only_the_named_attributes_are_written(tmp_path):
    document = Document("x", user=MARKER, label=MARKER, attributes={"age": 3, "name": MARKER})
    for suffix in (".jsonl", ".csv"):
        data = put(tmp_path / f"a{suffix}", [document], keep=("age",)).read_text()
        assert "age" in data
        assert MARKER not in data


def test_attributes_are_written_only_when_asked_for(tmp_path):
    document = Document("x", attributes={"name": MARKER})
    for suffix in SUFFIXES:
        assert MARKER.encode() not in put(tmp_path / f"a{suffix}", [document]).read_bytes()


# -- whole or not at all --------------------------------------------------------------------------------------


def start(path):
    with replacing(path) as stream:
        stream.write(b"x")


def test_a_file_appears_whole_when_the_block_ends(tmp_path):
    path = tmp_path / "a.txt"
    with replacing(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with replacing(os.fspath(path)) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name == "nt", reason="Windows does not replace a file that is open")
def test_who_reads_the_old_file_meanwhile_reads_all_of_it(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with path.open("rb") as reading:
        start(path)
        assert reading.read() == b"old"
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, DataError, StorageError])
@pytest.mark.parametrize("old", [None, b"old"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_block_that_fails_leaves_nothing_behind_and_keeps_the_old_file(tmp_path, error, old, suffix):
    path = tmp_path / f"a{suffix}"
    if old is not None:
        path.write_bytes(old)
    before = os.listdir(tmp_path)
    with pytest.raises(error), replacing(path) as stream:
        writer = DocumentWriter(path, stream)
        writer.write(Document("half"))
        stream.flush()
        raise error
    assert os.listdir(tmp_path) == before
    assert old is None or path.read_bytes() == old


def test_nobody_else_may_read_a_file_that_is_not_whole_under_its_name(tmp_path):
    with replacing(tmp_path / "a.txt"):
        (part,) = os.listdir(tmp_path)
        assert part.startswith(".a.txt.")
        assert part.endswith(".part")


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "a.txt"
    with replacing(path) as first, replacing(path) as second:
        first.write(b"first")
        second.write(b"second")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_missing_folder_is_a_storage_error(tmp_path):
    assert_error(StorageError, lambda: start(tmp_path / "no" / "a.txt"), "a.txt", "No such file")


def test_a_file_in_place_of_the_folder_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("x")
    assert_error(StorageError, lambda: start(tmp_path / "file" / "a.txt"), "a.txt", "Not a directory")


def test_a_folder_in_place_of_the_file_is_a_storage_error_and_stays(tmp_path):
    (tmp_path / "a.txt").mkdir()
    assert_error(StorageError, lambda: start(tmp_path / "a.txt"), "a.txt")
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_name_that_is_too_long_is_a_storage_error(tmp_path):
    assert_error(StorageError, lambda: start(tmp_path / f"{'a' * 300}.txt"), "too long")


def test_a_name_as_long_as_the_system_allows_is_written(tmp_path):
    path = tmp_path / f"{'a' * 251}.txt"
    path.write_bytes(b"the system allows it")
    start(path)
    assert path.read_bytes() == b"x"


def test_a_full_disk_is_a_storage_error_and_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def fsync(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    assert_error(StorageError, lambda: start(path), "a.txt", os.strerror(errno.ENOSPC))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_read_only_folder_is_a_storage_error(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o500)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write everywhere")
        assert_error(StorageError, lambda: start(folder / "a.txt"), "Permission denied")
    finally:
        folder.chmod(0o700)
    assert os.listdir(folder) == []


ABANDON = """
import pathlib, sys
from dptext.text.documents import Document, DocumentWriter, replacing

for suffix in (".txt.gz", ".jsonl.gz", ".csv.gz"):
    path = pathlib.Path(sys.argv[1]) / f"a{suffix}"
    try:
        with replacing(path) as stream:
            writer = DocumentWriter(path, stream)
            writer.write(Document("half"))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    del writer, stream
"""


def test_an_abandoned_compressed_writer_does_not_complain_afterwards(tmp_path):
    # what development mode prints, Python 3.13 prints always
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", ABANDON, os.fspath(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(tmp_path) == []


# -- digests --------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_the_digest_of_a_stream_is_that_of_its_file(chunks):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        with replacing(path) as stream:
            for chunk in chunks:
                assert stream.write(chunk) == len(chunk)
            digest = stream.digest()
        assert (
            digest == file_digest(path) == file_digest(os.fspath(path)) == hashlib.sha256(b"".join(chunks)).hexdigest()
        )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_digest_of_a_closed_writer_is_that_of_the_file(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    with replacing(path) as stream:
        writer = DocumentWriter(path, stream)
        writer.write(Document("x"))
        writer.close()
        digest = stream.digest()
    assert digest == file_digest(path)


def test_the_digest_of_what_cannot_be_read_is_a_storage_error(tmp_path):
    assert_error(StorageError, lambda: file_digest(tmp_path / "no.txt"), "no.txt", "No such file")
    assert_error(StorageError, lambda: file_digest(tmp_path), tmp_path.name)
