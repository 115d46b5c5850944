"""The list of release methods, one line for each, and the functions that find the method of a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dptext.errors import DataError, ParameterError
from dptext.io.artifacts import announced_format
from dptext.methods.bank import Bank
from dptext.methods.base import Method
from dptext.methods.embeddings import Embeddings
from dptext.methods.examination import ROW_ATTACKS, AttackResult
from dptext.methods.files import ReleaseFiles, columns_of
from dptext.methods.summary import Summaries
from dptext.methods.synthesis import Synthesis
from dptext.methods.vectors import Vectors
from dptext.methods.words import Words
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import (
    STATEMENT,
    data_agrees,
    data_and_statement,
    is_present,
    kept_as_it_was,
    read_statement,
)
from dptext.representations.device import VECTOR
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import add_randomizer
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import add_word_mechanism

METHODS: tuple[Method, ...] = (Synthesis(), Summaries(), Embeddings(), Bank(), Vectors(), Words())

MechanismClass = TypeVar("MechanismClass", bound=type)


def register(mechanism: MechanismClass) -> MechanismClass:
    """Register a word mechanism or a randomizer of your own, so that files made with it can be audited and reported.

    The registration is valid in this process. The function also works as a decorator of the class.

    Args:
        mechanism: a subclass of `dptext.words.mechanism.WordMechanism` (or `ShownMechanism`, whose distributions can be
            read) or of `dptext.representations.randomizer.Randomizer`, with a ``name`` of its own. Its constructor
            takes the entries of its ``parameters()`` as keyword arguments.

    Returns:
        The class itself.

    Raises:
        ParameterError: another kind of class; a name that is taken.

    **Guarantee**: this call gives none. The statement says what the class claims; `dptext.audit` tries to refute it.
    """
    if isinstance(mechanism, type) and issubclass(mechanism, WordMechanism):
        add_word_mechanism(mechanism)
    elif isinstance(mechanism, type) and issubclass(mechanism, Randomizer):
        add_randomizer(mechanism)
    else:
        raise ParameterError("mechanism must be a subclass of WordMechanism or Randomizer")
    return mechanism


def method_of(statement: PrivacyStatement) -> Method:
    """Return the method that made a release; raise if the mechanism of the statement belongs to none."""
    for method in METHODS:
        if method.recognizes(statement):
            return method
    raise DataError(
        "the mechanism of the statement is not known here: use the version of dptext that the statement names, or "
        "register a mechanism of your own first (dptext.register)"
    )


def method_of_folder(folder: Path) -> Method | None:
    """Return the method whose folder this is, by the format that its configuration announces."""
    announced = announced_format(folder)
    return next((method for method in METHODS if announced is not None and method.folder == announced), None)


# -- the inputs that a method uses --------------------------------------------------------------------------------


def refuse_inputs(method: Method, data: Path, inputs: Mapping[str, Any]) -> None:
    """Raise if there are public inputs that the examination of this method does not use."""
    known = frozenset[str]().union(*(other.inputs for other in METHODS))
    foreign = [f"--{name.replace('_', '-')}" for name in inputs if inputs[name] and name in known - method.inputs]
    if foreign:
        raise ParameterError(f"{data.name} contains {method.holds}: omit {' and '.join(foreign)}")


def text_column(data: Path, statement: PrivacyStatement) -> str:
    """Return the column that a release wrote its texts to: the first one that is neither kept nor a vector."""
    columns = columns_of(data) if is_present(data) else []
    return next((name for name in columns if name != VECTOR and kept_as_it_was(name) not in statement.exposed), "text")


# -- finding a release ---------------------------------------------------------------------------------------------


def open_release(path: Path, **inputs: Any) -> tuple[Method, ReleaseFiles]:
    """Find the method and files of a release; without ``text`` in the inputs, the statement tells the column."""
    data, place = data_and_statement(path)
    of_folder = method_of_folder(data) if data.is_dir() else None
    statement = read_statement(place) if of_folder is None else _statement_of_folder(place, of_folder)
    method = of_folder or method_of(statement)
    refuse_inputs(method, data, inputs)
    if inputs.get("text") is None:
        inputs["text"] = text_column(data, statement) if of_folder is None else "text"
    return method, ReleaseFiles(data=data, statement_or_none=statement, **inputs)


@dataclass(frozen=True)
class Verification:
    """A statement, the data that it belongs to, and the comparison of the two (``agrees``; None: no data here)."""

    data: Path
    place: Path
    statement: PrivacyStatement
    agrees: bool | None
    is_folder: bool = False


def verify_release(path: Path) -> Verification:
    """Compare a release with its statement: the digest of the data, or of all files of a released folder."""
    data, place = data_and_statement(path)
    method = method_of_folder(place.parent)
    statement = read_statement(place) if method is None else _statement_of_folder(place, method)
    if method is not None and place.name in method.verify_folder(place.parent):
        return Verification(place.parent.resolve(), place, statement, agrees=True, is_folder=True)
    return Verification(data, place, statement, data_agrees(statement, data))


def _statement_of_folder(place: Path, method: Method) -> PrivacyStatement:
    if not place.exists():
        raise DataError(
            f"{place.parent.name} contains {method.holds} without a privacy statement, so it has no guarantee to verify"
        )
    return read_statement(place)


def attack_release(name: str, path: Path, **inputs: Any) -> AttackResult:
    """Run an attack of ``dptext attack`` on a file or a folder; without a statement, only its rows can be attacked."""
    method = method_of_folder(path) if path.is_dir() else None
    place = data_and_statement(path)[1] if method is None else path / STATEMENT
    statement = read_statement(place) if place.exists() else None
    if method is None and statement is not None:
        method = method_of(statement)
    attacks, holds = ROW_ATTACKS, "has no privacy statement"
    if method is not None:
        refuse_inputs(method, path, inputs)
        attacks, holds = method.attacks, f"contains {method.holds}"
    elif inputs.get("bank") or inputs.get("vectors"):
        raise ParameterError(f"{path.name} {holds}: omit --bank and --vectors")
    if name not in attacks:
        others = f"run `dptext attack` with {' or '.join(attacks)}, not {name}" if attacks else "no attack applies"
        raise ParameterError(f"{path.name} {holds}: {others}")
    return attacks[name](ReleaseFiles(data=path, statement_or_none=statement, **inputs))
