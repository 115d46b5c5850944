"""Arrow columns out of Python and numpy, without pandas.

``pyarrow.array`` and ``to_numpy`` look whether something is of pandas, and import it for that: some 40 MB and a second
in every worker of the engine. Buffers that are laid out here need nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["batch_of", "bytes_column", "number_column", "numbers_in", "text_column", "vector_column"]


def text_column(texts: Sequence[str | None], kind: Any) -> Any:
    """A column of strings.

    Args:
        texts: None where there is none.
        kind: ``pyarrow.string()`` or ``pyarrow.large_string()``.
    """
    encoded = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    return _of_bytes(encoded, kind)


def bytes_column(values: Sequence[bytes]) -> Any:
    """A column of bytes."""
    import pyarrow

    return _of_bytes(values, pyarrow.binary())


def number_column(values: npt.NDArray[Any]) -> Any:
    """A column of the whole numbers or floats of an array."""
    import pyarrow

    kind = pyarrow.from_numpy_dtype(values.dtype)
    return pyarrow.Array.from_buffers(kind, len(values), [None, pyarrow.py_buffer(np.ascontiguousarray(values))])


def numbers_in(column: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The numbers of a column without missing ones, as they lie."""
    values = np.frombuffer(column.buffers()[1] or b"", dtype=dtype)
    return values[column.offset : column.offset + len(column)]


def vector_column(vectors: npt.NDArray[np.float32]) -> Any:
    """A column of lists out of the rows of a matrix."""
    import pyarrow

    ends = np.arange(0, vectors.size + 1, vectors.shape[1], dtype=np.int32)
    return pyarrow.ListArray.from_arrays(number_column(ends), number_column(vectors.ravel()))


def batch_of(columns: Mapping[str, Any]) -> Any:
    """A record batch."""
    import pyarrow

    return pyarrow.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _of_bytes(values: Sequence[bytes | None], kind: Any) -> Any:
    import pyarrow

    width = "<i8" if pyarrow.types.is_large_string(kind) else "<i4"
    lengths = np.fromiter((0 if each is None else len(each) for each in values), dtype=np.int64, count=len(values))
    ends = np.zeros(len(values) + 1, dtype=width)
    np.cumsum(lengths, out=ends[1:])
    there = np.fromiter((each is not None for each in values), dtype=np.bool_, count=len(values))
    mask = None if there.all() else pyarrow.py_buffer(np.packbits(there, bitorder="little"))
    data = pyarrow.py_buffer(b"".join(each for each in values if each is not None))
    return pyarrow.Array.from_buffers(kind, len(values), [mask, pyarrow.py_buffer(ends), data])
