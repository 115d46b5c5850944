"""Where candidates come from: what a source of texts offers.

A source never sees a private text. What it gets is a `Request`: names of public labels, words that a release gave, and
texts that it made before. All of that is public, or computed from what was released already, so a source may be asked
as often as one likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from dptext import checks
from dptext.errors import ParameterError
from dptext.privacy.statement import Parameter

__all__ = ["Request", "Source", "check_is_apart", "with_source"]


@dataclass(frozen=True)
class Request:
    """What a source is asked for. Nothing in it is private.

    Attributes:
        label: the public name in each column of labels; empty where there are no labels.
        hints: words that stand out for this label, from the release; most telling first.
        count: how many texts are wanted. A source may give fewer, or more.
        examples: texts that this source made before, the best first.
    """

    label: Mapping[str, str]
    hints: tuple[str, ...]
    count: int
    examples: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", MappingProxyType(dict(self.label)))
        object.__setattr__(self, "hints", tuple(self.hints))
        object.__setattr__(self, "examples", tuple(self.examples))
        checks.whole("count", self.count, least=0)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Request, (dict(self.label), self.hints, self.count, self.examples))


@runtime_checkable
class Source(Protocol):
    """What can give candidates to a `TextDistribution`."""

    @property
    def name(self) -> str:
        """What statements call it."""
        ...

    def propose(self, request: Request) -> Iterable[str]:
        """New texts of a label."""
        ...

    def vary(self, texts: Iterable[str], request: Request) -> Iterable[str]:
        """Texts like these, which this source made itself."""
        ...

    def parameters(self) -> dict[str, Parameter]:
        """What identifies it, for the statement."""
        ...

    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted about it, for the statement."""
        ...

    def exposed(self) -> tuple[str, ...]:
        """What it shows to whom, for the statement."""
        ...


def with_source(said: Mapping[str, Parameter], source: Source) -> dict[str, Parameter]:
    """What a statement says, and what its source says beside it: a source never speaks for the release."""
    return {**said, **{name: value for name, value in source.parameters().items() if name not in said}}


def check_is_apart(public: object, documents: object) -> None:
    """Refuse the very documents that are to be described as a pool: their texts would come out as they are.

    Raises:
        ParameterError: they are one object.
    """
    if public is documents:
        raise ParameterError(
            "the private documents are given as public texts as well, and would come out as they are: give a pool that "
            "is public"
        )
