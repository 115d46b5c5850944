"""Similarity of a corpus to real texts: precision, recall, Fréchet distance, AUC, MAUVE, distinct-n."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import extra
from dptext.evaluation.utility import words_of
from dptext.threads import one_blas_thread

Floats = npt.NDArray[np.float64]
MEASURES = ("precision", "recall", "Fréchet distance", "two-sample AUC", "distinct-1", "distinct-2", "MAUVE")
_FOLDS = 5


def compare(texts: Sequence[str], vectors: npt.ArrayLike, real: npt.ArrayLike, *, seed: int) -> dict[str, float]:
    """Return the `MEASURES` of a corpus by name; MAUVE only if its package is installed.

    ``vectors`` (n, k) belong to the n texts, ``real`` (m, k) to real texts, by the same encoder; use m = n.
    """
    precision, recall = precision_recall(vectors, real)
    distance, auc = frechet_distance(vectors, real), two_sample_auc(vectors, real, seed=seed)
    values = [precision, recall, distance, auc, distinct_n(texts, 1), distinct_n(texts, 2)]
    if find_spec("mauve"):  # Pillutla et al. 2021, arXiv:2102.01454, by the package mauve-text
        mauve: Any = import_module("mauve")
        result = mauve.compute_mauve(p_features=real, q_features=vectors, seed=seed, verbose=False)
        values.append(float(result.mauve))
    return dict(zip(MEASURES, values, strict=False))


def precision_recall(vectors: npt.ArrayLike, real: npt.ArrayLike, *, neighbours: int = 3) -> tuple[float, float]:
    """Return precision and recall by nearest neighbours (Kynkäänniemi et al. 2019, arXiv:1904.06991).

    The support of a sample is estimated by balls around its vectors, up to the k-th nearest other one. Precision is the
    share of the corpus in the support of the real texts, recall the share of real texts in the support of the corpus.

    >>> precision_recall([[0.0], [1.0], [50.0]], [[0.0], [1.0], [2.0], [3.0]], neighbours=1)
    (0.6666666666666666, 1.0)
    """
    generated, original = np.asarray(vectors), np.asarray(real)
    between = _squares(generated, original)
    in_real = between <= squared_radii(original, neighbours)[None, :]
    in_corpus = between <= squared_radii(generated, neighbours)[:, None]
    return float(in_real.any(axis=1).mean()), float(in_corpus.any(axis=0).mean())


def frechet_distance(vectors: npt.ArrayLike, real: npt.ArrayLike) -> float:
    """Return |m - m'|^2 + tr(S + S' - 2 (S S')^(1/2)) of the means and covariances of two samples (Heusel et al. 2017).

    >>> frechet_distance([[-1.0], [1.0]], [[1.0], [5.0]])  # variances 2 and 8, means 0 and 3
    11.0
    """
    one, other = np.asarray(vectors), np.asarray(real)
    first, second = (np.atleast_2d(np.cov(sample, rowvar=False)) for sample in (one, other))
    with one_blas_thread():
        values, basis = np.linalg.eigh(first)
        root = basis * np.sqrt(np.maximum(values, 0.0)) @ basis.T
        # S S' has the eigenvalues of S^(1/2) S' S^(1/2), which is symmetric.
        mixed = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ second @ root), 0.0)).sum()
    gap = float(np.square(one.mean(axis=0) - other.mean(axis=0)).sum())
    return max(gap + float(np.trace(first) + np.trace(second) - 2 * mixed), 0.0)


def two_sample_auc(vectors: npt.ArrayLike, real: npt.ArrayLike, *, seed: int) -> float:
    """Return the cross-validated AUC of a logistic regression that separates the samples (0.5: it cannot)."""
    one, other = np.asarray(vectors), np.asarray(real)
    names = ("linear_model", "pipeline", "model_selection", "preprocessing")
    linear, pipeline, selection, scaling = (extra(f"sklearn.{name}", "sklearn", "a two-sample AUC") for name in names)
    model = pipeline.make_pipeline(scaling.StandardScaler(), linear.LogisticRegression(C=0.1, max_iter=1000))
    folds = selection.StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    targets = np.repeat([0, 1], [len(one), len(other)])
    with one_blas_thread():
        scores = selection.cross_val_score(model, np.vstack([one, other]), targets, cv=folds, scoring="roc_auc")
    return float(scores.mean())


def distinct_n(texts: Sequence[str], n: int) -> float:
    """Return the number of distinct n-grams of words divided by the number of all (Li et al. 2016, arXiv:1510.03055).

    >>> distinct_n(["a cat", "a dog"], 1), distinct_n(["a cat", "a cat sat"], 2)
    (0.75, 0.6666666666666666)
    """
    grams = [tuple(words[i : i + n]) for words in map(words_of, texts) for i in range(len(words) - n + 1)]
    return len(set(grams)) / max(len(grams), 1)


def _squares(one: Floats, other: Floats) -> Floats:
    with one_blas_thread():
        product: Floats = one @ other.T
    return np.asarray(np.maximum(np.square(one).sum(axis=1)[:, None] + np.square(other).sum(axis=1) - 2 * product, 0))


def squared_radii(vectors: Floats, neighbours: int) -> Floats:
    """Return the squared distance of each vector to its k-th nearest other one."""
    squares = _squares(vectors, vectors)
    np.fill_diagonal(squares, np.inf)
    radii: Floats = np.partition(squares, neighbours - 1, axis=1)[:, neighbours - 1]
    return radii
