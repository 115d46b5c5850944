"""Every format: round trips, broken input that is named by its row and never quoted, and bounded memory."""

import csv
import gzip
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import tracemalloc

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.errors import DataError, MissingExtraError, ParameterError, StorageError
from dptext.io import batches
from dptext.io.batches import InputFile
from dptext.io.documents import DocumentWriter, first_rows, read_documents
from dptext.io.formats import FORMATS, announced_by, file_format, written_format
from sample_files import KINDS, WITH_COLUMNS, WRITTEN, fits, put, raw, read, rows_and_rejects, table, texts
from secrecy import MARKER, assert_error

CUT = "repair it, or copy the file again if it was truncated"


# -- round trip -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", WRITTEN)
@given(data=st.data())
@settings(max_examples=25)
def test_texts_are_read_as_they_were_written_in_any_number_of_batches(suffix, data):
    rows = data.draw(st.lists(texts.filter(lambda text: fits(suffix, text)), min_size=1, max_size=8))
    cut = data.draw(st.integers(0, len(rows)))
    with tempfile.TemporaryDirectory() as folder:
        path = put(pathlib.Path(folder, f"a{suffix}"), rows, cuts=(cut,))
        assert read(path) == rows
        assert put(pathlib.Path(folder, f"b{suffix}"), rows).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_kept_columns_and_missing_texts_are_read_back(tmp_path, suffix):
    columns = {"n": [1, 2, 3], "who": ["Å", 'a "b", c', "7"]}
    path = put(tmp_path / f"a{suffix}", ["one", None, "three\r"], columns, cuts=(1,))
    documents = list(read_documents(path, user="who", label="n", keep=("n",)))
    null = None if "json" in suffix or suffix == ".parquet" else ""
    assert [document.text for document in documents] == ["one", null, "three\r"]
    assert [document.user for document in documents] == columns["who"]
    assert [str(document.label) for document in documents] == ["1", "2", "3"]
    assert [str(document.attributes["n"]) for document in documents] == ["1", "2", "3"]


def test_other_programs_read_what_is_written(tmp_path):
    rows = ["plain", 'two\r\n"lines"', "\ufeff, ", "naïve"]
    path = put(tmp_path / "a.csv", rows, {"n": [1, 2, 3, 4]})
    with path.open(newline="", encoding="utf-8") as stream:
        assert list(csv.reader(stream)) == [["text", "n"], *([row, str(n)] for n, row in enumerate(rows, 1))]
    path = put(tmp_path / "a.jsonl", rows, {"n": [1, 2.5, None, float("nan")]})
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    assert [line["text"] for line in lines] == rows
    assert [line["n"] for line in lines] == [1, 2.5, None, None]
    path = put(tmp_path / "a.txt.gz", ["one", "two"])
    assert gzip.decompress(path.read_bytes()) == b"one\ntwo\n"


def test_a_compressed_file_shows_neither_name_nor_time_nor_where_a_batch_ended(tmp_path):
    content = put(tmp_path / "a.txt.gz", ["one"] * 100_000, cuts=(7,)).read_bytes()
    assert content[3] == 0
    assert content[4:8] == bytes(4)


def book(path, *sheets):
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for number, rows in enumerate(sheets):
        sheet = workbook.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


def test_a_sheet_is_read_with_its_types(tmp_path):
    import datetime

    rows = [["text", "n", "at"], ["one", 1, datetime.datetime(2020, 1, 2)], [], [None, 2.5, datetime.time(1, 2)]]
    path = book(tmp_path / "a.xlsx", [], rows)
    result = list(read_documents(path, keep=("n", "at")))
    assert [(row.text, row.attributes) for row in result] == [
        ("one", {"n": 1, "at": "2020-01-02"}),
        (None, {"n": 2.5, "at": "01:02:00"}),
    ]
    assert list(first_rows([path], only=("n",))) == [{"n": 1}, {"n": 2.5}]
    assert_error(DataError, lambda: read(book(path, rows, [["another"]])), "2 sheets have rows")
    assert_error(DataError, lambda: read(book(path, [[MARKER, 3], ["x"]])), "the file has 2 others (not shown")
    assert_error(DataError, lambda: read(book(path, [["text"], [1]])), "row 1: expected a string in 'text'", "int")
    assert_error(DataError, lambda: read(book(path, [["text"], ["a", MARKER]])), "row 1: expected 1 columns")
    assert_error(DataError, lambda: read(raw(path, MARKER * 100)), "is not an .xlsx file, or is")
    assert_error(StorageError, lambda: read(tmp_path / "no.xlsx"), "No such file")


def test_a_missing_package_is_answered_with_its_install_line(tmp_path, monkeypatch):
    path = book(tmp_path / "a.xlsx", [["text"], ["one"]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert_error(MissingExtraError, lambda: read(path), "openpyxl", 'pip install "dptext[excel]"')


# -- names ----------------------------------------------------------------------------------------------------


def test_names_announce_formats():
    assert announced_by(pathlib.Path("x.JSONL.GZ")) == file_format(pathlib.Path("y.ndjson.gz"))
    assert file_format(pathlib.Path("x.y.csv")).kind == ".csv"
    for name in ("x", "x.pdf", "x.parquet.gz", "x.gz"):
        assert_error(ParameterError, lambda name=name: file_format(pathlib.Path(name)), "ends in .txt, .jsonl", name)
    for name in ("x.tsv", "x.csv.zst", "x.txt.xz", "x.xlsx"):
        assert file_format(pathlib.Path(name)).kind in FORMATS
        assert_error(ParameterError, lambda name=name: written_format(pathlib.Path(name)), "files are only read", name)


# -- separators, encodings, lists: read where it is certain ----------------------------------------------------


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
def test_the_separator_of_a_header_is_found_if_it_is_certain(tmp_path, separator):
    rows = [["n", "text"], ["1", "a, b; c | d"], ["2", 'say "x"\nand y']]
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream, delimiter=separator).writerows(rows)
    documents = list(read_documents(path, keep=("n",)))
    assert [(row.attributes["n"], row.text) for row in documents] == [tuple(row) for row in rows[1:]]
    assert list(first_rows([path])) == [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_another_separator_is_asked_for_or_given(tmp_path):
    path = raw(tmp_path / "a.csv", "text:n\none, two:1\n")
    assert_error(DataError, lambda: read(path), "expected a column 'text'")
    assert read(path, separator=":") == ["one, two"]
    raw(path, "review;a,n\nx;y,1\n")
    assert_error(DataError, lambda: read(path), "expected a column 'text'")
    raw(path, "text,n;m\nx,1\n")  # the comma gives the column: nothing else is tried
    assert read(path) == ["x"]
    for separator in ("", ";;", "\n", '"'):
        assert_error(ParameterError, lambda s=separator: read(path, separator=s), "separator must be one character")


@pytest.mark.parametrize("kind", [".txt", ".jsonl", ".csv", ".tsv"])
def test_utf_16_is_read_by_its_mark_and_other_encodings_by_their_name(tmp_path, kind):
    rows = ["naïve café" * 20_000, "€ 5"]
    lines = {".jsonl": [json.dumps({"text": row}, ensure_ascii=False) for row in rows], ".txt": rows}
    content = "\n".join(lines.get(kind, ["text", *rows])) + "\n"
    assert read(raw(tmp_path / f"a{kind}", content.encode("utf-8-sig"))) == rows
    assert read(raw(tmp_path / f"a{kind}.gz", content.encode("utf-16"))) == rows
    path = raw(tmp_path / f"a{kind}", content.encode("utf-16-le"))
    assert_error(DataError, lambda: read(path), "looks like UTF-16, not UTF-8. Add --encoding utf-16-le")
    assert read(path, encoding="UTF-16-LE") == rows
    assert read(raw(tmp_path / "zeros.txt", "a\0" * 9), encoding="utf-8") == ["a\0" * 9]
    path = raw(tmp_path / f"b{kind}", content.encode("windows-1252"))
    assert_error(DataError, lambda: read(path), "expected UTF-8", "--encoding windows-1252")
    assert read(path, encoding="cp1252") == rows
    assert_error(DataError, lambda: read(path, encoding="ascii"), "in the encoding ascii; name the right one")
    for encoding in ("utf-9", "hex"):
        assert_error(ParameterError, lambda e=encoding: read(path, encoding=e), "a Python text encoding")


# -- bad input ------------------------------------------------------------------------------------------------

BAD = {  # name of the file: content, the error, and with on_error="skip" the texts left and the rejected rows
    "not UTF-8": ("a.txt", f"a\n{MARKER}".encode() + b"\xff\nb\n", "row 2: expected UTF-8", ["a", "b"], [2]),
    "not JSON": ("a.jsonl", f'{{"text": "a"}}\n{{"text": {MARKER}}}\n', f"is not valid JSON; {CUT}", ["a"], [2]),
    "empty line": ("a.jsonl", '{"text": "a"}\n\n', "row 2: expected a JSON object, the line is empty", ["a"], [2]),
    "another value": ("a.jsonl", '{"text": "a"}\n"x"\n', "row 2: expected a JSON object, got another", ["a"], [2]),
    "too deep": ("a.jsonl", '{"text": "a"}\n' + "[" * 100_000 + "\n", "the line is nested too deeply", ["a"], [2]),
    "long number": ("a.jsonl", '{"text": "a"}\n{"n": ' + "1" * 5000 + "}\n", "the line contains a number", ["a"], [2]),
    "no column": ("a.jsonl", f'{{"text": "a"}}\n{{"review": "{MARKER}"}}\n', "1 other: 'review'", ["a"], [2]),
    "no string": ("a.jsonl", '{"text": "a"}\n{"text": 5}\n', "row 2: expected a string in 'text'", ["a"], [2]),
    "half a pair": ("a.jsonl", '{"text": "a"}\n{"text": "\\ud800"}\n', "row 2: the row contains a lone", ["a"], [2]),
    "too many fields": ("a.csv", f"text\na\nb,{MARKER}\n", "row 2: expected 1 columns as in", ["a"], [2]),
    "too few fields": ("a.tsv", f"text\tn\na\t1\n{MARKER}\n", "row 2: expected 2 columns as in", ["a"], [2]),
    "open quote": (
        "a.csv",
        f'text\na\n"{MARKER}\n',
        "row 2 (line 3): the row has an unclosed quote",
        None,
        [],
    ),
    "stray quote": ("a.csv", f'text\na\n"x"{MARKER}\n', "row 2 (line 3): the row is not valid CSV", None, []),
    "header twice": ("a.csv", "text,text\na,b\n", "a.csv: two columns have the same name", None, []),
    "no header": ("a.csv", f"5,{MARKER} and so on\n6,b\n", "the file has 2 others (not shown", None, []),
    "broken header": ("a.csv", b"text,\xff\n", "a.csv, the header: expected UTF-8", None, []),
    "nothing": ("a.jsonl", "", "a.jsonl contains no documents: at least one row is needed", None, []),
    **{
        f"{kind}, {content or 'cut'}": (
            f"a.txt{kind}",
            content,
            "the compressed data is broken or ends early",
            None,
            [],
        )
        for kind, content in ((".gz", None), (".zst", None), (".xz", None), (".gz", b"plain"), (".zst", b"plain"))
    },
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_named_and_skipped_where_the_next_row_is_certain(tmp_path, case):
    name, content, message, left, rejected = BAD[case]
    path = tmp_path / name
    if content is None:
        data = raw(path, os.urandom(20_000).hex() + "\n").read_bytes()
        path.write_bytes(data[:-9])
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        raw(path, content)
    reader = read_documents if left is not None else read
    assert_error(DataError, lambda: list(reader(path)), path.name, message)
    if left is None:
        assert_error(DataError, lambda: rows_and_rejects(path), message)
    else:
        result, rejects = rows_and_rejects(path)
        assert result == left
        assert [row for _, row, _ in rejects] == rejected
        assert all(MARKER not in reason and "review" not in reason for *_, reason in rejects)


def test_values_that_a_format_cannot_hold_are_named(tmp_path):
    def refused(name, *parts, texts=("a", "b"), **columns):
        writer = DocumentWriter(pathlib.Path(name), keep=tuple(columns))
        assert_error(DataError, lambda: writer.encode(texts, columns, row=5, first=False), *parts)

    refused("a.txt", "row 6 contains a line break", ".jsonl or .csv", texts=("a", f"{MARKER}\nb"))
    for suffix in (".txt", ".jsonl", ".csv", ".parquet"):
        refused(f"a{suffix}", "row 6 contains a lone surrogate", texts=("a", f"{MARKER}\ud800"))
    refused("a.jsonl", "row 5: the kept columns 'n' cannot be written as JSON", n=[{MARKER}, 1])
    refused("a.parquet", "rows 5 to 6: the kept columns 'n' cannot be written as parquet", n=[MARKER, 1])
    for options, message in (
        ({"keep": ["text"]}, "contains the text and would be released"),
        ({"keep": ["n", "n"]}, "is kept twice: list it once"),
    ):
        assert_error(ParameterError, lambda o=options: DocumentWriter(pathlib.Path("a.csv"), **o), message)
    assert_error(ParameterError, lambda: DocumentWriter(pathlib.Path("a.txt"), keep=["n"]), "cannot have kept columns")


# -- streams --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst", ".xz"])
def test_a_stream_is_read_piece_by_piece_with_its_position(tmp_path, suffix):
    path = raw(tmp_path / f"a.txt{suffix}", b"the same words again and again\n" * 1_000_000)
    opened = InputFile(path, suffix)
    assert (opened.name, opened.size, opened.position) == (path.name, path.stat().st_size, 0)
    file = opened.stream
    tracemalloc.start()
    try:
        assert [file.readline(9) for _ in range(4)] == [b"the same ", b"words aga", b"in and ag", b"ain\n"]
        while file.readline(1000):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20, "31 MB lie in a few kB; xz alone has a dictionary of 8 MB"
    assert opened.position == opened.size
    opened.close()


def test_members_and_frames_follow_each_other(tmp_path):
    for suffix, pack in ((".gz", gzip.compress), (".zst", lambda data: pa.compress(data, "zstd", asbytes=True))):
        path = tmp_path / f"a.txt{suffix}"
        path.write_bytes(pack(b"one\ntw") + pack(b"") + pack(b"o\nthree"))
        assert read(path) == ["one", "two", "three"]


@pytest.mark.parametrize("kind", KINDS)
def test_standard_input_is_read_once(tmp_path, monkeypatch, kind):
    path = put(tmp_path / f"a{kind}", ["one", "two"])
    with path.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        reader = read_documents("-", suffix=kind)
        assert [document.text for document in reader] == ["one", "two"]
        assert (reader.size, reader.position, stream.closed) == (0, 0, False)
    monkeypatch.setattr(sys, "stdin", None)
    assert_error(StorageError, lambda: read_documents("-", suffix=kind), "standard input: it is closed")
    for suffix in (".parquet", ".xlsx"):
        assert_error(ParameterError, lambda s=suffix: read_documents("-", suffix=s), "from standard input: name a file")


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that can be opened and not read")
@pytest.mark.parametrize("suffix", [".txt", ".jsonl.gz", ".csv.zst", ".tsv.xz"])
def test_a_disk_that_fails_while_reading_is_a_storage_error(tmp_path, suffix):
    (tmp_path / f"a{suffix}").symlink_to("/proc/self/mem")
    assert_error(StorageError, lambda: read(tmp_path / f"a{suffix}"), "cannot read", "Input/output error")


STREAM = """
import re, sys
from dptext.io.documents import DocumentWriter, read_documents
from pathlib import Path

writer, row = DocumentWriter(Path(sys.argv[2]), keep=("n",)), 1
for batch in read_documents(sys.argv[1], keep=("n",)).batches():
    row += len(writer.encode(batch.texts, batch.columns, row=row, first=row == 1)) and len(batch.texts)
print(row - 1, re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs the peak memory of a process")
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path, suffix):
    peaks = []
    for rows in (100_000, 500_000):
        columns = {"text": [f"a short text, number {n}" for n in range(rows)], "n": list(range(rows))}
        if suffix == ".parquet":
            path = table(tmp_path / f"{rows}{suffix}", columns, row_group_size=rows)
        else:
            path = put(tmp_path / f"{rows}{suffix}", columns["text"], {"n": columns["n"]})
        command = [sys.executable, "-c", STREAM, os.fspath(path), f"out{suffix}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        count, peak = map(int, done.stdout.split())
        assert count == rows
        peaks.append(peak)
    assert peaks[1] < peaks[0] + (40 << 10), "in KiB; all rows at a time would take over 100 MiB more"


def test_batches_end_by_rows_or_characters_of_the_input_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 4)
    monkeypatch.setattr(batches, "BATCH_CHARACTERS", 10)
    monkeypatch.setattr("dptext.io.parquet._ROWS_AT_A_TIME", 1)
    rows = ["a"] * 9 + ["b" * 20, "c", None, "d" * 9, "e"]
    for suffix in (".jsonl", ".parquet"):
        path = put(tmp_path / f"a{suffix}", rows)
        sizes = [len(batch.texts) for batch in read_documents(path).batches()]
        assert sizes == [4, 4, 2, 3, 1]
        digests = [batch.digest() for batch in read_documents(path).batches()]
        assert len(set(digests)) == len(digests) - 1, "the first two are equal"
    assert list(itertools.chain(*(batch.texts for batch in batches.text_batches(rows)))) == rows


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_a_json_list_is_read_in_any_layout(tmp_path, indent):
    rows = [{"text": str(number), "more": [number, "],{"]} for number in range(4)]
    (tmp_path / "a.jsonl").write_text(json.dumps(rows, indent=indent))
    assert [document.text for document in read_documents(tmp_path / "a.jsonl")] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"text": "a"},\n{"text": "b"', "the list is broken, ends early"),
        (b'[{"text": "a"}]\n{"text": "b"}\n', "or is followed by other data"),
        (b'[{"text": "a"},\n{"text": "\xff"}]', "expected one JSON list in UTF-8"),
    ],
)
def test_a_broken_json_list_is_refused_at_its_row(tmp_path, content, message):
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(read_documents(tmp_path / "a.jsonl"))
