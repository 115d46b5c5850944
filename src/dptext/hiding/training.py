"""The epochs of a training: batches, a look after each, the best one kept, and where a run goes on.

Everything that an epoch draws hangs on the start of the run and the number of the epoch alone: order, sampling and
noise have streams of their own for each. So a run that goes on after epoch n ends where an uninterrupted one does, bit
for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.hiding.checkpoint import CheckpointFile, RunState
from dptext.hiding.tradeoff import TradeOff
from dptext.privacy.randomness import RandomBits, seed_bytes

__all__ = ["HidingEpoch", "Player", "Source", "first_weights", "run_epochs", "shuffled", "stream_of"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HidingEpoch:
    """What is known after an epoch.

    Attributes:
        number, of: which, of how many.
        phase: ``"rebuild"`` (an auto-encoder learns to write its text again) or ``"hide"``.
        loss: of the task; in the first phase, of rebuilding a word.
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
    """The inputs of a network."""

    def batches(self, order: Rows, size: int) -> Iterator[Rows]:
        """The rows of each batch, from rows in a random order."""
        ...

    def take(self, rows: Rows) -> Any:
        """The batch of these rows."""
        ...


class Player(Protocol):
    """What is trained."""

    phase: str
    state: RunState

    def begin(self, bits: RandomBits) -> None:
        """Draw noise from this stream from now on."""
        ...

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:
        """One step on a batch: the two losses of a `HidingEpoch`."""
        ...

    def look(self) -> TradeOff | None:
        """At what is held out."""
        ...


def run_epochs(
    torch: Any,
    source: Source,
    player: Player,
    kept: Rows,
    *,
    epochs: int,
    batch_size: int,
    patience: int,
    start: int,
    progress: Callable[[HidingEpoch], object] | None,
    checkpoint: CheckpointFile | None,
) -> tuple[tuple[HidingEpoch, ...], int]:
    """Train, and leave the player as it was after its best epoch (without anything held out: after the last).

    Args:
        source: inputs.
        player: what is trained on them.
        kept: the rows to train on.
        epochs, batch_size: how many, how large.
        patience: epochs without a better look before it stops.
        start: what all random choices hang on.
        progress: called after every epoch.
        checkpoint: where the run is kept after every epoch, and goes on from if it was there.

    Raises:
        ParameterError: the losses are no finite numbers any more.

    Returns:
        The epochs as they came, and the number of the one that was kept.
    """
    history: list[HidingEpoch] = []
    best, highest = 0, -np.inf
    found = None if checkpoint is None else checkpoint.read(player.state)
    if found is not None:
        history, best, highest = list(found.epochs), found.best, found.highest
    for number in range(len(history) + 1, epochs + 1):
        if history and history[-1].held_out is not None and number - 1 - best >= patience:
            break
        torch.manual_seed(int.from_bytes(stream_of(start, b"sampling %d" % number).take(8), "little") >> 1)
        player.begin(stream_of(start, b"noise %d" % number))
        order = shuffled(kept, stream_of(start, b"order %d" % number))
        losses = np.zeros(2)
        for rows in source.batches(order, batch_size):
            losses += np.array(player.step(source.take(rows), torch.from_numpy(rows))) * len(rows)
        loss, theirs = (losses / len(order)).tolist()
        if not (math.isfinite(loss) and math.isfinite(theirs)):
            raise ParameterError(
                f"training went astray in epoch {number} (a loss is no finite number): give a smaller learning_rate"
            )
        seen = player.look()
        history.append(HidingEpoch(number, epochs, player.phase, loss, theirs, seen))
        told = -np.inf if seen is None or math.isnan(seen.score) else seen.score
        if told > highest or told == -np.inf:  # where nothing can be said of an epoch, the last one is kept
            best, highest = number, told
            player.state.keep()
        if checkpoint is not None:
            checkpoint.write(player.state, tuple(history), best, highest)
        if progress is not None:
            progress(history[-1])
    player.state.back()
    return tuple(history), best


def first_weights(torch: Any, start: int) -> None:
    """Seed what first weights are drawn from."""
    torch.manual_seed(int.from_bytes(stream_of(start, b"first weights").take(8), "little") >> 1)


def stream_of(start: int, purpose: bytes) -> RandomBits:
    """The stream of a purpose, for a run."""
    return RandomBits.keyed(seed_bytes(b"hiding: " + purpose, start))


def shuffled(rows: Rows, bits: RandomBits) -> Rows:
    """The rows in a random order."""
    order: Rows = rows[np.argsort(bits.integers(len(rows)), kind="stable")]
    return order
