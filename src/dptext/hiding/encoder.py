"""Learn a public map from text to a bounded vector that keeps a task and hides attributes (extra ``train``: torch)."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.files.formats import extra
from dptext.hiding.autoencoder import AutoEncoder
from dptext.hiding.body import LayersBody
from dptext.hiding.checkpoint import CheckpointFile
from dptext.hiding.game import Game
from dptext.hiding.gru_body import GruBody
from dptext.hiding.held_out import Reader, parted
from dptext.hiding.inputs import checked_groups, run_digest, texts_to_train_on, vectors_to_train_on
from dptext.hiding.noise import KINDS, NoiseInTheLoop, domain_and_channel
from dptext.hiding.options import HidingOptions
from dptext.hiding.targets import checked_targets
from dptext.hiding.trained import TrainedEncoder
from dptext.hiding.training import HidingEpoch, first_weights, run_epochs
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import L2Laplace
from dptext.representations.bounds import Bound
from dptext.representations.capped import CappedLaplace
from dptext.representations.domains import Domain
from dptext.representations.encoders import TextEncoder
from dptext.representations.layers import LayeredEncoder
from dptext.representations.mlp import one_torch_thread
from dptext.representations.privunit import PrivUnit
from dptext.representations.provenance import Provenance
from dptext.representations.randomizer import Randomizer, checked_dimension
from dptext.representations.release import DeviceEncoder
from dptext.representations.sources import encoder_of
from dptext.threads import one_blas_thread

__all__ = ["HidingEncoder"]

_USUAL = PrivUnit(epsilon=8.0)


class HidingEncoder(TrainedEncoder):
    """Train an encoder against adversaries, with the noise of the release in the loop.

    The encoder is trained for a task head and against one adversary an attribute (Beigi et al. 2019, as a min-max
    game), all of which see its vectors only as they will be released: bounded, and with the noise of the randomizer,
    drawn anew for every batch. What comes out is a public map. It goes into `DeviceEncoder` and `PrivateEncoder` like
    any other encoder, and ``release_`` has it there already.

    **Guarantee** (unit document, substitution, local): of one call of ``transform``, that of the randomizer for any two
    texts whatever, *given the trained encoder*, as ``statement_`` says. Training adds nothing to it: that an attribute
    is hidden beyond it is an empirical claim, to be attacked by fresh attackers. **The texts, labels and attributes
    that ``fit`` gets are not protected**: the statement says that it holds for other documents than these; with
    ``public=True`` the caller declares them public. Without a randomizer nothing is promised at all.

    Args:
        encoder: what is underneath: what `PrivateEncoder` takes (layers are trained on top of it); None, where ``fit``
            gets vectors and no text is ever to be encoded; ``"gru"`` or an `AutoEncoder`: a recurrent network that is
            trained to write its text again, and then as a whole (an `AutoEncoder` that was fitted is not fitted again).
        randomizer: the noise and its budget; None: none, and no promise.
        dimension: d, of the vectors that are released. Few are better at small budgets.
        hidden: units of a hidden layer between encoder and vector; None: a linear map.
        bound: how vectors get a known size: ``"auto"`` (what the randomizer takes), ``"normalise"``, ``"clip"``,
            ``"cube"``.
        learn_epsilon: learn the budget below that of the randomizer, an `L2Laplace`, which is then the cap c1; the
            statement promises the cap (`dptext.representations.capped`).
        alpha, lambda_, game, aim, adversary_steps, adversary_units, adversary_layers, adversary_haste, rebuild,
            learning_rate, batch_size, epochs, class_weight, validation_fraction, patience: see `HidingOptions`.
        public: whether ``fit`` declares what it gets public.
        public_name: what that is, for the statement.
        checkpoint: a file in which the run is kept after every epoch, and from which it goes on if it is there; it
            is not private (`dptext.hiding.checkpoint`).
        progress: called with a `HidingEpoch` after every epoch.
        seed: of training. What ``transform`` draws is fresh whatever the seed.

    Attributes:
        layers_: frozen `HidingLayers`, from vectors of the encoder to vectors before the bound; not of ``"gru"``.
        text_encoder_: frozen, the encoder with the layers on top, or the recurrent one; only where there is an encoder.
        decoder_: frozen `GruDecoder`; only of ``"gru"``.
        randomizer_: the noise of the release, with the budget that was learnt.
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

    epochs_: tuple[HidingEpoch, ...]
    best_: int

    def __init__(
        self,
        encoder: Any = "glove-6b-50d",
        randomizer: Randomizer | None = _USUAL,
        *,
        dimension: int = 64,
        hidden: int | None = None,
        bound: str = "auto",
        learn_epsilon: bool = False,
        alpha: float = 1.0,
        lambda_: float = HidingOptions.lambda_,
        game: str = HidingOptions.game,
        aim: str = HidingOptions.aim,
        adversary_steps: int = HidingOptions.adversary_steps,
        adversary_units: int = HidingOptions.adversary_units,
        adversary_layers: int = HidingOptions.adversary_layers,
        adversary_haste: float = HidingOptions.adversary_haste,
        rebuild: float = HidingOptions.rebuild,
        learning_rate: float = HidingOptions.learning_rate,
        batch_size: int = HidingOptions.batch_size,
        epochs: int = HidingOptions.epochs,
        class_weight: str | None = HidingOptions.class_weight,
        validation_fraction: float = HidingOptions.validation_fraction,
        patience: int = HidingOptions.patience,
        public: bool = False,
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
        self.learn_epsilon = learn_epsilon
        self.alpha = alpha
        self.lambda_ = lambda_
        self.game = game
        self.aim = aim
        self.adversary_steps = adversary_steps
        self.adversary_units = adversary_units
        self.adversary_layers = adversary_layers
        self.adversary_haste = adversary_haste
        self.rebuild = rebuild
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
        groups: Iterable[Any] | None = None,
    ) -> Self:
        """Train. Nothing is promised to those who are in the data of this call.

        Args:
            texts_or_vectors: strings; or an (n, D) array, of vectors that the encoder gave before or of any others.
            task: a label a row, to be kept. None, NaN and "" are missing labels: such rows count where they have one.
            attributes: name to a label a row, to be hidden.
            groups: a group a row (whose text it is); rows of a group are held out together.

        Raises:
            ParameterError: an argument out of range; other numbers of rows.
            DataError: a target without labels, or of one class; an attribute that says the same as the task; a group
                that is missing.
            RefusedError: the checkpoint belongs to another training.
            MissingExtraError: torch, or what the encoder needs, is not installed.
        """
        options = HidingOptions(**{each.name: getattr(self, each.name) for each in fields(HidingOptions)})
        dimension = checked_dimension(self.dimension, least=2)
        domain, channel = domain_and_channel(self.randomizer, dimension, self.bound, learn=bool(self.learn_epsilon))
        torch = extra("torch", "train", "HidingEncoder")
        encoder, auto = self._underneath(dimension)
        inputs: Any = (
            vectors_to_train_on(texts_or_vectors, encoder) if auto is None else texts_to_train_on(texts_or_vectors)
        )
        kept, hidden = checked_targets(len(inputs), task, attributes, options.class_weight)
        groups = checked_groups(groups, len(inputs))
        start = int.from_bytes(RandomBits(self.seed).take(8), "little") >> 1
        file = None
        if self.checkpoint is not None:
            told = asdict(options) | self._told(dimension)
            file = CheckpointFile(self.checkpoint, run_digest(told, inputs, (kept, *hidden), groups), start)
            start = file.start
        parts = parted(len(inputs), groups, kept, hidden, options.validation_fraction, start)
        provenance = Provenance(
            trained_on=self.public_name,
            texts=len(inputs),
            public=self.public,
            hidden=", ".join(each.name for each in hidden),
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
        with torch.random.fork_rng(devices=[]), one_torch_thread(torch), one_blas_thread():
            first_weights(torch, start)
            body: LayersBody | GruBody
            if auto is None:
                body = LayersBody(torch, inputs, parts[0], self.hidden, dimension)
            else:
                body = auto.body(torch, inputs)
            noise = NoiseInTheLoop(torch, domain, channel, learn=self.learn_epsilon)
            reader = Reader(torch, body, body.module, noise, kept, hidden, options.alpha, parts, start)
            rebuilt = body.rebuilt if isinstance(body, GruBody) else None
            game = Game(torch, body.module, reader, rebuilt, dimension, kept, hidden, noise, options)
            after, self.best_ = run_epochs(
                torch,
                body,
                game,
                parts[0],
                epochs=options.epochs,
                batch_size=options.batch_size,
                patience=options.patience,
                start=start,
                progress=self.progress,
                checkpoint=file,
            )
        self.epochs_ = (*before, *after)
        self._freeze(body, encoder, domain, noise.share, provenance)
        return self

    def _underneath(self, dimension: int) -> tuple[TextEncoder | None, AutoEncoder | None]:
        """The encoder that layers are trained on, or the auto-encoder that is trained further."""
        source = self.encoder
        if isinstance(source, str) and source == "gru":
            beside = None if self.checkpoint is None else f"{os.fspath(self.checkpoint)}.gru"
            names = ("public", "public_name", "progress", "seed")
            given = {name: getattr(self, name) for name in names}
            source = AutoEncoder(dimension=dimension, checkpoint=beside, **given)
        if not isinstance(source, AutoEncoder):
            return None if source is None else encoder_of(source), None
        if source.dimension != dimension:
            raise ParameterError(
                f"the auto-encoder has vectors of {source.dimension} numbers, dimension is {dimension}: give both alike"
            )
        return None, source

    def _told(self, dimension: int) -> dict[str, Any]:
        """What a run hangs on beside options and data."""
        noise = None if self.randomizer is None else [self.randomizer.name, self.randomizer.options()]
        auto = self.encoder.described() if isinstance(self.encoder, AutoEncoder) else None
        told = {name: getattr(self, name) for name in ("hidden", "bound", "learn_epsilon", "seed")}
        return told | {"dimension": dimension, "randomizer": noise, "auto": auto}

    def _freeze(
        self,
        body: LayersBody | GruBody,
        encoder: TextEncoder | None,
        domain: Domain,
        share: float,
        provenance: Provenance,
    ) -> None:
        """Keep what was learnt, and nothing of a training before."""
        for name in ("layers_", "text_encoder_", "decoder_", "release_", "statement_"):
            vars(self).pop(name, None)
        self.provenance_ = provenance
        self.randomizer_ = self.randomizer
        if self.learn_epsilon and isinstance(self.randomizer, L2Laplace):
            self.randomizer_ = CappedLaplace(**self.randomizer.options(), share=share)  # type: ignore[arg-type]
        if isinstance(body, GruBody):
            self.text_encoder_, self.decoder_ = body.encoder(provenance), body.decoder()
        else:
            self.layers_ = body.layers()
            if encoder is not None:
                self.text_encoder_ = LayeredEncoder(encoder, self.layers_, provenance)
        kind = KINDS[domain]
        radius = None if kind == "normalise" else 1.0
        self.bound_ = Bound(mean=np.zeros(int(self.dimension)), kind=kind, radius=radius)
        if self.randomizer_ is not None and hasattr(self, "text_encoder_"):
            self.release_ = DeviceEncoder(self.text_encoder_, self.bound_, self.randomizer_)
