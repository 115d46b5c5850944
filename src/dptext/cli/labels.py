"""Labels and private rows of ``dptext synthesize``, and ``dptext classify``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer

from dptext.cli import options
from dptext.cli.console import can_ask, confirm, print_json
from dptext.cli.options import input_option, method_option, output_option, privacy_option
from dptext.cli.outputs import check_columns
from dptext.display import progress_bar
from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.atomic import hashed_file
from dptext.io.batches import is_pipe
from dptext.io.documents import DocumentReader, DocumentWriter, find_files, read_documents
from dptext.methods.data import LABELS
from dptext.release.release import statement_path
from dptext.release.run import check_output
from dptext.synthesis.distribution import TextDistribution
from dptext.synthesis.moments import OUTSIDE, Labels
from dptext.synthesis.release import PrivateFiles, PrivateRows

_PLACEHOLDERS = LABELS.split(",")


@dataclass(frozen=True, kw_only=True)
class PrivateTexts(options.OptionalInputs):
    """The private documents, and the engine that reads them."""

    user: str | None = options.USER
    unit: Literal["user", "document"] = privacy_option(
        "user", "Privacy unit: all documents of a user, or one document."
    )
    engine: Literal["local", "spark"] = options.ENGINE

    def rows(self, labels: Sequence[str]) -> PrivateRows:
        if self.engine == "local":
            paths = find_files(self.sources, any_format=self.in_format is not None)
            reading: dict[str, Any] = {"text": self.text, "user": self.user, "on_error": self.on_error}
            return PrivateFiles(paths=paths, **reading, **self.layout)
        options.check_for_spark(self, {"--on-error skip": self.on_error == "skip"})
        from dptext.spark.frames import PrivateFrame, read_files

        keep = [*labels, *([] if self.user is None else [self.user])]
        frame = read_files(self.sources, text=self.text, keep=keep, kind=self.in_format)
        return PrivateFrame(frame, text=self.text, user=self.user)

    def check_columns(self, rows: PrivateRows, columns: Sequence[str]) -> None:
        """Raise if files lack the text, the user or one of these columns."""
        if isinstance(rows, PrivateFiles):
            keep = [name for name in columns if name != self.user]
            check_columns(
                [Path(path) for path in rows.sources], text=self.text, user=self.user, keep=keep, **self.layout
            )


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """The public labels of a synthetic corpus."""

    label: tuple[str, ...] = input_option((), "Label column (repeat it for combinations of labels).", "COLUMN")
    labels: tuple[str, ...] = input_option(
        (),
        "Public labels of that column, one list per --label, never read from IN. On a terminal, the command shows "
        "how many rows have one, and asks. It fails if no row has one, so its exit status depends on private rows.",
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
                raise ParameterError("--labels-file contains all labels: omit --labels, and give at most one --label")
            labels = read_json(self.labels_file, '{"A": "a description of A", "B": "a description of B"}')
            return Labels.of({self.label[0]: labels} if self.label else labels)
        if len(self.label) != len(self.labels):
            raise ParameterError(
                f"each --label COLUMN needs its public labels, --labels A,B,... (they are never read from the private "
                f"file), got {len(self.label)} columns and {len(self.labels)} lists"
            )
        if len(set(self.label)) < len(self.label):
            raise ParameterError("--label names a column twice: give all its labels in one list")
        lists = [[label.strip() for label in labels.split(",") if label.strip()] for labels in self.labels]
        if not self.labels_as_given and any(label in _PLACEHOLDERS for labels in lists for label in labels):
            raise ParameterError(f"--labels {LABELS} is a placeholder: replace it by the public labels of the column")
        return Labels.of(dict(zip(self.label, lists, strict=True)) or None)


# -- comparison with the private rows ------------------------------------------------------------------------------


def check_labels(rows: Any, labels: Labels, run: options.Run, output: options.Output) -> None:
    """Count the private rows that have one of the public labels; raise if no row has one, and ask on a terminal."""
    total = labelled = 0
    is_local = isinstance(rows, PrivateFiles)
    for values, number in _label_counts(rows, labels.columns) if is_local else rows.label_counts(labels):
        total += number
        labelled += number * (labels.code(values) != OUTSIDE)
    if not labelled:
        raise ParameterError(
            "no row of IN has one of the --labels. Nothing was released or charged. Correct --label or --labels (upper "
            "and lower case differ), or add --labels-as-given to release anyway"
        )
    if not can_ask() or output.quiet:
        return
    output.say(f"{labelled:,} of {total:,} rows have one of the --labels. This is for you alone (it is in no output).")
    if not confirm("Release with these labels?", yes=run.yes, quiet=False):
        output.say("Nothing was released.")
        raise typer.Exit(1)


def _label_counts(rows: PrivateFiles, columns: Sequence[str]) -> Iterator[tuple[Sequence[object], int]]:
    """Yield the labels of each row, and 1."""
    if any(is_pipe(Path(source)) for source in rows.sources):
        raise ParameterError(
            "--labels are compared with IN in a first pass, which a pipe does not allow: name files as IN, or add "
            "--labels-as-given"
        )
    with closing(rows.labelled(columns)) as reader:
        for block in reader.batches():
            yield from ((row, 1) for row in zip(*(block.columns[name] for name in columns), strict=True))


# -- classify ------------------------------------------------------------------------------------------------------


def classify(
    *,
    inputs: options.Inputs,
    out: Path = output_option(..., "File of predicted labels.", "OUT", "--out", "-o"),
    keep: tuple[str, ...] = output_option((), "Column of IN to copy next to the labels (repeatable).", "COLUMN"),
    force: bool = options.FORCE,
    distribution: Path = method_option(..., "Released distribution: CORPUS.distribution.", "FOLDER"),
    output: options.Output,
) -> None:
    """Predict the labels of texts with a released distribution.

    This spends no privacy budget. OUT has one column predicted_NAME per label column of the release. Treat OUT like
    IN: the guarantee of the release does not cover the texts of IN or their predicted labels.

    Example: dptext classify new.csv -o labels.csv --text note --distribution readable.jsonl.distribution
    """
    files = find_files(inputs.sources, any_format=inputs.in_format is not None)
    check_output(files, out, force=force)
    if os.path.lexists(statement_path(out)):
        raise ParameterError(
            f"{str(statement_path(out))!r} already exists and does not cover labels: choose another name for OUT"
        )
    if distribution.resolve() in (out.resolve(), *out.resolve().parents):
        raise ParameterError(f"{str(out)!r} is in the folder of the release: choose another name for OUT")
    check_columns(files, text=inputs.text, keep=keep, **inputs.layout)
    release = TextDistribution.load(distribution)
    if not release.labels.columns:
        raise ParameterError(f"{str(distribution)!r} has no labels to predict: it was released without --label")
    names = [f"predicted_{name}" for name in release.labels.columns]
    writer = DocumentWriter(out, text=names[0], keep=(*names[1:], *keep))
    with (
        closing(read_documents(files, text=inputs.text, keep=keep, **inputs.layout)) as reader,
        progress_bar(None, "classifying", reader.size or None) as done,
        hashed_file(out) as stream,
    ):
        reader.watch(lambda _block: done(reader.position))
        writer.write(_predicted_rows(reader, writer, release), stream)
    output.say(
        f"Wrote the predicted labels of {reader.count:,} texts to {out}. Treat it like IN: the guarantee of the "
        "release does not cover the texts of IN or their predicted labels."
    )
    if output.as_json:
        print_json({"documents": reader.count, "out": str(out), "columns": [*names, *keep]})


def _predicted_rows(reader: DocumentReader, writer: DocumentWriter, release: TextDistribution) -> Iterator[bytes]:
    """Yield the rows of OUT, block by block. A row without a text gets no label."""
    codes = {name: code for code, name in enumerate(release.labels.names)}
    values = [release.labels.values_of(codes[name]) for name in release.classes_.tolist()]
    done = 0
    for block in reader.batches():
        shares = release.predict_proba([row or "" for row in block.texts])
        best = [None if row is None else code for row, code in zip(block.texts, shares.argmax(axis=1), strict=True)]
        columns: dict[str, Sequence[Any]] = {**block.columns}
        for column in release.labels.columns:
            columns[f"predicted_{column}"] = [None if code is None else values[code][column] for code in best]
        yield writer.encode(columns[f"predicted_{release.labels.columns[0]}"], columns, row=done + 1, first=done == 0)
        done += len(block.texts)


def read_json(path: Path, expected: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    except (ValueError, RecursionError):
        raise DataError(f"{path} is not JSON: write {expected} as UTF-8") from None
