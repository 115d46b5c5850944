"""Arrays in a file: any layout comes back as it was, and what is broken or no array of numbers is refused."""

import json
import os
import sys

import numpy as np
import pytest

from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.artifacts import read_tensors, tensor_bytes

ARRAYS = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "mean": np.array([0.5, -1e300, np.nan, np.inf]),
    "words": np.frombuffer(b"a\nb", dtype=np.uint8),
    "counts": np.array([[-1], [2**40]]),
    "half": np.array([1.5], dtype=np.float16),
    "one": np.array(7.0),
    "none": np.zeros((0, 4), dtype=np.float32),
}
ENTRY = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}


@pytest.fixture
def read(tmp_path):
    def read(content):
        path = tmp_path / "f"
        path.write_bytes(content)
        return read_tensors(path, source="f")

    return read


def raw(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_what_is_written_is_read_and_cannot_be_changed(read):
    found, metadata = read(tensor_bytes(ARRAYS, {"format": "np"}))
    assert metadata == {"format": "np"}
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)
    with pytest.raises(ValueError, match="read-only"):
        found["mean"][0] = 1.0
    assert read(tensor_bytes({})) == ({}, {})


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.asfortranarray(np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)),
        np.arange(10)[::2],
        np.arange(10)[::-1],
        np.broadcast_to(np.float32(2.0), (3, 2)),
        np.arange(4, dtype=">f8"),
        np.arange(6, dtype=">i4").reshape(2, 3).T,
    ],
    ids=[
        "transposed",
        "Fortran order",
        "every other",
        "backwards",
        "broadcast",
        "big-endian",
        "big-endian, transposed",
    ],
)
def test_an_array_is_written_as_what_it_holds_however_it_lies(read, array):
    found, _ = read(tensor_bytes({"a": array}))
    np.testing.assert_array_equal(found["a"], array)


@pytest.mark.parametrize("array", [np.array(["text"]), np.array([1j]), np.array([None]), np.array([True])])
def test_what_is_no_number_of_64_bits_is_refused(array):
    with pytest.raises(ParameterError, match="'bad' cannot be stored: expected integers or floating-point numbers"):
        tensor_bytes({"bad": array})


def test_the_name_of_the_metadata_is_refused():
    with pytest.raises(ParameterError, match="'__metadata__' cannot be stored"):
        tensor_bytes({"__metadata__": np.zeros(1)})


def test_every_cut_is_refused(read):
    whole = tensor_bytes(ARRAYS)
    for content in (*(whole[:end] for end in range(len(whole))), whole + b"\0"):
        with pytest.raises(DataError, match="f is broken"):
            read(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 20,
        (2**40).to_bytes(8, "little") + b"{}",
        raw(b"[]"),
        raw(b"{\xff}"),
        raw(b"{" * 100_000),
        raw(b'{"a":' * 50_000),
        raw({"__metadata__": {"a": 1}}),
        raw({"__metadata__": []}),
        raw(b'{"__metadata__":{"a":"1"},"__metadata__":{"a":"2"}}'),
        raw({"a": 1}),
        raw({"a": {"dtype": "U8", "shape": [2]}}, b"ab"),
        raw({"a": {**ENTRY, "dtype": ["U8"]}}, b"ab"),
        raw({"a": {**ENTRY, "shape": [2.0]}}, b"ab"),
        raw({"a": {**ENTRY, "shape": [True, 2]}}, b"ab"),
        raw({"a": {**ENTRY, "shape": [-1, -2]}}, b"ab"),
        raw({"a": {**ENTRY, "shape": [2**40, 2**40]}}, b"ab"),
        raw({"a": {**ENTRY, "shape": [3]}}, b"ab"),
        raw({"a": {**ENTRY, "data_offsets": [0, 2, 4]}}, b"ab"),
        raw({"a": {**ENTRY, "data_offsets": [2, 0]}}, b"ab"),
        raw({"a": {**ENTRY, "data_offsets": [1, 3]}}, b"abc"),
        raw({"a": ENTRY, "b": ENTRY}, b"ab"),
        raw({"a": ENTRY, "b": {**ENTRY, "data_offsets": [3, 5]}}, b"abcde"),
        # the package takes these, numpy does not, or they are no numbers
        raw({"a": {**ENTRY, "dtype": "BF16", "shape": [1]}}, b"ab"),
        raw({"a": {**ENTRY, "dtype": "F8_E4M3"}}, b"ab"),
        raw({"a": {**ENTRY, "dtype": "BOOL"}}, b"\x01\x02"),
        raw({"a": {"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}}, bytes(8)),
        raw({"a": {**ENTRY, "shape": [1] * 70 + [2]}}, b"ab"),
        raw({"a": {"dtype": "F32", "shape": [0, 2**62], "data_offsets": [0, 0]}}),
    ],
)
def test_what_is_no_file_of_arrays_of_numbers_is_refused(read, content):
    with pytest.raises(DataError, match=r"^f is broken: expected a whole file of arrays of numbers .*; get it again$"):
        read(content)


def test_a_file_that_is_not_there_or_none_is_said(tmp_path):
    with pytest.raises(StorageError, match="cannot read"):
        read_tensors(tmp_path / "missing", source="f")
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(StorageError, match="got a pipe"):
            read_tensors(tmp_path / "pipe", source="f")
