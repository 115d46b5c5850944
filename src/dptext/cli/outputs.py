"""Files of a release from the command line: where outputs go, the checks before any work, and the report afterwards."""

from __future__ import annotations

import json
import os
import shlex
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from dptext.cli import options
from dptext.cli.console import confirm, print_json, progress_bar, stopped_with_notes
from dptext.errors import ParameterError, StorageError
from dptext.io.batches import STANDARD, is_pipe
from dptext.io.documents import DocumentReader, NoDocumentsError, find_files, read_documents
from dptext.io.formats import SUFFIXES, file_format, written_format
from dptext.privacy.wording import came_out, for_person
from dptext.release.job import Job
from dptext.release.release import Release, Tally, promise_to, rejects_path, statement_path
from dptext.release.run import TextFiles, check_output
from dptext.text.identifiers import Column, columns_of


@dataclass(frozen=True)
class Place:
    """Input files, and the one output that their rows go to."""

    files: TextFiles
    out: Path
    is_in_folder: bool = False

    @property
    def sources(self) -> list[Path]:
        return [Path(each) for each in self.files.sources]


def places(rows: options.Rows, out: str, *, suffix: str | None = None) -> list[Place]:
    """Return one place for all inputs if OUT is a file or a pipe, and one per input if it is a folder."""
    files = find_files(rows.sources, any_format=rows.in_format is not None)
    target = Path(out)
    if rows.in_format is not None:
        file_format(Path(f"x{rows.in_format}"))
    together = TextFiles(paths=[path for path, _ in files], **rows.reading)
    if target == STANDARD:
        return [Place(together, target)]
    if not (out.endswith("/") or target.is_dir() or not target.suffix):
        written_format(target)
        return [Place(together, target)]
    if os.path.lexists(target) and not target.is_dir():
        raise ParameterError(f"{out!r} is no folder, and no file of a known format: choose another name for OUT")
    by_output: dict[Path, Path] = {}
    for path, relative in files:
        if target.resolve() in path.resolve().parents and any(Path(name).is_dir() for name in rows.sources):
            continue  # an earlier output in a folder within the folder of inputs
        if path == STANDARD:
            raise ParameterError("standard input cannot go to a folder: name a file as OUT")
        name = target / (relative if suffix is None else _renamed(relative, suffix))
        if not file_format(name).is_written:
            name = _renamed(name, ".jsonl")
        if name in by_output:
            raise ParameterError(f"two inputs would go to {str(name)!r}: process them one by one")
        by_output[name] = path
    if not by_output:
        raise ParameterError("all inputs lie in the output folder: choose another folder as OUT")
    return [Place(TextFiles(paths=path, **rows.reading), name, is_in_folder=True) for name, path in by_output.items()]


def _renamed(path: Path, suffix: str) -> Path:
    for ending in SUFFIXES:
        if path.name.lower().endswith(ending):
            path = path.with_name(path.name[: -len(ending)])
    return path.with_name(path.name + suffix)


def check_places(
    to: Sequence[Place],
    rows: options.Rows,
    run: options.Run,
    charge: options.Charge,
    check_out: Callable[[Path], object],
) -> None:
    """Raise before any work if an output cannot be written, or an input or one of its columns is missing."""
    every = [source for place in to for source in place.sources]
    for place in to:
        if place.out != STANDARD:
            check_out(place.out)
            force = run.force or run.resume
            check_output(every, place.out, force=force, ledger=charge.ledger, makes_folder=place.is_in_folder)
        if len(every) == 1 and not is_pipe(every[0]):
            place.files.open(charge.user)  # the release goes on with this reader
        elif not any(map(is_pipe, place.sources)):
            place.files.read(charge.user).close()
    begins = [source for place in to if not is_begun(place, run) for source in place.sources]
    if rows.unconfirmed and begins:
        check_kept(columns_of(begins, only=rows.unconfirmed, **rows.layout))


def check_columns(files: Sequence[Path], **reading: Any) -> None:
    """Raise if a file cannot be read, or a column is missing: read the first rows. A pipe can be read once only."""
    if plain := [file for file in files if not is_pipe(file)]:
        read_documents(plain, **reading).close()


def check_kept(columns: Iterable[Column]) -> None:
    """Raise if a column to keep looks like an identifier."""
    identifying = [column for column in columns if column.identifies]
    if identifying:
        listed = "; ".join(f"{column.name!r} ({', and '.join(column.reasons)})" for column in identifying)
        names = [shlex.quote(column.name) for column in identifying]
        confirmed = " ".join(f"--keep {shlex.quote(f'{column.name}!')}" for column in identifying)
        raise ParameterError(
            f"--keep {' --keep '.join(names)} would be published unchanged next to the private texts, and looks like "
            f"an identifier: {listed}. Leave it out, or confirm it: {confirmed}"
        )


def begin(promise: str, caution: str, *, yes: bool, asks: bool, output: options.Output) -> None:
    """Print the guarantee before anything is written, and ask whether to go on where it protects too little."""
    output.say(promise)
    if not caution:
        return
    output.say(caution)
    if asks and not confirm("Write it all the same?", yes=yes, quiet=output.quiet):
        output.say("Nothing was written.")
        raise typer.Exit(1)


def as_input(source: str) -> str:
    """Return an input as an argument of another command; what came through a pipe is gone."""
    return "FILE" if source == "-" else shlex.quote(source)


def is_begun(place: Place, run: options.Run) -> bool:
    """Return whether a resumed run was begun before, or has nothing left to do."""
    return run.resume and place.out != STANDARD and (Job.is_open(place.out) or place.out.exists())


def release_all(
    to: Sequence[Place],
    done: Collection[Path],
    release: Callable[[Place, Callable[[DocumentReader, int], None]], Release],
    noun: str,
    output: options.Output,
    *,
    user: str | None = None,
    warning: Callable[[Tally], str | None] = lambda _: None,
) -> None:
    """Release place after place, with a progress bar on a terminal, and print what was written."""
    releases: list[Release] = []
    with stopped_with_notes(), progress_bar("privatizing", quiet=output.quiet) as bar, _noted(releases, len(to)):
        for place in to:
            if place.is_in_folder:
                _make_folder(place.out.parent)
            if place.out in done:
                output.say(f"{place.out} is there already: left as it is.")
                continue
            try:
                releases.append(release(place, bar.rows))
            except NoDocumentsError:
                if not place.is_in_folder:
                    raise
                output.say(f"{place.sources[0]} holds no documents: left out.")
    for_one = "" if user is None else of_one(releases, user, uncounted=len(done))
    for made in releases:
        if made.resumed:
            output.say(f"Resumed after {made.resumed:,} documents.")
        say_written(made.documents, noun, made.out, output, skipped=made.skipped)
        counted = came_out(made.statement, made.tally, made.documents)
        say_to_owner(counted, warning(made.tally), output, for_one=for_one if len(releases) == 1 else "")
        output.say(f"Explained by: dptext explain {made.out}")
    if len(releases) != 1:
        say_to_owner("", None, output, for_one=for_one)
    if output.as_json:
        data = [_as_data(made) for made in releases]
        print_json(data[0] if len(data) == 1 else data)


@contextmanager
def _noted(releases: Sequence[Release], count: int) -> Iterator[None]:
    """Add to an error at one file of many that others are released already."""
    try:
        yield
    except BaseException as error:
        if releases:
            error.add_note(
                f"{len(releases)} of {count} files are released already; --resume leaves them as they are and goes on"
            )
        raise


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError.of("make", folder, error) from None


def of_one(releases: Sequence[Release], user: str, *, uncounted: int = 0) -> str:
    """Return the guarantee for all texts of the person with the most of them, for the owner of the data alone."""
    counted = [made.people for made in releases if made.people is not None]
    uncounted += len(releases) - len(counted)
    if not counted:
        return for_person(None, None, user=user) if uncounted else ""
    most = sum(counted[1:], counted[0]).most
    return for_person(promise_to(most, [made.statement for made in releases]), most, user=user, uncounted=uncounted)


def say_written(documents: int, noun: str, out: Path, output: options.Output, *, skipped: int) -> None:
    output.say(f"Wrote {documents:,} {noun} to {out} and the privacy statement to {statement_path(out)}.")
    say_skipped(skipped, out, output)


def say_skipped(skipped: int, out: Path, output: options.Output) -> None:
    if skipped:
        output.say(f"Skipped {skipped:,} unreadable rows; they are listed in {rejects_path(out)}.")


def say_to_owner(counted: str, note: str | None, output: options.Output, *, for_one: str = "") -> None:
    """Print what was counted in the private texts, which no statement holds."""
    lines = [line for line in (counted, for_one) if line]
    if note is not None:
        lines += textwrap.wrap(f"{note[:1].upper()}{note[1:]}.", 79, subsequent_indent="  ")
    if lines:
        output.say("\n".join(["For you alone (it is in no statement):", *lines]))


def _as_data(made: Release) -> dict[str, Any]:
    counts = {"documents": made.documents, "skipped": made.skipped}
    return counts | {"out": str(made.out), "statement": json.loads(made.statement.to_json())}
