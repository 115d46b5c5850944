"""Inputs and outputs of a release: checks before any work, the guarantee before it, and the counts after it."""

from __future__ import annotations

import json
import shlex
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from dptext.cli import options
from dptext.cli.console import WIDTH, confirm, print_json
from dptext.errors import ParameterError
from dptext.io.batches import is_pipe
from dptext.io.documents import find_files, read_documents
from dptext.privacy.budgets import DeltaWarning, delta_too_large
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import came_out, filled, for_person, render
from dptext.release.job import Job
from dptext.release.release import MostTexts, Release, rejects_path, statement_for_largest_user, statement_path
from dptext.release.run import TextFiles, check_output
from dptext.text.identifiers import Column, columns_of

OWNER = "For you alone (it is in no statement):"

# -- before the work -----------------------------------------------------------------------------------------------


def open_files(rows: options.Rows, out: Path, run: options.Run, charge: options.Charge) -> TextFiles:
    """Return the opened input files; raise before any work if a file, a column or the path of OUT is unsuitable."""
    paths = find_files(rows.sources, any_format=rows.in_format is not None)
    if charge.ledger is not None:
        refuse_pipes(paths, "--ledger")
    check_output(paths, out, force=run.force, resume=run.resume, ledger=charge.ledger)
    files = TextFiles(paths, text=rows.text, keep=rows.kept, on_error=rows.on_error, **rows.layout)
    files.open(charge.user)  # counts rows without a user; the release continues with this reader
    if rows.unconfirmed and not (run.resume and Job.is_open(out)):
        check_kept(columns_of(paths, only=rows.unconfirmed, **rows.layout))
    return files


def refuse_pipes(paths: Sequence[Path], flag: str) -> None:
    """Raise if an input cannot be read twice."""
    if any(map(is_pipe, paths)):
        raise ParameterError(f"{flag} reads the input twice, which a pipe does not allow: name files as IN")


def check_columns(files: Sequence[Path], **reading: Any) -> None:
    """Raise if a file cannot be read, or a column is missing, by reading its first rows. Pipes are not checked."""
    if plain := [file for file in files if not is_pipe(file)]:
        read_documents(plain, **reading).close()


def check_kept(columns: Iterable[Column]) -> None:
    """Raise if a column to keep looks like an identifier."""
    identifying = [column for column in columns if column.identifies]
    if identifying:
        names = " ".join(f"--keep {shlex.quote(column.name)}" for column in identifying)
        confirmed = " ".join(f"--keep {shlex.quote(f'{column.name}!')}" for column in identifying)
        reasons = "; ".join(f"{column.name!r} ({', '.join(column.reasons)})" for column in identifying)
        raise ParameterError(
            f"{names} would be published unchanged next to the private texts, and looks like an identifier: {reasons}. "
            f"Omit it, or confirm it: {confirmed}"
        )


def say_coverage(read: Callable[[], Iterable[str]], public: Any, kind: str, output: options.Output) -> list[str]:
    """Warn if the public side of a release lacks words of the texts (private ones, or the pool's for "features")."""
    if output.quiet:
        return []
    from dptext.evaluation.coverage import coverage  # loads every encoder, which the help does not need

    texts = list(read())
    covered = coverage(texts, public)
    if covered is not None and covered.is_low:
        warning = _hanging(" ".join(filled("cli/templates/coverage.txt", kind=kind, covered=covered).split()))
        output.say(warning if kind == "features" else f"{OWNER}\n{warning}")
    return texts


def announce(guarantee: str, caution: str, run: options.Run, output: options.Output) -> None:
    """Print the guarantee before anything is written, and ask for confirmation if it does not protect."""
    output.say(guarantee)
    if not caution:
        return
    output.say(caution)
    if not (run.resume or confirm("Write it anyway?", yes=run.yes, quiet=output.quiet)):
        output.say("Nothing was written.")
        raise typer.Exit(1)


@contextmanager
def hidden_warnings() -> Iterator[None]:
    """Hide the warning about delta, which commands print before, and those of pyspark about versions of packages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        yield


def say_large_delta(delta: float, public_users: int | None, output: options.Output) -> None:
    problem = delta_too_large(delta, public_users=public_users)
    if problem is not None:
        output.say(f"Warning: {problem.replace('public_users=', '--public-users')}.")


def shell_argument(source: str) -> str:
    """Return an input as an argument of another command; a pipe cannot be read again."""
    return "FILE" if source == "-" else shlex.quote(source)


# -- after the work ------------------------------------------------------------------------------------------------


def print_release(
    release: Release, noun: str, output: options.Output, *, user: str | None = None, warning: str | None = None
) -> None:
    """Print the outputs of a release of rows, and counts of the private texts, which are in no statement."""
    if release.resumed:
        output.say(f"Resumed after {release.resumed:,} documents.")
    say_written(release.documents, noun, release.out, output, skipped=release.skipped)
    counts = came_out(release.statement, release.tally, release.documents)
    say_to_owner(counts, output, statement=release.statement, user=user, texts=release.most_texts, warning=warning)
    messages, users = release.documents - release.tally.missing, release.statement.parameters.get("shuffled_users")
    if isinstance(users, int) and messages < users:
        output.say(render("few_messages", statement=release.statement, messages=messages))
    output.say(f"To explain it: dptext explain {release.out}")
    if output.as_json:
        counted = {"documents": release.documents, "skipped": release.skipped}
        print_json(counted | written_as_dict(release.out, release.statement))


def say_written(documents: int, noun: str, out: Path, output: options.Output, *, skipped: int) -> None:
    output.say(f"Wrote {documents:,} {noun} to {out} and the privacy statement to {statement_path(out)}.")
    say_skipped(skipped, output, listed=f"; {rejects_path(out)} lists them")


def say_skipped(skipped: int, output: options.Output, *, listed: str = "") -> None:
    if skipped:
        output.say(f"Skipped rows that cannot be read or have no author: {skipped:,} (for you alone{listed}).")


def say_to_owner(
    counts: str,
    output: options.Output,
    *,
    statement: PrivacyStatement,
    user: str | None,
    texts: MostTexts | None,
    warning: str | None = None,
) -> None:
    """Print counts of the private texts, and the guarantee for all texts of the author with the most."""
    lines = [counts] if counts else []
    if user is not None:
        guarantee = None if texts is None else statement_for_largest_user(texts, statement)
        lines.append(for_person(guarantee, texts, user=user))
    if warning is not None:
        lines.append(_hanging(f"{warning[:1].upper()}{warning[1:]}."))
    if lines:
        output.say("\n".join([OWNER, *lines]))


def _hanging(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def written_as_dict(out: Path | str, statement: PrivacyStatement) -> dict[str, Any]:
    return {"out": str(out), "statement": json.loads(statement.to_json())}
