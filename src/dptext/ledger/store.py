"""Currency, prices and limits of a ledger, and its SQLite file; each operation opens the file for one transaction."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.io.atomic import open_new
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    NoGuarantee,
    Relation,
    Unit,
    approx_from_zcdp,
    as_approx,
    at_most,
    for_group,
)
from dptext.validation import check_float, check_int

TEXT = "text"
"""Key of a ledger without a column: the text of a row."""
TOLERANCE = 1e-9
"""Sums up to limit * (1 + TOLERANCE) are accepted, because each float addition has an error of about 1e-16."""
_LARGEST = 1e300  # a larger limit would overflow


def refusal(problem: str, remedy: str = "") -> RefusedError:
    return RefusedError(f"the ledger refuses{remedy} (nothing was released): {problem}")


class Currency(StrEnum):
    """Amount that adds up over releases. Conversion to another currency needs a choice (a delta, a diameter)."""

    EPSILON = "epsilon"
    RHO = "rho"
    DISTANCE = "epsilon per distance"


@dataclass(frozen=True)
class Terms:
    """Common terms of all releases in one ledger; the first one fixes them."""

    currency: Currency
    metric: str | None
    space: str | None
    unit: Unit
    relation: Relation
    by: str

    @property
    def cost(self) -> str:
        """Name of the currency in messages."""
        return f"epsilon per unit of {self.metric} distance" if self.currency is Currency.DISTANCE else self.currency

    @property
    def units(self) -> str:
        """Name of the units in messages."""
        return "texts" if self.by == TEXT else f"values of {self.by!r}"

    def check(self, other: Terms) -> None:
        """Raise a RefusedError if a release does not add to the earlier ones."""
        for label, ledger_value, release_value in (
            ("in", self.cost, other.cost),
            ("in the space", self.space, other.space),
            ("for the unit", self.unit, other.unit),
            ("under the relation", self.relation, other.relation),
            ("by", f"the {self.units}", f"the {other.units}"),
        ):
            if ledger_value != release_value:
                raise refusal(
                    f"it counts {label} {ledger_value}, this release {label} {release_value}, and they do not add. Use "
                    "another ledger (the losses of a person in both add up)"
                )


def terms_of(guarantee: Guarantee, *, unit: Unit, relation: Relation, by: str) -> Terms:
    if not isinstance(by, str) or not by:
        raise ParameterError(f"by must be {TEXT!r} or the name of a column, got another value")
    if isinstance(guarantee, NoGuarantee):
        raise refusal("it has no price", " a release without a guarantee")
    if unit not in (Unit.DOCUMENT, Unit.USER):
        raise refusal(f"it charges documents or users, this is for the unit {unit}. Restate the guarantee")
    if unit is Unit.USER and by == TEXT:
        raise ParameterError("a guarantee for users cannot be charged to texts. Pass the column that identifies users")
    if isinstance(guarantee, MetricDP):
        return Terms(Currency.DISTANCE, guarantee.metric, guarantee.space, unit, relation, by)
    currency = Currency.RHO if isinstance(guarantee, ZCDP) else Currency.EPSILON
    return Terms(currency, None, None, unit, relation, by)


def price(guarantee: Guarantee, documents: int) -> tuple[float, float]:
    """Return the cost of a release for a unit with this many documents in it: (in the currency, in delta)."""
    if isinstance(guarantee, MetricDP):
        cost, delta = guarantee.epsilon, 0.0  # the distances of the documents add up; the factor does not change
    elif isinstance(group := for_group(guarantee, documents), ZCDP):
        cost, delta = group.rho, 0.0
    else:
        cost, delta = astuple(as_approx(group))
    if not math.isfinite(cost):
        cause = f" a release with an infinite cost for {documents:,} documents of one unit"
        raise refusal("it has no guarantee", cause)
    return float(cost), float(delta)


@dataclass(frozen=True)
class Ceiling:
    """Limits in the currency of a ledger; infinite if there is none."""

    cost: float
    delta: float
    releases: float


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits per unit over all releases; None: no limit."""

    epsilon: float | None = None
    delta: float | None = None
    releases: int | None = None

    def __post_init__(self) -> None:
        if self.epsilon is None and self.releases is None:
            raise ParameterError("a ledger needs a limit. Pass an epsilon, a number of releases, or both")
        if self.delta is not None and self.epsilon is None:
            raise ParameterError("a delta without an epsilon is not a limit. Pass both")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", check_float("epsilon", self.epsilon, above=0, maximum=_LARGEST))
        if self.delta is not None:
            object.__setattr__(self, "delta", check_float("delta", self.delta, above=0, below=1))
        if self.releases is not None:
            object.__setattr__(self, "releases", check_int("releases", self.releases, minimum=1, maximum=2**31 - 1))

    def __str__(self) -> str:
        parts = [f"{name} {value:g}" for name in ("epsilon", "delta") if (value := getattr(self, name)) is not None]
        if self.releases is not None:
            parts.append(f"{self.releases:,} release{'s' if self.releases > 1 else ''}")
        return ", ".join(parts)

    def ceiling(self, currency: Currency = Currency.EPSILON) -> Ceiling:
        """Return the limits in a currency; raise a RefusedError for zCDP without a delta."""
        releases = math.inf if self.releases is None else self.releases
        if self.epsilon is None:
            return Ceiling(math.inf, math.inf, releases)
        if currency is Currency.RHO:
            if self.delta is None:
                raise refusal("zCDP has an epsilon only at a delta, and this ledger has none. Create one with --delta")
            low, high = 0.0, self.epsilon  # bisection for rho: its epsilon at this delta is increasing
            while (middle := (low + high) / 2) not in (low, high):
                fits = approx_from_zcdp(ZCDP(middle), delta=self.delta).epsilon <= self.epsilon
                low, high = (middle, high) if fits else (low, middle)
            return Ceiling(low, math.inf, releases)
        delta = math.inf if currency is Currency.DISTANCE else self.delta or 0.0
        return Ceiling(self.epsilon, delta, releases)

    def check(self, guarantee: Guarantee) -> None:
        """Raise a RefusedError if the guarantee has a delta and the ledger has no limit for it."""
        no_delta = self.epsilon is not None and self.delta is None
        if no_delta and isinstance(guarantee, ApproxDP) and guarantee.delta > 0:
            raise refusal("this release has a delta, and the ledger has no limit for it. Create one with --delta")


@dataclass(frozen=True)
class Balance:
    """Spent and remaining budget of one unit (None: no limit)."""

    spent: float
    delta: float
    releases: int
    left: float | None
    delta_left: float | None
    releases_left: int | None

    @classmethod
    def under(cls, ceiling: Ceiling, spent: float, delta: float, releases: int) -> Balance:
        """Return the balance of a unit that has spent these amounts."""
        left, delta_left = remaining(ceiling.cost, spent), remaining(ceiling.delta, delta)
        releases_left = remaining(ceiling.releases, releases)
        return cls(spent, delta, releases, left, delta_left, None if releases_left is None else int(releases_left))

    @property
    def exhausted(self) -> bool:
        """True if no further release is accepted (except at no cost)."""
        return 0 in (self.left, self.releases_left)


def remaining(limit: float, spent: float) -> float | None:
    """Return the remaining amount: 0 if used up within the tolerance, None without a limit."""
    if math.isinf(limit):
        return None
    left = limit - spent
    return left if left > limit * TOLERANCE else 0.0


def in_digits(value: float) -> str:
    """Format an amount to 4 digits, never rounded down; 0.1 + 0.2 is 0.3."""
    return at_most(value * (1 - TOLERANCE), 4)


def in_digits_at_least(value: float) -> str:
    """Format a remaining amount to 4 digits, never rounded up."""
    return at_most(-value * (1 + TOLERANCE), 4).removeprefix("-")


SCHEMA_VERSION = 2
_APPLICATION = 0x64706C67  # "dplg": distinguishes a ledger from other SQLite files

# The spent budget of a unit is always the sum of its charges, so there is no running total that a crash could
# corrupt. Prices are computed from the guarantee of each release every time (temp.price), so none can be changed.
_SCHEMA = (
    "CREATE TABLE ledger (secret BLOB NOT NULL, created TEXT NOT NULL, epsilon REAL, delta REAL, releases INTEGER)",
    "CREATE TABLE release ("
    "number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at TEXT NOT NULL, state TEXT NOT NULL, "
    "units INTEGER NOT NULL, documents INTEGER NOT NULL, about TEXT NOT NULL, counts TEXT NOT NULL)",
    "CREATE TABLE charge (unit BLOB NOT NULL, release INTEGER NOT NULL, documents INTEGER NOT NULL, "
    "PRIMARY KEY (unit, release)) WITHOUT ROWID",
)
PRICES = (
    "CREATE TEMP TABLE price (release INTEGER, documents INTEGER, cost REAL NOT NULL, delta REAL NOT NULL, "
    "PRIMARY KEY (release, documents)) WITHOUT ROWID"
)
_PRICED = "temp.price AS p ON p.release = c.release AND p.documents = c.documents"
SUM_OF_UNIT = f"SELECT total(p.cost), total(p.delta), count(*) FROM charge AS c LEFT JOIN {_PRICED} WHERE c.unit = ?"  # noqa: S608
ADD_RELEASE = (  # with the distinct numbers of documents in temp.fresh
    "INSERT INTO release (id, at, state, units, documents, about, counts) VALUES (?, ?, ?, ?, ?, ?, "
    "(SELECT json_group_array(documents) FROM (SELECT DISTINCT documents FROM temp.fresh)))"
)

# CROSS JOIN keeps the order of the tables: one pass over the sorted units, with index lookups
_OVERSPENT = """
WITH standing AS (
    SELECT n.cost AS cost, n.delta AS delta,
        total(p.cost) AS spent, total(p.delta) AS delta_spent, count(c.release) AS releases
    FROM temp.fresh AS f CROSS JOIN temp.price AS n ON n.release = :number AND n.documents = f.documents
    LEFT JOIN charge AS c ON c.unit = f.unit
    LEFT JOIN temp.price AS p ON p.release = c.release AND p.documents = c.documents
    GROUP BY f.unit)
SELECT count(*) AS units, sum(spent + cost > :cost) AS by_cost, sum(delta_spent + delta > :delta) AS by_delta,
    max(spent) AS spent, max(cost) AS cost, max(delta_spent) AS delta_spent, max(delta) AS delta,
    max(releases) AS releases, count(DISTINCT cost) AS prices
FROM standing WHERE spent + cost > :cost OR delta_spent + delta > :delta OR releases + 1 > :releases
"""

_CACHE_KIB = 65_536  # memory limit of the page cache, and of sorting before it spills to a temporary file
_STEPS_BETWEEN_SIGNALS = 1_000_000
Connection = sqlite3.Connection


def create_store(path: Path, limits: dict[str, Any], patience: float) -> None:
    """Create the file, readable by its owner only; raise a StorageError if it exists or cannot be written."""
    try:
        open_new(path).close()
    except FileExistsError:
        raise StorageError(
            f"{str(path)!r} already exists, and ledgers are never overwritten. Choose another name"
        ) from None
    except OSError as error:
        raise StorageError.of("write", path, error) from None
    try:
        with _connected(path, patience) as connection:
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("BEGIN EXCLUSIVE")
            for table in _SCHEMA:
                connection.execute(table)
            connection.execute("INSERT INTO ledger VALUES (:secret, :created, :epsilon, :delta, :releases)", limits)
            connection.execute("COMMIT")
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def opened(path: Path, patience: float) -> Iterator[Connection]:
    """Open a ledger; SQLite's errors become a StorageError, or a DataError if the file is damaged."""
    if not path.exists():
        raise StorageError(
            f"the ledger {str(path)!r} does not exist. Create it: dptext ledger create {path} --epsilon 10"
        )
    if path.is_dir():
        raise StorageError(f"{str(path)!r} is a folder. Pass the ledger file in it")
    with _connected(path, patience) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            raise DataError(f"{path.name} is not a ledger. Create one: dptext ledger create FILE --epsilon 10")
        if version != SCHEMA_VERSION:
            raise DataError(f"{path.name} is a ledger of version {version}. Use the dptext version that wrote it")
        yield connection


@contextmanager
def transaction(connection: Connection, *, writes: bool = False) -> Iterator[None]:
    """Read one state of the ledger; all writes of the block are committed at its end, or none of them."""
    # Exclusive instead of immediate: a large reservation outgrows the cache and writes to the file before it commits,
    # and readers could block these writes.
    connection.execute("BEGIN EXCLUSIVE" if writes else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            with suppress(sqlite3.Error):  # the first error is already raised
                connection.execute("ROLLBACK")


def gather(connection: Connection, units: Iterable[tuple[bytes]], *, counted: bool, maximum: int | None = None) -> int:
    """Sort the keys of a release into ``temp.fresh (unit, documents)`` on disk, and return their number."""
    connection.execute("PRAGMA temp.journal_mode = OFF")
    connection.execute("CREATE TEMP TABLE arrived (unit BLOB)")
    connection.execute("CREATE TEMP TABLE fresh (unit BLOB PRIMARY KEY, documents INTEGER) WITHOUT ROWID")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO arrived VALUES (?)", units)
    # sorted keys fill one page after the other, here and in the ledger; each random key would touch another page
    documents = "count(*)" if counted else "1"
    connection.execute(f"INSERT INTO fresh SELECT unit, {documents} FROM arrived GROUP BY unit")  # noqa: S608
    (arrived,) = connection.execute("SELECT count(*) FROM arrived").fetchone()
    if maximum is not None:
        (over,) = connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM arrived GROUP BY unit HAVING count(*) > ?)", (maximum,)
        ).fetchone()
        if over:
            raise refusal(
                f"the guarantee is for people with at most {maximum:,} texts in the release, and {over:,} of them have "
                "more. Use the statement for the largest number"
            )
    connection.execute("DROP TABLE arrived")
    connection.execute("COMMIT")
    return int(arrived)


def overspent(connection: Connection, number: int, ceiling: Ceiling) -> dict[str, Any]:
    """Count the units that the release would overspend, and return the largest amounts."""
    limits = {"cost": ceiling.cost * (1 + TOLERANCE), "delta": ceiling.delta * (1 + TOLERANCE)}
    cursor = connection.execute(_OVERSPENT, {"number": number, "releases": ceiling.releases, **limits})
    return {name: value or 0 for (name, *_), value in zip(cursor.description, cursor.fetchone(), strict=True)}


def same_units(connection: Connection, release_id: str) -> bool:
    """Return whether a release charged exactly the units in ``temp.fresh``, with the same numbers of documents."""
    number, units = connection.execute("SELECT number, units FROM release WHERE id = ?", (release_id,)).fetchone()
    (fresh,) = connection.execute("SELECT count(*) FROM temp.fresh").fetchone()
    (both,) = connection.execute(
        "SELECT count(*) FROM temp.fresh AS f CROSS JOIN charge AS c "
        "ON c.unit = f.unit AND c.release = ? AND c.documents = f.documents",
        (number,),
    ).fetchone()
    return bool(units == fresh == both)


def sums(connection: Connection) -> Iterator[tuple[float, float, int, int]]:
    """Yield (cost, delta, releases, number of units with these sums), by ascending cost."""
    yield from connection.execute(
        "SELECT cost, delta, releases, count(*) FROM (SELECT total(p.cost) AS cost, total(p.delta) AS delta, "  # noqa: S608
        f"count(*) AS releases FROM charge AS c LEFT JOIN {_PRICED} GROUP BY c.unit) "
        "GROUP BY cost, delta, releases ORDER BY cost, delta, releases"
    )


@contextmanager
def _connected(path: Path, patience: float) -> Iterator[Connection]:
    try:
        uri = f"{path.absolute().as_uri()}?mode=rw"
        options: dict[str, Any] = {"isolation_level": None, "timeout": patience, "factory": Connection}
        with closing(sqlite3.connect(uri, uri=True, **options)) as connection:
            # EXTRA also syncs the folder when the journal is deleted: otherwise a power cut could restore the journal
            # and undo a charge whose release is already published
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            # lets Python handle Ctrl-C during a long statement
            connection.set_progress_handler(_hear_signals, _STEPS_BETWEEN_SIGNALS)
            yield connection
    except sqlite3.Error as error:
        raise _problem(error, path) from None


def _hear_signals() -> int:
    return 0


def _problem(error: sqlite3.Error, path: Path) -> BaseException:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        return KeyboardInterrupt()
    if code == sqlite3.SQLITE_BUSY:
        return StorageError(
            f"another process has locked the ledger {str(path)!r}; nothing was changed. Wait for it, or end it if "
            "it is stuck"
        )
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT):
        return damaged(path)
    return StorageError(f"cannot use the ledger {str(path)!r}: {error}; nothing was changed")


def damaged(path: Path) -> DataError:
    return DataError(
        f"{path.name} is not a ledger, or is damaged, or the disk failed (SQLite does not say which). Try again; if "
        "the error persists, restore a copy that is not older than the last release"
    )
