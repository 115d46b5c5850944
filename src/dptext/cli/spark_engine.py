"""``dptext privatize --engine spark``: the same promise, carried out by the engine that holds the texts."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import typer

from dptext.cli.console import say, stopped_with_notes
from dptext.errors import ParameterError
from dptext.words.mechanism import WordMechanism

__all__ = ["Engine", "check_for_spark", "privatize_on_spark"]


class Engine(StrEnum):
    """What does the work."""

    LOCAL = "local"
    SPARK = "spark"


def check_for_spark(sources: Sequence[str], out: str, foreign: dict[str, object]) -> None:
    """Refuse what Spark has no use for, before anything is loaded.

    Args:
        sources, out: as given.
        foreign: options of other engines, and whether each was asked for.

    Raises:
        ParameterError: it was.
    """
    asked = [f"--{name}" for name, value in foreign.items() if value]
    if asked:
        raise ParameterError(
            f"Spark has no {', '.join(asked)}: leave it out (a run that was stopped left nothing and starts again; "
            "Spark's own configuration says how many work)"
        )
    if "-" in (out, *sources):
        raise ParameterError("Spark reads and writes no pipes: name paths that the cluster sees")
    if not out.rstrip("/").endswith(".parquet"):
        raise ParameterError(f"Spark writes a folder of parquet: expected a name that ends in .parquet, got {out!r}")


def privatize_on_spark(
    sources: Sequence[str],
    out: str,
    mechanism: WordMechanism,
    *,
    text: str,
    keep: Sequence[str],
    kind: str | None,
    seed: int | None,
    force: bool,
    ledger: Path | None,
    ledger_key: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Release, and say what was done."""
    from dptext.spark.files import privatize_files

    with stopped_with_notes(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # about the versions of packages
        statement = privatize_files(
            sources,
            out,
            mechanism,
            text=text,
            keep=keep,
            kind=kind,
            seed=seed,
            force=force,
            ledger=None if ledger is None else str(ledger),
            ledger_key=ledger_key,
        )
    beside = f"{out.rstrip('/')}.privacy.json"
    say(f"Wrote private documents to {out} (a folder of parquet) and what was promised to {beside}.", quiet=quiet)
    say(f"Read it aloud: dptext explain {beside}", quiet=quiet)
    if as_json:
        typer.echo(json.dumps({"out": out, "statement": json.loads(statement.to_json())}, ensure_ascii=False))
