"""Our own reader and writer of safetensors: the same files as the package's, and nothing but whole ones."""

import json

import numpy as np
import pytest

from dptext.errors import DataError, ParameterError
from dptext.representations.tensors import read_tensors, tensor_bytes

ARRAYS = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "mean": np.array([0.5, -1e300]),
    "words": np.frombuffer(b"a\nb", dtype=np.uint8),
    "flags": np.array([True, False, True]),
    "counts": np.array([[-1], [2**40]]),
    "half": np.array([1.5], dtype=np.float16),
    "one": np.array(7.0),
    "none": np.zeros((0, 4), dtype=np.float32),
}


def file(tensors=ARRAYS, metadata=None):
    return b"".join(tensor_bytes(tensors, metadata))


def raw(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def assert_same(found, expected=ARRAYS):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)


def test_what_is_written_is_read_and_cannot_be_changed():
    found = read_tensors(file(metadata={"format": "np"}), source="f")
    assert_same(found)
    with pytest.raises(ValueError, match="read-only"):
        found["mean"][0] = 1.0
    assert read_tensors(file({}), source="f") == {}


def test_the_package_reads_ours_and_we_read_the_packages():
    safetensors = pytest.importorskip("safetensors.numpy")
    assert_same(safetensors.load(file(metadata={"a": "b"})))
    assert_same(read_tensors(safetensors.save(ARRAYS, metadata={"a": "b"}), source="f"))


def test_big_endian_and_strided_arrays_are_written_as_what_they_hold():
    given = {"a": np.arange(4, dtype=">f8"), "b": np.arange(12.0).reshape(3, 4).T}
    found = read_tensors(file(given), source="f")
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)


def test_types_without_a_name_are_refused():
    for array in (np.array(["text"]), np.array([1j]), np.array([None])):
        with pytest.raises(ParameterError, match="'bad' has a type"):
            tensor_bytes({"bad": array})
    with pytest.raises(ParameterError, match="__metadata__"):
        tensor_bytes({"__metadata__": np.zeros(1)})


def test_every_cut_is_refused():
    whole = file()
    for end in range(len(whole)):
        with pytest.raises(DataError, match="f is broken"):
            read_tensors(whole[:end], source="f")
    with pytest.raises(DataError, match="bytes follow"):
        read_tensors(whole + b"\0", source="f")


ENTRY = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 20,
        raw(b"[]"),
        raw(b' {"a": 1}'),
        raw(b"{\xff}"),
        raw(b"{" * 100_000),
        raw(b'{"a":' * 50_000),
        raw({"__metadata__": {"a": 1}}),
        raw({"__metadata__": []}),
        raw({"a": 1}),
        raw({"a": {"dtype": "U8", "shape": [2]}}, b"ab"),
        raw({"a": {**ENTRY, "more": 1}}, b"ab"),
        raw({"a": {**ENTRY, "dtype": "BF16"}}, b"ab"),
        raw({"a": {**ENTRY, "dtype": ["U8"]}}, b"ab"),
        raw({"a": {**ENTRY, "shape": [2.0]}}, b"ab"),
        raw({"a": {**ENTRY, "shape": [True, 2]}}, b"ab"),
        raw({"a": {**ENTRY, "shape": [-1, -2]}}, b"ab"),
        raw({"a": {**ENTRY, "shape": [2**40, 2**40]}}, b"ab"),
        raw({"a": {**ENTRY, "shape": [1] * 40 + [2]}}, b"ab"),
        raw({"a": {**ENTRY, "shape": [3]}}, b"ab"),
        raw({"a": {**ENTRY, "data_offsets": [0, 2, 4]}}, b"ab"),
        raw({"a": {**ENTRY, "data_offsets": [2, 0]}}, b"ab"),
        raw({"a": {**ENTRY, "data_offsets": [1, 3]}}, b"abc"),
        raw({"a": ENTRY, "b": ENTRY}, b"ab"),
        raw({"a": ENTRY, "b": {**ENTRY, "data_offsets": [3, 5]}}, b"abcde"),
        raw(b'{"a":' + json.dumps(ENTRY).encode() + b',"a":' + json.dumps(ENTRY).encode() + b"}", b"ab"),
        raw({"a": {**ENTRY, "dtype": "BOOL"}}, b"\x01\x02"),
    ],
)
def test_what_the_format_does_not_allow_is_refused(content):
    with pytest.raises(DataError, match="f is broken"):
        read_tensors(content, source="f")


@pytest.mark.parametrize("shape", [[2**47, 2**47, 0], [0, 2**47, 2**47, 2**47], [2**40, 0, 2**40]], ids=str)
def test_an_array_without_numbers_may_not_be_endless_either(shape):
    header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    with pytest.raises(DataError, match="does not fit its shape"):
        read_tensors(len(header).to_bytes(8, "little") + header, source="x")
