"""A public object with its large arrays, as one file that any number of processes of a machine read from one memory.

The arrays lie in the file as they lie in memory; the rest is a pickle. Whoever opens the file gets the object back with
arrays that are views of the mapped file: nothing is copied, pages are read when they are first used, and all processes
of a machine share them. The file belongs to the job that wrote it and is as trusted as its code is: it is a pickle.
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
from dptext.own_files import whole_file

__all__ = ["opened_object", "write_object"]

_MAGIC = b"dptext tables 1\n"
_HEADER = struct.Struct("<16sQQ")  # magic, bytes of the pickle, number of arrays
_PLACE = struct.Struct("<QQ")  # where an array begins, and how long it is
_ALIGNED = 64
_SMALL = 4096  # bytes of an array that is not worth a place of its own


def write_object(thing: object, folder: Path) -> Path:
    """Write an object into a folder, under the digest of what it holds; what is there already stays.

    Args:
        thing: what can be pickled. Arrays of a subclass (a memory map that is none but in name) go into the pickle.
        folder: where.

    Raises:
        ParameterError: it cannot be written (a function that was made on the spot, an open file).
        StorageError: the folder cannot be written to.
    """
    arrays: list[memoryview] = []

    def aside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _SMALL:
            return True  # into the pickle
        arrays.append(raw)
        return False

    stream = io.BytesIO()
    try:
        pickle.Pickler(stream, protocol=5, buffer_callback=aside).dump(thing)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ParameterError(
            f"a {type(thing).__name__} cannot be sent to other processes ({type(error).__name__}): functions in it "
            "must be importable there, lambdas and functions within functions are not"
        ) from None
    pickled = stream.getvalue()
    at = _HEADER.size + _PLACE.size * len(arrays) + len(pickled)
    places = []
    for array in arrays:
        at = -(-at // _ALIGNED) * _ALIGNED
        places.append((at, array.nbytes))
        at += array.nbytes
    head = _HEADER.pack(_MAGIC, len(pickled), len(arrays)) + b"".join(_PLACE.pack(*each) for each in places) + pickled
    digest = hashlib.sha256(head)
    for array in arrays:
        digest.update(array)
    path = folder / f"dptext-{digest.hexdigest()[:32]}.tables"
    if path.exists():
        return path
    with whole_file(path) as out:
        out.write(head)
        for (start, _), array in zip(places, arrays, strict=True):
            out.write(bytes(start - out.tell()))
            out.write(array)
    return path


def opened_object(path: Path) -> Any:
    """What `write_object` wrote. The file stays mapped for as long as any of its arrays is in use.

    Raises:
        StorageError: it cannot be read, or was cut.
    """
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
    places = [_PLACE.unpack_from(mapped, _HEADER.size + _PLACE.size * each) for each in range(count)]
    if any(len(mapped) < at + size for at, size in places):
        raise cut
    return pickle.loads(mapped[start : start + length], buffers=[mapped[at : at + size] for at, size in places])  # noqa: S301  our own file
