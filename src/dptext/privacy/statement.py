"""Privacy statements, their JSON and comparison, and findings about epsilons printed in papers."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, TypeAlias, get_args

from dptext.display import Fields, ReprMixin
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.privacy.gaussian import gaussian_epsilon, gaussian_power
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    PureDP,
    Relation,
    Trust,
    Unit,
    approx_from_zcdp,
    check_amount,
    compose,
    guarantee_from_dict,
    guarantee_to_dict,
    least_false_negatives,
    pure_from_metric,
    sum_upwards,
)
from dptext.privacy.neighbours import ANY_TWO, Condition
from dptext.privacy.randomness import RandomBits
from dptext.privacy.wording import RELINKING, Form, explanation_html, explanation_text, facts_of
from dptext.validation import check_choice, check_float

SCHEMA_VERSION = 2
Parameter: TypeAlias = str | int | float | bool | None

TAKEN_FOR_GRANTED = (
    "AES-256 output cannot be distinguished from random bits without its key",
    "the adversary sees the output only, not the running time or memory of the machine that made it",
)
"""Assumptions of every release."""
OF_SUBSTITUTION = ("epsilon_under_substitution", "delta_under_substitution")
"""Parameters with the exact guarantee under substitution."""
OF_THE_GUARANTEE = (*OF_SUBSTITUTION, RELINKING)
"""Parameters that follow from the guarantee: for another guarantee or unit they would be false."""


def new_release_id() -> str:
    """Return a random id of 128 bits, which reveals nothing about the machine, the time or a seed."""
    return RandomBits().take(16).hex()


@dataclass(frozen=True, kw_only=True, repr=False)
class PrivacyStatement(ReprMixin):
    """Privacy statement of a release: guarantee, privacy unit, assumptions and exposed parts.

    Attributes:
        guarantee: the *proved* guarantee.
        unit: the privacy unit, in which neighbours differ.
        relation: how neighbours differ.
        condition: further conditions on neighbours; a string is a condition in free text.
        trust: local (no trusted party), a shuffler, two servers, or central (a trusted curator).
        mechanism: the name of the mechanism.
        parameters: public parameters, and counts that the output reveals (listed in ``exposed``).
        assumptions: assumptions of the proof.
        exposed: parts of the input that the output reveals; the guarantee does not cover them.
        slack: proved bound in nats by which finite arithmetic may exceed the guarantee's epsilon.
        claimed_epsilon: the epsilon that the paper prints, if it differs.
        seeded: True if a seed made the noise repeatable: anyone who knows it can undo the release.
        data_sha256: digest of the data file.
        release_id: random name of this release.
        supersedes: release_id of the statement that this one corrects, if any.
        software: name and version of the software that made the release.
    """

    guarantee: Guarantee
    unit: Unit
    relation: Relation
    condition: Condition
    trust: Trust
    mechanism: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    slack: float = 0.0
    claimed_epsilon: float | None = None
    seeded: bool = False
    data_sha256: str | None = None
    release_id: str | None = None
    supersedes: str | None = None
    software: str | None = None

    def __post_init__(self) -> None:
        for name, choices in (("unit", Unit), ("relation", Relation), ("trust", Trust)):
            object.__setattr__(self, name, check_choice(name, getattr(self, name), choices))
        object.__setattr__(self, "condition", Condition.read(self.condition))
        check_amount(self, "slack", infinite=False)
        if self.claimed_epsilon is not None:
            check_amount(self, "claimed_epsilon")
        for name, (is_valid, expected) in _FIELDS.items():
            if not is_valid(getattr(self, name)):
                raise ParameterError(f"{name} must be {expected}")
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        for name in ("assumptions", "exposed"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def __hash__(self) -> int:
        values = (getattr(self, field.name) for field in fields(self) if field.name != "parameters")
        return hash((*values, frozenset(self.parameters.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        return (PrivacyStatement.from_json, (self.to_json(),))

    @property
    def neighbours(self) -> str:
        """The condition in words."""
        return self.condition.describe(self.unit, self.relation)

    @property
    def epsilon(self) -> float:
        """The epsilon of the worst pair of neighbours, slack included; infinite without a bound. Delta is ignored."""
        match self.guarantee:
            case PureDP(epsilon) | ApproxDP(epsilon, _):
                return sum_upwards(epsilon, self.slack)
            case MetricDP() as metric:
                return sum_upwards(metric.pure_epsilon, self.slack)
            case _:
                return math.inf

    @property
    def delta(self) -> float:
        """The delta of the guarantee; 0 if it has none."""
        return float(getattr(self.guarantee, "delta", 0.0))

    @property
    def whole_guarantee(self) -> Guarantee:
        """The guarantee with slack added to epsilon; raises RefusedError for zCDP with slack, which has no proof."""
        match self.guarantee:
            case PureDP(epsilon):
                return PureDP(sum_upwards(epsilon, self.slack))
            case ApproxDP(epsilon, delta):
                return ApproxDP(sum_upwards(epsilon, self.slack), delta)
            case MetricDP() if self.slack > 0:
                return PureDP(sum_upwards(pure_from_metric(self.guarantee).epsilon, self.slack))
            case ZCDP() if self.slack > 0:
                raise RefusedError("zCDP with slack has no proved sum: convert it with approx_from_zcdp first")
            case _:
                return self.guarantee

    @property
    def mu(self) -> float | None:
        """The mu of Gaussian DP (Dong, Roth and Su 2022); None unless the statement is about Gaussian noise alone."""
        sigma, moved = self.parameters.get(self.noise_parameter), self.parameters.get("sensitivity", 1.0)
        if not isinstance(sigma, float) or not isinstance(moved, float) or min(sigma, moved) <= 0:
            return None
        if self.slack > 0 or not isinstance(self.guarantee, ApproxDP) or not 0 < self.delta < 1:
            return None
        alone = gaussian_epsilon(sigma, delta=self.delta, sensitivity=moved)  # a sum of releases has a larger epsilon
        return moved / sigma if math.isclose(alone, self.epsilon, rel_tol=1e-4) else None

    def false_negatives(self, false_positives: float) -> float:
        """Return a lower bound on the false-negative rate of any test with this false-positive rate between neighbours.

        It is G_mu for Gaussian noise, otherwise f_{epsilon,delta} (Dong, Roth and Su 2022), and 0 without a bound.
        """
        rate = check_float("false_positives", false_positives, above=0, below=1)
        if self.mu is not None:
            return max(0.0, 1 - gaussian_power(self.mu, rate) - 1e-13)
        bounds = [(self.epsilon, self.delta)]
        if isinstance(self.guarantee, ZCDP) and self.slack == 0:  # it holds at every delta
            bounds = [(approx_from_zcdp(self.guarantee, delta=10.0**-k).epsilon, 10.0**-k) for k in range(1, 16)]
        return max(least_false_negatives(*bound, rate) for bound in bounds)

    @property
    def noise_parameter(self) -> str:
        """Name of the parameter with the Gaussian noise that gives the guarantee."""
        return "sigma" if self.trust is not Trust.TWO_SERVERS else "server_sigma"

    def replace(self, **changes: Any) -> PrivacyStatement:
        """Return a copy with some fields changed. The condition may only become tighter.

        If the guarantee changes, parameters that follow from the old one are removed, unless ``changes`` has them.

        Raises:
            RefusedError: a wider condition; another unit or relation, which needs a proof (`dptext.privacy.restating`);
                less trust, such as local instead of central; removal of the seed flag.
        """
        for name in ("unit", "relation"):
            if changes.get(name, getattr(self, name)) != getattr(self, name):
                raise RefusedError(
                    f"the {name} of a statement cannot be replaced without a proof: use statement_for_user or "
                    "statement_with_training, or build another statement"
                )
        if Trust.composed(self.trust, trust := Trust(changes.get("trust", self.trust))) is not trust:
            raise RefusedError(f"a statement cannot change from {self.trust} to {trust} trust, which assumes less")
        if self.seeded and not changes.get("seeded", True):
            raise RefusedError("a seed was used for this release: a statement cannot change seeded from True to False")
        if not Condition.read(changes.get("condition", self.condition)).narrows(self.condition, self.unit):
            raise RefusedError(
                "the condition of a statement can only become stricter: this one admits neighbours without a proof. "
                "Add requirements with condition.and_(...)"
            )
        if changes.get("guarantee", self.guarantee) != self.guarantee:
            kept = {name: value for name, value in self.parameters.items() if name not in OF_THE_GUARANTEE}
            changes = {"parameters": kept, **changes}
        return replace(self, **changes)

    __replace__ = replace  # copy.replace of Python 3.13

    def compose(self, other: PrivacyStatement) -> PrivacyStatement:
        """Return the statement of two releases about the same people, for neighbours under both conditions.

        Raises:
            RefusedError: when unit or relation differ (convert one of them first), or the guarantees do not add.
        """
        for name in ("unit", "relation"):
            first, second = getattr(self, name), getattr(other, name)
            if first is not second:
                raise RefusedError(
                    f"composition needs one {name}, got {first} and {second}: convert one statement before adding"
                )
        claimed = None
        if not (self.claimed_epsilon is None and other.claimed_epsilon is None):
            parts = (self, other)  # without a claim, the proved epsilon counts
            claimed = sum(part.epsilon if part.claimed_epsilon is None else part.claimed_epsilon for part in parts)
        return PrivacyStatement(
            guarantee=compose(self.guarantee, other.guarantee),
            unit=self.unit,
            relation=self.relation,
            condition=self.condition.meet(other.condition, self.unit),
            trust=Trust.composed(self.trust, other.trust),
            mechanism=f"{self.mechanism} + {other.mechanism}",
            assumptions=_merge(self.assumptions, other.assumptions),
            exposed=_merge(self.exposed, other.exposed),
            slack=sum_upwards(self.slack, other.slack),
            claimed_epsilon=claimed,
            seeded=self.seeded or other.seeded,
            release_id=new_release_id(),
            software=self.software if self.software == other.software else None,
        )

    def explain(self, form: Form = "text") -> str:
        """Return the statement in plain words, as a Hugging Face ``"dataset-card"`` or a ``"registry"`` entry."""
        return explanation_text(self, form)

    def _repr_html_(self) -> str:
        return explanation_html(self)

    def to_json(self) -> str:
        """Return JSON that conforms to ``statement.schema.json``; infinities become the string "infinity"."""
        data: dict[str, Any] = {"schema": SCHEMA_VERSION}
        data |= {field.name: getattr(self, field.name) for field in fields(self)}
        data["guarantee"] = {key: _to_json(value) for key, value in guarantee_to_dict(self.guarantee).items()}
        data["condition"] = {"in_words": self.neighbours, **self.condition.to_dict()}
        data["parameters"] = dict(self.parameters)
        data["claimed_epsilon"] = _to_json(self.claimed_epsilon)
        return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)

    def settings_digest(self, settings: Mapping[str, Any] | None = None) -> bytes:
        """Return a digest of the settings and of all fields that decide the output: it selects the noise."""
        names = ("unit", "relation", "trust", "mechanism")
        deciding: dict[str, Any] = {name: getattr(self, name) for name in names}
        deciding["guarantee"] = {key: _to_json(value) for key, value in guarantee_to_dict(self.guarantee).items()}
        deciding["parameters"] = dict(self.parameters)
        described = json.dumps([deciding, dict(settings or {})], sort_keys=True)
        return hashlib.sha256(described.encode()).digest()

    @classmethod
    def from_json(cls, text: str) -> PrivacyStatement:
        """Return the statement that `to_json` wrote.

        Raises:
            DataError: not JSON, another schema version, a missing, unknown or invalid field; the message names it.
        """
        try:
            data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=each_once)
        except (ValueError, RecursionError):
            raise DataError(
                "a privacy statement must be JSON without repeated keys: the file may be truncated or edited"
            ) from None
        if not isinstance(data, dict) or not {"schema", "guarantee"} <= data.keys():
            raise DataError("this JSON is not a privacy statement")
        schema = data.pop("schema")
        if type(schema) is not int or schema != SCHEMA_VERSION:
            raise DataError(
                f"expected a privacy statement of schema version {SCHEMA_VERSION}; this file has another. "
                "Read it with the dptext version in its field 'software'"
            )
        names = {field.name for field in fields(cls)}
        if wrong := sorted(map(repr, names ^ data.keys())):
            raise DataError(
                f"the privacy statement lacks fields or has unknown ones ({', '.join(wrong)}): dptext did not write it"
            )
        data["claimed_epsilon"] = _read(data["claimed_epsilon"])
        try:
            if not isinstance(encoded := data["guarantee"], dict):
                raise ParameterError("guarantee must be an object with a kind and numbers")
            numbers = {key: _read(value) if key in _MAY_BE_INFINITE else value for key, value in encoded.items()}
            data["guarantee"] = guarantee_from_dict(numbers)
            condition = dict(data["condition"]) if isinstance(data["condition"], Mapping) else {}
            in_words = condition.pop("in_words", None)
            if not isinstance(in_words, str):
                raise ParameterError("condition must be an object with text and structure")
            data["condition"] = Condition.from_dict(condition)
            statement = cls(**data)
        except ParameterError as error:
            raise DataError(f"a field of the privacy statement has a wrong value: {error}") from None
        if in_words != statement.neighbours:
            raise DataError(
                "the text and the structure of the condition differ: the statement was edited, or another version of "
                "dptext wrote it (see its field 'software')"
            )
        return statement

    def _repr_fields(self) -> Fields:
        yield "mechanism", self.mechanism
        yield "guarantee", str(self.guarantee)
        yield "unit", str(self.unit)
        yield "relation", str(self.relation)
        yield "trust", str(self.trust)


class HasStatement:
    """Base of results with a privacy statement: they have the numbers of its guarantee, and display it."""

    @property
    def epsilon(self: Any) -> float:
        """The epsilon of the statement (`PrivacyStatement.epsilon`)."""
        return float(self.statement.epsilon)

    @property
    def delta(self: Any) -> float:
        """The delta of the statement."""
        return float(self.statement.delta)

    def _html_fields(self: Any) -> Fields:
        return facts_of(self.statement)


def software() -> str:
    """Return the name and version of this software."""
    return f"dptext {version('dptext')}"


def release_statement(
    *, condition: Condition = ANY_TWO, assumptions: tuple[str, ...] = (), **fields: Any
) -> PrivacyStatement:
    """Return the statement of a new release; other fields as in `PrivacyStatement`."""
    assumptions = _merge(tuple(assumptions), TAKEN_FOR_GRANTED)
    return PrivacyStatement(condition=condition, assumptions=assumptions, software=software(), **fields)


_MAY_BE_INFINITE = {"epsilon", "rho", "max_distance"}
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LARGEST = 2**1000  # largest integer parameter: readers may need a float


def _are_parameters(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str)
        and (
            isinstance(entry, str | None)
            or (isinstance(entry, float) and math.isfinite(entry))
            or (isinstance(entry, int) and abs(entry) <= _LARGEST)
        )
        for name, entry in value.items()
    )


def _are_sentences(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(entry, str) for entry in value)


_TEXT_OR_NONE = (lambda value: isinstance(value, str | None), "text or none")
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "guarantee": (lambda value: isinstance(value, get_args(Guarantee)), "a guarantee such as PureDP"),
    "mechanism": (lambda value: isinstance(value, str), "text"),
    "parameters": (_are_parameters, "a mapping from names to text, finite numbers, true, false or none"),
    "assumptions": (_are_sentences, "a sequence of sentences"),
    "exposed": (_are_sentences, "a sequence of sentences"),
    "seeded": (lambda value: isinstance(value, bool), "true or false"),
    "data_sha256": (
        lambda value: value is None or (isinstance(value, str) and _SHA256.fullmatch(value) is not None),
        "64 hexadecimal digits in lower case, or none",
    ),
    **dict.fromkeys(("release_id", "supersedes", "software"), _TEXT_OR_NONE),
}


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raise if a name repeats, because other readers might see another of its values."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _to_json(value: Any) -> Any:
    return "infinity" if isinstance(value, float) and math.isinf(value) else value


def _read(value: Any) -> Any:
    return math.inf if value == "infinity" else value


def _merge(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(first + second))


NEAR = 1e-6
"""Relative difference between calibrations on two machines, which search for a flat optimum."""

_OF_A_RELEASE = ("seeded", "data_sha256", "release_id", "supersedes")


def disagreements(
    stated_statement: PrivacyStatement,
    follows: PrivacyStatement,
    *,
    of_a_release: bool = False,
    apart_from: tuple[str, ...] = (),
) -> list[str]:
    result = []
    ignored = ("software", *apart_from, *(_OF_A_RELEASE if of_a_release else ()))
    for name in (entry.name for entry in fields(PrivacyStatement) if entry.name not in ignored):
        first, second = getattr(stated_statement, name), getattr(follows, name)
        if name == "parameters":
            names = [*second, *(() if of_a_release else (key for key in first if key not in second))]
            result += [key for key in names if key not in apart_from and not same_value(first, second, key, NEAR)]
            continue
        agree = _same(first, second, NEAR)
        if name == "guarantee":
            one, two = asdict(first), asdict(second)
            agree = type(first) is type(second) and all(_same(one[key], two[key], 1e-12) for key in one)
        elif of_a_release and name in ("assumptions", "exposed"):
            agree = set(second) <= set(first)
        elif of_a_release and name == "condition":
            agree = first.narrows(second, stated_statement.unit)
        elif of_a_release and name == "slack":
            agree = first >= second * (1 - NEAR)
        result += [] if agree else [name]
    return result


def same_value(one: Mapping[str, Any], other: Mapping[str, Any], name: str, near: float) -> bool:
    """Return whether two values are equal; floats up to a relative difference of ``near``."""
    return name in one and name in other and _same(one[name], other[name], near)


def _same(first: Any, second: Any, near: float) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=near, abs_tol=1e-12 if near else 0.0)
    if isinstance(first, str) and isinstance(second, str):
        return first == second  # an enumeration member equals its string
    return type(first) is type(second) and bool(first == second)


_SAME = 1e-9  # relative; probabilities are rounded by less


@dataclass(frozen=True)
class Finding:
    """Assessment of an epsilon that a paper prints."""

    claimed: float
    bound: float
    attained: float
    reason: str
    holds_for: str
    witness: str

    @property
    def verdict(self) -> str:
        """Whether the claim is ``"false"``, ``"true"``, or ``"open"`` (neither proved nor refuted)."""
        if self.attained > self.claimed * (1 + _SAME):
            return "false"
        return "true" if self.bound <= self.claimed * (1 + _SAME) else "open"

    def parameters(self) -> dict[str, Parameter]:
        """Return the parameters for the statement, which `PrivacyStatement.explain` shows."""
        verdict = self.verdict
        return {
            "claim_is": verdict,
            "reason": None if verdict == "true" else self.reason,
            "holds_for": self.holds_for,
            "witness": self.witness,
            "witness_loss": self.attained if math.isfinite(self.attained) else "infinity",
        }
