"""Who trains together: one process alone, or several ranks, each of which holds some of the users.

    torch.distributed.init_process_group("gloo")          # as torchrun starts them (extra ``train``)
    model = dptext.SkipGram(...).fit(documents, ranks=TorchRanks(), checkpoint="run.bin")
    if torch.distributed.get_rank() == 0:
        model.save("vectors")

The users are dealt to the ranks, each of them with all their texts to one: every rank reads all documents and keeps
those of its own users. In a step every rank samples its own users, clips their gradients and adds them up; the sums of
all ranks are added up over the network; and noise comes to the total **once**. A rank that dies ends the training on
all of them, with an error that says so; the checkpoint, which the first rank writes, goes on from there, on as many
ranks as one likes.

**Guarantee**: that of `dptext.embeddings.dpsgd.training`, for any number of ranks. *Proof.* (1) A user is on one rank,
which follows from their name alone (of a single document: from what it says, so equal ones are on one rank), so their
coin is thrown once, they add at most `CELLS` to one rank's sum, and with them or without them all others are where they
are.
(2) Each rank cuts its sum to `MOST` / ranks on either side: cutting brings two numbers no farther apart, so the total
of all ranks still moves by the user's own cells at most, and never runs over. (3) The total gets noise of sigma on each
of its numbers, from one rank alone, under a key that no other rank has; what each rank knows of the tables is what that
rank says. (4) Coins of two ranks come from two keys. | It assumes that all ranks belong to whoever holds the texts
(`RANKS`): sums without noise go from one to the other, and torch does not encrypt them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.checkpoint import Checkpoint
from dptext.embeddings.dpsgd.recipe import MOST
from dptext.errors import DataError, ParameterError, RefusedError, StorageError, extra
from dptext.files.documents import Document, DocumentReader
from dptext.users.grouping import UserUnit, check_users_are_read, user_name

__all__ = ["ALONE", "RANKS", "Ranks", "TorchRanks"]

RANKS = (
    "all ranks, and the network between them, belong to whoever holds the texts: sums without noise go from one to the "
    "other"
)
"""What a statement takes for granted about a training on several ranks."""

Documents = DocumentReader | Iterable[Document]


class Ranks:
    """What a training asks of its ranks: here, of one process that holds all users.

    `TorchRanks` are several. Each method is called by all, at the same place of the training.

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


class TorchRanks(Ranks):
    """The ranks of a process group of torch.distributed (on the CPU: gloo), for `dptext.SkipGram.fit`. Whom it trusts
    stands above.

    Raises:
        MissingExtraError: torch is not installed.
        ParameterError: no process group was made.
        StorageError: (from a training) another rank has stopped.
        RefusedError: (from a training) another rank was given other parameters.
    """

    def __init__(self, group: Any = None) -> None:
        torch = extra("torch", "train", "training on several ranks")
        self._torch, self._distributed, self._group = torch, torch.distributed, group
        if not self._distributed.is_available() or not self._distributed.is_initialized():
            raise ParameterError(
                'there is no process group: call torch.distributed.init_process_group("gloo") first, and start the '
                "program with torchrun"
            )
        self.number: int = self._distributed.get_rank(group)
        self.count: int = self._distributed.get_world_size(group)

    def agree(self, fingerprint: bytes) -> None:
        """Raise where another rank has other parameters."""
        mine = np.frombuffer(hashlib.sha256(fingerprint).digest(), dtype=np.uint8).copy()
        first = mine.copy()
        self._broadcast(first, 0)
        if self.any(bool((first != mine).any())):
            raise RefusedError(
                "the ranks were given different parameters, words or vectors: start all with the same ones"
            )

    def own(self, documents: Documents, unit: UserUnit) -> Iterator[Document]:
        """See `Ranks`. Single documents are dealt by what they say: by their place, one more document would move all
        that follow to other ranks, and a rank that reads them in another order would take what others have."""
        check_users_are_read(documents, unit)
        return self._own(documents, unit)

    def _own(self, documents: Documents, unit: UserUnit) -> Iterator[Document]:
        for row, document in enumerate(documents, 1):
            if not isinstance(document, Document):
                raise DataError(f"row {row} must be a Document, got {type(document).__name__}")
            name = str(document.text) if unit == "document" else user_name(document.user, row)
            digest = hashlib.sha256(b"dptext rank " + name.encode("utf-8", "surrogatepass")).digest()
            if int.from_bytes(digest[:8], "big") % self.count == self.number:
                yield document

    def any(self, here: bool) -> bool:
        """Whether it holds for a rank."""
        found = np.array([here], dtype=np.int32)
        self._sum(found)
        return bool(found[0])

    def begun(self, found: Checkpoint | None, shape: tuple[int, int]) -> Checkpoint | None:
        """The checkpoint that the first rank has found."""
        steps = np.array([-1 if found is None else found.steps], dtype=np.int64)
        self._broadcast(steps, 0)
        if steps[0] < 0:
            return None
        tables = np.empty(shape, dtype=np.float32) if found is None else np.ascontiguousarray(found.tables)
        self._broadcast(tables, 0)
        return Checkpoint(tables, int(steps[0]))

    def add_up(self, sums: npt.NDArray[np.int32]) -> None:
        """In place: the total of all ranks' sums, each of which is cut so that the total never runs over."""
        most = MOST // self.count
        np.clip(sums, -most, most, out=sums)
        self._sum(sums)

    def rows(self, count: int) -> slice:
        """Which of so many rows get their noise here."""
        return self._rows(count, self.number)

    def exchange(self, rows: npt.NDArray[np.float32]) -> None:
        """In place: each row as the rank has it that gave it its noise."""
        for number in range(self.count):
            self._broadcast(rows[self._rows(len(rows), number)], number)

    def _rows(self, count: int, number: int) -> slice:
        return slice(count * number // self.count, count * (number + 1) // self.count)

    def _sum(self, array: npt.NDArray[Any]) -> None:
        self._call(self._distributed.all_reduce, array)

    def _broadcast(self, array: npt.NDArray[Any], source: int) -> None:
        if len(array):
            self._call(self._distributed.broadcast, array, group_src=source)

    def _call(self, collective: Callable[..., object], array: npt.NDArray[Any], **options: Any) -> None:
        try:
            collective(self._torch.from_numpy(array), group=self._group, **options)  # it shares the array's memory
        except RuntimeError as error:  # torch says no more than that, in the words of the network
            raise StorageError(
                "another rank has stopped, or cannot be reached: what it said tells why; start all again, with "
                f"resume=True if there is a checkpoint ({type(error).__name__})"
            ) from None
