"""``dptext attack``: what an attacker gets from a private file, beside what a blind guess gets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dptext.attacks import (
    attribute_inference,
    bayes_recovery,
    linkage,
    nearest_recovery,
)
from dptext.calibration.deniability import zipf_weights
from dptext.cli import options
from dptext.cli.attack_results import (
    BEST,
    is_bank_file,
    meaning_of_attribute,
    meaning_of_draws,
    meaning_of_linkage,
    meaning_of_recovery,
    print_scores,
)
from dptext.cli.options import input_option, method_option
from dptext.errors import DataError, ParameterError
from dptext.methods import bank as bank_attacks
from dptext.methods import words as word_attacks
from dptext.methods.files import Rows, read_rows
from dptext.methods.registry import as_seen_by
from dptext.release.redaction import read_terms

attack = typer.Typer(
    name="attack",
    help="Attack a release, and compare the attack success with the chance level.",
    no_args_is_help=True,
)

_FOLDS = 5

UserOfRows = Annotated[
    str | None,
    input_option("--user", metavar="COLUMN", help="Column that names the author of several rows."),
]


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """A file and its private texts, row by row."""

    original: Annotated[Path, typer.Argument(metavar="ORIGINAL", help="The original texts.")]
    private: Annotated[Path, typer.Argument(metavar="PRIVATE", help="The private texts, in the same order.")]
    text: options.Text = "text"
    user: UserOfRows = None
    vectors: options.VectorsOfRelease = None
    redact_list: options.RedactedList = None

    def read(self) -> tuple[Rows, Rows]:
        before = read_rows(self.original, text=self.text, user=self.user, vector=None)
        after = read_rows(self.private, text=self.text, vector=None)
        if before.size != after.size:
            raise DataError(
                f"{self.private.name} must have as many rows as {self.original.name}, {before.size:,}, got "
                f"{after.size:,}: a private file is compared row by row with the one it was made from"
            )
        if before.size < 2:
            raise DataError(f"{self.original.name}: expected at least two rows to choose from, got {before.size}")
        words = [] if self.redact_list is None else read_terms(self.redact_list)
        return as_seen_by(before, self.private, words=words), after


@attack.command("linkage")
@options.collected
def linkage_command(
    *,
    files: PairOptions,
    bank: options.BankOfRelease = None,
    informed: Annotated[
        bool,
        method_option("--informed", help="Also an adversary who knows the mechanism, from the statement of PRIVATE."),
    ] = False,
    output: options.Output,
) -> None:
    """Link private rows to their originals.

    One attack uses the layout only, which no word mechanism hides, and one the words. With --informed, a third one
    compares likelihoods. Against sentence replacement (--bank), likelihoods are the best possible attack.

    Example: dptext attack linkage notes.csv private.csv --text note
    """
    rewriter = bank_attacks.rebuilt_bank(files.private, bank)
    if rewriter is not None and files.vectors is not None:
        raise ParameterError("the private texts are texts of a bank, without word vectors: leave --vectors out")
    before, after = files.read()
    how: dict[str, Any] = {"top": (1, 10), "people": before.people, "seed": options.ANALYSIS_SEED}
    output.say(f"Linking {after.size:,} private rows to their originals ...")
    if rewriter is not None:
        scores, likely = bank_attacks.link_bank(before, after, rewriter, files.private, how)
        print_scores(
            scores,
            did=(
                f"The attacker holds all {before.size:,} originals, the bank and the statement. For each private row "
                "they were ranked: "
                + ("by the number of sentences, which is shown, " if rewriter.unit == "sentence" else "")
                + "by the words that both share, and by how likely each was to become this row."
            ),
            meaning=[*meaning_of_linkage(scores)[:-1], BEST, *meaning_of_draws(rewriter, likely)],
            output=output,
        )
        return
    scores = [*word_attacks.by_layout(before, after, how), *linkage(before.texts, after.texts, **how)]
    if informed:
        mechanism = word_attacks.rebuilt(files.private, files.vectors)
        found = word_attacks.by_likelihood(before, after, mechanism, files.private, how)
        if found is None:
            raise ParameterError(f"what {mechanism.name} draws from has no formula: leave out --informed")
        scores += found
    print_scores(
        scores,
        did=(
            f"The attacker holds all {before.size:,} originals. For each private row they were ranked: by the layout "
            "alone (how many words, where line breaks and commas stand, which the statement lists as exposed), by the "
            "words that both share" + (", and by how likely the mechanism makes each." if informed else ".")
        ),
        meaning=meaning_of_linkage(scores),
        output=output,
    )


@attack.command("recovery")
@options.collected
def recovery_command(files: PairOptions, output: options.Output) -> None:
    """Recover the original words from the private ones.

    PRIVATE needs its statement beside it. The best possible attack knows the mechanism and public word frequencies
    (1 / rank); a simple one takes every private word for the original.

    Example: dptext attack recovery notes.csv private.csv --text note
    """
    before, after = files.read()
    mechanism = word_attacks.rebuilt(files.private, files.vectors)
    output.say(f"Recovering the words that {mechanism.name} replaced ...")
    true, observed, whose = word_attacks.aligned(before, after, mechanism, files.private)
    if len(set(whose)) < 2:
        raise DataError(f"{files.original.name}: expected words of at least two rows (or groups), got fewer")
    prior = zipf_weights(len(mechanism.vectors))
    points = np.asarray(mechanism.vectors.matrix)
    scores = [nearest_recovery(points[observed], points, true, prior=prior, people=whose, seed=options.ANALYSIS_SEED)]
    channel = word_attacks.channel_of(mechanism)
    if channel is not None:
        scores.insert(0, bayes_recovery(channel, prior, true, observed, people=whose))
    print_scores(
        scores,
        did=(
            f"The attacker saw {len(true):,} private words and named the original of each, one by one, without reading "
            "the sentence: "
            + (
                "once in the best possible way (knowing the mechanism, and that the r-th most frequent word is 1 / r "
                "as frequent as the first), and once by taking every word as it stands."
                if channel is not None
                else f"by taking every word as it stands. (What {mechanism.name} draws from has no formula: a better "
                "attacker exists, who would learn it from draws.)"
            )
        ),
        meaning=meaning_of_recovery(scores),
        output=output,
    )


@attack.command("attribute")
@options.collected
def attribute_command(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Private texts or vectors (.parquet), with a column of labels.")
    ],
    label: Annotated[str, input_option(metavar="COLUMN", help="Attribute that the attack infers.")],
    text: options.Text = "text",
    user: UserOfRows = None,
    output: options.Output,
) -> None:
    """Infer an attribute of the authors from their private rows.

    Attacks are trained on some of the private rows with their labels, and tested on the rows of other people.

    Example: dptext attack attribute private.csv --label age --user author
    """
    rows = read_rows(file, text=text, columns=(label,), user=user, vector="vector")
    labels, kind = rows.columns[label], "texts" if rows.vectors is None else "vectors"
    output.say(f"Training attackers on {len(labels):,} private {kind} ...")
    scores = attribute_inference(rows.features, labels, people=rows.people, folds=_FOLDS, seed=options.ANALYSIS_SEED)
    print_scores(
        scores,
        did=(
            f"The attacker knew {label!r} for {_FOLDS - 1} of {_FOLDS} parts of the people, trained on their private "
            f"{kind} and named it for the others; each part had its turn."
        ),
        meaning=meaning_of_attribute(scores, of_texts=is_bank_file(file)),
        output=output,
    )
