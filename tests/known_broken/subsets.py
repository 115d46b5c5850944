"""Subset selection: what may choose a word's set, and what may not."""

import numpy as np

import dptext
from known_broken.case import Case
from known_broken.replacements import Broken, _distances, _normal, _vectors

EPSILON = 5.0
SIZE = 20


def _mechanism():
    return dptext.SubsetSelection(_vectors(800), epsilon=EPSILON, size=SIZE, similarity="euclidean")


def _audited(weights, seed):
    """(V, V) weights, each row divided by its own sum."""
    return dptext.audit(Broken(_mechanism(), _normal(weights)), seed=seed)


def _audit_sets(inside, ratio, seed):
    """Audit weights of `ratio` for the (V, V) members and 1 for others."""
    return _audited(np.where(inside, ratio, 1.0), seed)


def _nearest(distances, size=SIZE):
    """(V, V) the nearest, of those as near the first."""
    distances = distances.copy()
    np.fill_diagonal(distances, -1.0)
    inside = np.zeros(distances.shape, dtype=bool)
    np.put_along_axis(inside, np.argsort(distances, axis=1, kind="stable")[:, :size], True, axis=1)
    return inside


def _subset_selection(seed, error):
    return dptext.audit(dptext.SubsetSelection(_vectors(5_000), epsilon=EPSILON), error=error, seed=seed)


def ties_by_the_input(seed, _error):
    """Similarities of one digit tie often; which of those that tie are members, a hash of the word decides."""
    distance = np.floor(_distances(_vectors(800)))
    size = len(distance)
    at_will = (np.arange(size)[:, None] * 7919 + np.arange(size) * 104729) % 1009 / 1009
    return _audit_sets(_nearest(distance + at_will), np.exp(EPSILON) * (1 - 2.0**-40), seed)


def any_members(seed, _error):
    """A search that finds the wrong ones, but always as many."""
    distances = _distances(_vectors(800))
    return _audit_sets(_nearest(-distances), np.exp(EPSILON) * (1 - 2.0**-40), seed)


def size_by_the_input(seed, _error):
    """All words within a radius: many in a dense place, few elsewhere."""
    distances = _distances(_vectors(800))
    return _audit_sets(distances <= np.median(np.sort(distances, axis=1)[:, SIZE]), np.exp(EPSILON), seed)


def ties_included(seed, _error):
    """The nearest words and every word tied with the last of them: their number varies."""
    distance = np.floor(_distances(_vectors(800)))
    np.fill_diagonal(distance, -1.0)
    return _audit_sets(distance <= np.sort(distance, axis=1)[:, SIZE - 1 : SIZE], np.exp(EPSILON), seed)


def weights_rounded_up(seed, _error):
    """3 to 1, the nearest whole numbers for epsilon 1: half precision does the same in the fourth digit."""
    vectors = _vectors(800)
    claimed = dptext.SubsetSelection(vectors, epsilon=1.0, size=SIZE)
    return dptext.audit(Broken(claimed, _normal(np.where(_nearest(_distances(vectors)), 3.0, 1.0))), seed=seed)


def weights_by_similarity(seed, _error):
    """From 1 to e^epsilon, the more a word is like the input: each input has a sum of its own."""
    distances = _distances(_vectors(800))
    return _audited(np.exp(EPSILON * (1 - distances / distances.max(axis=1, keepdims=True))), seed)


CASES = [
    Case("subset selection", False, _subset_selection, "the library's, k of the public profile, any two words"),
    Case("subset selection, ties broken by the input", False, ties_by_the_input, "k members for every input"),
    Case("subset selection, approximate neighbours", False, any_members, "wrong members cost utility, not privacy"),
    Case("subset selection, k by the input", True, size_by_the_input, "the sum that divides the weights moves with k"),
    Case("subset selection, ties included", True, ties_included, "the number of members varies, and the sum with it"),
    Case("subset selection, weights rounded up", True, weights_rounded_up, "a / b is above e^epsilon"),
    Case("subset selection, weights by similarity", True, weights_by_similarity, "each input has its own sum"),
]
