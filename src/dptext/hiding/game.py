"""The game that is trained: an encoder and a task head on one side, one adversary an attribute on the other (torch).

With h the encoder, v = bound(h(x)) and z = v + noise, heads D and T attributes, the encoder's side minimises

    L_task(D(z)) + mu L_rebuilt(z) + alpha / T sum_t H_t + lambda ||theta||^2                                 (encoder)

(Beigi et al. 2019, equation 1, with H_t in place of -L_t) and each adversary its own loss L_t(D_t(z)). By ``aim``,

    confuse: H_t = cross-entropy of D_t's answer to the shares of the classes                           (confuse)
    oppose:  H_t = -L_t(D_t(z))                                                                         (oppose)
    deny, decluster: see `dptext.hiding.clustering`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dptext.hiding.checkpoint import RunState
from dptext.hiding.clustering import denial, pushed_apart
from dptext.hiding.noise import NoiseInTheLoop
from dptext.hiding.options import HidingOptions
from dptext.hiding.targets import Target
from dptext.hiding.tradeoff import TradeOff
from dptext.privacy.randomness import RandomBits

__all__ = ["Game"]


class Game:
    """Both sides and their optimisers; see `dptext.hiding.training.Player`.

    Args:
        torch: the module.
        body: a module from a batch of inputs to (n, d) raw vectors.
        reader: looks at held-out rows.
        rebuilt: its own loss, that of writing a batch again from z; None: it has none.
        dimension: d.
        task, attributes: labels of all rows.
        noise: bound and noise.
        options: how to train.
    """

    phase = "hide"

    def __init__(
        self,
        torch: Any,
        body: Any,
        reader: Callable[[], TradeOff | None],
        rebuilt: Callable[[Any, Any], Any] | None,
        dimension: int,
        task: Target,
        attributes: Sequence[Target],
        noise: NoiseInTheLoop,
        options: HidingOptions,
    ) -> None:
        self._torch, self._noise, self._options = torch, noise, options
        self.body, self._rebuilds, self._reader = body, rebuilt, reader
        self.task = _head(torch, dimension, len(task.classes), options.adversary_units, 1)
        self.adversaries = torch.nn.ModuleList(
            _head(torch, dimension, len(each.classes), options.adversary_units, options.adversary_layers)
            for each in attributes
        )
        self._labels = [torch.from_numpy(each.codes) for each in (task, *attributes)]
        self._weights = [torch.from_numpy(each.weights) for each in (task, *attributes)]
        self._priors = [torch.from_numpy(each.priors) for each in attributes]
        ours = [*body.parameters(), *self.task.parameters()]
        if noise.theta is not None:
            ours.append(noise.theta)
        how = {"weight_decay": 2 * options.lambda_, "fused": True}
        self.ours = torch.optim.Adam(ours, lr=options.learning_rate, **how)
        theirs = options.learning_rate * options.adversary_haste
        self.theirs = torch.optim.Adam(self.adversaries.parameters(), lr=theirs, **how)
        self.state = RunState(
            torch,
            {"body": body, "task": self.task, "adversaries": self.adversaries},
            {"ours": self.ours, "theirs": self.theirs},
            {} if noise.theta is None else {"theta": noise.theta},
        )

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:
        """One step of everybody on a batch; (task loss, mean loss of the adversaries)."""
        v = self._noise.bound(self.body(batch))
        if self._options.game == "reversal":
            return self._reversed(batch, v, rows)
        theirs = 0.0
        if self._options.alpha and self._options.aim != "decluster":
            for _ in range(self._options.adversary_steps):
                theirs = self._adversaries_move(self._noise.add(v.detach()).detach(), rows)
        z = self._noise.add(v)
        task = self._loss(0, self.task(z), rows)
        loss = task + self._rebuilt(batch, z)
        if self._options.alpha:
            hidden = pushed_apart(v) if self._options.aim == "decluster" else self._hidden(z, rows)
            loss = loss + self._options.alpha * hidden  # eq. (encoder)
        self.ours.zero_grad()
        loss.backward()
        self.ours.step()
        return float(task.detach()), theirs

    def begin(self, bits: RandomBits) -> None:
        """Draw noise from this stream from now on."""
        self._noise.begin(bits)

    def look(self) -> TradeOff | None:
        """What fresh readers get out of held-out rows."""
        return self._reader()

    def _adversaries_move(self, z: Any, rows: Any) -> float:
        losses = [self._loss(place, head(z), rows) for place, head in enumerate(self.adversaries, 1)]
        loss = sum(losses)
        self.theirs.zero_grad()
        loss.backward()
        self.theirs.step()
        return float(loss.detach()) / len(losses)

    def _hidden(self, z: Any, rows: Any) -> Any:
        """The mean over attributes of H_t."""
        found = []
        for place, head in enumerate(self.adversaries, 1):
            answer = head(z)
            if self._options.aim == "confuse":
                logs = self._torch.nn.functional.log_softmax(answer, dim=1)
                found.append(-(logs @ self._priors[place - 1]).mean())  # eq. (confuse)
            elif self._options.aim == "deny":
                labels, weights = self._labelled(place, rows)
                found.append(denial(self._torch, answer, labels, weights))
            else:
                found.append(-self._loss(place, answer, rows))  # eq. (oppose)
        return sum(found) / len(found)

    def _reversed(self, batch: Any, v: Any, rows: Any) -> tuple[float, float]:
        """Gradient reversal (Ganin and Lempitsky 2015): forwards z, backwards -alpha / T of the gradient."""
        z = self._noise.add(v)
        turned = z.detach() - (z - z.detach()) * (self._options.alpha / len(self.adversaries))
        task = self._loss(0, self.task(z), rows)
        theirs = sum(self._loss(place, head(turned), rows) for place, head in enumerate(self.adversaries, 1))
        loss = task + self._rebuilt(batch, z) + theirs
        self.ours.zero_grad()
        self.theirs.zero_grad()
        loss.backward()
        self.ours.step()
        self.theirs.step()
        return float(task.detach()), float(theirs.detach()) / len(self.adversaries)

    def _rebuilt(self, batch: Any, z: Any) -> Any:
        """The loss of writing the batch again, as much of it as counts."""
        if self._rebuilds is None or not self._options.rebuild:
            return 0.0
        return self._options.rebuild * self._rebuilds(batch, z)

    def _loss(self, place: int, answer: Any, rows: Any) -> Any:
        """Weighted cross-entropy of the rows that have a label; 0 where none of the batch has."""
        labels, weights = self._labelled(place, rows)
        each = self._torch.nn.functional.cross_entropy(answer, labels, reduction="none")
        return (each * weights).sum() / weights.sum().clamp(min=1e-12)

    def _labelled(self, place: int, rows: Any) -> tuple[Any, Any]:
        """Classes and weights of rows; some class, and 0, where there is no label."""
        labels = self._labels[place][rows]
        known = labels.clamp(min=0)
        return known, self._weights[place][known] * (labels >= 0)


def _head(torch: Any, width: int, classes: int, units: int, layers: int) -> Any:
    modules: list[Any] = []
    for _ in range(layers):
        modules += [torch.nn.Linear(width, units), torch.nn.ReLU()]
        width = units
    return torch.nn.Sequential(*modules, torch.nn.Linear(width, classes))
