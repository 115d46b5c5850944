"""Arrays in one file, in the safetensors format, read and written with numpy alone: a device has no more than that.

A file is the length of the header (8 bytes, little-endian), the header (JSON: a name -> type, shape and first and last
byte of its data; ``__metadata__`` -> strings), and the data, without holes. The reader takes nothing else: names that
stand twice, data that overlap or leave a hole, shapes that do not fit, bytes before or after are all refused.

Source: the description of the format at https://github.com/huggingface/safetensors (README, "Format").
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError

__all__ = ["read_metadata", "read_tensors", "tensor_bytes"]

Array = npt.NDArray[Any]

_TYPES = {
    "F64": "<f8",
    "I64": "<i8",
    "U64": "<u8",
    "F32": "<f4",
    "I32": "<i4",
    "U32": "<u4",
    "F16": "<f2",
    "I16": "<i2",
    "U16": "<u2",
    "I8": "|i1",
    "U8": "|u1",
    "BOOL": "|b1",
}
"""Widest first: laid out in this order, every array starts at a multiple of its item."""
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
_METADATA = "__metadata__"
_ALIGNED = 8
_LONGEST_HEADER = 100_000_000


def tensor_bytes(tensors: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> list[bytes]:
    """The parts of a file, to be written one after the other.

    Args:
        tensors: arrays of numbers or truth values by name.
        metadata: strings by name.

    Raises:
        ParameterError: a type that the format has no name for.
    """
    arrays = {name: np.asarray(array) for name, array in tensors.items()}
    unknown = [name for name, array in arrays.items() if array.dtype.newbyteorder("<") not in _NAMES]
    if unknown or _METADATA in arrays:
        raise ParameterError(f"the array {(unknown or [_METADATA])[0]!r} has a type or a name that the format has not")
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    parts = []
    start = 0
    for name in sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name)):
        array = arrays[name]
        little = array.dtype.newbyteorder("<")
        data = np.ascontiguousarray(array, dtype=little).tobytes()
        header[name] = {
            "dtype": _NAMES[little],
            "shape": list(array.shape),
            "data_offsets": [start, start + len(data)],
        }
        parts.append(data)
        start += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNED)
    return [len(text).to_bytes(8, "little"), text, *parts]


def read_tensors(content: bytes, *, source: str) -> dict[str, Array]:
    """The arrays of a file, by name: read-only views of its bytes.

    Args:
        content: all bytes of the file.
        source: what errors call it.

    Raises:
        DataError: cut, damaged, or of another format.
    """
    size = _header_size(content, source)
    header, _ = _header(content[8 : 8 + size], source)
    body = memoryview(content)[8 + size :]
    arrays = {}
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: _start(item[1], source)):
        kind, shape, (first, last) = _checked(entry, source)
        if first != end:
            _refuse(source, "its arrays overlap or leave a hole")
        if last - first != math.prod(shape) * kind.itemsize or last > len(body):
            _refuse(source, "an array does not fit its shape")
        if kind == np.bool_ and max(body[first:last], default=0) > 1:
            _refuse(source, "a truth value is neither true nor false")
        # read-only, as bytes are
        arrays[name] = np.frombuffer(body[first:last], dtype=kind).reshape(shape)
        end = last
    if end != len(body):
        _refuse(source, "bytes follow after the last array")
    return arrays


def read_metadata(content: bytes, *, source: str) -> dict[str, str]:
    """What was said beside the arrays of a file.

    Raises:
        DataError: as for `read_tensors`.
    """
    return _header(content[8 : 8 + _header_size(content, source)], source)[1]


def _header_size(content: bytes, source: str) -> int:
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > _LONGEST_HEADER or 8 + size > len(content):
        _refuse(source, "its header is cut")
    return size


def _header(text: bytes, source: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What it says of arrays, and of all else."""
    header: Any = None
    if text[:1] == b"{":
        try:
            header = json.loads(text.decode(), object_pairs_hook=_once)
        except (ValueError, RecursionError):
            header = None
    if not isinstance(header, dict):
        _refuse(source, "its header is no JSON object")
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        _refuse(source, "its metadata are not strings")
    return header, metadata


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _start(entry: Any, source: str) -> tuple[int, int]:
    first, last = _checked(entry, source)[2]
    return first, last


def _checked(entry: Any, source: str) -> tuple[np.dtype[Any], tuple[int, ...], tuple[int, int]]:
    known = isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"}
    code, shape, offsets = map(entry.get if known else {}.get, ("dtype", "shape", "data_offsets"))
    if not (isinstance(code, str) and code in _TYPES and _are_sizes(shape, most=32) and _are_sizes(offsets, most=2)):
        _refuse(source, "the header describes an array in another way than the format does")
    if len(offsets) != 2:
        _refuse(source, "an array has no first and last byte")
    if math.prod(max(size, 1) for size in shape) >= 2**48:  # beside a 0, sizes that no array can have
        _refuse(source, "an array does not fit its shape")
    return np.dtype(_TYPES[code]), tuple(shape), (offsets[0], offsets[1])


def _are_sizes(values: Any, *, most: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) <= most
        and all(type(value) is int and 0 <= value < 2**48 for value in values)
    )


def _refuse(source: str, why: str) -> NoReturn:
    raise DataError(f"{source} is broken: {why}; get it again")
