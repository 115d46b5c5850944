"""Public texts and a cache for their vectors."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext import validation
from dptext.display import Fields, ReprMixin, shows_progress
from dptext.errors import ParameterError, StorageError, extra
from dptext.io.atomic import hashed_file
from dptext.io.documents import Document, OnError, PathLike, check_one_column, find_files, read_documents, text_of
from dptext.io.tables import is_table, table_documents, table_kind
from dptext.privacy.statement import Parameter
from dptext.text.tokens import TextUnit, units_of
from dptext.validation import check_choice, check_path, encodable

HUB = "hf://datasets/OWNER/NAME[@REVISION][/SPLIT][?config=CONFIG][:COLUMN]"
"""Address of a data set on the Hugging Face Hub."""
_ADDRESS = re.compile(
    r"hf://datasets/(?P<name>[^/@:?]+(/[^/@:?]+)?)(@(?P<revision>[^/:?]+))?(/(?P<split>[^/@:?[]+(\[[^]]*\])?))?"
    r"(\?config=(?P<config>[^:]+))?(:(?P<column>.+))?"
)


@dataclass(frozen=True)
class HubDataset:
    """Public texts in a data set of the Hugging Face Hub, which is loaded on first use."""

    name: str
    revision: str | None = None
    split: str | None = None
    config: str | None = None
    column: str | None = None

    def __str__(self) -> str:
        parts = {"@": self.revision, "/": self.split, "?config=": self.config, ":": self.column}
        return f"hf://datasets/{self.name}" + "".join(sign + part for sign, part in parts.items() if part is not None)

    @cached_property
    def loaded(self) -> tuple[Any, str, str | None]:
        """The rows of the split, the address with their commit, and the licence, from the Hub or its local cache."""
        datasets, hub = (extra(module, "hub", "hf://") for module in ("datasets", "huggingface_hub"))
        level, has_bars = datasets.logging.get_verbosity(), datasets.is_progress_bar_enabled()
        datasets.logging.set_verbosity_error()
        if not shows_progress():
            datasets.disable_progress_bars()
        try:
            commit, licence = self._card(hub)
            table = datasets.load_dataset(self.name, self.config, split=self.split or "train", revision=commit)
        except Exception as error:  # noqa: BLE001  of two libraries, which raise many kinds
            raise StorageError(f"cannot read {self}: {self._reason(error, hub.errors)}") from None
        finally:
            datasets.logging.set_verbosity(level)
            if has_bars:
                datasets.enable_progress_bars()
        # without a connection, datasets returns its latest copy, even of another commit
        if any(Path(file["filename"]).parent.name != commit for file in table.cache_files):
            raise StorageError(f"cannot read {self}: the local cache has another commit than {commit}. Connect once")
        return table, str(replace(self, revision=commit)), licence

    def _card(self, hub: Any) -> tuple[str, str | None]:
        """Return the commit of the revision and its licence, from the Hub or its local cache."""
        try:
            card = hub.hf_hub_download(self.name, "README.md", repo_type="dataset", revision=self.revision)
        except hub.errors.EntryNotFoundError as error:
            if isinstance(error, hub.errors.LocalEntryNotFoundError):
                raise
            return str(hub.HfApi().dataset_info(self.name, revision=self.revision).sha), None
        licence = hub.DatasetCard.load(card).data.license or []
        names = [licence] if isinstance(licence, str) else licence
        return Path(card).parent.name, ", ".join(name for name in names if name != "unknown") or None

    def _reason(self, error: Exception, errors: Any) -> str:
        reasons = {
            errors.GatedRepoError: "it is open after consent. Give yours at https://huggingface.co/datasets/"
            f"{self.name}, then run `hf auth login`",
            errors.RepositoryNotFoundError: "the Hub has no such data set, or it is private. Correct OWNER/NAME",
            errors.RevisionNotFoundError: "it has no such revision. Correct or omit @REVISION",
            (errors.LocalEntryNotFoundError, ConnectionError): "the Hub cannot be reached, and the local cache does "
            "not have it. Connect once, or name a file",
        }
        known = (text for kinds, text in reasons.items() if isinstance(error, kinds))
        return next(known, None) or f"{' '.join(str(error).splitlines()[:2])} (address: {HUB})"


PublicSource: TypeAlias = Path | HubDataset


def public_sources(names: Any) -> list[PublicSource]:
    """Return the sources of public texts by their names: files, or ``hf://`` addresses of data sets."""
    sources: list[PublicSource] = []
    for name in [names] if isinstance(names, str | os.PathLike | HubDataset) else names:
        if isinstance(name, HubDataset):
            sources.append(name)
        elif not isinstance(name, str) or not name.startswith("hf://"):
            sources.append(check_path("a path of the pool", name))
        elif match := _ADDRESS.fullmatch(name):
            sources.append(HubDataset(**match.groupdict()))
        else:
            raise ParameterError(f"{name!r} is not the address of a data set: write {HUB}")
    return sources


def local_files(sources: Iterable[PublicSource]) -> list[Path]:
    """Return the files of public sources, without data sets of the Hub."""
    return find_files(source for source in sources if isinstance(source, Path))


def read_public(
    sources: Iterable[PublicSource], text: str, *, user: str | None = None, label: str | None = None, **layout: Any
) -> Iterator[Document]:
    """Yield the documents of public sources: of files, then of data sets, whose address may name the text column."""
    sources = list(sources)
    if files := local_files(sources):
        yield from read_documents(files, text=text, user=user, label=label, **layout)
    for source in sources:
        if isinstance(source, HubDataset):
            yield from table_documents(source.loaded[0], text=source.column or text, user=user, label=label)


class PoolName(NamedTuple):
    """Name and digest of a pool whose texts are elsewhere."""

    name: str
    sha256: str
    texts: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


class Pool(ReprMixin):
    """Public texts: candidates for a synthetic corpus, and the texts that public features are fitted on.

    The pool contains the distinct non-empty texts in input order, without surrounding white space. Texts that differ
    only in white space are duplicates.

    **Requirement.** The pool must be public and chosen without regard to the private texts. Do not remove a candidate
    because it occurs in the private file: its absence would reveal this.

    Args:
        texts: a path, or a list of `pathlib.Path` objects (files that `dptext.read_documents` reads, folders,
            patterns); any iterable of strings or `dptext.Document` objects; a table with a column of texts (pandas,
            polars, pyarrow, ``datasets.Dataset``); or a data set of the Hugging Face Hub, by its address
            ``hf://datasets/OWNER/NAME[@REVISION][/SPLIT][?config=CONFIG][:COLUMN]`` (extra ``hub``; the default split
            is "train"), read from the Hub or its local cache.
        text: name of the text column, in tables and in files with columns.
        name: name of the pool in privacy statements and cards; None: the address with its commit, for a data set.
        licence: licence of the texts, for the privacy statement and the card; None: the licence of the data set.
        unit: ``"document"``, or cut every text into its sentences or paragraphs (`dptext.text.tokens`). A paragraph is
            a part between blank lines; one of more than 100 words is cut between sentences. Choose the unit whose
            length comes nearest to what is publicly known of the private texts.
        on_error: ``"fail"`` at the first row that cannot be read, or ``"skip"`` such rows.

    Attributes:
        texts: the texts, or their parts.
        unit: the unit that they were cut into.
        sha256: SHA-256 digest of the texts in order.
        files: input files; outputs must not overwrite them.
        datasets: data sets of the Hub.
        given, empty, repeated, skipped: number of entries (or their parts), of empty or missing entries, of
            duplicates, and of unreadable rows. Only ``given - empty - repeated`` texts remain.

    Raises:
        ParameterError: there are no texts, all are empty, the input has another type, or the column is unknown.
        DataError: an entry is not text, or a row is broken; the message names its position.
        StorageError: a file cannot be read.

    >>> pool = Pool(["Tea, please.", "Tea,  please. ", "", "No tax today."], name="two sentences", licence="CC0-1.0")
    >>> pool
    Pool(name='two sentences', texts=2, licence='CC0-1.0')
    >>> pool.given, pool.empty, pool.repeated
    (4, 1, 1)
    >>> Pool(["Tea, please. No sugar! Thanks.", "Thanks."], unit="sentence").texts
    ('Tea, please.', 'No sugar!', 'Thanks.')
    >>> Pool([" "])
    Traceback (most recent call last):
    ...
    dptext.errors.ParameterError: the pool contains no text (empty entries: 1): provide public texts
    """

    datasets: tuple[HubDataset, ...] = ()

    def __init__(
        self,
        texts: PathLike | Iterable[Any],
        *,
        text: str = "text",
        name: str | None = None,
        licence: str | None = None,
        unit: TextUnit = "document",
        on_error: OnError = "fail",
    ) -> None:
        self.unit: TextUnit = check_choice("unit", unit, get_args(TextUnit))
        self.name = "a public pool" if name is None else validation.check_text("name", name)
        self.licence = None if licence is None else validation.check_text("licence", licence)
        self.files: tuple[Path, ...] = ()
        self.given = self.empty = self.repeated = self.skipped = 0
        seen: set[bytes] = set()
        kept = []
        digest = hashlib.sha256()
        entries = self._entries(texts, validation.check_text("text", text), on_error)
        for part in chain.from_iterable(units_of(entry, self.unit) or [""] for entry in entries):
            self.given += 1
            stripped = encodable(part.strip())
            spaced = hashlib.blake2b(" ".join(stripped.split()).encode(), digest_size=16)
            if not stripped:
                self.empty += 1
            elif spaced.digest() in seen:
                self.repeated += 1
            else:
                seen.add(spaced.digest())
                kept.append(stripped)
                content = stripped.encode()
                digest.update(len(content).to_bytes(8, "big") + content)
        if not kept:
            raise ParameterError(f"the pool contains no text (empty entries: {self.empty:,}): provide public texts")
        if self.datasets:
            origins = [*([("files", None)] if self.files else []), *(source.loaded[1:] for source in self.datasets)]
            self.name = self.name if name else ", ".join(origin for origin, _ in origins)
            licences = dict.fromkeys(allowed for _, allowed in origins)
            self.licence = licence or (None if None in licences else ", ".join(map(str, licences)))
        self.texts = tuple(kept)
        self.sha256 = digest.hexdigest()

    def _entries(self, texts: Any, column: str, on_error: OnError) -> Iterator[str]:
        if isinstance(texts, str | os.PathLike | HubDataset):
            return self._texts_of_sources([texts], column, on_error)
        if is_table(texts):
            kind = table_kind(texts)
            kind.check_column(column)
            return _strings(kind.read(column))
        if not hasattr(texts, "__iter__") or isinstance(texts, bytes):
            raise ParameterError(f"a pool requires paths, texts or a table, got {validation.display_value(texts)}")
        entries: Iterator[Any] = iter(check_one_column(texts))
        first = list(islice(entries, 1))
        if first and isinstance(first[0], os.PathLike | HubDataset):
            return self._texts_of_sources([*first, *entries], column, on_error)
        return _strings(chain(first, entries))

    def _texts_of_sources(self, names: list[Any], column: str, on_error: OnError) -> Iterator[str]:
        sources = public_sources(names)
        self.files = tuple(local_files(sources))
        self.datasets = tuple(source for source in sources if isinstance(source, HubDataset))
        if self.files:
            documents = read_documents(self.files, text=column, on_error=on_error)
            yield from _strings(documents)
            self.skipped = documents.skipped
        yield from _strings(read_public(self.datasets, column))

    @classmethod
    def of(cls, pool: Any) -> Pool:
        """Return a pool unchanged, or create one from texts."""
        return pool if isinstance(pool, Pool) else cls(pool)

    def parameters(self) -> dict[str, Parameter]:
        """Return the name, digest and unit of the pool, for privacy statements."""
        named: dict[str, Parameter] = {"pool": self.name, "pool_texts": len(self), "pool_sha256": self.sha256}
        if self.unit != "document":
            named["pool_unit"] = self.unit
        return named if self.licence is None else named | {"pool_licence": self.licence}

    def assumptions(self) -> tuple[str, ...]:
        """Return the assumptions that the data owner must ensure."""
        return (
            "the pool is public, chosen without regard to the private texts; no candidate was removed because it "
            "occurs in them",
        )

    def exposed(self) -> tuple[str, ...]:
        """Return the parts of a release that contain original public texts."""
        return ("the selected texts of the pool: real sentences of its authors, who are not protected",)

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def _repr_fields(self) -> Fields:
        yield "name", self.name
        yield "texts", len(self)
        yield "licence", self.licence


def _strings(entries: Iterable[Any]) -> Iterator[str]:
    for place, entry in enumerate(entries, 1):
        if isinstance(entry, os.PathLike):
            raise ParameterError("a pool requires paths or texts, got both: pass only one kind")
        yield str(text_of(entry, place) or "")


Cache = str | os.PathLike[str] | Literal[False] | None
"""Cache folder: a path, False for no cache, None for the user's cache folder."""
Vectors = npt.NDArray[np.float32]
_OFF = ("", "0", "off", "no", "false")


def digest_of_texts(texts: Iterable[str]) -> str:
    """Return an unambiguous SHA-256 digest of a list of texts."""
    digest = hashlib.sha256()
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(content) + content)
    return digest.hexdigest()


def pool_cache(cache: Cache) -> PoolCache:
    """Return the cache in a folder, or one that stores nothing."""
    if cache is False:
        return PoolCache(None)
    if cache is not None:
        return PoolCache(check_path("cache", cache))
    named = os.environ.get("DPTEXT_CACHE")
    if named is not None:
        return PoolCache(None if named.strip().lower() in _OFF or "\0" in named else Path(named))
    base = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):
        return PoolCache((Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "dptext")
    return PoolCache(None)


class PoolCache:
    """Cache of float32 arrays in a folder of .npy files; without a folder, nothing is cached."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: str, shape: tuple[int, int]) -> Vectors | None:
        """Return a cached array as a read-only memory map, or None if it is missing or damaged."""
        if self._folder is None or 0 in shape:
            return None
        with suppress(OSError, ValueError):
            vectors: Vectors = np.lib.format.open_memmap(self._place(key), mode="r")
            if vectors.shape == shape and vectors.dtype == np.float32:
                return vectors
        return None

    def put(self, key: str, shape: tuple[int, int], vectors: Vectors) -> Vectors | None:
        """Store an array and return it as a memory map, or None if it cannot be stored."""
        if self._folder is None or 0 in shape:
            return None
        with suppress(StorageError, OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            content = io.BytesIO()
            np.save(content, np.ascontiguousarray(vectors, dtype=np.float32))
            with hashed_file(self._place(key), owner_only=True) as file:
                file.write(content.getbuffer())
            return self.get(key, shape)
        return None

    def _place(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / f"pool-{hashlib.sha256(key.encode()).hexdigest()[:40]}.npy"
