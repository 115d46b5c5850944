"""``dptext demo``: a bundled sample made private, what each word could have become, and what was promised."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from dptext.cli import options
from dptext.cli.console import print_json, stdout
from dptext.cli.privatize import promise_before_start
from dptext.errors import ParameterError, StorageError
from dptext.files.documents import read_documents
from dptext.own_files import replacing
from dptext.release.release import statement_path
from dptext.text.tokens import Kind, split
from dptext.vectors.formats import load_vectors
from dptext.words.privatize import privatize_file
from dptext.words.tem import TEM

__all__ = ["demo"]

_SHOWN = 8
_WORDS = ("playlist", "restaurant", "tomorrow", "brandie", "italian", "zaire")


@options.collected
def demo(
    *,
    epsilon: Annotated[float, typer.Option(help="Nats per unit of distance between two words.")] = 4.0,
    folder: Annotated[Path, typer.Option(help="Where the sample and its private form go.")] = Path("dptext-demo"),
    seed: options.Seed = None,
    output: options.Output,
) -> None:
    """Privatize a bundled sample on real word vectors; show the texts, the odds and the promise."""
    vectors = load_vectors("glove-6b-50d", limit=50_000)
    mechanism = TEM(vectors, epsilon=epsilon)
    sample, private = _place_sample(folder)
    output.say(promise_before_start(mechanism))
    statement = privatize_file(sample, private, mechanism, keep=("intent",), seed=seed, force=True).statement
    if output.as_json:
        print_json({"out": str(private), "statement": json.loads(statement.to_json())})
    elif not output.quiet:
        console = stdout()
        console.print(_before_after(sample, private))
        console.print(_odds(mechanism))
        typer.echo(f"\n{statement.explain()}\n")
        typer.echo(f"The sample is in {sample}, its private form in {private}, what was promised in")
        typer.echo(f"{statement_path(private)}. Now your own file:\n")
        typer.echo(f"  dptext privatize {sample} -o mine.jsonl --text text --epsilon 5 --keep intent")
        typer.echo("  dptext explain mine.jsonl")


def _place_sample(folder: Path) -> tuple[Path, Path]:
    sample, private = folder / "sample.jsonl", folder / "private.jsonl"
    bundled = (files("dptext.cli") / "sample" / "snips.jsonl").read_bytes()
    try:
        ours = not sample.exists() or sample.read_bytes() == bundled
        if not ours or (private.exists() and not sample.exists()):
            raise ParameterError(f"{str(folder)!r} holds files that are not the demo's: name another one with --folder")
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(sample) as stream:
            stream.write(bundled)
    except OSError as error:
        raise StorageError.of("write", sample, error) from None
    return sample, private


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", expand=True, pad_edge=False, box=SIMPLE_HEAD)


def _before_after(sample: Path, private: Path) -> Table:
    table = _table("Before and after")
    table.add_column("utterance (SNIPS, CC0)", ratio=1)
    table.add_column("private (new words in bold)", ratio=1)
    pairs = zip(read_documents(sample), read_documents(private), strict=True)
    for (before, after), _ in zip(pairs, range(_SHOWN), strict=False):
        known = {token.text for token in split(before.text or "")}
        shown = Text()
        for token in split(after.text or ""):
            new = token.kind is Kind.WORD and token.text not in known
            shown.append(token.text, style="bold" if new else "")
        table.add_row(before.text, shown)
    return table


def _odds(mechanism: TEM) -> Table:
    table = _table("What a word could have become")
    table.add_column("word")
    table.add_column("stays", justify="right")
    table.add_column("half of the rest among", justify="right")
    table.add_column("most likely replacements", ratio=1)
    vocabulary = mechanism.vectors.vocabulary
    for word in _WORDS:
        probabilities = mechanism.probabilities(word)
        row = vocabulary.row(word)
        stays, probabilities[row] = probabilities[row], 0.0
        order = np.argsort(-probabilities, kind="stable")
        half = int(np.searchsorted(np.cumsum(probabilities[order]), probabilities.sum() / 2)) + 1
        shown = [f"{vocabulary.words[other]} {probabilities[other]:.2%}" for other in order[:4]]
        name = word if word in vocabulary else f"{word} (not in the vocabulary)"
        table.add_row(name, f"{stays:.1%}", f"{half:,} words", ", ".join(shown))
    return table
