"""Shared word vectors, learned from the texts of many users by one noisy release."""

from __future__ import annotations

import math
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dptext.attacks import AttackScore, nearest_secrets, nearest_secrets_known
from dptext.attacks.linkage import NO_ROW
from dptext.attacks.membership import gaussian_ceiling
from dptext.audits.verdict import Verdict, judge_gaussian, judge_sampled_gaussian
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.plan import expected_vectors
from dptext.embeddings.refinement import public_base
from dptext.embeddings.sharing import GENSIM_COPY, is_copy
from dptext.errors import DptextError, ParameterError
from dptext.io.documents import Document
from dptext.methods import files as checks
from dptext.methods.base import NO_USER, PROTECTING, AdviceInput, Assessment, Caveat, Method, describe, round_down
from dptext.methods.examination import AttackResult, attack_result
from dptext.methods.files import Audit, Check, ReleaseFiles, read_rows
from dptext.privacy.gaussian import SampledGaussian
from dptext.privacy.guarantee import Trust, Unit
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import STATEMENT
from dptext.text.tokens import fold
from dptext.vectors.formats import load_folder, load_vectors, statements_in
from dptext.vectors.word_vectors import WordVectors

_DELTA = 1e-6
_PEOPLE = 1_500  # public texts that simulate people
_LITTLE, _NOTHING = 0.1, 0.01  # of the contribution of people's texts to public vectors
_MECHANISMS = ("co-occurrences", "skip-gram")
_COVERAGE = "with any other participants: each contribution is clipped, if the stated software works as documented"


def bound_membership(files: ReleaseFiles) -> AttackResult:
    """Bound the success of any membership attack by the stated noise; no sum was released to run an attack on."""
    statement = files.statement
    verdict = _judge_learned(statement)
    parameters, epsilon, delta = statement.parameters, verdict.allowed, verdict.delta
    sigma, sensitivity = parameters.get("sigma"), parameters.get("sensitivity")
    accuracy = auc = None
    # new words are released too
    if checks.earlier_guarantees(statement):
        epsilon, delta = statement.epsilon, statement.delta
    elif isinstance(sigma, float) and isinstance(sensitivity, float):
        ceiling = gaussian_ceiling(sigma, sensitivity=sensitivity)
        accuracy, auc = ceiling.accuracy, ceiling.auc
    if accuracy is None:
        accuracy = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)) if epsilon < 500 else 1.0
    values: dict[str, Any] = {"unit": statement.unit, "accuracy": accuracy, "auc": auc, "epsilon": epsilon}
    bounds = {"accuracy_at_most": accuracy, "auc_at_most": auc}
    return attack_result("vectors", bounds=bounds, name=files.data.name, **values)


def find_secrets(files: ReleaseFiles) -> AttackResult:
    """Find the secret of each name by nearest neighbours; compare with public vectors and a positive control."""
    assert files.pairs is not None
    shared = load_vectors(files.data)
    rows = read_rows(files.pairs, text="secret", columns=("name",), texts_only=True)
    names, secrets = ([fold(str(word)) for word in words] for words in (rows.columns["name"], rows.texts))

    def rows_in(vectors: WordVectors) -> list[list[int]]:
        vocabulary = vectors.vocabulary
        return [[vocabulary.row(word) if word in vectors else NO_ROW for word in words] for words in (names, secrets)]

    def attack(vectors: WordVectors, **options: Any) -> list[AttackScore]:
        unknown = [vectors.vocabulary.unknown_row]
        return nearest_secrets(vectors.matrix, *rows_in(vectors), left_out=unknown, top=10, seed=files.seed, **options)

    public = _public_vectors(shared)
    matrix = None
    if public is not None:
        rows_of_words = np.array([public.vocabulary.row(word) for word in shared.words])
        matrix = public.matrix[rows_of_words].copy()
        matrix[rows_of_words == public.vocabulary.unknown_row] = 0.0
    scores = attack(shared, public=matrix)
    if public is not None:
        with suppress(ParameterError):  # none of these words is in the public vectors
            scores += attack(public, attack="neighbours (public vectors alone)")
    planted = WordVectors(shared.words, nearest_secrets_known(shared.matrix, *rows_in(shared)))
    control = attack(planted, attack="neighbours (control: pairs planted in the vectors)")
    bits = next((score for score in scores if score.measure.startswith("bits")), None)
    return attack_result(
        "neighbours",
        [*scores, *control],
        control=control,
        adds_nothing=bits is not None and not bits.succeeded and any("public" in score.attack for score in scores),
        unit=None if shared.statement is None else shared.statement.unit,
    )


def _public_vectors(shared: WordVectors) -> WordVectors | None:
    """Return the public vectors from which the release started (named in the statement); None: not found here."""
    parameters = {} if shared.statement is None else shared.statement.parameters
    source, digest = parameters.get("public_vectors"), parameters.get("public_vectors_sha256")
    if not isinstance(source, str):
        return None
    new = parameters.get("new_words")
    words = len(shared) - (new if isinstance(new, int) else 0)
    with suppress(DptextError):
        for limit in (words - 1, words):
            public = load_vectors(source, limit=limit)
            if public.fingerprint == digest:
                base = public_base(public.matrix, public.vocabulary.unknown_row)
                return WordVectors(public.words, base.astype(np.float32), source=public.source)
    return None


class Embeddings(Method):
    """``dptext embed``."""

    name = "shared word vectors"
    command = "embed"
    suffix = ".vectors"
    trust = Trust.CENTRAL
    purposes: ClassVar = {None: 1, "read": 0, "classify": 1, "vectors": 3, "devices": 0, "statistics": 1}
    holds = "word vectors"
    audited = "learned"
    folder = "dptext-vectors"
    needs_vectors = True
    attacks: ClassVar = {"membership": bound_membership, "neighbours": find_secrets}
    mismatch: ClassVar = {
        "read": "There is nothing to read: the output is one vector per word.",
        "devices": "The texts must be collected first: devices cannot send vectors themselves.",
    }

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        expected, people = None, round_down(case.data.protected)
        commands = (case.command(self, f"--epsilon {PROTECTING:g}"),)
        statement = None
        if case.vectors is not None:
            plan = Cooccurrence(case.vectors, epsilon=PROTECTING, delta=_DELTA, unit=case.data.unit).plan()
            statement = plan.statement(plan.levels.most, seeded=False)
            if figures:
                documents = (Document(text) for text in case.public.texts[:_PEOPLE])
                [expected] = expected_vectors(plan, documents, people=people, epsilon=PROTECTING)
        caveats = [NO_USER] if case.data.unit == "document" else []
        if expected is not None and expected.passed < _LITTLE:
            weight, nearly = (2, "") if expected.passed < _NOTHING else (1, "nearly ")
            reason = f"Too few {case.data.whom} for this budget: the vectors stay {nearly}the public ones."
            caveats.append(Caveat(weight, reason))
        return Assessment(
            statement=statement,
            good_for=describe("embeddings", expected=expected, people=people, whom=case.data.whom),
            caveats=tuple(caveats),
            commands=commands,
        )

    def recognizes(self, statement: PrivacyStatement) -> bool:
        return statement.mechanism.split(" + ")[0] in _MECHANISMS  # the mechanisms of earlier releases follow

    def verify_folder(self, folder: Path) -> Collection[str]:
        return statements_in(folder)

    def check(self, files: ReleaseFiles) -> Audit:
        vectors = load_folder(files.data, limit=None, source=files.data.name)
        statement = vectors.statement
        assert statement is not None  # the folder has one
        agree = len(vectors) == statement.parameters.get("words")
        count = f"{len(vectors):,} words, {vectors.dimension} numbers each"
        result = [
            checks.FILES_AGREE,
            Check("there are as many words as the statement says", agree, count),
            Check("all numbers are finite", bool(np.isfinite(vectors.matrix).all()), count),
        ]
        if (files.data / GENSIM_COPY).exists():
            agrees = is_copy(files.data / GENSIM_COPY, vectors)
            seen = "byte for byte" if agrees else "it contains other vectors"
            result.append(Check(f"{GENSIM_COPY} is a copy of these vectors", agrees, seen))
        for file, one in statements_in(files.data).items():
            level = one.parameters.get("level")
            users = "everybody" if level is None or file == STATEMENT else f"users of the level {str(level)!r}"
            name = f"the guarantee for {users} follows from the parameters"
            result.append(Check(name, not _judge_learned(one).refuted, f"{one.guarantee}"))
        covers = checks.covers_earlier(statement)
        result.append(Check("the guarantee covers this release and earlier ones in it", *covers))
        return Audit(statement, result, _judge_learned(statement))


def _judge_learned(statement: PrivacyStatement) -> Verdict:
    """Judge whether the stated noise is sufficient for the guarantee of this release alone."""
    people = {Unit.USER: "all people", Unit.DOCUMENT: "all documents"}.get(statement.unit, "all pairs of words")
    coverage = f"{people}, {_COVERAGE}"
    fields: dict[str, Any] = {"release_guarantee": checks.own_guarantee(statement), "coverage": coverage}
    real = partial(checks.real_parameter, statement)
    with checks.describes("noise"):
        if "sigma" in statement.parameters:
            return judge_gaussian(statement, sigma=real("sigma"), sensitivity=real("sensitivity"), **fields)
        noise, steps = real("noise_multiplier"), checks.whole_parameter(statement, "steps")
        account = SampledGaussian(noise_multiplier=noise, sampling_rate=real("sampling_rate"), steps=steps)
        return judge_sampled_gaussian(statement, account=account, **fields)
