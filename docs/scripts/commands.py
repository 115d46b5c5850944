"""The command line: a page for each command, from the program itself."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import typer.main

from dptext.cli.app import program


def _context(command: Any, name: str, parent: Any = None) -> Any:
    return command.context_class(command, info_name=name, parent=parent)


def _walk() -> Iterator[tuple[str, Any, Any]]:
    root = typer.main.get_command(program())
    top = _context(root, "dptext")
    yield "dptext", root, top
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        context = _context(command, name, top)
        yield f"dptext {name}", command, context
        for below, inner in getattr(command, "commands", {}).items():
            yield f"dptext {name} {below}", inner, _context(inner, below, context)


def parameters(command: Any, context: Any) -> list[Any]:
    """Visible parameters of a command."""
    return [param for param in command.get_params(context) if not getattr(param, "hidden", False)]


def pages() -> dict[str, str]:
    """The page of each command, its subcommands in it, and an index."""
    result: dict[str, str] = {}
    rows = []
    for path, command, context in _walk():
        if path == "dptext":
            start = f"---\ntitle: Command line\n---\n\n# Command line\n\n{_prose(command.help)}\n\n"
            start += "| command | purpose |\n|---|---|\n"
            options = _table("For the program itself", command, context, path, 2)
            continue
        name, below = path.split()[1], path.count(" ") > 1
        page = f"commands/{name}.md"
        text = _section(path, command, context, 2 if below else 1)
        result[page] = f"{result[page]}\n{text}" if below else f"---\ntitle: {name}\n---\n\n{text}"
        first = _prose(command.help).partition("\n\n")[0]
        rows.append(f"| [`{path}`]({name}.md{'#' + _anchor(path) if below else ''}) | {_cell(first)} |\n")
    result["commands/index.md"] = start + "".join(rows) + "\n" + options
    return result


def _section(path: str, command: Any, context: Any, level: int) -> str:
    usage = re.sub(r"\{(\w+)(?:\.{3})?\}", r"\1", " ".join([path, *command.collect_usage_pieces(context)]))
    text = f"{'#' * level} {path} {{ #{_anchor(path)} }}\n\n{_prose(command.help)}\n\n```text\n{usage}\n```\n\n"
    if getattr(command, "commands", None):  # nothing of its own
        return text
    return text + _table("" if level > 1 else "Arguments and options", command, context, path, level + 1)


def _table(title: str, command: Any, context: Any, path: str, level: int) -> str:
    rows = []
    for parameter in parameters(command, context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        words, text = record
        name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.name
        anchor = f"{_anchor(path)}{'' if name.startswith('-') else '-'}{name}"
        visible = "<br>".join(" ".join(map(_code, form.split())) for form in _wordings(words))
        rows.append(f'| <span id="{anchor}"></span>{visible} | {_cell(text)} |\n')
    if not rows:
        return ""
    heading = f"{'#' * level} {title} {{ #{_anchor(path)}-options }}\n\n" if title else ""
    return f"{heading}| name | meaning |\n|---|---|\n{''.join(rows)}\n"


def _code(text: str) -> str:
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"


def _wordings(words: str) -> list[str]:
    """``-o, --out OUT``: the forms of an option, one per line."""
    words = re.sub(r"<list\[(\w+)\]>", r"<\1>", words)  # which may be said again is in the text
    return [part.strip() for part in re.split(r",\s(?=-)|\s/\s", words)]


def _anchor(path: str) -> str:
    return "-".join(path.split()[1:]) or "dptext"


def _prose(text: str | None) -> str:
    """A help text as Markdown: what stands below one another is one paragraph, stars and brackets are themselves."""
    return "\n\n".join(_escaped(" ".join(part.split())) for part in (text or "").split("\n\n"))


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def _escaped(text: str) -> str:
    text = re.sub(r"([\\*_<>\[\]{}])", r"\\\1", text.replace("``", "`")) if "`" not in text else text.replace("``", "`")
    return re.sub(r"(?<![\w`-])(--[a-z][\w-]*)", r"`\1`", text) if "`" not in text else text


def nav() -> list[object]:
    """The table of contents of the commands."""
    return ["commands/index.md", *({page[9:-3]: page} for page in pages() if "index" not in page)]
