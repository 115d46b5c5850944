"""Word replacement: each word becomes a word of similar meaning, at random."""

from __future__ import annotations

from typing import ClassVar

from dptext.calibration.deniability import deniability
from dptext.methods.base import NO_PREVIEW, PROTECTING, AdviceInput, Assessment, Method
from dptext.privacy.guarantee import Trust
from dptext.words.tem import TEM

_ROWS = 100  # words


class Words(Method):
    """``dptext privatize``."""

    name = "words"
    command = "privatize"
    trust = Trust.LOCAL
    never = "No epsilon both protects by its bound and leaves a readable text."
    purposes: ClassVar = {None: 1, "read": 1, "classify": 1, "vectors": 0, "devices": 1, "statistics": 1}
    mismatch: ClassVar = {"vectors": "Randomly replaced words have no neighbours to learn from."}

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        commands = (case.command("privatize", ".words.jsonl", f"--epsilon {PROTECTING:g}", trust=Trust.LOCAL),)
        if case.vectors is None:
            unknown = "Its guarantee, and how many words stay, depend on the word vectors."
            return Assessment(statement=None, good_for=unknown, commands=commands)
        mechanism = TEM(case.vectors, epsilon=PROTECTING)
        good_for = "Hides the exact word among words of similar meaning."
        if figures:
            result = deniability(mechanism, rows=_ROWS, seed=0)
            good_for += (
                f" {result.mean('keep'):.0%} of the words stay (public frequencies); half of them could become "
                f"{int(result.quantile('support', 0.5)):,} others. At epsilon 5, nine of ten stay."
            )
        preview = case.preview(mechanism) if figures else NO_PREVIEW
        return Assessment(statement=mechanism.statement, good_for=good_for, commands=commands, preview=preview)
