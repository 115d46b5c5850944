"""``dptext privatize``: a file of texts in, private texts and their statement out."""

from __future__ import annotations

import sys
from enum import StrEnum
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.cli.console import (
    ConfigOption,
    JsonOption,
    QuietOption,
    VerboseOption,
    say,
    stopped_with_notes,
)
from dptext.cli.places import places
from dptext.cli.releases import print_summary, release_all, tell
from dptext.cli.spark_engine import Engine, check_for_spark, privatize_on_spark
from dptext.errors import ParameterError
from dptext.files.documents import read_documents
from dptext.files.formats import STANDARD, file_format, is_pipe
from dptext.files.writers import DocumentWriter
from dptext.privacy.guarantee import MetricDP, at_most
from dptext.vectors.formats import KNOWN_VECTORS, load_vectors
from dptext.words.corpus import (
    check_output,
    check_statement_file,
    is_released,
    privatize_file,
    privatize_stream,
)
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import MECHANISMS
from dptext.words.tem import TEM

__all__ = ["privatize", "promise_before_start"]


class MechanismName(StrEnum):
    """The mechanisms that the command line offers: those of the registry that have a proof."""

    TEM = "tem"
    MADLIB = "madlib"
    MAHALANOBIS = "mahalanobis"
    SANTEXT = "santext"
    SANTEXT_PLUS = "santext+"
    CUSTEXT = "custext"
    VICKREY = "vickrey"
    ORDERED_LIST = "orderedlist"


class UnknownPolicy(StrEnum):
    """What a word outside the vocabulary counts as."""

    UNK = "unk"
    UNIFORM = "uniform"


class BadRows(StrEnum):
    """What to do with a row that cannot be read."""

    FAIL = "fail"
    SKIP = "skip"


def privatize(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="IN...",
            help="Files (.txt, .jsonl, .csv, .tsv, each may be .gz or .zst; .parquet), folders, patterns, or - for "
            "standard input.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="OUT", help="A file; a folder (one file for each IN); - for a pipe."),
    ],
    epsilon: Annotated[float, typer.Option(help="Nats per unit of distance between two words.")],
    text: Annotated[str, typer.Option(help="The column that holds the text.")] = "text",
    keep: Annotated[
        list[str] | None,
        typer.Option(help="A column to keep as it is (may be repeated); it is exposed. All others are dropped."),
    ] = None,
    mechanism: Annotated[MechanismName, typer.Option(help="How words are replaced.")] = MechanismName.TEM,
    vectors: Annotated[
        str, typer.Option(metavar="NAME|PATH", help=f"Public word vectors: {', '.join(KNOWN_VECTORS)}, file or folder.")
    ] = "glove-6b-50d",
    limit: Annotated[int, typer.Option(help="Use this many of the most frequent words.")] = 50_000,
    metric: Annotated[
        str | None, typer.Option(help="TEM: euclidean, angular, manhattan, chebyshev or poincare.")
    ] = None,
    beta: Annotated[float | None, typer.Option(help="TEM: how rarely a word goes farther than the threshold.")] = None,
    threshold: Annotated[float | None, typer.Option(help="TEM: distances count up to here.")] = None,
    document_epsilon: Annotated[
        float | None, typer.Option(help="TEM: a pure budget for a document (with --max-words).")
    ] = None,
    max_words: Annotated[
        int | None, typer.Option(help="TEM: how many words of a document the budget covers; later ones become <unk>.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option of another mechanism: lambda_ (mahalanobis), t (vickrey), sensitive, p, reach (santext+), "
            "size (custext), order (orderedlist). May be repeated.",
        ),
    ] = None,
    unknown: Annotated[
        UnknownPolicy, typer.Option(help="What words outside the vocabulary count as.")
    ] = UnknownPolicy.UNK,
    index: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="TEM: keep an index of the vocabulary there; later runs start fast."),
    ] = None,
    on_error: Annotated[
        BadRows, typer.Option(help="A row that cannot be read: stop, or leave it out and list it in OUT.rejects.jsonl.")
    ] = BadRows.FAIL,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A ledger that charges every row, or refuses the release.")
    ] = None,
    ledger_key: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Which row or person a row is, for the ledger (else: the text)."),
    ] = None,
    processes: Annotated[int, typer.Option(help="How many processes work; the output does not depend on it.")] = 1,
    engine: Annotated[
        Engine, typer.Option(help="What does the work: this machine, or Spark on paths that its cluster sees.")
    ] = Engine.LOCAL,
    in_format: Annotated[
        str | None, typer.Option("--format", metavar="SUFFIX", help="Format of IN where its name does not tell.")
    ] = None,
    out_format: Annotated[
        str | None, typer.Option("--out-format", metavar="SUFFIX", help="Format of a pipe, or of files in a folder.")
    ] = None,
    statement: Annotated[Path | None, typer.Option(help="Where the statement goes when OUT is a pipe.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeatable noise, for tests and papers only: it voids the promise.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT, or an interrupted run of it.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    _verbose: VerboseOption = False,
    _config: ConfigOption = None,
) -> None:
    """Replace every word of a corpus, and write OUT and OUT.privacy.json."""
    kept = tuple(keep or ())
    options = {
        "metric": metric,
        "beta": beta,
        "threshold": threshold,
        "document_epsilon": document_epsilon,
        "max_words": max_words,
        "index": index,
        **parse_settings(settings or []),
    }
    if engine is Engine.SPARK:
        foreign = {"resume": resume, "statement": statement, "out-format": out_format, "processes": processes != 1}
        check_for_spark(sources, out, {**foreign, "on-error skip": on_error is BadRows.SKIP})
        built = build_mechanism(mechanism, vectors, limit, epsilon, unknown, options)
        say(promise_before_start(built), quiet=quiet)
        privatize_on_spark(
            sources,
            out,
            built,
            text=text,
            keep=kept,
            kind=in_format,
            seed=seed,
            force=force,
            ledger=ledger,
            ledger_key=ledger_key,
            as_json=as_json,
            quiet=quiet,
        )
        return
    to = places(sources, out, in_format=in_format, out_format=out_format)
    piped = to[0].out == STANDARD
    how: dict[str, Any] = {"text": text, "keep": kept, "on_error": on_error.value, "suffix": in_format}
    if ledger is not None and (piped or any(is_pipe(each) for place in to for each in place.sources)):
        raise ParameterError("a ledger reads the input twice and settles with a file: name files as IN and OUT")
    if piped and statement is None:
        raise ParameterError("a pipe has no place for the statement: say where with --statement FILE")
    if piped and (resume or ledger_key is not None):
        raise ParameterError("what went through a pipe is gone: --resume and --ledger-key need a file as OUT")
    if not piped and statement is not None:
        raise ParameterError("--statement is for a pipe: beside a file it is named OUT.privacy.json")
    every = [each for place in to for each in place.sources]
    for place in to:  # what can fail fails before the work starts; a pipe can be opened once only
        read_documents([each for each in place.sources if not is_pipe(each)], **how).close()
        if not piped:
            DocumentWriter(place.out, text=text, keep=kept)
        if not piped:
            check_output(every, place.out, force=force or resume, ledger=ledger, makes_folder=place.is_in_folder)
    if statement is not None:
        check_statement_file(every, statement, force=force)
    built = build_mechanism(mechanism, vectors, limit, epsilon, unknown, options)
    done = {place.out for place in to if resume and not piped and is_released(place.out, built, kept)}
    say(promise_before_start(built), quiet=quiet)
    how |= {"seed": seed, "processes": processes, "force": force}
    if piped:
        to_format = out_format or in_format or file_format(to[0].sources[0]).kind
        with stopped_with_notes():
            sent = privatize_stream(
                to[0].sources, sys.stdout.buffer, built, to=to_format, statement_file=statement or Path(), **how
            )
        say(f"Sent {sent.documents:,} private documents; what was promised stands in {statement}.", quiet=quiet)
        if sent.skipped:
            say(f"Left out {sent.skipped:,} rows that could not be read.", quiet=quiet)
        return
    releases = release_all(
        to,
        done,
        lambda place, progress: privatize_file(
            place.sources,
            place.out,
            built,
            resume=resume,
            ledger=ledger,
            ledger_key=ledger_key,
            progress=progress,
            **how,
        ),
        quiet=quiet,
    )
    for release in releases:
        tell(release, "private documents", quiet=quiet, note=release.tally.warning())
    if as_json:
        print_summary(releases)


def build_mechanism(
    name: str,
    vectors: str,
    limit: int,
    epsilon: float,
    unknown: str,
    options: dict[str, str | float | int | None],
) -> WordMechanism:
    """The mechanism that the options ask for."""
    given = {key: value for key, value in options.items() if value is not None}
    build: Any = MECHANISMS[name]
    known = set(signature(build).parameters) - {"vectors", "epsilon", "unknown", "unsafe_as_published"}
    foreign = sorted(given.keys() - known)
    if foreign:
        names = ", ".join(f"--{key.replace('_', '-')}" if key in _OF_TEM else key for key in foreign)
        has = ", ".join(sorted(known)) or "no options"
        raise ParameterError(f"the mechanism {name} has no {names}: leave it out (it has {has})")
    mechanism: WordMechanism = build(load_vectors(vectors, limit=limit), epsilon=epsilon, unknown=unknown, **given)
    return mechanism


_OF_TEM = {"metric", "beta", "threshold", "document_epsilon", "max_words", "index"}


def parse_settings(settings: list[str]) -> dict[str, str | float | int | None]:
    """``["t=0.5"]`` as ``{"t": 0.5}``.

    Raises:
        ParameterError: no equals sign, or a name twice.
    """
    found: dict[str, str | float | int | None] = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign or not name or name in found:
            raise ParameterError(f"--set expects NAME=VALUE, each name once, got {setting!r}")
        found[name] = _number(value)
    return found


def _number(value: str) -> str | float | int:
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        return number if abs(number) < _LARGEST_INTEGER or kind is float else float(value)
    return value


_LARGEST_INTEGER = 2**63


def promise_before_start(mechanism: WordMechanism) -> str:
    """Unit, relation and pure epsilon, for the person who is about to release something."""
    word = mechanism.word_guarantee()
    vectors = mechanism.vectors
    pure = word.pure_epsilon if isinstance(word, MetricDP) else mechanism.statement.epsilon
    per_word = (
        f"{at_most(mechanism.epsilon, 4)} per unit of {word.metric} distance between words"
        if isinstance(word, MetricDP)
        else str(word)
    )
    if isinstance(mechanism, TEM) and mechanism.document_epsilon is not None:
        document = (
            f"epsilon {at_most(mechanism.document_epsilon, 4)} for a document (its first {mechanism.max_words} words)"
        )
    else:
        document = f"{at_most(pure, 4)} times its number of words for a document"
    return (
        f"{mechanism.name} on {vectors.source} ({len(vectors):,} words, {vectors.dimension} dimensions)\n"
        f"  unit      document; relation: substitution among documents of equal layout; local\n"
        f"  promise   {per_word}\n"
        f"  pure      epsilon at most {at_most(pure, 4)} for a word, {document}"
    )
