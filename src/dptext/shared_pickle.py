"""A pickled object whose large arrays any number of processes read from the same mapped memory.

The file belongs to the job that wrote it and is trusted like its code.
"""

from __future__ import annotations

import hashlib
import io
import mmap
import pickle
import struct
from pathlib import Path
from typing import Any

from dptext.errors import ParameterError, StorageError
from dptext.io.atomic import atomic_file

__all__ = ["load_shared", "save_shared"]

_MAGIC = b"dptext tables 1\n"
_HEADER = struct.Struct("<16sQQ")  # magic, bytes of the pickle, number of arrays
_PLACE = struct.Struct("<QQ")  # where an array begins, and its length
_ALIGNMENT = 64
_SMALL = 4096  # smaller arrays stay in the pickle


def save_shared(thing: object, folder: Path) -> Path:
    """Write an object into a folder, named by its digest; an existing file is kept."""
    arrays: list[memoryview] = []

    def keep_in_pickle(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _SMALL:
            arrays.append(raw)
        return raw.nbytes < _SMALL

    stream = io.BytesIO()
    try:
        pickle.Pickler(stream, protocol=5, buffer_callback=keep_in_pickle).dump(thing)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ParameterError(
            f"a {type(thing).__name__} cannot be sent to other processes ({type(error).__name__}): functions in it "
            "must be importable there, lambdas and functions within functions are not"
        ) from None
    pickled = stream.getvalue()
    end = _HEADER.size + _PLACE.size * len(arrays) + len(pickled)
    places = []
    for array in arrays:
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        places.append((start, array.nbytes))
        end = start + array.nbytes
    head = _HEADER.pack(_MAGIC, len(pickled), len(arrays)) + b"".join(_PLACE.pack(*place) for place in places) + pickled
    digest = hashlib.sha256(head)
    for array in arrays:
        digest.update(array)
    path = folder / f"dptext-{digest.hexdigest()[:32]}.tables"
    if path.exists():
        return path
    with atomic_file(path) as out:
        out.write(head)
        for (start, _), array in zip(places, arrays, strict=True):
            out.write(bytes(start - out.tell()))
            out.write(array)
    return path


def load_shared(path: Path) -> Any:
    """Load an object of `save_shared`; the file stays mapped while its arrays are in use."""
    try:
        with path.open("rb") as stream:
            mapped = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot read {path.name!r}: {type(error).__name__}") from None
    cut = StorageError(f"{path.name!r} was cut or is of another version of dptext: start the job again")
    if len(mapped) < _HEADER.size:
        raise cut
    magic, length, count = _HEADER.unpack_from(mapped)
    start = _HEADER.size + _PLACE.size * count
    if magic != _MAGIC or len(mapped) < start + length:
        raise cut
    places = [_PLACE.unpack_from(mapped, _HEADER.size + _PLACE.size * index) for index in range(count)]
    if any(len(mapped) < place + size for place, size in places):
        raise cut
    buffers = [mapped[place : place + size] for place, size in places]
    return pickle.loads(mapped[start : start + length], buffers=buffers)  # noqa: S301  our own file
