"""Privacy of local messages that a shuffler mixes: the clones of Feldman, McMillan and Talwar (2021), computed.

Derivation: docs/understand/shuffling.md#shuffling
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dptext.errors import RefusedError
from dptext.privacy.gaussian import least
from dptext.privacy.guarantee import ApproxDP, PureDP, Relation, Trust, Unit, as_approx
from dptext.privacy.neighbours import EncoderStays
from dptext.privacy.restating import restated, without_claim
from dptext.privacy.statement import PrivacyStatement
from dptext.validation import check_float, check_int

_ORDER = ", and their order"  # in `exposed`
_UP = 1 + 1e-9  # covers the rounding errors of all steps
_LEVELS = 64  # pairs of levels of the continued fraction; an even number, so that it is a lower bound
_BLOCKS = 1 << 12  # values of c that are evaluated
_DEVIATIONS = 12  # of the number of clones, on both sides of its mode
_MOST_USERS = 10**10
_log_factorial = np.vectorize(lambda number: math.lgamma(number + 1), otypes=[np.float64])


def shuffled(statement: PrivacyStatement, *, users: int, delta: float = 1e-6) -> PrivacyStatement:
    """Return the statement of local messages that a shuffler mixes before anybody else sees them.

    Args:
        statement: the statement of one message, with a pure local guarantee for any two inputs.
        users: N, a public lower bound on the honest users whose messages are mixed, the protected user included. If a
            column is published in the clear, N counts the users with the same value in it.
        delta: the delta of the guarantee.

    **Guarantee** (unit of ``statement``; substitution; trust: a shuffler): (epsilon, delta)-DP of the mixed messages,
    with the epsilon of `shuffled_epsilon`, under the assumptions that the result lists.

    Raises:
        ParameterError: a number is out of range.
        RefusedError: the guarantee is not local, pure and finite, or does not hold for any two inputs: no proof.

    >>> from dptext.representations.privunit import PrivUnit
    >>> print(shuffled(PrivUnit(epsilon=4.0).statement(64), users=10_000).guarantee)
    (0.601, 1e-06)-differential privacy
    """
    unit, required = statement.unit, statement.condition.requirements
    if statement.trust is not Trust.LOCAL or statement.relation is not Relation.SUBSTITUTION:
        raise RefusedError(f"shuffling needs local trust and substitution, got {statement.trust}, {statement.relation}")
    if unit not in (Unit.DOCUMENT, Unit.USER) or not all(isinstance(entry, EncoderStays) for entry in required):
        raise RefusedError(
            "shuffling needs a guarantee for any two documents or users, because the messages of all others hide one. "
            f"This one is for {statement.neighbours}"
        )
    local = as_approx(statement.whole_guarantee)
    if local.delta > 0 or math.isinf(local.epsilon):
        raise RefusedError(f"shuffling needs a pure, finite local guarantee, got {statement.guarantee}")
    return restated(
        statement,
        ApproxDP(shuffled_epsilon(local.epsilon, users, delta), delta),
        trust=Trust.SHUFFLER,
        slack=0.0,
        claimed_epsilon=None,
        parameters=without_claim(dict(statement.parameters))
        | {"local_epsilon": local.epsilon, "shuffled_users": users, "shuffled_delta": float(delta)},
        assumptions=(
            *statement.assumptions,
            f"the messages of at least {users:,} {unit}s, made by this mechanism on honest devices, are mixed before "
            f"anybody but the shuffler sees one of them; each {unit} gives one message",
            "the shuffler removes the order, time, address and device of every message and keeps them secret",
            f"the number {users:,} is public and counts only {unit}s that agree in all columns published in the clear",
            f"if the shuffler fails, the local guarantee of each message still holds: {PureDP(local.epsilon)}",
        ),
        exposed=tuple(entry.replace(_ORDER, "") for entry in statement.exposed),
    )


def shuffled_epsilon(epsilon0: float, users: int, delta: float) -> float:
    """Return the epsilon at ``delta`` of the mixed messages of ``users`` users, rounded up; at most ``epsilon0``.

    It holds for every local randomizer with pure ``epsilon0``-DP under substitution (Theorem 3.1 of the paper).
    """
    delta_at, delta = _curve(epsilon0, users), check_float("delta", delta, above=0, below=1)
    if delta_at(0.0) <= delta:
        return 0.0
    return min(epsilon0, least(0.0, epsilon0, lambda epsilon: delta_at(epsilon) <= delta))


def shuffled_delta(epsilon0: float, users: int, epsilon: float) -> float:
    """Return the delta at ``epsilon``, rounded up; otherwise as `shuffled_epsilon`."""
    return _curve(epsilon0, users)(check_float("epsilon", epsilon, minimum=0))


def local_epsilon(epsilon: float, users: int, delta: float) -> float:
    """Return the largest local epsilon whose `shuffled_epsilon` is at most ``epsilon``, rounded down."""
    low, delta = check_float("epsilon", epsilon, minimum=0), check_float("delta", delta, above=0, below=1)
    high = low + math.log(check_int("users", users, minimum=1, maximum=_MOST_USERS)) + 1
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if shuffled_delta(middle, users, epsilon) <= delta else (low, middle)
    return low


def _curve(epsilon0: float, users: int) -> Callable[[float], float]:
    """Return delta as a function of epsilon, by the equations of the derivation (numbers in comments)."""
    epsilon0 = check_float("epsilon0", epsilon0, minimum=0)
    others = check_int("users", users, minimum=1, maximum=_MOST_USERS) - 1
    if not 0 < epsilon0 < 64:  # above, even 10^10 users have a clone with a chance of 1e-17 only
        return lambda epsilon: float(epsilon < epsilon0)
    mode = int(others * math.exp(-epsilon0))
    reach = int(_DEVIATIONS * math.sqrt(mode * -math.expm1(-epsilon0))) + 60
    low, high = max(0, mode - reach), min(others, mode + reach)
    c, odds = np.arange(low, high + 1, dtype=np.float64), math.expm1(epsilon0)
    logs = np.cumsum([0.0, *np.log((others - c[:-1]) / (c[1:] * odds))])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()  # at least the probabilities of C
    left, right = low * odds / (others - low + 1), (others - high) / ((high + 1) * odds)  # ratios at both ends
    outside = weights[0] * left / (1 - left) + weights[-1] * right / (1 - right)
    step = -(-c.size // _BLOCKS)
    c, weights = c[::step], np.add.reduceat(weights, np.arange(0, c.size, step))

    def delta_at(epsilon: float) -> float:
        if epsilon >= epsilon0:
            return 0.0
        beta = math.expm1(-epsilon - epsilon0) / ((1 + math.exp(-epsilon)) * math.expm1(-epsilon0))
        a = np.minimum(np.ceil(beta * (c + 1)), c + 1)  # t in (5)
        b = c + 1 - a
        log_mass = _log_factorial(c) * (1 + 2.0**-48) - _log_factorial(a - 1) - _log_factorial(b) - c * math.log(2)
        fraction = np.ones(c.size)  # (7), from its end
        for m in range(_LEVELS - 1, -1, -1):
            even = (m + 1) * np.maximum(b - m - 1, 0) / (2 * (a + 2 * m + 1) * (a + 2 * m + 2))
            fraction = 1 - (a + m) * (a + b + m) / (2 * (a + 2 * m) * (a + 2 * m + 1)) / (1 + even / fraction)
        gain = -math.expm1(epsilon - epsilon0) / (1 + math.exp(-epsilon0)) * _UP
        divergence = np.exp(log_mass) * (gain - math.expm1(epsilon) * b / (2 * a * fraction))  # (6)
        return min(1.0, float(weights @ np.maximum(divergence, 0.0) * _UP + outside))

    return delta_at
