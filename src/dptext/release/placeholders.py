"""Placeholders such as ``<name>``, and the marks that stand for them on the way through a word mechanism."""

from __future__ import annotations

import re
from itertools import product

from dptext.errors import ParameterError

__all__ = ["mark", "placeholder", "shown", "unmarked"]

_EDGE, _DIGITS = "\x1f", "\x1c\x1d\x1e"
_CODE_OF = dict(zip("abcdefghijklmnopqrstuvwxyz_", map("".join, product(_DIGITS, repeat=3)), strict=True))
_LETTER_OF = {code: letter for letter, code in _CODE_OF.items()}
_MARK = re.compile(rf"{_EDGE}((?:[{_DIGITS}]{{3}}){{1,40}}){_EDGE}")
_SPACES = dict.fromkeys(map(ord, _EDGE + _DIGITS), " ")


def placeholder(kind: str) -> str:
    """Return the placeholder of a kind, such as ``<name>``."""
    if not isinstance(kind, str) or not re.fullmatch("[a-z_]{1,40}", kind):
        raise ParameterError("a kind must be of 1 to 40 letters a to z or underscores, got another")
    return f"<{kind}>"


def mark(kind: str) -> str:
    """Return the mark of a kind."""
    return f"{_EDGE}{''.join(_CODE_OF[letter] for letter in placeholder(kind)[1:-1])}{_EDGE}"


def shown(text: str) -> str:
    """Return the text with placeholders instead of marks."""
    return _MARK.sub(_placeholder, text) if _EDGE in text else text


def unmarked(text: str) -> str:
    """Return the text with a space for each character that marks consist of."""
    return text.translate(_SPACES)


def _placeholder(match: re.Match[str]) -> str:
    code = match[1]
    return placeholder("".join(_LETTER_OF[code[start : start + 3]] for start in range(0, len(code), 3)))
