"""Sums that two servers compute, each from one random share of every contribution (`TwoServerPlan`).

Derivation: docs/mechanisms/two-servers.md#two-servers
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.io.artifacts import SavedFolder, read_statement_of, read_tensors, tensor_bytes
from dptext.io.batches import open_stored
from dptext.io.documents import Document, DocumentReader
from dptext.noise.gaussian_sums import CELL, Floats, Integers, on_grid, rounded_gaussian
from dptext.privacy.guarantee import Trust
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement, disagreements
from dptext.privacy.wording import warn_unprotected
from dptext.users.grouping import UserTexts
from dptext.validation import check_path

Shares = npt.NDArray[np.uint64]
P = TypeVar("P", bound="TwoServerPlan")

ASSUMED = (
    "the two servers do not give their shares, or the random bits of their noise, to each other or to the same party",
    "each server adds its own noise, and publishes one sum for this plan",
    "each person sends one contribution for this plan, with dptext, over an encrypted and authenticated connection to "
    "each server",
)
"""Assumptions of a sum by two servers."""
EXPOSED = "to both servers: who sends a message, and when"

_MARKS = {"a": b"dptextA1", "b": b"dptextB1"}  # the first 8 bytes of a message, by server
ID_PLACE = 41, 16  # first byte of the id, counted from 1, and number of bytes
_SERVERS = {mark: server for server, mark in _MARKS.items()}
_SEED, _ID = 32, 16  # bytes
_LARGEST = 2.0**24  # noise of one server, relative to a user: its integers are then far below 2^53
_AT_ONCE = 1 << 22  # bytes of messages
_TENSORS, _PRIVACY, _SUM = "plan.safetensors", "privacy.json", "sum.safetensors"
FOLDER = SavedFolder(
    format="dptext-plan",
    version=1,
    writer="dptext sum, or --save-plan of dptext synthesize and dptext describe",
    holds="a plan",
    keys=("kind", "release_id", "settings", "server", "ids"),
    files=(_TENSORS, _PRIVACY),
    further=(_SUM,),
)


def two_server_statement(statement: PrivacyStatement) -> PrivacyStatement:
    """Return the statement of a sum with central noise for two servers, each with this noise.  (two-servers)"""
    parameters = dict(statement.parameters)
    if isinstance(sigma := parameters.get("sigma"), float):
        parameters |= {"sigma": math.sqrt(2) * sigma, "server_sigma": sigma}
    return dataclasses.replace(
        statement,
        trust=Trust.TWO_SERVERS,
        parameters=parameters,
        assumptions=(*statement.assumptions, *ASSUMED),
        exposed=(*statement.exposed, EXPOSED),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Contribution:
    """Integers of one user for a plan. **Private**: send its `shares` only, each to one server."""

    plan: bytes
    cells: Integers

    def shares(self) -> tuple[bytes, bytes]:
        """Return new messages to the servers a and b: two shares whose sum modulo 2^64 is the contribution.

        **Guarantee.** Each message alone is independent of the texts (computationally: AES-256). The first has the
        32-byte key of its share, the second the numbers; both have the digest of the plan and the same random id.
        """
        bits = RandomBits()
        key, head = bits.take(_SEED), self.plan + bits.take(_ID)
        second = self.cells.view(np.uint64) - _expanded(key, self.cells.size)
        return _MARKS["a"] + head + key, _MARKS["b"] + head + second.astype("<u8").tobytes()


def _expanded(key: bytes, size: int) -> Shares:
    numbers = np.empty(size, dtype="<u8")
    RandomBits.keyed(key).fill(numbers)
    return numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class ServerSum:
    """Sum of the shares of one server and its noise, which the server publishes.

    Attributes:
        plan: digest of the plan.
        server: "a" or "b".
        values: (size,) uint64, modulo 2^64.
        ids: digest of the ids of the messages.
        seeded: True if the noise came from a seed.
    """

    plan: bytes
    server: str
    values: Shares
    ids: str
    seeded: bool = False


class ShareSum:
    """Sum of the shares that one server received, in constant memory apart from 100 bytes per id.

    The first message of an id counts, later ones are ignored.

    Args:
        plan: the plan.
        only: ids to add; None: all. Both servers must add the same ids.
    """

    def __init__(self, plan: TwoServerPlan, only: Collection[bytes] | None = None) -> None:
        self.server, self.ids, self.left_out = "", set[bytes](), 0
        self._plan, self._sigma, self._only = plan.digest, plan.server_sigma, only
        self._values = np.zeros(plan.size, dtype=np.uint64)
        head: list[Any] = [("mark", "S8"), ("plan", "V32"), ("id", "V16")]
        sizes = {"a": _SEED // 8, "b": plan.size}
        self._kinds = {server: np.dtype([*head, ("share", "<u8", (size,))]) for server, size in sizes.items()}

    def add(self, messages: bytes, name: str = "a message") -> None:
        """Add one or more messages, given one after another; raise `DataError` for other bytes."""
        server = _SERVERS.get(messages[:8], "")
        if not server or self.server not in ("", server):
            which = f"a share for server {server}" if server else "no share that dptext wrote"
            raise DataError(f"{name} contains {which}: give each server its own messages only")
        kind = self._kinds[server]
        width, rest = divmod(len(messages), kind.itemsize)
        records = np.frombuffer(messages, dtype=kind, count=width)
        if rest or not (records["mark"] == _MARKS[server]).all():
            raise DataError(f"{name} contains an incomplete share: get it again")
        if records["plan"].tobytes() != width * self._plan:
            raise DataError(f"{name} contains a share for another plan")
        self.server, fresh = server, []
        for place, known in enumerate(records["id"].tolist()):
            if known not in self.ids and (self._only is None or known in self._only):
                self.ids.add(known)
                fresh.append(place)
        self.left_out += width - len(fresh)
        shares = records["share"][fresh]
        if server == "b":
            self._values += shares.sum(axis=0, dtype=np.uint64)
        else:
            for key in shares:
                self._values += _expanded(key.tobytes(), self._values.size)

    def add_file(self, path: Path) -> None:
        """Add all messages of a file."""
        with open_stored(path) as stream:
            head = stream.read(8)
            length = self._kinds[_SERVERS.get(head, "a")].itemsize
            while data := head + stream.read(length * max(1, _AT_ONCE // length) - len(head)):
                self.add(data, path.name)
                head = b""

    def part(self) -> dict[str, Any]:
        """Return the sum so far without noise, for `merge`. **Private towards the other server.**"""
        return {"ids": b"".join(self.ids), "sum": self._values.tobytes(), "server": self.server}

    def merge(self, ids: bytes, total: bytes, server: str) -> None:
        """Add the `part` of another task, over other messages."""
        new = {ids[start : start + _ID] for start in range(0, len(ids), _ID)}
        if self.server not in ("", server) or new & self.ids:
            raise DataError("there are messages to both servers, or several in a row: give one message per row")
        self.server, self.ids = server, self.ids | new
        self._values += np.frombuffer(total, dtype=np.uint64)

    def publish(self, *, seed: int | None = None) -> ServerSum:
        """Return the sum with new noise of full scale. **Call it once per plan**: each call spends the whole budget.

        **Guarantee** (unit and relation of the plan; two servers): (epsilon, delta)-DP against everybody without the
        shares of this server, the other server included. *Proof.* docs/mechanisms/two-servers.md: the other server's
        shares are independent of the texts, and given them this sum is the sum of the contributions plus rounded
        Gaussian noise, x + round(N) = round(x + N).
        """
        if not self.ids:
            raise DataError("there is no message to add up: at least one is needed")
        bits = RandomBits(seed)
        noise = rounded_gaussian(bits, np.zeros((1, self._values.size)), sigma=self._sigma / CELL, step=1.0)
        values = self._values + noise[0].astype(np.int64).view(np.uint64)
        ids = hashlib.sha256(b"".join(sorted(self.ids))).hexdigest()
        return ServerSum(plan=self._plan, server=self.server, values=values, ids=ids, seeded=bits.seeded)


class TwoServerPlan(ABC):
    """Plan of a release that one curator, or two servers without seeing a text, can compute.

    The plan is public. A device turns the documents of its user into a `Contribution`, and sends one share to each
    server. Each server adds up its shares with noise (`ShareSum`); `combine` makes the release from the two sums.
    """

    kind: ClassVar[str]  # the command that uses it
    release_id: str
    unit: Any
    columns: Any  # to read besides the text and the user

    @abstractmethod
    def people(self, documents: Any) -> AbstractContextManager[Iterable[UserTexts]]:
        """Return a context with the texts of each user."""

    @abstractmethod
    def _sums(self) -> tuple[Any, Mapping[str, Integers]]:
        """Return an object with a method ``add(people)``, and its sums by name, integers in units of `CELL`, now 0."""

    @abstractmethod
    def server_statement(self, *, seeded: bool = False) -> PrivacyStatement:
        """Return the privacy statement of the release by two servers."""

    @abstractmethod
    def _released(self, sums: Mapping[str, Floats], statement: PrivacyStatement) -> Any:
        """Return the release of noisy sums."""

    @abstractmethod
    def _parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the JSON settings and the arrays of the plan, the input of `_from_parts`."""

    @classmethod
    @abstractmethod
    def _from_parts(cls, settings: Any, tensors: Mapping[str, Any], release_id: str, source: str) -> Self: ...

    @cached_property
    def size(self) -> int:
        """Number of integers of a contribution."""
        return sum(part.size for part in self._sums()[1].values())

    @cached_property
    def server_sigma(self) -> float:
        """Standard deviation of the noise of each server, for a user of norm 1."""
        sigma: Any = self.server_statement().parameters["server_sigma"]
        if sigma > _LARGEST:
            raise ParameterError(f"epsilon is too small for two servers: the noise exceeds {_LARGEST:g} users")
        return float(sigma)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 digest of the kind, the id and the settings, which every message carries."""
        _ = self.server_sigma  # raises if the noise is too large
        described = json.dumps([self.kind, self.release_id, self._parts()[0]], sort_keys=True)
        return hashlib.sha256(described.encode()).digest()

    def contributions(self, documents: DocumentReader | Iterable[Document]) -> Iterator[Contribution]:
        """Yield the contribution of each user of the documents, in random order."""
        (sums, parts), digest = self._sums(), self.digest
        with self.people(documents) as people:
            for person in people:
                for part in parts.values():
                    part[:] = 0
                sums.add([person])
                yield Contribution(digest, np.concatenate([part.reshape(-1) for part in parts.values()]))

    def contribution(self, documents: Iterable[Document | str]) -> Contribution:
        """Return the contribution of one user from all their documents; none is an empty contribution.

        Raises:
            DataError: several documents where the privacy unit is the document.
        """
        rows = (
            dataclasses.replace(entry, user="one") if isinstance(entry, Document) else Document(entry, user="one")
            for entry in documents
        )
        result = list(self.contributions(rows)) or [Contribution(self.digest, np.zeros(self.size, dtype=np.int64))]
        if len(result) > 1:
            raise DataError(f"a contribution is about one document here (unit 'document'), got {len(result):,}")
        return result[0]

    def combine(self, first: ServerSum, second: ServerSum) -> Any:
        """Return the release from the published sums of both servers. This is post-processing.

        Raises:
            DataError: the sums are of another plan, of one server, or over different messages.
        """
        if {first.plan, second.plan} != {self.digest}:
            raise DataError("a sum belongs to another plan: pass two sums of this plan")
        if {first.server, second.server} != {*_MARKS}:
            raise DataError(f"both sums are of server {first.server}: pass the sum of each server")
        if first.ids != second.ids:
            raise DataError(
                "the servers added up different messages: both must add up those that both received (dptext sum --ids)"
            )
        statement, parts = self.server_statement(seeded=first.seeded or second.seeded), self._sums()[1]
        ends = np.cumsum([part.size for part in parts.values()])
        total = np.split((first.values + second.values).view(np.int64), ends[:-1])
        sigma: Any = statement.parameters["sigma"]
        warn_unprotected(statement)
        rows = zip(parts.items(), total, strict=True)
        sums = {name: on_grid(row.reshape(part.shape), sigma) for (name, part), row in rows}
        return self._released(sums, statement)

    def save(self, folder: str | os.PathLike[str], total: ServerSum | None = None, *, replace: bool = False) -> None:
        """Save the plan, or the plan with the sum of a server, in a new folder. Everything in it may be published.

        Raises:
            ParameterError: the path already exists, or the features cannot be saved.
            StorageError: the folder cannot be written.
        """
        settings, tensors = self._parts()
        statement = self.server_statement(seeded=total is not None and total.seeded)
        config: dict[str, Any] = {"kind": self.kind, "release_id": self.release_id, "settings": settings}
        files = {_TENSORS: tensor_bytes(tensors), _PRIVACY: f"{statement.to_json()}\n".encode()}
        if total is not None:
            config |= {"server": total.server, "ids": total.ids}
            files[_SUM] = tensor_bytes({"values": total.values})
        place = FOLDER.place(folder, replace=replace)
        FOLDER.write(place, config, files, software=statement.software, replace=replace)


def load_plan(folder: str | os.PathLike[str], *kinds: type[P]) -> tuple[P, ServerSum | None]:
    """Load a plan of one of these kinds from the folder of `TwoServerPlan.save`, and the sum of a server, if any.

    Raises:
        DataError: the folder was changed, or is not such a plan.
        StorageError: the folder cannot be read.
    """
    place = check_path("the folder", folder)
    source = place.name or str(place)
    config, contents = FOLDER.read(place, source)
    statement = read_statement_of(contents[_PRIVACY], source, _PRIVACY)
    tensors, _ = read_tensors(place / _TENSORS, source=f"{source}: {_TENSORS}")
    kind = next((entry for entry in kinds if entry.kind == config.get("kind")), None)
    if kind is None:
        raise DataError(f"{source} is a plan for another command ({str(config.get('kind'))[:20]})")
    total = None
    try:
        plan = kind._from_parts(config["settings"], tensors, config["release_id"], source)
        wrong = disagreements(statement, plan.server_statement(seeded=statement.seeded))
        if _SUM in contents:
            values = read_tensors(place / _SUM, source=f"{source}: {_SUM}")[0]["values"]
            fields = {name: config[name] for name in ("server", "ids")}
            total = ServerSum(plan=plan.digest, values=values, seeded=statement.seeded, **fields)
            fits = (values.dtype, values.shape) == (np.dtype(np.uint64), (plan.size,)) and total.server in _MARKS
            wrong += [] if fits else ["values"]
    except (ParameterError, TypeError, KeyError, ValueError, AttributeError):
        wrong = ["settings"]
    if wrong:
        raise DataError(
            f"{source}: its files and {_PRIVACY} do not agree ({', '.join(wrong)} differ): the folder was changed, or "
            "another version of dptext wrote it. Get it again"
        )
    return plan, total
