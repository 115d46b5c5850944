"""Train and apply a public map from text to a bounded vector that hides attributes (extra ``train``: torch)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter as Argument
from inspect import Signature, signature
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError, extra
from dptext.hiding.inputs import Labels, as_vectors, check_targets, check_users, split_rows, training_vectors
from dptext.hiding.training import Game, HidingOptions, train_layers, training_channel
from dptext.privacy.guarantee import NoGuarantee, Relation, Trust, Unit
from dptext.privacy.neighbours import Condition, EncoderStays
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, release_statement
from dptext.representations.bounds import Domain, Floats, bound_into
from dptext.representations.device import DeviceEncoder, encoder_of
from dptext.representations.encoders import Provenance
from dptext.representations.layers import LayeredEncoder
from dptext.representations.randomizer import Private, Randomizer
from dptext.representations.registry import randomizer_of

TextsOrVectors = Iterable[str | None] | npt.ArrayLike


def _merged_signature(constructor: Callable[..., None]) -> Signature:
    """Return the signature of a constructor whose ``**options`` become `HidingOptions`: for ``help`` and editors."""
    _, *parameters = signature(constructor).parameters.values()
    parameters = [entry for entry in parameters if entry.kind is not Argument.VAR_KEYWORD]
    return Signature([*parameters, *signature(HidingOptions).parameters.values()])


class HidingEncoder(ReprMixin):
    """Train an encoder against adversaries, with the noise of the release in the loop.

    Layers on top of an encoder are trained for a task head and against one adversary per attribute (Beigi et al. 2019,
    as a min-max game). They see its vectors as they will be released: bounded, and with fresh noise of the randomizer
    for every batch. The trained encoder is a fixed map and goes into `DeviceEncoder` and `PrivateEncoder` like any
    other.

    **Guarantee** (unit document, substitution, local): one call of ``transform`` has the randomizer's guarantee for any
    two texts, *given the trained encoder*, as ``statement_`` says. That training hides an attribute further is an
    empirical claim: test it with new attackers. **The texts, labels and attributes of ``fit`` are not protected**: the
    statement holds for other documents; with ``public=True`` the caller declares them public. Without a randomizer
    there is no guarantee at all.

    Args:
        encoder: anything that `PrivateEncoder` accepts; None: ``fit`` expects vectors instead of texts.
        randomizer: the noise with its budget, such as `dptext.PrivUnit`; or its name, with ``epsilon``; None: no noise
            and no guarantee.
        epsilon: budget of a randomizer given by name; required, without default.
        options: ``dimension``, ``epochs``, ``alpha``, ``public``, ``seed`` and all others of
            `dptext.hiding.training.HidingOptions`.

    Attributes:
        options: the validated options.
        text_encoder_: the trained encoder, frozen; None without an encoder.
        layers_: the trained `HidingLayers`, frozen.
        randomizer_: the noise of the release.
        bound_: the `Bound` before the noise.
        release_: the frozen `DeviceEncoder`, to be saved for devices; only with encoder and randomizer.
        provenance_: the `Provenance` of the training.
        statement_: the statement of the *last* call of ``transform``.
        epochs_: losses and trade-offs of all epochs.
        best_: number of the epoch that was kept.

    Raises:
        ParameterError: an argument is out of range; epsilon is missing.
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

    game_type: ClassVar[type[Game]] = Game

    def __init__(
        self,
        encoder: Any = "glove-6b-50d",
        randomizer: str | Randomizer | None = "PrivUnit",
        *,
        epsilon: float | None = None,
        **options: Any,
    ) -> None:
        if randomizer is None and epsilon is not None:
            raise ParameterError("epsilon needs a randomizer: pass one, or omit epsilon")
        self.encoder = encoder
        self.randomizer = None if randomizer is None else randomizer_of(randomizer, epsilon=epsilon)
        self.options = HidingOptions(**options)

    __signature__ = _merged_signature(__init__)

    @property
    def epsilon(self) -> float | None:
        """The budget of the randomizer; None without one."""
        return None if self.randomizer is None else self.randomizer.epsilon

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
            task: labels to keep, one per row. None, NaN and "" are missing: a row is used where it has a label.
            attributes: labels to hide, one per row, by name of the attribute.
            user: the user of each row; rows of a user are held out together.

        Raises:
            ParameterError: another number of rows; a randomizer that does not allow training an encoder.
            DataError: a target of one class, or without labels; a row without a user.
            MissingExtraError: torch, or a package that the encoder needs, is not installed.
        """
        options, randomizer = self.options, self.randomizer
        channel = training_channel(randomizer, options.dimension)
        torch = extra("torch", "train", "HidingEncoder")
        encoder = None if self.encoder is None else encoder_of(self.encoder)
        vectors = training_vectors(texts_or_vectors, encoder)
        targets = check_targets(len(vectors), task, attributes)
        users = check_users(user, len(vectors))
        start = int.from_bytes(RandomBits(options.seed).take(8), "little") >> 1
        parts = split_rows(len(vectors), users, targets[0], options.validation_fraction, start)
        self.layers_, self.best_, self.epochs_ = train_layers(
            torch, vectors, targets, channel, parts, options, start, game_type=self.game_type
        )
        self.provenance_ = Provenance(
            trained_on=options.public_name,
            texts=len(vectors),
            public=options.public,
            hidden=", ".join(target.name for target in targets[1:]),
        )
        vars(self).pop("statement_", None)
        vars(self).pop("release_", None)
        self.bound_ = bound_into(Domain.SPHERE if channel is None else channel.domain, options.dimension)
        self.randomizer_ = randomizer
        self.text_encoder_ = None if encoder is None else LayeredEncoder(encoder, self.layers_, self.provenance_)
        if self.text_encoder_ is not None and randomizer is not None:
            self.release_ = DeviceEncoder(self.text_encoder_, self.bound_, randomizer)
        return self

    def transform(self, texts_or_vectors: TextsOrVectors, *, seed: int | None = None) -> Private:
        """Return (n, d) float32 vectors, bounded and with fresh noise: a new release, stated in ``statement_``."""
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
        """Return (n, d) float32 bounded vectors without noise. **Not private**: they must not leave the device."""
        return self._bounded(texts_or_vectors).astype(np.float32)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``release_`` as a folder that `DeviceEncoder.load` reads on a device with numpy alone."""
        self._check_fitted()
        if not hasattr(self, "release_"):
            raise ParameterError(
                "a device requires an encoder of texts and a randomizer: HidingEncoder(encoder, PrivUnit(...))"
            )
        self.release_.save(folder)

    def statement(self) -> PrivacyStatement:
        """Return the statement for one text, or vector, that goes through ``transform``."""
        self._check_fitted()
        if hasattr(self, "release_"):
            return self.release_.statement
        trained: Any = self.provenance_ if self.text_encoder_ is None else self.text_encoder_
        parameters: dict[str, Parameter] = {
            **trained.parameters(),
            **self.bound_.parameters(),
            "encoder": LayeredEncoder.name,
            "encoder_dimension": self.layers_.dimension,
            "encoder_layers_sha256": self.layers_.sha256,
        }
        return statement_of_vectors(self.randomizer_, parameters, trained, self.options.dimension)

    def _bounded(self, texts_or_vectors: TextsOrVectors) -> Floats:
        self._check_fitted()
        vectors = as_vectors(texts_or_vectors)
        if vectors is not None:
            return self.bound_.apply(self.layers_.apply(vectors))
        if self.text_encoder_ is None:
            raise ParameterError("this encoder was trained on vectors: pass vectors")
        return self.bound_.apply(self.text_encoder_.encode(texts_or_vectors))  # type: ignore[arg-type]

    def _check_fitted(self) -> None:
        if not hasattr(self, "bound_"):
            raise ParameterError("the encoder is not trained yet: call fit(texts, task=..., attributes=...) first")

    def _repr_fields(self) -> Fields:
        yield "encoder", self.encoder
        yield "randomizer", self.randomizer
        yield "dimension", self.options.dimension


def statement_of_vectors(
    randomizer: Randomizer | None, parameters: dict[str, Parameter], trained: Any, dimension: int
) -> PrivacyStatement:
    """Return the statement for a vector that goes through a trained map (or its `Provenance`) and any noise."""
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
