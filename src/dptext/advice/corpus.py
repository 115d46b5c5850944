"""A synthetic corpus: one noisy release describes all people's texts, public ones are chosen by it."""

from __future__ import annotations

from collections.abc import Iterator

from dptext.advice.pasted import LABELS, NEW, folded, inputs, option, out, public, text_option, unit_option
from dptext.advice.public import PREVIEWED
from dptext.advice.way import (
    PROTECTING,
    Case,
    Makeup,
    Objection,
    Preview,
    Way,
    built,
    of_labels,
    of_users,
    rounded_people,
)
from dptext.io.documents import Document
from dptext.privacy.guarantee import Trust
from dptext.synthesis.planning import Expected, expected_quality
from dptext.synthesis.synthesizer import Synthesizer

_EPSILON = 1.0
_COUNT = 5_000
_ENOUGH = 0.5  # of the way from chance to no noise at all
_FEWEST = 30  # people: with fewer a prediction compares with a description that says nothing even without noise
_POOL = 1_500  # texts that a prediction looks at
_MOST_PEOPLE = 10**6
_MOST_CLASSES = 50
_SEED = 0  # of predictions, from public numbers


def corpus(case: Case) -> Way:
    """The way of ``dptext synthesize``."""
    return built(
        case,
        name="synthetic corpus",
        command="synthesize",
        trust=Trust.CENTRAL,
        serves={None: 3, "read": 3, "classify": 3, "vectors": 0, "devices": 0, "statistics": 3},
        mismatch={
            "vectors": "Public texts come out: the words are those of their authors, not of these people.",
            "devices": "Texts are collected first: no device sends a vector of its own.",
        },
        makeup=_makeup,
        pasted=_pasted,
        preview=_preview,
    )


def _objections(case: Case) -> Iterator[Objection]:
    yield from of_users(case)
    yield from of_labels(case, kept=False)
    if _classifies(case):
        yield Objection(0, _CLASSIFIER)


def _classifies(case: Case) -> bool:
    return case.answers.purpose == "classify" and bool(case.data.roles.labels)


_CLASSIFIER = (
    "Try the release itself first as the classifier of new texts (dptext classify NEW.jsonl; news .85 right, short "
    "requests .82; by a model trained on the corpus .79 and .94). Use the corpus where people must read, or to train "
    "another model."
)


def _makeup(case: Case) -> Makeup:
    synthesizer = Synthesizer(epsilon=_EPSILON, features=case.public.features, unit=case.data.unit, cache=False)
    promise, objections = synthesizer.plan(case.public.pool).promise, [*_objections(case)]
    people = rounded_people(case.data.protected)
    expected = _expected(case, people)
    whom = case.data.whom
    if expected is None or people < _FEWEST:
        few = (
            ()
            if people >= _FEWEST
            else (Objection(2, f"Too few {whom} for any epsilon that protects: {people} here."),)
        )
        return Makeup(promise, _GOOD, (*few, *objections))
    if _above_chance(expected) < _ENOUGH:
        objections.append(_too_few(case, people, whom))
    objections += [Objection(0, f"{each[0].upper()}{each[1:]}.") for each in expected.warnings]
    data = case.data
    if data.classes and data.rarest is not None and data.rarest * 4 * data.classes < data.rows:
        objections.append(Objection(0, "The rarest label has few texts: choose as many for each (--shares uniform)."))
    return Makeup(promise, f"{_GOOD} {_figure(case, expected, people)}", tuple(objections))


def _figure(case: Case, expected: Expected, people: int) -> str:
    """What is predicted, and what is not known."""
    if expected.accuracy is not None:
        low, high = expected.accuracy
        return (
            f"Predicted from public labels, {people:,} {case.data.whom}: {low:.0%} to {high:.0%} of labels are right."
        )
    return (
        f"With {people:,} {case.data.whom} and {_classes(case)} classes, {expected.agreement:.0%} of public texts keep "
        f"their class under the noise ({expected.without:.0%} by chance): agreement with the noise-free labels, not "
        "accuracy, which takes public labels (--public-label)."
    )


def _too_few(case: Case, people: int, whom: str) -> Objection:
    """How many it would take, and what the largest epsilon that protects would do."""
    needed = _needed(case, people)
    said = f"Too few {whom} for epsilon {_EPSILON:g}: {people:,} here"
    said += f", from about {needed:,} on it would do." if needed else "."
    most = _expected(case, people, PROTECTING)
    if most is None or _above_chance(most) < _ENOUGH:
        return Objection(2, said)
    return Objection(1, f"{said} At {PROTECTING:g}, which still protects, {most.agreement:.0%} would keep their class.")


_GOOD = (
    "People read it; a classifier learns from it (news, 5,000 texts: .79 right, .87 with the private ones, "
    "papers/synthesis)."
)


def _expected(case: Case, people: int, epsilon: float = _EPSILON) -> Expected | None:
    """What a budget buys, from public texts and a round number of people; None where there are too few public texts."""
    pool, right = case.public.pool.texts[:_POOL], case.public.labels if case.public.files else None
    classes = _classes(case)
    labels = [str(each) for each in range(classes)] if right is None else sorted(set(right))
    if len(pool) < 2 * len(labels):
        return None
    [found] = expected_quality(
        pool,
        people=people,
        labels=labels,
        public_labels=None if right is None else right[PREVIEWED:][: len(pool)],
        epsilon=epsilon,
        features=case.public.features,
        cache=False,
        seed=_SEED,
    )
    return found


def _classes(case: Case) -> int:
    """Into how many a prediction cuts public texts; without labels into two, since one has nothing to be told from."""
    return min(max(case.data.classes or 2, 2), _MOST_CLASSES)


def _above_chance(expected: Expected) -> float:
    return (expected.agreement - expected.without) / max(1 - expected.without, 1e-9)


def _needed(case: Case, people: int) -> int | None:
    """The first of some round numbers of people that would be enough."""
    while people < _MOST_PEOPLE:
        people = rounded_people(2 * people)
        found = _expected(case, people)
        if found is not None and _above_chance(found) >= _ENOUGH:
            return people
    return None


def _pasted(case: Case) -> tuple[str, ...]:
    data = case.data
    labels = [part for each in data.roles.labels for part in (option("label", each), option("labels", LABELS))]
    command = folded(
        f"dptext synthesize {inputs(data)}",
        f"-o {out(data, 'synthetic', '.jsonl')}",
        *text_option(data),
        unit_option(data),
        f"--epsilon {_EPSILON:g}",
        *labels,
        public(case.public),
        f"-n {_count(case)}",
    )
    if not _classifies(case):
        return (command,)
    classified = folded(
        f"dptext classify {NEW}",
        f"--distribution {out(data, 'synthetic', '.jsonl.distribution')}",
        "-o labels.jsonl",
        *text_option(data),
    )
    return command, classified


def _count(case: Case) -> int:
    """How many texts to make: a round number, and no more than public texts give a choice for."""
    return min(_COUNT, rounded_people(case.public.count // 2)) if case.public.count else _COUNT


def _preview(case: Case) -> Preview:
    """Texts of one half of the public ones, chosen by a description of the other half, as if people had written it."""
    texts, labels, seed = case.public.texts, case.public.labels, case.public.seed
    half = len(texts) // 2
    people = [
        Document(text, user=f"user {n}", label=None if labels is None else labels[n])
        for n, text in enumerate(texts[:half])
    ]
    classes = None if labels is None else sorted(set(labels))
    pool = list(texts[half:])
    synthesizer = Synthesizer(epsilon=_EPSILON, labels=classes, features=case.public.features, cache=False, seed=seed)
    made = synthesizer.fit(people, public=pool).sample(pool, PREVIEWED, cache=False, seed=seed)
    names = made.labels if made.columns else [""] * PREVIEWED
    return Preview(tuple((f"{name}" if name else "", text or "") for name, text in zip(names, made.texts, strict=True)))
