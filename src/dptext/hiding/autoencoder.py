"""An auto-encoder of texts: a recurrent encoder, and a decoder that reconstructs the text (extra ``train``: torch).

Derivation: docs/mechanisms/hiding.md#hiding-autoencoder
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.errors import DataError, ParameterError, extra
from dptext.hiding.inputs import Rows, as_vectors, content_of
from dptext.hiding.training import AutoEncoderOptions, HidingEpoch, Run, merge_options
from dptext.privacy.randomness import RandomBits
from dptext.representations.encoders import Provenance, check_texts
from dptext.representations.trained_encoders import END, UNKNOWN_ROW, GruDecoder, GruEncoder, WordTable, padded

_MASKED = 0.25
_SAMPLED = 512
_SORTED_TOGETHER = 50  # batches whose texts are sorted by length, against padding
_NEVER = -1e30

_ENCODER_WEIGHTS = {
    "embedding": "embedding.weight",
    "input": "encoder.weight_ih_l0",
    "input_bias": "encoder.bias_ih_l0",
    "state": "encoder.weight_hh_l0",
    "state_bias": "encoder.bias_hh_l0",
    "out": "out.weight",
    "out_bias": "out.bias",
}
_DECODER_WEIGHTS = {
    name: place.replace("encoder", "decoder") for name, place in _ENCODER_WEIGHTS.items() if "out" not in name
}
_DECODER_WEIGHTS |= {"begin": "begin.weight", "begin_bias": "begin.bias", "words_bias": "words_bias.weight"}
_DECODER_WEIGHTS |= {"project": "project.weight", "project_bias": "project.bias"}
"""The arrays of encoder and decoder, by torch's names."""


class AutoEncoder(ReprMixin):
    """Train a recurrent encoder from whose vectors a decoder reconstructs the text (a GRU, as in Beigi et al. 2019).

    `dptext.HidingEncoder` trains it further, or trains layers on top of it. **The training texts are not protected**,
    see `dptext.HidingEncoder`.

    Args:
        options: ``dimension``, ``words``, ``epochs``, ``public``, ``seed`` and all others of
            `dptext.hiding.training.AutoEncoderOptions`.

    Attributes:
        options: the options, checked.
        text_encoder_: the trained encoder, frozen.
        decoder_: the trained decoder, frozen.
        epochs_: the losses of all epochs.

    >>> auto = AutoEncoder(dimension=8, units=8, epochs=2, seed=1).fit(["the cat sat", "the dog sat"] * 8)
    >>> vectors = auto.text_encoder_.encode(["the cat", ""])
    >>> vectors.shape, len(auto.decode(vectors))
    ((2, 8), 2)
    """

    text_encoder_: GruEncoder
    decoder_: GruDecoder
    epochs_: tuple[HidingEpoch, ...]

    def __init__(self, **options: Any) -> None:
        self.options = AutoEncoderOptions(**options)

    __signature__ = merge_options(__init__, AutoEncoderOptions)

    def fit(self, texts: Iterable[str | None]) -> Self:
        """Train on texts, which have no protection.

        Raises:
            ParameterError: an argument out of range; vectors in place of texts; texts that share no word.
            DataError: no texts; an entry that is no string; a damaged checkpoint.
            RefusedError: the checkpoint belongs to another training.
            MissingExtraError: torch is not installed.
        """
        options = self.options
        torch = extra("torch", "train", "AutoEncoder")
        if as_vectors(texts) is not None:
            raise ParameterError("a recurrent encoder is trained on texts, got vectors")
        values = check_texts(texts)
        if not values:
            raise DataError("an auto-encoder is trained on texts, got none")
        table = WordTable.from_texts(values, max_words=options.words, longest=options.longest)
        identity = json.dumps(options.decisive(), sort_keys=True).encode()
        run = Run(torch, options, chain([identity], content_of(values)))
        with run.alone():
            body = GruBody(torch, table, values, options)
            self.epochs_, _ = run.epochs(body, _Rebuilding(torch, body, options.learning_rate), np.arange(len(values)))
            provenance = Provenance(trained_on=options.public_name, texts=len(values), public=options.public)
            self.text_encoder_, self.decoder_ = body.encoder(provenance), body.decoder()
        return self

    def decode(self, vectors: npt.ArrayLike) -> list[str]:
        """(n, d) vectors to texts: post-processing of released vectors."""
        if not hasattr(self, "decoder_"):
            raise ParameterError("the auto-encoder is not trained yet: call fit(texts) first")
        return self.decoder_.decode(vectors)

    def body(self, torch: Any, texts: Sequence[str]) -> GruBody:
        """The trained network, to be trained further on texts."""
        body = GruBody(torch, self.text_encoder_.table, texts, self.options)
        body.load(self.text_encoder_, self.decoder_)
        return body

    def identity(self) -> dict[str, Any]:
        """The options, and a digest of the trained encoder, that a further training depends on."""
        trained = self.text_encoder_.sha256 if hasattr(self, "text_encoder_") else None
        return self.options.decisive() | {"trained": trained}

    def _repr_fields(self) -> Fields:
        yield "dimension", self.options.dimension


class _Rebuilding:
    """Encoder and decoder alone (`dptext.hiding.training.Player`)."""

    phase = "rebuild"

    def __init__(self, torch: Any, body: GruBody, learning_rate: float) -> None:
        self._body, self.module = body, body.module
        self._optimiser = torch.optim.Adam(body.module.parameters(), lr=learning_rate, fused=True)
        self.optimisers = {"ours": self._optimiser}

    def begin(self, bits: RandomBits) -> None:
        """Do nothing: there is no noise."""

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:  # noqa: ARG002  no labels
        loss = self._body.rebuilt(batch, self._body.module(batch))
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        return float(loss.detach()), 0.0

    def look(self) -> None:
        return None

    def budget(self) -> None:
        return None


class GruBody:
    """Encoder and decoder in training (`dptext.hiding.game.Body`)."""

    def __init__(self, torch: Any, table: WordTable, texts: Sequence[str], options: AutoEncoderOptions) -> None:
        self._torch, self._table, self._rows = torch, table, table.rows(texts)
        units, dimension = options.units, options.dimension
        network = torch.nn
        embedding = network.Embedding(table.size, units)
        embedding.weight.data.mul_(units**-0.5)
        self.module = _module(
            torch,
            {
                "embedding": embedding,
                "encoder": network.GRU(units, units, batch_first=True),
                "out": network.Linear(units, dimension),
                "decoder": network.GRU(units + dimension, units, batch_first=True),
                "begin": network.Linear(dimension, units),
                "project": network.Linear(units, units),
                "words_bias": network.Embedding(table.size, 1),
            },
            self._encoded,
        )
        self.module.parts["words_bias"].weight.data.zero_()
        ranks = torch.arange(table.size, dtype=torch.float64)
        chances = torch.log((ranks + 2) / (ranks + 1)) / math.log(table.size + 1)
        self._corrections = torch.log(chances * _SAMPLED).float()

    def load(self, encoder: GruEncoder, decoder: GruDecoder) -> None:
        """Copy the weights of a trained encoder and decoder."""
        weights = self.module.parts.state_dict()
        for names, arrays in ((_ENCODER_WEIGHTS, encoder.arrays), (_DECODER_WEIGHTS, decoder.arrays)):
            for name, place in names.items():
                array = arrays[name] if name == "embedding" else arrays[name].T
                weights[place].copy_(self._torch.from_numpy(array.copy()).reshape(weights[place].shape))

    def batches(self, order: Rows, size: int) -> Iterator[Rows]:
        lengths = self._rows.lengths
        for start in range(0, len(order), size * _SORTED_TOGETHER):
            some = order[start : start + size * _SORTED_TOGETHER]
            some = some[np.argsort(lengths[some], kind="stable")]
            parts = [some[first : first + size] for first in range(0, len(some), size)]
            yield from sorted(parts, key=lambda part: int(part.min()))  # mixes the lengths of batches again

    def take(self, rows: Rows) -> Any:
        """(n, longest) padded rows of words, and (n,) lengths."""
        filled, lengths = padded(self._rows.take(rows))
        return self._torch.from_numpy(filled), self._torch.from_numpy(lengths)

    def _encoded(self, batch: Any) -> Any:
        torch, parts = self._torch, self.module.parts
        words, lengths = batch
        states, _ = parts["encoder"](parts["embedding"](words))
        inside = (torch.arange(words.shape[1]) < lengths[:, None])[:, :, None]
        return parts["out"]((states * inside).sum(dim=1) / lengths.clamp(min=1)[:, None])

    def rebuilt(self, batch: Any, z: Any) -> Any:
        """The mean loss per word, the end included, of texts decoded from z."""
        torch, parts = self._torch, self.module.parts
        words, lengths = batch
        ends = torch.full((len(words), 1), END)
        target = torch.cat([words, ends], dim=1)[:, : self._table.longest]
        before = torch.cat([ends, words], dim=1)[:, : target.shape[1]]
        masked = torch.empty(before.shape).uniform_() < _MASKED
        before = torch.where(masked, UNKNOWN_ROW, before)
        inputs = torch.cat([parts["embedding"](before), z[:, None, :].expand(-1, before.shape[1], -1)], dim=2)
        states, _ = parts["decoder"](inputs, torch.tanh(parts["begin"](z))[None])
        inside = torch.arange(target.shape[1]) < (lengths + 1)[:, None]
        return self._choice(parts["project"](states[inside]), target[inside])

    def _choice(self, queries: Any, targets: Any) -> Any:
        """Cross-entropy of the right word, eq. (sampled)."""
        torch, parts = self._torch, self.module.parts
        draws = torch.empty(_SAMPLED, dtype=torch.float64).uniform_()
        others = (torch.exp(draws * math.log(self._table.size + 1)).long() - 1).clamp(0, self._table.size - 1)
        right = (queries * parts["embedding"](targets)).sum(dim=1)
        right = right + parts["words_bias"](targets)[:, 0]
        scores = queries @ parts["embedding"](others).T + parts["words_bias"](others)[:, 0] - self._corrections[others]
        scores = scores.masked_fill(targets[:, None] == others, _NEVER)
        return (torch.logsumexp(torch.cat([right[:, None], scores], dim=1), dim=1) - right).mean()

    def encoder(self, provenance: Provenance) -> GruEncoder:
        return GruEncoder(self._table, self._arrays(_ENCODER_WEIGHTS), provenance)

    def decoder(self) -> GruDecoder:
        return GruDecoder(self._table, self._arrays(_DECODER_WEIGHTS))

    def _arrays(self, names: Mapping[str, str]) -> dict[str, npt.NDArray[np.float32]]:
        weights = self.module.parts.state_dict()
        arrays = {name: weights[place].numpy().copy() for name, place in names.items()}
        if "words_bias" in arrays:
            arrays["words_bias"] = arrays["words_bias"][:, 0]
        return {name: array if name == "embedding" else array.T for name, array in arrays.items()}


def _module(torch: Any, parts: dict[str, Any], encoded: Any) -> Any:
    class Network(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleDict(parts)

        def forward(self, batch: Any) -> Any:
            return encoded(batch)

    return Network()
