"""``dptext attack``: attack success on a release, compared with the chance level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import typer

from dptext.cli import options
from dptext.cli.console import filled
from dptext.cli.options import argument, input_option
from dptext.methods.examination import AttackResult
from dptext.methods.registry import attack_release

attack = typer.Typer(
    name="attack", help="Attack a release, and compare the attack success with the chance level.", no_args_is_help=True
)

_USER = input_option(None, "Column that names the author, if authors have several rows.", "COLUMN", "--user")


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """A file and its private texts, row by row."""

    original: Path = argument(..., "The original texts.", "ORIGINAL")
    private: Path = argument(..., "The private texts, in the same order.", "PRIVATE")
    text: str = options.TEXT
    user: str | None = _USER
    vectors: str | None = options.RELEASE_VECTORS
    redact_list: Path | None = options.REDACTION_LIST

    def inputs(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "private"}


@attack.command()
def linkage(*, files: PairOptions, bank: Path | None = options.RELEASE_BANK, output: options.Output) -> None:
    """Link private rows to their originals.

    Compares layout and shared words. Against sentence replacement (--bank), likelihoods give the best possible attack.

    Example: dptext attack linkage notes.csv private.csv --text note
    """
    _attack("linkage", files.private, output, **files.inputs(), bank=bank)


@attack.command()
def recovery(files: PairOptions, output: options.Output) -> None:
    """Recover the original words from the private ones.

    PRIVATE needs its privacy statement. The best possible attack knows the mechanism and public word frequencies
    (1 / rank).

    Example: dptext attack recovery notes.csv private.csv --text note
    """
    _attack("recovery", files.private, output, **files.inputs())


@attack.command()
def attribute(
    *,
    file: Path = argument(..., "Private texts or vectors (.parquet), with a column of labels.", "FILE"),
    label: str = input_option(..., "Attribute that the attack infers.", "COLUMN"),
    text: str = options.TEXT,
    user: str | None = _USER,
    output: options.Output,
) -> None:
    """Infer an attribute of the authors from their private rows.

    Attacks are trained on some of the private rows with their labels, and tested on the rows of other people.

    Example: dptext attack attribute private.csv --label age --user author
    """
    _attack("attribute", file, output, label=label, text=text, user=user)


@attack.command()
def membership(
    *,
    folder: Path = argument(..., "A released distribution, or a folder of dptext embed.", "FOLDER"),
    members: Path | None = input_option(None, "Distribution: texts of people who are in it.", "FILE"),
    others: Path | None = input_option(None, "Distribution: texts of other people, twice as many if possible.", "FILE"),
    text: str = options.TEXT,
    user: str | None = _USER,
    output: options.Output,
) -> None:
    """Infer who took part in a release, and compare with the bound set by the noise.

    The guarantee does not cover the results: they are for the owner of the data.

    Example: dptext attack membership out.distribution --members in.csv --others new.csv --user author
    """
    _attack("membership", folder, output, original=members, held_out=others, text=text, user=user)


@attack.command()
def neighbours(
    *,
    folder: Path = argument(..., "Word vectors learned from private texts.", "FOLDER"),
    pairs: Path = input_option(..., "Names and their secrets: words in the columns name and secret.", "FILE"),
    output: options.Output,
) -> None:
    """Find the secret that belongs to a name by nearest neighbours in the word vectors.

    The pairs are known to be in the private texts. The guarantee does not cover the results: they are for the owner of
    the data.

    Example: dptext attack neighbours vectors --pairs pairs.csv
    """
    _attack("neighbours", folder, output, pairs=pairs)


def _attack(name: str, release: Path, output: options.Output, **inputs: Any) -> None:
    output.say(f"Attacking {release.name} ...")
    result = attack_release(name, release, **inputs, seed=options.ANALYSIS_SEED)

    def as_dict() -> dict[str, Any]:
        scores = [
            asdict(score) | {"succeeded": score.succeeded, "advantage": score.advantage} for score in result.scores
        ]
        return {"description": result.description, "scores": scores, "meaning": result.meaning, **result.bounds}

    output.print_result(as_dict, lambda: typer.echo("\n".join(_lines(result))))


def _lines(result: AttackResult) -> Iterator[str]:
    yield f"ATTACK\n{filled(result.description)}"
    if result.scores:
        yield "\nSUCCESS (95% intervals)"
    for attack_name, scores in groupby(result.scores, key=attrgetter("attack")):
        yield f"  {attack_name}"
        for score in scores:
            comparison = "better than" if score.succeeded else "no better than"
            baseline = "blind guess" if score.baseline_name.startswith("guessing") else score.baseline_name
            yield f"    {score.measure:<32} {score.score!s:<24} {comparison} {score.baseline:.3f} ({baseline})"
    yield "\n".join(["\nMEANING", *map(filled, result.meaning)])
