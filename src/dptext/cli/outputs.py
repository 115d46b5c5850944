"""Outputs of a release: the place of each, checks before any work, the guarantee before it, and the counts after it."""

from __future__ import annotations

import json
import os
import shlex
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from dptext.cli import options
from dptext.cli.console import WIDTH, confirm, print_json
from dptext.errors import ParameterError
from dptext.io.batches import STANDARD, is_pipe
from dptext.io.documents import NoDocumentsError, find_files, read_documents
from dptext.io.formats import SUFFIXES, file_format, written_format
from dptext.privacy.budgets import delta_too_large
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import came_out, for_person
from dptext.release.job import Job
from dptext.release.release import Release, Tally, rejects_path, statement_for_largest_user, statement_path
from dptext.release.run import TextFiles, check_output, is_released
from dptext.text.identifiers import Column, columns_of


@dataclass(frozen=True)
class Place:
    """Input files, and the one output that their rows go to."""

    files: TextFiles
    out: Path
    is_in_folder: bool = False

    @property
    def sources(self) -> list[Path]:
        return [Path(source) for source in self.files.sources]

    def is_begun(self, run: options.Run) -> bool:
        """True if a resumed run was begun before, or has nothing left to do."""
        return run.resume and self.out != STANDARD and (Job.is_open(self.out) or self.out.exists())


# -- before the work -----------------------------------------------------------------------------------------------


def find_places(rows: options.Rows, out: str, *, suffix: str | None = None) -> list[Place]:
    """Return one place for all inputs if OUT is a file or a pipe, and one per input if it is a folder."""
    files = find_files(rows.sources, any_format=rows.in_format is not None)
    target = Path(out)
    if rows.in_format is not None:
        file_format(Path(f"x{rows.in_format}"))
    if target == STANDARD or not (out.endswith("/") or target.is_dir() or not target.suffix):
        if target != STANDARD:
            written_format(target)
        return [Place(TextFiles(paths=[path for path, _ in files], **rows.reading), target)]
    if os.path.lexists(target) and not target.is_dir():
        raise ParameterError(f"{out!r} is neither a folder nor a file of a known format: choose another name for OUT")
    sources: dict[Path, Path] = {}
    for path, relative in files:
        if target.resolve() in path.resolve().parents and any(Path(name).is_dir() for name in rows.sources):
            continue  # an earlier output in a folder within the folder of inputs
        if path == STANDARD:
            raise ParameterError("standard input cannot go to a folder: name a file as OUT")
        place = target / (relative if suffix is None else _renamed(relative, suffix))
        if not file_format(place).is_written:
            place = _renamed(place, ".jsonl")
        if place in sources:
            raise ParameterError(f"two inputs would go to {str(place)!r}: process them one by one")
        sources[place] = path
    if not sources:
        raise ParameterError("all inputs lie in the output folder: choose another folder as OUT")
    return [Place(TextFiles(paths=path, **rows.reading), place, is_in_folder=True) for place, path in sources.items()]


def _renamed(path: Path, suffix: str) -> Path:
    for ending in SUFFIXES:
        if path.name.lower().endswith(ending):
            path = path.with_name(path.name[: -len(ending)])
    return path.with_name(path.name + suffix)


def check_places(
    places: Sequence[Place],
    rows: options.Rows,
    run: options.Run,
    charge: options.Charge,
    check_out: Callable[[Path], object],
) -> None:
    """Raise before any work if an output cannot be written, or an input or one of its columns is missing."""
    sources = [source for place in places for source in place.sources]
    for place in places:
        if place.out != STANDARD:
            check_out(place.out)
            force = run.force or run.resume
            check_output(sources, place.out, force=force, ledger=charge.ledger, makes_folder=place.is_in_folder)
        if len(sources) == 1 and not is_pipe(sources[0]):
            place.files.open(charge.user)  # the release continues with this reader
        elif not any(map(is_pipe, place.sources)):
            place.files.read(charge.user).close()
    new_sources = [source for place in places if not place.is_begun(run) for source in place.sources]
    if rows.unconfirmed and new_sources:
        check_kept(columns_of(new_sources, only=rows.unconfirmed, **rows.layout))


def check_columns(files: Sequence[Path], **reading: Any) -> None:
    """Raise if a file cannot be read, or a column is missing, by reading its first rows. Pipes are left alone."""
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
            f"Leave it out, or confirm it: {confirmed}"
        )


def announce(guarantee: str, caution: str, run: options.Run, output: options.Output, *, asks: bool) -> None:
    """Print the guarantee before anything is written, and ask for confirmation if it does not protect."""
    output.say(guarantee)
    if not caution:
        return
    output.say(caution)
    if asks and not confirm("Write it all the same?", yes=run.yes, quiet=output.quiet):
        output.say("Nothing was written.")
        raise typer.Exit(1)


def say_large_delta(delta: float, public_users: int | None, output: options.Output) -> None:
    problem = delta_too_large(delta, public_users=public_users)
    if problem is not None:
        output.say(f"Warning: {problem.replace('public_users=', '--public-users')}.")


def shell_argument(source: str) -> str:
    """Return an input as an argument of another command; a pipe cannot be read again."""
    return "FILE" if source == "-" else shlex.quote(source)


# -- the work, and its results -------------------------------------------------------------------------------------


def release_all(
    places: Sequence[Place],
    release: Callable[[Place], Release],
    noun: str,
    rows: options.Rows,
    run: options.Run,
    output: options.Output,
    *,
    statement: PrivacyStatement,
    user: str | None = None,
    warning: Callable[[Tally], str | None] = lambda _: None,
) -> None:
    """Release place after place, except for those that a resumed run finds done, and print what was written."""
    done = {place.out for place in places if run.resume and is_released(place.out, statement, rows.kept)}
    releases: list[Release] = []
    try:
        for place in places:
            if place.is_in_folder:
                place.out.parent.mkdir(parents=True, exist_ok=True)
            if place.out in done:
                output.say(f"{place.out} already exists and is left unchanged.")
                continue
            try:
                releases.append(release(place))
            except NoDocumentsError:
                if not place.is_in_folder:
                    raise
                output.say(f"{place.sources[0]} holds no documents and is left out.")
    except BaseException as error:
        if releases:
            count = f"{len(releases)} of {len(places)} files are released"
            error.add_note(f"{count}; add --resume to release only the others")
        raise
    for_author = "" if user is None else guarantee_for_author(releases, user, uncounted=len(done))
    for item in releases:
        if item.resumed:
            output.say(f"Resumed after {item.resumed:,} documents.")
        say_written(item.documents, noun, item.out, output, skipped=item.skipped)
        counts = came_out(item.statement, item.tally, item.documents)
        say_to_owner(counts, warning(item.tally), output, for_author=for_author if len(releases) == 1 else "")
        output.say(f"To explain it: dptext explain {item.out}")
    if len(releases) != 1:
        say_to_owner("", None, output, for_author=for_author)
    if output.as_json:
        data = [
            {"documents": item.documents, "skipped": item.skipped, **written_as_dict(item.out, item.statement)}
            for item in releases
        ]
        print_json(data[0] if len(data) == 1 else data)


def guarantee_for_author(releases: Sequence[Release], user: str, *, uncounted: int = 0) -> str:
    """Return the guarantee for all texts of the author with the most texts, for the owner of the data only."""
    counted = [item.people for item in releases if item.people is not None]
    uncounted += len(releases) - len(counted)
    if not counted:
        return for_person(None, None, user=user) if uncounted else ""
    texts = sum(counted[1:], counted[0]).most
    return for_person(
        statement_for_largest_user(texts, [item.statement for item in releases]), texts, user=user, uncounted=uncounted
    )


def say_written(documents: int, noun: str, out: Path, output: options.Output, *, skipped: int) -> None:
    output.say(f"Wrote {documents:,} {noun} to {out} and the privacy statement to {statement_path(out)}.")
    if skipped:
        output.say(f"Skipped {skipped:,} unreadable rows; they are listed in {rejects_path(out)}.")


def say_to_owner(counts: str, warning: str | None, output: options.Output, *, for_author: str = "") -> None:
    """Print counts of the private texts, which no statement holds."""
    lines = [line for line in (counts, for_author) if line]
    if warning is not None:
        lines += textwrap.wrap(f"{warning[:1].upper()}{warning[1:]}.", WIDTH, subsequent_indent="  ")
    if lines:
        output.say("\n".join(["For you alone (it is in no statement):", *lines]))


def written_as_dict(out: Path | str, statement: PrivacyStatement) -> dict[str, Any]:
    return {"out": str(out), "statement": json.loads(statement.to_json())}
