"""Private vectors at several budgets side by side, measured on public texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.evaluation.measures import Fold, Measured, codes_of, make_folds, measure
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import BOUNDS, NATURAL, PROJECTIONS, fit_bound
from dptext.representations.classifiers import NoisyClassifier
from dptext.representations.device import encoder_of
from dptext.representations.encoders import check_texts
from dptext.representations.privunit import PrivUnit
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import USUAL, best_dimension, kept_of
from dptext.validation import check_choice, check_int

_PIECE = 2**31


@dataclass(frozen=True, kw_only=True)
class AtEpsilon:
    """What private vectors are good for at one budget.

    Attributes:
        epsilon: of a vector.
        randomizer: with this budget.
        dimension: to which vectors were projected.
        error: E||z - x||^2 of the noise, for a vector x of length 1.
        recovered: which share of a vector one private vector gives back, as in
            `dptext.representations.private_encoder`; None where that is not known.
        accuracy: of a classifier of private vectors, on private vectors of texts that it has not seen.
        learned: accuracy of the same server's model for vectors without noise (`NoisyClassifier.device_model`), on such
            vectors of the same texts; None for a channel that has no such model.
    """

    epsilon: float
    randomizer: Randomizer
    dimension: int
    error: float
    recovered: float | None
    accuracy: Measured
    learned: Measured | None


@dataclass(frozen=True, kw_only=True)
class EpsilonComparison:
    """What `compare_epsilons` found. Its text is a table.

    Attributes:
        rows: one for each epsilon, in the order in which they were given.
        clean: the accuracy with the encoder's vectors, without projection and noise.
        texts: how many public texts there were.
        trained_on: from how many of them a classifier learned.
    """

    rows: tuple[AtEpsilon, ...]
    clean: Measured
    texts: int
    trained_on: int

    @property
    def chance(self) -> float:
        """What the most frequent class reaches without any vector."""
        return self.clean.baseline

    def __str__(self) -> str:
        lines = ["  epsilon  dimension   error  accuracy, noisy       accuracy, without noise"]
        lines += [
            f"  {row.epsilon:<7g}{row.dimension:>11}{row.error:>8.3g}  {_percent(row.accuracy):<22}"
            + ("-" if row.learned is None else _percent(row.learned))
            for row in self.rows
        ]
        lines += [
            f"  {'no noise, public texts alone':<50}{_percent(self.clean)}",
            f"  {'no vector, the most frequent label':<50}{self.chance:.1%}",
        ]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = [
            {
                "epsilon": row.epsilon,
                "randomizer": row.randomizer.name,
                "dimension": row.dimension,
                "error": row.error,
                "recovered": row.recovered,
                **_interval(row.accuracy),
                "learned": None if row.learned is None else _interval(row.learned),
            }
            for row in self.rows
        ]
        return {
            "rows": rows,
            "clean": _interval(self.clean),
            "chance": self.chance,
            "texts": self.texts,
            "trained_on": self.trained_on,
        }


def compare_epsilons(
    encoder: Any,
    public_texts: Iterable[str | None],
    public_labels: Sequence[Any] | npt.NDArray[Any],
    epsilons: Iterable[float],
    *,
    randomizer: Callable[[float], Randomizer] | None = None,
    dimension: int | None = None,
    projection: str | None = "pca",
    bound: str = "auto",
    folds: int = 5,
    seed: int | None = None,
) -> EpsilonComparison:
    """What a classifier of private vectors reaches at several epsilons, on *public* labelled texts.

    Args:
        encoder: as in `dptext.PrivateEncoder`.
        public_texts, public_labels: **nothing is promised to who is in them**: they get noise once for each epsilon.
        epsilons: to compare.
        randomizer: an epsilon -> the randomizer; None: PrivUnit.
        dimension, projection, bound: as in `dptext.PrivateEncoder`; a dimension of None is chosen for each epsilon.
        folds: into how many parts texts are cut; each is tested once, by a classifier that learned from the others, for
            which centre and projection were fitted on the others too.
        seed: of folds and noise, for repeatable tables. No privacy rests on it.

    Raises:
        ParameterError: no epsilon, or one twice; one label, or too few texts of one; an argument out of range.
        MissingExtraError: scikit-learn, or what the encoder needs, is not installed.

    >>> words = (["good", "bad", "film", "plot"], [[1.0, 0.0], [-1.0, 0.1], [0.0, 1.0], [0.1, -1.0]])
    >>> from dptext.vectors.formats import load_vectors
    >>> texts = ["good film", "bad film", "good plot", "bad plot"] * 25
    >>> found = compare_epsilons(load_vectors(words), texts, ["+", "-"] * 50, [1.0, 16.0], seed=1)
    >>> [each.accuracy.score.value > 0.9 for each in found.rows], found.chance
    ([False, True], 0.5)
    """
    target = [float(entry) for entry in epsilons]
    if not target or len(set(target)) < len(target):
        raise ParameterError("epsilons must be different numbers, at least one")
    build = randomizer or (lambda epsilon: PrivUnit(epsilon=epsilon))
    randomizers = [build(entry) for entry in target]
    check_choice("bound", bound, ("auto", *BOUNDS))
    check_choice("projection", projection, (*PROJECTIONS, None))
    if dimension is not None:
        check_int("dimension", dimension, minimum=1)
    known = encoder_of(encoder)
    texts = check_texts(public_texts)
    labels = np.asarray(public_labels)
    codes = codes_of("public labels", labels, rows=len(texts))
    bits = RandomBits(seed)
    parts = make_folds(labels, count=folds, seed=_drawn(bits))
    vectors = known.encode(texts)
    rows = []
    for epsilon, entry in zip(target, randomizers, strict=True):
        kind = NATURAL[entry.natural_domain] if bound == "auto" else bound
        fields: dict[str, Any] = {"bound": kind, "projection": projection}
        labelled = fields | ({"labels": codes} if projection == "supervised" else {})
        kept = None
        size = known.dimension if projection is None else dimension
        if size is None:
            kept = best_dimension(vectors, entry, **labelled)
            size = USUAL if kept is None else kept.dimension
        size = min(size, known.dimension)
        kept = kept or kept_of(vectors, entry, size, **labelled)
        predicted, learned = _answers(vectors, codes, parts, entry, fields | {"dimension": size}, bits)
        rows.append(
            AtEpsilon(
                epsilon=epsilon,
                randomizer=entry,
                dimension=size,
                error=entry.expected_squared_error(size + (kind == "lift")),
                recovered=None if kept is None else kept.recovered,
                accuracy=measure("accuracy", codes, predicted),
                learned=None if learned is None else measure("accuracy", codes, learned),
            )
        )
    clean = measure("accuracy", codes, _answers(vectors, codes, parts, None, {}, bits)[0])
    return EpsilonComparison(
        rows=tuple(rows), clean=clean, texts=len(texts), trained_on=min(len(part.train) for part in parts)
    )


def _answers(
    vectors: npt.NDArray[Any],
    codes: npt.NDArray[np.int64],
    parts: Sequence[Fold],
    randomizer: Randomizer | None,
    settings: dict[str, Any],
    bits: RandomBits,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
    result, learned = np.empty_like(codes), np.empty_like(codes)
    has_model = randomizer is not None
    for part in parts:
        sent = arrived = vectors - vectors[part.train].mean(axis=0)
        if randomizer is not None:
            labels = codes[part.train] if settings["projection"] == "supervised" else None
            bound = fit_bound(vectors[part.train], labels=labels, **settings)
            sent = bound.apply(vectors)
            arrived = randomizer.randomize(sent, seed=_drawn(bits))
        server = NoisyClassifier(channel=randomizer).fit(arrived[part.train], codes[part.train])
        result[part.test] = server.predict(arrived[part.test])
        try:
            learned[part.test] = server.device_model().predict(sent[part.test])
        except ParameterError:  # the channel has no model for vectors without noise
            has_model = False
    return result, learned if has_model else None


def _drawn(bits: RandomBits) -> int | None:
    """A seed of its own for each draw, where there is one at all."""
    return int(bits.uniform(1)[0] * _PIECE) if bits.seeded else None


def _percent(measured: Measured) -> str:
    score = measured.score
    return f"{score.value:.1%} [{score.low:.1%}, {score.high:.1%}]"


def _interval(measured: Measured) -> dict[str, float]:
    score = measured.score
    return {"accuracy": score.value, "low": score.low, "high": score.high}
