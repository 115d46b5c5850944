"""Text banks: public texts that replace private texts, and the selection of the most representative ones.

Derivation: docs/mechanisms/sentences.md#sentences-thinning
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ProgressOption, ReprMixin, progress_bar
from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.features.features import UNIT, PublicFeatures, Spec, encoded_parts, fit_features
from dptext.features.pool import Cache, Pool
from dptext.io.artifacts import SavedFolder, file_digest, read_tensors, tensor_bytes
from dptext.io.atomic import HashedFile
from dptext.noise.subset_selection import Profile
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, software
from dptext.privacy.wording import filled
from dptext.representations.encoders import TextEncoder
from dptext.threads import for_each_block
from dptext.validation import check_float, check_int, check_path
from dptext.vectors.nearest_sets import NearestSets

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_STEPS, _QUERIES = 40, 256
_RATE, _DECAY_STEPS = 4.0, 20.0  # step size and its decay
_MAX_STEP = 0.5  # maximum change of a log weight per step
_BINS = 8192  # histogram bins of similarities; they affect the selection of texts only
_SCORES = 1 << 23
_SEED = 2026  # public, so that equal banks give equal selections
_VARIETY = 2  # multiple of the effective number of texts; reduces the similarity very little


def optimal_weights(vectors: npt.NDArray[np.float32], epsilon: float) -> Floats:
    """Return (N,) minimum probabilities of the bank texts that make draws most similar to public texts."""
    count, ratio = len(vectors), math.exp(epsilon)
    inside = max(1.0, count / (1 + ratio))
    floor = np.full(count, 1 / (inside * ratio + count - inside))
    total = np.zeros(count)
    bits = RandomBits(seed=_SEED)
    for step in range(_STEPS):
        queries = bits.below(np.full(min(_QUERIES, count), count, dtype=np.uint64)).astype(np.int64)
        gain = _gradient(vectors, queries, floor, ratio) * _RATE / math.sqrt(1 + step / _DECAY_STEPS)
        floor *= np.exp(np.clip(gain, -_MAX_STEP, _MAX_STEP))
        mass = float(floor.sum())
        floor *= min(max(mass, 1.05 / ratio), 0.999) / mass  # S(x) is neither empty nor the whole bank
        if step >= _STEPS // 2:
            total += floor
    return total / (_STEPS - _STEPS // 2)


def default_size(floor: Floats) -> int:
    """Return the number of texts to keep: twice the effective number (exponential of the entropy of the weights)."""
    share = floor / floor.sum()
    return min(len(floor), math.ceil(_VARIETY * math.exp(-float((share * np.log(share)).sum()))))


def _gradient(vectors: npt.NDArray[np.float32], queries: Rows, floor: Floats, ratio: float) -> Floats:
    mass = (1 - float(floor.sum())) / (ratio - 1)  # (mass)
    at_once = max(1, _SCORES // len(vectors))
    parts = [queries[start : start + at_once] for start in range(0, len(queries), at_once)]
    result: list[Floats] = [np.empty(0)] * len(parts)

    def add(place: int) -> None:
        part = parts[place]
        scores = vectors[part] @ vectors.T
        scores[np.arange(len(part)), part] = -1.0
        sums = np.zeros(len(vectors))
        for score in scores:
            above = score - _set_boundary(score, floor, mass)
            sums += np.where(above > 0, ratio * above, above)
        result[place] = sums

    for_each_block(add, range(len(parts)))
    total: Floats = np.sum(result, axis=0)  # fixed order: same result for any number of threads
    return total / len(queries)


def _set_boundary(similarity: npt.NDArray[np.float32], floor: Floats, mass: float) -> float:
    """Return the similarity above which the most similar texts have a total weight of ``mass``."""
    places = np.clip((similarity + 1) * (_BINS / 2), 0, _BINS).astype(np.int64)
    cumulative = np.cumsum(np.bincount(places, weights=floor, minlength=_BINS + 1)[::-1])
    return (_BINS - int(np.searchsorted(cumulative, mass))) * 2 / _BINS - 1


_LEAST = 3
_FITTED_ON = 20_000  # texts for fitting; more have almost no effect
_PROFILED = 256  # sampled texts for the similarity profile
_MOST_EPSILON = 20.0  # above this, a smaller bank gains nothing
_ROWS = 4096

_VECTORS, _TEXTS, _FEATURES, _CARD = "vectors.npy", "texts.txt", "features.safetensors", "README.md"
FOLDER = SavedFolder(
    format="dptext-text-bank",
    version=1,
    writer="dptext bank or TextBank.save",
    holds="a bank",
    keys=("name", "licence", "texts", "dimension", "features", "files"),
    files=(_VECTORS, _TEXTS, _FEATURES, _CARD),
    large=2,
)


class TextBank(ReprMixin):
    """Immutable public texts with their vectors, used by `dptext.BankRewriter` to replace private texts.

    The bank contains the distinct non-empty texts in input order, with white space normalised to single spaces.

    **Requirement.** The bank must be public and chosen without regard to the private texts; do not remove a text
    because it is among them. Its authors are not protected. The output consists of unchanged bank texts: their names,
    numbers and claims come from the bank's authors and may be false for the writer of a private text.

    Args:
        texts: a `Pool`, or an argument for one: a path, texts or a table.
        encoder: encoder that defines similarity: `PublicFeatures`, or a value for ``features`` of `dptext.Synthesizer`,
            with the same default.
        text: name of the text column, in tables and in files with columns.
        name, licence: name and licence of the source, for the privacy statement and the card. Omit them for a `Pool`.
        cache: folder for cached vectors of the bank (`dptext.features.pool`); False disables the cache, None uses the
            user's cache folder. Private texts are never cached.
        progress: progress bar (`dptext.display`), or a function called with the number of encoded texts.

    Attributes:
        texts: (N,) bank texts.
        vectors: (N, d) float32, read-only: multiples of 2^-15, with a norm of at most 1.
        features: the encoder. The vector of a private text depends on this text only, exact to the last bit.
        name, licence: name and licence of the source.
        files: SHA-256 digests of the files that the texts were read from.

    Raises:
        ParameterError: there are fewer than three distinct texts, or as for `Pool`.
        RefusedError: the features use word vectors that are a private release.
        DataError, StorageError, MissingExtraError: see `Pool` and the features.

    >>> bank = TextBank(["I like tea.", "I like  tea.", "He pays his tax.", "Dogs bark."], encoder="words", cache=False)
    >>> bank
    TextBank(name='a public pool', texts=3, features='words', dimension=3)
    >>> bank.texts[0]
    'I like tea.'
    """

    texts: tuple[str, ...]
    vectors: npt.NDArray[np.float32]
    features: PublicFeatures
    name: str
    licence: str | None
    files: tuple[str, ...]

    def __init__(
        self,
        texts: Any,
        *,
        encoder: Spec | PublicFeatures = None,
        text: str = "text",
        name: str | None = None,
        licence: str | None = None,
        cache: Cache = None,
        progress: ProgressOption = None,
    ) -> None:
        if isinstance(texts, Pool):
            if name is not None or licence is not None:
                raise ParameterError("a Pool has a name and a licence: omit name and licence")
            pool = texts
        else:
            pool = Pool(texts, text=text, name=name, licence=licence)
        name, licence = pool.name, pool.licence
        files = tuple(file_digest(file) for file in pool.files if file.is_file())
        lines = tuple(" ".join(entry.split()) for entry in pool.texts)
        if len(lines) < _LEAST:
            raise ParameterError(f"a bank needs at least {_LEAST} distinct texts, got {len(lines)}: provide more texts")
        with progress_bar(progress, "public texts", len(lines)) as done:
            fields: dict[str, Any] = {"together": True, "cache": cache, "progress": done}
            if isinstance(encoder, PublicFeatures):
                features = encoder
            else:
                features = fit_features(encoder, lines[:: -(-len(lines) // _FITTED_ON)], **fields)
            vectors, start = np.empty((len(lines), features.dimension), dtype=np.float32), 0
            for units in encoded_parts(features, lines, **fields):
                np.multiply(units, UNIT, out=vectors[start : start + len(units)], casting="same_kind")
                start += len(units)
        self._hold(lines, vectors, features, name, licence, files)

    def _hold(
        self,
        texts: tuple[str, ...],
        vectors: npt.NDArray[np.float32],
        features: PublicFeatures,
        name: str,
        licence: str | None,
        files: tuple[str, ...],
        **known: Any,
    ) -> None:
        if features.prior:
            raise RefusedError(
                "the bank's word vectors are a private release, and a local release does not count their guarantee: "
                "use public vectors"
            )
        vectors = np.asarray(vectors)  # pickle would copy a memory map
        vectors.flags.writeable = False
        vars(self).update(texts=texts, vectors=vectors, features=features, **known)
        vars(self).update(name=name, licence=licence, files=files)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a bank is immutable, {name!r} cannot be set: create a new one")

    def __len__(self) -> int:
        return len(self.texts)

    def __deepcopy__(self, _memo: object) -> TextBank:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_sets"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.vectors.flags.writeable = False

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 digest of the texts, vectors and features; equal banks have equal fingerprints."""
        digests = {}
        with Path(os.devnull).open("wb") as nowhere:
            for name, write in self._large().items():
                file = HashedFile(nowhere)
                write(file)
                digests[name] = file.digest()
        return _fingerprint(digests, self.features.fingerprint)

    @cached_property
    def profile(self) -> Profile:
        """Similarity of a bank text to the other texts, by rank. It is public and determines the best k."""
        count = min(_PROFILED, len(self))
        rows = np.arange(count, dtype=np.int64) * len(self) // count
        return self._sets.profile(self.vectors[rows], leave_out=rows)

    @cached_property
    def _sets(self) -> NearestSets:
        return NearestSets(self.vectors)

    def nearest(self, vectors: npt.ArrayLike, count: int) -> Rows:
        """Return the (n, count) sorted rows of the bank texts most similar to each of (n, d) vectors of `features`.

        Ties go to the lower row. The result depends only on the vector and the bank, exact to the last bit.
        """
        return self._sets.find(vectors, count)

    def similarities(self, vectors: npt.ArrayLike, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return (n, m) scalar products of (n, d) vectors with (n, m) rows of the bank."""
        return self._sets.similarities(vectors, rows)

    def thinned(self, epsilon: float, *, texts: int | None = None) -> TextBank:
        """Return a smaller bank with the most representative texts for an epsilon.

        Outputs become more similar to their inputs and less varied. The guarantee is unchanged, since the bank and the
        selection are public. It helps below an epsilon of about 12 per draw, if the bank resembles the private texts.

        Args:
            epsilon: privacy budget of one draw.
            texts: number of texts to keep; None keeps twice the effective number.

        Raises:
            ParameterError: a number is out of range.

        >>> bank = TextBank(["tea", "tea and milk", "milk", "tax", "tax law", "law"], encoder="words", cache=False)
        >>> len(bank.thinned(1.0, texts=4))
        4
        """
        floor = optimal_weights(self.vectors, check_float("epsilon", epsilon, above=0, maximum=_MOST_EPSILON))
        kept = default_size(floor) if texts is None else check_int("texts", texts, minimum=_LEAST, maximum=len(self))
        rows = np.sort(np.argsort(-floor, kind="stable")[: max(kept, _LEAST)])
        lines = tuple(self.texts[row] for row in rows.tolist())
        bank = self.__new__(type(self))
        bank._hold(lines, self.vectors[rows], self.features, f"{self.name}, thinned", self.licence, self.files)
        return bank

    def parameters(self) -> dict[str, Parameter]:
        """Return the name, size and digest of the bank, for privacy statements."""
        licence: dict[str, Parameter] = {} if self.licence is None else {"bank_licence": self.licence}
        return {
            "bank": self.name,
            "bank_texts": len(self),
            "bank_sha256": self.fingerprint,
            **licence,
            **self.features.parameters(),
        }

    def save(self, folder: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Save the texts, vectors, features and card in a folder, completely or not at all.

        Args:
            folder: the folder.
            replace: overwrite the folder if this method wrote it.

        Raises:
            ParameterError: the path already exists.
            StorageError: the folder cannot be written.
        """
        target = FOLDER.place(folder, replace=replace)
        config, arrays = self.features.to_parts()
        arrays |= {"ranks": self.profile.ranks, "cumulative": self.profile.cumulative}
        announced = {
            "name": self.name,
            "licence": self.licence,
            "texts": len(self),
            "dimension": self.features.dimension,
            "features": config,
            "files": list(self.files),
        }
        files = {**self._large(), _FEATURES: tensor_bytes(arrays), _CARD: self.card().encode()}
        FOLDER.write(target, announced, files, software=software(), replace=replace)

    def card(self) -> str:
        """Return the Markdown card of the folder: contents, origin and usage."""
        return filled("sentences/templates/card.md", bank=self)

    def _large(self) -> dict[str, Any]:
        return {_VECTORS: self._write_vectors, _TEXTS: self._write_texts}

    def _write_texts(self, file: HashedFile) -> None:
        for start in range(0, len(self), _ROWS):
            file.write("".join(f"{text}\n" for text in self.texts[start : start + _ROWS]).encode())

    def _write_vectors(self, file: HashedFile) -> None:
        np.lib.format.write_array(cast(IO[bytes], file), self.vectors, version=(1, 0))

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], *, encoder: TextEncoder | Sequence[TextEncoder] | None = None
    ) -> TextBank:
        """Load a bank from a folder of `save`.

        Vectors are memory-mapped: their file must not change while the bank is used.

        Args:
            folder: the folder.
            encoder: encoders that the folder does not contain (your own function, a model in another folder).

        Raises:
            DataError: the folder was changed or is not a bank, or an encoder is missing.
            ParameterError: the encoder differs from the saved one.
            MissingExtraError: a package that the features need is not installed.
            StorageError: the folder cannot be read.
        """
        place = check_path("the folder", folder)
        source = place.name or str(place)
        config, _ = FOLDER.read(place, source)
        tensors, _ = read_tensors(place / _FEATURES, source=f"{source}: {_FEATURES}")
        features = PublicFeatures.from_parts(config.get("features", {}), tensors, source, encoder=encoder)
        bank = cls.__new__(cls)
        try:
            vectors = np.asarray(np.lib.format.open_memmap(place / _VECTORS, mode="r"))
            lines = tuple((place / _TEXTS).read_bytes().decode().split("\n")[:-1])
            profile = Profile(tensors["ranks"], tensors["cumulative"], candidates=int(tensors["ranks"][-1]))
            if vectors.shape != (len(lines), features.dimension) or profile.candidates != len(lines) - 1:
                raise ValueError
            fingerprint = _fingerprint(config["sha256"], features.fingerprint)
            known = {"profile": profile, "fingerprint": fingerprint}
            bank._hold(lines, vectors, features, config["name"], config["licence"], tuple(config["files"]), **known)
            _ = bank._sets  # validates every vector
        except OSError as error:
            raise StorageError.of("read", place, error) from None
        except (ParameterError, TypeError, KeyError, IndexError, ValueError):
            raise DataError(f"{source}: its files do not belong together. Get the folder again") from None
        return bank

    def _repr_fields(self) -> Fields:
        yield "name", self.name
        yield "texts", len(self)
        yield "features", self.features.name
        yield "dimension", self.features.dimension
        yield "licence", self.licence


def _fingerprint(digests: Mapping[str, str], features: str) -> str:
    return hashlib.sha256(f"{digests[_VECTORS]}\n{digests[_TEXTS]}\n{features}".encode()).hexdigest()
