"""The paper's auto-encoder of texts: a recurrent encoder (GRU), and a decoder that reconstructs the text (torch).

The encoder is one layer of gated recurrent units (Cho et al. 2014, in the form that torch has). For a word's vector e
and the state s,

    r = sigmoid(W_r e + b_r + U_r s + c_r),   u = sigmoid(W_u e + b_u + U_u s + c_u)                     (gates)
    n = tanh(W_n e + b_n + r (U_n s + c_n))                                                          (candidate)
    s' = (1 - u) n + u s                                                                                 (state)

and a text's vector is a linear map of the mean of its states. At every step the decoder sees the vector and the
previous word, which is masked in a quarter of the cases so that the decoder uses the vector. Its output is one of the
words of the table; in training the sum over all of them is estimated by importance sampling (Bengio and Senecal 2008)
from K words drawn by row:

    sum_w exp(s_w)  ~  exp(s_right) + sum_{k <= K} exp(s_k) / (K p_k),    s_w = q . e_w + b_w             (sampled)
    p_w = log((r + 2) / (r + 1)) / log(V + 1) for the word of row r

in which draws of the right word itself count nothing. The estimate of the sum is unbiased.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, extra
from dptext.hiding.inputs import Rows, shuffled, stream_of
from dptext.hiding.training import one_torch_thread
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Floats
from dptext.representations.encoders import finite
from dptext.text.tokens import Kind, fold, kind_of, pieces
from dptext.threads import one_blas_thread

Vectors = npt.NDArray[np.float32]

UNKNOWN_ROW, END = 0, 1
_RESERVED = ("<unk>", "<end>")
_WORDS, _LONGEST = 5000, 60  # of the vocabulary, and of a text that are read
_DIMENSION = _UNITS = 64
_BATCH, _RATE = 64, 2e-3  # of Adam
_TEXTS_AT_ONCE = 64
_MASKED = 0.25
_SAMPLED = 512
_SORTED_TOGETHER = 50  # batches whose texts are sorted by length, against padding
_NEVER = -1e30
_WEIGHTS = {
    "embedding": "embedding.weight",
    "input": "encoder.weight_ih_l0",
    "input_bias": "encoder.bias_ih_l0",
    "state": "encoder.weight_hh_l0",
    "state_bias": "encoder.bias_hh_l0",
    "out": "out.weight",
    "out_bias": "out.bias",
}
"""The arrays of the encoder, by torch's names."""


def words_of(text: str) -> list[str]:
    """Return the folded words of a text, in order."""
    return [fold(token) for token in pieces(text) if kind_of(token) not in (Kind.SPACE, Kind.PUNCTUATION)]


class WordTable:
    """The most frequent words of texts, of those that occur in two texts or more."""

    def __init__(self, texts: Iterable[str], *, max_words: int = _WORDS, longest: int = _LONGEST) -> None:
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update({*words_of(text)})
        common = [word for word, count in counts.items() if count >= 2 and _is_plain(word)]
        if not common:
            raise ParameterError("no word occurs in two of the texts: pass more texts")
        self.words = sorted(common, key=lambda word: (-counts[word], word))[:max_words]
        self.longest, self.size = longest, len(self.words) + len(_RESERVED)
        self._row_of = {word: row for row, word in enumerate(self.words, len(_RESERVED))}

    def rows(self, text: str) -> Rows:
        """Return the rows of the words of a text."""
        words = words_of(text)[: self.longest]
        return np.array([self._row_of.get(word, UNKNOWN_ROW) for word in words], dtype=np.int64)


def _is_plain(word: str) -> bool:
    has_half_a_pair = any("\ud800" <= letter <= "\udfff" for letter in word)
    return word.split() == [word] and word not in _RESERVED and not has_half_a_pair


def padded(texts: Sequence[Rows]) -> tuple[Rows, Rows]:
    """(n, longest) rows of words, filled up with `END`, and (n,) lengths."""
    lengths = np.array([len(rows) for rows in texts], dtype=np.int64)
    filled = np.full((len(texts), max(int(lengths.max(initial=0)), 1)), END, dtype=np.int64)
    for text, rows in enumerate(texts):
        filled[text, : len(rows)] = rows
    return filled, lengths


@dataclass(frozen=True, eq=False)
class GruEncoder:
    """A trained encoder, in numpy; the gates are in the order r, u, n (of the candidate)."""

    table: WordTable
    arrays: Mapping[str, Floats]

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (n, D) float32, one vector per text."""
        blocks = [texts[start : start + _TEXTS_AT_ONCE] for start in range(0, len(texts), _TEXTS_AT_ONCE)]
        return np.concatenate([self._vectors(block) for block in blocks])

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        # always as many rows: the shape of a product, and so its rounding, depends on no other text
        rows, lengths = padded([self.table.rows(text) for text in [*texts, *[""] * (_TEXTS_AT_ONCE - len(texts))]])
        arrays = self.arrays
        inputs = arrays["embedding"] @ arrays["input"] + arrays["input_bias"]
        with np.errstate(all="ignore"):
            state = np.zeros((_TEXTS_AT_ONCE, arrays["state"].shape[0]))
            total = np.zeros_like(state)
            for place in range(rows.shape[1] if lengths.any() else 0):
                present = (place < lengths)[:, None]
                moved = _next_state(inputs[rows[:, place]], state, arrays["state"], arrays["state_bias"])
                state = np.where(present, moved, state)
                total += np.where(present, moved, 0.0)
            pooled = total / np.maximum(lengths, 1)[:, None]
            return finite((pooled @ arrays["out"] + arrays["out_bias"])[: len(texts)])


def _next_state(inputs: Floats, state: Floats, weights: Floats, bias: Floats) -> Floats:
    width = state.shape[1]
    of_state = state @ weights + bias
    gates = 0.5 * (1.0 + np.tanh(0.5 * (inputs[:, : 2 * width] + of_state[:, : 2 * width])))  # eq. (gates)
    candidate = np.tanh(inputs[:, 2 * width :] + gates[:, :width] * of_state[:, 2 * width :])  # eq. (candidate)
    kept = gates[:, width:]
    moved: Floats = (1 - kept) * candidate + kept * state  # eq. (state)
    return moved


def train_autoencoder(
    texts: Sequence[str], *, epochs: int, seed: int | None = None, dimension: int = _DIMENSION, units: int = _UNITS
) -> tuple[GruEncoder, list[float]]:
    """Train on *public* texts; return the encoder, and the loss per word of each epoch."""
    torch = extra("torch", "train", "the auto-encoder")
    table = WordTable(texts)
    start = int.from_bytes(RandomBits(seed).take(8), "little") >> 1

    def seed_torch(purpose: bytes) -> None:
        torch.manual_seed(int.from_bytes(stream_of(start, purpose).take(8), "little") >> 1)

    losses: list[float] = []
    with torch.random.fork_rng(devices=[]), one_torch_thread(torch), one_blas_thread():
        seed_torch(b"first weights")
        network = Network(torch, table, texts, dimension=dimension, units=units)
        optimiser = torch.optim.Adam(network.parts.parameters(), lr=_RATE, fused=True)
        for epoch in range(1, epochs + 1):
            seed_torch(b"sampling %d" % epoch)
            order = shuffled(np.arange(len(texts)), stream_of(start, b"order %d" % epoch))
            total = 0.0
            for rows in network.batches(order, _BATCH):
                loss = network.loss(rows)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += float(loss.detach()) * len(rows)
            losses.append(total / len(order))
        return network.encoder(), losses


class Network:
    """Encoder and decoder in training."""

    def __init__(self, torch: Any, table: WordTable, texts: Sequence[str], *, dimension: int, units: int) -> None:
        self._torch, self._table, self._rows = torch, table, [table.rows(text) for text in texts]
        network = torch.nn
        embedding = network.Embedding(table.size, units)
        embedding.weight.data.mul_(units**-0.5)
        self.parts = network.ModuleDict({
            "embedding": embedding,
            "encoder": network.GRU(units, units, batch_first=True),
            "out": network.Linear(units, dimension),
            "decoder": network.GRU(units + dimension, units, batch_first=True),
            "begin": network.Linear(dimension, units),
            "project": network.Linear(units, units),
            "words_bias": network.Embedding(table.size, 1),
        })  # fmt: skip
        self.parts["words_bias"].weight.data.zero_()
        ranks = torch.arange(table.size, dtype=torch.float64)
        chances = torch.log((ranks + 2) / (ranks + 1)) / math.log(table.size + 1)
        self.corrections = torch.log(chances * _SAMPLED).float()

    def batches(self, order: Rows, size: int) -> Iterator[Rows]:
        """Yield the rows of each batch: texts of similar lengths, the batches in a random order."""
        lengths = np.array([len(rows) for rows in self._rows])
        for start in range(0, len(order), size * _SORTED_TOGETHER):
            some = order[start : start + size * _SORTED_TOGETHER]
            some = some[np.argsort(lengths[some], kind="stable")]
            parts = [some[first : first + size] for first in range(0, len(some), size)]
            yield from sorted(parts, key=lambda part: int(part.min()))

    def encode(self, words: Any, lengths: Any) -> Any:
        """(n, d) vectors of padded rows of words."""
        torch, parts = self._torch, self.parts
        states, _ = parts["encoder"](parts["embedding"](words))
        inside = (torch.arange(words.shape[1]) < lengths[:, None])[:, :, None]
        return parts["out"]((states * inside).sum(dim=1) / lengths.clamp(min=1)[:, None])

    def loss(self, rows: Rows) -> Any:
        """The mean loss per word, the end included, of the texts of some rows decoded from their vectors."""
        torch, parts = self._torch, self.parts
        words, lengths = map(torch.from_numpy, padded([self._rows[row] for row in rows]))
        z = self.encode(words, lengths)
        ends = torch.full((len(words), 1), END)
        target = torch.cat([words, ends], dim=1)[:, : self._table.longest]
        before = torch.cat([ends, words], dim=1)[:, : target.shape[1]]
        masked = torch.empty(before.shape).uniform_() < _MASKED
        before = torch.where(masked, UNKNOWN_ROW, before)
        inputs = torch.cat([parts["embedding"](before), z[:, None, :].expand(-1, before.shape[1], -1)], dim=2)
        states, _ = parts["decoder"](inputs, torch.tanh(parts["begin"](z))[None])
        inside = torch.arange(target.shape[1]) < (lengths + 1)[:, None]
        return self.choice(parts["project"](states[inside]), target[inside])

    def choice(self, queries: Any, targets: Any) -> Any:
        """Cross-entropy of the right word, eq. (sampled)."""
        torch, parts = self._torch, self.parts
        draws = torch.empty(_SAMPLED, dtype=torch.float64).uniform_()
        others = (torch.exp(draws * math.log(self._table.size + 1)).long() - 1).clamp(0, self._table.size - 1)
        right = (queries * parts["embedding"](targets)).sum(dim=1)
        right = right + parts["words_bias"](targets)[:, 0]
        scores = queries @ parts["embedding"](others).T + parts["words_bias"](others)[:, 0] - self.corrections[others]
        scores = scores.masked_fill(targets[:, None] == others, _NEVER)
        return (torch.logsumexp(torch.cat([right[:, None], scores], dim=1), dim=1) - right).mean()

    def encoder(self) -> GruEncoder:
        """The encoder as it is now."""
        weights = self.parts.state_dict()
        arrays = {name: weights[place].numpy().astype(np.float64) for name, place in _WEIGHTS.items()}
        transposed = {name: array if name == "embedding" else array.T for name, array in arrays.items()}
        return GruEncoder(self._table, transposed)
