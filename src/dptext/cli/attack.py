"""``dptext attack``: what an attacker gets from a private file, beside what a blind guess gets."""

from __future__ import annotations

import contextlib
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dptext.attacks import (
    AttackScore,
    attribute_inference,
    bayes_recovery,
    linkage,
    nearest_recovery,
    nearest_secrets,
    with_secrets_told,
)
from dptext.attacks.base import ATTACKERS
from dptext.attacks.membership import gaussian_ceiling
from dptext.attacks.neighbours import NO_ROW
from dptext.calibration.deniability import zipf_weights
from dptext.cli import options
from dptext.cli.attackers import Attackers
from dptext.cli.options import RedactedList
from dptext.embeddings.refinement import public_base
from dptext.errors import DataError, DptextError, ParameterError
from dptext.methods import bank as bank_attacks
from dptext.methods import words as word_attacks
from dptext.methods.files import FolderKind, Rows, folder_kind, read_rows
from dptext.methods.registry import as_seen_by, audit_release
from dptext.release.redaction import read_terms
from dptext.release.release import data_and_statement, read_statement
from dptext.sentences.origins import Likelihoods
from dptext.sentences.rewriter import BankRewriter
from dptext.synthesis.distribution import read_description
from dptext.text.tokens import fold
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors

attack = typer.Typer(
    name="attack",
    help="Attack a private file, and see what an attacker gets beside what a blind guess gets.",
    no_args_is_help=True,
)

_WIDTH = 79


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """A file and what was made from it, row by row."""

    original: Annotated[Path, typer.Argument(metavar="ORIGINAL", help="The file that was privatized.")]
    private: Annotated[Path, typer.Argument(metavar="PRIVATE", help="What came out, row by row.")]
    text: options.Text = "text"
    user: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Who wrote each row (a column of ORIGINAL), for the intervals.")
    ] = None
    vectors: options.MovedVectors = None
    redact_list: RedactedList = None
    seed: options.AnalysisSeed = None

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
    informed: Annotated[
        bool,
        typer.Option("--informed", help="Also the attacker who knows the mechanism (from the statement of PRIVATE)."),
    ] = False,
    top: Annotated[tuple[int, ...], typer.Option(help="How many candidates the attacker may name (repeat it).")] = (),
    bank: options.BankBehind = None,
    output: options.Output,
) -> None:
    """Which original does a private row belong to?

    One attacker looks at the layout only, which no word mechanism hides; one at the words; with --informed a third
    knows the mechanism and compares likelihoods. Of texts of a bank (--bank) nobody does better than by likelihoods.
    """
    rewriter = bank_attacks.rebuilt_bank(files.private, bank)
    if rewriter is not None and files.vectors is not None:
        raise ParameterError("the private texts are texts of a bank, without word vectors: leave --vectors out")
    before, after = files.read()
    how: dict[str, Any] = {"top": top or (1, 10), "people": before.people, "seed": files.seed}
    output.say(f"Linking {after.size:,} private rows to their originals ...")
    if rewriter is not None:
        scores, likely = bank_attacks.link_bank(before, after, rewriter, files.private, how)
        _answer(
            scores,
            did=(
                f"The attacker holds all {before.size:,} originals, the bank and the statement. For each private row "
                "they were ranked: "
                + ("by the number of sentences, which is shown, " if rewriter.unit == "sentence" else "")
                + "by the words that both share, and by how likely each was to become this row."
            ),
            meaning=[*_meaning_of_linkage(scores)[:-1], _BEST, *_meaning_of_draws(rewriter, likely)],
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
    _answer(
        scores,
        did=(
            f"The attacker holds all {before.size:,} originals. For each private row they were ranked: by the layout "
            "alone (how many words, where line breaks and commas stand, which the statement lists as exposed), by the "
            "words that both share" + (", and by how likely the mechanism makes each." if informed else ".")
        ),
        meaning=_meaning_of_linkage(scores),
        output=output,
    )


@attack.command("recovery")
@options.collected
def recovery_command(files: PairOptions, output: options.Output) -> None:
    """Which word stood where a private one stands?

    PRIVATE needs its statement beside it. The best possible attacker knows the mechanism and public word frequencies
    (1 / rank); a simple one takes every word as it stands.
    """
    before, after = files.read()
    mechanism = word_attacks.rebuilt(files.private, files.vectors)
    output.say(f"Recovering the words that {mechanism.name} replaced ...")
    true, observed, whose = word_attacks.aligned(before, after, mechanism, files.private)
    if len(set(whose)) < 2:
        raise DataError(f"{files.original.name}: expected words of at least two rows (or groups), got fewer")
    prior = zipf_weights(len(mechanism.vectors))
    points = np.asarray(mechanism.vectors.matrix)
    scores = [nearest_recovery(points[observed], points, true, prior=prior, people=whose, seed=files.seed)]
    channel = word_attacks.channel_of(mechanism)
    if channel is not None:
        scores.insert(0, bayes_recovery(channel, prior, true, observed, people=whose))
    _answer(
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
        meaning=_meaning_of_recovery(scores),
        output=output,
    )


@attack.command("attribute")
@options.collected
def attribute_command(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Private texts, or a .parquet of private vectors, with the labels.")
    ],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="The attribute that the attacker wants.")],
    user: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Whose row each is: nobody is in training and test at once.")
    ] = None,
    text: options.Text = "text",
    vector: Annotated[str, typer.Option(help="The column that holds the private vector (.parquet).")] = "vector",
    attacker: Attackers = (),
    folds: options.Folds = 5,
    seed: options.AnalysisSeed = None,
    output: options.Output,
) -> None:
    """What does private output still say about who wrote it?

    Attackers are trained on a part of the private rows with their labels, and judged on other people's rows.
    """
    rows = read_rows(file, text=text, columns=(label,), user=user, vector=vector)
    labels, kind = rows.columns[label], "texts" if rows.vectors is None else "vectors"
    output.say(f"Training attackers on {len(labels):,} private {kind} ...")
    names: Any = attacker or ATTACKERS
    scores = attribute_inference(rows.features, labels, people=rows.people, attackers=names, folds=folds, seed=seed)
    _answer(
        scores,
        did=(
            f"The attacker knew {label!r} for {folds - 1} of {folds} parts of the people, trained on their private "
            f"{kind} and named it for the others; each part had its turn."
        ),
        meaning=_meaning_of_attribute(scores, of_texts=_is_of_bank(file)),
        output=output,
    )


@attack.command("membership")
@options.collected
def membership_command(
    *,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A description of people's texts, or vectors learned from people.")
    ],
    members: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Texts of people who are in it (a part of its input).")
    ] = None,
    others: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Texts of people who had no part: twice as many, better.")
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that says who wrote a text.")] = None,
    text: options.Text = "text",
    seed: options.AnalysisSeed = None,
    output: options.Output,
) -> None:
    """Who was in it? An attacker who guesses the others beside what the noise allows to anybody.

    The files are their owner's: what is computed from them is not covered by the promise.
    """
    kind = folder_kind(folder) if folder.is_dir() else FolderKind.OTHER
    if kind is FolderKind.VECTORS:
        _ceiling_of_vectors(folder, output)
        return
    if kind is not FolderKind.DESCRIPTION:
        raise ParameterError(
            "nobody adds up to a row of texts: who is behind it is asked by dptext attack linkage ORIGINAL PRIVATE; "
            "membership is asked of a description (OUT.distribution) or of a folder of dptext embed"
        )
    if members is None or others is None:
        raise ParameterError(
            "say whose texts to tell apart: --members FILE (people who are in it) and --others FILE (people who had no "
            "part in it)"
        )
    from dptext.methods.corpus import CorpusExamination
    from dptext.methods.findings import ReportConfig

    statement = read_description(folder).statement
    if statement.unit == "user" and user is None:
        raise ParameterError("the promise is to a user: say which column names them, --user COLUMN")
    seeded: dict[str, Any] = {} if seed is None else {"seed": seed}
    asked = ReportConfig(
        private=folder, original=members, held_out=others, distribution=folder, user=user, text=text, **seeded
    )
    making = CorpusExamination(asked, folder, statement, output.say)
    scores = making.membership()
    if len(scores) < 2:
        raise DataError(making.notes[-1] if making.notes else "too few people to tell apart")
    best, *found = scores
    _answer(
        scores,
        did=(
            "For each person of both files the attacker made what they would have added to the description, took "
            "strangers for the rest of it, and asked how likely the released numbers are with them and without. Half "
            "of the others stood in for the strangers."
        ),
        meaning=[
            f"What the noise allows to anybody, with any knowledge: AUC {best.score.value:.3f}, on average over "
            "releases (chance: 0.500). One release has one noise, which all scores share: a single result may lie "
            "above it.",
            *(each.detail for each in found if each.detail),
            _STRONGER,
        ],
        output=output,
    )


def _ceiling_of_vectors(folder: Path, output: options.Output) -> None:
    """Of vectors that were learned: what their noise allows; the sum that an attack would start from is not there."""
    audit = audit_release(folder)[1]
    statement, verdict = audit.statement, audit.verdict
    said, epsilon, delta = statement.parameters, verdict.allowed, verdict.delta
    # words that were learned, or a level that was sent: they tell something too
    has_more = any(name.startswith("promise_of_") for name in said) or bool(said.get("epsilon_for_level"))
    if has_more:
        epsilon, delta = statement.epsilon, getattr(statement.guarantee, "delta", 0.0)
    right = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)) if epsilon < 500 else 1.0
    found: dict[str, Any] = {"accuracy_at_most": right, "auc_at_most": None}
    lines = [
        f"Somebody who knows all others and all that one {statement.unit} wrote tells whether they are in it rightly "
        f"in at most {right:.2%} of the cases, where half are (a blind guess: 50%): from epsilon {epsilon:.4g}."
    ]
    sigma, sensitivity = said.get("sigma"), said.get("sensitivity")
    if isinstance(sigma, float) and isinstance(sensitivity, float) and not has_more:
        ceiling = gaussian_ceiling(sigma, sensitivity=sensitivity)
        found = {"accuracy_at_most": ceiling.accuracy, "auc_at_most": ceiling.auc}
        lines = [
            f"Somebody who knows all others and all that one {statement.unit} wrote is right in {ceiling.accuracy:.1%} "
            f"of the cases, where half are in it (a blind guess: 50%), AUC {ceiling.auc:.3f} (chance: 0.500): the best "
            "there can be, from the noise that the statement names."
        ]
    why = (
        "The vectors were computed from a noisy sum, or in noisy steps, and the folder holds neither: an attack on the "
        "numbers that the noise was added to cannot be run on it, and all that is made of the vectors stays below this."
    )
    run = (
        f"Whether the noise is enough for the promise: dptext audit {folder.name}. What they tell of pairs of words: "
        f"dptext attack neighbours {folder.name} --pairs FILE."
    )
    lines = ["WHAT AN ATTACKER CAN GET AT MOST", *map(_filled, (*lines, why, run))]
    output.answer(lambda: {"attack": None, "why": why, **found}, lambda: typer.echo("\n".join(lines)))


@attack.command("neighbours")
@options.collected
def neighbours_command(
    *,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Word vectors learned from people.")],
    pairs: Path,
    name: Annotated[str, typer.Option(metavar="COLUMN", help="The column of the word that is asked for.")] = "name",
    secret: str = "secret",  # noqa: S107 (a column)
    kind: str | None = None,
    top: Annotated[int, typer.Option(help="How many of the nearest words the attacker may name.")] = 10,
    public: str | None = None,
    control: str | None = None,
    seed: options.AnalysisSeed = None,
    output: options.Output,
) -> None:
    """Which secret belongs to a name? The nearest one, by the vectors alone.

    The pairs are their owner's: what is computed from them is not covered by the promise. No word is printed.

    Args:
        pairs (FILE): Names and their secrets, a row each: planted, or known to stand in the texts.
        secret (COLUMN): The column of the word that must not be found.
        kind (COLUMN): Which secrets an attacker chooses among. Default: all are of one kind.
        public (NAME|PATH): What was known before. Default: the public vectors that the statement names.
        control (PATH): Vectors of the same texts without protection, on which the attack must succeed. Default: FOLDER
            with each secret moved to its name.
    """
    if not folder.is_dir() or folder_kind(folder) is not FolderKind.VECTORS:
        raise ParameterError(
            f"{folder.name or folder} is no folder of word vectors: name one that dptext embed or dptext.save_vectors "
            "wrote"
        )
    shared = load_vectors(folder)
    rows = read_rows(pairs, text=secret, columns=(name, *([] if kind is None else [kind])), vector=None)
    asked = _Pairs(
        names=[str(each) for each in rows.columns[name]],
        secrets=[str(each) for each in rows.texts],
        kinds=None if kind is None else [str(each) for each in rows.columns[kind]],
        how={"top": top, "seed": seed},
    )
    output.say(f"Asking {len(shared):,} words for the secrets of {rows.size:,} names ...")
    before = _known_before(shared, public)
    scores = asked.scores(shared, public=None if before is None else _same_words(shared, before))
    if before is not None:
        with contextlib.suppress(ParameterError):  # it knows none of these words
            scores += asked.scores(before, attack="neighbours (public vectors alone)")
    told = asked.told(shared) if control is None else load_vectors(control)
    checked = asked.scores(told, attack="neighbours (control: secrets told)")
    _answer(
        [*scores, *checked],
        did=(
            "The attacker had the vectors alone. For each name they took the secret whose vector is nearest, of all "
            "secrets of its kind, and the nearest of all words."
        ),
        meaning=_meaning_of_neighbours(scores, checked, shared),
        output=output,
    )


@dataclass(frozen=True, kw_only=True)
class _Pairs:
    """Names and their secrets."""

    names: list[str]
    secrets: list[str]
    kinds: list[str] | None
    how: dict[str, Any]

    def rows(self, vectors: WordVectors) -> tuple[list[int], list[int]]:
        return _rows_of(vectors, self.names), _rows_of(vectors, self.secrets)

    def scores(self, vectors: WordVectors, **more: Any) -> list[AttackScore]:
        names, secrets = self.rows(vectors)
        left_out = [vectors.vocabulary.unknown_row]
        how: dict[str, Any] = {"kinds": self.kinds, "left_out": left_out, **self.how, **more}
        return nearest_secrets(vectors.matrix, names, secrets, **how)

    def told(self, vectors: WordVectors) -> WordVectors:
        return WordVectors(vectors.words, with_secrets_told(vectors.matrix, *self.rows(vectors)))


def _rows_of(vectors: WordVectors, words: Sequence[str]) -> list[int]:
    found = (vectors.vocabulary.row(fold(word)) for word in words)
    return [NO_ROW if row == vectors.vocabulary.unknown_row else row for row in found]


def _known_before(shared: WordVectors, named: str | None) -> WordVectors | None:
    found = None if named is None else load_vectors(named)
    said = {} if shared.statement is None else shared.statement.parameters
    source, digest = said.get("public_vectors"), said.get("public_vectors_sha256")
    if named is None and isinstance(source, str):
        new = said.get("new_words")
        words = len(shared) - (new if isinstance(new, int) else 0)
        with contextlib.suppress(DptextError):
            tried = (load_vectors(source, limit=limit) for limit in (words - 1, words))
            found = next((each for each in tried if each.fingerprint == digest), None)
    if found is None:
        return None
    base = public_base(found.matrix, found.vocabulary.unknown_row)
    return WordVectors(found.words, base.astype(np.float32), source=found.source)


def _same_words(shared: WordVectors, before: WordVectors) -> Any:
    """(V, d) the public vectors of the words of FOLDER; 0 where there is none."""
    rows = np.array([before.vocabulary.row(word) for word in shared.words])
    found = before.matrix[rows].copy()
    found[rows == before.vocabulary.unknown_row] = 0.0
    return found


def _answer(scores: Sequence[AttackScore], *, did: str, meaning: list[str], output: options.Output) -> None:
    found = [{**asdict(score), "succeeded": score.succeeded, "advantage": score.advantage} for score in scores]
    lines = ["WHAT THE ATTACKER DID", _filled(did), "\nHOW WELL (95% intervals)"]
    for name in dict.fromkeys(score.attack for score in scores):
        lines.append(f"  {name}")
        for score in (score for score in scores if score.attack == name):
            mark = "better" if score.succeeded else "no better"
            value = f"{score.measure:<32} {score.score!s:<24}"
            lines.append(f"    {value} {mark} than {score.baseline:.3f} ({_short(score)})")
    lines += ["\nWHAT THIS MEANS", *map(_filled, meaning)]
    output.answer(lambda: {"did": did, "scores": found, "meaning": meaning}, lambda: typer.echo("\n".join(lines)))


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _short(score: AttackScore) -> str:
    return "blind guess" if score.baseline_name.startswith("guessing") else score.baseline_name


_BEST = (
    "Nobody who holds all these originals for equally likely does better on average than by likelihoods; who knows "
    "more may: what holds against them is the bound in the statement alone."
)
_STRONGER = "Another attacker may do better; what holds against all of them is the bound in the statement alone."


def _meaning_of_linkage(scores: Sequence[AttackScore]) -> list[str]:
    best = max((each for each in scores if "first guess" in each.measure), key=lambda each: each.score.value)
    lines = []
    if best.succeeded:
        lines.append(
            f"Of 1,000 private rows the attacker gives {1000 * best.score.value:,.0f} back to their originals at first "
            f"guess ({best.attack}); blindly it would be {1000 * best.baseline:,.1f}."
        )
    elif any(each.succeeded for each in scores):
        lines.append(
            "At first guess the attacker did no better than at random, but the right original stands nearer to the top "
            "of the list than it would by chance."
        )
    else:
        lines.append("The attacker did no better than at random.")
    layout = next((each for each in scores if each.attack == "linkage (layout alone)"), None)
    if layout is not None and layout.succeeded and layout.score.value > best.score.value / 2:
        lines.append(
            "The layout alone does much of it, at any epsilon: release texts cut to one length if rows must not be "
            "linked."
        )
    return [*lines, _STRONGER]


def _meaning_of_draws(rewriter: BankRewriter, likely: Likelihoods) -> list[str]:
    seen, wanted, agree = bank_attacks.drawn_as_said(rewriter, likely)
    if agree:
        return []
    return [
        f"What came out lies among the {rewriter.size:,} texts of the bank that are most similar to its original in "
        f"{seen.value:.1%} of the cases, where the statement promises {wanted:.1%}: ORIGINAL is not what PRIVATE was "
        "made from, or in another order, or the statement is not true."
    ]


def _meaning_of_recovery(scores: Sequence[AttackScore]) -> list[str]:
    best = max(scores, key=lambda each: each.score.value)
    if not best.succeeded:
        return ["Naming the most frequent word every time would have done as well.", _STRONGER]
    lines = [
        f"Of 100 words the attacker recovers {100 * best.score.value:,.0f}, a blind guess {100 * best.baseline:,.0f}. "
        "It is an average: words without near neighbours are recovered more often, and they are the telling ones."
    ]
    if "Bayes" in best.attack:
        lines.append("An attacker who also reads the sentence around a word does better.")
    elif len(scores) > 1:
        lines.append("These words are not as frequent as assumed: that is why taking them as they stand does as well.")
    return [*lines, _STRONGER]


def _meaning_of_neighbours(
    scores: Sequence[AttackScore], control: Sequence[AttackScore], shared: WordVectors
) -> list[str]:
    nearest, in_list, *_ = scores
    lines = [f"{nearest.detail}."]
    if not any(each.succeeded for each in control):
        lines.append("The control found nothing either: these are too few pairs to see anything.")
        return lines
    if nearest.succeeded or in_list.succeeded:
        lines.append(
            f"Of 100 names the nearest secret is theirs for {100 * nearest.score.value:,.0f}, blindly for "
            f"{100 * nearest.baseline:,.0f}."
        )
        known = next((each for each in scores if "public vectors alone" in each.attack), None)
        bits = next((each for each in scores if each.measure.startswith("bits")), None)
        if known is not None and bits is not None and not bits.succeeded:
            lines.append("Public vectors alone say as much: the texts of these people added nothing to it.")
    else:
        lines.append("The attacker did no better than at random, where the control shows that they could have.")
    if shared.statement is None:
        lines.append("Nothing is promised to who wrote the texts: these vectors have no statement.")
    else:
        lines.append(
            f"The promise is to one {shared.statement.unit}. What many of them tell is hidden by no promise to one: "
            "how many told a pair decides, and how much else they wrote."
        )
    return [*lines, _STRONGER]


def _is_of_bank(file: Path) -> bool:
    beside = data_and_statement(file)[1]
    return beside.exists() and bank_attacks.is_of_bank(read_statement(beside))


def _meaning_of_attribute(scores: Sequence[AttackScore], *, of_texts: bool = False) -> list[str]:
    best = max(
        (each for each in scores if each.measure == "accuracy"), key=lambda each: (each.succeeded, each.score.value)
    )
    if not any(each.succeeded for each in scores):
        return [
            f"No attacker learnt it: naming the most frequent answer is right in {best.baseline:.0%} of the cases.",
            _STRONGER,
        ]
    if not best.succeeded:
        other = max((each for each in scores if each.succeeded), key=lambda each: each.advantage)
        return [
            f"No attacker is right more often than the most frequent answer ({best.baseline:.0%}), but they tell "
            f"people apart: {other.measure} {other.score.value:.2f}, against {other.baseline:.2f} without looking.",
            _STRONGER,
        ]
    return [
        f"The best attacker names it for {100 * best.score.value:,.0f} of 100 rows, against "
        f"{100 * best.baseline:,.0f} without looking (papers print 1 - accuracy as 'empirical privacy': "
        f"{1 - best.score.value:.2f}; an attacker who sees nothing leaves {1 - best.baseline:.2f}).",
        (
            "The promise bounds what one text of a person tells. That texts about one thing come out as texts about "
            "it is what they are good for, and it tells of many people together. "
            if of_texts
            else "The promise of a word mechanism is about words: it does not forbid that a whole text tells who wrote "
            "it. "
        )
        + _STRONGER,
    ]
