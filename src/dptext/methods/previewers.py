"""Previews of the release methods for the playground, with the mechanisms themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dptext.calibration.outcomes import Floats
from dptext.features.features import UNIT
from dptext.methods.preview import (
    Neighbours,
    Piece,
    Point,
    Samples,
    Share,
    TextPreview,
    attack_preview,
    guarantee_fields,
    largest,
    log_densities,
    log_l2_laplace,
    neighbours_preview,
    outcome_table,
    overlap,
    sampled_overlap,
    sampled_success,
)
from dptext.noise.discrete import l2_laplace
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.guarantee import best_guesses
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian
from dptext.representations.bounds import Bound, Domain, fit_bound
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import MeanOfWords
from dptext.representations.randomizer import Channel, Randomizer
from dptext.representations.registry import best_dimension, randomizer_of
from dptext.sentences.bank import TextBank
from dptext.sentences.rewriter import BankRewriter
from dptext.synthesis.density import choose
from dptext.synthesis.synthesizer import SynthesisPlan, Synthesizer
from dptext.text.tokens import Kind, Token, split
from dptext.users.grouping import UserTexts
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import ShownMechanism, WordMechanism
from dptext.words.registry import word_mechanism
from dptext.words.replacing import PLACEHOLDERS

DELTA = 1e-6
_REPLACEMENTS = 5
_OUTCOMES = 6
_CANDIDATE_WORDS = 50  # words among which the adversary chooses, at least
_WORD_DRAWS, _MIN_DRAWS = 4000, 10  # for all words of a text together, and for each
_CANDIDATE_DRAWS = 40  # of each candidate of the adversary
_PAIR_DRAWS = 2000  # of each of two neighbours
_EDGES = (-math.inf, -2.0, -1.0, 0.0, 1.0, 2.0, math.inf)  # of intervals, in standard deviations of the noise
_DIMENSION = 16  # if no best one is known
_POINTS = 150
_NEIGHBOUR_WORDS, _NEIGHBOUR_CHOICES = 20, 16  # tried to find a neighbour


# -- words ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _WordText:
    """A text, its tokens, and the vocabulary row of each token (-1: no word)."""

    text: str
    tokens: list[Token]
    token_rows: list[int]

    @classmethod
    def split(cls, text: str, vectors: WordVectors) -> _WordText:
        tokens = split(text)
        row = vectors.vocabulary.row
        return cls(text, tokens, [row(token.text) if token.kind is Kind.WORD else -1 for token in tokens])

    @property
    def rows(self) -> list[int]:
        return [row for row in self.token_rows if row >= 0]

    @property
    def layout(self) -> list[str | None]:
        """The visible part of any output, with None for words; a space separates replaced tokens that touch."""
        result: list[str | None] = []
        touching = False
        for token in self.tokens:
            replaced = token.kind is Kind.WORD or token.kind in PLACEHOLDERS
            result += [" "] if replaced and touching else []
            result.append(None if token.kind is Kind.WORD else PLACEHOLDERS.get(token.kind, token.text))
            touching = replaced
        return result


class WordPreviewer:
    """Word mechanisms: exact where a mechanism states its distributions, else from a fixed number of draws."""

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:  # noqa: ARG002
        self._vectors = vectors

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> TextPreview:
        bits = RandomBits()
        first = _WordText.split(text, self._vectors)
        second = self._neighbour(first) if neighbour is None else _WordText.split(neighbour, self._vectors)
        mechanism = word_mechanism(choice, vectors=self._vectors, epsilon=epsilon)
        sampled = not isinstance(mechanism, ShownMechanism)
        candidates = list(dict.fromkeys([*first.rows, *range(_CANDIDATE_WORDS)]))
        candidates = [row for row in candidates if row < len(self._vectors)]
        candidates = candidates[: max(_CANDIDATE_WORDS, len(set(first.rows)))]
        rows = {*first.rows, *second.rows, *(() if sampled else candidates)}
        distributions = _distributions(mechanism, sorted(rows), bits)
        if sampled:
            success = sampled_success(_noisy_likelihoods(mechanism, candidates, candidates, _CANDIDATE_DRAWS, bits))
        else:
            table = np.array([distributions[row] for row in candidates])
            success = Share(best_guesses([table], np.full(len(candidates), 1 / len(candidates))).rate)
        pieces = {row: self._replacements(row, distributions[row]) for row in set(first.rows)}
        statement = mechanism.document_statement(len(first.rows)) if first.rows else None
        return TextPreview(
            method="words",
            epsilon=epsilon,
            **guarantee_fields(statement),
            pieces=tuple(
                Piece(token.text, *pieces[row]) if row >= 0 else _unreplaced(token)
                for token, row in zip(first.tokens, first.token_rows, strict=True)
            ),
            draws=tuple(mechanism.replacing()([text] * draws, bits)[0]),
            attack=attack_preview("words", success, 1 / len(candidates), candidates=len(candidates), sampled=sampled),
            neighbours=self._compare(first, second, mechanism, distributions, suggested=neighbour is None),
        )

    def _replacements(self, row: int, distribution: Floats) -> tuple[float, tuple[tuple[str, float], ...]]:
        """Return how likely a word stays, and its most likely replacements."""
        is_unknown = row == self._vectors.vocabulary.unknown_row  # then the word of this row is a replacement
        others = [other for other in largest(distribution, _REPLACEMENTS + 1) if is_unknown or other != row]
        words = [(self._vectors.words[other], float(distribution[other])) for other in others[:_REPLACEMENTS]]
        return 0.0 if is_unknown else float(distribution[row]), tuple(pair for pair in words if pair[1] > 0)

    def _neighbour(self, text: _WordText) -> _WordText:
        """Return the text with its rarest known word replaced by a similar word; the text itself if none is known."""
        matrix, unknown = self._vectors.matrix, self._vectors.vocabulary.unknown_row
        places = sorted((-row, place) for place, row in enumerate(text.token_rows) if row not in (-1, unknown))
        for negative_row, place in places[:_NEIGHBOUR_WORDS]:
            distances = np.linalg.norm(matrix - matrix[-negative_row], axis=1).astype(np.float64)
            for other in largest(-distances, _NEIGHBOUR_CHOICES):
                parts = [token.text for token in text.tokens]
                parts[place] = self._vectors.words[other]
                result = _WordText.split("".join(parts), self._vectors)
                if other not in (-negative_row, unknown) and result.layout == text.layout:
                    return result
        return text

    def _compare(
        self,
        first: _WordText,
        second: _WordText,
        mechanism: WordMechanism,
        distributions: dict[int, Floats],
        *,
        suggested: bool,
    ) -> Neighbours:
        texts, sampled = (first.text, second.text), not isinstance(mechanism, ShownMechanism)
        if first.layout != second.layout:
            return neighbours_preview("words", texts, Share(0.0), topic="other layout")
        pairs = [(one, other) for one, other in zip(first.rows, second.rows, strict=True) if one != other]
        if not pairs:
            is_same = suggested and first.text == second.text
            return neighbours_preview("words", texts, Share(1.0), topic="no neighbour" if is_same else "overlap")
        one, other = (distributions[row] for row in pairs[0])
        if len(pairs) == 1 and not sampled:
            result = overlap(one, other)
        else:
            bits = RandomBits()
            result = sampled_overlap(
                np.sum([_log_ratios(mechanism, distributions, pair, bits) for pair in pairs], axis=0)
            )
        top = largest(np.maximum(one, other), _OUTCOMES)
        words = [self._vectors.words[row] for row in top]
        outcomes = outcome_table(words, one[top], other[top], rest="any other word")
        return neighbours_preview("words", texts, result, outcomes, sampled=sampled)


def _unreplaced(token: Token) -> Piece:
    placeholder = PLACEHOLDERS.get(token.kind)
    return Piece(token.text, None, () if placeholder is None else ((placeholder, 1.0),))


def _distributions(mechanism: WordMechanism, rows: list[int], bits: RandomBits) -> dict[int, Floats]:
    """Return the output distribution of each word: exact, or the frequencies in draws."""
    words = mechanism.vectors.words
    if isinstance(mechanism, ShownMechanism):
        return dict(zip(rows, mechanism.distributions([words[row] for row in rows]), strict=True)) if rows else {}
    draws = max(_MIN_DRAWS, _WORD_DRAWS // max(len(rows), 1))
    outputs = mechanism.sample_rows(np.repeat(np.array(rows, dtype=np.int64), draws), bits).reshape(len(rows), draws)
    return {
        row: np.bincount(drawn_rows, minlength=len(words)) / draws
        for row, drawn_rows in zip(rows, outputs, strict=True)
    }


def _log_ratios(
    mechanism: WordMechanism, distributions: dict[int, Floats], pair: tuple[int, int], bits: RandomBits
) -> Floats:
    """Return log likelihood ratios of outputs, of which half were drawn for each of two words."""
    if not isinstance(mechanism, ShownMechanism):  # of noisy vectors
        logs = _noisy_likelihoods(mechanism, list(pair), list(pair), _PAIR_DRAWS, bits)
        return np.asarray(logs[:, 0] - logs[:, 1])
    one, other = (distributions[row] for row in pair)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(one) - np.log(other)
    outputs = [
        np.minimum(np.searchsorted(np.cumsum(shares), bits.uniform(_PAIR_DRAWS), side="right"), shares.size - 1)
        for shares in (one, other)
    ]
    return np.asarray(losses[np.concatenate(outputs)])


def _noisy_likelihoods(
    mechanism: WordMechanism, rows: list[int], candidates: list[int], draws: int, bits: RandomBits
) -> Floats:
    """Return (n * draws, m) log likelihoods of noisy vectors of some words for each candidate word."""
    matrix, scale = mechanism.vectors.matrix.astype(np.float64), 1.0 / mechanism.epsilon
    inputs = np.repeat(np.array(rows), draws)
    noise = l2_laplace(bits, inputs.size, matrix.shape[1], scale)
    return log_l2_laplace(matrix[inputs] + noise, matrix[candidates], scale)


# -- texts of a bank --------------------------------------------------------------------------------------------------


class BankPreviewer:
    """Texts replaced by texts of a public bank: exact."""

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:
        self._samples = samples
        self._bank = TextBank(samples.public, encoder=MeanOfWords(vectors), cache=False, name=samples.name)
        self._rows = {text: row for row, text in enumerate(self._bank.texts)}

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> TextPreview:  # noqa: ARG002
        rewriter = BankRewriter(self._bank, epsilon=epsilon, unit="document")
        second = self._samples.neighbour(text) if neighbour is None else neighbour
        candidates = self._samples.candidates(text)
        one, other, *others = rewriter.distributions([text, second, *candidates[1:]])
        guesses = best_guesses([np.array([one, *others])], np.full(len(candidates), 1 / len(candidates)))
        same = self._rows.get(" ".join(text.split()))
        likely = [row for row in self._most_likely(text, one, _REPLACEMENTS + 1) if row != same][:_REPLACEMENTS]
        replacements = tuple((self._bank.texts[row], float(one[row])) for row in likely)
        half = _OUTCOMES // 2
        top = list(dict.fromkeys([*self._most_likely(text, one, half), *self._most_likely(second, other, half)]))
        names = [self._bank.texts[row] for row in top]
        outcomes = outcome_table(names, one[top], other[top], rest="any other text")
        return TextPreview(
            method="sentences",
            epsilon=epsilon,
            **guarantee_fields(rewriter.document_statement(1)),
            pieces=(Piece(text, 0.0 if same is None else float(one[same]), replacements),),
            draws=tuple(rewriter.sample([text] * draws)),
            attack=attack_preview("sentences", Share(guesses.rate), guesses.blind, candidates=len(candidates)),
            neighbours=neighbours_preview("sentences", (text, second), overlap(one, other), outcomes),
        )

    def _most_likely(self, text: str, distribution: Floats, count: int) -> list[int]:
        """Return rows of the most likely texts of the bank; among equally likely ones, the most similar."""
        everything = np.arange(len(self._bank))[None]
        similarity = self._bank.similarities(self._bank.features.vectors([text]), everything)[0]
        return [int(row) for row in np.lexsort((-similarity, -distribution))[:count]]


# -- synthetic texts --------------------------------------------------------------------------------------------------


class CorpusPreviewer:
    """Synthetic texts for the data of many people and this text: exact."""

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:
        self._samples, self._encoder = samples, MeanOfWords(vectors)
        self._plan = self._synthesizer(1.0).plan(samples.public)
        self._others = self._sum(*samples.people)
        self._pool = self._plan.features.units(self._plan.pool.texts) * UNIT

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> TextPreview:  # noqa: ARG002
        synthesizer, bits = self._synthesizer(epsilon), RandomBits()
        plan = SynthesisPlan(terms=synthesizer.terms, features=self._plan.features, pool=self._plan.pool)
        first = self._sum(text)
        second = np.zeros_like(first) if neighbour is None else self._sum(neighbour)
        ratio = synthesizer.released(plan, self._others + first, bits).ratio
        rows, _ = choose(
            ratio.scores(self._pool), ratio.nearness(self._pool), draws, shares=ratio.shares, bits=bits.spawn(1)[0]
        )
        sigma, people = plan.terms.budget.sigma, len(self._samples.people)
        distance = _norm(first - second)
        replaced = "without it" if neighbour is None else f"and this text instead: {neighbour}"
        texts = f"{people:,} people and this text: {text}", f"{people:,} people {replaced}"
        intervals = [f"{low:g} to {high:g}" for low, high in pairwise(_EDGES[1:-1])]
        names = [f"below {_EDGES[1]:g}", *intervals, f"above {_EDGES[-2]:g}"]
        one, other = (
            np.diff([NormalDist(shift).cdf(edge) for edge in _EDGES])
            for shift in (distance / sigma / 2, -distance / sigma / 2)
        )
        outcomes = tuple(zip(names, one.tolist(), other.tolist(), strict=True))
        return TextPreview(
            method="synthetic",
            epsilon=epsilon,
            **guarantee_fields(plan.promise),
            pieces=(Piece(text),),
            draws=tuple(plan.pool.texts[row] for row in rows.tolist()),
            attack=attack_preview(
                "synthetic", Share(1 - _gaussian_overlap(sigma, _norm(first)) / 2), 0.5, candidates=people
            ),
            neighbours=neighbours_preview("synthetic", texts, Share(_gaussian_overlap(sigma, distance)), outcomes),
        )

    def _synthesizer(self, epsilon: float) -> Synthesizer:
        return Synthesizer(epsilon=epsilon, delta=DELTA, features=self._encoder, cache=False)

    def _sum(self, *texts: str) -> npt.NDArray[np.int64]:
        """Return the sum of the contributions of people with one text each."""
        return self._plan.total(UserTexts((([text], np.zeros(1, dtype=np.int32)),)) for text in texts)


def _norm(cells: npt.NDArray[np.int64]) -> float:
    return float(np.linalg.norm(cells.astype(np.float64))) * CELL


def _gaussian_overlap(sigma: float, distance: float) -> float:
    """Return the overlap of Gaussian noise around two points: delta at epsilon 0 is the total variation distance."""
    return 1.0 if distance == 0.0 else 1.0 - gaussian_delta(sigma, epsilon=0.0, sensitivity=distance)


# -- private vectors --------------------------------------------------------------------------------------------------


class VectorPreviewer:
    """Private vectors of texts: from a fixed number of draws."""

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:
        self._samples, self._encoder = samples, MeanOfWords(vectors)
        self._public = self._encoder.encode(samples.public)
        self._bounds: dict[tuple[str, int], Bound] = {}

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> TextPreview:
        device, bits = self._device(choice, epsilon), RandomBits()
        second = self._samples.neighbour(text) if neighbour is None else neighbour
        candidates = self._samples.candidates(text)
        clean = device.bound.apply(np.asarray(self._encoder.encode([*candidates, second]), dtype=np.float64))
        clean = device.channel.domain.bound(clean)
        known, pair = clean[:-1], clean[[0, -1]]
        public = device.bound.apply(self._public)
        private = _draw(device.channel, known, _CANDIDATE_DRAWS // 2, bits)
        success = sampled_success(log_densities(device.channel, private, known))
        outputs = _draw(device.channel, pair, _PAIR_DRAWS, bits)
        logs = log_densities(device.channel, outputs, pair)
        is_same = bool(np.array_equal(pair[0], pair[1]))
        nearest = np.argmax(outputs @ public.T, axis=1).reshape(2, _PAIR_DRAWS)
        one, other = (np.bincount(rows, minlength=len(public)) / _PAIR_DRAWS for rows in nearest)
        top = largest(np.maximum(one, other), _OUTCOMES)
        names = [self._samples.public[row] for row in top]
        outcomes = outcome_table(names, one[top], other[top], rest="nearest to another text")
        sample = np.asarray(device.encode([text] * draws), dtype=np.float64)
        return TextPreview(
            method="vectors",
            epsilon=epsilon,
            **guarantee_fields(device.statement),
            pieces=(Piece(text),),
            draws=tuple(self._samples.public[row] for row in np.argmax(sample @ public.T, axis=1).tolist()),
            attack=attack_preview("vectors", success, 1 / len(known), candidates=len(known)),
            neighbours=neighbours_preview(
                "vectors",
                (text, second),
                Share(1.0) if is_same else sampled_overlap(logs[:, 0] - logs[:, 1]),
                outcomes,
            ),
            points=_points(pair, outputs.reshape(2, _PAIR_DRAWS, -1)[:, :_POINTS]),
        )

    def _device(self, choice: str, epsilon: float) -> DeviceEncoder:
        """Return the encoder with the best dimension for the next smaller power of two: finding it takes long."""
        power = math.floor(math.log2(epsilon))
        if (choice, power) not in self._bounds:
            best = best_dimension(self._public, _randomizer(choice, 2.0**power))
            dimension = _DIMENSION if best is None else best.dimension
            self._bounds[choice, power] = fit_bound(self._public, dimension=dimension, public_name=self._samples.name)
        return DeviceEncoder(self._encoder, self._bounds[choice, power], _randomizer(choice, epsilon))


def _randomizer(choice: str, epsilon: float) -> Randomizer:
    if choice == "Gaussian":
        return Gaussian(epsilon=epsilon, delta=DELTA, domain=Domain.SPHERE)
    return randomizer_of(choice, epsilon=epsilon)


def _draw(channel: Channel, vectors: Floats, draws: int, bits: RandomBits) -> Floats:
    return np.asarray(channel.sample(np.repeat(vectors, draws, axis=0), bits), dtype=np.float64)


def _points(pair: Floats, outputs: Floats) -> tuple[Point, ...]:
    """Return outputs in the plane of both vectors; the line between the two is horizontal."""
    across = _unit(pair[1] - pair[0])
    up = _unit(pair.sum(axis=0) - (pair.sum(axis=0) @ across) * across)
    return tuple(
        Point(float(vector @ across), float(vector @ up), source)
        for source, vectors in enumerate(outputs)
        for vector in vectors
    )


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 1e-12 else np.eye(vector.size)[0]
