"""Personal budgets of a training: a sampling rate for each public level, and what the published accountant leaves out.

Users of a level take part in a step with a rate of their own, so that each keeps his epsilon whatever the others have,
and nobody is ever dropped (Boenisch et al. 2023, "Have it your way: individualized privacy assignment for DP-SGD").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dptext.embeddings.dpsgd.participation import Participation
from dptext.errors import ParameterError
from dptext.privacy.accounting import gaussian_epsilon
from dptext.privacy.budgets import DEFAULT_FLOOR, PersonalBudgets
from dptext.privacy.sampled_gaussian import greatest_sampling_rate, least_noise_multiplier

__all__ = ["PublishedAccount", "personal_participation"]


def personal_participation(
    levels: Mapping[str, float],
    *,
    delta: float,
    steps: int,
    sampling_rate: float | None = None,
    noise_multiplier: float | None = None,
    default: str | None = None,
    floor: float = DEFAULT_FLOOR,
) -> Participation:
    """One noise for all, and for each level the greatest sampling rate that keeps its epsilon.

    **Guarantee**: that of `Participation`. The rates follow from the levels that are *offered*: not from who chose
    which, nor from how many did. They are found on the distribution of the privacy loss, and rounded down; the noise is
    rounded up. The largest epsilon is the *cap*: what everybody is promised who does not trust that his level was taken
    as he declared it, and all that is true of somebody whose level was read off his texts. Below the *floor* a wish for
    privacy is better met by leaving somebody out.

    Args:
        levels: public names and their epsilons.
        delta: of all levels.
        steps: of the training.
        sampling_rate: of the level with the largest epsilon: the noise follows from it. Or:
        noise_multiplier: z: all rates follow from it.
        default: the level of users who declared none; None: the one with the least epsilon.
        floor: the least epsilon that a level may have.

    Raises:
        ParameterError: levels as `PersonalBudgets` refuses them; both or neither of the two ways to the noise.
        MissingExtraError: dp-accounting is not installed.

    >>> levels = {"strict": 1.0, "standard": 3.0, "open": 8.0}
    >>> personal_participation(levels, delta=1e-6, steps=1000, noise_multiplier=1.5).rates
    mappingproxy({'strict': 0.009474, 'standard': 0.02607, 'open': 0.06251})
    """
    if (sampling_rate is None) == (noise_multiplier is None):
        raise ParameterError("either sampling_rate or noise_multiplier must be given, and not both")
    budgets = PersonalBudgets(levels, delta=delta, default=default, floor=floor)
    rates: dict[str, float] = {}
    if noise_multiplier is None:
        assert sampling_rate is not None
        open_to_most = least_noise_multiplier(
            epsilon=budgets.cap, delta=delta, sampling_rate=sampling_rate, steps=steps
        )
        noise_multiplier = open_to_most.noise_multiplier
        rates = {level: sampling_rate for level, epsilon in budgets.levels.items() if epsilon == budgets.cap}
    for level, epsilon in budgets.levels.items():
        if level not in rates:
            found = greatest_sampling_rate(epsilon=epsilon, delta=delta, noise_multiplier=noise_multiplier, steps=steps)
            rates[level] = found.sampling_rate
    ordered = {level: rates[level] for level in budgets.levels}
    return Participation(
        noise_multiplier=noise_multiplier, steps=steps, delta=delta, rates=ordered, default=budgets.default
    )


@dataclass(frozen=True)
class PublishedAccount:
    """What algorithm 1-b of the paper charges a user for a training, beside what he loses.

    For each step in which a sample of his is in the lot of L it charges (epsilon_t, delta_t) / L, where epsilon_t is
    what one noisy step costs. Two mistakes: the noise is shared, not divided, so each who takes part loses all of
    epsilon_t; and a user with many samples in a lot is charged for one. (That users leave when their budget is spent,
    which hangs on the texts that were drawn, tells of them as well.)

    **No guarantee**: for comparison.

    Attributes:
        noise_multiplier: z of a step: noise over the clipping norm of one *sample*.
        lot: L, samples of a step.
        taken_part: steps in which the user had a sample.
        samples: of his in each of these, at most: together they move the sum by as many clipping norms.
        delta: for both numbers.

    >>> account = PublishedAccount(noise_multiplier=5.0, lot=128, taken_part=1000, samples=1, delta=1e-5)
    >>> round(account.claimed, 1), round(account.true, 1)
    (5.7, 46.2)
    """

    noise_multiplier: float
    lot: int
    taken_part: int
    samples: int
    delta: float

    @property
    def claimed(self) -> float:
        """The sum of epsilon_t / L, where epsilon_t is of one step at delta."""
        return self.taken_part * self._epsilon(steps=1, samples=1) / self.lot

    @property
    def true(self) -> float:
        """What he loses if who takes part in which step is known, as the account itself makes it: no sampling helps."""
        return self._epsilon(steps=self.taken_part, samples=self.samples)

    def _epsilon(self, *, steps: int, samples: int) -> float:
        sensitivity = samples * math.sqrt(steps)  # of all steps together, whose noise is one normal vector
        return gaussian_epsilon(sigma=self.noise_multiplier, delta=self.delta, sensitivity=sensitivity)
