"""Words become words: what each could become, and what somebody who knows the mechanism reads in what came out.

Derivation: docs/mechanisms/private-vectors.md#playground-rays
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.calibration.outcomes import Floats, distances_from
from dptext.methods.preview import (
    NOTE,
    SAME,
    Attacker,
    Between,
    Neighbours,
    Piece,
    Promised,
    Shown,
    attacker,
    likeliest,
    log_l2_laplace,
    outcomes,
    overlap_of_draws,
    overlap_of_places,
    promised,
    right_in_draws,
    told_apart,
)
from dptext.noise.discrete import l2_laplace
from dptext.privacy.guarantee import best_guesses
from dptext.privacy.randomness import RandomBits
from dptext.text.tokens import Kind, Token, split
from dptext.vectors.metrics import directions
from dptext.vectors.search import ExactDistances
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import Rows, ShownMechanism, WordMechanism
from dptext.words.registry import word_mechanism
from dptext.words.replacing import PLACEHOLDERS, Aligner

_NO_WORD: Promised = {
    "promise": "this text has no word, and words alone are hidden: nothing is promised for it.",
    "strength": "It comes out as it stands, but for placeholders. That does not protect.",
    "protects": False,
}
_NO_OTHER = "No word of this text is known, or there is none: no neighbour is offered. Type another second text."
_LIKELIEST = 5
_ANY_WORD = "\0word\0"
_TRIED = 20  # words that are exchanged, to find a neighbour
_NEAR = 16  # words of either kind of nearness, among which the likeliest outputs are
_OUTCOMES = 6
_CANDIDATES = 50
"""Among so many words the attacker has to choose, at least."""
_DRAWS_EACH = 40  # of each of these, where the chances are not known
_DRAWS_OF_TWO = 2000
_DRAWS_OF_WORD = 12
_DRAWS_OF_ONE = 200
_DIRECTIONS = 128  # over which the chance that a word stays is averaged


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
        return cls(text, tokens, [row(token.text) if token.kind is Kind.WORD else -1 for token in tokens])

    @property
    def words(self) -> list[int]:
        return [row for row in self.rows if row >= 0]

    @property
    def layout(self) -> str:
        """What the output shows whatever comes out: all but the words, with a space where two replaced tokens touch."""
        result, touching = [], False
        for token in self.tokens:
            replaced = token.kind is Kind.WORD or token.kind in PLACEHOLDERS
            result.append(" " if replaced and touching else "")
            result.append(_ANY_WORD if token.kind is Kind.WORD else PLACEHOLDERS.get(token.kind, token.text))
            touching = replaced
        return "".join(result)


_Likely: TypeAlias = list[tuple[int, float]]
"""Words by their rows, with chances."""


class WordPreviewer:
    """What word mechanisms make of a text."""

    def __init__(self, vectors: WordVectors, check: Callable[[], None] = lambda: None) -> None:
        self._vectors, self._check = vectors, check
        self._tables = ExactDistances(vectors.matrix), ExactDistances(directions(vectors.matrix))
        self._text: _Text | None = None
        self._nearest: dict[int, list[int]] = {}

    @cached_property
    def _rays(self) -> Rays:
        return Rays(self._vectors.matrix, RandomBits())

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> Shown:
        if self._text is None or self._text.text != text:
            self._text = _Text.of(text, self._vectors)
            self._nearest.clear()
            self._rays.forget()
        first = self._text
        second = _Text.of(self._near_text(first) if neighbour is None else neighbour, self._vectors)
        mechanism = word_mechanism(choice, vectors=self._vectors, epsilon=epsilon)
        words = first.words
        sample, _ = mechanism.replacing()([text] * draws, RandomBits())
        _, outputs = Aligner(mechanism).pairs(text, sample[0]) or ([], [])
        candidates = self._candidates(words)
        chances: _Chances
        if isinstance(mechanism, ShownMechanism):
            chances = _Known(mechanism)
            chances.read([*candidates, *second.words])  # together, which is sooner
        else:
            chances = _OfNoise(mechanism, self._rays, sorted(set(words)))
        pieces = {row: self._piece(row, chances) for row in dict.fromkeys(words)}
        return Shown(
            way="words",
            epsilon=epsilon,
            **(promised(mechanism.document_statement(len(words))) if words else _NO_WORD),
            pieces=tuple(
                _kept(token) if row < 0 else Piece(token.text, *pieces[row])
                for token, row in zip(first.tokens, first.rows, strict=True)
            ),
            draws=tuple(sample),
            attacker=chances.attacker(
                candidates,
                f"that a word is one of {len(candidates)} (those of this text and the most frequent ones, all equally "
                "likely)",
                self._guess(first, chances.guessed(outputs, candidates)),
            ),
            neighbours=self._neighbours(first, second, chances, none=neighbour is None and second.text == text),
            note=NOTE + chances.how,
        )

    def _near_text(self, text: _Text) -> str:
        """The text with its rarest known word exchanged by the nearest other one."""
        unknown = self._vectors.vocabulary.unknown_row
        places = sorted((-row, position) for position, row in enumerate(text.rows) if row not in (-1, unknown))
        for _, place in places[:_TRIED]:
            for other in self._near(text.rows[place]):
                parts = [token.text for token in text.tokens]
                parts[place] = self._vectors.words[other]
                result = _Text.of("".join(parts), self._vectors)
                # where no space parts words, another word may run together with the next one
                if other not in (text.rows[place], unknown) and result.layout == text.layout:
                    return result.text
        return text.text

    def _near(self, row: int) -> list[int]:
        """The words nearest to a word, by distance and by angle, the nearest first: what mechanisms make likely."""
        if row not in self._nearest:
            by_distance, by_angle = (distances_from(table, np.array([row]))[0] for table in self._tables)
            count = min(_NEAR, len(self._vectors))
            near = np.concatenate([np.argpartition(entry, count - 1)[:count] for entry in (by_distance, by_angle)])
            near = np.unique(near)
            self._nearest[row] = [int(entry) for entry in near[np.argsort(by_distance[near], kind="stable")]]
        return self._nearest[row]

    def _piece(self, row: int, chances: _Chances) -> tuple[float, tuple[tuple[str, float], ...]]:
        """How likely a word stays, and what else it becomes."""
        self._check()
        stays, result = chances.of(row, [entry for entry in self._near(row) if entry != row])
        if row == self._vectors.vocabulary.unknown_row:  # what stays is not the word that stood here
            stays, result = 0.0, [(row, stays), *result]
        return stays, tuple((self._vectors.words[entry], chance) for entry, chance in result[:_LIKELIEST] if chance > 0)

    def _guess(self, text: _Text, words: list[int]) -> str:
        names = iter([self._vectors.words[row] for row in words])
        return "".join(
            next(names, "") if row >= 0 else PLACEHOLDERS.get(entry.kind, entry.text)
            for entry, row in zip(text.tokens, text.rows, strict=True)
        )

    def _candidates(self, words: list[int]) -> list[int]:
        """The words of a text, and the most frequent ones."""
        mine = set(words)
        others = (row for row in range(len(self._vectors)) if row not in mine)
        return [*sorted(mine), *islice(others, max(0, _CANDIDATES - len(mine)))]

    def _neighbours(self, first: _Text, second: _Text, chances: _Chances, *, none: bool) -> Neighbours:
        if first.layout != second.layout:
            says = (
                "Their layout differs (how many words there are, and what stands between them). The output shows the "
                "layout, so that nothing is promised between them: nearly every output tells which of the two it was."
            )
            return Neighbours(first.text, second.text, 0.0, (), says)
        changed = [(one, other) for one, other in zip(first.words, second.words, strict=True) if one != other]
        if not changed:
            return Neighbours(first.text, second.text, 1.0, (), _NO_OTHER if none else SAME)
        result, more = chances.overlap(changed)
        one, other = changed[0]
        near = dict.fromkeys((one, other, *self._near(one)[:_NEAR], *self._near(other)[:_NEAR]))
        rows, of_one, of_other = chances.compare_two(one, other, list(near))
        named = outcomes([self._vectors.words[row] for row in rows], of_one, of_other, rest="any other word")
        return Neighbours(first.text, second.text, result.middle, named, told_apart(result) + more)


def _kept(token: Token) -> Piece:
    """What is no word stays, or becomes a placeholder."""
    placeholder = PLACEHOLDERS.get(token.kind)
    return Piece(token.text, None, () if placeholder is None else ((placeholder, 1.0),))


@dataclass
class _Known:
    """What is known of the outputs of a mechanism that shows its distributions: all of it exact."""

    mechanism: ShownMechanism
    shares: dict[int, Floats] = field(default_factory=dict)
    how: ClassVar[str] = ""
    """How the chances of words are known, where they are not exact."""

    def read(self, rows: Sequence[int]) -> list[Floats]:
        """(V,) for each of some words."""
        new = [row for row in dict.fromkeys(rows) if row not in self.shares]
        if new:
            words = self.mechanism.vectors.words
            self.shares.update(zip(new, self.mechanism.distributions([words[row] for row in new]), strict=True))
        return [self.shares[row] for row in rows]

    def of(self, row: int, near: list[int]) -> tuple[float, _Likely]:
        """How likely a word stays, and what else it becomes, the likeliest first. ``near`` are words like it."""
        shares = self.read([row])[0]
        result: _Likely = sorted(zip(near, shares[near].tolist(), strict=True), key=lambda each: -each[1])
        return float(shares[row]), result

    def compare_two(self, one: int, other: int, near: list[int]) -> tuple[list[int], list[float], list[float]]:
        """Outputs of two words, with the chances of either. ``near`` are words like them."""
        first, second = self.read([one, other])
        rows = sorted(near, key=lambda row: -max(first[row], second[row]))[:_OUTCOMES]
        return rows, first[rows].tolist(), second[rows].tolist()

    def guessed(self, outputs: list[int], candidates: list[int]) -> list[int]:
        if not outputs:
            return []
        table = np.array([shares[outputs] for shares in self.read(candidates)]).T
        return [candidates[place] for place in likeliest(table, RandomBits()).tolist()]

    def attacker(self, candidates: list[int], knows: str, guess: str) -> Attacker:
        result = best_guesses([np.array(self.read(candidates))], np.full(len(candidates), 1 / len(candidates)))
        return attacker(knows, Between.exactly(result.rate), result.blind, guess=guess)

    def overlap(self, changed: list[tuple[int, int]]) -> tuple[Between, str]:
        return overlap_of_places([(self.read([one])[0], self.read([other])[0]) for one, other in changed]), ""


@dataclass
class _OfNoise:
    """What is known of the outputs of a mechanism that adds noise to vectors: from draws."""

    mechanism: WordMechanism
    rays: Rays
    rows: list[int]
    how: ClassVar[str] = (
        f" How likely a word stays is averaged over {_DIRECTIONS} directions of the noise; what else it becomes was "
        f"counted in {_DRAWS_OF_WORD} draws."
    )

    def of(self, row: int, near: list[int]) -> tuple[float, _Likely]:  # noqa: ARG002  draws find them
        stays = self.rays.stays(row, self.mechanism.epsilon)
        draws = self._drawn[row]
        others = _counted(draws[draws != row])
        return stays, [(other, (1.0 - stays) * share) for other, share in others]  # with the chance to stay at most 1

    def compare_two(self, one: int, other: int, near: list[int]) -> tuple[list[int], list[float], list[float]]:  # noqa: ARG002
        results = [dict(_counted(draws)) for draws in self._draw([one, other], _DRAWS_OF_ONE)]
        rows = list(dict.fromkeys((*list(results[0])[: _OUTCOMES // 2], *list(results[1])[: _OUTCOMES // 2])))
        of_one, of_other = ([entry.get(row, 0.0) for row in rows] for entry in results)
        return rows, of_one, of_other

    @cached_property
    def _drawn(self) -> dict[int, Rows]:
        return dict(zip(self.rows, self._draw(self.rows, _DRAWS_OF_WORD), strict=True))

    def _draw(self, rows: list[int], draws: int) -> Rows:
        """(n, draws) what came out for some words."""
        inputs = np.repeat(np.array(rows, dtype=np.int64), draws)
        return self.mechanism.sample_rows(inputs, RandomBits()).reshape(len(rows), draws)

    def guessed(self, outputs: list[int], candidates: list[int]) -> list[int]:
        """The candidates nearest to the words that came out."""
        matrix = self.mechanism.vectors.matrix.astype(np.float64)
        result = log_l2_laplace(matrix[outputs], matrix[candidates], 1.0).argmax(axis=1)
        return [candidates[place] for place in result.tolist()]

    def attacker(self, candidates: list[int], knows: str, guess: str) -> Attacker:
        """The best one who sees the noisy vector."""
        rows = np.array(candidates)
        logs = self._logs(np.repeat(rows, _DRAWS_EACH), rows)
        does = "names the right one from the noisy vector, of which the word that comes out shows a part,"
        return attacker(knows, right_in_draws(logs), 1 / rows.size, does=does, guess=guess)

    def overlap(self, changed: list[tuple[int, int]]) -> tuple[Between, str]:
        draws = max(_DRAWS_OF_TWO // len(changed), 200)
        logs = np.zeros((2 * draws, 2))
        for pair in changed:
            rows = np.array(pair)
            logs += self._logs(np.repeat(rows, draws), rows)
        more = " That is for the noisy vectors; the words that come out overlap at least as far."
        return overlap_of_draws(logs), more

    def _logs(self, inputs: Rows, candidates: Rows) -> Floats:
        """(n, m) how likely a noisy vector of each input is for each candidate."""
        vectors, scale = self.mechanism.vectors.matrix, 1.0 / self.mechanism.epsilon
        noise = l2_laplace(RandomBits(), inputs.size, vectors.shape[1], scale)
        return log_l2_laplace(vectors[inputs] + noise, vectors[candidates].astype(np.float64), scale)


def _counted(drawn: Rows) -> _Likely:
    """What came out, the most frequent first, with its share of the draws."""
    return [(row, count / drawn.size) for row, count in Counter(drawn.tolist()).most_common()]


_Chances: TypeAlias = _Known | _OfNoise


class Rays:
    """How likely a word stays under noise on its vector: exact along a line, averaged over lines."""

    def __init__(self, matrix: npt.NDArray[np.float32], bits: RandomBits) -> None:
        normal = bits.normal(_DIRECTIONS // 2, matrix.shape[1])
        self._matrix = matrix.astype(np.float64)
        self._along = (normal / np.linalg.norm(normal, axis=1, keepdims=True)) @ self._matrix.T
        self._squares = np.square(self._matrix).sum(axis=1)
        self._lengths: dict[int, Floats] = {}

    def forget(self) -> None:
        """Another text: what was found for the words of the last one is not kept."""
        self._lengths.clear()

    def stays(self, row: int, epsilon: float) -> float:
        """How likely the nearest word to the noisy vector of a word is the word itself."""
        if row not in self._lengths:
            self._lengths[row] = self._longest(row)
        return float(_below(epsilon * self._lengths[row], self._matrix.shape[1]).mean())

    def _longest(self, row: int) -> Floats:
        """(directions,) how far one can go; each line is two directions."""
        distance = np.maximum(self._squares + self._squares[row] - 2 * self._matrix @ self._matrix[row], 0.0)
        distance[row] = np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            steepness = np.nan_to_num(2 * (self._along - self._along[:, row, None]) / distance, nan=0.0)  # (stays)
            result: Floats = 1.0 / np.maximum(np.r_[steepness.max(axis=1), -steepness.min(axis=1)], 1e-300)
        return result


def _below(values: Floats, shape: int) -> Floats:
    """(n,) how likely a Gamma number of a whole shape is below values: 1 - e^-x (1 + x + ... + x^(shape-1) / ...)."""
    x = np.clip(values, 1e-300, 1e4)
    logs = np.array([math.lgamma(count + 1) for count in range(shape)])
    terms = np.exp(np.arange(shape) * np.log(x)[:, None] - x[:, None] - logs)
    result: Floats = np.clip(1.0 - terms.sum(axis=1), 0.0, 1.0)
    return result
