"""``dptext bank``: public texts in, a folder out from whose texts `dptext privatize --mechanism bank` draws."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dptext.cli import options
from dptext.cli.console import print_json, progress_bar, stopped_with_notes
from dptext.errors import ParameterError
from dptext.features.features import DEFAULT_IN_WORDS, NAMES
from dptext.features.pool import Pool
from dptext.noise.subset_selection import Profile, SubsetSelection, best_size
from dptext.sentences.bank import TextBank, check_place

_EPSILONS = (4.0, 8.0, 12.0)  # of one draw
_WIDTH = 22


@options.collected
def bank(
    *,
    public: Annotated[
        tuple[str, ...],
        typer.Argument(metavar="POOL...", help="Public files, folders or patterns, chosen without regard to IN."),
    ],
    out: Path,
    text: options.Text = "text",
    sentences: bool = False,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|PATH",
            help=f"By what texts are similar: {', '.join(NAMES)}, or the path of word vectors or of a sentence model. "
            f"Default: {DEFAULT_IN_WORDS}.",
        ),
    ] = None,
    thin: float | None = None,
    like: tuple[str, ...] = (),
    name: Annotated[str | None, typer.Option(help="What statement and card call the source of the texts.")] = None,
    licence: options.Licence = None,
    force: options.Force = False,
    output: options.Output,
) -> None:
    """Make a bank of public texts, which private ones become (privatize --mechanism bank), and say how near it comes.

    Nothing is promised to those who wrote POOL: its texts come out as they are.

    Args:
        out (--out -o FOLDER): A new folder (--force: or one that this command wrote).
        sentences: Cut documents into sentences, as private ones are cut. Without it each text is one of the bank.
        thin (EPSILON): Keep the texts that stand best for others at this epsilon of a draw: more similar, less varied.
        like (FILE): Public texts of the kind of the private ones, to see how near the bank comes to them (may be
            repeated). Never private ones.
    """
    target = check_place(out, replace=force)
    with stopped_with_notes(), progress_bar("reading public texts", quiet=output.quiet) as bar:
        documents = Pool([Path(each) for each in public], text=text, name=name, licence=licence)
        if any(target in path.resolve().parents for path in documents.files):
            raise ParameterError(f"{str(out)!r} holds a file of POOL, which would be deleted: choose another folder")
        sample = Pool([Path(each) for each in like], text=text) if like else None
        texts, sample = (each.sentences() if sentences and each is not None else each for each in (documents, sample))
        assert texts is not None
        count = len(texts)
        made = TextBank(texts, encoder=encoder, progress=lambda done: bar.step(min(done, count), count, "public texts"))
        if thin is not None:
            made = made.thinned(thin)
        made.save(out, replace=force)
        kinds = {"texts like the bank's": made.profile}
        if sample is not None:
            kinds["texts of the sample"] = made.profile_of(sample)
    for line in _said(made, documents, texts, out, sentences=sentences):
        output.say(line)
    for line in _table(made, kinds):
        output.say(line)
    output.say(f"Use it: dptext privatize IN -o OUT --mechanism bank --bank {shlex.quote(str(out))} --epsilon 8")
    if output.as_json:
        similarity = {name.replace("'s", "").replace(" ", "_"): _as_data(made, each) for name, each in kinds.items()}
        counts = {"texts": len(made), "repeated": texts.repeated, "empty": texts.empty}
        print_json({"out": str(out), **counts, **made.parameters(), "similarity": similarity})


def _said(made: TextBank, documents: Pool, texts: Pool, out: Path, *, sentences: bool) -> list[str]:
    lines = []
    if sentences:
        lines.append(f"Cut {len(documents):,} documents into {texts.given:,} sentences.")
    lines.append(
        f"Wrote {len(made):,} texts to {out}, similar by {made.features.name} ({made.features.dimension:,} numbers)."
    )
    left_out = {
        "that were there before": documents.repeated + (texts.repeated if sentences else 0),
        "empty": documents.empty,
        "that stand worst for others": len(texts) - len(made),
    }
    parts = [f"{count:,} {what}" for what, count in left_out.items() if count]
    if parts:
        lines.append(f"Left out: {', '.join(parts)}.")
    if made.licence is None:
        lines.append("Warning: no licence is named (--licence), and texts of the bank come out word for word.")
    return lines


def _table(made: TextBank, kinds: dict[str, Profile]) -> list[str]:
    """How similar what comes out is to what went in, by public texts alone."""
    heads = ["any text", "nearest", *(f"epsilon {epsilon:g}" for epsilon in _EPSILONS)]
    lines = ["", "Similarity of what comes out to what goes in (1: the same), by public texts alone:", ""]
    lines.append(" " * _WIDTH + "".join(f"{each:>11}" for each in heads))
    for name, profile in kinds.items():
        found = _as_data(made, profile)
        numbers = [found["any"], found["nearest"], *(each["similarity"] for each in found["draws"])]
        lines.append(
            f"  {name:<{_WIDTH - 2}}" + "".join(f"{each + 0.0:>11.2f}" for each in np.round(numbers, 2).tolist())
        )
    draws = _as_data(made, made.profile)["draws"]
    for name, cells in (
        ("one of so many", [f"{each['size']:,}" for each in draws]),
        ("in so many draws", [f"{each['share']:.0%}" for each in draws]),
    ):
        lines.append(f"  {name:<{_WIDTH - 2}}" + "".join(f"{each:>11}" for each in ("", "", *cells)))
    lines += ["", "Epsilon is that of one draw: of a document, divided by its sentences (--max-sentences)."]
    return lines


def _as_data(made: TextBank, profile: Profile) -> dict[str, Any]:
    draws = []
    for epsilon in _EPSILONS:
        size = min(best_size(epsilon, made.profile), profile.candidates - 1)
        share = size * SubsetSelection(len(made), size, epsilon).probabilities[0]
        draws.append({"epsilon": epsilon, "size": size, "share": share, "similarity": profile.expected(size, epsilon)})
    first, last = (float(profile.cumulative[each] / profile.ranks[each]) for each in (0, -1))
    return {"any": last, "nearest": first, "draws": draws}
