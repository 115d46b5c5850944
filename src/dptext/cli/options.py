"""The options that several commands share, each declared once, and the objects that commands receive them in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from dptext.cli.console import print_json, say
from dptext.errors import ParameterError
from dptext.io.documents import OnError
from dptext.io.formats import NAMES_OF_FORMATS
from dptext.methods.questions import LICENCE
from dptext.vectors.formats import KNOWN_VECTORS

if TYPE_CHECKING:
    from dptext.features.pool import Pool
    from dptext.release.mechanism import TextMechanism

PANELS = ("Input", "Output", "Privacy", "Method", "Run")
input_option, output_option, privacy_option, method_option, run_option = (
    partial(typer.Option, rich_help_panel=panel) for panel in PANELS
)


@dataclass(frozen=True, kw_only=True)
class Output:
    """What a command prints: decided by the options --json and --quiet, which every command has (`app.Command`)."""

    as_json: bool = False
    quiet: bool = False

    def say(self, text: str) -> None:
        say(text, quiet=self.quiet)

    def answer(self, data: Callable[[], Any], show: Callable[[], object]) -> None:
        """Print the result: as JSON with --json, else for people unless --quiet."""
        if self.as_json:
            print_json(data())
        elif not self.quiet:
            show()


# -- from options to objects -----------------------------------------------------------------------------------


def collected(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with one parameter per option, as typer needs it, from one that takes options in dataclasses."""
    options: list[Parameter] = []
    builders: dict[str, Callable[..., Any]] = {}
    hints = get_type_hints(command, include_extras=True)
    for parameter in signature(command).parameters.values():
        kind = hints[parameter.name]
        if kind is Output:
            builders[parameter.name] = lambda context, _values: Output(
                **{name: context.meta.get(name, False) for name in ("as_json", "quiet")}
            )
        elif is_dataclass(kind):
            parts = _parameters(kind)
            builders[parameter.name] = partial(_built, kind, [part.name for part in parts])
            options += parts
        else:
            builders[parameter.name] = partial(_value, parameter.name)
            options.append(parameter.replace(annotation=kind))
    defaults = {option.name: option.default for option in options}

    @wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        values = {
            name: tuple(values[name] or ()) if default == () or isinstance(values[name], list) else values[name]
            for name, default in defaults.items()
        }
        command(**{name: build(context, values) for name, build in builders.items()})

    described: Any = run
    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    described.__signature__ = Signature([context, *map(_for_typer, sorted(options, key=_panel))])
    described.__annotations__ = {}
    described.__doc__ = "\n\n".join(" ".join(part.split()) for part in (command.__doc__ or "").split("\n\n"))
    return run


def _built(kind: Any, names: list[str], _context: typer.Context, values: dict[str, Any]) -> Any:
    return kind(**{name: values[name] for name in names})


def _value(name: str, _context: typer.Context, values: dict[str, Any]) -> Any:
    return values[name]


def _parameters(kind: Any) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [each.replace(annotation=hints[each.name]) for each in signature(kind).parameters.values()]


def _panel(option: Parameter) -> int:
    panel = get_args(option.annotation)[1].rich_help_panel
    return PANELS.index(panel) if panel in PANELS else -1


def _for_typer(option: Parameter) -> Parameter:
    """Replace a tuple by a list: typer knows no tuples of any length."""
    kind, about = get_args(option.annotation)
    default = option.default
    if get_origin(kind) is tuple:
        item: Any = get_args(kind)[0]
        kind, default = (list[item] | None, None) if default == () else (list[item], default)
    annotated: Any = Annotated
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotated[kind, about])


def flag(name: str) -> str:
    """Return the flag of an option by the name of its parameter."""
    return {"settings": "--set", "in_format": "--format"}.get(name, f"--{name.replace('_', '-')}")


def given_flags(group: Any, *names: str) -> list[str]:
    """Return the flags of those options of a group (by default all) whose values are not the default ones."""
    parts = [part for part in fields(group) if not names or part.name in names]
    return [flag(part.name) for part in parts if getattr(group, part.name) != part.default]


# -- input -----------------------------------------------------------------------------------------------------

Sources = Annotated[
    tuple[str, ...],
    typer.Argument(
        metavar="IN...", help=f"Private files ({NAMES_OF_FORMATS}), folders or patterns; - for standard input."
    ),
]
ReleaseArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A release, its statement (.privacy.json), or a folder of releases."),
]
Text = Annotated[str, input_option(metavar="COLUMN", help="Column that holds the text.")]
TextOfRelease = Annotated[
    str | None,
    input_option("--text", metavar="COLUMN", help="Column that holds the text.", show_default="from the statement"),
]
User = Annotated[
    str | None, privacy_option(metavar="COLUMN", help="Column that names the author, whom the guarantee protects.")
]
InFormat = Annotated[
    str | None, input_option("--format", metavar="SUFFIX", help="Input format (.jsonl, .csv) if the name has none.")
]
Encoding = Annotated[
    str | None, input_option(metavar="NAME", help="Input encoding if it is not UTF-8, such as windows-1252.")
]
Keep = Annotated[
    tuple[str, ...],
    output_option(
        metavar="COLUMN",
        help="Column to publish unchanged (repeatable); other columns are dropped. Write COLUMN! to confirm a column "
        "that looks like an identifier.",
    ),
]
SkipOption = Annotated[OnError, input_option(help="Unreadable row: stop, or skip it and list it in OUT.rejects.jsonl.")]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Which texts a command reads."""

    sources: Sources
    text: Text = "text"
    in_format: InFormat = None
    encoding: Encoding = None

    @property
    def layout(self) -> dict[str, Any]:
        return {"suffix": self.in_format, "encoding": self.encoding}


OptionalSources = Annotated[
    tuple[str, ...],
    typer.Argument(
        metavar="IN", help=f"Private files ({NAMES_OF_FORMATS}), folders or patterns; - for standard input."
    ),
]


@dataclass(frozen=True, kw_only=True)
class OptionalInputs(Inputs):
    """Which texts a command reads, if it reads any."""

    sources: OptionalSources = ()


@dataclass(frozen=True, kw_only=True)
class Rows(Inputs):
    """Which rows a command reads, and which of their columns it publishes."""

    keep: Keep = ()
    on_error: SkipOption = "fail"

    def __post_init__(self) -> None:
        unconfirmed = tuple(name for name in self.keep if not name.endswith("!"))
        object.__setattr__(self, "keep", tuple(name.removesuffix("!") for name in self.keep))
        self.__dict__["_unconfirmed"] = unconfirmed

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Columns to keep that were not confirmed by ``!``."""
        names: tuple[str, ...] = self.__dict__["_unconfirmed"]
        return names

    @property
    def reading(self) -> dict[str, Any]:
        return {"text": self.text, "keep": self.keep, "on_error": self.on_error, **self.layout}


# -- output ----------------------------------------------------------------------------------------------------

Force = Annotated[bool, output_option("--force", help="Replace an existing output or an interrupted run.")]

# -- privacy ---------------------------------------------------------------------------------------------------

Delta = Annotated[float, privacy_option(help="Delta of the (epsilon, delta)-DP guarantee.")]
PublicUsers = Annotated[
    int | None,
    privacy_option(
        metavar="N",
        help="Public upper bound on the number of users, used to check delta. Do not count the private data.",
    ),
]
Ledger = Annotated[
    Path | None,
    privacy_option(metavar="FILE", help="Ledger that charges this release, or refuses it (see dptext ledger)."),
]
Seed = Annotated[
    int | None, privacy_option(help="Repeatable noise, for tests and papers only. A seed voids the guarantee.")
]


EPSILON_REQUIRED = "--epsilon is required: run `dptext advise FILE` to choose a method and an epsilon"


def check_user(unit: str, user: str | None) -> None:
    """Raise unless the column of users is named exactly where users are protected."""
    if unit == "user" and user is None:
        raise ParameterError(
            "--user COLUMN is required: it names the author, whom the guarantee protects. To protect single texts "
            "instead, use --unit document"
        )
    if unit != "user" and user is not None:
        raise ParameterError(f"--unit {unit} protects no users: leave --user out, or use --unit user")


@dataclass(frozen=True, kw_only=True)
class Charge:
    """Which ledger charges the rows, and by which column."""

    ledger: Ledger = None
    user: Annotated[
        str | None,
        privacy_option(
            metavar="COLUMN",
            help="Column that names the author: report the guarantee for all texts of one person, and charge authors "
            "in the ledger instead of texts.",
        ),
    ] = None


RedactedList = Annotated[
    Path | None,
    input_option("--redact-list", metavar="FILE", help="Redaction list that was used for PRIVATE (one term per line)."),
]


@dataclass(frozen=True, kw_only=True)
class RedactionOptions:
    """Which identifiers are replaced before the mechanism runs."""

    redact: Annotated[
        bool,
        privacy_option(
            "--redact",
            help="First replace e-mail addresses, phone and card numbers and dates by placeholders. Names are not "
            "recognised, and recognition is no guarantee.",
        ),
    ] = False
    redact_presidio: Annotated[
        bool,
        privacy_option(
            "--redact-presidio", help="Also replace the names and places that Presidio recognises in English texts."
        ),
    ] = False
    redact_list: Annotated[
        Path | None,
        privacy_option("--redact-list", metavar="FILE", help="Also replace the terms in this file (one per line)."),
    ] = None

    def check_apart(self, outs: Iterable[Path]) -> None:
        if self.redact_list is not None and self.redact_list.resolve() in (out.resolve() for out in outs):
            raise ParameterError(f"{self.redact_list.name!r} is the redaction list: choose another name for OUT")

    def around(self, mechanism: TextMechanism) -> TextMechanism:
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


# -- method ----------------------------------------------------------------------------------------------------

Vectors = Annotated[
    str, method_option(metavar="NAME|PATH", help=f"Public word vectors: {', '.join(KNOWN_VECTORS)}, a file or folder.")
]
Limit = Annotated[int, method_option(metavar="N", help="Number of the most frequent words to use.")]
SetOption = Annotated[
    tuple[str, ...],
    method_option("--set", metavar="NAME=VALUE", help="Further argument of the mechanism's Python class (repeatable)."),
]

Settings = dict[str, str | float | int | None]
_LARGEST_INTEGER = 2**63


def parse_settings(settings: Iterable[str]) -> Settings:
    """Return ``["t=0.5"]`` (the values of ``--set``) as ``{"t": 0.5}``."""
    parsed: Settings = {}
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
        return number if abs(number) < _LARGEST_INTEGER or kind is float else float(value)
    return value


# -- public texts, and what a release was made with ------------------------------------------------------------


def _validate_licence(licence: str | None) -> str | None:
    if licence == LICENCE:
        raise ParameterError(f"--licence {LICENCE} is a placeholder: replace it by the licence of the public texts")
    return licence


Licence = Annotated[
    str | None,
    output_option(callback=_validate_licence, help="Licence of the public texts, shown in the statement and the card."),
]
PublicText = Annotated[str, input_option(metavar="COLUMN", help="Column of the public files that holds the text.")]
PublicLabel = Annotated[
    str | None, input_option(metavar="COLUMN", help="Column of public labels, to predict or compare accuracy.")
]
PublicOfRelease = Annotated[
    tuple[str, ...],
    input_option("--public", metavar="POOL", help="Synthetic corpus: public pool it was drawn from (repeatable)."),
]
DistributionOfRelease = Annotated[
    Path | None,
    input_option(
        "--distribution",
        metavar="FOLDER",
        help="Synthetic corpus: its released distribution.",
        show_default="FILE.distribution",
    ),
]
VectorsOfRelease = Annotated[
    str | None,
    input_option("--vectors", metavar="NAME|PATH", help="Word replacement: the public word vectors, if they moved."),
]
BankOfRelease = Annotated[
    Path | None, input_option("--bank", metavar="FOLDER", help="Sentence replacement: the folder of the bank.")
]
ANALYSIS_SEED = 0  # of attacks, audits and reports: the same command gives the same numbers
Samples = Annotated[int, run_option(metavar="N", help="Outputs per input where an audit has to sample.")]


@dataclass(frozen=True, kw_only=True)
class SyntheticInputs:
    """The public pool and the distribution that a synthetic corpus was drawn from."""

    public: PublicOfRelease = ()
    public_text: PublicText = "text"
    distribution: DistributionOfRelease = None

    def pool(self) -> Pool | None:
        from dptext.features.pool import Pool  # few commands need it

        return Pool([Path(name) for name in self.public], text=self.public_text) if self.public else None


# -- run -------------------------------------------------------------------------------------------------------

Engine = Annotated[
    Literal["local", "spark"],
    run_option(help="Execution engine: this machine, or Spark (paths must be visible to the cluster)."),
]
Processes = Annotated[int, run_option(metavar="N", help="Number of processes. The output does not depend on it.")]
Yes = Annotated[bool, run_option("--yes", "-y", help="Do not ask for confirmation.")]
Plan = Annotated[
    bool,
    run_option(
        "--plan",
        help="Predict the quality for a number of users (--people) without reading the private data, then exit.",
    ),
]
People = Annotated[
    int | None, run_option(metavar="N", help="Public number of users for --plan. Do not count the private data.")
]


@dataclass(frozen=True, kw_only=True)
class Run:
    """How a run that writes a release is conducted."""

    resume: Annotated[bool, run_option("--resume", help="Resume an interrupted run.")] = False
    seed: Seed = None
    force: Force = False
