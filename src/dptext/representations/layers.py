"""Trained layers, applied with numpy alone: on top of a public encoder, or as a classifier that a server sends back."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.io.artifacts import read_stored
from dptext.io.atomic import hashed_file
from dptext.privacy.statement import Parameter
from dptext.representations.bounds import Domain, Floats, check_vectors, row_products
from dptext.representations.encoders import FrozenEncoder, Provenance, TextEncoder, Vectors, encoder_exposure, finite
from dptext.validation import check_path

_MODEL = "dptext device model 1"
_LARGEST = 1e15  # bound on a coordinate of an encoder, so that products stay finite

Array = npt.NDArray[np.float32]
Layers = tuple[tuple[Array, Array], ...]
"""(weights (in, out), bias (out,)) of each layer, float32, read-only; max(0, .) in between."""


def _freeze(layers: Any) -> Layers:
    """Return read-only copies, if the shapes of the layers fit together."""

    def copy(array: npt.ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            values = np.array(array, dtype=np.float32)
        values.flags.writeable = False
        return values

    copies = tuple((copy(weights), copy(bias)) for weights, bias in layers)
    fits = all(weights.ndim == 2 and weights.size and bias.shape == weights.shape[1:] for weights, bias in copies)
    if not copies or not fits or any(one.size != two.shape[0] for (_, one), (two, _) in pairwise(copies)):
        raise ParameterError("layers must be pairs of weights (in, out) and a bias (out,), with matching sizes")
    return copies


def _apply(layers: Layers, vectors: Floats) -> Floats:
    for place, (weights, bias) in enumerate(layers):
        vectors = row_products(vectors, weights.astype(np.float64)) + bias
        if place + 1 < len(layers):
            np.maximum(vectors, 0.0, out=vectors)
    return vectors


def _is_finite(layers: Layers) -> bool:
    return all(np.isfinite(array).all() for pair in layers for array in pair)


@dataclass(frozen=True, eq=False)
class HidingLayers:
    """Layers on top of an encoder."""

    layers: Layers

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", _freeze(self.layers))
        if not _is_finite(self.layers):
            raise ParameterError("the weights of layers must be finite numbers")

    @property
    def encoder_dimension(self) -> int:
        return int(self.layers[0][0].shape[0])

    @property
    def dimension(self) -> int:
        return int(self.layers[-1][1].shape[0])

    def apply(self, vectors: npt.ArrayLike) -> Vectors:
        """Map (n, D) vectors to (n, d) float32."""
        values = check_vectors(vectors, self.encoder_dimension)
        values = np.clip(np.nan_to_num(values, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST), -_LARGEST, _LARGEST)
        with np.errstate(all="ignore"):
            return finite(_apply(self.layers, values))

    @cached_property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for weights, bias in self.layers:
            digest.update(f"{weights.shape}".encode())
            digest.update(np.ascontiguousarray(weights, dtype="<f4").tobytes())
            digest.update(np.ascontiguousarray(bias, dtype="<f4").tobytes())
        return digest.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return HidingLayers, (self.layers,)


class LayeredEncoder(FrozenEncoder):
    """A public encoder with trained layers on top."""

    name = "hiding layers"

    def __init__(self, encoder: TextEncoder, layers: HidingLayers, provenance: Provenance | None = None) -> None:
        if encoder.dimension != layers.encoder_dimension:
            raise ParameterError(
                f"the layers take vectors of {layers.encoder_dimension} numbers, the encoder returns "
                f"{encoder.dimension}: pass the encoder that they were trained on"
            )
        self.encoder, self.layers = encoder, layers
        self.provenance = Provenance() if provenance is None else provenance
        self.dimension = layers.dimension

    @property
    def is_batch_invariant(self) -> bool:
        """True if the inner encoder is batch invariant; the layers process each row separately."""
        return getattr(self.encoder, "is_batch_invariant", False)

    def _vectors(self, texts: list[str]) -> Vectors:
        return self.layers.apply(self.encoder.encode(texts))

    def parameters(self) -> dict[str, Parameter]:
        below = self.encoder.parameters()
        return {
            "encoder": self.name,
            "encoder_dimension": self.dimension,
            "encoder_layers_sha256": self.layers.sha256,
            **{f"base_{name.removeprefix('encoder_')}": value for name, value in below.items()},
            **self.provenance.parameters(),
        }

    def assumptions(self) -> tuple[str, ...]:
        return (*self.encoder.assumptions(), *self.provenance.assumptions())

    def exposed(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*encoder_exposure(self.encoder), *self.provenance.exposed())))


@dataclass(frozen=True, eq=False)
class DeviceModel:
    """A linear classifier (one layer) or a perceptron (several, with max(0, .) in between)."""

    classes: tuple[Any, ...]
    layers: Layers
    domain: Domain | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", _freeze(self.layers))
        if self.layers[-1][1].size != len(self.classes):
            raise ParameterError(
                f"the last layer has {self.layers[-1][1].size} outputs for {len(self.classes)} classes"
            )
        object.__setattr__(self, "classes", tuple(self.classes))

    @property
    def dimension(self) -> int:
        return int(self.layers[0][0].shape[0])

    def scores(self, vectors: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return (n, classes) scores of (n, d) vectors; the class with the largest score is the most likely."""
        values = check_vectors(vectors, self.dimension)
        return _apply(self.layers, values if self.domain is None else self.domain.bound(values))

    def predict(self, vectors: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the class of each of (n, d) vectors."""
        predicted: npt.NDArray[Any] = np.asarray(self.classes)[self.scores(vectors).argmax(axis=1)]
        return predicted

    def score(self, vectors: npt.ArrayLike, labels: npt.ArrayLike) -> float:
        """Return the fraction of vectors whose class is predicted correctly."""
        return float(np.mean(self.predict(vectors) == np.asarray(labels)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write classes, domain and arrays as JSON, which preserves float32 exactly."""
        content = {
            "format": _MODEL,
            "classes": list(self.classes),
            "domain": None if self.domain is None else str(self.domain),
            "layers": [{"weights": weights.tolist(), "bias": bias.tolist()} for weights, bias in self.layers],
        }
        with hashed_file(path) as stream:
            stream.write(json.dumps(content).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote."""
        content = read_stored(check_path("the file", path))
        with suppress(ValueError, KeyError, TypeError, RecursionError, ParameterError):
            data = json.loads(content)
            layers = tuple((entry["weights"], entry["bias"]) for entry in data["layers"])
            domain = None if data["domain"] is None else Domain(data["domain"])
            model = cls(tuple(data["classes"]), layers, domain)
            if data["format"] == _MODEL and np.asarray(model.classes).ndim == 1 and _is_finite(model.layers):
                return model
        raise DataError("this is not a device model: expected a file written by DeviceModel.save of this version")
