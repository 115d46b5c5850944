"""The public texts of the playground: the sample that is bundled for the demo."""

from __future__ import annotations

import gzip
import json
from functools import cached_property
from importlib.resources import files

_PUBLIC = 2000
_PEOPLE = 2000
_KNOWN = 99
_WORDS = 8  # of a text to try, at least


class Samples:
    """Utterances of SNIPS (CC0)."""

    name = "SNIPS"

    @cached_property
    def to_try(self) -> tuple[tuple[str, str], ...]:
        """(title, text), one of each intent."""
        found: dict[str, str] = {}
        for row in _bundled("test"):
            if row["intent"] not in found and len(row["text"].split()) >= _WORDS:
                found[row["intent"]] = row["text"]
        return tuple(found.items())

    @cached_property
    def public(self) -> list[str]:
        """The public pool: what comes out."""
        return [row["text"] for row in self._train[1::2][:_PUBLIC]]

    @cached_property
    def people(self) -> list[str]:
        """Texts of made-up people, one each."""
        return [row["text"] for row in self._train[::2][:_PEOPLE]]

    def among(self, text: str) -> list[str]:
        """Texts of which an attacker knows that one came in: this one first, and others."""
        others = dict.fromkeys(row["text"] for row in _bundled("test"))
        return [text, *[each for each in others if each != text][:_KNOWN]]

    def another(self, text: str) -> str:
        """A text that is not this one."""
        return next(each for _, each in self.to_try if each != text)

    @cached_property
    def _train(self) -> list[dict[str, str]]:
        return _bundled("train")


def _bundled(name: str) -> list[dict[str, str]]:
    content = (files("dptext") / "cli" / "sample" / f"snips-{name}.jsonl.gz").read_bytes()
    return [json.loads(line) for line in gzip.decompress(content).decode().splitlines()]
