"""The audit of a file or folder: against its statement, its numbers made again, and an attempt to refute the promise.

What is passed on to `dptext.audit` (``how``): samples, error, seed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.audits.mechanisms import audit
from dptext.audits.verdict import Verdict, judge_gaussian, judge_sampled_gaussian
from dptext.embeddings.sharing import check_copies
from dptext.errors import DataError, ParameterError, extra
from dptext.features.pool import Pool
from dptext.io.documents import find_files, read_documents
from dptext.noise.gaussian_sums import count_off_grid
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.gaussian import SampledGaussian
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.statement import PrivacyStatement, disagreements, of_release
from dptext.release.mechanism import TextMechanism
from dptext.release.redaction import as_redacted, is_redacted, placeholders_of
from dptext.release.release import data_agrees
from dptext.reports.inputs import columns_of
from dptext.reports.results import Check
from dptext.representations.device import check_device
from dptext.representations.files import vectors_in
from dptext.representations.published.protocols import PublishedChannel
from dptext.representations.registry import PUBLISHED_ONLY, RANDOMIZERS, randomizer_from_parameters
from dptext.sentences.origins import Parting
from dptext.sentences.rewriter import BankRewriter
from dptext.synthesis.distribution import (
    Described,
    TextDistribution,
    announces_description,
    is_described,
    read_description,
)
from dptext.synthesis.release import distribution_path
from dptext.synthesis.synthesizer import always_assumed, noise_parameters
from dptext.vectors.formats import load_folder, statements_in
from dptext.words.mechanism import WordMechanism
from dptext.words.replacing import count_foreign_words, words_that_can_come_out

Floats = npt.NDArray[np.float64]
NOISE_ERROR = 1e-6
"""Probability with which `check_noise` rejects an honest release."""
_VISIBLE = 0.85  # smallest noise, relative to the stated scale, that a conclusive comparison may miss
_MOST_NUMBERS = 1 << 20  # of a vector: what is audited has to fit into memory
_NO_CONSTANTS = ("exposed", "witness", "witness_loss")
"""What follows from the encoder, which a statement does not hold, and what a search found."""
_WORDED = {"condition", "assumptions", "exposed"}
_ANNOUNCED = Check("all files are those that config.json announces", True, "their SHA-256 agree")
_SEEN = {True: "its SHA-256 agrees", False: "its SHA-256 DIFFERS", None: "there is no data to compare"}


@contextmanager
def _speaks_of(what: str) -> Iterator[None]:
    try:
        yield
    except ParameterError as problem:
        raise DataError(f"the statement speaks of {what} that cannot be: {problem}") from None


def is_of_vectors(statement: PrivacyStatement) -> bool:
    """Whether the statement speaks of vectors that a randomizer of this library made."""
    return statement.mechanism in RANDOMIZERS or statement.mechanism in PUBLISHED_ONLY


def audit_word_file(
    statement: PrivacyStatement,
    data: Path,
    mechanism: WordMechanism,
    *,
    text: str = "text",
    words: Sequence[str] | None = None,
    **how: Any,
) -> tuple[list[Check], Verdict]:
    checks = _check_digest(statement, data)
    if checks[0].held is not None:
        known = words_that_can_come_out(mechanism.vectors.vocabulary) | placeholders_of(statement)
        documents = foreign = 0
        parts = [path for path, _ in find_files([data])]  # of a folder, as Spark writes it
        for document in read_documents(parts, text=text):
            documents += 1
            foreign += count_foreign_words(document.text or "", known)
        seen = f"{documents:,} documents, {foreign:,} words that the mechanism cannot have written"
        checks.append(Check("every word is one that the mechanism writes", foreign == 0, seen))
    longest = statement.parameters.get("words_counted")
    again = _stated(statement, mechanism, longest if isinstance(longest, int) else 0)
    checks.append(_check_promise(statement, again, apart_from=("vectors",)))  # they may have moved
    return checks, audit(mechanism, words=words, labels=mechanism.labels, **how)


def _stated(statement: PrivacyStatement, mechanism: TextMechanism, longest: int) -> PrivacyStatement:
    """What the mechanism behind a statement promises for its documents, redacted or not."""
    again = mechanism.document_statement(longest)
    if not is_redacted(statement):
        return again
    return as_redacted(again, statement.parameters, shows_placeholders=mechanism.keeps_marks)


def audit_bank_file(
    statement: PrivacyStatement, data: Path, rewriter: BankRewriter, *, text: str = "text", **how: Any
) -> tuple[list[Check], Verdict]:
    checks = _check_digest(statement, data)
    longest = statement.parameters.get("sentences_counted")
    counted = longest if isinstance(longest, int) and not isinstance(longest, bool) and longest >= 0 else 0
    if checks[0].held is not None:
        checks += _check_parts(rewriter, data, text, counted)
    again = _stated(statement, rewriter, counted)
    checks.append(_check_promise(statement, again, apart_from=("bank", "bank_licence")))  # names of one fingerprint
    return checks, audit(rewriter, **how)


def _check_parts(rewriter: BankRewriter, data: Path, text: str, counted: int) -> Iterator[Check]:
    """Whether each text is made of texts of the bank, and of as many as the statement says."""
    parting = Parting(rewriter.bank.texts)
    always = rewriter.longest_document if rewriter.unit == "document" else None
    count = 0
    foreign: list[int] = []
    others: list[int] = []
    for document in read_documents([path for path, _ in find_files([data])], text=text):
        count += 1
        if document.text is None:
            continue
        parts = parting.counts(document.text)
        if not parts:
            foreign.append(count)
        elif always not in parts if always is not None else min(parts) > counted:
            others.append(count)
    seen = f"{count:,} texts, {len(foreign):,} of them otherwise"
    yield Check("every text is made of texts of the bank", not foreign, seen + _first(foreign))
    asked = f"{always:,}" if always is not None else f"at most {counted:,}"
    seen = f"{len(others):,} of another number"
    yield Check(f"every text is made of {asked} of them, as the statement says", not others, seen + _first(others))


def _first(rows: Sequence[int]) -> str:
    return f", the first in row {rows[0]:,}" if rows else ""


def audit_vector_file(statement: PrivacyStatement, data: Path, **how: Any) -> tuple[list[Check], Verdict]:
    checks = _check_digest(statement, data)
    if checks[0].held is not None:
        width = _number(statement, "width")
        count = wrong = 0
        for vectors in vectors_in(data):
            count += len(vectors)
            fits = vectors.shape[1] == width
            wrong += int((~np.isfinite(vectors).all(axis=1)).sum()) if fits else len(vectors)
        seen = f"{count:,} vectors, {wrong:,} of them otherwise"
        checks.append(Check(f"every vector has {width:,} finite numbers", wrong == 0, seen))
    follows, verdict = _audit_randomizer(statement, **how)
    return [*checks, follows], verdict


def _audit_randomizer(statement: PrivacyStatement, **how: Any) -> tuple[Check, Verdict]:
    """Whether the promise follows from the parameters, and the verdict on the channel that they speak of."""
    randomizer = randomizer_from_parameters(statement.mechanism, statement.parameters)
    dimension = _number(statement, "dimension")
    if dimension > _MOST_NUMBERS:
        raise DataError(f"expected a statement of vectors of at most {_MOST_NUMBERS:,} numbers, got {dimension:,}")
    with _speaks_of("a randomizer"):
        again = randomizer.statement(dimension)
    follows = _check_promise(statement, again, apart_from=_NO_CONSTANTS)
    # the claim is that of the file: the parameters may say more than they keep
    channel = randomizer.channel(dimension)
    pair = channel.witness if isinstance(channel, PublishedChannel) else None  # two that are known to lose most
    return follows, audit(channel, statement, pair=pair, **how)


def audit_device(folder: Path, **how: Any) -> tuple[PrivacyStatement, list[Check], Verdict]:
    statement = check_device(folder)
    checks = [_ANNOUNCED]
    more, verdict = _audit_randomizer(statement, **how)
    return statement, [*checks, more], verdict


def audit_embeddings(folder: Path) -> tuple[PrivacyStatement, list[Check], Verdict]:
    vectors = load_folder(folder, limit=None, source=folder.name)
    statement = vectors.statement
    if statement is None:
        raise DataError(
            f"{folder.name} holds vectors without a statement: nothing was promised to who wrote what they were made "
            "from, so there is nothing to audit"
        )
    said = statement.parameters.get("words")
    count = f"{len(vectors):,} words, {vectors.dimension} numbers each"
    checks = [
        _ANNOUNCED,
        Check("there are as many words as the statement says", len(vectors) == said, count),
        Check("all numbers are finite", bool(np.isfinite(vectors.matrix).all()), count),
    ]
    for name, agrees in check_copies(folder, vectors):
        seen = "byte for byte" if agrees else "it holds others"
        checks.append(Check(f"{name} is a copy of these vectors", agrees, seen))
    for file, one in statements_in(folder).items():
        verdict = _judge_learned(one)
        level = one.parameters.get("level")
        whose = "everybody" if level is None or file == _IN_A_FOLDER else f"users of the level {str(level)!r}"
        checks.append(
            Check(f"the promise to {whose} follows from the parameters", not verdict.refuted, f"{one.guarantee}")
        )
    level = statement.parameters.get("epsilon_for_level", 0.0)
    sent = float(level) * _DIGITS[0] if isinstance(level, int | float) else 0.0
    checks.append(Check("the promise covers the release and what went into it", *_covers_earlier(statement, sent)))
    return statement, checks, _judge_learned(statement)


_IN_A_FOLDER = "privacy.json"
_OUTSIDE = (
    "whoever takes part beside them: each part is clipped to its length, as long as the software that the statement "
    "names did what it says"
)


def _judge_learned(statement: PrivacyStatement) -> Verdict:
    """Whether the noise that a statement of learned vectors names is enough for what this release promises itself."""
    people = {Unit.USER: "all people", Unit.DOCUMENT: "all documents"}.get(statement.unit, "all pairs of words")
    how: dict[str, Any] = {"own": _own(statement), "coverage": f"{people}, {_OUTSIDE}"}
    with _speaks_of("noise"):
        if "sigma" in statement.parameters:
            sigma, sensitivity = _real(statement, "sigma"), _real(statement, "sensitivity")
            return judge_gaussian(statement, sigma=sigma, sensitivity=sensitivity, **how)
        account = SampledGaussian(
            noise_multiplier=_real(statement, "noise_multiplier"),
            sampling_rate=_real(statement, "sampling_rate"),
            steps=_number(statement, "steps"),
        )
        return judge_sampled_gaussian(statement, account=account, **how)


def _earlier(statement: PrivacyStatement) -> list[str]:
    """Return the guarantees of earlier releases that went into this one, as the statement prints them."""
    return [str(value) for name, value in statement.parameters.items() if name.startswith("promise_of_")]


def _covers_earlier(statement: PrivacyStatement, epsilon: float = 0.0) -> tuple[bool, str]:
    """Return whether the guarantee is at least the sum of all parts (and a pure epsilon), and the parts in words."""
    own, earlier, guarantee = _own(statement), _earlier(statement), statement.guarantee
    parts = [(own.epsilon, own.delta), (epsilon, 0.0), *map(_at_least, earlier)]
    least_epsilon, least_delta = (math.fsum(values) * (1 - 1e-12) for values in zip(*parts, strict=True))
    covers = isinstance(guarantee, ApproxDP) and guarantee.epsilon >= least_epsilon and guarantee.delta >= least_delta
    return covers, f"{guarantee}" + (f", of which {', '.join(earlier)} for what was before" if earlier else "")


def _real(statement: PrivacyStatement, name: str) -> float:
    value = statement.parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"the statement lacks the {name} of its release: it is not one that dptext wrote")
    return float(value)


def description_folder(data: Path, named: Path | None = None) -> Path | None:
    folder = distribution_path(data) if named is None else named
    if folder.is_dir() and announces_description(folder):
        return folder
    if named is not None:
        raise DataError(f"{named.name}: expected the folder of a description of texts, it is none")
    return None


def audit_synthetic_file(
    statement: PrivacyStatement,
    data: Path,
    *,
    text: str = "text",
    pool: Pool | None = None,
    described: Described | None = None,
) -> tuple[list[Check], Verdict]:
    _require_pool(statement, pool)
    checks = _check_digest(statement, data)
    if checks[0].held is not None:
        checks += _check_corpus(statement, data, text, pool, described)
    if described is not None:
        checks.append(_check_grid(described))
        differ = disagreements(statement, described.statement, of_a_release=True)  # it may say more, not less
        if statement.release_id is None or statement.release_id != described.statement.release_id:
            differ.insert(0, "release_id")
        seen = f"{', '.join(differ)} differ" if differ else f"release {described.statement.release_id}"
        checks.append(Check("the description is the one that the corpus was made from", not differ, seen))
    return [*checks, _check_people(statement)], _judge_people(statement)


def audit_description(folder: Path) -> tuple[PrivacyStatement, list[Check], Verdict]:
    described = read_description(folder)
    statement, shape = described.statement, described.matrix.shape
    said = statement.parameters
    checks = [_ANNOUNCED]
    expected = (said.get("classes"), 1 + _number(statement, "features_dimension"))
    fits = shape == expected == (len(described.labels), expected[1]) and bool(np.isfinite(described.matrix).all())
    checks.append(Check("the matrix is the one that was promised", fits, " x ".join(f"{each:,}" for each in shape)))
    same = described.sigma == said.get("sigma")
    checks.append(Check("the noise is that of the statement", same, f"standard deviation {described.sigma:g}"))
    return statement, [*checks, _check_grid(described), _check_people(statement)], _judge_people(statement)


def _check_grid(described: Described) -> Check:
    """Check that the released numbers lie on the public grid of the stated noise, as all sums with this noise do."""
    count = described.matrix.size
    off = count_off_grid(described.matrix, described.sigma) if described.sigma > 0 else count
    return Check("the numbers lie on the grid of the stated noise", off == 0, f"{off:,} of {count:,} do not")


def check_noise(matrix: Floats, exact: Floats, sigma: float) -> Check:
    """Compare the noise of a description, (matrix - exact) / sigma, with N(0, 1)."""
    stats = extra("scipy.stats", "audit", "the comparison of noise")
    noise = (matrix - exact) / sigma
    residuals, rounding = np.sort(np.abs(noise), axis=None), 2.0**-13  # the grid moves a residual by at most this much
    count, error = residuals.size, NOISE_ERROR / 4

    def lowest(degrees: int) -> float:
        return math.sqrt(stats.chi2.ppf(error, degrees) / degrees)

    parts = [(noise[:, 0], len(noise))]
    if len(noise) > 1:
        parts.append((noise - noise.mean(axis=0), (len(noise) - 1) * noise.shape[1]))
    is_small = any(np.linalg.norm(part) / math.sqrt(n) + 2 * rounding < lowest(n) for part, n in parts)
    scale, low = float(np.linalg.norm(residuals)) / math.sqrt(count), lowest(count)
    high = math.sqrt(stats.chi2.isf(error, count) / count)
    excess = float((np.arange(1, count + 1) / count - stats.halfnorm.cdf(residuals)).max())
    seen = f"{count:,} numbers, {scale:.3f} times the stated scale; below {low:.3f} refutes"
    if is_small or scale + rounding < low or excess - rounding > math.sqrt(-math.log(error) / (2 * count)):
        agrees: bool | None = False
    elif scale - rounding > high:
        agrees = None
        seen += ". This may not be the original of the release: check --original, --user and --text"
    else:
        agrees = True if low >= _VISIBLE else None
        seen += "" if agrees else "; too few numbers for a conclusion"
    return Check("the noise has the stated distribution", agrees, seen, owner_only=True)


def _check_corpus(
    statement: PrivacyStatement, data: Path, text: str, pool: Pool | None, described: Described | None
) -> Iterator[Check]:
    labels = None if described is None else described.labels
    columns = () if labels is None else labels.columns
    missing = set(columns) - set(columns_of(data, text=text, wanted=columns))
    parts = [path for path, _ in find_files([data])]
    known = None if pool is None else {" ".join(each.split()) for each in pool.texts}
    count = foreign = outside = 0
    seen: set[str] = set()
    for document in read_documents(parts, text=text, keep=() if missing else columns):
        count += 1
        spaced = " ".join((document.text or "").split())
        foreign += known is not None and spaced not in known
        seen.add(spaced)
        if labels is not None and not missing:
            values = document.attributes or {}
            outside += labels.code([values.get(column) for column in columns]) < 0
    announced = statement.parameters.get("texts")
    yield Check("there are as many texts as the statement says", count == announced, f"{count:,} texts")
    if "pool_sha256" not in statement.parameters:
        yield Check("every text is one of the public pool", None, "a generator wrote them")
    else:
        yield Check("no text stands there twice", len(seen) == count, f"{count - len(seen):,} texts do")
        named = pool is not None
        seen_of_pool = f"{foreign:,} texts are not" if named else "the pool was not named (--public)"
        yield Check("every text is one of the public pool", foreign == 0 if named else None, seen_of_pool)
    if labels is None:
        yield Check("every label is one of the public set", None, "the description was not named (--distribution)")
    elif missing:
        yield Check("every label is one of the public set", False, f"the column {min(missing)!r} is missing")
    elif columns:
        yield Check("every label is one of the public set", outside == 0, f"{outside:,} texts have another")


def _require_pool(statement: PrivacyStatement, pool: Pool | None) -> None:
    digest = statement.parameters.get("pool_sha256")
    if pool is not None and digest is not None and pool.sha256 != digest:
        count = statement.parameters.get("pool_texts")
        texts = f"{count:,} texts, " if isinstance(count, int) else ""
        raise ParameterError(
            f"this pool ({len(pool):,} texts) is not the pool of the statement ({texts}SHA-256 digest {digest}): "
            "pass that one as --public. Nothing was checked."
        )


def _check_people(statement: PrivacyStatement) -> Check:
    """Whether the promise is the one that follows from epsilon, delta and what was promised before."""
    own = _own(statement)
    epsilon, delta = (statement.parameters[name] for name in ("epsilon", "delta"))
    assert isinstance(epsilon, int | float) and isinstance(delta, int | float)
    with _speaks_of("a budget"):
        budget = PersonalBudgets(epsilon, delta=delta, floor=0.0)
    before = _earlier(statement)
    again = of_release(
        guarantee=own,
        unit=statement.unit if statement.unit in (Unit.USER, Unit.DOCUMENT) else Unit.USER,
        relation=Relation.ADD_REMOVE,
        trust=Trust.CENTRAL,
        mechanism=statement.mechanism if is_described(statement) else TextDistribution.mechanism,
        parameters=noise_parameters(budget, budget.guarantee(relation=Relation.SUBSTITUTION)),
        assumptions=always_assumed(statement.unit, counted_in=bool(before)),
    )
    # what was promised before is known up to the digits in which the statement names it
    summed = ("guarantee", "epsilon_under_substitution", "delta_under_substitution") if before else ()
    check = _check_promise(statement, again, apart_from=summed)
    if not before or not check.held:
        return check
    return Check(check.name, *_covers_earlier(statement))


_DIGITS = (1 - 1e-3, 1 - 1e-2)  # a promise in words has 4 digits of epsilon and 3 of delta, rounded up
_PROMISE = re.compile(
    r"\((?P<epsilon>[\d.e+-]+), (?P<delta>[\d.e+-]+)\)|(?P<pure>[\d.e+-]+)-differential privacy \(pure\)"
)


def _at_least(promise: str) -> tuple[float, float]:
    """The least epsilon and delta that a promise in words can stand for."""
    found = _PROMISE.match(promise)
    if found is None:
        return 0.0, 0.0
    return float(found["epsilon"] or found["pure"]) * _DIGITS[0], float(found["delta"] or 0.0) * _DIGITS[1]


def _judge_people(statement: PrivacyStatement) -> Verdict:
    sigma, own = _real(statement, "sigma"), _own(statement)
    people = "people" if statement.unit is Unit.USER else "documents"
    coverage = f"all {people}, each of length 1 at most, if the stated software works as documented"
    with _speaks_of("noise"):
        return judge_gaussian(statement, sigma=sigma, sensitivity=1.0, own=own, coverage=coverage)


def _own(statement: PrivacyStatement) -> ApproxDP:
    """Return the guarantee of this release alone, without earlier releases."""
    epsilon, delta = (_real(statement, name) for name in ("epsilon", "delta"))
    with _speaks_of("a budget"):
        return ApproxDP(epsilon, delta)


def _number(statement: PrivacyStatement, name: str) -> int:
    value = statement.parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DataError(f"the statement lacks the {name} of its vectors: it is not one that dptext wrote")
    return value


def _check_digest(statement: PrivacyStatement, data: Path) -> list[Check]:
    agrees = data_agrees(statement, data)
    return [Check("the data is the data of the statement", agrees, _SEEN[agrees])]


def _check_promise(statement: PrivacyStatement, again: PrivacyStatement, *, apart_from: Sequence[str]) -> Check:
    """Whether a statement is the one that follows from its parameters."""
    differ = disagreements(statement, again, of_a_release=True, apart_from=tuple(apart_from))
    same_version = statement.software == again.software
    counted = [name for name in differ if same_version or name not in _WORDED]
    seen = f"{again.guarantee}" + (f"; {', '.join(differ)} differ" if differ else "")
    if len(counted) < len(differ):
        seen += ", perhaps in their wording only: another version wrote the statement"
    return Check("the promise follows from the parameters", not counted, seen)
