"""Docstrings as the site shows them: an extension of griffe."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class Docstrings(Extension):
    """Examples stand in docstrings without a fence or a heading: on a page they need a fence."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring of an object that was found."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(r"\1```pycon\n\g<0>\n\1```", obj.docstring.value)
