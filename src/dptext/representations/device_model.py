"""A trained model as arrays: what the server sends back to the device, which needs numpy only to use it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, StorageError
from dptext.own_files import replacing
from dptext.representations.domains import Domain, checked_vectors

__all__ = ["DeviceModel"]

_FORMAT = "dptext device model 1"
Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class DeviceModel:
    """A linear classifier (one layer) or a perceptron (several, with max(0, .) in between). Frozen.

    Attributes:
        classes: what the outputs stand for.
        layers: (weights (in, out), bias (out,)) of each layer, float32, read-only.
        domain: into which vectors are brought first, as before the noise; None: they are taken as they are.

    >>> model = DeviceModel((0, 1), (([[-1.0, 1.0], [0.0, 0.0]], [0.0, 0.0]),), Domain.SPHERE)
    >>> model.predict([[3.0, 4.0], [-1.0, 0.0]]).tolist()
    [1, 0]
    """

    classes: tuple[Any, ...]
    layers: tuple[tuple[Array, Array], ...]
    domain: Domain | None = None

    def __post_init__(self) -> None:
        layers = tuple((_frozen(weights), _frozen(bias)) for weights, bias in self.layers)
        widths = [weights.shape for weights, _ in layers]
        chained = all(one[-1] == two[0] for one, two in pairwise(widths))
        if not layers or any(weights.ndim != 2 or bias.shape != weights.shape[1:] for weights, bias in layers):
            raise ParameterError("layers must be pairs of weights of shape (in, out) and a bias of shape (out,)")
        if not chained or widths[-1][1] != len(self.classes):
            raise ParameterError(f"layers of shapes {widths} do not lead to {len(self.classes)} classes")
        object.__setattr__(self, "layers", layers)
        object.__setattr__(self, "classes", tuple(self.classes))

    @property
    def dimension(self) -> int:
        """The number of coordinates of a vector."""
        return int(self.layers[0][0].shape[0])

    def scores(self, vectors: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """(n, d) vectors to (n, classes), the larger the likelier.

        Raises:
            ParameterError: not an array of shape (n, d).
        """
        given = checked_vectors(vectors, self.dimension)
        if self.domain is not None:
            given = self.domain.bound(given)
        for index, (weights, bias) in enumerate(self.layers):
            given = given @ weights.astype(np.float64) + bias
            if index + 1 < len(self.layers):
                np.maximum(given, 0.0, out=given)
        return given

    def predict(self, vectors: npt.ArrayLike) -> npt.NDArray[Any]:
        """The class of each of (n, d) vectors."""
        predicted: npt.NDArray[Any] = np.asarray(self.classes)[self.scores(vectors).argmax(axis=1)]
        return predicted

    def score(self, vectors: npt.ArrayLike, labels: npt.ArrayLike) -> float:
        """The share of vectors whose class is predicted."""
        return float(np.mean(self.predict(vectors) == np.asarray(labels)))

    def to_json(self) -> str:
        """Classes, domain and arrays; float32 come back exactly."""
        return json.dumps(
            {
                "format": _FORMAT,
                "classes": list(self.classes),
                "domain": None if self.domain is None else str(self.domain),
                "layers": [{"weights": weights.tolist(), "bias": bias.tolist()} for weights, bias in self.layers],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote.

        Raises:
            DataError: it is something else.
        """
        try:
            found = json.loads(text)
            if found["format"] != _FORMAT:
                raise DataError(f"expected {_FORMAT!r}, got another format: save it again with this version")
            layers = tuple((each["weights"], each["bias"]) for each in found["layers"])
            domain = None if found["domain"] is None else Domain(found["domain"])
            model = cls(tuple(found["classes"]), layers, domain)
            # a class that is a list, a number that is none: what a server sent is not always what it saved
            if np.asarray(model.classes).ndim == 1 and all(
                np.isfinite(each).all() for pair in model.layers for each in pair
            ):
                return model
        except DataError:
            raise
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            pass
        raise DataError("not a device model: expected the JSON that DeviceModel.save writes")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON.

        Raises:
            StorageError: the file cannot be written.
        """
        with replacing(path) as stream:
            stream.write(self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """What `save` wrote.

        Raises:
            StorageError: the file cannot be read.
            DataError: it holds something else.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise StorageError.of("read", path, error) from None
        except UnicodeDecodeError:
            raise DataError("not a device model: the file is not text") from None
        return cls.from_json(text)


def _frozen(array: npt.ArrayLike) -> Array:
    with np.errstate(over="ignore"):
        copy = np.array(array, dtype=np.float32)
    copy.flags.writeable = False
    return copy
