"""Samplers that do not draw from the distribution that their mechanism reports.

Each reports the library's distribution, which keeps its claim, and draws from another one: only a test of draws
can refute it.
"""

import numpy as np

import dptext
from dptext import TEM
from dptext.noise.discrete import RandomizedResponse, flip_threshold
from dptext.privacy.randomness import RandomBits
from dptext.representations.bits import CodeChannel, SymmetricUnary, WeightedBits, bit_budgets
from dptext.representations.cube import CubeChannel, Piecewise, Plan
from dptext.representations.published_protocols import OME
from known_broken import caps, levels, published, vectors_bits
from known_broken.case import Case, judge_table
from known_broken.replacements import _vectors

# -- words -----------------------------------------------------------------------------------------------------------

EPSILON = 5.0


class InputReturned(TEM):
    """Every word stays."""

    def _draw(self, rows, bits):
        return rows


class LessNoise(TEM):
    """1.5 times too little noise."""

    def _draw(self, rows, bits):
        return TEM(self.vectors, epsilon=1.5 * self.epsilon, threshold=self.threshold)._draw(rows, bits)


class UnknownReturned(TEM):
    """A word outside the vocabulary stays unknown."""

    def _draw(self, rows, bits):
        return np.where(rows == self.vectors.vocabulary.unknown_row, rows, super()._draw(rows, bits))


class EqualWordsAlike(TEM):
    """One draw for all occurrences of a word in a call."""

    def _draw(self, rows, bits):
        distinct, place = np.unique(rows, return_inverse=True)
        return super()._draw(distinct, bits)[place]


class EqualCallsAlike(TEM):
    """The same random bits in every call."""

    def _draw(self, rows, bits):
        return super()._draw(rows, RandomBits(7))


class HalfAlike(TEM):
    """Half of the words are drawn afresh, the others with the same bits in every call."""

    def _draw(self, rows, bits):
        fresh, kept = super()._draw(rows, bits), super()._draw(rows, RandomBits(7))
        return np.where(np.arange(rows.size) % 2 == 0, kept, fresh)


class OutputsBeyond(TEM):
    """Now and then a word of the text is returned unchanged."""

    def sample(self, words, *, seed=None):
        draws = super().sample(words, seed=seed)
        return [f"{word}s" if place == len(draws) // 2 else word for place, word in enumerate(draws)]


def _words(mechanism):
    return lambda seed, error: dptext.audit(mechanism(_vectors(800), epsilon=EPSILON), error=error, seed=seed)


# -- bits, categories, caps, codes -----------------------------------------------------------------------------------


class Truth(RandomizedResponse):
    """The chances of randomised response, and no response."""

    def draw(self, bits, truth):
        return truth


def truth_sent(seed, error):
    response = Truth(3, levels.SENT)
    return judge_table(response.probabilities, levels.SENT, levels.sender(response), run=(seed, error))


def highest_budget_for_all(seed, error):
    visible, epsilon, _ = vectors_bits.weighted_bits()
    highest = flip_threshold(bit_budgets(epsilon / 2, vectors_bits.BITS)[-1])
    channel = CodeChannel(WeightedBits.name, 2, [highest] * vectors_bits.BITS)
    vectors = vectors_bits.numbers_of_codes(vectors_bits.BITS, 2)
    return judge_table(visible, epsilon, vectors_bits.sender(channel, vectors), run=(seed, error))


def each_bit_at_epsilon(seed, error):
    visible, draws = SymmetricUnary(epsilon=1.0).channel(6), SymmetricUnary(epsilon=2.0).channel(6)
    sampler = vectors_bits.sender(draws, np.eye(6), lowest_first=True)
    return judge_table(vectors_bits.unary_table(visible), 1.0, sampler, run=(seed, error))


def window_at_twice_epsilon(seed, error):
    plan = Plan(1, 2, 1.0)
    visible, epsilon, _ = vectors_bits.cube(Piecewise(epsilon=4.0), 2, plan)()
    channel = CubeChannel("Piecewise", 8.0, 2, plan, steps=vectors_bits.STEPS)
    return judge_table(visible, epsilon, vectors_bits.sent_vectors(channel)[2], run=(seed, error))


def forgotten_mass(seed, error):
    visible = caps.honest()

    class Sent:
        height = visible.height

        @staticmethod
        def sample(vectors, bits):
            draws = visible.sample(vectors, bits)
            stay = bits.uniform(len(vectors)) < 0.1
            return np.where(stay[:, None], vectors, draws)

    return caps.judged(visible, caps.sender(Sent), (seed, error))


def bits_of_a_larger_epsilon(seed, error):
    options = {"lambda_": 1.0, **published.SMALL}
    visible, draws = (published.channel_of(OME, 2, epsilon=epsilon, **options) for epsilon in (1.0, 1.5))
    table = published.table_of(visible)
    return judge_table(table, visible.guarantee.epsilon, published.sampler_of(draws), run=(seed, error))


def _case(name, run, why):
    return Case(f"{name}, behind the right distribution", True, run, why)


CASES = [
    _case("TEM, its input returned", _words(InputReturned), "no noise at all"),
    _case("TEM, 1.5 times too little noise", _words(LessNoise), "draws with 1.5 epsilon"),
    _case("TEM, unknown words returned", _words(UnknownReturned), "one word of 800 gets no noise"),
    _case("TEM, equal words alike", _words(EqualWordsAlike), "occurrences of a word share their noise"),
    _case("TEM, equal calls alike", _words(EqualCallsAlike), "the second release has the noise of the first"),
    _case("TEM, half of the noise kept", _words(HalfAlike), "two releases share half of their noise"),
    _case("TEM, an output beyond", _words(OutputsBeyond), "an output of probability 0"),
    _case("a level, sent without noise", truth_sent, "no noise at all"),
    _case("bits, the highest budget for all", highest_budget_for_all, "flips are rarer than shown"),
    _case("SUE, each bit at epsilon", each_bit_at_epsilon, "flips are rarer than shown"),
    _case("piecewise, window at twice epsilon", window_at_twice_epsilon, "the window is likelier than shown"),
    _case("PrivUnit, one vector in ten without noise", forgotten_mass, "the cap is likelier than shown"),
    _case("OME, lambda 1, bits of 1.5 epsilon", bits_of_a_larger_epsilon, "flips are rarer than shown"),
]
