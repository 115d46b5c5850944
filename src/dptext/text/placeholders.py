"""Marks: what stands in a text for something that was taken out, on its way through a mechanism that replaces words.

A placeholder such as ``<name>`` holds a word, which the mechanism would replace. Its mark is made of the separators of
ASCII (U+001C to U+001F), which count as white space: so it is kept as it is, no word touches it, and `shown` makes the
placeholder of it afterwards.
"""

from __future__ import annotations

import re

from dptext.errors import ParameterError

__all__ = ["mark", "placeholder", "shown", "unmarked"]

_EDGE, _DIGITS = "\x1f", "\x1c\x1d\x1e"
_LETTERS = "abcdefghijklmnopqrstuvwxyz_"  # 27, three digits each
_CODES = [one + two + three for one in _DIGITS for two in _DIGITS for three in _DIGITS]
_CODE_OF = dict(zip(_LETTERS, _CODES, strict=True))
_LETTER_OF = dict(zip(_CODES, _LETTERS, strict=True))
_LONGEST = 40
_KIND = re.compile(rf"[a-z_]{{1,{_LONGEST}}}")
_MARK = re.compile(rf"{_EDGE}((?:[{_DIGITS}]{{3}}){{1,{_LONGEST}}}){_EDGE}")
_SPACES = dict.fromkeys(map(ord, _EDGE + _DIGITS), " ")


def placeholder(kind: str) -> str:
    """What stands for something of a kind in the end.

    Raises:
        ParameterError: a kind of other letters than a to z and the underscore, or of more than 40.

    >>> placeholder("name")
    '<name>'
    """
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise ParameterError(f"a kind must be of 1 to {_LONGEST} letters a to z or underscores, got another")
    return f"<{kind}>"


def mark(kind: str) -> str:
    """What stands for it until then.

    >>> shown(f"Mr. {mark('name')}!")
    'Mr. <name>!'
    """
    placeholder(kind)
    return f"{_EDGE}{''.join(_CODE_OF[each] for each in kind)}{_EDGE}"


def shown(text: str) -> str:
    """The text with placeholders for its marks."""
    return _MARK.sub(_placeholder, text) if _EDGE in text else text


def unmarked(text: str) -> str:
    """The text without anything that a mark is made of: a space each."""
    return text.translate(_SPACES)


def _placeholder(found: re.Match[str]) -> str:
    code = found[1]
    return placeholder("".join(_LETTER_OF[code[at : at + 3]] for at in range(0, len(code), 3)))
