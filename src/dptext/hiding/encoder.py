"""Train and apply a public map from text to a bounded vector that hides attributes (extra ``train``: torch)."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError, extra
from dptext.hiding.autoencoder import AutoEncoder, GruBody
from dptext.hiding.game import Game, NoiseInTheLoop, domain_and_channel
from dptext.hiding.inputs import (
    Reader,
    Rows,
    as_vectors,
    check_targets,
    check_users,
    content_of,
    parted,
    texts_to_train_on,
    vectors_to_train_on,
)
from dptext.hiding.training import HidingEpoch, HidingOptions, Run, merge_options
from dptext.privacy.guarantee import NoGuarantee, Relation, Trust, Unit
from dptext.privacy.neighbours import Condition, EncoderStays
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, release_statement
from dptext.representations.additive import CappedLaplace, L2Laplace
from dptext.representations.bounds import Bound, Domain, bound_into
from dptext.representations.device import DeviceEncoder, encoder_of
from dptext.representations.encoders import Progress, Provenance, TextEncoder, Vectors, encoder_exposure
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.published import CappedDPText
from dptext.representations.randomizer import Private, Randomizer
from dptext.representations.registry import randomizer_of
from dptext.representations.trained_encoders import GruDecoder


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TrainedEncoder(ReprMixin):
    """An encoder like any other, with bound and noise of its own."""

    layers: HidingLayers | None
    text_encoder: TextEncoder | None
    decoder: GruDecoder | None
    bound: Bound
    randomizer: Randomizer | None
    provenance: Provenance
    epochs: tuple[HidingEpoch, ...]
    best: int

    name = LayeredEncoder.name

    @property
    def dimension(self) -> int:
        """d, of its vectors."""
        return self.bound.dimension

    @cached_property
    def release(self) -> DeviceEncoder | None:
        """For devices; only with an encoder of texts and a randomizer."""
        if self.text_encoder is None or self.randomizer is None:
            return None
        return DeviceEncoder(self.text_encoder, self.bound, self.randomizer)

    def encode(self, texts: Iterable[str | None] | npt.ArrayLike, *, progress: Progress | None = None) -> Vectors:
        """(n, d) float32, before bound and noise, of texts or of (n, D) vectors. *Not private.*"""
        vectors = as_vectors(texts)
        if vectors is not None:
            if self.layers is None:
                raise ParameterError("a recurrent encoder reads texts, not vectors")
            return self.layers.apply(vectors)
        if self.text_encoder is None:
            raise ParameterError(
                "it was trained on vectors without an encoder: give vectors, or HidingEncoder(encoder)"
            )
        return self.text_encoder.encode(texts, progress=progress)  # type: ignore[arg-type]

    def clean(self, texts_or_vectors: Iterable[str | None] | npt.ArrayLike) -> npt.NDArray[np.float32]:
        """(n, d) float32 bounded vectors without noise. **Not private**: they must not leave the device."""
        return self.bound.apply(self.encode(texts_or_vectors)).astype(np.float32)

    def transform(self, texts_or_vectors: Iterable[str | None] | npt.ArrayLike, *, seed: int | None = None) -> Private:
        """(n, d) float32 vectors, bounded and with fresh noise: a new release, of which `statement` speaks."""
        vectors = as_vectors(texts_or_vectors)
        if vectors is None and self.release is not None:
            return self.release.encode(texts_or_vectors, seed=seed)  # type: ignore[arg-type]
        clean = self.bound.apply(self.encode(texts_or_vectors if vectors is None else vectors))
        if self.randomizer is None:
            return clean.astype(np.float32)
        channel = self.randomizer.channel(clean.shape[1])
        if seed is None or vectors is None:
            return channel.sample(clean, RandomBits(seed))
        # equal noise on other vectors would give them away by subtraction, to those who do not know the seed, too
        parameters = self.statement().settings_digest({"input": "vectors"})
        content = hashlib.sha256(repr(vectors.shape).encode() + np.ascontiguousarray(vectors).tobytes()).digest()
        return channel.sample(clean, NoiseKey(seed).stream(parameters, 0, content))

    def decode(self, vectors: npt.ArrayLike) -> list[str]:
        """Texts that the decoder writes from (n, d) vectors, such as those of ``transform``."""
        if self.decoder is None:
            raise ParameterError("only a recurrent encoder has a decoder: HidingEncoder('gru', ...)")
        return self.decoder.decode(vectors)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``release`` as a folder that `DeviceEncoder.load` reads on a device: numpy is all it takes there."""
        if self.release is None:
            raise ParameterError(
                "a device needs an encoder of texts and a randomizer: HidingEncoder(encoder, PrivUnit(...))"
            )
        self.release.save(folder)

    def statement(self, *, seeded: bool = False) -> PrivacyStatement:
        """What is promised for one text, or vector, that goes through ``transform``."""
        if self.release is not None:
            return self.release.statement.replace(seeded=seeded)
        parameters = {**self.parameters(), **self.bound.parameters()}
        return statement_of_vectors(self.randomizer, parameters, self.provenance, self.dimension, seeded=seeded)

    def parameters(self) -> dict[str, Parameter]:
        """What identifies the trained encoder, for statements."""
        if self.text_encoder is not None:
            return self.text_encoder.parameters()
        assert self.layers is not None
        return {
            "encoder": self.name,
            "encoder_dimension": self.layers.dimension,
            "encoder_layers_sha256": self.layers.sha256,
            **self.provenance.parameters(),
        }

    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted about it, for statements."""
        return (self.provenance if self.text_encoder is None else self.text_encoder).assumptions()

    def exposed(self) -> tuple[str, ...]:
        """What its training, and that of the encoder underneath, shows of texts that are not public, for statements."""
        trained: Any = self.provenance if self.text_encoder is None else self.text_encoder
        return encoder_exposure(trained)

    def _repr_fields(self) -> Fields:
        yield "encoder", self.text_encoder
        yield "bound", self.bound.kind
        yield "randomizer", self.randomizer
        yield "dimension", self.dimension
        yield "best", self.best


def statement_of_vectors(
    randomizer: Randomizer | None,
    parameters: Mapping[str, Parameter],
    provenance: Provenance,
    dimension: int,
    *,
    seeded: bool = False,
) -> PrivacyStatement:
    """What is promised for a vector that goes through a trained map and then through the noise, if there is any."""
    trained = provenance.exposed()
    condition = Condition(about="vectors", requirements=(EncoderStays(),) if trained else ())
    if randomizer is None:
        return release_statement(
            guarantee=NoGuarantee("empirical: trained against adversaries, and released without noise"),
            unit=Unit.DOCUMENT,
            relation=Relation.SUBSTITUTION,
            condition=condition,
            trust=Trust.LOCAL,
            mechanism="HidingEncoder",
            parameters=parameters,
            assumptions=provenance.assumptions(),
            exposed=("the vectors without noise", *trained),
        )
    noise = randomizer.statement(dimension, seeded=seeded)
    return noise.replace(
        condition=condition,
        parameters={**parameters, **noise.parameters},
        assumptions=tuple(dict.fromkeys((*provenance.assumptions(), *noise.assumptions))),
        exposed=(*noise.exposed, *trained),
    )


_SMALLEST = 1e-30
_FITTED = ("layers", "text_encoder", "decoder", "randomizer", "bound", "release", "provenance", "epochs", "best")


class HidingEncoder(ReprMixin):
    """Train an encoder against adversaries, with the noise of the release in the loop.

    The encoder is trained for a task head and against one adversary an attribute (Beigi et al. 2019, as a min-max
    game), all of which see its vectors only as they will be released: bounded, and with the noise of the randomizer,
    drawn anew for every batch. The result is a fixed map, ``trained_``, which later calls of ``fit`` do not change. It
    goes into `DeviceEncoder` and `PrivateEncoder` like any other encoder, and ``release_`` has it there already.

    **Guarantee** (unit document, substitution, local): of one call of ``transform``, that of the randomizer for any two
    texts, *given the trained encoder*, as ``statement_`` says. Training adds nothing to it: that an attribute is hidden
    beyond it is an empirical claim, to be attacked by fresh attackers. **The texts, labels and attributes that ``fit``
    gets are not protected**: the statement says that it holds for other documents than these; with ``public=True`` the
    caller declares them public. Without a randomizer nothing is promised at all.

    Args:
        encoder: what is underneath: what `PrivateEncoder` takes (layers are trained on top of it); None, where ``fit``
            gets vectors and no text is ever to be encoded; ``"gru"`` or an `AutoEncoder`: a recurrent network that is
            trained to write its text again, and then as a whole (an `AutoEncoder` that was fitted is not fitted again).
        randomizer: the noise with its budget, such as `dptext.PrivUnit`; or its name, with ``epsilon``; None: none, and
            no promise.
        epsilon: of a randomizer that is given by name. There is no usual one.
        options: ``dimension``, ``epochs``, ``alpha``, ``public``, ``seed`` and all others of
            `dptext.hiding.training.HidingOptions`.

    Attributes:
        options: as they were checked.
        trained_: frozen `TrainedEncoder`: all that was learnt. Its parts have names here, too:
        layers_: frozen `HidingLayers`, from vectors of the encoder to vectors before the bound; not of ``"gru"``.
        text_encoder_: frozen, the encoder with the layers on top, or the recurrent one; only where there is an encoder.
        decoder_: frozen `GruDecoder`; only of ``"gru"``.
        randomizer_: the noise of the release, with the budget that was learnt.
        bound_: frozen `Bound`.
        release_: frozen `DeviceEncoder`, to be saved for devices; only with encoder and randomizer.
        provenance_: frozen `Provenance`: what it was trained on.
        statement_: what the *last* call of ``transform`` promised.
        epochs_: what ``progress`` saw.
        best_: the number of the epoch that was kept.

    Raises:
        ParameterError: an argument out of range; no epsilon.
        MissingExtraError: torch is not installed (from ``fit``).

    >>> from dptext.privacy.randomness import RandomBits
    >>> bits = RandomBits(1)
    >>> points = bits.normal(400, 4)  # two coordinates tell the task, a third one the attribute
    >>> kept, hidden = (points[:, 0] + points[:, 1] > 0).tolist(), (points[:, 2] > 0).tolist()
    >>> hiding = HidingEncoder(None, epsilon=8.0, dimension=2, epochs=3, seed=1)
    >>> private = hiding.fit(points, task=kept, attributes={"group": hidden}).transform(points)
    >>> private.shape, hiding.statement_.epsilon
    ((400, 2), 8.0)
    """

    trained_: TrainedEncoder
    layers_: HidingLayers
    text_encoder_: TextEncoder
    decoder_: GruDecoder
    bound_: Bound
    randomizer_: Randomizer | None
    release_: DeviceEncoder
    provenance_: Provenance
    statement_: PrivacyStatement
    epochs_: tuple[HidingEpoch, ...]
    best_: int

    name = LayeredEncoder.name

    def __init__(
        self,
        encoder: Any = "glove-6b-50d",
        randomizer: str | Randomizer | None = "PrivUnit",
        *,
        epsilon: float | None = None,
        **options: Any,
    ) -> None:
        if randomizer is None and epsilon is not None:
            raise ParameterError("no randomizer has no epsilon: name one, or leave epsilon out")
        self.encoder = encoder
        self.randomizer = None if randomizer is None else randomizer_of(randomizer, epsilon=epsilon)
        self.options = HidingOptions(**options)

    __signature__ = merge_options(__init__, HidingOptions)

    @property
    def dimension(self) -> int:
        """d, of the vectors that are released."""
        return self.options.dimension

    def fit(
        self,
        texts_or_vectors: Iterable[str | None] | npt.ArrayLike,
        *,
        task: Sequence[Any] | npt.NDArray[Any],
        attributes: Mapping[str, Sequence[Any] | npt.NDArray[Any]],
        user: Iterable[Any] | None = None,
    ) -> Self:
        """Train. Nothing is promised to those who are in the data of this call.

        Args:
            texts_or_vectors: strings; or an (n, D) array, of vectors that the encoder gave before or of any others.
            task: a label a row, to be kept. None, NaN and "" are missing labels: such rows count where they have one.
            attributes: name to a label a row, to be hidden.
            user: whose text each row is; rows of a person are held out together.

        Raises:
            ParameterError: another number of rows; a randomizer through which nothing can be learnt.
            DataError: a target without labels, or of one class; an attribute that says the same as the task; a row
                without a person; a file that is no checkpoint.
            RefusedError: the checkpoint belongs to another training.
            MissingExtraError: torch, or what the encoder needs, is not installed.
        """
        options = self.options
        domain, channel = domain_and_channel(
            self.randomizer, options.dimension, options.bound, learn=options.learn_epsilon
        )
        torch = extra("torch", "train", "HidingEncoder")
        encoder, auto = self._underneath()
        inputs: Any = (
            vectors_to_train_on(texts_or_vectors, encoder) if auto is None else texts_to_train_on(texts_or_vectors)
        )
        kept, hidden = check_targets(len(inputs), task, attributes, options.class_weight)
        owners = check_users(user, len(inputs))
        run = Run(torch, options, chain([self._identity()], content_of(inputs, (kept, *hidden), owners)))
        parts = parted(len(inputs), owners, kept, hidden, options.validation_fraction, run.start)
        provenance = Provenance(
            trained_on=options.public_name,
            texts=len(inputs),
            public=options.public,
            hidden=", ".join(entry.name for entry in hidden),
        )
        before: tuple[HidingEpoch, ...] = ()
        if auto is not None:
            if hasattr(auto, "text_encoder_"):
                provenance = provenance.after(auto.text_encoder_.provenance)
            else:
                auto = copy.copy(auto).fit(inputs)
                before = auto.epochs_
                # one training on the same texts: who declares them public has to do it at both places
                provenance = replace(provenance.after(auto.text_encoder_.provenance), texts=len(inputs))
        with run.alone():
            body = _Layers(torch, inputs, parts[0], options) if auto is None else auto.body(torch, inputs)
            noise = NoiseInTheLoop(torch, domain, channel, learn=options.learn_epsilon)
            reader = Reader(body, kept, hidden, options.alpha, parts, run.start)
            game = Game(torch, body, noise, kept, hidden, options, reader)
            after, best = run.epochs(body, game, parts[0], patience=options.patience)
        self._take(self._frozen(body, encoder, domain, noise.share, provenance, (*before, *after), best))
        return self

    def _underneath(self) -> tuple[TextEncoder | None, AutoEncoder | None]:
        source, options = self.encoder, self.options
        if isinstance(source, str) and source == "gru":
            text_checkpoint = None if options.checkpoint is None else f"{os.fspath(options.checkpoint)}.gru"
            names = ("dimension", "public", "public_name", "progress", "seed")
            source = AutoEncoder(checkpoint=text_checkpoint, **{name: getattr(options, name) for name in names})
        if not isinstance(source, AutoEncoder):
            return None if source is None else encoder_of(source), None
        if source.options.dimension != options.dimension:
            raise ParameterError(
                f"the auto-encoder has vectors of {source.options.dimension} numbers, dimension is "
                f"{options.dimension}: give both alike"
            )
        return None, source

    def _identity(self) -> bytes:
        noise = None if self.randomizer is None else [self.randomizer.name, self.randomizer.options()]
        auto = self.encoder.identity() if isinstance(self.encoder, AutoEncoder) else None
        known = self.options.decisive() | {"randomizer": noise, "auto": auto}
        return json.dumps(known, sort_keys=True, default=str).encode()

    def _frozen(
        self,
        body: _Layers | GruBody,
        encoder: TextEncoder | None,
        domain: Domain,
        share: float,
        provenance: Provenance,
        epochs: tuple[HidingEpoch, ...],
        best: int,
    ) -> TrainedEncoder:
        randomizer = self.randomizer
        if self.options.learn_epsilon and randomizer is not None:
            capped: Any = CappedLaplace if isinstance(randomizer, L2Laplace) else CappedDPText
            randomizer = capped(**randomizer.options(), share=share)
        layers, decoder = None, None
        result: TextEncoder | None = None
        if isinstance(body, GruBody):
            result, decoder = body.encoder(provenance), body.decoder()
        else:
            layers = body.layers()
            result = None if encoder is None else LayeredEncoder(encoder, layers, provenance)
        return TrainedEncoder(
            layers=layers,
            text_encoder=result,
            decoder=decoder,
            bound=bound_into(domain, self.dimension),
            randomizer=randomizer,
            provenance=provenance,
            epochs=epochs,
            best=best,
        )

    def _take(self, trained: TrainedEncoder) -> None:
        vars(self).pop("statement_", None)
        self.trained_ = trained
        for name in _FITTED:
            value = getattr(trained, name)
            if value is not None or name == "randomizer":
                setattr(self, f"{name}_", value)
            else:
                vars(self).pop(f"{name}_", None)

    # -- what is trained, by the names of `TrainedEncoder` ----------------------------------------------------------

    def transform(self, texts_or_vectors: Iterable[str | None] | npt.ArrayLike, *, seed: int | None = None) -> Private:
        """See `TrainedEncoder.transform`; ``statement_`` speaks of this release from now on."""
        trained = self._fitted()
        private = trained.transform(texts_or_vectors, seed=seed)
        self.statement_ = trained.statement(seeded=seed is not None).replace(release_id=new_release_id())
        return private

    def encode(self, texts: Iterable[str | None] | npt.ArrayLike, *, progress: Progress | None = None) -> Vectors:
        """See `TrainedEncoder.encode`. *Not private.*"""
        return self._fitted().encode(texts, progress=progress)

    def clean(self, texts_or_vectors: Iterable[str | None] | npt.ArrayLike) -> npt.NDArray[np.float32]:
        """See `TrainedEncoder.clean`. **Not private.**"""
        return self._fitted().clean(texts_or_vectors)

    def decode(self, vectors: npt.ArrayLike) -> list[str]:
        """See `TrainedEncoder.decode`."""
        return self._fitted().decode(vectors)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """See `TrainedEncoder.save`."""
        self._fitted().save(folder)

    def statement(self, *, seeded: bool = False) -> PrivacyStatement:
        """See `TrainedEncoder.statement`."""
        return self._fitted().statement(seeded=seeded)

    def parameters(self) -> dict[str, Parameter]:
        """See `TrainedEncoder.parameters`."""
        return self._fitted().parameters()

    def assumptions(self) -> tuple[str, ...]:
        """See `TrainedEncoder.assumptions`."""
        return self._fitted().assumptions()

    def exposed(self) -> tuple[str, ...]:
        """See `TrainedEncoder.exposed`."""
        return self._fitted().exposed()

    def _fitted(self) -> TrainedEncoder:
        if not hasattr(self, "trained_"):
            raise ParameterError("the encoder is not trained yet: call fit(texts, task=..., attributes=...) first")
        return self.trained_

    def _repr_fields(self) -> Fields:
        yield "encoder", self.encoder
        yield "randomizer", self.randomizer
        yield "dimension", self.dimension


class _Layers:
    """Layers from (n, D) vectors to d dimensions, on standardised inputs; see `dptext.hiding.game.Body`."""

    def __init__(self, torch: Any, vectors: npt.NDArray[np.float32], rows: Rows, options: HidingOptions) -> None:
        seen = vectors[rows].astype(np.float64)
        self._centre = seen.mean(axis=0)
        spread = seen.std(axis=0)
        # what hardly varies is not blown up, and nothing beyond what float32 holds
        self._scale = np.maximum(spread, max(1e-3 * (spread.max() or 1.0), _SMALLEST))
        self._inputs = torch.from_numpy(((vectors - self._centre) / self._scale).astype(np.float32))
        width = vectors.shape[1]
        modules: list[Any] = []
        if options.hidden is not None:
            modules += [torch.nn.Linear(width, options.hidden), torch.nn.ReLU()]
            width = options.hidden
        self.module = torch.nn.Sequential(*modules, torch.nn.Linear(width, options.dimension))
        self._torch = torch

    def batches(self, order: Rows, size: int) -> Iterator[Rows]:
        for start in range(0, len(order), size):
            yield order[start : start + size]

    def take(self, rows: Rows) -> Any:
        return self._inputs[self._torch.from_numpy(rows)]

    def rebuilt(self, batch: Any, z: Any) -> Any:  # noqa: ARG002  there is no decoder
        return 0.0

    def layers(self) -> HidingLayers:
        linear = [entry for entry in self.module if hasattr(entry, "weight")]
        arrays: Any = [
            (entry.weight.detach().numpy().T.astype(np.float64), entry.bias.detach().numpy().astype(np.float64))
            for entry in linear
        ]
        weights = arrays[0][0] / self._scale[:, None]
        return HidingLayers(((weights, arrays[0][1] - self._centre @ weights), *arrays[1:]))
