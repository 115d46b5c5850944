"""The options and the training loop of hiding encoders."""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.hiding.inputs import Rows, Source, TradeOff, shuffled, stream_of
from dptext.io.artifacts import read_stored
from dptext.io.atomic import hashed_file
from dptext.privacy.randomness import RandomBits
from dptext.representations.encoders import Provenance
from dptext.representations.networks import one_torch_thread
from dptext.threads import one_blas_thread
from dptext.validation import check_choice, check_float, check_int, check_path

GAMES = ("alternating", "reversal")
AIMS = ("oppose", "confuse", "deny", "decluster")
_NOT_DECISIVE = ("public", "public_name", "checkpoint", "progress")
_FORMAT = "dptext hiding training 3"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of every training.

    Attributes:
        dimension: d, of the vectors.
        epochs, batch_size, learning_rate: of Adam (Kingma and Ba 2015).
        public: True if ``fit`` declares its data public.
        public_name: name of the public data, for the statement.
        checkpoint: a file that stores the training after each epoch; an interrupted training continues from it. It is
            not private.
        progress: called with a `HidingEpoch` after each epoch.
        seed: of the training. The noise of a release is always fresh.
    """

    dimension: int = 64
    epochs: int = 10
    batch_size: int = 64
    learning_rate: float = 1e-3
    public: bool = False
    public_name: str | None = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: Callable[[Any], object] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", check_int("dimension", self.dimension, minimum=2, maximum=2**20))
        self._check_counts("epochs", "batch_size")
        check_float("learning_rate", self.learning_rate, above=0)
        if self.checkpoint is not None:
            check_path("checkpoint", self.checkpoint)
        Provenance(trained_on=self.public_name, public=self.public)

    def decisive(self) -> dict[str, Any]:
        """The options that a result depends on."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _NOT_DECISIVE}

    def _check_counts(self, *names: str) -> None:
        for name in names:
            object.__setattr__(self, name, check_int(name, getattr(self, name), minimum=1))


@dataclass(frozen=True, kw_only=True)
class AutoEncoderOptions(RunOptions):
    """Options of an auto-encoder; the others are in `RunOptions`.

    Attributes:
        words: size of the vocabulary: the most frequent words of those that occur in two texts.
        longest: number of words of a text that are read.
        units: of the state.
    """

    words: int = 5000
    longest: int = 60
    units: int = 64
    learning_rate: float = 2e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_counts("words", "longest", "units")


@dataclass(frozen=True, kw_only=True)
class HidingOptions(RunOptions):
    """Options of a training that hides attributes; the others are in `RunOptions`.

    The defaults of game, aim, steps and haste are the only ones tried that kept new attackers (logistic regression and
    a perceptron) from an attribute, with and without noise, at about the same task accuracy (``benchmarks/hiding.py``):
    adversaries have to learn faster than the encoder and take several steps per step of the encoder.

    Attributes:
        dimension: d, of the released vectors. At small budgets, choose few.
        hidden: units of a hidden layer between encoder and vector; None: a linear map.
        bound: ``"auto"`` (what the randomizer takes), ``"normalise"``, ``"clip"``, ``"cube"``.
        learn_epsilon: learn an epsilon below the cap c1, the epsilon of the randomizer (an `L2Laplace`). The
            statement has the cap (`dptext.representations.additive.CappedLaplace`). With `DPText` as published there
            is no guarantee.
        alpha: weight of the mean loss of the adversaries against the loss of the task; 0: no adversaries.
        lambda_: weight of the sum of the squared weights.
        game: ``"alternating"``: the adversaries take several steps, then the encoder takes one. ``"reversal"``: one
            step for all; the gradient of the adversaries is reversed where it enters the encoder.
        aim: ``"oppose"``: the encoder raises the loss of the adversaries. ``"confuse"``: it makes them predict the
            shares of the classes; this hides less from new attackers. ``"deny"``, ``"decluster"``: the defences of
            Coavoux et al. 2018.
        adversary_steps: of the adversaries per step of the encoder (alternating).
        adversary_units: units of each hidden layer of the task head and the adversaries.
        adversary_layers: hidden layers of an adversary.
        adversary_haste: learning rate of the adversaries, as a multiple of the encoder's.
        rebuild: mu, the weight of reconstructing the text, for an encoder with a decoder.
        class_weight: ``"balanced"`` or None.
        validation_fraction: share of the rows (or users) that is held out to choose the epoch; 0: none, and the last
            epoch is kept.
        patience: epochs without a better trade-off before training stops.
    """

    hidden: int | None = None
    bound: str = "auto"
    learn_epsilon: bool = False
    alpha: float = 1.0
    lambda_: float = 1e-5
    game: str = "alternating"
    aim: str = "oppose"
    adversary_steps: int = 3
    adversary_units: int = 200
    adversary_layers: int = 1
    adversary_haste: float = 5.0
    rebuild: float = 0.1
    class_weight: str | None = "balanced"
    validation_fraction: float = 0.1
    patience: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden is not None:
            self._check_counts("hidden")
        self._check_counts("adversary_steps", "adversary_units", "adversary_layers", "patience")
        for name in ("alpha", "lambda_", "rebuild"):
            check_float(name, getattr(self, name), minimum=0)
        check_float("adversary_haste", self.adversary_haste, above=0)
        check_float("validation_fraction", self.validation_fraction, minimum=0, below=0.9)
        check_choice("game", self.game, GAMES)
        check_choice("aim", self.aim, AIMS)
        check_choice("class_weight", self.class_weight, ("balanced", None))


def merge_options(constructor: Callable[..., None], options: type[RunOptions]) -> Signature:
    """The signature of a constructor whose ``**options`` become ``options``: for ``help`` and editors."""
    _, *parameters = signature(constructor).parameters.values()
    parameters = [entry for entry in parameters if entry.kind is not Parameter.VAR_KEYWORD]
    return Signature([*parameters, *signature(options).parameters.values()])


@dataclass(frozen=True)
class LearntBudget:
    """A learnt epsilon after an epoch: its share of the cap, and the slopes of both losses over ln epsilon."""

    share: float
    task: float
    attributes: float


@dataclass(frozen=True)
class HidingEpoch:
    """Losses and held-out trade-off of one epoch; ``phase`` is ``"rebuild"`` (auto-encoder) or ``"hide"``."""

    number: int
    of: int
    phase: str
    loss: float
    adversaries: float
    held_out: TradeOff | None
    budget: LearntBudget | None = None


class Player(Protocol):
    """A module in training, with its optimisers."""

    phase: str
    module: Any
    optimisers: dict[str, Any]

    def begin(self, bits: RandomBits) -> None:
        """Begin an epoch with this stream of noise."""

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:
        """Take one step on a batch and return the two losses of a `HidingEpoch`."""

    def look(self) -> TradeOff | None:
        """Evaluate held-out rows."""

    def budget(self) -> LearntBudget | None:
        """Return the learnt budget after the epoch, if there is one."""


class Run:
    """One training, from initial weights to the best epoch, with its checkpoint."""

    def __init__(self, torch: Any, options: RunOptions, content: Iterable[bytes]) -> None:
        self._torch, self._options = torch, options
        self.start = int.from_bytes(RandomBits(options.seed).take(8), "little") >> 1
        self._stored: dict[str, Any] | None = None
        if options.checkpoint is None:
            return
        digest = hashlib.sha256()
        for part in content:
            digest.update(part)
        self._digest = digest.hexdigest()
        if Path(options.checkpoint).exists():
            self._stored = self._load(Path(options.checkpoint))
            self.start = self._stored["start"]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Use one thread, and seed torch for the initial weights; the caller's generator is restored afterwards."""
        with self._torch.random.fork_rng(devices=[]), one_torch_thread(self._torch), one_blas_thread():
            self._seed(b"first weights")
            yield

    def epochs(
        self, source: Source, player: Player, kept: Rows, *, patience: int = 1
    ) -> tuple[tuple[HidingEpoch, ...], int]:
        """Train, and leave the player at its best epoch (without held-out rows: at the last)."""
        options, torch = self._options, self._torch
        history, best, highest, weights = self._resume(player)
        for epoch in range(len(history) + 1, options.epochs + 1):
            if history and history[-1].held_out is not None and epoch - 1 - best >= patience:
                break
            self._seed(b"sampling %d" % epoch)
            player.begin(stream_of(self.start, b"noise %d" % epoch))
            order = shuffled(kept, stream_of(self.start, b"order %d" % epoch))
            losses = np.zeros(2)
            for rows in source.batches(order, options.batch_size):
                losses += np.array(player.step(source.take(rows), torch.from_numpy(rows))) * len(rows)
            loss, adversary_loss = (losses / len(order)).tolist()
            if not (math.isfinite(loss) and math.isfinite(adversary_loss)):
                raise ParameterError(
                    f"training diverged in epoch {epoch} (the loss is not finite): lower learning_rate"
                )
            seen = player.look()
            history.append(
                HidingEpoch(epoch, options.epochs, player.phase, loss, adversary_loss, seen, player.budget())
            )
            score = -math.inf if seen is None or math.isnan(seen.score) else seen.score
            if score > highest or score == -math.inf:  # without a score, the last epoch is kept
                best, highest = epoch, score
                weights = {name: entry.clone() for name, entry in player.module.state_dict().items()}
            self._save(player, history, best, highest, weights)
            if options.progress is not None:
                options.progress(history[-1])
        player.module.load_state_dict(weights)
        return tuple(history), best

    def _seed(self, purpose: bytes) -> None:
        self._torch.manual_seed(int.from_bytes(stream_of(self.start, purpose).take(8), "little") >> 1)

    def _load(self, file: Path) -> dict[str, Any]:
        content, stored = io.BytesIO(read_stored(file)), None
        with suppress(Exception):  # torch raises many types for a file that it did not write
            stored = self._torch.load(content, map_location="cpu", weights_only=True)
        if not isinstance(stored, dict) or stored.get("format") != _FORMAT:
            raise DataError(
                f"{file.name} is damaged or not a checkpoint of this version of dptext: remove it, or choose another "
                "file"
            )
        if stored["digest"] != self._digest:
            raise RefusedError(
                f"{file.name} belongs to another training (texts, labels, options or seed differ): remove it, or "
                "choose another file"
            )
        return stored

    def _resume(self, player: Player) -> tuple[list[HidingEpoch], int, float, Any]:
        """Restore the player; return the epochs so far, the best one, its score and its weights."""
        stored = self._stored
        if stored is None:
            return [], 0, -math.inf, player.module.state_dict()
        player.module.load_state_dict(stored["weights"])
        for name, optimiser in player.optimisers.items():
            optimiser.load_state_dict(stored["optimisers"][name])
        history = [_epoch_from(entry) for entry in stored["epochs"]]
        return history, stored["best"], stored["highest"], stored["best_weights"]

    def _save(self, player: Player, history: list[HidingEpoch], best: int, highest: float, weights: Any) -> None:
        if self._options.checkpoint is None:
            return
        content = io.BytesIO()
        stored = {
            "format": _FORMAT,
            "digest": self._digest,
            "start": self.start,
            "epochs": [asdict(entry) for entry in history],
            "best": best,
            "highest": float(highest),
            "weights": player.module.state_dict(),
            "optimisers": {name: entry.state_dict() for name, entry in player.optimisers.items()},
            "best_weights": weights,
        }
        self._torch.save(stored, content)
        with hashed_file(Path(self._options.checkpoint), owner_only=True) as stream:
            stream.write(content.getvalue())


def _epoch_from(stored: dict[str, Any]) -> HidingEpoch:
    held_out, budget = stored["held_out"], stored["budget"]
    objects = {"held_out": held_out and TradeOff(**held_out), "budget": budget and LearntBudget(**budget)}
    return HidingEpoch(**stored | objects)
