"""A text becomes a text of a public bank: which one, how likely, and how often it is traced back."""

from __future__ import annotations

import numpy as np

from dptext.calibration.outcomes import Floats
from dptext.playground.in_words import SAME, attacker, promised, told_apart
from dptext.playground.overlaps import Between, likeliest, overlap
from dptext.playground.samples import Samples
from dptext.playground.shown import Neighbours, Piece, Shown
from dptext.privacy.guarantee import best_guesses
from dptext.privacy.randomness import RandomBits
from dptext.representations.encoders import MeanOfWords
from dptext.sentences.bank import TextBank
from dptext.sentences.rewriter import BankRewriter
from dptext.vectors.word_vectors import WordVectors

_LIKELIEST = 5
_OUTCOMES = 6


class Sentences:
    """What a bank of public texts makes of a text."""

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:
        self._samples = samples
        self._bank = TextBank(samples.public, encoder=MeanOfWords(vectors), cache=False, name=samples.name)
        self._bank.profile  # noqa: B018  # looked at for every epsilon
        self._rows = {text: row for row, text in enumerate(self._bank.texts)}

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> Shown:  # noqa: ARG002
        """See `dptext.playground.ways.Playground.show`."""
        rewriter = BankRewriter(self._bank, epsilon=epsilon, unit="document")
        second = self._samples.another(text) if neighbour is None else neighbour
        known = self._samples.among(text)
        one, other, *others = rewriter.distributions([text, second, *known[1:]])
        table = np.array([one, *others])
        right = best_guesses([table], np.full(len(known), 1 / len(known)))
        drawn = rewriter.sample([text] * draws)
        guess = likeliest(table[:, [self._rows[drawn[0]]]].T, RandomBits())[0]
        return Shown(
            way="sentences",
            epsilon=epsilon,
            **promised(rewriter.document_statement(1)),
            pieces=(self._piece(text, one),),
            draws=tuple(drawn),
            attacker=attacker(
                f"that the text is one of {len(known)} (this one and texts of the sample, all equally likely)",
                Between.exactly(right.rate),
                right.blind,
                guess=known[guess],
            ),
            neighbours=self._neighbours(text, second, one, other),
        )

    def _piece(self, text: str, shares: Floats) -> Piece:
        own = self._rows.get(" ".join(text.split()))
        likeliest = [row for row in self._likeliest(text, shares, _LIKELIEST + 1) if row != own][:_LIKELIEST]
        becomes = tuple((self._bank.texts[row], float(shares[row])) for row in likeliest)
        return Piece(text, 0.0 if own is None else float(shares[own]), becomes)

    def _likeliest(self, text: str, shares: Floats, count: int) -> list[int]:
        """Rows of the likeliest texts of the bank; of equally likely ones those that are most similar."""
        alike = self._bank.similarities(self._bank.features.vectors([text]), np.arange(len(self._bank))[None])[0]
        return [int(row) for row in np.lexsort((-alike, -shares))[:count]]

    def _neighbours(
        self,
        first: str,
        second: str,
        one: Floats,
        other: Floats,
    ) -> Neighbours:
        half = _OUTCOMES // 2
        rows = [*self._likeliest(first, one, half), *self._likeliest(second, other, half)]
        rows = list(dict.fromkeys(rows))
        named = [(self._bank.texts[row], float(one[row]), float(other[row])) for row in rows]
        left_one, left_other = (max(0.0, 1.0 - float(each[rows].sum())) for each in (one, other))
        found = overlap(one, other)
        says = SAME if found.low == 1 else told_apart(found)
        return Neighbours(first, second, found.middle, (*named, ("any other text", left_one, left_other)), says)
