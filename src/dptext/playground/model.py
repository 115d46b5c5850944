"""The release methods that the playground offers, and the object that previews them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from threading import Lock
from types import MappingProxyType

from dptext.errors import ParameterError
from dptext.methods.base import PlaygroundSettings
from dptext.methods.preview import Previewer, Samples, TextPreview
from dptext.methods.registry import METHODS
from dptext.validation import check_choice, check_float, check_int, is_encodable
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors

MAX_CHARACTERS = 2000
MAX_DRAWS = 20
_VOCABULARY = 20_000

SETTINGS: Mapping[str, PlaygroundSettings] = MappingProxyType(
    {method.playground.key: method.playground for method in reversed(METHODS) if method.playground is not None}
)
"""The release methods that can be tried on a single text."""


class Playground:
    """Previews of a text by each release method, with the vectors and the sample of the extra ``playground``."""

    def __init__(self) -> None:
        self._previewers: dict[str, Previewer] = {}
        self._lock = Lock()
        self._samples = Samples()

    def show(
        self,
        method: str,
        text: str,
        epsilon: float,
        choice: str | None = None,
        neighbour: str | None = None,
        draws: int = 3,
    ) -> TextPreview:
        """Return outputs of a text, their probabilities, the success of an adversary, and the guarantee."""
        settings = SETTINGS[check_choice("method", method, tuple(SETTINGS))]
        choice = settings.choices[0] if choice is None else check_choice("choice", choice, settings.choices)
        minimum, maximum, _ = settings.epsilons
        epsilon = check_float("epsilon", epsilon, minimum=minimum, maximum=maximum)
        draws = check_int("draws", draws, minimum=1, maximum=MAX_DRAWS)
        for name, value in (("text", text), ("neighbour", neighbour)):
            if name == "text" or value is not None:
                _check_typed(name, value)
        with self._lock:
            if method not in self._previewers:
                self._previewers[method] = settings.previewer(self._vectors, self._samples)
            return self._previewers[method].show(text, epsilon, choice=choice, neighbour=neighbour, draws=draws)

    @property
    def samples(self) -> tuple[tuple[str, str], ...]:
        """(title, text): public texts to try."""
        return self._samples.examples

    @cached_property
    def _vectors(self) -> WordVectors:
        return load_vectors("glove-6b-50d", limit=_VOCABULARY)


def _check_typed(name: str, text: object) -> None:
    """Raise if this is not a text to preview; no message contains it."""
    if not isinstance(text, str) or not is_encodable(text):
        raise ParameterError(f"{name} must be a string that UTF-8 can encode")
    if not text.strip():
        raise ParameterError(f"{name} is empty: type some words")
    if len(text) > MAX_CHARACTERS:
        raise ParameterError(f"{name} must have at most {MAX_CHARACTERS:,} characters, got {len(text):,}")
