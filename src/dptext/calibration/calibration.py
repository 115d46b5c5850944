"""Find the epsilon that reaches a target, for a vocabulary and a mechanism.

Derivation: docs/understand/epsilon.md#calibration-calibration
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from dptext.calibration.deniability import (
    Deniability,
    WordSample,
    check_weights,
    deniability,
    distances_from,
    distributions_of,
    kept_and_support,
    sample_words,
    weighted_quantile,
)
from dptext.calibration.reidentification import DIGITS, UnreachableError, crossing, fresh_seed, log_odds
from dptext.display import Fields, ReprMixin, progress_bar
from dptext.errors import ParameterError
from dptext.privacy.guarantee import rounded_down
from dptext.privacy.wording import facts_of
from dptext.validation import check_float
from dptext.vectors.formats import VectorsLike, word_vectors
from dptext.vectors.search import ExactDistances
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import MECHANISMS

if TYPE_CHECKING:
    from dptext.calibration.reidentification import BankCalibration
    from dptext.sentences.bank import TextBank

EXACT_TOLERANCE = 1e-4  # log-odds: a keep rate is off by a quarter of it at most
SAMPLED_TOLERANCE = 1e-2
_SUPPORT_TOLERANCE = 0.02  # of ln S: 51 words instead of 50
_PROBE = 64  # words whose nearest neighbours give the first epsilon


class Family:
    """A mechanism with everything fixed but epsilon: call it with one."""

    def __init__(
        self,
        vectors: WordVectors,
        mechanism: str | Callable[..., WordMechanism] = "tem",
        *,
        pure_epsilon: float | None = None,
        **options: Any,
    ) -> None:
        if isinstance(mechanism, str) and mechanism not in MECHANISMS:
            known = ", ".join(repr(name) for name in MECHANISMS)
            raise ParameterError(f"mechanism must be one of {known} or a class, got {mechanism!r}")
        build: Callable[..., WordMechanism] = MECHANISMS[mechanism] if isinstance(mechanism, str) else mechanism
        self.vectors = vectors
        self.name = str(getattr(build, "name", getattr(build, "__name__", "mechanism")))
        self._build, self._options = build, options
        self._pure = None if pure_epsilon is None else check_float("pure_epsilon", pure_epsilon, above=0)
        if self._pure is not None and "pure_epsilon" not in inspect.signature(build).parameters:
            raise ParameterError(
                f"{self.name} has no threshold that a pure epsilon could set: its worst case is epsilon times the "
                "diameter; use another mechanism (tem)"
            )
        if self._pure is not None and "threshold" in options:
            raise ParameterError("pure_epsilon sets the threshold: give one of both")

    def __call__(self, epsilon: float) -> WordMechanism:
        more = {} if self._pure is None else {"pure_epsilon": self._pure}
        return self._build(self.vectors, epsilon=epsilon, **self._options, **more)

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
    deniability: Deniability = field(repr=False)
    mechanism: WordMechanism = field(repr=False)

    def _repr_fields(self) -> Fields:
        yield from ((name, getattr(self, name)) for name in ("epsilon", "target", "goal", "reached"))
        yield "error", None if math.isnan(self.error) else self.error

    def _html_fields(self) -> Fields:
        yield "mechanism", self.deniability.mechanism
        yield from self.deniability._html_fields()
        yield from facts_of(self.mechanism.statement)

    def plot(self, axes: Any = None) -> Any:
        """Draw what words become at this epsilon: see `Deniability.plot`."""
        return self.deniability.plot(axes)


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
    pure_epsilon: float | None = None,
    weights: npt.ArrayLike | None = None,
    rows: int = 400,
    eta: float = 0.05,
    draws: int = 200,
    relinking: float | None = None,
    people: int = 300,
    texts: Sequence[str] | None = None,
    seed: int | None = None,
    progress: bool | None = None,
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
        vectors, mechanism, pure_epsilon, options: see `Family`; vectors may be their name or path. Or a `TextBank` in
            their place: its options are ``unit`` and ``max_sentences`` of `BankRewriter`; with ``max_sentences`` the
            attacker sees all sentences of a document.
        keep_rate: the mean of N_w over running text, between 0 and 1.
        support: the median of S_w over running text; at ``epsilon`` it is at least this.
        weights, rows, eta, draws, seed: see `dptext.calibration.deniability.deniability`.
        progress: show a progress bar, see `dptext.display`.
        relinking: of a bank, how often they may be right, between 1 / people and 1.
        people: of a bank, how many.
        texts: of a bank, at least as many public texts, one per person (one sentence, or a document).

    Raises:
        ParameterError: not exactly one target; a target out of range, or out of this mechanism's reach.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> calibrate(vectors, keep_rate=0.5).epsilon
    0.4326
    """
    with progress_bar(progress, "looking for epsilon"):
        if isinstance(vectors, str | os.PathLike):
            vectors = word_vectors(vectors)
        if not isinstance(vectors, WordVectors):
            from dptext.calibration.reidentification import calibrate_bank  # loads the encoders, not needed for words
            from dptext.sentences.bank import TextBank

            if not isinstance(vectors, TextBank):
                raise ParameterError(
                    f"vectors must be WordVectors, or a TextBank in their place, got {type(vectors).__name__}"
                )
            given: dict[str, Any] = {
                "keep_rate": keep_rate,
                "support": support,
                "pure_epsilon": pure_epsilon,
                "weights": weights,
            }
            given["mechanism"] = None if mechanism == "tem" else mechanism
            if foreign := [name for name, value in given.items() if value is not None]:
                raise ParameterError(f"a bank has no {', '.join(foreign)}: leave it out (its target is relinking)")
            if relinking is None:
                raise ParameterError("give the target of a bank: relinking, a probability, and people")
            return calibrate_bank(vectors, relinking=relinking, people=people, texts=texts, seed=seed, **options)
        if relinking is not None or texts is not None:
            raise ParameterError("relinking is a target of texts of a bank: give a TextBank in place of vectors")
        family = Family(vectors, mechanism, pure_epsilon=pure_epsilon, **options)
        settings: dict[str, Any] = {"weights": weights, "rows": rows, "eta": eta, "draws": draws}
        settings["seed"] = fresh_seed() if seed is None else seed  # the same draws for every epsilon
        if keep_rate is not None and support is None:
            target = _Target(family, "keep_rate", keep_rate, settings)
        elif support is not None and keep_rate is None:
            target = _Target(family, "support", support, settings)
        else:
            raise ParameterError("give one target: keep_rate or support")
        try:
            epsilon = rounded_down(crossing(target.excess, start=target.start, tolerance=target.tolerance), DIGITS)
        except UnreachableError as end:
            raise ParameterError(target.beyond_reach(end)) from None
        built = family(epsilon)
        result = deniability(built, **settings)
        error = math.nan if keep_rate is None else result.error("keep")
        return Calibration(epsilon, target.name, target.goal, target.value(result), error, result, built)


@dataclass(frozen=True)
class _Target:
    """A share of words that stay, or a number of words that one could become, for a family of mechanisms."""

    family: Family
    name: str
    goal: float
    settings: dict[str, Any]

    def __post_init__(self) -> None:
        if self.name == "keep_rate":
            check_float("keep_rate", self.goal, above=0, below=1)
            return
        check_float("support", self.goal, minimum=2, maximum=len(self.family.vectors))
        eta, draws = self.settings["eta"], self.settings["draws"]
        if self.is_sampled and self.goal > (1 - eta) * draws / 2:
            raise ParameterError(
                f"a support of {self.goal:g} words cannot be seen in {draws:,} draws of a word: use at least "
                f"{math.ceil(2 * self.goal / (1 - eta)):,} draws"
            )

    @cached_property
    def start(self) -> float:
        return self.family.start()

    @cached_property
    def is_sampled(self) -> bool:
        return distributions_of(self.family(self.start)) is None

    @property
    def tolerance(self) -> float:
        if self.name == "support":
            return _SUPPORT_TOLERANCE
        return SAMPLED_TOLERANCE if self.is_sampled else EXACT_TOLERANCE

    def excess(self, epsilon: float) -> float:
        """Below 0 where epsilon may grow, above 0 where it is too large."""
        reached = self._reached(self.family(epsilon))
        if self.name == "keep_rate":
            return log_odds(reached) - log_odds(self.goal)
        return math.log(self.goal) - math.log(reached)

    def value(self, measured: Deniability) -> float:
        """Return the value of the target."""
        return measured.mean("keep") if self.name == "keep_rate" else measured.quantile("support", 0.5)

    @cached_property
    def _sample(self) -> WordSample:
        return sample_words(check_weights(self.settings["weights"], len(self.family.vectors)), self.settings["rows"])

    def _reached(self, mechanism: WordMechanism) -> float:
        """Return the value of the target without computing other measures."""
        fields = {name: self.settings[name] for name in ("draws", "eta", "seed")}
        kept, support = kept_and_support(mechanism, self._sample.rows, support=self.name == "support", **fields)
        if self.name == "keep_rate":
            return float(self._sample.weights @ kept)
        return weighted_quantile(support, self._sample.weights, 0.5)

    def beyond_reach(self, end: UnreachableError) -> str:
        """Explain why no epsilon reaches the target."""
        reached = self.value(deniability(self.family(end.epsilon), **self.settings))
        least_or_most = "most" if end.upwards == (self.name == "keep_rate") else "least"
        size = len(self.family.vectors)
        if self.name == "keep_rate" and end.upwards:
            advice = "words on one point cannot be told apart"
            threshold = getattr(self.family(end.epsilon), "threshold", None)
            if threshold is not None:
                advice += f", and words beyond the threshold, {threshold:.3g}, keep their share (lower beta)"
        elif self.name == "keep_rate":
            advice = f"a word of {size:,} cannot stay more rarely than 1 in {size:,}"
        elif end.upwards:
            advice = "every epsilon gives as many words: ask for more"
        else:
            advice = f"the omitted share {self.settings['eta']:g} covers its part of {size:,} words: ask for fewer"
        return (
            f"a {self.name.replace('_', ' ')} of {self.goal:g} is out of reach of {self.family.name} here: the "
            f"{least_or_most} is {reached:.4g} (at epsilon {end.epsilon:.3g}); {advice}"
        )
