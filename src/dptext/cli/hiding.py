"""``dptext encode --hide``: train an encoder that keeps a task and hides attributes, for the command to apply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dptext.cli.console import say, stopped_with_notes
from dptext.errors import DataError, ParameterError
from dptext.files.documents import read_documents
from dptext.files.formats import is_pipe

if TYPE_CHECKING:
    from dptext.hiding.training import HidingEpoch
    from dptext.representations.release import DeviceEncoder

__all__ = ["Hiding", "forget_training", "hiding_asked_for", "not_protected", "train_device"]


@dataclass(frozen=True, kw_only=True)
class Hiding:
    """What the options ask for.

    Attributes:
        attributes: columns to hide.
        task: the column to keep.
        train: files of public rows to train on; none: the rows of IN.
        alpha, epochs: how to train; None: as usual.
        text: the column that holds the text.
    """

    attributes: tuple[str, ...]
    task: str
    train: tuple[Path, ...]
    alpha: float | None
    epochs: int | None
    text: str


def hiding_asked_for(
    *,
    hide: Sequence[str],
    task: str | None,
    train: Sequence[Path],
    alpha: float | None,
    epochs: int | None,
    text: str,
    kept: Sequence[str],
    others: dict[str, Any],
    resume: bool,
    ledger: bool,
) -> Hiding | None:
    """What to train, if anything.

    Args:
        hide, task, train, alpha, epochs: the options of their names.
        text, kept: the columns of texts, and those to keep.
        others: options that speak of a projection, by name.
        resume: whether a run is to go on.
        ledger: whether a ledger is to charge the rows.

    Raises:
        ParameterError: options that do not go together.
    """
    if not hide:
        given = {"task": task, "train": train or None, "alpha": alpha, "epochs": epochs}
        lonely = [f"--{name}" for name, value in given.items() if value is not None]
        if lonely:
            raise ParameterError(f"{', '.join(lonely)} speak of a training that hides something: add --hide COLUMN")
        return None
    if task is None:
        raise ParameterError("--hide needs a task to be kept while it hides: --task COLUMN")
    named = [*hide, task, text]
    if len({*named}) != len(named):
        raise ParameterError("--hide, --task and --text must be different columns")
    shown = [name for name in kept if name in hide]
    if shown:
        raise ParameterError(f"--keep {shown[0]} would write what --hide {shown[0]} hides: leave one of them out")
    foreign = [f"--{name}" for name, value in others.items() if value is not None]
    if foreign:
        raise ParameterError(f"{', '.join(foreign)} and --hide do not go together: training finds the projection")
    if resume:
        raise ParameterError(
            "a run goes on with the encoder that it was begun with, and --hide trains a new one: give the folder that "
            "--save wrote as --encoder, and leave --hide out"
        )
    if ledger and not train:
        raise ParameterError(
            "a ledger cannot charge for a training on the input, which protects none of its rows: train on public "
            "rows, --train FILE, or leave --ledger out"
        )
    return Hiding(attributes=tuple(hide), task=task, train=tuple(train), alpha=alpha, epochs=epochs, text=text)


def train_device(
    asked: Hiding,
    sources: Sequence[Path],
    encoder: str,
    randomizer: Any,
    *,
    dimension: int,
    bound: str,
    suffix: str | None,
    on_error: Literal["fail", "skip"],
    save: Path | None,
    seed: int | None,
    quiet: bool,
) -> DeviceEncoder:
    """Train on the files of ``--train``, or on the rows of IN.

    Raises:
        ParameterError: a pipe that would have to be read twice; an option out of range.
        DataError: no rows, labels that cannot be learnt.
        MissingExtraError: torch, or what the encoder needs, is not installed.
    """
    from dptext.hiding.encoder import HidingEncoder

    public = bool(asked.train)
    if public and any(
        file.exists() and source.exists() and file.samefile(source) for file in asked.train for source in sources
    ):
        raise ParameterError(
            "a file of --train is among the inputs: --train declares public what the encoder is trained on; leave it "
            "out to train on the inputs without that"
        )
    if not public and any(is_pipe(each) for each in sources):
        raise ParameterError("without --train the input is read twice, to train and to encode: name files as IN")
    files = asked.train or sources
    columns = (asked.task, *asked.attributes)
    documents = list(
        read_documents(files, text=asked.text, keep=columns, on_error=on_error, suffix=None if public else suffix)
    )
    if not documents:
        raise DataError("there are no rows to train on")
    say(_begin(len(documents), asked, public=public), quiet=quiet)
    given: dict[str, Any] = {"alpha": asked.alpha, "epochs": asked.epochs}
    beside = None if save is None else _checkpoint(save)
    hiding = HidingEncoder(
        encoder,
        randomizer,
        dimension=dimension,
        bound=bound,
        public=public,
        public_name=", ".join(each.name for each in files) if public else "the documents of its first release",
        checkpoint=beside,
        progress=lambda epoch: say(_told(epoch, asked.task), quiet=quiet),
        seed=seed,
        **{name: value for name, value in given.items() if value is not None},
    )
    attributes = [each.attributes or {} for each in documents]
    with stopped_with_notes():
        try:
            hiding.fit(
                [each.text for each in documents],
                task=[each.get(asked.task) for each in attributes],
                attributes={name: [each.get(name) for each in attributes] for name in asked.attributes},
            )
        except KeyboardInterrupt as error:
            if beside is not None and any(each.exists() for each in _files_of(beside)):
                error.add_note(f"the same command goes on with the training, which {beside} keeps; it is not private")
            raise
    say(_kept(hiding.epochs_, hiding.best_, asked.task), quiet=quiet)
    return hiding.release_


def forget_training(save: Path) -> None:
    """Remove what was kept of a training beside the folder that it went to."""
    for file in _files_of(_checkpoint(save)):
        file.unlink(missing_ok=True)


def _checkpoint(save: Path) -> Path:
    return save.with_name(f"{save.name}.training")


def _files_of(checkpoint: Path) -> tuple[Path, Path]:
    """Of the training, and of that of an auto-encoder before it."""
    return checkpoint, checkpoint.with_name(f"{checkpoint.name}.gru")


def not_protected(device: DeviceEncoder) -> str | None:
    """What to say where the documents of the training are not protected."""
    exposed: tuple[str, ...] = getattr(device.encoder, "exposed", tuple)()
    if not exposed:
        return None
    return (
        "NOT PROTECTED by the training: the documents that the encoder was trained on,\n"
        "  their labels and attributes. The promise is about the noise, for an encoder\n"
        "  that stays the same. Keep the encoder to yourself, or train on public rows:\n"
        "  --train FILE."
    )


def _begin(rows: int, asked: Hiding, *, public: bool) -> str:
    whose = "public rows" if public else "rows of the input itself, which this does not protect,"
    return (
        f"Training on {rows:,} {whose}\n"
        f"to keep {asked.task} and to hide {', '.join(asked.attributes)}.\n"
        "What fresh readers get out of the noisy vectors of rows that are held out\n"
        "(0: no more than a guess, 1: all of it):"
    )


def _told(epoch: HidingEpoch, task: str) -> str:
    where = f"  epoch {epoch.number:>{len(str(epoch.of))}} of {epoch.of}: "
    if epoch.phase == "rebuild":
        return f"{where}reading and writing, loss of a word {epoch.loss:.2f}"
    if epoch.held_out is None:
        return f"{where}too few rows to hold any out; loss of {task} {epoch.loss:.3f}"
    hidden = ", ".join(f"{name} {_share(value)}" for name, value in epoch.held_out.attributes.items())
    return f"{where}{task} {_share(epoch.held_out.task)} | {hidden}"


def _kept(epochs: Sequence[HidingEpoch], best: int, task: str) -> str:
    """Which epoch it was, and what the numbers are not."""
    hiding = [each for each in epochs if each.phase == "hide"]
    kept = _told(hiding[best - 1], task).split(": ", 1)[1]
    return (
        f"Kept epoch {best}: {kept}.\n  No promise, and it flatters (it chose the epoch): attack the vectors yourself."
    )


def _share(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{max(value, 0.0):.2f}"
