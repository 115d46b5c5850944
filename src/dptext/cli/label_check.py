"""Check of `--labels` against the private rows, before a release spends any budget.

The counts are private. They appear on the owner's terminal only: no output, statement or log holds them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

import typer

from dptext.cli import options
from dptext.cli.console import Bar, can_ask, confirm
from dptext.errors import ParameterError
from dptext.io.batches import Batch, as_lists
from dptext.io.documents import DocumentReader, canonical_label
from dptext.synthesis.moments import OUTSIDE, Labels

__all__ = ["LabelCheck"]


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
        """Check the rows of the first reader that is read to its end."""

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
        """Raise if no row has a label."""
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
