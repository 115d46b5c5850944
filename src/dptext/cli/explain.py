"""``dptext explain``: a privacy statement in words, compared with its data."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import typer

from dptext.cli import options
from dptext.cli.console import print_json
from dptext.errors import DataError
from dptext.methods.registry import Verification, releases_in, verify_release
from dptext.privacy.wording import strength_in_brief


@options.collected
def explain(*, file: options.ReleaseArgument, output: options.Output) -> None:
    """Explain a privacy statement, and verify that it belongs to the data.

    Example: dptext explain private.csv
    """
    files = releases_in(file)
    releases = [verify_release(path) for path in files or [file]]
    if output.as_json:
        data = [_as_dict(release) for release in releases]
        print_json({path.name: item for path, item in zip(files, data, strict=True)} if files else data[0])
    elif files and not output.quiet:
        for path, release in zip(files, releases, strict=True):
            typer.echo("\n".join([path.name, *map(_filled, _summary(release)), ""]))
        typer.echo(f"In full: dptext explain {files[0]}")
    elif not output.quiet:
        typer.echo(f"{releases[0].statement.explain()}\n\nTHE DATA\n{_filled(_verdict(releases[0]))}")
    changed = [release.data.name for release in releases if release.agrees is False]
    if changed:
        raise DataError(
            f"{', '.join(changed)} does not match its statement (the SHA-256 digest differs): the data was changed, or "
            "the statement belongs to another file"
        )


def _as_dict(release: Verification) -> dict[str, Any]:
    return {"statement": json.loads(release.statement.to_json()), "data_agrees": release.agrees}


def _summary(release: Verification) -> list[str]:
    statement = release.statement
    strength = strength_in_brief(statement, attacks_follow=False)[0]
    return [f"{statement.guarantee}, for a {statement.unit}", strength, _verdict(release)]


def _filled(text: str) -> str:
    return textwrap.fill(text, 79, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _verdict(release: Verification) -> str:
    name = release.data.name
    if release.is_folder:
        return f"{name}: verified, all files of the folder match its config.json."
    if release.agrees:
        return f"{name}: verified, its SHA-256 digest is in the statement. To test the guarantee, run `dptext audit`."
    if release.agrees is False:
        return f"{name}: NOT the data of this statement."
    if release.statement.data_sha256 is None:
        return "Not verified: the statement has no digest of the data."
    return f"Not verified: {name} is missing."
