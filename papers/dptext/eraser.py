"""Linear concept eraser (LEACE): the smallest affine change after which no linear model predicts an attribute.

    r(x) = x - W^+ P W (x - E x),    W = (S_xx^(1/2))^+,    P the orthogonal projection onto the columns of W S_xz (1)

S_xx is the covariance of the vectors, S_xz the covariance of vectors and one-hot classes. Then r(x) and z are
uncorrelated, so no linear classifier (of any convex loss) beats the best constant, and r moves x least in mean square
among all affine maps with this property. This holds on the fitted rows and for *linear* attackers; a network may still
succeed. The eraser has no guarantee.

Source: Belrose, Schneider-Joseph, Ravfogel, Cotterell, Raff and Biderman, *LEACE: Perfect linear concept erasure in
closed form* (NeurIPS 2023), Theorem 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError

Floats = npt.NDArray[np.float64]

_NEGLIGIBLE = 1e-10  # relative to the largest eigenvalue (singular value): rounding errors


@dataclass(frozen=True, eq=False)
class ConceptEraser:
    """The affine map r(x) = x - erase look^T (x - mean), with (d, k) ``look`` and ``erase``."""

    mean: Floats
    look: Floats
    erase: Floats

    def apply(self, vectors: npt.ArrayLike) -> Floats:
        """Return (n, d) vectors without the attributes. *Not private.*"""
        values = np.asarray(vectors, dtype=np.float64)
        erased: Floats = values - (values - self.mean) @ self.look @ self.erase.T  # eq. (1)
        return erased


def fit_eraser(vectors: npt.ArrayLike, attributes: Mapping[str, npt.ArrayLike]) -> ConceptEraser:
    """Fit one eraser for all attributes to (n, d) vectors and (n,) classes by name.

    >>> eraser = fit_eraser([[0.0, 1.0], [1.0, 0.0], [10.0, 1.0], [11.0, 0.0]], {"side": ["l", "l", "r", "r"]})
    >>> eraser.apply([[0.0, 1.0], [11.0, 1.0]]).round(6).tolist()
    [[5.0, 1.0], [5.0, 1.0]]
    """
    points = np.asarray(vectors, dtype=np.float64)
    mean = points.mean(axis=0)
    centred = points - mean
    columns = []
    for name, labels in attributes.items():
        classes, codes = np.unique(np.asarray(labels), return_inverse=True)
        if len(classes) < 2:
            raise DataError(f"{name}: expected labels of at least two classes, got {len(classes)}")
        marked = np.eye(len(classes))[codes]
        columns.append(centred.T @ (marked - marked.mean(axis=0)) / len(points))
    values, axes = np.linalg.eigh(centred.T @ centred / len(points))
    kept = values > _NEGLIGIBLE * max(float(values[-1]), 5e-324)
    roots, axes = np.sqrt(values[kept]), axes[:, kept]
    whitened = (axes / roots).T @ np.hstack(columns)  # W S_xz, in the basis of the axes
    left, strengths, _ = np.linalg.svd(whitened, full_matrices=False)
    left = left[:, strengths > _NEGLIGIBLE * max(float(strengths.max(initial=0.0)), 5e-324)]
    return ConceptEraser(mean, axes / roots @ left, axes * roots @ left)
