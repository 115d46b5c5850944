"""Parquet and kept columns: values keep their types, and nothing but the values of the kept rows is written."""

import datetime
import decimal
import errno
import os
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from dptext.errors import DataError, StorageError
from dptext.io.documents import DocumentWriter, read_documents
from dptext.io.tables import rebuilt_column, rebuilt_values
from planted import LEAVES, MARKER, column, tables
from sample_files import joined, not_utf8, put, raw, rows_and_rejects, table
from secrecy import assert_error


def texts_of(path, **options):
    return [text for block in read_documents(path, **options).batches() for text in block.texts]


def carried(source, out, *, keep, text="text", rename=None):
    """A file through reader and writer, with other texts, block by block; and how many blocks there were."""
    writer = DocumentWriter(out, text=rename or text, keep=keep)
    row, parts = 1, []
    for block in read_documents(source, text=text, keep=keep).batches():
        upper = [None if entry is None else entry.upper() for entry in block.texts]
        parts.append(writer.encode(upper, block.columns, row=row, first=not parts))
        row += len(upper)
    joined(out, writer, parts)
    return len(parts)


# -- types ----------------------------------------------------------------------------------------------------

ZONE = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
AT = [datetime.datetime(2020, 1, 2, 3, 4, 5, 678901), None, datetime.datetime(1960, 1, 1), None]

COLUMNS = {
    "int8": pa.array([-128, None, 127, 0], pa.int8()),
    "uint64": pa.array([0, 2**63 - 1, None, 2**53 + 1], pa.uint64()),
    "float16": pa.array([1.5, None, float("inf"), -0.0], pa.float16()),
    "float32": pa.array([0.1, None, -1e30, 3], pa.float32()),
    "decimal": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-99999.99"), 0], pa.decimal128(7, 2)),
    "long decimal": pa.array([decimal.Decimal(10**60), None, 1, 0], pa.decimal256(70, 3)),
    "timestamp with zone": pa.array(AT, pa.timestamp("us", "Europe/Berlin")),
    "timestamp with offset": pa.array(AT, pa.timestamp("us", "+05:30")),
    "timestamp": pa.array([1000, None, 2000, -5000], pa.timestamp("ns")),
    "seconds": pa.array([1, None, 2, -5], pa.timestamp("s")),
    "date": pa.array([datetime.date(2020, 2, 29), None, datetime.date(1, 1, 1), None], pa.date32()),
    "time": pa.array([datetime.time(1, 2, 3, 4), None, datetime.time(0), None], pa.time64("us")),
    "duration": pa.array([1, None, -5, 2**50], pa.duration("ms")),
    "bool": pa.array([True, None, False, True]),
    "null": pa.nulls(4),
    "binary": pa.array([b"\xff\x00", None, b"", MARKER.encode()], pa.binary()),
    "fixed": pa.array([b"\xff\x00", None, b"ab", b"cd"], pa.binary(2)),
    "large binary": pa.array([b"\xff\x00", None, b"", b"x"], pa.large_binary()),
    "string": pa.array(["", None, "é\ud7ff\x00", "\r\n"], pa.string()),
    "large string": pa.array(["", None, "é", "x"], pa.large_string()),
    "string view": pa.array(["", None, "é", "x" * 20], pa.string_view()),
    "dictionary": pa.array(["b", None, "a", "b"]).dictionary_encode(),
    "dictionary of ints": pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 1], pa.int8()), pa.array([50, 60])),
    "list of dictionary": pa.ListArray.from_arrays(
        [0, 2, 2, 3, 4], pa.array(["b", None, "a", "b"]).dictionary_encode()
    ),
    "list": pa.array([[1, None], None, [], [2]], pa.list_(pa.int16())),
    "large list": pa.array([["a", None], None, [], ["b"]], pa.large_list(pa.string())),
    "fixed list": pa.array([[1, 2], None, [3, None], [4, 5]], pa.list_(pa.int32(), 2)),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {"a": 2, "b": ""}]),
    "list of struct": pa.array(
        [[{"a": 1, "b": ["x"]}], None, [], [{"a": None, "b": None}, None]],
        pa.list_(pa.struct({"a": pa.int8(), "b": pa.list_(pa.string())})),
    ),
    "a.b": pa.array([1, 2, 3, 4], pa.int16()),
    "": pa.array([5, 6, 7, 8], pa.uint8()),
}


@pytest.mark.parametrize("rows", [100, 2, 1])
def test_kept_columns_keep_their_values_their_order_and_their_rows(tmp_path, monkeypatch, rows):
    monkeypatch.setattr("dptext.io.batches.BATCH_ROWS", rows)
    monkeypatch.setattr("dptext.io.parquet._ROWS_AT_A_TIME", rows)
    source = table(tmp_path / "in.parquet", {"dropped": [1, 2, 3, 4], **COLUMNS, "text": list("abcd")})
    keep = tuple(reversed(COLUMNS))
    carried(source, tmp_path / "out.parquet", keep=keep, rename="private")
    after = pq.read_table(tmp_path / "out.parquet")
    assert after.column_names == ["private", *keep]
    for name, values in COLUMNS.items():
        assert after.column(name).to_pylist() == values.to_pylist()


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_kept_columns_of_parquet_are_written_to_lines_or_refused(tmp_path, suffix):
    for name, values in COLUMNS.items():
        source = table(tmp_path / "in.parquet", {"text": list("abcd"), name: values})
        out = tmp_path / f"out{suffix}"
        try:
            carried(source, out, keep=(name,))
        except DataError as error:
            assert MARKER not in str(error)
            assert "row" in str(error)
            continue
        assert texts_of(out, keep=(name,)) == ["A", "B", "C", "D"]


def test_only_strings_are_texts_and_damage_is_named(tmp_path):
    path = tmp_path / "a.parquet"

    def refused(columns, *parts, **options):
        assert_error(DataError, lambda: rows_and_rejects(table(path, columns), **options), "a.parquet", *parts)

    refused({"text": [1]}, "row 1: expected a string in 'text', the value is of type int")
    refused({"text": [[MARKER]]}, "the value is of type list")
    refused({"review": [MARKER]}, "expected a column 'text', the file has 1 other: 'review'")
    refused({"text": ["x"], "a": [{"b": 1}]}, "'a.b'", "others", keep=("a.b",))
    refused(
        pa.Table.from_arrays([pa.array(["x"]), pa.array(["y"])], names=["text", "text"]),
        "two columns have the same name",
    )
    refused({"text": pa.array([], pa.string())}, "contains no documents: at least one row")
    content = table(path, {"text": [MARKER * 50, "b"]}).read_bytes()
    for broken in (content[:-20], content[:300], b"PAR1", MARKER.encode() * 50):
        raw(path, broken)
        assert_error(DataError, lambda: rows_and_rejects(path), "is not a parquet file")
    start = pq.ParquetFile(table(path, {"text": [MARKER, "b"]})).metadata.row_group(0).column(0).data_page_offset
    path.write_bytes(path.read_bytes()[:start] + b"\xff" * 10 + path.read_bytes()[start + 10 :])
    assert_error(DataError, lambda: rows_and_rejects(path), "is not a parquet file, or is truncated, damaged")
    table(path, {"text": not_utf8([b"a", MARKER.encode() + b"\xff", b"c"]), "n": [1, 2, 3]})
    assert_error(DataError, lambda: texts_of(path), "a.parquet is not a parquet file", "or not UTF-8")


@pytest.mark.parametrize("failing", ["ParquetFile", "iter_batches"])
def test_a_disk_that_fails_is_not_taken_for_damage(tmp_path, monkeypatch, failing):
    path = put(tmp_path / "x.parquet", ["the man", "of the city"])

    def fail(*_, **__):
        raise OSError(errno.EIO, f"Failed to read {MARKER}. Detail: [errno 5] Input/output error")
        yield

    if failing == "ParquetFile":
        monkeypatch.setattr(pq, failing, lambda *_, **__: next(fail()))
    else:
        monkeypatch.setattr(pq.ParquetFile, failing, fail)
    assert_error(StorageError, lambda: texts_of(path), "cannot read 'x.parquet'", os.strerror(errno.EIO))


def test_texts_may_be_strings_of_any_kind(tmp_path):
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        values = pa.array(["a", None, "", "é"], kind)
        for array in (values, values.cast(pa.large_string()).dictionary_encode()):
            assert texts_of(table(tmp_path / "a.parquet", {"text": array})) == ["a", None, "", "é"]
    assert texts_of(table(tmp_path / "a.parquet", {"text": pa.nulls(2)})) == [None, None]
    columns = {"a": [{"b": 1}], "a.b": [3], "text.full": ["x"], "text": ["p"]}  # a name with a dot is a name
    path = table(tmp_path / "a.parquet", columns)
    (row,) = read_documents(path, text="text.full", keep=("a.b", "a"))
    assert (row.text, row.attributes) == ("x", {"a.b": 3, "a": {"b": 1}})


# -- only values leave ----------------------------------------------------------------------------------------


def test_metadata_of_the_source_is_dropped(tmp_path):
    schema = pa.schema(
        [
            pa.field("text", pa.string(), metadata={"comment": MARKER}),
            pa.field("stars", pa.dictionary(pa.int8(), pa.string()), metadata={"comment": MARKER}),
            pa.field("name", pa.string()),
        ],
        metadata={"author": MARKER},
    )
    stars = pa.DictionaryArray.from_arrays(pa.array([1], pa.int8()), [MARKER, "five"])
    source = table(tmp_path / "in.parquet", pa.table({"text": ["x"], "stars": stars, "name": [MARKER]}, schema=schema))
    assert MARKER.encode() in source.read_bytes()
    carried(source, tmp_path / "out.parquet", keep=("stars",))
    assert MARKER.encode() not in (tmp_path / "out.parquet").read_bytes()
    assert pq.read_schema(tmp_path / "out.parquet").metadata is None


def test_row_groups_have_a_fixed_size_wherever_a_batch_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("dptext.io.batches.BATCH_ROWS", 10)
    monkeypatch.setattr("dptext.io.parquet._ROWS_AT_A_TIME", 10)
    columns = {"text": [str(n) for n in range(95)], "n": list(range(95))}
    source = table(tmp_path / "in.parquet", columns, row_group_size=30)
    assert carried(source, tmp_path / "out.parquet", keep=("n",)) == 10
    assert pq.read_metadata(tmp_path / "out.parquet").num_row_groups == 1
    monkeypatch.setattr("dptext.io.parquet.assemble.__kwdefaults__", {"rows": 40})
    carried(source, tmp_path / "out.parquet", keep=("n",))
    groups = pq.read_metadata(tmp_path / "out.parquet")
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [40, 40, 15]
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == columns


@given(table=tables())
@settings(max_examples=300, deadline=None)
def test_a_column_is_rebuilt_from_its_values_alone(table):
    values = table.column("kept")
    output = rebuilt_column(values, "kept")
    output.validate(full=True)
    assert output.to_pylist() == values.to_pylist()
    # again, from Python values
    assert MARKER not in str(output.type)
    repeated = pa.chunked_array([pa.array(values.to_pylist(), output.type)])
    assert pickle.dumps(rebuilt_column(repeated, "kept")) == pickle.dumps(output)
    assert pickle.dumps(rebuilt_column(output, "kept")) == pickle.dumps(output)


def test_chunks_of_the_original_are_not_seen():
    for leaf in LEAVES:
        one = column((leaf,), [False] * 4, [True, True, False, True])
        parts = pa.chunked_array([one.slice(0, 1), one.slice(1, 0), one.slice(1)])
        assert pickle.dumps(rebuilt_column(parts, "kept")) == pickle.dumps(rebuilt_column(one, "kept"))


def test_only_used_values_of_a_dictionary_stay():
    codes, entries = pa.array([2, None, 0, 2, 3], pa.int8()), pa.array(["z", "unused", "a", "z", None])
    output = rebuilt_column(pa.DictionaryArray.from_arrays(codes, entries), "kept")
    assert (output.type, output.to_pylist()) == (pa.string(), ["a", None, "z", "a", "z"])


def test_unknown_types_are_refused_by_name():
    for array, kind in (
        (pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([MARKER])], [MARKER]), "sparse_union"),
        (pa.RunEndEncodedArray.from_arrays([1], [MARKER]), "run_end_encoded"),
        (pa.array([[MARKER]], pa.list_view(pa.field(MARKER, pa.string()))), "list_view"),
    ):
        message = assert_error(DataError, lambda array=array: rebuilt_column(array, "kept"), "'kept'", f"'{kind}'")
        assert message.endswith("convert it, or do not keep it")


def test_objects_are_rebuilt_or_refused_by_their_type():
    class Text(str):
        pass

    nested = [{"a": [1, (2.5, {"b"}, None)]}, "x", b"y"]
    output = rebuilt_values(nested, "kept")
    assert output == nested
    assert output[0] is not nested[0]
    assert output[0]["a"] is not nested[0]["a"]
    endless = []
    endless.append(endless)
    for value, kind in ((Text(MARKER), "Text"), ([{1: Text(MARKER)}], "Text"), (lambda: MARKER, "function")):
        assert_error(DataError, lambda value=value: rebuilt_values([value], "kept"), f"'{kind}'")
    assert_error(DataError, lambda: rebuilt_values([endless], "kept"), "endlessly nested")
