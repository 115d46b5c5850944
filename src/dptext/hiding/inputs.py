"""What a hiding encoder is trained on: texts or vectors, told apart and checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.files.column import is_missing
from dptext.hiding.targets import Target
from dptext.representations.domains import Floats, checked_vectors
from dptext.representations.encoders import TextEncoder, checked_texts

__all__ = ["as_vectors", "checked_groups", "run_digest", "texts_to_train_on", "vectors_to_train_on"]


def as_vectors(given: Any) -> Floats | None:
    """An (n, D) array, where that is what was given; else None: texts.

    Raises:
        ParameterError: rows that are no numbers, or not of one length.
    """
    if hasattr(given, "__array__") and getattr(given, "ndim", 0) == 2 and not hasattr(given, "columns"):
        return checked_vectors(np.asarray(given))
    if isinstance(given, list | tuple) and given and isinstance(given[0], list | tuple | np.ndarray):
        return checked_vectors(given)
    return None


def vectors_to_train_on(given: Any, encoder: TextEncoder | None) -> npt.NDArray[np.float32]:
    """(n, D) float32 of texts, or of vectors.

    Raises:
        ParameterError: texts without an encoder, or vectors of another width than the encoder's.
        DataError: a vector that is not finite; its row is named.
    """
    vectors: npt.NDArray[Any] | None = as_vectors(given)
    if vectors is None:
        if encoder is None:
            raise ParameterError("without an encoder, fit takes vectors of shape (n, D): give them, or an encoder")
        vectors = encoder.encode(checked_texts(given))
    elif encoder is not None and encoder.dimension != vectors.shape[1]:
        raise ParameterError(
            f"the vectors have {vectors.shape[1]} numbers, the encoder gives {encoder.dimension}: give vectors of this "
            "encoder, or encoder=None"
        )
    with np.errstate(over="ignore"):
        single = vectors.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(single).all(axis=1))
    if bad.size:
        raise DataError(f"row {bad[0] + 1}: vectors to train on must be finite numbers; leave it out or repair it")
    return single


def texts_to_train_on(given: Any) -> list[str]:
    """The texts, where texts it must be.

    Raises:
        ParameterError: vectors.
        DataError: an entry that is no string.
    """
    if as_vectors(given) is not None:
        raise ParameterError("a recurrent encoder is trained on texts, got vectors")
    return checked_texts(given)


def checked_groups(groups: Any, rows: int) -> list[Any] | None:
    """A group a row, if there are groups.

    Raises:
        ParameterError: something else, or another number of them.
        DataError: a group that is missing, or that nothing can be compared with; its row is named.
    """
    if groups is None:
        return None
    if isinstance(groups, str | bytes | Mapping | AbstractSet) or not isinstance(groups, Iterable):
        raise ParameterError(f"groups must be one group a row (whose text it is), got {type(groups).__name__}")
    given = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if len(given) != rows:
        raise ParameterError(f"groups has {len(given)} entries for {rows} rows: give one a row")
    for row, group in enumerate(given, 1):
        if is_missing(group) or not isinstance(group, Hashable):
            raise DataError(f"row {row}: its group is missing, or a list: give text or a number that says whose it is")
    return given


def run_digest(
    told: Mapping[str, Any],
    inputs: npt.NDArray[np.float32] | Sequence[str],
    targets: Sequence[Target],
    groups: Sequence[Any] | None,
) -> str:
    """Of all that a run hangs on: another digest, another run."""
    digest = hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode())
    if isinstance(inputs, np.ndarray):
        digest.update(np.ascontiguousarray(inputs).tobytes())
    else:
        for text in inputs:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\xff")
    for target in targets:
        digest.update(f"{target.name}\0{target.classes!r}".encode("utf-8", "surrogatepass"))
        digest.update(target.codes.tobytes())
    digest.update(repr(None if groups is None else list(groups)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
