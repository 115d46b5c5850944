"""Was this person in the sum? Membership attacks on one released sum of people's matrices, and what noise allows.

Derivation: docs/understand/attacks.md#attacks-sums
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
    """What no membership attack on a release with Gaussian noise exceeds in expectation."""

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
