"""Audit of `SkipGram`: the loss of many canaries in one training stays within epsilon; without noise it exceeds it.

One-run auditing (Steinke, Nasr and Jagielski 2023): each canary is a user with two unique words, who takes
part by a fair coin.
"""

import numpy as np
import pytest
from scipy import stats

from canaries import canary_loss
from dptext import Document
from dptext.embeddings.skipgram import SkipGram
from dptext.privacy.gaussian import SampledGaussian
from dptext.privacy.randomness import NoiseKey
from dptext.text.tokens import Vocabulary
from dptext.users.grouping import stored_users, users_of

CANARIES = 400
DELTA = 1e-12  # the bound of one-run auditing spends 2 delta for each canary of its error
WORDS = Vocabulary([f"w{n}x" for n in range(2 * CANARIES)] + ["<unk>"])
TEXTS = [f"w{2 * n}x w{2 * n + 1}x" for n in range(CANARIES)]


def audit_canaries(epsilon, *, steps, sampling_rate, mode="private", unit="user"):
    """Examine all tables: each canary is scored along the direction of its gradients."""
    model = SkipGram(
        WORDS,
        dimension=20,
        epsilon=epsilon,
        delta=DELTA,
        steps=steps,
        sampling_rate=sampling_rate,
        mode=mode,
        unit=unit,
        public_users=10,
        pairs=20,
        negatives=1,
        subsample=0.0,
        distance=20.0,
        seed=3,
    )
    plan = model.plan()
    start = plan.start()
    words = len(plan.rows)

    def train(included):
        documents = [Document(text, user=text) for text, present in zip(TEXTS, included, strict=True) if present]
        with users_of(documents, plan.trained, unit="user", seed=1) as users, stored_users(users) as store:
            return plan.train(store, NoiseKey(5))

    def score(tables):
        moved = tables.astype(np.float64) - start
        one, two = np.arange(0, 2 * CANARIES, 2), np.arange(1, 2 * CANARIES, 2)
        return (moved[words + one] * start[two]).sum(axis=1) + (moved[words + two] * start[one]).sum(axis=1)

    expected = plan.participation.guarantee().epsilon if mode == "private" else None
    return canary_loss(train, score, canaries=CANARIES, delta=DELTA, error=1e-6, seed=11), expected


def test_a_training_has_the_noise_of_its_statement():
    """Without words, the tables move by noise alone; noise that is too small by 5% is found."""
    plan = SkipGram(WORDS, dimension=20, epsilon=1.0, steps=3, sampling_rate=1.0, distance=20.0).plan()
    silent = [Document("", user="a")]
    with users_of(silent, plan.trained, unit="user", seed=1) as users, stored_users(users) as store:
        moved = plan.train(store, NoiseKey(5)).astype(np.float64) - plan.start()
    values = moved.ravel() / plan.noise_of_tables
    gaussian = SampledGaussian(
        noise_multiplier=plan.participation.noise_multiplier, sampling_rate=1.0, steps=plan.participation.steps
    )
    assert gaussian.epsilon(delta=1e-6) <= 1.0
    assert stats.chi2.cdf((values**2).sum(), values.size) > 1e-6
    assert stats.chi2.cdf(((0.95 * values) ** 2).sum(), values.size) < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "steps", "rate"), [(1.0, 1, 1.0), (8.0, 1, 1.0), (3.0, 20, 0.3), (8.0, 20, 0.3)])
def test_canaries_stay_within_the_guarantee(epsilon, steps, rate):
    """False alarm: 1e-6, by the bound of one-run auditing."""
    bound, expected = audit_canaries(epsilon, steps=steps, sampling_rate=rate)
    assert bound.loss <= expected <= epsilon


def test_canaries_are_found_without_noise():
    """Positive control: training without noise refutes epsilon 2."""
    assert audit_canaries(40.0, steps=1, sampling_rate=1.0)[0].loss > 0.5
    assert audit_canaries(1.0, steps=1, sampling_rate=1.0, mode="clipped")[0].loss > 2
