"""Private files from the command line: which output each input has, what is checked before any work, file after file,
and what was done."""

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
from dptext.io.documents import DocumentReader, NoDocumentsError, find_files
from dptext.io.formats import SUFFIXES, file_format, written_format
from dptext.privacy.wording import came_out, for_person
from dptext.release.job import Job
from dptext.release.release import Release, Tally, promise_to, rejects_path, statement_path
from dptext.release.run import TextFiles, check_output
from dptext.text.identifiers import Column, columns_of


@dataclass(frozen=True)
class Place:
    """Inputs, and the one output that their rows go to."""

    files: TextFiles
    out: Path
    is_in_folder: bool = False

    @property
    def sources(self) -> list[Path]:
        return [Path(each) for each in self.files.sources]


def places(rows: options.Rows, out: str, *, out_format: str | None) -> list[Place]:
    """One place for all inputs if OUT names a file or a pipe, one for each if it names a folder."""
    files = find_files(rows.sources, any_format=rows.in_format is not None)
    target = Path(out)
    for suffix in (rows.in_format, out_format):
        if suffix is not None:
            file_format(Path(f"x{suffix}"))
    together = TextFiles(paths=[path for path, _ in files], **rows.reading)
    if target == STANDARD:
        return [Place(together, target)]
    if not (out.endswith("/") or target.is_dir() or not target.suffix):
        written_format(target)
        return [Place(together, target)]
    if os.path.lexists(target) and not target.is_dir():
        raise ParameterError(f"{out!r} is no folder, and no file of a known format: name another one as OUT")
    found: dict[Path, Path] = {}
    for path, relative in files:
        if target.resolve() in path.resolve().parents and any(Path(each).is_dir() for each in rows.sources):
            continue  # an earlier output in a folder within the folder of inputs
        if path == STANDARD:
            raise ParameterError("standard input cannot go to a folder: name a file")
        name = target / (relative if out_format is None else _renamed(relative, out_format))
        if not file_format(name).is_written:
            name = _renamed(name, ".jsonl")
        if name in found:
            raise ParameterError(f"two inputs would go to {str(name)!r}: privatize them one by one")
        found[name] = path
    if not found:
        raise ParameterError("all inputs lie in the folder of outputs: name another one")
    return [Place(TextFiles(paths=path, **rows.reading), name, is_in_folder=True) for name, path in found.items()]


def _renamed(path: Path, suffix: str) -> Path:
    for ending in SUFFIXES:
        if path.name.lower().endswith(ending):
            path = path.with_name(path.name[: -len(ending)])
    return path.with_name(path.name + suffix)


def check_places(
    to: Sequence[Place],
    run: options.Run,
    charge: options.Charge,
    check_out: Callable[[Path], object],
) -> None:
    """Let what can fail do so before the work starts; a pipe can be opened once only."""
    every = [each for place in to for each in place.sources]
    for place in to:
        if len(every) == 1 and not is_pipe(every[0]):
            place.files.open(charge.user)  # the release goes on with this reader
        elif not any(map(is_pipe, place.sources)):
            place.files.read(charge.user).close()
        if place.out == STANDARD:
            continue
        check_out(place.out)
        check_output(
            every, place.out, force=run.force or run.resume, ledger=charge.ledger, makes_folder=place.is_in_folder
        )


def check_columns(to: Sequence[Place], rows: options.Rows, run: options.Run) -> None:
    """Refuse to keep columns that look like identifiers, before a mechanism is loaded or a question asked."""
    begins = [each for place in to if not is_begun(place, run) for each in place.sources]
    if rows.in_doubt and begins:
        check_kept(columns_of(begins, only=rows.in_doubt, **rows.layout))


def check_kept(columns: Iterable[Column]) -> None:
    """Refuse to keep columns that look like identifiers, unless somebody said that they are meant."""
    found = [each for each in columns if each.identifies]
    if not found:
        return
    listed = "; ".join(f"{each.name!r} ({', and '.join(each.reasons)})" for each in found)
    meant = " ".join(f"--keep {shlex.quote(f'{each.name}!')}" for each in found)
    which, them, are = (
        ("this column as it is", "it", "it is")
        if len(found) == 1
        else ("these columns as they are", "them", "they are")
    )
    raise ParameterError(
        f"--keep would write {which}, beside texts that are to be private: {listed}. Leave {them} out, or say that "
        f"{are} meant: {meant} (or --keep-identifying)"
    )


def begin(
    promise: str, caution: str, *, yes: bool, asks: bool, output: options.Output, what: str = "Nothing was"
) -> None:
    """Say what is promised before anything is written, and ask whether to go on where it is not to be relied upon."""
    output.say(promise)
    if not caution:
        return
    output.say(caution)
    if asks and not confirm("Write it all the same?", yes=yes, quiet=output.quiet):
        output.say(f"{what} written.")
        raise typer.Exit(1)


def as_input(source: str) -> str:
    """An input as another command takes it; what came through a pipe is gone."""
    return "FILE" if source == "-" else shlex.quote(source)


def is_begun(place: Place, run: options.Run) -> bool:
    """Whether a run goes on that was begun before, or has nothing left to do."""
    return run.resume and place.out != STANDARD and (Job.is_open(place.out) or place.out.exists())


def release_all(
    to: Sequence[Place],
    done: Collection[Path],
    release: Callable[[Place, Callable[[DocumentReader, int], None]], Release],
    what: str,
    output: options.Output,
    *,
    user: str | None = None,
    warning: Callable[[Tally], str | None] = lambda _: None,
) -> None:
    """Release place after place, with a progress bar on a terminal, and say what was done."""
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
    to_one = "" if user is None else of_one(releases, user, uncounted=len(done))
    for each in releases:
        _say_what_was_done(each, what, output, warning(each.tally), to_one if len(releases) == 1 else "")
    if len(releases) != 1:
        say_to_owner("", None, output, to_one=to_one)
    if output.as_json:
        found = [_as_data(each) for each in releases]
        print_json(found[0] if len(found) == 1 else found)


@contextmanager
def _noted(releases: Sequence[Release], count: int) -> Iterator[None]:
    """An error at one file of many says that others are out already."""
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
    """What the person with the most texts is promised for all of theirs in some releases, for the owner alone."""
    counted = [each.people for each in releases if each.people is not None]
    uncounted += len(releases) - len(counted)
    if not counted:
        return for_person(None, None, user=user) if uncounted else ""
    most = sum(counted[1:], counted[0]).most
    return for_person(promise_to(most, [each.statement for each in releases]), most, user=user, uncounted=uncounted)


def _say_what_was_done(release: Release, what: str, output: options.Output, note: str | None, to_one: str) -> None:
    out = release.out
    if release.resumed:
        output.say(f"Went on after {release.resumed:,} documents that were done already.")
    output.say(f"Wrote {release.documents:,} {what} to {out} and what was promised to {statement_path(out)}.")
    if release.skipped:
        listed = rejects_path(out)
        output.say(f"Left out {release.skipped:,} rows that could not be read: they are listed in {listed}.")
    say_to_owner(came_out(release.statement, release.tally, release.documents), note, output, to_one=to_one)
    output.say(f"Explained by: dptext explain {out}")


def say_to_owner(counted: str, note: str | None, output: options.Output, *, to_one: str = "") -> None:
    """What was counted in the private texts, which no statement holds."""
    lines = [each for each in (counted, to_one) if each]
    if note is not None:
        lines += textwrap.wrap(f"{note[:1].upper()}{note[1:]}.", 79, subsequent_indent="  ")
    if lines:
        output.say("\n".join(["For you alone (it is in no statement):", *lines]))


def _as_data(release: Release) -> dict[str, Any]:
    counts = {"documents": release.documents, "skipped": release.skipped}
    return counts | {"out": str(release.out), "statement": json.loads(release.statement.to_json())}
