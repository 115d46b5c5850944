"""SkipGram itself, three ways to get it wrong, and the paper's algorithm 1-b: canary audits in one run.

A canary is a user with two words of their own; a fair coin decides if the user is in the training. The adversary
sees the tables after every step, as the guarantee allows.
"""

import numpy as np
from papers.dpugc.as_printed import DPUGC

from canaries import canary_loss, judge_canaries
from dptext import Document
from dptext.embeddings.skipgram import SkipGram
from dptext.embeddings.training import _NOISE, _USES
from dptext.privacy.guarantee import ApproxDP
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.text.tokens import Vocabulary
from dptext.users.grouping import stored_users, users_of
from known_broken.case import Case

CANARIES = 300
EPSILON, DELTA = 1.0, 1e-12  # the bound spends 2 delta for each canary of its error
STEPS = 2
WORDS = Vocabulary([f"w{n}x" for n in range(2 * CANARIES)] + ["<unk>"])
REPEATED = 20
CLIP = 0.02  # below the length of the gradient of one pair: every bound is reached
ONE, TWO = np.arange(0, 2 * CANARIES, 2), np.arange(1, 2 * CANARIES, 2)


def plan_of(**options):
    fields = {"epsilon": EPSILON, "delta": DELTA, "steps": STEPS, "sampling_rate": 1.0, "public_users": 10, "pairs": 20}
    fields |= {"dimension": 20, "negatives": 1, "subsample": 0.0, "distance": 20.0, "clip": CLIP}
    return SkipGram(WORDS, **fields | options).plan()


class RepeatingKey(NoiseKey):
    """A counter that is used twice: each step has the noise of the first."""

    def stream(self, parameters, place, content):
        return super().stream(parameters, _NOISE if place % _USES == _NOISE else place, content)


def iterates(plan, included, key):
    """(steps + 1, rows, d) the tables before the first step and after each."""
    texts = (" ".join([f"w{2 * n}x w{2 * n + 1}x"] * REPEATED) for n in np.flatnonzero(included))
    documents = [Document(text, user=str(place)) for place, text in enumerate(texts)]
    with users_of(documents, plan.trained, unit="user", seed=1) as users, stored_users(users) as store:
        tables = [plan.start()]
        training = plan.training(store, tables[0].copy(), key)
        for step in range(STEPS):
            training.step(step)
            tables.append(training.tables.matrix.copy())
    return np.array(tables, dtype=np.float64)


def along(tables):
    """How far the contexts of a canary's words went towards its words, from where both began."""
    start, moved, words = tables[0], tables[-1] - tables[0], len(tables[0]) // 2
    return (moved[words + ONE] * start[TWO]).sum(axis=1) + (moved[words + TWO] * start[ONE]).sum(axis=1)


def difference(tables):
    """How much the second step differs from the first on a canary's words, the noise of both being equal."""
    rates = plan_of().recipe.rates(STEPS)
    first, second = ((tables[n + 1] - tables[n]) / rates[n] for n in range(STEPS))
    lengths = ((second - first) ** 2).sum(axis=1)
    words = len(lengths) // 2
    return sum(lengths[table + rows] for table in (0, words) for rows in (ONE, TWO))


def _run(score=along, key=NoiseKey, **options):
    def run(seed, error):
        plan = plan_of(**options)
        claimed = plan_of().statement(
            max(plan.participation.rates, key=plan.participation.rates.get), seeded=True
        )  # SkipGram's guarantee per user
        bound = canary_loss(
            lambda included: iterates(plan, included, key(seed)),
            score,
            canaries=CANARIES,
            delta=DELTA,
            error=error,
            seed=seed,
        )
        return judge_canaries(claimed, bound, error=error, coverage=f"{CANARIES:,} users, one training run")

    return run


def published(epsilon_of, **noise):
    """Algorithm 1-b, judged at an epsilon: tables before the first step and after the last."""
    size = 2 * CANARIES + 1
    fields = {"delta": DELTA, "lot": 6_000, "steps": STEPS, "dimension": 20, "negatives": 1, "window": 1, "clip": CLIP}

    def run(seed, error):
        output = DPUGC(WORDS, epsilon=0.05, **fields, **noise, unsafe_as_published=True)
        turn = iter(range(10**9))

        def tables(included):
            key = seed * 10**6 + next(turn)
            texts = (" ".join([f"w{2 * n}x w{2 * n + 1}x"] * REPEATED) for n in np.flatnonzero(included))
            documents = [Document(text, user=str(place)) for place, text in enumerate(texts)]
            with users_of(documents, WORDS, unit="user", seed=1) as users, stored_users(users) as store:
                after = output._trained(store, WORDS, RandomBits(key))
            start = np.zeros_like(after)
            start[:size] = (RandomBits(key).uniform(size, 20) - 0.5) / 20
            return np.array([start, after], dtype=np.float64)

        [statement] = output.statements().values()
        claimed = statement.replace(guarantee=ApproxDP(epsilon_of(statement), DELTA))
        bound = canary_loss(tables, along, canaries=CANARIES, delta=DELTA, error=error, seed=seed)
        return judge_canaries(claimed, bound, error=error, coverage=f"{CANARIES:,} users, one training run")

    return run


def _claimed(statement):
    return statement.claimed_epsilon


def _rebuild_randomizer(statement):
    return statement.epsilon


CASES = [
    Case("SkipGram", False, _run(), "one user is added, with all their pairs"),
    Case("SkipGram, every step observed", False, _run(difference), "each step has noise of its own"),
    Case("SkipGram, no noise", True, _run(mode="clipped"), "bounded gradients, and nothing that hides them"),
    Case("SkipGram, reused counter", True, _run(difference, RepeatingKey), "the noise of two steps cancels"),
    Case("SkipGram, pairs bounded one by one", True, _run(unit="pair"), "a user has many pairs, each of full length"),
    Case("dpUGC 1-b, as claimed", True, published(_claimed), "charged 1 / L of a step"),
    Case("dpUGC 1-b, as stated", False, published(_rebuild_randomizer, noise_multiplier=60_000.0), "two lots a step"),
]
