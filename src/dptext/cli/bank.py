"""``dptext bank``: make a bank of public texts, from which `dptext privatize --mechanism bank` draws."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dptext.cli import options
from dptext.cli.console import print_json, progress_bar, stopped_with_notes
from dptext.cli.options import method_option, output_option
from dptext.errors import ParameterError
from dptext.features.features import DEFAULT_IN_WORDS, NAMES
from dptext.features.pool import Pool
from dptext.noise.subset_selection import SubsetSelection, best_size
from dptext.sentences.bank import TextBank, check_place

_EPSILONS = (4.0, 8.0, 12.0)  # of one draw


@options.collected
def bank(
    *,
    public: Annotated[
        tuple[str, ...],
        typer.Argument(metavar="POOL...", help="Public files, folders or patterns, chosen without regard to IN."),
    ],
    text: options.Text = "text",
    out: Annotated[Path, output_option("--out", "-o", metavar="FOLDER", help="Output folder.")],
    name: Annotated[str | None, output_option(help="Name of the public texts in the statement and the card.")] = None,
    licence: options.Licence = None,
    force: options.Force = False,
    sentences: Annotated[
        bool, method_option("--sentences", help="Cut documents into sentences, as private documents will be cut.")
    ] = False,
    encoder: Annotated[
        str | None,
        method_option(
            metavar="NAME|PATH",
            help=f"Text similarity: {', '.join(NAMES)}, or the path of word vectors or of a sentence model.",
            show_default=DEFAULT_IN_WORDS,
        ),
    ] = None,
    output: options.Output,
) -> None:
    """Make a bank of public texts for sentence replacement.

    The table shows how similar replacements are to their originals. The texts of POOL are published unchanged; their
    authors are not protected.

    Example: dptext bank reviews.jsonl -o public --sentences --licence CC0-1.0
    """
    target = check_place(out, replace=force)
    with stopped_with_notes(), progress_bar("reading public texts", quiet=output.quiet) as bar:
        documents = Pool([Path(each) for each in public], text=text, name=name, licence=licence)
        if any(target in path.resolve().parents for path in documents.files):
            raise ParameterError(f"{str(out)!r} holds a file of POOL, which would be deleted: choose another folder")
        texts = documents.sentences() if sentences else documents
        count = len(texts)
        made = TextBank(texts, encoder=encoder, progress=lambda done: bar.step(min(done, count), count, "public texts"))
        made.save(out, replace=force)
    repeated, empty = documents.repeated + (texts.repeated if sentences else 0), documents.empty
    similarity = _similarity(made)
    if output.as_json:
        counts = {"texts": len(made), "repeated": texts.repeated, "empty": texts.empty}
        print_json({"out": str(out), **counts, **made.parameters(), "similarity": {"texts_like_the_bank": similarity}})
    if sentences:
        output.say(f"Cut {len(documents):,} documents into {texts.given:,} sentences.")
    size = f"{len(made):,} texts ({made.features.name}, {made.features.dimension:,} dimensions)"
    output.say(f"Wrote a bank of {size} to {out}.")
    if repeated or empty:
        output.say(f"Left out {repeated:,} repeated and {empty:,} empty texts.")
    if made.licence is None:
        output.say("Warning: --licence is missing, and texts of the bank are published word for word.")
    output.say("\n".join(_table(similarity)))
    output.say(f"Use it: dptext privatize IN -o OUT --mechanism bank --bank {shlex.quote(str(out))} --epsilon 8")


def _table(similarity: dict[str, Any]) -> list[str]:
    draws = similarity["draws"]
    numbers = np.round([similarity["any"], similarity["nearest"], *(draw["similarity"] for draw in draws)], 2) + 0.0
    rows = {
        "": ["any text", "nearest", *(f"epsilon {draw['epsilon']:g}" for draw in draws)],
        "similarity": [f"{number:.2f}" for number in numbers.tolist()],
        "nearest texts": ["", "", *(f"{draw['size']:,}" for draw in draws)],
        "share of draws": ["", "", *(f"{draw['share']:.0%}" for draw in draws)],
    }
    return [
        "\nSimilarity of a replacement to its original (1: equal), for texts like the bank's:\n",
        *(f"  {name:<16}" + "".join(f"{cell:>11}" for cell in cells) for name, cells in rows.items()),
        f"\nAt epsilon {draws[0]['epsilon']:g}, {draws[0]['share']:.0%} of draws fall among the "
        f"{draws[0]['size']:,} most similar texts. Epsilon is per draw: a document's",
        "epsilon is divided by its number of sentences (--max-sentences).",
    ]


def _similarity(made: TextBank) -> dict[str, Any]:
    profile, draws = made.profile, []
    for epsilon in _EPSILONS:
        size = min(best_size(epsilon, profile), profile.candidates - 1)
        share = size * SubsetSelection(len(made), size, epsilon).probabilities[0]
        draws.append({"epsilon": epsilon, "size": size, "share": share, "similarity": profile.expected(size, epsilon)})
    nearest, average = (float(profile.cumulative[index] / profile.ranks[index]) for index in (0, -1))
    return {"any": average, "nearest": nearest, "draws": draws}
