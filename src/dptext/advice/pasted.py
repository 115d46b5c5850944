"""Commands to paste: quoted for a shell, folded into lines, with what is public and not known in capitals."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dptext.advice.data import Data
    from dptext.advice.public import PublicTexts


PUBLIC = "PUBLIC.jsonl"
"""Stands for a file of public texts that nobody has named."""
LABELS = "LABEL1,LABEL2"
"""Stands for the public labels: they are never read from the private file."""
LICENCE = "LICENCE"
"""Stands for that of the public texts."""
NEW = "NEW.jsonl"
"""Stands for texts to label."""
TO_FILL_IN = (PUBLIC, LABELS, LICENCE, NEW)
_NO_FILE = "FILE.jsonl"
_WIDTH = 76


def inputs(data: Data) -> str:
    """The private files, as they were named."""
    return " ".join(map(_quoted, data.files)) or _NO_FILE


def out(data: Data, kind: str, suffix: str) -> str:
    """Where what is made goes: beside the working folder's other files, by the name of the first input."""
    first = PurePath(data.files[0] if data.files else _NO_FILE).name
    stem = first.partition(".")[0].replace("*", "").replace("?", "") or "texts"
    return _quoted(f"{stem}.{kind}{suffix}")


def public(texts: PublicTexts) -> str:
    """The public texts, as the options of a command."""
    column = "" if texts.column == "text" else f" {option('public-text', texts.column)}"
    return " ".join(option("public", each) for each in texts.files or (PUBLIC,)) + column


def pool(texts: PublicTexts) -> str:
    """The public texts, as the arguments of a command."""
    column = "" if texts.column == "text" else f" {option('text', texts.column)}"
    return " ".join(map(_quoted, texts.files or (PUBLIC,))) + column


def kept(data: Data) -> list[str]:
    """The labels, which leave as they are: those that seem to say who somebody is are left out."""
    columns = {each.name: each for each in data.columns}
    return [option("keep", each) for each in data.roles.labels if not columns[each].reasons]


def text_option(data: Data) -> list[str]:
    """Which column is the text, where it is not the usual one."""
    return [] if data.roles.text == "text" else [option("text", data.roles.text)]


def user_option(data: Data) -> list[str]:
    """Who wrote a text, where a column says so: their texts add up, which a promise for each text does not say."""
    return [] if data.roles.user is None else [option("user", data.roles.user)]


def unit_option(data: Data) -> str:
    """Who is protected by a way that takes people's texts together."""
    return " ".join(user_option(data)) or "--unit document"


def option(name: str, value: str) -> str:
    """``--name value``, also where the value begins with a dash."""
    return f"--{name}={_quoted(value)}" if value.startswith("-") else f"--{name} {_quoted(value)}"


def _quoted(value: str) -> str:
    return shlex.quote(f"./{value}" if value.startswith("-") and "/" not in value and "." in value else value)


def folded(*words: str) -> str:
    """A command of these parts, over several lines where it is long; no part is broken."""
    lines, line = [], ""
    for each in words:
        if line and len(line) + 1 + len(each) > _WIDTH - 2:
            lines.append(f"{line} \\")
            line = f"    {each}"
        else:
            line = f"{line} {each}" if line else each
    return "\n".join([*lines, line])
