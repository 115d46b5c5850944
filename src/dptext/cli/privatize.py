"""``dptext privatize``: replace the texts of a file, on this machine or by Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from dptext.cli import options, outputs
from dptext.cli.console import print_json
from dptext.cli.options import method_option, output_option, privacy_option
from dptext.errors import ParameterError
from dptext.io.artifacts import file_digest
from dptext.io.documents import DocumentWriter
from dptext.privacy import wording
from dptext.privacy.guarantee import MetricDP
from dptext.privacy.shuffling import shuffled
from dptext.release.mechanism import TextMechanism
from dptext.release.privatize import privatize_file
from dptext.validation import check_choice
from dptext.vectors.formats import load_vectors
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import MECHANISMS, options_of

BANK = "bank"


@dataclass(frozen=True, kw_only=True)
class MechanismOptions:
    """The mechanism that replaces texts, its budget, and the identifiers that are replaced before."""

    epsilon: float = privacy_option(
        ..., "Privacy budget: per word and unit of distance, per word (subsetselection, custext), or per --unit (bank)."
    )
    unit: Literal["sentence", "document"] = options.BANK_UNIT
    max_sentences: int | None = privacy_option(None, "Bank: number of sentences replaced per document.", "N")
    mechanism: str = method_option("tem", f"Mechanism: {', '.join(MECHANISMS)}; or {BANK} (sentences).", "NAME")
    vectors: str = options.VECTORS
    limit: int = options.LIMIT
    bank: Path | None = method_option(None, "Bank of public texts, written by dptext bank.", "FOLDER")
    settings: tuple[str, ...] = options.SETTINGS
    redact: bool = privacy_option(
        False, "First replace e-mail and web addresses, numbers and dates (not names). No guarantee covers recognition."
    )
    redact_presidio: bool = privacy_option(False, "Also replace the names that Presidio finds in English texts.")
    redact_list: Path | None = privacy_option(None, "Also replace the terms in this file (one per line).", "FILE")

    def check(self, out: str) -> None:
        """Raise if options do not fit together."""
        name = check_choice("mechanism", self.mechanism.lower(), (*MECHANISMS, BANK))
        foreign = ("vectors", "limit") if name == BANK else ("bank", "unit", "max_sentences")
        if flags := options.changed_flags(self, *foreign):
            kind = "word replacement" if name == BANK else f"--mechanism {BANK}"
            raise ParameterError(f"{', '.join(flags)} is for {kind}, not for --mechanism {name}: omit it")
        if name == BANK:
            if self.bank is None:
                raise ParameterError("--bank FOLDER is required: make a bank of public texts with `dptext bank`")
            if self.bank.resolve() in (Path(out).resolve(), *Path(out).resolve().parents):
                raise ParameterError(f"{out!r} is in the folder of the bank: choose another name for OUT")

    def build(self, sources: Iterable[Path]) -> TextMechanism:
        mechanism = self._build(sources)
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

    @property
    def kind(self) -> str:
        """The public side of the mechanism, for `say_coverage`."""
        return "bank" if self.bank else "words"

    def _build(self, sources: Iterable[Path]) -> TextMechanism:
        name = self.mechanism.lower()
        if name != BANK:
            kind: Any = MECHANISMS[name]
            settings = options.parse_settings(self.settings, f"the mechanism {name}", options_of(kind))
            vectors = load_vectors(self.vectors, limit=self.limit)
            mechanism: TextMechanism = kind(vectors, epsilon=self.epsilon, **settings)
            return mechanism
        from dptext.sentences.bank import TextBank  # not needed for word mechanisms
        from dptext.sentences.rewriter import BankRewriter

        assert self.bank is not None
        sizes: Any = options.parse_settings(self.settings, "the mechanism bank", ["size"])
        bank = TextBank.load(self.bank)
        for source in sources:
            if bank.files and source.is_file() and file_digest(source) in bank.files:
                raise ParameterError(f"the bank contains the texts of {str(source)!r}: make one of other, public texts")
        return BankRewriter(bank, epsilon=self.epsilon, unit=self.unit, max_sentences=self.max_sentences, **sizes)


def privatize(
    *,
    rows: options.Rows,
    out: str = output_option(..., "Output file; for Spark, a folder that ends in .parquet.", "OUT", "--out", "-o"),
    method: MechanismOptions,
    charge: options.Charge,
    run: options.Run,
    engine: Literal["local", "spark"] = options.ENGINE,
    processes: int = options.PROCESSES,
    output: options.Output,
) -> None:
    """Replace the words or sentences of private texts.

    Write OUT, and the privacy statement OUT.privacy.json. All files of IN go to OUT. Guarantees are per word, sentence
    or document; they add up over the texts of one person.

    Example: dptext privatize notes.csv -o private.csv --text note --mechanism bank --bank public --epsilon 8
    """
    method.check(out)
    if charge.shuffled is not None and (engine == "spark" or method.mechanism.lower() != BANK):
        raise ParameterError(f"--shuffled is for --mechanism {BANK} on this machine: omit it")
    if engine == "spark":
        skips, parallel = rows.on_error == "skip", processes != 1
        flags = {"--on-error skip": skips, "--processes": parallel, "--resume": run.resume}
        options.check_for_spark(rows, flags)
        if not out.rstrip("/").endswith(".parquet"):
            raise ParameterError(f"Spark writes a folder of parquet: OUT must end in .parquet, got {out!r}")
        _privatize_on_spark(rows, out, method, run, charge, output)
        return
    place, listed = Path(out), method.redact_list
    if listed is not None and listed.resolve() == place.resolve():
        raise ParameterError(f"{listed.name!r} is the redaction list: choose another name for OUT")
    DocumentWriter(place, text=rows.text, keep=rows.kept)  # raises for an unknown format
    files = outputs.open_files(rows, place, run, charge)
    mechanism = method.build([Path(path) for path in files.sources])
    outputs.say_coverage(files.first, mechanism, method.kind, output)
    _announce(mechanism, rows, charge, run, output)
    release = privatize_file(files, place, mechanism, processes=processes, **run.settings, **asdict(charge))
    warning = mechanism.warning(release.tally)
    outputs.print_release(release, "private documents", output, user=charge.user, warning=warning)


def _announce(
    mechanism: TextMechanism, rows: options.Rows, charge: options.Charge, run: options.Run, output: options.Output
) -> None:
    """Print the guarantee and its effect on words of running text; ask if it does not protect."""
    if output.quiet:
        return
    from dptext.calibration.deniability import in_short

    inner = getattr(mechanism, "mechanism", mechanism)  # behind a redaction
    effect = in_short(inner) if isinstance(inner, WordMechanism) else None
    lines, first = [mechanism.summary_before_release()], wording.unprotected_from(mechanism)
    if charge.shuffled is not None:
        mixed = shuffled(mechanism.document_statement(1), users=charge.shuffled)
        lines.append(wording.render("before_shuffling", statement=mixed))
        first = 1 if wording.is_unprotected(mixed) else None
    if effect is not None:
        lines.append(wording.render("in_running_text", found=effect))
    if charge.user is not None:
        lines.append(wording.render("before_people", user=charge.user))
    if charge.ledger is not None and isinstance(mechanism.statement.guarantee, MetricDP):
        lines.append(wording.render("before_ledger"))
    caution = wording.cautioned(
        first=first,
        most_stay=effect is not None and effect.most_stay,
        source=outputs.shell_argument(rows.sources[0]),
        parts="sentences" if effect is None else "words",
    )
    outputs.announce("\n".join(lines), caution, run, output)


def _privatize_on_spark(
    rows: options.Rows,
    out: str,
    method: MechanismOptions,
    run: options.Run,
    charge: options.Charge,
    output: options.Output,
) -> None:
    from dptext.spark.frames import PrivateFrame, look_at_columns, privatize, read_files

    mechanism = method.build([*map(Path, rows.sources)])
    with outputs.hidden_warnings():
        frame = read_files(rows.sources, text=rows.text, keep=rows.kept, kind=rows.in_format)
        private = PrivateFrame(frame, text=rows.text, user=charge.user)
        private.check_users(has_unit=False)
        outputs.check_kept(look_at_columns(frame, rows.unconfirmed))
        outputs.say_coverage(private.first, mechanism, method.kind, output)
        _announce(mechanism, rows, charge, run, output)
        release = privatize(frame, mechanism, text=rows.text, keep=rows.kept, seed=run.seed, scan=True)
        ledger = None if charge.ledger is None else str(charge.ledger)
        statement = release.write(out, force=run.force, ledger=ledger, user=charge.user)
    place = f"{out.rstrip('/')}.privacy.json"
    output.say(f"Wrote private documents to {out} (a folder of parquet) and the privacy statement to {place}.")
    counts = wording.came_out(statement, release.tally)  # Spark has logged the warning of the mechanism
    outputs.say_to_owner(counts, output, statement=statement, user=charge.user, texts=release.most_texts)
    output.say(f"To explain it: dptext explain {place}")
    if output.as_json:
        print_json(outputs.written_as_dict(out, statement))
