"""Blocks: their digest is that of one list of texts only, and where one ends changes nothing."""

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sample_files import SUFFIXES, WITH_COLUMNS, WITH_NULL, fitting, put, raw

from dptext.io import batches, parquet
from dptext.io.batches import Batch, Reject, as_lists, text_batches
from dptext.io.documents import read_documents

any_text = st.text(st.characters(), max_size=4)  # surrogates included
lists = st.lists(
    st.none() | any_text | st.sampled_from(["", "a", "ab", "b", "\x00", "\ud83d", "\ude00", "😀"]), max_size=5
)


def limits(rows, characters):
    """Smaller blocks, and smaller pieces of a parquet file."""
    limit = mock.patch.multiple(blocks, BLOCK_ROWS=rows, BLOCK_CHARACTERS=characters)
    return limit, mock.patch.object(parquet, "_ROWS_AT_A_TIME", max(1, rows // 2))


# -- digest ---------------------------------------------------------------------------------------------------


AWKWARD = [
    [],
    [""],
    [None],
    ["", ""],
    [None, ""],
    ["", None],
    [None, None],
    ["a", "b"],
    ["b", "a"],
    ["ab"],
    ["ab", ""],
    ["", "ab"],
    ["a", "b", None],
    ["a", None, "b"],
    ["None"],
    ["\x00"],
    ["\x00\x00"],
    ["\x00", "\x00"],
    ["😀"],
    ["\ud83d\ude00"],
    ["\ud83d", "\ude00"],
    ["é"],
    ["e\u0301"],
    ["Ã©"],
    ["\xff" * 8],
]


def test_awkward_lists_of_texts_have_digests_of_their_own():
    digests = [Batch(texts, {}).digest() for texts in AWKWARD]
    assert len(set(digests)) == len(AWKWARD)
    assert {len(digest) for digest in digests} == {32}


@settings(deadline=None, max_examples=300)
@given(lists, lists)
@example(["a", "b"], ["ab", ""])
@example([None], [""])
def test_digests_are_equal_for_equal_texts_only(one, other):
    assert (Batch(one, {}).digest() == Batch(other, {}).digest()) == (one == other)


def test_a_digest_is_that_of_the_texts_whatever_is_beside_them_or_holds_them():
    digest = Batch(["a", None], {}).digest()
    assert digest == Batch(("a", None), {"stars": [1, 2]}, (Reject("a.txt", 3, 3, "why"),)).digest()
    # fixed, because interrupted runs of an older version are compared with it
    assert digest.hex() == "044b07c47ba4ad24cb577e5ef608dd7770214686261ef3d674d058dfa28add08"


# -- where they end -------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(st.lists(st.none() | st.text(max_size=6), max_size=30), st.integers(1, 10), st.integers(1, 12))
def test_texts_in_blocks_are_the_texts(texts, rows, characters):
    with mock.patch.multiple(blocks, BLOCK_ROWS=rows, BLOCK_CHARACTERS=characters):
        parts = list(text_batches(iter(texts)))
    assert list(itertools.chain.from_iterable(part.texts for part in parts)) == texts
    for number, part in enumerate(parts):
        assert 1 <= len(part.texts) <= rows
        assert (part.columns, part.rejects) == ({}, ())
        sizes = [len(text or "") for text in part.texts]
        assert sum(sizes[:-1]) < characters, "a block ends with the row that fills it"
        assert number == len(parts) - 1 or len(sizes) == rows or sum(sizes) >= characters


def test_texts_are_taken_from_a_stream_as_blocks_need_them():
    taken = 0

    def stream():
        nonlocal taken
        for taken in itertools.count(1):  # noqa: B007  counted on purpose
            yield "x"

    first = next(text_batches(stream()))
    assert taken == len(first.texts) == batches.BATCH_ROWS


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_has_the_same_rows_whatever_its_blocks_are(suffix):
    strategy = fitting(suffix)

    @settings(deadline=None, max_examples=15)
    @given(
        st.lists(strategy | st.none() if suffix in WITH_NULL else strategy, min_size=1, max_size=20),
        st.integers(1, 9),
        st.integers(1, 40),
    )
    def check(texts, rows, characters):
        with TemporaryDirectory() as folder:
            columns = {"stars": [str(n) for n in range(len(texts))]} if suffix in WITH_COLUMNS else {}
            path = put(Path(folder) / f"data{suffix}", texts, columns)
            for stack in limits(rows, characters):
                with stack:
                    parts = list(read_documents(path, keep=tuple(columns)).blocks())
                assert list(itertools.chain.from_iterable(part.texts for part in parts)) == texts
                for name, values in columns.items():
                    kept = [list(as_lists(part.columns)[name]) for part in parts]
                    assert list(itertools.chain.from_iterable(kept)) == values
                    assert list(map(len, kept)) == [len(part.texts) for part in parts]

    check()


def test_blocks_of_lines_end_with_the_row_that_fills_them(tmp_path):
    path = raw(tmp_path / "a.txt", "".join(f"{'x' * n}\n" for n in (1, 2, 3, 4, 5, 0, 0, 0, 0, 0)))
    with limits(4, 5)[0]:
        found = [[len(text) for text in block.texts] for block in read_documents(path).batches()]
    assert found == [[1, 2, 3], [4, 5], [0, 0, 0, 0], [0]]


def test_a_block_has_the_rejects_since_the_last_one(tmp_path):
    path = raw(tmp_path / "a.jsonl", "".join('{"text": "x"}\n' if row == "." else "\n" for row in "!..!!.!.!"))
    with limits(2, 100)[0]:
        found = list(read_documents(path, on_error="skip").batches())
    assert [len(block.texts) for block in found] == [2, 2, 0]
    runs = [[(reject.first, reject.last) for reject in block.rejects] for block in found]
    assert runs == [[(1, 1)], [(4, 5), (7, 7)], [(9, 9)]]
    assert found[0].rejects[0] == Reject(
        "a.jsonl", 1, 1, "expected a JSON object, the line is empty; repair it, or copy the file again if it was cut"
    )


def test_columns_as_lists():
    assert as_lists({"a": [1]}) == {"a": [1]}
    assert as_lists(pa.table({"a": [1, None], "b": [["x"], []]})) == {"a": [1, None], "b": [["x"], []]}
