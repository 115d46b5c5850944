"""A source writes texts, they are weighed by what was released, and the best of them are varied and weighed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dptext import checks
from dptext.errors import DataError, ParameterError
from dptext.features.pool import encodable
from dptext.privacy.randomness import RandomBits
from dptext.representations.encoders import Progress
from dptext.synthesis.labels import Labels
from dptext.synthesis.sampling import choose, quotas
from dptext.synthesis.sources import Request, Source

__all__ = ["EXAMPLES", "generated"]

Floats = npt.NDArray[np.float64]

EXAMPLES = 20
"""Of its own earlier texts, a source is shown so many of each class, at most."""
_PARENTS = 4  # of so many texts of a class, one is varied


class Weighed(Protocol):
    """What a release says of texts: see `dptext.synthesis.distribution.Weights`."""

    @property
    def scores(self) -> Floats:
        """(n, K) log-ratios of density, of each class and the public texts."""
        ...

    @property
    def nearness(self) -> Floats:
        """(n,) the same of all classes together."""
        ...


def generated(
    weigh: Callable[[Sequence[str]], Weighed],
    source: Source,
    labels: Labels,
    hints: Mapping[str, Sequence[str]],
    n: int,
    *,
    rounds: int = 3,
    per_round: int | None = None,
    shares: Floats,
    variety: float,
    bits: RandomBits,
    progress: Progress | None = None,
) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Let a source write texts in rounds, and choose n of all that it wrote, each once, with a class."""
    n, rounds = checks.whole("n", n, least=1), checks.whole("rounds", rounds, least=1)
    asked = n if per_round is None else checks.whole("per_round", per_round, least=1)
    counts = np.ceil(asked * np.asarray(shares) / np.sum(shares) - 1e-9).astype(int).tolist()
    written = _Written(weigh, len(labels), progress)
    for turn in range(rounds):
        new: list[str] = []
        best = written.best(shares, -(-asked // _PARENTS), bits) if turn else [[]] * len(labels)
        for code, name in enumerate(labels.names):
            if counts[code] > 0:
                request = Request(labels.values_of(code), tuple(hints.get(name, ())), counts[code])
                new += written.unseen(_turn(source, request, best[code]))
        if not new:
            break
        written.add(new)
    while 0 < len(written.texts) < n:  # duplicates left fewer than n: ask for the missing ones
        missing = quotas(shares, n - len(written.texts)).tolist()
        new = []
        for code, name in enumerate(labels.names):
            if missing[code] > 0:
                request = Request(labels.values_of(code), tuple(hints.get(name, ())), missing[code])
                new += written.unseen(_strings(source.propose(request), "propose"))
        if not new:
            break
        written.add(new)
    if len(written.texts) < n:
        trouble = getattr(source, "trouble", "")  # of sources that can fail
        why = f" ({trouble})" if trouble else ""
        raise DataError(
            f"the source gave {len(written.texts):,} different texts{why}, and {n:,} are wanted: ask for fewer texts, "
            "for more in each round or for more rounds, or raise the limits of the source"
        )
    chosen, classes = choose(written.scores, written.nearness, n, shares=shares, variety=variety, bits=bits)
    return [written.texts[place] for place in chosen.tolist()], classes


def _turn(source: Source, request: Request, best: Sequence[str]) -> list[str]:
    """What a source writes for one class in one round."""
    if not best:
        return _strings(source.propose(request), "propose")
    half = -(-request.count // 2)
    examples = tuple(best[:EXAMPLES])
    varied = _strings(source.vary(best, Request(request.label, request.hints, half, examples)), "vary")
    others = Request(request.label, request.hints, max(0, request.count - len(varied)), examples)
    return varied + _strings(source.propose(others), "propose") if others.count else varied


def _strings(answer: Iterable[Any], method: str) -> list[str]:
    texts = None if isinstance(answer, str | bytes) or not isinstance(answer, Iterable) else list(answer)
    if texts is None or not all(isinstance(each, str) for each in texts):
        raise ParameterError(f"a source must answer {method} with a list of texts, it answered with something else")
    return texts


@dataclass
class _Written:
    """All different texts that a source wrote, and what they weigh."""

    weigh: Callable[[Sequence[str]], Weighed]
    classes: int
    progress: Progress | None
    texts: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.scores, self.nearness = np.empty((0, self.classes)), np.empty(0)

    def unseen(self, texts: Iterable[str]) -> list[str]:
        """Those of the texts that were never seen before, and are not empty; texts of equal words count as one."""
        new = []
        for text in map(encodable, map(str.strip, texts)):
            words = " ".join(text.split())
            if words and words not in self.seen:
                self.seen.add(words)
                new.append(text)
        if self.progress is not None and new:
            self.progress(len(self.seen))
        return new

    def add(self, texts: list[str]) -> None:
        """Weigh texts, and keep them."""
        weights = self.weigh(texts)
        self.texts += texts
        self.scores = np.concatenate([self.scores, np.asarray(weights.scores)])
        self.nearness = np.concatenate([self.nearness, np.asarray(weights.nearness)])

    def best(self, shares: Floats, count: int, bits: RandomBits) -> list[list[str]]:
        """Of each class, the texts that would be chosen now, the likeliest first."""
        count = min(count, len(self.texts))
        rows, classes = choose(self.scores, self.nearness, count, shares=shares, variety=0.0, bits=bits)
        found = []
        for code in range(self.classes):
            own = np.sort(rows[classes == code])
            own = own[np.argsort(-self.scores[own, code], kind="stable")]
            found.append([self.texts[row] for row in own.tolist()])
        return found
