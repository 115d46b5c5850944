"""Options of the redaction before a mechanism, for every command that needs the same redaction again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dptext.errors import ParameterError

if TYPE_CHECKING:
    from dptext.release.mechanism import TextMechanism

__all__ = ["RedactedList", "RedactionOptions"]


RedactedList = Annotated[
    Path | None,
    typer.Option(
        "--redact-list",
        metavar="FILE",
        help="Terms to look for, one a line; of texts that were redacted by a list, that list.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RedactionOptions:
    """What is recognised, and by what."""

    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="First replace addresses, phone numbers, cards, long numbers and dates, found by patterns, by "
            "placeholders such as <email>. Patterns find no names. Recognition promises nothing.",
        ),
    ] = False
    redact_presidio: Annotated[
        bool,
        typer.Option(
            "--redact-presidio",
            help="Also replace names, places and other entities that Presidio recognises in English texts (extra "
            "presidio). Implies --redact.",
        ),
    ] = False
    redact_list: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also redact these terms: UTF-8, one a line. No statement says which."),
    ] = None

    def check_apart(self, outs: Iterable[Path]) -> None:
        """Raise `ParameterError` if an output would overwrite the list."""
        if self.redact_list is not None and self.redact_list.resolve() in (out.resolve() for out in outs):
            raise ParameterError(
                f"{self.redact_list.name!r} is the list of what to redact: choose another name for OUT"
            )

    def around(self, mechanism: TextMechanism) -> TextMechanism:
        """Return the mechanism, behind the redaction if one was asked for."""
        if not (self.redact or self.redact_presidio or self.redact_list):
            return mechanism
        from dptext.release.redaction import PRESIDIO, Redacted, read_terms
        from dptext.text.patterns import KINDS

        return Redacted(
            mechanism,
            kinds=KINDS if self.redact or self.redact_presidio else (),
            words=() if self.redact_list is None else read_terms(self.redact_list),
            analyzer=PRESIDIO if self.redact_presidio else None,
        )
