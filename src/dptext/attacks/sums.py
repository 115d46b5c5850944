"""Was this person in the sum? Membership attacks on one released sum of people's matrices, and what noise allows.

What was released is S = sum over people of x_i, plus Gaussian noise of the standard deviation sigma on every number.
Whoever holds x and takes R for the rest of the sum asks for the likelihood ratio of "R + x" against "R", whose
logarithm is

    (<S - R, x> - ||x||^2 / 2) / sigma^2                                                                       (ratio)

Somebody who knows everybody else has the true R, and nobody does better. Others guess it, for instance by what people
of the same kind add up to.

**What noise allows.** With ||x|| at most D, S with and without a person are told apart no better than N(0, 1) from
N(mu, 1), mu = D / sigma, by anybody, with any knowledge of the others (Dong, Roth and Su 2022, Theorem 2.7): where a
share a of those who are not in the sum is accused, at most F(F^-1(a) + mu) of the members are found, F the normal
distribution function. Who knows everybody else attains it for an x of length D. The curve is concave, so it holds on
average over people; and it holds where thresholds are learnt from the scores of others who are known not to be in the
sum, as long as a person who is not comes from the same population as these.

That is about repetitions of the noise. A single release has one noise, which all scores share: what was measured there
may lie above what is allowed on average, the more so the fewer numbers were released.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dptext.attacks.membership import Membership, score_membership
from dptext.checks import number
from dptext.errors import ParameterError

__all__ = ["Ceiling", "gaussian_ceiling", "sum_membership"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """What no membership attack on a release with Gaussian noise exceeds in expectation.

    Attributes:
        auc: the area under the trade-off: the probability that a member gets a higher score than somebody else.
        accuracy: the share put on the right side, where half are members.
        at_1_percent, at_01_percent: the share of the members found, where 1% (.1%) of the others are accused.
    """

    auc: float
    accuracy: float
    at_1_percent: float
    at_01_percent: float


def gaussian_ceiling(sigma: float, *, sensitivity: float = 1.0) -> Ceiling:
    """The ceiling of all membership attacks on a sum that moves by at most ``sensitivity`` (in Euclidean length) with a
    person, released once with N(0, sigma^2) on every number.

    Raises:
        ParameterError: sigma or sensitivity is not above 0.

    >>> found = gaussian_ceiling(1.0)
    >>> print(f"{found.auc:.3f} {found.accuracy:.3f} {found.at_1_percent:.3f} {found.at_01_percent:.4f}")
    0.760 0.691 0.092 0.0183
    """
    sensitivity = number("sensitivity", sensitivity, above=0)
    mu, normal = sensitivity / number("sigma", sigma, above=0), NormalDist()
    few, fewer = (normal.cdf(normal.inv_cdf(share) + mu) for share in (0.01, 0.001))
    return Ceiling(auc=normal.cdf(mu / 2**0.5), accuracy=normal.cdf(mu / 2), at_1_percent=few, at_01_percent=fewer)


def sum_membership(
    released: npt.ArrayLike,
    targets: Iterable[npt.ArrayLike],
    members: npt.ArrayLike,
    *,
    guess: npt.ArrayLike | None = None,
    attack: str = "membership in the sum",
) -> Membership:
    """Score people by (ratio), and measure how well the members are found.

    Args:
        released: the noisy sum, of any shape.
        targets: one array of that shape for each person who is asked about: what they would have added.
        members: (n,) who is in the sum: the truth that the attack is measured against.
        guess: what the attacker takes the rest of the sum for, the same for all people who are asked about; None: 0.
        attack: its name in the result.

    Raises:
        ParameterError: arrays of another shape, or not finite; as `dptext.attacks.score_membership`.

    >>> import numpy as np
    >>> people = np.eye(40)
    >>> members = np.arange(40) < 20
    >>> print(sum_membership(people[members].sum(axis=0), people, members).auc)
    membership in the sum: AUC 1.000 [0.832, 1.000] against 0.500 (chance)
    """
    noisy = _finite("released", released, None)
    if guess is not None:
        noisy = noisy - _finite("guess", guess, noisy.shape)
    scores = []
    for target in targets:
        one = _finite("targets", target, noisy.shape)
        scores.append(float(np.vdot(noisy, one)) - float(np.vdot(one, one)) / 2)  # (ratio), times sigma^2
    return score_membership(scores, members, attack=attack)


def _finite(name: str, values: npt.ArrayLike, shape: tuple[int, ...] | None) -> Floats:
    array: Floats = np.asarray(values, dtype=np.float64)
    if (shape is not None and array.shape != shape) or not np.isfinite(array).all():
        expected = "finite numbers" if shape is None else f"finite numbers of the shape {shape}"
        raise ParameterError(f"{name} must be {expected}, got something else (shape {array.shape})")
    return array
