"""The privacy statement: the paper that travels with the data and says exactly what was promised.

A statement is frozen when the release is made. As JSON it follows ``statement.schema.json`` (version 1), which
stands beside this file; `PrivacyStatement.explain` says it in words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.privacy.explanation import explanation_html, explanation_text
from dptext.privacy.guarantee import (
    ApproxDP,
    Guarantee,
    MetricDP,
    PureDP,
    compose,
    guarantee_from_dict,
    guarantee_to_dict,
)
from dptext.privacy.randomness import RandomBits
from dptext.privacy.unit import Relation, Trust, Unit

__all__ = ["SCHEMA_VERSION", "PrivacyStatement", "new_release_id"]

SCHEMA_VERSION = 1
Parameter: TypeAlias = str | int | float | bool | None


def new_release_id() -> str:
    """A random name for a release: 128 bits that say nothing about the machine, the time or a seed."""
    return RandomBits().take(16).hex()


@dataclass(frozen=True, kw_only=True)
class PrivacyStatement:
    """What a release promises, to whom, and what it does not.

    Attributes:
        guarantee: the mathematical promise; its epsilon is what is *proved*.
        unit: what one neighbouring change may touch.
        relation: how neighbours differ.
        neighbours: in words, which two inputs count as neighbours (and what they must agree on).
        trust: local (nobody is trusted) or central (a curator is).
        mechanism: its name.
        parameters: public parameters only; nothing in here was computed from the protected data.
        assumptions: what the proof takes for granted.
        exposed: what the output shows as it was; the promise does not cover it.
        slack: nats by which finite arithmetic may exceed the guarantee's epsilon, proved.
        claimed_epsilon: the number that a paper prints, where it is another one.
        seeded: True when a seed made the noise repeatable: whoever knows it can undo the release.
        data_sha256: digest of the file that this statement speaks of.
        release_id: random name of this release.
        supersedes: release_id of the statement that this one corrects, if any.
        software: name and version of what made the release.
    """

    guarantee: Guarantee
    unit: Unit
    relation: Relation
    neighbours: str
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
        if not (math.isfinite(self.slack) and self.slack >= 0):
            raise ParameterError(f"slack must be a finite number of nats >= 0, got {self.slack}")
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "exposed", tuple(self.exposed))

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return (PrivacyStatement.from_json, (self.to_json(),))

    @property
    def epsilon(self) -> float:
        """The epsilon of the worst pair of neighbours, slack included: infinite where nothing bounds it.

        Neither a delta nor a metric's fine print is in it; read the guarantee.
        """
        match self.guarantee:
            case PureDP(epsilon) | ApproxDP(epsilon, _):
                return epsilon + self.slack
            case MetricDP() as metric:
                return metric.pure_epsilon + self.slack
            case _:
                return math.inf

    def replace(self, **changes: Any) -> PrivacyStatement:
        """A copy with some fields changed."""
        return replace(self, **changes)

    def compose(self, other: PrivacyStatement) -> PrivacyStatement:
        """The statement of two releases about the same people, taken together.

        Raises:
            RefusedError: when unit or relation differ (convert one of them first), or the guarantees do not add.
        """
        for name in ("unit", "relation"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is not theirs:
                raise RefusedError(
                    f"composition needs one {name}, got {mine} and {theirs}: convert one statement before adding"
                )
        same = self.neighbours == other.neighbours
        return PrivacyStatement(
            guarantee=compose(self.guarantee, other.guarantee),
            unit=self.unit,
            relation=self.relation,
            neighbours=self.neighbours if same else f"both hold: {self.neighbours}; and {other.neighbours}",
            trust=Trust.CENTRAL if Trust.CENTRAL in (self.trust, other.trust) else Trust.LOCAL,
            mechanism=f"{self.mechanism} + {other.mechanism}",
            assumptions=_merge(self.assumptions, other.assumptions),
            exposed=_merge(self.exposed, other.exposed),
            slack=self.slack + other.slack,
            seeded=self.seeded or other.seeded,
            release_id=new_release_id(),
            software=self.software if self.software == other.software else None,
        )

    def explain(self) -> str:
        """The statement in words, for someone who has to decide on it and is no mathematician."""
        return explanation_text(self)

    def _repr_html_(self) -> str:
        return explanation_html(self)

    def to_json(self) -> str:
        """JSON after ``statement.schema.json``; infinities are written as the string "infinity"."""
        data: dict[str, Any] = {"schema": SCHEMA_VERSION}
        for each in fields(self):
            data[each.name] = getattr(self, each.name)
        data["guarantee"] = guarantee_to_dict(self.guarantee)
        data["parameters"] = _spell_infinity(dict(self.parameters))
        return json.dumps(_spell_infinity(data), indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> PrivacyStatement:
        """The inverse of `to_json`.

        Raises:
            DataError: not JSON, another schema version, a missing, unknown or wrong field; the field is named.
        """
        try:
            data = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            raise DataError("a privacy statement must be JSON, this is not: was the file cut or edited?") from None
        if not isinstance(data, dict):
            raise DataError("a privacy statement must be a JSON object; this file holds something else")
        version = data.pop("schema", None)
        if version != SCHEMA_VERSION:
            raise DataError(
                f"expected a privacy statement of schema version {SCHEMA_VERSION}; this file has another: "
                "read it with the dptext version that its field 'software' names"
            )
        _check_names(data)
        try:
            return cls(
                **{
                    **_read_infinity(data),
                    "guarantee": guarantee_from_dict(_read_infinity(data["guarantee"])),
                    "unit": Unit(data["unit"]),
                    "relation": Relation(data["relation"]),
                    "trust": Trust(data["trust"]),
                    "assumptions": tuple(data["assumptions"]),
                    "exposed": tuple(data["exposed"]),
                }
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"a field of the privacy statement has a wrong value: {error}") from None


_TYPES: dict[str, tuple[type, ...]] = {
    "guarantee": (dict,),
    "unit": (str,),
    "relation": (str,),
    "neighbours": (str,),
    "trust": (str,),
    "mechanism": (str,),
    "parameters": (dict,),
    "assumptions": (list,),
    "exposed": (list,),
    "slack": (int, float),
    "claimed_epsilon": (int, float, str, type(None)),
    "seeded": (bool,),
    "data_sha256": (str, type(None)),
    "release_id": (str, type(None)),
    "supersedes": (str, type(None)),
    "software": (str, type(None)),
}


def _check_names(data: dict[str, Any]) -> None:
    missing, unknown = sorted(_TYPES.keys() - data.keys()), sorted(data.keys() - _TYPES.keys())
    if missing or unknown:
        what = f"lacks {', '.join(missing)}" if missing else f"has {len(unknown)} unknown field(s)"
        raise DataError(f"the privacy statement {what}: it is not one that dptext wrote")
    for name, types in _TYPES.items():
        if not isinstance(data[name], types) or (isinstance(data[name], bool) and bool not in types):
            raise DataError(f"the field {name!r} of the privacy statement has the wrong type")


def _spell_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _spell_infinity(each) for key, each in value.items()}
    if isinstance(value, float) and math.isinf(value) and value > 0:
        return "infinity"
    return value


def _read_infinity(data: dict[str, Any]) -> dict[str, Any]:
    return {key: math.inf if value == "infinity" else value for key, value in data.items()}


def _merge(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(first + second))
