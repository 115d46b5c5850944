"""The option --plan: what an epsilon is good for, from public texts and a public number of users."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import typer

from dptext.cli import options
from dptext.cli.console import print_json
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.plan import ExpectedVectors, expected_vectors
from dptext.embeddings.skipgram import SkipGramPlan
from dptext.errors import ParameterError
from dptext.features.pool import Pool
from dptext.io.documents import read_documents
from dptext.synthesis.moments import Labels
from dptext.synthesis.planning import COVERED, Expected, expected_quality
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors


def plan_corpus(
    pool: Pool | None,
    budget: Any,
    labels: Labels,
    corpus: Any,
    unit: str,
    people: int | None,
    output: options.Output,
) -> None:
    if pool is None or people is None:
        raise ParameterError(
            "--plan needs public texts and a public number of people: --public POOL --people 1000 (never a count of IN)"
        )
    texts: Any = pool
    public_labels = None
    if corpus.public_label is not None:
        documents = list(read_documents(pool.files, text=corpus.public_text, label=corpus.public_label))
        texts, public_labels = [each.text or "" for each in documents], [each.label for each in documents]
        if not labels.columns:
            labels = Labels.of({corpus.public_label: sorted({str(each) for each in public_labels if each is not None})})
    found = expected_quality(
        texts,
        labels=labels,
        public_labels=public_labels,
        people=people,
        epsilon=budget.epsilon,
        delta=budget.delta,
        features=corpus.features,
        seed=options.ANALYSIS_SEED,
    )
    if output.as_json:
        print_json([each.as_dict() for each in found])
    else:
        for line in _corpus_table(found, people, unit):
            typer.echo(line)


def _corpus_table(found: Sequence[Expected], people: int, unit: str) -> list[str]:
    last = found[-1]
    about = [f"Prediction for {people:,} {unit}s, from public texts alone: no private text was read."]
    if last.accuracy is None:
        about.append(
            "Accuracy is unknown: it takes public labels (--public-label COLUMN). The table has the agreement with the "
            "noise-free labels, not accuracy: labels without noise may be wrong as well."
        )
    else:
        about.append(
            "Accuracy: share of right labels (dptext classify) on public texts that the simulated release did not use; "
            f"{COVERED:.0%} of releases lie in the interval if private texts and their labels are like these. "
            "Agreement: with the noise-free labels, not accuracy."
        )
    if last.descriptions is not None:
        about.append(f"The label descriptions alone, without any release, have an accuracy of {last.descriptions:.0%}.")
    elif last.separation is not None:
        about.append(
            f"Along the directions in which the label descriptions differ, the pool varies {last.separation:.1f} times "
            "as much as along an average direction (about 1: the descriptions do not separate its texts)."
        )
    lines = [line for each in about for line in textwrap.wrap(each, 79)]
    lines += ["", f"  epsilon     sigma   accuracy   agreement   {unit}s until labels stand out"]
    for each in found:
        seen = "never" if each.seen is None else f"{each.seen:,}"
        right = "unknown" if each.accuracy is None else f"{each.accuracy[0]:.2f}-{each.accuracy[1]:.2f}"
        lines.append(f"  {each.epsilon:<8g}{each.sigma:>9.3g}{right:>11}{each.agreement:>12.0%}{seen:>10}")
    for warning in last.warnings:
        lines += ["", *textwrap.wrap(f"Warning: {warning}.", 79)]
    return lines


def plan_vectors(
    asked: Any,
    texts: options.OptionalInputs,
    protection: Any,
    training: Any,
    skip_gram_plan: Callable[[WordVectors], SkipGramPlan],
    output: options.Output,
) -> None:
    if texts.sources:
        raise ParameterError("--plan reads no private text: leave out IN")
    if asked.people is None:
        raise ParameterError("--plan needs a public number of people: --people 1000 (never a count of IN)")
    if protection.levels:
        raise ParameterError("--plan is for one epsilon, or for several beside one another: leave out --levels")
    public = load_vectors(training.vectors, limit=training.limit)
    if training.method == "skip-gram":
        if protection.epsilon is None or protection.unit == "pair":
            raise ParameterError("--plan of skip-gram needs --epsilon, and people or documents as its unit")
        found = skip_gram_plan(public).signal(asked.people)
        if output.as_json:
            print_json(found.as_dict())
        else:
            typer.echo(str(found))
        return
    if not asked.public:
        raise ParameterError("--plan needs public texts that play people's: --public FILE")
    # the table has epsilons of its own
    release = Cooccurrence(
        public, epsilon=protection.epsilon or 1.0, unit=protection.unit, delta=protection.delta
    ).plan()
    unit = "document" if protection.user is None else "user"
    expected = expected_vectors(
        release,
        read_documents(asked.public, text=texts.text, user=protection.user, **texts.layout),
        people=asked.people,
        epsilon=protection.epsilon,
        unit=unit,
    )
    if output.as_json:
        print_json([each.as_dict() for each in expected])
    else:
        for line in _vectors_table(expected, asked.people, protection.unit, "text" if unit == "document" else "author"):
            typer.echo(line)


def _vectors_table(found: Sequence[ExpectedVectors], people: int, unit: str, one: str) -> list[str]:
    lines = [
        f"With {people:,} {unit}s who write as much as one {one} of the public ones (nothing",
        "private was read): what their texts add to the public vectors, and how much of",
        "it comes through the noise.",
        "",
        f"                     with this   {unit}s until   {unit}s until",
        "  epsilon     sigma     number       anything           half",
    ]
    for each in found:
        least, half = (f"{n:,}" if n is not None else "never" for n in (each.least, each.half))
        lines.append(f"  {each.epsilon:<8g}{each.sigma:>9.3g}{each.passed:>11.0%}{least:>15}{half:>15}")
    nothing = [each for each in found if each.least is None or people < each.least]
    if len(nothing) == len(found):
        lines += ["", "Noise would hide all of it: the vectors would be the public ones again."]
    elif nothing:
        most = max(each.epsilon for each in nothing)
        lines += [
            "",
            f"Up to epsilon {most:g} noise would hide all of it: the vectors would be the public",
            "ones again.",
        ]
    return lines
