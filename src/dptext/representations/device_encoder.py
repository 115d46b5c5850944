"""What a device runs: encoder, bound and randomizer in one frozen thing, from text to a vector that may be sent; and
the encoder that somebody names.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.io.batches import Batch
from dptext.privacy.condition import Condition, EncoderStays
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.privacy.wording import facts_of
from dptext.representations.bounds import Bound
from dptext.representations.device_folder import check_promise, read_device, write_device
from dptext.representations.domains import Domain
from dptext.representations.encoders import (
    CallableEncoder,
    Progress,
    TextEncoder,
    checked_texts,
    encode_each,
    exposed_by,
)
from dptext.representations.mean_of_words import MeanOfWords
from dptext.representations.onnx_model import is_onnx_folder
from dptext.representations.randomizer import Channel, Private, Randomizer
from dptext.representations.sentence_encoder import KNOWN_MODELS, SentenceEncoder
from dptext.showing import Facts, Showing
from dptext.vectors.formats import load_vectors_once
from dptext.vectors.word_vectors import WordVectors

__all__ = ["DeviceEncoder", "encoder_of"]

_TEXTS_AT_ONCE = 4096
_WORDS, _WEIGHTING = 50_000, 1e-3  # of word vectors whose means are taken
_WITHIN = {
    Domain.SPHERE: (Domain.SPHERE, Domain.BALL, Domain.CUBE),
    Domain.BALL: (Domain.BALL, Domain.CUBE),
    Domain.CUBE: (Domain.CUBE,),
    Domain.ONE_HOT: tuple(Domain),
}
"""The domains that hold all vectors of a domain: a randomizer for one of them leaves the vectors as they are."""


@dataclass(frozen=True, eq=False, repr=False)
class DeviceEncoder(Showing):
    """Text to private vector. Frozen: it cannot drift away from its statement, and keeps no random state.

    **Guarantee** (unit document, substitution, local): that of the randomizer for any two texts, as
    ``statement`` says. *Proof.* Encoder and bound are fixed before they see a text, each text is encoded and bounded by
    itself (`dptext.representations.encoders.encode_each`), and the randomizer's guarantee holds for any two vectors of
    its domain, into which it brings all that it gets.
    Assumptions: the bound was fitted on public texts, and the encoder is public. If it was trained on texts that are
    not, the statement requires that it stays the same, and its training texts are not protected. Every call is a
    release of its own and costs again: k vectors of one person have the composition of k statements.

    Args:
        encoder: text to vector.
        bound: vector to bounded vector, fitted on public texts.
        randomizer: bounded vector to private vector, with its budget.

    Raises:
        ParameterError: parts that do not fit together.

    >>> from dptext.representations.encoders import MeanOfWords
    >>> from dptext.representations.privunit import PrivUnit
    >>> from dptext.vectors.formats import load_vectors
    >>> words = MeanOfWords(load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])))
    >>> device = DeviceEncoder(words, Bound(mean=[3.0, 3.0]), PrivUnit(epsilon=8.0))
    >>> device.encode(["my cat", "", None]).shape
    (3, 2)
    >>> print(device.statement.guarantee)
    8-differential privacy (pure)
    """

    encoder: TextEncoder
    bound: Bound
    randomizer: Randomizer

    def __post_init__(self) -> None:
        if not isinstance(self.encoder, TextEncoder):
            raise ParameterError(f"expected an encoder such as MeanOfWords, got {type(self.encoder).__name__}")
        if not isinstance(self.bound, Bound):
            raise ParameterError(f"expected a Bound, got {type(self.bound).__name__}: use fit_bound(...)")
        if not isinstance(self.randomizer, Randomizer):
            raise ParameterError(f"expected a randomizer such as PrivUnit, got {type(self.randomizer).__name__}")
        if self.encoder.dimension != self.bound.encoder_dimension:
            raise ParameterError(
                f"the bound is for vectors of {self.bound.encoder_dimension} numbers, the encoder gives "
                f"{self.encoder.dimension}: fit it on vectors of this encoder"
            )
        wanted = self.channel.domain
        if wanted not in _WITHIN[self.bound.domain]:
            raise ParameterError(
                f"{self.randomizer.name} takes vectors of the {wanted}, the bound {self.bound.kind!r} ends in the "
                f"{self.bound.domain}: choose another bound"
            )

    @property
    def channel(self) -> Channel:
        """The randomizer, calibrated for the bounded vectors."""
        return self.randomizer.channel(self.bound.dimension)

    @property
    def width(self) -> int:
        """K, the length of a private vector."""
        return self.channel.width

    def encode(
        self, texts: Iterable[str | None], *, seed: int | None = None, progress: Progress | None = None
    ) -> Private:
        """(n, k) float32 private vectors, one a text: a release.

        Args:
            texts: strings or documents; a missing one counts as the empty text, which has a vector like any other.
            seed: None for cryptographic randomness. An integer, for tests and papers only, makes equal calls give equal
                vectors (other texts or parameters still get other noise); it voids the promise towards all who know it.
            progress: called with the number of texts done.

        Raises:
            ParameterError: one string, or something with columns.
            DataError: an entry that is no string; its place is named.
        """
        given = checked_texts(texts)
        if seed is None:
            return self.encode_with(given, RandomBits(), progress=progress)
        parameters = hashlib.sha256(b"vectors\0" + self.statement.to_json().encode()).digest()
        return self.encode_with(
            given, NoiseKey(seed).stream(parameters, 0, Batch(given, {}).digest()), progress=progress
        )

    def encode_with(
        self, texts: Iterable[str | None], bits: RandomBits, *, progress: Progress | None = None
    ) -> Private:
        """`encode` with random bits of the caller's, which nothing else may use."""
        given = checked_texts(texts)
        channel = self.channel
        private = np.empty((len(given), channel.width), dtype=np.float32)
        for start in range(0, len(given), _TEXTS_AT_ONCE):
            block = slice(start, start + _TEXTS_AT_ONCE)
            private[block] = channel.sample(self._bounded(given[block]), bits)
            if progress is not None:
                progress(min(block.stop, len(given)))
        return private

    def clean(self, texts: Iterable[str | None]) -> npt.NDArray[np.float32]:
        """(n, d) float32 vectors as they are *before* the noise. **Not private: they must not leave the device.**

        For a model that was trained on private vectors and sent back to the device, which applies it without noise.
        Not every randomizer's outputs are of the space that these lie in; those of PrivUnit are.
        """
        return self._bounded(checked_texts(texts)).astype(np.float32)

    def _bounded(self, texts: list[str]) -> npt.NDArray[np.float64]:
        return self.bound.apply(encode_each(self.encoder, texts))

    @property
    def statement(self) -> PrivacyStatement:
        """What is promised for one text; ``encode`` with a seed promises it only to those who do not know the seed."""
        noise = self.randomizer.statement(self.bound.dimension)
        trained = exposed_by(self.encoder)
        return noise.replace(
            condition=Condition(requirements=(EncoderStays(),) if trained else ()),
            parameters=self.parameters(),
            assumptions=tuple(
                dict.fromkeys((*self.encoder.assumptions(), *self.bound.assumptions(), *noise.assumptions))
            ),
            exposed=("the number of texts, and their order", *trained),
        )

    def parameters(self) -> dict[str, Parameter]:
        """All that decides about the law of an output, for the statement: of encoder, bound and randomizer."""
        noise = self.randomizer.statement(self.bound.dimension).parameters
        return {**self.encoder.parameters(), **self.bound.parameters(), **noise}

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write it as a folder, whole or not at all, for `load` on a device.

        The vectors of `MeanOfWords` (with their words) and of an `EmbeddingBag` go along; of a `SentenceEncoder` its
        name and digest; any other encoder has to be given again.

        Raises:
            ParameterError: something is there already.
            DataError: a word that no file can hold; its row is named.
            StorageError: it cannot be written.
        """
        write_device(folder, self.encoder, self.bound, self.randomizer, self.statement)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], encoder: TextEncoder | None = None) -> DeviceEncoder:
        """What `save` wrote. numpy and dptext's core are all it takes, unless the encoder takes more.

        The randomizer is calibrated again from its budget, and everything that the folder's statement says is compared
        with what was loaded: it cannot promise one thing and do another.

        Args:
            folder: that `save` wrote.
            encoder: where the folder cannot hold it: a caller's function, a model in another place.

        Raises:
            ParameterError: the encoder has to be given, or is not the one that was saved.
            MissingExtraError: the encoder needs a package.
            DataError: a file is missing, cut, changed, of a newer version or of something else.
            StorageError: a file cannot be read.
        """
        found = read_device(folder, encoder)
        try:
            device = cls(found.encoder, found.bound, found.randomizer)
        except ParameterError as error:
            raise DataError(f"{found.source}: its parts do not fit together ({error}); get the folder again") from None
        check_promise(found, device.statement)
        return device

    def _in_brief(self) -> Facts:
        yield "encoder", self.encoder
        yield "bound", self.bound.kind
        yield "randomizer", self.randomizer
        yield "dimension", self.bound.dimension

    def _in_full(self) -> Facts:
        return facts_of(self.statement)


def encoder_of(source: Any) -> TextEncoder:
    """The encoder that was asked for."""
    trained = getattr(source, "text_encoder_", None)
    if isinstance(trained, TextEncoder):  # what was trained is frozen, what trained it can be trained again
        return trained
    if isinstance(source, TextEncoder):
        return source
    if isinstance(source, WordVectors):
        return MeanOfWords(source, weighting=_WEIGHTING)
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if name in KNOWN_MODELS or (Path(name) / "modules.json").exists() or is_onnx_folder(Path(name)):
            return SentenceEncoder(source)
        return MeanOfWords(load_vectors_once(name, limit=_WORDS), weighting=_WEIGHTING)
    if callable(source):
        return CallableEncoder(source)
    raise ParameterError(
        "encoder must be a known name, a path, WordVectors, a TextEncoder or a function from a list of texts to an "
        f"array, got {type(source).__name__}"
    )
