"""Metrics between words: which there are, what each asks of the vectors, and the tables that compute them.

| name | distance of two words at x and y | asks of the vectors |
|---|---|---|
| euclidean | root of the sum of (x_k - y_k)^2 | nothing |
| angular | angle between x and y in radians, at most pi | nothing (zero counts as the first axis) |
| manhattan | sum of the |x_k - y_k| | nothing |
| chebyshev | largest |x_k - y_k| | nothing |
| poincare | arcosh(1 + 2 |x - y|^2 / ((1 - |x|^2) (1 - |y|^2))) | length below 1 |
| a function | what it gives | an assumption: it is a metric |

A mechanism's proof uses the triangle inequality, so what breaks it is refused: 1 - cosine between words at 0, 45 and
90 degrees is .29 + .29 on the way and 1 across. The angle is what it stands for, and a metric. Metrics that give two
words distance 0 are fine (two words in one direction): they are then treated alike.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dptext.errors import ParameterError
from dptext.vectors.angular import ANGULAR_DIAMETER, AngularDistances, directions
from dptext.vectors.caller import CallerDistances, Distance, refute_metric
from dptext.vectors.lattice import LatticeDistances
from dptext.vectors.poincare import PoincareBounds, PoincareDistances, conformal_factors
from dptext.vectors.search import ExactDistances
from dptext.vectors.word_vectors import WordVectors

__all__ = ["CALLERS", "METRICS", "Metric", "MetricSpace", "metric_space"]

Metric: TypeAlias = str | Distance
"""One of `METRICS`, or a function ((n, d), (m, d)) float64 -> (n, m)."""

METRICS = ("euclidean", "angular", "manhattan", "chebyshev", "poincare")
CALLERS = "caller's "
"""How the name of a caller's function begins in a statement."""

_TIGHT = 0.65  # nats that bounds may lose for a quicker table: drawing again costs less than a slower one
_LARGEST_SUM = 1e6  # words that loose bounds may count as (the sampler adds them up in 64 bits, 2^44 each)


@dataclass(frozen=True)
class MetricSpace:
    """Words as points of a metric space, ready for `dptext.noise.selection`.

    Attributes:
        name: of the metric, for statements.
        space: a fingerprint of the points and the metric between them.
        exact: the table whose distances count.
        coarse: a quicker one for bounds, or None.
        diameter: no two words are farther apart; infinite where that is not known.
        functions: the float32 functions whose accuracy the proof takes for granted, in words.
        assumptions: what else it takes for granted.
    """

    name: str
    space: str
    exact: Any
    coarse: Any
    diameter: float = math.inf
    functions: str = "float32 exp errs"
    assumptions: tuple[str, ...] = field(default=())


def metric_space(vectors: WordVectors, metric: Metric, *, rate: float, threshold: float) -> MetricSpace:
    """The words of a vocabulary under a metric.

    Args:
        vectors: public.
        metric: one of `METRICS`, or a function. A function is asked for the float64 distances from (n, d) points to
            (m, d) points; it is looked at for violations of the axioms on a public sample of rows.
        rate: nats a unit of distance, to choose how fine bounds must be.
        threshold: distances count up to here.

    Raises:
        ParameterError: a metric that is not offered, or is none.
        DataError: vectors that the metric does not know.
    """
    if callable(metric):
        return _of_function(vectors, metric, most=threshold)
    build = _BUILD.get(metric) if isinstance(metric, str) else None
    if build is None:
        raise ParameterError(_not_offered(metric))
    return build(vectors, rate)


def _not_offered(metric: object) -> str:
    known = ", ".join(repr(name) for name in METRICS)
    if isinstance(metric, str) and metric.lower() in ("cosine", "cos"):
        return (
            "metric must not be 'cosine': 1 - cosine breaks the triangle inequality (0, 45 and 90 degrees: .29 + .29 "
            "is less than 1), and the proof with it; use 'angular', the angle itself"
        )
    given = repr(metric) if isinstance(metric, str) else type(metric).__name__
    return f"metric must be one of {known} or a function, got {given}"


def _euclidean(vectors: WordVectors, _rate: float) -> MetricSpace:
    return MetricSpace(
        "euclidean",
        vectors.fingerprint,
        exact=ExactDistances(vectors.matrix),
        coarse=ExactDistances(vectors.matrix, dtype=np.float32),
        functions="float32 square roots are correctly rounded and float32 exp errs",
    )


def _angular(vectors: WordVectors, _rate: float) -> MetricSpace:
    points = directions(vectors.matrix)
    return MetricSpace(
        "angular",
        vectors.fingerprint,
        exact=AngularDistances(points),
        coarse=AngularDistances(points, dtype=np.float32),
        diameter=ANGULAR_DIAMETER,
        functions="float32 square roots are correctly rounded and float32 exp and arctan2 err",
    )


def _manhattan(vectors: WordVectors, _rate: float) -> MetricSpace:
    return MetricSpace(
        "manhattan",
        vectors.fingerprint,
        exact=LatticeDistances(vectors.matrix, kind="manhattan", dtype=np.uint32),
        coarse=LatticeDistances(vectors.matrix, kind="manhattan", dtype=np.uint16),
    )


def _chebyshev(vectors: WordVectors, rate: float) -> MetricSpace:
    coarse = LatticeDistances(vectors.matrix, kind="chebyshev", dtype=np.int8)
    if not _is_tight(coarse, rate):
        coarse = LatticeDistances(vectors.matrix, kind="chebyshev", dtype=np.int16)
    return MetricSpace(
        "chebyshev",
        vectors.fingerprint,
        exact=LatticeDistances(vectors.matrix, kind="chebyshev", dtype=np.int32),
        coarse=coarse,
    )


def _poincare(vectors: WordVectors, rate: float) -> MetricSpace:
    factors = conformal_factors(vectors.matrix)
    coarse = PoincareBounds(vectors.matrix, factors, dtype=np.float32)
    if not _is_tight(coarse, rate):
        coarse = PoincareBounds(vectors.matrix, factors)
    return MetricSpace(
        "poincare",
        vectors.fingerprint,
        exact=PoincareDistances(vectors.matrix, factors),
        coarse=coarse,
        functions="float32 square roots are correctly rounded and float32 exp and arcsinh err",
    )


_BUILD = {
    "euclidean": _euclidean,
    "angular": _angular,
    "manhattan": _manhattan,
    "chebyshev": _chebyshev,
    "poincare": _poincare,
}


def _is_tight(table: Any, rate: float) -> bool:
    loss = 2 * rate * table.rounding
    return bool(loss <= _TIGHT and len(table) * math.exp(loss) < _LARGEST_SUM)


def _of_function(vectors: WordVectors, function: Distance, *, most: float) -> MetricSpace:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ParameterError(
            f"a metric needs a name for the statement, got a {type(function).__name__} without one: use a function "
            "defined with def"
        )
    triples, values = refute_metric(vectors.matrix, function, unknown=vectors.vocabulary.unknown_row, most=most)
    # two functions of one name are two metrics: their guarantees must not add up as one
    digest = hashlib.sha256(f"{vectors.fingerprint}/{values}".encode()).hexdigest()
    return MetricSpace(
        f"{CALLERS}{name}",
        digest,
        exact=CallerDistances(vectors.matrix, function, most=most),
        coarse=None,
        assumptions=(
            f"the caller's function {name} is a metric on the words, up to rounding, and gives the same values each "
            f"time (that was checked on {triples:,} sampled triples of words only)",
        ),
    )
