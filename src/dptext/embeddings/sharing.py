"""Folders for sharing a release of word vectors: only vectors, statements and a card.

Derivation: docs/howto/word-vectors.md#embeddings-sharing
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from dptext.errors import ParameterError
from dptext.io.artifacts import file_digest
from dptext.io.atomic import HashedFile, check_new_folder
from dptext.privacy.guarantee import NoGuarantee, at_most
from dptext.privacy.statement import OF_SUBSTITUTION, PrivacyStatement
from dptext.privacy.wording import filled
from dptext.validation import check_path
from dptext.vectors.formats import FOLDER, KNOWN_VECTORS, write_binary, write_folder
from dptext.vectors.word_vectors import WordVectors

_CARD = "README.md"
GENSIM_COPY = "vectors.bin"
_REQUIRED_FILES = {"vectors.safetensors", "words.txt", "config.json", "privacy.json", _CARD}
_RELEASE_FILE = re.compile(
    r"vectors\.(safetensors|bin)|words\.txt|config\.json|README\.md|privacy(-[a-z0-9_-]+)?\.json"
)
_SAFE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_DIGEST_SUFFIX = re.compile(r"(^|-)[0-9a-f]{16}$")  # reserved for names that are made safe


class Shareable:
    """Base of models whose vectors may be shared once ``fit`` has set these attributes."""

    vectors_: WordVectors
    statement_: PrivacyStatement
    statements_: dict[str, PrivacyStatement]

    def save(self, folder: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write vectors, statements and a card into a folder, completely or not at all.

        `dptext.load_vectors` loads the vectors with their statement, and gensim its copy ``vectors.bin``. The file
        system records times and owners; ``tar --owner=0 --group=0 --mtime=@0`` leaves them out of an archive. Add the
        licence of the public vectors that the training started from.

        Args:
            folder: path of the new folder (`dptext.embeddings.sharing` lists its files).
            replace: overwrite a folder that was written by this method; never another one.

        Raises:
            ParameterError: the model is not fitted, or has no guarantee; the folder exists.
            StorageError: the folder cannot be written.
        """
        if not hasattr(self, "vectors_"):
            raise ParameterError("there is nothing to save yet: call fit first")
        vectors, statements, statement = self.vectors_, self.statements_, self.statement_
        if isinstance(statement.guarantee, NoGuarantee):
            raise ParameterError(
                "these vectors have no privacy guarantee and must not be shared: keep them with dptext.save_vectors"
            )
        target = check_place(folder, replace=replace)
        files = statement_files(statements) if len(statements) > 1 else {}
        delta = statement.delta
        card = filled(
            "embeddings/templates/card.md",
            vectors=vectors,
            statement=statement,
            statements=statements,
            files=files,
            trained="noise_multiplier" in statement.parameters,
            chance=f"at most 1 in {math.floor(1 / delta * (1 + 1e-12)):,}" if delta > 0 else "0",
            substitution=_substitution,
            number=lambda value: f"{value:g}" if isinstance(value, int | float) else str(value),
            known_vectors=KNOWN_VECTORS,
        )
        levels = {file: statements[level] for level, file in files.items()}
        write_folder(
            vectors,
            target,
            levels=levels,
            extra_files={_CARD: card.encode(), GENSIM_COPY: partial(write_binary, vectors)},
            replace=replace,
        )


def _substitution(statement: PrivacyStatement) -> str | None:
    epsilon, delta = (statement.parameters.get(name) for name in OF_SUBSTITUTION)
    if not isinstance(epsilon, float) or not isinstance(delta, float):
        return None
    return f"epsilon {at_most(epsilon, 4)}, delta {at_most(delta, 3)}"


def is_copy(file: Path, vectors: WordVectors) -> bool:
    """Return True if the copy for gensim contains these vectors."""
    copy = HashedFile(io.BytesIO())
    write_binary(vectors, copy)
    return copy.digest() == file_digest(file)


def check_place(folder: str | os.PathLike[str], *, replace: bool = False) -> Path:
    """Return the path of the folder to be written; raise before the work begins."""
    return check_new_folder(
        check_path("the folder", folder), replace=replace, is_ours=_is_release, holds="released vectors"
    )


def _is_release(folder: Path) -> bool:
    entries = list(folder.iterdir())
    only_ours = all(entry.is_file() and _RELEASE_FILE.fullmatch(entry.name) for entry in entries)
    return only_ours and {entry.name for entry in entries} >= _REQUIRED_FILES and FOLDER.announces(folder)


def statement_files(levels: Iterable[str]) -> dict[str, str]:
    return {level: f"privacy-{_safe_name(level)}.json" for level in levels}


def _safe_name(level: str) -> str:
    if _SAFE_NAME.fullmatch(level) and not _DIGEST_SUFFIX.search(level):
        return level
    digest = hashlib.sha256(level.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    prefix = re.sub(r"[^a-z0-9]+", "-", level.lower()).strip("-")[:24].strip("-")
    return f"{prefix}-{digest}" if prefix else digest
