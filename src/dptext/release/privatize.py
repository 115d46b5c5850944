"""Replace texts through a mechanism: in memory and in files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dptext.display import ProgressOption, progress_bar
from dptext.errors import ParameterError
from dptext.io.batches import Batch
from dptext.io.documents import DocumentWriter, PathLike, check_kept_columns
from dptext.io.tables import is_table, table_kind
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import warn_unprotected
from dptext.release.mechanism import Rewriter, TextMechanism, check_mechanism, rewrite_blocks
from dptext.release.release import Release, Tally, TextsOfPeople, add_columns
from dptext.release.run import Piece, Run, RunSettings, TextFiles, release_file

_logger = logging.getLogger(__name__)
_PROGRESS_STEP = 100  # texts


def privatize(
    texts: Any,
    mechanism: TextMechanism,
    *,
    text: str = "text",
    keep: Sequence[str] = (),
    user: str | None = None,
    seed: int | None = None,
    progress: ProgressOption = None,
) -> Release:
    """Replace every text through a mechanism: its words, or its sentences.

    Args:
        texts: strings or `Document` objects; None (no text) stays None. Or a table, which is not changed: a pandas or
            polars DataFrame, a pyarrow Table or a datasets.Dataset.
        mechanism: replaces the texts, such as `dptext.TEM`.
        text: text column of a table. A missing text (None, NaN, null) stays missing.
        keep: columns of a table to keep; their values are released unchanged. All others are dropped, and so
            are the metadata of the table (see `dptext.strip_metadata`). The commands
            refuse columns that look like identifiers; this function does not. `dptext.text.identifiers.look_at` finds
            such columns.
        user: column of a table that names the author of a text. The guarantee is per text, and the losses of a user's
            texts add up: `Release.most_texts` and `Release.for_user` show, to the owner alone, how many texts one user
            has and the guarantee for all of them.
        seed: None for cryptographic randomness; an integer for tests and papers only (the statement says so).
        progress: a progress bar (see `dptext.display`), or a function of the number of finished texts.

    Returns:
        A release with its ``texts``, or with a ``table`` of the same kind as the input.

    **Guarantee** (unit document, substitution, local): as in the returned statement, between the documents that it
    names (of equal layout, where words are replaced). The losses of a document's parts add up, and the statement is for
    the longest document.

    Raises:
        DataError: an entry is not a string (its position is named); a kept column has an unknown type.
        ParameterError: an unknown kind of table; a missing column; the text column is kept; not a text mechanism.

    >>> import dptext, pyarrow
    >>> vectors = dptext.load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> mechanism = dptext.TEM(vectors, epsilon=200.0, threshold=0.2)
    >>> privatize(["My cat, aged 7!"], mechanism).texts
    ['<unk> cat, <unk> <number>!']
    >>> pets = pyarrow.table({"text": ["my cat", None], "stars": [5, 1], "name": ["A", "B"]})
    >>> privatize(pets, mechanism, keep=["stars"]).table.to_pydict()
    {'text': ['<unk> cat', None], 'stars': [5, 1]}
    """
    rewriter = Rewriter(mechanism, seed=seed)
    people: TextsOfPeople | None = None
    if is_table(texts):
        check_kept_columns(text, keep)
        kind = table_kind(texts)
        for column in (text, *keep, *(() if user is None else (user,))):
            kind.check_column(column)
        kept = {name: kind.rebuilt(name) for name in keep}
        with progress_bar(progress, "texts", len(texts)) as done:
            private = list(_counted(rewriter.rewrite(kind.read(text)), done))
        fields = {"table": kind.table({text: kind.texts(private), **kept})}
        if user is not None:
            people = TextsOfPeople(user)
            people.add(kind.read(user), private)
    elif keep or user is not None:
        option = "keep" if keep else "user"
        raise ParameterError(f"{option} names columns of a table, got texts: pass a table, or omit {option}")
    else:
        with progress_bar(progress, "texts", len(texts) if isinstance(texts, Sized) else None) as done:
            private = list(_counted(rewriter.rewrite(texts), done))
        fields = {"texts": private}
    warning = rewriter.warning()
    if warning is not None:
        _logger.warning(warning)
    statement = add_columns(rewriter.statement(), keep)
    warn_unprotected(statement)
    return Release(statement=statement, documents=len(private), tally=rewriter.tally, people=people, outputs=fields)


def _counted(values: Iterator[str | None], done: Callable[[int], object]) -> Iterator[str | None]:
    for count, value in enumerate(values, 1):
        if not count % _PROGRESS_STEP:
            done(count)
        yield value


# -- files --------------------------------------------------------------------------------------------------


def privatize_file(
    source: PathLike | Sequence[PathLike] | TextFiles,
    out: PathLike,
    mechanism: TextMechanism,
    *,
    seed: int | None = None,
    resume: bool = False,
    force: bool = False,
    processes: int = 1,
    ledger: PathLike | None = None,
    user: str | None = None,
    progress: ProgressOption = None,
    shuffled: int | None = None,
) -> Release:
    """Replace every text of a file; write the private file, its statement and a list of skipped rows, if any.

    The input is read in constant memory. If the program stops for any reason, an existing output is unchanged, and
    ``resume=True`` continues the run. Finished rows keep their noise, so that nothing is released twice.

    Args:
        source: one file or several with texts in the column ``text``, whose rows go to one output; or `TextFiles` with
            another column, columns to keep, a format or an encoding.
        out: the private file, in the format of its name.
        mechanism: replaces the texts, as in `privatize`.
        seed, resume, force, processes, ledger, user, progress, shuffled: see `dptext.release.run.RunSettings`.

    **Guarantee** (unit document, substitution, local): as in the statement, between the documents that it names. The
    losses of a user's texts add up: with ``user``, `Release.for_user` has the sum, for the owner alone.

    Raises:
        DataError: a row cannot be read or written; the error names the row, never its content.
        ParameterError: the output exists already, or is the input; a run was interrupted (``resume``, ``force``).
        RefusedError: the ledger refuses the release; the input has changed since the run was interrupted.
        StorageError: a file cannot be read or written; a process died.
    """
    check_mechanism(mechanism)
    out, rows = Path(out), TextFiles.of(source)
    run: dict[str, Any] = {"seed": seed, "resume": resume, "force": force, "processes": processes, "ledger": ledger}
    settings = RunSettings(**run, user=user, progress=progress, shuffled=shuffled)
    writer = DocumentWriter(out, text=rows.text, keep=rows.keep)
    # stored with the secret of the noise, in a file that only its owner can read
    options = {
        **mechanism.parameters(),
        **mechanism.settings_of_owner(),
        "mechanism": mechanism.name,
        "output": asdict(writer.format),
    }

    def begin(key: NoiseKey, release_id: str) -> Run:
        return _Rewriting(Rewriter(mechanism, key=key, release_id=release_id), writer, processes)

    release = release_file(rows, out, begin, settings, options=options, is_assembled=writer.format.is_assembled)
    warn_unprotected(release.statement)
    return release


class _Rewriting:
    """The `Run` that replaces the texts of a file through a mechanism."""

    def __init__(self, rewriter: Rewriter, writer: DocumentWriter, processes: int) -> None:
        self._rewriter, self._processes = rewriter, processes
        self._encode = writer.encode
        self.finish = writer.finish

    def work(self, blocks: Iterable[tuple[int, Batch]], *, row: int) -> Iterator[Piece]:
        for place, block, (private, tally) in rewrite_blocks(self._rewriter, blocks, processes=self._processes):
            data = self._encode(private, block.columns, row=row, first=place == 0)
            yield Piece(place, data, len(private), block.rejects, tally)
            row += len(private)

    def statement_before(self) -> PrivacyStatement:
        return self._rewriter.statement_before()

    def statement(self, tally: Tally) -> PrivacyStatement:
        self._rewriter.tally = tally
        return self._rewriter.statement()
