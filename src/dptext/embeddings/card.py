"""The card of shared word vectors: for somebody who receives the folder, and has never heard of differential privacy.

It says nothing but what statements and vectors say: it is post-processing of the release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dptext.privacy.guarantee import at_most
from dptext.privacy.statement import OF_SUBSTITUTION, PrivacyStatement
from dptext.privacy.wording import filled
from dptext.vectors.formats import KNOWN_VECTORS
from dptext.vectors.word_vectors import WordVectors

__all__ = ["card_of"]


def card_of(
    vectors: WordVectors, statements: Mapping[str, PrivacyStatement], *, files: Mapping[str, str], word2vec: str | None
) -> str:
    """The card as Markdown.

    Args:
        vectors: with the statement for everybody.
        statements: by level.
        files: of the statements, by level; empty where there is one only.
        word2vec: the name of the copy for gensim, if there is one.
    """
    statement = vectors.statement
    assert statement is not None
    delta = _delta(statement)
    return filled(
        "embeddings/templates/card.md",
        vectors=vectors,
        statement=statement,
        statements=statements,
        files=files,
        word2vec=word2vec,
        trained="noise_multiplier" in statement.parameters,
        chance=f"at most 1 in {math.floor(1 / delta * (1 + 1e-12)):,}" if delta > 0 else "0",
        delta_of=_delta,
        substitution=_substitution,
        number=_number,
        known_vectors=KNOWN_VECTORS,
    )


def _delta(statement: PrivacyStatement) -> float:
    return float(getattr(statement.guarantee, "delta", 0.0))


def _substitution(statement: PrivacyStatement) -> str | None:
    epsilon, delta = (statement.parameters.get(name) for name in OF_SUBSTITUTION)
    if not isinstance(epsilon, float) or not isinstance(delta, float):
        return None
    return f"epsilon {at_most(epsilon, 4)}, delta {at_most(delta, 3)}"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
