"""The paper's auto-encoder of texts: a recurrent encoder (GRU), and a decoder that reconstructs the text (torch).

The encoder is one layer of gated recurrent units (Cho et al. 2014); a text's vector is a linear map of the mean of its
states. At every step the decoder sees the vector and the previous word, which is masked in a quarter of the cases so
that the decoder uses the vector. Its output is one of the words of the table; in training the sum over all of them is
estimated by importance sampling (Bengio and Senecal 2008) from K words drawn by row:

    sum_w exp(s_w)  ~  exp(s_right) + sum_{k <= K} exp(s_k) / (K p_k),    s_w = q . e_w + b_w             (sampled)
    p_w = log((r + 2) / (r + 1)) / log(V + 1) for the word of row r

in which draws of the right word itself count nothing. The estimate of the sum is unbiased.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import words_of

from dptext.errors import ParameterError, extra
from dptext.hiding.inputs import Rows, shuffled, stream_of
from dptext.privacy.randomness import RandomBits
from dptext.representations.encoders import finite
from dptext.threads import one_blas_thread, torch_threads

Vectors = npt.NDArray[np.float32]

UNKNOWN_ROW, END = 0, 1
_RESERVED = ("<unk>", "<end>")
_WORDS, _LONGEST = 5000, 60  # of the vocabulary, and of a text that are read
_DIMENSION = _UNITS = 64
_BATCH, _RATE = 64, 2e-3  # of Adam
_MASKED = 0.25
_SAMPLED = 512
_SORTED_TOGETHER = 50  # batches whose texts are sorted by length, against padding
_NEVER = -1e30


class WordTable:
    """The most frequent words of texts, of those that occur in two texts or more."""

    def __init__(self, texts: Sequence[str], *, max_words: int = _WORDS, longest: int = _LONGEST) -> None:
        counts = Counter(word for text in texts for word in {*words_of(text)})
        common = [word for word, count in counts.items() if count >= 2 and word not in _RESERVED]
        if not common:
            raise ParameterError("no word occurs in two of the texts: pass more texts")
        self.words = sorted(common, key=lambda word: (-counts[word], word))[:max_words]
        self.longest, self.size = longest, len(self.words) + len(_RESERVED)
        self._row_of = {word: row for row, word in enumerate(self.words, len(_RESERVED))}

    def rows(self, text: str) -> Rows:
        words = words_of(text)[: self.longest]
        return np.array([self._row_of.get(word, UNKNOWN_ROW) for word in words], dtype=np.int64)


def padded(texts: Sequence[Rows]) -> tuple[Rows, Rows]:
    """Return (n, longest) rows of words, filled up with `END`, and (n,) lengths."""
    lengths = np.array([len(rows) for rows in texts], dtype=np.int64)
    filled = np.full((len(texts), max(int(lengths.max(initial=0)), 1)), END, dtype=np.int64)
    for text, rows in enumerate(texts):
        filled[text, : len(rows)] = rows
    return filled, lengths


def train_autoencoder(
    texts: Sequence[str], *, epochs: int, seed: int | None = None, dimension: int = _DIMENSION, units: int = _UNITS
) -> tuple[AutoEncoder, list[float]]:
    """Train on *public* texts; return the encoder, and the loss per word of each epoch."""
    torch = extra("torch", "train", "the auto-encoder")
    start = int.from_bytes(RandomBits(seed).take(8), "little") >> 1

    def seed_torch(purpose: bytes) -> None:
        torch.manual_seed(int.from_bytes(stream_of(start, purpose).take(8), "little") >> 1)

    losses: list[float] = []
    with torch.random.fork_rng(devices=[]), torch_threads(1), one_blas_thread():
        seed_torch(b"first weights")
        network = AutoEncoder(torch, WordTable(texts), dimension=dimension, units=units)
        rows = [network.table.rows(text) for text in texts]
        optimiser = torch.optim.Adam(network.parts.parameters(), lr=_RATE, fused=True)
        for epoch in range(1, epochs + 1):
            seed_torch(b"sampling %d" % epoch)
            order = shuffled(np.arange(len(texts)), stream_of(start, b"order %d" % epoch))
            total = 0.0
            for batch in batches(order, [len(row) for row in rows]):
                loss = network.loss([rows[text] for text in batch])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += float(loss.detach()) * len(batch)
            losses.append(total / len(order))
    return network, losses


def batches(order: Rows, lengths: Sequence[int]) -> Iterator[Rows]:
    """Yield the texts of each batch: of similar lengths, the batches in a random order."""
    for start in range(0, len(order), _BATCH * _SORTED_TOGETHER):
        some = order[start : start + _BATCH * _SORTED_TOGETHER]
        some = some[np.argsort(np.array(lengths)[some], kind="stable")]
        parts = [some[first : first + _BATCH] for first in range(0, len(some), _BATCH)]
        yield from sorted(parts, key=lambda part: int(part.min()))


class AutoEncoder:
    def __init__(self, torch: Any, table: WordTable, *, dimension: int, units: int) -> None:
        self._torch, self.table = torch, table
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
        self._corrections = torch.log(chances * _SAMPLED).float()

    def encode(self, texts: Sequence[str]) -> Vectors:
        torch = self._torch
        with torch.no_grad(), torch_threads(1):
            blocks = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
            rows = (padded([self.table.rows(text) for text in block]) for block in blocks)
            return finite(np.concatenate([self._vectors(*map(torch.from_numpy, entry)).numpy() for entry in rows]))

    def _vectors(self, words: Any, lengths: Any) -> Any:
        """Return (n, d) vectors of padded rows of words."""
        states, _ = self.parts["encoder"](self.parts["embedding"](words))
        inside = (self._torch.arange(words.shape[1]) < lengths[:, None])[:, :, None]
        return self.parts["out"]((states * inside).sum(dim=1) / lengths.clamp(min=1)[:, None])

    def loss(self, rows: Sequence[Rows]) -> Any:
        """Return the mean loss per word, the end included, of texts decoded from their vectors."""
        torch, parts = self._torch, self.parts
        words, lengths = map(torch.from_numpy, padded(rows))
        z = self._vectors(words, lengths)
        ends = torch.full((len(words), 1), END)
        target = torch.cat([words, ends], dim=1)[:, : self.table.longest]
        before = torch.cat([ends, words], dim=1)[:, : target.shape[1]]
        masked = torch.empty(before.shape).uniform_() < _MASKED
        before = torch.where(masked, UNKNOWN_ROW, before)
        inputs = torch.cat([parts["embedding"](before), z[:, None, :].expand(-1, before.shape[1], -1)], dim=2)
        states, _ = parts["decoder"](inputs, torch.tanh(parts["begin"](z))[None])
        inside = torch.arange(target.shape[1]) < (lengths + 1)[:, None]
        return self.choice(parts["project"](states[inside]), target[inside])

    def choice(self, queries: Any, targets: Any) -> Any:
        """Return the cross-entropy of the right word, eq. (sampled)."""
        torch, parts = self._torch, self.parts
        draws = torch.empty(_SAMPLED, dtype=torch.float64).uniform_()
        others = (torch.exp(draws * math.log(self.table.size + 1)).long() - 1).clamp(0, self.table.size - 1)
        right = (queries * parts["embedding"](targets)).sum(dim=1)
        right = right + parts["words_bias"](targets)[:, 0]
        scores = queries @ parts["embedding"](others).T + parts["words_bias"](others)[:, 0] - self._corrections[others]
        scores = scores.masked_fill(targets[:, None] == others, _NEVER)
        return (torch.logsumexp(torch.cat([right[:, None], scores], dim=1), dim=1) - right).mean()
