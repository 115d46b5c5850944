"""Who trains together: one process alone, or several ranks, each of which holds some of the users.

The users are dealt to the ranks, each of them with all his texts to one. In a step every rank samples its own users,
bounds their gradients and adds them up; the sums of all ranks are added up; and noise comes to the total **once**.

**Guarantee**: that of `dptext.embeddings.dpsgd.training`, for any number of ranks. *Proof.* (1) A user is on one rank,
which follows from his name alone (of a single document: from what it says), so his coin is thrown once, he adds at most
`CELLS` to one rank's sum, and with him or without him all others are where they are.
(2) Each rank cuts its sum to `MOST` / ranks on either side: cutting brings two numbers no farther apart, so the total
of all ranks still moves by his own cells at most, and never runs over. (3) The total gets noise of sigma on each of its
numbers, from one rank alone, under a key that no other rank has; what each rank knows of the tables is what that rank
says. (4) Coins of two ranks come from two keys. | It assumes that all ranks belong to whoever holds the texts: sums
without noise go from one to the other.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.checkpoint import Checkpoint
from dptext.files.documents import Document, DocumentReader
from dptext.users.authored import UserUnit

__all__ = ["ALONE", "Ranks"]

Documents = DocumentReader | Iterable[Document]


class Ranks:
    """What a training asks of its ranks: here, of one process that holds all users.

    `dptext.embeddings.dpsgd.torch_ranks.TorchRanks` are several. Each method is called by all, at the same place of
    the training.

    Attributes:
        number: which one this is, from 0.
        count: how many there are.
    """

    number: int = 0
    count: int = 1

    def agree(self, fingerprint: bytes) -> None:
        """Raise where another rank has other parameters."""

    def own(self, documents: Documents, unit: UserUnit) -> Documents:  # noqa: ARG002
        """The documents of the users that this rank holds; which, follows from their names alone."""
        return documents

    def any(self, here: bool) -> bool:
        """Whether it holds for a rank."""
        return here

    def begun(self, found: Checkpoint | None, shape: tuple[int, int]) -> Checkpoint | None:  # noqa: ARG002
        """The checkpoint that the first rank has found."""
        return found

    def add_up(self, sums: npt.NDArray[np.int32]) -> None:
        """In place: the total of all ranks' sums, each of which is cut so that the total never runs over."""

    def rows(self, count: int) -> slice:
        """Which of so many rows get their noise here."""
        return slice(0, count)

    def exchange(self, rows: npt.NDArray[np.float32]) -> None:
        """In place: each row as the rank has it that gave it its noise."""


ALONE = Ranks()
