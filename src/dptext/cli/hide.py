"""The option --hide of ``dptext encode``: train an encoder that hides columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dptext.cli import options
from dptext.cli.console import can_ask, confirm, filled
from dptext.cli.options import input_option, method_option
from dptext.cli.outputs import check_columns
from dptext.errors import DataError, ParameterError
from dptext.io.atomic import is_same
from dptext.io.batches import is_pipe
from dptext.io.documents import read_documents
from dptext.privacy.wording import paragraphs
from dptext.representations.registry import USUAL

if TYPE_CHECKING:
    from dptext.hiding.training import HidingEpoch
    from dptext.representations.device import DeviceEncoder

_SAVED_FILES = ("config.json", "encoder.safetensors", "privacy.json")


@dataclass(frozen=True, kw_only=True)
class HidingOptions:
    """The columns that a training hides, and the column that it keeps."""

    hide: tuple[str, ...] = method_option((), "Train an encoder to hide this column (repeatable).", "COLUMN")
    task: str | None = method_option(None, "With --hide: column that the vectors should predict.", "COLUMN")
    train: tuple[Path, ...] = input_option(
        (),
        "With --hide: public rows to train on (repeatable). Without it, IN is used and not protected by the training.",
        "FILE",
    )


def sentence(topic: str, **values: Any) -> str:
    [text] = paragraphs("cli/templates/encode.txt", topic=topic, **values)
    return filled(text, indent="", hang="  ")


def is_among(file: Path, sources: Sequence[Path]) -> bool:
    return any(is_same(file, source) for source in sources)


def is_saved(folder: Path) -> bool:
    """True if the folder holds an encoder."""
    return all((folder / name).exists() for name in _SAVED_FILES)


def check_hiding(
    hiding: HidingOptions,
    encoding: Any,
    rows: options.Rows,
    sources: Sequence[Path],
    charge: options.Charge,
    run: options.Run,
) -> None:
    """Raise for options that do not go together, before anything is read."""
    if not hiding.hide:
        if flags := options.changed_flags(hiding):
            raise ParameterError(f"{', '.join(flags)} belongs to --hide: add --hide COLUMN, or omit it")
        return
    if hiding.task is None:
        raise ParameterError("--task COLUMN is required with --hide: the vectors should predict it")
    named = [*hiding.hide, hiding.task, rows.text]
    flags = options.changed_flags(encoding, "public", "public_label")
    options.check_all({
        "--hide, --task and --text must be different columns": len({*named}) != len(named),
        "--keep would publish a column of --hide: leave out one of the two": {*rows.kept} & {*hiding.hide},
        f"{', '.join(flags)} is not for --hide, whose training fits the projection: omit it": flags,
        f"{encoding.encoder!r} is a fitted encoder: leave out --hide, or name another --encoder": (
            is_saved(Path(encoding.encoder))
        ),
        "--hide trains a new encoder: to resume, omit --hide and give the folder of --save as --encoder": (
            run.resume
        ),
        "--ledger cannot charge for a training on IN, which protects no row: train on public rows (--train FILE), or "
        "omit --ledger": charge.ledger and not hiding.train,
        "a file of --train is also an input, but --train declares its rows public: omit it to train on IN": (
            any(is_among(file, sources) for file in hiding.train)
        ),
        "without --train, the input is read twice, which a pipe does not allow: name files as IN": (
            not hiding.train and any(map(is_pipe, sources))
        ),
    })  # fmt: skip
    files, layout = (hiding.train, {}) if hiding.train else (sources, rows.layout)
    check_columns(files, text=rows.text, keep=(hiding.task, *hiding.hide), **layout)


def train(
    hiding: HidingOptions,
    encoding: Any,
    rows: options.Rows,
    sources: Sequence[Path],
    run: options.Run,
    output: options.Output,
) -> DeviceEncoder:
    """Train on the files of ``--train``, or on the rows of IN if this is confirmed."""
    randomizer, public, task = encoding.build_randomizer(), bool(hiding.train), hiding.task or ""
    if not public and not run.yes and not can_ask():
        raise ParameterError(
            "--hide without --train trains on IN, and does not protect its documents from recipients of the encoder: "
            "name public rows (--train FILE), or confirm with --yes"
        )
    question = "Without --train the encoder is trained on IN, and its documents are not protected. Continue?"
    if not public and not confirm(question, yes=run.yes, quiet=False):
        output.say("Nothing was written. Train on public rows: --train FILE.")
        raise typer.Exit(1)
    from dptext.hiding.encoder import HidingEncoder

    files, layout = (hiding.train, {}) if public else (sources, rows.layout)
    reading: dict[str, Any] = {"text": rows.text, "keep": (task, *hiding.hide), "on_error": rows.on_error}
    documents = list(read_documents(files, **reading, **layout))
    if not documents:
        raise DataError("there are no rows to train on")
    output.say(sentence("training", public=public, rows=len(documents), task=task, hidden=", ".join(hiding.hide)))
    trainer = HidingEncoder(
        encoding.encoder,
        randomizer,
        public=public,
        public_name=", ".join(file.name for file in files) if public else "the documents of its first release",
        progress=lambda epoch: output.say(f"  epoch {epoch.number} of {epoch.of}: {_describe(epoch, task)}"),
        seed=run.seed,
        dimension=USUAL,
    )
    attributes = [document.attributes or {} for document in documents]
    trainer.fit(
        [document.text for document in documents],
        task=[values.get(task) for values in attributes],
        attributes={name: [values.get(name) for values in attributes] for name in hiding.hide},
    )
    best = trainer.epochs_[trainer.best_ - 1]
    output.say(sentence("trained", epoch=trainer.best_, description=_describe(best, task)))
    return trainer.release_


def _describe(epoch: HidingEpoch, task: str) -> str:
    if epoch.held_out is None:
        return f"too few rows to hold any out; loss of {task} {epoch.loss:.3f}"
    shares = {task: epoch.held_out.task, **epoch.held_out.attributes}
    task_share, *hidden = (
        f"{name} {'unknown' if math.isnan(value) else f'{max(value, 0.0):.2f}'}" for name, value in shares.items()
    )
    return f"{task_share} | {', '.join(hidden)}"
