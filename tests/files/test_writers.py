"""Writing: what is written is read back, and other programs read it; what a format cannot hold is named."""

import csv
import datetime
import gzip
import io
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sample_files import (
    KINDS,
    LINES,
    SUFFIXES,
    WITH_COLUMNS,
    WITH_NULL,
    encodable,
    fits,
    fitting,
    joined,
    put,
    read,
    texts,
)
from secrecy import MARKER, assert_error

from dptext.errors import DataError, ParameterError
from dptext.io.documents import Document, DocumentWriter, read_documents


def encode(path, texts, columns=None, *, row=1, first=True):
    columns = columns or {}
    return DocumentWriter(Path(path), keep=tuple(columns)).encode(texts, columns, row=row, first=first)


# -- round trips ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_documents_are_read_back_as_they_were_written(suffix):
    @settings(deadline=None, max_examples=35)
    @given(st.lists(st.none() | fitting(suffix), min_size=1, max_size=5), st.integers(0, 5))
    @example([""], 0)
    @example(["", ""], 1)
    @example([" "], 0)
    @example(["a\rb"], 0)
    @example(["\rb"], 0)
    @example(['"', "'", ",", "\\"], 2)
    @example(["\u2028\u2029\u0085\x0b\x0c\x1c"], 0)
    @example(["\x00"], 0)
    @example(["x", "\ufeffx"], 1)
    @example(["\ufeffx", "x"], 1)
    @example([None], 0)
    @example([None, "", None], 1)
    def check(written, cut):
        written = ["x" if text is not None and not fits(suffix, text) else text for text in written]
        with TemporaryDirectory() as folder:
            path = put(Path(folder) / f"data{suffix}", written, cuts=(min(cut, len(written)),))
            expected = written if suffix in WITH_NULL else [text or "" for text in written]
            assert read(path) == expected

    check()


@pytest.mark.parametrize("suffix", [s for s in SUFFIXES if ".txt" not in s and ".tsv" not in s])
@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\r", "\n", "\r", "\r\n", "a\rb", "\ufeffa"])
def test_line_breaks_survive_in_formats_that_have_quotes(tmp_path, suffix, text):
    assert read(put(tmp_path / f"data{suffix}", [text, "next"])) == [text, "next"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_byte_order_mark_at_the_start_of_the_first_text_is_not_lost(tmp_path, suffix):
    written = ["\ufefffirst", "second", "\ufeffthird"]
    assert read(put(tmp_path / f"data{suffix}", written, cuts=(2,))) == written


@pytest.mark.parametrize("suffix", [s for s in SUFFIXES if ".csv" in s or ".tsv" in s])
def test_kept_columns_of_csv_and_tsv_come_back_as_text(suffix):
    @settings(deadline=None, max_examples=25)
    @given(fitting(suffix), fitting(suffix), st.integers())
    def check(text, stars, number):
        with TemporaryDirectory() as folder:
            path = put(Path(folder) / f"data{suffix}", [text], {"stars": [stars], "number": [number]})
            (document,) = read_documents(path, keep=("stars", "number"))
            assert document == Document(text, attributes={"stars": stars, "number": str(number)})

    check()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | encodable,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(encodable, inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson"])
def test_kept_columns_of_jsonl_come_back_with_their_types(suffix):
    @settings(deadline=None, max_examples=40)
    @given(texts, json_values)
    def check(text, value):
        with TemporaryDirectory() as folder:
            path = put(Path(folder) / f"data{suffix}", [text], {"stars": [value]})
            (document,) = read_documents(path, keep=("stars",))
            assert document == Document(text, attributes={"stars": value})
            assert type(document.attributes["stars"]) is type(value)

    check()


one_type = (
    st.sampled_from([st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), encodable])
    .map(lambda values: values | st.none())
    .flatmap(
        lambda values: st.lists(values, min_size=4, max_size=4) | st.lists(st.lists(values), min_size=4, max_size=4)
    )
)


@settings(deadline=None, max_examples=30)
@given(one_type, st.integers(0, 4))
@example([None, None, 1, 2], 2)
@example([[], [None], ["x"], []], 2)
@example([[], [], [], [None, None, None, None]], 1)
def test_kept_columns_of_one_type_come_back_from_parquet(values, cut):
    with TemporaryDirectory() as folder:
        path = put(Path(folder) / "data.parquet", list("abcd"), {"stars": values}, cuts=(cut,))
        assert [document.attributes["stars"] for document in read_documents(path, keep=("stars",))] == values


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_the_columns_may_have_any_names(tmp_path, suffix):
    columns = {"stars, all": ["5"], 'a "b"': ["x"], "text.": ["y"], "": ["z"]}
    path = put(tmp_path / f"data{suffix}", ["one"], columns, text="review, full")
    (document,) = read_documents(path, text="review, full", keep=tuple(columns))
    assert document == Document("one", attributes={name: values[0] for name, values in columns.items()})


# -- what other programs find ---------------------------------------------------------------------------------

AWKWARD = ["plain", 'with "quotes", and\nbreaks\r\n', "Ünïcödé 😀\u2028", ""]


@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
@pytest.mark.parametrize("cuts", [(), (1, 3)])
def test_other_programs_find_what_was_written(tmp_path, compression, cuts):
    def content(name, texts):
        data = put(tmp_path / (name + compression), texts, cuts=cuts).read_bytes()
        if compression == ".gz":
            return gzip.decompress(data).decode()
        # not all programs read a second frame
        return (zstandard.ZstdDecompressor().decompressobj().decompress(data) if compression else data).decode()

    lines = content("data.jsonl", AWKWARD).split("\n")
    assert [json.loads(line)["text"] for line in lines[:-1]] == AWKWARD
    rows = csv.DictReader(io.StringIO(content("data.csv", AWKWARD), newline=""))
    assert list(rows) == [{"text": text} for text in AWKWARD]
    assert content("data.txt", ["a", "b", "c"]) == "a\nb\nc\n"
    assert content("data.tsv", ["a", '"', "c"]) == 'text\na\n"\nc\n'


def test_other_programs_find_a_parquet_file(tmp_path):
    path = put(tmp_path / "data.parquet", ["a", None, "c"], {"stars": [1, 2, 3]}, cuts=(1,))
    table = pq.read_table(path)
    assert table.to_pydict() == {"text": ["a", None, "c"], "stars": [1, 2, 3]}
    assert table.schema == pa.schema({"text": pa.string(), "stars": pa.int64()})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [{"deep": float("-inf")}]])
def test_what_json_has_no_number_for_is_not_written_as_one(value):
    # NaN is what Python calls it; other programs refuse the line
    def refuse(_):
        raise AssertionError

    try:
        data = encode("a.jsonl", ["x"], {"stars": [value]})
    except DataError as error:
        assert "row 1" in str(error)
    else:
        json.loads(data, parse_constant=refuse)


def test_dates_and_times_become_what_everybody_writes():
    day = datetime.datetime(2020, 1, 2, 3, 4, tzinfo=datetime.UTC)
    columns = {"day": [day.date()], "time": [day.time()], "at": [day]}
    assert json.loads(encode("a.jsonl", ["x"], columns)) == {
        "text": "x",
        "day": "2020-01-02",
        "time": "03:04:00",
        "at": "2020-01-02T03:04:00+00:00",
    }


# -- blocks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", KINDS)
def test_the_blocks_one_after_the_other_are_the_file(tmp_path, suffix):
    writer = DocumentWriter(Path(f"a{suffix}"))
    assert not writer.is_assembled
    path = tmp_path / f"a{suffix}"
    path.write_bytes(writer.encode(["a"], {}, row=1, first=True) + writer.encode(["b", "c"], {}, row=2, first=False))
    assert read(path) == ["a", "b", "c"]


@pytest.mark.parametrize("suffix", [*(kind + packed for kind in KINDS for packed in (".gz", ".zst")), ".parquet"])
def test_other_files_are_made_at_the_end(suffix):
    assert DocumentWriter(Path(f"a{suffix}")).is_assembled


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_blocks_without_rows_change_nothing(tmp_path, suffix):
    written = ["\ufeffone", "two"] if ".txt" in suffix else ["one", "two"]
    columns = {"stars": ["1", "2"]} if suffix in WITH_COLUMNS else {}
    path = put(tmp_path / f"a{suffix}", written, columns, cuts=(0, 1, 1, 2))
    assert read(path) == written
    assert [document.attributes for document in read_documents(path, keep=tuple(columns))] == [
        {"stars": value} if columns else None for value in ("1", "2")
    ]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_the_header_is_written_once(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", ["a", "b", "c"], {"stars": [1, 2, 3]}, cuts=(1, 2))
    separator = "," if suffix == ".csv" else "\t"
    assert path.read_text() == "text,stars\na,1\nb,2\nc,3\n".replace(",", separator)


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_only_the_named_columns_are_written(tmp_path, suffix):
    columns = {"age": [3], "name": [MARKER]}
    for each in (columns, pa.table(columns)):
        path = tmp_path / f"a{suffix}"
        writer = DocumentWriter(path, keep=("age",))
        joined(path, writer, [writer.encode(["x"], each, row=1, first=True)])
        assert [document.attributes for document in read_documents(path, keep=("age",))] != [None]
        assert_error(DataError, lambda path=path: list(read_documents(path, keep=("name",))), "'name'")
        assert MARKER.encode() not in path.read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_are_written_only_when_asked_for(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    writer = DocumentWriter(path)
    joined(path, writer, [writer.encode(["x"], {"name": [MARKER]}, row=1, first=True)])
    assert read(path) == ["x"]
    if path.suffix not in (".gz", ".zst", ".parquet"):
        assert MARKER not in path.read_text()


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a\nb", "\n", "a\r\nb", "a\r", "\r"])
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.zst"])
def test_a_text_with_a_line_break_is_refused_by_txt(suffix, text):
    message = assert_error(DataError, lambda: encode(f"a{suffix}", ["fine", MARKER + text], row=7, first=False))
    assert message == "row 8 holds a line break, which a .txt file cannot: write .jsonl or .csv instead"


@pytest.mark.parametrize("text", ["a\tb", "\n", "a\r\nb", "a\r", "\r"])
@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz", ".tsv.zst"])
def test_a_text_or_value_with_a_tab_or_a_line_break_is_refused_by_tsv(suffix, text):
    path = f"a{suffix}"
    expected = "row 2: {!r} holds a tab or a line break, which .tsv cannot: write .jsonl or .csv instead"
    message = assert_error(DataError, lambda: encode(path, ["fine", MARKER + text]))
    assert message == expected.format("text")
    message = assert_error(DataError, lambda: encode(path, ["fine", "fine"], {"age": ["1", MARKER + text]}))
    assert message == expected.format("age")


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.zst"])
def test_columns_to_keep_are_refused_by_txt(suffix):
    message = assert_error(ParameterError, lambda: DocumentWriter(Path(f"a{suffix}"), keep=("age",)))
    assert message == "a .txt file cannot hold kept columns: write .jsonl or .csv, or keep nothing"


@pytest.mark.parametrize("suffix", [*LINES, ".parquet"])
@pytest.mark.parametrize("first", [True, False])
def test_half_a_surrogate_pair_is_no_text(suffix, first):
    act = lambda: encode(f"a{suffix}", ["fine", f"{MARKER}\ud800"], row=3, first=first)  # noqa: E731
    assert_error(DataError, act, "row 4 ", "holds half a surrogate pair, which is no text")


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_half_a_surrogate_pair_in_a_kept_column_is_no_text(suffix):
    act = lambda: encode(f"a{suffix}", ["x", "y"], {"age": ["1", f"{MARKER}\ud800"]})  # noqa: E731
    assert_error(DataError, act, "row", "surrogate")


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_a_column_that_is_to_be_kept_and_is_not_there_is_named(suffix):
    writer = DocumentWriter(Path(f"a{suffix}"), keep=("age",))
    message = assert_error(DataError, lambda: writer.encode([MARKER], {"name": [MARKER]}, row=1, first=True))
    assert message == "expected a column 'age', which is to be kept; the documents have none"


@pytest.mark.parametrize("value", [{MARKER}, object, {"deep": [{MARKER.encode()}]}, {(1, 2): MARKER}])
def test_a_kept_value_that_json_does_not_know_is_named(value):
    message = assert_error(DataError, lambda: encode("a.jsonl", ["x", "y"], {"age": [1, value], "b": [1, 2]}))
    assert message == "row 2: the kept 'age', 'b' cannot all be written as JSON"


def test_a_kept_value_that_holds_itself_is_named():
    value = [MARKER]
    value.append(value)
    message = assert_error(DataError, lambda: encode("a.jsonl", ["x"], {"age": [value]}))
    assert message == "row 1: the kept 'age' cannot all be written as JSON"


@pytest.mark.parametrize(
    "values",
    [[1, "a"], [[1], 2], [{"a": 1}, [1]], [True, 2], [2**70, 1], [2**53 + 1, 0.5], [object, 1]],
)
def test_kept_values_without_a_common_type_are_refused_by_parquet(values):
    message = assert_error(DataError, lambda: encode("a.parquet", ["x", "y"], {"age": values}, row=5))
    assert message == (
        "rows 5 to 6: the kept 'age' holds values of several types, which parquet cannot: write .jsonl, or keep "
        "another column"
    )


@pytest.mark.parametrize("value", [{}, [{}], {"deep": {}}])
def test_a_kept_value_that_parquet_has_no_type_for_is_refused(value):
    assert_error(DataError, lambda: encode("a.parquet", ["x"], {"age": [value]}), "'age'")


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, "a"), (True, 1), ([1], 1), ({"a": 1}, {"a": "x"}), (2**53 + 1, 0.5), ([2**60 + 1], [0.5])],
)
def test_blocks_of_parquet_without_a_common_type_are_refused(tmp_path, first, second):
    assert_error(
        DataError,
        lambda: put(tmp_path / "a.parquet", ["x", "y"], {"age": [first, second]}, cuts=(1,)),
        "kept column",
        "several types",
    )


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_the_text_is_no_column_to_keep_or_the_raw_text_would_leave_beside_the_private_one(tmp_path, suffix):
    path = put(tmp_path / f"data{suffix}", [MARKER])
    expected = "the column {!r} holds the text: to keep it would release it as it was"
    assert assert_error(ParameterError, lambda: read_documents(path, keep=("text",))) == expected.format("text")
    assert assert_error(ParameterError, lambda: DocumentWriter(path, keep=("text",))) == expected.format("text")
    assert_error(ParameterError, lambda: DocumentWriter(path, text="private", keep=("private",)), "'private'")


@pytest.mark.parametrize("suffix", WITH_COLUMNS)
def test_a_column_is_kept_once(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", ["x"], {"age": ["3"]})
    expected = "the column 'age' is named twice among those to keep: name it once"
    assert assert_error(ParameterError, lambda: read_documents(path, keep=("age", "age"))) == expected
    assert assert_error(ParameterError, lambda: DocumentWriter(path, keep=("age", "age"))) == expected


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_writer_leaves_nothing_in_the_folder(tmp_path, suffix):
    encode(tmp_path / f"a{suffix}", ["x"])
    assert os.listdir(tmp_path) == []
