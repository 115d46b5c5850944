"""Any bytes under any name: documents come out, or one of our errors; no other error, no warning, nothing lost."""

import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sample_files import LINES, SUFFIXES, WITH_COLUMNS, packed, put, table
from secrecy import MARKER, assert_silent

from dptext.errors import DataError, DptextError
from dptext.io.documents import read_documents

pytestmark = pytest.mark.slow

FUZZ = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])

pieces = st.lists(
    st.sampled_from(
        [
            *(b"text", b'"text"', b'{"text": "', b'"}', b"{}", b"[", b"]", b"null", b"5", b'": ', b'{"text": null}\n'),
            *(
                b"\n",
                b"\r",
                b"\r\n",
                b"\t",
                b",",
                b'"',
                b'""',
                b" ",
                b"\x00",
                b"\xef\xbb\xbf",
                b"\xe2\x80\xa8",
                b"\x1a",
            ),
            *(
                b"\xff",
                b"\xc3",
                b"\xed\xa0\x80",
                b"\\ud800",
                b"\\",
                b"a",
                "é😀".encode(),
                b"text\na\n",
                b"text,n\na,1\n",
            ),
            *(b'{"text": "a", "n": 1}\n', b"text\tn\na\t1\n", b"NaN", b"1e999", b"9" * 30),
        ]
    )
    | st.binary(max_size=3),
    max_size=14,
).map(b"".join)


def outcome(path, on_error, **options):
    """What came out, and the reader; an error of ours counts as nothing."""
    reader = None
    try:
        reader = read_documents(path, on_error=on_error, **options)
        texts = [document.text for document in reader]
    except DptextError as error:
        message = assert_silent(error)
        assert path.name in message or str(path) in message
        return None, reader
    assert all(text is None or isinstance(text, str) for text in texts)
    assert all(text is None or text.encode("utf-8") is not None for text in texts), "texts can be written"
    assert reader.count == len(texts)
    assert reader.position == reader.size
    if on_error == "fail":
        assert reader.rejects == []
    last = 0
    for reject in reader.rejects:
        assert last < reject.first <= reject.last
        last = reject.last
        assert reject.file == path.name
        assert len(reject.reason.splitlines()) == 1
    return texts, reader


def skipped(reader):
    return sum(reject.last - reject.first + 1 for reject in reader.rejects)


def both(path, **options):
    """With and without broken rows: where all rows are good both are the same, elsewhere the good ones are left."""
    failed, _ = outcome(path, "fail", **options)
    left, reader = outcome(path, "skip", **options)
    if failed is not None:
        assert left == failed
        assert reader.rejects == []
    elif left is not None:
        assert reader.rejects, "else there was no reason to fail"
    return left, reader


# -- bytes that were never a file -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_random_bytes_are_documents_or_an_error(suffix):
    @FUZZ
    @given(st.binary(max_size=200) | pieces)
    @example(b"")
    @example(b"\n")
    @example(b"\x1f\x8b")
    @example(b"\x28\xb5\x2f\xfd")
    @example(b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
    @example(b"PAR1PAR1")
    @example(b"PAR1\xff\xff\xff\xffPAR1")
    @example(b"PAR1\x00\x00\x00\x00PAR1")
    @example(b"PARE\x00\x00\x00\x00PARE")
    def check(data):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"a{suffix}"
            path.write_bytes(data)
            both(path)

    check()


@pytest.mark.parametrize("suffix", LINES)
def test_random_content_is_documents_or_an_error_and_every_row_is_counted(suffix):
    @FUZZ
    @given(pieces, st.booleans())
    def check(data, keep):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"a{suffix}"
            path.write_bytes(packed(path.name, data))
            left, reader = both(path, keep=("n",) if keep and ".txt" not in suffix else ())
            if left is None or ".csv" in suffix:
                return
            # a line is a row
            lines = len(data.removesuffix(b"\n").split(b"\n"))
            assert len(left) + skipped(reader) == lines - (".tsv" in suffix)

    check()


@FUZZ
@given(st.lists(st.sampled_from(["good", "null", "bad", "list", "blank", "number"]), min_size=1, max_size=12))
def test_every_broken_row_is_listed_under_its_number(kinds):
    lines = {
        "good": f'{{"text": "{MARKER}"}}',
        "null": '{"text": null}',
        "bad": MARKER,
        "list": f'["{MARKER}"]',
        "blank": "",
        "number": '{"text": 1}',
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_text("".join(f"{lines[kind]}\n" for kind in kinds))
        left, reader = both(path)
        good = [kind for kind in kinds if kind in ("good", "null")]
        assert left == ([None if kind == "null" else MARKER for kind in good] or None)
        numbers = [n for n, kind in enumerate(kinds, 1) if kind not in ("good", "null")]
        assert [row for each in reader.rejects for row in range(each.first, each.last + 1)] == numbers
        assert reader.skipped == len(numbers)


# -- files that were damaged ----------------------------------------------------------------------------------

TEXTS = ["one", 'two "quoted", and more', "drei: ü 😀", "", "five " * 20, "six", "seven", "eight"]
mutations = st.lists(
    st.tuples(
        st.sampled_from(["flip", "set", "delete", "insert", "cut", "double"]), st.floats(0, 1), st.binary(max_size=4)
    ),
    min_size=1,
    max_size=4,
)


def mutated(data, changes):
    data = bytearray(data)
    for what, share, extra in changes:
        place = min(int(share * len(data)), max(0, len(data) - 1))
        size = len(extra)
        if what == "flip" and data:
            data[place] ^= (extra + b"\x01")[0] or 1
        elif what == "set":
            data[place : place + size] = extra
        elif what == "delete":
            del data[place : place + size + 1]
        elif what == "insert":
            data[place:place] = extra
        elif what == "double":
            data[place:place] = data[place : place + 50]
        else:
            del data[place:]
    return bytes(data)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The bytes of a good file of each format."""
    folder = tmp_path_factory.mktemp("good")
    columns = {"n": list(range(len(TEXTS))), "s": list("abcdefgh")}
    return {
        suffix: put(folder / f"a{suffix}", TEXTS, columns if suffix in WITH_COLUMNS else {}).read_bytes()
        for suffix in SUFFIXES
    }


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_damaged_file_is_documents_or_an_error(good, suffix):
    @settings(FUZZ, max_examples=40)
    @given(mutations, st.booleans())
    def check(changes, keep):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"a{suffix}"
            path.write_bytes(mutated(good[suffix], changes))
            both(path, keep=("n", "s") if keep and suffix in WITH_COLUMNS else ())

    check()


@pytest.mark.parametrize("suffix", LINES)
def test_a_damaged_content_is_documents_or_an_error_and_every_row_is_counted(good, suffix):
    plain = good[suffix.removesuffix(".gz").removesuffix(".zst")]

    @settings(FUZZ, max_examples=25)
    @given(mutations)
    def check(changes):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"a{suffix}"
            data = mutated(plain, changes)
            path.write_bytes(packed(path.name, data))
            left, reader = both(path)
            if left is not None and ".csv" not in suffix:
                lines = len(data.removesuffix(b"\n").split(b"\n"))
                assert len(left) + skipped(reader) == lines - (".tsv" in suffix)

    check()


@pytest.mark.parametrize("suffix", [suffix for suffix in LINES if suffix.endswith(("gz", "zst"))])
def test_a_compressed_file_that_is_cut_anywhere_is_an_error(tmp_path, good, suffix):
    data = good[suffix]
    path = tmp_path / f"a{suffix}"
    for size in range(1, len(data)):
        path.write_bytes(data[:size])
        assert both(path)[0] is None


def parquet_variants(folder):
    texts = [f"{n % 5} {MARKER}" for n in range(40)]
    columns = {"text": texts, "n": list(range(40)), "deep": [[{"a": n}] for n in range(40)]}
    yield table(folder / "a.parquet", columns, row_group_size=15, compression="none", use_dictionary=False)
    yield table(folder / "b.parquet", columns, row_group_size=15, compression="zstd")
    encoded = pa.table({**columns, "text": pa.array(texts).dictionary_encode()})
    yield table(folder / "c.parquet", encoded, row_group_size=15, data_page_version="2.0")
    nulls = {**columns, "text": [None if n % 3 else text for n, text in enumerate(texts)]}
    yield table(folder / "d.parquet", nulls, compression="none", data_page_size=64)


@pytest.fixture(scope="module")
def parquet_files(tmp_path_factory):
    return [path.read_bytes() for path in parquet_variants(tmp_path_factory.mktemp("parquet"))]


@pytest.mark.parametrize("variant", range(4))
def test_a_damaged_parquet_file_is_documents_or_an_error_and_every_row_is_counted(parquet_files, variant):
    data = parquet_files[variant]

    @settings(FUZZ, max_examples=100)
    @given(mutations, st.sampled_from([(), ("n",), ("deep",)]))
    @example([("flip", 0.484375, b"\x80")], ())
    @example([("flip", 0.474609375, b"\x80")], ())
    @example([("insert", 0.5, bytes(4)), ("set", 0.7621658149064203, b"\\")], ())
    @example([("insert", 0.3333333333333333, b"\x81")], ())
    def check(changes, keep):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.parquet"
            path.write_bytes(mutated(data, changes))
            left, reader = both(path, keep=keep)
            if left is not None:
                assert len(left) + skipped(reader) == pq.read_metadata(path).num_rows

    check()


@pytest.mark.parametrize("variant", range(4))
def test_any_byte_of_the_pages_of_a_parquet_file_may_be_damaged(tmp_path, parquet_files, variant):
    data = parquet_files[variant]
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    before = [document.text for document in read_documents(path)]
    metadata = pq.read_metadata(path)
    column = metadata.row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    assert (metadata.num_rows, column.path_in_schema) == (40, "text")
    for place in range(start, start + column.total_compressed_size):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        left, reader = both(path)
        if left is not None:
            assert len(left) + skipped(reader) == 40
            assert left[-25:] == before[-25:] or variant == 3, "other row groups are what they were"


@pytest.mark.parametrize("extra", [b"\x00", bytes(4), b"\x15"])
def test_pages_that_were_moved_lose_no_row_in_silence(tmp_path, parquet_files, extra):
    path = tmp_path / "a.parquet"
    for data in parquet_files[:2]:
        for place in range(4, len(data), 23):
            path.write_bytes(data[:place] + extra + data[place:])
            left, reader = both(path)
            if left is not None:
                assert len(left) + skipped(reader) == pq.read_metadata(path).num_rows


# -- text that is no file of ours -----------------------------------------------------------------------------


@FUZZ
@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)))
def test_any_json_value_may_be_the_text(value):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_text(json.dumps({"text": value}))
        left, _ = both(path)
        whole = isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)
        assert left == ([value] if whole or value is None else None)


def test_the_errors_of_a_fuzzed_file_are_data_errors(tmp_path):
    # the fuzz above would be content with an error that blames the disk
    path = tmp_path / "a.parquet"
    for data in (b"PAR1", b"PAR1\xff\xff\xff\xffPAR1", b"PAR1\x00\x00\x00\x00PAR1", b"PARE\x00\x00\x00\x00PARE"):
        path.write_bytes(data)
        with pytest.raises(DataError):
            read_documents(path)
