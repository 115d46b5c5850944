"""A run of a training: its random choices, its epochs, of which the best is kept, and the file that it goes on from.

Everything that an epoch draws depends on the start of the run and the number of the epoch alone: order, sampling and
noise have streams of their own for each. So a run that goes on after epoch n ends where an uninterrupted one does, bit
for bit.

The file has weights, the state of Adam, and the best epoch. It is **not private**, and no release: its weights were
trained on texts. It is readable by its owner only (mode 0600), written by ``torch.save`` and read with
``weights_only=True``, which runs no code from the file.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.hiding.held_out import TradeOff
from dptext.hiding.inputs import Rows, Source, shuffled, stream_of
from dptext.hiding.options import RunOptions
from dptext.own_files import replacing
from dptext.privacy.randomness import RandomBits
from dptext.representations.networks import one_torch_thread
from dptext.threads import one_blas_thread

__all__ = ["HidingEpoch", "LearntBudget", "Player", "Run"]

_FORMAT = "dptext hiding training 2"


@dataclass(frozen=True)
class LearntBudget:
    """A budget epsilon that is learnt below a cap, after an epoch, and what moved it there.

    A term of the loss with a negative slope asks for less noise, one with a positive slope for more.

    Attributes:
        share: of the cap, that epsilon is.
        task: mean slope of the task's loss over ln epsilon, in the steps of the epoch.
        attributes: the same of what the adversaries add to the encoder's loss, alpha counted in; 0 without any.
    """

    share: float
    task: float
    attributes: float


@dataclass(frozen=True)
class HidingEpoch:
    """What is known after an epoch.

    Attributes:
        number, of: which, of how many.
        phase: ``"rebuild"`` (an auto-encoder learns to write its text again) or ``"hide"``.
        loss: of the task; in the first phase, of rebuilding a word.
        adversaries: their mean loss; in the first phase 0.
        held_out: what fresh readers get out of held-out rows; None in the first phase, and where none is held out.
        budget: epsilon, where it is learnt.
    """

    number: int
    of: int
    phase: str
    loss: float
    adversaries: float
    held_out: TradeOff | None
    budget: LearntBudget | None = None


class Player(Protocol):
    """What is trained: a module with all of its weights, and the optimisers that move them."""

    phase: str
    module: Any
    optimisers: dict[str, Any]

    def begin(self, bits: RandomBits) -> None:
        """Draw noise from this stream from now on."""
        ...

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:
        """One step on a batch: the two losses of a `HidingEpoch`."""
        ...

    def look(self) -> TradeOff | None:
        """At what is held out."""
        ...

    def budget(self) -> LearntBudget | None:
        """The budget as it is after the epoch that `begin` began, where one is learnt."""
        ...


class Run:
    """One training, from its first weights to its best epoch.

    Args:
        torch: the module.
        options: how to train.
        content: all that the run depends on beside the options; looked at only where a file keeps it.

    Attributes:
        start: what all random choices follow from: that of the file, if there is one.

    Raises:
        DataError: the file is no checkpoint of this version, or broken.
        RefusedError: it belongs to another training.
    """

    def __init__(self, torch: Any, options: RunOptions, content: Iterable[bytes]) -> None:
        self._torch, self._options = torch, options
        self.start = int.from_bytes(RandomBits(options.seed).take(8), "little") >> 1
        self._file = None if options.checkpoint is None else Path(options.checkpoint)
        self._found: dict[str, Any] | None = None
        if self._file is None:
            return
        digest = hashlib.sha256()
        for part in content:
            digest.update(part)
        self._parameters = digest.hexdigest()
        if self._file.exists():
            self._found = self._opened(self._file)
            self.start = self._found["start"]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One thread, and torch's generator seeded for the first weights; the caller's is as before afterwards."""
        with self._torch.random.fork_rng(devices=[]), one_torch_thread(self._torch), one_blas_thread():
            self._seed(b"first weights")
            yield

    def epochs(
        self, source: Source, player: Player, kept: Rows, *, patience: int = 1
    ) -> tuple[tuple[HidingEpoch, ...], int]:
        """Train, and leave the player as it was after its best epoch (without anything held out: after the last).

        Args:
            source: inputs.
            player: what is trained on them.
            kept: the rows to train on.
            patience: epochs without a better look before it stops.

        Raises:
            ParameterError: the losses are no finite numbers any more.

        Returns:
            The epochs as they came, and the number of the one that was kept.
        """
        options, torch = self._options, self._torch
        history, best, highest, weights = self._reached(player)
        for number in range(len(history) + 1, options.epochs + 1):
            if history and history[-1].held_out is not None and number - 1 - best >= patience:
                break
            self._seed(b"sampling %d" % number)
            player.begin(stream_of(self.start, b"noise %d" % number))
            order = shuffled(kept, stream_of(self.start, b"order %d" % number))
            losses = np.zeros(2)
            for rows in source.batches(order, options.batch_size):
                losses += np.array(player.step(source.take(rows), torch.from_numpy(rows))) * len(rows)
            loss, theirs = (losses / len(order)).tolist()
            if not (math.isfinite(loss) and math.isfinite(theirs)):
                raise ParameterError(
                    f"training went astray in epoch {number} (a loss is no finite number): give a smaller learning_rate"
                )
            seen = player.look()
            history.append(HidingEpoch(number, options.epochs, player.phase, loss, theirs, seen, player.budget()))
            score = -np.inf if seen is None or math.isnan(seen.score) else seen.score
            if score > highest or score == -np.inf:  # where nothing can be said of an epoch, the last one is kept
                best, highest = number, score
                weights = {name: each.clone() for name, each in player.module.state_dict().items()}
            self._keep(player, history, best, highest, weights)
            if options.progress is not None:
                options.progress(history[-1])
        player.module.load_state_dict(weights)
        return tuple(history), best

    def _seed(self, purpose: bytes) -> None:
        self._torch.manual_seed(int.from_bytes(stream_of(self.start, purpose).take(8), "little") >> 1)

    # -- the file -------------------------------------------------------------------------------------------------

    def _opened(self, file: Path) -> dict[str, Any]:
        try:
            content = file.read_bytes()
        except OSError as error:
            raise StorageError.of("read", file, error) from None
        found: Any = None
        with suppress(Exception):  # torch has no one error for a file that it did not write
            found = self._torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        if not isinstance(found, dict) or found.get("format") != _FORMAT or type(found.get("start")) is not int:
            raise self._broken(file)
        if found.get("parameters") != self._parameters:
            raise RefusedError(
                f"{file.name} belongs to another training (texts, labels, options or seed differ): name another "
                "file, or remove it"
            )
        return found

    def _reached(self, player: Player) -> tuple[list[HidingEpoch], int, float, Any]:
        """Where the run has come to: its epochs, the best one, its score, its weights; the player is put there."""
        found = self._found
        if found is None or self._file is None:
            return [], 0, -math.inf, player.module.state_dict()
        try:
            for weights in (found["best_weights"], found["weights"]):  # both must fit
                player.module.load_state_dict(weights)
            for name, optimiser in player.optimisers.items():
                optimiser.load_state_dict(found["optimisers"][name])
            history = [_epoch(each) for each in found["epochs"]]
            return history, int(found["best"]), float(found["highest"]), found["best_weights"]
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError):
            pass
        raise self._broken(self._file)

    def _keep(
        self, player: Player, history: list[HidingEpoch], best: int, highest: float, weights: Mapping[str, Any]
    ) -> None:
        """Write the file, whole or not at all."""
        if self._file is None:
            return
        content = io.BytesIO()
        self._torch.save(
            {
                "format": _FORMAT,
                "parameters": self._parameters,
                "start": self.start,
                "epochs": [_plain(each) for each in history],
                "best": best,
                "highest": float(highest),
                "weights": player.module.state_dict(),
                "optimisers": {name: each.state_dict() for name, each in player.optimisers.items()},
                "best_weights": weights,
            },
            content,
        )
        with replacing(self._file, owner_only=True) as stream:
            stream.write(content.getvalue())

    @staticmethod
    def _broken(file: Path) -> DataError:
        return DataError(
            f"{file.name} is broken, or no checkpoint that this version of dptext wrote: remove it, or name another "
            "file"
        )


def _plain(epoch: HidingEpoch) -> dict[str, Any]:
    seen, budget = epoch.held_out, epoch.budget
    return vars(epoch) | {
        "held_out": None if seen is None else vars(seen) | {"attributes": dict(seen.attributes)},
        "budget": None if budget is None else vars(budget),
    }


def _epoch(plain: Mapping[str, Any]) -> HidingEpoch:
    seen, budget = plain["held_out"], plain["budget"]
    return HidingEpoch(
        **{
            **plain,
            "held_out": None if seen is None else TradeOff(**seen),
            "budget": None if budget is None else LearntBudget(**budget),
        }
    )
