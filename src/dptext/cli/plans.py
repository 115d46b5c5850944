"""Plans of a release: the prediction of its quality (--plan), and the guarantee of word vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import typer

from dptext.cli import options
from dptext.cli.console import print_paragraphs, print_table
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.participation import personal_participation
from dptext.embeddings.plan import ExpectedVectors, ReleasePlan, expected_vectors
from dptext.embeddings.skipgram import SkipGram, SkipGramPlan
from dptext.errors import ParameterError
from dptext.features.pool import Pool
from dptext.io.documents import read_documents
from dptext.privacy.guarantee import ApproxDP, Guarantee, compose, substitution_from_add_remove
from dptext.synthesis.moments import Labels
from dptext.synthesis.planning import COVERED, Expected, expected_quality
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors

EmbeddingModel: TypeAlias = Cooccurrence | SkipGram
_SENTENCES = "cli/templates/plan.txt"
_PEOPLE_REQUIRED = "--plan needs a public number of users: --people 1000 (do not count IN)"


def print_corpus_plan(
    pool: Pool | None,
    budget: Any,
    labels: Labels,
    corpus: Any,
    unit: str,
    people: int | None,
    output: options.Output,
) -> None:
    if people is None:
        raise ParameterError(_PEOPLE_REQUIRED)
    if pool is None:
        raise ParameterError("--plan needs public texts: --public POOL")
    texts: Any = pool
    public_labels = None
    if corpus.public_label is not None:
        documents = list(read_documents(pool.files, text=corpus.public_text, label=corpus.public_label))
        texts = [document.text or "" for document in documents]
        public_labels = [document.label for document in documents]
        if not labels.columns:
            labels = Labels.of({corpus.public_label: sorted({str(name) for name in public_labels if name is not None})})
    expected = expected_quality(
        texts,
        labels=labels,
        public_labels=public_labels,
        people=people,
        epsilon=budget.epsilon,
        delta=budget.delta,
        features=corpus.features,
        seed=options.ANALYSIS_SEED,
    )
    output.print_result(lambda: [row.as_dict() for row in expected], lambda: _print_corpus_plan(expected, people, unit))


def _print_corpus_plan(expected: Sequence[Expected], people: int, unit: str) -> None:
    print_paragraphs(_SENTENCES, topic="corpus", last=expected[-1], people=people, unit=unit, covered=COVERED)
    rows = [
        [
            f"{row.epsilon:g}",
            f"{row.sigma:.3g}",
            "unknown" if row.accuracy is None else f"{row.accuracy[0]:.2f}-{row.accuracy[1]:.2f}",
            f"{row.agreement:.0%}",
            _count(row.seen),
        ]
        for row in expected
    ]
    print_table(("epsilon", "sigma", "accuracy", "agreement", f"{unit}s until labels stand out"), rows)
    print_paragraphs(_SENTENCES, topic="warnings", last=expected[-1])


def _count(number: int | None) -> str:
    return "never" if number is None else f"{number:,}"


def print_vector_plan(
    planning: Any,
    texts: options.OptionalInputs,
    protection: Any,
    training: Any,
    output: options.Output,
) -> None:
    if texts.sources:
        raise ParameterError("--plan reads no private text: leave out IN")
    if planning.people is None:
        raise ParameterError(_PEOPLE_REQUIRED)
    if protection.levels:
        raise ParameterError("--plan takes one --epsilon or compares several: leave out --levels")
    public = load_vectors(training.vectors, limit=training.limit)
    if training.method == "skip-gram":
        if protection.epsilon is None or protection.unit == "pair":
            raise ParameterError("--plan of skip-gram needs --epsilon, and users or documents as its unit")
        plan: Any = plan_embedding(protection, training, public)[0]
        signal = plan.signal(planning.people)
        output.print_result(signal.as_dict, lambda: typer.echo(str(signal)))
        return
    if not planning.public:
        raise ParameterError("--plan needs public texts that stand for users: --public FILE")
    epsilon = protection.epsilon or 1.0  # the table has its own
    unit = "document" if protection.user is None else "user"
    expected = expected_vectors(
        Cooccurrence(public, epsilon=epsilon, unit=protection.unit, delta=protection.delta).plan(),
        read_documents(planning.public, text=texts.text, user=protection.user, **texts.layout),
        people=planning.people,
        epsilon=protection.epsilon,
        unit=unit,
    )
    output.print_result(
        lambda: [row.as_dict() for row in expected],
        lambda: _print_vector_plan(expected, planning.people, protection.unit, unit),
    )


def _print_vector_plan(expected: Sequence[ExpectedVectors], people: int, unit: str, simulated: str) -> None:
    print_paragraphs(_SENTENCES, topic="vectors", people=people, unit=unit, simulated=simulated)
    rows = [
        [f"{row.epsilon:g}", f"{row.sigma:.3g}", f"{row.passed:.0%}", _count(row.least), _count(row.half)]
        for row in expected
    ]
    print_table(("epsilon", "sigma", "share", f"{unit}s until 1%", f"{unit}s until 50%"), rows)
    hidden = [row.epsilon for row in expected if row.least is None or people < row.least]
    print_paragraphs(_SENTENCES, topic="hidden", hidden=hidden, expected=expected)


def plan_embedding(
    protection: Any, training: Any, public: WordVectors
) -> tuple[ReleasePlan, Callable[..., EmbeddingModel]]:
    """Return the plan of the release, and a function that builds its model."""
    settings: dict[str, Any] = {"unit": protection.unit, "level": protection.level, "delta": protection.delta}
    epsilon = protection.budget
    if training.method != "skip-gram":
        settings["epsilon"] = epsilon
        return Cooccurrence(public, **settings).plan(), partial(Cooccurrence, public, **settings)
    costs: dict[str, Any] = {"steps": training.steps, "sampling_rate": training.sampling_rate}
    if isinstance(epsilon, dict):
        epsilon = personal_participation(epsilon, delta=protection.delta, **costs)
    plan = SkipGram(public, epsilon=epsilon, public_users=protection.public_users, **settings, **costs).plan()
    import dptext.embeddings.training  # noqa: F401  needs numba: raise before anything is read

    return plan, partial(SkipGram, public, **settings, epsilon=plan.participation)


@dataclass(frozen=True)
class TotalGuarantee:
    """Guarantee of a user of one level for everything that is released."""

    epsilon: float
    delta: float
    substituted: ApproxDP


def total_guarantees(plan: ReleasePlan, new_words: ApproxDP | None, *, seeded: bool) -> dict[str, TotalGuarantee]:
    totals = {}
    for level in plan.levels.shares:
        statement = plan.statement(level, seeded=seeded)
        guarantee: Guarantee = statement.guarantee
        substituted: Guarantee = plan.substitution_guarantee(level)
        if new_words is not None:
            guarantee = compose(guarantee, new_words)
            substituted = compose(substituted, substitution_from_add_remove(new_words))
        assert isinstance(guarantee, ApproxDP)
        assert isinstance(substituted, ApproxDP)
        totals[level] = TotalGuarantee(guarantee.epsilon + statement.slack, guarantee.delta, substituted)
    return totals


def describe_plan(plan: ReleasePlan, public: WordVectors) -> list[str]:
    if not isinstance(plan, SkipGramPlan):
        return [f"co-occurrences on {public.source} ({len(public):,} words, {public.dimension} dimensions)"]
    participation = plan.participation
    rate = f"{'at most ' * (len(participation.rates) > 1)}{100 * participation.rates[participation.most]:.3g}%"
    return [
        f"skip-gram from {public.source} ({len(plan.words):,} words, {plan.dimension} dimensions)",
        f"  training  {participation.steps:,} steps, each {plan.unit} in {rate} of them, noise "
        f"{participation.noise_multiplier:g} x bound",
    ]
