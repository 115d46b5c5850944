"""Files of texts through an encoder: a parquet file of private vectors and its statement.

What the file shows beside the vectors: the kept columns, how many rows there are, and their order. A missing text
(null) counts as the empty one and gets a vector like any other, so nothing shows which texts were missing. Where a
block ended is not to be seen (row groups have a fixed number of rows), and the statistics that parquet keeps of a
column are computed from vectors that are private already.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from dptext.errors import ParameterError
from dptext.files.blocks import Block
from dptext.files.documents import OnError, PathLike, check_kept_columns
from dptext.files.formats import extra, file_format
from dptext.files.parquet import assemble, segment
from dptext.files.parquet_vectors import as_vectors, vector_blocks
from dptext.own_files import HashedFile
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.release.release import Piece, Progress, is_released, release_file
from dptext.representations.randomizer import Private

__all__ = [
    "VECTOR",
    "DeviceLike",
    "VectorRelease",
    "check_output_columns",
    "encode_file",
    "is_encoded",
    "vectors_in",
]

VECTOR = "vector"
"""The column of the private vectors."""

_ROWS = 1 << 14  # encoded at once: a block of short texts has many rows
_ROW_GROUP, _NUMBERS_A_GROUP = 1 << 16, 1 << 22  # of the file: at most so many rows, and 16 MiB
_INSTEAD = "convert the column, or do not keep it"


class DeviceLike(Protocol):
    """Text to private vector, frozen: what a device holds (`dptext.representations.release.DeviceEncoder`)."""

    @property
    def width(self) -> int:
        """k, the numbers of a private vector."""
        ...

    @property
    def statement(self) -> PrivacyStatement:
        """What is promised for one text."""
        ...

    def parameters(self) -> Mapping[str, Parameter]:
        """All that decides about the output besides text and noise; what is large (matrices) by its digest."""
        ...

    def encode_with(self, texts: Sequence[str | None], bits: RandomBits) -> Private:
        """(n, k) float32 private vectors; equal bits, equal vectors."""
        ...


@dataclass(frozen=True)
class VectorRelease:
    """What `encode_file` returns.

    Attributes:
        out: the parquet file.
        statement: what was promised for one text; it stands in ``OUT.privacy.json``.
        documents: rows written.
        skipped: rows that could not be read and were left out; they are listed in ``OUT.rejects.jsonl``.
        resumed: rows that were done already when the run went on.
        width: k, the numbers of a vector.
    """

    out: Path
    statement: PrivacyStatement
    documents: int
    skipped: int
    resumed: int
    width: int


def encode_file(
    source: PathLike | Sequence[PathLike],
    out: PathLike,
    encoder: DeviceLike,
    *,
    text: str = "text",
    keep: Sequence[str] = (),
    on_error: OnError = "fail",
    seed: int | None = None,
    resume: bool = False,
    force: bool = False,
    ledger: PathLike | None = None,
    ledger_key: str | None = None,
    suffix: str | None = None,
    progress: Progress | None = None,
) -> VectorRelease:
    """Turn every text of a file into a private vector: OUT.parquet, with its statement beside it.

    The input is read in constant memory. Whatever stops the program leaves the old output, if there was one, and a job
    that goes on with ``resume=True``: the same noise for what was done, so that nothing is released twice.

    Args:
        source: one file or several (see `dptext.files.documents.read_documents`); their rows go to one output.
        out: a .parquet file: the column ``vector``, (k,) float32 lists of a fixed size, then the kept columns.
        encoder: a fitted encoder, frozen (`dptext.representations.release.DeviceEncoder`).
        text: the column that holds the text. A missing one (null) is encoded as the empty text.
        keep: columns to keep as they are (ids, say); they are exposed. All others are dropped.
        on_error: ``"fail"`` at the first row that cannot be read, or ``"skip"`` it.
        seed: None for cryptographic randomness; an integer for tests and papers only.
        resume: go on with an interrupted run, if there is one.
        force: replace an output, or throw an interrupted run away.
        ledger: the file of a ledger (`dptext.ledger.ledger.Ledger`): it charges every row before the work starts, or
            refuses the release. The input is then read twice.
        ledger_key: the column that says which row or person a row is, for the ledger; None: the text itself. The texts
            of one person add up: name the person's column.
        suffix: says the format of the input where its name does not (``".jsonl"``; standard input).
        progress: called with the reader and the number of rows done, block after block.

    **Guarantee** (unit: document, one text; substitution by any other text; local): the encoder's own, for each row.
    The noise of a block is keyed by the job's secret, the encoder's parameters, its place and its content
    (`dptext.privacy.randomness`), so that only an equal block of the same job repeats it. A person with k texts loses
    k times as much: `statement_for_user`.

    Raises:
        DataError: a row cannot be read or written; it is named, its content never is.
        ParameterError: the output is no .parquet file, is there already, or is the input; a run was interrupted
            (``resume``, ``force``).
        RefusedError: the ledger refuses the release; the input has changed since the run was interrupted.
        StorageError: a file cannot be read or written.
        MissingExtraError: pyarrow is not installed.
    """
    out = Path(out)
    check_output_columns(out, text, keep)
    released = release_file(
        source,
        out,
        lambda key, release_id: _Encoding(encoder, key, release_id, keep),
        options={**encoder.parameters(), "mechanism": encoder.statement.mechanism, "output": "vectors"},
        key=NoiseKey(seed),
        is_assembled=True,
        text=text,
        keep=keep,
        on_error=on_error,
        resume=resume,
        force=force,
        ledger=ledger,
        ledger_key=ledger_key,
        missing="",
        suffix=suffix,
        progress=progress,
    )
    return VectorRelease(
        out=out,
        statement=released.statement,
        documents=released.rows,
        skipped=released.skipped,
        resumed=released.resumed,
        width=encoder.width,
    )


def vectors_in(path: PathLike) -> Iterator[Private]:
    """The private vectors of a file that `encode_file` wrote, as (n, k) float32 arrays, block by block.

    Raises:
        StorageError: the file cannot be opened.
        DataError: it holds no such column, or was damaged.
        MissingExtraError: pyarrow is not installed.
    """
    return vector_blocks(Path(path), VECTOR)


def is_encoded(out: Path, encoder: DeviceLike, keep: Sequence[str]) -> bool:
    """Whether this very release is there: the private file, whole, and its statement with these parameters.

    Raises:
        ParameterError: something else is there.
    """
    statement = encoder.statement
    return is_released(out, statement.mechanism, statement.parameters, keep)


class _Encoding:
    """The texts of a file through an encoder (`dptext.release.release.Run`)."""

    def __init__(self, encoder: DeviceLike, key: NoiseKey, release_id: str, keep: Sequence[str]) -> None:
        self._encoder, self._key, self._keep = encoder, key, tuple(keep)
        self._statement = encoder.statement.replace(release_id=release_id, seeded=key.seeded)
        described = [encoder.statement.to_json(), dict(encoder.parameters())]
        self._parameters = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).digest()

    def promise(self) -> PrivacyStatement:
        return self._statement

    def work(self, blocks: Iterable[tuple[int, Block]], *, row: int) -> Iterator[Piece]:
        for place, block in blocks:
            bits = self._key.stream(self._parameters, place, block.digest())
            vectors = np.empty((len(block.texts), self._encoder.width), dtype=np.float32)
            for start in range(0, len(vectors), _ROWS):
                rows = slice(start, start + _ROWS)
                vectors[rows] = self._encoder.encode_with([each or "" for each in block.texts[rows]], bits)
            data = segment(
                as_vectors(VECTOR, vectors, block.columns, self._keep, row, instead=_INSTEAD), row, instead=_INSTEAD
            )
            yield Piece(place, data, len(vectors), {}, block.rejects)
            row += len(vectors)

    def finish(self, blocks: Path, ends: Sequence[int], out: HashedFile) -> None:
        rows = min(_ROW_GROUP, max(1, _NUMBERS_A_GROUP // self._encoder.width))
        assemble(blocks, ends, out, rows=rows, instead=_INSTEAD)

    def statement(self, facts: Sequence[Mapping[str, int]]) -> PrivacyStatement:  # noqa: ARG002  nothing to count
        return self._statement


def check_output_columns(out: Path, text: str, keep: Sequence[str]) -> None:
    """Refuse, before anything is read, an output that cannot be.

    Raises:
        ParameterError: no .parquet file; a kept column that is the text or is named like that of the vectors.
        MissingExtraError: pyarrow is not installed.
    """
    if file_format(out).kind != ".parquet":
        raise ParameterError(f"vectors are written as parquet: expected a name that ends in .parquet, got {out.name!r}")
    extra("pyarrow", "files", out.name)
    check_kept_columns(text, keep)
    if VECTOR in keep:
        raise ParameterError(
            f"a kept column cannot be named {VECTOR!r}, which is that of the private vectors: rename it first"
        )
