"""Text banks: the public texts that can replace a private text, and the selection of the most representative ones.

Derivation: docs/mechanisms/sentences.md#sentences-thinning
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ProgressOption, ReprMixin, progress_bar
from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.features.features import UNIT, PublicFeatures, Spec, encoded_parts, fit_and_encode
from dptext.features.pool import Cache, Pool
from dptext.io.artifacts import SavedFolder, file_digest, read_tensors, tensor_bytes
from dptext.io.atomic import HashedFile
from dptext.noise.subset_selection import Profile
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, software
from dptext.privacy.wording import filled
from dptext.representations.encoders import TextEncoder, check_texts
from dptext.threads import for_each_block
from dptext.validation import check_float, check_int, check_path
from dptext.vectors.nearest_sets import NearestSets

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_STEPS, _QUERIES = 40, 256
_RATE, _SLOWER = 4.0, 20.0  # of the steps, and after how many they are shorter
_FARTHEST = 0.5  # that a logarithm of a floor moves in a step
_BINS = 8192  # of similarities, in which the end of S(x) is sought: nothing but the choice of texts rests on it
_SCORES = 1 << 23
_SEED = 2026  # public: equal banks are thinned alike
_VARIETY = 2  # times as many texts as carry the weight: it costs hardly any similarity


def floors(vectors: npt.NDArray[np.float32], epsilon: float) -> Floats:
    """(N,) the floors of the texts of a bank under which a draw is most similar to a public text."""
    count, ratio = len(vectors), math.exp(epsilon)
    inside = max(1.0, count / (1 + ratio))
    floor = np.full(count, 1 / (inside * ratio + count - inside))
    total = np.zeros(count)
    bits = RandomBits(seed=_SEED)
    for step in range(_STEPS):
        queries = bits.below(np.full(min(_QUERIES, count), count, dtype=np.uint64)).astype(np.int64)
        gain = _gradient(vectors, queries, floor, ratio) * _RATE / math.sqrt(1 + step / _SLOWER)
        floor *= np.exp(np.clip(gain, -_FARTHEST, _FARTHEST))
        mass = float(floor.sum())
        floor *= min(max(mass, 1.05 / ratio), 0.999) / mass  # S(x) holds something, and not everything
        if step >= _STEPS // 2:
            total += floor
    return total / (_STEPS - _STEPS // 2)


def usual_size(floor: Floats) -> int:
    """How many texts to keep: twice as many as carry the weight (the exponential of the entropy of their floors)."""
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
            above = score - _end(score, floor, mass)
            sums += np.where(above > 0, ratio * above, above)
        result[place] = sums

    for_each_block(add, range(len(parts)))
    total: Floats = np.sum(result, axis=0)  # in one order: equal on any number of threads
    return total / len(queries)


def _end(similarity: npt.NDArray[np.float32], floor: Floats, mass: float) -> float:
    """The similarity at which the most similar texts hold so much of the floors."""
    places = np.clip((similarity + 1) * (_BINS / 2), 0, _BINS).astype(np.int64)
    held = np.cumsum(np.bincount(places, weights=floor, minlength=_BINS + 1)[::-1])
    return (_BINS - int(np.searchsorted(held, mass))) * 2 / _BINS - 1


_LEAST = 3
_FITTED_ON = 20_000  # texts: what a few more would change of the features is nothing
_PROFILED = 256  # texts whose neighbours stand for those of private ones
_MOST_EPSILON = 20.0  # of a draw that gains by a thinner bank
_ROWS = 4096
_PART = 1 << 24

_VECTORS, _TEXTS, _FEATURES, _CARD = "vectors.npy", "texts.txt", "features.safetensors", "README.md"
_FOLDER = SavedFolder(
    format="dptext-text-bank",
    version=1,
    writer="TextBank.save",
    holds="a bank",
    keys=("name", "licence", "texts", "dimension", "features", "files"),
    files=(_VECTORS, _TEXTS, _FEATURES, _CARD),
    large=2,
)


class TextBank(ReprMixin):
    """Public texts with their vectors, frozen: a private text becomes one of them (`dptext.BankRewriter`).

    Kept are the distinct texts that are not empty, in the order in which they came, each on one line: white space
    within becomes single spaces.

    **What must hold.** The bank is public: nothing is promised to those who wrote its texts. It was chosen without a
    look at the private texts, and nothing was left out because it stands in them. What comes out is a text of the bank,
    word for word: names, numbers and claims in it are those of the bank's authors, and can be false of the writer.

    Args:
        texts: what `dptext.Pool` takes: a path, texts, a table; or a `Pool`.
        encoder: by which texts are similar: what `dptext.Synthesizer` takes as ``features``, with the same default, or
            `PublicFeatures`.
        text: the column that holds the texts, in tables and in files that have columns.
        name, licence: of the source, for statement and card; of a `Pool` its own.
        cache: where vectors of the bank are kept (`dptext.features.pool`): a folder, False for nowhere, None for
            the user's cache folder. Private texts never go there.
        progress: a bar, as `dptext.display` says; or called with the number of texts that went through an encoder that
            takes its time.

    Attributes:
        texts: (N,) the texts.
        vectors: (N, d) float32, read-only: whole units of 2^-15, of length at most 1 each.
        features: text to vector; of a private text, from this text alone to the last bit.
        name, licence: of the source.
        files: SHA-256 of each file that the texts were read from: none of them is a private one.

    Raises:
        ParameterError: fewer than three distinct texts; as `Pool`.
        RefusedError: features of word vectors that were released under a promise, and are not public.
        DataError, StorageError, MissingExtraError: as `Pool` and the features.

    >>> bank = TextBank(["I like tea.", "I like  tea.", "He pays his tax.", "Dogs bark."], encoder="words", cache=False)
    >>> bank
    TextBank(name='a public pool', texts=3, features='words', dimension=3)
    >>> bank.texts[0]
    'I like tea.'
    """

    texts: Sequence[str]
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
                raise ParameterError("a Pool has its own name and licence: leave name and licence out")
            pool = texts
        else:
            pool = Pool(texts, text=text, name=name, licence=licence)
        name, licence = pool.name, pool.licence
        files = tuple(file_digest(file) for file in pool.files if file.is_file())
        lines = _Lines.of(" ".join(entry.split()) for entry in pool.texts)
        del texts, pool  # of a million texts more than the lines take
        if len(lines) < _LEAST:
            raise ParameterError(f"a bank needs at least {_LEAST} distinct texts to choose from, got {len(lines)}")
        with progress_bar(progress, "public texts", len(lines)) as done:
            fields: dict[str, Any] = {"together": True, "cache": cache, "progress": done}
            if isinstance(encoder, PublicFeatures):
                features, parts = encoder, encoded_parts(encoder, lines, **fields)
            else:
                features, parts = fit_and_encode(encoder, lines, most=_FITTED_ON, **fields)
            vectors, start = np.empty((len(lines), features.dimension), dtype=np.float32), 0
            for units in parts:
                np.multiply(units, UNIT, out=vectors[start : start + len(units)], casting="same_kind")
                start += len(units)
        self._hold(lines, vectors, features, name, licence, files)

    def _hold(
        self,
        texts: _Lines,
        vectors: npt.NDArray[np.float32],
        features: PublicFeatures,
        name: str,
        licence: str | None,
        files: tuple[str, ...],
        **known: Any,
    ) -> None:
        if features.prior:
            raise RefusedError(
                "the bank's word vectors were released under a promise to the people in their training, which a local "
                "release would not count in: use public vectors"
            )
        vectors = np.asarray(vectors)  # a memory map, which pickle would copy, as the array that it is
        vectors.flags.writeable = False
        vars(self).update(texts=texts, vectors=vectors, features=features, **known)
        vars(self).update(name=name, licence=licence, files=files)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a bank is frozen, {name!r} cannot be set: make another one")

    def __len__(self) -> int:
        return len(self.texts)

    def __copy__(self) -> TextBank:
        return self

    def __deepcopy__(self, _memo: object) -> TextBank:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_sets"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.vectors.flags.writeable = False

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over texts, vectors and what makes them: banks that share it are the same."""
        digests = {}
        with Path(os.devnull).open("wb") as nowhere:
            for name, write in self._large().items():
                file = HashedFile(nowhere)
                write(file)
                digests[name] = file.digest()
        return _fingerprint(digests, self.features.fingerprint)

    @cached_property
    def profile(self) -> Profile:
        """How similar the texts of each rank are to a text of the bank that is taken out: public, and what the best k
        is chosen by."""
        rows = _spread(len(self))
        return self._sets.profile(self.vectors[rows], leave_out=rows)

    def profile_of(self, texts: Iterable[str | None]) -> Profile:
        """How similar the texts of each rank are to other *public* texts: whether the bank fits texts of their kind.

        Never give private ones: nothing protects what this says of them.

        Raises:
            ParameterError: no texts.
        """
        values = check_texts(texts)
        return self._sets.profile(self.features.vectors([values[row] for row in _spread(len(values)).tolist()]))

    @cached_property
    def _sets(self) -> NearestSets:
        return NearestSets(self.vectors)

    def nearest(self, vectors: npt.ArrayLike, count: int) -> Rows:
        """(n, count) the rows of the texts most similar to each of (n, d) vectors of `features`, as a set in ascending
        order; ties go to the lower row. It is a function of the vector and the bank, to the last bit."""
        return self._sets.find(vectors, count)

    def similarities(self, vectors: npt.ArrayLike, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """(n, m) similarity of each of (n, d) vectors to (n, m) rows: the scalar product."""
        return self._sets.similarities(vectors, rows)

    def thinned(self, epsilon: float, *, texts: int | None = None) -> TextBank:
        """The texts of this bank that stand best for others at an epsilon, as a bank of their own: what comes out is
        then more similar, and less varied. What is drawn keeps its promise: a bank is public, and so is this choice.

        It pays below an epsilon of about 12 for a draw, where few texts can be told apart, and where the bank is of the
        private texts' kind.

        Args:
            epsilon: of one draw.
            texts: how many to keep; None: twice as many as carry the weight.

        Raises:
            ParameterError: a number out of range.

        >>> bank = TextBank(["tea", "tea and milk", "milk", "tax", "tax law", "law"], encoder="words", cache=False)
        >>> len(bank.thinned(1.0, texts=4))
        4
        """
        floor = floors(self.vectors, check_float("epsilon", epsilon, above=0, maximum=_MOST_EPSILON))
        kept = usual_size(floor) if texts is None else check_int("texts", texts, minimum=_LEAST, maximum=len(self))
        rows = np.sort(np.argsort(-floor, kind="stable")[: max(kept, _LEAST)])
        lines = _Lines.of(self.texts[row] for row in rows.tolist())
        bank = self.__new__(type(self))
        bank._hold(lines, self.vectors[rows], self.features, f"{self.name}, thinned", self.licence, self.files)
        return bank

    def parameters(self) -> dict[str, Parameter]:
        """Which bank, for statements."""
        licence: dict[str, Parameter] = {} if self.licence is None else {"bank_licence": self.licence}
        return {
            "bank": self.name,
            "bank_texts": len(self),
            "bank_sha256": self.fingerprint,
            **licence,
            **self.features.parameters(),
        }

    # -- as a folder ------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write texts, vectors, features and a card into a folder, whole or not at all.

        Args:
            folder: where.
            replace: overwrite a folder that was written by this method; never another one.

        Raises:
            ParameterError: something is there already.
            StorageError: it cannot be written.
        """
        target = check_place(folder, replace=replace)
        config, arrays = self.features.to_parts()
        arrays |= {"ranks": self.profile.ranks, "cumulative": self.profile.cumulative}
        _FOLDER.write(
            target,
            {
                "name": self.name,
                "licence": self.licence,
                "texts": len(self),
                "dimension": self.features.dimension,
                "features": config,
                "files": list(self.files),
            },
            {**self._large(), _FEATURES: tensor_bytes(arrays), _CARD: self.card().encode()},
            software=software(),
            replace=replace,
        )

    def card(self) -> str:
        """The card of the folder, as Markdown: what it holds, whose texts they are, how to use it."""
        return filled("sentences/templates/card.md", bank=self)

    def _large(self) -> dict[str, Any]:
        return {_VECTORS: self._write_vectors, _TEXTS: self._lines.write}

    @property
    def _lines(self) -> _Lines:
        assert isinstance(self.texts, _Lines)
        return self.texts

    def _write_vectors(self, file: HashedFile) -> None:
        head = io.BytesIO()
        described = {"descr": "<f4", "fortran_order": False, "shape": self.vectors.shape}
        np.lib.format.write_array_header_1_0(head, described)
        file.write(head.getvalue())
        for start in range(0, len(self), _ROWS):
            file.write(self.vectors[start : start + _ROWS].astype("<f4").tobytes())

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], *, encoder: TextEncoder | Sequence[TextEncoder] | None = None
    ) -> TextBank:
        """The bank in a folder that `save` wrote. Texts and vectors are mapped from their files, which must stay as
        they are for as long as it is used.

        Args:
            folder: where.
            encoder: those of its features that the folder cannot hold (a caller's function, a model elsewhere).

        Raises:
            DataError: the folder was changed, or is none; an encoder has to be given.
            ParameterError: the given encoder is not the one that was saved.
            MissingExtraError: what its features need is not installed.
            StorageError: it cannot be read.
        """
        place = check_path("the folder", folder)
        source = place.name or str(place)
        config, _ = _FOLDER.read(place, source)
        tensors, _ = read_tensors(place / _FEATURES, source=f"{source}: {_FEATURES}")
        features = PublicFeatures.from_parts(config.get("features", {}), tensors, source, given=encoder)
        bank = cls.__new__(cls)
        try:
            vectors = np.asarray(np.lib.format.open_memmap(place / _VECTORS, mode="r"))
            lines = _Lines(np.asarray(np.memmap(place / _TEXTS, dtype=np.uint8, mode="r")))
            lines.check()
            profile = Profile(tensors["ranks"], tensors["cumulative"], candidates=int(tensors["ranks"][-1]))
            shape = (len(lines), features.dimension)
            text = isinstance(config["name"], str) and isinstance(config["licence"], str | None)
            text = (
                text and isinstance(config["files"], list) and all(isinstance(entry, str) for entry in config["files"])
            )
            if (
                not text
                or len(lines) < _LEAST
                or vectors.dtype != np.float32
                or not vectors.flags.c_contiguous
                or not vectors.shape == shape == (config["texts"], config["dimension"])
                or profile.candidates != len(lines) - 1
            ):
                raise ValueError
            bank._hold(
                lines,
                vectors,
                features,
                config["name"],
                config["licence"],
                tuple(config["files"]),
                profile=profile,
                fingerprint=_fingerprint(config["sha256"], features.fingerprint),
            )
            _ = bank._sets  # which looks at every vector
        except OSError as error:
            raise StorageError.of("read", place, error) from None
        except (ParameterError, TypeError, KeyError, IndexError, ValueError, OverflowError) as error:
            why = f" ({error})" if isinstance(error, ParameterError) else ""
            raise DataError(f"{source}: its files are not of one bank{why}; get the folder again") from None
        return bank

    def _repr_fields(self) -> Fields:
        yield "name", self.name
        yield "texts", len(self)
        yield "features", self.features.name
        yield "dimension", self.features.dimension
        yield "licence", self.licence


def check_place(folder: str | os.PathLike[str], *, replace: bool = False) -> Path:
    """Where `TextBank.save` would write a folder; raised before the work."""
    return _FOLDER.place(folder, replace=replace)


def announces_bank(folder: Path) -> bool:
    """Whether the configuration of a folder says that `TextBank.save` wrote it; nothing else is looked at."""
    return _FOLDER.announces(folder)


def _spread(texts: int) -> Rows:
    """Rows of so many texts whose profile stands for that of all."""
    count = min(_PROFILED, texts)
    return np.arange(count, dtype=np.int64) * texts // max(1, count)


def _fingerprint(digests: Mapping[str, str], features: str) -> str:
    return hashlib.sha256(f"{digests[_VECTORS]}\n{digests[_TEXTS]}\n{features}".encode()).hexdigest()


class _Lines(Sequence[str]):
    def __init__(self, content: npt.NDArray[np.uint8]) -> None:
        self._content = np.asarray(content)
        starts = range(0, content.size, _PART)
        ends = [np.flatnonzero(content[start : start + _PART] == ord("\n")) + start for start in starts]
        self._ends: Rows = np.concatenate([np.array([-1]), *ends])

    @classmethod
    def of(cls, texts: Iterator[str]) -> _Lines:
        content = bytearray()
        for text in texts:
            content += text.encode() + b"\n"
        return cls(np.frombuffer(content, dtype=np.uint8))

    def check(self) -> None:
        """Whether each of them can be given out and holds something."""
        is_whole = len(self) > 0 and self._ends[-1] == self._content.size - 1 and (np.diff(self._ends) > 1).all()
        decoder = getincrementaldecoder("utf-8")()
        try:
            for start in range(0, self._content.size, _PART):
                decoder.decode(self._content[start : start + _PART].tobytes())
        except UnicodeDecodeError:  # which holds what it was to decode
            is_whole = False
        if not is_whole:
            raise ValueError("these are not lines of UTF-8")

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[index] for index in range(*place.indices(len(self)))]
        position = range(len(self))[place]
        return self._content[self._ends[position] + 1 : self._ends[position + 1]].tobytes().decode()

    def write(self, file: HashedFile) -> None:
        for start in range(0, self._content.size, _PART):
            file.write(self._content[start : start + _PART].tobytes())
