"""Linear concept eraser (LEACE): the smallest affine change of vectors after which no linear model tells an attribute.

    r(x) = x - W^+ P W (x - E x),    W = (S_xx^(1/2))^+,    P the orthogonal projection onto the columns of W S_xz (1)

S_xx the covariance of the vectors, S_xz that with the marked classes. Then r(x) and z are uncorrelated, which is the
same as that no linear classifier (of any convex loss) beats the best constant; and of all affine maps that reach this,
r moves x least in mean square. All of it on the rows that it was fitted on, and for *linear* attackers: a network
reads what is left. Nothing is promised; a randomizer after it does.

Source: Belrose, Schneider-Joseph, Ravfogel, Cotterell, Raff and Biderman, *LEACE: Perfect linear concept erasure in
closed form* (NeurIPS 2023), Theorem 4.2. Their package is `concept-erasure`; the tests compare where it is installed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError
from dptext.io.documents import is_missing
from dptext.representations.bounds import Floats, check_vectors
from dptext.representations.encoders import Provenance, TextEncoder
from dptext.representations.layers import HidingLayers, LayeredEncoder

_NEGLIGIBLE = 1e-10  # of the largest eigenvalue (singular value): what rounding alone leaves


@dataclass(frozen=True, eq=False)
class ConceptEraser:
    """An affine map r(x) = x - erase look^T (x - mean). Frozen.

    Attributes:
        mean: (d,) of the vectors that it was fitted on.
        look: (d, k) what of a vector tells the attributes; k at most the number of classes less one for each.
        erase: (d, k) what is taken away for it.
        attributes: the names of what is erased.
        rows: how many vectors it was fitted on.
    """

    mean: Floats = field(repr=False)
    look: Floats = field(repr=False)
    erase: Floats = field(repr=False)
    attributes: tuple[str, ...] = ()
    rows: int = 0

    def apply(self, vectors: npt.ArrayLike) -> Floats:
        """(n, d) vectors without what tells the attributes. *Not private.*

        Raises:
            ParameterError: another shape.
        """
        values = check_vectors(vectors, self.mean.size)
        erased: Floats = values - (values - self.mean) @ self.look @ self.erase.T  # eq. (1)
        return erased

    def on(self, encoder: TextEncoder, *, public: bool = False, public_name: str | None = None) -> LayeredEncoder:
        """The eraser on top of the encoder whose vectors it was fitted on: for `PrivateEncoder` and devices.

        Args:
            encoder: text to vector.
            public: whether those vectors and labels are declared public; nothing is promised to them in any case.
            public_name: what they are, for the statement.
        """
        moved = self.look @ self.erase.T
        layers = HidingLayers(((np.eye(self.mean.size) - moved, self.mean @ moved),))  # type: ignore[arg-type]
        hidden = ", ".join(self.attributes)
        return LayeredEncoder(
            encoder, layers, Provenance(trained_on=public_name, texts=self.rows, public=public, hidden=hidden)
        )


def fit_eraser(vectors: npt.ArrayLike, attributes: Mapping[str, Iterable[Hashable]]) -> ConceptEraser:
    """The eraser of some attributes, together.

    Args:
        vectors: (n, d) finite numbers; nothing is promised to those who are in there.
        attributes: by name, (n,) classes each; None, NaN and "" are missing: such a row tells nothing of this one.

    Raises:
        DataError: labels of another number than vectors, of one class only, or none at all.
        ParameterError: no matrix of numbers.

    >>> eraser = fit_eraser([[0.0, 1.0], [1.0, 0.0], [10.0, 1.0], [11.0, 0.0]], {"side": ["l", "l", "r", "r"]})
    >>> eraser.apply([[0.0, 1.0], [11.0, 1.0]]).round(6).tolist()
    [[5.0, 1.0], [5.0, 1.0]]
    """
    value = check_vectors(vectors)
    if not len(value) or not np.isfinite(value).all():
        raise DataError("an eraser is fitted on at least one vector of finite numbers")
    mean = value.mean(axis=0)
    centred = value - mean
    columns = [_with_classes(centred, name, labels) for name, labels in attributes.items()]
    if not columns:
        raise DataError("expected at least one attribute to erase, got none")
    values, axes = np.linalg.eigh(centred.T @ centred / len(value))
    kept = values > _NEGLIGIBLE * max(float(values[-1]), 5e-324)
    roots, axes = np.sqrt(values[kept]), axes[:, kept]
    whitened = (axes / roots).T @ np.hstack(columns)  # W S_xz, in the basis of the axes
    left, strengths, _ = np.linalg.svd(whitened, full_matrices=False)
    left = left[:, strengths > _NEGLIGIBLE * max(float(strengths.max(initial=0.0)), 5e-324)]
    return ConceptEraser(mean, axes / roots @ left, axes * roots @ left, tuple(attributes), len(value))


def _with_classes(centred: Floats, name: str, labels: Iterable[Hashable]) -> Floats:
    """(d, classes) covariance of the vectors with each class, over the rows that have one."""
    values = list(labels.tolist() if isinstance(labels, np.ndarray) else labels)
    if len(values) != len(centred):
        raise DataError(f"{name}: expected a label for each of {len(centred)} vectors, got {len(values)}")
    known = np.array([not is_missing(entry) and entry != "" for entry in values], dtype=bool)
    classes: dict[Hashable, int] = {}
    codes = np.array(
        [classes.setdefault(entry, len(classes)) for entry, is_known in zip(values, known, strict=True) if is_known]
    )
    if len(classes) < 2:
        raise DataError(f"{name}: expected labels of at least two classes, got {len(classes)}")
    marked = np.eye(len(classes))[codes]
    rows = centred[known]
    result: Floats = (rows - rows.mean(axis=0)).T @ (marked - marked.mean(axis=0)) / len(rows)
    return result
