"""Labels and private rows of ``dptext synthesize``, and ``dptext classify``."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer

from dptext.cli import options
from dptext.cli.console import Bar, can_ask, confirm, print_json, progress_bar
from dptext.cli.options import input_option, method_option, output_option, privacy_option
from dptext.cli.outputs import check_columns
from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.atomic import hashed_file
from dptext.io.batches import Batch, as_lists
from dptext.io.documents import DocumentReader, DocumentWriter, canonical_label, find_files, read_documents
from dptext.methods.data import LABELS
from dptext.release.release import statement_path
from dptext.release.run import check_output
from dptext.synthesis.distribution import TextDistribution
from dptext.synthesis.moments import OUTSIDE, Labels
from dptext.synthesis.release import PrivateFiles, PrivateRows

_PLACEHOLDERS = LABELS.split(",")


# -- options -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """The public labels of a synthetic corpus."""

    label: tuple[str, ...] = input_option((), "Label column (repeat it for combinations of labels).", "COLUMN")
    labels: tuple[str, ...] = input_option(
        (),
        "Public labels of that column, one list per --label, never read from IN. A terminal shows you how many rows "
        "have one, and asks. If no row has one, the command fails, so its exit status depends on private rows.",
        "A,B,...",
    )
    labels_file: Path | None = input_option(
        None,
        'Public labels as JSON instead of --labels: {"A": "a description", ...} or ["A", "B"]; for several '
        'columns {"COLUMN": {...}, ...} without --label.',
        "FILE",
    )
    labels_as_given: bool = privacy_option(False, "Do not compare --labels with the rows of IN.")

    def build(self) -> Labels:
        if self.labels_file is not None:
            if self.labels or len(self.label) > 1:
                raise ParameterError(
                    "--labels-file holds all labels: leave out --labels, and give --label at most once"
                )
            return _read_labels(self.labels_file, *self.label)
        if len(self.label) != len(self.labels):
            raise ParameterError(
                f"each --label COLUMN needs its public labels, --labels A,B,... (they are never read from the private "
                f"file), got {len(self.label)} columns and {len(self.labels)} lists"
            )
        if len(set(self.label)) < len(self.label):
            raise ParameterError("--label names a column twice: give all its labels in one list")
        lists = [[label.strip() for label in labels.split(",") if label.strip()] for labels in self.labels]
        if not self.labels_as_given and any(label in _PLACEHOLDERS for labels in lists for label in labels):
            raise ParameterError(
                f"--labels {','.join(_PLACEHOLDERS)} is a placeholder: replace it by the public labels of the column"
            )
        return Labels.of(dict(zip(self.label, lists, strict=True)) or None)


def _read_labels(file: Path, column: str | None = None) -> Labels:
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


# -- comparison with the private rows ------------------------------------------------------------------------------


class LabelCheck:
    """Count the rows that have one of the public labels, and raise or ask before anything is released."""

    def __init__(self, labels: Labels, *, yes: bool, output: options.Output, bar: Bar) -> None:
        self._labels, self._yes, self._output, self._bar = labels, yes, output, bar
        self._is_done = not labels.columns
        self._rows = self._labelled = 0
        self._known = dict(zip(labels.columns, map(frozenset, labels.values), strict=True))
        self._counts = dict.fromkeys(labels.columns, 0)
        self._by_folded = [{_folded(label): label for label in values} for values in labels.values]
        self._spellings: dict[str, str] = {}  # public label: another spelling in the private rows

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
                self._counts[column] += rows
            elif label is not None and _folded(label) in folded:
                self._spellings.setdefault(folded[_folded(label)], label)

    def decide(self) -> None:
        if self._is_done:
            return
        self._is_done = True
        spellings = [f"the file writes {spelling!r} for {label!r}" for label, spelling in self._spellings.items()]
        if not self._labelled:
            missing = [column for column, rows in self._counts.items() if not rows]
            where = f"of {', '.join(map(repr, missing))}" if missing else "combinations"
            # logs of scripts must not hold values of private rows
            detail = "; ".join(spellings) if can_ask() else "some values differ in case or punctuation only"
            raise ParameterError(
                f"no row of IN has one of the --labels {where}{f' ({detail})' if spellings else ''}. Nothing was "
                "released or charged. Correct --label or --labels, or add --labels-as-given to release all the same"
            )
        if not can_ask() or self._output.quiet:
            return
        columns = [f"{column}: {rows:,} rows" for column, rows in self._counts.items() if len(self._counts) > 1]
        lines = [f"{self._labelled:,} of {self._rows:,} rows have one of the --labels.", *columns, *spellings]
        with self._bar.paused():
            self._output.say("\n  ".join(["For you alone (it is in no output):", *lines]))
            if not confirm("Release with these labels?", yes=self._yes, quiet=False):
                self._output.say("Nothing was released.")
                raise typer.Exit(1)


def _folded(label: str) -> str:
    """Return the letters and digits of a label, without case; the label itself if it has none."""
    return "".join(char for char in unicodedata.normalize("NFKC", label).casefold() if char.isalnum()) or label


# -- the private rows ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PrivateTexts(options.OptionalInputs):
    """The private documents, and the engine that reads them."""

    on_error: Literal["fail", "skip"] = input_option("fail", "Unreadable row: stop, or skip it.")
    user: str | None = options.USER
    unit: Literal["user", "document"] = privacy_option(
        "user", "Privacy unit: a user with all documents, or one document."
    )
    engine: Literal["local", "spark"] = options.ENGINE

    def rows(
        self, labels: Sequence[str], watch: Callable[[DocumentReader], None], check: LabelCheck | None
    ) -> PrivateRows:
        return self._files(watch, check) if self.engine == "local" else self._frame(labels)

    def _files(self, watch: Callable[[DocumentReader], None], check: LabelCheck | None) -> PrivateFiles:
        paths = [path for path, _ in find_files(self.sources, any_format=self.in_format is not None)]
        reading: dict[str, Any] = {"text": self.text, "user": self.user, "on_error": self.on_error, **self.layout}
        return CheckedFiles(paths=paths, watch=(watch,), check=check, **reading)

    def _frame(self, labels: Sequence[str]) -> PrivateRows:
        if self.on_error == "skip":
            raise ParameterError("Spark does not support --on-error skip: leave it out, and repair the rows")
        if self.encoding is not None:
            raise ParameterError("Spark reads UTF-8 only: leave --encoding out")
        if "-" in self.sources:
            raise ParameterError("Spark reads no pipes: name paths that the cluster can see")
        from dptext.spark.frames import PrivateFrame, read_files

        keep = [*labels, *([] if self.user is None else [self.user])]
        frame = read_files(self.sources, text=self.text, keep=keep, kind=self.in_format)
        return PrivateFrame(frame, text=self.text, user=self.user)


@dataclass(frozen=True, kw_only=True)
class CheckedFiles(PrivateFiles):
    """Private files whose labels are checked at the end of the first pass, which comes before any charge or release."""

    check: LabelCheck | None

    def labelled(self, columns: Sequence[str]) -> DocumentReader:
        reader = super().labelled(columns)
        if self.check is not None:
            self.check.watch(reader)
        return reader


# -- classify ------------------------------------------------------------------------------------------------------


def classify(
    *,
    inputs: options.Inputs,
    out: Path = output_option(..., "File of predicted labels.", "OUT", "--out", "-o"),
    keep: tuple[str, ...] = output_option((), "Column of IN to copy next to the labels (repeatable).", "COLUMN"),
    force: bool = options.FORCE,
    distribution: Path = method_option(
        ..., "Released distribution: CORPUS.distribution of dptext synthesize.", "FOLDER"
    ),
    output: options.Output,
) -> None:
    """Predict the labels of texts with a released distribution.

    This spends no privacy budget. OUT has one column predicted_NAME per label column of the release. Treat OUT like
    IN: the guarantee of the release does not cover the texts of IN or their predicted labels.

    Example: dptext classify new.csv -o labels.csv --text note --distribution readable.jsonl.distribution
    """
    files = [path for path, _ in find_files(inputs.sources, any_format=inputs.in_format is not None)]
    check_output(files, out, force=force, by="add --force")
    if os.path.lexists(statement_path(out)):
        raise ParameterError(
            f"{str(out)!r} has a privacy statement, which does not cover predicted labels: choose another name for OUT"
        )
    if distribution.resolve() in (out.resolve(), *out.resolve().parents):
        raise ParameterError(f"{str(out)!r} lies in the folder of the release: choose another name for OUT")
    check_columns(files, text=inputs.text, keep=keep, **inputs.layout)
    release = TextDistribution.load(distribution)
    if not release.labels.columns:
        raise ParameterError(f"{str(distribution)!r} has no labels to predict: it was released without --label")
    names = [f"predicted_{name}" for name in release.labels.columns]
    writer = DocumentWriter(out, text=names[0], keep=(*names[1:], *keep))
    with (
        progress_bar("classifying", quiet=output.quiet) as bar,
        closing(read_documents(files, text=inputs.text, keep=keep, **inputs.layout)) as reader,
        hashed_file(out) as stream,
    ):
        writer.write(_predicted_rows(reader, writer, release, names, bar), stream)
    output.say(
        f"Wrote the predicted labels of {reader.count:,} texts to {out}. Treat it like IN: the guarantee of the "
        "release does not cover the texts of IN or their predicted labels."
    )
    if output.as_json:
        print_json({"documents": reader.count, "out": str(out), "columns": [*names, *keep]})


def _predicted_rows(
    reader: DocumentReader, writer: DocumentWriter, release: TextDistribution, names: Sequence[str], bar: Bar
) -> Iterator[bytes]:
    """Yield the rows of OUT, block by block. A row without a text gets no label."""
    codes = {name: code for code, name in enumerate(release.labels.names)}
    values = [release.labels.values_of(codes[name]) for name in release.classes_.tolist()]
    done = 0
    for block in reader.batches():
        shares = release.predict_proba([row or "" for row in block.texts])
        best = [None if row is None else code for row, code in zip(block.texts, shares.argmax(axis=1), strict=True)]
        columns: dict[str, Sequence[Any]] = {**as_lists(block.columns)}
        for column in release.labels.columns:
            columns[f"predicted_{column}"] = [None if code is None else values[code][column] for code in best]
        yield writer.encode(columns[names[0]], columns, row=done + 1, first=done == 0)
        done += len(block.texts)
        bar.rows(reader, done)
