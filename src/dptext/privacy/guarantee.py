"""Privacy guarantees, their composition and conversion, and the success of the best adversary.

Derivation: docs/understand/epsilon.md#privacy-vulnerability
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, field
from dataclasses import fields as dataclass_fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import StrEnum
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar, TypeAlias
from unicodedata import normalize
from uuid import UUID

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, RefusedError
from dptext.validation import check_float, check_int, check_text


class Unit(StrEnum):
    """Privacy unit: the part of the data in which two neighbours differ."""

    WORD = "word"
    SENTENCE = "sentence"
    EXAMPLE = "example"
    DOCUMENT = "document"
    USER = "user"


class Relation(StrEnum):
    """Neighbouring relation: the difference between two neighbouring datasets."""

    SUBSTITUTION = "substitution"
    """One unit is replaced by another; the number of units is equal and public."""
    ADD_REMOVE = "add/remove"
    """One unit is present or absent; the number of units is itself protected."""


class Trust(StrEnum):
    """Where the noise is added, from the least trust in others to the most."""

    LOCAL = "local"
    """By the owner, before sharing the data: no reader of the output has to be trusted."""
    SHUFFLER = "shuffler"
    """By the owner; a shuffler, trusted not to reveal who sent what, mixes the outputs of many owners."""
    TWO_SERVERS = "two servers"
    """By two servers, each with one share of the data: one of them must be trusted not to give its shares away."""
    CENTRAL = "central"
    """By a curator, who sees all data and must be trusted with them."""

    @classmethod
    def composed(cls, first: Trust, second: Trust) -> Trust:
        """Return the trust that a composition needs: the later one in the order above."""
        return max(first, second, key=list(cls).index)


_WHOLE = re.compile(r"(-?[1-9][0-9]*|-?0)\.0+")


def canonical_id(value: object) -> str | None:
    """Return the form of a user id that mechanisms, counters and ledgers compare; None if the value is not an id."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        text = normalize("NFC", value.strip())
        whole = _WHOLE.fullmatch(text)
        return ("0" if whole and whole[1] == "-0" else whole[1] if whole else text) or None
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return str(Decimal(value))  # str() of an int raises for more than some thousand digits


_UP = 1 + 2.0**-49  # covers the rounding of a few float operations
_ROUNDING = 1e-13  # the same for a probability


def check_amount(guarantee: object, name: str, *, maximum: float | None = None, infinite: bool = True) -> None:
    """Check an amount of a frozen dataclass; an integer stays an integer, because statements show it."""
    value = getattr(guarantee, name)
    number = check_float(name, value, minimum=0, maximum=maximum, infinite=infinite)
    object.__setattr__(guarantee, name, value if type(value) is int and value == number else number)


def rounded_up(value: float, digits: int) -> float:
    """Round up to significant digits, before use, so that a statement prints the value that the mechanism used."""
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int) -> float:
    """Round down to a number of significant digits."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, side: str) -> float:
    nearest = float(f"{value:.{digits}g}")
    if nearest == value:  # the float 0.1 is slightly above 1/10: exact decimals would round it up to 0.101
        return nearest
    return float(Context(prec=digits, rounding=side).create_decimal(value))


def at_most(value: float, digits: int) -> str:
    """Format a number with few digits for a sentence, never rounded down."""
    return f"{rounded_up(value, digits):.{digits}g}"


@dataclass(frozen=True)
class PureDP:
    """Pure differential privacy: for all neighbours and outputs, P(o | x) <= e^epsilon P(o | x')."""

    epsilon: float
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        check_amount(self, "epsilon")

    def __str__(self) -> str:
        return f"{at_most(self.epsilon, 4)}-differential privacy (pure)"


@dataclass(frozen=True)
class ApproxDP:
    """Approximate differential privacy: P(S | x) <= e^epsilon P(S | x') + delta for every set S of outputs."""

    epsilon: float
    delta: float
    kind: ClassVar[str] = "approximate"

    def __post_init__(self) -> None:
        check_amount(self, "epsilon")
        check_amount(self, "delta", maximum=1, infinite=False)

    def __str__(self) -> str:
        return f"({at_most(self.epsilon, 4)}, {at_most(self.delta, 3)})-differential privacy"


@dataclass(frozen=True)
class ZCDP:
    """Zero-concentrated DP: every Renyi divergence of order a between neighbours is at most rho * a."""

    rho: float
    kind: ClassVar[str] = "zero-concentrated"

    def __post_init__(self) -> None:
        check_amount(self, "rho")

    def __str__(self) -> str:
        return f"{at_most(self.rho, 4)}-zero-concentrated differential privacy"


@dataclass(frozen=True)
class MetricDP:
    """Metric DP: P(o | x) <= exp(epsilon * min(d(x, x'), max_distance)) P(o | x') for all x, x' and o.

    Attributes:
        epsilon: nats per unit of the metric, not per change: the loss of a pair grows with its distance.
        metric: the name of d.
        max_distance: upper bound on the distance of a pair (a truncation of the mechanism, or a public
            diameter). None: unbounded, without a pure epsilon.
        space: fingerprint of the points between which d is measured. The same two words can be near in one space
            and far in another, so guarantees in different spaces do not add.
    """

    epsilon: float
    metric: str
    max_distance: float | None = None
    space: str | None = None
    kind: ClassVar[str] = "metric"

    def __post_init__(self) -> None:
        check_amount(self, "epsilon")
        check_text("metric", self.metric)
        if self.max_distance is not None:
            check_amount(self, "max_distance")
        if self.space is not None:
            check_text("space", self.space)

    @property
    def pure_epsilon(self) -> float:
        """The largest loss of any pair: epsilon * max_distance, or infinity if the distance is unbounded."""
        return product_upwards(self.epsilon, math.inf if self.max_distance is None else self.max_distance)

    def __str__(self) -> str:
        bound = "" if self.max_distance is None else f", never more than {at_most(self.pure_epsilon, 4)} for a pair"
        return f"{at_most(self.epsilon, 4)} per unit of {self.metric} distance{bound} (metric differential privacy)"


@dataclass(frozen=True)
class NoGuarantee:
    """No proved guarantee, and the reason."""

    reason: str
    kind: ClassVar[str] = "none"

    def __post_init__(self) -> None:
        check_text("reason", self.reason)

    def __str__(self) -> str:
        return f"no guarantee: {self.reason}"


Guarantee: TypeAlias = PureDP | ApproxDP | ZCDP | MetricDP | NoGuarantee
_KINDS: dict[str, type[Guarantee]] = {c.kind: c for c in (PureDP, ApproxDP, ZCDP, MetricDP, NoGuarantee)}


def compose(*guarantees: Guarantee) -> Guarantee:
    """Return the guarantee of several mechanisms on the same unit (adaptive, basic composition).

    Pure counts as (epsilon, 0) with an approximate guarantee and as epsilon^2 / 2 with zCDP; metric guarantees of
    different metrics or spaces count with their pure epsilon. If one has no guarantee, the composition has none.

    Raises:
        RefusedError: the caller must choose a value first: a delta for zCDP, a diameter for an unbounded metric.
    """
    if not guarantees:
        raise ParameterError("compose needs at least one guarantee, got none")
    return reduce(_compose_two, guarantees)


def _compose_two(first: Guarantee, second: Guarantee) -> Guarantee:
    match first, second:
        case (NoGuarantee(a), NoGuarantee(b)):
            return NoGuarantee(a if a == b else f"{a}; {b}")
        case (NoGuarantee(), _):
            return first
        case (_, NoGuarantee()):
            return second
        case (PureDP(a), PureDP(b)):
            return PureDP(sum_upwards(a, b))
        case (ZCDP(a), ZCDP(b)):
            return ZCDP(sum_upwards(a, b))  # Bun and Steinke 2016, Lemma 7
        case (ZCDP(a), PureDP()):
            return ZCDP(sum_upwards(a, zcdp_from_pure(second).rho))
        case (PureDP(), ZCDP(b)):
            return ZCDP(sum_upwards(b, zcdp_from_pure(first).rho))
        case (ZCDP(), ApproxDP()) | (ApproxDP(), ZCDP()):
            raise RefusedError(
                "zCDP and (epsilon, delta) do not add before a delta is chosen. "
                "Convert the zCDP guarantee with approx_from_zcdp(guarantee, delta=...)"
            )
        case (MetricDP(a, m, g, s), MetricDP(b, n, h, t)) if (m, s) == (n, t):
            return MetricDP(sum_upwards(a, b), m, None if g is None or h is None else max(g, h), s)
        case (MetricDP(), _):
            return _compose_two(pure_from_metric(first), second)
        case (_, MetricDP()):
            return _compose_two(first, pure_from_metric(second))
        case _:
            one, two = as_approx(first), as_approx(second)
            return ApproxDP(sum_upwards(one.epsilon, two.epsilon), min(1.0, sum_upwards(one.delta, two.delta)))


def compose_parallel(*guarantees: Guarantee, relation: Relation) -> Guarantee:
    """Return the guarantee of mechanisms on disjoint, publicly chosen parts of the data (add/remove): the weakest."""
    if relation is not Relation.ADD_REMOVE:
        raise RefusedError(
            "parallel composition does not hold under substitution: two parts may change. Compose the two largest"
        )
    kinds = {type(guarantee) for guarantee in guarantees}
    if kinds in ({PureDP}, {ZCDP}):
        return max(guarantees, key=astuple)
    if not kinds or not kinds <= {PureDP, ApproxDP}:
        raise RefusedError("parallel composition needs guarantees of one kind. Convert them first")
    parts = list(map(as_approx, guarantees))
    return ApproxDP(max(part.epsilon for part in parts), max(part.delta for part in parts))


def as_approx(guarantee: Guarantee) -> ApproxDP:
    """Return a guarantee as (epsilon, delta); raise RefusedError if the conversion needs a choice or does not exist."""
    match guarantee:
        case ApproxDP():
            return guarantee
        case PureDP(epsilon):
            return ApproxDP(epsilon, 0.0)
        case MetricDP():
            return as_approx(pure_from_metric(guarantee))
        case ZCDP():
            raise RefusedError("zCDP has an epsilon for every delta. Choose a delta, and call approx_from_zcdp")
        case NoGuarantee(reason):
            raise RefusedError(f"there is no guarantee to convert: {reason}")


def pure_from_metric(guarantee: MetricDP) -> PureDP:
    """Return the pure epsilon of a metric guarantee over a bounded domain: epsilon times its diameter."""
    if guarantee.max_distance is None:
        raise RefusedError("a metric guarantee without max_distance has no pure epsilon. Pass the public diameter")
    return PureDP(guarantee.pure_epsilon)


def zcdp_from_pure(guarantee: PureDP) -> ZCDP:
    """Return the zCDP of pure DP: epsilon-DP is (epsilon^2 / 2)-zCDP (Bun and Steinke 2016, Proposition 4)."""
    return ZCDP(product_upwards(guarantee.epsilon, guarantee.epsilon, 0.5))


def approx_from_zcdp(guarantee: ZCDP, *, delta: float) -> ApproxDP:
    """Return (rho + 2 sqrt(rho ln(1/delta)), delta)-DP, which follows from rho-zCDP (Bun and Steinke 2016, Prop. 3)."""
    delta = check_float("delta", delta, minimum=0, maximum=1)
    if delta == 0.0 and guarantee.rho > 0.0:
        raise RefusedError("zCDP has no finite epsilon at delta = 0. Choose a delta above 0")
    rho = float(guarantee.rho)
    if rho == 0.0 or math.isinf(rho):
        return ApproxDP(rho, delta)
    return ApproxDP((rho + 2 * math.sqrt(rho) * math.sqrt(-math.log(delta))) * _UP, delta)


def for_group(guarantee: Guarantee, size: int) -> Guarantee:
    """Return the guarantee for a group of ``size`` units (for example k documents of one user).

    Pure: k epsilon. Approximate: (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)). zCDP: k^2 rho. A metric
    guarantee without a bound has no group guarantee, because the distance of two groups depends on the metric.
    """
    size = check_int("size", size, minimum=1)
    if size == 1 and not isinstance(guarantee, MetricDP):
        return guarantee
    match guarantee:
        case PureDP(epsilon):
            return PureDP(product_upwards(size, epsilon))
        case ApproxDP(epsilon, delta):
            # a geometric sum, which tends to size * delta as epsilon tends to 0
            total = product_upwards(size, epsilon)
            gap = total - epsilon
            if epsilon == 0:
                growth: float = size
            elif total < 700:
                growth = math.expm1(total) / math.expm1(epsilon) * _UP
            else:  # the terms -1 are negligible if both are large; e^gap may still be small
                growth = math.exp(gap) * (1 + 1e-12) / -math.expm1(-epsilon) if gap < 700 else math.inf
            return ApproxDP(total, min(1.0, product_upwards(delta, growth)))
        case ZCDP(rho):
            return ZCDP(product_upwards(size, size, rho))  # Bun and Steinke 2016, Proposition 27
        case MetricDP():
            return for_group(pure_from_metric(guarantee), size)
        case NoGuarantee():
            return guarantee


def substitution_from_add_remove(guarantee: Guarantee) -> Guarantee:
    """Convert a guarantee from add/remove to substitution, which removes one unit and adds another.

    The reverse does not hold: a mechanism that protects against substitution may publish the number of units.
    """
    if isinstance(guarantee, MetricDP):
        raise RefusedError("a metric guarantee already covers substitution: no conversion is needed")
    return for_group(guarantee, 2)


def sum_upwards(*numbers: float) -> float:
    """Return the smallest float that is not below the sum of numbers >= 0."""
    return math.inf if math.inf in numbers else _upwards(sum(map(Fraction, numbers)))


def product_upwards(*numbers: float) -> float:
    """Return the smallest float that is not below the product of numbers >= 0; 0 times infinity is 0."""
    if 0 in numbers:
        return 0.0
    return math.inf if math.inf in numbers else _upwards(math.prod(map(Fraction, numbers)))


def _upwards(exact: Fraction | int) -> float:
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def guarantee_to_dict(guarantee: Guarantee) -> dict[str, Any]:
    """Return the guarantee as a dictionary, with its kind first."""
    return {"kind": guarantee.kind, **asdict(guarantee)}


def guarantee_from_dict(data: dict[str, Any]) -> Guarantee:
    """Return the guarantee of a dictionary from `guarantee_to_dict`; raise ParameterError for invalid fields."""
    fields = dict(data)
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ParameterError(f"the kind of a guarantee must be one of {', '.join(_KINDS)}")
    if fields.keys() != {field.name for field in dataclass_fields(_KINDS[kind])}:
        raise ParameterError(f"the fields of a {kind} guarantee are missing or unknown")
    return _KINDS[kind](**fields)


Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BestGuesses:
    """Answer of the best adversary to every output."""

    named: npt.NDArray[np.int64] = field(repr=False)
    joint: Floats = field(repr=False)
    blind: float

    @property
    def rate(self) -> float:
        return float(self.joint.sum())  # G


def best_guesses(blocks: Iterable[Floats], prior: Floats) -> BestGuesses:
    """Return the answers of the best adversary against a mechanism with known output distributions."""
    named: npt.NDArray[np.int64] | None = None
    joint = np.zeros(0)
    start = 0
    for block in blocks:
        if start + len(block) > prior.size or (named is not None and block.shape[1] != named.size):
            raise ParameterError(f"blocks must contain one row for each of {prior.size:,} inputs, of equal length")
        weighted = block * prior[start : start + len(block), None]
        if named is None:
            named, joint = np.zeros(block.shape[1], dtype=np.int64), np.full(block.shape[1], -1.0)
        likeliest = weighted.argmax(axis=0)
        highest = weighted[likeliest, np.arange(named.size)]
        better = highest > joint
        named[better] = start + likeliest[better]
        joint[better] = highest[better]
        start += len(block)
    if named is None or start != prior.size:
        raise ParameterError(f"blocks must contain one row for each of {prior.size:,} inputs, got {start:,}")
    return BestGuesses(named, joint, float(prior.max()))


def rate_at_most(epsilon: float, inputs: int, delta: float = 0.0) -> float:
    """Return an upper bound on G for n equally likely inputs, pairwise neighbours under (epsilon, delta)-DP."""
    epsilon = check_float("epsilon", epsilon, minimum=0, infinite=True)
    others = (check_int("inputs", inputs, minimum=1) - 1) * math.exp(-epsilon)
    return (1 + others * check_float("delta", delta, minimum=0, maximum=1)) / (1 + others)


def least_false_negatives(epsilon: float, delta: float, rate: float) -> float:
    """Return the trade-off f_{epsilon,delta} at a false-positive rate, rounded down (Dong, Roth and Su 2022)."""
    growth = math.exp(min(epsilon, 700.0))
    return max(0.0, 1 - delta - growth * rate - _ROUNDING, (1 - delta - rate) / growth - _ROUNDING)


def epsilon_at_most(rate: float, inputs: int) -> float:
    inputs = check_int("inputs", inputs, minimum=2)
    rate = check_float("rate", rate, above=1 / inputs, below=1)
    return math.log(rate * (inputs - 1) / (1 - rate))
