"""What a language model is asked, and how its answer is read.

All that a prompt can hold is a `Request`, texts that the model wrote itself, and public words of the caller.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from dptext import checks
from dptext.errors import ParameterError
from dptext.synthesis.sources import Request

__all__ = ["EXAMPLES", "HINTS", "Prompts", "batches", "cleaned", "label_in_words", "texts_of", "turned"]

HINTS = 10
"""Words that one prompt shows; the next one shows the next ones."""
EXAMPLES = 5
"""Texts that one prompt shows; the next one shows the next ones."""

_SYSTEM = """\
You write texts for a data set. Each one stands for itself and reads as if a person had written it on an ordinary day.
You answer with the texts alone: no titles, no remarks, no numbers."""
_PROPOSE = """\
Write new texts, each about something else and in other words than the others. How many: {count}
What they are: {about}
Their label: {label}
Words that are frequent in such texts; use some of them where they fit: {hints}
Examples of what they are like; write others: {examples}
Answer with a JSON list of strings, one for each text, and with nothing else."""
_VARY = """\
Write each of these texts anew: of the same kind and length, in other words, with other names and details.
What they are: {about}
Their label: {label}
The texts ({count}): {texts}
Answer with a JSON list of strings, one for each text, and with nothing else."""

_FIELDS = {
    "system": {"about", "label"},
    "propose": {"count", "about", "label", "hints", "examples"},
    "vary": {"count", "about", "label", "hints", "texts"},
}


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """Templates of what a model is asked."""

    system: str = _SYSTEM
    propose: str = _PROPOSE
    vary: str = _VARY

    def __post_init__(self) -> None:
        for each in fields(self):
            template, known = checks.text(f"the prompt {each.name!r}", getattr(self, each.name)), _FIELDS[each.name]
            try:
                parts = list(string.Formatter().parse(template))
                found = {(field, spec, conversion) for _, field, spec, conversion in parts if field is not None}
            except ValueError:
                found = {("", "", None)}
            if not found <= {(name, "", None) for name in known}:
                raise ParameterError(
                    f"the prompt {each.name!r} may have the fields {', '.join(f'{{{name}}}' for name in sorted(known))}"
                    " and no others; write other braces twice"
                )

    def proposal(self, request: Request, count: int, *, about: str = "", turn: int = 0) -> tuple[str, str]:
        """System and user message that ask for ``count`` new texts; another turn shows other hints and examples."""
        values = {
            "count": str(count),
            "about": about,
            "label": label_in_words(request.label),
            "hints": ", ".join(turned(request.hints, turn, HINTS)),
            "examples": _as_list(turned(request.examples, turn, EXAMPLES)),
        }
        return _filled(self.system, values), _filled(self.propose, values)

    def variation(self, texts: Sequence[str], request: Request, *, about: str = "", turn: int = 0) -> tuple[str, str]:
        """System and user message that ask for one new text for each of these."""
        values = {
            "count": str(len(texts)),
            "about": about,
            "label": label_in_words(request.label),
            "hints": ", ".join(turned(request.hints, turn, HINTS)),
            "texts": _as_list(texts),
        }
        return _filled(self.system, values), _filled(self.vary, values)


def label_in_words(label: Mapping[str, str]) -> str:
    """A label as a prompt names it."""
    return "; ".join(f"{column}: {value}" for column, value in label.items())


def turned(values: Sequence[str], turn: int, most: int) -> tuple[str, ...]:
    """So many of the values; in the next turn, the next ones."""
    start = turn * most % len(values) if len(values) > most else 0
    return tuple([*values[start:], *values[:start]][:most])


def _as_list(texts: Sequence[str]) -> str:
    return json.dumps(list(texts), ensure_ascii=False) if texts else ""


def _filled(template: str, values: Mapping[str, str]) -> str:
    lines = []
    for line in template.split("\n"):
        used = {field for _, field, _, _ in string.Formatter().parse(line) if field is not None}
        if not used or any(values[field] for field in used):
            lines.append(line.format(**values))
    return "\n".join(lines)


# -- answers --------------------------------------------------------------------------------------------------

_THOUGHT_ENDS = "</think>"
_FENCE = re.compile(r"```[\w-]*\n(.*?)(?:```|\Z)", re.DOTALL)
_ITEM = re.compile(r"\s{0,8}(?:[(\[]?\d{1,4}[.):\]]|[-*•])\s+(?=\S)")
_CONTROLS = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127])
_QUOTES = {'"': '"', "“": "”", "«": "»", "'": "'"}
_OF_A_TEXT = ("text", "content")  # what an object that holds one text may call it


def texts_of(answer: str, most: int, *, is_cut: bool = False) -> list[str]:
    """The texts in an answer, at most so many: a JSON list, numbered lines, or lines."""
    body = answer.rpartition(_THOUGHT_ENDS)[2].strip()
    fenced = _FENCE.search(body)
    if fenced:
        body = fenced[1].strip()
    found = _of_json(body)
    if found is None:
        found = [_unquoted(each.strip()) for each in _of_lines(body)]
        if is_cut and len(found) > 1:
            found.pop()
    return list(islice(filter(None, map(cleaned, found)), most))


_LIST = re.compile(r"[\[{]\s*[\[{\"\]}]")
_LIST_OF_STRINGS = re.compile(r"\[(?=\s*\")")
_STRING = re.compile(r"\s*,?\s*(?=\")")
_DECODER = json.JSONDecoder(strict=False)  # which takes a line feed within a string


def _of_json(body: str) -> list[str] | None:
    """The texts of a list somewhere in an answer; None: there is none. Of one that is cut, those that are whole."""
    try:
        return _strings(json.loads(body, strict=False))
    except (ValueError, RecursionError):
        pass
    start = _LIST.search(body)
    try:
        if start is not None:
            return _strings(_DECODER.raw_decode(body, start.start())[0])
    except (ValueError, RecursionError):
        pass
    found = []
    opened = _LIST_OF_STRINGS.search(body)
    place = len(body) if opened is None else opened.end()
    while (comma := _STRING.match(body, place)) is not None:
        try:
            text, place = _DECODER.raw_decode(body, comma.end())
        except ValueError:
            break
        found.append(text)
    # brackets within a sentence make no list
    return found or ([] if body[:1] in ("[", "{") else None)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        named = [value[name] for name in _OF_A_TEXT if isinstance(value.get(name), str)]
        lists = [each for each in value.values() if isinstance(each, list)]
        return named[:1] or (_strings(lists[0]) if len(lists) == 1 else [])
    if isinstance(value, list):
        return [text for each in value if not isinstance(each, list) for text in _strings(each)]
    return []


def _of_lines(body: str) -> list[str]:
    lines = body.split("\n")
    marks = [_ITEM.match(line) for line in lines]
    if sum(mark is not None for mark in marks) < 2 and not (marks and marks[0]):
        whole = [line for line in lines if line.strip()]
        return whole[1:] if len(whole) > 1 and whole[0].rstrip().endswith(":") else whole
    items: list[str] = []
    for line, mark in zip(lines, marks, strict=True):
        if mark is not None:
            items.append(line[mark.end() :])
        elif items and line.strip():
            items[-1] += "\n" + line.strip()
    return items


def cleaned(text: str) -> str:
    """A text that a file can hold: without control characters, halves of surrogate pairs, and white space around it."""
    return text.encode("utf-8", "ignore").decode().translate(_CONTROLS).strip()


def _unquoted(text: str) -> str:
    while len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def batches(texts: Iterable[str], count: int, size: int) -> list[list[str]]:
    """``count`` texts in parts of at most ``size``; where there are fewer, they come again from the first."""
    given = list(texts)
    wanted = [given[place % len(given)] for place in range(count)] if given else []
    return [wanted[start : start + size] for start in range(0, len(wanted), size)]
