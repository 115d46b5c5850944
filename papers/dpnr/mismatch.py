"""A server was trained for one epsilon, users send at another: a matrix of accuracies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.evaluation.measures import codes_of
from dptext.intervals import Estimate, mean_over_runs


class Predictor(Protocol):
    """What a training gives: a server for vectors that arrive."""

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803  as scikit-learn has it
        """(n,) classes of (n, k) private vectors."""
        ...


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """Accuracies by server and user.

    Attributes:
        servers: for what each server was trained: an epsilon, or a name.
        users: at what users send.
        accuracies: for each server a row with an entry for each kind of user: the mean over runs with its interval.
        baseline: the share of the most frequent class among those tested, which a guess without vectors reaches.
        rows: how many vectors were tested in each run.
    """

    servers: tuple[float | str, ...]
    users: tuple[float | str, ...]
    accuracies: tuple[tuple[Estimate, ...], ...]
    baseline: float
    rows: int

    def of(self, server: float | str, user: float | str) -> Estimate:
        """One entry.

        Raises:
            ParameterError: no such server or user.
        """
        if server not in self.servers or user not in self.users:
            raise ParameterError(f"the matrix has no entry for server {server!r} and user {user!r}")
        return self.accuracies[self.servers.index(server)][self.users.index(user)]

    def best_server(self, user: float | str) -> float | str:
        """The server of the highest mean for a kind of users; the first of equals."""
        return max(self.servers, key=lambda server: self.of(server, user).value)

    def table(self, *, intervals: bool = True) -> str:
        """Servers down, users across, the majority class last, in Markdown."""
        lines = [["server, by user", *map(_spelled, self.users)], ["---"] * (1 + len(self.users))]
        for server, row in zip(self.servers, self.accuracies, strict=True):
            lines.append([_spelled(server), *(str(entry) if intervals else f"{entry.value:.3f}" for entry in row)])
        lines.append(["majority class", *[f"{self.baseline:.3f}"] * len(self.users)])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def mismatch(
    train: Callable[[Any, int], Predictor],
    send: Callable[[Any, int], npt.ArrayLike],
    labels: npt.ArrayLike,
    *,
    servers: Sequence[float | str],
    users: Sequence[float | str],
    seeds: Iterable[int] = range(5),
    confidence: float = 0.95,
    progress: Callable[[int, int], object] | None = None,
) -> Mismatch:
    """Train each server once a seed, and test it on what each kind of users sends.

    Args:
        train: (entry of ``servers``, seed) -> a server: anything with ``predict``.
        send: (entry of ``users``, seed) -> (n, k) private vectors of the *same* n test texts. Each call is a release
            of them: for public data, or people who know what all of these releases together promise.
        labels: (n,) of those texts.
        servers: epsilons, or names of trainings that know none ("plain", "adaptive").
        users: epsilons.
        seeds: one a run, two at least.
        confidence: of Student's interval over runs. It is about other trainings and other noise, for these texts.
        progress: called with the servers that are trained, and how many there will be.

    Raises:
        ParameterError: nothing to compare, something twice, fewer than two seeds, more or fewer answers than
            labels.
    """
    rows, columns = _distinct("servers", servers), _distinct("users", users)
    runs = _distinct("seeds", list(seeds))
    if len(runs) < 2:
        raise ParameterError(f"seeds must be at least two for an interval over runs, got {len(runs)}")
    truth = np.asarray(labels)
    counts = np.bincount(codes_of("labels", labels))
    result = np.empty((len(rows), len(columns), len(runs)))
    for place, seed in enumerate(runs):
        sent = [send(user, seed) for user in columns]
        for row, server in enumerate(rows):
            trained = train(server, seed)
            for column, vectors in enumerate(sent):
                result[row, column, place] = _share_right(trained.predict(vectors), truth)
            if progress is not None:
                progress(place * len(rows) + row + 1, len(rows) * len(runs))
    return Mismatch(
        servers=rows,
        users=columns,
        accuracies=tuple(tuple(mean_over_runs(entry, confidence=confidence) for entry in row) for row in result),
        baseline=float(counts.max() / counts.sum()),
        rows=len(truth),
    )


def _share_right(answers: Any, truth: npt.NDArray[Any]) -> float:
    values = np.asarray(answers)
    if values.shape != truth.shape:
        raise ParameterError(f"a server must answer each of {truth.size} rows with one class, got shape {values.shape}")
    return float((values == truth).mean())


def _distinct(name: str, entries: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(entries, str) or len(entries) == 0 or len(set(entries)) < len(entries):
        raise ParameterError(f"{name} must be a list of one or more different entries")
    return tuple(entries)


def _spelled(entry: float | str) -> str:
    return entry if isinstance(entry, str) else f"{entry:g}"
