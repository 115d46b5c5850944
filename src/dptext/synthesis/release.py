"""A synthetic file out of private ones. The release is the description, a folder beside the output: the ledger
reserves, people's documents are added up, the folder appears, the ledger settles. The file of texts is made from that
folder and from public texts, as often as one likes, for nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from dptext.checks import path, whole
from dptext.errors import ParameterError, StorageError
from dptext.files.documents import DocumentReader, DocumentWriter, OnError, PathLike, read_documents
from dptext.files.streams import is_pipe
from dptext.own_files import HashedFile, replacing, scratch_folder
from dptext.privacy.guarantee import Guarantee
from dptext.privacy.statement import new_release_id
from dptext.release.charges import Charges
from dptext.release.release import Release, folder_is_of, statement_path, write_statement
from dptext.release.run import charged, check_output, end_earlier
from dptext.representations.encoders import Progress
from dptext.synthesis.distribution import Shares, TextDistribution, check_place
from dptext.synthesis.sampling import VARIETY
from dptext.synthesis.sources import Pool, Source
from dptext.synthesis.synthesizer import SynthesisPlan, Synthesizer

__all__ = [
    "Draw",
    "PrivateFiles",
    "PrivateRows",
    "check_columns",
    "described_into",
    "distribution_path",
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
    """Whose documents are described.

    Attributes:
        paths: one file or several.
        text: the column of the text.
        user: the column that says who wrote it; None: documents are protected, not people.
        on_error: ``"fail"`` at the first row that cannot be read, or ``"skip"`` it.
        suffix: says the format where names do not.
        watch: is shown the reader before it is read, for progress.
    """

    paths: PathLike | Sequence[PathLike]
    text: str = "text"
    user: str | None = None
    on_error: OnError = "fail"
    suffix: str | None = None
    watch: Callable[[DocumentReader], None] | None = None

    @property
    def sources(self) -> list[PathLike]:
        """The paths, as a list."""
        return [self.paths] if isinstance(self.paths, str | os.PathLike) else list(self.paths)

    def read(self, columns: Sequence[str]) -> DocumentReader:
        """The rows from the beginning, with these columns.

        Raises:
            StorageError, DataError, ParameterError, MissingExtraError: as `dptext.read_documents`.
        """
        check_columns(self.text, self.user, columns)
        return read_documents(
            self.sources,
            text=self.text,
            user=self.user,
            keep=tuple(columns),
            on_error=self.on_error,
            suffix=self.suffix,
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
        """Release a description of these files into a folder, charged to a ledger.

        Raises:
            As `synthesize_file`.
        """
        if ledger is not None and any(is_pipe(Path(each)) for each in self.sources):
            raise ParameterError("a ledger reads the input twice, and what went through a pipe is gone: name files")
        columns = plan.labels.columns
        charges = Charges(
            None if ledger is None else Path(ledger), self.user if ledger is not None else None, missing=""
        )
        seen: list[bytes] = []

        def fit(release_id: str) -> TextDistribution:
            reader = self.read(columns)
            if ledger is not None:
                reader.watch(lambda block: seen.append(block.identity()))
            if self.watch is not None:
                self.watch(reader)
            distribution = synthesizer.fit(reader, public=plan, release_id=release_id)
            charges.check_same(seen)
            return distribution

        return described_into(folder, synthesizer, plan, charges, lambda: self.read(columns), fit, force=force)


def check_columns(text: str, user: str | None, labels: Sequence[str]) -> None:
    """Whether text, user and labels stand in columns of their own.

    Raises:
        ParameterError: they do not.
    """
    if text in labels or user in labels:
        raise ParameterError("text, user and labels are columns of their own: name three different ones")


@dataclass(frozen=True, kw_only=True)
class Draw:
    """How a corpus is made from a description: all of it is public, and costs nothing.

    Attributes:
        n: how many texts.
        public: the pool that they are chosen from; None with a ``generator``.
        generator: a source that writes them.
        rounds: of the generator.
        variety, shares: as in `TextDistribution.sample`.
        cache: where vectors of pools are kept, as in `dptext.Synthesizer`.
        seed: of the choice; no part of the promise.
        progress: called with the number of texts encoded or written.
    """

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
        whole("n", self.n, least=1)
        if self.public is None and self.generator is None:
            raise ParameterError("say where texts come from: a public pool, or a generator")
        if self.generator is None:
            object.__setattr__(self, "public", Pool.of(self.public))
            if self.n > len(self.public):
                raise ParameterError(
                    f"n must be at most the number of texts in the pool, {len(self.public):,}, got {self.n:,}: ask for "
                    "fewer texts, or give a larger pool"
                )

    def of(self, distribution: TextDistribution) -> Release:
        """The corpus.

        Raises:
            ParameterError, DataError: as `TextDistribution.sample` and `TextDistribution.generate`.
        """
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
    """Describe the people of files by one noisy release, and write a corpus that is made from it.

    Args:
        source: whose texts: `PrivateFiles`, or rows of Spark (`dptext.spark.descriptions.PrivateFrame`).
        out: the synthetic file; its name says the format. Its statement stands beside it.
        synthesizer: with budget, labels and features.
        draw: how the corpus is made.
        public: public texts that features are fitted on, or a plan of the synthesizer; None: the pool of ``draw``.
        distribution: the folder of the description, which is the release; None: ``OUT.distribution``.
        ledger: the file of a ledger: it charges every person (or document), or refuses. The input is then read twice.
        resume: go on with the description that an earlier run released, if there is one, at no further cost.
        force: replace what is there. A new description is a new release, and costs its whole budget again.

    **Guarantee** (unit user or document; add/remove; central): that of `dptext.Synthesizer`, for description and texts
    together.

    Raises:
        DataError: a row cannot be read; it is named, its content never is.
        ParameterError: something is there already; an argument out of range; too few texts.
        RefusedError: the ledger refuses the release.
        StorageError: a file cannot be read or written.
    """
    out = path("out", out)
    folder = distribution_path(out) if distribution is None else path("distribution", distribution)
    labels = synthesizer.labels
    writer = DocumentWriter(out, text=source.text, keep=labels.columns)
    check_output(source.sources, out, force=force or resume, ledger=ledger)
    given = draw.public if public is None else public
    if given is None:
        raise ParameterError("features are fitted on public texts: give public= as well as a generator")
    plan = given if isinstance(given, SynthesisPlan) else synthesizer.plan(given)
    described = earlier(folder, plan) if resume else None
    if described is None:
        described = source.describe(folder, synthesizer, plan, ledger=ledger, force=force)
    try:
        return write_corpus(draw.of(described), out, writer)
    except BaseException as error:
        error.add_note(
            f"the description is released and stands in {folder}: make texts from it at no further cost (--resume, or "
            "--distribution)"
        )
        raise


def earlier(folder: Path, plan: SynthesisPlan) -> TextDistribution | None:
    """The description that an earlier run of this plan released; None where there is none.

    Raises:
        ParameterError: it is of another plan.
        DataError, StorageError: it cannot be read.
    """
    if not os.path.lexists(folder):
        return None
    found = TextDistribution.load(folder, features=plan.features)
    wanted = plan.promise
    if {**found.statement.parameters, **wanted.parameters} != dict(found.statement.parameters) or (
        found.labels != plan.labels or found.statement.guarantee != wanted.guarantee
    ):
        raise ParameterError(
            f"{str(folder)!r} holds a description made with other arguments: give the same ones to go on with it, draw "
            "from it as it is (--distribution), or make a new one (--force), which costs again"
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
    """Release a description into a folder, charged to a ledger: reserved, made, in place, settled.

    Args:
        folder, synthesizer, plan, force: as in `PrivateRows.describe`.
        charges: the ledger, if there is one.
        read: the rows that are charged.
        fit: makes the release of this name, of the rows that were charged.

    Raises:
        As `synthesize_file`.
    """
    if charges.kind is not None and synthesizer.seed is not None:
        raise ParameterError("a seed voids the promise, and a ledger counts promises: leave one of the two out")

    def is_out(name: str) -> bool:
        return folder_is_of(folder, name)

    end_earlier(folder, charges, is_out, restart=force)
    place = check_place(folder, replace=force)
    release_id = new_release_id()

    def promise() -> tuple[Guarantee, dict[str, Any]]:
        said = plan.promise
        return said.guarantee, {"unit": said.unit, "relation": said.relation, "mechanism": said.mechanism}

    with charged(place, charges, release_id, promise, read, is_out):
        distribution = fit(release_id)
        distribution.save(place, replace=force)
    return distribution


def write_corpus(release: Release, out: Path, writer: DocumentWriter) -> Release:
    """Write texts, their labels and their statement, whole or not at all.

    Raises:
        DataError: a text that the format cannot hold; its row is named.
        StorageError: it cannot be written.
    """
    texts, columns = release.texts, release.columns
    with replacing(out) as stream:
        _write(texts, columns, writer, stream)
        statement = release.statement.replace(data_sha256=stream.digest())
        write_statement(statement_path(out), statement)  # before the data: no data is ever without one
    return replace(release, statement=statement, made={**release.made, "out": out})


def _write(texts: Sequence[str | None], columns: Any, writer: DocumentWriter, stream: HashedFile) -> None:
    blocks = (
        writer.encode(
            texts[start : start + _ROWS_AT_ONCE],
            {name: values[start : start + _ROWS_AT_ONCE] for name, values in columns.items()},
            row=start + 1,
            first=start == 0,
        )
        for start in range(0, len(texts), _ROWS_AT_ONCE)
    )
    if not writer.is_assembled:
        for block in blocks:
            stream.write(block)
        return
    with scratch_folder() as scratch:
        part, ends = scratch / "blocks", [0]
        try:
            with part.open("xb") as file:
                for block in blocks:
                    ends.append(ends[-1] + file.write(block))
        except OSError as error:
            raise StorageError.of("write", part, error) from None
        writer.finish(part, ends[1:], stream)
