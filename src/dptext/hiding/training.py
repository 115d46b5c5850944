"""The options and the training loop of hiding encoders."""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.hiding.inputs import Rows, Source, TradeOff, shuffled, stream_of
from dptext.io.atomic import hashed_file
from dptext.privacy.randomness import RandomBits
from dptext.representations.encoders import Provenance
from dptext.representations.networks import one_torch_thread
from dptext.representations.trained_encoders import POOLINGS
from dptext.threads import one_blas_thread
from dptext.validation import check_choice, check_float, check_int, check_path
from dptext.vectors.word_vectors import WordVectors

GAMES = ("alternating", "reversal")
"""``alternating``: the adversaries move first, several times, then the encoder, which looks at them as they are.
``reversal``: one step for all of them at once, the adversaries' gradient turned round where it enters the encoder."""

AIMS = ("oppose", "confuse", "deny", "decluster")
"""``oppose``: the encoder wants adversaries to lose. ``confuse``: it wants them to say what they would say knowing
nothing, the shares of the classes; it then hides from these adversaries, but less from fresh ones.
``deny``, ``decluster``: the defences of Coavoux et al. 2018, see `dptext.hiding.game`."""

_SAID = ("public", "public_name", "checkpoint", "progress")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What every training has.

    Attributes:
        dimension: d, of the vectors.
        epochs, batch_size, learning_rate: of Adam (Kingma and Ba 2015).
        public: whether ``fit`` declares what it gets public.
        public_name: what that is, for the statement.
        checkpoint: a file in which the run is kept after every epoch, and from which it goes on if it is there; it is
            not private (`dptext.hiding.training`).
        progress: called with a `HidingEpoch` after every epoch.
        seed: of training. Noise of a release is fresh whatever the seed.
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
        self._take("dimension", check_int("dimension", self.dimension, minimum=2, maximum=2**20))
        self._take_counts("epochs", "batch_size")
        check_float("learning_rate", self.learning_rate, above=0)
        if self.checkpoint is not None:
            check_path("checkpoint", self.checkpoint)
        Provenance(trained_on=self.public_name, public=self.public)

    def decisive(self) -> dict[str, Any]:
        """What decides how a run goes: all but what is said of the data, and where the run is kept and shown."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _SAID}

    def _take(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _take_counts(self, *names: str) -> None:
        for name in names:
            self._take(name, check_int(name, getattr(self, name), minimum=1))


@dataclass(frozen=True, kw_only=True)
class AutoEncoderOptions(RunOptions):
    """How an auto-encoder is trained; `RunOptions` has the rest.

    Attributes:
        words: how many of the most frequent words of the texts it knows (those that two texts have); or the words
            themselves, which are public then: a sequence, or `WordVectors`.
        longest: words of a text that count.
        units: of the state.
        pooling: ``"last"``: the state after the last word, ``"mean"``: the mean of all states.
    """

    words: int | Sequence[str] | WordVectors = 5000
    longest: int = 60
    units: int = 64
    pooling: str = "mean"
    learning_rate: float = 2e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        self._take_counts("longest", "units")
        check_choice("pooling", self.pooling, POOLINGS)


@dataclass(frozen=True, kw_only=True)
class HidingOptions(RunOptions):
    """How an encoder is trained to hide; `RunOptions` has the rest.

    Game, aim, steps and haste are the only ones tried that kept fresh attackers (logistic regression and a perceptron)
    from an attribute, with and without noise, at about the same task: on made-up vectors in which it shows linearly and
    as an exclusive or (``benchmarks/hiding.py``). Adversaries that learn faster than the encoder, and move several
    times for each of its moves, are what it takes.

    Attributes:
        dimension: d, of the vectors that are released. Few are better at small budgets.
        hidden: units of a hidden layer between encoder and vector; None: a linear map.
        bound: how vectors get a known size: ``"auto"`` (what the randomizer takes), ``"normalise"``, ``"clip"``,
            ``"cube"``.
        learn_epsilon: learn the budget below that of the randomizer, an `L2Laplace`, which is then the cap c1; the
            statement promises the cap (`dptext.representations.additive.CappedLaplace`). With `DPText` as published it
            promises nothing, learnt or not.
        alpha: weight of the attributes: the mean of their losses counts alpha times against that of the task. 0: none.
        lambda_: weight of the regulariser, the sum of the squares of all weights.
        game, aim: how encoder and adversaries move, see `GAMES` and `AIMS`.
        adversary_steps: of the adversaries for one of the encoder (alternating).
        adversary_units: units of the hidden layer of task head and adversaries.
        adversary_layers: hidden layers of an adversary.
        adversary_haste: how many times the encoder's learning rate theirs is.
        rebuild: mu, the weight of writing the text again, for an encoder that has a decoder.
        class_weight: ``"balanced"`` or None.
        validation_fraction: share of the rows (or of the people) held out to choose the epoch; 0: none, and the
            last epoch is kept.
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
            self._take_counts("hidden")
        self._take_counts("adversary_steps", "adversary_units", "adversary_layers", "patience")
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


_FORMAT = "dptext hiding training 2"


@dataclass(frozen=True)
class LearntBudget:
    """A budget epsilon that is learnt below a cap, after an epoch, and what moved it there."""

    share: float
    task: float
    attributes: float


@dataclass(frozen=True)
class HidingEpoch:
    """What is known after an epoch."""

    number: int
    of: int
    phase: str
    loss: float
    adversaries: float
    held_out: TradeOff | None
    budget: LearntBudget | None = None


class Player(Protocol):
    """What is trained: a module with all of its weights, and the optimisers that move them."""

    phase: str
    module: Any
    optimisers: dict[str, Any]

    def begin(self, bits: RandomBits) -> None:
        """Draw noise from this stream from now on."""

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:
        """One step on a batch: the two losses of a `HidingEpoch`."""

    def look(self) -> TradeOff | None:
        """At what is held out."""

    def budget(self) -> LearntBudget | None:
        """The budget as it is after the epoch that `begin` began, where one is learnt."""


class Run:
    """One training, from its first weights to its best epoch."""

    def __init__(self, torch: Any, options: RunOptions, content: Iterable[bytes]) -> None:
        self._torch, self._options = torch, options
        self.start = int.from_bytes(RandomBits(options.seed).take(8), "little") >> 1
        self._file = None if options.checkpoint is None else Path(options.checkpoint)
        self._found: dict[str, Any] | None = None
        if self._file is None:
            return
        digest = hashlib.sha256()
        for part in content:
            digest.update(part)
        self._parameters = digest.hexdigest()
        if self._file.exists():
            self._found = self._opened(self._file)
            self.start = self._found["start"]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One thread, and torch's generator seeded for the first weights; the caller's is as before afterwards."""
        with self._torch.random.fork_rng(devices=[]), one_torch_thread(self._torch), one_blas_thread():
            self._seed(b"first weights")
            yield

    def epochs(
        self, source: Source, player: Player, kept: Rows, *, patience: int = 1
    ) -> tuple[tuple[HidingEpoch, ...], int]:
        """Train, and leave the player as it was after its best epoch (without anything held out: after the last)."""
        options, torch = self._options, self._torch
        history, best, highest, weights = self._reached(player)
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
            score = -np.inf if seen is None or math.isnan(seen.score) else seen.score
            if score > highest or score == -np.inf:  # where nothing can be said of an epoch, the last one is kept
                best, highest = epoch, score
                weights = {name: entry.clone() for name, entry in player.module.state_dict().items()}
            self._keep(player, history, best, highest, weights)
            if options.progress is not None:
                options.progress(history[-1])
        player.module.load_state_dict(weights)
        return tuple(history), best

    def _seed(self, purpose: bytes) -> None:
        self._torch.manual_seed(int.from_bytes(stream_of(self.start, purpose).take(8), "little") >> 1)

    # -- the file -------------------------------------------------------------------------------------------------

    def _opened(self, file: Path) -> dict[str, Any]:
        try:
            content = file.read_bytes()
        except OSError as error:
            raise StorageError.of("read", file, error) from None
        result: Any = None
        with suppress(Exception):  # torch has no one error for a file that it did not write
            result = self._torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        if not isinstance(result, dict) or result.get("format") != _FORMAT or type(result.get("start")) is not int:
            raise self._broken(file)
        if result.get("parameters") != self._parameters:
            raise RefusedError(
                f"{file.name} belongs to another training (texts, labels, options or seed differ): name another "
                "file, or remove it"
            )
        return result

    def _reached(self, player: Player) -> tuple[list[HidingEpoch], int, float, Any]:
        """Where the run has come to: its epochs, the best one, its score, its weights; the player is put there."""
        result = self._found
        if result is None or self._file is None:
            return [], 0, -math.inf, player.module.state_dict()
        try:
            for weights in (result["best_weights"], result["weights"]):  # both must fit
                player.module.load_state_dict(weights)
            for name, optimiser in player.optimisers.items():
                optimiser.load_state_dict(result["optimisers"][name])
            history = [_epoch(entry) for entry in result["epochs"]]
            return history, int(result["best"]), float(result["highest"]), result["best_weights"]
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError):
            pass
        raise self._broken(self._file)

    def _keep(
        self, player: Player, history: list[HidingEpoch], best: int, highest: float, weights: Mapping[str, Any]
    ) -> None:
        if self._file is None:
            return
        content = io.BytesIO()
        self._torch.save(
            {
                "format": _FORMAT,
                "parameters": self._parameters,
                "start": self.start,
                "epochs": [_plain(entry) for entry in history],
                "best": best,
                "highest": float(highest),
                "weights": player.module.state_dict(),
                "optimisers": {name: entry.state_dict() for name, entry in player.optimisers.items()},
                "best_weights": weights,
            },
            content,
        )
        with hashed_file(self._file, owner_only=True) as stream:
            stream.write(content.getvalue())

    @staticmethod
    def _broken(file: Path) -> DataError:
        return DataError(
            f"{file.name} is broken, or no checkpoint that this version of dptext wrote: remove it, or name another "
            "file"
        )


def _plain(epoch: HidingEpoch) -> dict[str, Any]:
    seen, budget = epoch.held_out, epoch.budget
    return vars(epoch) | {
        "held_out": None if seen is None else vars(seen) | {"attributes": dict(seen.attributes)},
        "budget": None if budget is None else vars(budget),
    }


def _epoch(plain: Mapping[str, Any]) -> HidingEpoch:
    seen, budget = plain["held_out"], plain["budget"]
    return HidingEpoch(
        **{
            **plain,
            "held_out": None if seen is None else TradeOff(**seen),
            "budget": None if budget is None else LearntBudget(**budget),
        }
    )
