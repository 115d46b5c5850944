"""Which options of ``dptext embed`` belong together, and what some of them mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from dptext.embeddings.sharing import Word2VecFormat
from dptext.errors import ParameterError

__all__ = [
    "COPIES",
    "Method",
    "UnitName",
    "Word2Vec",
    "check_ledger",
    "check_new_words",
    "check_together",
    "parse_levels",
    "training_options",
]


class Method(StrEnum):
    """How vectors are learned."""

    COOCCURRENCES = "co-occurrences"
    SKIP_GRAM = "skip-gram"


class UnitName(StrEnum):
    """What the promise is about."""

    USER = "user"
    DOCUMENT = "document"
    PAIR = "pair"


class Word2Vec(StrEnum):
    """The copy for gensim."""

    BINARY = "binary"
    TEXT = "text"
    NONE = "none"


COPIES: dict[Word2Vec, Word2VecFormat | None] = {
    Word2Vec.BINARY: "binary",
    Word2Vec.TEXT: "text",
    Word2Vec.NONE: None,
}


def check_together(
    *,
    user: str | None,
    unit: UnitName,
    method: Method,
    level: str | None,
    levels: Sequence[str] | None,
    epsilon: float | None,
    default_level: str | None,
) -> None:
    """Which options belong together.

    Raises:
        ParameterError: one is missing, or one too many.
    """
    if unit is UnitName.USER and user is None:
        raise ParameterError(
            "say who wrote a text, and so who is protected: --user COLUMN (or protect single documents, which is no "
            "promise to a person: --unit document)"
        )
    if unit is not UnitName.USER and user is not None:
        raise ParameterError(
            f"--unit {unit} promises nothing to a user: leave --user out, or protect users (--unit user)"
        )
    if unit is UnitName.PAIR and method is not Method.SKIP_GRAM:
        raise ParameterError("--unit pair is for --method skip-gram; one release protects users or documents")
    if levels and epsilon is not None:
        raise ParameterError("--levels hold the epsilons: leave --epsilon out")
    if not levels and epsilon is None:
        raise ParameterError("say what a user may lose: --epsilon 8 (nats), or --level COLUMN --levels strict=1,open=8")
    if bool(levels) != (level is not None):
        raise ParameterError("--level COLUMN says which level a user has, --levels what it means: give both")
    if default_level is not None and not levels:
        raise ParameterError("--default-level is one of the --levels: give these too")


def check_new_words(
    new_words: float | None, delta: float | None, words_per_user: int | None, *, unit: UnitName, seed: int | None
) -> None:
    """Whether new words can be learned in this way.

    Raises:
        ParameterError: they cannot.
    """
    if new_words is None:
        if delta is not None or words_per_user is not None:
            raise ParameterError("--new-words-delta and --words-per-user belong to --new-words EPSILON: give it too")
        return
    if words_per_user is not None and words_per_user < 1:
        raise ParameterError(f"--words-per-user must be at least 1, got {words_per_user}")
    if unit is not UnitName.USER:
        raise ParameterError(f"new words are learned under a promise to users: leave out --new-words or --unit {unit}")
    if seed is not None:
        raise ParameterError("the noise on new words takes no seed: leave out --new-words or --seed")


def check_ledger(*, unit: UnitName, seed: int | None, checkpoint: object) -> None:
    """Whether a ledger can count this release.

    Raises:
        ParameterError: it cannot.
    """
    if seed is not None:
        raise ParameterError("a seed voids the promise, and a ledger counts promises: leave one of the two out")
    if unit is UnitName.PAIR:
        raise ParameterError("a ledger charges users or documents, and nobody can count pairs of words: leave it out")
    if checkpoint is not None:
        raise ParameterError(
            "a ledger charges who is in the input when the release appears, and steps before an interruption may have "
            "seen others: leave out --ledger or --checkpoint"
        )


def training_options(method: Method, given: Mapping[str, Any], *, new_words: float | None) -> dict[str, Any]:
    """Those options of a training that were given, by the names that `SkipGram` has for them.

    Raises:
        ParameterError: they are for another method, or for no such training.
    """
    said = {name: value for name, value in given.items() if value is not None and value is not False}
    if said and method is not Method.SKIP_GRAM:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in said)
        raise ParameterError(f"{names}: for --method skip-gram, which goes step by step; give that too")
    if "resume" in said and "checkpoint" not in said:
        raise ParameterError("--resume goes on from a checkpoint: say which, --checkpoint FILE")
    if "checkpoint" in said and new_words is not None:
        raise ParameterError(
            "new words are drawn anew in each run, so no run goes on with those of another: leave out --checkpoint or "
            "--new-words"
        )
    return said


def parse_levels(given: Sequence[str]) -> dict[str, float]:
    """``["strict=1,open=8"]`` as ``{"strict": 1.0, "open": 8.0}``.

    Raises:
        ParameterError: no name, no number, or a name twice.
    """
    found: dict[str, float] = {}
    for each in (part for one in given for part in one.split(",")):
        name, sign, value = (part.strip() for part in each.rpartition("="))
        try:
            epsilon = float(value)
        except ValueError:
            sign = ""
        if not sign or not name or name in found:
            raise ParameterError("--levels expects NAME=EPSILON,NAME=EPSILON,..., each name once, got something else")
        found[name] = epsilon
    return found
