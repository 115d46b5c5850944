"""How a hiding encoder is trained: checked at birth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptext.errors import ParameterError
from dptext.representations.mlp import check_number

__all__ = ["AIMS", "GAMES", "HidingOptions"]

GAMES = ("alternating", "reversal")
"""``alternating``: the adversaries move first, several times, then the encoder, which looks at them as they are.
``reversal``: one step for all of them at once, the adversaries' gradient turned round where it enters the encoder."""

AIMS = ("oppose", "confuse", "deny", "decluster")
"""``oppose``: the encoder wants adversaries to lose. ``confuse``: it wants them to say what they would say knowing
nothing, the shares of the classes; it then hides from these adversaries, but less from fresh ones.
``deny``, ``decluster``: the defences of Coavoux et al. 2018, see `dptext.hiding.clustering`."""

_COUNTS = ("batch_size", "epochs", "adversary_steps", "patience", "adversary_units")


@dataclass(frozen=True, kw_only=True)
class HidingOptions:
    """How to train.

    Game, aim, steps and haste are the only ones tried that kept fresh attackers (logistic regression and a perceptron)
    from an attribute, with and without noise, at about the same task: on made-up vectors in which it shows linearly and
    as an exclusive or (``benchmarks/hiding.py``). Adversaries that learn faster than the encoder, and move several
    times for each of its moves, are what it takes.

    Attributes:
        alpha: weight of the attributes: the mean of their losses counts alpha times against that of the task. 0: none.
        lambda_: weight of the regulariser, the sum of the squares of all weights.
        game, aim: how encoder and adversaries move, see `GAMES` and `AIMS`.
        adversary_steps: of the adversaries for one of the encoder (alternating).
        adversary_units: units of the hidden layer of task head and adversaries.
        adversary_layers: hidden layers of an adversary.
        adversary_haste: how many times the encoder's learning rate theirs is.
        rebuild: mu, the weight of writing the text again, for an encoder that has a decoder.
        learning_rate, batch_size, epochs: of Adam (Kingma and Ba 2015).
        class_weight: ``"balanced"`` or None.
        validation_fraction: share of the rows (or of the groups of rows) held out to choose the epoch; 0: none, and the
            last epoch is kept.
        patience: epochs without a better trade-off before training stops.
    """

    alpha: float = 1.0
    lambda_: float = 1e-5
    game: str = "alternating"
    aim: str = "oppose"
    adversary_steps: int = 3
    adversary_units: int = 200
    adversary_layers: int = 1
    adversary_haste: float = 5.0
    rebuild: float = 0.1
    learning_rate: float = 1e-3
    batch_size: int = 64
    epochs: int = 10
    class_weight: str | None = "balanced"
    validation_fraction: float = 0.1
    patience: int = 10

    def __post_init__(self) -> None:
        for name in (*_COUNTS, "adversary_layers"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ParameterError(f"{name} must be an integer of at least 1, got {value!r}")
        for name, least, below in (
            ("alpha", 0.0, math.inf),
            ("lambda_", 0.0, math.inf),
            ("rebuild", 0.0, math.inf),
            ("adversary_haste", 5e-324, math.inf),
            ("learning_rate", 5e-324, math.inf),
            ("validation_fraction", 0.0, 0.9),
        ):
            check_number(name, getattr(self, name), least=least, below=below)
        for name, known in (("game", GAMES), ("aim", AIMS), ("class_weight", ("balanced", None))):
            value = getattr(self, name)
            if not (value is None or isinstance(value, str)) or value not in known:
                raise ParameterError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
