"""Device encoder: encoder, bound and randomizer from text to private vector, and its folder.

The folder holds ``encoder.safetensors`` (arrays), ``config.json`` (format, version, parts, digests of the other files),
``privacy.json`` (statement) and, for word vectors with a statement of their own, ``vectors.privacy.json``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.errors import DataError, ParameterError
from dptext.io.artifacts import CONFIG, SavedFolder, read_statement_of, read_tensors, refuse_unknown, tensor_bytes
from dptext.io.batches import Batch
from dptext.privacy.neighbours import Condition, EncoderStays
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, disagreements, same_value
from dptext.privacy.wording import facts_of
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
)
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.randomizer import Channel, Private, Randomizer
from dptext.representations.registry import RANDOMIZERS, randomizer_from_parameters
from dptext.representations.sentence_encoder import KNOWN_MODELS, SentenceEncoder, is_onnx_folder
from dptext.representations.trained_encoders import EmbeddingBag, GruEncoder, NGrams, WordTable
from dptext.vectors.formats import encoded_words, load_vectors_once
from dptext.vectors.word_vectors import WordVectors

Tensors = dict[str, npt.NDArray[Any]]
Described = tuple[dict[str, Any], Tensors, PrivacyStatement | None]
"""What the configuration says of an encoder, its arrays, and the statement of its vectors."""

_GRU = "gru."
_LAYER, _BELOW = "layer.", "below."
"""Arrays of layers, and what stands before the names of those that other layers stand on."""
_PROVENANCE = tuple(field.name for field in fields(Provenance))
_NAMES = {
    MeanOfWords.name: ("source", "weighting"),
    EmbeddingBag.name: ("most", "trained_on", "trained_texts"),
    SentenceEncoder.name: ("model", "batch_size"),
    LayeredEncoder.name: ("base", "layers", "provenance"),
    GruEncoder.name: ("longest", "pooling", "provenance"),
    "given": ("name",),
}
"""What `described` says of an encoder of each kind."""


def unknown_names(config: Mapping[str, Any]) -> Iterator[str]:
    """The names of a configuration, with those that they stand under, that `described` never gives for its kind."""
    known = ("kind", *_NAMES.get(str(config.get("kind")), config))
    yield from (name for name in config if name not in known)
    base, provenance = config.get("base"), config.get("provenance")
    if isinstance(base, Mapping):
        yield from (f"base.{name}" for name in unknown_names(base))
    if isinstance(provenance, Mapping):
        yield from (f"provenance.{name}" for name in provenance if name not in _PROVENANCE)


def described(encoder: TextEncoder) -> Described:
    """Return the parts of an encoder that a folder stores: everything, or only the name of a caller's function."""
    config: dict[str, Any]
    if isinstance(encoder, MeanOfWords):
        vectors = encoder.vectors
        config = {"kind": encoder.name, "source": vectors.source, "weighting": encoder.weighting}
        return config, {"words": _bytes_of(vectors.words), "vectors": vectors.matrix}, vectors.statement
    if isinstance(encoder, EmbeddingBag):
        config = {"kind": encoder.name, "most": encoder.ngrams.most}
        config |= {"trained_on": encoder.trained_on, "trained_texts": encoder.trained_texts}
        return config, {"vectors": encoder.matrix}, None
    if isinstance(encoder, SentenceEncoder):
        return {"kind": encoder.name, "model": encoder.model, "batch_size": encoder.batch_size}, {}, None
    if isinstance(encoder, LayeredEncoder):
        base, below, statement = described(encoder.encoder)
        tensors = {f"{_BELOW}{name}" if _LAYER in name else name: array for name, array in below.items()}
        layers = encoder.layers.layers
        config = {"kind": encoder.name, "base": base, "layers": len(layers)}
        for place, (weights, bias) in enumerate(layers):
            tensors |= {f"{_LAYER}{place}.weights": weights, f"{_LAYER}{place}.bias": bias}
        return config | {"provenance": asdict(encoder.provenance)}, tensors, statement
    if isinstance(encoder, GruEncoder):
        config = {"kind": encoder.name, "longest": encoder.table.longest, "pooling": encoder.pooling}
        tensors = {f"{_GRU}{name}": array for name, array in encoder.arrays.items()}
        tensors["words"] = _bytes_of(encoder.table.words)
        return config | {"provenance": asdict(encoder.provenance)}, tensors, None
    return {"kind": "given", "name": encoder.name}, {}, None


def rebuilt(
    config: Mapping[str, Any],
    tensors: Tensors,
    training: PrivacyStatement | None,
    source: str,
    replacement: TextEncoder | None,
) -> TextEncoder:
    """Build the encoder that a folder describes; ``replacement`` stands in for one that it does not hold."""
    kind = config.get("kind")
    if kind == LayeredEncoder.name and not isinstance(replacement, LayeredEncoder):
        if not isinstance(config["base"], Mapping) or type(config["layers"]) is not int:
            raise TypeError("the configuration must contain the number of layers and their base")
        below = {name.removeprefix(_BELOW): entry for name, entry in tensors.items() if not name.startswith(_LAYER)}
        base = rebuilt(config["base"], below, training, source, replacement)
        names = range(config["layers"])
        layers = tuple((tensors[f"{_LAYER}{place}.weights"], tensors[f"{_LAYER}{place}.bias"]) for place in names)
        return LayeredEncoder(base, HidingLayers(layers), Provenance(**config["provenance"]))
    if replacement is not None:
        return replacement
    if kind == MeanOfWords.name:
        words = _words_of(tensors["words"])
        vectors = WordVectors(words, tensors["vectors"], source=str(config["source"]), statement=training, copy=False)
        return MeanOfWords(vectors, weighting=config["weighting"])
    if kind == EmbeddingBag.name:
        ngrams = NGrams(most=config["most"], buckets=len(tensors["vectors"]))
        provenance = {name: config[name] for name in ("trained_on", "trained_texts")}
        return EmbeddingBag(tensors["vectors"], ngrams, **provenance)
    if kind == GruEncoder.name:
        arrays = {name.removeprefix(_GRU): array for name, array in tensors.items() if name.startswith(_GRU)}
        table = WordTable(tuple(_words_of(tensors["words"])), config["longest"])
        return GruEncoder(table, arrays, pooling=config["pooling"], provenance=Provenance(**config["provenance"]))
    if kind == SentenceEncoder.name:
        try:
            return SentenceEncoder(str(config["model"]), batch_size=config["batch_size"])
        except ParameterError as error:
            raise DataError(
                f"{source}: the model of the encoder is not here ({error}); give it as encoder=SentenceEncoder(folder)"
            ) from None
    raise DataError(f"{source}: its encoder is a caller's, which no folder holds; give the same one as encoder=...")


def _bytes_of(words: tuple[str, ...]) -> npt.NDArray[Any]:
    for row, word in enumerate(words):
        if "\n" in word:
            raise DataError(f"row {row}: the word holds a line feed, which the file cannot; leave it out")
    return np.frombuffer(b"\n".join(encoded_words(words)), dtype=np.uint8)


def _words_of(stored: npt.NDArray[Any]) -> list[str]:
    return stored.tobytes().decode().split("\n")


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


def check_device(folder: Path) -> PrivacyStatement:
    """Check that the files of a saved encoder are those that the configuration announces; nothing is built."""
    _, contents = _FOLDER.read(folder, folder.name)
    return read_statement_of(contents[_PRIVACY], folder.name, _PRIVACY)


def _check_parts(config: Mapping[str, Any], source: str) -> None:
    parts = [config.get(name) for name in _FOLDER.keys]
    if not all(isinstance(part, dict) for part in parts) or config["bound"].keys() != set(_BOUND):
        _foreign(source)
    options = config["randomizer"].get("options")
    if not isinstance(options, dict) or not isinstance(config["randomizer"].get("name"), str):
        _foreign(source)
    refuse_unknown(source, config["randomizer"], ("name", "options"), "randomizer.")


def _foreign(source: str, error: Exception | None = None) -> NoReturn:
    why = f" ({error})" if isinstance(error, ParameterError) else ""
    raise DataError(f"{source}: {CONFIG} and {_TENSORS} are not of one encoder{why}; get the folder again") from None


def _path(folder: str | os.PathLike[str]) -> Path:
    try:
        name = os.fspath(folder)
    except TypeError:
        name = ""
    if not isinstance(name, str) or not name or "\0" in name:
        raise ParameterError("expected the path of a folder: a string that is not empty and holds no NUL")
    return Path(name)


_TEXTS_AT_ONCE = 4096
_WORDS, _WEIGHTING = 50_000, 1e-3  # of word vectors whose means are taken
_WITHIN = {
    Domain.SPHERE: (Domain.SPHERE, Domain.BALL, Domain.CUBE),
    Domain.BALL: (Domain.BALL, Domain.CUBE),
    Domain.CUBE: (Domain.CUBE,),
    Domain.ONE_HOT: tuple(Domain),
}
"""The domains that hold all vectors of a domain: a randomizer for one of them leaves the vectors as they are."""


@dataclass(frozen=True, eq=False, repr=False)
class DeviceEncoder(ReprMixin):
    """Text to private vector. Frozen: it cannot drift away from its statement, and keeps no random state.

    **Guarantee** (unit document, substitution, local): the randomizer's guarantee, for any two texts, as
    ``statement`` says. *Proof.* Encoder and bound are fixed before they see a text, each text is encoded and bounded
    separately (`dptext.representations.encoders.encode_each`), and the randomizer's guarantee holds for any two
    vectors of its domain, into which it maps every input.
    Assumptions: the bound was fitted on public texts, and the encoder is public. If it was trained on texts that are
    not, the statement requires that it stays the same, and its training texts are not protected. Every call is a
    release of its own and costs again: k vectors of one person have the composition of k statements.

    Args:
        encoder: text to vector.
        bound: vector to bounded vector, fitted on public texts.
        randomizer: bounded vector to private vector, with its budget.

    Raises:
        ParameterError: parts that do not fit together.

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
        if not isinstance(self.encoder, TextEncoder):
            raise ParameterError(f"expected an encoder such as MeanOfWords, got {type(self.encoder).__name__}")
        if not isinstance(self.bound, Bound):
            raise ParameterError(f"expected a Bound, got {type(self.bound).__name__}: use fit_bound(...)")
        if not isinstance(self.randomizer, Randomizer):
            raise ParameterError(f"expected a randomizer such as PrivUnit, got {type(self.randomizer).__name__}")
        if self.encoder.dimension != self.bound.encoder_dimension:
            raise ParameterError(
                f"the bound is for vectors of {self.bound.encoder_dimension} numbers, the encoder gives "
                f"{self.encoder.dimension}: fit it on vectors of this encoder"
            )
        domain = self.channel.domain
        if domain not in _WITHIN[self.bound.domain]:
            raise ParameterError(
                f"{self.randomizer.name} takes vectors of the {domain}, the bound {self.bound.kind!r} ends in the "
                f"{self.bound.domain}: choose another bound"
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
        """(n, k) float32 private vectors, one a text: a release.

        Args:
            texts: strings or documents; a missing one counts as the empty text, which has a vector like any other.
            seed: None for cryptographic randomness. An integer, for tests and papers only, makes equal calls give equal
                vectors (other texts or parameters still get other noise); it voids the guarantee for all who know it.
            progress: called with the number of texts done.

        Raises:
            ParameterError: one string, or something with columns.
            DataError: an entry that is no string; its place is named.
        """
        values = check_texts(texts)
        if seed is None:
            return self.encode_with(values, RandomBits(), progress=progress)
        parameters = self.statement.settings_digest({"input": "vectors", **self.parameters()})
        return self.encode_with(
            values, NoiseKey(seed).stream(parameters, 0, Batch(values, {}).digest()), progress=progress
        )

    def encode_with(
        self, texts: Iterable[str | None], bits: RandomBits, *, progress: Progress | None = None
    ) -> Private:
        """`encode` with random bits of the caller's, which nothing else may use."""
        values = check_texts(texts)
        channel = self.channel
        private = np.empty((len(values), channel.width), dtype=np.float32)
        for start in range(0, len(values), _TEXTS_AT_ONCE):
            block = slice(start, start + _TEXTS_AT_ONCE)
            private[block] = channel.sample(self._bounded(values[block]), bits)
            if progress is not None:
                progress(min(block.stop, len(values)))
        return private

    def clean(self, texts: Iterable[str | None]) -> npt.NDArray[np.float32]:
        """(n, d) float32 vectors as they are *before* the noise. **Not private: they must not leave the device.**

        For a model that was trained on private vectors and runs on the device without noise. The outputs of some
        randomizers lie in another space; PrivUnit's outputs lie in this one.
        """
        return self._bounded(check_texts(texts)).astype(np.float32)

    def _bounded(self, texts: list[str]) -> npt.NDArray[np.float64]:
        return self.bound.apply(encode_each(self.encoder, texts))

    @property
    def statement(self) -> PrivacyStatement:
        """Return the statement for one text. A seed of ``encode`` voids it against all who know the seed."""
        noise = self.randomizer.statement(self.bound.dimension)
        trained = encoder_exposure(self.encoder)
        return noise.replace(
            condition=Condition(requirements=(EncoderStays(),) if trained else ()),
            parameters=self.parameters(),
            assumptions=tuple(
                dict.fromkeys((*self.encoder.assumptions(), *self.bound.assumptions(), *noise.assumptions))
            ),
            exposed=("the number of texts, and their order", *trained),
        )

    def parameters(self) -> dict[str, Parameter]:
        """Return the parameters of encoder, bound and randomizer that determine the output distribution."""
        noise = self.randomizer.statement(self.bound.dimension).parameters
        return {**self.encoder.parameters(), **self.bound.parameters(), **noise}

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write it as a folder, whole or not at all, for `load` on a device.

        The vectors of `MeanOfWords` (with their words) and of an `EmbeddingBag` go along; of a `SentenceEncoder` its
        name and digest; any other encoder has to be given again.

        Raises:
            ParameterError: something is there already.
            DataError: a word that no file can hold; its row is named.
            StorageError: it cannot be written.
        """
        target, randomizer, bound, statement = _path(folder), self.randomizer, self.bound, self.statement
        if os.path.lexists(target):
            raise ParameterError(f"{str(target)!r} is there already: choose another name")
        if RANDOMIZERS.get(randomizer.name) is not type(randomizer):
            raise ParameterError(
                f"only dptext's own randomizers can be saved, those with a proof ({', '.join(RANDOMIZERS)})"
            )
        config, tensors, training = described(self.encoder)
        tensors["mean"] = bound.mean
        if bound.directions is not None:
            tensors["directions"] = bound.directions
        files = {_TENSORS: tensor_bytes(tensors), _PRIVACY: (statement.to_json() + "\n").encode()}
        if training is not None:
            files[_TRAINING] = (training.to_json() + "\n").encode()
        announced = {
            "encoder": config,
            "bound": {name: getattr(bound, name) for name in _BOUND},
            "randomizer": {"name": randomizer.name, "options": randomizer.options()},
        }
        _FOLDER.write(target, announced, files, software=statement.software)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], encoder: TextEncoder | None = None) -> DeviceEncoder:
        """What `save` wrote. numpy and dptext's core are all it takes, unless the encoder takes more.

        The randomizer is calibrated again from its budget, and the folder's statement is compared with the loaded
        encoder.

        Args:
            folder: that `save` wrote.
            encoder: where the folder cannot hold it: a caller's function, a model in another place.

        Raises:
            ParameterError: the encoder has to be given, or is not the one that was saved.
            MissingExtraError: the encoder needs a package.
            DataError: a file is missing, cut, changed, of a newer version or of something else.
            StorageError: a file cannot be read.
        """
        place = _path(folder)
        source = place.name or str(place)
        config, contents = _FOLDER.read(place, source)
        _check_parts(config, source)
        tensors, _ = read_tensors(place / _TENSORS, source=f"{source}: {_TENSORS}")
        statement = read_statement_of(contents[_PRIVACY], source, _PRIVACY)
        training = read_statement_of(contents[_TRAINING], source, _TRAINING) if _TRAINING in contents else None
        try:
            bound = Bound(mean=tensors["mean"], directions=tensors.get("directions"), **config["bound"])
            randomizer = randomizer_from_parameters(config["randomizer"]["name"], config["randomizer"]["options"])
            refuse_unknown(source, config["randomizer"]["options"], randomizer.options(), "randomizer.options.")
            loaded = rebuilt(config["encoder"], tensors, training, source, encoder)
            refuse_unknown(source, unknown_names(config["encoder"]), (), "encoder.")
        except (ParameterError, TypeError, KeyError, UnicodeDecodeError) as error:
            _foreign(source, error)
        parameters = loaded.parameters()
        differ = [name for name in parameters if not same_value(statement.parameters, parameters, name, 0.0)]
        if differ:
            problem = f"the encoder is not the one that was saved: {', '.join(differ)} differ;"
            if encoder is not None:
                raise ParameterError(f"{problem} give that one, or save this one")
            raise DataError(f"{source}: {problem} get it again")
        try:
            device = cls(loaded, bound, randomizer)
        except ParameterError as error:
            raise DataError(f"{source}: its parts do not fit together ({error}); get the folder again") from None
        wrong = disagreements(statement, device.statement)
        # arguments are exact, so not even rounding excuses a difference; one that was left open (None) stands in the
        # statement as its computed value, which was compared above
        options = {name: value for name, value in randomizer.options().items() if value is not None}
        wrong += [n for n in options if n not in wrong and not same_value(statement.parameters, options, n, 0.0)]
        if wrong:
            raise DataError(
                f"{source}: the loaded encoder and {_PRIVACY} differ ({', '.join(wrong)}): the folder was changed, or "
                "another version of dptext wrote it; save the encoder again"
            )
        return device

    def _repr_fields(self) -> Fields:
        yield "encoder", self.encoder
        yield "bound", self.bound.kind
        yield "randomizer", self.randomizer
        yield "dimension", self.bound.dimension

    def _html_fields(self) -> Fields:
        return facts_of(self.statement)


def encoder_of(source: Any) -> TextEncoder:
    """Return the encoder."""
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
