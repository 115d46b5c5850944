"""Rows of .txt, .jsonl, .csv and .tsv: what other programs write is read, what is broken comes out in its place."""

import csv
import json

import pytest
from sample_files import KINDS, packed, put, raw, read
from secrecy import MARKER, assert_error

from dptext.errors import DataError
from dptext.io import formats
from dptext.io.batches import OpenedFile
from dptext.io.formats import FORMATS, BadRow, Lines

COMPRESSIONS = ["", ".gz", ".zst"]


def rows_in(path, columns=("text",)):
    file = OpenedFile(path)
    try:
        return list(FORMATS[path.suffix].read(Lines(file), columns))
    finally:
        file.close()


# -- what is accepted -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", COMPRESSIONS)
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
        ("a.ndjson", '{"text": "one"}\r\n{"text": "two"}\r\n'),
        ("a.jsonl", '\ufeff{"text": "one"}\n {"x": 1, "text": "\\u0074wo"} \n'),
        ("a.jsonl", '{"text": "one", "x": {"text": 5}}\n{"x": [], "text": "two"}\n'),
        ("a.csv", "text\none\ntwo\n"),
        ("a.csv", "\ufefftext\r\none\r\ntwo"),
        ("a.csv", '\ufeff"text"\r\n"one"\r\n"two"\r\n'),
        ("a.csv", "id,text\n1,one\n2,two\n"),
        ("a.csv", 'text,id\n"one",""\ntwo,\n'),
        ("a.tsv", "text\none\ntwo\n"),
        ("a.tsv", "\ufeffid\ttext\r\n1\tone\r\n\ttwo"),
        ("a.TSV", "text\tid\none\t\ntwo\t2\n"),
    ],
)
def test_files_of_other_programs_are_read(tmp_path, name, data, compression):
    assert read(raw(tmp_path / (name + compression), data)) == ["one", "two"]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r"])
@pytest.mark.parametrize(("name", "header"), [("a.txt", ""), ("a.tsv", "text\n")])
def test_only_a_line_feed_ends_a_line(tmp_path, separator, name, header):
    data = f"{header}one{separator}still one\ntwo\n"
    assert read(raw(tmp_path / name, data)) == [f"one{separator}still one", "two"]


def test_a_byte_order_mark_is_dropped_at_the_start_only(tmp_path):
    assert read(raw(tmp_path / "a.txt", "\ufeffone\n\ufefftwo\n")) == ["one", "\ufefftwo"]
    assert read(raw(tmp_path / "a.tsv", "\ufefftext\n\ufefftwo\n")) == ["\ufefftwo"]


def test_empty_lines_of_a_txt_file_are_empty_documents(tmp_path):
    assert read(raw(tmp_path / "a.txt", "\n\none\n\n")) == ["", "", "one", ""]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_empty_lines_of_a_file_with_one_column_are_empty_documents(tmp_path, name):
    assert read(raw(tmp_path / name, "text\n\none\n\r\n")) == ["", "one", ""]


def test_quoted_cells_of_csv_hold_commas_quotes_and_line_breaks(tmp_path):
    data = 'text,id\n"a, ""b""\r\nc\n",1\n'
    assert read(raw(tmp_path / "a.csv", data)) == ['a, "b"\r\nc\n']


def test_quotes_of_tsv_are_letters_like_others(tmp_path):
    assert read(raw(tmp_path / "a.tsv", 'text\tid\n"a\t1\n"""\t\n\\N\t"\n')) == ['"a', '"""', "\\N"]


@pytest.mark.parametrize("kind", [".csv", ".jsonl", ".txt", ".tsv"])
def test_a_text_may_be_longer_than_the_csv_module_allows_by_itself(tmp_path, kind):
    long = "x" * 300_000
    csv.field_size_limit(131_072)
    assert read(put(tmp_path / f"a{kind}", [long])) == [long]


def test_rows_have_all_their_columns(tmp_path):
    assert rows_in(raw(tmp_path / "a.txt", "one\n"), ["anything"]) == [{"anything": "one"}]
    assert rows_in(raw(tmp_path / "a.csv", "id,text\n1,one\n")) == [{"id": "1", "text": "one"}]
    assert rows_in(raw(tmp_path / "a.tsv", "id\ttext\n1\tone\n")) == [{"id": "1", "text": "one"}]
    assert rows_in(raw(tmp_path / "a.jsonl", '{"id": 1, "x": null}\n')) == [{"id": 1, "x": None}]


# -- what is broken -------------------------------------------------------------------------------------------


def test_a_bad_row_stands_where_it_was(tmp_path):
    data = f'{{"text": "one"}}\n{MARKER}\n{{"text": "two"}}\n\n'
    first, second, third, fourth = rows_in(raw(tmp_path / "a.jsonl", data))
    assert (first, third) == ({"text": "one"}, {"text": "two"})
    assert second == BadRow(
        "expected a JSON object, the line is not valid JSON; repair it, or copy the file again if it was cut"
    )
    assert fourth == BadRow(
        "expected a JSON object, the line is empty; repair it, or copy the file again if it was cut"
    )


@pytest.mark.parametrize(
    ("name", "data", "place"),
    [
        ("a.txt", b"\xff", "byte 1 of line 1"),
        ("a.txt", b"one\n\xef\xbb\xbf\xff\n", "byte 4 of line 2"),
        ("a.txt", b"one\ncaf\xc3\n", "byte 4 of line 2"),
        ("a.txt", b"one\n\xed\xa0\x80\n", "byte 1 of line 2"),
        ("a.txt", "one\n".encode("utf-16"), "byte 1 of line 1"),
        ("a.jsonl", b'{"text": "\xe9"}', "byte 11 of line 1"),
        ("a.tsv", b"text\n\xe9\n", "byte 1 of line 2"),
        ("a.csv", b"text\n\xe9\n", "byte 1 of line 2"),
        ("a.csv", b'text,id\n"one\n\n",1\n"two\n\nt\xe9",2\n', "byte 2 of line 7"),
        ("a.csv", b'text,id\n"t\xe9\n\nwo",1\n', "byte 3 of line 2"),
        ("a.csv", b'text,id\n"t\xe9\n\xe9\nwo",1\n', "byte 3 of line 2"),
    ],
)
def test_what_is_not_utf8_is_named_by_its_byte_and_line(tmp_path, name, data, place):
    bad = [row for row in rows_in(raw(tmp_path / name, data)) if isinstance(row, BadRow)]
    assert bad[0].reason == (
        f"expected UTF-8, {place} is not; convert the file to UTF-8, or copy it again if it was cut"
    )


@pytest.mark.parametrize("suffix", [kind + compression for kind in KINDS for compression in (".gz", ".zst")])
def test_a_compressed_file_that_was_cut_is_named_wherever_it_was_cut(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", [f"{MARKER} {n}" for n in range(50)])
    whole = path.read_bytes()
    for size in (1, 3, 5, 15, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert_error(DataError, lambda: read(path), f"a{suffix}", "broken or ends early", "copy the file")


@pytest.mark.parametrize("damage", [lambda data: data[:-8] + bytes(8), lambda data: data + MARKER.encode()])
def test_a_compressed_file_that_was_damaged_is_named(tmp_path, damage):
    path = put(tmp_path / "a.txt.gz", [MARKER] * 50)
    path.write_bytes(damage(path.read_bytes()))
    assert_error(DataError, lambda: read(path), "broken or ends early")


def test_what_follows_a_zst_frame_and_is_none_is_named(tmp_path):
    path = raw(tmp_path / "a.txt.zst", MARKER)
    path.write_bytes(path.read_bytes() + MARKER.encode())
    assert_error(DataError, lambda: read(path), "broken or ends early")


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_damage_inside_the_compressed_data_is_named(tmp_path, compression):
    path = raw(tmp_path / f"a.txt{compression}", "".join(f"{MARKER} {n * n}\n" for n in range(500)))
    data = bytearray(path.read_bytes())
    for place in range(15, len(data) - 10, 3):
        data[place] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        read(path)
    assert MARKER not in str(caught.value)


def test_rows_before_the_cut_are_counted_by_their_lines(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(packed("a.gz", "one\ntwo\n") + b"\x1f\x8b")
    assert_error(DataError, lambda: read(path), "after line 2;")


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        ("a.txt", "x" * 100 + "\n" + "x" * 101 + "\n", 2),
        ("a.jsonl", json.dumps({"text": "x" * 200}), 1),
        ("a.tsv", "text\n" + "x" * 102, 2),
        ("a.csv", "text\n\n" + "x" * 102, 3),
    ],
)
def test_a_line_without_end_is_not_read_into_memory(tmp_path, monkeypatch, name, data, line):
    monkeypatch.setattr(formats, "LONGEST", 101)
    assert assert_error(DataError, lambda: read(raw(tmp_path / name, data))) == (
        f"{name}, line {line}: expected rows of at most 101 bytes, got more"
    )


def test_a_quote_that_was_never_closed_is_not_read_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "LONGEST", 101)
    path = raw(tmp_path / "a.csv", 'text\n"' + f"{MARKER}\n" * 50)
    message = assert_error(DataError, lambda: read(path), "a.csv, row 1 (line ", "a field of more than 101 bytes")
    assert message.endswith("where the next one starts is uncertain; repair it, or copy the file again if it was cut")


def test_a_row_that_is_as_long_as_allowed_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "LONGEST", 101)
    assert read(raw(tmp_path / "a.txt", "x" * 100 + "\n" + "x" * 101)) == ["x" * 100, "x" * 101]
