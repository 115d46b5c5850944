"""``dptext privatize``: replace the texts of a file, on this machine or by Spark."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from dptext.cli import options, outputs
from dptext.cli.console import print_json, stopped_with_notes
from dptext.cli.options import method_option, output_option, privacy_option
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
from dptext.validation import check_choice
from dptext.vectors.formats import load_vectors
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import MECHANISMS, options_of

BANK = "bank"


@dataclass(frozen=True, kw_only=True)
class MechanismOptions:
    """The mechanism that replaces texts, and its budget."""

    epsilon: Annotated[
        float,
        privacy_option(
            help="Privacy budget: per unit of distance between two words, per word (subsetselection, custext), or per "
            "sentence or document (bank, see --unit)."
        ),
    ]
    unit: Annotated[
        Literal["sentence", "document"],
        privacy_option(help="Bank: --epsilon covers one sentence, or a document with all its sentences."),
    ] = "sentence"
    max_sentences: Annotated[
        int | None,
        privacy_option(
            metavar="N",
            help="Bank: number of sentences replaced per document. With --unit document the output always has N.",
        ),
    ] = None
    mechanism: Annotated[
        str,
        method_option(
            metavar="NAME", help=f"Word replacement ({', '.join(MECHANISMS)}), or sentence replacement ({BANK})."
        ),
    ] = "tem"
    vectors: options.Vectors = "glove-6b-50d"
    limit: options.Limit = 50_000
    bank: Annotated[
        Path | None, method_option(metavar="FOLDER", help="Bank of public texts, written by dptext bank.")
    ] = None
    settings: options.SetOption = ()

    def check(self, out: str) -> None:
        """Raise if options do not fit together."""
        name = check_choice("mechanism", self.mechanism.lower(), (*MECHANISMS, BANK))
        of_words, of_bank_only = ("vectors", "limit"), ("bank", "unit", "max_sentences")
        flags = options.given_flags(self, *(of_words if name == BANK else of_bank_only))
        if flags:
            kind = "word replacement" if name == BANK else f"--mechanism {BANK}"
            raise ParameterError(f"{', '.join(flags)} is for {kind}, not for --mechanism {name}: leave it out")
        if name == BANK:
            if self.bank is None:
                raise ParameterError("--bank FOLDER is required: make a bank of public texts with `dptext bank`")
            if self.bank.resolve() in (Path(out).resolve(), *Path(out).resolve().parents):
                raise ParameterError(f"{out!r} lies in the folder of the bank: choose another name for OUT")

    def build(self, sources: Sequence[Path]) -> TextMechanism:
        name, settings = self.mechanism.lower(), options.parse_settings(self.settings)
        if name == BANK:
            return self._build_bank(settings, sources)
        build: Any = MECHANISMS[name]
        _check_known(name, settings, (*options_of(build), "unknown"))
        mechanism: TextMechanism = build(
            load_vectors(self.vectors, limit=self.limit), epsilon=self.epsilon, **{"unknown": "unk"} | settings
        )
        return mechanism

    def _build_bank(self, settings: options.Settings, sources: Iterable[Path]) -> TextMechanism:
        from dptext.sentences.bank import TextBank  # word mechanisms do without
        from dptext.sentences.rewriter import BankRewriter

        assert self.bank is not None
        _check_known(BANK, settings, ["size"])
        bank = TextBank.load(self.bank)
        for source in sources:
            if bank.files and source.is_file() and file_digest(source) in bank.files:
                raise ParameterError(
                    f"the bank was made from {str(source)!r}, so its texts would come out unchanged: make a bank of "
                    "public texts, chosen without regard to IN"
                )
        further: Any = settings
        return BankRewriter(bank, epsilon=self.epsilon, unit=self.unit, max_sentences=self.max_sentences, **further)


def _check_known(name: str, settings: Collection[str], known: Collection[str]) -> None:
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise ParameterError(
            f"the mechanism {name} has no {', '.join(unknown)}: --set takes {', '.join(sorted(known))}"
        )


@options.collected
def privatize(
    *,
    rows: options.Rows,
    out: Annotated[
        str, output_option("--out", "-o", metavar="OUT", help="Output file; a folder (one file per IN); - for a pipe.")
    ],
    statement: Annotated[
        Path | None, output_option(metavar="FILE", help="Where the statement goes if OUT is a pipe.")
    ] = None,
    method: MechanismOptions,
    redact: options.RedactionOptions,
    charge: options.Charge,
    run: options.Run,
    engine: options.Engine = "local",
    processes: options.Processes = 1,
    yes: options.Yes = False,
    output: options.Output,
) -> None:
    """Replace the words or sentences of private texts.

    Write OUT, and the privacy statement OUT.privacy.json. Guarantees are per word, sentence or document; they add up
    over the texts of one person.

    Example: dptext privatize notes.csv -o private.csv --text note --mechanism bank --bank public --epsilon 8
    """
    method.check(out)
    if engine == "spark":
        _check_for_spark(rows, out, run, statement, processes)
        mechanism = redact.around(method.build([*map(Path, rows.sources)]))
        _privatize_on_spark(rows, out, mechanism, run, charge, output, yes=yes)
        return
    to = outputs.places(rows, out)
    sources = [source for place in to for source in place.sources]
    _check_pipes(to[0].out == STANDARD, any(map(is_pipe, sources)), statement, run, charge)
    redact.check_apart(place.out for place in to)
    outputs.check_places(to, rows, run, charge, lambda path: DocumentWriter(path, text=rows.text, keep=rows.keep))
    if statement is not None:
        check_statement_file(sources, statement, force=run.force)
    mechanism = redact.around(method.build(sources))
    done = {place.out for place in to if run.resume and is_released(place.out, mechanism.statement, rows.keep)}
    asks = not all(outputs.is_begun(place, run) for place in to)
    _begin(mechanism, rows.sources[0], charge, yes=yes, asks=asks, output=output)
    settings = asdict(run) | asdict(charge) | {"processes": processes}
    if statement is None:
        outputs.release_all(
            to,
            done,
            lambda place, progress: privatize_file(place.files, place.out, mechanism, progress=progress, **settings),
            "private documents",
            output,
            user=charge.user,
            warning=mechanism.warning,
        )
        return
    kind = rows.in_format or file_format(sources[0]).kind
    with stopped_with_notes():
        sent = privatize_file(to[0].files, sys.stdout.buffer, mechanism, to=kind, statement_file=statement, **settings)
    output.say(f"Wrote {sent.documents:,} private documents to the pipe and the privacy statement to {statement}.")
    if sent.skipped:
        output.say(f"Skipped {sent.skipped:,} unreadable rows.")
    counted = wording.came_out(sent.statement, sent.tally, sent.documents)
    for_one = "" if charge.user is None else outputs.of_one([sent], charge.user)
    outputs.say_to_owner(counted, mechanism.warning(sent.tally), output, for_one=for_one)


def _check_pipes(
    writes_pipe: bool, reads_pipe: bool, statement: Path | None, run: options.Run, charge: options.Charge
) -> None:
    if charge.ledger is not None and (writes_pipe or reads_pipe):
        raise ParameterError("a ledger reads the input twice and settles with a file: name files as IN and OUT")
    if writes_pipe and statement is None:
        raise ParameterError("a pipe has no place for the statement: add --statement FILE")
    if writes_pipe and run.resume:
        raise ParameterError("a pipe cannot be resumed: name a file as OUT")
    if not writes_pipe and statement is not None:
        raise ParameterError("--statement is for a pipe; beside a file it is named OUT.privacy.json: leave it out")


def _begin(
    mechanism: TextMechanism, source: str, charge: options.Charge, *, yes: bool, asks: bool, output: options.Output
) -> None:
    """Print the guarantee and its effect on words of running text; ask where it protects too little."""
    if output.quiet:
        return
    from dptext.calibration.deniability import in_short

    inner = getattr(mechanism, "mechanism", mechanism)  # behind a redaction
    effect = in_short(inner) if isinstance(inner, WordMechanism) else None
    lines = [mechanism.promise_before_start(), *([] if effect is None else [wording.in_running_text(effect)])]
    lines += [] if charge.user is None else [wording.before_people(charge.user)]
    lines += [] if charge.ledger is None else filter(None, [wording.before_ledger(mechanism.statement.guarantee)])
    caution = wording.cautioned(
        first=wording.unprotected_from(mechanism),
        most_stay=effect is not None and effect.most_stay,
        source=outputs.as_input(source),
        parts="sentences" if effect is None else "words",
    )
    outputs.begin("\n".join(lines), caution, yes=yes, asks=asks, output=output)


# -- Spark -----------------------------------------------------------------------------------------------------


def _check_for_spark(rows: options.Rows, out: str, run: options.Run, statement: Path | None, processes: int) -> None:
    given = {"resume": run.resume, "statement": statement, "processes": processes != 1, "encoding": rows.encoding}
    given |= {"on-error skip": rows.on_error == "skip"}
    flags = [f"--{name}" for name, value in given.items() if value]
    if flags:
        raise ParameterError(
            f"Spark does not support {', '.join(flags)}: leave it out (an interrupted run leaves nothing behind; "
            "Spark's configuration sets the number of workers)"
        )
    if "-" in (out, *rows.sources):
        raise ParameterError("Spark reads and writes no pipes: name paths that the cluster can see")
    if not out.rstrip("/").endswith(".parquet"):
        raise ParameterError(f"Spark writes a folder of parquet: OUT must end in .parquet, got {out!r}")


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
        outputs.check_kept(look_at_columns(frame, rows.unconfirmed))
        _begin(mechanism, rows.sources[0], charge, yes=yes, asks=True, output=output)
        release = privatize_scan(frame, mechanism, text=rows.text, keep=rows.keep, seed=run.seed)
        ledger = None if charge.ledger is None else str(charge.ledger)
        statement = release.write(out, force=run.force, ledger=ledger, user=charge.user)
    beside = f"{out.rstrip('/')}.privacy.json"
    output.say(f"Wrote private documents to {out} (a folder of parquet) and the privacy statement to {beside}.")
    most, for_one = release.most_texts, ""
    if charge.user is not None:
        for_one = wording.for_person(None if most is None else promise_to(most, [statement]), most, user=charge.user)
    # the note on its counts is in the log already
    outputs.say_to_owner(wording.came_out(statement, release.tally), None, output, for_one=for_one)
    output.say(f"Explained by: dptext explain {beside}")
    if output.as_json:
        print_json({"out": out, "statement": json.loads(statement.to_json())})
