"""Learn a public map from text to a bounded vector that keeps a task and hides attributes (extra ``train``: torch)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from importlib.metadata import version
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.privacy.guarantee import NoGuarantee
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.privacy.unit import Relation, Trust, Unit
from dptext.representations.bounds import Bound
from dptext.representations.domains import Domain, Floats, checked_vectors
from dptext.representations.encoders import Progress, TextEncoder, Vectors, checked_texts
from dptext.representations.hiding.body import LayersBody
from dptext.representations.hiding.checkpoint import CheckpointFile
from dptext.representations.hiding.game import Game
from dptext.representations.hiding.layers import HidingLayers, LayeredEncoder
from dptext.representations.hiding.noise import NoiseInTheLoop, checked_channel
from dptext.representations.hiding.options import HidingOptions
from dptext.representations.hiding.provenance import Provenance
from dptext.representations.hiding.targets import Target, checked_targets
from dptext.representations.hiding.training import HidingEpoch, parted, train
from dptext.representations.mlp import one_torch_thread
from dptext.representations.privunit import PrivUnit
from dptext.representations.randomizer import Channel, Private, Randomizer, checked_dimension
from dptext.representations.release import DeviceEncoder
from dptext.representations.sources import encoder_of
from dptext.text.files import extra
from dptext.threads import one_blas_thread

__all__ = ["HidingEncoder"]

_USUAL = PrivUnit(epsilon=8.0)
_KINDS = {Domain.SPHERE: "normalise", Domain.BALL: "clip", Domain.CUBE: "cube"}


class HidingEncoder:
    """Train an encoder against adversaries, with the noise of the release in the loop.

    The encoder is trained for a task head and against one adversary an attribute (Beigi et al. 2019, as a min-max
    game), all of which see its vectors only as they will be released: bounded, and with the noise of the randomizer,
    drawn anew for every batch. What comes out is a public map. It goes into `DeviceEncoder` and `PrivateEncoder` like
    any other encoder, and ``release_`` has it there already.

    **Guarantee** (unit document, substitution, local): of one call of ``transform``, that of the randomizer for any two
    texts whatever, *given the trained encoder*, as ``statement_`` says. Training adds nothing to it: that an attribute
    is hidden beyond it is an empirical claim, to be attacked by fresh attackers. **The texts, labels and attributes
    that ``fit`` gets are not protected**: with ``public=True`` (the default) this call declares them public; with
    ``public=False`` the statement says that it holds for other documents than these. Without a randomizer nothing is
    promised at all.

    Defaults were chosen on synthetic vectors (``benchmarks/hiding.py`` prints the comparison).

    Args:
        encoder: what is underneath: what `PrivateEncoder` takes, or None, where ``fit`` gets vectors and no text is
            ever to be encoded.
        randomizer: the noise and its budget; None: none, and no promise.
        dimension: d, of the vectors that are released. Few are better at small budgets.
        hidden: units of a hidden layer between encoder and vector; None: a linear map.
        bound: how vectors get a known size: ``"auto"`` (what the randomizer takes), ``"normalise"``, ``"clip"``,
            ``"cube"``.
        alpha, lambda_, game, aim, adversary_steps, adversary_units, adversary_layers, learning_rate, batch_size,
            epochs, class_weight, validation_fraction, patience: see `HidingOptions`.
        public: whether ``fit`` declares what it gets public.
        public_name: what that is, for the statement.
        checkpoint: a file in which the run is kept after every epoch, and from which it goes on if it is there; it
            is not private (`dptext.representations.hiding.checkpoint`).
        progress: called with a `HidingEpoch` after every epoch.
        seed: of training. What ``transform`` draws is fresh whatever the seed.

    Attributes:
        layers_: frozen `HidingLayers`, from vectors of the encoder to vectors before the bound.
        text_encoder_: frozen, the encoder with the layers on top; only where there is an encoder.
        bound_: frozen `Bound`.
        release_: frozen `DeviceEncoder`, to be saved for devices; only with encoder and randomizer.
        statement_: what the *last* call of ``transform`` promised.
        epochs_: what ``progress`` saw.
        best_: the number of the epoch that was kept.

    Raises:
        ParameterError: an argument out of range (from ``fit``).
        MissingExtraError: torch is not installed (from ``fit``).

    >>> bits = RandomBits(1)
    >>> points = bits.normal(400, 4)  # two coordinates tell the task, a third one the attribute
    >>> kept, hidden = (points[:, 0] + points[:, 1] > 0).tolist(), (points[:, 2] > 0).tolist()
    >>> hiding = HidingEncoder(None, PrivUnit(epsilon=8.0), dimension=2, epochs=3, seed=1)
    >>> private = hiding.fit(points, task=kept, attributes={"group": hidden}).transform(points)
    >>> private.shape, hiding.statement_.epsilon
    ((400, 2), 8.0)
    """

    layers_: HidingLayers
    text_encoder_: TextEncoder
    bound_: Bound
    release_: DeviceEncoder
    statement_: PrivacyStatement
    epochs_: tuple[HidingEpoch, ...]
    best_: int

    name = LayeredEncoder.name

    def __init__(
        self,
        encoder: Any = "glove-6b-50d",
        randomizer: Randomizer | None = _USUAL,
        *,
        dimension: int = 64,
        hidden: int | None = None,
        bound: str = "auto",
        alpha: float = 1.0,
        lambda_: float = HidingOptions.lambda_,
        game: str = HidingOptions.game,
        aim: str = HidingOptions.aim,
        adversary_steps: int = HidingOptions.adversary_steps,
        adversary_units: int = HidingOptions.adversary_units,
        adversary_layers: int = HidingOptions.adversary_layers,
        learning_rate: float = HidingOptions.learning_rate,
        batch_size: int = HidingOptions.batch_size,
        epochs: int = HidingOptions.epochs,
        class_weight: str | None = HidingOptions.class_weight,
        validation_fraction: float = HidingOptions.validation_fraction,
        patience: int = HidingOptions.patience,
        public: bool = True,
        public_name: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Callable[[HidingEpoch], object] | None = None,
        seed: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.randomizer = randomizer
        self.dimension = dimension
        self.hidden = hidden
        self.bound = bound
        self.alpha = alpha
        self.lambda_ = lambda_
        self.game = game
        self.aim = aim
        self.adversary_steps = adversary_steps
        self.adversary_units = adversary_units
        self.adversary_layers = adversary_layers
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.public = public
        self.public_name = public_name
        self.checkpoint = checkpoint
        self.progress = progress
        self.seed = seed

    def fit(
        self,
        texts_or_vectors: Iterable[str | None] | npt.ArrayLike,
        *,
        task: Sequence[Any] | npt.NDArray[Any],
        attributes: Mapping[str, Sequence[Any] | npt.NDArray[Any]],
        groups: Sequence[Any] | None = None,
    ) -> Self:
        """Train. Nothing is promised to those who are in the data of this call.

        Args:
            texts_or_vectors: strings; or an (n, D) array, of vectors that the encoder gave before or of any others.
            task: a label a row, to be kept. None, NaN and "" are missing labels: such rows count where they have one.
            attributes: name to a label a row, to be hidden.
            groups: a group a row (whose text it is); rows of a group are held out together.

        Raises:
            ParameterError: an argument out of range; other numbers of rows.
            DataError: a target without labels, or of one class; an attribute that says the same as the task.
            RefusedError: the checkpoint belongs to another training.
            MissingExtraError: torch, or what the encoder needs, is not installed.
        """
        options = HidingOptions(**{each.name: getattr(self, each.name) for each in fields(HidingOptions)})
        dimension = checked_dimension(self.dimension, least=2)
        domain, channel = self._noise(dimension)
        torch = extra("torch", "train", "HidingEncoder")
        encoder = None if self.encoder is None else encoder_of(self.encoder)
        vectors, of_texts = _vectors_of(texts_or_vectors, encoder)
        kept, hidden = checked_targets(len(vectors), task, attributes, options.class_weight)
        if groups is not None and len(groups) != len(vectors):
            raise ParameterError(f"groups has {len(groups)} entries for {len(vectors)} rows: give one a row")
        provenance = Provenance(
            trained_on=self.public_name,
            texts=len(vectors),
            public=self.public,
            hidden=", ".join(each.name for each in hidden),
        )
        start = int.from_bytes(RandomBits(self.seed).take(8), "little") >> 1
        file = None
        if self.checkpoint is not None:
            digest = _digest(self, options, vectors, (kept, *hidden), groups)
            file = CheckpointFile(self.checkpoint, digest, start)
            start = file.start
        with torch.random.fork_rng(devices=[]), one_torch_thread(torch), one_blas_thread():
            torch.manual_seed(int.from_bytes(seed_bytes(b"hiding: first weights", start)[:8], "little") >> 1)
            parts = parted(len(vectors), groups, kept, options.validation_fraction, start)
            body = LayersBody(torch, vectors, parts[0], self.hidden, dimension)
            noise = NoiseInTheLoop(torch, domain, channel, learn=False)
            game = Game(torch, body.module, None, dimension, kept, hidden, noise, options)
            self.epochs_, self.best_ = train(
                torch,
                body,
                game,
                noise,
                kept,
                hidden,
                options,
                parts=parts,
                rebuild_epochs=0,
                start=start,
                progress=self.progress,
                checkpoint=file,
            )
            self.layers_ = body.layers()
        kind = _KINDS[domain]
        self.bound_ = Bound(mean=np.zeros(dimension), kind=kind, radius=None if kind == "normalise" else 1.0)
        self.provenance_ = provenance
        if encoder is not None and (of_texts or encoder.dimension == self.layers_.encoder_dimension):
            self.text_encoder_ = LayeredEncoder(encoder, self.layers_, provenance)
            if self.randomizer is not None:
                self.release_ = DeviceEncoder(self.text_encoder_, self.bound_, self.randomizer)
        return self

    def _noise(self, dimension: int) -> tuple[Domain, Channel | None]:
        """Where vectors are bounded to, and the noise that is added there."""
        if self.randomizer is not None and not isinstance(self.randomizer, Randomizer):
            raise ParameterError(
                f"expected a randomizer such as PrivUnit(epsilon=8.0), or None, got {type(self.randomizer).__name__}"
            )
        channel = None if self.randomizer is None else self.randomizer.channel(dimension)
        checked_channel(channel, learn=False)
        if self.bound == "auto":
            return Domain.SPHERE if channel is None else channel.domain, channel
        by_kind = {kind: domain for domain, kind in _KINDS.items()}
        if not isinstance(self.bound, str) or self.bound not in by_kind:
            raise ParameterError(f"bound must be 'auto' or one of {', '.join(map(repr, by_kind))}, got {self.bound!r}")
        return by_kind[self.bound], channel

    # -- an encoder like any other --------------------------------------------------------------------------------

    def encode(self, texts: Iterable[str | None] | npt.ArrayLike, *, progress: Progress | None = None) -> Vectors:
        """(n, d) float32, before bound and noise, of texts or of (n, D) vectors. *Not private.*"""
        self._check_fitted()
        given = _as_vectors(texts)
        if given is not None:
            return self.layers_.apply(given)
        return self._texts_encoder().encode(texts, progress=progress)  # type: ignore[arg-type]

    def clean(self, texts_or_vectors: Iterable[str | None] | npt.ArrayLike) -> npt.NDArray[np.float32]:
        """(n, d) float32 bounded vectors without noise. **Not private**: they must not leave the device."""
        return self.bound_.apply(self.encode(texts_or_vectors)).astype(np.float32)

    def transform(self, texts_or_vectors: Iterable[str | None] | npt.ArrayLike, *, seed: int | None = None) -> Private:
        """(n, d) float32 vectors, bounded and with fresh noise: a new release; ``statement_`` speaks of it.

        Without a randomizer there is no noise, and the statement says that nothing is promised.

        Args:
            texts_or_vectors: as for ``fit``.
            seed: None for cryptographic randomness; an integer for tests and papers only: it voids the promise.
        """
        clean = self.bound_.apply(self.encode(texts_or_vectors))
        self.statement_ = self.statement(seeded=seed is not None)
        if self.randomizer is None:
            return clean.astype(np.float32)
        return self.randomizer.channel(clean.shape[1]).sample(clean, RandomBits(seed))

    def statement(self, *, seeded: bool = False) -> PrivacyStatement:
        """What is promised for one text, or vector, that goes through ``transform``."""
        self._check_fitted()
        if hasattr(self, "release_"):
            return self.release_.statement.replace(seeded=seeded)
        parameters = {**self.parameters(), **self.bound_.parameters()}
        if self.randomizer is None:
            return PrivacyStatement(
                guarantee=NoGuarantee("empirical: trained against adversaries, without noise"),
                unit=Unit.DOCUMENT,
                relation=Relation.SUBSTITUTION,
                neighbours="any two texts whatever",
                trust=Trust.LOCAL,
                mechanism="HidingEncoder",
                parameters=parameters,
                assumptions=self.assumptions(),
                exposed=("the vectors as they are", *self.provenance_.exposed()),
                software=f"dptext {version('dptext')}",
            )
        noise = self.randomizer.statement(self.layers_.dimension, seeded=seeded)
        return noise.replace(
            parameters={**parameters, **noise.parameters},
            assumptions=tuple(dict.fromkeys((*self.assumptions(), *noise.assumptions))),
            exposed=(*noise.exposed, *self.provenance_.exposed()),
        )

    def parameters(self) -> dict[str, Parameter]:
        """What identifies the trained encoder, for statements."""
        self._check_fitted()
        if hasattr(self, "text_encoder_"):
            return self.text_encoder_.parameters()
        return {
            "encoder": self.name,
            "encoder_dimension": self.layers_.dimension,
            "encoder_layers_sha256": self.layers_.sha256,
            **self.provenance_.parameters(),
        }

    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted about it, for statements."""
        self._check_fitted()
        return self.text_encoder_.assumptions() if hasattr(self, "text_encoder_") else self.provenance_.assumptions()

    def exposed(self) -> tuple[str, ...]:
        """What its training shows of texts that are not public, for statements."""
        self._check_fitted()
        return self.provenance_.exposed()

    def _texts_encoder(self) -> TextEncoder:
        if not hasattr(self, "text_encoder_"):
            raise ParameterError(
                "it was trained on vectors without an encoder: give vectors, or HidingEncoder(encoder)"
            )
        return self.text_encoder_

    def _check_fitted(self) -> None:
        if not hasattr(self, "layers_"):
            raise ParameterError("the encoder is not trained yet: call fit(texts, task=..., attributes=...) first")


def _as_vectors(given: Any) -> Floats | None:
    """An (n, D) array, where that is what was given."""
    if hasattr(given, "ndim") and getattr(given, "ndim", 0) == 2 and hasattr(given, "__array__"):
        return checked_vectors(np.asarray(given))
    if isinstance(given, list | tuple) and given and isinstance(given[0], list | tuple | np.ndarray):
        return checked_vectors(given)
    return None


def _vectors_of(given: Any, encoder: TextEncoder | None) -> tuple[npt.NDArray[np.float32], bool]:
    """(n, D) float32 of texts or vectors, and whether they were texts."""
    vectors: npt.NDArray[Any] | None = _as_vectors(given)
    of_texts = vectors is None
    if vectors is None:
        if encoder is None:
            raise ParameterError("without an encoder, fit takes vectors of shape (n, D): give them, or an encoder")
        vectors = encoder.encode(checked_texts(given))
    elif encoder is not None and encoder.dimension != vectors.shape[1]:
        raise ParameterError(
            f"the vectors have {vectors.shape[1]} numbers, the encoder gives {encoder.dimension}: give vectors of this "
            "encoder, or encoder=None"
        )
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        raise DataError(f"row {bad[0]}: vectors to train on must be finite numbers; leave it out or repair it")
    return vectors.astype(np.float32), of_texts


def _digest(
    hiding: HidingEncoder,
    options: HidingOptions,
    vectors: npt.NDArray[np.float32],
    targets: Sequence[Target],
    groups: Sequence[Any] | None,
) -> str:
    """Of all that a run hangs on: another digest, another run."""
    told = {
        **asdict(options),
        "dimension": hiding.dimension,
        "hidden": hiding.hidden,
        "bound": hiding.bound,
        "randomizer": None if hiding.randomizer is None else [hiding.randomizer.name, hiding.randomizer.options()],
        "seed": hiding.seed,
    }
    digest = hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode())
    digest.update(np.ascontiguousarray(vectors).tobytes())
    for target in targets:
        digest.update(f"{target.name}\0{target.classes!r}".encode("utf-8", "surrogatepass"))
        digest.update(target.codes.tobytes())
    digest.update(repr(None if groups is None else list(groups)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
