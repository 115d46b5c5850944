"""Word mechanisms whose distribution is known: exact audits."""

from functools import cache

import numpy as np

import dptext
from dptext import TEM
from dptext.privacy.guarantee import Unit
from known_broken.case import Case, MetricDP, claim, judge_table
from known_broken.replacements import Broken, _normal
from known_broken.replacements import _vectors as small_vectors
from laws import canberra

EPSILON = 5.0
OUTPUTS = 20_000
INPUTS = 200


@cache
def _vectors():
    return dptext.load_vectors("glove-6b-50d", limit=OUTPUTS)


def _distances(rows):
    points = _vectors().matrix.astype(np.float64)
    return np.sqrt(np.stack([((points - points[row]) ** 2).sum(axis=1) for row in rows]))


@cache
def _chosen(seed):
    """Rows of the audited inputs: random ones, their nearest neighbours, and the unknown word last."""
    rows = np.random.default_rng(seed).permutation(OUTPUTS - 1)[: INPUTS // 2]
    near = np.argsort(_distances(rows), axis=1)[:, 1]
    return np.append(np.setdiff1d(np.concatenate([rows, near]), [OUTPUTS - 1]), OUTPUTS - 1)


def _names(seed):
    return [_vectors().words[row] for row in _chosen(seed)]


@cache
def _far(seed):
    """(inputs, outputs) the distances that all audits of a seed share."""
    far = _distances(_chosen(seed))
    far.setflags(write=False)
    return far


def _judge(distribution, seed, _error):
    vectors = _vectors()
    mechanism = TEM(vectors, epsilon=EPSILON)
    rows, far = _chosen(seed), _far(seed)
    table = distribution(far, rows, mechanism, np.random.default_rng(seed))
    between = far[:, rows]
    statement = claim(MetricDP(EPSILON, "euclidean", mechanism.threshold), Unit.WORD, mechanism.slack)

    def allowed(i, others):
        return EPSILON * np.minimum(between[i, others], mechanism.threshold) + mechanism.slack

    return judge_table(table, allowed, claimed=statement, names=_names(seed))


def _bottom_distribution(far, mechanism, inside, bottom_weight):
    """Algorithm 2: words inside by their distance, the others share the mass of bottom."""
    within = inside.sum(axis=1, keepdims=True)
    size = far.shape[1]
    share = np.exp(-EPSILON / 2 * mechanism.threshold) * bottom_weight(size, within) / np.maximum(size - within, 1)
    return _normal(np.where(inside, np.exp(-EPSILON / 2 * far), share))


def wrong_bottom(far, _rows, mechanism, _generator):
    return _bottom_distribution(far, mechanism, far <= mechanism.threshold, lambda size, within: size / within)


def right_bottom(far, _rows, mechanism, _generator):
    return _bottom_distribution(far, mechanism, far <= mechanism.threshold, lambda size, within: size - within)


def float32_sums(far, _rows, mechanism, _generator):
    """The distribution of a search in a float32 running sum."""
    weights = np.exp(-EPSILON / 2 * np.minimum(far, mechanism.threshold)).astype(np.float32)
    sums = np.cumsum(weights, axis=1, dtype=np.float32)
    return np.diff(sums, axis=1, prepend=np.float32(0)).astype(np.float64) / sums[:, -1:]


def approximate_search(far, rows, mechanism, generator):
    """The neighbour list of each word misses one neighbour in ten, others for other words."""
    result = (far <= mechanism.threshold) & (generator.random(far.shape) < 0.9)
    result[np.arange(len(rows)), rows] = True
    return _bottom_distribution(far, mechanism, result, lambda size, within: size - within)


def passed_through(far, _rows, mechanism, _generator):
    """A word outside the vocabulary is returned unchanged: one more input, one more output."""
    known = _normal(np.exp(-EPSILON / 2 * np.minimum(far, mechanism.threshold)))
    shares = np.zeros((len(known), known.shape[1] + 1))
    shares[:, :-1] = known
    shares[-1] = 0.0  # the last input, <unk>, stands for every word outside the vocabulary
    shares[-1, -1] = 1.0
    return shares


def _library(seed, error):
    return dptext.audit(TEM(_vectors(), epsilon=EPSILON), words=_names(seed), error=error, seed=seed)


def _document_budget(seed, error):
    mechanism = TEM(_vectors(), epsilon=EPSILON, document_epsilon=60.0, max_words=10)
    return dptext.audit(mechanism, words=_names(seed), error=error, seed=seed)


def _angular(seed, error):
    return dptext.audit(TEM(small_vectors(800), epsilon=25.0, metric="angular"), error=error, seed=seed)


def _function_metric(seed, error):
    vectors = dptext.load_vectors("glove-6b-50d", limit=300)
    return dptext.audit(TEM(vectors, epsilon=1.0, metric=canberra), distance=canberra, error=error, seed=seed)


def _cosine(rows, matrix):
    lengths = np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(matrix, axis=1)
    return np.clip(1 - rows @ matrix.T / lengths, 0, None)


def cosine_distance(seed, _error):
    """1 - cosine in place of the angle: claims epsilon times itself."""
    vectors, epsilon = small_vectors(800), 25.0
    points = vectors.matrix.astype(np.float64)
    far = _cosine(points, points)
    np.fill_diagonal(far, 0.0)
    statement = claim(MetricDP(epsilon, "cosine", 2.0), Unit.WORD)
    table = _normal(np.exp(-epsilon / 2 * far))
    return judge_table(table, lambda i, js: epsilon * far[i, js], claimed=statement, names=vectors.words)


def float32_angle(seed, _error):
    """The arc cosine of a float32 product of unit vectors, for words of which some point in one direction."""
    generator = np.random.default_rng(seed)
    points = np.repeat(generator.normal(size=(100, 8)), 2, axis=0).astype(np.float32)
    points[1::2] *= np.float32(0.7)
    words = [f"w{'abcdefghij'[n % 10]}{n}x" for n in range(200)]
    epsilon, mechanism = 20.0, TEM(dptext.load_vectors((words, points)), epsilon=20.0, metric="angular")
    points = mechanism.vectors.matrix
    ways = points / np.sqrt((points**2).sum(axis=1, keepdims=True))
    far = np.arccos(np.clip(ways @ ways.T, -1, 1)).astype(np.float64)
    return dptext.audit(Broken(mechanism, _normal(np.exp(-epsilon / 2 * far))))


def _case(name, broken, distribution, why):
    return Case(name, broken, lambda seed, error: _judge(distribution, seed, error), why)


CASES = [
    Case("TEM", False, _library, "the library's, on the integers it draws from"),
    Case("TEM, angular", False, _angular, "the library's, distances computed again by the audit"),
    Case("TEM, a caller's metric", False, _function_metric, "the library's, with the caller's distance"),
    Case("TEM, cosine distance", True, cosine_distance, "1 - cosine breaks the triangle inequality"),
    Case("TEM, float32 arc cosine", True, float32_angle, "words in one direction are told apart by rounding"),
    Case("TEM, document budget", False, _document_budget, "the library's, threshold from the budget"),
    _case("TEM, Algorithm 2 by the book", False, right_bottom, "bottom weighs |W \\ L|"),
    _case("TEM, wrong bottom", True, wrong_bottom, "bottom weighs |W| / |L|"),
    _case("TEM, float32 sums", True, float32_sums, "the running sum loses the tail"),
    _case("TEM, approximate search", True, approximate_search, "a near word missing from one list, not the other"),
    _case("TEM, unknown words kept", True, passed_through, "an output that only one input has"),
]
