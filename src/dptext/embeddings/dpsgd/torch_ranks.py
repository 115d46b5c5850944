"""One model trained by several processes, on one machine or on many (extra ``train``: torch.distributed).

    torch.distributed.init_process_group("gloo")          # as torchrun starts them
    model = dptext.SkipGram(...).fit(documents, ranks=TorchRanks(), checkpoint="run.bin")
    if torch.distributed.get_rank() == 0:
        model.save("vectors")

Every rank reads all documents and keeps those of its own users, a share that follows from their names (of single
documents: from what they say, so equal ones are on one rank); it samples and
bounds these; the sums are added up over the network; noise comes once. The proof is in
`dptext.embeddings.dpsgd.ranks`. A rank that dies ends the training on all of them, with an error that says so; the
checkpoint, which the first rank writes, goes on from there, on as many ranks as one likes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.checkpoint import Checkpoint
from dptext.embeddings.dpsgd.gradients import MOST
from dptext.embeddings.dpsgd.ranks import Ranks
from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.files.documents import Document, DocumentReader
from dptext.files.formats import extra
from dptext.users.authored import UserUnit, check_users_are_read, user_name

__all__ = ["TorchRanks"]


class TorchRanks(Ranks):
    """The ranks of a process group of torch.distributed, for `dptext.SkipGram.fit`.

    **Trust**: the ranks and the network between them belong to whoever holds the texts. Sums without noise go over it,
    and torch does not encrypt them.

    Args:
        group: of torch.distributed, on the CPU (gloo); None: the usual one.

    Attributes:
        number: of this rank, from 0.
        count: of all ranks.

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

    def own(self, documents: DocumentReader | Iterable[Document], unit: UserUnit) -> Iterator[Document]:
        """The documents of the users that this rank holds; which, follows from their names alone.

        Single documents are dealt by what they say: by their place, one more document would move all that follow to
        other ranks, and a rank that reads them in another order would take what others have.
        """
        check_users_are_read(documents, unit)
        return self._own(documents, unit)

    def _own(self, documents: DocumentReader | Iterable[Document], unit: UserUnit) -> Iterator[Document]:
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
