"""The release methods that the playground offers, and the object that shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from threading import Lock
from types import MappingProxyType

from dptext.errors import ParameterError
from dptext.methods.base import PlaygroundSettings, Previewer
from dptext.methods.preview import Samples, Shown
from dptext.methods.registry import METHODS
from dptext.validation import check_choice as one_of
from dptext.validation import check_float, check_int, is_encodable
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors

MOST_CHARACTERS = 2000
"""A text may have so many."""
MOST_DRAWS = 20
_VOCABULARY = 20_000


SETTINGS: Mapping[str, PlaygroundSettings] = MappingProxyType(
    {method.playground.key: method.playground for method in reversed(METHODS) if method.playground is not None}
)
"""How the release methods are offered that a person can try on one text."""


class DroppedError(Exception):
    """Nobody waits for the result any more."""


class Playground:
    """What each release method makes of a text, with the vectors and the sample of the extra ``playground``."""

    def __init__(self) -> None:
        self._loaded: dict[str, Previewer] = {}
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
        """Show what a text becomes, how likely, what an adversary gets, and the guarantee."""
        settings = SETTINGS[one_of("way", way, tuple(SETTINGS))]
        choice = settings.choices[0] if choice is None else one_of("choice", choice, settings.choices)
        minimum, maximum, _ = settings.epsilons
        epsilon = check_float("epsilon", epsilon, minimum=minimum, maximum=maximum)
        draws = check_int("draws", draws, minimum=1, maximum=MOST_DRAWS)
        text = _checked("text", text)
        neighbour = None if neighbour is None else _checked("neighbour", neighbour)
        with self._lock:
            self._is_wanted = is_wanted
            self._check_wanted()
            if way not in self._loaded:
                self._loaded[way] = settings.previewer(self._vectors, self._texts, self._check_wanted)
            return self._loaded[way].show(text, epsilon, choice=choice, neighbour=neighbour, draws=draws)

    def _check_wanted(self) -> None:
        if not self._is_wanted():
            raise DroppedError

    @cached_property
    def samples(self) -> tuple[tuple[str, str], ...]:
        """(title, text): public texts to try."""
        return self._texts.samples_to_try

    @cached_property
    def _vectors(self) -> WordVectors:
        return load_vectors("glove-6b-50d", limit=_VOCABULARY)


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
