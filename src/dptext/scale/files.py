"""Files that a cluster sees, through a word mechanism, into a folder of parquet with its statement beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dptext.errors import ParameterError
from dptext.privacy.statement import PrivacyStatement
from dptext.scale.rows import quoted
from dptext.scale.session import session, told_in_one_line
from dptext.scale.spark import privatize_scan
from dptext.words.mechanism import WordMechanism

__all__ = ["KINDS", "privatize_files", "read_files"]

KINDS = (".parquet", ".jsonl", ".csv", ".tsv", ".txt")
"""Formats that Spark reads here; text formats may be compressed (.gz, .zst), as Spark tells by the name."""
_OTHER_NAMES = {".ndjson": ".jsonl", ".json": ".jsonl"}


def privatize_files(
    sources: Sequence[str],
    out: str,
    mechanism: WordMechanism,
    *,
    text: str = "text",
    keep: Sequence[str] = (),
    kind: str | None = None,
    seed: int | None = None,
    force: bool = False,
    ledger: str | None = None,
    ledger_key: str | None = None,
) -> PrivacyStatement:
    """Replace every word of files by the running engine, or one of this machine: OUT, a folder, and OUT.privacy.json.

    The files are read once, each row keeps its place, and nothing is shuffled. A run that is stopped leaves nothing
    that counts (no ``_SUCCESS``, no statement): start it again.

    Args:
        sources: files, folders or patterns, as Spark spells paths; all of one format.
        out: a folder that the whole cluster sees; it will hold parquet.
        mechanism, text, keep, seed: as in `dptext.scale.spark.privatize`.
        kind: the format, where the name of the first source does not end with it.
        force: replace what is there.
        ledger, ledger_key: as in `dptext.scale.release.SparkRelease.write`.

    **Guarantee**: that of `dptext.scale.spark.privatize_scan`.

    Raises:
        ParameterError: an argument that does not fit; an output that is there.
        RefusedError: the ledger refuses.
        DataError, StorageError, MissingExtraError: what stopped Spark, and what to do.
    """
    frame = read_files(sources, text=text, kind=kind)
    release = privatize_scan(frame, mechanism, text=text, keep=keep, seed=seed)
    return release.write(out, force=force, ledger=ledger, ledger_key=ledger_key)


def read_files(sources: Sequence[str], *, text: str = "text", kind: str | None = None) -> Any:
    """A DataFrame of files, a row that cannot be read being an error and not a null.

    Raises:
        ParameterError: a format that is not read here.
        StorageError: no such files where Spark looks.
        MissingExtraError: pyspark or Java is not installed.
    """
    found = kind or _kind(sources[0])
    if found not in KINDS:
        raise ParameterError(f"Spark reads {', '.join(KINDS)} here, got {found!r}: name the format of the input")
    reader = session().read.option("mode", "FAILFAST")
    paths = list(sources)
    with told_in_one_line():
        if found == ".parquet":
            return reader.parquet(*paths)
        if found == ".jsonl":
            return reader.json(paths)
        if found == ".txt":
            return reader.text(paths).withColumnRenamed("value", text)
        separated = reader.option("header", "true").option("multiLine", "true").option("escape", '"')
        frame = separated.option("sep", "\t" if found == ".tsv" else ",").csv(paths)
        return frame.fillna("", subset=[quoted(each) for each in frame.columns])  # no cell is an empty one, not null


def _kind(source: str) -> str:
    name = source.rstrip("/").lower().removesuffix(".gz").removesuffix(".zst")
    ending = f".{name.rsplit('.', 1)[-1]}"
    return _OTHER_NAMES.get(ending, ending)
