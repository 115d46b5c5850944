"""Device encoder: encoder, bound and randomizer from text to private vector; its folder; files of private vectors.

The folder holds ``encoder.safetensors`` (arrays), ``config.json`` (format, version, parts, digests of the other files),
``privacy.json`` (statement) and, for word vectors with a statement of their own, ``vectors.privacy.json``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ProgressOption, ReprMixin
from dptext.errors import DataError, ParameterError
from dptext.io.artifacts import CONFIG, SavedFolder, read_statement_of, read_tensors, tensor_bytes
from dptext.io.atomic import HashedFile
from dptext.io.batches import Batch
from dptext.io.documents import PathLike, check_kept_columns
from dptext.io.formats import file_format
from dptext.privacy.neighbours import Condition, EncoderStays
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import HasStatement, Parameter, PrivacyStatement, disagreements, same_value
from dptext.privacy.wording import warn_unprotected
from dptext.release.release import Release, Tally
from dptext.release.run import Piece, Run, RunSettings, TextFiles, release_file
from dptext.representations.bounds import Bound, Domain
from dptext.representations.encoders import (
    CallableEncoder,
    MeanOfWords,
    Progress,
    Provenance,
    TextEncoder,
    check_texts,
    encode_each,
    encoder_exposure,
    in_parts,
)
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.randomizer import Channel, Private, Randomizer
from dptext.representations.registry import RANDOMIZERS, randomizer_from_parameters
from dptext.representations.sentence_encoder import KNOWN_MODELS, SentenceEncoder, is_onnx_folder
from dptext.validation import check_path
from dptext.vectors.formats import encoded_words, load_vectors_once
from dptext.vectors.word_vectors import WordVectors

Tensors = dict[str, npt.NDArray[Any]]
Described = tuple[dict[str, Any], Tensors, PrivacyStatement | None]
"""The configuration of an encoder, its arrays, and the statement of its vectors."""

_LAYER, _BELOW = "layer.", "below."
"""Prefixes of arrays: of layers, and of layers under other layers."""
_TENSORS, _PRIVACY, _TRAINING = "encoder.safetensors", "privacy.json", "vectors.privacy.json"
_FOLDER = SavedFolder(
    format="dptext-device-encoder",
    version=1,
    writer="DeviceEncoder.save",
    holds="an encoder",
    keys=("encoder", "bound", "randomizer"),
    files=(_TENSORS, _PRIVACY),
    further=(_TRAINING,),
)
_BOUND = ("kind", "radius", "projection", "public_name", "public_texts")
_TEXTS_AT_ONCE = 4096
_WORDS, _WEIGHTING = 50_000, 1e-3  # settings of means of word vectors
_WITHIN = {
    Domain.SPHERE: (Domain.SPHERE, Domain.BALL, Domain.CUBE),
    Domain.BALL: (Domain.BALL, Domain.CUBE),
    Domain.CUBE: (Domain.CUBE,),
    Domain.ONE_HOT: tuple(Domain),
}
"""The domains that contain a domain: a randomizer for one of them leaves its vectors unchanged."""

VECTOR = "vector"
"""The column of the private vectors."""
_ROW_GROUP, _NUMBERS_PER_GROUP = 1 << 16, 1 << 22  # row groups of a file: at most this many rows, and 16 MiB


# -- encoders in folders -------------------------------------------------------------------------------------------


def described(encoder: TextEncoder) -> Described:
    """Return the parts of an encoder that a folder stores: everything, or only the name of a caller's encoder."""
    config: dict[str, Any] = {"kind": encoder.name}
    if isinstance(encoder, MeanOfWords):
        vectors = encoder.vectors
        config |= {"source": vectors.source, "weighting": encoder.weighting}
        words = np.frombuffer(b"\n".join(encoded_words(vectors.words)), dtype=np.uint8)
        return config, {"words": words, "vectors": vectors.matrix}, vectors.statement
    if isinstance(encoder, SentenceEncoder):
        return config | {"model": encoder.model, "batch_size": encoder.batch_size}, {}, None
    if isinstance(encoder, LayeredEncoder):
        base, below, statement = described(encoder.encoder)
        tensors = {f"{_BELOW}{name}" if _LAYER in name else name: array for name, array in below.items()}
        for place, (weights, bias) in enumerate(encoder.layers.layers):
            tensors |= {f"{_LAYER}{place}.weights": weights, f"{_LAYER}{place}.bias": bias}
        config |= {"base": base, "layers": len(encoder.layers.layers), "provenance": asdict(encoder.provenance)}
        return config, tensors, statement
    return {"kind": "given", "name": encoder.name}, {}, None


def rebuilt(
    config: Mapping[str, Any],
    tensors: Tensors,
    training: PrivacyStatement | None,
    source: str,
    replacement: TextEncoder | None,
) -> TextEncoder:
    """Build the encoder that a folder describes; ``replacement`` replaces one that it does not contain."""
    kind = config.get("kind")
    if kind == LayeredEncoder.name and not isinstance(replacement, LayeredEncoder):
        below = {name.removeprefix(_BELOW): entry for name, entry in tensors.items() if not name.startswith(_LAYER)}
        base = rebuilt(config["base"], below, training, source, replacement)
        names = [f"{_LAYER}{place}" for place in range(config["layers"])]
        layers = tuple((tensors[f"{name}.weights"], tensors[f"{name}.bias"]) for name in names)
        return LayeredEncoder(base, HidingLayers(layers), Provenance(**config["provenance"]))
    if replacement is not None:
        return replacement
    if kind == MeanOfWords.name:
        words = tensors["words"].tobytes().decode().split("\n")
        vectors = WordVectors(words, tensors["vectors"], source=str(config["source"]), statement=training, copy=False)
        return MeanOfWords(vectors, weighting=config["weighting"])
    if kind == SentenceEncoder.name:
        try:
            return SentenceEncoder(str(config["model"]), batch_size=config["batch_size"])
        except ParameterError as error:
            raise DataError(
                f"{source}: the model of the encoder is missing ({error}): pass it as encoder=SentenceEncoder(folder)"
            ) from None
    raise DataError(f"{source}: the folder does not contain the encoder, a custom function. Pass it as encoder=...")


def check_device(folder: Path) -> PrivacyStatement:
    """Check the digests of a saved encoder's files and return its statement; nothing is built."""
    _, contents = _FOLDER.read(folder, folder.name)
    return read_statement_of(contents[_PRIVACY], folder.name, _PRIVACY)


# -- the encoder ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class DeviceEncoder(HasStatement, ReprMixin):
    """Encoder from text to private vector. Frozen, without random state.

    **Guarantee** (unit document, substitution, local): the randomizer's guarantee, for any two texts, as
    ``statement`` says. *Proof.* Encoder and bound are fixed before they see a text, each text is encoded and bounded
    separately (`dptext.representations.encoders.encode_each`), and the randomizer's guarantee holds for any two
    vectors of its domain, into which it maps every input.
    Assumptions: the bound was fitted on public texts, and the encoder is public. If it was trained on texts that are
    not, the statement requires that it stays the same, and its training texts are not protected. Every call is a
    separate release: the guarantee for k vectors of one person is the composition of k statements.

    Args:
        encoder: maps a text to a vector.
        bound: maps a vector to a bounded vector; fitted on public texts.
        randomizer: maps a bounded vector to a private vector, with its budget.

    Raises:
        ParameterError: the parts do not fit together.

    >>> from dptext.representations.encoders import MeanOfWords
    >>> from dptext.representations.privunit import PrivUnit
    >>> from dptext.vectors.formats import load_vectors
    >>> words = MeanOfWords(load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])))
    >>> device = DeviceEncoder(words, Bound(mean=[3.0, 3.0]), PrivUnit(epsilon=8.0))
    >>> device.encode(["my cat", "", None]).shape
    (3, 2)
    >>> print(device.statement.guarantee)
    8-differential privacy (pure)
    """

    encoder: TextEncoder
    bound: Bound
    randomizer: Randomizer

    def __post_init__(self) -> None:
        for name, kind in (("encoder", TextEncoder), ("bound", Bound), ("randomizer", Randomizer)):
            if not isinstance(getattr(self, name), kind):
                raise ParameterError(f"{name} must be a {kind.__name__}, got {type(getattr(self, name)).__name__}")
        if self.encoder.dimension != self.bound.encoder_dimension:
            raise ParameterError(
                f"the bound is for vectors of {self.bound.encoder_dimension} numbers, the encoder returns "
                f"{self.encoder.dimension}: fit it on vectors of this encoder"
            )
        if self.channel.domain not in _WITHIN[self.bound.domain]:
            raise ParameterError(
                f"{self.randomizer.name} takes vectors of the {self.channel.domain}, the bound {self.bound.kind!r} "
                f"maps into the {self.bound.domain}: choose another bound"
            )

    @property
    def channel(self) -> Channel:
        """The randomizer, calibrated for the bounded vectors."""
        return self.randomizer.channel(self.bound.dimension)

    @property
    def width(self) -> int:
        """K, the length of a private vector."""
        return self.channel.width

    def encode(
        self, texts: Iterable[str | None], *, seed: int | None = None, progress: Progress | None = None
    ) -> Private:
        """Return (n, k) float32 private vectors, one per text: a release.

        Args:
            texts: strings or documents; a missing text is encoded like the empty text.
            seed: None for cryptographic randomness. An integer, for tests and papers only, makes equal calls give equal
                vectors (other texts or parameters still get other noise); it voids the guarantee for all who know it.
            progress: called with the number of finished texts.

        Raises:
            ParameterError: ``texts`` is a single string, or has columns.
            DataError: an entry is not a string; the message names its index.
        """
        values = check_texts(texts)
        bits = RandomBits()
        if seed is not None:
            parameters = self.statement.settings_digest({"input": "vectors", **self.parameters()})
            bits = NoiseKey(seed).stream(parameters, 0, Batch(values, {}).digest())
        return self._encode(values, bits, progress)

    def _encode(self, texts: list[str], bits: RandomBits, progress: Progress | None = None) -> Private:
        channel = self.channel
        private = np.empty((len(texts), channel.width), dtype=np.float32)
        for block in in_parts(texts, _TEXTS_AT_ONCE, progress):
            private[block] = channel.sample(self._bounded(texts[block]), bits)
        return private

    def clean(self, texts: Iterable[str | None]) -> npt.NDArray[np.float32]:
        """Return (n, d) float32 vectors *before* the noise. **Not private: they must not leave the device.**

        For a model that was trained on private vectors and runs on the device without noise. The outputs of some
        randomizers are in another space; PrivUnit's outputs are in the same one.
        """
        return self._bounded(check_texts(texts)).astype(np.float32)

    def _bounded(self, texts: list[str]) -> npt.NDArray[np.float64]:
        return self.bound.apply(encode_each(self.encoder, texts))

    @property
    def statement(self) -> PrivacyStatement:
        """Return the statement for one text. A seed of ``encode`` voids it against all who know the seed."""
        noise = self.randomizer.statement(self.bound.dimension)
        trained = encoder_exposure(self.encoder)
        assumptions = (*self.encoder.assumptions(), *self.bound.assumptions(), *noise.assumptions)
        return noise.replace(
            condition=Condition(requirements=(EncoderStays(),) if trained else ()),
            parameters=self.parameters(),
            assumptions=tuple(dict.fromkeys(assumptions)),
            exposed=("the number of texts, and their order", *trained),
        )

    def parameters(self) -> dict[str, Parameter]:
        """Return the parameters of encoder, bound and randomizer that determine the output distribution."""
        noise = self.randomizer.statement(self.bound.dimension).parameters
        return {**self.encoder.parameters(), **self.bound.parameters(), **noise}

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder for `load` on a device, completely or not at all.

        It contains the vectors of `MeanOfWords` (with their words), or the name and digest of a `SentenceEncoder`; any
        other encoder has to be passed to `load` again.

        Raises:
            ParameterError: the folder already exists.
            DataError: a word cannot be stored in a file; the message names its row.
            StorageError: the folder cannot be written.
        """
        target, statement = _FOLDER.place(folder), self.statement
        if RANDOMIZERS.get(self.randomizer.name) is not type(self.randomizer):
            raise ParameterError(f"only dptext's randomizers with a proof can be saved ({', '.join(RANDOMIZERS)})")
        encoder, tensors, training = described(self.encoder)
        tensors["mean"] = self.bound.mean
        if self.bound.directions is not None:
            tensors["directions"] = self.bound.directions
        files = {_TENSORS: tensor_bytes(tensors), _PRIVACY: (statement.to_json() + "\n").encode()}
        if training is not None:
            files[_TRAINING] = (training.to_json() + "\n").encode()
        config = {
            "encoder": encoder,
            "bound": {name: getattr(self.bound, name) for name in _BOUND},
            "randomizer": {"name": self.randomizer.name, "options": self.randomizer.options()},
        }
        _FOLDER.write(target, config, files, software=statement.software)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], encoder: TextEncoder | None = None) -> DeviceEncoder:
        """Load a folder that `save` wrote. It needs numpy and dptext's core only, unless the encoder needs more.

        The randomizer is calibrated again from its budget, and the folder's statement is compared with the loaded
        encoder.

        Args:
            folder: path of the folder.
            encoder: an encoder that the folder does not contain: a caller's function, or a model in another location.

        Raises:
            ParameterError: ``folder`` is not a path.
            MissingExtraError: the encoder needs a package.
            DataError: a file is missing, truncated, changed, of a newer version or of another format; the encoder must
                be passed, or is not the one that was saved.
            StorageError: a file cannot be read.
        """
        place = check_path("the folder", folder)
        source = place.name or str(place)
        config, contents = _FOLDER.read(place, source)
        tensors, _ = read_tensors(place / _TENSORS, source=f"{source}: {_TENSORS}")
        statement = read_statement_of(contents[_PRIVACY], source, _PRIVACY)
        training = read_statement_of(contents[_TRAINING], source, _TRAINING) if _TRAINING in contents else None
        try:
            bound = Bound(mean=tensors["mean"], directions=tensors.get("directions"), **config["bound"])
            randomizer = randomizer_from_parameters(config["randomizer"]["name"], config["randomizer"]["options"])
            device = cls(rebuilt(config["encoder"], tensors, training, source, encoder), bound, randomizer)
        except (ParameterError, TypeError, KeyError, AttributeError, UnicodeDecodeError):
            raise DataError(
                f"{source}: {CONFIG} and {_TENSORS} belong to different encoders; get the folder again, or pass the "
                "encoder that was saved"
            ) from None
        # arguments are exact, so even a rounding difference is an error; for an argument of None, the statement
        # contains the computed value
        options = {name: value for name, value in randomizer.options().items() if value is not None}
        exact = device.encoder.parameters() | options
        differ = [name for name in exact if not same_value(statement.parameters, exact, name, 0.0)]
        differ += [name for name in disagreements(statement, device.statement) if name not in differ]
        if differ:
            raise DataError(
                f"{source}: the encoder is not the one that was saved: {', '.join(differ)} differ; get the folder "
                "again, or pass the encoder that was saved"
            )
        return device

    def _repr_fields(self) -> Fields:
        yield "encoder", self.encoder
        yield "bound", self.bound.kind
        yield "randomizer", self.randomizer
        yield "dimension", self.bound.dimension


def encoder_of(source: Any) -> TextEncoder:
    """Return the encoder that an argument describes."""
    trained = getattr(source, "text_encoder_", None)
    if isinstance(trained, TextEncoder):  # the trained encoder is frozen; its trainer could be fitted again
        return trained
    if isinstance(source, TextEncoder):
        return source
    if isinstance(source, WordVectors):
        return MeanOfWords(source, weighting=_WEIGHTING)
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if name in KNOWN_MODELS or (Path(name) / "modules.json").exists() or is_onnx_folder(Path(name)):
            return SentenceEncoder(source)
        return MeanOfWords(load_vectors_once(name, limit=_WORDS), weighting=_WEIGHTING)
    if callable(source):
        return CallableEncoder(source)
    raise ParameterError(
        "encoder must be a known name, a path, WordVectors, a TextEncoder or a function from a list of texts to an "
        f"array, got {type(source).__name__}"
    )


# -- files ---------------------------------------------------------------------------------------------------------


def encode_file(
    source: PathLike | Sequence[PathLike] | TextFiles,
    out: PathLike,
    encoder: DeviceEncoder,
    *,
    seed: int | None = None,
    resume: bool = False,
    force: bool = False,
    ledger: PathLike | None = None,
    user: str | None = None,
    progress: ProgressOption = None,
    shuffled: int | None = None,
) -> Release:
    """Encode every text of a file as a private vector in OUT.parquet, with a statement.

    The input is read in constant memory. An interrupted run leaves an existing output unchanged and continues with
    ``resume=True`` and the same noise, so that nothing is released twice.

    Args:
        source: one file or several with texts in the column ``text``, whose rows go to one output; or `TextFiles` with
            another column, columns to keep, a format or an encoding.
        out: a .parquet file: the column ``vector``, (k,) float32 lists of a fixed size, then the kept columns.
        encoder: a fitted encoder, frozen (`dptext.DeviceEncoder`). A missing text (null) is encoded as the empty one.
        seed, resume, force, ledger, user, progress, shuffled: see `dptext.release.run.RunSettings`.

    **Guarantee** (unit: document, one text; substitution by any other text; local): the encoder's guarantee, for
    each row. The noise of a block is keyed by the job's secret, the encoder's parameters, its index and its content
    (`dptext.privacy.randomness`), so that only an equal block of the same job repeats it. The loss of a person with k
    texts is k times as large: `statement_for_user`, or `Release.for_user` if ``user`` is given.

    Raises:
        DataError: a row cannot be read or written; the message names it, never its content.
        ParameterError: the output is not a .parquet file, already exists, or is the input; a run was interrupted
            (``resume``, ``force``).
        RefusedError: the ledger refuses the release; the input has changed since the run was interrupted.
        StorageError: a file cannot be read or written.
    """
    out, rows = Path(out), TextFiles.of(source)
    check_output_columns(out, rows.text, rows.keep)

    def begin(key: NoiseKey, release_id: str) -> Run:
        return _EncodingRun(encoder, key, release_id, rows.keep)

    release = release_file(
        rows,
        out,
        begin,
        RunSettings(
            seed=seed, resume=resume, force=force, ledger=ledger, user=user, progress=progress, shuffled=shuffled
        ),
        options={**encoder.parameters(), "mechanism": encoder.statement.mechanism, "output": "vectors"},
        is_assembled=True,
        missing="",
    )
    warn_unprotected(release.statement)
    return release


def vectors_in(path: PathLike) -> Iterator[Private]:
    """Yield the private vectors of a file that `encode_file` wrote, as (n, k) float32 arrays, block by block."""
    from dptext.io.parquet import vector_batches

    return vector_batches(Path(path), VECTOR)


def encode_block(encoder: DeviceEncoder, key: NoiseKey) -> Callable[[int, Batch], Private]:
    """Return the function that encodes a block: the same vectors whenever and wherever it is done."""
    parameters = encoder.statement.settings_digest(encoder.parameters())

    def encode(place: int, block: Batch) -> Private:
        bits = key.stream(parameters, place, block.digest())
        return encoder._encode([text or "" for text in block.texts], bits)

    return encode


class _EncodingRun:
    """Encoding of the texts of a file (`dptext.release.run.Run`)."""

    def __init__(self, encoder: DeviceEncoder, key: NoiseKey, release_id: str, keep: Sequence[str]) -> None:
        self._width, self._keep = encoder.width, tuple(keep)
        self._statement = encoder.statement.replace(release_id=release_id, seeded=key.seeded)
        self._encode = encode_block(encoder, key)

    def work(self, blocks: Iterable[tuple[int, Batch]], *, row: int) -> Iterator[Piece]:
        from dptext.io.parquet import segment

        for place, block in blocks:
            vectors = self._encode(place, block)
            data = segment(VECTOR, vectors, block.columns, self._keep, row)
            yield Piece(place, data, len(vectors), block.rejects, Tally())
            row += len(vectors)

    def finish(self, blocks: Path, ends: Sequence[int], out: HashedFile) -> None:
        from dptext.io.parquet import assemble

        rows = min(_ROW_GROUP, max(1, _NUMBERS_PER_GROUP // self._width))
        assemble(blocks, ends, out, rows=rows)

    def statement_before(self) -> PrivacyStatement:
        return self._statement

    def statement(self, tally: Tally) -> PrivacyStatement:  # noqa: ARG002  nothing to count
        return self._statement


def check_output_columns(out: Path, text: str, keep: Sequence[str]) -> None:
    """Check the output's name and columns before anything is read."""
    if file_format(out).kind != ".parquet":
        raise ParameterError(f"vectors are written as parquet: expected a name that ends in .parquet, got {out.name!r}")
    check_kept_columns(text, keep)
    if VECTOR in keep:
        raise ParameterError(f"a kept column cannot be named {VECTOR!r}, as the private vectors are: rename it first")
