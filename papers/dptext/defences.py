"""The paper's learnt budget, and defences for comparison, as trainings of a hiding encoder.

By ``aim`` the encoder minimises L_task(D(z)) + alpha H with

    oppose:     H = -1/T sum_t L_t(D_t(z))                                                              (the library's)
    deny:       H = -1/T sum_t ln(1 - p_t(true class))                                                          (deny)
    decluster:  H = -||v - v'||^2  for two documents drawn at random, before the noise                     (decluster)

(Coavoux, Narayan and Cohen 2018). ``game="reversal"`` is gradient reversal (Ganin and Lempitsky 2015; Li et al. 2018).

**A learnt epsilon.** L2-Laplace noise is proportional to 1 / epsilon, so an epsilon can be learnt below a cap c1 (also
with DPText as published, which has no guarantee at any budget):

    epsilon = c1 sigmoid(theta),   z = v + (sample(v; c1) - v) c1 / epsilon                                   (learnt)

The statement has the cap, because the learnt epsilon depends on the training data. Noise of a smaller epsilon is noise
of a larger one plus independent noise, so the losses of optimal heads fall as epsilon grows. In the ball and the cube
heads read (epsilon / c1) z as well as z, and without the regulariser

    loss((epsilon / c1) h, c1) = loss(h, epsilon),   min_h loss(h, c1)  <=  min_h loss(h, epsilon)               (cap)

for every epsilon <= c1. On the sphere, epsilon falls where the adversaries' slope outweighs the task's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from dptext.errors import ParameterError
from dptext.hiding.encoder import HidingEncoder
from dptext.hiding.training import Game
from dptext.privacy.guarantee import PureDP
from dptext.representations.additive import AdditiveChannel, L2Laplace
from dptext.representations.published import DPText, OneSidedNoise
from dptext.validation import check_float

_START = 2.0  # theta: the budget starts at 88% of the cap
_TINY = 1e-12


@dataclass(frozen=True, kw_only=True)
class CappedLaplace(L2Laplace):
    """L2-Laplace noise of the budget ``share * epsilon``, with the guarantee ``epsilon``."""

    name: ClassVar[str] = "CappedLaplace"

    share: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_float("share", self.share, above=0, maximum=1)

    def _calibrate(self, dimension: int) -> AdditiveChannel:
        channel = L2Laplace(epsilon=self.epsilon * self.share, domain=self.domain)._calibrate(dimension)
        channel.name, channel.guarantee = self.name, PureDP(self.epsilon)
        return channel


@dataclass(frozen=True, kw_only=True)
class CappedDPText(DPText):
    """DPText's noise of the budget ``share * epsilon``; the claim that the statement carries is the cap."""

    name: ClassVar[str] = "CappedDPText"

    share: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_float("share", self.share, above=0, maximum=1)

    def _calibrate(self, dimension: int) -> OneSidedNoise:
        return OneSidedNoise(self, dimension, share=self.share)


@dataclass(frozen=True)
class LearntBudget:
    """A learnt epsilon after an epoch: its share of the cap, and the slopes of both losses over ln epsilon."""

    share: float
    task: float
    attributes: float


class DefenceGame(Game):
    """A training with another game, another aim or a learnt budget."""

    def __init__(self, *arguments: Any, game: str, aim: str, learn: bool) -> None:
        super().__init__(*arguments)
        self._game, self._aim = game, aim
        self.theta = self.torch.nn.Parameter(self.torch.tensor(_START)) if learn else None
        if self.theta is not None:
            self.module.register_parameter("theta", self.theta)
            self.ours.add_param_group({"params": [self.theta]})
        self._slopes: list[tuple[float, float]] = []

    @property
    def share(self) -> float:
        """The learnt budget as a share of the cap."""
        return 1.0 if self.theta is None else 1 / (1 + math.exp(-float(self.theta.detach())))

    def budget(self) -> LearntBudget | None:
        """Return the budget after the steps since the last call, if one is learnt."""
        if self.theta is None:
            return None
        task, attributes = np.mean(self._slopes, axis=0).tolist()
        self._slopes = []
        return LearntBudget(self.share, task, attributes)

    def add(self, bounded: Any) -> Any:
        """Bounded vectors with noise, eq. (learnt)."""
        if self.theta is None:
            return super().add(bounded)
        with self.torch.no_grad():
            noise = super().add(bounded) - bounded
        return bounded + noise / self.torch.sigmoid(self.theta)

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:
        """Take one step on a batch; return the losses of the task and of the adversaries."""
        alpha = self.options.alpha
        bounded = self.bound(self.encoder(batch))
        if self._game == "reversal":
            return self._reversed_step(bounded, rows)
        adversary_loss = self.adversary_steps(bounded, rows) if alpha and self._aim != "decluster" else 0.0
        z = self.add(bounded)
        loss = task = self.loss(0, self.task(z), rows)
        against = None
        if alpha:
            against = alpha * (pushed_apart(bounded) if self._aim == "decluster" else self._against(z, rows))
            loss = task + against
        self._note_slopes(task, against)
        self.ours.zero_grad()
        loss.backward()
        self.ours.step()
        return float(task.detach()), adversary_loss

    def _reversed_step(self, bounded: Any, rows: Any) -> tuple[float, float]:
        """Gradient reversal: forwards z, backwards -alpha / T of the gradient."""
        z = self.add(bounded)
        reversed_z = z.detach() - (z - z.detach()) * (self.options.alpha / len(self.adversaries))
        task, adversary_loss = self.loss(0, self.task(z), rows), self.adversary_loss(reversed_z, rows)
        self._note_slopes(task, adversary_loss)
        self.ours.zero_grad()
        self.theirs.zero_grad()
        (task + adversary_loss).backward()
        self.ours.step()
        self.theirs.step()
        return float(task.detach()), float(adversary_loss.detach()) / len(self.adversaries)

    def _against(self, z: Any, rows: Any) -> Any:
        if self._aim == "oppose":
            return -(self.adversary_loss(z, rows) / len(self.adversaries))
        losses = [
            denial(self.torch, head(z), self.labels[place][rows], self.weights[place][rows])
            for place, head in enumerate(self.adversaries, 1)
        ]
        return sum(losses) / len(losses)

    def _note_slopes(self, task: Any, against: Any) -> None:
        """Note the slopes of two terms of the loss over ln epsilon = ln c1 + ln sigmoid(theta)."""
        if self.theta is None:
            return
        slopes = []
        for term in (task, against):
            slope = None
            if term is not None:
                (slope,) = self.torch.autograd.grad(term, self.theta, retain_graph=True, allow_unused=True)
            slopes.append(0.0 if slope is None else float(slope) / (1 - self.share))
        self._slopes.append((slopes[0], slopes[1]))


def denial(torch: Any, answers: Any, labels: Any, weights: Any) -> Any:
    """Return the mean of -ln(1 - p(label)) over a batch, equation (deny)."""
    true = torch.nn.functional.one_hot(labels, answers.shape[1]).bool()
    others = answers.masked_fill(true, float("-inf")).logsumexp(dim=1)
    return ((answers.logsumexp(dim=1) - others) * weights).sum() / weights.sum().clamp(min=_TINY)


def pushed_apart(vectors: Any) -> Any:
    """Return minus the mean squared distance of neighbours in a batch, whose order is random: equation (decluster)."""
    return -((vectors - vectors.roll(1, 0)) ** 2).sum(dim=1).mean()


class DefendedEncoder(HidingEncoder):
    """A hiding encoder with another game ("reversal"), another aim ("deny" or "decluster") or a learnt budget.

    ``learn_epsilon`` learns an epsilon below the cap, the epsilon of the randomizer (an `L2Laplace` or `DPText`);
    ``budgets_`` has a budget per epoch.
    """

    budgets_: tuple[LearntBudget, ...]

    def __init__(
        self,
        *arguments: Any,
        game: str = "alternating",
        aim: str = "oppose",
        learn_epsilon: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, progress=self._note_budget, **options)
        if learn_epsilon and type(self.randomizer) not in (L2Laplace, DPText):
            raise ParameterError("learn_epsilon needs noise proportional to 1 / epsilon: pass L2Laplace or DPText")
        self._settings: dict[str, Any] = {"game": game, "aim": aim, "learn": learn_epsilon}

    def fit(self, *arguments: Any, **targets: Any) -> Self:
        """Train on data that has no protection: see `HidingEncoder.fit`."""
        self.budgets_ = ()
        self.game_type: Any = self._build_game
        super().fit(*arguments, **targets)
        if self._settings["learn"] and self.randomizer is not None:
            capped: Any = CappedLaplace if isinstance(self.randomizer, L2Laplace) else CappedDPText
            self.randomizer_ = capped(**self.randomizer.options(), share=self._training.share)
        return self

    def _build_game(self, *arguments: Any) -> DefenceGame:
        self._training = partial(DefenceGame, **self._settings)(*arguments)
        return self._training

    def _note_budget(self, _epoch: object) -> None:
        budget = self._training.budget()
        if budget is not None:
            self.budgets_ = (*self.budgets_, budget)
