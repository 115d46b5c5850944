"""A device encoder as a folder: ``encoder.safetensors`` (mean, directions, and the arrays of the encoder),
``config.json`` (format, version, what the parts are, digests of the other files) and ``privacy.json`` (its statement).
Word vectors that were released under a statement of their own have it in ``vectors.privacy.json``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.io.artifacts import CONFIG, SavedFolder, read_statement_of, read_tensors, refuse_unknown, tensor_bytes
from dptext.privacy.statement import PrivacyStatement, disagreements, same_value
from dptext.representations.bounds import Bound
from dptext.representations.embedding_bag import EmbeddingBag, NGrams
from dptext.representations.encoders import Provenance, TextEncoder
from dptext.representations.gru import GruEncoder, WordTable
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.mean_of_words import MeanOfWords
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import RANDOMIZERS, randomizer_from_parameters
from dptext.representations.sentence_encoder import SentenceEncoder
from dptext.vectors.word2vec import encoded_words
from dptext.vectors.word_vectors import WordVectors

__all__ = [
    "Described",
    "StoredDevice",
    "check_device",
    "check_promise",
    "described",
    "read_device",
    "rebuilt",
    "unknown_names",
    "write_device",
]

Tensors = dict[str, npt.NDArray[Any]]
Described = tuple[dict[str, Any], Tensors, PrivacyStatement | None]
"""What the configuration says of an encoder, its arrays, and the statement of its vectors."""

_GRU = "gru."
_LAYER, _BELOW = "layer.", "below."
"""Arrays of layers, and what stands before the names of those that other layers stand on."""
_PROVENANCE = tuple(each.name for each in fields(Provenance))
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
    """The parts of an encoder that a folder holds: all of it, or (of a caller's function) its name."""
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
    given: TextEncoder | None,
) -> TextEncoder:
    """The encoder of which a folder speaks."""
    kind = config.get("kind")
    if kind == LayeredEncoder.name and not isinstance(given, LayeredEncoder):
        if not isinstance(config["base"], Mapping) or type(config["layers"]) is not int:
            raise TypeError("a folder says how many layers there are, and on what they stand")
        below = {name.removeprefix(_BELOW): each for name, each in tensors.items() if not name.startswith(_LAYER)}
        base = rebuilt(config["base"], below, training, source, given)
        names = range(config["layers"])
        layers = tuple((tensors[f"{_LAYER}{place}.weights"], tensors[f"{_LAYER}{place}.bias"]) for place in names)
        return LayeredEncoder(base, HidingLayers(layers), Provenance(**config["provenance"]))
    if given is not None:
        return given
    if kind == MeanOfWords.name:
        words = _words_of(tensors["words"])
        vectors = WordVectors(words, tensors["vectors"], source=str(config["source"]), statement=training, copy=False)
        return MeanOfWords(vectors, weighting=config["weighting"])
    if kind == EmbeddingBag.name:
        ngrams = NGrams(most=config["most"], buckets=len(tensors["vectors"]))
        told = {name: config[name] for name in ("trained_on", "trained_texts")}
        return EmbeddingBag(tensors["vectors"], ngrams, **told)
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


@dataclass(frozen=True)
class StoredDevice:
    """What a folder holds."""

    source: str
    encoder: TextEncoder
    bound: Bound
    randomizer: Randomizer
    statement: PrivacyStatement


# -- out ------------------------------------------------------------------------------------------------------


def write_device(
    folder: str | os.PathLike[str],
    encoder: TextEncoder,
    bound: Bound,
    randomizer: Randomizer,
    statement: PrivacyStatement,
) -> None:
    """Write the folder whole or not at all."""
    target = _path(folder)
    if os.path.lexists(target):
        raise ParameterError(f"{str(target)!r} is there already: choose another name")
    if RANDOMIZERS.get(randomizer.name) is not type(randomizer):
        raise ParameterError(
            f"only dptext's own randomizers can be saved, those with a proof ({', '.join(RANDOMIZERS)})"
        )
    config, tensors, training = described(encoder)
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


# -- in -------------------------------------------------------------------------------------------------------


def read_device(folder: str | os.PathLike[str], encoder: TextEncoder | None) -> StoredDevice:
    """The parts of a folder; see `DeviceEncoder.load` for what it raises."""
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
        found = rebuilt(config["encoder"], tensors, training, source, encoder)
        refuse_unknown(source, unknown_names(config["encoder"]), (), "encoder.")
    except (ParameterError, TypeError, KeyError, UnicodeDecodeError) as error:
        _foreign(source, error)
    mine = found.parameters()
    differ = [name for name in mine if not same_value(statement.parameters, mine, name, 0.0)]
    if differ and encoder is not None:
        raise ParameterError(
            f"the encoder is not the one that was saved: {', '.join(differ)} differ; give that one, or save this one"
        )
    if differ:
        raise DataError(
            f"{source}: the encoder is not the one that was saved: {', '.join(differ)} differ; get it again"
        )
    return StoredDevice(source, found, bound, randomizer, statement)


def check_device(folder: Path) -> PrivacyStatement:
    """Check that the files of a saved encoder are those that the configuration announces; nothing is built."""
    _, contents = _FOLDER.read(folder, folder.name)
    return read_statement_of(contents[_PRIVACY], folder.name, _PRIVACY)


def check_promise(stored: StoredDevice, promised: PrivacyStatement) -> None:
    """Refuse what promises, takes for granted or exposes something else than its statement says."""
    said = stored.statement
    wrong = disagreements(said, promised)
    # arguments are no result of a search: not even rounding excuses a difference; one that was left open (None) stands
    # in the statement as what came of it, which was compared above
    given = {name: value for name, value in stored.randomizer.options().items() if value is not None}
    wrong += [name for name in given if name not in wrong and not same_value(said.parameters, given, name, 0.0)]
    if wrong:
        raise DataError(
            f"{stored.source}: what was loaded and {_PRIVACY} do not promise the same ({', '.join(wrong)} differ): the "
            "folder was changed, or another version of dptext wrote it; save the encoder again"
        )


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
