"""Find the epsilon that reaches a target, for a vocabulary and a mechanism.

Derivation: docs/understand/epsilon.md#calibration-calibration
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from dptext.calibration.deniability import (
    Deniability,
    check_weights,
    deniability,
    distances_from,
    distributions_of,
    kept_and_support,
    sample_words,
    weighted_quantile,
)
from dptext.calibration.reidentification import (
    DIGITS,
    BankCalibration,
    UnreachableError,
    calibrate_bank,
    crossing,
    fresh_seed,
    log_odds,
)
from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError
from dptext.privacy.guarantee import rounded_down
from dptext.privacy.wording import facts_of
from dptext.sentences.bank import TextBank
from dptext.validation import check_choice, check_float
from dptext.vectors.formats import VectorsLike, word_vectors
from dptext.vectors.search import ExactDistances
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import MECHANISMS

EXACT_TOLERANCE = 1e-4  # log-odds: a keep rate is off by a quarter of it at most
SAMPLED_TOLERANCE = 1e-2
_SUPPORT_TOLERANCE = 0.02  # of ln S: 51 words instead of 50
_PROBE = 64  # words whose nearest neighbours give the first epsilon


class Family:
    """A mechanism with everything fixed but epsilon: call it with one."""

    def __init__(
        self, vectors: WordVectors, mechanism: str | Callable[..., WordMechanism] = "tem", **options: Any
    ) -> None:
        build: Callable[..., WordMechanism] = (
            MECHANISMS[check_choice("mechanism", mechanism, MECHANISMS)] if isinstance(mechanism, str) else mechanism
        )
        self.vectors = vectors
        self.name = str(getattr(build, "name", getattr(build, "__name__", "mechanism")))
        self._build, self._options = build, options

    def __call__(self, epsilon: float) -> WordMechanism:
        return self._build(self.vectors, epsilon=epsilon, **self._options)

    def start(self) -> float:
        """Return the first epsilon of a search: 2 ln V over the median distance to the nearest other word, or less."""
        vectors, of_a_choice = self.vectors, 2 * math.log(len(self.vectors))
        probes = np.unique(np.linspace(0, len(vectors) - 1, _PROBE).astype(np.int64))
        distance = distances_from(ExactDistances(vectors.matrix), probes)
        nearest = np.where(distance > 0, distance, np.inf).min(axis=1)
        nearest = nearest[np.isfinite(nearest)]
        usual = of_a_choice / float(np.median(nearest)) if nearest.size else 1.0
        if usual > of_a_choice:
            try:
                self(usual)
            except ParameterError:
                return of_a_choice
        return usual


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(ReprMixin):
    """Result of `calibrate`: an epsilon (four digits, rounded towards more privacy), its target and the reached value.

    ``error`` is half the width of a 95% interval around ``reached`` for a keep rate; NaN for a support, whose intervals
    are in ``deniability``, with all other measures.
    """

    epsilon: float
    target: str
    goal: float
    reached: float
    error: float
    deniability: Deniability
    mechanism: WordMechanism

    def _repr_fields(self) -> Fields:
        yield from ((name, getattr(self, name)) for name in ("epsilon", "target", "goal", "reached"))
        yield "error", None if math.isnan(self.error) else self.error

    def _html_fields(self) -> Fields:
        yield "mechanism", self.deniability.mechanism
        yield from self.deniability._html_fields()
        yield from facts_of(self.mechanism.statement)


@overload
def calibrate(
    vectors: VectorsLike, mechanism: str | Callable[..., WordMechanism] = "tem", **target: Any
) -> Calibration: ...
@overload
def calibrate(vectors: TextBank, **target: Any) -> BankCalibration: ...
def calibrate(
    vectors: VectorsLike | TextBank,
    mechanism: str | Callable[..., WordMechanism] = "tem",
    *,
    keep_rate: float | None = None,
    support: float | None = None,
    weights: npt.ArrayLike | None = None,
    rows: int = 400,
    draws: int = 200,
    relinking: float | None = None,
    people: int = 300,
    texts: Sequence[str] | None = None,
    seed: int | None = None,
    **options: Any,
) -> Calibration | BankCalibration:
    """Find the epsilon for a keep rate or support of words, or for a re-identification rate of texts.

    **Words.** Exact on the sampled words for mechanisms with ``distributions``; sampled, with the same random bits for
    every epsilon, for the others (draws underestimate the support, so such a target is met cautiously).

    **Texts of a bank.** The target is how often an adversary names the right one of several people, whose texts they
    know and find equally likely beforehand (`dptext.calibration.reidentification`). The bound is proved for any texts;
    the result also has the bound of any mechanism of this pure epsilon and, with public texts like the private ones,
    the rate among these.

    Args:
        vectors: word vectors, their name or path; or a `TextBank`.
        mechanism: of words, its name or class.
        keep_rate: the mean of N_w over running text, between 0 and 1.
        support: the median of S_w over running text; at ``epsilon`` it is at least this.
        weights, rows, draws, seed: see `dptext.calibration.deniability.deniability`.
        relinking: of a bank, how often they may be right, between 1 / people and 1.
        people: of a bank, how many.
        texts: of a bank, at least as many public texts, one per person (one sentence, or a document).
        options: of the mechanism; of a bank, ``unit`` and ``max_sentences`` of `BankRewriter`. With ``max_sentences``
            the attacker sees all sentences of a document.

    Raises:
        ParameterError: not exactly one target; a target out of range, or out of this mechanism's reach.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> calibrate(vectors, keep_rate=0.5).epsilon
    0.4326
    """
    seed = fresh_seed() if seed is None else seed  # the same draws for every epsilon
    if isinstance(vectors, TextBank):
        if relinking is None or keep_rate is not None or support is not None or mechanism != "tem":
            raise ParameterError("a bank has the target relinking= (a probability) with people=: omit other targets")
        return calibrate_bank(vectors, relinking=relinking, people=people, texts=texts, seed=seed, **options)
    if relinking is not None or texts is not None:
        raise ParameterError("relinking= is a target for a bank: pass a TextBank instead of vectors")
    if (keep_rate is None) == (support is None):
        raise ParameterError("give one target: keep_rate or support")
    if isinstance(vectors, str | os.PathLike):
        vectors = word_vectors(vectors)
    if not isinstance(vectors, WordVectors):
        raise ParameterError(f"vectors must be WordVectors or a TextBank, got {type(vectors).__name__}")
    family = Family(vectors, mechanism, **options)
    name, goal = ("support", support) if keep_rate is None else ("keep_rate", keep_rate)
    return _calibrate_words(family, name, goal, weights=weights, rows=rows, draws=draws, seed=seed)


def _calibrate_words(
    family: Family, name: str, goal: Any, *, weights: npt.ArrayLike | None, rows: int, draws: int, seed: int
) -> Calibration:
    start, size, is_support = family.start(), len(family.vectors), name == "support"
    is_sampled = distributions_of(family(start)) is None
    if is_support:
        goal = check_float(name, goal, minimum=2, maximum=size)
        if is_sampled and goal > 0.95 * draws / 2:
            raise ParameterError(f"a support of {goal:g} words requires at least {math.ceil(2 * goal / 0.95):,} draws")
    else:
        goal = check_float(name, goal, above=0, below=1)
    sample = sample_words(check_weights(weights, size), rows)

    def reach(mechanism: WordMechanism) -> float:
        kept, supports = kept_and_support(mechanism, sample.rows, draws=draws, seed=seed, support=is_support)
        return weighted_quantile(supports, sample.weights, 0.5) if is_support else float(sample.weights @ kept)

    def excess(epsilon: float) -> float:
        """Below 0 where epsilon may grow, above 0 where it is too large."""
        reached = reach(family(epsilon))
        return math.log(goal) - math.log(reached) if is_support else log_odds(reached) - log_odds(goal)

    tolerance = _SUPPORT_TOLERANCE if is_support else SAMPLED_TOLERANCE if is_sampled else EXACT_TOLERANCE
    try:
        epsilon = rounded_down(crossing(excess, start=start, tolerance=tolerance), DIGITS)
    except UnreachableError as end:
        extreme = "most" if end.upwards != is_support else "least"
        raise ParameterError(
            f"a {name.replace('_', ' ')} of {goal:g} is out of reach of {family.name} here: the {extreme} is "
            f"{reach(family(end.epsilon)):.4g} (at epsilon {end.epsilon:.3g})"
        ) from None
    mechanism = family(epsilon)
    result = deniability(mechanism, weights=weights, rows=rows, draws=draws, seed=seed)
    reached = result.quantile("support", 0.5) if is_support else result.mean("keep")
    error = math.nan if is_support else result.error("keep")
    return Calibration(epsilon, name, goal, reached, error, result, mechanism)
