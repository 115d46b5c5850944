"""Releasing files from the command line: place after place, and what was done."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from dptext.cli.console import progress_bar, say, stopped_with_notes
from dptext.cli.outputs import Place, make_folder
from dptext.files.documents import NoDocumentsError
from dptext.release.release import Release, rejects_path, statement_path
from dptext.release.run import Progress

__all__ = ["print_summary", "release_all", "tell"]


def release_all(
    places: Sequence[Place],
    done: Collection[Path],
    release: Callable[[Place, Progress], Release],
    *,
    quiet: bool,
) -> list[Release]:
    """Release place after place, with a progress bar on a terminal.

    Args:
        places: where from and where to.
        done: the outputs that are there already, as they are to be; they are left.
        release: release one.
        quiet: say nothing.
    """
    releases: list[Release] = []
    with (
        stopped_with_notes(),
        progress_bar("privatizing", quiet=quiet) as bar,
        _told_what_is_done(releases, len(places)),
    ):
        for place in places:
            if place.is_in_folder:
                make_folder(place.out.parent)
            if place.out in done:
                say(f"{place.out} is there already: left as it is.", quiet=quiet)
                continue
            try:
                releases.append(release(place, bar.rows))
            except NoDocumentsError:
                if not place.is_in_folder:
                    raise
                say(f"{place.sources[0]} holds no documents: left out.", quiet=quiet)
    return releases


@contextmanager
def _told_what_is_done(releases: Sequence[Release], count: int) -> Iterator[None]:
    """An error at one file of many says that others are out already."""
    try:
        yield
    except BaseException as error:
        if releases:
            error.add_note(
                f"{len(releases)} of {count} files are released already; --resume leaves them as they are and goes on"
            )
        raise


def tell(release: Release, what: str, *, quiet: bool, note: str | None = None) -> None:
    """What was done, for the person who runs the command.

    Args:
        release: what was done.
        what: the rows are.
        quiet: say nothing.
        note: what is for the owner of the data alone.
    """
    out = release.out
    if release.resumed:
        say(f"Went on after {release.resumed:,} documents that were done already.", quiet=quiet)
    say(f"Wrote {release.documents:,} {what} to {out} and what was promised to {statement_path(out)}.", quiet=quiet)
    if release.skipped:
        listed = rejects_path(out)
        say(f"Left out {release.skipped:,} rows that could not be read: they are listed in {listed}.", quiet=quiet)
    if note is not None:
        say(f"Note (for you alone, it is in no statement): {note}.", quiet=quiet)
    say(f"Explained by: dptext explain {out}", quiet=quiet)


def print_summary(releases: Sequence[Release]) -> None:
    """The releases as JSON on standard output: an object for one, a list for several."""
    found: list[dict[str, Any]] = [
        {
            "documents": each.documents,
            "skipped": each.skipped,
            "out": str(each.out),
            "statement": json.loads(each.statement.to_json()),
        }
        for each in releases
    ]
    typer.echo(json.dumps(found[0] if len(found) == 1 else found, ensure_ascii=False))
