"""The options that several commands share, each defined once, and their collection into objects."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, cleandoc, signature
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from rich.console import Console
from rich.logging import RichHandler

from dptext.cli.console import print_json, say
from dptext.errors import ParameterError
from dptext.io.documents import OnError
from dptext.io.formats import NAMES_OF_FORMATS
from dptext.methods.questions import LICENCE
from dptext.vectors.formats import KNOWN_VECTORS

if TYPE_CHECKING:
    from dptext.features.pool import Pool
    from dptext.release.mechanism import TextMechanism


# -- from options to objects -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class OneOf:
    """The values of an option where a registry decides them, in its ``Annotated``; else a ``Literal`` says them."""

    values: Iterable[str]


def collected(command: Callable[..., None]) -> Callable[..., None]:
    """A command as typer takes it: with every single option as a parameter, those without which it cannot run first.

    Docstrings may describe options: ``name (--flags METAVAR): help`` under ``Args:``, in a dataclass ``Attributes:``.
    """
    options: list[Parameter] = []
    objects: dict[str, tuple[Any, list[str]]] = {}
    hints = get_type_hints(command, include_extras=True)
    for parameter in signature(command).parameters.values():
        kind = hints[parameter.name]
        parts = _parameters(kind) if is_dataclass(kind) else [_described(parameter, kind, _documented(command)[1])]
        objects[parameter.name] = kind if is_dataclass(kind) else _itself, [part.name for part in parts]
        options += parts
    options.sort(key=lambda option: option.default is not Parameter.empty)
    defaults = {option.name: option.default for option in options}

    @wraps(command)
    def run(**given: Any) -> None:
        values = {name: _plain(value, defaults[name]) for name, value in given.items()}
        command(**{name: build(**{part: values[part] for part in names}) for name, (build, names) in objects.items()})

    shown: Any = run
    shown.__signature__ = Signature(list(map(_shown_to_typer, options)))
    shown.__annotations__, shown.__doc__ = {}, _documented(command)[0]
    return run


def _itself(**option: Any) -> Any:
    [value] = option.values()
    return value


def _parameters(kind: Any) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    described = {name: about for base in kind.__mro__[::-1] for name, about in _documented(base)[1].items()}
    return [_described(option, hints[option.name], described) for option in signature(kind).parameters.values()]


def _documented(owner: Any) -> tuple[str, dict[str, tuple[list[str], str]]]:
    """A docstring without its section of options, and the flags and the help of each of these."""
    text, *sections = re.split(r"\n\n(?:Args|Attributes):\n", cleandoc(owner.__doc__ or ""), maxsplit=1)
    entries = [" ".join(entry.split()) for section in sections for entry in re.split(r"\n(?= {4}\w)", section)]
    matches = [match for entry in entries if (match := re.fullmatch(r"(\w+)(?: \(([^)]+)\))?: (.*)", entry))]
    return text, {name: ((flags or "").split(), about) for name, flags, about in (match.groups() for match in matches)}


def _described(parameter: Parameter, kind: Any, described: Mapping[str, tuple[list[str], str]]) -> Parameter:
    if get_origin(kind) is not Annotated:
        words, about = described[parameter.name]
        flags = [word for word in words if word.startswith("-")]
        metavar = next((word for word in words if word not in flags), None)
        if kind is bool and not flags:
            flags = [f"--{parameter.name.replace('_', '-')}"]
        kind = Annotated[kind, typer.Option(*flags, metavar=metavar, help=about)]
    return parameter.replace(annotation=kind)


def _shown_to_typer(option: Parameter) -> Parameter:
    """With an enumeration in place of choices, and a list in place of a tuple: typer knows no others."""
    kind, *about = get_args(option.annotation)
    [how] = [each for each in about if not isinstance(each, OneOf)]
    inner: Any = kind
    if NoneType in get_args(kind):
        [inner] = (each for each in get_args(kind) if each is not NoneType)
    choices = [each.values for each in about if isinstance(each, OneOf)]
    if get_origin(inner) is Literal:
        choices.append(get_args(inner))
    default = option.default
    if choices:
        enumeration: Any = StrEnum
        inner = enumeration(option.name, {each: each for each in choices[0]})
        default = default if default in (None, Parameter.empty) else inner(default)
    elif get_origin(inner) is tuple:
        item: Any = get_args(inner)[0]
        inner, default = list[item], None if default == () else default
    shown: Any = Annotated
    annotation = shown[inner | None if default is None else inner, how]
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _plain(value: Any, default: Any) -> Any:
    if value is None:
        return () if default == () else None
    if isinstance(value, StrEnum):
        return value.value
    return tuple(value) if isinstance(value, list) else value


def flag(name: str) -> str:
    """The flag of an option, by the name of its parameter."""
    return "--set" if name == "settings" else f"--{name.replace('_', '-')}"


def given_flags(group: Any, *names: str) -> list[str]:
    """The flags of those options of a group (by default all) whose values are not the default ones."""
    parts = [part for part in fields(group) if not names or part.name in names]
    return [flag(part.name) for part in parts if getattr(group, part.name) != part.default]


# -- what is said ----------------------------------------------------------------------------------------------


def _set_verbose(wanted: bool) -> bool:
    if wanted:
        logger = logging.getLogger("dptext")
        logger.setLevel(logging.DEBUG)
        if not logger.handlers:
            logger.addHandler(RichHandler(console=Console(stderr=True), show_path=False))
    return wanted


QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", callback=_set_verbose, help="Say what is being done.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]


@dataclass(frozen=True, kw_only=True)
class Output:
    """How a command answers: what it prints."""

    as_json: JsonOption = False
    quiet: QuietOption = False
    _verbose: VerboseOption = False

    def say(self, text: str) -> None:
        say(text, quiet=self.quiet)

    def answer(self, data: Callable[[], Any], show: Callable[[], object]) -> None:
        """Print the result: as JSON with --json, else for people unless --quiet."""
        if self.as_json:
            print_json(data())
        elif not self.quiet:
            show()


# -- what is read ----------------------------------------------------------------------------------------------

Sources = Annotated[
    tuple[str, ...],
    typer.Argument(metavar="IN...", help=f"Files ({NAMES_OF_FORMATS}), folders, patterns, or - for standard input."),
]
Text = Annotated[str, typer.Option(help="The column that holds the text.")]
InFormat = Annotated[
    str | None, typer.Option("--format", metavar="SUFFIX", help="Format of IN where its name does not tell.")
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Encoding of IN if it is not UTF-8, for example windows-1252.")
]
Separator = Annotated[
    str | None, typer.Option(metavar="CHARACTER", help="Field separator of a .csv file if it is not the comma.")
]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Which texts a command reads."""

    sources: Sources
    text: Text = "text"
    in_format: InFormat = None
    encoding: Encoding = None
    separator: Separator = None

    @property
    def layout(self) -> dict[str, Any]:
        return {"suffix": self.in_format, "encoding": self.encoding, "separator": self.separator}


@dataclass(frozen=True, kw_only=True)
class Rows(Inputs):
    """Which rows a command reads, and what it keeps of them.

    Attributes:
        keep (NAME): A column to keep as it is (may be repeated); it is exposed. All others are dropped. One that looks
            like an identifier is kept if NAME! says that it is meant (so a name that ends in ! takes one more).
        keep_identifying: Keep columns that look like identifiers without NAME!.
        on_error: A row that cannot be read: stop, or leave it out and list it in OUT.rejects.jsonl.
    """

    keep: tuple[str, ...] = ()
    keep_identifying: bool = False
    on_error: OnError = "fail"

    def __post_init__(self) -> None:
        plain = tuple(each.removesuffix("!") for each in self.keep)
        doubted = () if self.keep_identifying else tuple(each for each in self.keep if not each.endswith("!"))
        object.__setattr__(self, "keep", plain)
        self.__dict__["_in_doubt"] = doubted

    @property
    def in_doubt(self) -> tuple[str, ...]:
        doubted: tuple[str, ...] = self.__dict__["_in_doubt"]
        return doubted

    @property
    def reading(self) -> dict[str, Any]:
        return {"text": self.text, "keep": self.keep, "on_error": self.on_error, **self.layout}


def check_user(unit: str, user: str | None) -> None:
    """Whether the column of users is named where users are protected, and only there."""
    if unit == "user" and user is None:
        raise ParameterError(
            "say who wrote a text, and so who is protected: --user COLUMN (or protect single documents, which is "
            "no promise to a person: --unit document)"
        )
    if unit != "user" and user is not None:
        raise ParameterError(
            f"--unit {unit} promises nothing to a user: leave --user out, or protect users (--unit user)"
        )


# -- how a release is conducted --------------------------------------------------------------------------------

Seed = Annotated[int | None, typer.Option(help="Repeatable noise, for tests and papers only: it voids the promise.")]
Engine = Annotated[
    Literal["local", "spark"],
    typer.Option(help="What does the work: this machine, or Spark on paths that its cluster sees."),
]
Processes = Annotated[int, typer.Option(help="How many processes work; the output does not depend on it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Go on without asking.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an output that is there, or an interrupted run of it.")]
Ledger = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A ledger that charges every row, or every user, or refuses the release."),
]


@dataclass(frozen=True, kw_only=True)
class Run:
    """How a run that writes a release is conducted."""

    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False
    seed: Seed = None
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What charges the rows.

    Attributes:
        user (COLUMN): Who wrote a text: their texts add up, and what that comes to is said to you alone. A ledger
            charges them (else the text itself).
    """

    ledger: Ledger = None
    user: str | None = None


# -- public word vectors, mechanisms ---------------------------------------------------------------------------

Vectors = Annotated[
    str, typer.Option(metavar="NAME|PATH", help=f"Public word vectors: {', '.join(KNOWN_VECTORS)}, file or folder.")
]
MovedVectors = Annotated[
    str | None, typer.Option(metavar="NAME|PATH", help="The public word vectors, if they are not where they were.")
]
Limit = Annotated[int, typer.Option(help="Use this many of the most frequent words.")]
Metric = Annotated[str | None, typer.Option(help="TEM: euclidean, angular, manhattan, chebyshev or poincare.")]
PureEpsilon = Annotated[
    float | None, typer.Option(help="TEM: the worst case of a word; the threshold follows from it.")
]
Beta = Annotated[float | None, typer.Option(help="TEM: how rarely a word goes farther than the threshold.")]

Settings = dict[str, str | float | int | None]


def parse_settings(settings: Iterable[str]) -> Settings:
    """``["t=0.5"]`` as ``{"t": 0.5}``: what ``--set`` says."""
    found: Settings = {}
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


# -- what a budget buys, before it is spent ------------------------------------------------------------------------

Plan = Annotated[bool, typer.Option("--plan", help="Say what a budget buys with so many people (--people), and stop.")]
People = Annotated[
    int | None, typer.Option(metavar="N", help="For --plan: a public number of people. Never a count of IN.")
]


# -- synthetic corpora -----------------------------------------------------------------------------------------


PoolBehind = Annotated[
    tuple[str, ...],
    typer.Option(metavar="POOL", help="Of a synthetic corpus: the public texts behind it (may be repeated)."),
]


def _validate_licence(licence: str | None) -> str | None:
    if licence == LICENCE:
        raise ParameterError(f"--licence {LICENCE} is a placeholder: replace it by the licence of the public texts")
    return licence


Licence = Annotated[
    str | None,
    typer.Option(callback=_validate_licence, help="Licence of the public texts, shown in the statement and the card."),
]
PublicText = Annotated[str, typer.Option(metavar="COLUMN", help="The column of POOL that holds the text.")]


@dataclass(frozen=True, kw_only=True)
class SyntheticInputs:
    """What stands behind a synthetic corpus: all of it is public."""

    public: PoolBehind = ()
    public_text: PublicText = "text"
    distribution: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Of a synthetic corpus: its description (default: FILE.distribution)."),
    ] = None

    def pool(self) -> Pool | None:
        from dptext.features.pool import Pool  # not every command starts with it

        return Pool([Path(each) for each in self.public], text=self.public_text) if self.public else None


# -- texts of a bank ------------------------------------------------------------------------------------------

BankBehind = Annotated[
    Path | None, typer.Option("--bank", metavar="FOLDER", help="Of texts of a bank: the folder of the bank.")
]

# -- attacks and audits ----------------------------------------------------------------------------------------

Folds = Annotated[int, typer.Option(help="Into how many parts rows are cut for training and test.")]
Samples = Annotated[int, typer.Option(help="Outputs of each input, where the audit has to sample.")]
AnalysisSeed = Annotated[int | None, typer.Option(help="Make the same random choices again.")]


RedactedList = Annotated[
    Path | None,
    typer.Option(
        "--redact-list",
        metavar="FILE",
        help="Terms to look for, one a line; of texts that were redacted by a list, that list.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RedactionOptions:
    """What is recognised, and by what.

    Attributes:
        redact: First replace addresses, phone numbers, cards, long numbers and dates, found by patterns, by
            placeholders such as <email>. Patterns find no names. Recognition promises nothing.
        redact_presidio: Also replace names, places and other entities that Presidio recognises in English texts (extra
            presidio). Implies --redact.
        redact_list (FILE): Also redact these terms: UTF-8, one a line. No statement says which.
    """

    redact: bool = False
    redact_presidio: bool = False
    redact_list: Path | None = None

    def check_apart(self, outs: Iterable[Path]) -> None:
        if self.redact_list is not None and self.redact_list.resolve() in (out.resolve() for out in outs):
            raise ParameterError(
                f"{self.redact_list.name!r} is the list of what to redact: choose another name for OUT"
            )

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
