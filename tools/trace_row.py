"""Count the functions of dptext that hold a row on its way through ``dptext privatize``, and the opens of the input.

A function holds the row if a marker word of the row stands in one of its variables: in a string, or in a string
directly within a list, tuple, mapping or `Document`. Comprehensions count as part of their function.

Run: python tools/trace_row.py
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dptext
from dptext.cli.app import program
from dptext.io.documents import Document

MARKER = "zanzibar"
PACKAGE = Path(dptext.__file__).parent
VECTORS = "cat 0.0 0.0\ndog 0.0 1.0\ntax 9.0 9.0\n"
ROWS = f"text,stars\nmy cat,5\nthe {MARKER} dog,1\na tax,2\n"


def holds_marker(value: object) -> bool:
    """True for a string with the marker, or a list, tuple, mapping or document that directly holds one."""
    if isinstance(value, Mapping):
        value = list(value.values())
    elif isinstance(value, Document):
        value = [value.text]
    values = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(item, str) and MARKER in item for item in values)


def main() -> None:
    functions: set[tuple[str, str]] = set()
    opens: list[object] = []

    def watch_calls(frame: Any, _event: str, _argument: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(str(PACKAGE)) and any(map(holds_marker, list(frame.f_locals.values()))):
            name = code.co_qualname.removesuffix("<genexpr>").removesuffix("<listcomp>").removesuffix(".<locals>.")
            functions.add((str(Path(code.co_filename).relative_to(PACKAGE)), name))

    with tempfile.TemporaryDirectory() as folder:
        source, vectors, out = (Path(folder, name) for name in ("rows.csv", "vectors.txt", "private.csv"))
        source.write_text(ROWS)
        vectors.write_text(VECTORS)
        sys.addaudithook(lambda event, args: opens.append(args) if event == "open" and args[0] == str(source) else None)
        command = f"privatize {source} --out {out} --vectors {vectors} --epsilon 20 --quiet --yes".split()
        sys.setprofile(watch_calls)
        try:
            program(command)(args=command, standalone_mode=False)
        finally:
            sys.setprofile(None)
    for module, function in sorted(functions):
        print(f"{module:24} {function}")
    modules = {module for module, _ in functions}
    print(f"{len(functions)} functions in {len(modules)} modules hold the row; the input is opened {len(opens)} times")


if __name__ == "__main__":
    main()
