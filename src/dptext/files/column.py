"""Texts as scikit-learn hands them over: a list, an array or a Series of strings, some of them missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dptext.errors import ParameterError

__all__ = ["is_missing", "one_column"]


def one_column(texts: Iterable[str | None]) -> Iterable[str | None]:
    """The texts, unless iterating would not go over them: a table yields its columns, a mapping its keys.

    Raises:
        ParameterError: one string, or something with columns.
    """
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise ParameterError(f"texts must be a list, an array or a Series of strings, got {type(texts).__name__}")
    shape = getattr(texts, "shape", (0,))
    if len(shape) != 1:
        raise ParameterError(
            f"texts must be one column, got something with {len(shape)} axes: select the column by its name alone "
            "(table['text'], not table[['text']])"
        )
    return texts


def is_missing(text: object) -> bool:
    """None, NaN, and the values that pandas has for the same (told by name: pandas need not be there)."""
    return text is None or (isinstance(text, float) and text != text) or type(text).__name__ in ("NAType", "NaTType")
