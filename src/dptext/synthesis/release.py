"""Synthetic files from private files. The release is a distribution, saved in a folder next to the output and charged
to the ledger; the texts are post-processing of the distribution and public texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Protocol, get_args

from dptext.errors import ParameterError
from dptext.features.pool import Pool, pool_cache
from dptext.io.artifacts import SavedFolder
from dptext.io.atomic import file_lock, hashed_file, is_same
from dptext.io.batches import STANDARD, is_pipe
from dptext.io.documents import DocumentReader, DocumentWriter, PathLike
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.release.release import (
    Release,
    folder_is_of,
    read_statement,
    rejects_path,
    statement_path,
    write_rejects,
    write_statement,
)
from dptext.release.run import Charges, TextFiles, charged, check_output
from dptext.representations.encoders import Progress
from dptext.synthesis.density import VARIETY
from dptext.synthesis.distribution import FOLDER, Shares, TextDistribution
from dptext.synthesis.prompts import CANDIDATES, Source, TextSample
from dptext.synthesis.synthesizer import SynthesisPlan, Synthesizer
from dptext.validation import check_choice, check_float, check_int, check_path

_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, kw_only=True)
class FolderRun:
    """One release of private documents into a folder."""

    kind: SavedFolder
    statement: PrivacyStatement  # before the release
    columns: tuple[str, ...]
    pool: Iterable[str] = ()
    seeded: bool = False
    fit: Callable[[Any, str], Any]  # (documents, release id) -> an object with a method save
    advice: str  # for an error after the folder was written


class PrivateRows(Protocol):
    """Private documents: files (`PrivateFiles`) or a Spark DataFrame."""

    def release_into(
        self, folder: Path, run: FolderRun, *, ledger: PathLike | None = None, force: bool = False
    ) -> tuple[Any, DocumentReader | None]:
        """Release into a folder, charged to a ledger; return the release and the reader of files, if any."""

    @property
    def text(self) -> str: ...

    @property
    def sources(self) -> Sequence[PathLike]: ...

    def first(self) -> list[str]: ...

    def check_users(self) -> None:
        """Raise `DataError` before any work if rows have no user."""

    def fit(
        self, synthesizer: Synthesizer, plan: SynthesisPlan, documents: Any, /, *, release_id: str | None
    ) -> TextDistribution:
        """Release a distribution of all documents."""
        return synthesizer.fit(documents, public=plan, release_id=release_id)

    def describe(
        self,
        folder: Path,
        synthesizer: Synthesizer,
        plan: SynthesisPlan,
        *,
        ledger: PathLike | None = None,
        force: bool = False,
    ) -> tuple[TextDistribution, DocumentReader | None]:
        """Release a distribution into a folder, charged to a ledger; return it and the reader of files, if any."""
        run = FolderRun(
            kind=FOLDER,
            statement=plan.future_statement,
            columns=plan.labels.columns,
            pool=plan.pool.texts,
            seeded=synthesizer.seed is not None,
            fit=lambda documents, release_id: self.fit(synthesizer, plan, documents, release_id=release_id),
            advice=_DRAW_AGAIN,
        )
        return self.release_into(folder, run, ledger=ledger, force=force)


@dataclass(frozen=True, kw_only=True)
class PrivateFiles(TextFiles, PrivateRows):
    """Files with private documents."""

    user: str | None = None

    def check_users(self) -> None:
        if not any(is_pipe(Path(source)) for source in self.sources):  # opening one would take its rows
            with closing(self.labelled(())) as reader:
                reader.check_users(has_unit=True)

    def labelled(self, columns: Sequence[str]) -> DocumentReader:
        """Return all rows with these label columns."""
        check_columns(self.text, self.user, columns)
        return self.documents(tuple(columns), user=self.user)

    def release_into(
        self, folder: Path, run: FolderRun, *, ledger: PathLike | None = None, force: bool = False
    ) -> tuple[Any, DocumentReader]:
        """Release into a folder, charged to a ledger; return the release and the reader of the files."""
        if ledger is not None and any(is_pipe(Path(source)) for source in self.sources):
            raise ParameterError("a ledger reads the input twice, which a pipe does not allow: name files")
        charges = Charges(ledger, self.user if ledger is not None else None, missing="")

        def charged_rows() -> DocumentReader:
            rows, sample = self.labelled(run.columns), TextSample()
            rows.watch(sample.add_block, at_end=lambda: sample.check_pool(run.pool))
            return rows

        readers: list[DocumentReader] = []

        def fit(release_id: str) -> Any:
            readers.append(charges.track(self.labelled(run.columns)))
            with closing(readers[0]):
                return run.fit(readers[0], release_id)

        return described_into(folder, run, charges, charged_rows, fit, force=force), readers[0]


def check_columns(text: str, user: str | None, labels: Sequence[str]) -> None:
    if text in labels or user in labels:
        raise ParameterError("text, user and labels must be three different columns")


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Public parameters for drawing a corpus from a distribution, which has no privacy loss."""

    n: int
    public: Any = None
    generator: Source | None = None
    examples: Any = None  # for the generator
    examples_file: Path | None = None
    with_pool: bool = False  # select from the pool, too
    rounds: int = 2
    candidates: int = CANDIDATES
    variety: float = VARIETY
    shares: Shares = "released"
    cache: Any = None
    seed: int | None = None
    progress: Progress | None = None
    on_doubt: Callable[[str], object] | None = None  # called before the corpus is written

    def __post_init__(self) -> None:
        # validate before any budget is spent
        check_int("n", self.n, minimum=1)
        check_int("rounds", self.rounds, minimum=1)
        check_int("candidates", self.candidates, minimum=1)
        check_float("variety", self.variety, minimum=0, maximum=1)
        check_choice("shares", self.shares, get_args(Shares))
        pool_cache(self.cache)
        if self.seed is not None:
            check_int("seed", self.seed)
        if self.public is None and self.generator is None:
            raise ParameterError("a public pool or a generator is required")
        if self.public is not None:
            object.__setattr__(self, "public", Pool.of(self.public))
        if self.generator is None and self.n > len(self.public):
            raise ParameterError(
                f"n must be at most the number of texts in the pool, {len(self.public):,}, got {self.n:,}: request "
                "fewer texts, or use a larger pool"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        examples = () if self.examples_file is None else (self.examples_file,)
        return (*examples, *(() if self.public is None else self.public.files))

    def of(self, distribution: TextDistribution) -> Release:
        fields: dict[str, Any] = {name: getattr(self, name) for name in ("variety", "shares", "seed", "progress")}
        if self.generator is not None:
            fields |= {name: getattr(self, name) for name in ("examples", "rounds", "candidates")}
            pool = self.public if self.with_pool else None
            release = distribution.generate(self.generator, self.n, public=pool, **fields)
        else:
            release = distribution.sample(self.public, self.n, cache=self.cache, **fields)
        if self.on_doubt is not None:
            for doubt in release.doubts:
                self.on_doubt(doubt)
        return release


def distribution_path(out: Path) -> Path:
    """Return the default folder for the distribution of a synthetic file."""
    return out.with_name(f"{out.name}.distribution")


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
    """Release a distribution of the private documents, and write a corpus drawn from it."""
    out = check_path("out", out)
    folder = distribution_path(out) if distribution is None else check_path("distribution", distribution)
    writer = DocumentWriter(out, text=source.text, keep=synthesizer.labels.columns)
    public = draw.public if public is None else public
    if public is None:
        raise ParameterError("public texts are required to fit the features: pass public= in addition to the generator")
    fitted_on = public.pool if isinstance(public, SynthesisPlan) else Pool.of(public)
    synthesizer.labels.check_examples(draw.examples)
    if (prepare := getattr(draw.generator, "prepare", None)) is not None:
        prepare()
    check = partial(
        check_places,
        source,
        out,
        folder,
        public=(*draw.files, *fitted_on.files),
        ledger=ledger,
        resume=resume,
        force=force,
    )
    check()
    with file_lock(out), file_lock(folder):
        check()  # repeat under the lock
        if not isinstance(public, SynthesisPlan) and not (resume and os.path.lexists(folder)):
            source.check_users()  # before the pool is encoded
        plan = public if isinstance(public, SynthesisPlan) else synthesizer.plan(fitted_on)
        described = earlier(folder, plan, seeded=synthesizer.seed is not None) if resume else None
        reader = None
        if described is None:
            described, reader = source.describe(folder, synthesizer, plan, ledger=ledger, force=force)
            write_rejects(rejects_path(out), () if reader is None else reader.rejects)
        else:
            charges, release_id = Charges(ledger, None), str(described.statement.release_id)
            if not charges.is_settled_or_reserved(release_id):
                raise ParameterError(
                    f"the distribution in {str(folder)!r} was not charged to this ledger: omit the ledger, or release "
                    "a new one (--force without --resume)"
                )
            charges.settle(release_id)
        try:
            release = write_corpus(draw.of(described), out, writer)
        except BaseException as error:
            error.add_note(_DRAW_AGAIN.format(folder=folder))
            raise
        return replace(release, skipped=0 if reader is None else reader.skipped)


def draw_file(distribution: PathLike, out: PathLike, draw: Draw, *, text: str = "text", force: bool = False) -> Release:
    """Write a corpus drawn from an earlier distribution, without further privacy loss."""
    out, folder = check_path("out", out), check_path("distribution", distribution)
    if _is_around(folder, out):
        raise ParameterError(f"{str(out)!r} is inside the folder of the distribution: choose a path outside")
    check = partial(check_output, [], out, force=force, apart_from={"the public texts": draw.files})
    check()
    described = TextDistribution.load(folder)
    writer = DocumentWriter(out, text=text, keep=described.labels.columns)
    with file_lock(out):
        check()  # repeat under the lock
        return write_corpus(draw.of(described), out, writer)


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
    """Raise, before a private row is read, if an output cannot be written or would destroy other data."""
    distance: dict[str, Sequence[PathLike]] = {"the public texts": public}
    check = partial(check_output, source.sources, out, ledger=ledger, apart_from=distance)
    check(force=True)
    check_apart(source.sources, public)
    if any(_is_around(folder, file) for file in (out, statement_path(out), rejects_path(out))):
        raise ParameterError(f"{str(folder)!r} (--distribution) must not be or contain OUT: choose another folder")
    FOLDER.place(folder, replace=True)
    is_there = os.path.lexists(folder)
    if is_there and not force and (os.path.lexists(out) or not resume):
        raise ParameterError(
            f"{str(folder)!r} already exists, with the distribution that an earlier run released: add --resume to "
            "draw texts from it without further privacy loss (with --force if OUT exists), or --force alone for "
            "a new release, which spends budget again"
        )
    # without an output, the other files belong to the resumed run
    check(force=force, statement_file=force or (resume and is_there))


def check_apart(sources: Sequence[PathLike], public: Sequence[PathLike]) -> None:
    """Raise if private files are also named as public ones."""
    inputs = [Path(entry) for entry in sources if Path(entry) != STANDARD]
    for pool, private in product(map(Path, public), inputs):
        if _is_around(private, pool) or is_same(private, pool):
            raise ParameterError(
                f"{str(pool)!r} is both a file of IN and of the public texts: private texts would be released "
                "unchanged. Provide public texts that were chosen without regard to IN"
            )


def _is_around(folder: Path, file: Path) -> bool:
    inner, outer = file.resolve(), folder.resolve()
    return outer == inner or outer in inner.parents


def earlier(folder: Path, plan: SynthesisPlan, *, seeded: bool = False) -> TextDistribution | None:
    """Return the distribution that an earlier run of this plan released, if there is one."""
    if not os.path.lexists(folder):
        return None
    statement = read_statement(folder / "privacy.json")
    target = PrivacyStatement.from_json(plan.statement(seeded=seeded).to_json())
    names = ("unit", "relation", "trust", "mechanism", "guarantee", "seeded")
    other = [name for name in names if getattr(statement, name) != getattr(target, name)]
    then, now = dict(statement.parameters), dict(target.parameters)
    other += sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    result = None if other else TextDistribution.load(folder, features=plan.features)
    if result is None or result.labels != plan.labels:
        raise ParameterError(
            f"{str(folder)!r} has a distribution made with other arguments ({', '.join(other) or 'labels'} changed): "
            "pass the same ones to resume, draw from it unchanged (--distribution), or release a new one (--force "
            "without --resume), which spends budget again"
        )
    return result


def described_into(
    folder: Path,
    run: FolderRun,
    charges: Charges,
    read: Callable[[], Any],
    fit: Callable[[str], Any],
    *,
    force: bool = False,
) -> Any:
    """Release into a folder: reserve, compute, save, settle."""
    if charges.kind is not None and run.seeded:
        raise ParameterError("a seed voids the guarantee, and a ledger adds up guarantees: omit one of them")
    place, release_id = run.kind.place(folder, replace=force), new_release_id()

    def note(error: BaseException) -> None:
        charges.note_pending(error, release_id)
        if folder_is_of(folder, release_id):
            error.add_note(run.advice.format(folder=folder))

    with charged(charges, release_id, note=note):
        if charges.kind is not None:
            before = run.statement
            terms = {"unit": before.unit, "relation": before.relation, "mechanism": before.mechanism}
            charges.reserve(release_id, before.guarantee, read(), **terms)
        result = fit(release_id)
        charges.check(release_id)
        result.save(place, replace=force)
    return result


_DRAW_AGAIN = (
    "the distribution is released in {folder}: draw texts from it without further privacy loss (the same command "
    "with --resume, or --distribution)"
)


def write_corpus(release: Release, out: Path, writer: DocumentWriter) -> Release:
    """Write texts, labels and the privacy statement, completely or not at all."""
    with hashed_file(out) as stream:
        writer.write(_encoded(writer, release), stream)
        statement = release.statement.replace(data_sha256=stream.digest())
        write_statement(statement_path(out), statement)  # before the data, which must never exist without a statement
    return replace(release, statement=statement, outputs={**release.outputs, "out": out})


def _encoded(writer: DocumentWriter, release: Release) -> Iterator[bytes]:
    for start in range(0, len(release.texts), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        columns = {name: values[rows] for name, values in release.columns.items()}
        yield writer.encode(release.texts[rows], columns, row=start + 1, first=start == 0)
