"""``dptext privatize``: a file of texts in, private texts and their statement out, on this machine or by Spark."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.cli import options
from dptext.cli.console import print_json, stopped_with_notes
from dptext.cli.outputs import check_places, places, release_all
from dptext.errors import ParameterError
from dptext.files.documents import DocumentWriter
from dptext.files.formats import file_format
from dptext.files.streams import STANDARD, is_pipe
from dptext.release.mechanism import TextMechanism
from dptext.release.privatize import privatize_file
from dptext.release.run import check_statement_file, is_released
from dptext.vectors.formats import load_vectors
from dptext.words.mechanism import UnknownWords, WordMechanism
from dptext.words.registry import MECHANISMS, options_of

__all__ = ["privatize"]


_WITH_A_NAME = ("metric", "beta", "threshold", "document_epsilon", "max_words", "index")
_SETTINGS = {
    name: [option for option in options_of(each) if option not in _WITH_A_NAME] for name, each in MECHANISMS.items()
}
_BY_SET = ", ".join(f"{', '.join(settings)} ({name})" for name, settings in _SETTINGS.items() if settings)


@dataclass(frozen=True, kw_only=True)
class WordOptions:
    """Which mechanism replaces words, and with what budget."""

    epsilon: Annotated[
        float,
        typer.Option(help="Nats per unit of distance between two words (subsetselection, custext: nats for a word)."),
    ]
    mechanism: options.Mechanism = "tem"
    vectors: options.Vectors = "glove-6b-50d"
    limit: options.Limit = 50_000
    metric: options.Metric = None
    beta: options.Beta = None
    threshold: Annotated[float | None, typer.Option(help="TEM: distances count up to here.")] = None
    document_epsilon: Annotated[
        float | None, typer.Option(help="TEM: a pure budget for a document (with --max-words).")
    ] = None
    max_words: Annotated[
        int | None,
        typer.Option(
            help="TEM, SubsetSelection: how many words of a document are looked at, which bounds what it costs; later "
            "ones become <unk>."
        ),
    ] = None
    settings: Annotated[
        tuple[str, ...],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help=f"A further option of a mechanism: {_BY_SET}. May be repeated.",
        ),
    ] = ()
    unknown: Annotated[UnknownWords, typer.Option(help="What words outside the vocabulary count as.")] = "unk"
    index: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="TEM: keep an index of the vocabulary there; later runs start fast."),
    ] = None

    def build(self) -> WordMechanism:
        """The mechanism that is asked for.

        Raises:
            ParameterError: an option that it has not, or a value that it refuses.
        """
        given = {name: getattr(self, name) for name in _WITH_A_NAME} | options.parse_settings(self.settings)
        given = {name: value for name, value in given.items() if value is not None}
        build: Any = MECHANISMS[self.mechanism]
        known = set(options_of(build))
        foreign = sorted(given.keys() - known)
        if foreign:
            names = ", ".join(f"--{each.replace('_', '-')}" if each in _WITH_A_NAME else each for each in foreign)
            has = ", ".join(sorted(known)) or "no options"
            raise ParameterError(f"the mechanism {self.mechanism} has no {names}: leave it out (it has {has})")
        vectors = load_vectors(self.vectors, limit=self.limit)
        mechanism: WordMechanism = build(vectors, epsilon=self.epsilon, unknown=self.unknown, **given)
        return mechanism


@options.collected
def privatize(
    *,
    rows: options.Rows,
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="OUT", help="A file; a folder (one file for each IN); - for a pipe."),
    ],
    words: WordOptions,
    run: options.Run,
    processes: options.Processes = 1,
    engine: options.Engine = "local",
    out_format: Annotated[
        str | None, typer.Option("--out-format", metavar="SUFFIX", help="Format of a pipe, or of files in a folder.")
    ] = None,
    statement: Annotated[Path | None, typer.Option(help="Where the statement goes when OUT is a pipe.")] = None,
    charge: options.Charge,
    output: options.Output,
) -> None:
    """Replace every word of a corpus, and write OUT and OUT.privacy.json."""
    if engine == "spark":
        foreign = {"resume": run.resume, "statement": statement, "out-format": out_format}
        foreign |= {"processes": processes != 1, "on-error skip": rows.on_error == "skip"}
        _check_for_spark(rows, out, foreign)
        mechanism = words.build()
        output.say(mechanism.promise_before_start())
        _privatize_on_spark(rows, out, mechanism, run, charge, output)
        return
    to = places(rows, out, out_format=out_format)
    piped = to[0].out == STANDARD
    if charge.ledger is not None and (piped or any(is_pipe(each) for place in to for each in place.sources)):
        raise ParameterError("a ledger reads the input twice and settles with a file: name files as IN and OUT")
    if piped and statement is None:
        raise ParameterError("a pipe has no place for the statement: say where with --statement FILE")
    if piped and (run.resume or charge.ledger_key is not None):
        raise ParameterError("what went through a pipe is gone: --resume and --ledger-key need a file as OUT")
    if not piped and statement is not None:
        raise ParameterError("--statement is for a pipe: beside a file it is named OUT.privacy.json")
    check_places(to, rows, run, charge, lambda path: DocumentWriter(path, text=rows.text, keep=rows.keep))
    if statement is not None:
        check_statement_file([each for place in to for each in place.sources], statement, force=run.force)
    mechanism = words.build()
    done = {
        place.out for place in to if run.resume and not piped and is_released(place.out, mechanism.statement, rows.keep)
    }
    output.say(mechanism.promise_before_start())
    how = rows.reading | asdict(run) | asdict(charge) | {"processes": processes}
    if statement is None:
        release_all(
            to,
            done,
            lambda place, progress: privatize_file(place.sources, place.out, mechanism, progress=progress, **how),
            "private documents",
            output,
            warning=mechanism.warning,
        )
        return
    kind = out_format or rows.in_format or file_format(to[0].sources[0]).kind
    with stopped_with_notes():
        sent = privatize_file(to[0].sources, sys.stdout.buffer, mechanism, to=kind, statement_file=statement, **how)
    output.say(f"Sent {sent.documents:,} private documents; what was promised stands in {statement}.")
    if sent.skipped:
        output.say(f"Left out {sent.skipped:,} rows that could not be read.")


def _check_for_spark(rows: options.Rows, out: str, foreign: Mapping[str, object]) -> None:
    """Refuse what Spark has no use for, before anything is loaded.

    Args:
        rows, out: as given.
        foreign: options of the other engine, and whether each was asked for.

    Raises:
        ParameterError: one was.
    """
    asked = [f"--{name}" for name, value in foreign.items() if value]
    if asked:
        raise ParameterError(
            f"Spark has no {', '.join(asked)}: leave it out (a run that was stopped left nothing and starts again; "
            "Spark's own configuration says how many work)"
        )
    if "-" in (out, *rows.sources):
        raise ParameterError("Spark reads and writes no pipes: name paths that the cluster sees")
    if not out.rstrip("/").endswith(".parquet"):
        raise ParameterError(f"Spark writes a folder of parquet: expected a name that ends in .parquet, got {out!r}")


def _privatize_on_spark(
    rows: options.Rows,
    out: str,
    mechanism: TextMechanism,
    run: options.Run,
    charge: options.Charge,
    output: options.Output,
) -> None:
    from dptext.spark.frames import privatize_scan, read_files

    with stopped_with_notes(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # about the versions of packages
        frame = read_files(rows.sources, text=rows.text, keep=rows.keep, kind=rows.in_format)
        release = privatize_scan(frame, mechanism, text=rows.text, keep=rows.keep, seed=run.seed)
        ledger = None if charge.ledger is None else str(charge.ledger)
        statement = release.write(out, force=run.force, ledger=ledger, ledger_key=charge.ledger_key)
    beside = f"{out.rstrip('/')}.privacy.json"
    output.say(f"Wrote private documents to {out} (a folder of parquet) and what was promised to {beside}.")
    output.say(f"Explained by: dptext explain {beside}")
    if output.as_json:
        print_json({"out": out, "statement": json.loads(statement.to_json())})
