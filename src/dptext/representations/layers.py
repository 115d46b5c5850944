"""What was learnt on top of a public encoder: one or two layers, applied with numpy alone, as an encoder of texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.statement import Parameter
from dptext.representations.domains import checked_vectors
from dptext.representations.encoders import Progress, TextEncoder, Vectors, checked_texts, finite, in_parts
from dptext.representations.provenance import Provenance, exposed_by

__all__ = ["HidingLayers", "LayeredEncoder"]

_TEXTS_AT_ONCE = 1024
_MOST = 1e15  # a coordinate of an encoder; products of such stay finite

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class HidingLayers:
    """Vectors of an encoder to vectors that were trained to hide: linear, or with hidden layers, max(0, .) in between.

    Attributes:
        layers: (weights (in, out), bias (out,)) of each, float32, read-only.

    Raises:
        ParameterError: shapes that do not follow each other, or numbers that are not finite.

    >>> HidingLayers((([[1.0], [0.0]], [2.0]),)).apply([[3.0, 4.0], [float("nan"), 0.0]]).tolist()
    [[5.0], [2.0]]
    """

    layers: tuple[tuple[Array, Array], ...]

    def __post_init__(self) -> None:
        layers = tuple((_frozen(weights), _frozen(bias)) for weights, bias in self.layers)
        shapes = [weights.shape for weights, _ in layers]
        if (
            not layers
            or any(weights.ndim != 2 or bias.shape != weights.shape[1:] for weights, bias in layers)
            or any(one[1] != two[0] for one, two in pairwise(shapes))
            or any(0 in shape for shape in shapes)
        ):
            raise ParameterError("layers must be pairs of weights (in, out) and a bias (out,), each wide as the next")
        if not all(np.isfinite(each).all() for pair in layers for each in pair):
            raise ParameterError("the weights of layers must be finite numbers")
        object.__setattr__(self, "layers", layers)

    @property
    def encoder_dimension(self) -> int:
        """D, of the vectors that come in."""
        return int(self.layers[0][0].shape[0])

    @property
    def dimension(self) -> int:
        """d, of those that go out."""
        return int(self.layers[-1][1].shape[0])

    def apply(self, vectors: npt.ArrayLike) -> Vectors:
        """(n, D) to (n, d) float32. NaN counts as 0. *Not private.*

        Raises:
            ParameterError: another shape.
        """
        given = np.nan_to_num(checked_vectors(vectors, self.encoder_dimension), nan=0.0, posinf=_MOST, neginf=-_MOST)
        given = np.clip(given, -_MOST, _MOST)
        with np.errstate(all="ignore"):
            for place, (weights, bias) in enumerate(self.layers):
                given = given @ weights.astype(np.float64) + bias
                if place + 1 < len(self.layers):
                    np.maximum(given, 0.0, out=given)
        return finite(given)

    @cached_property
    def sha256(self) -> str:
        """Digest of the weights."""
        digest = hashlib.sha256()
        for weights, bias in self.layers:
            digest.update(f"{weights.shape}".encode())
            digest.update(np.ascontiguousarray(weights, dtype="<f4").tobytes())
            digest.update(np.ascontiguousarray(bias, dtype="<f4").tobytes())
        return digest.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return HidingLayers, (self.layers,)


class LayeredEncoder:
    """A public encoder, and trained layers on top. Frozen.

    Args:
        encoder: text to vector.
        layers: what `dptext.HidingEncoder` learnt on its vectors.
        provenance: what they were trained on, and what for.

    Raises:
        ParameterError: layers for vectors of another width.
    """

    name = "hiding layers"

    def __init__(self, encoder: TextEncoder, layers: HidingLayers, provenance: Provenance | None = None) -> None:
        if not isinstance(encoder, TextEncoder) or not isinstance(layers, HidingLayers):
            raise ParameterError("expected an encoder of texts, and the layers that were trained on its vectors")
        if encoder.dimension != layers.encoder_dimension:
            raise ParameterError(
                f"the layers are for vectors of {layers.encoder_dimension} numbers, the encoder gives "
                f"{encoder.dimension}: they were trained on another one"
            )
        self.encoder, self.layers = encoder, layers
        self.provenance = Provenance() if provenance is None else provenance
        self.dimension = layers.dimension

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        """(n, d) float32, one vector a text. *Not private.*"""
        given = checked_texts(texts)
        vectors = np.empty((len(given), self.dimension), dtype=np.float32)
        for block in in_parts(given, _TEXTS_AT_ONCE, progress):
            vectors[block] = self.layers.apply(self.encoder.encode(given[block]))
        return vectors

    def parameters(self) -> dict[str, Parameter]:
        """Those of the encoder underneath, the digest of the layers, and what they were trained on."""
        below = self.encoder.parameters()
        inner = {f"base_{name.removeprefix('encoder_')}": value for name, value in below.items()}
        return {
            "encoder": self.name,
            "encoder_dimension": self.dimension,
            "encoder_layers_sha256": self.layers.sha256,
            **inner,
            **self.provenance.parameters(),
        }

    def assumptions(self) -> tuple[str, ...]:
        """Those of the encoder underneath, and of the training."""
        return (*self.encoder.assumptions(), *self.provenance.assumptions())

    def exposed(self) -> tuple[str, ...]:
        """What the training, and that of the encoder underneath, shows of texts that are not public."""
        return tuple(dict.fromkeys((*exposed_by(self.encoder), *self.provenance.exposed())))

    def __setattr__(self, name: str, value: Any) -> None:
        if "dimension" in vars(self):
            raise AttributeError(f"an encoder is frozen, {name!r} cannot be set: make another one")
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return LayeredEncoder, (self.encoder, self.layers, self.provenance)


def layers_of(network: Any, centre: npt.NDArray[Any], scale: npt.NDArray[Any]) -> HidingLayers:
    """The linear modules of a network that was trained on (x - centre) / scale, for x itself."""
    linear = [module for module in network.modules() if hasattr(module, "weight")]
    arrays: Sequence[Any] = [
        (module.weight.detach().numpy().T.astype(np.float64), module.bias.detach().numpy().astype(np.float64))
        for module in linear
    ]
    first = arrays[0][0] / scale[:, None]
    moved = [(first, arrays[0][1] - centre @ first), *arrays[1:]]
    return HidingLayers(tuple(moved))


def _frozen(array: npt.ArrayLike) -> Array:
    with np.errstate(over="ignore"):
        copy = np.array(array, dtype=np.float32)
    copy.flags.writeable = False
    return copy
