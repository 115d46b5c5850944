"""Where candidates come from: what a source of texts offers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from dptext import checks
from dptext.errors import ParameterError, warn
from dptext.io.batches import Batch
from dptext.privacy.statement import Parameter
from dptext.users.grouping import Chunk, UserTexts

__all__ = ["OverlapWarning", "Request", "Source", "TextSample", "check_is_apart", "with_source"]

_SAMPLED = 4096  # distinct texts: a share is estimated with a standard error of at most .008
_WARNED, _REFUSED = 0.1, 0.5
"""Share of the distinct private texts that are in the pool. Random halves of one source share few: 4.1% of Yelp
sentences, 3.6% of blog sentences, 3.2% of blog posts, 1.4% of SNIPS utterances. More than half: the private file."""
_FEWEST = 10  # distinct texts in both: a few stock phrases are no overlap


@dataclass(frozen=True)
class Request:
    """What a source is asked for."""

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
    """Raise `ParameterError` if the private documents themselves, as an object, are given as the public texts."""
    if public is documents:
        raise ParameterError(
            "the private documents are also given as the public texts, and would be released unchanged: give public "
            "texts"
        )


class OverlapWarning(UserWarning):
    """Many private texts are also in the public pool. Shown to the owner alone; not part of any release."""


class TextSample:
    """A uniform sample of the distinct private texts, to compare with a pool."""

    def __init__(self) -> None:
        self._digests: set[int] = set()

    def watch(self, people: Iterable[UserTexts]) -> Iterator[UserTexts]:
        """Yield the same people, and add their texts to the sample while these are read."""
        for person in people:
            yield UserTexts(self._added(person.chunks()))

    def _added(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            for text in chunk[0]:
                self.add(text)
            yield chunk

    def add(self, text: str) -> None:
        """Add one private text."""
        self._digests.add(_digest(text))
        if len(self._digests) > 2 * _SAMPLED:
            self._digests = self._smallest()

    def add_block(self, block: Batch) -> None:
        """Add the texts of a block of rows; a missing one counts as empty."""
        for text in block.texts:
            self.add(text or "")

    def _smallest(self) -> set[int]:
        return set(sorted(self._digests)[:_SAMPLED])

    def check_pool(self, pool: Iterable[str]) -> None:
        """Compare with the texts of a pool, before anything is released."""
        sample = self._smallest()
        shared = len({digest for digest in map(_digest, pool) if digest in sample})
        share = shared / max(1, len(sample))
        if shared < _FEWEST or share <= _WARNED:
            return
        overlap = f"{share:.0%} of the distinct private texts are also in the public pool"
        if share > _REFUSED:
            raise ParameterError(
                f"{overlap}, and would be released unchanged: give public texts that were chosen without regard to the "
                "private ones. Nothing was released"
            )
        warn(
            f"{overlap}, more than two samples of one source have in common: check where the pool comes from. This "
            "number is private: it is for the owner of the texts only",
            OverlapWarning,
        )


def _digest(text: str) -> int:
    content = " ".join(text.split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(content).digest()[:8])
