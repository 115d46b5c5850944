"""What a hiding encoder does once it is trained: encode, bound, randomise, state, and write texts again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.hiding.inputs import as_vectors
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id
from dptext.representations.bounds import Bound
from dptext.representations.domains import Floats
from dptext.representations.encoders import Progress, TextEncoder, Vectors
from dptext.representations.gru import GruDecoder
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.provenance import Provenance, exposed_by, statement_of_vectors
from dptext.representations.randomizer import Private, Randomizer
from dptext.representations.release import DeviceEncoder

__all__ = ["TrainedEncoder"]


class TrainedEncoder:
    """An encoder like any other, with bound and noise of its own: what `dptext.HidingEncoder` is after ``fit``.

    Attributes:
        layers_, text_encoder_, decoder_, bound_, randomizer_, release_, statement_: see `dptext.HidingEncoder`.
        provenance_: what it was trained on.
    """

    layers_: HidingLayers
    text_encoder_: TextEncoder
    decoder_: GruDecoder
    bound_: Bound
    randomizer_: Randomizer | None
    release_: DeviceEncoder
    statement_: PrivacyStatement
    provenance_: Provenance

    name = LayeredEncoder.name

    def encode(self, texts: Iterable[str | None] | npt.ArrayLike, *, progress: Progress | None = None) -> Vectors:
        """(n, d) float32, before bound and noise, of texts or of (n, D) vectors. *Not private.*"""
        self._check_fitted()
        given = as_vectors(texts)
        if given is None:
            return self._texts_encoder().encode(texts, progress=progress)  # type: ignore[arg-type]
        if not hasattr(self, "layers_"):
            raise ParameterError("a recurrent encoder reads texts, not vectors")
        return self.layers_.apply(given)

    def clean(self, texts_or_vectors: Iterable[str | None] | npt.ArrayLike) -> npt.NDArray[np.float32]:
        """(n, d) float32 bounded vectors without noise. **Not private**: they must not leave the device."""
        encoded = self.encode(texts_or_vectors)
        return self.bound_.apply(encoded).astype(np.float32)

    def transform(self, texts_or_vectors: Iterable[str | None] | npt.ArrayLike, *, seed: int | None = None) -> Private:
        """(n, d) float32 vectors, bounded and with fresh noise: a new release; ``statement_`` speaks of it.

        Without a randomizer there is no noise, and the statement says that nothing is promised.

        Args:
            texts_or_vectors: as for ``fit``.
            seed: None for cryptographic randomness. An integer, for tests and papers only, makes equal calls give equal
                vectors (other texts or vectors still get other noise); it voids the promise for whoever knows it.
        """
        self._check_fitted()
        given = as_vectors(texts_or_vectors)
        if given is None and hasattr(self, "release_"):
            private = self.release_.encode(texts_or_vectors, seed=seed)  # type: ignore[arg-type]
        else:
            clean = self.bound_.apply(self.encode(texts_or_vectors if given is None else given))
            private = self._with_noise(clean, given, seed)
        self.statement_ = self.statement(seeded=seed is not None).replace(release_id=new_release_id())
        return private

    def _with_noise(self, clean: Floats, given: Floats | None, seed: int | None) -> Private:
        if self.randomizer_ is None:
            return clean.astype(np.float32)
        channel = self.randomizer_.channel(clean.shape[1])
        if seed is None or given is None:
            return channel.sample(clean, RandomBits(seed))
        # equal noise on other vectors would give them away by subtraction, to those who do not know the seed, too
        parameters = hashlib.sha256(b"vectors\0" + self.statement().to_json().encode()).digest()
        content = hashlib.sha256(repr(given.shape).encode() + np.ascontiguousarray(given).tobytes()).digest()
        return channel.sample(clean, NoiseKey(seed).stream(parameters, 0, content))

    def decode(self, vectors: npt.ArrayLike) -> list[str]:
        """Texts that the decoder writes from (n, d) vectors, such as those of ``transform``.

        **Guarantee**: that of the vectors. Writing a text from what was released is post-processing, *given the trained
        decoder*: the words that it writes, and what it is used to writing, come from the texts of the training.

        Raises:
            ParameterError: an encoder without a decoder (all but ``"gru"``); another shape.
        """
        self._check_fitted()
        if not hasattr(self, "decoder_"):
            raise ParameterError("only a recurrent encoder has a decoder: HidingEncoder('gru', ...)")
        return self.decoder_.decode(vectors)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``release_`` as a folder that `DeviceEncoder.load` reads on a device: numpy is all it takes there.

        Raises:
            ParameterError: there is no ``release_``: no encoder of texts, or no randomizer; something is there already.
            StorageError: it cannot be written.
        """
        self._check_fitted()
        if not hasattr(self, "release_"):
            raise ParameterError(
                "a device needs an encoder of texts and a randomizer: HidingEncoder(encoder, PrivUnit(...))"
            )
        self.release_.save(folder)

    def statement(self, *, seeded: bool = False) -> PrivacyStatement:
        """What is promised for one text, or vector, that goes through ``transform``."""
        self._check_fitted()
        if hasattr(self, "release_"):
            return self.release_.statement.replace(seeded=seeded)
        parameters = {**self.parameters(), **self.bound_.parameters()}
        return statement_of_vectors(self.randomizer_, parameters, self.provenance_, self.bound_.dimension, seeded)

    def parameters(self) -> dict[str, Parameter]:
        """What identifies the trained encoder, for statements."""
        self._check_fitted()
        if hasattr(self, "text_encoder_"):
            return self.text_encoder_.parameters()
        return {
            "encoder": self.name,
            "encoder_dimension": self.layers_.dimension,
            "encoder_layers_sha256": self.layers_.sha256,
            **self.provenance_.parameters(),
        }

    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted about it, for statements."""
        self._check_fitted()
        return self.text_encoder_.assumptions() if hasattr(self, "text_encoder_") else self.provenance_.assumptions()

    def exposed(self) -> tuple[str, ...]:
        """What its training, and that of the encoder underneath, shows of texts that are not public, for statements."""
        self._check_fitted()
        trained: Any = self.text_encoder_ if hasattr(self, "text_encoder_") else self.provenance_
        return exposed_by(trained)

    def _texts_encoder(self) -> TextEncoder:
        if not hasattr(self, "text_encoder_"):
            raise ParameterError(
                "it was trained on vectors without an encoder: give vectors, or HidingEncoder(encoder)"
            )
        return self.text_encoder_

    def _check_fitted(self) -> None:
        if not hasattr(self, "bound_"):
            raise ParameterError("the encoder is not trained yet: call fit(texts, task=..., attributes=...) first")
