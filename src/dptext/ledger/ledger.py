"""Ledger of the privacy budget that units (users or texts) have spent over all releases, runs and processes."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Any, Self
from unicodedata import normalize

from dptext.display import Fields, ReprMixin
from dptext.errors import DptextError, ParameterError, RefusedError
from dptext.ledger import store
from dptext.ledger.store import (
    TEXT,
    Balance,
    Ceiling,
    Limits,
    Terms,
    in_digits,
    in_digits_at_least,
    price,
    refusal,
    remaining,
    terms_of,
)
from dptext.privacy.guarantee import (
    Guarantee,
    MetricDP,
    Relation,
    Unit,
    canonical_id,
    guarantee_from_dict,
    guarantee_to_dict,
)
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.validation import check_choice

PENDING, RELEASED = "pending", "released"


@dataclass(frozen=True)
class ChargedRelease:
    """A release in the ledger."""

    release_id: str
    reserved_at: str
    state: str
    mechanism: str | None
    guarantee: Guarantee
    terms: Terms
    units: int
    documents: int


@dataclass(frozen=True)
class Summary:
    """Totals of a ledger."""

    created: str
    limits: Limits
    terms: Terms | None
    releases: int
    pending: int
    units: int
    exhausted: int
    median: Balance | None
    highest: Balance | None


_PATIENCE = 60.0
_RELEASE_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")


class Ledger(ReprMixin):
    """Record of the privacy budget that units (users or texts) have spent over all releases.

    Any number of processes may use one ledger. Keep it on a local disk, because it needs file locks.

    Args:
        path: the file, created by `Ledger.create` or ``dptext ledger create``.
        patience: seconds to wait for another process that is writing.

    Attributes:
        limits: limits per unit over all releases.

    Raises:
        StorageError: the file does not exist or cannot be read.
        DataError: the file is not a ledger, or has another version.
    """

    def __init__(self, path: str | PathLike[str], *, patience: float = _PATIENCE) -> None:
        self.path = Path(path)
        self._patience = patience
        with self._transaction() as connection:
            self.limits = self._head(connection)[2]

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        releases: int | None = None,
    ) -> Ledger:
        """Create a ledger: a new file that only its owner may read (mode 0600).

        Args:
            path: the new file, which must not exist.
            epsilon: limit per unit over all releases (for metric guarantees: per unit of distance).
            delta: limit for delta; without it, only pure and metric guarantees are accepted.
            releases: maximum number of releases per unit.

        Raises:
            ParameterError: there is no limit, or a delta without an epsilon.
            StorageError: the file exists or cannot be written.
        """
        limits = Limits(epsilon=epsilon, delta=delta, releases=releases)
        row = {
            "secret": RandomBits().take(32),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            **asdict(limits),
        }
        store.create_store(Path(path), row, _PATIENCE)
        return cls(path)

    def reserve(
        self,
        release_id: str,
        statement: PrivacyStatement | Guarantee,
        keys: Iterable[str],
        *,
        by: str,
        unit: Unit | None = None,
        relation: Relation | None = None,
        mechanism: str | None = None,
    ) -> Reservation:
        """Charge all units of a release, or none of them. Call it before the release.

        The release stays charged until it is settled or voided. Reserving a pending release again, with the same units
        and guarantee, has no effect, so a run may resume. Only one process may work on a release.

        Args:
            release_id: id of the release (`dptext.privacy.statement.new_release_id`).
            statement: the statement of the release, or a guarantee with ``unit`` and ``relation``.
            keys: the text of each document, or its value in the column ``by``; read once, in constant memory.
                Texts are compared in Unicode normal form C, values by `canonical_id`.
            by: `TEXT`, or the name of a column.
            unit, relation, mechanism: for a guarantee only; a statement contains them.

        Returns:
            A reservation: settle it when the output is in place, or use it in a ``with`` block.

        Raises:
            RefusedError: a unit would be overspent; the guarantee does not add to earlier ones, has no price or used a
                seed; a user has more texts than the guarantee covers; or the release exists with other units. The
                ledger is unchanged.
            ParameterError: an argument is invalid.
            StorageError, DataError: the file failed; the ledger is unchanged.
        """
        guarantee, terms, about = _described(statement, by, unit, relation, mechanism)
        if not isinstance(release_id, str) or _RELEASE_ID.fullmatch(release_id) is None:
            raise ParameterError("release_id must have 1 to 100 of the characters A-Z a-z 0-9 . _ : -")
        price(guarantee, 1)
        with store.opened(self.path, self._patience) as connection:
            with store.transaction(connection):
                secret, _, limits = self._head(connection)
                limits.check(guarantee)
                ceiling = limits.ceiling(terms.currency)
                self._check_release(connection, release_id, terms)
                self._releases(connection)
            # Two equal texts in one file are two documents, and it is unknown which of them was in the last release.
            # In the worst case it is the same one each time, which is charged once per release. A user is charged for
            # all their texts, unless the guarantee is for users, or its distances add up over documents anyway.
            counted = by != TEXT and terms.unit is Unit.DOCUMENT and not isinstance(guarantee, MetricDP)
            most_texts = statement.condition.most_texts if isinstance(statement, PrivacyStatement) else None
            documents = store.gather(connection, _hashed(keys, secret, by), counted=counted, maximum=most_texts)
            with store.transaction(connection, writes=True):
                resumed = self._check_release(connection, release_id, terms)
                (units,) = connection.execute("SELECT count(*) FROM temp.fresh").fetchone()
                if resumed is None:
                    now = datetime.now(UTC).isoformat(timespec="seconds")
                    row = (release_id, now, PENDING, units, documents, about)
                    number = int(connection.execute(store.ADD_RELEASE, row).lastrowid or 0)
                    self._set_prices(connection)
                    over = store.overspent(connection, number, ceiling)
                    if over["units"]:
                        others = "SELECT count(*) FROM release WHERE state = ? AND number <> ?"
                        (pending,) = connection.execute(others, (PENDING, number)).fetchone()
                        raise _overspent(over, units, ceiling, terms, pending=pending)
                    connection.execute("INSERT INTO charge SELECT unit, ?, documents FROM temp.fresh", (number,))
                elif resumed != about or not store.same_units(connection, release_id):
                    raise refusal(f"the release {release_id} is reserved for other rows or another guarantee. Void it")
        return Reservation(self, release_id, units, documents, resumed is not None)

    def settle(self, release_id: str) -> None:
        """Mark a release as released; call it when the whole output is in place. Settling twice has no effect.

        Raises:
            ParameterError: the ledger has no such release.
            StorageError, DataError: the file failed; the release is still pending.
        """
        with self._transaction(writes=True) as connection:
            self._state(connection, release_id)
            connection.execute("UPDATE release SET state = ? WHERE id = ?", (RELEASED, release_id))

    def void(self, release_id: str) -> None:
        """Delete a pending release and return its budget.

        Only the owner may decide this, and only if no output was kept or shown to others; dptext never does it.

        Raises:
            RefusedError: the release is settled.
            ParameterError: the ledger has no such release.
            StorageError, DataError: the file failed; the ledger is unchanged.
        """
        with self._transaction(writes=True) as connection:
            if self._state(connection, release_id) != PENDING:
                raise RefusedError(
                    f"the release {release_id} was published and cannot be voided: others may have read it"
                )
            charges = "DELETE FROM charge WHERE release = (SELECT number FROM release WHERE id = ?)"
            for sql in (charges, "DELETE FROM release WHERE id = ?"):
                connection.execute(sql, (release_id,))

    def state(self, release_id: str) -> str | None:
        """Return ``pending``, ``released``, or None if the ledger has no such release."""
        with self._transaction() as connection:
            row = connection.execute("SELECT state FROM release WHERE id = ?", (release_id,)).fetchone()
            return None if row is None else str(row[0])

    def pending(self, *, besides: str = "") -> list[str]:
        """Return the ids of all pending releases (neither settled nor voided) except ``besides``."""
        with self._transaction() as connection:
            rows = connection.execute("SELECT id FROM release WHERE state = ? AND id <> ?", (PENDING, besides))
            return [str(release_id) for (release_id,) in rows]

    def pending_advice(self, release_ids: Sequence[str]) -> str:
        """Return advice for the owner about pending releases."""
        which, name = f"{len(release_ids):,} releases", "RELEASE_ID"
        if len(release_ids) == 1:
            which, name = f"the release {release_ids[0]}", release_ids[0]
        return (
            f"the ledger counts {which} as spent, but not as confirmed. If no run is active and the output is "
            f"in place: dptext ledger settle {self.path} {name}; if no output was kept or shown to others: dptext "
            f"ledger void {self.path} {name}"
        )

    def terms(self) -> Terms | None:
        """Return the common terms of all releases, which the first release fixes; None if there is none."""
        with self._transaction() as connection:
            return self._terms(connection)

    def releases(self) -> list[ChargedRelease]:
        """Return all releases in the order of their reservation."""
        with self._transaction() as connection:
            return self._releases(connection)

    def summary(self) -> Summary:
        """Return the totals. This reads every charge, which takes some seconds for ten million units."""
        with self._transaction() as connection:
            _, created, limits = self._head(connection)
            releases = self._releases(connection)
            self._set_prices(connection)
            terms = releases[0].terms if releases else None
            ceiling = limits.ceiling() if terms is None else limits.ceiling(terms.currency)
            # the file counts units by sum: there are few different sums, even for many units
            spent = store.sums(connection)
            groups = [(Balance.under(ceiling, cost, delta, times), count) for cost, delta, times, count in spent]
        *ends, units = accumulate((count for _, count in groups), initial=0)
        return Summary(
            created=created,
            limits=limits,
            terms=terms,
            releases=len(releases),
            pending=sum(release.state == PENDING for release in releases),
            units=units,
            exhausted=sum(count for balance, count in groups if balance.exhausted),
            median=groups[bisect_right(ends, (units - 1) // 2) - 1][0] if groups else None,
            highest=groups[-1][0] if groups else None,
        )

    def left(self, value: str) -> Balance:
        """Return the balance of one unit, given its text or its value in the ledger's column."""
        with self._transaction() as connection:
            secret, _, limits = self._head(connection)
            terms = self._terms(connection)
            if terms is None:
                return Balance.under(limits.ceiling(), 0.0, 0.0, 0)
            self._set_prices(connection)
            ((key,),) = _hashed([value], secret, terms.by)
            cost, delta, releases = connection.execute(store.SUM_OF_UNIT, (key,)).fetchone()
            return Balance.under(limits.ceiling(terms.currency), cost, delta, releases)

    def unknown(self, release_id: str) -> ParameterError:
        """Return the error for a release that is not in the ledger."""
        return ParameterError(f"{self.path.name} has no release {release_id!r}. To list them, run dptext ledger show")

    # -- inside a transaction ---------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[store.Connection]:
        with store.opened(self.path, self._patience) as connection, store.transaction(connection, writes=writes):
            yield connection

    def _head(self, connection: store.Connection) -> tuple[bytes, str, Limits]:
        row = connection.execute("SELECT secret, created, epsilon, delta, releases FROM ledger").fetchone()
        if row is None or not isinstance(row[0], bytes) or len(row[0]) != 32:
            raise store.damaged(self.path)
        try:
            return row[0], str(row[1]), Limits(epsilon=row[2], delta=row[3], releases=row[4])
        except ParameterError:
            raise store.damaged(self.path) from None

    def _releases(self, connection: store.Connection, condition: str = "") -> list[ChargedRelease]:
        rows = connection.execute(f"SELECT id, at, state, about, units, documents FROM release {condition}")  # noqa: S608
        releases = []
        with self._damage():
            for release_id, reserved_at, state, about, units, documents in rows:
                data = json.loads(about)
                guarantee, by, name = guarantee_from_dict(data["guarantee"]), data["by"], data["mechanism"]
                terms = terms_of(guarantee, unit=Unit(data["unit"]), relation=Relation(data["relation"]), by=by)
                row = (release_id, reserved_at, state, name, guarantee, terms, units, documents)
                releases.append(ChargedRelease(*row))
        return releases

    def _set_prices(self, connection: store.Connection) -> None:
        """Compute the prices of all releases from their guarantees, by number of documents of a unit."""
        charges = []
        with self._damage():
            for number, about, counts in connection.execute("SELECT number, about, counts FROM release"):
                guarantee = guarantee_from_dict(json.loads(about)["guarantee"])
                charges += [(number, count, guarantee) for count in json.loads(counts)]
        rows = ((number, count, *price(guarantee, count)) for number, count, guarantee in charges)
        connection.execute(store.PRICES)
        connection.executemany("INSERT INTO temp.price VALUES (?, ?, ?, ?)", rows)

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, KeyError, RecursionError):
            raise store.damaged(self.path) from None

    def _terms(self, connection: store.Connection) -> Terms | None:
        first = self._releases(connection, "ORDER BY number LIMIT 1")
        return first[0].terms if first else None

    def _state(self, connection: store.Connection, release_id: str) -> str:
        row = connection.execute("SELECT state FROM release WHERE id = ?", (release_id,)).fetchone()
        if row is None:
            raise self.unknown(release_id)
        return str(row[0])

    def _check_release(self, connection: store.Connection, release_id: str, terms: Terms) -> str | None:
        """Return the ``about`` of a pending release, or None for a new one; raise a RefusedError if it is published."""
        existing = self._terms(connection)
        if existing is not None:
            existing.check(terms)
        row = connection.execute("SELECT state, about FROM release WHERE id = ?", (release_id,)).fetchone()
        if row is None:
            return None
        if row[0] != PENDING:
            raise refusal(
                f"the release {release_id} is already published. A new run is a new release and needs a new name"
            )
        return str(row[1])

    def _repr_fields(self) -> Fields:
        yield "path", str(self.path)
        yield "limits", str(self.limits)


@dataclass(frozen=True)
class Reservation:
    """Release that is charged but not settled; a ``with`` block settles it unless it fails."""

    ledger: Ledger
    release_id: str
    units: int
    documents: int
    resumed: bool

    def settle(self) -> None:
        """Settle the release; see `Ledger.settle`."""
        self.ledger.settle(self.release_id)

    def void(self) -> None:
        """Void the release; see `Ledger.void`."""
        self.ledger.void(self.release_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            if self.ledger.state(self.release_id) == PENDING:  # the block may have voided it
                self.settle()
            return
        with suppress(DptextError):  # the first error matters more
            if self.ledger.state(self.release_id) == PENDING:
                error.add_note(self.ledger.pending_advice([self.release_id]))


def _described(
    statement: PrivacyStatement | Guarantee,
    by: str,
    unit: Unit | None,
    relation: Relation | None,
    mechanism: str | None,
) -> tuple[Guarantee, Terms, str]:
    """Return the guarantee, the terms and the JSON that the ledger stores."""
    if isinstance(statement, PrivacyStatement):
        if unit is not None or relation is not None or mechanism is not None:
            raise ParameterError("the statement has a unit, a relation and a mechanism. Omit these arguments")
        if statement.seeded:
            problem = "equal noise in two releases cancels and does not add up. Omit the seed"
            raise refusal(problem, " a seeded release")
        if statement.condition.for_some_only is not None:
            problem = "the ledger counts guarantees for all units only"
            raise refusal(problem, f" a guarantee {statement.condition.for_some_only}")
        unit, relation, mechanism = statement.unit, statement.relation, statement.mechanism
        guarantee = statement.guarantee
    elif isinstance(statement, Guarantee):
        guarantee = statement
    else:
        raise ParameterError(f"statement must be a PrivacyStatement or a guarantee, got {type(statement).__name__}")
    if unit is None or relation is None:
        raise ParameterError("a guarantee alone has no privacy unit. Pass unit and relation too")
    unit, relation = check_choice("unit", unit, Unit), check_choice("relation", relation, Relation)
    terms = terms_of(guarantee, unit=unit, relation=relation, by=by)
    about = {"guarantee": guarantee_to_dict(guarantee), "unit": unit, "relation": relation, "by": by}
    return guarantee, terms, json.dumps({**about, "mechanism": mechanism})


def _overspent(over: Mapping[str, Any], units: int, ceiling: Ceiling, terms: Terms, *, pending: int) -> RefusedError:
    """Return a refusal that contains only amounts and counts."""
    label, limit, spent, cost = "releases", ceiling.releases, float(over["releases"]), 1.0
    if over["by_cost"]:
        label, limit, spent, cost = terms.cost, ceiling.cost, over["spent"], over["cost"]
    elif over["by_delta"]:
        label, limit, spent, cost = "delta", ceiling.delta, over["delta_spent"], over["delta"]
    left = in_digits_at_least(remaining(limit, spent) or 0.0)
    problem = refusal(
        f"{over['units']:,} of {units:,} {terms.units} would be overspent (limit: {label} "
        f"{in_digits_at_least(limit)}, already spent: at most {in_digits(spent)}, this release costs "
        f"{'at most ' if over['prices'] > 1 else ''}{in_digits(cost)}, so {left} is left for some)"
    )
    if not pending:
        return problem
    return RefusedError(
        f"{problem} ({pending:,} pending: a started release stays charged until it is settled or voided; see dptext "
        "ledger show)"
    )


def _hashed(keys: Iterable[str], secret: bytes, by: str) -> Iterator[tuple[bytes]]:
    """Yield a keyed hash of each value, prefixed by the length and name of ``by``."""
    kind = by.encode("utf-8", "surrogatepass")
    start = hashlib.blake2b(len(kind).to_bytes(8) + kind, key=secret, digest_size=16, person=b"dptext ledger")
    for number, value in enumerate(keys, 1):
        if not isinstance(value, str):
            raise ParameterError(f"row {number}: a key must be a string, got {type(value).__name__}")
        key = normalize("NFC", value) if by == TEXT else canonical_id(value)
        if key is None:
            raise ParameterError(f"row {number}: the key is blank. Provide the id of a user or row")
        digest = start.copy()
        digest.update(key.encode("utf-8", "surrogatepass"))
        yield (digest.digest(),)
