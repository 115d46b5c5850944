"""The audit of a whole mechanism, of words, of texts as texts of a bank, or of vectors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.audits.goodness import Release, Sampler, compare_releases
from dptext.audits.losses import Draw, sampled_loss
from dptext.audits.vectors import Pair, VectorScore, audit_vectors
from dptext.audits.verdict import (
    Verdict,
    add_release_draws,
    as_approx,
    check_claim,
    delta_of,
    judge_exact,
    judge_sample,
)
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
_CHANCES = 1 << 24  # probabilities in memory
_LEAST_TEXTS, _LEAST_SAMPLES = 8, 100
_COPIES = 3
_RELEASED = 64  # parts of the documents that are released


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
    """Try to refute what a mechanism promises, for one word, one text that is replaced at once, or one vector.

    A word mechanism: exact where it shows its distribution (``distributions`` or ``probabilities``), over every pair of
    the audited words and every output; then draws are compared with that distribution (`dptext.audits.goodness`). Else
    sampled: the pair of words whose promise is the tightest, as a black box.

    Texts that become texts of a bank: exact, over every pair of the audited texts and every text of the bank; then
    draws are compared with that distribution, and those for the two texts whose distributions differ most bound the
    loss from below, as a black box.

    A randomizer of vectors (`dptext.audits.audit_vectors`): sampled, at two vectors as far apart as they can be.

    Args:
        mechanism: a word mechanism (``vectors``, ``statement``, ``sample``); a `BankRewriter`; a randomizer of vectors,
            or its channel for one dimension; a `DeviceEncoder`, or a fitted `PrivateEncoder`.
        claim: the statement to put to the test; None: the mechanism's own (a channel alone has none).
        words: which words to take pairs of; None: all of a vocabulary of up to 2,000, else 600 (a random half and
            their nearest neighbours, the unknown word among them).
        texts: for a `BankRewriter`: which public texts to take pairs of; None: the empty one, and as many of its bank,
            chosen at random, as 2^24 probabilities are of (600 at most).
        distance: for a claim in a metric of the caller's: its function, ((n, d), (m, d)) float64 -> (n, m). It is
            asked for here because a mechanism must not bring along what it is measured with.
        labels: for a claim about words of one group of a public partition: the group of each word of the vocabulary
            (pairs of two groups are left out, as the claim leaves them out).
        dimension: for a randomizer: of the vectors to audit it with.
        pair: for vectors: which two; None: chosen.
        score: for vectors: what ranks the outputs; None: chosen; ``"learnt"``: by a classifier.
        samples: outputs of each input that test a sampled bound; of an exact audit, draws in all that are compared with
            the shown distribution.
        error: how often a true claim may be refuted: by a sampled bound, or by draws that happen to disagree.
        seed: for the choice of inputs and for draws; None for fresh randomness.
        progress: a bar, as `dptext.display` says.

    Returns:
        A `Verdict`: ``outcome``, ``loss`` that was shown, ``allowed`` by the claim, ``refuted``.

    Raises:
        ParameterError: the claim is not about one word, one such text or one vector, or promises nothing; it speaks of
            a metric that only its caller knows, and there is no ``distance``, or of groups, and there are no
            ``labels``; the mechanism breaks its contract; an option that is not for it.

    >>> import dptext
    >>> vectors = dptext.load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> verdict = audit(dptext.TEM(vectors, epsilon=2.0))
    >>> str(verdict.outcome), verdict.loss <= verdict.allowed
    ('exact', True)
    """
    with progress_bar(progress, "auditing"):
        if isinstance(mechanism, str | type):
            raise ParameterError(f"mechanism must be an object such as TEM(...), got a {type(mechanism).__name__}")
        fields: dict[str, Any] = {"samples": samples, "error": error, "seed": seed}
        of_words: dict[str, Any] = {"words": words, "distance": distance, "labels": labels}
        of_texts = {"texts": texts}
        of_vectors = {"dimension": dimension, "pair": pair, "score": score}
        if not any(hasattr(mechanism, name) for name in ("vectors", "bank", "release_", "channel", "sample")):
            raise ParameterError(
                f"mechanism must be a word mechanism, a BankRewriter or a randomizer, got {type(mechanism).__name__}: "
                "derive yours from ShownMechanism, WordMechanism or Randomizer (docs: A mechanism of your own)"
            )
        if hasattr(mechanism, "vectors"):
            _refuse(of_texts | of_vectors, "a word mechanism")
            return _audit_words(mechanism, claim, **of_words, **fields)
        if hasattr(mechanism, "bank"):
            _refuse(of_words | of_vectors, "a mechanism of texts")
            return _audit_texts(mechanism, claim, texts=texts, **fields)
        _refuse(of_words | of_texts, "a mechanism of vectors")
        sent: Any = getattr(mechanism, "release_", mechanism)  # what a fitted estimator sends
        channel: Any = getattr(sent, "channel", sent)
        statement: Any = getattr(sent, "statement", None)
        if channel is not sent and callable(channel):
            if dimension is None:
                raise ParameterError("the loss of a randomizer depends on the dimension: say of which, dimension=64")
            channel = channel(dimension)
            statement = statement(dimension) if claim is None else None
        elif dimension is not None:
            raise ParameterError("a channel has its dimension already: leave dimension= out")
        claim = statement if claim is None else claim
        if claim is None or callable(claim):
            raise ParameterError("a channel brings no claim along: give the statement that is to be put to the test")
        return audit_vectors(channel, claim, pair=pair, score=score, **fields)


def _refuse(options: dict[str, Any], subject: str) -> None:
    foreign = [name for name, value in options.items() if value is not None]
    if foreign:
        raise ParameterError(f"{', '.join(f'{name}=' for name in foreign)} means nothing for {subject}: leave it out")


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
            f"expected a claim about one word, got one about a {claim.unit}: audit the word, the rest is composition"
        )
    vectors = mechanism.vectors
    measure = None
    if isinstance(claim.guarantee, MetricDP):
        measure = distance_named(claim.guarantee.metric, distance, vectors.matrix)
    label = _check_labels(claim, len(vectors.words), labels)
    chosen = _chosen_words(vectors, RandomBits(seed), label) if words is None else list(words)
    if len(set(chosen)) < 2:
        raise ParameterError(f"expected at least two different words to compare, got {len(set(chosen))}")
    row = {word: place for place, word in enumerate(vectors.words)}
    points = vectors.matrix[[row[word] for word in chosen]].astype(np.float64)
    of_chosen = None if label is None else label[[row[word] for word in chosen]]
    allowed = _Allowed(claim, points, chosen, measure, of_chosen)
    coverage = f"{'all' if len(chosen) == len(vectors.words) else 'the'} pairs of {len(chosen):,} words"
    if claim.condition.has(OneGroup):
        coverage += ", of which those of one group count"
    logs = _log_distribution(mechanism, chosen)
    sampler = _word_sampler(mechanism, chosen, row, seeded=seed is not None)
    if logs is not None:
        plain = [word for word in chosen if word.isalpha() and word == word.lower()][:_RELEASED]
        release = _release_of(mechanism, seed) if plain else None
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
        shares = {word: np.exp(logs[chosen.index(word)]) for word in plain}
        expected = _expected(str.split, lambda words: [shares[word] for word in words], vectors.words)
        copies = _copies(mechanism)
        draws = compare_releases(release, expected, plain, copies=copies, error=error / 2, bits=RandomBits(seed))
        return add_release_draws(verdict, draws, error=error)
    first, second = allowed.tightest()
    bound = sampled_loss(
        *(_draw_of(sampler, entry) for entry in (first, second)), samples=samples, error=error, seed=seed
    )
    return judge_sample(
        claim,
        bound,
        allowed=float(allowed(first, slice(second, second + 1))[0]),
        error=error,
        witness=f"{chosen[first]!r} against {chosen[second]!r}, {bound.event}",
        coverage=f"the pair of {len(chosen):,} words that the promise binds most, {samples:,} samples each",
    )


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
    called = [f"text {number} of the bank" for number in range(1, len(bank) + 1)]  # by numbers: texts may be long
    bits = RandomBits(seed)
    if texts is None:
        maximum = min(len(bank), _CHOSEN, max(_LEAST_TEXTS, _CHANCES // len(bank)))
        rows = np.argsort(bits.uniform(len(bank)))[:maximum].tolist()
        texts = list(dict.fromkeys(["", *(bank[row] for row in rows)]))
        names = ["the empty text", *(called[row] for row in rows)]
    else:
        texts, names = list(texts), [f"text {place}" for place in range(1, len(texts) + 1)]
    if len(set(texts)) < 2:
        raise ParameterError(f"expected at least two different texts to compare, got {len(set(texts))}")
    shares = np.asarray(mechanism.distributions(texts), dtype=np.float64)
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    place_of = {text: place for place, text in enumerate(bank)}

    def sampler(inputs: npt.NDArray[np.int64], bits: RandomBits) -> npt.NDArray[np.int64]:
        order = np.argsort(inputs, kind="stable")  # equal ones together: what a text needs is found once
        draw_seed = int(bits.integers(1)[0]) if seed is not None else None  # without a seed as it draws in use
        sample = mechanism.sample([texts[place] for place in inputs[order]], seed=draw_seed)
        result = np.empty(len(inputs), dtype=np.int64)
        result[order] = [place_of.get(entry, len(bank)) for entry in sample]  # of another origin: a category of its own
        return result

    allowed = as_approx(claim).epsilon + claim.slack
    verdict = judge_exact(
        claim,
        logs,
        allowed,
        names=names,
        outputs=called,
        coverage=f"the pairs of {len(texts):,} public texts, {len(bank):,} outputs",
        sampler=sampler,
        samples=samples,
        error=error / 3,
        seed=seed,
    )
    release = _release_of(mechanism, seed)
    if release is not None and not verdict.refuted:
        expected = _expected(mechanism.parts, mechanism.distributions, bank)
        some, copies = texts[:_RELEASED], _copies(mechanism)
        draws = compare_releases(release, expected, some, copies=copies, error=error / 3, bits=bits)
        verdict = add_release_draws(verdict, draws, error=error)
    if verdict.refuted:
        return verdict
    second = int(np.abs(shares - shares[0]).sum(axis=1).argmax())
    # an output that is likely under neither says nothing
    ratio = np.append(np.where(np.isfinite(logs[0] - logs[second]), logs[0] - logs[second], 0.0), 0.0)
    bound = sampled_loss(
        *(_draw_of(sampler, entry) for entry in (0, second)),
        samples=max(_LEAST_SAMPLES, samples // 4),
        error=error / 3,
        delta=delta_of(claim),
        score=lambda outputs: ratio[outputs],
        seed=seed,
    )
    visible = f"{names[0]} against {names[second]}, {bound.event}"
    if bound.loss > allowed:
        return judge_sample(
            claim, bound, allowed=allowed, error=error / 3, witness=visible, coverage="the two that differ most"
        )
    bound_text = f"as a black box, draws of two of them show {bound.loss:.3g} nats at least"
    return replace(verdict, error=error, coverage=f"{verdict.coverage}; {bound_text}")


class _Allowed:
    """What a claim allows for pairs of words at the given points: distances in the claim's metric, computed here."""

    def __init__(
        self,
        claim: PrivacyStatement,
        points: npt.NDArray[np.float64],
        words: Sequence[str],
        distance: Distance | None,
        labels: npt.NDArray[np.int64] | None,
    ) -> None:
        guarantee = claim.guarantee
        self._claim, self._points, self._distance, self._labels = claim, points, distance, labels
        # a claim may make an exception of unknown words: any pair with one counts as farthest apart
        excepted = isinstance(guarantee, MetricDP) and "unknown word" in guarantee.metric
        self._farthest = np.array([excepted and word == "<unk>" for word in words])

    def __call__(self, i: int, others: slice) -> npt.NDArray[np.float64]:
        losses = self._neighbour_pairs(i, others)
        if self._labels is not None:
            losses[self._labels[others] != self._labels[i]] = math.inf  # no neighbours: the claim is silent
        return losses

    def _neighbour_pairs(self, i: int, others: slice) -> npt.NDArray[np.float64]:
        claim = self._claim
        if not isinstance(claim.guarantee, MetricDP):
            return np.full(others.stop - others.start, as_approx(claim).epsilon + claim.slack)
        assert self._distance is not None
        far = np.array(self._distance(self._points[i : i + 1], self._points[others]), dtype=np.float64)[0]
        if not (far >= 0).all():  # a NaN would allow everything
            raise ParameterError("the distance must be a number of at least 0 for every pair of words, got another")
        far[self._farthest[others] | self._farthest[i]] = math.inf
        inf = math.inf if claim.guarantee.max_distance is None else claim.guarantee.max_distance
        losses: npt.NDArray[np.float64] = claim.guarantee.epsilon * np.minimum(far, inf) + claim.slack
        return losses

    def tightest(self) -> tuple[int, int]:
        best = (math.inf, 0, 1)
        for i in range(len(self._points) - 1):
            losses = self(i, slice(i + 1, len(self._points)))
            place = int(np.argmin(losses))
            best = min(best, (float(losses[place]), i, i + 1 + place))
        return best[1], best[2]


def _check_labels(claim: PrivacyStatement, size: int, labels: Labels | None) -> npt.NDArray[np.int64] | None:
    """(V,) the public group of each word, where the claim depends on it."""
    if claim.condition.has(OneGroup) and labels is None:
        raise ParameterError(
            f"the claim is about two words of {ONE_GROUP}: pass the group of each word of the vocabulary as labels="
        )
    if not claim.condition.has(OneGroup) and labels is not None:
        raise ParameterError("the claim does not depend on groups: leave labels= out")
    if labels is None:
        return None
    if len(labels) != size:
        raise ParameterError(f"expected a label for each of {size:,} words, got {len(labels):,}")
    return np.asarray(labels, dtype=np.int64)


def _chosen_words(vectors: Any, bits: RandomBits, labels: npt.NDArray[np.int64] | None) -> list[str]:
    words: tuple[str, ...] = vectors.words
    if len(words) <= _ALL_PAIRS_UP_TO:
        return list(words)
    if labels is not None:  # whole groups
        order = np.argsort(labels, kind="stable")
        starts = np.argsort(bits.uniform(len(words) // _RUN))[: _CHOSEN // _RUN] * _RUN
        return [words[row] for row in np.unique(order[(starts[:, None] + np.arange(_RUN)).ravel()])]
    picked = np.argsort(bits.uniform(len(words)))[: _CHOSEN // 2]
    points = vectors.matrix.astype(np.float64)
    near = [int(np.argsort(((points - points[row]) ** 2).sum(axis=1))[1]) for row in picked]
    unknown = [words.index("<unk>")] if "<unk>" in words else []
    return [words[row] for row in dict.fromkeys([*unknown, *picked.tolist(), *near])]


def _log_distribution(mechanism: Any, words: list[str]) -> npt.NDArray[np.float64] | None:
    if hasattr(mechanism, "distributions"):
        shares = mechanism.distributions(words)
    elif hasattr(mechanism, "probabilities"):
        shares = np.stack([np.asarray(mechanism.probabilities(word), dtype=np.float64) for word in words])
    else:
        return None
    with np.errstate(divide="ignore"):
        logs: npt.NDArray[np.float64] = np.log(shares)
    return logs


def _word_sampler(mechanism: Any, words: Sequence[str], row: dict[str, int], *, seeded: bool) -> Sampler:
    def draw(inputs: npt.NDArray[np.int64], bits: RandomBits) -> npt.NDArray[np.int64]:
        # without a seed the mechanism draws as it does in use
        seed = int(bits.integers(1)[0]) if seeded else None
        sample = mechanism.sample([words[place] for place in inputs], seed=seed)
        # an output outside the vocabulary is a category of its own
        return np.fromiter((row.get(entry, len(row)) for entry in sample), dtype=np.int64, count=len(sample))

    return draw


def _release_of(mechanism: Any, seed: int | None) -> Release | None:
    """Return what replaces documents in a release (`dptext.release.mechanism.Replacing`), if the mechanism has it."""
    if not hasattr(mechanism, "replacing"):
        return None
    # without a seed the mechanism draws as it does in use
    return lambda documents, bits: mechanism.replacing()(documents, RandomBits(None) if seed is None else bits)[0]


def _copies(mechanism: Any) -> int:
    """Return how many equal parts the documents have: three, or fewer where no more of a document is replaced."""
    return min(_COPIES, getattr(mechanism, "longest_document", None) or _COPIES)


def _expected(
    parts_of: Callable[[str], list[str]], shares_of: Callable[[list[str]], Any], outputs: Sequence[str]
) -> Release:
    """Return a release that draws every part of a document independently from the shown distribution."""

    def draw(documents: list[str], bits: RandomBits) -> list[str]:
        parts = {document: parts_of(document) for document in set(documents)}
        known = sorted({part for result in parts.values() for part in result})
        sums = {part: np.cumsum(row) for part, row in zip(known, np.asarray(shares_of(known)), strict=True)}
        draws = []
        for document in documents:
            of_parts = [sums[part] for part in parts[document]]
            places = (np.searchsorted(entry, bits.uniform(1)[0] * entry[-1]) for entry in of_parts)
            draws.append(" ".join(outputs[min(int(place), len(outputs) - 1)] for place in places))
        return draws

    return draw


def _draw_of(sampler: Sampler, which: int) -> Draw:
    return lambda count, bits: np.asarray(sampler(np.full(count, which), bits))


def distance_named(
    metric: str, distance: Distance | None, vocabulary: npt.NDArray[np.floating[Any]] | None = None
) -> Distance:
    """The distance of which a claim speaks: by its name, or ``given`` where it is a function of the caller."""
    name = metric.split(",")[0]
    known = _KNOWN.get(name)
    elliptical = _ELLIPTICAL.fullmatch(name)
    if elliptical is not None and vocabulary is not None:
        known = _mahalanobis(vocabulary, float(elliptical[1]))
    if known is not None and distance is not None:
        raise ParameterError(f"the claim is in {name} distance, which is computed here: leave distance= out")
    if known is not None:
        return known
    if distance is None:
        text = "is a function of its caller" if name.startswith(_CALLERS) else "is not known here"
        raise ParameterError(
            f"expected a claim in {', '.join(_KNOWN)} or regularized mahalanobis distance, got {name!r}, which {text}: "
            "give the function as distance="
        )
    return distance


def _angular(rows: Points, matrix: Points) -> Points:
    """Radians; a row of zeros lies on the first axis. An arc cosine would be wrong by 1e-8 near 0."""
    ends = _directions(matrix)
    results = [
        np.arctan2(np.sqrt(((ends - start) ** 2).sum(axis=1)), np.sqrt(((ends + start) ** 2).sum(axis=1)))
        for start in _directions(rows)
    ]
    return 2.0 * np.stack(results)


def _directions(points: Points) -> Points:
    points = points.copy()
    points[~points.any(axis=1), 0] = 1.0
    directions: Points = points / np.sqrt((points**2).sum(axis=1, keepdims=True))
    return directions


def _poincare(rows: Points, matrix: Points) -> Points:
    """In the form with arsinh: arcosh(1 + 2 q) = 2 arsinh(sqrt(q)) without its cancellation."""
    ends = 1.0 - (matrix**2).sum(axis=1)
    results = [
        2.0 * np.arcsinh(np.sqrt(((matrix - row) ** 2).sum(axis=1) / ((1.0 - (row**2).sum()) * ends))) for row in rows
    ]
    return np.stack(results)


def _mahalanobis(vocabulary: npt.NDArray[np.floating[Any]], lambda_: float) -> Distance:
    """By solving with lambda S + (1 - lambda) I, S the covariance of all words over its mean variance."""
    points = vocabulary.astype(np.float64)
    covariance = np.atleast_2d(np.cov(points, rowvar=False, bias=True))
    variance = np.diag(covariance).mean()
    identity = np.eye(points.shape[1])
    shape = lambda_ * (covariance / variance if variance > 0 else identity) + (1 - lambda_) * identity
    return _rowwise(lambda differences: np.sqrt((differences.T * np.linalg.solve(shape, differences.T)).sum(axis=0)))


def _rowwise(of_row: Callable[[Points], Points]) -> Distance:
    return lambda rows, matrix: np.stack([of_row(matrix - row) for row in rows])


_KNOWN: dict[str, Distance] = {
    "euclidean": _rowwise(lambda differences: np.sqrt((differences**2).sum(axis=1))),
    "angular": _angular,
    "manhattan": _rowwise(lambda differences: np.abs(differences).sum(axis=1)),
    "chebyshev": _rowwise(lambda differences: np.abs(differences).max(axis=1)),
    "poincare": _poincare,
}
