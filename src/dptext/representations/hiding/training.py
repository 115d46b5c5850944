"""The epochs of a hiding encoder: batches, a fresh look after each, the best one kept, and where a run goes on.

Everything that an epoch draws hangs on the start of the run and the number of the epoch alone: order, dropout and noise
have streams of their own for each. So a run that goes on after epoch n ends where an uninterrupted one does, bit for
bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.domains import Floats
from dptext.representations.hiding.checkpoint import CheckpointFile, RunState
from dptext.representations.hiding.game import Game
from dptext.representations.hiding.noise import NoiseInTheLoop
from dptext.representations.hiding.options import HidingOptions
from dptext.representations.hiding.targets import Target
from dptext.representations.hiding.tradeoff import TradeOff, measured

__all__ = ["HidingEpoch", "Source", "parted", "train"]

Rows = npt.NDArray[np.int64]

_LOOKED_AT = 8192  # rows that fresh readers are fitted on


@dataclass(frozen=True)
class HidingEpoch:
    """What is known after an epoch.

    Attributes:
        number, of: which, of how many.
        phase: ``"rebuild"`` (an auto-encoder learns to write its text again) or ``"hide"``.
        loss: of the task; in the first phase, of rebuilding.
        adversaries: their mean loss; in the first phase 0.
        held_out: what fresh readers get out of held-out rows; None in the first phase, and where none is held out.
    """

    number: int
    of: int
    phase: str
    loss: float
    adversaries: float
    held_out: TradeOff | None


class Source(Protocol):
    """The inputs of a body."""

    def batches(self, order: Rows, size: int) -> Iterator[Rows]:
        """The rows of each batch, from rows in a random order."""
        ...

    def take(self, rows: Rows) -> Any:
        """The batch of these rows."""
        ...


def parted(rows: int, groups: Sequence[Any] | None, task: Target, fraction: float, start: int) -> tuple[Rows, Rows]:
    """(kept, held out) rows: whole groups are held out together, and without groups the same share of each class."""
    if not fraction:
        return np.arange(rows), np.empty(0, dtype=np.int64)
    order = _shuffled(np.arange(rows), _stream(start, b"held out"))
    held = np.zeros(rows, dtype=bool)
    if groups is not None:
        _, codes = np.unique(np.asarray(groups, dtype=object).astype(str), return_inverse=True)
        _, first = np.unique(codes[order], return_index=True)
        by_chance = codes[order][np.sort(first)]
        held = np.isin(codes, by_chance[: round(fraction * len(by_chance))])
    else:
        for code in np.unique(task.codes):
            of_class = order[task.codes[order] == code]
            held[of_class[: min(round(fraction * len(of_class)), len(of_class) - 1)]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def train(
    torch: Any,
    source: Source,
    game: Game,
    noise: NoiseInTheLoop,
    task: Target,
    attributes: Sequence[Target],
    options: HidingOptions,
    *,
    parts: tuple[Rows, Rows],
    rebuild_epochs: int,
    start: int,
    progress: Callable[[HidingEpoch], object] | None,
    checkpoint: CheckpointFile | None,
) -> tuple[tuple[HidingEpoch, ...], int]:
    """Train ``game``, and leave it as it was after its best epoch.

    Args:
        source: inputs of its body.
        parts: (kept, held out) rows.
        rebuild_epochs: epochs of rebuilding alone, before the game.
        start: what all random choices hang on.
        progress: called after every epoch.
        checkpoint: where the run is kept after every epoch, and goes on from if it was there.

    Returns:
        The epochs as they came, and the number of the one that was kept.

    Raises:
        DataError: no row is left to train on for a target.
    """
    kept, held = parts
    for target in (task, *attributes):
        if len(np.unique(target.codes[kept][target.codes[kept] >= 0])) < 2:
            raise DataError(f"{target.name!r} has one class only in the rows to train on: give more rows")
    of = rebuild_epochs + options.epochs
    shown = _shuffled(kept, _stream(start, b"looked at"))[:_LOOKED_AT]
    history: list[HidingEpoch] = []
    state = RunState(torch, game, noise)
    best, highest = 0, -np.inf
    found = None if checkpoint is None else checkpoint.read(state)
    if found is not None:
        history, best = list(found.epochs), found.best
        highest = found.highest
    for number in range(len(history) + 1, of + 1):
        if _is_over(history, best, options):
            break
        torch.manual_seed(int.from_bytes(_stream(start, b"weights %d" % number).take(8), "little") >> 1)
        noise.begin(_stream(start, b"noise %d" % number))
        order = _shuffled(kept, _stream(start, b"order %d" % number))
        phase = "rebuild" if number <= rebuild_epochs else "hide"
        losses = np.zeros(2)
        game.body.train()
        for rows in source.batches(order, options.batch_size):
            batch = source.take(rows)
            step = (game.rebuild(batch), 0.0) if phase == "rebuild" else game.step(batch, torch.from_numpy(rows))
            losses += np.array(step) * len(rows)
        seen = None
        if phase == "hide" and held.size:
            read = _arrived(torch, source, game, noise, shown), shown
            seen = measured(read, (_arrived(torch, source, game, noise, held), held), task, attributes, options.alpha)
        loss, theirs = (losses / len(order)).tolist()
        history.append(HidingEpoch(number, of, phase, loss, theirs, seen))
        if seen is None or seen.score > highest:
            best, highest = number, -np.inf if seen is None else seen.score
            state.keep()
        if checkpoint is not None:
            checkpoint.write(state, tuple(history), best, highest)
        if progress is not None:
            progress(history[-1])
    state.back()
    return tuple(history), best


def _is_over(history: Sequence[HidingEpoch], best: int, options: HidingOptions) -> bool:
    hiding = [each for each in history if each.phase == "hide"]
    return bool(hiding) and hiding[-1].held_out is not None and hiding[-1].number - best >= options.patience


def _arrived(torch: Any, source: Source, game: Game, noise: NoiseInTheLoop, rows: Rows) -> Floats:
    """(n, d) vectors of rows as they arrive, noise and all, in the order of the rows."""
    found: Floats | None = None
    game.body.eval()
    with torch.no_grad():
        place = np.empty(int(rows.max()) + 1, dtype=np.int64)
        place[rows] = np.arange(rows.size)
        for some in source.batches(rows, 512):
            z = noise.add(noise.bound(game.body(source.take(some)))).numpy().astype(np.float64)
            if found is None:
                found = np.empty((rows.size, z.shape[1]))
            found[place[some]] = z
    assert found is not None
    return found


def _stream(start: int, purpose: bytes) -> RandomBits:
    return RandomBits.keyed(seed_bytes(b"hiding: " + purpose, start))


def _shuffled(rows: Rows, bits: RandomBits) -> Rows:
    shuffled: Rows = rows[np.argsort(bits.integers(len(rows)), kind="stable")]
    return shuffled
