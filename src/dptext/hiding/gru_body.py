"""The recurrent encoder and decoder while they are trained (torch), and the loss of writing a text again.

The decoder sees the word before, of which a quarter is masked so that it has to look at the vector, and the vector
itself at every step. Its answer is a choice among the words of the table; in training the sum over all of them is
estimated by importance sampling (Bengio and Senecal 2008), from K words drawn by row:

    sum_w exp(s_w)  ~  exp(s_right) + sum_{k <= K} exp(s_k) / (K p_k),    s_w = q . e_w + b_w             (sampled)
    p_w = log((r + 2) / (r + 1)) / log(V + 1) for the word of row r

in which draws of the right word itself count nothing. The estimate of the sum is unbiased.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.representations.gru import GruDecoder, GruEncoder
from dptext.representations.known_words import END, UNKNOWN_ROW, WordTable, padded
from dptext.representations.ngrams import Buckets
from dptext.representations.provenance import Provenance

__all__ = ["GruBody"]

Rows = npt.NDArray[np.int64]

_MASKED = 0.25
_SAMPLED = 512
_SORTED_TOGETHER = 50  # batches: their texts are sorted by length, so that little is padding
_NEVER = -1e30


class GruBody:
    """Encoder and decoder; see `dptext.hiding.training.Source`.

    Args:
        torch: the module.
        table: the words.
        rows: those of all texts.
        units: of the state, and numbers of a word's vector.
        dimension: d.
        pooling: how states become a vector.

    Attributes:
        module: from a batch to (n, d) vectors; it holds the decoder's weights, too.
    """

    def __init__(self, torch: Any, table: WordTable, rows: Buckets, units: int, dimension: int, pooling: str) -> None:
        self._torch, self._table, self._rows, self._pooling = torch, table, rows, pooling
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

    def begin_with(self, encoder: GruEncoder, decoder: GruDecoder) -> None:
        """Take the weights of a trained encoder and decoder."""
        torch, parts = self._torch, self.module.parts
        given, written = encoder.arrays, decoder.arrays
        for part, name, arrays, first, bias in (
            (parts["encoder"], "input", given, "weight_ih_l0", "bias_ih_l0"),
            (parts["encoder"], "state", given, "weight_hh_l0", "bias_hh_l0"),
            (parts["decoder"], "input", written, "weight_ih_l0", "bias_ih_l0"),
            (parts["decoder"], "state", written, "weight_hh_l0", "bias_hh_l0"),
            (parts["out"], "out", given, "weight", "bias"),
            (parts["begin"], "begin", written, "weight", "bias"),
            (parts["project"], "project", written, "weight", "bias"),
        ):
            getattr(part, first).data.copy_(torch.from_numpy(arrays[name].T.copy()))
            getattr(part, bias).data.copy_(torch.from_numpy(arrays[f"{name}_bias"].copy()))
        parts["embedding"].weight.data.copy_(torch.from_numpy(given["embedding"].copy()))
        parts["words_bias"].weight.data.copy_(torch.from_numpy(written["words_bias"][:, None].copy()))

    def batches(self, order: Rows, size: int) -> Iterator[Rows]:
        """The rows of each batch: texts of about one length together, the batches themselves in a mixed order."""
        lengths = self._rows.lengths
        for start in range(0, len(order), size * _SORTED_TOGETHER):
            some = order[start : start + size * _SORTED_TOGETHER]
            some = some[np.argsort(lengths[some], kind="stable")]
            parts = [some[first : first + size] for first in range(0, len(some), size)]
            # row numbers know nothing of lengths: sorted by one of each batch, lengths are mixed again
            yield from sorted(parts, key=lambda part: int(part.min()))

    def take(self, rows: Rows) -> Any:
        """(n, longest) rows of words, and (n,) how many are the text's own."""
        filled, lengths = padded(self._rows.take(rows))
        return self._torch.from_numpy(filled), self._torch.from_numpy(lengths)

    def _encoded(self, batch: Any) -> Any:
        torch, parts = self._torch, self.module.parts
        words, lengths = batch
        states, _ = parts["encoder"](parts["embedding"](words))
        some = (lengths > 0)[:, None]
        if self._pooling == "last":
            last = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, states.shape[2])
            pooled = states.gather(1, last)[:, 0] * some
        else:
            inside = (torch.arange(words.shape[1]) < lengths[:, None])[:, :, None]
            pooled = (states * inside).sum(dim=1) / lengths.clamp(min=1)[:, None]
        return parts["out"](pooled)

    def rebuilt(self, batch: Any, z: Any) -> Any:
        """The mean loss of a word, the end counted as one, of texts written from z."""
        torch, parts = self._torch, self.module.parts
        words, lengths = batch
        count = len(words)
        wanted = torch.cat([words, torch.full((count, 1), END)], dim=1)[:, : self._table.longest]
        before = torch.cat([torch.full((count, 1), END), words], dim=1)[:, : wanted.shape[1]]
        masked = torch.empty(before.shape).uniform_() < _MASKED
        before = torch.where(masked, UNKNOWN_ROW, before)
        inputs = torch.cat([parts["embedding"](before), z[:, None, :].expand(-1, before.shape[1], -1)], dim=2)
        states, _ = parts["decoder"](inputs, torch.tanh(parts["begin"](z))[None])
        # the own words and one end, if it is within the length
        inside = torch.arange(wanted.shape[1]) < (lengths + 1)[:, None]
        return self._choice(parts["project"](states[inside]), wanted[inside])

    def _choice(self, queries: Any, wanted: Any) -> Any:
        """Cross-entropy of the right word, eq. (sampled)."""
        torch, parts = self._torch, self.module.parts
        drawn = torch.empty(_SAMPLED, dtype=torch.float64).uniform_()
        others = (torch.exp(drawn * math.log(self._table.size + 1)).long() - 1).clamp(0, self._table.size - 1)
        right = (queries * parts["embedding"](wanted)).sum(dim=1)
        right = right + parts["words_bias"](wanted)[:, 0]
        scores = queries @ parts["embedding"](others).T + parts["words_bias"](others)[:, 0] - self._corrections[others]
        scores = scores.masked_fill(wanted[:, None] == others, _NEVER)
        return (torch.logsumexp(torch.cat([right[:, None], scores], dim=1), dim=1) - right).mean()

    def encoder(self, provenance: Provenance) -> GruEncoder:
        """The encoder as it is now."""
        arrays = {"embedding": _array(self.module.parts["embedding"].weight)}
        arrays |= _gates(self.module.parts["encoder"]) | _linear("out", self.module.parts["out"])
        return GruEncoder(self._table, arrays, pooling=self._pooling, provenance=provenance)

    def decoder(self) -> GruDecoder:
        """The decoder as it is now."""
        parts = self.module.parts
        arrays = {
            "embedding": _array(parts["embedding"].weight),
            "words_bias": _array(parts["words_bias"].weight[:, 0]),
        }
        arrays |= _gates(parts["decoder"]) | _linear("begin", parts["begin"]) | _linear("project", parts["project"])
        return GruDecoder(self._table, arrays)


def _module(torch: Any, parts: dict[str, Any], encoded: Any) -> Any:
    """A module of parts that is called as a function: torch is not there when this file is read."""

    class Network(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleDict(parts)

        def forward(self, batch: Any) -> Any:
            return encoded(batch)

    return Network()


def _array(tensor: Any) -> npt.NDArray[np.float32]:
    copied: npt.NDArray[np.float32] = tensor.detach().numpy().copy()
    return copied


def _gates(network: Any) -> dict[str, npt.NDArray[np.float32]]:
    return {
        "input": _array(network.weight_ih_l0).T,
        "input_bias": _array(network.bias_ih_l0),
        "state": _array(network.weight_hh_l0).T,
        "state_bias": _array(network.bias_hh_l0),
    }


def _linear(name: str, network: Any) -> dict[str, npt.NDArray[np.float32]]:
    return {name: _array(network.weight).T, f"{name}_bias": _array(network.bias)}
