"""Sentence replacement: each private text becomes a text of a public bank, a similar one more often."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from dptext.calibration.reidentification import bank_epsilon
from dptext.methods.base import (
    NO_PREVIEW,
    PROTECTING,
    AdviceInput,
    Assessment,
    Caveat,
    Method,
    label_caveats,
    option,
    wrap_command,
)
from dptext.methods.data import quote
from dptext.methods.questions import LICENCE, PUBLIC
from dptext.privacy.guarantee import Trust
from dptext.sentences.rewriter import BankRewriter

_GOOD_FOR = (
    "One readable text per row. Topics survive (news: .79 at epsilon 4, .88 with the private texts); sentiment does "
    "not (.58 at epsilon 3; label descriptions alone reach .74)."
)


class Bank(Method):
    """``dptext privatize --mechanism bank``."""

    name = "texts of a bank"
    command = "privatize --mechanism bank"
    trust = Trust.LOCAL
    purposes: ClassVar = {None: 2, "read": 2, "classify": 2, "vectors": 0, "devices": 1, "statistics": 2}
    mismatch: ClassVar = {
        "vectors": "The output is public texts: their words are those of the bank's authors, not of your users."
    }

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        bank = case.public.bank
        rewriter = BankRewriter(bank, epsilon=PROTECTING, unit="document")
        good_for = _GOOD_FOR
        if figures:
            similarity, random = bank_epsilon(bank, PROTECTING, unit="document").similarity
            good_for += (
                f" Similarity {similarity:.2f} to the input, at random {abs(random):.2f} ({len(bank):,} public texts)."
            )
        column = [] if case.public.column == "text" else [option("text", case.public.column)]
        files = [*map(quote, case.public.files or (PUBLIC,)), *column]
        options = ("--mechanism bank --bank bank --unit document", f"--epsilon {PROTECTING:g}", *case.keep_options())
        return Assessment(
            statement=rewriter.statement,
            good_for=good_for,
            caveats=tuple(_caveats(case)),
            commands=(
                wrap_command("dptext bank", " ".join(files), f"-o bank --licence {LICENCE}"),
                case.command("privatize", ".bank.jsonl", *options, trust=Trust.LOCAL),
            ),
            preview=case.preview(rewriter) if figures else NO_PREVIEW,
        )


def _caveats(case: AdviceInput) -> Iterator[Caveat]:
    yield from label_caveats(case)
    if case.requirements.trust == "local":
        yield Caveat(0, "Each owner runs it on their own texts, with the same public bank.")
    if case.requirements.trust == "central":
        yield Caveat(0, "As somebody may hold all texts, a synthetic corpus gives each person a stronger guarantee.")
