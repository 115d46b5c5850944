"""The labels of a synthetic corpus: from the command line or a file, and checked against the private rows."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dptext.cli import options
from dptext.cli.console import Bar, can_ask, confirm
from dptext.cli.options import input_option, privacy_option
from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.batches import Batch, as_lists
from dptext.io.documents import DocumentReader, canonical_label
from dptext.methods.questions import LABELS
from dptext.synthesis.moments import OUTSIDE, Labels

_PLACEHOLDERS = LABELS.split(",")


class LabelCheck:
    """Count the rows that have one of the public labels, and decide whether to go on."""

    def __init__(self, labels: Labels, *, yes: bool, output: options.Output, bar: Bar) -> None:
        self._labels, self._yes, self._output, self._bar = labels, yes, output, bar
        self._is_done = not labels.columns
        self._rows = self._labelled = 0
        self._known = dict(zip(labels.columns, map(frozenset, labels.values), strict=True))
        self._in_column = dict.fromkeys(labels.columns, 0)
        self._by_folded = [{_folded(label): label for label in values} for values in labels.values]
        self._spellings: dict[str, str] = {}  # public label: how the private rows spell it

    def watch(self, reader: DocumentReader) -> None:

        def add(block: Batch) -> None:
            if not self._is_done:
                columns = as_lists(block.columns)
                for values in zip(*(columns[name] for name in self._labels.columns), strict=True):
                    self.add(values)

        reader.watch(add, at_end=self.decide)

    def add(self, values: Sequence[object], rows: int = 1) -> None:
        """Count rows that have these values in the label columns."""
        self._rows += rows
        self._labelled += rows * (self._labels.code(values) != OUTSIDE)
        for column, folded, value in zip(self._labels.columns, self._by_folded, values, strict=True):
            label = canonical_label(value)
            if label in self._known[column]:
                self._in_column[column] += rows
            elif label is not None and _folded(label) in folded:
                self._spellings.setdefault(folded[_folded(label)], label)

    def decide(self) -> None:
        if self._is_done:
            return
        self._is_done = True
        is_terminal = can_ask()
        if not self._labelled:
            raise ParameterError(self._problem(is_terminal))
        if not is_terminal or self._output.quiet:
            return
        with self._bar.away():
            self._output.say("\n".join(["For you alone (it is in no output):", *self._counts()]))
            if not confirm("Release with these labels?", yes=self._yes, quiet=False):
                self._output.say("Nothing was released.")
                raise typer.Exit(1)

    def _problem(self, is_terminal: bool) -> str:
        missing = [column for column, rows in self._in_column.items() if not rows]
        where = f"of {', '.join(map(repr, missing))}" if missing else "combinations"
        hint = ""
        if self._spellings:  # a script's messages are kept in logs, which must not hold values of private rows
            spellings = "; ".join(self._respelled())
            hint = f" ({spellings if is_terminal else 'some values differ in case or punctuation only'})"
        return (
            f"no row of IN has one of the --labels {where}{hint}. Nothing was released or charged. Correct --label or "
            "--labels, or add --labels-as-given to release all the same"
        )

    def _counts(self) -> Iterable[str]:
        yield f"  {self._labelled:,} of {self._rows:,} rows have one of the --labels."
        if len(self._in_column) > 1:
            yield from (f"  {column}: {rows:,} rows" for column, rows in self._in_column.items())
        yield from (f"  {each}" for each in self._respelled())

    def _respelled(self) -> Iterable[str]:
        return (f"the file writes {spelling!r} for {label!r}" for label, spelling in self._spellings.items())


def _folded(label: str) -> str:
    """The letters and digits of a label, without case; the label itself if it has none."""
    return "".join(each for each in unicodedata.normalize("NFKC", label).casefold() if each.isalnum()) or label


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """The public classes."""

    label: Annotated[
        tuple[str, ...], input_option(metavar="COLUMN", help="Label column (repeat it for combinations of labels).")
    ] = ()
    labels: Annotated[
        tuple[str, ...],
        input_option(
            metavar="A,B,...",
            help="Public labels of that column, one list per --label, never read from IN; A=TEXT,B=TEXT adds public "
            "descriptions. A terminal shows you how many rows have one, and asks. If no row has one, the command "
            "fails, so its exit status depends on private rows.",
        ),
    ] = ()
    labels_file: Annotated[
        Path | None,
        input_option(
            metavar="FILE",
            help='Public labels as JSON instead of --labels: {"A": "a description", ...} or ["A", "B"]; for several '
            'columns {"COLUMN": {...}, ...} without --label.',
        ),
    ] = None
    labels_as_given: Annotated[
        bool, privacy_option("--labels-as-given", help="Do not compare --labels with the rows of IN.")
    ] = False

    def found(self) -> Labels:
        if self.labels_file is not None:
            if self.labels or len(self.label) > 1:
                raise ParameterError(
                    "--labels-file holds all labels: leave out --labels, and give --label at most once"
                )
            return _labels_of_file(self.labels_file, *self.label)
        if len(self.label) != len(self.labels):
            raise ParameterError(
                "each --label COLUMN needs its public labels, --labels A,B,...: they are never read from the private "
                f"file, because that would tell; got {len(self.label)} columns and {len(self.labels)} lists"
            )
        if len(set(self.label)) < len(self.label):
            raise ParameterError("each --label must be another column, got one twice: give all its labels in one list")
        lists = [[each.strip() for each in given.split(",") if each.strip()] for given in self.labels]
        if not self.labels_as_given and any(each in _PLACEHOLDERS for labels in lists for each in labels):
            raise ParameterError(
                f"--labels {','.join(_PLACEHOLDERS)} is a placeholder: replace it by the public labels of the column"
            )
        return Labels.of({name: _described(labels) for name, labels in zip(self.label, lists, strict=True)} or None)


def _described(labels: list[str]) -> list[str] | dict[str, str]:
    """Return labels, with their descriptions if every one is written as A=TEXT."""
    pairs = [label.split("=", 1) for label in labels]
    if all(len(pair) == 1 for pair in pairs):
        return labels
    described = {pair[0].strip(): pair[-1].strip() for pair in pairs}
    if len(described) < len(pairs) or any(len(pair) == 1 for pair in pairs):
        raise ParameterError(
            "--labels A=TEXT,B=TEXT must describe each label once, and a label without '=' or a second one of the same "
            "name was found. A description that holds a comma, or a label that holds '=', needs --labels-file FILE.json"
        )
    return described


def _labels_of_file(file: Path, column: str | None = None) -> Labels:
    """Return the labels of a JSON file: those of one column if the column is named."""
    try:
        labels = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise DataError(
            f'{file} is not JSON: write {{"A": "a description of A", "B": "a description of B"}} as UTF-8'
        ) from None
    return Labels.of(labels if column is None else {column: labels})
