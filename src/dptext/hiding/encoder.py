"""Train and apply a public map from text to a bounded vector that hides attributes (extra ``train``: torch)."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError, extra
from dptext.hiding.autoencoder import AutoEncoder, GruBody
from dptext.hiding.game import Game, NoiseInTheLoop, domain_and_channel
from dptext.hiding.inputs import (
    Labels,
    Reader,
    Rows,
    as_vectors,
    check_targets,
    check_users,
    content_of,
    split_rows,
    training_vectors,
)
from dptext.hiding.training import HidingEpoch, HidingOptions, Run, merge_options
from dptext.privacy.guarantee import NoGuarantee, Relation, Trust, Unit
from dptext.privacy.neighbours import Condition, EncoderStays
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, release_statement
from dptext.representations.additive import CappedLaplace, L2Laplace
from dptext.representations.bounds import Bound, Floats, bound_into
from dptext.representations.device import DeviceEncoder, encoder_of
from dptext.representations.encoders import Provenance, TextEncoder, check_texts
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.published import CappedDPText
from dptext.representations.randomizer import Private, Randomizer
from dptext.representations.registry import randomizer_of
from dptext.representations.trained_encoders import GruDecoder

_SMALLEST = 1e-30

TextsOrVectors = Iterable[str | None] | npt.ArrayLike


class HidingEncoder(ReprMixin):
    """Train an encoder against adversaries, with the noise of the release in the loop.

    The encoder is trained for a task head and against one adversary per attribute (Beigi et al. 2019, as a min-max
    game). They see its vectors as they will be released: bounded, and with fresh noise of the randomizer for every
    batch. The trained encoder is a fixed map and goes into `DeviceEncoder` and `PrivateEncoder` like any other.

    **Guarantee** (unit document, substitution, local): one call of ``transform`` has the randomizer's guarantee for any
    two texts, *given the trained encoder*, as ``statement_`` says. That training hides an attribute further is an
    empirical claim: test it with new attackers. **The texts, labels and attributes of ``fit`` are not protected**: the
    statement holds for other documents; with ``public=True`` the caller declares them public. Without a randomizer
    there is no guarantee at all.

    Args:
        encoder: anything that `PrivateEncoder` takes (layers are trained on top of it); None: ``fit`` gets vectors, and
            no text is ever encoded; ``"gru"`` or an `AutoEncoder`: a recurrent network that is trained to reconstruct
            its texts (unless it is fitted already), and then as a whole.
        randomizer: the noise with its budget, such as `dptext.PrivUnit`; or its name, with ``epsilon``; None: no noise
            and no guarantee.
        epsilon: of a randomizer given by name; required, without default.
        options: ``dimension``, ``epochs``, ``alpha``, ``public``, ``seed`` and all others of
            `dptext.hiding.training.HidingOptions`.

    Attributes:
        options: the options, checked.
        text_encoder_: the trained encoder, frozen; None without an encoder.
        layers_: the trained `HidingLayers`, frozen; None for ``"gru"``.
        decoder_: the `GruDecoder` of ``"gru"``, else None.
        randomizer_: the noise of the release, with the learnt budget.
        bound_: the `Bound` before the noise.
        release_: the frozen `DeviceEncoder`, to be saved for devices; only with encoder and randomizer.
        provenance_: the `Provenance` of the training.
        statement_: the statement of the *last* call of ``transform``.
        epochs_: losses and trade-offs of all epochs.
        best_: number of the epoch that was kept.

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

    text_encoder_: TextEncoder | None
    layers_: HidingLayers | None
    decoder_: GruDecoder | None
    randomizer_: Randomizer | None
    bound_: Bound
    release_: DeviceEncoder
    provenance_: Provenance
    statement_: PrivacyStatement
    epochs_: tuple[HidingEpoch, ...]
    best_: int

    def __init__(
        self,
        encoder: Any = "glove-6b-50d",
        randomizer: str | Randomizer | None = "PrivUnit",
        *,
        epsilon: float | None = None,
        **options: Any,
    ) -> None:
        if randomizer is None and epsilon is not None:
            raise ParameterError("epsilon needs a randomizer: name one, or leave epsilon out")
        self.encoder = encoder
        self.randomizer = None if randomizer is None else randomizer_of(randomizer, epsilon=epsilon)
        self.options = HidingOptions(**options)

    __signature__ = merge_options(__init__, HidingOptions)

    def fit(
        self,
        texts_or_vectors: TextsOrVectors,
        *,
        task: Labels,
        attributes: Mapping[str, Labels],
        user: Iterable[Any] | None = None,
    ) -> Self:
        """Train on data that has no protection.

        Args:
            texts_or_vectors: strings; or an (n, D) array of vectors, from the encoder if there is one.
            task: labels to keep, one per row. None, NaN and "" are missing labels: a row counts where it has a label.
            attributes: by name, labels to hide, one per row.
            user: the user of each row; rows of a user are held out together.

        Raises:
            ParameterError: another number of rows; a randomizer that no encoder can be trained through.
            DataError: a target without labels, or of one class; an attribute that determines the task and the other way
                round; a row without a user; a damaged checkpoint.
            RefusedError: the checkpoint belongs to another training.
            MissingExtraError: torch, or a package that the encoder needs, is not installed.
        """
        options = self.options
        domain, channel = domain_and_channel(
            self.randomizer, options.dimension, options.bound, learn=options.learn_epsilon
        )
        torch = extra("torch", "train", "HidingEncoder")
        encoder, auto = self._inner_encoder()
        inputs: Any = training_vectors(texts_or_vectors, encoder) if auto is None else check_texts(texts_or_vectors)  # type: ignore[arg-type]
        kept, hidden = check_targets(len(inputs), task, attributes, options.class_weight)
        users = check_users(user, len(inputs))
        run = Run(torch, options, chain([self._identity()], content_of(inputs, (kept, *hidden), users)))
        parts = split_rows(len(inputs), users, kept, hidden, options.validation_fraction, run.start)
        provenance = Provenance(
            trained_on=options.public_name,
            texts=len(inputs),
            public=options.public,
            hidden=", ".join(target.name for target in hidden),
        )
        before: tuple[HidingEpoch, ...] = ()
        if auto is not None:
            if hasattr(auto, "text_encoder_"):
                provenance = provenance.after(auto.text_encoder_.provenance)
            else:
                auto = copy.copy(auto).fit(texts_or_vectors)  # type: ignore[arg-type]
                before = auto.epochs_
                # the same texts, which count once; they are public only if both trainings declare it
                provenance = replace(provenance.after(auto.text_encoder_.provenance), texts=len(inputs))
        with run.alone():
            body = _Layers(torch, inputs, parts[0], options) if auto is None else auto.body(torch, inputs)
            noise = NoiseInTheLoop(torch, domain, channel, learn=options.learn_epsilon)
            reader = Reader(body, kept, hidden, options.alpha, parts, run.start)
            game = Game(torch, body, noise, kept, hidden, options, reader)
            after, best = run.epochs(body, game, parts[0], patience=options.patience)
        self.epochs_, self.best_, self.provenance_ = (*before, *after), best, provenance
        vars(self).pop("statement_", None)
        vars(self).pop("release_", None)
        self.bound_ = bound_into(domain, options.dimension)
        self.randomizer_ = self.randomizer
        if options.learn_epsilon and self.randomizer is not None:
            capped: Any = CappedLaplace if isinstance(self.randomizer, L2Laplace) else CappedDPText
            self.randomizer_ = capped(**self.randomizer.options(), share=noise.share)
        self.layers_ = self.decoder_ = self.text_encoder_ = None
        if isinstance(body, GruBody):
            self.text_encoder_, self.decoder_ = body.encoder(provenance), body.decoder()
        else:
            self.layers_ = body.layers()
            if encoder is not None:
                self.text_encoder_ = LayeredEncoder(encoder, self.layers_, provenance)
        if self.text_encoder_ is not None and self.randomizer_ is not None:
            self.release_ = DeviceEncoder(self.text_encoder_, self.bound_, self.randomizer_)
        return self

    def transform(self, texts_or_vectors: TextsOrVectors, *, seed: int | None = None) -> Private:
        """(n, d) float32 vectors, bounded and with fresh noise: a new release, described by ``statement_``."""
        vectors = as_vectors(texts_or_vectors)
        statement = self.statement()
        if vectors is None and hasattr(self, "release_"):
            private = self.release_.encode(texts_or_vectors, seed=seed)  # type: ignore[arg-type]
        else:
            bounded = self._bounded(texts_or_vectors if vectors is None else vectors)
            private = bounded.astype(np.float32)
            if self.randomizer_ is not None:
                bits = RandomBits()
                if seed is not None and vectors is not None:
                    # other vectors get other noise: equal noise could be subtracted
                    content = repr(vectors.shape).encode() + np.ascontiguousarray(vectors).tobytes()
                    parameters = statement.settings_digest({"input": "vectors"})
                    bits = NoiseKey(seed).stream(parameters, 0, hashlib.sha256(content).digest())
                private = self.randomizer_.channel(bounded.shape[1]).sample(bounded, bits)
        self.statement_ = statement.replace(seeded=seed is not None, release_id=new_release_id())
        return private

    def clean(self, texts_or_vectors: TextsOrVectors) -> npt.NDArray[np.float32]:
        """(n, d) float32 bounded vectors without noise. **Not private**: they must not leave the device."""
        return self._bounded(texts_or_vectors).astype(np.float32)

    def decode(self, vectors: npt.ArrayLike) -> list[str]:
        """Texts that the decoder writes from (n, d) vectors, such as private ones: post-processing."""
        self._check_fitted()
        if self.decoder_ is None:
            raise ParameterError("only a recurrent encoder has a decoder: HidingEncoder('gru', ...)")
        return self.decoder_.decode(vectors)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``release_`` as a folder that `DeviceEncoder.load` reads on a device with numpy alone."""
        self._check_fitted()
        if not hasattr(self, "release_"):
            raise ParameterError(
                "a device needs an encoder of texts and a randomizer: HidingEncoder(encoder, PrivUnit(...))"
            )
        self.release_.save(folder)

    def statement(self) -> PrivacyStatement:
        """Return the statement for one text, or vector, that goes through ``transform``."""
        self._check_fitted()
        if hasattr(self, "release_"):
            return self.release_.statement
        trained: Any = self.provenance_ if self.text_encoder_ is None else self.text_encoder_
        parameters: dict[str, Parameter] = {**trained.parameters(), **self.bound_.parameters()}
        if self.layers_ is not None:
            parameters |= {
                "encoder": LayeredEncoder.name,
                "encoder_dimension": self.layers_.dimension,
                "encoder_layers_sha256": self.layers_.sha256,
            }
        return statement_of_vectors(self.randomizer_, parameters, trained, self.options.dimension)

    def _bounded(self, texts_or_vectors: TextsOrVectors) -> Floats:
        self._check_fitted()
        vectors = as_vectors(texts_or_vectors)
        if vectors is None:
            if self.text_encoder_ is None:
                raise ParameterError("it was trained on vectors without an encoder: pass vectors")
            return self.bound_.apply(self.text_encoder_.encode(texts_or_vectors))  # type: ignore[arg-type]
        if self.layers_ is None:
            raise ParameterError("a recurrent encoder reads texts, not vectors")
        return self.bound_.apply(self.layers_.apply(vectors))

    def _check_fitted(self) -> None:
        if not hasattr(self, "bound_"):
            raise ParameterError("the encoder is not trained yet: call fit(texts, task=..., attributes=...) first")

    def _inner_encoder(self) -> tuple[TextEncoder | None, AutoEncoder | None]:
        source, options = self.encoder, self.options
        if isinstance(source, str) and source == "gru":
            checkpoint = None if options.checkpoint is None else f"{os.fspath(options.checkpoint)}.gru"
            names = ("dimension", "public", "public_name", "progress", "seed")
            source = AutoEncoder(checkpoint=checkpoint, **{name: getattr(options, name) for name in names})
        if not isinstance(source, AutoEncoder):
            return None if source is None else encoder_of(source), None
        if source.options.dimension != options.dimension:
            raise ParameterError(
                f"dimension must be {source.options.dimension}, as in the auto-encoder, got {options.dimension}"
            )
        return None, source

    def _identity(self) -> bytes:
        noise = None if self.randomizer is None else [self.randomizer.name, self.randomizer.options()]
        auto = self.encoder.identity() if isinstance(self.encoder, AutoEncoder) else None
        return json.dumps(self.options.decisive() | {"randomizer": noise, "auto": auto}, sort_keys=True).encode()

    def _repr_fields(self) -> Fields:
        yield "encoder", self.encoder
        yield "randomizer", self.randomizer
        yield "dimension", self.options.dimension


def statement_of_vectors(
    randomizer: Randomizer | None, parameters: dict[str, Parameter], trained: Any, dimension: int
) -> PrivacyStatement:
    """The statement for a vector that goes through a trained map (or its `Provenance`) and the noise, if any."""
    exposed = trained.exposed()
    condition = Condition(about="vectors", requirements=(EncoderStays(),) if exposed else ())
    if randomizer is None:
        return release_statement(
            guarantee=NoGuarantee("empirical: trained against adversaries, and released without noise"),
            unit=Unit.DOCUMENT,
            relation=Relation.SUBSTITUTION,
            condition=condition,
            trust=Trust.LOCAL,
            mechanism="HidingEncoder",
            parameters=parameters,
            assumptions=trained.assumptions(),
            exposed=("the vectors without noise", *exposed),
        )
    noise = randomizer.statement(dimension)
    return noise.replace(
        condition=condition,
        parameters={**parameters, **noise.parameters},
        assumptions=tuple(dict.fromkeys((*trained.assumptions(), *noise.assumptions))),
        exposed=(*noise.exposed, *exposed),
    )


class _Layers:
    """Layers from (n, D) vectors to d dimensions, on standardised inputs (`dptext.hiding.game.Body`)."""

    def __init__(self, torch: Any, vectors: npt.NDArray[np.float32], rows: Rows, options: HidingOptions) -> None:
        kept = vectors[rows].astype(np.float64)
        self._centre = kept.mean(axis=0)
        spread = kept.std(axis=0)
        # a coordinate that hardly varies is not blown up beyond float32
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
        linear = [module for module in self.module if hasattr(module, "weight")]
        arrays: Any = [
            (entry.weight.detach().numpy().T.astype(np.float64), entry.bias.detach().numpy().astype(np.float64))
            for entry in linear
        ]
        weights = arrays[0][0] / self._scale[:, None]
        return HidingLayers(((weights, arrays[0][1] - self._centre @ weights), *arrays[1:]))
