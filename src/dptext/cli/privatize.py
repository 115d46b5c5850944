"""``dptext privatize``: a file of texts in, private texts and their statement out, on this machine or by Spark."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dptext.cli import options, outputs
from dptext.cli.console import print_json, stopped_with_notes
from dptext.cli.options import RedactionOptions
from dptext.errors import ParameterError
from dptext.io.artifacts import file_digest
from dptext.io.batches import STANDARD, is_pipe
from dptext.io.documents import DocumentWriter
from dptext.io.formats import file_format
from dptext.privacy import wording
from dptext.release.mechanism import TextMechanism
from dptext.release.privatize import privatize_file
from dptext.release.release import promise_to
from dptext.release.run import check_statement_file, is_released
from dptext.vectors.formats import load_vectors
from dptext.words.mechanism import UnknownWords, WordMechanism
from dptext.words.registry import MECHANISMS, options_of

BANK = "bank"
_WITH_A_NAME = ("metric", "beta", "threshold", "pure_epsilon", "document_epsilon", "max_words")
_SETTINGS = {
    name: [option for option in options_of(each) if option not in _WITH_A_NAME] for name, each in MECHANISMS.items()
} | {BANK: ["size"]}
_BY_SET = ", ".join(f"{', '.join(settings)} ({name})" for name, settings in _SETTINGS.items() if settings)


@dataclass(frozen=True, kw_only=True)
class WordOptions:
    """Those of mechanisms that replace words.

    Attributes:
        document_epsilon: TEM: a pure budget for a document (with --max-words).
        max_words: TEM, SubsetSelection: how many words of a document are looked at, which bounds what it costs; later
            ones become <unk>.
    """

    vectors: options.Vectors = "glove-6b-50d"
    limit: options.Limit = 50_000
    metric: options.Metric = None
    beta: options.Beta = None
    threshold: Annotated[float | None, typer.Option(help="TEM: distances count up to here.")] = None
    pure_epsilon: options.PureEpsilon = None
    document_epsilon: float | None = None
    max_words: int | None = None
    unknown: Annotated[UnknownWords, typer.Option(help="What words outside the vocabulary count as.")] = "unk"

    def build(self, name: str, epsilon: float, settings: options.Settings) -> WordMechanism:
        given = {option: getattr(self, option) for option in _WITH_A_NAME} | settings
        given = {option: value for option, value in given.items() if value is not None}
        build: Any = MECHANISMS[name]
        _check_known(name, given, options_of(build))
        vectors = load_vectors(self.vectors, limit=self.limit)
        mechanism: WordMechanism = build(vectors, epsilon=epsilon, unknown=self.unknown, **given)
        return mechanism


@dataclass(frozen=True, kw_only=True)
class BankOptions:
    """Those of a bank of public texts.

    Attributes:
        bank (FOLDER): bank: public texts, as dptext bank writes them.
        unit: bank: what --epsilon is for, each sentence or a document with all of them.
        max_sentences: bank: how many sentences of a document are replaced. With --unit document always so many come
            out; without it one text stands for a document.
    """

    bank: Path | None = None
    unit: Literal["sentence", "document"] = "sentence"
    max_sentences: int | None = None

    def build(self, epsilon: float, settings: options.Settings, sources: Iterable[Path]) -> TextMechanism:
        from dptext.sentences.bank import TextBank  # with all that makes vectors of texts: words do without
        from dptext.sentences.rewriter import BankRewriter

        _check_known(BANK, settings, _SETTINGS[BANK])
        if self.bank is None:
            raise ParameterError(
                "say which public texts there are to choose from: --bank FOLDER (dptext bank writes one)"
            )
        bank = TextBank.load(self.bank)
        for source in sources:
            if bank.files and source.is_file() and file_digest(source) in bank.files:
                raise ParameterError(
                    f"the bank was made of {str(source)!r}, so that its texts would come out as they are: make a bank "
                    "of public texts, chosen without regard to IN"
                )
        more: Any = settings
        return BankRewriter(bank, epsilon=epsilon, unit=self.unit, max_sentences=self.max_sentences, **more)

    def check_apart(self, out: str) -> None:
        if self.bank is not None and self.bank.resolve() in (Path(out).resolve(), *Path(out).resolve().parents):
            raise ParameterError(f"{out!r} lies in the folder of the bank, which must stay as it is: choose another")


def _check_known(name: str, given: Collection[str], known: Collection[str]) -> None:
    foreign = sorted(set(given) - set(known))
    if foreign:
        names = ", ".join(options.flag(each) if each in _WITH_A_NAME else each for each in foreign)
        has = ", ".join(sorted(known)) or "no options"
        raise ParameterError(f"the mechanism {name} has no {names}: leave it out (it has {has})")


@dataclass(frozen=True, kw_only=True)
class MechanismOptions:
    """What replaces texts, and with what budget.

    Attributes:
        epsilon: Nats per unit of distance between two words (subsetselection, custext: nats for a word; bank: for a
            sentence or a document, as --unit says). There is no usual one: dptext advise, dptext calibrate.
    """

    epsilon: float | None = None
    mechanism: Annotated[
        str,
        options.OneOf((*MECHANISMS, BANK)),
        typer.Option(help="How words are replaced; or bank, for sentences and documents (with --bank)."),
    ] = "tem"
    settings: Annotated[
        tuple[str, ...],
        typer.Option(
            "--set", metavar="NAME=VALUE", help=f"A further option of a mechanism: {_BY_SET}. May be repeated."
        ),
    ] = ()

    def size(self, bank: BankOptions, source: str) -> float:
        if self.epsilon is not None:
            return self.epsilon
        folder = "FOLDER" if bank.bank is None else shlex.quote(str(bank.bank))
        of_bank = f" --bank {folder}" if self.mechanism == BANK else ""
        raise ParameterError(
            "say how much may be lost, --epsilon NUMBER: there is no usual one. Which way and which size fit these "
            f"texts: dptext advise {outputs.as_input(source)}. What an epsilon does: dptext calibrate{of_bank}"
        )

    def build(self, words: WordOptions, bank: BankOptions, sources: Sequence[Path]) -> TextMechanism:
        epsilon = self.size(bank, str(sources[0]))
        settings = options.parse_settings(self.settings)
        others: WordOptions | BankOptions = words if self.mechanism == BANK else bank
        given = options.given_flags(others)
        if given and self.mechanism == BANK:
            raise ParameterError(f"{', '.join(given)}: for mechanisms that replace words; leave it out with a bank")
        if given:
            raise ParameterError(
                f"{', '.join(given)}: for --mechanism {BANK}, not for {self.mechanism}; give that, or leave it out"
            )
        if self.mechanism == BANK:
            return bank.build(epsilon, settings, sources)
        return words.build(self.mechanism, epsilon, settings)


@options.collected
def privatize(
    *,
    rows: options.Rows,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="OUT", help="A file; a folder (one file for each IN); - for a pipe.")
    ],
    what: MechanismOptions,
    words: WordOptions,
    bank: BankOptions,
    redact: RedactionOptions,
    run: options.Run,
    processes: options.Processes = 1,
    engine: options.Engine = "local",
    out_format: Annotated[
        str | None, typer.Option("--out-format", metavar="SUFFIX", help="Format of a pipe, or of files in a folder.")
    ] = None,
    statement: Annotated[Path | None, typer.Option(help="Where the statement goes when OUT is a pipe.")] = None,
    charge: options.Charge,
    yes: options.Yes = False,
    output: options.Output,
) -> None:
    """Replace the texts of a corpus, word by word or by public ones (bank), and write OUT and OUT.privacy.json."""
    bank.check_apart(out)
    what.size(bank, rows.sources[0])  # before anything is read
    if engine == "spark":
        foreign = {"resume": run.resume, "statement": statement, "out-format": out_format}
        foreign |= {"processes": processes != 1, "on-error skip": rows.on_error == "skip"}
        foreign |= {"encoding": rows.encoding, "separator": rows.separator}
        _check_for_spark(rows, out, foreign)
        mechanism = redact.around(what.build(words, bank, [*map(Path, rows.sources)]))
        _privatize_on_spark(rows, out, mechanism, run, charge, output, yes=yes)
        return
    to = outputs.places(rows, out, out_format=out_format)
    piped = to[0].out == STANDARD
    if charge.ledger is not None and (piped or any(is_pipe(each) for place in to for each in place.sources)):
        raise ParameterError("a ledger reads the input twice and settles with a file: name files as IN and OUT")
    if piped and statement is None:
        raise ParameterError("a pipe has no place for the statement: say where with --statement FILE")
    if piped and run.resume:
        raise ParameterError("what went through a pipe is gone: --resume needs a file as OUT")
    if not piped and statement is not None:
        raise ParameterError("--statement is for a pipe: beside a file it is named OUT.privacy.json")
    outputs.check_places(to, run, charge, lambda path: DocumentWriter(path, text=rows.text, keep=rows.keep))
    redact.check_apart(place.out for place in to)
    sources = [each for place in to for each in place.sources]
    if statement is not None:
        check_statement_file(sources, statement, force=run.force)
    outputs.check_columns(to, rows, run)
    mechanism = redact.around(what.build(words, bank, sources))
    done = {
        place.out for place in to if run.resume and not piped and is_released(place.out, mechanism.statement, rows.keep)
    }
    asks = not all(outputs.is_begun(place, run) for place in to)
    _say_before(mechanism, rows.sources[0], charge, yes=yes, asks=asks, output=output)
    how = asdict(run) | asdict(charge) | {"processes": processes}
    if statement is None:
        outputs.release_all(
            to,
            done,
            lambda place, progress: privatize_file(place.files, place.out, mechanism, progress=progress, **how),
            "private documents",
            output,
            user=charge.user,
            warning=mechanism.warning,
        )
        return
    kind = out_format or rows.in_format or file_format(to[0].sources[0]).kind
    with stopped_with_notes():
        sent = privatize_file(to[0].files, sys.stdout.buffer, mechanism, to=kind, statement_file=statement, **how)
    output.say(f"Sent {sent.documents:,} private documents; what was promised stands in {statement}.")
    if sent.skipped:
        output.say(f"Left out {sent.skipped:,} rows that could not be read.")
    counted = wording.came_out(sent.statement, sent.tally, sent.documents)
    to_one = "" if charge.user is None else outputs.of_one([sent], charge.user)
    outputs.say_to_owner(counted, mechanism.warning(sent.tally), output, to_one=to_one)


def _say_before(
    mechanism: TextMechanism, source: str, charge: options.Charge, *, yes: bool, asks: bool, output: options.Output
) -> None:
    """What is promised, what it does to words of running text, and whether it protects; and ask where it does not."""
    if output.quiet:
        return
    from dptext.calibration.deniability import in_short  # only here

    inner = getattr(mechanism, "mechanism", mechanism)  # behind a redaction
    found = in_short(inner) if isinstance(inner, WordMechanism) else None
    promise = [mechanism.promise_before_start(), *([] if found is None else [wording.in_running_text(found)])]
    promise += [] if charge.user is None else [wording.before_people(charge.user)]
    promise += [] if charge.ledger is None else filter(None, [wording.before_ledger(mechanism.statement.guarantee)])
    caution = wording.cautioned(
        first=wording.unprotected_from(mechanism),
        most_stay=found is not None and found.most_stay,
        source=outputs.as_input(source),
        parts="sentences" if found is None else "words",
    )
    outputs.begin("\n".join(promise), caution, yes=yes, asks=asks, output=output)


def _check_for_spark(rows: options.Rows, out: str, foreign: Mapping[str, object]) -> None:
    """Refuse what Spark has no use for, before anything is loaded."""
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
    *,
    yes: bool,
) -> None:
    from dptext.spark.frames import look_at_columns, privatize_scan, read_files

    with stopped_with_notes(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # about the versions of packages
        frame = read_files(rows.sources, text=rows.text, keep=rows.keep, kind=rows.in_format)
        outputs.check_kept(look_at_columns(frame, rows.in_doubt))
        _say_before(mechanism, rows.sources[0], charge, yes=yes, asks=True, output=output)
        release = privatize_scan(frame, mechanism, text=rows.text, keep=rows.keep, seed=run.seed)
        ledger = None if charge.ledger is None else str(charge.ledger)
        statement = release.write(out, force=run.force, ledger=ledger, user=charge.user)
    beside = f"{out.rstrip('/')}.privacy.json"
    output.say(f"Wrote private documents to {out} (a folder of parquet) and what was promised to {beside}.")
    most, to_one = release.most_texts, ""
    if charge.user is not None:
        to_one = wording.for_person(None if most is None else promise_to(most, [statement]), most, user=charge.user)
    # the note on its counts is in the log already
    outputs.say_to_owner(wording.came_out(statement, release.tally), None, output, to_one=to_one)
    output.say(f"Explained by: dptext explain {beside}")
    if output.as_json:
        print_json({"out": out, "statement": json.loads(statement.to_json())})
