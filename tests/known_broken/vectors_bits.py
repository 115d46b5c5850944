"""Vectors as bits and as numbers of the cube: enumerated from the integers that the samplers use, and sampled."""

from itertools import combinations, product

import numpy as np

from dptext.noise.discrete import SCALE, flip_threshold
from dptext.representations.bits import (
    CodeChannel,
    OneBit,
    OptimizedUnary,
    SymmetricUnary,
    WeightedBits,
    bit_budgets,
)
from dptext.representations.cube import CubeChannel, Hybrid, Piecewise, Plan
from known_broken.case import Case, PureDP, judge_pair, judge_table

# -- distributions ---------------------------------------------------------------------------------------------------


def kron_rows(*tables):
    """Independent parts, (inputs, outputs) each: all combinations of inputs, all combinations of outputs."""
    joint = tables[0]
    for table in tables[1:]:
        joint = np.einsum("ia,jb->ijab", joint, table).reshape(len(joint) * len(table), joint.shape[1] * table.shape[1])
    return joint


def bits_given_codes(ones, zeros):
    """(2^l, 2^l): each bit of a code sent as 1 with its chance; the lowest bit first."""
    tables = [np.array([[1 - zero, zero], [1 - one, one]]) for one, zero in zip(ones, zeros, strict=True)]
    return kron_rows(*reversed(tables))


def code_table(thresholds, scale=SCALE):
    """(2^l, 2^l) of one number of a code whose bits are flipped."""
    flips = np.array(thresholds) / scale
    return bits_given_codes(1 - flips, flips)


def unary_table(channel):
    """(k, 2^k): the codes with one 1 among all codes."""
    d = channel.dimension
    table = bits_given_codes([channel.one / SCALE] * d, [channel.zero / SCALE] * d)
    return table[[1 << place for place in range(d)]]


def number_table(channel):
    """(2n + 1, outputs) of one number i / n that is sent: the outputs of the window, then the two of the bit."""
    share, parts = channel.windowed / SCALE, []
    if channel.window is not None:
        parts.append(share * channel.window.distributions())
        steps = channel.window.steps
    else:
        steps = 1
    if channel.flip is not None:
        places = np.arange(-steps, steps + 1) / steps
        ones = np.rint(SCALE // 2 + places * (SCALE // 2 - channel.flip)) / SCALE
        parts.append((1 - share) * np.stack([ones, 1 - ones], axis=1))
    return np.concatenate(parts, axis=1)


def cube_table(channel):
    """All vectors of the grid (the first coordinate slowest), all subsets of coordinates and all they may send."""
    table, d, k = number_table(channel), channel.dimension, channel.numbers
    subsets = list(combinations(range(d), k))
    rows = []
    for vector in product(range(len(table)), repeat=d):
        parts = [kron_rows(*(table[[vector[place]]] for place in subset))[0] for subset in subsets]
        rows.append(np.concatenate(parts) / len(subsets))
    return np.array(rows)


def _exact(name, broken, build, why):
    """``build`` gives a table, an epsilon and, of what the library draws, the sampler."""
    return Case(name, broken, lambda *run: judge_table(*build(), run=run), why)


# -- samplers --------------------------------------------------------------------------------------------------------


def sender(channel, vectors, *, lowest_first=False):
    """The bits that a channel sends for each of (n, d) vectors, as one number; the first bit is the highest."""
    powers = 1 << np.arange(channel.bits)

    def draw(inputs, bits):
        ones = np.unpackbits(channel.send(vectors[inputs], bits), axis=1, count=channel.bits)
        return ones @ (powers if lowest_first else powers[::-1])

    return draw


def numbers_of_codes(bits, dimension):
    """(codes, d): the vectors of all codes of l bits a number, the first number slowest."""
    numbers = 2 * np.arange(2**bits) / (2**bits - 1) - 1
    return np.array(list(product(numbers, repeat=dimension)))


# -- codes -----------------------------------------------------------------------------------------------------------

EPSILON, BITS = 4.0, 4


def weighted_bits():
    """Two numbers of four bits."""
    channel = WeightedBits(epsilon=2 * EPSILON, bits=BITS).channel(2)
    table = code_table(channel.thresholds)
    return kron_rows(table, table), channel.guarantee.epsilon, sender(channel, numbers_of_codes(BITS, 2))


def top_budget_for_all():
    """Every bit flipped as rarely as the highest: an even split that forgets to split."""
    highest = flip_threshold(bit_budgets(EPSILON, BITS)[-1])
    return code_table([highest] * BITS), EPSILON


def whole_budget_a_number():
    """Two numbers, each with the budget of the vector."""
    table = code_table([flip_threshold(budget) for budget in bit_budgets(EPSILON, BITS)])
    return kron_rows(table, table), EPSILON


def chances_of_24_bits():
    """A budget of 14 for one bit, its chance rounded to the multiple of 2^-24 below."""
    return code_table([int(2**24 / (1 + np.exp(14.0)))], 2**24), 14.0


def chances_of_24_bits_that_vanish():
    """A budget of 17: the chance is rounded to 0, and a bit is never flipped."""
    return code_table([int(2**24 / (1 + np.exp(17.0)))], 2**24), 17.0


# -- unary -----------------------------------------------------------------------------------------------------------


def unary(randomizer):
    def build():
        channel = randomizer.channel(6)
        return unary_table(channel), channel.guarantee.epsilon, sender(channel, np.eye(6), lowest_first=True)

    return build


def symmetric_without_half():
    """Each bit at the whole budget, although two bits differ."""
    zero = flip_threshold(1.0)
    return bits_given_codes([1 - zero / SCALE] * 4, [zero / SCALE] * 4)[[1, 2, 4, 8]], 1.0


# -- the cube --------------------------------------------------------------------------------------------------------

STEPS = 4


def cube(randomizer, dimension, plan):
    def build():
        channel = CubeChannel(randomizer.name, randomizer.epsilon, dimension, plan, steps=STEPS)
        return sent_vectors(channel)

    return build


def sent_vectors(channel):
    """Probabilities of the vectors that are sent, the claim, and the sampler: many outputs of the table are one vector.

    A coordinate that is sent as 0 looks like one that is not sent.
    """
    table = cube_table(channel)
    values = [np.arange(-STEPS - channel.window.half, STEPS + channel.window.half + 1) / channel.window.gain / STEPS]
    if channel.flip is not None:
        values.append(np.array([1, -1]) / (1 - 2 * channel.flip / SCALE))
    vectors = []
    for subset in combinations(range(channel.dimension), channel.numbers):
        for sent in product(np.concatenate(values), repeat=channel.numbers):
            vectors.append(np.zeros(channel.dimension))
            vectors[-1][list(subset)] = np.array(sent) * channel.dimension / channel.numbers
    known, column = np.unique(np.round(vectors, 4), axis=0, return_inverse=True)
    merged = np.zeros((len(table), len(known)))
    np.add.at(merged, (slice(None), column), table)
    place = {row.tobytes(): number for number, row in enumerate(known + 0.0)}
    grid = np.array(list(product(np.arange(-STEPS, STEPS + 1) / STEPS, repeat=channel.dimension)))

    def draw(inputs, bits):
        draws = np.round(channel.sample(grid[inputs], bits).astype(np.float64), 4) + 0.0
        return np.array([place.get(row.tobytes(), -1) for row in draws])

    return merged, channel.guarantee.epsilon, draw


def one_cell_too_probable():
    """The true value itself is twice as probable as the others in its window (an index cut at its end)."""
    channel = CubeChannel("Piecewise", EPSILON, 1, Plan(1, 2, 1.0), steps=STEPS)
    table = channel.window.distributions()
    near = np.arange(len(table))
    inside = channel.window.threshold / SCALE
    in_window = np.isclose(table, inside / 5)
    table[in_window] = inside / 6
    table[near, near + channel.window.half] = inside / 3
    return table, channel.guarantee.epsilon


def window_cut_at_the_ends():
    """Outputs beyond -1 and 1 are moved to the ends before the window is drawn, so windows differ in size."""
    channel = CubeChannel("Piecewise", EPSILON, 1, Plan(1, 2, 1.0), steps=STEPS)
    inside, places = channel.window.threshold / SCALE, np.arange(-STEPS, STEPS + 1)
    near = np.abs(places - places[:, None]) <= 2
    chosen = inside * near / near.sum(axis=1, keepdims=True)
    return chosen + (1 - inside) * ~near / (~near).sum(axis=1, keepdims=True), channel.guarantee.epsilon


def whole_budget_a_coordinate():
    """Two of three coordinates, each with the budget of the vector."""
    channel = CubeChannel("Piecewise", 2 * EPSILON, 3, Plan(2, 1, 1.0), steps=1)
    return cube_table(channel), EPSILON


CASES = [
    _exact("weighted bits", False, weighted_bits, "all pairs of codes of two numbers"),
    _exact("bits, the highest budget for all", True, top_budget_for_all, "four budgets that do not add to epsilon"),
    _exact("bits, the whole budget a number", True, whole_budget_a_number, "two numbers spend twice epsilon"),
    _exact("bits, chances of 24 bits", True, chances_of_24_bits, "rounded down, the flips are rarer than claimed"),
    _exact("bits, a chance of 24 bits that vanishes", True, chances_of_24_bits_that_vanish, "infinite loss"),
    _exact("SUE, one-hot", False, unary(SymmetricUnary(epsilon=1.0)), "two bits differ"),
    _exact("OUE, one-hot", False, unary(OptimizedUnary(epsilon=1.0)), "two bits differ"),
    _exact("SUE, each bit at epsilon", True, symmetric_without_half, "two bits differ"),
    _exact("piecewise", False, cube(Piecewise(epsilon=EPSILON), 2, Plan(1, 2, 1.0)), "one of two coordinates"),
    _exact("piecewise, all coordinates", False, cube(Piecewise(epsilon=8.0), 2, Plan(2, 1, 1.0)), "half the budget"),
    _exact("hybrid", False, cube(Hybrid(epsilon=EPSILON), 2, Plan(1, 2, 0.4)), "the coin does not see the vector"),
    _exact("piecewise, one cell too probable", True, one_cell_too_probable, "the true value twice as often"),
    _exact("piecewise, windows cut at the ends", True, window_cut_at_the_ends, "short windows are denser"),
    _exact("piecewise, the whole budget a coordinate", True, whole_budget_a_coordinate, "two are sent"),
]


# -- sampled: the bytes that a device sends ---------------------------------------------------------------------------

DIMENSION = 2  # the loss of many bits is hardly ever reached
ONES = np.ones(DIMENSION)


def _sampled(name, broken, channel, epsilon, why):
    """All numbers 1 against all -1; the score adds each bit's log-likelihood ratio."""
    chances = np.tile(np.array(channel.thresholds[::-1]) / SCALE, channel.dimension)
    tells = np.log((1 - chances) / chances)

    def draw(sign, count, bits):
        return channel.send(np.tile(sign * ONES, (count, 1)), bits)

    def score(sent):
        return np.unpackbits(sent, axis=1, count=channel.bits) @ tells

    return Case(name, broken, lambda *run: judge_pair((1, -1), draw, score, PureDP(epsilon), *run), why)


def _too_little_noise(epsilon):
    """Calibrated for 1.5 times the budget."""
    thresholds = [flip_threshold(budget) for budget in bit_budgets(1.5 * epsilon / DIMENSION, 2)]
    return CodeChannel("WeightedBits", DIMENSION, thresholds)


SPENT = 4.0
TWO_BITS = WeightedBits(epsilon=SPENT, bits=2).channel(DIMENSION)
CASES += [
    _sampled("one bit a number, sent", False, OneBit(epsilon=SPENT).channel(DIMENSION), SPENT, "two bits"),
    _sampled("weighted bits, sent", False, TWO_BITS, SPENT, "four bits"),
    _sampled("weighted bits, sent, 1.5 times too little noise", True, _too_little_noise(SPENT), SPENT, "spends 6"),
]


def _cube_sampled(name, broken, channel, epsilon, why):
    """Two corners of the square; what tells most is in which windows the outputs lie."""
    reach = channel.window.half / channel.window.steps
    size = channel.dimension / channel.numbers / channel.window.gain

    def draw(sign, count, bits):
        return channel.sample(np.full((count, channel.dimension), sign), bits)

    def score(outputs):
        places = outputs / size  # in units of the numbers
        above, below = np.abs(places - 1) <= reach + 1e-6, np.abs(places + 1) <= reach + 1e-6
        return ((above.astype(float) - below) * (outputs != 0)).sum(axis=1)

    return Case(name, broken, lambda *run: judge_pair((1.0, -1.0), draw, score, PureDP(epsilon), *run), why)


LARGER = Piecewise(epsilon=4.5).channel(4)
CASES += [
    _cube_sampled("piecewise, drawn", False, Piecewise(epsilon=3.0).channel(4), 3.0, "one of four coordinates"),
    _cube_sampled("piecewise, drawn, 1.5 times too little noise", True, LARGER, 3.0, "spends 4.5"),
]
