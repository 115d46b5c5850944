"""The sentences of the playground: the promise in the words of the library, and measured numbers beside it."""

from __future__ import annotations

from typing import TypedDict

from dptext.playground.overlaps import Between
from dptext.playground.shown import Attacker
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import Strength, in_a_table, strength_in_brief

_NO_CERTAINTY = 1 - 1e-12  # with noise nobody is certain: what is closer to 1 was rounded
SAME = "Both give the same outputs with the same chances: nobody can tell them apart."


class Promised(TypedDict):
    """What `dptext.playground.shown.Shown` says of a promise."""

    promise: str
    strength: str
    protects: bool


def promised(statement: PrivacyStatement) -> Promised:
    """The promise, and how much it is, in the sentences of `dptext.privacy.wording`."""
    strength = Strength.of_promise(statement)
    return {
        "promise": in_a_table(statement)[0].removesuffix(strength.value).rstrip(),  # `strength` says that
        "strength": strength_in_brief(statement, attacks_follow=False)[0],
        "protects": strength is Strength.PROTECTS,
    }


def attacker(
    knows: str,
    right: Between,
    blind: float,
    *,
    does: str = "names the right one from what came out",
    guess: str | None = None,
) -> Attacker:
    """The best attacker, in a sentence."""
    share = percent(min(right.middle, _NO_CERTAINTY))
    says = (
        f"Somebody who knows how the output is made, and {knows}, {does} in {share} of the cases ({right.how}); "
        f"blindly in {percent(blind)}."
    )
    if guess is not None:
        says += f" From the first output they would guess: {guess}"
    return Attacker(says, right.middle, blind)


def told_apart(overlap: Between) -> str:
    """What an overlap means."""
    right = percent(min(1 - overlap.middle / 2, _NO_CERTAINTY))
    return (
        f"Their outputs overlap by {percent(overlap.middle)} ({overlap.how}): somebody who holds both for equally "
        f"likely names the right one in {right} of the cases; blindly in 50%."
    )


def percent(share: float) -> str:
    """A share in per cent, which is not said to be certain or impossible because of rounding."""
    if 0.999 < share < 1:
        return ">99.9%"
    return "<0.1%" if 0 < share < 0.001 else f"{100 * share:.1f}".removesuffix(".0") + "%"
