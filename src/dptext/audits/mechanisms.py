"""Audits of mechanisms for words, for sentence replacement and for vectors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.audits.goodness import Release, Rows, Sampler, compare_releases
from dptext.audits.losses import sampled_loss
from dptext.audits.vectors import Pair, VectorScore, audit_vectors
from dptext.audits.verdict import Verdict, add_draws, as_approx, check_claim, judge_exact, judge_sample
from dptext.display import progress_bar
from dptext.errors import ParameterError
from dptext.privacy.guarantee import MetricDP, Unit
from dptext.privacy.neighbours import ONE_GROUP, OneGroup
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement

Points: TypeAlias = npt.NDArray[np.float64]
Distance: TypeAlias = Callable[[Points, Points], npt.ArrayLike]
"""((n, d), (m, d)) float64 points -> (n, m) distances."""
Labels: TypeAlias = Sequence[int] | npt.NDArray[np.int64]

_CALLERS = "caller's "
_ELLIPTICAL = re.compile(r"regularized mahalanobis \(lambda (\S+)\)")
_ALL_PAIRS_UP_TO = 2_000
_CHOSEN = 600
_RUN = 20
_MAX_PROBABILITIES = 1 << 24  # in memory
_MIN_TEXTS = 8
_COPIES = 3
_RELEASED = 64  # different parts in the released documents


def audit(
    mechanism: Any,
    claim: PrivacyStatement | None = None,
    *,
    words: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    distance: Distance | None = None,
    labels: Labels | None = None,
    dimension: int | None = None,
    pair: Pair | None = None,
    score: VectorScore | None = None,
    samples: int = 200_000,
    error: float = 1e-6,
    seed: int | None = None,
    progress: bool | None = None,
) -> Verdict:
    """Try to refute the guarantee of a mechanism for one word, one text or one vector.

    Word mechanism: exact if it reports its distribution (``distributions`` or ``probabilities``), over every pair of
    the audited words and every output; then draws are compared with that distribution (`dptext.audits.goodness`).
    Otherwise sampled as a black box, for the pair of words with the smallest allowed loss.

    Sentence replacement: exact, over every pair of the audited texts and every text of the bank; then draws, and
    released documents, are compared with that distribution.

    Randomizer of vectors (`dptext.audits.audit_vectors`): sampled, at the two most distant vectors of its domain.

    Args:
        mechanism: a word mechanism (``vectors``, ``statement``, ``sample``); a `BankRewriter`; a randomizer of vectors
            or its channel for one dimension; a `DeviceEncoder`, or a fitted `PrivateEncoder`.
        claim: the statement to audit; None: the mechanism's statement (a channel has none).
        words: the words whose pairs are audited; None: the whole vocabulary up to 2,000 words, otherwise 600 of them
            (a random half and their nearest neighbours, including the unknown word).
        texts: for a `BankRewriter`: the public texts whose pairs are audited; None: the empty text and random texts of
            the bank, as many as fit into 2^24 probabilities (600 at most).
        distance: for a claim in a caller-defined metric: its function, ((n, d), (m, d)) float64 -> (n, m). A mechanism
            must not supply its own measure.
        labels: for a claim about words of one group of a public partition: the group of each word of the vocabulary.
        dimension: for a randomizer: the dimension of the vectors.
        pair: for vectors: the audited pair; None: chosen automatically.
        score: for vectors: the score that ranks the outputs; None: chosen automatically; ``"learnt"``: a classifier.
        samples: for a sampled bound: outputs per input; for an exact audit: the number of compared draws.
        error: the probability of refuting a true claim.
        seed: seed of the chosen inputs and of the draws; None for fresh randomness.
        progress: show a progress bar, see `dptext.display`.

    Returns:
        A `Verdict`: ``outcome``, measured ``loss``, ``allowed`` loss, ``refuted``.

    Raises:
        ParameterError: the claim is not about one word, text or vector, or has no guarantee; it needs ``distance`` or
            ``labels``; the mechanism breaks its contract; an option of another kind of mechanism.

    >>> import dptext
    >>> vectors = dptext.load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> verdict = audit(dptext.TEM(vectors, epsilon=2.0))
    >>> str(verdict.outcome), verdict.loss <= verdict.allowed
    ('exact', True)
    """
    if isinstance(mechanism, str | type):
        raise ParameterError(f"mechanism must be an object such as TEM(...), got a {type(mechanism).__name__}")
    if not any(hasattr(mechanism, name) for name in ("vectors", "bank", "release_", "channel", "sample")):
        raise ParameterError(
            f"mechanism must be a word mechanism, a BankRewriter or a randomizer, got {type(mechanism).__name__}: "
            "derive yours from ShownMechanism, WordMechanism or Randomizer (docs: A mechanism of your own)"
        )
    kind = "words" if hasattr(mechanism, "vectors") else "texts" if hasattr(mechanism, "bank") else "vectors"
    audits: dict[str, tuple[Callable[..., Verdict], dict[str, Any]]] = {
        "words": (_audit_words, {"words": words, "distance": distance, "labels": labels}),
        "texts": (_audit_texts, {"texts": texts}),
        "vectors": (_audit_randomizer, {"dimension": dimension, "pair": pair, "score": score}),
    }
    run, options = audits.pop(kind)
    foreign = [f"{name}=" for _, others in audits.values() for name, value in others.items() if value is not None]
    if foreign:
        raise ParameterError(f"{', '.join(foreign)} does not apply to a mechanism of {kind}: omit it")
    with progress_bar(progress, "auditing"):
        return run(mechanism, claim, **options, samples=samples, error=error, seed=seed)


def _audit_randomizer(
    mechanism: Any, claim: PrivacyStatement | None, *, dimension: int | None, **options: Any
) -> Verdict:
    sent: Any = getattr(mechanism, "release_", mechanism)  # a fitted estimator releases through it
    channel: Any = getattr(sent, "channel", sent)
    statement: Any = getattr(sent, "statement", None)
    if channel is not sent and callable(channel):
        if dimension is None:
            raise ParameterError("dimension is required: the loss of a randomizer depends on it, e.g. dimension=64")
        channel = channel(dimension)
        statement = statement(dimension) if claim is None else None
    elif dimension is not None:
        raise ParameterError("a channel has a fixed dimension: omit dimension=")
    claim = statement if claim is None else claim
    if claim is None or callable(claim):
        raise ParameterError("claim is required: a channel has no statement")
    return audit_vectors(channel, claim, **options)


def _audit_words(
    mechanism: Any,
    claim: PrivacyStatement | None,
    *,
    words: Sequence[str] | None,
    distance: Distance | None,
    labels: Labels | None,
    samples: int,
    error: float,
    seed: int | None,
) -> Verdict:
    claim = check_claim(mechanism.statement if claim is None else claim)
    if claim.unit is not Unit.WORD:
        raise ParameterError(
            f"expected a claim about one word, got one about a {claim.unit}. Audit one word: texts are compositions"
        )
    vectors = mechanism.vectors
    measure = None
    if isinstance(claim.guarantee, MetricDP):
        measure = distance_named(claim.guarantee.metric, distance, vectors.matrix)
    groups = _check_labels(claim, len(vectors.words), labels)
    chosen = _chosen_words(vectors, RandomBits(seed), groups) if words is None else list(words)
    if len(set(chosen)) < 2:
        raise ParameterError(f"expected at least two different words to compare, got {len(set(chosen))}")
    row = {word: index for index, word in enumerate(vectors.words)}
    rows = [row[word] for word in chosen]
    allowed = _AllowedLoss(
        claim,
        points=vectors.matrix[rows].astype(np.float64),
        distance=measure,
        groups=None if groups is None else groups[rows],
    )
    sampler = _sampler_of(mechanism, chosen, vectors.words, seeded=seed is not None)
    if hasattr(mechanism, "distributions"):
        shares = mechanism.distributions(chosen)
    elif hasattr(mechanism, "probabilities"):
        shares = np.stack([np.asarray(mechanism.probabilities(word), dtype=np.float64) for word in chosen])
    else:
        pair = allowed.tightest_pair()
        draws = [partial(lambda row, count, bits: np.asarray(sampler(np.full(count, row), bits)), row) for row in pair]
        bound = sampled_loss(*draws, samples=samples, error=error, seed=seed)
        return judge_sample(
            claim,
            bound,
            allowed=float(allowed(pair[0], slice(pair[1], pair[1] + 1))[0]),
            error=error,
            witness=f"{chosen[pair[0]]!r} against {chosen[pair[1]]!r}, {bound.event}",
            coverage=f"the pair of {len(chosen):,} words with the smallest allowed loss, {samples:,} samples each",
        )
    coverage = f"{'all' if len(chosen) == len(vectors.words) else 'the'} pairs of {len(chosen):,} words"
    if claim.condition.has(OneGroup):
        coverage += ", counting pairs of one group"
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    lowercase = [word for word in chosen if word.isalpha() and word == word.lower()][:_RELEASED]
    release = _release_of(mechanism, seed) if lowercase else None
    verdict = judge_exact(
        claim,
        logs,
        allowed,
        names=chosen,
        outputs=vectors.words,
        coverage=coverage,
        sampler=sampler if hasattr(mechanism, "sample") else None,
        samples=samples,
        error=error if release is None else error / 2,
        seed=seed,
    )
    if release is None or verdict.refuted:
        return verdict
    share_of = {word: np.exp(logs[chosen.index(word)]) for word in lowercase}
    expected = _expected(str.split, lambda words: [share_of[word] for word in words], vectors.words)
    return _add_release(verdict, release, expected, lowercase, mechanism, error=error, bits=RandomBits(seed))


def _audit_texts(
    mechanism: Any,
    claim: PrivacyStatement | None,
    *,
    texts: Sequence[str] | None,
    samples: int,
    error: float,
    seed: int | None,
) -> Verdict:
    claim = check_claim(mechanism.part_statement if claim is None else claim)
    bank = mechanism.bank.texts
    bank_names = [f"text {number} of the bank" for number in range(1, len(bank) + 1)]  # texts may be long
    bits = RandomBits(seed)
    if texts is None:
        count = min(len(bank), _CHOSEN, max(_MIN_TEXTS, _MAX_PROBABILITIES // len(bank)))
        rows = np.argsort(bits.uniform(len(bank)))[:count].tolist()
        texts = list(dict.fromkeys(["", *(bank[row] for row in rows)]))
        names = ["the empty text", *(bank_names[row] for row in rows)]
    else:
        texts, names = list(texts), [f"text {number}" for number in range(1, len(texts) + 1)]
    if len(set(texts)) < 2:
        raise ParameterError(f"expected at least two different texts to compare, got {len(set(texts))}")
    draw = _sampler_of(mechanism, texts, bank, seeded=seed is not None)

    def sampler(inputs: Rows, bits: RandomBits) -> Rows:
        order = np.argsort(inputs, kind="stable")  # the mechanism prepares equal neighbouring texts once
        result = np.empty(len(inputs), dtype=np.int64)
        result[order] = draw(inputs[order], bits)
        return result

    with np.errstate(divide="ignore"):
        logs = np.log(np.asarray(mechanism.distributions(texts), dtype=np.float64))
    verdict = judge_exact(
        claim,
        logs,
        as_approx(claim).epsilon + claim.slack,
        names=names,
        outputs=bank_names,
        coverage=f"the pairs of {len(texts):,} public texts, {len(bank):,} outputs",
        sampler=sampler,
        samples=samples,
        error=error / 2,
        seed=seed,
    )
    release = _release_of(mechanism, seed)
    if release is None or verdict.refuted:
        return verdict
    expected = _expected(mechanism.parts, mechanism.distributions, bank)
    return _add_release(verdict, release, expected, texts[:_RELEASED], mechanism, error=error, bits=bits)


def _add_release(
    verdict: Verdict,
    release: Release,
    expected: Release,
    parts: Sequence[str],
    mechanism: Any,
    *,
    error: float,
    bits: RandomBits,
) -> Verdict:
    """Compare released documents of equal parts with independent draws, at half of the error."""
    copies = min(_COPIES, getattr(mechanism, "longest_document", None) or _COPIES)
    draws = compare_releases(release, expected, parts, copies=copies, error=error / 2, bits=bits)
    method = f"{verdict.method}, and {draws.draws:,} documents of a release (equal parts)"
    if draws.agree:
        return replace(verdict, error=error, method=method)
    return add_draws(verdict, draws, error=error, method=method)


@dataclass(frozen=True)
class _AllowedLoss:
    """The loss that a claim allows for pairs of words; distances in the claim's metric are computed here."""

    claim: PrivacyStatement
    points: Points
    distance: Distance | None
    groups: Rows | None

    def __call__(self, i: int, others: slice) -> Points:
        guarantee = self.claim.guarantee
        if isinstance(guarantee, MetricDP):
            assert self.distance is not None
            far = np.array(self.distance(self.points[i : i + 1], self.points[others]), dtype=np.float64)[0]
            if not (far >= 0).all():  # a NaN would allow everything
                raise ParameterError("the distance must be at least 0 for every pair of words, got less or NaN")
            max_distance = math.inf if guarantee.max_distance is None else guarantee.max_distance
            losses: Points = guarantee.epsilon * np.minimum(far, max_distance) + self.claim.slack
        else:
            losses = np.full(others.stop - others.start, as_approx(self.claim).epsilon + self.claim.slack)
        if self.groups is not None:
            losses[self.groups[others] != self.groups[i]] = math.inf  # not neighbours under this claim
        return losses

    def tightest_pair(self) -> tuple[int, int]:
        best = (math.inf, 0, 1)
        for i in range(len(self.points) - 1):
            losses = self(i, slice(i + 1, len(self.points)))
            offset = int(np.argmin(losses))
            best = min(best, (float(losses[offset]), i, i + 1 + offset))
        return best[1], best[2]


def _check_labels(claim: PrivacyStatement, size: int, labels: Labels | None) -> Rows | None:
    """Return the (V,) public groups of the words, if the claim depends on them."""
    if not claim.condition.has(OneGroup):
        if labels is not None:
            raise ParameterError("the claim does not depend on groups: omit labels=")
        return None
    if labels is None or len(labels) != size:
        raise ParameterError(
            f"the claim is about two words of {ONE_GROUP}: pass the group of each of the {size:,} words as labels="
        )
    return np.asarray(labels, dtype=np.int64)


def _chosen_words(vectors: Any, bits: RandomBits, groups: Rows | None) -> list[str]:
    words: tuple[str, ...] = vectors.words
    if len(words) <= _ALL_PAIRS_UP_TO:
        return list(words)
    if groups is not None:  # whole groups
        order = np.argsort(groups, kind="stable")
        starts = np.argsort(bits.uniform(len(words) // _RUN))[: _CHOSEN // _RUN] * _RUN
        return [words[row] for row in np.unique(order[(starts[:, None] + np.arange(_RUN)).ravel()])]
    picked = np.argsort(bits.uniform(len(words)))[: _CHOSEN // 2]
    points = vectors.matrix.astype(np.float64)
    near = [int(np.argsort(((points - points[row]) ** 2).sum(axis=1))[1]) for row in picked]
    unknown = [words.index("<unk>")] if "<unk>" in words else []
    return [words[row] for row in dict.fromkeys([*unknown, *picked.tolist(), *near])]


def _sampler_of(mechanism: Any, inputs: Sequence[str], outputs: Sequence[str], *, seeded: bool) -> Sampler:
    """Return a sampler on indices; an unknown output gets the index after the last output."""
    output_index = {output: index for index, output in enumerate(outputs)}

    def draw(indices: Rows, bits: RandomBits) -> Rows:
        seed = int(bits.integers(1)[0]) if seeded else None  # None: fresh randomness, as in normal use
        sample = mechanism.sample([inputs[index] for index in indices], seed=seed)
        return np.array([output_index.get(output, len(outputs)) for output in sample], dtype=np.int64)

    return draw


def _release_of(mechanism: Any, seed: int | None) -> Release | None:
    """Return the release of documents (`dptext.release.mechanism.Replacing`), if the mechanism has one."""
    if not hasattr(mechanism, "replacing"):
        return None
    # without a seed, fresh randomness, as in normal use
    return lambda documents, bits: mechanism.replacing()(documents, RandomBits(None) if seed is None else bits)[0]


def _expected(
    parts_of: Callable[[str], list[str]], shares_of: Callable[[list[str]], Any], outputs: Sequence[str]
) -> Release:
    """Return a release that draws every part of a document independently from the reported distribution."""

    def draw(documents: list[str], bits: RandomBits) -> list[str]:
        parts = {document: parts_of(document) for document in set(documents)}
        known = sorted({part for result in parts.values() for part in result})
        sums = {part: np.cumsum(row) for part, row in zip(known, np.asarray(shares_of(known)), strict=True)}
        draws = []
        for document in documents:
            part_sums = [sums[part] for part in parts[document]]
            indices = (np.searchsorted(entry, bits.uniform(1)[0] * entry[-1]) for entry in part_sums)
            draws.append(" ".join(outputs[min(int(index), len(outputs) - 1)] for index in indices))
        return draws

    return draw


def distance_named(
    metric: str, distance: Distance | None, vocabulary: npt.NDArray[np.floating[Any]] | None = None
) -> Distance:
    """Return the distance of a claim by the name of its metric, or ``distance`` if the metric is caller-defined."""
    name = metric
    known = _KNOWN.get(name)
    elliptical = _ELLIPTICAL.fullmatch(name)
    if elliptical is not None and vocabulary is not None:
        known = _mahalanobis(vocabulary, float(elliptical[1]))
    if known is not None and distance is not None:
        raise ParameterError(f"the claim is in {name} distance, which the audit computes. Omit distance=")
    if known is not None:
        return lambda rows, matrix: np.stack([known(row, matrix) for row in rows])
    if distance is None:
        reason = "is defined by its caller" if name.startswith(_CALLERS) else "is unknown"
        raise ParameterError(
            f"expected a claim in {', '.join(_KNOWN)} or regularized mahalanobis distance, got {name!r}, which "
            f"{reason}. Pass the function as distance="
        )
    return distance


Distances: TypeAlias = Callable[[Points, Points], Points]
"""(d,) and (m, d) points -> (m,) distances."""


def _angular(row: Points, matrix: Points) -> Points:
    """Return angles in radians; a zero row counts as the first axis. An arc cosine has an error of 1e-8 near 0."""
    start, end = _directions(row[None]), _directions(matrix)
    halves = np.arctan2(np.sqrt(((end - start) ** 2).sum(axis=1)), np.sqrt(((end + start) ** 2).sum(axis=1)))
    return np.asarray(2.0 * halves)


def _directions(points: Points) -> Points:
    points = points.copy()
    points[~points.any(axis=1), 0] = 1.0
    directions: Points = points / np.sqrt((points**2).sum(axis=1, keepdims=True))
    return directions


def _mahalanobis(vocabulary: npt.NDArray[np.floating[Any]], lambda_: float) -> Distances:
    """Return the distance of lambda S + (1 - lambda) I; S is the covariance of all words over its mean variance."""
    points = vocabulary.astype(np.float64)
    covariance = np.atleast_2d(np.cov(points, rowvar=False, bias=True))
    variance = np.diag(covariance).mean()
    identity = np.eye(points.shape[1])
    shape = lambda_ * (covariance / variance if variance > 0 else identity) + (1 - lambda_) * identity

    def distances(row: Points, matrix: Points) -> Points:
        difference = (matrix - row).T
        return np.asarray(np.sqrt((difference * np.linalg.solve(shape, difference)).sum(axis=0)))

    return distances


_KNOWN: dict[str, Distances] = {
    "euclidean": lambda row, matrix: np.sqrt(((matrix - row) ** 2).sum(axis=1)),
    "angular": _angular,
}
