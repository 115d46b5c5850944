"""Every format with every damage: the exact words of the error, and what is left when broken rows are skipped.

The words stand here in full, so that a change to one of them is a change to this table.
"""

import errno
import gzip
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from sample_files import damage, not_utf8, packed, put, raw, rows_and_rejects, table
from secrecy import MARKER, assert_error

from dptext.errors import DataError, ParameterError, StorageError
from dptext.io import formats
from dptext.io.batches import Reject, merge_rejects
from dptext.io.documents import DocumentWriter, find_files, read_documents

CUT = "repair it, or copy the file again if it was cut"
UTF8 = "convert the file to UTF-8, or copy it again if it was cut"
NO_JSON = f"expected a JSON object, the line is not valid JSON; {CUT}"
TOO_DEEP = f"expected a JSON object, the line is nested too deep; {CUT}"
TOO_LONG = f"expected a JSON object, the line holds a number of too many digits; {CUT}"
NOTHING = "{} holds no documents: expected at least one row"
BROKEN = "{}: the compressed data is broken or ends early, after line {}; copy the file again"
GROUP = "the row group is damaged; copy the file again"
NO_PARQUET = "a.parquet is not a parquet file, or was cut or damaged; copy the file again"


@dataclass
class Bad:
    """A file that cannot be read as it is.

    Attributes:
        name: of the file.
        data: its bytes (compressed if the name says so), or what makes the file at a path.
        message: the error.
        left: with on_error="skip", the texts that are left; None where it is an error all the same.
        rejects: and the rows that are not: (first, last, reason).
    """

    name: str
    data: Any
    message: str
    left: list[str] | None = None
    rejects: list[tuple[int, int, str]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def make(self, folder):
        if callable(self.data):
            self.data(folder / self.name)
            return folder / self.name
        return raw(folder / self.name, self.data)


def skipped(name, data, rows, left, *, there="", **options):
    """Rows that are skipped: the error names the first of them, and the columns that it has."""
    number, reason = next(iter(rows.items()))
    runs = merge_rejects(Reject(name, number, number, reason) for number, reason in rows.items())
    rejects = [(each.first, each.last, each.reason) for each in runs]
    return Bad(
        name, data, f"{name}, row {number}: {reason.replace(' none;', f' none{there};')}", left, rejects, options
    )


def never(name, data, message, **options):
    return Bad(name, data, message, options=options)


def exactly(data):
    return lambda path: path.write_bytes(data)


def cut(data, count):
    return lambda path: path.write_bytes(packed(path.name, data)[:-count])


def parquet(columns, **options):
    return lambda path: table(path, columns, **options)


def damaged(columns, group):
    return lambda path: damage(table(path, columns, row_group_size=2), group)


def shortened(columns, count):
    return lambda path: path.write_bytes(table(path, columns).read_bytes()[:count])


def flipped(columns, place):
    def make(path):
        data = bytearray(table(path, columns).read_bytes())
        data[place] ^= 0xFF
        path.write_bytes(data)

    return make


def linked(target):
    return lambda path: path.symlink_to(target)


def utf8(byte, line):
    return f"expected UTF-8, byte {byte} of line {line} is not; {UTF8}"


def width(expected, got, line=None):
    return f"expected {expected} columns as in the header, got {got}{f' (line {line})' if line else ''}; {CUT}"


BAD_BYTE = MARKER.encode() + b"\xe9"
FOUR = {"text": ["a", MARKER, "c", "d"], "n": [1, 2, 3, 4]}
DEEP = "[" * 100_000 + "]" * 100_000
MISSING = "{}: expected a column {!r}, the header has none among its {}; name the right column"
HIDDEN = " (not shown: they may be values; a file begins with a line of names)"
QUOTES = "{}, row {} (line {}): the row {}, and where the next one starts is uncertain; " + CUT
STRINGS = "expected a string in 'text', the value is of type {}"
NO_COLUMN = "expected a column {!r}, the row has none; name the right column or repair the row"

TABLE = {
    # -- .txt
    "txt, latin-1": skipped("a.txt", b"a\n" + BAD_BYTE + b"\nc\n", {2: utf8(9, 2)}, ["a", "c"]),
    "txt, half a character at the end": skipped("a.txt", "a\né".encode()[:-1], {2: utf8(1, 2)}, ["a"]),
    "txt, encoded surrogate": skipped("a.txt", b"a\nbc\xed\xa0\x80\n", {2: utf8(3, 2)}, ["a"]),
    "txt, gz, latin-1": skipped("a.txt.gz", b"a\n" + BAD_BYTE + b"\nc\n", {2: utf8(9, 2)}, ["a", "c"]),
    "txt, zst, latin-1": skipped("a.txt.zst", b"a\n" + BAD_BYTE + b"\nc\n", {2: utf8(9, 2)}, ["a", "c"]),
    "txt, empty": never("a.txt", b"", NOTHING.format("a.txt")),
    "txt, only a byte order mark": skipped("a.txt", b"\xef\xbb\n\xff", {1: utf8(1, 1), 2: utf8(1, 2)}, None),
    "txt, cut gz": never("a.txt.gz", cut("a\nb\n", 4), BROKEN.format("a.txt.gz", 2)),
    "txt, cut zst": never("a.txt.zst", cut("a\nb\n", 4), BROKEN.format("a.txt.zst", 0)),
    "txt, no gz": never("a.txt.gz", exactly(MARKER.encode()), BROKEN.format("a.txt.gz", 0)),
    "txt, no zst": never("a.txt.zst", exactly(MARKER.encode()), BROKEN.format("a.txt.zst", 0)),
    "txt, gz called zst": never("a.txt.zst", exactly(gzip.compress(b"a\n")), BROKEN.format("a.txt.zst", 0)),
    "txt, zst called gz": never("a.txt.gz", exactly(zstandard.compress(b"a\n")), BROKEN.format("a.txt.gz", 0)),
    "txt, gz with garbage behind": never(
        "a.txt.gz", exactly(gzip.compress(b"a\nb\n") + b"garbage"), BROKEN.format("a.txt.gz", 2)
    ),
    "txt, empty gz": never("a.txt.gz", b"", NOTHING.format("a.txt.gz")),
    "txt, no byte in gz": never("a.txt.gz", exactly(b""), NOTHING.format("a.txt.gz")),
    "txt, no byte in zst": never("a.txt.zst", exactly(b""), NOTHING.format("a.txt.zst")),
    # -- .jsonl
    "jsonl, latin-1": skipped("a.jsonl", b'{"text": "a"}\n{"text": "' + BAD_BYTE + b'"}\n', {2: utf8(19, 2)}, ["a"]),
    "jsonl, no JSON": skipped("a.jsonl", f'{MARKER}\n{{"text": "b"}}\n', {1: NO_JSON}, ["b"]),
    "jsonl, cut": skipped("a.jsonl", f'{{"text": "a"}}\n{{"text": "{MARKER}', {2: NO_JSON}, ["a"]),
    "jsonl, two values": skipped("a.jsonl", f'{{"text": "a"}}\n{{"text": "{MARKER}"}} {{}}\n', {2: NO_JSON}, ["a"]),
    "jsonl, line break in a string": skipped(
        "a.jsonl", f'{{"text": "a"}}\n{{"text": "{MARKER}\n"}}\n', {2: NO_JSON, 3: NO_JSON}, ["a"]
    ),
    "jsonl, ndjson": skipped("a.ndjson", '{"text": "a"}\n{]\n{"text": "c"}', {2: NO_JSON}, ["a", "c"]),
    "jsonl, array": skipped(
        "a.jsonl", f'{{"text": "a"}}\n["{MARKER}"]\n', {2: "expected a JSON object, got another JSON value"}, ["a"]
    ),
    "jsonl, string": skipped(
        "a.jsonl", f'"{MARKER}"\n{{"text": "b"}}\n', {1: "expected a JSON object, got another JSON value"}, ["b"]
    ),
    "jsonl, number, null and true": skipped(
        "a.jsonl",
        '5\nnull\ntrue\n{"text": "d"}',
        dict.fromkeys((1, 2, 3), "expected a JSON object, got another JSON value"),
        ["d"],
    ),
    "jsonl, empty and blank lines": skipped(
        "a.jsonl",
        '{"text": "a"}\n\n{"text": "c"}\n \t\r\n',
        dict.fromkeys((2, 4), f"expected a JSON object, the line is empty; {CUT}"),
        ["a", "c"],
    ),
    "jsonl, nested too deep": skipped(
        "a.jsonl", f'{{"text": "a"}}\n{{"text": "{MARKER}", "x": {DEEP}}}\n', {2: TOO_DEEP}, ["a"]
    ),
    "jsonl, number too long": skipped(
        "a.jsonl", f'{{"text": "{MARKER}", "x": {"1" * 5000}}}\n{{"text": "b"}}', {1: TOO_LONG}, ["b"]
    ),
    "jsonl, number as text": skipped("a.jsonl", '{"text": "a"}\n{"text": 5}\n', {2: STRINGS.format("int")}, ["a"]),
    "jsonl, other types as text": skipped(
        "a.jsonl",
        '{"text": 0.5}\n{"text": true}\n{"text": []}\n{"text": {}}\n{"text": "e"}',
        {n: STRINGS.format(kind) for n, kind in enumerate(("float", "bool", "list", "dict"), 1)},
        ["e"],
    ),
    "jsonl, half a surrogate pair": skipped(
        "a.jsonl",
        f'{{"text": "a"}}\n{{"text": "{MARKER}\\ud83d"}}\n{{"text": "\\ud83d\\ude00"}}\n',
        {2: "the row holds half a surrogate pair, which is no text; repair it"},
        ["a", "😀"],
    ),
    "jsonl, no text column": skipped(
        "a.jsonl",
        f'{{"text": "a"}}\n{{"texts": "{MARKER}"}}\n',
        {2: NO_COLUMN.format("text")},
        ["a"],
        there=" among its 1: 'texts'",
    ),
    "jsonl, no kept column": skipped(
        "a.jsonl",
        f'{{"text": "{MARKER}"}}\n{{"text": "b", "age": null}}\n',
        {1: NO_COLUMN.format("age")},
        ["b"],
        there=" among its 1: 'text'",
        keep=("age",),
    ),
    "jsonl, no user": skipped(
        "a.jsonl",
        f'{{"text": "a", "who": 1}}\n{{"text": "{MARKER}"}}\n',
        {2: NO_COLUMN.format("who")},
        ["a"],
        there=" among its 1: 'text'",
        user="who",
    ),
    "jsonl, no label": skipped(
        "a.jsonl",
        f'{{"text": "a", "stars": 1}}\n{{"text": "{MARKER}"}}\n',
        {2: NO_COLUMN.format("stars")},
        ["a"],
        there=" among its 1: 'text'",
        label="stars",
    ),
    "jsonl, nothing but broken rows": skipped("a.jsonl", f"{MARKER}\n[\n", {1: NO_JSON, 2: NO_JSON}, None),
    "jsonl, empty": never("a.jsonl", b"", NOTHING.format("a.jsonl")),
    "jsonl, cut gz": never("a.jsonl.gz", cut('{"text": "a"}\n', 1), BROKEN.format("a.jsonl.gz", 1)),
    "jsonl, cut zst": never("a.jsonl.zst", cut('{"text": "a"}\n', 1), BROKEN.format("a.jsonl.zst", 0)),
    "jsonl, no gz": never("a.jsonl.gz", exactly(b'{"text": "a"}\n'), BROKEN.format("a.jsonl.gz", 0)),
    "jsonl, no zst": never("a.jsonl.zst", exactly(b'{"text": "a"}\n'), BROKEN.format("a.jsonl.zst", 0)),
    "jsonl, gz, broken row": skipped("a.jsonl.gz", '{"text": "a"}\n{', {2: NO_JSON}, ["a"]),
    "jsonl, zst, broken row": skipped("a.jsonl.zst", '{"text": "a"}\n{', {2: NO_JSON}, ["a"]),
    # -- .csv
    "csv, latin-1": skipped("a.csv", b"text\na\n" + BAD_BYTE + b"\nc\n", {2: utf8(9, 3)}, ["a", "c"]),
    "csv, latin-1 in another column": skipped("a.csv", b"text,x\na,1\nb,\xe9\nc,3\n", {2: utf8(3, 3)}, ["a", "c"]),
    "csv, latin-1 in the header": never("a.csv", b"text,\xe9\na,b\n", f"a.csv, the header: {utf8(6, 1)}"),
    "csv, too many cells": skipped("a.csv", f"text,x\na,1\n{MARKER},2,3\nc,4\n", {2: width(2, 3, 3)}, ["a", "c"]),
    "csv, too few cells": skipped("a.csv", f"x,text,y\n{MARKER},1\n2,b,3\n", {1: width(3, 2, 2)}, ["b"]),
    "csv, empty line": skipped("a.csv", "text,x\na,1\n\nc,2\n", {2: width(2, 0, 3)}, ["a", "c"]),
    "csv, cells behind breaks": skipped("a.csv", f'text,x\n"a\n\n",1\n{MARKER}\n', {2: width(2, 1, 5)}, ["a\n\n"]),
    "csv, unclosed quote": never(
        "a.csv", f'text,x\na,1\n"{MARKER}\nc,2\n', QUOTES.format("a.csv", 2, 4, "ends inside quotes")
    ),
    "csv, unclosed quote at the very end": never(
        "a.csv", f'text\na\n"{MARKER}', QUOTES.format("a.csv", 2, 3, "ends inside quotes")
    ),
    "csv, letters behind a quote": never(
        "a.csv", f'text\na\n"b"{MARKER}\nc\n', QUOTES.format("a.csv", 2, 3, "is not valid CSV")
    ),
    "csv, bare carriage return": never(
        "a.csv", f"text\n{MARKER}\r{MARKER}\n", QUOTES.format("a.csv", 1, 2, "is not valid CSV")
    ),
    "csv, bad quote in the header": never("a.csv", f'"{MARKER}\n', QUOTES.format("a.csv", 1, 1, "ends inside quotes")),
    "csv, no text column": never("a.csv", f"review\n{MARKER}\n", MISSING.format("a.csv", "text", "1: 'review'")),
    "csv, no kept column": never(
        "a.csv", "text,x\na,b\n", MISSING.format("a.csv", "age", "2: 'text', 'x'"), keep=("age",)
    ),
    "csv, no header": never("a.csv", f"{MARKER},5,lovely\na,4,dull\n", MISSING.format("a.csv", "text", f"3{HIDDEN}")),
    "csv, no header but a word": never(
        "a.csv", f"{MARKER} is late,lovely\na,dull\n", MISSING.format("a.csv", "text", f"2{HIDDEN}")
    ),
    "csv, a text beside names": never(
        "a.csv", f"user,date,{MARKER} came home late that night\n", MISSING.format("a.csv", "text", f"3{HIDDEN}")
    ),
    "csv, empty header": never("a.csv", "\na\n", MISSING.format("a.csv", "text", "0")),
    "csv, column twice": never(
        "a.csv", f"text,{MARKER},{MARKER}\na,b,c\n", "a.csv: two columns of the header have the same name; rename one"
    ),
    "csv, text twice": never(
        "a.csv", f"text,text\n{MARKER},b\n", "a.csv: two columns of the header have the same name; rename one"
    ),
    "csv, empty": never("a.csv", b"", NOTHING.format("a.csv")),
    "csv, header only": never("a.csv", "text,x\n", NOTHING.format("a.csv")),
    "csv, header only in gz": never("a.csv.gz", "\ufefftext", NOTHING.format("a.csv.gz")),
    "csv, cut gz": never("a.csv.gz", cut("text\na\n", 4), BROKEN.format("a.csv.gz", 2)),
    "csv, cut zst": never("a.csv.zst", cut("text\na\n", 4), BROKEN.format("a.csv.zst", 0)),
    "csv, no gz": never("a.csv.gz", exactly(b"text\na\n"), BROKEN.format("a.csv.gz", 0)),
    "csv, no zst": never("a.csv.zst", exactly(b"text\na\n"), BROKEN.format("a.csv.zst", 0)),
    "csv, gz, broken row": skipped("a.csv.gz", "text,x\na,1\nb\n", {2: width(2, 1, 3)}, ["a"]),
    "csv, zst, unclosed quote": never("a.csv.zst", 'text\n"a', QUOTES.format("a.csv.zst", 1, 2, "ends inside quotes")),
    # -- .tsv
    "tsv, latin-1": skipped("a.tsv", b"text\na\n" + BAD_BYTE + b"\nc\n", {2: utf8(9, 3)}, ["a", "c"]),
    "tsv, latin-1 in the header": never("a.tsv", b"text\t\xe9\na\tb\n", f"a.tsv, the header: {utf8(6, 1)}"),
    "tsv, too many cells": skipped("a.tsv", f"text\tx\na\t1\n{MARKER}\t2\t3\nc\t4\n", {2: width(2, 3)}, ["a", "c"]),
    "tsv, too few cells": skipped("a.tsv", f"text\tx\n{MARKER}\nb\t\n", {1: width(2, 1)}, ["b"]),
    "tsv, empty line": skipped("a.tsv", "text\tx\na\t1\n\nc\t2\n", {2: width(2, 1)}, ["a", "c"]),
    "tsv, no text column": never("a.tsv", f"review\n{MARKER}\n", MISSING.format("a.tsv", "text", "1: 'review'")),
    "tsv, csv called tsv": never("a.tsv", f"text,x\n{MARKER},1\n", MISSING.format("a.tsv", "text", f"1{HIDDEN}")),
    "tsv, no label": never("a.tsv", "text\na\n", MISSING.format("a.tsv", "stars", "1: 'text'"), label="stars"),
    "tsv, column twice": never(
        "a.tsv", "text\tx\tx\na\tb\tc\n", "a.tsv: two columns of the header have the same name; rename one"
    ),
    "tsv, empty": never("a.tsv", b"", NOTHING.format("a.tsv")),
    "tsv, header only": never("a.tsv", "text\tx\r\n", NOTHING.format("a.tsv")),
    "tsv, cut gz": never("a.tsv.gz", cut("text\na\n", 1), BROKEN.format("a.tsv.gz", 2)),
    "tsv, cut zst": never("a.tsv.zst", cut("text\na\n", 4), BROKEN.format("a.tsv.zst", 0)),
    "tsv, no gz": never("a.tsv.gz", exactly(b"text\na\n"), BROKEN.format("a.tsv.gz", 0)),
    "tsv, no zst": never("a.tsv.zst", exactly(b"text\na\n"), BROKEN.format("a.tsv.zst", 0)),
    # -- .parquet
    "parquet, empty": never("a.parquet", b"", NO_PARQUET),
    "parquet, something else": never("a.parquet", f"text\n{MARKER}\n" * 10, NO_PARQUET),
    "parquet, only its first bytes": never("a.parquet", b"PAR1", NO_PARQUET),
    "parquet, cut": never("a.parquet", shortened(FOUR, -20), NO_PARQUET),
    "parquet, cut in half": never("a.parquet", shortened(FOUR, 300), NO_PARQUET),
    "parquet, no text column": never(
        "a.parquet",
        parquet({"review": [MARKER]}),
        "a.parquet: expected a column 'text', the file has none among its 1: 'review'; name the right column",
    ),
    "parquet, no kept column": never(
        "a.parquet",
        parquet(FOUR),
        "a.parquet: expected a column 'age', the file has none among its 2: 'text', 'n'; name the right column",
        keep=("n", "age"),
    ),
    "parquet, column twice": never(
        "a.parquet",
        parquet(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])),
        "a.parquet: expected a column 'text', the file has several; name the right column",
    ),
    "parquet, numbers as texts": never(
        "a.parquet",
        parquet(FOUR),
        "a.parquet: expected strings in the column 'n', its type is int64; name the right column",
        text="n",
    ),
    "parquet, bytes as texts": never(
        "a.parquet",
        parquet({"text": [MARKER.encode()]}),
        "a.parquet: expected strings in the column 'text', its type is binary; name the right column",
    ),
    "parquet, lists as texts": never(
        "a.parquet",
        parquet({"text": [[MARKER]]}),
        "a.parquet: expected strings in the column 'text', its type is list<element: string>; name the right column",
    ),
    "parquet, no rows": never("a.parquet", parquet({"text": pa.array([], pa.string())}), NOTHING.format("a.parquet")),
    "parquet, not UTF-8": skipped(
        "a.parquet",
        parquet({"text": not_utf8([b"a", BAD_BYTE, b"c", BAD_BYTE])}),
        dict.fromkeys((2, 4), "expected UTF-8 in 'text', it is not; convert the column"),
        ["a", "c"],
    ),
    "parquet, first rows damaged": Bad(
        "a.parquet", damaged(FOUR, 0), f"a.parquet, rows 1 to 2: {GROUP}", ["c", "d"], [(1, 2, GROUP)]
    ),
    "parquet, last rows damaged": Bad(
        "a.parquet", damaged(FOUR, 1), f"a.parquet, rows 3 to 4: {GROUP}", ["a", MARKER], [(3, 4, GROUP)]
    ),
    "parquet, page header flipped": never(
        "a.parquet", flipped({"text": ["a", "b"]}, 4), f"a.parquet, rows 1 to 2: {GROUP}"
    ),
}

# what the words are when nothing is left to be skipped to
ALL_BROKEN = {
    "txt, only a byte order mark": f"no row could be read; the first is a.txt, row 1: {utf8(1, 1)}",
    "jsonl, nothing but broken rows": f"no row could be read; the first is a.jsonl, row 1: {NO_JSON}",
    "parquet, page header flipped": f"no row could be read; the first is a.parquet, row 1: {GROUP}",
}


def read(path, **options):
    return list(read_documents(path, **options))


@pytest.mark.slow
@pytest.mark.parametrize("case", TABLE)
def test_bad_input_is_named_in_these_words(tmp_path, case):
    bad = TABLE[case]
    path = bad.make(tmp_path)
    assert assert_error(DataError, lambda: read(path, **bad.options)) == bad.message
    assert assert_error(DataError, lambda: read(path, on_error="fail", **bad.options)) == bad.message


@pytest.mark.parametrize("case", TABLE)
def test_bad_rows_are_skipped_and_bad_files_are_not(tmp_path, case):
    bad = TABLE[case]
    path = bad.make(tmp_path)
    if bad.left is None:
        message = assert_error(DataError, lambda: read(path, on_error="skip", **bad.options))
        assert message == ALL_BROKEN.get(case, bad.message)
        return
    left, rejects = rows_and_rejects(path, **bad.options)
    assert left == bad.left
    assert rejects == [(bad.name, *reject) for reject in bad.rejects]


def test_the_table_is_long():
    assert len(TABLE) >= 80
    assert {file.partition(",")[0] for file in TABLE} == {"txt", "jsonl", "csv", "tsv", "parquet"}


# -- rows that are too long -----------------------------------------------------------------------------------

LONG = "x" * 60
LENGTH = "{}, line {}: expected rows of at most 50 bytes, got more"


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", f"a\n{LONG}\n", LENGTH.format("a.txt", 2)),
        ("a.txt.gz", f"a\n{LONG}\n", LENGTH.format("a.txt.gz", 2)),
        ("a.jsonl.zst", f'{{"text": "{LONG}"}}\n', LENGTH.format("a.jsonl.zst", 1)),
        ("a.tsv", f"text\n{LONG}", LENGTH.format("a.tsv", 2)),
        ("a.csv", f"text\n{LONG}", LENGTH.format("a.csv", 2)),
        ("a.csv", f"{LONG}", LENGTH.format("a.csv", 1)),
        (
            "a.csv",
            'text\na\n"' + "x\n" * 60,
            QUOTES.format("a.csv", 2, 28, "holds a field of more than 50 bytes: a quote is not closed"),
        ),
    ],
)
def test_a_row_that_is_too_long_is_never_skipped(tmp_path, monkeypatch, on_error, name, data, message):
    monkeypatch.setattr(formats, "LONGEST", 50)
    path = raw(tmp_path / name, data)
    assert assert_error(DataError, lambda: read(path, on_error=on_error)) == message


# -- what is asked --------------------------------------------------------------------------------------------

UNKNOWN = (
    "expected a file name that ends in .txt, .jsonl, .csv, .tsv (each may have .gz or .zst added) or .parquet, "
    ".xlsx, got {!r}"
)
ASKED = {
    "unknown suffix": ("a.json", {}, UNKNOWN.format("a.json")),
    "no suffix": ("a", {}, UNKNOWN.format("a")),
    "parquet in gz": ("a.parquet.gz", {}, UNKNOWN.format("a.parquet.gz")),
    "parquet in zst": ("a.parquet.zst", {}, UNKNOWN.format("a.parquet.zst")),
    "other compression": ("a.csv.bz2", {}, UNKNOWN.format("a.csv.bz2")),
    "kept text": (
        "a.csv",
        {"keep": ("text",)},
        "the column 'text' holds the text: to keep it would release it as it was",
    ),
    "kept text of another name": (
        "a.parquet",
        {"text": "review", "keep": ("n", "review")},
        "the column 'review' holds the text: to keep it would release it as it was",
    ),
    "kept twice": (
        "a.jsonl",
        {"keep": ("n", "m", "n")},
        "the column 'n' is named twice among those to keep: name it once",
    ),
    "txt with kept columns": (
        "a.txt",
        {"keep": ("n",)},
        "a .txt file has no columns to keep ('a.txt'): use .jsonl or .csv, or keep nothing",
    ),
    "txt with users": (
        "a.txt.zst",
        {"user": "n"},
        "a .txt file has no columns to keep ('a.txt.zst'): use .jsonl or .csv, or keep nothing",
    ),
    "on_error": ("a.txt", {"on_error": "ignore"}, "on_error must be one of 'fail', 'skip', got 'ignore'"),
    "unknown format told": ("a.txt", {"suffix": ".xml"}, UNKNOWN.format("x.xml")),
    "standard input without a format": ("-", {}, UNKNOWN.format("-")),
    "parquet from standard input": (
        "-",
        {"suffix": ".parquet"},
        "parquet cannot be read from standard input: name a file, or pipe .jsonl",
    ),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_cannot_be_asked_is_named_before_a_file_is_opened(tmp_path, monkeypatch, case):
    name, options, message = ASKED[case]
    monkeypatch.chdir(tmp_path)
    for on_error in ("fail", "skip"):
        asked = {"on_error": on_error, **options}
        assert assert_error(ParameterError, lambda asked=asked: read_documents(name, **asked)) == message


# -- where it should be ---------------------------------------------------------------------------------------

NAMES = ["a.txt", "a.jsonl.gz", "a.csv.zst", "a.tsv", "a.parquet"]


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_named(tmp_path, monkeypatch, on_error, name):
    monkeypatch.chdir(tmp_path)
    assert assert_error(StorageError, lambda: read_documents(name, on_error=on_error)) == (
        f"cannot open {name!r}: No such file or directory"
    )


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("name", NAMES)
def test_a_folder_in_place_of_a_file_is_named(tmp_path, monkeypatch, on_error, name):
    monkeypatch.chdir(tmp_path)
    Path(name).mkdir()
    assert assert_error(StorageError, lambda: read_documents(name, on_error=on_error)) == (
        f"cannot open {name!r}: Is a directory"
    )


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch, on_error, name):
    monkeypatch.chdir(tmp_path)
    put(Path(name), ["one"])
    Path(name).chmod(0)
    if os.access(name, os.R_OK):  # this user may read everything
        if name == "a.parquet":
            pytest.skip("its reader opens it by itself")

        def refuse(*_):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

        monkeypatch.setattr(Path, "open", refuse)
    assert assert_error(StorageError, lambda: read_documents(name, on_error=on_error)) == (
        f"cannot open {name!r}: Permission denied"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file that can be opened and not read")
@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("name", NAMES[:-1])
def test_a_disk_that_fails_is_named(tmp_path, on_error, name):
    linked("/proc/self/mem")(tmp_path / name)
    assert assert_error(StorageError, lambda: read(tmp_path / name, on_error=on_error)) == (
        f"cannot read {name!r}: Input/output error"
    )


def test_many_files_by_one_name_that_are_none_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("new").mkdir()
    Path("a.txt").write_text("x\n")
    twice = "a file is named twice among the inputs: its rows would be released twice"
    for sources, kind, message in [
        (["new"], DataError, "the folder 'new' holds no file of a known format: name a file"),
        (["*.csv"], DataError, "no file of a known format matches '*.csv': name a file or a folder"),
        (["a.txt", "a.txt"], ParameterError, twice),
        (["a.txt", "*.txt"], ParameterError, twice),
        ([".", "a.txt"], ParameterError, twice),
    ]:
        assert assert_error(kind, lambda sources=sources: find_files(sources)) == message


# -- what cannot be written -----------------------------------------------------------------------------------

TAB = "row 2: {!r} holds a tab or a line break, which .tsv cannot: write .jsonl or .csv instead"
TYPES = (
    "rows 1 to 2: the kept 'n' holds values of several types, which parquet cannot: write .jsonl, or keep another "
    "column"
)
LOST = "expected a column 'n', which is to be kept; the documents have none"
WRITTEN = {
    "line break into txt": ("a.txt", ["a", f"{MARKER}\nb"], None, (), "row 2 holds a line break, which a .txt file "
                            "cannot: write .jsonl or .csv instead"),
    "tab into tsv": ("a.tsv", ["a", f"{MARKER}\tb"], None, (), TAB.format("text")),
    "line break into tsv": ("a.tsv.gz", ["a", f"{MARKER}\n"], None, (), TAB.format("text")),
    "kept tab into tsv": ("a.tsv", ["a", "b"], ["1", f"{MARKER}\t"], ("n",), TAB.format("n")),
    "what JSON does not know": ("a.jsonl", ["a", "b"], [1, {MARKER}], ("n",), "row 2: the kept 'n' cannot all be "
                                "written as JSON"),
    "bytes into jsonl": ("a.jsonl.gz", ["a", "b"], [1, MARKER.encode()], ("n",), "row 2: the kept 'n' cannot all be "
                         "written as JSON"),
    "numbers and strings into parquet": ("a.parquet", ["a", "b"], [1, MARKER], ("n",), TYPES),
    "lists and numbers into parquet": ("a.parquet", ["a", "b"], [[MARKER], 1], ("n",), TYPES),
    "numbers too long for parquet": ("a.parquet", ["a", "b"], [2**80, 1], ("n",), TYPES),
    "half a surrogate pair into txt": ("a.txt", ["a", f"{MARKER}\ud800"], None, (), "row 2 holds half a surrogate "
                                       "pair, which is no text"),
    "half a surrogate pair into jsonl": ("a.jsonl", ["a", f"{MARKER}\ud800"], None, (), "row 2 holds half a surrogate "
                                         "pair, which is no text"),
    "half a surrogate pair into csv": ("a.csv.zst", ["a", f"{MARKER}\ud800"], None, (), "row 2 holds half a "
                                       "surrogate pair, which is no text"),
    "half a surrogate pair into parquet": ("a.parquet", ["a", f"{MARKER}\ud800"], None, (), "row 2 holds half a "
                                           "surrogate pair, which is no text"),
    "kept column that is lost, into csv": ("a.csv", ["a", "b"], None, ("n",), LOST),
    "kept column that is lost, into parquet": ("a.parquet", ["a", "b"], None, ("n",), LOST),
}  # fmt: skip


@pytest.mark.parametrize("case", WRITTEN)
def test_what_a_format_cannot_hold_is_named_in_these_words(case):
    name, texts, values, keep, message = WRITTEN[case]
    columns = {} if values is None else {"n": values}
    writer = DocumentWriter(Path(name), keep=keep)
    assert assert_error(DataError, lambda: writer.encode(texts, columns, row=1, first=True)) == message


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.xml", {}, UNKNOWN.format("a.xml")),
        ("a.parquet.gz", {}, UNKNOWN.format("a.parquet.gz")),
        (
            "a.txt",
            {"keep": ("n",)},
            "a .txt file cannot hold kept columns: write .jsonl or .csv, or keep nothing",
        ),
        (
            "a.csv",
            {"keep": ("text",)},
            "the column 'text' holds the text: to keep it would release it as it was",
        ),
        (
            "a.csv",
            {"text": "n", "keep": ("m", "n")},
            "the column 'n' holds the text: to keep it would release it as it was",
        ),
        ("a.csv", {"keep": ("n", "n")}, "the column 'n' is named twice among those to keep: name it once"),
    ],
)
def test_what_cannot_be_asked_of_a_writer_is_named(name, options, message):
    assert assert_error(ParameterError, lambda: DocumentWriter(Path(name), **options)) == message
