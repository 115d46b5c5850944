"""Personal privacy budgets by clipping norms, and a check of delta against a public number of users.

Derivation: docs/understand/accounting.md#privacy-public-users
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

from dptext.errors import ParameterError, warn
from dptext.privacy.gaussian import GaussianRelease, gaussian_sigma
from dptext.privacy.guarantee import ApproxDP, Relation, rounded_down, rounded_up
from dptext.validation import check_choice, check_float, check_int, display_value, format_names

ASSUMED_USERS = 100_000
"""Number of users assumed without a public bound."""


class DeltaWarning(UserWarning):
    """Delta is too large for the public number of users: the guarantee would allow publishing one of them."""


def delta_too_large(delta: float, *, public_users: int | None = None) -> str | None:
    """Return a sentence if delta is too large for this number of users, otherwise None."""
    delta = check_float("delta", delta, above=0, below=1)
    users, text = ASSUMED_USERS, "the default bound on the number of users (pass public_users= if there are fewer)"
    if public_users is not None:
        users = check_int("public_users", public_users, minimum=1, maximum=10**18)
        text = "the public bound on the number of users"
    if delta * users < 1:
        return None
    return (
        f"delta {delta:g} is not below 1 / {users:,}, {text}: such a guarantee would allow publishing all texts of "
        "one user. Use a tenth of that bound or less"
    )


def warn_of_delta(delta: float, *, public_users: int | None = None) -> None:
    """Warn with `DeltaWarning` if delta is too large (see `delta_too_large`)."""
    problem = delta_too_large(delta, public_users=public_users)
    if problem is not None:
        warn(problem, DeltaWarning)


DEFAULT_FLOOR = 0.05
"""Default for the smallest allowed epsilon of a level.

At delta 1e-6, 70 users with epsilon 0.05 and identical texts (about 4 / epsilon users if epsilon is below 1) reach one
standard deviation of the noise. For smaller values, omit those users instead, which reveals nothing about them.
"""
_DIGITS = 6  # significant digits of sigma and of the clipping norms, as printed and as used


@dataclass(frozen=True, init=False)
class PersonalBudgets:
    """Public levels of (epsilon, delta) for the users of one Gaussian release.

    Let sigma_1(epsilon, delta) be the least noise at sensitivity 1 (Balle and Wang 2018). The noise of the release is
    sigma = sigma_1(largest epsilon, delta), and a user of level l is clipped to

        C_l = sigma / sigma_1(epsilon_l, delta), so C = 1 for the largest epsilon                          (norms)

    **Guarantee** (unit: user; trust: central; proof: docs/understand/accounting.md#privacy-personal-budgets). A user of
    level l, whose vector has norm at most C_l, has

    - under add/remove: (epsilon_l, delta), for any texts and levels of the other users;
    - under substitution, with another text of their own or by another user of level l: delta and the exact epsilon
      at sensitivity 2 C_l;
    - under substitution by a user of level m, or by the same user at level m: the exact epsilon at C_l + C_m.

    **Assumptions.** (1) Levels are *public* and depend on no texts: if a level is derived from a text, only the
    largest epsilon holds; if levels are predicted from the texts of others, the proof fails for everybody.
    (2) A vector depends on its own user's text and on public numbers, not on a norm, weight or vocabulary of all texts.
    (3) sigma and the norms follow from the offered levels, not from the users' choices or their number.
    (4) The noise is normal; the sampler states the effect of finite precision (rounding to a grid lengthens vectors, so
    clip to C_l minus that rounding).

    Args:
        levels: mapping from public names to epsilons; a number is the epsilon of one level, "everyone".
        delta: the delta of all levels.
        default: the level of users who declared none; None: the level with the smallest epsilon.
        floor: the smallest allowed epsilon of a level (`DEFAULT_FLOOR`); 0 allows all.

    Raises:
        ParameterError: no levels, a number out of range, an epsilon below ``floor``, a default that is not a level.

    >>> budgets = PersonalBudgets({"strict": 1.0, "standard": 4.0, "open": 8.0}, delta=1e-6, default="standard")
    >>> budgets.clipping_norm("strict"), budgets.guarantee("strict")
    (0.154552, ApproxDP(epsilon=1.0, delta=1e-06))
    """

    levels: Mapping[str, float]
    delta: float
    default: str
    floor: float

    def __init__(
        self,
        levels: Mapping[str, float] | float,
        *,
        delta: float,
        default: str | None = None,
        floor: float = DEFAULT_FLOOR,
    ) -> None:
        fields = levels if isinstance(levels, Mapping) else {"everyone": check_float("epsilon", levels, above=0)}
        delta = check_float("delta", delta, above=0, below=1)
        floor = check_float("floor", floor, minimum=0)
        if not fields:
            raise ParameterError('levels must have at least one entry, such as {"standard": 8.0}')
        checked: dict[str, float] = {
            name: _check_level(
                f"level {place} of {len(fields)}" if isinstance(levels, Mapping) else "everyone", name, epsilon, floor
            )
            for place, (name, epsilon) in enumerate(fields.items(), start=1)
        }
        if default is None:
            default = min(checked, key=checked.__getitem__)
        if not isinstance(default, str) or default not in checked:
            raise ParameterError(f"default must be one of {format_names(checked)}, got {display_value(default)}")
        values = {"levels": MappingProxyType(checked), "delta": delta, "default": default, "floor": floor}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if not 0 < self.sigma < 2.0**1000 or not all(self._norms.values()):
            raise ParameterError("the noise for these levels exceeds the range of floats: use larger epsilons")

    @cached_property
    def sigma(self) -> float:
        """Standard deviation of the noise on every coordinate, in units of the clipping norm of the largest budget."""
        return rounded_up(gaussian_sigma(epsilon=self.cap, delta=self.delta, sensitivity=1.0), _DIGITS)

    @cached_property
    def _norms(self) -> dict[str, float]:
        norms = dict.fromkeys(self.levels, 1.0)  # sigma suffices for the largest epsilon at norm 1
        for name, epsilon in self.levels.items():
            if epsilon < self.cap:
                needed = gaussian_sigma(epsilon=epsilon, delta=self.delta, sensitivity=1.0)
                norms[name] = rounded_down(self.sigma / needed * (1 - 1e-15), _DIGITS)  # (norms)
        return norms

    def __hash__(self) -> int:
        return hash((frozenset(self.levels.items()), self.delta, self.default, self.floor))

    def __reduce__(self) -> tuple[Any, ...]:
        build = partial(PersonalBudgets, delta=self.delta, default=self.default, floor=self.floor)
        return (build, (dict(self.levels),))

    @property
    def cap(self) -> float:
        """The largest epsilon, which determines the noise."""
        return max(self.levels.values())

    def level(self, declared: str | None) -> str:
        """Return the declared level of a user, or the default for None. Levels are public, so errors reveal nothing."""
        if declared is None:
            return self.default
        if not isinstance(declared, str) or declared not in self.levels:
            raise ParameterError(f"a level must be one of {format_names(self.levels)}, or None")
        return declared

    def clipping_norm(self, level: str | None = None) -> float:
        """Return C_l, the largest norm of the vector of a user of this level (None: the default level)."""
        return self._norms[self.level(level)]

    def release(
        self, level: str | None = None, *, relation: Relation = Relation.ADD_REMOVE, other: str | None = None
    ) -> GaussianRelease:
        """Return the Gaussian release for a user of this level: sigma and sensitivity.

        Args:
            level: the level of the user; None: the default level.
            relation: add/remove of the user, or substitution.
            other: under substitution, the level of the replacement; None: the level of the user.
        """
        norm = self.clipping_norm(level)
        if check_choice("relation", relation, Relation) is Relation.SUBSTITUTION:
            norm += self.clipping_norm(self.level(level) if other is None else other)
        elif other is not None:
            raise ParameterError("other is the level of a replacement: omit it under add/remove")
        return GaussianRelease(sigma=self.sigma, sensitivity=norm, relation=relation)

    def guarantee(
        self, level: str | None = None, *, relation: Relation = Relation.ADD_REMOVE, other: str | None = None
    ) -> ApproxDP:
        """Return the guarantee for a user of this level; see `release` for the arguments."""
        release = self.release(level, relation=relation, other=other)
        if release.relation is Relation.ADD_REMOVE:
            return ApproxDP(self.levels[self.level(level)], self.delta)
        return release.guarantee(delta=self.delta)


def _check_level(place: str, name: Any, epsilon: Any, floor: float) -> float:
    """Return the epsilon of a level. Messages give its position, because the name could be a user id."""
    if not isinstance(name, str) or not name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise ParameterError(f"the name of {place} must be text")
    if isinstance(epsilon, tuple | list | Mapping | ApproxDP):
        raise ParameterError(f"{place} must be one number, its epsilon. Pass the delta of all levels as delta=")
    value = check_float(f"the epsilon of {place}", epsilon, above=0)
    if value < floor:
        raise ParameterError(
            f"the epsilon of {place} is {value:g}, below the minimum {floor:g}: the noise would exceed its "
            "contribution. Raise it, or omit those users (dptext.PersonalBudgets accepts floor=)"
        )
    return value
