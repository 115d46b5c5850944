"""``dptext classify``: label texts with a released distribution."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from dptext.cli import options
from dptext.cli.console import Bar, print_json, progress_bar
from dptext.cli.options import method_option, output_option
from dptext.cli.outputs import check_columns
from dptext.errors import ParameterError
from dptext.io.atomic import hashed_file
from dptext.io.batches import as_lists
from dptext.io.documents import DocumentReader, DocumentWriter, find_files, read_documents
from dptext.release.release import statement_path
from dptext.release.run import check_output
from dptext.synthesis.distribution import TextDistribution


@options.collected
def classify(
    *,
    inputs: options.Inputs,
    out: Annotated[Path, output_option("--out", "-o", metavar="OUT", help="File of predicted labels.")],
    keep: Annotated[
        tuple[str, ...], output_option(metavar="COLUMN", help="Column of IN to copy next to the labels (repeatable).")
    ] = (),
    force: options.Force = False,
    distribution: Annotated[
        Path, method_option(metavar="FOLDER", help="Released distribution: CORPUS.distribution of dptext synthesize.")
    ],
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
        writer.write(_encoded(reader, writer, release, names, bar), stream)
    output.say(
        f"Wrote the predicted labels of {reader.count:,} texts to {out}. Treat it like IN: the guarantee of the "
        "release does not cover the texts of IN or their predicted labels."
    )
    if output.as_json:
        print_json({"documents": reader.count, "out": str(out), "columns": [*names, *keep]})


def _encoded(
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
