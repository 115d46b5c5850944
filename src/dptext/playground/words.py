"""Words become words: what each could become, and what somebody who knows the mechanism reads in what came out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptext.calibration.outcomes import Floats, distances_from
from dptext.playground.in_words import SAME, attacker, promised, told_apart
from dptext.playground.overlaps import Between, overlap_of_places
from dptext.playground.shown import Attacker, Neighbours, Piece, Shown
from dptext.privacy.randomness import RandomBits
from dptext.privacy.vulnerability import best_guesses
from dptext.text.tokens import Kind, Token, split
from dptext.vectors.search import ExactDistances
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import ShownMechanism
from dptext.words.registry import word_mechanism
from dptext.words.replacing import PLACEHOLDERS

__all__ = ["Words"]

_LIKELIEST = 5
_OUTCOMES = 6
_CANDIDATES = 50
"""Among so many words the attacker has to choose, at least."""


@dataclass(frozen=True)
class _Text:
    """A text, and its words in the vocabulary."""

    text: str
    tokens: list[Token]
    rows: list[int]  # of each token; -1: no word

    @classmethod
    def of(cls, text: str, vectors: WordVectors) -> _Text:
        tokens = split(text)
        row = vectors.vocabulary.row
        return cls(text, tokens, [row(each.text) if each.kind is Kind.WORD else -1 for each in tokens])

    @property
    def layout(self) -> list[str]:
        """What the output shows whatever comes out."""
        return [each.kind if each.kind is Kind.WORD or each.kind in PLACEHOLDERS else each.text for each in self.tokens]


class Words:
    """What word mechanisms make of a text.

    Args:
        vectors: public word vectors.
    """

    def __init__(self, vectors: WordVectors) -> None:
        self._vectors = vectors
        self._table = ExactDistances(vectors.matrix)
        self._text: _Text | None = None

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> Shown:
        """See `dptext.playground.ways.Playground.show`."""
        if self._text is None or self._text.text != text:
            self._text = _Text.of(text, self._vectors)
        first = self._text
        second = _Text.of(self._near(first) if neighbour is None else neighbour, self._vectors)
        mechanism = word_mechanism(choice, vectors=self._vectors, epsilon=epsilon)
        assert isinstance(mechanism, ShownMechanism)
        words = [row for row in first.rows if row >= 0]
        statement = mechanism.document_statement(len(words))
        drawn, _ = mechanism.replacing()([text] * draws, RandomBits())
        shares = self._shares(mechanism, sorted({*words, *(row for row in second.rows if row >= 0)}))
        return Shown(
            way="words",
            epsilon=epsilon,
            **promised(statement),
            pieces=tuple(self._piece(token, row, shares) for token, row in zip(first.tokens, first.rows, strict=True)),
            draws=tuple(drawn),
            attacker=self._attacker(mechanism, sorted(set(words)), shares),
            neighbours=self._neighbours(first, second, shares),
        )

    def _shares(self, mechanism: ShownMechanism, rows: list[int]) -> dict[int, Floats]:
        """What each of some rows becomes, exactly."""
        found = mechanism.distributions([self._vectors.words[row] for row in rows])
        return dict(zip(rows, found, strict=True))

    def _near(self, text: _Text) -> str:
        """The text with its rarest known word exchanged by the nearest other one."""
        unknown = self._vectors.vocabulary.unknown_row
        row, place = max(((row, at) for at, row in enumerate(text.rows) if row != unknown), default=(-1, 0))
        if row < 0:
            row, place = max(((row, at) for at, row in enumerate(text.rows)), default=(-1, 0))
        if row < 0:
            return text.text
        apart = distances_from(self._table, np.array([row]))[0]
        apart[[row, unknown]] = np.inf
        other = self._vectors.words[int(apart.argmin())]
        return "".join(other if at == place else each.text for at, each in enumerate(text.tokens))

    def _piece(self, token: Token, row: int, shares: dict[int, Floats]) -> Piece:
        if row < 0:
            placeholder = PLACEHOLDERS.get(token.kind)
            return Piece(token.text, None, () if placeholder is None else ((placeholder, 1.0),))
        others = shares[row].copy()
        stays, others[row] = float(others[row]), 0.0
        likeliest = _largest(others, _LIKELIEST)
        if row == self._vectors.vocabulary.unknown_row:  # what comes out is not the word that stood here
            return Piece(
                token.text, 0.0, ((self._vectors.words[row], stays), *self._named(others, likeliest))[:_LIKELIEST]
            )
        return Piece(token.text, stays, self._named(others, likeliest))

    def _named(self, shares: Floats, rows: list[int]) -> tuple[tuple[str, float], ...]:
        return tuple((self._vectors.words[row], float(shares[row])) for row in rows if shares[row] > 0)

    def _attacker(self, mechanism: ShownMechanism, words: list[int], shares: dict[int, Floats]) -> Attacker:
        fill = [row for row in range(len(self._vectors)) if row not in shares][: max(0, _CANDIDATES - len(words))]
        known = shares | self._shares(mechanism, fill)
        candidates = [*words, *fill]
        prior = np.full(len(candidates), 1 / len(candidates))
        found = best_guesses([np.array([known[row] for row in candidates])], prior)
        return attacker(
            f"that a word is one of {len(candidates)} (those of this text and the most frequent ones, all equally "
            "likely)",
            Between.exactly(found.rate),
            found.blind,
        )

    def _neighbours(self, first: _Text, second: _Text, shares: dict[int, Floats]) -> Neighbours:
        if first.layout != second.layout:
            says = "Their layout differs, and the output shows the layout: every output tells which of the two it was."
            return Neighbours(first.text, second.text, 0.0, (), says)
        changed = [(one, other) for one, other in zip(first.rows, second.rows, strict=True) if one != other]
        if not changed:
            return Neighbours(first.text, second.text, 1.0, (), SAME)
        found = overlap_of_places([(shares[one], shares[other]) for one, other in changed])
        one, other = (shares[row] for row in changed[0])
        top = _largest(np.maximum(one, other), _OUTCOMES)
        named = [(self._vectors.words[row], float(one[row]), float(other[row])) for row in top]
        left_one, left_other = (max(0.0, 1.0 - float(each[top].sum())) for each in (one, other))
        named.append(("any other word", left_one, left_other))
        return Neighbours(first.text, second.text, found.middle, tuple(named), told_apart(found))


def _largest(values: Floats, count: int) -> list[int]:
    """The rows of the largest values, the largest first."""
    count = min(count, values.size)
    some = np.argpartition(-values, count - 1)[:count]
    return [int(row) for row in some[np.argsort(-values[some], kind="stable")]]
