"""Words and length of private texts compared with public ones, for the owner of the private texts only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from statistics import median_low
from typing import Any, get_args

from dptext.errors import ParameterError
from dptext.features.features import PublicFeatures
from dptext.features.pool import Pool
from dptext.release.run import FIRST_ROWS
from dptext.representations.encoders import TextEncoder, check_texts
from dptext.representations.sentence_encoder import KNOWN_MODELS, SentenceEncoder
from dptext.sentences.bank import TextBank
from dptext.text.tokens import Kind, TextUnit, Vocabulary, count_words, fold, kind_of, pieces, units_of
from dptext.validation import display_value
from dptext.vectors.formats import STATIC, load_vectors_once
from dptext.vectors.word_vectors import WordVectors

LEVEL = 2 / 3
"""Share of the expected known words below which the owner is warned.

Measured: at least .91 for English texts and word vectors; relative to the expected share, at least .96 for texts of the
kind of a pool. At most .57 for six other languages. English texts of another kind are below it for pools of few words.
"""
_CHARACTERS = 1_000  # of each text
_PUBLIC_TEXTS = 2_000  # evenly spaced
_CUT = 1_000  # evenly spaced texts, to count words per unit


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Share of the words of private texts that are known to a public vocabulary, encoder, pool or bank."""

    share: float
    expected: float  # the share for other texts of the pool or bank; 1 for a vocabulary or an encoder

    @property
    def is_low(self) -> bool:
        """True if the private texts are probably in another language, or about other things."""
        return self.share < LEVEL * self.expected


def coverage(texts: Iterable[Any], public: Any) -> Coverage | None:
    """Return the share of the words of private texts that the public side of a release knows.

    The commands warn the owner before a release if it is low. **The result is private**: it is computed without noise.

    Args:
        texts: private texts; only the first 500 are used.
        public: word vectors, a `dptext.Pool`, a `dptext.TextBank`, an encoder, or a mechanism that uses one of them.

    Returns:
        The coverage; None for texts without words, or an encoder whose words are unknown.

    Raises:
        DataError, ParameterError: an entry is not text, or ``public`` has another type.

    >>> pool = Pool(["a cup of tea", "the tea is hot", "a hot cup", "the cup of tea"])
    >>> coverage(["eine Tasse Tee", "a Tee"], pool)
    Coverage(share=0.2, expected=0.625)
    """
    words = _word_counts(text for text in check_texts(islice(texts, FIRST_ROWS)) if text)
    known, others = _known_words(public)
    if known is None or not words:
        return None
    return Coverage(share=_share(words, known), expected=1.0 if others is None else _share(others, known))


def _known_words(public: Any) -> tuple[Vocabulary | Counter[str] | None, Counter[str] | None]:
    """Return the words that are known, and the words of other texts of the pool."""
    if isinstance(public, Pool | TextBank):  # one half is compared with the private texts and with the other half
        texts = public.texts[:: -(-len(public) // _PUBLIC_TEXTS)]
        return _word_counts(texts[::2]), _word_counts(texts[1::2])
    if isinstance(public, WordVectors):
        return public.vocabulary, None
    if isinstance(public, SentenceEncoder) and public.model in KNOWN_MODELS:
        return load_vectors_once(STATIC).vocabulary, None  # of the same model
    if isinstance(public, PublicFeatures):
        known = (_known_words(block.encoder) for block in public.blocks)
        return next((words for words in known if words[0] is not None), (None, None))
    for name in ("mechanism", "bank", "vectors", "encoder"):
        if hasattr(public, name):
            return _known_words(getattr(public, name))
    if isinstance(public, TextEncoder):
        return None, None
    raise ParameterError(f"public must be word vectors, a pool, a bank or an encoder, got {display_value(public)}")


def _word_counts(texts: Iterable[str]) -> Counter[str]:
    """Return the number of times that each word, case folded, occurs in the first characters of texts."""
    counts: Counter[str] = Counter()
    for piece, count in Counter(chain.from_iterable(pieces(text[:_CHARACTERS]) for text in texts)).items():
        if kind_of(piece) is Kind.WORD:
            counts[fold(piece)] += count
    return counts


def _share(words: Counter[str], known: Vocabulary | Counter[str]) -> float:
    return sum(count for word, count in words.items() if word in known) / max(words.total(), 1)


def median_words(texts: Sequence[str]) -> dict[TextUnit, int]:
    """Return the median number of words of texts, and of the sentences and paragraphs in them."""
    sample = texts[:: -(-len(texts) // _CUT)]
    units = {unit: [part for text in sample for part in units_of(text, unit)] for unit in get_args(TextUnit)}
    return {unit: median_low(map(count_words, parts or [""])) for unit, parts in units.items()}
