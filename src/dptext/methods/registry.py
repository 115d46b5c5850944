"""The list of release methods, one line for each, and the functions that find the method of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dptext.errors import DataError, ParameterError
from dptext.io.artifacts import announced_format
from dptext.methods.bank import Bank
from dptext.methods.base import Audit, Method, ReleaseFiles
from dptext.methods.embeddings import Embeddings
from dptext.methods.files import STATEMENT, Rows
from dptext.methods.row_report import as_seen
from dptext.methods.synthesis import Synthesis
from dptext.methods.vectors import Vectors
from dptext.methods.words import Words
from dptext.privacy.statement import PrivacyStatement
from dptext.release.redaction import is_redacted
from dptext.release.release import data_and_statement, read_statement
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import add_randomizer
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import add_word_mechanism

METHODS: tuple[Method, ...] = (Synthesis(), Embeddings(), Bank(), Vectors(), Words())


MechanismClass = TypeVar("MechanismClass", bound=type)


def register(mechanism: MechanismClass) -> MechanismClass:
    """Register a word mechanism or a randomizer of your own, so that files made with it can be audited and reported.

    The registration holds for this process. Use it as a decorator of the class.

    Args:
        mechanism: a subclass of `dptext.words.mechanism.WordMechanism` (or `ShownMechanism`, whose distributions can be
            read) or of `dptext.representations.randomizer.Randomizer`, with a ``name`` of its own. Its constructor
            takes by name what its ``parameters()`` states.

    Returns:
        The class itself.

    Raises:
        ParameterError: another kind of class; a name that is taken.

    **Guarantee**: none by this call. The statement says what the class claims; `dptext.audit` tries to refute it.
    """
    if isinstance(mechanism, type) and issubclass(mechanism, WordMechanism):
        add_word_mechanism(mechanism)
    elif isinstance(mechanism, type) and issubclass(mechanism, Randomizer):
        add_randomizer(mechanism)
    else:
        raise ParameterError("mechanism must be a subclass of WordMechanism or Randomizer")
    return mechanism


def method_of(statement: PrivacyStatement) -> Method:
    """Return the method that made a release.

    Raises:
        DataError: the mechanism of the statement belongs to none.
    """
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


def open_release(path: Path, **inputs: Any) -> tuple[Method, ReleaseFiles]:
    """Find the statement and the method of a release: a file with its statement beside it, or a folder of a method.

    Args:
        path: the data, its statement, or the folder.
        inputs: fields of `ReleaseFiles`.

    Raises:
        ParameterError: an input that this method does not take.
        DataError, StorageError: no statement; one of an unknown mechanism.
    """
    folder = path.parent if path.name == STATEMENT else path
    method = method_of_folder(folder) if folder.is_dir() else None
    if method is not None:
        place = folder / STATEMENT
        if not place.exists():
            raise DataError(
                f"{folder.name} holds {method.holds} without a statement: nothing was promised to who wrote what they "
                "were made from, so there is nothing to audit"
            )
        return method, ReleaseFiles(data=folder, statement=read_statement(place), **inputs)
    data, beside = data_and_statement(path)
    files = ReleaseFiles(data=data, statement=read_statement(beside), **inputs)
    method = method_of(files.statement)
    refuse_inputs(method, files.data, inputs)
    return method, files


def foreign_inputs(method: Method, inputs: Mapping[str, Any]) -> list[str]:
    """Return the public inputs that were named and that the examination of this method does not take."""
    known = frozenset[str]().union(*(other.inputs for other in METHODS))
    return [name for name in inputs if inputs[name] and name in known - method.inputs]


def refuse_inputs(method: Method, data: Path, inputs: Mapping[str, Any]) -> None:
    """Raise if there are `foreign_inputs`."""
    foreign = [f"--{name.replace('_', '-')}" for name in foreign_inputs(method, inputs)]
    if foreign:
        raise ParameterError(f"{data.name} holds {method.holds}: leave {' and '.join(foreign)} out")


def audit_release(path: Path, **inputs: Any) -> tuple[Method, Audit]:
    """Check a release against its statement, and test its guarantee."""
    method, files = open_release(path, **inputs)
    return method, method.check(files)


def as_seen_by(before: Rows, private: Path, *, words: Sequence[str] = ()) -> Rows:
    """The original rows as the mechanism saw them: redacted, if the statement beside the private file says so."""
    beside = data_and_statement(private)[1]
    statement = read_statement(beside) if beside.exists() else None
    if words and (statement is None or not statement.parameters.get("redacted_list")):
        raise ParameterError(f"{private.name} was not redacted by a list, as far as is known: leave --redact-list out")
    if statement is None or not is_redacted(statement):
        return before
    return as_seen(before, statement, keeps_marks=method_of(statement).keeps_marks, words=words)
