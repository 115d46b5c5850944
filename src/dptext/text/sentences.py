"""Split a text into sentences by a public rule, which depends on the text alone, on every machine.

Derivation: docs/mechanisms/sentences.md#text-sentences
"""

from __future__ import annotations

import regex

_CLOSING = r"['\"”’»)\]}」』）]*+"
_PARAGRAPH = regex.compile(r"\n[^\S\n]*+\n", regex.V1)
_STOP = regex.compile(rf"(?<![.!?…])([.!?…]++){_CLOSING}\s++|(?<![。！？])[。！？]++{_CLOSING}", regex.V1)
_SHORT = regex.compile(r"\p{L}(?:\.\p{L})*+", regex.V1)
_ABBREVIATED = (
    "mr mrs ms dr prof st sr jr vs etc cf no vol fig inc ltd corp dept gen col capt lt sgt rev hon gov sen jan feb mar "
    "apr jun jul aug sep sept oct nov dec approx est"
)
_ABBREVIATIONS = frozenset(_ABBREVIATED.split())
_LONGEST = 16  # characters in which an abbreviation is looked for
_OPENING = "'\"“‘«([{"


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, stripped; runs of white space within a sentence become one space."""
    result: list[list[str]] = []  # in parts, because concatenating strings would take quadratic time
    for paragraph in _PARAGRAPH.split(text):
        start = 0
        for stop in _STOP.finditer(paragraph):
            if _ends(paragraph, stop):
                _add(result, paragraph[start : stop.end()])
                start = stop.end()
        _add(result, paragraph[start:])
    return [" ".join(entry) for entry in result]


def _ends(text: str, stop: regex.Match[str]) -> bool:
    """Return True if a sentence ends at a punctuation mark."""
    mark = stop[1]
    if mark == ".":
        before = text[max(0, stop.start() - _LONGEST) : stop.start()].split()
        word = before[-1].lstrip(_OPENING) if before else ""
        return _SHORT.fullmatch(word) is None and word.lower() not in _ABBREVIATIONS
    return mark is None or mark.strip(".…") != "" or not text[stop.end() : stop.end() + 1].islower()


def _add(groups: list[list[str]], part: str) -> None:
    sentence = " ".join(part.split())
    if groups and sentence and not any(map(str.isalnum, sentence)):
        groups[-1].append(sentence)
    elif sentence:
        groups.append([sentence])
