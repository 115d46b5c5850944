"""What a file name announces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dptext.errors import ParameterError

__all__ = ["FORMATS", "NAMES_OF_FORMATS", "FileFormat", "file_format"]

FORMATS = (".txt", ".jsonl", ".csv", ".tsv", ".parquet")
_OTHER_NAMES = {".ndjson": ".jsonl"}
_COMPRESSIONS = (".gz", ".zst")
NAMES_OF_FORMATS = f"{', '.join(FORMATS[:-1])}, each may be {' or '.join(_COMPRESSIONS)}; {FORMATS[-1]}"
"""How names end, for the help of commands."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """What a file name announces.

    Attributes:
        kind: one of `FORMATS`.
        compression: ``""``, ``".gz"`` or ``".zst"``.
    """

    kind: str
    compression: str = ""


def file_format(path: Path) -> FileFormat:
    """The format that a file name announces.

    Raises:
        ParameterError: a suffix that no reader knows.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes[-1:] and suffixes[-1] in _COMPRESSIONS else ""
    kind = suffixes[-1] if suffixes else ""
    kind = _OTHER_NAMES.get(kind, kind)
    if kind not in FORMATS or (kind == ".parquet" and compression):
        raise ParameterError(
            "expected a file name that ends in .txt, .jsonl, .csv, .tsv (each may have .gz or .zst added) or .parquet, "
            f"got {path.name!r}"
        )
    return FileFormat(kind, compression)
