"""An auto-encoder of texts: a recurrent encoder, and a decoder that writes the text again (extra ``train``: torch)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.files.formats import extra
from dptext.hiding.checkpoint import CheckpointFile, RunState
from dptext.hiding.gru_body import GruBody
from dptext.hiding.tradeoff import TradeOff
from dptext.hiding.training import HidingEpoch, first_weights, run_epochs
from dptext.privacy.randomness import RandomBits
from dptext.representations.encoders import checked_texts
from dptext.representations.gru import POOLINGS, GruDecoder, GruEncoder
from dptext.representations.known_words import WordTable
from dptext.representations.mlp import check_number, one_torch_thread
from dptext.representations.provenance import Provenance
from dptext.representations.randomizer import checked_dimension
from dptext.threads import one_blas_thread
from dptext.vectors.word_vectors import WordVectors

__all__ = ["AutoEncoder"]

_TOLD = ("dimension", "longest", "units", "pooling", "epochs", "batch_size", "learning_rate", "seed")


class AutoEncoder:
    """Train a recurrent encoder to keep what it takes to write a text again (a GRU, as in Beigi et al. 2019).

    Its ``text_encoder_`` is an encoder like any other; `dptext.HidingEncoder` trains it further, or layers on top of
    it. **The texts that ``fit`` gets are not protected**, see `dptext.HidingEncoder`.

    Args:
        dimension: d, of the vectors.
        words: how many of the most frequent words of the texts it knows (those that two texts have); or the words
            themselves, which are public then: a sequence, or `WordVectors`.
        longest: words of a text that count.
        units: of the state.
        pooling: ``"last"``: the state after the last word, ``"mean"``: the mean of all states.
        epochs, batch_size, learning_rate: of Adam.
        public: whether ``fit`` declares the texts public.
        public_name: what they are, for the statement.
        checkpoint: a file to keep the run in, and to go on from.
        progress: called with a `HidingEpoch` after every epoch.
        seed: of training.

    Attributes:
        text_encoder_: frozen `GruEncoder`.
        decoder_: frozen `GruDecoder`.
        epochs_: what ``progress`` saw.

    >>> auto = AutoEncoder(dimension=8, units=8, epochs=2, seed=1).fit(["the cat sat", "the dog sat"] * 8)
    >>> vectors = auto.text_encoder_.encode(["the cat", ""])
    >>> vectors.shape, len(auto.decoder_.decode(vectors))
    ((2, 8), 2)
    """

    text_encoder_: GruEncoder
    decoder_: GruDecoder
    epochs_: tuple[HidingEpoch, ...]

    def __init__(
        self,
        *,
        dimension: int = 64,
        words: int | Sequence[str] | WordVectors = 5000,
        longest: int = 60,
        units: int = 64,
        pooling: str = "mean",
        epochs: int = 10,
        batch_size: int = 64,
        learning_rate: float = 2e-3,
        public: bool = False,
        public_name: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Callable[[HidingEpoch], object] | None = None,
        seed: int | None = None,
    ) -> None:
        self.dimension = dimension
        self.words = words
        self.longest = longest
        self.units = units
        self.pooling = pooling
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.public = public
        self.public_name = public_name
        self.checkpoint = checkpoint
        self.progress = progress
        self.seed = seed

    def fit(self, texts: Iterable[str | None]) -> Self:
        """Train. Nothing is promised to those who are in the texts.

        Raises:
            ParameterError: an argument out of range; texts that share no word.
            DataError: no texts; an entry that is no string.
            RefusedError: the checkpoint belongs to another training; words of vectors that carry a statement.
            MissingExtraError: torch is not installed.
        """
        self._check()
        torch = extra("torch", "train", "AutoEncoder")
        given = checked_texts(texts)
        if not given:
            raise DataError("an auto-encoder is trained on texts, got none")
        table = self.table_of(given)
        start = int.from_bytes(RandomBits(self.seed).take(8), "little") >> 1
        file = None
        if self.checkpoint is not None:
            file = CheckpointFile(self.checkpoint, self._digest(table, given), start)
            start = file.start
        with torch.random.fork_rng(devices=[]), one_torch_thread(torch), one_blas_thread():
            first_weights(torch, start)
            body = GruBody(torch, table, table.rows(given), self.units, self.dimension, self.pooling)
            self.epochs_, _ = run_epochs(
                torch,
                body,
                _Rebuilding(torch, body, self.learning_rate),
                np.arange(len(given)),
                epochs=self.epochs,
                batch_size=self.batch_size,
                patience=1,
                start=start,
                progress=self.progress,
                checkpoint=file,
            )
            provenance = Provenance(trained_on=self.public_name, texts=len(given), public=self.public)
            self.text_encoder_, self.decoder_ = body.encoder(provenance), body.decoder()
        return self

    def decode(self, vectors: npt.ArrayLike) -> list[str]:
        """(n, d) vectors to texts; from released vectors, post-processing."""
        if not hasattr(self, "decoder_"):
            raise ParameterError("the auto-encoder is not trained yet: call fit(texts) first")
        return self.decoder_.decode(vectors)

    def table_of(self, texts: Sequence[str]) -> WordTable:
        """The words that it knows, if these are the texts."""
        words = self.words
        if isinstance(words, WordVectors):
            if words.statement is not None:
                raise RefusedError(
                    "the words of vectors with a statement are part of what was released under it, and this training "
                    "does not count it in: give public words"
                )
            words = words.words
        if isinstance(words, int | np.integer) and not isinstance(words, bool):
            if words < 1:
                raise ParameterError("words must be how many it knows, at least 1, or the words themselves")
            return WordTable.of_texts(texts, most=int(words), longest=self.longest)
        if isinstance(words, bool | str) or not isinstance(words, Sequence):
            raise ParameterError("words must be how many it knows, or the words themselves: a sequence of text")
        return WordTable.of_words(words, longest=self.longest)

    def body(self, torch: Any, texts: Sequence[str]) -> GruBody:
        """The trained network, to be trained further on texts."""
        table = self.text_encoder_.table
        body = GruBody(torch, table, table.rows(texts), self.units, self.dimension, self.pooling)
        body.begin_with(self.text_encoder_, self.decoder_)
        return body

    def described(self) -> dict[str, Any]:
        """Its arguments, and what it is if it is trained: what a run that goes on from it hangs on."""
        told = {name: getattr(self, name) for name in _TOLD}
        counted = isinstance(self.words, int | np.integer)
        told["words"] = int(self.words) if counted else self.table_of([]).sha256  # type: ignore[arg-type]
        if hasattr(self, "text_encoder_"):
            told["trained"] = self.text_encoder_.sha256
        return told

    def _check(self) -> None:
        checked_dimension(self.dimension, least=2)
        for name in ("longest", "units", "epochs", "batch_size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ParameterError(f"{name} must be an integer of at least 1, got {value!r}")
        check_number("learning_rate", self.learning_rate, least=5e-324, below=np.inf)
        if self.pooling not in POOLINGS:
            raise ParameterError(f"pooling must be one of {', '.join(map(repr, POOLINGS))}, got {self.pooling!r}")
        Provenance(trained_on=self.public_name, public=self.public)

    def _digest(self, table: WordTable, texts: Sequence[str]) -> str:
        told = {name: getattr(self, name) for name in _TOLD} | {"table": table.sha256}
        digest = hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode())
        for text in texts:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\xff")
        return digest.hexdigest()


class _Rebuilding:
    """The encoder and the decoder alone; see `dptext.hiding.training.Player`."""

    phase = "rebuild"

    def __init__(self, torch: Any, body: GruBody, learning_rate: float) -> None:
        self._body = body
        self._optimiser = torch.optim.Adam(body.module.parameters(), lr=learning_rate, fused=True)
        self.state = RunState(torch, {"body": body.module}, {"ours": self._optimiser})

    def begin(self, bits: RandomBits) -> None:
        """There is no noise."""

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:  # noqa: ARG002  no labels are looked at
        """One step towards writing a batch again."""
        loss = self._body.rebuilt(batch, self._body.module(batch))
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        return float(loss.detach()), 0.0

    def look(self) -> TradeOff | None:
        """Nothing is held out."""
        return None
