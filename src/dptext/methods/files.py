"""The files of a release: the inputs of its examination, its rows, and checks against its statement."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import ATTACKERS, Attacker
from dptext.audits.verdict import Verdict
from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.features.pool import Pool, PublicSource
from dptext.io.batches import check_header
from dptext.io.documents import DocumentReader, find_files, first_rows, read_documents
from dptext.io.formats import file_format
from dptext.privacy.guarantee import ApproxDP, Trust
from dptext.privacy.randomness import RandomBits
from dptext.privacy.shuffling import shuffled
from dptext.privacy.statement import PrivacyStatement, disagreements
from dptext.release.mechanism import TextMechanism
from dptext.release.redaction import as_redacted, is_redacted
from dptext.release.release import data_agrees
from dptext.representations.device import VECTOR

Chosen = npt.NDArray[np.int64]
FOLDS = 5
"""Number of folds in which attackers and models are trained and tested."""
_DIFFERENT = ("data", "original", "held_out")


@dataclass(frozen=True, kw_only=True)
class ReleaseFiles:
    """A release in a file or folder, its statement, and the files, columns and sizes that its examination uses."""

    data: Path
    statement_or_none: PrivacyStatement | None = None
    original: Path | None = None  # the original texts; for a released distribution, texts of people who are in it
    held_out: Path | None = None  # texts of people who are not in it
    pairs: Path | None = None  # names and their secrets
    text: str = "text"
    user: str | None = None
    label: str | None = None
    attribute: str | None = None
    vectors: str | None = None  # where the word vectors are, if they moved
    words: Sequence[str] = ()  # for an audit of pairs; none: chosen at random
    bank: Path | None = None
    public: Sequence[PublicSource] = ()
    public_text: str = "text"
    distribution: Path | None = None
    redact_list: Path | None = None  # terms that were redacted before the release
    rows: int = 3000  # maximum for attacks and training
    attackers: Sequence[Attacker] = ATTACKERS  # who infer the attribute
    samples: int = 200_000  # of a sampled audit
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.rows < 2 * FOLDS:
            raise ParameterError(f"rows must be at least {2 * FOLDS}, got {self.rows}")
        paths = [path.resolve() for name in _DIFFERENT if (path := getattr(self, name)) is not None]
        if len(set(paths)) < len(paths):
            raise ParameterError("private, original and held_out must be different files")

    @property
    def statement(self) -> PrivacyStatement:
        if self.statement_or_none is None:
            raise DataError(f"{self.data.name} has no privacy statement: put the statement next to the data")
        return self.statement_or_none

    @property
    def sampling(self) -> dict[str, Any]:
        return {"samples": self.samples, "seed": self.seed}

    def documents(self) -> DocumentReader:
        return read_documents(self.parts, text=self.text)

    def counted(self, name: str) -> int:
        """Return a count from the statement, which anybody may have changed; 0: it has none."""
        value = self.statement.parameters.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0

    @cached_property
    def pool(self) -> Pool | None:
        """The public pool, if it was named, cut as the statement says."""
        if not self.public:
            return None
        unit: Any = self.statement.parameters.get("pool_unit", "document")
        return Pool(list(self.public), text=self.public_text, unit=unit)

    @property
    def parts(self) -> list[Path]:
        """The data files: one, or the parts of a folder that Spark wrote."""
        return find_files([self.data])


# -- rows ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one file: texts, or vectors."""

    chosen: Chosen
    texts: list[str | None] = field(repr=False)
    vectors: npt.NDArray[np.float32] | None = field(default=None, repr=False)
    columns: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    people: list[str] | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        return len(self.chosen)

    @property
    def features(self) -> Any:
        """What a model sees: vectors, or texts."""
        return self.texts if self.vectors is None else self.vectors

    def column(self, name: str | None) -> list[str] | None:
        return None if name is None else [str(entry) for entry in self.columns[name]]

    def at(self, places: list[int]) -> Rows:
        columns = {name: [values[place] for place in places] for name, values in self.columns.items()}
        if self.vectors is not None:
            return Rows(self.chosen[places], [], self.vectors[places], columns)
        return Rows(self.chosen[places], [self.texts[place] for place in places], None, columns)


def columns_of(path: Path) -> list[str]:
    """Return the columns of the first row of a file, or of the first file of a folder."""
    if not path.is_dir() and file_format(path).kind == ".parquet":
        return _schema(path)
    return list(next(first_rows(find_files([path])), {}))


def count_rows(path: Path, *, text: str) -> int:
    if _holds_vectors(path):
        from dptext.io.parquet import vector_batches

        return sum(map(len, vector_batches(path, VECTOR)))
    with closing(read_documents(path, text=text)) as reader:
        return sum(len(batch.texts) for batch in reader.batches())


def chosen_rows(count: int, maximum: int, bits: RandomBits) -> Chosen:
    """Return all row numbers, or a random sample of this size, in ascending order."""
    if count <= maximum:
        return np.arange(count)
    return np.sort(np.argsort(bits.integers(count), kind="stable")[:maximum])


def read_rows(
    path: Path,
    chosen: Chosen | None = None,
    *,
    text: str,
    columns: Sequence[str] = (),
    user: str | None = None,
    texts_only: bool = False,
) -> Rows:
    """Return all rows of a file, or the chosen ones; a column without a value in one of them is an error."""
    names = list(dict.fromkeys([*columns, *([] if user is None else [user])]))
    if not texts_only and _holds_vectors(path):
        rows = _read_vectors(path, chosen, names)
    else:
        rows = _read_texts(path, chosen, text, names)
    for name, column in rows.columns.items():
        for row, value in zip(rows.chosen, column, strict=True):
            if value is None or value != value or isinstance(value, list | dict):
                raise DataError(
                    f"{path.name}, row {row + 1}: the column {name!r} has no value. Drop such rows before the release, "
                    "or do not name the column"
                )
    return replace(rows, people=rows.column(user))


def _read_texts(path: Path, chosen: Chosen | None, text: str, columns: Sequence[str]) -> Rows:
    selected: set[int] = set() if chosen is None else set(chosen.tolist())
    end = None if chosen is None else max(selected, default=-1) + 1
    with closing(read_documents(path, text=text, keep=tuple(columns))) as reader:
        numbered = enumerate(islice(reader, end))
        rows = [(row, document) for row, document in numbered if chosen is None or row in selected]
    values = {name: [(document.attributes or {})[name] for _, document in rows] for name in columns}
    return Rows(np.array([row for row, _ in rows], dtype=np.int64), [entry.text for _, entry in rows], None, values)


def _read_vectors(path: Path, chosen: Chosen | None, columns: Sequence[str]) -> Rows:
    from pyarrow.parquet import read_table

    from dptext.io.parquet import vector_batches

    blocks, start = [], 0
    for block in vector_batches(path, VECTOR):
        part = slice(None) if chosen is None else chosen[(chosen >= start) & (chosen < start + len(block))] - start
        blocks.append(block[part])
        start += len(block)
    numbers, names = np.arange(start) if chosen is None else chosen, _schema(path)
    check_header(names, columns, path.name, sure=True)
    values = read_table(path, columns=list(columns)).take(numbers).to_pydict() if columns else {}
    return Rows(numbers, [], np.concatenate(blocks) if blocks else np.empty((0, 0), dtype=np.float32), values)


def _holds_vectors(path: Path) -> bool:
    return file_format(path).kind == ".parquet" and VECTOR in _schema(path)


def _schema(path: Path) -> list[str]:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    try:
        names: list[str] = read_schema(path).names
        return names
    except ArrowException:  # some are an OSError as well
        raise DataError(f"{path.name} is not a parquet file, or is truncated or damaged. Copy the file again") from None
    except OSError as error:
        raise StorageError.of("open", path, error) from None


# -- checks --------------------------------------------------------------------------------------------------------

_SEEN = {True: "its SHA-256 agrees", False: "its SHA-256 DIFFERS", None: "there is no data to compare"}
_WORDING = {"condition", "assumptions", "exposed"}


@dataclass(frozen=True)
class Check:
    """The result of one check of a file (None: it was not possible)."""

    name: str
    passed: bool | None
    detail: str
    owner_only: bool = False


FILES_AGREE = Check("all files are those that config.json announces", True, "their SHA-256 agree")


@dataclass(frozen=True)
class Audit:
    """The checks of a release against its statement, and the verdict on its guarantee."""

    statement: PrivacyStatement
    checks: list[Check]
    verdict: Verdict

    @property
    def refuted(self) -> bool:
        return self.verdict.refuted or any(check.passed is False for check in self.checks)


def audit_file(files: ReleaseFiles, contents: Callable[[], Iterable[Check]], follows: Check, verdict: Verdict) -> Audit:
    """Audit a file: its digest, its contents if there are any, the guarantee, and the verdict on the mechanism."""
    agrees = data_agrees(files.statement, files.data)
    digest = Check("the data is the data of the statement", agrees, _SEEN[agrees])
    return Audit(files.statement, [digest, *([] if agrees is None else contents()), follows], verdict)


def check_guarantee(statement: PrivacyStatement, repeated: PrivacyStatement, *, apart_from: Collection[str]) -> Check:
    if statement.trust is Trust.SHUFFLER:  # its parameters describe the local mechanism
        users, delta = whole_parameter(statement, "shuffled_users"), real_parameter(statement, "shuffled_delta")
        with describes("a shuffled release"):
            repeated = shuffled(repeated, users=users, delta=delta)
    differ = disagreements(statement, repeated, of_a_release=True, apart_from=tuple(apart_from))
    same_version = statement.software == repeated.software
    counted = [name for name in differ if same_version or name not in _WORDING]
    seen = f"{repeated.guarantee}" + (f"; {', '.join(differ)} differ" if differ else "")
    if len(counted) < len(differ):
        seen += ", perhaps in their wording only: another version wrote the statement"
    return Check("the guarantee follows from the parameters", not counted, seen)


def check_document_guarantee(
    statement: PrivacyStatement, mechanism: TextMechanism, longest: int, *, apart_from: Collection[str]
) -> Check:
    """Check that a statement follows from a mechanism, with its redaction, for documents of this length."""
    repeated = mechanism.document_statement(longest)
    if is_redacted(statement):
        repeated = as_redacted(repeated, statement.parameters, shows_placeholders=mechanism.keeps_marks)
    return check_guarantee(statement, repeated, apart_from=apart_from)


@contextmanager
def describes(thing: str) -> Iterator[None]:
    try:
        yield
    except (ParameterError, RefusedError) as problem:
        raise DataError(f"the statement describes {thing} that cannot exist: {problem}") from None


def real_parameter(statement: PrivacyStatement, name: str) -> float:
    value = statement.parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"the statement lacks the {name} of its release: it was not written by dptext")
    return float(value)


def whole_parameter(statement: PrivacyStatement, name: str) -> int:
    value = statement.parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DataError(f"the statement lacks the {name} of its release: it was not written by dptext")
    return value


# -- a guarantee that covers earlier releases ----------------------------------------------------------------------

DIGITS = (1 - 1e-3, 1 - 1e-2)
"""Relative precision of a guarantee in words: 4 digits of epsilon and 3 of delta, rounded up."""
_GUARANTEE = re.compile(
    r"\((?P<epsilon>[\d.e+-]+), (?P<delta>[\d.e+-]+)\)|(?P<pure>[\d.e+-]+)-differential privacy \(pure\)"
)


def earlier_guarantees(statement: PrivacyStatement) -> list[str]:
    """Return the guarantees of earlier releases that this one contains, as the statement prints them."""
    return [str(value) for name, value in statement.parameters.items() if name.startswith("promise_of_")]


def covers_earlier(statement: PrivacyStatement) -> tuple[bool, str]:
    """Return whether the guarantee is at least the sum of all parts, and the parts in words."""
    release, earlier, guarantee = own_guarantee(statement), earlier_guarantees(statement), statement.guarantee
    parts = [(release.epsilon, release.delta), *map(_at_least, earlier)]
    least_epsilon, least_delta = (math.fsum(values) * (1 - 1e-12) for values in zip(*parts, strict=True))
    covers = isinstance(guarantee, ApproxDP) and guarantee.epsilon >= least_epsilon and guarantee.delta >= least_delta
    return covers, f"{guarantee}" + (f", of which {', '.join(earlier)} for earlier releases" if earlier else "")


def _at_least(guarantee: str) -> tuple[float, float]:
    """Return the smallest epsilon and delta that a printed guarantee can stand for."""
    match = _GUARANTEE.match(guarantee)
    if match is None:
        return 0.0, 0.0
    return float(match["epsilon"] or match["pure"]) * DIGITS[0], float(match["delta"] or 0.0) * DIGITS[1]


def own_guarantee(statement: PrivacyStatement) -> ApproxDP:
    """Return the guarantee of this release alone, without earlier releases."""
    epsilon, delta = (real_parameter(statement, name) for name in ("epsilon", "delta"))
    with describes("a budget"):
        return ApproxDP(epsilon, delta)
