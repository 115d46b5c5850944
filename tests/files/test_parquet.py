"""Parquet: kept columns keep their types, damage is named by its rows, and memory does not grow with the file."""

import datetime
import decimal
import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sample_files import damage, joined, not_utf8, rows_and_rejects, table
from secrecy import MARKER, assert_error

from dptext.errors import DataError, StorageError
from dptext.io.batches import as_lists
from dptext.io.documents import DocumentWriter, read_documents


def texts_of(path, **options):
    return [text for block in read_documents(path, **options).batches() for text in block.texts]


def carried(source, out, *, keep, text="text", rename=None):
    """A file through reader and writer, with other texts, block by block; and how many blocks there were."""
    writer = DocumentWriter(out, text=rename or text, keep=keep)
    row, parts = 1, []
    for block in read_documents(source, text=text, keep=keep).batches():
        upper = [None if each is None else each.upper() for each in block.texts]
        parts.append(writer.encode(upper, block.columns, row=row, first=not parts))
        row += len(upper)
    joined(out, writer, parts)
    return len(parts)


# -- types ----------------------------------------------------------------------------------------------------

ZONE = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
AT = [datetime.datetime(2020, 1, 2, 3, 4, 5, 678901), None, datetime.datetime(1960, 1, 1), None]

COLUMNS = {
    "int8": pa.array([-128, None, 127, 0], pa.int8()),
    "uint64": pa.array([0, 2**64 - 1, None, 2**53 + 1], pa.uint64()),
    "float16": pa.array([1.5, None, float("inf"), -0.0], pa.float16()),
    "float32": pa.array([0.1, None, -1e30, 3], pa.float32()),
    "decimal": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-99999.99"), 0], pa.decimal128(7, 2)),
    "long decimal": pa.array([decimal.Decimal(10**60), None, 1, 0], pa.decimal256(70, 3)),
    "timestamp with zone": pa.array(AT, pa.timestamp("us", "Europe/Berlin")),
    "timestamp with offset": pa.array(AT, pa.timestamp("us", "+05:30")),
    "timestamp": pa.array([1, None, 2, -5], pa.timestamp("ns")),
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
    "map to dictionary": pa.MapArray.from_arrays(
        [0, 2, 2, 3, 4], list("klmn"), pa.array(["b", None, "a", "b"]).dictionary_encode()
    ),
    "list": pa.array([[1, None], None, [], [2]], pa.list_(pa.int16())),
    "large list": pa.array([["a", None], None, [], ["b"]], pa.large_list(pa.string())),
    "fixed list": pa.array([[1, 2], None, [3, None], [4, 5]], pa.list_(pa.int32(), 2)),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {"a": 2, "b": ""}]),
    "list of struct": pa.array(
        [[{"a": 1, "b": ["x"]}], None, [], [{"a": None, "b": None}, None]],
        pa.list_(pa.struct({"a": pa.int8(), "b": pa.list_(pa.string())})),
    ),
    "map": pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string(), pa.int64())),
    "a.b": pa.array([1, 2, 3, 4], pa.int16()),
    "": pa.array([5, 6, 7, 8], pa.uint8()),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [100, 2, 1])
def test_a_kept_column_keeps_its_values_and_its_type(tmp_path, monkeypatch, name, rows):
    monkeypatch.setattr("dptext.io.batches.BATCH_ROWS", rows)
    monkeypatch.setattr("dptext.io.parquet._ROWS_AT_A_TIME", rows)
    source = table(tmp_path / "in.parquet", {"text": ["a", None, "b", ""], name: COLUMNS[name]}, row_group_size=3)
    blocks = carried(source, tmp_path / "out.parquet", keep=(name,))
    assert blocks == {100: 1, 2: 2, 1: 4}[rows]
    before, after = pq.read_table(source), pq.read_table(tmp_path / "out.parquet")
    assert after.column("text").to_pylist() == ["A", None, "B", ""]
    assert after.schema.field(name).type == before.schema.field(name).type
    assert after.column(name).combine_chunks().equals(before.column(name).combine_chunks())


def test_all_columns_at_once_keep_their_types_their_order_and_their_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("dptext.io.batches.BATCH_ROWS", 2)
    monkeypatch.setattr("dptext.io.parquet._ROWS_AT_A_TIME", 2)
    source = table(tmp_path / "in.parquet", {"dropped": [1, 2, 3, 4], **COLUMNS, "text": list("abcd")})
    keep = tuple(reversed(COLUMNS))
    carried(source, tmp_path / "out.parquet", keep=keep, rename="private")
    after = pq.read_table(tmp_path / "out.parquet")
    assert after.column_names == ["private", *keep]
    assert after.select(list(COLUMNS)).equals(pq.read_table(source).select(list(COLUMNS)))


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv"])
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


WITHOUT_PANDAS = """
import sys

class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
from dptext.errors import DataError
from dptext.io.documents import read_documents

try:
    print(len(list(read_documents(sys.argv[1], keep=("at",)))))
except DataError:
    print(1)
"""


def test_times_in_nanoseconds_need_no_other_package(tmp_path):
    path = table(tmp_path / "a.parquet", {"text": ["x"], "at": pa.array([1], pa.timestamp("ns"))})
    command = [sys.executable, "-c", WITHOUT_PANDAS, os.fspath(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1\n")


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None, "", "é"], pa.string()),
        pa.array(["a", None, "", "é"], pa.large_string()),
        pa.array(["a", None, "", "é"], pa.string_view()),
        pa.array(["a", None, "", "é"]).dictionary_encode(),
        pa.array(["a", None, "", "é"], pa.large_string()).dictionary_encode(),
    ],
    ids=lambda values: str(values.type),
)
def test_texts_may_be_strings_of_any_kind(tmp_path, values):
    assert texts_of(table(tmp_path / "a.parquet", {"text": values})) == ["a", None, "", "é"]


def test_a_column_of_nulls_holds_no_texts_and_is_none_the_less_one(tmp_path):
    path = table(tmp_path / "a.parquet", {"text": pa.nulls(3), "n": [1, 2, 3]})
    assert texts_of(path) == [None, None, None]
    carried(path, tmp_path / "b.parquet", keep=("n",))
    assert pq.read_table(tmp_path / "b.parquet").to_pydict() == {"text": [None] * 3, "n": [1, 2, 3]}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (pa.array([1, 2]), "int64"),
        (pa.array([b"a", b"b"]), "binary"),
        (pa.array([["a"], ["b"]]), "list<element: string>"),
        (pa.array([{"a": "x"}, {"a": "y"}]), "struct<a: string>"),
        (pa.array([b"a", b"b"]).dictionary_encode(), "dictionary<values=binary, indices=int32, ordered=0>"),
    ],
)
def test_what_is_no_string_is_no_text(tmp_path, values, name):
    path = table(tmp_path / "a.parquet", {"text": values})
    for on_error in ("fail", "skip"):
        message = assert_error(DataError, lambda on_error=on_error: read_documents(path, on_error=on_error))
        assert message == (
            f"a.parquet: expected strings in the column 'text', its type is {name}; name the right column"
        )


# -- names and metadata ---------------------------------------------------------------------------------------


def test_a_name_with_a_dot_is_a_name(tmp_path):
    columns = {"a": [{"b": 1}, {"b": 2}], "a.b": [3, 4], "text.full": ["x", "y"], "text": ["p", "q"]}
    path = table(tmp_path / "a.parquet", columns)
    found = list(read_documents(path, text="text.full", keep=("a.b", "a")))
    assert [document.text for document in found] == ["x", "y"]
    assert [document.attributes for document in found] == [{"a.b": 3, "a": {"b": 1}}, {"a.b": 4, "a": {"b": 2}}]
    assert texts_of(path) == ["p", "q"]
    assert_error(DataError, lambda: read_documents(path, keep=("text.fu",)), "'text.fu'")


def test_a_part_of_a_structure_is_no_column(tmp_path):
    path = table(tmp_path / "a.parquet", {"text": ["x"], "a": [{"b": 1}]})
    assert_error(DataError, lambda: read_documents(path, keep=("a.b",)), "'a.b'", "none")
    assert_error(DataError, lambda: read_documents(path, text="a.b"), "'a.b'", "none")


def test_columns_that_nobody_asked_for_may_share_a_name(tmp_path):
    columns = pa.Table.from_arrays([pa.array(["x"]), pa.array([1]), pa.array([2])], names=["text", "n", "n"])
    path = table(tmp_path / "a.parquet", columns)
    assert texts_of(path) == ["x"]
    assert assert_error(DataError, lambda: read_documents(path, keep=("n",))) == (
        "a.parquet: expected a column 'n', the file has several; name the right column"
    )


def test_metadata_of_the_source_is_dropped(tmp_path):
    schema = pa.schema(
        [
            pa.field("text", pa.string(), metadata={"comment": MARKER}),
            pa.field("stars", pa.int8(), metadata={"comment": MARKER}),
            pa.field("name", pa.string()),
        ],
        metadata={"pandas": f'{{"columns": ["{MARKER}"]}}', "author": MARKER},
    )
    source = table(tmp_path / "in.parquet", pa.table({"text": ["x"], "stars": [1], "name": [MARKER]}, schema=schema))
    assert MARKER.encode() in source.read_bytes()
    (block,) = read_documents(source, keep=("stars",)).blocks()
    assert block.columns.schema.metadata is None
    carried(source, tmp_path / "out.parquet", keep=("stars",))
    assert MARKER.encode() not in (tmp_path / "out.parquet").read_bytes()
    assert pq.read_schema(tmp_path / "out.parquet").metadata is None


# -- row groups and segments ----------------------------------------------------------------------------------


def test_many_segments_become_few_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("dptext.io.batches.BATCH_ROWS", 10)
    monkeypatch.setattr("dptext.io.parquet._ROWS_AT_A_TIME", 10)
    source = table(tmp_path / "in.parquet", {"text": [str(n) for n in range(95)], "n": range(95)}, row_group_size=30)
    out = tmp_path / "out.parquet"
    assert carried(source, out, keep=("n",)) == 10
    assert pq.read_metadata(out).num_row_groups == 1
    assert pq.read_table(out).to_pydict() == {"text": [str(n) for n in range(95)], "n": list(range(95))}
    monkeypatch.setattr("dptext.io.parquet._ROW_GROUP", 40)
    carried(source, out, keep=("n",))
    groups = pq.read_metadata(out)
    # where a block ended depends on the length of private texts: a row group must not show it
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [40, 40, 15]
    assert pq.read_table(out).to_pydict() == {"text": [str(n) for n in range(95)], "n": list(range(95))}


@pytest.mark.parametrize("rows", [0, 1])
def test_a_file_with_hardly_any_rows(tmp_path, rows):
    path = table(tmp_path / "a.parquet", {"text": pa.array(["x"] * rows, pa.string())})
    if rows:
        assert texts_of(path) == ["x"]
    else:
        message = assert_error(DataError, lambda: texts_of(path))
        assert message == "a.parquet holds no documents: expected at least one row"


def test_empty_row_groups_change_nothing(tmp_path):
    path = tmp_path / "a.parquet"
    schema = pa.schema({"text": pa.string()})
    with pq.ParquetWriter(path, schema) as writer:
        for texts in ([], ["a"], [], [], ["b"], []):
            writer.write_table(pa.table({"text": texts}, schema=schema))
    assert texts_of(path) == ["a", "b"]


@pytest.mark.parametrize("options", [{"compression": c} for c in ("none", "snappy", "gzip", "zstd", "lz4", "brotli")])
@pytest.mark.parametrize("more", [{}, {"version": "1.0"}, {"data_page_version": "2.0"}, {"use_dictionary": False}])
def test_files_of_other_programs_are_read(tmp_path, options, more):
    texts = [f"{n % 7} {n}" for n in range(3000)]
    path = table(tmp_path / "a.parquet", {"text": texts}, data_page_size=1000, row_group_size=1100, **options, **more)
    assert texts_of(path) == texts


# -- damage ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [0, 1, 2])
def test_a_damaged_row_group_is_named_or_skipped_by_its_rows(tmp_path, group):
    texts = [f"{n} {MARKER}" for n in range(25)]
    columns = {"text": texts, "n": list(range(25))}
    path = damage(table(tmp_path / "a.parquet", columns, row_group_size=10), group)
    first, last = 10 * group + 1, min(10 * group + 10, 25)
    reason = "the row group is damaged; copy the file again"
    message = assert_error(DataError, lambda: texts_of(path, keep=("n",)))
    assert message == f"a.parquet, rows {first} to {last}: {reason}"
    found, rejects = rows_and_rejects(path, keep=("n",))
    assert found == texts[: first - 1] + texts[last:]
    assert rejects == [("a.parquet", first, last, reason)]
    (block,) = read_documents(path, keep=("n",), on_error="skip").blocks()
    assert as_lists(block.columns)["n"] == [n for n in range(25) if not first <= n + 1 <= last]


@pytest.mark.parametrize("at", ["ParquetFile", "iter_batches"])
@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_a_disk_that_fails_is_not_taken_for_damage_that_may_be_skipped(tmp_path, monkeypatch, at, on_error):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": ["the man", "of the city"]}), path)

    def fail(*_, **__):
        raise OSError(errno.EIO, f"Failed to read {MARKER}. Detail: [errno 5] Input/output error")
        yield

    if at == "ParquetFile":
        monkeypatch.setattr(pq, at, lambda *_, **__: next(fail()))
    else:
        monkeypatch.setattr(pq.ParquetFile, at, fail)
    read = lambda: list(read_documents(path, on_error=on_error))  # noqa: E731
    assert_error(StorageError, read, "cannot read 'x.parquet'", os.strerror(errno.EIO))


def test_a_row_group_that_is_damaged_behind_its_first_pages_loses_the_rest_only(tmp_path, monkeypatch):
    monkeypatch.setattr("dptext.io.parquet._ROWS_AT_A_TIME", 100)
    texts = [hashlib.sha256(f"{n}".encode()).hexdigest() for n in range(5000)]
    path = table(
        tmp_path / "a.parquet", {"text": texts}, row_group_size=4000, data_page_size=2000, use_dictionary=False
    )
    data = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(0)
    place = column.data_page_offset + column.total_compressed_size // 2
    data[place : place + 5000] = b"\xff" * 5000
    path.write_bytes(data)
    found, ((_, first, last, _),) = rows_and_rejects(path)
    assert 1000 < first < 3000
    assert last == 4000
    assert found == texts[: first - 1] + texts[last:]


def test_damage_in_a_column_that_is_not_read_is_none(tmp_path):
    path = table(tmp_path / "a.parquet", {"text": ["x", "y"], "other": ["a", "b"]})
    data = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(1)
    start = column.dictionary_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)
    assert texts_of(path) == ["x", "y"]
    assert_error(DataError, lambda: texts_of(path, keep=("other",)), "rows 1 to 2", "damaged")


def test_a_name_of_a_column_that_is_damaged_is_one_of_our_errors(tmp_path):
    path = table(tmp_path / "a.parquet", {"text": ["x"], f"{MARKER}é": ["y"]})
    data = path.read_bytes().replace(f"{MARKER}é".encode(), f"{MARKER}é".encode("latin-1") + b"\xff")
    path.write_bytes(data)
    for on_error in ("fail", "skip"):
        assert_error(DataError, lambda on_error=on_error: list(read_documents(path, on_error=on_error)), "a.parquet")


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_text_that_is_not_utf8_is_named_or_skipped(tmp_path, monkeypatch, dictionary):
    monkeypatch.setattr("dptext.io.parquet._ROWS_AT_A_TIME", 3)
    bad = MARKER.encode() + b"\xff"
    values = not_utf8([b"a", bad, b"\xc3\xa9", None, b"b", b"c", bad, bad])
    values = values.dictionary_encode() if dictionary else values
    path = table(tmp_path / "a.parquet", {"text": values, "n": list(range(1, 9))})
    reason = "expected UTF-8 in 'text', it is not; convert the column"
    message = assert_error(DataError, lambda: texts_of(path))
    assert message == f"a.parquet, row 2: {reason}"
    found, rejects = rows_and_rejects(path)
    assert found == ["a", "é", None, "b", "c"]
    assert rejects == [("a.parquet", 2, 2, reason), ("a.parquet", 7, 8, reason)]
    (block,) = read_documents(path, keep=("n",), on_error="skip").blocks()
    assert as_lists(block.columns)["n"] == [1, 3, 4, 5, 6]


def test_a_kept_column_that_is_not_utf8_is_named_and_never_quoted(tmp_path):
    bad = MARKER.encode() + b"\xff"
    path = table(tmp_path / "a.parquet", {"text": ["x", "y"], "name": not_utf8([b"a", bad])})
    assert_error(DataError, lambda: list(read_documents(path, keep=("name",))), "'name'")
    for suffix in (".jsonl", ".csv", ".tsv"):
        assert_error(DataError, lambda suffix=suffix: carried(path, tmp_path / f"b{suffix}", keep=("name",)), "'name'")


def test_a_kept_column_that_is_not_utf8_is_no_valid_output(tmp_path):
    path = table(tmp_path / "a.parquet", {"text": ["x", "y"], "name": not_utf8([b"a", b"\xff"])})
    out = tmp_path / "b.parquet"
    try:
        carried(path, out, keep=("name",))
    except DataError as error:
        assert "name" in str(error)
    else:
        assert out.exists()
        assert pq.read_table(out).column("name").cast(pa.binary()).to_pylist() == [b"a", b"\xff"]


# -- opening --------------------------------------------------------------------------------------------------


def test_what_cannot_be_opened_is_a_storage_error(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    assert_error(StorageError, lambda: read_documents(tmp_path / "folder.parquet"), "cannot open", "folder.parquet")
    assert_error(StorageError, lambda: read_documents(tmp_path / "no.parquet"), "cannot open", "No such file")


def test_a_file_may_be_named_from_where_we_are(tmp_path, monkeypatch):
    table(tmp_path / "a.parquet", {"text": ["x"]})
    monkeypatch.chdir(tmp_path)
    assert texts_of("a.parquet") == texts_of(Path("./a.parquet")) == ["x"]


# -- memory ---------------------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_a_row_group(tmp_path):
    rows = 300_000
    path = table(
        tmp_path / "a.parquet",
        {"text": [f"{n:0100}" for n in range(rows)], "n": range(rows)},
        use_dictionary=False,
        compression="none",
        data_page_size=1 << 16,
    )
    assert path.stat().st_size > 30 << 20
    assert pq.read_metadata(path).num_row_groups == 1
    before = pa.total_allocated_bytes()
    peak = seen = 0
    reader = read_documents(path, keep=("n",))
    for block in reader.batches():
        seen += len(block.texts)
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert seen == rows
    assert peak < 8 << 20
    del block, reader
    assert pa.total_allocated_bytes() <= before


def test_memory_does_not_grow_with_the_segments(tmp_path, monkeypatch):
    monkeypatch.setattr("dptext.io.parquet._ROW_GROUP", 4000)
    writer = DocumentWriter(tmp_path / "a.parquet")
    texts = [hashlib.sha512(f"incompressible {n}".encode()).hexdigest() for n in range(4000)]
    parts = [writer.encode(texts, {}, row=1 + 4000 * n, first=n == 0) for n in range(30)]
    out = tmp_path / "a.parquet"
    seen = []

    class Watched:
        def __init__(self, stream):
            self._stream = stream

        closed = False

        def write(self, data):
            seen.append(pa.total_allocated_bytes())
            return self._stream.write(data)

        def flush(self):
            self._stream.flush()

    spool = tmp_path / "blocks"
    spool.write_bytes(b"".join(parts))
    ends = [sum(map(len, parts[: n + 1])) for n in range(30)]
    before = pa.total_allocated_bytes()
    with out.open("wb") as stream:
        writer.finish(spool, ends, Watched(stream))
    assert max(seen) - before < 12 << 20
    assert pq.read_metadata(out).num_rows == 120_000
