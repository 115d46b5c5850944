"""How an encoder is trained: options that are checked at birth."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from inspect import Parameter, Signature, signature
from typing import Any

from dptext.checks import choice, number, path, whole
from dptext.representations.encoders import Provenance
from dptext.representations.gru import POOLINGS
from dptext.vectors.word_vectors import WordVectors

__all__ = ["AIMS", "GAMES", "AutoEncoderOptions", "HidingOptions", "RunOptions", "with_options"]

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
        self._take("dimension", whole("dimension", self.dimension, least=2, most=2**20))
        self._take_counts("epochs", "batch_size")
        number("learning_rate", self.learning_rate, above=0)
        if self.checkpoint is not None:
            path("checkpoint", self.checkpoint)
        Provenance(trained_on=self.public_name, public=self.public)

    def decisive(self) -> dict[str, Any]:
        """What decides how a run goes: all but what is said of the data, and where the run is kept and shown."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _SAID}

    def _take(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _take_counts(self, *names: str) -> None:
        for name in names:
            self._take(name, whole(name, getattr(self, name), least=1))


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
        choice("pooling", self.pooling, POOLINGS)


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
            number(name, getattr(self, name), least=0)
        number("adversary_haste", self.adversary_haste, above=0)
        number("validation_fraction", self.validation_fraction, least=0, below=0.9)
        choice("game", self.game, GAMES)
        choice("aim", self.aim, AIMS)
        choice("class_weight", self.class_weight, ("balanced", None))


def with_options(constructor: Callable[..., None], options: type[RunOptions]) -> Signature:
    """The signature of a constructor whose ``**options`` become ``options``: for ``help`` and editors."""
    _, *own = signature(constructor).parameters.values()
    own = [each for each in own if each.kind is not Parameter.VAR_KEYWORD]
    return Signature([*own, *signature(options).parameters.values()])
