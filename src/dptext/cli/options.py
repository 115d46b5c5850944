"""Options that several commands share, each declared once, and the dataclasses in which commands receive them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import typer

from dptext.cli.console import filled, print_json, say
from dptext.errors import ParameterError
from dptext.features.features import DEFAULT_IN_WORDS, NAMES
from dptext.features.pool import public_sources
from dptext.io.documents import OnError
from dptext.io.formats import NAMES_OF_FORMATS
from dptext.methods.data import LICENCE
from dptext.vectors.formats import KNOWN_VECTORS

PANELS = ("Input", "Output", "Privacy", "Method", "Run")


def _option(
    panel: str | None, default: Any, text: str, metavar: str | None = None, *flags: str, **settings: Any
) -> Any:
    """Return an option of a command: the default of a parameter, or of a field of a dataclass."""
    return typer.Option(default, *flags, help=text, metavar=metavar, rich_help_panel=panel, **settings)


def argument(default: Any, text: str, metavar: str) -> Any:
    return typer.Argument(default, help=text, metavar=metavar)


input_option, output_option, privacy_option, method_option, run_option = (partial(_option, panel) for panel in PANELS)
EPSILON_REQUIRED = "--epsilon is required: run `dptext advise FILE` to choose a method and an epsilon"
ANALYSIS_SEED = 0  # for attacks, audits and reports: the same command gives the same numbers


@dataclass(frozen=True, kw_only=True)
class Output:
    """The options --json and --quiet, which every command has (`dptext.cli.app.Command`)."""

    as_json: bool = False
    quiet: bool = False

    def say(self, text: str) -> None:
        if not self.quiet:
            say(text)

    def say_doubt(self, doubt: str) -> None:
        """Print a reason to doubt a corpus, before it is written."""
        self.say(filled(f"Note: {doubt}.", indent="", hang="  "))

    def print_result(self, data: Callable[[], Any], show: Callable[[], object]) -> None:
        """Print the result: as JSON with --json, else for people unless --quiet."""
        if self.as_json:
            print_json(data())
        elif not self.quiet:
            show()


def changed_flags(group: Any, *names: str) -> list[str]:
    """Return the flags of all options of a group (or of the named ones) that differ from the defaults."""
    options: dict[str, Any] = {part.name: part.default for part in fields(group) if not names or part.name in names}
    changed = [name for name, option in options.items() if getattr(group, name) != option.default]
    others = {"settings": "--set", "in_format": "--format"}
    return [others.get(name, f"--{name.replace('_', '-')}") for name in changed]


_FILES = f"Private files ({NAMES_OF_FORMATS}), folders or patterns; - for standard input."
SOURCES = argument(..., _FILES, "IN...")
OPTIONAL_SOURCES = argument((), _FILES, "IN")
ON_ERROR = input_option("fail", "Row that cannot be read or has no author (--user): stop, or skip it.")
TEXT = input_option("text", "Column that holds the text.", "COLUMN")
KEEP = output_option(
    (), "Column to publish unchanged (repeatable). COLUMN! confirms one that looks like an identifier.", "COLUMN"
)


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The texts that a command reads."""

    sources: tuple[str, ...] = SOURCES
    text: str = TEXT
    in_format: str | None = input_option(None, "Input format if the name has none: .jsonl, ...", "SUFFIX", "--format")
    encoding: str | None = input_option(None, "Input encoding if it is not UTF-8, such as windows-1252.", "NAME")

    @property
    def layout(self) -> dict[str, Any]:
        return {"suffix": self.in_format, "encoding": self.encoding}


@dataclass(frozen=True, kw_only=True)
class OptionalInputs(Inputs):
    """The texts of users that a command reads, if any."""

    sources: tuple[str, ...] = OPTIONAL_SOURCES
    on_error: OnError = ON_ERROR


@dataclass(frozen=True, kw_only=True)
class Rows(Inputs):
    """The rows that a command reads, and the columns that it publishes."""

    keep: tuple[str, ...] = KEEP
    on_error: OnError = ON_ERROR

    @property
    def kept(self) -> tuple[str, ...]:
        return tuple(name.removesuffix("!") for name in self.keep)

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Columns to keep that were not confirmed by ``!``."""
        return tuple(name for name in self.keep if not name.endswith("!"))


FORCE = output_option(False, "Replace an existing output or an interrupted run.")
USER = privacy_option(None, "Column that names the author, whom the guarantee protects.", "COLUMN")
DELTA = privacy_option(1e-6, "Delta of the (epsilon, delta)-DP guarantee.")
BANK_UNIT = privacy_option("sentence", "Bank: --epsilon covers one sentence, or a document with all its sentences.")
PUBLIC_USERS = privacy_option(
    None, "Public upper bound on the number of users, to check delta. Do not count the private data.", "N", min=1
)
LEDGER = privacy_option(None, "Ledger that charges this release, or refuses it (see dptext ledger).", "FILE")
SEED = privacy_option(None, "Repeatable noise, for tests and papers only. A seed voids the guarantee.")


def check_all(checks: Mapping[str, object]) -> None:
    """Raise the first message whose condition is true."""
    for message, is_wrong in checks.items():
        if is_wrong:
            raise ParameterError(message)


def check_for_spark(inputs: Inputs, further: Mapping[str, object]) -> None:
    """Raise for inputs and further options that Spark does not support."""
    flags = [flag for flag, is_set in {"--encoding": inputs.encoding, **further}.items() if is_set]
    if flags:
        raise ParameterError(f"Spark does not support {', '.join(flags)}: omit it")
    if "-" in inputs.sources:
        raise ParameterError("Spark reads no pipes: name paths that the cluster can see")


def check_unused(where: str, *changed: str, **given: Any) -> None:
    if flags := [*changed, *(name if name.isupper() else f"--{name}" for name, value in given.items() if value)]:
        raise ParameterError(f"{', '.join(flags)}: no effect {where}")


def check_user(unit: str, user: str | None) -> None:
    """Raise unless a user column is named if, and only if, users are protected."""
    if unit == "user" and user is None:
        raise ParameterError(
            "--user COLUMN is required: it names the author, whom the guarantee protects. To protect single texts "
            "instead, use --unit document"
        )
    if unit != "user" and user is not None:
        raise ParameterError(f"--unit {unit} does not protect users: omit --user, or use --unit user")


@dataclass(frozen=True, kw_only=True)
class Charge:
    """The ledger that charges the rows, the column that it charges, and the users among whom the rows are mixed."""

    ledger: Path | None = LEDGER
    shuffled: int | None = privacy_option(
        None,
        "Guarantee of texts that a trusted shuffler mixes with others, at least N in all. Rows in random order.",
        "N",
    )
    user: str | None = privacy_option(
        None, "Column of authors: report the guarantee for all texts of an author; charge authors, not texts.", "COLUMN"
    )


REDACTION_LIST = input_option(None, "Redaction list of PRIVATE (one term per line).", "FILE", "--redact-list")


VECTORS = method_option("glove-6b-50d", f"Word vectors: {', '.join(KNOWN_VECTORS)}, a path.", "NAME|PATH")
LIMIT = method_option(50_000, "Number of the most frequent words to use.", "N")
SETTINGS = method_option((), "Further argument of the mechanism's Python class (repeatable).", "NAME=VALUE", "--set")


def parse_settings(settings: Iterable[str], kind: str, known: Collection[str], flag: str = "--set") -> dict[str, Any]:
    """Return ``["t=0.5"]`` (the values of a flag) as ``{"t": 0.5}``, the known arguments of a kind of mechanism."""
    parsed: dict[str, str | float | int] = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign or name in parsed:
            raise ParameterError(f"{flag} expects NAME=VALUE, each name once, got {setting!r}")
        if name not in known:
            raise ParameterError(f"{kind} has no {name}: {flag} takes {', '.join(sorted(known)) or 'nothing'}")
        parsed[name] = _number(value)
    return parsed


def _number(value: str) -> str | float | int:
    try:
        number = float(value)
    except ValueError:
        return value
    return int(value) if value.lstrip("+-").isdecimal() and abs(number) < 2**63 else number


def _check_licence(licence: str | None) -> str | None:
    if licence == LICENCE:
        raise ParameterError(f"--licence {LICENCE} is a placeholder: replace it by the licence of the public texts")
    return licence


LICENCE_OPTION = output_option(None, "Licence of the public texts, for statement and card.", callback=_check_licence)
PUBLIC_TEXT = input_option("text", "Column of the public files that holds the text.", "COLUMN")
POOL_UNIT: Any = method_option(
    "document", "Cut public documents: document (as they are), paragraph (about 100 words at most) or sentence.", "UNIT"
)
PUBLIC_LABEL = input_option(None, "Column of labels in the public files, to predict accuracy.", "COLUMN")
RELEASE_VECTORS = input_option(None, "Word replacement: vectors, if their path changed.", "NAME|PATH", "--vectors")
RELEASE_BANK = input_option(None, "Sentence replacement: the folder of the bank.", "FOLDER", "--bank")


RELEASE = argument(..., "A release, its statement (.privacy.json), or its card next to it.", "FILE")


@dataclass(frozen=True, kw_only=True)
class PublicInputs:
    """The text column of a release, and the public inputs of its method."""

    text: str | None = input_option(None, "Column that holds the text.", "COLUMN", show_default="from the statement")
    public: tuple[str, ...] = input_option((), "Synthetic corpus: public pool it was drawn from (repeatable).", "POOL")
    public_text: str = PUBLIC_TEXT
    distribution: Path | None = input_option(
        None, "Synthetic corpus: its released distribution.", "FOLDER", show_default="FILE.distribution"
    )
    vectors: str | None = RELEASE_VECTORS
    bank: Path | None = RELEASE_BANK

    def inputs(self) -> dict[str, Any]:
        """Return the fields of `ReleaseFiles`."""
        return {**vars(self), "public": public_sources(self.public), "seed": ANALYSIS_SEED}


_FEATURES = f"Text features: {', '.join(NAMES)}, or the path of word vectors or of a sentence model."
FEATURES = method_option(None, _FEATURES, "NAME|PATH", show_default=DEFAULT_IN_WORDS)
ENCODER = method_option(None, _FEATURES, "NAME|PATH", "--encoder", show_default=DEFAULT_IN_WORDS)
ENGINE = run_option("local", "Execution engine: this machine, or Spark (paths must be visible to the cluster).")
PROCESSES = run_option(1, "Number of processes. The output does not depend on it.", "N", min=1)
PLAN = run_option(False, "Predict the quality for --people users without reading private data, then exit.")
PEOPLE_REQUIRED = "--plan needs a public number of users: --people 1000 (do not count IN)"
PEOPLE = run_option(None, "Public number of users for --plan. Do not count the private data.", "N")


@dataclass(frozen=True, kw_only=True)
class Run:
    """Options of a run that writes a release."""

    resume: bool = run_option(False, "Resume an interrupted run.")
    seed: int | None = SEED
    force: bool = FORCE
    yes: bool = run_option(False, "Do not ask for confirmation.", None, "--yes", "-y")

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of a release."""
        return {"resume": self.resume, "seed": self.seed, "force": self.force}
