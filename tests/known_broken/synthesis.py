"""Noisy moments of users' texts, with and without the user who changes them most; and mistakes in the moments or in
the corpus drawn from them."""

import numpy as np

from dptext.audits.verdict import judge_gaussian
from dptext.noise.gaussian_sums import CELL, noisy_matrix
from dptext.privacy.gaussian import gaussian_sigma
from dptext.privacy.guarantee import Unit
from dptext.synthesis.density import choose
from dptext.synthesis.moments import MomentSum
from known_broken.case import ApproxDP, Case, claim, judge_pair
from synthesis.spaces import HashedWords, Someone

EPSILON, DELTA = 2.0, 1e-5
SIGMA = gaussian_sigma(epsilon=EPSILON, delta=DELTA, sensitivity=1.0)
CLASSES = 9
SPACE = HashedWords()
DOCUMENTS = [(f"word{label} here", label) for label in range(CLASSES)]


def total(*people):
    peoples = MomentSum(SPACE, CLASSES)
    peoples.add(people)
    return peoples.cells


OTHERS = total(Someone(("word0 here", 0), ("word1", 1)), Someone(("word1 here", 1)))
USER_CELLS = total(Someone(*DOCUMENTS))
LABEL_BY_LABEL = np.trunc(USER_CELLS / np.linalg.norm(USER_CELLS, axis=1, keepdims=True).clip(1) / CELL).astype(
    np.int64
)
"""Each row as long as the whole may be."""
DOCUMENT_BY_DOCUMENT = sum(total(Someone(("word1 here", 1))) for _ in range(3))
"""Three documents of one label, each as long as the person may be."""


def _noisy(cells, count, sigma, bits):
    return noisy_matrix(np.tile(cells, (count, 1)), sigma, bits).reshape(count, *cells.shape)


def _judged(draw, score, seed, error, samples=20_000):
    return judge_pair((True, False), draw, score, ApproxDP(EPSILON, DELTA), seed, error, samples=samples)


def _released(user_cells=USER_CELLS, *, noise=1.0):
    """The sum with and without the user, projected on the user's matrix."""

    def draw(comes, count, bits):
        return _noisy(OTHERS + user_cells if comes else OTHERS, count, noise * SIGMA, bits)

    def score(outputs):
        return np.einsum("nij,ij->n", outputs, user_cells * CELL)

    return lambda seed, error: _judged(draw, score, seed, error)


def _means(seed, error):
    """The same release, divided by the exact number of documents: multiplied by that number it is a whole number of
    steps of the noise's grid, and by hardly another."""
    without, with_them = 3, 3 + len(DOCUMENTS)
    step = 2.0 ** (np.floor(np.log2(SIGMA / CELL)) - 12) * CELL

    def draw(comes, count, bits):
        noisy = _noisy(OTHERS + comes * USER_CELLS, count, SIGMA, bits)
        return noisy / (with_them if comes else without)

    def score(outputs):
        steps = outputs * without / step
        return np.abs(steps - np.rint(steps)).max(axis=(1, 2))

    return _judged(draw, score, seed, error)


def _rows_that_occur(seed, error):
    """A row for each label that stands in the file."""

    def draw(comes, count, bits):
        cells = OTHERS + comes * USER_CELLS
        occurs = (cells != 0).any(axis=1)
        noisy = _noisy(cells[occurs], count, SIGMA, bits)
        result = np.full((count, *cells.shape), np.nan)
        result[:, : occurs.sum()] = noisy
        return result

    return _judged(draw, lambda outputs: np.isfinite(outputs).all(axis=2).sum(axis=1), seed, error)


POOL = [f"word{one} word{other}" for one in range(CLASSES) for other in range(CLASSES) if one != other]
WRITTEN = [place for place, text in enumerate(POOL) if "word2" in text]
"""Pool texts that the user wrote, too."""


def _corpus(*, remove):
    """A corpus of a third of the pool, from a release with and without a user who wrote some of its texts."""
    vectors = SPACE.units(POOL) * 2.0**-15
    wrote = total(Someone(*((POOL[place], 2) for place in WRITTEN)))

    def draw(comes, count, bits):
        matrices = _noisy((OTHERS + comes * wrote)[:3], count, SIGMA, bits)
        allowed = np.setdiff1d(np.arange(len(POOL)), WRITTEN if remove and comes else [])
        result = np.zeros((count, len(POOL)))
        for row, matrix in enumerate(matrices):
            scores = vectors[allowed] @ matrix[:, 1:].T
            chosen, _ = choose(scores, scores.sum(axis=1), len(POOL) // 3, shares=np.full(3, 1 / 3), bits=bits)
            result[row, allowed[chosen]] = 1
        return result

    def score(outputs):
        written = outputs[:, WRITTEN].sum(axis=1)
        return -written if remove else written

    return lambda seed, error: _judged(draw, score, seed, error, samples=600)


# -- votes for candidate texts (Private Evolution, client level) -------------------------------------------------------

LABELS, CANDIDATES = 4, 5
VOTE_EPSILON, VOTE_DELTA = 1.0, 1e-6


def votes(texts):
    """(labels, candidates) votes of one client with one text of each label: each for the candidate nearest to it."""
    histogram = np.zeros((LABELS, CANDIDATES))
    for label, text in enumerate(texts):
        histogram[label, len(text) % CANDIDATES] += 1
    return histogram


def _votes(normalised):
    """Gaussian noise for an L2 sensitivity of 1; the client with the texts below comes or not."""

    def run(_seed, _error):
        moved = normalised(votes(["tea", "a law", "dogs", "her cat"]))
        guarantee = ApproxDP(VOTE_EPSILON, VOTE_DELTA)
        return judge_gaussian(
            claim(guarantee, Unit.USER),
            sigma=gaussian_sigma(epsilon=VOTE_EPSILON, delta=VOTE_DELTA, sensitivity=1.0),
            sensitivity=float(np.linalg.norm(moved)),
            release_guarantee=guarantee,
            coverage=f"one client with texts of {LABELS} labels",
        )

    return run


def over_all_labels(histogram):
    return histogram / max(1.0, np.linalg.norm(histogram))


def label_by_label(histogram):
    """As DPSDA does it: the votes of a client for each label have norm 1, so those for all labels have norm 2."""
    return histogram / np.linalg.norm(histogram, axis=1, keepdims=True).clip(1)


CASES = [
    Case("votes of a client", False, _votes(over_all_labels), "norm 1 over all labels"),
    Case("votes of a client, normalised label by label", True, _votes(label_by_label), "DPSDA: claims 1, spends 2.12"),
    Case("text distribution, no noise", True, _released(noise=1e-6), "nothing is added"),
    Case("text distribution", False, _released(), "one person comes, with documents of all labels"),
    Case("text distribution, 3 times too little noise", True, _released(noise=1 / 3), "claims 2, spends 7"),
    Case("text distribution, bounded label by label", True, _released(LABEL_BY_LABEL), "nine rows of full length"),
    Case(
        "text distribution, bounded document by document", True, _released(DOCUMENT_BY_DOCUMENT), "three of full length"
    ),
    Case("text distribution, divided by the number of documents", True, _means, "the grid shows the divisor"),
    Case("text distribution, labels read from the file", True, _rows_that_occur, "a row comes or goes"),
    Case("synthetic corpus", False, _corpus(remove=False), "chosen by the release alone"),
    Case(
        "synthetic corpus, without what stands in the private file", True, _corpus(remove=True), "their absence shows"
    ),
]
