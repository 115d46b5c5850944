"""``dptext classify``: label texts with a release of `dptext synthesize`, for their owner."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.cli import options
from dptext.cli.console import Bar, print_json, progress_bar
from dptext.errors import ParameterError
from dptext.io.atomic import hashed_file
from dptext.io.batches import as_lists
from dptext.io.documents import DocumentReader, DocumentWriter, OnError, find_files, read_documents
from dptext.release.release import rejects_path, statement_path, write_rejects
from dptext.release.run import check_output
from dptext.synthesis.distribution import TextDistribution


@options.collected
def classify(
    *,
    inputs: options.Inputs,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="The file of predicted labels.")],
    distribution: Path,
    keep: tuple[str, ...] = (),
    with_text: Annotated[bool, typer.Option("--with-text", help="Write the texts of IN as well.")] = False,
    probabilities: bool = False,
    on_error: OnError = "fail",
    force: options.Force = False,
    output: options.Output,
) -> None:
    """Predict the labels of texts with a release, row by row, without spending any budget.

    OUT has a column predicted_NAME for each label column of the release. Treat OUT like IN: the
    guarantee of the release covers the people it was made from, and it does not cover the texts
    of IN or their predicted labels.

    Args:
        distribution (FOLDER): The release: the folder CORPUS.distribution of dptext synthesize.
        keep (NAME): A column of IN to write next to the labels (may be repeated).
        probabilities: Write the probability of each label as well.
        on_error: A row that cannot be read: stop, or leave it out and list it in OUT.rejects.jsonl.
    """
    files = [path for path, _ in find_files(inputs.sources, any_format=inputs.in_format is not None)]
    check_output(files, out, force=force, by="add --force")
    if os.path.lexists(statement_path(out)):
        raise ParameterError(
            f"{str(out)!r} has a privacy statement, which does not cover predicted labels: choose another name as OUT"
        )
    if distribution.resolve() in (out.resolve(), *out.resolve().parents):
        raise ParameterError(f"{str(out)!r} lies in the folder of the release: choose another name as OUT")
    release = TextDistribution.load(distribution)
    if not release.labels.columns:
        raise ParameterError(f"{str(distribution)!r} has no labels to predict: it was released without --label")
    names = [f"predicted_{name}" for name in release.labels.columns]
    if probabilities:
        names += [f"probability_{name}" for name in release.classes_]
    kept = (*([inputs.text] if with_text else []), *keep)
    writer = DocumentWriter(out, text=names[0], keep=(*names[1:], *kept))
    reading: dict[str, Any] = {"keep": keep, "on_error": on_error, **inputs.layout}
    with (
        progress_bar("classifying", quiet=output.quiet) as bar,
        closing(read_documents(files, text=inputs.text, **reading)) as reader,
        hashed_file(out) as stream,
    ):
        writer.write(_encoded(reader, writer, release, inputs.text, names, bar), stream)
    write_rejects(rejects_path(out), reader.rejects)
    output.say(
        f"Wrote the predicted labels of {reader.count:,} texts to {out}. Treat it like IN: the guarantee of the "
        "release does not cover the texts of IN or their predicted labels."
    )
    if reader.skipped:
        output.say(f"Left out {reader.skipped:,} rows that could not be read: they are listed in {rejects_path(out)}.")
    if output.as_json:
        print_json({"documents": reader.count, "skipped": reader.skipped, "out": str(out), "columns": [*names, *kept]})


def _encoded(
    reader: DocumentReader, writer: DocumentWriter, release: TextDistribution, text: str, names: Sequence[str], bar: Bar
) -> Iterator[bytes]:
    """Yield the rows of OUT, block by block. A row without a text gets no label."""
    codes = {name: code for code, name in enumerate(release.labels.names)}
    values = [release.labels.values_of(codes[name]) for name in release.classes_.tolist()]
    done = 0
    for block in reader.batches():
        shares = release.predict_proba([row or "" for row in block.texts])
        best = [None if row is None else code for row, code in zip(block.texts, shares.argmax(axis=1), strict=True)]
        columns: dict[str, Sequence[Any]] = {text: block.texts, **as_lists(block.columns)}
        for column in release.labels.columns:
            columns[f"predicted_{column}"] = [None if code is None else values[code][column] for code in best]
        probabilities = names[len(release.labels.columns) :]  # none, or one for each class
        for name, share in zip(probabilities, shares.round(6).T.tolist(), strict=False):
            known = zip(best, share, strict=True)
            columns[name] = [None if code is None else value for code, value in known]
        yield writer.encode(columns[names[0]], columns, row=done + 1, first=done == 0)
        done += len(block.texts)
        bar.rows(reader, done)
