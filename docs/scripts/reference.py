"""The reference: a page for each name that docs/reference/names.md lists, in the groups of that page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

NAMES = Path(__file__).parents[1] / "reference" / "names.md"
IN_MODULES = "In modules of their own"
"""The heading of names.md below which a row is a module, or a name in one."""


class Name(NamedTuple):
    """A public name: its group, its full name and its page."""

    group: str
    path: str

    @property
    def short(self) -> str:
        """Without the package."""
        return self.path.removeprefix("dptext.")

    @property
    def page(self) -> str:
        """Its page, in the site's sources."""
        return f"reference/{self.short}.md"


def names() -> Iterator[Name]:
    """All names of names.md, in its order."""
    group = ""
    for line in NAMES.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            group = line[3:]
        elif row := re.match(r"\| `([\w.]+)` \|", line):
            yield Name(group, f"dptext.{row[1].removeprefix('dptext.')}")


def content(name: Name) -> str:
    """The page of a name: its docstring, its signature with types, its members."""
    options = {"show_root_full_path": "true"}
    if (module := _module(name.path)) is not None:
        members = [entry for entry in _public(module) if f"dptext.{entry}" not in _at_top()]
        options["members"] = f"[{', '.join(members)}]"
        options["show_root_members_full_path"] = "false"
        options["inherited_members"] = "false"  # what its classes share would stand there many times
    lines = "".join(f"        {key}: {value}\n" for key, value in options.items())
    return f"---\ntitle: {name.short}\n---\n\n::: {name.path}\n    options:\n{lines}"


def _module(path: str) -> ModuleType | None:
    try:
        return import_module(path) if path not in _at_top() else None
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("dptext"):  # an extra is missing: say so
            raise
        return None


def _public(module: ModuleType) -> list[str]:
    """The names a module lists, or else its classes and functions without an underscore."""
    defined = (name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__)
    return getattr(module, "__all__", [name for name in defined if not name.startswith("_")])


def _at_top() -> set[str]:
    return {name.path for name in names() if name.group != IN_MODULES}


def targets() -> dict[str, str]:
    """What a page may call a public name, and the page and anchor of the reference that it means."""
    result = {}
    for name in names():
        result[name.path] = f"{name.page}#{name.path}"
        if name.short[0].isupper():
            result[name.short] = result[name.path]
        if (module := _module(name.path)) is not None:
            for entry in _public(module):
                path = f"{name.path}.{entry}"
                if f"dptext.{entry}" not in _at_top():
                    result[path] = f"{name.page}#{path}"
                    if entry[0].isupper():
                        result.setdefault(entry, result[path])
    return result


def nav() -> list[object]:
    """The table of contents of the reference."""
    groups: dict[str, list[object]] = {}
    for name in names():
        groups.setdefault(name.group, []).append({name.short: name.page})
    return ["reference/names.md", *({group: pages} for group, pages in groups.items())]
