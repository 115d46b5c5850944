"""Was this person in the sum? Membership attacks on one released sum of people's matrices, and what noise allows.

What was released is S = sum over people of x_i, plus Gaussian noise of the standard deviation sigma on every number.
Whoever holds x and knows the rest R of the sum asks for the likelihood ratio of "R + x" against "R", whose logarithm is

    (<S - R, x> - ||x||^2 / 2) / sigma^2                                                                       (ratio)

Somebody who knows everybody else uses R itself: no attack on this person can do better. Somebody who does not uses a
guess of R, such as what other people of the same kind add up to.

**What noise allows.** With ||x|| at most D, S with and without the person are told apart no better than N(0, 1) from
N(mu, 1), mu = D / sigma, by anybody, with any knowledge of the others (Dong, Roth and Su 2022, Theorem 2.7). For a
share a of the others accused, at most F(F^-1(a) + mu) of the members are found, F the normal distribution function;
that curve is concave, so it holds on average over people, too.
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
        auc: the probability that a member gets a higher score than somebody else.
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
    member_sum: npt.ArrayLike | None = None,
    attack: str = "membership in the sum",
) -> Membership:
    """Score people by (ratio), and measure how well the members are found.

    Args:
        released: the noisy sum, of any shape.
        targets: one array of that shape for each person who is asked about: what they would have added.
        members: (n,) who is in the sum: the truth that the attack is measured against.
        guess: what the attacker takes the rest of the sum for; None: 0.
        member_sum: the exact sum of all members, for the attacker who knows everybody but the person who is asked
            about. **Private**, and so are the numbers that come out.
        attack: its name in the result.

    Raises:
        ParameterError: arrays of another shape, or not finite; both ``guess`` and ``member_sum``; as
            `dptext.attacks.score_membership`.

    >>> import numpy as np
    >>> people = np.eye(40)
    >>> members = np.arange(40) < 20
    >>> print(sum_membership(people[members].sum(axis=0), people, members).auc)
    membership in the sum: AUC 1.000 [0.832, 1.000] against 0.500 (chance)
    """
    if guess is not None and member_sum is not None:
        raise ParameterError("give guess or member_sum, not both: an attacker guesses the rest, or knows it")
    noisy = _finite("released", released, None)
    rest = guess if member_sum is None else member_sum
    if rest is not None:
        noisy = noisy - _finite("guess" if member_sum is None else "member_sum", rest, noisy.shape)
    products, squares = [], []
    for target in targets:
        one = _finite("targets", target, noisy.shape)
        products.append(float(np.vdot(noisy, one)))
        squares.append(float(np.vdot(one, one)))
    scores, lengths = np.array(products), np.array(squares)
    truth = np.asarray(members)
    if member_sum is not None and truth.shape == scores.shape:
        scores += lengths * (truth == 1)  # of a member, the rest is the sum of the others
    return score_membership(scores - lengths / 2, members, attack=attack)  # (ratio)


def _finite(name: str, values: npt.ArrayLike, shape: tuple[int, ...] | None) -> Floats:
    array: Floats = np.asarray(values, dtype=np.float64)
    if (shape is not None and array.shape != shape) or not np.isfinite(array).all():
        expected = "finite numbers" if shape is None else f"finite numbers of the shape {shape}"
        raise ParameterError(f"{name} must be {expected}, got something else (shape {array.shape})")
    return array
