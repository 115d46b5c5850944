"""``dptext privatize``: replace the texts of a file, on this machine or by Spark."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from dptext.cli import options, outputs
from dptext.cli.console import print_json, resumable
from dptext.cli.options import method_option, output_option, privacy_option
from dptext.errors import ParameterError
from dptext.io.artifacts import file_digest
from dptext.io.batches import STANDARD, is_pipe
from dptext.io.documents import DocumentWriter
from dptext.io.formats import file_format
from dptext.privacy import wording
from dptext.privacy.guarantee import MetricDP
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

    epsilon: float = privacy_option(
        ...,
        "Privacy budget: per unit of distance between two words, per word (subsetselection, custext), or per "
        "sentence or document (bank, see --unit).",
    )
    unit: Literal["sentence", "document"] = privacy_option(
        "sentence", "Bank: --epsilon covers one sentence, or a document with all its sentences."
    )
    max_sentences: int | None = privacy_option(
        None, "Bank: number of sentences replaced per document. With --unit document the output always has N.", "N"
    )
    mechanism: str = method_option(
        "tem", f"Word replacement ({', '.join(MECHANISMS)}), or sentence replacement ({BANK}).", "NAME"
    )
    vectors: str = options.VECTORS
    limit: int = options.LIMIT
    bank: Path | None = method_option(None, "Bank of public texts, written by dptext bank.", "FOLDER")
    settings: tuple[str, ...] = options.SETTINGS

    def check(self, out: str) -> None:
        """Raise if options do not fit together."""
        name = check_choice("mechanism", self.mechanism.lower(), (*MECHANISMS, BANK))
        foreign = ("vectors", "limit") if name == BANK else ("bank", "unit", "max_sentences")
        if flags := options.changed_flags(self, *foreign):
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
        kind: Any = MECHANISMS[name]
        _check_settings(name, settings, (*options_of(kind), "unknown"))
        vectors = load_vectors(self.vectors, limit=self.limit)
        mechanism: TextMechanism = kind(vectors, epsilon=self.epsilon, **{"unknown": "unk"} | settings)
        return mechanism

    def _build_bank(self, settings: Any, sources: Iterable[Path]) -> TextMechanism:
        from dptext.sentences.bank import TextBank  # word mechanisms do without
        from dptext.sentences.rewriter import BankRewriter

        assert self.bank is not None
        _check_settings(BANK, settings, ["size"])
        bank = TextBank.load(self.bank)
        for source in sources:
            if bank.files and source.is_file() and file_digest(source) in bank.files:
                raise ParameterError(
                    f"the bank was made from {str(source)!r}, so its texts would come out unchanged: make a bank of "
                    "public texts, chosen without regard to IN"
                )
        return BankRewriter(bank, epsilon=self.epsilon, unit=self.unit, max_sentences=self.max_sentences, **settings)


def _check_settings(name: str, settings: Collection[str], known: Collection[str]) -> None:
    if unknown := sorted(set(settings) - set(known)):
        raise ParameterError(
            f"the mechanism {name} has no {', '.join(unknown)}: --set takes {', '.join(sorted(known))}"
        )


@dataclass(frozen=True, kw_only=True)
class RedactionOptions:
    """The identifiers that are replaced before the mechanism runs."""

    redact: bool = privacy_option(
        False,
        "First replace e-mail addresses, phone and card numbers and dates by placeholders. Names are not "
        "recognised, and recognition is no guarantee.",
    )
    redact_presidio: bool = privacy_option(
        False, "Also replace the names and places that Presidio recognises in English texts."
    )
    redact_list: Path | None = privacy_option(
        None, "Also replace the terms in this file (one per line).", "FILE", "--redact-list"
    )

    def check(self, outs: Iterable[Path]) -> None:
        if self.redact_list is not None and self.redact_list.resolve() in (out.resolve() for out in outs):
            raise ParameterError(f"{self.redact_list.name!r} is the redaction list: choose another name for OUT")

    def apply(self, mechanism: TextMechanism) -> TextMechanism:
        if not (self.redact or self.redact_presidio or self.redact_list):
            return mechanism
        from dptext.release.redaction import PRESIDIO, Redacted, read_terms
        from dptext.text.patterns import KINDS

        return Redacted(
            mechanism,
            kinds=KINDS if self.redact or self.redact_presidio else (),
            words=() if self.redact_list is None else read_terms(self.redact_list),
            analyzer=PRESIDIO if self.redact_presidio else None,
        )


def privatize(
    *,
    rows: options.Rows,
    out: str = output_option(..., "Output file; a folder (one file per IN); - for a pipe.", "OUT", "--out", "-o"),
    statement: Path | None = output_option(None, "File of the statement if OUT is a pipe.", "FILE"),
    method: MechanismOptions,
    redaction: RedactionOptions,
    charge: options.Charge,
    run: options.Run,
    engine: Literal["local", "spark"] = options.ENGINE,
    processes: int = options.PROCESSES,
    yes: bool = options.YES,
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
        mechanism = redaction.apply(method.build([*map(Path, rows.sources)]))
        _privatize_on_spark(rows, out, mechanism, run, charge, output, yes=yes)
        return
    places = outputs.find_places(rows, out)
    sources = [source for place in places for source in place.sources]
    _check_pipes(places[0].out == STANDARD, any(map(is_pipe, sources)), statement, run, charge)
    redaction.check(place.out for place in places)
    outputs.check_places(places, rows, run, charge, lambda path: DocumentWriter(path, text=rows.text, keep=rows.kept))
    if statement is not None:
        check_statement_file(sources, statement, force=run.force)
    mechanism = redaction.apply(method.build(sources))
    asks = not all(place.is_begun(run) for place in places)
    _announce(mechanism, rows.sources[0], charge, yes=yes, asks=asks, output=output)
    settings = asdict(run) | asdict(charge) | {"processes": processes}
    if statement is None:
        outputs.release_all(
            places,
            {place.out for place in places if run.resume and is_released(place.out, mechanism.statement, rows.kept)},
            lambda place, progress: privatize_file(place.files, place.out, mechanism, progress=progress, **settings),
            "private documents",
            output,
            user=charge.user,
            warning=mechanism.warning,
        )
        return
    kind = rows.in_format or file_format(sources[0]).kind
    files = places[0].files
    with resumable():
        sent = privatize_file(files, sys.stdout.buffer, mechanism, to=kind, statement_file=statement, **settings)
    output.say(f"Wrote {sent.documents:,} private documents to the pipe and the privacy statement to {statement}.")
    if sent.skipped:
        output.say(f"Skipped {sent.skipped:,} unreadable rows.")
    counts = wording.came_out(sent.statement, sent.tally, sent.documents)
    for_author = "" if charge.user is None else outputs.guarantee_for_author([sent], charge.user)
    outputs.say_to_owner(counts, mechanism.warning(sent.tally), output, for_author=for_author)


def _check_pipes(
    writes_pipe: bool, reads_pipe: bool, statement: Path | None, run: options.Run, charge: options.Charge
) -> None:
    options.check_all({
        "--ledger reads the input twice, which a pipe does not allow: name files as IN and OUT": (
            charge.ledger is not None and (writes_pipe or reads_pipe)
        ),
        "--statement FILE is required if OUT is a pipe": writes_pipe and statement is None,
        "--resume needs a file as OUT, not a pipe": writes_pipe and run.resume,
        "--statement is for a pipe; the statement of a file is OUT.privacy.json: leave it out": (
            not writes_pipe and statement is not None
        ),
    })  # fmt: skip


def _announce(
    mechanism: TextMechanism, source: str, charge: options.Charge, *, yes: bool, asks: bool, output: options.Output
) -> None:
    """Print the guarantee and its effect on words of running text; ask if it does not protect."""
    if output.quiet:
        return
    from dptext.calibration.deniability import in_short

    inner = getattr(mechanism, "mechanism", mechanism)  # behind a redaction
    effect = in_short(inner) if isinstance(inner, WordMechanism) else None
    lines = [
        mechanism.promise_before_start(),
        *([] if effect is None else [wording.render("in_running_text", found=effect)]),
    ]
    lines += [] if charge.user is None else [wording.render("before_people", user=charge.user)]
    if charge.ledger is not None and isinstance(mechanism.statement.guarantee, MetricDP):
        lines.append(wording.render("before_ledger"))
    caution = wording.cautioned(
        first=wording.unprotected_from(mechanism),
        most_stay=effect is not None and effect.most_stay,
        source=outputs.shell_argument(source),
        parts="sentences" if effect is None else "words",
    )
    outputs.announce("\n".join(lines), caution, yes=yes, asks=asks, output=output)


def _check_for_spark(rows: options.Rows, out: str, run: options.Run, statement: Path | None, processes: int) -> None:
    unsupported: dict[str, object] = {"resume": run.resume, "statement": statement, "processes": processes != 1}
    unsupported |= {"encoding": rows.encoding, "on-error skip": rows.on_error == "skip"}
    if flags := [f"--{name}" for name, value in unsupported.items() if value]:
        raise ParameterError(
            f"Spark does not support {', '.join(flags)}: leave it out (Spark's configuration sets the number of "
            "workers, and an interrupted run leaves no output)"
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
    from dptext.spark.frames import look_at_columns, privatize, read_files

    with resumable(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # about the versions of packages
        frame = read_files(rows.sources, text=rows.text, keep=rows.kept, kind=rows.in_format)
        outputs.check_kept(look_at_columns(frame, rows.unconfirmed))
        _announce(mechanism, rows.sources[0], charge, yes=yes, asks=True, output=output)
        release = privatize(frame, mechanism, text=rows.text, keep=rows.kept, seed=run.seed, scan=True)
        ledger = None if charge.ledger is None else str(charge.ledger)
        statement = release.write(out, force=run.force, ledger=ledger, user=charge.user)
    place = f"{out.rstrip('/')}.privacy.json"
    output.say(f"Wrote private documents to {out} (a folder of parquet) and the privacy statement to {place}.")
    texts, for_author = release.most_texts, ""
    if charge.user is not None:
        guarantee = None if texts is None else promise_to(texts, [statement])
        for_author = wording.for_person(guarantee, texts, user=charge.user)
    # Spark has logged the warning of the mechanism
    outputs.say_to_owner(wording.came_out(statement, release.tally), None, output, for_author=for_author)
    output.say(f"To explain it: dptext explain {place}")
    if output.as_json:
        print_json(outputs.written_as_dict(out, statement))
