"""Arrays of numbers by name, in one file of the format safetensors.

Reading and writing is the package's. This module adds what callers need beside it: arrays in any layout (the package
writes the memory of an array as it lies, a transposed one in the wrong order), types that numpy has no name for are
refused, and so is a broken file, with one error that shows nothing of its content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from dptext.errors import DataError, ParameterError, StorageError
from dptext.files.streams import open_stored

__all__ = ["read_tensors", "tensor_bytes"]

Array: TypeAlias = npt.NDArray[Any]
_KINDS = "iuf"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")  # as Rust ends the message of a disk that failed


def tensor_bytes(tensors: Mapping[str, npt.ArrayLike], metadata: Mapping[str, str] | None = None) -> bytes:
    """The content of a file of arrays of numbers, and of strings beside them, by name.

    Raises:
        ParameterError: an array of another type, or a name that the format keeps for itself.
    """
    arrays = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS or array.dtype.itemsize > 8 or name == "__metadata__":
            raise ParameterError(
                f"the array {name!r} cannot be stored: expected integers or floating-point numbers of at most 64 bits "
                f"under a name other than '__metadata__', got {array.dtype}"
            )
    return save(arrays, dict(metadata) if metadata else None)


def read_tensors(path: str | os.PathLike[str], *, source: str) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays of a file, read-only, and its metadata.

    They are read into memory, not mapped: what is changed on the disk later changes nothing here. Errors call the file
    ``source``.

    Raises:
        StorageError: it cannot be read.
        DataError: cut, damaged, or of another format.
    """
    open_stored(path).close()  # of a pipe the package would wait for a writer
    try:
        with safe_open(path, framework="np", backend="pread") as file:
            arrays: dict[str, Array] = file.get_tensors()
            metadata: dict[str, str] = file.metadata() or {}
        if all(array.dtype.kind in _KINDS for array in arrays.values()):
            for array in arrays.values():
                array.setflags(write=False)
            return arrays, metadata
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    except (SafetensorError, AttributeError, TypeError, ValueError) as error:  # numpy may have no type or shape for it
        failed = _OS_ERROR.search(str(error))  # the rest of the message may hold what stands in the file
    else:
        failed = None
    if failed is not None:
        number = int(failed[1])
        raise StorageError.of("read", path, OSError(number, os.strerror(number)))
    raise DataError(f"{source} is broken: expected a whole file of arrays of numbers (safetensors); get it again")
