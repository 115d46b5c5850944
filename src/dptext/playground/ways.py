"""The ways that the playground offers, and the one object that shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from types import MappingProxyType
from typing import Protocol

from dptext.checks import choice as one_of
from dptext.checks import is_encodable, number, whole
from dptext.errors import ParameterError
from dptext.playground.results import Samples, Shown
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors

MOST_CHARACTERS = 2000
"""A text may have so many."""
MOST_DRAWS = 20
DELTA = 1e-6
_VOCABULARY = 20_000


@dataclass(frozen=True, slots=True)
class Way:
    """A way to make text private."""

    title: str
    choices: tuple[str, ...]
    epsilons: tuple[float, float, float]
    delta: float | None = None


WAYS: Mapping[str, Way] = MappingProxyType(
    {
        "words": Way("Words become other words", ("TEM", "SubsetSelection", "Madlib"), (0.5, 20.0, 4.0)),
        "sentences": Way("A text becomes a public text", ("BankRewriter",), (0.5, 20.0, 8.0)),
        "synthetic": Way("Synthetic texts for many people's texts", ("Synthesizer",), (0.1, 10.0, 1.0), DELTA),
        "vectors": Way(
            "A text becomes a private vector", ("PrivUnit", "L2Laplace", "Gaussian"), (0.5, 50.0, 8.0), DELTA
        ),
    }
)


class _Showing(Protocol):
    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> Shown: ...


class DroppedError(Exception):
    """Nobody waits for the result any more."""


class Playground:
    """What a text becomes, in each of the ways, on the vectors and the sample that the extra ``playground`` brings."""

    def __init__(self) -> None:
        self._loaded: dict[str, _Showing] = {}
        self._lock = Lock()
        self._texts = Samples()
        self._is_wanted: Callable[[], bool] = lambda: True

    def show(
        self,
        way: str,
        text: str,
        epsilon: float,
        choice: str | None = None,
        neighbour: str | None = None,
        draws: int = 3,
        *,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Shown:
        """What a text becomes, how likely, what an attacker gets, and what is promised."""
        found = WAYS[one_of("way", way, tuple(WAYS))]
        choice = found.choices[0] if choice is None else one_of("choice", choice, found.choices)
        least, most, _ = found.epsilons
        epsilon = number("epsilon", epsilon, least=least, most=most)
        draws = whole("draws", draws, least=1, most=MOST_DRAWS)
        text = _checked("text", text)
        neighbour = None if neighbour is None else _checked("neighbour", neighbour)
        with self._lock:
            self._is_wanted = is_wanted
            self._check_wanted()
            if way not in self._loaded:
                self._loaded[way] = self._load(way)
            return self._loaded[way].show(text, epsilon, choice=choice, neighbour=neighbour, draws=draws)

    def _check_wanted(self) -> None:
        if not self._is_wanted():
            raise DroppedError

    @cached_property
    def samples(self) -> tuple[tuple[str, str], ...]:
        """(title, text): public texts to try."""
        return self._texts.to_try

    @cached_property
    def _vectors(self) -> WordVectors:
        return load_vectors("glove-6b-50d", limit=_VOCABULARY)

    def _load(self, way: str) -> _Showing:
        """The model of a way; the imports take seconds."""
        if way == "words":
            from dptext.playground.words import Words

            return Words(self._vectors, self._check_wanted)
        from dptext.playground import texts

        if way == "sentences":
            return texts.Sentences(self._vectors, self._texts)
        if way == "synthetic":
            return texts.Synthetic(self._vectors, self._texts, DELTA)
        return texts.Vectors(self._vectors, self._texts, WAYS["vectors"].epsilons[:2], DELTA)


def _checked(name: str, text: str) -> str:
    if not isinstance(text, str):
        raise ParameterError(f"{name} must be a string, got {type(text).__name__}")
    if not is_encodable(text):
        raise ParameterError(f"{name} must be text that UTF-8 can hold, got one with half a surrogate pair")
    if not text.strip():
        raise ParameterError(f"{name} is empty: type some words")
    if len(text) > MOST_CHARACTERS:
        raise ParameterError(f"{name} must have at most {MOST_CHARACTERS:,} characters, got {len(text):,}")
    return text
