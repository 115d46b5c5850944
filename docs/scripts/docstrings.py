"""Docstrings and signatures as the site shows them: an extension of griffe."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)
_SEVERAL = re.compile(r"^ +(?:\*{0,2}\w+, )+\*{0,2}\w+(?=: )", re.MULTILINE)
_NO_SPACE = "\N{NO-BREAK SPACE}"
_INTERNAL = {"ReprMixin"}
"""Bases that say nothing to a reader: how an object looks in a notebook."""


class Docstrings(Extension):
    """Examples stand in docstrings without a fence or a heading: on a page they need a fence."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring of an object that was found, and the bases of a class."""
        if obj.docstring is not None:
            text = _EXAMPLE.sub(r"\1```pycon\n\g<0>\n\1```", obj.docstring.value)
            # of ``a, b: text`` griffe takes what follows a space for a type
            obj.docstring.value = _SEVERAL.sub(lambda match: match[0].replace(", ", f",{_NO_SPACE}"), text)
        if obj.is_class:
            obj.bases = [base for base in obj.bases if str(base).rpartition(".")[2] not in _INTERNAL]

    def on_function(self, *, func: Any, **_: Any) -> None:
        """Show a default that a private constant holds by its value."""
        for parameter in func.parameters:
            name = str(parameter.default)
            constant = func.module.members.get(name) if name.startswith("_") else None
            if constant is not None and constant.is_attribute:
                parameter.default = constant.value
