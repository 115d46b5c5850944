"""The results of attacks: the table, and what it means."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from dptext.attacks import (
    AttackScore,
)
from dptext.cli import options
from dptext.methods import bank as bank_attacks
from dptext.methods.bank import is_of_bank
from dptext.release.release import data_and_statement, read_statement
from dptext.sentences.origins import Likelihoods
from dptext.sentences.rewriter import BankRewriter
from dptext.vectors.word_vectors import WordVectors

_WIDTH = 79


def print_scores(scores: Sequence[AttackScore], *, did: str, meaning: list[str], output: options.Output) -> None:
    found = [{**asdict(score), "succeeded": score.succeeded, "advantage": score.advantage} for score in scores]
    lines = ["WHAT THE ATTACKER DID", filled(did), "\nHOW WELL (95% intervals)"]
    for name in dict.fromkeys(score.attack for score in scores):
        lines.append(f"  {name}")
        for score in (score for score in scores if score.attack == name):
            mark = "better" if score.succeeded else "no better"
            value = f"{score.measure:<32} {score.score!s:<24}"
            lines.append(f"    {value} {mark} than {score.baseline:.3f} ({_short(score)})")
    lines += ["\nWHAT THIS MEANS", *map(filled, meaning)]
    output.answer(lambda: {"did": did, "scores": found, "meaning": meaning}, lambda: typer.echo("\n".join(lines)))


def filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _short(score: AttackScore) -> str:
    return "blind guess" if score.baseline_name.startswith("guessing") else score.baseline_name


BEST = (
    "Nobody who holds all these originals for equally likely does better on average than by likelihoods; who knows "
    "more may: what holds against them is the bound in the statement alone."
)
STRONGER = "Another attacker may do better; what holds against all of them is the bound in the statement alone."


def meaning_of_linkage(scores: Sequence[AttackScore]) -> list[str]:
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
    return [*lines, STRONGER]


def meaning_of_draws(rewriter: BankRewriter, likely: Likelihoods) -> list[str]:
    seen, wanted, agree = bank_attacks.drawn_as_said(rewriter, likely)
    if agree:
        return []
    return [
        f"What came out lies among the {rewriter.size:,} texts of the bank that are most similar to its original in "
        f"{seen.value:.1%} of the cases, where the statement promises {wanted:.1%}: ORIGINAL is not what PRIVATE was "
        "made from, or in another order, or the statement is not true."
    ]


def meaning_of_recovery(scores: Sequence[AttackScore]) -> list[str]:
    best = max(scores, key=lambda each: each.score.value)
    if not best.succeeded:
        return ["Naming the most frequent word every time would have done as well.", STRONGER]
    lines = [
        f"Of 100 words the attacker recovers {100 * best.score.value:,.0f}, a blind guess {100 * best.baseline:,.0f}. "
        "It is an average: words without near neighbours are recovered more often, and they are the telling ones."
    ]
    if "Bayes" in best.attack:
        lines.append("An attacker who also reads the sentence around a word does better.")
    elif len(scores) > 1:
        lines.append("These words are not as frequent as assumed: that is why taking them as they stand does as well.")
    return [*lines, STRONGER]


def meaning_of_neighbours(
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
    return [*lines, STRONGER]


def is_bank_file(file: Path) -> bool:
    beside = data_and_statement(file)[1]
    return beside.exists() and is_of_bank(read_statement(beside))


def meaning_of_attribute(scores: Sequence[AttackScore], *, of_texts: bool = False) -> list[str]:
    best = max(
        (each for each in scores if each.measure == "accuracy"), key=lambda each: (each.succeeded, each.score.value)
    )
    if not any(each.succeeded for each in scores):
        return [
            f"No attacker learnt it: naming the most frequent answer is right in {best.baseline:.0%} of the cases.",
            STRONGER,
        ]
    if not best.succeeded:
        other = max((each for each in scores if each.succeeded), key=lambda each: each.advantage)
        return [
            f"No attacker is right more often than the most frequent answer ({best.baseline:.0%}), but they tell "
            f"people apart: {other.measure} {other.score.value:.2f}, against {other.baseline:.2f} without looking.",
            STRONGER,
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
        + STRONGER,
    ]
