"""Search for the epsilon that reaches a target, for a vocabulary and a mechanism.

Derivation: docs/understand/epsilon.md#calibration-calibration
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
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
)
from dptext.calibration.reidentification import (
    DIGITS,
    BankCalibration,
    UnreachableError,
    calibrate_bank,
    crossing,
    log_odds,
)
from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError
from dptext.privacy.guarantee import rounded_down
from dptext.privacy.randomness import RandomBits
from dptext.privacy.wording import facts_of
from dptext.sentences.bank import TextBank
from dptext.validation import check_choice, check_float
from dptext.vectors.formats import VectorsLike, word_vectors
from dptext.vectors.search import ExactDistances
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import MECHANISMS

EXACT_TOLERANCE = 1e-4  # in log-odds: the error of a keep rate is at most a quarter of it
SAMPLED_TOLERANCE = 1e-2
_PROBE = 64  # words whose nearest neighbours determine the first epsilon


class Family:
    """Mechanism with all parameters fixed except epsilon; call it with an epsilon."""

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
        """Return the first epsilon of a search: at most 2 ln V over the median distance to the nearest other word."""
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
    """Result of `calibrate`: an epsilon (four digits, rounded towards more privacy), and its keep rate.

    ``error`` is half the width of a 95% interval around ``reached``.
    """

    epsilon: float
    goal: float
    reached: float
    error: float
    deniability: Deniability
    mechanism: WordMechanism

    def _repr_fields(self) -> Fields:
        return [(name, getattr(self, name)) for name in ("epsilon", "goal", "reached", "error")]

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
    weights: npt.ArrayLike | None = None,
    rows: int = 400,
    draws: int = 200,
    relinking: float | None = None,
    people: int = 300,
    seed: int | None = None,
    **options: Any,
) -> Calibration | BankCalibration:
    """Find the epsilon for a keep rate of words, or for a re-identification rate of texts.

    **Words.** The result is exact on the sampled words for mechanisms with ``distributions``. For other mechanisms it
    is sampled, with the same random bits for every epsilon.

    **Texts of a bank.** The target is the probability that an adversary names the right one of several people, whose
    texts they know and consider equally likely (`dptext.calibration.reidentification`). The bound is proved for any
    texts; the result also has the epsilon at which any pure mechanism meets the target.

    Args:
        vectors: word vectors, their name or path; or a `TextBank`.
        mechanism: the name or class of a word mechanism.
        keep_rate: target for words, the mean of N_w over running text, between 0 and 1.
        weights, rows, draws, seed: see `dptext.calibration.deniability.deniability`.
        relinking: target for a bank, the probability that the adversary is right, between 1 / people and 1.
        people: number of people for a bank.
        options: options of the mechanism; for a bank, ``unit`` and ``max_sentences`` of `BankRewriter`. With
            ``max_sentences`` the adversary sees all sentences of a document.

    Raises:
        ParameterError: no target; a target out of range, or one that the mechanism cannot reach.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> calibrate(vectors, keep_rate=0.5).epsilon
    0.4326
    """
    if isinstance(vectors, TextBank):
        if relinking is None or keep_rate is not None or mechanism != "tem":
            raise ParameterError("a bank has the target relinking= (a probability) with people=. Omit other targets")
        return calibrate_bank(vectors, relinking=relinking, people=people, **options)
    if relinking is not None:
        raise ParameterError("relinking= is a target for a bank. Pass a TextBank instead of vectors")
    if keep_rate is None:
        raise ParameterError("keep_rate is required: the fraction of words that stay")
    if isinstance(vectors, str | os.PathLike):
        vectors = word_vectors(vectors)
    if not isinstance(vectors, WordVectors):
        raise ParameterError(f"vectors must be WordVectors or a TextBank, got {type(vectors).__name__}")
    if seed is None:
        seed = int.from_bytes(RandomBits().take(8), "little")  # the same draws for every epsilon
    family = Family(vectors, mechanism, **options)
    goal = check_float("keep_rate", keep_rate, above=0, below=1)
    sample = sample_words(check_weights(weights, len(vectors)), rows)
    start = family.start()
    is_sampled = distributions_of(family(start)) is None

    def reach(epsilon: float) -> float:
        kept, _ = kept_and_support(family(epsilon), sample.rows, draws=draws, seed=seed, support=False)
        return float(sample.weights @ kept)

    tolerance = SAMPLED_TOLERANCE if is_sampled else EXACT_TOLERANCE
    try:
        excess = lambda epsilon: log_odds(reach(epsilon)) - log_odds(goal)  # noqa: E731
        epsilon = rounded_down(crossing(excess, start=start, tolerance=tolerance), DIGITS)
    except UnreachableError as end:
        raise ParameterError(
            f"{family.name} cannot reach a keep rate of {goal:g} here: the {'largest' if end.upwards else 'smallest'} "
            f"is {reach(end.epsilon):.4g} (at epsilon {end.epsilon:.3g})"
        ) from None
    calibrated = family(epsilon)
    result = deniability(calibrated, weights=weights, rows=rows, draws=draws, seed=seed)
    return Calibration(epsilon, goal, result.mean("keep"), result.error("keep"), result, calibrated)
