"""Synthetic corpora: one noisy release describes all texts; public or generated texts are sampled by it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.features.features import UNIT
from dptext.methods import base
from dptext.methods.base import AdviceInput, Assessment, Caveat, round_down
from dptext.methods.corpus import CorpusExamination, check_corpus, check_description, description_folder
from dptext.methods.data import LABELS, NEW, quote
from dptext.methods.examination import AttackResult, attack_result
from dptext.methods.files import Audit, ReleaseFiles
from dptext.methods.preview import DELTA, DRAWS, Piece, Previewer, Samples, TextPreview
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.guarantee import Trust
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import STATEMENT
from dptext.representations.encoders import MeanOfWords
from dptext.synthesis.density import choose
from dptext.synthesis.distribution import FOLDER, is_described, read_description
from dptext.synthesis.planning import expected_quality
from dptext.synthesis.synthesizer import SynthesisPlan, Synthesizer
from dptext.users.grouping import UserTexts
from dptext.vectors.word_vectors import WordVectors

_EPSILON = 1.0
_COUNT = 5_000
_ENOUGH = 0.5  # of the way from chance to no noise
_MIN_PEOPLE = 30  # with fewer, even a description without noise is useless
_POOL = 1_500  # texts for a prediction
_MAX_CLASSES = 50
_SEED = 0  # of predictions, from public numbers
_CLASSIFIER = Caveat(
    0,
    "To label new texts, try the release itself first (dptext classify): on news it is right in .85 of cases, a model "
    "trained on the corpus in .79.",
)


class CorpusPreviewer(Previewer):
    """Preview of synthetic texts for the data of many people and this text, computed exactly."""

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
        weights = ratio.weigh(self._pool)
        rows, _ = choose(weights.scores, weights.nearness, DRAWS, shares=ratio.shares, bits=bits.spawn(1)[0])
        sigma, people = plan.terms.budget.sigma, len(self._samples.people)
        distance = float(np.linalg.norm(contribution.astype(np.float64))) * CELL
        # delta at epsilon 0 is the total variation distance of the two Gaussian distributions
        overlap = 1.0 if distance == 0.0 else 1.0 - gaussian_delta(sigma, epsilon=0.0, sensitivity=distance)
        return self.preview(
            epsilon,
            plan.future_statement,
            pieces=[Piece(text)],
            draws=(plan.pool.texts[row] for row in rows.tolist()),
            success=1 - overlap / 2,
            chance=0.5,
            candidates=people,
            texts=(f"{people:,} people and this text: {text}", f"{people:,} people without it"),
            overlap=overlap,
        )

    def _synthesizer(self, epsilon: float) -> Synthesizer:
        return Synthesizer(epsilon=epsilon, delta=DELTA, features=self._encoder, cache=False)

    def _sum(self, *texts: str) -> npt.NDArray[np.int64]:
        """Return the sum of the contributions of people with one text each."""
        return self._plan.total(UserTexts((([text], np.zeros(1, dtype=np.int32)),)) for text in texts)


def infer_membership(files: ReleaseFiles) -> AttackResult:
    """Infer who took part in a released distribution, and compare with the bound that its noise sets."""
    if not FOLDER.announces(files.data):
        raise ParameterError(
            f"{files.data.name} is a synthetic corpus: name its released distribution (OUT.distribution)"
        )
    if files.original is None or files.held_out is None:
        raise ParameterError(
            "--members FILE (people who are in the release) and --others FILE (people who are not) are required"
        )
    if files.statement.unit == "user" and files.user is None:
        raise ParameterError("--user COLUMN is required: the guarantee protects users, and it names them")
    examination = CorpusExamination(replace(files, distribution=files.data))
    bound, *attacks = examination.membership()
    if not attacks:
        raise DataError(examination.notes[-1])
    details = [score.detail for score in attacks if score.detail]
    return attack_result("membership", [bound, *attacks], bound=bound.score.value, details=details)


class Synthesis(base.Method):
    """``dptext synthesize``."""

    name = "synthetic corpus"
    command = "synthesize"
    suffix = ".synthetic.jsonl"
    trust = Trust.CENTRAL
    purposes: ClassVar = {None: 3, "read": 3, "classify": 3, "vectors": 0, "devices": 0, "statistics": 3}
    holds = "a synthetic corpus"
    audited = "people"
    folder = "dptext-text-distribution"
    inputs = frozenset({"public", "distribution", "held_out"})
    attacks: ClassVar = {"membership": infer_membership}
    examination = CorpusExamination
    playground = CorpusPreviewer
    mismatch: ClassVar = {
        "vectors": "The output is public texts: their words come from their authors, not from your users.",
        "devices": "The texts must be collected first: devices cannot send vectors themselves.",
    }

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        data = case.data
        synthesizer = Synthesizer(epsilon=_EPSILON, features=case.public.features, unit=data.unit, cache=False)
        people, texts, public_labels = round_down(data.protected), case.public.texts[:_POOL], case.public.labels[:_POOL]
        labels = sorted({label for label in public_labels if label is not None})
        if not 2 <= len(labels) <= _MAX_CLASSES:
            labels, public_labels = [], ()
        classes = min(max(data.classes or 2, 2), _MAX_CLASSES)
        expected, caveats = None, [base.NO_USER] if data.unit == "document" else []
        caveats += [base.NO_LABEL] if case.classifies and data.classes is None else []
        caveats += [_CLASSIFIER] if case.classifies and data.roles.labels else []
        if people < _MIN_PEOPLE:
            caveats.insert(0, Caveat(2, f"Too few {data.whom} for any epsilon that protects: {people} here."))
        elif figures and len(texts) >= 2 * max(classes, len(labels)):
            [expected] = expected_quality(
                texts,
                people=people,
                labels=labels or [str(code) for code in range(classes)],
                public_labels=public_labels or None,
                epsilon=_EPSILON,
                features=case.public.features,
                cache=False,
                seed=_SEED,
            )
            if (expected.agreement - expected.without) / max(1 - expected.without, 1e-9) < _ENOUGH:
                reason = f"Too few {data.whom} for epsilon {_EPSILON:g}: {people:,} here."
                caveats.append(Caveat(2, f"{reason} `dptext synthesize --plan` compares budgets."))
            caveats += [Caveat(0, f"{text[0].upper()}{text[1:]}.") for text in expected.warnings]
        if data.classes and data.rarest is not None and data.rarest * 4 * data.classes < data.rows:
            reason = "The rarest label has few texts: choose equally many per label (--shares uniform)."
            caveats.append(Caveat(0, reason))
        return Assessment(
            statement=synthesizer.plan(case.public.pool).future_statement,
            good_for=base.describe("synthesis"),
            accuracy=None if expected is None else expected.accuracy,
            caveats=tuple(caveats),
            commands=_commands(case),
        )

    def recognizes(self, statement: PrivacyStatement) -> bool:
        return is_described(statement)

    def verify_folder(self, folder: Path) -> Collection[str]:
        read_description(folder)
        return (STATEMENT,)

    def check(self, files: ReleaseFiles) -> Audit:
        if FOLDER.announces(files.data):
            return check_description(files.data)
        folder = description_folder(files.data, files.distribution)
        return check_corpus(files, None if folder is None else read_description(folder))


def _commands(case: AdviceInput) -> tuple[str, ...]:
    option, labels, count = base.option, case.data.roles.labels, _COUNT
    if case.public.count:
        count = min(_COUNT, round_down(case.public.count // 2))
    label_options = [part for label in labels for part in (option("label", label), option("labels", LABELS))]
    options = (f"--epsilon {_EPSILON:g}", *label_options, case.public_options(), f"-n {count}")
    commands = [case.command(Synthesis(), *options)]
    if case.classifies and labels:
        distribution = option("distribution", f"{case.data.out(Synthesis.suffix)}.distribution")
        classify = ("dptext classify", quote(NEW), distribution, "-o labels.jsonl", *case.text_option())
        commands.append(base.wrap_command(*classify))
    return tuple(commands)
