"""Options that several commands share, each declared once, and the dataclasses in which commands receive them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dptext.cli.console import print_json, say
from dptext.errors import ParameterError
from dptext.io.documents import OnError
from dptext.io.formats import NAMES_OF_FORMATS
from dptext.methods.questions import LICENCE
from dptext.vectors.formats import KNOWN_VECTORS

PANELS = ("Input", "Output", "Privacy", "Method", "Run")


def _option(panel: str, text: str, metavar: str | None = None, *flags: str, **settings: Any) -> Any:
    return typer.Option(*flags, help=text, metavar=metavar, rich_help_panel=panel, **settings)


input_option, output_option, privacy_option, method_option, run_option = (partial(_option, panel) for panel in PANELS)
EPSILON_REQUIRED = "--epsilon is required: run `dptext advise FILE` to choose a method and an epsilon"
ANALYSIS_SEED = 0  # of attacks, audits and reports: the same command gives the same numbers


@dataclass(frozen=True, kw_only=True)
class Output:
    """The options --json and --quiet, which every command has (`dptext.cli.app.Command`)."""

    as_json: bool = False
    quiet: bool = False

    def say(self, text: str) -> None:
        say(text, quiet=self.quiet)

    def print_result(self, data: Callable[[], Any], show: Callable[[], object]) -> None:
        """Print the result: as JSON with --json, else for people unless --quiet."""
        if self.as_json:
            print_json(data())
        elif not self.quiet:
            show()


def flag(name: str) -> str:
    """Return the flag of an option by the name of its parameter."""
    return {"settings": "--set", "in_format": "--format"}.get(name, f"--{name.replace('_', '-')}")


def changed_flags(group: Any, *names: str) -> list[str]:
    """Return the flags of the options of a group (or of some) whose values differ from the defaults."""
    options = [field for field in fields(group) if not names or field.name in names]
    return [flag(option.name) for option in options if getattr(group, option.name) != option.default]


# -- input -----------------------------------------------------------------------------------------------------

_FILES = f"Private files ({NAMES_OF_FORMATS}), folders or patterns; - for standard input."
Sources = Annotated[tuple[str, ...], typer.Argument(metavar="IN...", help=_FILES)]
OptionalSources = Annotated[tuple[str, ...], typer.Argument(metavar="IN", help=_FILES)]
Text = Annotated[str, input_option("Column that holds the text.", "COLUMN")]
Keep = Annotated[
    tuple[str, ...],
    output_option(
        "Column to publish unchanged (repeatable); other columns are dropped. Write COLUMN! to confirm a column "
        "that looks like an identifier.",
        "COLUMN",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The texts that a command reads."""

    sources: Sources
    text: Text = "text"
    in_format: Annotated[
        str | None, input_option("Input format (.jsonl, .csv) if the name has none.", "SUFFIX", "--format")
    ] = None
    encoding: Annotated[
        str | None, input_option("Input encoding if it is not UTF-8, such as windows-1252.", "NAME")
    ] = None

    @property
    def layout(self) -> dict[str, Any]:
        return {"suffix": self.in_format, "encoding": self.encoding}


@dataclass(frozen=True, kw_only=True)
class OptionalInputs(Inputs):
    """The texts that a command reads, if any."""

    sources: OptionalSources = ()


@dataclass(frozen=True, kw_only=True)
class Rows(Inputs):
    """The rows that a command reads, and the columns that it publishes."""

    keep: Keep = ()
    on_error: Annotated[OnError, input_option("Unreadable row: stop, or skip it and list it in OUT.rejects.jsonl.")] = (
        "fail"
    )

    @property
    def kept(self) -> tuple[str, ...]:
        return tuple(name.removesuffix("!") for name in self.keep)

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Columns to keep that were not confirmed by ``!``."""
        return tuple(name for name in self.keep if not name.endswith("!"))

    @property
    def reading(self) -> dict[str, Any]:
        return {"text": self.text, "keep": self.kept, "on_error": self.on_error, **self.layout}


# -- output, privacy -------------------------------------------------------------------------------------------

Force = Annotated[bool, output_option("Replace an existing output or an interrupted run.")]
User = Annotated[str | None, privacy_option("Column that names the author, whom the guarantee protects.", "COLUMN")]
Delta = Annotated[float, privacy_option("Delta of the (epsilon, delta)-DP guarantee.")]
PublicUsers = Annotated[
    int | None,
    privacy_option(
        "Public upper bound on the number of users, used to check delta (skip-gram also divides by it). Do not "
        "count the private data.",
        "N",
    ),
]
Ledger = Annotated[
    Path | None, privacy_option("Ledger that charges this release, or refuses it (see dptext ledger).", "FILE")
]
Seed = Annotated[int | None, privacy_option("Repeatable noise, for tests and papers only. A seed voids the guarantee.")]


def check_user(unit: str, user: str | None) -> None:
    """Raise unless the column of users is named exactly if users are protected."""
    if unit == "user" and user is None:
        raise ParameterError(
            "--user COLUMN is required: it names the author, whom the guarantee protects. To protect single texts "
            "instead, use --unit document"
        )
    if unit != "user" and user is not None:
        raise ParameterError(f"--unit {unit} protects no users: leave --user out, or use --unit user")


@dataclass(frozen=True, kw_only=True)
class Charge:
    """The ledger that charges the rows, and the column that it charges."""

    ledger: Ledger = None
    user: Annotated[
        str | None,
        privacy_option(
            "Column that names the author: report the guarantee for all texts of one person, and charge authors "
            "in the ledger instead of texts.",
            "COLUMN",
        ),
    ] = None


RedactedList = Annotated[
    Path | None, input_option("Redaction list that was used for PRIVATE (one term per line).", "FILE", "--redact-list")
]


# -- method ----------------------------------------------------------------------------------------------------

Vectors = Annotated[
    str, method_option(f"Public word vectors: {', '.join(KNOWN_VECTORS)}, a file or folder.", "NAME|PATH")
]
Limit = Annotated[int, method_option("Number of the most frequent words to use.", "N")]
SetOption = Annotated[
    tuple[str, ...],
    method_option("Further argument of the mechanism's Python class (repeatable).", "NAME=VALUE", "--set"),
]


def parse_settings(settings: Iterable[str]) -> dict[str, str | float | int]:
    """Return ``["t=0.5"]`` (the values of ``--set``) as ``{"t": 0.5}``."""
    parsed: dict[str, str | float | int] = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign or not name or name in parsed:
            raise ParameterError(f"--set expects NAME=VALUE, each name once, got {setting!r}")
        parsed[name] = _number(value)
    return parsed


def _number(value: str) -> str | float | int:
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        return number if abs(number) < 2**63 or kind is float else float(value)
    return value


# -- public texts, and the public inputs of a release ----------------------------------------------------------


def _validate_licence(licence: str | None) -> str | None:
    if licence == LICENCE:
        raise ParameterError(f"--licence {LICENCE} is a placeholder: replace it by the licence of the public texts")
    return licence


Licence = Annotated[
    str | None,
    output_option("Licence of the public texts, shown in the statement and the card.", callback=_validate_licence),
]
PublicText = Annotated[str, input_option("Column of the public files that holds the text.", "COLUMN")]
PublicLabel = Annotated[str | None, input_option("Column of public labels, to predict or compare accuracy.", "COLUMN")]
VectorsOfRelease = Annotated[
    str | None, input_option("Word replacement: the public word vectors, if they moved.", "NAME|PATH", "--vectors")
]
BankOfRelease = Annotated[
    Path | None, input_option("Sentence replacement: the folder of the bank.", "FOLDER", "--bank")
]


ReleaseArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A release, its statement (.privacy.json), or a folder of releases.")
]


@dataclass(frozen=True, kw_only=True)
class PublicInputs:
    """The text column of a release, and the public inputs of its method."""

    text: Annotated[
        str | None, input_option("Column that holds the text.", "COLUMN", show_default="from the statement")
    ] = None
    public: Annotated[
        tuple[str, ...], input_option("Synthetic corpus: public pool it was drawn from (repeatable).", "POOL")
    ] = ()
    public_text: PublicText = "text"
    distribution: Annotated[
        Path | None,
        input_option("Synthetic corpus: its released distribution.", "FOLDER", show_default="FILE.distribution"),
    ] = None
    vectors: VectorsOfRelease = None
    bank: BankOfRelease = None

    def inputs(self) -> dict[str, Any]:
        """Return the fields of `ReleaseFiles` and `ReportConfig`."""
        return {**vars(self), "public": [Path(path) for path in self.public], "seed": ANALYSIS_SEED}


# -- run -------------------------------------------------------------------------------------------------------

Engine = Annotated[
    Literal["local", "spark"],
    run_option("Execution engine: this machine, or Spark (paths must be visible to the cluster)."),
]
Processes = Annotated[int, run_option("Number of processes. The output does not depend on it.", "N")]
Yes = Annotated[bool, run_option("Do not ask for confirmation.", None, "--yes", "-y")]
Plan = Annotated[
    bool,
    run_option("Predict the quality for a number of users (--people) without reading the private data, then exit."),
]
People = Annotated[int | None, run_option("Public number of users for --plan. Do not count the private data.", "N")]


@dataclass(frozen=True, kw_only=True)
class Run:
    """Options of a run that writes a release."""

    resume: Annotated[bool, run_option("Resume an interrupted run.")] = False
    seed: Seed = None
    force: Force = False
