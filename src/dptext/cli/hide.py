"""The option --hide of ``dptext encode``: train an encoder that hides columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dptext.cli import options
from dptext.cli.console import can_ask, confirm, resumable
from dptext.cli.options import input_option, method_option
from dptext.cli.outputs import check_columns
from dptext.errors import DataError, ParameterError
from dptext.io.atomic import is_same
from dptext.io.batches import is_pipe
from dptext.io.documents import read_documents
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import USUAL

if TYPE_CHECKING:
    from dptext.hiding.training import HidingEpoch
    from dptext.representations.device import DeviceEncoder

_SAVED_FILES = ("config.json", "encoder.safetensors", "privacy.json")


@dataclass(frozen=True, kw_only=True)
class HidingOptions:
    """The columns that a training hides, and the column that it keeps."""

    hide: tuple[str, ...] = method_option(
        (), "Train an encoder that hides this column (repeatable; needs --task).", "COLUMN"
    )
    task: str | None = method_option(None, "With --hide: column that the vectors should predict.", "COLUMN")
    train: tuple[Path, ...] = input_option(
        (),
        "With --hide: public rows to train on (repeatable). Without it, IN is used and not protected by the training.",
        "FILE",
    )


def is_among(file: Path, sources: Sequence[Path]) -> bool:
    return any(is_same(file, source) for source in sources)


def is_saved(folder: Path) -> bool:
    """True if the folder holds an encoder."""
    return all((folder / name).exists() for name in _SAVED_FILES)


def check_hiding(
    hiding: HidingOptions, encoding: Any, rows: options.Rows, sources: Sequence[Path], *, resume: bool, ledger: bool
) -> None:
    """Raise for options that do not go together, before anything is read."""
    if not hiding.hide:
        if flags := options.changed_flags(hiding):
            raise ParameterError(f"{', '.join(flags)} is for --hide: add --hide COLUMN, or leave it out")
        return
    if hiding.task is None:
        raise ParameterError("--task COLUMN is required with --hide: the vectors should predict it")
    named = [*hiding.hide, hiding.task, rows.text]
    flags = options.changed_flags(encoding, "public", "public_label")
    checks = {
        "--hide, --task and --text must be different columns": len({*named}) != len(named),
        "--keep would publish a column of --hide: leave out one of the two": {*rows.kept} & {*hiding.hide},
        f"{', '.join(flags)} is not for --hide, whose training fits the projection: leave it out": flags,
        f"{encoding.encoder!r} is a fitted encoder: leave out --hide, or name another --encoder": (
            is_saved(Path(encoding.encoder))
        ),
        "--hide trains a new encoder: to resume, leave --hide out and give the folder of --save as --encoder": resume,
        "--ledger cannot charge for a training on IN, which protects no row: train on public rows (--train FILE), or "
        "leave --ledger out": ledger and not hiding.train,
        "a file of --train is also an input, but --train declares its rows public: leave it out to train on IN": (
            any(is_among(file, sources) for file in hiding.train)
        ),
        "without --train, the input is read twice, which a pipe does not allow: name files as IN": (
            not hiding.train and any(map(is_pipe, sources))
        ),
    }
    options.check_all(checks)
    files, layout = (hiding.train, {}) if hiding.train else (sources, rows.layout)
    check_columns(files, text=rows.text, keep=(hiding.task, *hiding.hide), **layout)


def train(
    hiding: HidingOptions,
    encoding: Any,
    randomizer: Randomizer,
    rows: options.Rows,
    sources: Sequence[Path],
    output: options.Output,
    *,
    yes: bool,
    seed: int | None,
) -> DeviceEncoder:
    """Train on the files of ``--train``, or on the rows of IN if this is confirmed."""
    from dptext.hiding.encoder import HidingEncoder

    public, task = bool(hiding.train), hiding.task or ""
    if not public:
        _confirm_training_on_input(output, yes=yes)
    files = hiding.train or sources
    reading = rows.reading | {"keep": (task, *hiding.hide)} | (dict.fromkeys(rows.layout) if public else {})
    documents = list(read_documents(files, **reading))
    if not documents:
        raise DataError("there are no rows to train on")
    name = "public rows" if public else "rows of IN, which the training does not protect,"
    output.say(
        f"Training on {len(documents):,} {name}\n"
        f"to keep {task} and to hide {', '.join(hiding.hide)}. Share that new models recover from\n"
        "the noisy vectors of held-out rows (0: like a guess, 1: everything):"
    )
    checkpoint = None if encoding.save is None else _checkpoint(encoding.save)
    trainer = HidingEncoder(
        encoding.encoder,
        randomizer,
        public=public,
        public_name=", ".join(file.name for file in files) if public else "the documents of its first release",
        checkpoint=checkpoint,
        progress=lambda epoch: output.say(_describe(epoch, task)),
        seed=seed,
        dimension=USUAL,
    )
    attributes = [document.attributes or {} for document in documents]
    with resumable():
        try:
            trainer.fit(
                [document.text for document in documents],
                task=[values.get(task) for values in attributes],
                attributes={name: [values.get(name) for values in attributes] for name in hiding.hide},
            )
        except KeyboardInterrupt as error:
            if checkpoint is not None and any(file.exists() for file in _checkpoint_files(checkpoint)):
                error.add_note(f"to resume the training from {checkpoint} (not private), run the same command again")
            raise
    best = [epoch for epoch in trainer.epochs_ if epoch.phase == "hide"][trainer.best_ - 1]
    output.say(
        f"Kept epoch {trainer.best_}: {_describe(best, task).split(': ', 1)[1]}.\n"
        "  This is no guarantee, and optimistic: the epoch was chosen by it. Attack the\n  vectors with other data."
    )
    return trainer.release_


def _confirm_training_on_input(output: options.Output, *, yes: bool) -> None:
    if not yes and not can_ask():
        raise ParameterError(
            "--hide without --train trains on IN, and does not protect its documents from recipients of the encoder: "
            "name public rows (--train FILE), or confirm with --yes"
        )
    question = "Without --train the encoder is trained on IN, and its documents are not protected. Continue?"
    if not confirm(question, yes=yes, quiet=False):
        output.say("Nothing was written. Train on public rows: --train FILE.")
        raise typer.Exit(1)


def forget_training(save: Path) -> None:
    """Remove the checkpoint of a finished training."""
    for file in _checkpoint_files(_checkpoint(save)):
        file.unlink(missing_ok=True)


def _checkpoint(save: Path) -> Path:
    return save.with_name(f"{save.name}.training")


def _checkpoint_files(checkpoint: Path) -> tuple[Path, Path]:
    return checkpoint, checkpoint.with_name(f"{checkpoint.name}.gru")


def _describe(epoch: HidingEpoch, task: str) -> str:
    start = f"  epoch {epoch.number:>{len(str(epoch.of))}} of {epoch.of}: "
    if epoch.phase == "rebuild":
        return f"{start}autoencoder, loss per word {epoch.loss:.2f}"
    if epoch.held_out is None:
        return f"{start}too few rows to hold any out; loss of {task} {epoch.loss:.3f}"
    hidden = ", ".join(f"{name} {_share(value)}" for name, value in epoch.held_out.attributes.items())
    return f"{start}{task} {_share(epoch.held_out.task)} | {hidden}"


def _share(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{max(value, 0.0):.2f}"
