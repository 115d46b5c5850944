"""Word mechanisms (except TEM) that select from a vocabulary: exact audits of the library's and of broken ones."""

from functools import cache

import numpy as np

import dptext
from known_broken.case import Case, MetricDP, PureDP

EPSILON = 5.0
AUTHORS_EPSILON = 15.0  # the default of the authors' code of SanText


@cache
def _vectors(limit):
    return dptext.load_vectors("glove-6b-50d", limit=limit)


def _distances(vectors):
    points = vectors.matrix.astype(np.float64)
    return np.sqrt(np.stack([((points - point) ** 2).sum(axis=1) for point in points]))


class Broken:
    """The claim of a mechanism, with other probabilities: (V, V), row by row."""

    def __init__(self, claimed, shares):
        self.vectors, self.statement = claimed.vectors, claimed.statement
        self._shares = shares

    def distributions(self, words):
        rows = {word: row for row, word in enumerate(self.vectors.words)}
        return self._shares[[rows[word] for word in words]]


def _normal(weights):
    return weights / weights.sum(axis=1, keepdims=True)


# -- SanText -----------------------------------------------------------------------------------------------------


def _santext(seed, error):
    return dptext.audit(dptext.SanText(_vectors(5_000), epsilon=EPSILON), error=error, seed=seed)


def santext_without_half(seed, _error):
    """exp(-epsilon d): the sum that divides the weights changes too, and was forgotten."""
    vectors = _vectors(800)
    shares = _normal(np.exp(-EPSILON * _distances(vectors)))
    return dptext.audit(Broken(dptext.SanText(vectors, epsilon=EPSILON), shares), seed=seed)


def santext_running_sum(seed, _error):
    """A uniform number of 53 bits, looked up in a float64 running sum, as the authors' code does."""
    vectors = _vectors(800)
    sums = np.cumsum(_normal(np.exp(-AUTHORS_EPSILON / 2 * _distances(vectors))), axis=1)
    shares = np.diff(np.rint(sums * 2.0**53), axis=1, prepend=0) / 2.0**53
    return dptext.audit(Broken(dptext.SanText(vectors, epsilon=AUTHORS_EPSILON), _normal(shares)), seed=seed)


# -- SanText+ ----------------------------------------------------------------------------------------------------

FREQUENT, KEPT = 80, 0.8


def _santext_plus(seed, error):
    return dptext.audit(dptext.SanTextPlus(_vectors(800), epsilon=EPSILON), error=error, seed=seed)


def santext_plus_as_metric(seed, _error):
    """The library's, with the guarantee of SanText: the loss from keeping a word is forgotten."""
    vectors = _vectors(800)
    claimed = dptext.SanText(vectors, epsilon=EPSILON).statement
    return dptext.audit(dptext.SanTextPlus(vectors, epsilon=EPSILON), claimed, seed=seed)


def santext_plus_sensitive_outputs(seed, _error):
    """As printed: replacements come from the sensitive words only."""
    vectors = _vectors(800)
    weights = np.exp(-EPSILON / 2 * _distances(vectors))
    weights[:, :FREQUENT] = 0.0
    shares = _normal(weights)
    shares[:FREQUENT] *= 1 - KEPT
    shares[np.arange(FREQUENT), np.arange(FREQUENT)] = KEPT
    return dptext.audit(Broken(dptext.SanTextPlus(vectors, epsilon=EPSILON), shares), seed=seed)


# -- CusText -----------------------------------------------------------------------------------------------------


def _custext(seed, error):
    mechanism = dptext.CusText(_vectors(5_000), epsilon=EPSILON)
    return dptext.audit(mechanism, labels=mechanism.labels, error=error, seed=seed)


def custext_without_half(seed, _error):
    """exp(epsilon u): the sum that divides the weights changes too, and was forgotten."""
    vectors = _vectors(800)
    sound = dptext.CusText(vectors, epsilon=EPSILON)
    doubled = dptext.CusText(vectors, epsilon=2 * EPSILON).distributions(list(vectors.words))
    return dptext.audit(Broken(sound, doubled), labels=sound.labels, seed=seed)


def custext_as_published(seed, _error):
    """The nearest words of each word, with a guarantee for all pairs."""
    mechanism = dptext.CusText(_vectors(800), epsilon=EPSILON, unsafe_as_published=True)
    claimed = mechanism.statement.replace(guarantee=PureDP(mechanism.claimed_epsilon))
    return dptext.audit(mechanism, claimed, seed=seed)


# -- truncated Gumbel --------------------------------------------------------------------------------------------

NODES = 600


def gumbel_shares(mechanism):
    """(V, V) by quadrature: for each k, the nearest of the k nearest words after noise is the output."""
    far, b, maximum = _distances(mechanism.vectors), mechanism.scale, mechanism.farthest
    size = len(far)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    noise, weights = nodes * maximum, weights * maximum

    def cumulative(z):
        return np.exp(-np.exp(-np.clip(z, -maximum, maximum) / b))

    low, high = cumulative(np.array([-maximum, maximum]))
    density = np.exp(-noise / b - np.exp(-noise / b)) / b / (high - low)
    counts = np.exp(np.arange(1, size + 1) * np.log(np.log(size)) - np.cumsum(np.log(np.arange(1, size + 1))))
    counts /= counts.sum()
    shares = np.zeros((size, size))
    for row in range(size):
        order = np.argsort(far[row], kind="stable")
        near = far[row][order]
        # the noise that y needs at least to stay behind x, for candidates x, y and noise of x
        needed = noise + near[:, None, None] - near[None, :, None]
        behind = np.maximum((high - cumulative(needed)) / (high - low), 1e-300)
        behind[np.arange(size), np.arange(size)] = 1.0
        wins = np.exp(np.cumsum(np.log(behind), axis=1)) @ (density * weights)  # (x, k)
        shares[row, order] = (np.where(np.arange(size) >= np.arange(size)[:, None], wins, 0.0) * counts).sum(axis=1)
    return shares


def gumbel_as_published(seed, _error):
    """With the guarantee that the paper prints for it."""
    vectors = _vectors(60)
    mechanism = dptext.TruncatedGumbel(vectors, epsilon=14.0, unsafe_as_published=True)
    metric = MetricDP(mechanism.claimed_epsilon, "euclidean", None, vectors.fingerprint)
    printed = mechanism.statement.replace(guarantee=metric)
    return dptext.audit(Broken(mechanism, gumbel_shares(mechanism)), printed, seed=seed)


CASES = [
    Case("SanText", False, _santext, "the library's, on the integers it draws from"),
    Case("SanText, epsilon in place of its half", True, santext_without_half, "the normalising sum changes too"),
    Case("SanText, 53-bit running sum", True, santext_running_sum, "words below 2^-53 never come out"),
    Case("SanText+", False, _santext_plus, "the library's, its epsilon includes the loss from keeping a word"),
    Case("SanText+, guarantee of SanText", True, santext_plus_as_metric, "words that stay are too likely"),
    Case("SanText+ as printed", True, santext_plus_sensitive_outputs, "a frequent word comes out under itself only"),
    Case("CusText", False, _custext, "the library's, for words of one group; the groups are public"),
    Case("CusText, epsilon in place of its half", True, custext_without_half, "the normalising sum changes too"),
    Case("CusText as published", True, custext_as_published, "the words that may come out differ from word to word"),
    Case("truncated Gumbel as published", True, gumbel_as_published, "few candidates, and not the same for neighbours"),
]
