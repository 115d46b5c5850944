"""What a hiding encoder is once it is trained: it encodes, bounds, randomises, states, and writes texts again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.hiding.inputs import as_vectors
from dptext.hiding.training import HidingEpoch
from dptext.privacy.condition import Condition, EncoderStays
from dptext.privacy.guarantee import NoGuarantee, Relation, Trust, Unit
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, of_release
from dptext.representations.bounds import Bound
from dptext.representations.device_encoder import DeviceEncoder
from dptext.representations.encoders import (
    Progress,
    Provenance,
    TextEncoder,
    Vectors,
    exposed_by,
)
from dptext.representations.gru import GruDecoder
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.randomizer import Private, Randomizer
from dptext.showing import Facts, Showing

__all__ = ["TrainedEncoder", "statement_of_vectors"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TrainedEncoder(Showing):
    """An encoder like any other, with bound and noise of its own."""

    layers: HidingLayers | None
    text_encoder: TextEncoder | None
    decoder: GruDecoder | None
    bound: Bound
    randomizer: Randomizer | None
    provenance: Provenance
    epochs: tuple[HidingEpoch, ...]
    best: int

    name = LayeredEncoder.name

    @property
    def dimension(self) -> int:
        """d, of its vectors."""
        return self.bound.dimension

    @cached_property
    def release(self) -> DeviceEncoder | None:
        """For devices; only with an encoder of texts and a randomizer."""
        if self.text_encoder is None or self.randomizer is None:
            return None
        return DeviceEncoder(self.text_encoder, self.bound, self.randomizer)

    def encode(self, texts: Iterable[str | None] | npt.ArrayLike, *, progress: Progress | None = None) -> Vectors:
        """(n, d) float32, before bound and noise, of texts or of (n, D) vectors. *Not private.*"""
        given = as_vectors(texts)
        if given is not None:
            if self.layers is None:
                raise ParameterError("a recurrent encoder reads texts, not vectors")
            return self.layers.apply(given)
        if self.text_encoder is None:
            raise ParameterError(
                "it was trained on vectors without an encoder: give vectors, or HidingEncoder(encoder)"
            )
        return self.text_encoder.encode(texts, progress=progress)  # type: ignore[arg-type]

    def clean(self, texts_or_vectors: Iterable[str | None] | npt.ArrayLike) -> npt.NDArray[np.float32]:
        """(n, d) float32 bounded vectors without noise. **Not private**: they must not leave the device."""
        return self.bound.apply(self.encode(texts_or_vectors)).astype(np.float32)

    def transform(self, texts_or_vectors: Iterable[str | None] | npt.ArrayLike, *, seed: int | None = None) -> Private:
        """(n, d) float32 vectors, bounded and with fresh noise: a new release, of which `statement` speaks."""
        given = as_vectors(texts_or_vectors)
        if given is None and self.release is not None:
            return self.release.encode(texts_or_vectors, seed=seed)  # type: ignore[arg-type]
        clean = self.bound.apply(self.encode(texts_or_vectors if given is None else given))
        if self.randomizer is None:
            return clean.astype(np.float32)
        channel = self.randomizer.channel(clean.shape[1])
        if seed is None or given is None:
            return channel.sample(clean, RandomBits(seed))
        # equal noise on other vectors would give them away by subtraction, to those who do not know the seed, too
        parameters = hashlib.sha256(b"vectors\0" + self.statement().to_json().encode()).digest()
        content = hashlib.sha256(repr(given.shape).encode() + np.ascontiguousarray(given).tobytes()).digest()
        return channel.sample(clean, NoiseKey(seed).stream(parameters, 0, content))

    def decode(self, vectors: npt.ArrayLike) -> list[str]:
        """Texts that the decoder writes from (n, d) vectors, such as those of ``transform``."""
        if self.decoder is None:
            raise ParameterError("only a recurrent encoder has a decoder: HidingEncoder('gru', ...)")
        return self.decoder.decode(vectors)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``release`` as a folder that `DeviceEncoder.load` reads on a device: numpy is all it takes there."""
        if self.release is None:
            raise ParameterError(
                "a device needs an encoder of texts and a randomizer: HidingEncoder(encoder, PrivUnit(...))"
            )
        self.release.save(folder)

    def statement(self, *, seeded: bool = False) -> PrivacyStatement:
        """What is promised for one text, or vector, that goes through ``transform``."""
        if self.release is not None:
            return self.release.statement.replace(seeded=seeded)
        parameters = {**self.parameters(), **self.bound.parameters()}
        return statement_of_vectors(self.randomizer, parameters, self.provenance, self.dimension, seeded=seeded)

    def parameters(self) -> dict[str, Parameter]:
        """What identifies the trained encoder, for statements."""
        if self.text_encoder is not None:
            return self.text_encoder.parameters()
        assert self.layers is not None
        return {
            "encoder": self.name,
            "encoder_dimension": self.layers.dimension,
            "encoder_layers_sha256": self.layers.sha256,
            **self.provenance.parameters(),
        }

    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted about it, for statements."""
        return (self.provenance if self.text_encoder is None else self.text_encoder).assumptions()

    def exposed(self) -> tuple[str, ...]:
        """What its training, and that of the encoder underneath, shows of texts that are not public, for statements."""
        trained: Any = self.provenance if self.text_encoder is None else self.text_encoder
        return exposed_by(trained)

    def _in_brief(self) -> Facts:
        yield "encoder", self.text_encoder
        yield "bound", self.bound.kind
        yield "randomizer", self.randomizer
        yield "dimension", self.dimension
        yield "best", self.best


def statement_of_vectors(
    randomizer: Randomizer | None,
    parameters: Mapping[str, Parameter],
    provenance: Provenance,
    dimension: int,
    *,
    seeded: bool = False,
) -> PrivacyStatement:
    """What is promised for a vector that goes through a trained map and then through the noise, if there is any."""
    trained = provenance.exposed()
    condition = Condition(about="vectors", requirements=(EncoderStays(),) if trained else ())
    if randomizer is None:
        return of_release(
            guarantee=NoGuarantee("empirical: trained against adversaries, and released without noise"),
            unit=Unit.DOCUMENT,
            relation=Relation.SUBSTITUTION,
            condition=condition,
            trust=Trust.LOCAL,
            mechanism="HidingEncoder",
            parameters=parameters,
            assumptions=provenance.assumptions(),
            exposed=("the vectors, as they are without noise", *trained),
        )
    noise = randomizer.statement(dimension, seeded=seeded)
    return noise.replace(
        condition=condition,
        parameters={**parameters, **noise.parameters},
        assumptions=tuple(dict.fromkeys((*provenance.assumptions(), *noise.assumptions))),
        exposed=(*noise.exposed, *trained),
    )
