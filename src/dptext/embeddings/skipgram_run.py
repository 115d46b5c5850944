"""One training after a plan: begun, or gone on with from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from dptext.embeddings.dpsgd.noise import CellNoise
from dptext.embeddings.dpsgd.ranks import ALONE, Ranks
from dptext.embeddings.dpsgd.recipe import CELLS
from dptext.embeddings.dpsgd.training import Tables, Training
from dptext.embeddings.skipgram_plan import SkipGramPlan
from dptext.own_files import check_target, sweep
from dptext.privacy.randomness import NoiseKey
from dptext.users.store import UserStore

__all__ = ["Run", "training_of"]

Singles = npt.NDArray[np.float32]


def training_of(
    plan: SkipGramPlan,
    store: UserStore,
    tables: Singles,
    key: NoiseKey,
    *,
    done: int = 0,
    every: int = 0,
    ranks: Ranks = ALONE,
) -> Training:
    """The training of a plan, with tables that it changes in place after so many steps.

    ``every``: so many steps lie between two checkpoints; 0: there are none. Lazy noise is caught up before each.
    """
    caught_up = b"%d" % every if plan.form == "lazy" else b""
    recipe, participation = plan.recipe, plan.participation
    return Training(
        store=store,
        recipe=recipe,
        participation=participation,
        unknown=plan.trained.unknown_row,
        offsets=plan.offsets,
        clipped=plan.mode != "plain",
        tables=Tables(
            tables,
            recipe.rates(participation.steps) / (plan.denominator * CELLS),  # for sums in units of C / CELLS
            CellNoise(participation.noise_multiplier * CELLS) if plan.mode == "private" else None,
            lazy=plan.form == "lazy",
            both=plan.both,
            done=done,
            ranks=ranks,
        ),
        key=key,
        # with a seed all ranks have one key, and must not have one noise
        parameters=plan.fingerprint + (b"" if ranks is ALONE else b"%d of %d" % (ranks.number, ranks.count)),
        content=store.digest() + caught_up if key.seeded else b"",
    )


@dataclass(eq=False)
class Run:
    """What can fail fails when it is made, before a text is read.

    Args:
        plan: of the training.
        checkpoint: where it is kept; None: nowhere.
        every: how many steps lie between.
        resume: go on from it, if it is there.
        ranks: who else trains. The first one has the checkpoint.

    Raises:
        ParameterError: it is there, and ``resume`` was not said.
        RefusedError, DataError, StorageError: `dptext.embeddings.dpsgd.checkpoint.read_checkpoint`.
    """

    plan: SkipGramPlan
    checkpoint: Path | None
    every: int
    resume: bool
    ranks: Ranks = ALONE

    def __post_init__(self) -> None:
        self._found: Checkpoint | None = None
        if self.ranks.number > 0:
            self.checkpoint = None
        if self.checkpoint is None:
            return
        check_target(self.checkpoint, replace=self.resume, apart_from={}, by="go on from it with resume=True")
        sweep(self.checkpoint)
        shape = (2 * len(self.plan.rows), self.plan.dimension)
        self._found = read_checkpoint(self.checkpoint, shape, self.plan.fingerprint)

    def on(self, store: UserStore, key: NoiseKey, progress: Callable[[int], None]) -> Singles:
        """All steps that are left, on these users; the tables with all noise."""
        found = self.ranks.begun(self._found, (2 * len(self.plan.rows), self.plan.dimension))
        done = 0 if found is None else found.steps
        tables = self.plan.start() if found is None else found.tables
        every = 0 if self.checkpoint is None else self.every
        training = training_of(self.plan, store, tables, key, done=done, every=every, ranks=self.ranks)
        steps = self.plan.participation.steps
        progress(done)
        for step in range(done, steps):
            training.step(step)
            if self.checkpoint is not None and (step + 1) % self.every == 0 and step + 1 < steps:
                settled = training.settled(step + 1)
                write_checkpoint(self.checkpoint, Checkpoint(settled, step + 1), self.plan.fingerprint)
            progress(step + 1)
        tables = training.settled(steps)
        if self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)
        return tables
