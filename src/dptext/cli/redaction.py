"""What is redacted before a mechanism sees a text: the options, for every command that needs the same map again."""

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
    """What is looked for, and by what."""

    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="First replace what patterns recognise (addresses, numbers, dates, names after a title) by "
            "placeholders such as <email>. Recognition promises nothing.",
        ),
    ] = False
    redact_kinds: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Only these kinds, parted by commas (email, phone, name, ...)."),
    ] = None
    redact_list: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also redact these terms: UTF-8, one a line. No statement says which."),
    ] = None
    redact_presidio: Annotated[
        bool, typer.Option("--redact-presidio", help="Also redact what Presidio's default analyzer recognises.")
    ] = False
    redact_language: Annotated[str, typer.Option(help="Of the texts, for Presidio.")] = "en"

    def check_apart(self, outs: Iterable[Path]) -> None:
        """Whether outputs leave the list as it is, also with ``--force``.

        Raises:
            ParameterError: one of them is the list.
        """
        if self.redact_list is not None and self.redact_list.resolve() in (each.resolve() for each in outs):
            raise ParameterError(
                f"{self.redact_list.name!r} is the list of what to redact: choose another name for OUT"
            )

    def around(self, mechanism: TextMechanism) -> TextMechanism:
        """The mechanism, behind the redaction that is asked for, if any is.

        Raises:
            ParameterError: another kind; a list that is none; a language without Presidio.
            MissingExtraError: Presidio is not installed.
            StorageError: the list cannot be read.
        """
        asked = self.redact or self.redact_presidio or self.redact_kinds is not None or self.redact_list is not None
        if self.redact_language != "en" and not self.redact_presidio:
            raise ParameterError("--redact-language is for Presidio: add --redact-presidio, or leave it out")
        if not asked:
            return mechanism
        from dptext.release.redaction import PRESIDIO, Redacted, read_terms
        from dptext.text.recognition import KINDS

        kinds = [each.strip() for each in (self.redact_kinds or "").split(",") if each.strip()]
        if unknown := [each for each in kinds if each not in KINDS] or (self.redact_kinds is not None and not kinds):
            raise ParameterError(
                f"--redact-kinds: expected some of {', '.join(KINDS)}, parted by commas"
                + (f", got {len(unknown)} others" if isinstance(unknown, list) else ", got none")
            )
        only_list = self.redact_list is not None and not (self.redact or self.redact_presidio or kinds)
        return Redacted(
            mechanism,
            kinds=kinds or (() if only_list else KINDS),
            words=() if self.redact_list is None else read_terms(self.redact_list),
            analyzer=PRESIDIO if self.redact_presidio else None,
            language=self.redact_language,
        )
