"""Kept columns made anew: equal values, of equal types, give equal bytes, whatever lay beside and beneath them."""

import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings
from planted import LEAVES, MARKER, column, tables
from secrecy import assert_error

from dptext.errors import DataError
from dptext.io.parquet import rebuilt_column
from dptext.io.tables import rebuilt_values


@given(table=tables())
@settings(max_examples=300, deadline=None)
def test_a_column_is_rebuilt_from_its_values_alone(table):
    values = table.column("kept")
    made = rebuilt_column(values, "kept")
    made.validate(full=True)
    assert made.to_pylist() == values.to_pylist()
    # again, from the values by themselves, as Python has them
    assert MARKER not in str(made.type)
    again = pa.chunked_array([pa.array(values.to_pylist(), made.type)])
    assert pickle.dumps(rebuilt_column(again, "kept")) == pickle.dumps(made)
    assert pickle.dumps(rebuilt_column(made, "kept")) == pickle.dumps(made)


@pytest.mark.parametrize("leaf", LEAVES)
def test_chunks_of_the_original_are_not_seen(leaf):
    one = column((leaf,), [False] * 4, [True, True, False, True])
    parts = pa.chunked_array([one.slice(0, 1), one.slice(1, 0), one.slice(1)])
    assert pickle.dumps(rebuilt_column(parts, "kept")) == pickle.dumps(rebuilt_column(one, "kept"))


def test_the_entries_of_a_dictionary_stand_in_the_order_of_their_use_unless_they_have_one():
    codes, entries = pa.array([2, None, 0, 2, 3], pa.int8()), pa.array(["z", "unused", "a", "z", None])
    for ordered, expected in ((False, ["a", "z"]), (True, ["z", "a"])):
        array = pa.DictionaryArray.from_arrays(codes, entries, ordered=ordered)
        made = rebuilt_column(array, "kept")
        assert made.type == array.type
        assert made.chunk(0).dictionary.to_pylist() == expected
        assert made.to_pylist() == ["a", None, "z", "a", "z"]
    by_block = rebuilt_column(array, "kept", ordered=False)
    assert not by_block.type.ordered
    assert by_block.to_pylist() == made.to_pylist()


def test_what_must_not_be_null_has_zeros_where_its_row_is_null():
    inner = pa.struct([
        pa.field("number", pa.int32(), nullable=False),
        pa.field("texts", pa.list_(pa.string()), nullable=False),
        pa.field("code", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("pair", pa.list_(pa.field("item", pa.int8(), nullable=False), 2), nullable=False),
        pa.field("map", pa.struct([pa.field("of", pa.map_(pa.string(), pa.int8()), nullable=False)]), nullable=False),
    ])  # fmt: skip
    value = {"number": 1, "texts": ["x"], "code": "y", "pair": [1, 2], "map": {"of": [("k", 1)]}}
    for rows in ([value, None], [None], []):
        array = pa.array(rows, inner)
        made = rebuilt_column(array, "kept")
        made.validate(full=True)
        assert made.type == inner
        assert made.to_pylist() == rows


def test_what_is_not_known_is_refused_by_the_name_of_its_type():
    nested = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([[MARKER]]))
    for array, kind in (
        (pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([MARKER])], [MARKER]), "sparse_union"),
        (nested, "dictionary of list"),
        (pa.ListArray.from_arrays([0, 1], nested), "dictionary of list"),
        (pa.array([[MARKER]], pa.list_view(pa.field(MARKER, pa.string()))), "list_view"),
    ):
        message = assert_error(DataError, lambda array=array: rebuilt_column(array, "kept"), "'kept'", f"'{kind}'")
        assert message.endswith("convert it, or do not keep it")


def test_objects_are_rebuilt_or_refused_by_their_type():
    class Text(str):
        pass

    nested = [{"a": [1, (2.5, {"b"}, None)]}, "x", b"y"]
    made = rebuilt_values(nested, "kept")
    assert made == nested
    assert made[0] is not nested[0]
    assert made[0]["a"] is not nested[0]["a"]
    endless = []
    endless.append(endless)
    for value, kind in ((Text(MARKER), "Text"), ([{1: Text(MARKER)}], "Text"), (lambda: MARKER, "function")):
        assert_error(DataError, lambda value=value: rebuilt_values([value], "kept"), f"'{kind}'")
    assert_error(DataError, lambda: rebuilt_values([endless], "kept"), "nested without end")
