"""Files of texts through an encoder: a parquet file of private vectors and its statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dptext.display import ProgressOption
from dptext.errors import ParameterError
from dptext.io.atomic import HashedFile
from dptext.io.batches import Batch
from dptext.io.documents import OnError, PathLike, check_kept_columns
from dptext.io.formats import file_format
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import warn_unprotected
from dptext.release.release import Release, Tally
from dptext.release.run import Piece, Run, RunSettings, TextFiles, release_file, text_files
from dptext.representations.randomizer import Private

if TYPE_CHECKING:  # a device brings it, and more than a command that only names it should load
    from dptext.representations.device import DeviceEncoder


VECTOR = "vector"
"""The column of the private vectors."""

_ROW_GROUP, _NUMBERS_A_GROUP = 1 << 16, 1 << 22  # row groups of the file: at most this many rows, and 16 MiB
_INSTEAD = "convert the column, or do not keep it"


def encode_file(
    source: PathLike | Sequence[PathLike] | TextFiles,
    out: PathLike,
    encoder: DeviceEncoder,
    *,
    text: str = "text",
    keep: Sequence[str] = (),
    on_error: OnError = "fail",
    seed: int | None = None,
    resume: bool = False,
    force: bool = False,
    ledger: PathLike | None = None,
    user: str | None = None,
    suffix: str | None = None,
    encoding: str | None = None,
    separator: str | None = None,
    progress: ProgressOption = None,
) -> Release:
    """Encode every text of a file as a private vector in OUT.parquet, with a statement.

    The input is read in constant memory. An interrupted run leaves an existing output unchanged and continues with
    ``resume=True`` and the same noise, so that nothing is released twice.

    Args:
        source: one file or several (see `dptext.io.documents.read_documents`), whose rows go to one output; or
            `TextFiles`, with their own text, keep, on_error, suffix, encoding and separator.
        out: a .parquet file: the column ``vector``, (k,) float32 lists of a fixed size, then the kept columns.
        encoder: a fitted encoder, frozen (`dptext.DeviceEncoder`). A missing text (null) is encoded as the empty one.
        text, keep, on_error, suffix, encoding, separator: see `dptext.release.run.TextFiles`.
        seed, resume, force, ledger, user, progress: see `dptext.release.run.RunSettings`.

    **Guarantee** (unit: document, one text; substitution by any other text; local): the encoder's own, for each row.
    The noise of a block is keyed by the job's secret, the encoder's parameters, its place and its content
    (`dptext.privacy.randomness`), so that only an equal block of the same job repeats it. A person with k texts loses
    k times as much: `statement_for_user`; with ``user``, `Release.for_user` says for the owner alone what that is.

    Raises:
        DataError: a row cannot be read or written; it is named, its content never is.
        ParameterError: the output is no .parquet file, is there already, or is the input; a run was interrupted
            (``resume``, ``force``).
        RefusedError: the ledger refuses the release; the input has changed since the run was interrupted.
        StorageError: a file cannot be read or written.
    """
    out = Path(out)
    rows = text_files(
        source, text=text, keep=keep, on_error=on_error, suffix=suffix, encoding=encoding, separator=separator
    )
    check_output_columns(out, rows.text, rows.keep)

    def begin(key: NoiseKey, release_id: str) -> Run:
        return _Encoding(encoder, key, release_id, rows.keep)

    release = release_file(
        rows,
        out,
        begin,
        RunSettings(seed=seed, resume=resume, force=force, ledger=ledger, user=user, progress=progress),
        options={**encoder.parameters(), "mechanism": encoder.statement.mechanism, "output": "vectors"},
        is_assembled=True,
        missing="",
    )
    warn_unprotected(release.statement)
    return release


def vectors_in(path: PathLike) -> Iterator[Private]:
    """The private vectors of a file that `encode_file` wrote, as (n, k) float32 arrays, block by block."""
    from dptext.io.parquet import vector_batches

    return vector_batches(Path(path), VECTOR)


def encode_block(encoder: DeviceEncoder, key: NoiseKey) -> Callable[[int, Batch], Private]:
    """Return the function that encodes a block: the same vectors whenever and wherever it is done."""
    parameters = encoder.statement.settings_digest(encoder.parameters())

    def encode(place: int, block: Batch) -> Private:
        bits = key.stream(parameters, place, block.digest())
        return encoder.encode_with([text or "" for text in block.texts], bits)

    return encode


class _Encoding:
    """The texts of a file through an encoder (`dptext.release.run.Run`)."""

    def __init__(self, encoder: DeviceEncoder, key: NoiseKey, release_id: str, keep: Sequence[str]) -> None:
        self._encoder, self._keep = encoder, tuple(keep)
        self._statement = encoder.statement.replace(release_id=release_id, seeded=key.seeded)
        self._encode = encode_block(encoder, key)

    def work(self, blocks: Iterable[tuple[int, Batch]], *, row: int) -> Iterator[Piece]:
        from dptext.io.parquet import as_vectors, segment

        for place, block in blocks:
            vectors = self._encode(place, block)
            data = segment(
                as_vectors(VECTOR, vectors, block.columns, self._keep, row, instead=_INSTEAD), row, instead=_INSTEAD
            )
            yield Piece(place, data, len(vectors), block.rejects)
            row += len(vectors)

    def finish(self, blocks: Path, ends: Sequence[int], out: HashedFile) -> None:
        from dptext.io.parquet import assemble

        rows = min(_ROW_GROUP, max(1, _NUMBERS_A_GROUP // self._encoder.width))
        assemble(blocks, ends, out, rows=rows, instead=_INSTEAD)

    def statement_before(self) -> PrivacyStatement:
        return self._statement

    def statement(self, tally: Tally) -> PrivacyStatement:  # noqa: ARG002  nothing to count
        return self._statement


def check_output_columns(out: Path, text: str, keep: Sequence[str]) -> None:
    """Refuse, before anything is read, an output that cannot be."""
    if file_format(out).kind != ".parquet":
        raise ParameterError(f"vectors are written as parquet: expected a name that ends in .parquet, got {out.name!r}")
    check_kept_columns(text, keep)
    if VECTOR in keep:
        raise ParameterError(
            f"a kept column cannot be named {VECTOR!r}, the name of the private vectors: rename it first"
        )
