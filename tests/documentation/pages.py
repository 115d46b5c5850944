"""The pages of the documentation, and the code that they show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, whether it says that it cannot run, its text, and the line of its fence."""

    page: Path
    line: int
    language: str
    classes: tuple[str, ...]
    text: str
    before: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        return "not-run" not in self.classes


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page, also those that stand indented in a tab or a list."""
    lines = page.read_text(encoding="utf-8").splitlines()
    position, before = 0, ""
    while position < len(lines):
        opened = re.fullmatch(r"(\s*)(`{3,}|~{3,})\s*(.*)", lines[position])
        if opened is None:
            before = lines[position].strip() or before
            position += 1
            continue
        indent, fence, info = opened.groups()
        start, inside = position, []
        position += 1
        while position < len(lines) and lines[position].strip() != fence:
            inside.append(lines[position].removeprefix(indent))
            position += 1
        language, classes = _read(info)
        yield Block(page, start + 1, language, classes, "\n".join(inside) + "\n", before)
        before = ""
        position += 1


def _read(info: str) -> tuple[str, tuple[str, ...]]:
    """``console``, ``json title="x"`` and ``{ .console .not-run }``: the language, and what else is a class."""
    if info.startswith("{"):
        language, *classes = re.findall(r"\.([\w-]+)", info) or [""]
        return language, tuple(classes)
    return info.partition(" ")[0], ()
