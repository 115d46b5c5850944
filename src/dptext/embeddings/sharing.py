"""A release of word vectors as a folder to hand on: vectors, statements and a card, and nothing else.

Derivation: docs/howto/word-vectors.md#embeddings-sharing
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from dptext.errors import DataError, ParameterError
from dptext.io.artifacts import Content, file_digest
from dptext.io.atomic import HashedFile, check_new_folder
from dptext.privacy.guarantee import NoGuarantee, at_most
from dptext.privacy.statement import OF_SUBSTITUTION, PrivacyStatement
from dptext.privacy.wording import filled
from dptext.validation import check_choice, check_path
from dptext.vectors.formats import FOLDER, KNOWN_VECTORS, check_words, write_binary, write_folder, write_text
from dptext.vectors.word_vectors import WordVectors


def card_of(
    vectors: WordVectors, statements: Mapping[str, PrivacyStatement], *, files: Mapping[str, str], word2vec: str | None
) -> str:
    """The card as Markdown."""
    statement = vectors.statement
    assert statement is not None
    delta = _delta(statement)
    return filled(
        "embeddings/templates/card.md",
        vectors=vectors,
        statement=statement,
        statements=statements,
        files=files,
        word2vec=word2vec,
        trained="noise_multiplier" in statement.parameters,
        chance=f"at most 1 in {math.floor(1 / delta * (1 + 1e-12)):,}" if delta > 0 else "0",
        delta_of=_delta,
        substitution=_substitution,
        number=_number,
        known_vectors=KNOWN_VECTORS,
    )


def _delta(statement: PrivacyStatement) -> float:
    return float(getattr(statement.guarantee, "delta", 0.0))


def _substitution(statement: PrivacyStatement) -> str | None:
    epsilon, delta = (statement.parameters.get(name) for name in OF_SUBSTITUTION)
    if not isinstance(epsilon, float) or not isinstance(delta, float):
        return None
    return f"epsilon {at_most(epsilon, 4)}, delta {at_most(delta, 3)}"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


Word2VecFormat: TypeAlias = Literal["binary", "text"]

_CARD = "README.md"
_WORD2VEC = {"binary": ("vectors.bin", write_binary), "text": ("vectors.txt", write_text)}
_ALWAYS = {"vectors.safetensors", "words.txt", "config.json", "privacy.json", _CARD}
_OURS = _ALWAYS | {"vectors.bin", "vectors.txt"}
_OF_A_LEVEL = re.compile(r"privacy-[a-z0-9_-]+\.json")
_SAFE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_LIKE_OURS = re.compile(r"(^|-)[0-9a-f]{16}$")  # a name that looks like what another one becomes


class Shareable:
    """What learns vectors that may be shared once ``fit`` has set these attributes."""

    vectors_: WordVectors
    statement_: PrivacyStatement
    statements_: dict[str, PrivacyStatement]

    def save(
        self, folder: str | os.PathLike[str], *, word2vec: Word2VecFormat | None = "binary", replace: bool = False
    ) -> None:
        """Write what may be shared into a folder: vectors, statements and a card, whole or not at all.

        `dptext.load_vectors` gives the vectors back with their statement. The file system adds times and owners:
        ``tar --owner=0 --group=0 --mtime=@0`` leaves them out of an archive. Add the licence of the public vectors that
        these started from.

        Args:
            folder: where (`dptext.embeddings.sharing` says what will be in it).
            word2vec: a copy for gensim: "binary" (``vectors.bin``), "text" (``vectors.txt``), or None.
            replace: overwrite a folder that was written by this method; never another one.

        Raises:
            ParameterError: nothing was learned yet, or it was learned without a promise; something is there already.
            DataError: a word that the copy cannot hold.
            StorageError: it cannot be written.
        """
        if not hasattr(self, "vectors_"):
            raise ParameterError("there is nothing to save yet: call fit first")
        if isinstance(self.statement_.guarantee, NoGuarantee):
            raise ParameterError(
                "these vectors were trained without a promise, and are not to be shared; dptext.save_vectors keeps them"
            )
        save_release(folder, self.vectors_, self.statements_, word2vec=word2vec, replace=replace)


def save_release(
    folder: str | os.PathLike[str],
    vectors: WordVectors,
    statements: Mapping[str, PrivacyStatement],
    *,
    word2vec: Word2VecFormat | None = "binary",
    replace: bool = False,
) -> None:
    """Write the folder, whole or not at all; the folder around it must be there."""
    if vectors.statement is None:
        raise ParameterError("these vectors carry no statement: they were not released, dptext.save_vectors saves them")
    if word2vec is not None:
        check_choice("word2vec", word2vec, get_args(Word2VecFormat), also=" or None")
    check_copy(vectors.words, word2vec)
    target = check_place(folder, replace=replace)
    files = statement_files(statements) if len(statements) > 1 else {}
    levels = {file: statements[level] for level, file in files.items()}
    copy, write = (None, None) if word2vec is None else _WORD2VEC[word2vec]
    extra_files: dict[str, Content] = {_CARD: card_of(vectors, statements, files=files, word2vec=copy).encode()}
    if copy is not None and write is not None:
        extra_files[copy] = partial(write, vectors)
    write_folder(vectors, target, levels=levels, extra_files=extra_files, replace=replace)


def check_copies(folder: Path, vectors: WordVectors) -> Iterator[tuple[str, bool]]:
    for name, write in _WORD2VEC.values():
        if (folder / name).exists():
            file = HashedFile(io.BytesIO())
            write(vectors, file)
            yield name, file.digest() == file_digest(folder / name)


def check_copy(words: Sequence[str], word2vec: Word2VecFormat | None) -> None:
    """Raise a `DataError`, before the work, where the copy for gensim cannot hold these words; the row is named."""
    try:
        if word2vec is not None:
            check_words(words)
    except DataError as error:
        raise DataError(f"{error}, or make no copy for gensim (word2vec=None)") from None


def check_place(folder: str | os.PathLike[str], *, replace: bool = False) -> Path:
    """Where the folder will lie; raised before the work."""
    return check_new_folder(
        check_path("the folder", folder), replace=replace, is_ours=_holds_a_release, holds="released vectors"
    )


def _holds_a_release(folder: Path) -> bool:
    inside = list(folder.iterdir())
    names = {entry.name for entry in inside}
    is_release = names >= _ALWAYS and all(map(_is_ours, names)) and all(entry.is_file() for entry in inside)
    return is_release and FOLDER.announces(folder)


def _is_ours(name: str) -> bool:
    return name in _OURS or _OF_A_LEVEL.fullmatch(name) is not None


def statement_files(levels: Iterable[str]) -> dict[str, str]:
    """The file of each level's statement."""
    return {level: f"privacy-{_safe(level)}.json" for level in levels}


def _safe(level: str) -> str:
    if _SAFE_NAME.fullmatch(level) and not _LIKE_OURS.search(level):
        return level
    digest = hashlib.sha256(level.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    left = re.sub(r"[^a-z0-9]+", "-", level.lower()).strip("-")[:24].strip("-")
    return f"{left}-{digest}" if left else digest
