"""Synthetic corpora: one noisy release describes everybody's texts; public or generated texts are chosen by it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, DptextError, ParameterError
from dptext.features.features import UNIT
from dptext.io.documents import Document
from dptext.methods import base
from dptext.methods.attacks import Attack, AttackInputs, AttackResult, attack_result
from dptext.methods.base import PREVIEWED, PROTECTING, AdviceInput, Assessment, Caveat, Preview, round_down
from dptext.methods.checks import Audit, ReleaseFiles, check_corpus, check_description, description_folder
from dptext.methods.corpus import CorpusExamination
from dptext.methods.data import LABELS, NEW, quote
from dptext.methods.examination import ReportConfig
from dptext.methods.files import DESCRIPTION, STATEMENT
from dptext.methods.preview import DELTA, DRAWS, Piece, Previewer, Samples, Share, TextPreview
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.guarantee import Trust
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.representations.encoders import MeanOfWords
from dptext.synthesis.density import choose
from dptext.synthesis.distribution import announces_description, is_described, read_description
from dptext.synthesis.planning import Expected, expected_quality
from dptext.synthesis.synthesizer import SynthesisPlan, Synthesizer
from dptext.users.grouping import UserTexts
from dptext.vectors.word_vectors import WordVectors

_EPSILON = 1.0
_COUNT = 5_000
_ENOUGH = 0.5  # of the way from chance to no noise
_MIN_PEOPLE = 30  # with fewer, even the description without noise says nothing
_POOL = 1_500  # texts for a prediction
_MAX_PEOPLE = 10**6
_MAX_CLASSES = 50
_SEED = 0  # of predictions, from public numbers
_EDGES = (-np.inf, -2.0, -1.0, 0.0, 1.0, 2.0, np.inf)  # of intervals, in standard deviations of the noise
_CLASSIFIER = Caveat(
    0,
    "To label new texts, try the release itself first (dptext classify: .85 on news, .82 on short requests; a model "
    "trained on the corpus .79 and .94).",
)


class CorpusPreviewer(Previewer):
    """Synthetic texts for the data of many people and this text: exact."""

    key, title = "synthetic", "Synthetic texts for many people's texts"
    epsilons = (0.1, 10.0, 1.0)

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:
        super().__init__(vectors, samples)
        self._encoder = MeanOfWords(vectors)
        self._plan = self._synthesizer(1.0).plan(samples.public)
        self._others = self._sum(*samples.people)
        self._pool = self._plan.features.units(self._plan.pool.texts) * UNIT

    def show(self, text: str, epsilon: float) -> TextPreview:
        synthesizer, bits = self._synthesizer(epsilon), RandomBits()
        plan = SynthesisPlan(terms=synthesizer.terms, features=self._plan.features, pool=self._plan.pool)
        contribution = self._sum(text)
        ratio = synthesizer.released(plan, self._others + contribution, bits).ratio
        rows, _ = choose(
            ratio.scores(self._pool), ratio.nearness(self._pool), DRAWS, shares=ratio.shares, bits=bits.spawn(1)[0]
        )
        sigma, people = plan.terms.budget.sigma, len(self._samples.people)
        distance = float(np.linalg.norm(contribution.astype(np.float64))) * CELL
        # delta at epsilon 0 is the total variation distance of the two Gaussian distributions
        overlap = 1.0 if distance == 0.0 else 1.0 - gaussian_delta(sigma, epsilon=0.0, sensitivity=distance)
        intervals = [f"{low:g} to {high:g}" for low, high in pairwise(_EDGES[1:-1])]
        names = [f"below {_EDGES[1]:g}", *intervals, f"above {_EDGES[-2]:g}"]
        one, other = (
            np.diff([NormalDist(shift).cdf(edge) for edge in _EDGES]).tolist()
            for shift in (distance / sigma / 2, -distance / sigma / 2)
        )
        return self.preview(
            epsilon,
            plan.future_statement,
            pieces=[Piece(text)],
            draws=(plan.pool.texts[row] for row in rows.tolist()),
            success=Share(1 - overlap / 2),
            chance=0.5,
            candidates=people,
            texts=(f"{people:,} people and this text: {text}", f"{people:,} people without it"),
            overlap=Share(overlap),
            outcomes=list(zip(names, one, other, strict=True)),
        )

    def _synthesizer(self, epsilon: float) -> Synthesizer:
        return Synthesizer(epsilon=epsilon, delta=DELTA, features=self._encoder, cache=False)

    def _sum(self, *texts: str) -> npt.NDArray[np.int64]:
        """Return the sum of the contributions of people with one text each."""
        return self._plan.total(UserTexts((([text], np.zeros(1, dtype=np.int32)),)) for text in texts)


class Synthesis(base.Method):
    """``dptext synthesize``."""

    name = "synthetic corpus"
    command = "synthesize"
    trust = Trust.CENTRAL
    purposes: ClassVar = {None: 3, "read": 3, "classify": 3, "vectors": 0, "devices": 0, "statistics": 3}
    holds = "a synthetic corpus"
    audited = "people"
    folder = DESCRIPTION
    inputs = frozenset({"public", "distribution", "held_out"})
    examination = CorpusExamination
    playground = CorpusPreviewer
    mismatch: ClassVar = {
        "vectors": "The output is public texts: their words come from their authors, not from your users.",
        "devices": "The texts must be collected first: no device sends a vector of its own.",
    }

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        data = case.data
        synthesizer = Synthesizer(epsilon=_EPSILON, features=case.public.features, unit=data.unit, cache=False)
        people, expected = round_down(data.protected), None
        caveats = list(_caveats(case))
        if people < _MIN_PEOPLE:
            caveats.insert(0, Caveat(2, f"Too few {data.whom} for any epsilon that protects: {people} here."))
        elif figures and (expected := _expected(case, people)) is not None:
            caveats += [] if _is_enough(expected) else [_too_few(case, people)]
            caveats += [Caveat(0, f"{text[0].upper()}{text[1:]}.") for text in expected.warnings]
        if data.classes and data.rarest is not None and data.rarest * 4 * data.classes < data.rows:
            reason = "The rarest label has few texts: choose equally many per label (--shares uniform)."
            caveats.append(Caveat(0, reason))
        values = {"expected": expected, "people": people, "whom": data.whom, "classes": _classes(case)}
        return Assessment(
            statement=synthesizer.plan(case.public.pool).future_statement,
            good_for=base.describe("synthesis", **values),
            caveats=tuple(caveats),
            commands=_commands(case),
            preview=_preview(case) if figures else base.NO_PREVIEW,
        )

    def recognizes(self, statement: PrivacyStatement) -> bool:
        return is_described(statement)

    def attacks(self) -> Mapping[str, Attack]:
        return {"membership": infer_membership}

    def verify_folder(self, folder: Path) -> Collection[str]:
        read_description(folder)
        return (STATEMENT,)

    def check(self, files: ReleaseFiles) -> Audit:
        if announces_description(files.data):
            return check_description(files.data)
        folder = description_folder(files.data, files.distribution)
        return check_corpus(files, None if folder is None else read_description(folder))


def infer_membership(inputs: AttackInputs) -> AttackResult:
    """Infer who took part in a released distribution, and compare with the bound that its noise sets."""
    assert inputs.statement is not None
    if not announces_description(inputs.release):
        raise ParameterError(
            f"{inputs.release.name} is a synthetic corpus: name its released distribution (OUT.distribution)"
        )
    if inputs.original is None or inputs.held_out is None:
        raise ParameterError(
            "--members FILE (people who are in the release) and --others FILE (people who are not) are required"
        )
    if inputs.statement.unit == "user" and inputs.user is None:
        raise ParameterError("--user COLUMN is required: the guarantee protects users, and it names them")
    columns = {name: getattr(inputs, name) for name in ("original", "held_out", "user", "text", "seed")}
    config = ReportConfig(private=inputs.release, distribution=inputs.release, **columns)
    examination = CorpusExamination(config, inputs.release, inputs.statement, inputs.say)
    bound, *attacks = examination.membership()
    if not attacks:
        raise DataError(examination.notes[-1])
    details = [score.detail for score in attacks if score.detail]
    return attack_result("membership", [bound, *attacks], bound=bound.score.value, details=details)


def _caveats(case: AdviceInput) -> Iterator[Caveat]:
    if case.data.unit == "document":
        yield base.NO_USER
    if case.classifies and case.data.classes is None:
        yield base.NO_LABEL
    if case.classifies and case.data.roles.labels:
        yield _CLASSIFIER


def _too_few(case: AdviceInput, people: int) -> Caveat:
    """Say how many people would do, and what the largest epsilon that protects would reach."""
    doubled = [people]
    while doubled[-1] < _MAX_PEOPLE:
        doubled.append(round_down(2 * doubled[-1]))
    sufficient = next((count for count in doubled[1:] if _is_enough(_expected(case, count))), None)
    largest = _expected(case, people, PROTECTING)
    agreement = largest.agreement if largest is not None and _is_enough(largest) else None
    values = {"people": people, "whom": case.data.whom, "sufficient": sufficient, "agreement": agreement}
    reason = base.describe("too few", epsilon=_EPSILON, protecting=PROTECTING, **values)
    return Caveat(2 if agreement is None else 1, reason)


def _is_enough(expected: Expected | None) -> bool:
    if expected is None:
        return False
    return (expected.agreement - expected.without) / max(1 - expected.without, 1e-9) >= _ENOUGH


def _expected(case: AdviceInput, people: int, epsilon: float = _EPSILON) -> Expected | None:
    """Predict the quality from public texts and a round number of people; None: too few public texts."""
    pool, public_labels = case.public.pool.texts[:_POOL], case.public.labels if case.public.files else None
    labels = [str(code) for code in range(_classes(case))] if public_labels is None else sorted(set(public_labels))
    if len(pool) < 2 * len(labels):
        return None
    [expected] = expected_quality(
        pool,
        people=people,
        labels=labels,
        public_labels=None if public_labels is None else public_labels[PREVIEWED:][: len(pool)],
        epsilon=epsilon,
        features=case.public.features,
        cache=False,
        seed=_SEED,
    )
    return expected


def _classes(case: AdviceInput) -> int:
    """Into how many classes a prediction cuts public texts; without labels two."""
    return min(max(case.data.classes or 2, 2), _MAX_CLASSES)


def _commands(case: AdviceInput) -> tuple[str, ...]:
    option, labels, count = base.option, case.data.roles.labels, _COUNT
    if case.public.count:
        count = min(_COUNT, round_down(case.public.count // 2))
    label_options = [part for label in labels for part in (option("label", label), option("labels", LABELS))]
    options = (f"--epsilon {_EPSILON:g}", *label_options, case.public_options(), f"-n {count}")
    commands = [case.command(Synthesis(), ".synthetic.jsonl", *options)]
    if case.classifies and labels:
        distribution = option("distribution", case.data.out(".synthetic.jsonl.distribution"))
        classify = ("dptext classify", quote(NEW), distribution, "-o labels.jsonl", *case.text_option())
        commands.append(base.wrap_command(*classify))
    return tuple(commands)


def _preview(case: AdviceInput) -> Preview:
    """One half of the public texts, chosen by a description of the other half, as if people had written it."""
    texts, labels, seed = case.public.texts, case.public.labels, case.public.seed
    half = len(texts) // 2
    people = [
        Document(text, user=f"user {number}", label=None if labels is None else labels[number])
        for number, text in enumerate(texts[:half])
    ]
    pool = list(texts[half:])
    classes = None if labels is None else sorted(set(labels))
    synthesizer = Synthesizer(epsilon=_EPSILON, labels=classes, features=case.public.features, cache=False, seed=seed)
    try:
        corpus = synthesizer.fit(people, public=pool).sample(pool, PREVIEWED, cache=False, seed=seed)
    except DptextError as error:  # too few public texts
        return Preview(missing=str(error))
    names = corpus.labels if corpus.columns else [""] * PREVIEWED
    return Preview(tuple((str(name or ""), text or "") for name, text in zip(names, corpus.texts, strict=True)))
