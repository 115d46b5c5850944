"""A synthetic file out of private ones. The release is the description, a folder beside the output: the ledger
reserves, people's documents are added up, the folder appears, the ledger settles. The file of texts is made from that
folder and from public texts, as often as one likes, for nothing."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, get_args

from dptext.checks import choice, number, path, whole
from dptext.errors import DataError, ParameterError, StorageError
from dptext.features.pool import Pool, pool_cache
from dptext.io.atomic import (
    check_target,
    file_lock,
    hashed_file,
    set_default_mode,
    sibling,
)
from dptext.io.batches import STANDARD, is_pipe
from dptext.io.documents import DocumentReader, DocumentWriter, OnError, PathLike, read_documents
from dptext.privacy.guarantee import Guarantee
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.release.charges import Charges
from dptext.release.release import (
    Release,
    data_agrees,
    folder_is_of,
    read_statement,
    rejects_path,
    statement_path,
    write_rejects,
    write_statement,
)
from dptext.release.run import charged, check_output, noted_in_place
from dptext.representations.encoders import Progress
from dptext.synthesis.density import VARIETY
from dptext.synthesis.distribution import Shares, TextDistribution, check_place
from dptext.synthesis.moments import Labels
from dptext.synthesis.prompts import Source, TextSample
from dptext.synthesis.synthesizer import SynthesisPlan, Synthesizer

__all__ = [
    "Draw",
    "PrivateFiles",
    "PrivateRows",
    "check_columns",
    "check_places",
    "described_into",
    "distribution_path",
    "draw_file",
    "earlier",
    "synthesize_file",
    "write_corpus",
]

_ROWS_AT_ONCE = 10_000
_SUFFIX = ".distribution"


class PrivateRows(Protocol):
    """Whose documents are described, wherever they lie: files (`PrivateFiles`), or a DataFrame of Spark."""

    @property
    def text(self) -> str:
        """The column of the text."""
        ...

    @property
    def sources(self) -> Sequence[PathLike]:
        """The files that they are read from, which no output may be."""
        ...

    def describe(
        self,
        folder: Path,
        synthesizer: Synthesizer,
        plan: SynthesisPlan,
        *,
        ledger: PathLike | None = None,
        force: bool = False,
    ) -> TextDistribution:
        """Release a description of them into a folder, charged to a ledger."""
        ...


@dataclass(frozen=True, kw_only=True)
class PrivateFiles:
    """Whose documents are described."""

    paths: PathLike | Sequence[PathLike]
    text: str = "text"
    user: str | None = None
    on_error: OnError = "fail"
    suffix: str | None = None
    encoding: str | None = None
    separator: str | None = None
    watch: Callable[[DocumentReader], None] | None = None

    @property
    def sources(self) -> list[PathLike]:
        """The paths, as a list."""
        return [self.paths] if isinstance(self.paths, str | os.PathLike) else list(self.paths)

    def read(self, columns: Sequence[str]) -> DocumentReader:
        """The rows from the beginning, with these columns."""
        check_columns(self.text, self.user, columns)
        return read_documents(
            self.sources,
            text=self.text,
            user=self.user,
            keep=tuple(columns),
            on_error=self.on_error,
            suffix=self.suffix,
            encoding=self.encoding,
            separator=self.separator,
        )

    def describe(
        self,
        folder: Path,
        synthesizer: Synthesizer,
        plan: SynthesisPlan,
        *,
        ledger: PathLike | None = None,
        force: bool = False,
    ) -> TextDistribution:
        """Release a description of these files into a folder, charged to a ledger."""
        if ledger is not None and any(is_pipe(Path(each)) for each in self.sources):
            raise ParameterError("a ledger reads the input twice, and what went through a pipe is gone: name files")
        columns = plan.labels.columns
        charges = Charges(
            None if ledger is None else Path(ledger), self.user if ledger is not None else None, missing=""
        )
        seen: list[bytes] = []

        def fit(release_id: str) -> TextDistribution:
            with closing(self.read(columns)) as reader:
                if ledger is not None:
                    reader.watch(lambda block: seen.append(block.identity()))
                if self.watch is not None:
                    self.watch(reader)
                distribution = synthesizer.fit(reader, public=plan, release_id=release_id)
            charges.check_same(seen)
            return distribution

        def charged_rows() -> DocumentReader:
            reader, sample = self.read(columns), TextSample()
            reader.watch(sample.add_block, at_end=lambda: sample.check_pool(plan.pool))
            return reader

        return described_into(folder, synthesizer, plan, charges, charged_rows, fit, force=force)

    def watched(self, watch: Callable[[DocumentReader], None]) -> PrivateFiles:
        """The same files, whose reader is shown to one more."""
        first = self.watch

        def both(reader: DocumentReader) -> None:
            watch(reader)
            if first is not None:
                first(reader)

        return replace(self, watch=both)


def check_columns(text: str, user: str | None, labels: Sequence[str]) -> None:
    """Whether text, user and labels stand in columns of their own."""
    if text in labels or user in labels:
        raise ParameterError("text, user and labels are columns of their own: name three different ones")


@dataclass(frozen=True, kw_only=True)
class Draw:
    """How a corpus is made from a description: all of it is public, and costs nothing."""

    n: int
    public: Any = None
    generator: Source | None = None
    rounds: int = 3
    variety: float = VARIETY
    shares: Shares = "released"
    cache: Any = None
    seed: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        # what is wrong with these must not come out after a budget is spent
        whole("n", self.n, least=1)
        whole("rounds", self.rounds, least=1)
        number("variety", self.variety, least=0, most=1)
        choice("shares", self.shares, get_args(Shares))
        pool_cache(self.cache)
        if self.seed is not None:
            whole("seed", self.seed)
        if self.public is None and self.generator is None:
            raise ParameterError("say where texts come from: a public pool, or a generator")
        if self.public is not None:
            object.__setattr__(self, "public", Pool.of(self.public))
        if self.generator is None and self.n > len(self.public):
            raise ParameterError(
                f"n must be at most the number of texts in the pool, {len(self.public):,}, got {self.n:,}: ask for "
                "fewer texts, or give a larger pool"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        """Files of public texts, in whose place nothing may be written."""
        return () if self.public is None else self.public.files

    def check_format(self, writer: DocumentWriter, labels: Labels, out: Path) -> None:
        names = [labels.values_of(code) for code in range(len(labels))]
        columns = {name: [each[name] for each in names] for name in labels.columns}
        try:
            deque(_encoded(writer, [""] * len(names), columns), maxlen=0)
        except DataError as error:
            raise DataError(f"{out.name!r} cannot hold these labels: of all combinations, {error}") from None
        if self.generator is not None:
            return
        texts: Sequence[str] = self.public.texts
        try:
            deque(_encoded(writer, texts, {name: [""] * len(texts) for name in labels.columns}), maxlen=0)
        except DataError as error:
            raise DataError(
                f"{out.name!r} cannot hold every text of the pool; of its distinct texts, {error}"
            ) from None

    def of(self, distribution: TextDistribution) -> Release:
        """The corpus."""
        how: dict[str, Any] = {"variety": self.variety, "shares": self.shares, "seed": self.seed}
        how |= {"progress": self.progress}
        if self.generator is not None:
            return distribution.generate(self.generator, self.n, rounds=self.rounds, **how)
        return distribution.sample(self.public, self.n, cache=self.cache, **how)


def distribution_path(out: Path) -> Path:
    """Where the description of a synthetic file stands, unless another place is named."""
    return out.with_name(out.name + _SUFFIX)


def synthesize_file(
    source: PrivateRows,
    out: PathLike,
    synthesizer: Synthesizer,
    draw: Draw,
    *,
    public: Any = None,
    distribution: PathLike | None = None,
    ledger: PathLike | None = None,
    resume: bool = False,
    force: bool = False,
) -> Release:
    """Describe the people of files by one noisy release, and write a corpus that is made from it."""
    out = path("out", out)
    folder = distribution_path(out) if distribution is None else path("distribution", distribution)
    writer = DocumentWriter(out, text=source.text, keep=synthesizer.labels.columns)
    given = draw.public if public is None else public
    if given is None:
        raise ParameterError("features are fitted on public texts: give public= as well as a generator")
    fitted_on = given.pool if isinstance(given, SynthesisPlan) else Pool.of(given)
    files = (*draw.files, *fitted_on.files)
    check_places(source, out, folder, public=files, ledger=ledger, resume=resume, force=force)
    with _way_on(folder, out, resume=resume), file_lock(out), file_lock(folder):
        check_places(source, out, folder, public=files, ledger=ledger, resume=resume, force=force)  # as it is by now
        draw.check_format(writer, synthesizer.labels, out)
        plan = given if isinstance(given, SynthesisPlan) else synthesizer.plan(fitted_on)
        charges = Charges(None if ledger is None else Path(ledger), None)
        described = earlier(folder, plan, seeded=synthesizer.seed is not None) if resume else None
        readers: list[DocumentReader] = []
        if described is not None:
            _settle(folder, described, charges)
        else:
            if isinstance(source, PrivateFiles):
                source = source.watched(readers.append)
            described = source.describe(folder, synthesizer, plan, ledger=ledger, force=force)
            write_rejects(rejects_path(out), (each for reader in readers for each in reader.rejects))
        skipped = sum(reader.skipped for reader in readers)
        return replace(write_corpus(draw.of(described), out, writer), skipped=skipped)


def draw_file(
    distribution: PathLike,
    out: PathLike,
    draw: Draw,
    *,
    text: str = "text",
    force: bool = False,
) -> Release:
    """Write a corpus that is made from an earlier description: at no further cost, as often as one likes."""
    out, folder = path("out", out), path("distribution", distribution)
    if _is_around(folder, out):
        raise ParameterError(f"{str(out)!r} lies in the folder of the description: choose a place outside of it")

    def check() -> None:
        left = not os.path.lexists(out) and _speaks_of(folder, statement_path(out))
        apart = {"the public texts": draw.files}
        check_output([], out, force=force, beside=force or left, by="add --force", apart_from=apart)

    if os.path.lexists(out) and not force:
        _finish(folder, out)
    check()
    found = TextDistribution.load(folder)
    writer = DocumentWriter(out, text=text, keep=found.labels.columns)
    draw.check_format(writer, found.labels, out)
    with _in_place(out), file_lock(out):
        check()  # as it is by now
        return write_corpus(draw.of(found), out, writer)


# -- places ---------------------------------------------------------------------------------------------------


def check_places(
    source: PrivateRows,
    out: Path,
    folder: Path,
    *,
    public: Sequence[PathLike] = (),
    ledger: PathLike | None = None,
    resume: bool = False,
    force: bool = False,
) -> None:
    """Refuse places that cannot be written, or where something would be destroyed; before a private row is read."""
    apart: dict[str, Sequence[PathLike]] = {"the public texts": public}
    check = partial(check_output, source.sources, out, ledger=ledger, apart_from=apart)
    check(force=True)
    written = (out, statement_path(out), rejects_path(out))
    inputs = [each for each in source.sources if Path(each) != STANDARD]
    _check_pool_is_apart(inputs, public)
    books = [] if ledger is None else [ledger]
    for what, files in {"IN": inputs, **apart, "the ledger": books, "OUT": written}.items():
        if any(_is_around(folder, Path(each)) for each in files):
            raise ParameterError(
                f"the description cannot be {str(folder)!r}, which is {what} or lies around it: choose another name "
                "(--distribution)"
            )
    is_there = _has_description(folder)
    if is_there and os.path.lexists(out) and not force:
        if resume:
            _finish(folder, out)
        raise ParameterError(
            f"{str(out)!r} is there already: choose another name, or add --resume and --force together, which makes it "
            f"anew from the description in {str(folder)!r} at no further cost (--force alone makes a new description, "
            "which costs again)"
        )
    if is_there and not resume and not force:
        raise ParameterError(
            f"{str(folder)!r} is there already, the description that an earlier run released: add --resume to make "
            "texts from it at no further cost, or --force for a new one, which costs again"
        )
    check_place(folder, replace=True)
    left = is_there and not os.path.lexists(out)  # what stands beside the output is of the run that goes on
    check(force=force, beside=force or (left and _speaks_of(folder, statement_path(out))))
    for hidden in (sibling(out, "lock"), sibling(folder, "lock")):
        check_target(hidden, replace=True, apart_from={"IN": inputs, **apart})


def _check_pool_is_apart(inputs: Sequence[PathLike], public: Sequence[PathLike]) -> None:
    """Refuse a pool of which a file is private: its texts would come out as they are."""
    for each in public:
        if any(_is_around(Path(private), Path(each)) or _is_input(Path(each), [private]) for private in inputs):
            raise ParameterError(
                f"{os.fspath(each)!r} is both a file of IN and of the public pool: private texts would come out as "
                "they are; give public texts, chosen without regard to IN"
            )


def _has_description(folder: Path) -> bool:
    """Whether a description stands there; one that a killed run had put aside comes back."""
    with suppress(ParameterError):
        return os.path.lexists(check_place(folder, replace=True))
    return False


def _is_around(folder: Path, file: Path) -> bool:
    with suppress(OSError, ValueError):
        inner, outer = file.absolute(), folder.absolute()
        inner, outer = inner.parent.resolve() / inner.name, outer.parent.resolve() / outer.name
        return outer == inner or outer in inner.parents or outer.resolve() in inner.resolve().parents
    return False


def _is_input(out: Path, files: Sequence[PathLike]) -> bool:
    with suppress(OSError):
        return any(Path(each).exists() and out.samefile(each) for each in files)
    return False


def _speaks_of(folder: Path, statement: Path) -> bool:
    """Whether a statement is of the release in a folder, or is not there."""
    with suppress(DataError, StorageError):
        return not os.path.lexists(statement) or folder_is_of(folder, str(read_statement(statement).release_id))
    return False


def _finish(folder: Path, out: Path) -> None:
    """The rights that a run that was killed after the last rename had not given to its output."""
    with suppress(DataError, StorageError, OSError):
        if _speaks_of(folder, statement_path(out)) and data_agrees(read_statement(statement_path(out)), out):
            set_default_mode(out)


# -- the description ------------------------------------------------------------------------------------------


def earlier(folder: Path, plan: SynthesisPlan, *, seeded: bool = False) -> TextDistribution | None:
    """The description that an earlier run of this plan released; None where there is none."""
    if not os.path.lexists(folder):
        return None
    said = read_statement(folder / "privacy.json")
    wanted = PrivacyStatement.from_json(plan.statement(seeded=seeded).to_json())
    names = ("unit", "relation", "trust", "mechanism", "guarantee", "seeded")
    other = [name for name in names if getattr(said, name) != getattr(wanted, name)]
    then, now = dict(said.parameters), dict(wanted.parameters)
    other += sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    found = None if other else TextDistribution.load(folder, features=plan.features)
    if found is None or found.labels != plan.labels:
        raise ParameterError(
            f"{str(folder)!r} holds a description made with other arguments ({', '.join(other) or 'labels'} changed): "
            "give the same ones to go on with it, draw from it as it is (--distribution), or make a new one (--force "
            "without --resume), which costs again"
        )
    return found


def described_into(
    folder: Path,
    synthesizer: Synthesizer,
    plan: SynthesisPlan,
    charges: Charges,
    read: Callable[[], Any],
    fit: Callable[[str], TextDistribution],
    *,
    force: bool = False,
) -> TextDistribution:
    """Release a description into a folder, charged to a ledger: reserved, made, in place, settled."""
    if charges.kind is not None and synthesizer.seed is not None:
        raise ParameterError("a seed voids the promise, and a ledger counts promises: leave one of the two out")
    place = check_place(folder, replace=force)
    release_id = new_release_id()

    def promise() -> tuple[Guarantee, dict[str, Any]]:
        said = plan.promise
        return said.guarantee, {"unit": said.unit, "relation": said.relation, "mechanism": said.mechanism}

    with charged(place, charges, release_id, promise, read, partial(folder_is_of, folder)):
        distribution = fit(release_id)
        charges.check_reserved(release_id)
        distribution.save(place, replace=force)
    return distribution


def _settle(folder: Path, described: TextDistribution, charges: Charges) -> None:
    """Settle the description that a run continues with."""
    name = str(described.statement.release_id)
    if not charges.is_settled_or_reserved(name):
        raise ParameterError(
            f"the description in {str(folder)!r} was not charged to this ledger: go on without it, or make a new one "
            "(--force without --resume)"
        )
    charges.settle(name)


@contextmanager
def _way_on(folder: Path, out: Path, *, resume: bool) -> Iterator[None]:
    """Whatever stops a run after the release says how to go on at no further cost."""
    before = _release_in(folder)
    with _in_place(out):
        try:
            yield
        except BaseException as error:
            now = _release_in(folder)
            if now is not None and (now != before or (resume and not isinstance(error, ParameterError))):
                error.add_note(
                    f"the description is released and stands in {folder}: make texts from it at no further cost (the "
                    "same command with --resume, or --distribution)"
                )
            raise


def _in_place(out: Path) -> AbstractContextManager[None]:
    """What stops a run when its output has appeared says that it has."""
    before = _identity(out)

    def is_out() -> bool:
        with suppress(DataError, StorageError, OSError):  # what went wrong first matters more
            return _identity(out) not in (None, before) and bool(data_agrees(read_statement(statement_path(out)), out))
        return False

    return noted_in_place(out, is_out)


def _identity(file: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        found = file.lstat()
        return found.st_ino, found.st_mtime_ns
    return None


def _release_in(folder: Path) -> str | None:
    """The name of the release that stands in a folder, as far as it can be read."""
    with suppress(DataError, StorageError, OSError):
        return read_statement(folder / "privacy.json").release_id
    return None


# -- the texts ------------------------------------------------------------------------------------------------


def write_corpus(release: Release, out: Path, writer: DocumentWriter) -> Release:
    """Write texts, their labels and their statement, whole or not at all."""
    texts, columns = release.texts, release.columns
    with hashed_file(out) as stream:
        writer.write(_encoded(writer, texts, columns), stream)
        statement = release.statement.replace(data_sha256=stream.digest())
        write_statement(statement_path(out), statement)  # before the data: no data is ever without one
    return replace(release, statement=statement, made={**release.made, "out": out})


def _encoded(
    writer: DocumentWriter, texts: Sequence[str | None], columns: Mapping[str, Sequence[str]]
) -> Iterator[bytes]:
    """The bytes of texts and labels, block by block."""
    for start in range(0, len(texts), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        part = {name: values[rows] for name, values in columns.items()}
        yield writer.encode(texts[rows], part, row=start + 1, first=start == 0)
