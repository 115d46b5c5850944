"""The option --hide of ``dptext encode``: train an encoder that hides columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dptext.cli import options
from dptext.cli.console import can_ask, confirm, stopped_with_notes
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

_SAVED = ("config.json", "encoder.safetensors", "privacy.json")


@dataclass(frozen=True, kw_only=True)
class HidingOptions:
    """What a training hides, and what it keeps."""

    hide: Annotated[
        tuple[str, ...],
        method_option(metavar="COLUMN", help="Train an encoder that hides this column (repeatable; needs --task)."),
    ] = ()
    task: Annotated[
        str | None, method_option(metavar="COLUMN", help="With --hide: column that the vectors should predict.")
    ] = None
    train: Annotated[
        tuple[Path, ...],
        input_option(
            metavar="FILE",
            help="With --hide: public rows to train on (repeatable). Without it, IN is used and not protected by the "
            "training.",
        ),
    ] = ()


def is_among(file: Path, sources: Sequence[Path]) -> bool:
    return any(is_same(file, source) for source in sources)


def is_saved(folder: Path) -> bool:
    return all((folder / name).exists() for name in _SAVED)


def check_hiding(
    hiding: HidingOptions,
    asked: Any,
    rows: options.Rows,
    sources: Sequence[Path],
    *,
    resume: bool,
    ledger: bool,
) -> None:
    """Refuse options that do not go together, before anything is read."""
    if not hiding.hide:
        lonely = options.given_flags(hiding)
        if lonely:
            raise ParameterError(f"{', '.join(lonely)} speak of a training that hides something: add --hide COLUMN")
        return
    if hiding.task is None:
        raise ParameterError("--hide needs a task to be kept while it hides: --task COLUMN")
    named = [*hiding.hide, hiding.task, rows.text]
    if len({*named}) != len(named):
        raise ParameterError("--hide, --task and --text must be different columns")
    shown = [name for name in rows.keep if name in hiding.hide]
    if shown:
        raise ParameterError(f"--keep {shown[0]} would write what --hide {shown[0]} hides: leave one of them out")
    foreign = options.given_flags(asked, "public", "public_label")
    if foreign:
        raise ParameterError(f"{', '.join(foreign)} and --hide do not go together: training finds the projection")
    if resume:
        raise ParameterError(
            "a run goes on with the encoder that it was begun with, and --hide trains a new one: give the folder that "
            "--save wrote as --encoder, and leave --hide out"
        )
    if ledger and not hiding.train:
        raise ParameterError(
            "a ledger cannot charge for a training on the input, which protects none of its rows: train on public "
            "rows, --train FILE, or leave --ledger out"
        )
    files, layout = (hiding.train, {}) if hiding.train else (sources, rows.layout)
    check_columns(files, text=rows.text, keep=(hiding.task, *hiding.hide), **layout)


def _confirm_training_on_input(output: options.Output, *, yes: bool) -> None:
    """Whether to train on documents that the training does not protect: only where somebody says so."""
    if not yes and not can_ask():
        raise ParameterError(
            "--hide without --train trains on IN itself, and does not protect its documents from whoever gets the "
            "encoder: name public rows (--train FILE), or go on all the same (--yes)"
        )
    question = "Without --train the encoder is trained on IN, whose documents that does not protect. Go on?"
    if not confirm(question, yes=yes, quiet=False):
        output.say("Nothing was written. Train on public rows: --train FILE.")
        raise typer.Exit(1)


def train(
    hiding: HidingOptions,
    asked: Any,
    randomizer: Randomizer,
    rows: options.Rows,
    sources: Sequence[Path],
    output: options.Output,
    *,
    yes: bool,
    seed: int | None,
) -> DeviceEncoder:
    """Train on the files of ``--train``, or on the rows of IN where somebody says that this is meant."""
    if is_saved(Path(asked.encoder)):
        raise ParameterError(f"{asked.encoder!r} is a fitted encoder, and --hide trains one: leave one of them out")
    from dptext.hiding.encoder import HidingEncoder

    public, task = bool(hiding.train), hiding.task or ""
    if any(is_among(file, sources) for file in hiding.train):
        raise ParameterError(
            "a file of --train is among the inputs: --train declares public what the encoder is trained on; leave it "
            "out to train on the inputs without that"
        )
    if not public and any(map(is_pipe, sources)):
        raise ParameterError("without --train the input is read twice, to train and to encode: name files as IN")
    if not public:
        _confirm_training_on_input(output, yes=yes)
    files = hiding.train or sources
    reading = rows.reading | {"keep": (task, *hiding.hide)} | (dict.fromkeys(rows.layout) if public else {})
    documents = list(read_documents(files, **reading))
    if not documents:
        raise DataError("there are no rows to train on")
    output.say(_begin(len(documents), task, hiding.hide, public=public))
    beside = None if asked.save is None else _checkpoint(asked.save)
    trainer = HidingEncoder(
        asked.encoder,
        randomizer,
        public=public,
        public_name=", ".join(each.name for each in files) if public else "the documents of its first release",
        checkpoint=beside,
        progress=lambda epoch: output.say(_epoch(epoch, task)),
        seed=seed,
        dimension=USUAL,
    )
    attributes = [each.attributes or {} for each in documents]
    with stopped_with_notes():
        try:
            trainer.fit(
                [each.text for each in documents],
                task=[each.get(task) for each in attributes],
                attributes={name: [each.get(name) for each in attributes] for name in hiding.hide},
            )
        except KeyboardInterrupt as error:
            if beside is not None and any(each.exists() for each in _files_of(beside)):
                error.add_note(f"the same command goes on with the training, which {beside} keeps; it is not private")
            raise
    output.say(_kept(trainer.epochs_, trainer.best_, task))
    return trainer.release_


def forget_training(save: Path) -> None:
    """Remove what was kept of a training beside the folder that it went to."""
    for file in _files_of(_checkpoint(save)):
        file.unlink(missing_ok=True)


def _checkpoint(save: Path) -> Path:
    return save.with_name(f"{save.name}.training")


def _files_of(checkpoint: Path) -> tuple[Path, Path]:
    return checkpoint, checkpoint.with_name(f"{checkpoint.name}.gru")


def _begin(rows: int, task: str, hidden: Sequence[str], *, public: bool) -> str:
    whose = "public rows" if public else "rows of the input itself, which this does not protect,"
    return (
        f"Training on {rows:,} {whose}\n"
        f"to keep {task} and to hide {', '.join(hidden)}.\n"
        "What fresh readers get out of the noisy vectors of rows that are held out\n"
        "(0: no more than a guess, 1: all of it):"
    )


def _epoch(epoch: HidingEpoch, task: str) -> str:
    where = f"  epoch {epoch.number:>{len(str(epoch.of))}} of {epoch.of}: "
    if epoch.phase == "rebuild":
        return f"{where}reading and writing, loss of a word {epoch.loss:.2f}"
    if epoch.held_out is None:
        return f"{where}too few rows to hold any out; loss of {task} {epoch.loss:.3f}"
    hidden = ", ".join(f"{name} {_share(value)}" for name, value in epoch.held_out.attributes.items())
    return f"{where}{task} {_share(epoch.held_out.task)} | {hidden}"


def _kept(epochs: Sequence[HidingEpoch], best: int, task: str) -> str:
    hiding = [each for each in epochs if each.phase == "hide"]
    kept = _epoch(hiding[best - 1], task).split(": ", 1)[1]
    return (
        f"Kept epoch {best}: {kept}.\n  No promise, and it flatters (it chose the epoch): attack the vectors yourself."
    )


def _share(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{max(value, 0.0):.2f}"
