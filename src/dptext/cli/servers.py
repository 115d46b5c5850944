"""``dptext contribute`` and ``dptext sum``: a release by two servers, of which neither sees a text."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from dptext.cli import options
from dptext.cli.console import print_json
from dptext.cli.options import argument, input_option, output_option
from dptext.errors import DataError, ParameterError, RefusedError, storage_errors
from dptext.io.artifacts import read_stored
from dptext.io.atomic import check_folder_around, hashed_file
from dptext.io.documents import find_files, read_documents
from dptext.privacy.randomness import RandomBits
from dptext.summary.describe import SummaryPlan
from dptext.synthesis.servers import FOLDER, ShareSum, TwoServerPlan, load_plan
from dptext.synthesis.synthesizer import SynthesisPlan

PLAN_OPTION = output_option(
    None, "Write the plan of a release by two servers, which devices and servers need; without IN.", "FOLDER"
)
SUMS_OPTION = input_option(None, "The sums of two servers (dptext sum), instead of IN.", "A B")
_PLAN = argument(..., "Folder of the plan (--save-plan).", "PLAN")
_KINDS: tuple[type[TwoServerPlan], ...] = (SynthesisPlan, SummaryPlan)
_SUFFIX = ".shares"


def save_plan(plan: TwoServerPlan, folder: Path, output: options.Output, *, force: bool) -> None:
    """Write a plan, and print its guarantee."""
    plan.save(folder, replace=force)
    statement = plan.server_statement()
    output.say(f"Wrote the plan to {folder}. Send it to devices and servers.")
    output.say(f"Guarantee of the release: {statement.guarantee}, per {statement.unit}, unless both servers collude.")
    output.say(f"To explain it: dptext explain {folder / 'privacy.json'}")
    if output.as_json:
        print_json({"plan": str(folder), "digest": plan.digest.hex()})


def combined(folders: tuple[Path, Path], kind: type[TwoServerPlan]) -> Any:
    """Return the release from the sums of both servers."""
    (plan, first), (_, second) = (load_plan(folder, kind) for folder in folders)
    if first is None or second is None:
        raise DataError("--sums names a plan without a sum: dptext sum writes sums")
    return plan.combine(first, second)


def contribute(
    *,
    plan: Path = _PLAN,
    texts: options.Inputs,
    user: str | None = options.USER,
    out: Path = output_option(..., "Folder for the messages: OUT/a and OUT/b, one for each server.", "OUT", "-o"),
    output: options.Output,
) -> None:
    """Turn the texts of a user into two messages, of which each alone says nothing about them.

    Without --user, IN has the texts of one user. Send OUT/a to one server and OUT/b to the other. Both together
    reveal the user's features. Each user contributes once per plan.

    Example: dptext contribute plan notes.csv -o messages
    """
    loaded, _ = load_plan(plan, *_KINDS)
    files = find_files(texts.sources, any_format=texts.in_format is not None)
    if user is not None and loaded.unit != "user":
        raise ParameterError("the plan protects documents, not users: omit --user")
    check_folder_around(out)
    reading: dict[str, Any] = {"text": texts.text, "user": user, "keep": loaded.columns, **texts.layout}
    with closing(read_documents(files, **reading)) as reader:
        several = user is not None or loaded.unit != "user"
        contributions = loaded.contributions(reader) if several else [loaded.contribution(reader)]
        messages = [contribution.shares() for contribution in contributions]
    if not messages:
        raise DataError("there are no documents: at least one is needed")
    name = f"{RandomBits().take(16).hex()}{_SUFFIX}"
    for server, parts in zip("ab", zip(*messages, strict=True), strict=True):
        with storage_errors("write", out / server):
            (out / server).mkdir(parents=True, exist_ok=True)
        with hashed_file(out / server / name, owner_only=True) as stream:
            stream.write(b"".join(parts))
    output.say(f"Wrote {len(messages):,} contributions to {out / 'a'} and {out / 'b'}: send each to its server alone.")
    if output.as_json:
        print_json({"contributions": len(messages), "out": str(out), "file": name})


def sum(  # noqa: A001  the name of the command
    *,
    plan: Path = _PLAN,
    messages: Path = argument(..., "Folder of the messages that this server received.", "FOLDER"),
    ids: Path | None = input_option(
        None, "List of ids of the other server: add up only messages that both servers received.", "FILE"
    ),
    out: Path | None = output_option(None, "Folder of the noisy sum, which may be published.", "OUT", "--out", "-o"),
    output: options.Output,
) -> None:
    """Add up the messages of one server, with its own noise.

    A server publishes one sum per plan: FOLDER notes it, and a second sum is refused. Without --out, the command prints
    the ids of the messages, a list for the other server.

    Example: dptext sum plan messages/a -o sum-a
    """
    loaded, _ = load_plan(plan, *_KINDS)
    total = ShareSum(loaded, None if ids is None else _read_ids(ids))
    paths = sorted(messages.glob(f"*{_SUFFIX}"))
    if not paths:
        raise DataError(f"{messages.name} has no messages (*{_SUFFIX}) of dptext contribute")
    for path in paths:
        total.add_file(path)
    if out is None:
        typer.echo("\n".join(known.hex() for known in sorted(total.ids)))
        return
    place, published = FOLDER.place(out), total.publish()  # first: both may raise
    _note_publication(messages, loaded, out)
    loaded.save(place, published)
    left = f", {total.left_out:,} repeated or without a partner" if total.left_out else ""
    output.say(f"Wrote the noisy sum of {len(total.ids):,} messages{left} to {out}. It may be published.")
    if output.as_json:
        print_json({"messages": len(total.ids), "left_out": total.left_out, "out": str(out)})


def _note_publication(messages: Path, plan: TwoServerPlan, out: Path) -> None:
    """Note in the folder of the messages that their sum is published; raise if it already was."""
    note = messages / f"{plan.digest.hex()[:16]}.published"
    with storage_errors("write", note):
        try:
            with note.open("x", encoding="utf-8") as stream:
                stream.write(f"{out.name}\n")
        except FileExistsError:
            raise RefusedError(
                "this server has already published a sum of this plan: a second one is another release. Make a new "
                f"plan. If the first was never written or shown, delete {str(note)!r}"
            ) from None


def _read_ids(path: Path) -> set[bytes]:
    try:
        return {bytes.fromhex(line) for line in read_stored(path).decode("ascii").split()}
    except ValueError:
        raise DataError(f"{path.name} is not a list of ids: write it with dptext sum PLAN FOLDER > FILE") from None
