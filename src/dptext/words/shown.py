"""Word mechanisms that show the distribution they draw from, for whoever wants to check it."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from dptext.words.mechanism import Rows, WordMechanism

__all__ = ["ShownMechanism", "shares_of"]

_MEAN_OVER = 256  # rows whose distributions are averaged at a time


def shares_of(weights: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """(n, V) probabilities of integer weights; each row's sum fits into 64 bits."""
    shares: npt.NDArray[np.float64] = weights / weights.sum(axis=1, dtype=np.uint64, keepdims=True)
    return shares


class ShownMechanism(WordMechanism):
    """A word mechanism whose output distribution is known for every word."""

    @abstractmethod
    def _shares(self, rows: Rows) -> npt.NDArray[np.float64]:
        """(n, V) what `_draw` draws from for each of n rows."""

    def probabilities(self, word: str) -> npt.NDArray[np.float64]:
        """(V,) float64: the probabilities with which ``word`` becomes each word; see `distributions`."""
        only: npt.NDArray[np.float64] = self.distributions([word])[0]
        return only

    def distributions(self, words: list[str]) -> npt.NDArray[np.float64]:
        """(n, V) float64: what `sample` really draws from for each of n words, from its own integers.

        Under the policy ``"uniform"`` an unknown word has the mean of all rows, which takes V^2 probabilities.
        """
        rows = self._rows(words)
        shares = self._shares(rows)
        unknown = rows == self.vectors.vocabulary.unknown_row
        if self.unknown == "uniform" and unknown.any():
            everything = np.arange(len(self.vectors))
            parts = (self._shares(everything[at : at + _MEAN_OVER]) for at in range(0, everything.size, _MEAN_OVER))
            shares[unknown] = sum(part.sum(axis=0) for part in parts) / everything.size
        return shares

    def _rows(self, words: list[str]) -> Rows:
        row = self.vectors.vocabulary.row
        return np.array([row(word) for word in words], dtype=np.int64)
