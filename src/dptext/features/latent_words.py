"""Latent semantic analysis as an encoder: TF-IDF and a truncated singular value decomposition, fitted on public texts.

Derivation: docs/mechanisms/synthesis.md#features-latent-words
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, extra
from dptext.privacy.statement import Parameter
from dptext.representations.encoders import FrozenEncoder, Progress, Vectors, in_parts, weighted_sums
from dptext.text.tokens import Kind, fold, kind_of
from dptext.threads import one_blas_thread
from dptext.users.grouping import NO_WORD, TokenRows
from dptext.validation import check_int

DIMENSION = 300
MOST_WORDS = 20_000
_LEAST_TEXTS, _FEW_TEXTS = 2, 1000
"""Minimum number of texts per word, and the number of public texts from which it applies."""
_MOST_DECOMPOSED = 50_000
"""Maximum number of evenly spaced public texts for the decomposition; more would cost memory and change little."""
_OVERSAMPLES, _ITERATIONS, _SEED = 20, 4, 7
_SURROGATE = re.compile("[\ud800-\udfff]")
_COUNTS = 1 << 12
"""Maximum count of a word in one text."""
_SUBLINEAR = np.concatenate([[0.0], 1.0 + np.log(np.arange(1.0, _COUNTS))])  # a table gives equal counts equal weights
_FLAT = 1e-5  # relative to the largest singular value; smaller ones are float32 rounding

_ENGLISH = """
a about above after again against all also am an and any are as at be because been before being below between both but
by can could did do does doing done down during each either else ever few for from further get gets got had has have
having he her here hers herself him himself his how i if in into is it its itself just let ll me might more most much
must my myself neither no nor not now of off on once only or other others our ours ourselves out over own per rather re
same shall she should since so some such than that the their theirs them themselves then there these they this those
though through thus to too toward towards under until up upon us ve very was we were what when where whether which
while who whom whose why will with within without would yet you your yours yourself yourselves
"""
FUNCTION_WORDS = frozenset(_ENGLISH.split())
"""English function words. In other languages, hints exclude words that occur in many texts."""

Integers = npt.NDArray[np.int64]


class PublicWords:
    """Words of the public texts, and the number of texts that contain each."""

    def __init__(self, texts: Sequence[str], *, progress: Progress | None = None) -> None:
        ids: dict[str, int] = {}

        def number(token: str) -> int:
            is_word = kind_of(token) is Kind.WORD and _SURROGATE.search(token) is None
            return ids.setdefault(fold(token), len(ids)) if is_word else NO_WORD

        rows = TokenRows(number)
        parts = [rows(texts[block]) for block in in_parts(texts, 4096, progress)]
        self.texts = len(texts)
        self._lengths = np.concatenate([lengths for _, lengths in parts]) if parts else np.zeros(0, dtype=np.int64)
        flat = np.concatenate([part for part, _ in parts]) if parts else np.zeros(0, dtype=np.int32)
        holding = np.zeros(len(ids), dtype=np.int64)
        first = 0
        for start in range(0, len(texts), 1 << 14):
            lengths = self._lengths[start : start + (1 << 14)]
            _, result, _ = _distinct(flat[first : first + int(lengths.sum())], lengths, len(ids))
            holding += np.bincount(result, minlength=len(ids))
            first += int(lengths.sum())
        words = list(ids)
        order = sorted(range(len(words)), key=lambda index: (-int(holding[index]), words[index]))
        self.words = tuple(words[entry] for entry in order)
        self.holding = holding[order]
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        self._flat = place[flat] if flat.size else flat

    def informative_words(self, *, limit: int, min_texts: int, max_share: float) -> tuple[str, ...]:
        """Return frequent words, excluding function words and single letters."""
        words: list[str] = []
        for word, holding in zip(self.words, self.holding.tolist(), strict=True):
            if holding < min_texts or len(words) == limit:
                break
            is_function_word = word in FUNCTION_WORDS or "'" in word or (len(word) == 1 and word.isascii())
            if not is_function_word and holding <= max_share * self.texts:
                words.append(word)
        return tuple(words)

    def rows(self, chosen: Integers) -> tuple[npt.NDArray[np.int32], Integers]:
        """Return the concatenated words of the chosen texts and the number of words per text."""
        ends = np.cumsum(self._lengths)
        parts = [self._flat[ends[entry] - self._lengths[entry] : ends[entry]] for entry in chosen.tolist()]
        return np.concatenate(parts), self._lengths[chosen]


def fit_latent_words(public: PublicWords, *, dimension: int = DIMENSION, most_words: int = MOST_WORDS) -> LatentWords:
    """Fit the encoder on public texts."""
    linear_algebra = extra("sklearn.utils.extmath", "sklearn", "features='words'")
    sparse = extra("scipy.sparse", "sklearn", "features='words'")
    check_int("dimension", dimension, minimum=1)
    if not public.words:
        raise DataError(
            "the public texts contain no words (numbers, addresses and punctuation do not count): provide other texts"
        )
    minimum = 1 if public.texts < _FEW_TEXTS else min(_LEAST_TEXTS, int(public.holding[0]))
    size = min(
        int(np.searchsorted(-public.holding, -minimum, side="right")), check_int("most_words", most_words, minimum=1)
    )
    idf = 1.0 + np.log((1.0 + public.texts) / (1.0 + public.holding[:size]))
    chosen = np.unique(np.linspace(0, public.texts - 1, min(public.texts, _MOST_DECOMPOSED)).astype(np.int64))
    flat, lengths = public.rows(chosen)
    owner, rows, counts = _distinct(np.where(flat < size, flat, NO_WORD), lengths, size)
    weights = _weights(owner, rows, counts, idf, len(chosen)).astype(np.float32)
    starts = np.searchsorted(owner, np.arange(len(chosen) + 1))
    matrix = sparse.csr_matrix((weights, rows, starts), shape=(len(chosen), size), dtype=np.float32)
    kept = min(dimension, min(matrix.shape))
    with one_blas_thread():
        _, values, components = linear_algebra.randomized_svd(
            matrix, kept, n_oversamples=_OVERSAMPLES, n_iter=_ITERATIONS, random_state=_SEED
        )
    kept = int((values > _FLAT * values[0]).sum())
    if kept == 0:
        raise DataError("all public texts contain the same words: provide other texts")
    return LatentWords(public.words[:size], idf, np.ascontiguousarray(components[:kept].T), public_texts=public.texts)


class LatentWords(FrozenEncoder):
    """Encoder by latent semantic analysis; immutable. Equation (latent)."""

    name = "words"
    is_batch_invariant = True

    def __init__(
        self, words: Sequence[str], idf: npt.ArrayLike, components: npt.ArrayLike, *, public_texts: int
    ) -> None:
        self.words = tuple(words)
        self.idf = _frozen(idf, np.float64)
        self.components = _frozen(components, np.float32)
        self.public_texts = check_int("public_texts", public_texts, minimum=1)
        self._row_of = {word: row for row, word in enumerate(self.words)}
        self._plain = {word for word in self.words if kind_of(word) is Kind.WORD and fold(word) == word}
        self.dimension = int(self.components.shape[1])

    def _vectors(self, texts: list[str]) -> Vectors:
        token_rows = TokenRows(self._row)  # not stored, because its cache contains words of the texts
        owner, rows, counts = _distinct(*token_rows(texts), len(self.words))
        weights = _weights(owner, rows, counts, self.idf, len(texts)).astype(np.float32)
        return weighted_sums(self.components, rows, weights, np.bincount(owner, minlength=len(texts)), np.float32)

    def _row(self, token: str) -> int:
        if token in self._plain:  # most words need no further processing
            return self._row_of[token]
        return self._row_of.get(fold(token), NO_WORD) if kind_of(token) is Kind.WORD else NO_WORD

    @cached_property
    def sha256(self) -> str:
        """Digest of words, weights and components; equal encoders have equal digests."""
        digest = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(self.idf, dtype="<f8").tobytes())
        digest.update(np.ascontiguousarray(self.components, dtype="<f4").tobytes())
        return digest.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return (partial(LatentWords, public_texts=self.public_texts), (self.words, self.idf, self.components))

    def parameters(self) -> dict[str, Parameter]:
        """Return sizes and a digest, for privacy statements."""
        return {
            "encoder": self.name,
            "encoder_dimension": self.dimension,
            "encoder_words": len(self.words),
            "encoder_public_texts": self.public_texts,
            "encoder_sha256": self.sha256,
        }

    def assumptions(self) -> tuple[str, ...]:
        """Return the assumption that the fitting texts are public."""
        return ("words, their weights and their components were fitted on public texts only",)


def _distinct(
    flat: npt.NDArray[np.int32], lengths: Integers, size: int
) -> tuple[Integers, Integers, npt.NDArray[np.int64]]:
    """Return sorted (text, word, count) arrays of the distinct words per text; negative words are ignored."""
    keys = np.repeat(np.arange(len(lengths)) * size, lengths) + flat
    if flat.size:
        keys = keys[flat >= 0]
    keys.sort()
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    owner, rows = np.divmod(keys[first], max(size, 1))
    return owner, rows, np.diff(first, append=len(keys))


def _weights(owner: Integers, rows: Integers, counts: Integers, idf: npt.NDArray[np.float64], texts: int) -> Any:
    """Return (entries,) TF-IDF weights of unit norm per text, summed in an order that depends on the text only."""
    weights = _SUBLINEAR[np.minimum(counts, _COUNTS - 1)] * idf[rows]
    return weights / np.sqrt(np.bincount(owner, weights * weights, minlength=texts))[owner]


def _frozen(values: npt.ArrayLike, dtype: Any) -> npt.NDArray[Any]:
    result = np.ascontiguousarray(values, dtype=dtype)
    if result.flags.writeable:
        result = result.copy()
        result.setflags(write=False)
    return result
