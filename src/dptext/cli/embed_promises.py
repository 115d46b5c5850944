"""What ``dptext embed`` says: the promise before the start, what was written, and the same as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dptext.cli.console import say
from dptext.cli.embed_methods import Learning
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.skipgram import SkipGram
from dptext.privacy.guarantee import ApproxDP, Guarantee, compose, substitution_from_add_remove
from dptext.privacy.public_users import delta_too_large

__all__ = ["Promise", "charge_of", "promises_of", "summary", "tell", "warn_of_delta"]


@dataclass(frozen=True)
class Promise:
    """What a user of a level is promised, all counted in."""

    epsilon: float
    delta: float
    substituted: ApproxDP


def promises_of(learning: Learning, more: ApproxDP | None, *, seeded: bool) -> dict[str, Promise]:
    """By level, before anything is read.

    Raises:
        RefusedError: the vectors were released under a statement that cannot be added.
    """
    found = {}
    for level in learning.levels:
        statement = learning.statement(level, seeded=seeded)
        promise: Guarantee = statement.guarantee
        substituted: Guarantee = learning.under_substitution(level)
        if more is not None:
            promise, substituted = compose(promise, more), compose(substituted, substitution_from_add_remove(more))
        assert isinstance(promise, ApproxDP)
        assert isinstance(substituted, ApproxDP)
        found[level] = Promise(promise.epsilon + statement.slack, promise.delta, substituted)
    return found


def charge_of(learning: Learning, more: ApproxDP | None) -> tuple[Guarantee, dict[str, Any]]:
    """What a ledger charges every user with, before anything is read: the guarantee and its terms."""
    statement = learning.statement(learning.most, seeded=False)
    guarantee = statement.guarantee if more is None else compose(statement.guarantee, more)
    return guarantee, {"unit": statement.unit, "relation": statement.relation, "mechanism": statement.mechanism}


def warn_of_delta(delta: float, public_users: int | None, *, quiet: bool) -> None:
    """Whether it is small enough for so many people."""
    problem = delta_too_large(delta, public_users=public_users)
    if problem is not None:
        say(f"Warning: {problem.replace('public_users=', '--public-users')}.", quiet=quiet)


def tell(model: Cooccurrence | SkipGram, out: str, *, quiet: bool) -> None:
    """What was written; neither users nor texts are counted: what is printed may be shared, and these are protected."""
    vectors = model.vectors_
    new = model.statement_.parameters.get("new_words")
    say(
        f"Wrote vectors of {len(vectors):,} words{'' if new is None else f' ({new:,} of them new)'} to {out}, and "
        "beside them what was promised and a card (README.md).",
        quiet=quiet,
    )
    say(f"Explained by: dptext explain {out}/privacy.json", quiet=quiet)


def summary(model: Cooccurrence | SkipGram, out: str) -> dict[str, Any]:
    """For ``--json``."""
    several = len(model.statements_) > 1
    statements = {level: json.loads(each.to_json()) for level, each in model.statements_.items()}
    return {
        "out": out,
        "words": len(model.vectors_),
        "dimension": model.vectors_.dimension,
        "statement": json.loads(model.statement_.to_json()),
        **({"statements": statements} if several else {}),
    }
