"""Published protocols in the library's implementation: refuted at the printed epsilon, sound at their statements'.

Where all codes can be enumerated the audit is exact. Samples show about ln(samples) at most, so a true epsilon of 3451
is out of their reach, and the sound counterparts that are sampled are small.
"""

import numpy as np

import dptext
from dptext.noise.discrete import FINE_SCALE
from dptext.representations.published import DPNR, DPText
from dptext.representations.published_protocols import OME, OUE, SUE, numbers_of
from known_broken.case import SAMPLES, Case, PureDP, claim, judge_table
from known_broken.vectors_bits import bits_given_codes, sender

SAFE = {"unsafe_as_published": True}


def channel_of(protocol, dimension, **options):
    return protocol(**{"epsilon": 1.0, **options}, **SAFE).channel(dimension)


# -- exactly ---------------------------------------------------------------------------------------------------------


def table_of(channel):
    """(codes, outputs) probabilities of all codes that occur; bit j of a row's number is bit j of the code."""
    chances = [[int(entry) / FINE_SCALE for entry in side] for side in (channel.one, channel.zero)]
    return bits_given_codes(*chances)


def sampler_of(channel):
    """What the channel sends for a vector of each code that occurs."""
    shape = (channel.dimension, channel.length)
    ones = (np.arange(2**channel.bits)[:, None] >> np.arange(channel.bits) & 1).astype(bool)
    vectors = np.array([numbers_of(row.reshape(shape)) for row in ones])
    assert (channel.code_of(vectors) == ones).all()
    return sender(channel, vectors, lowest_first=True)


def _exact(name, broken, channel, epsilon, why):
    table, sampler = table_of(channel), sampler_of(channel)
    return Case(name, broken, lambda *run: judge_table(table, epsilon, sampler, run=run), why)


SMALL = {"bits": 3, "integer_bits": 1, "scores": "public"}


def _both(name, channel, why):
    """At the printed epsilon, and at the stated one."""
    return [
        _exact(f"{name}, as claimed", True, channel, channel.finding.claimed, why),
        _exact(f"{name}, as stated", False, channel, channel.guarantee.epsilon, "the worst pair of codes that occur"),
    ]


CASES = [
    *_both("OME, six bits", channel_of(OME, 2, lambda_=10.0, **SMALL), "the worst cases of even and odd bits add"),
    *_both(
        "OME, nine bits (odd)",
        channel_of(OME, 3, lambda_=2.0, **SMALL),
        "five even bits and four odd ones, each at its worst",
    ),
    *_both("OUE, any code", channel_of(OUE, 1, bits=5, scores="public"), "sound for one-hot input only"),
    *_both("SUE, any code", channel_of(SUE, 2, **SMALL), "three bits of a number differ, not two"),
    _exact("OME, lambda 1, as claimed", False, channel_of(OME, 2, lambda_=1.0, **SMALL), 1.0, "half of it is true"),
]


# -- by samples ------------------------------------------------------------------------------------------------------


def bit_score(channel):
    """The log-likelihood ratio of bits, for the channel's own pair of inputs."""
    codes = channel.code_of(np.stack(channel.witness))
    one, other = (np.where(code, channel.one, channel.zero).astype(np.float64) / FINE_SCALE for code in codes)
    tells = np.log(one / other) - np.log((1 - one) / (1 - other))
    return lambda outputs: outputs @ tells


def distance_score(channel):
    """How much nearer outputs are to the first min-max vector, coordinate by coordinate."""
    first, second = channel.witness
    return lambda outputs: (np.abs(outputs - second) - np.abs(outputs - first)).sum(axis=1)


def shape_score(channel):
    """How much nearer outputs are to the first, less their smallest number."""
    first, second = channel.witness

    def score(outputs):
        left = outputs - outputs.min(axis=1, keepdims=True)
        return ((left - second) ** 2).sum(axis=1) - ((left - first) ** 2).sum(axis=1)

    return score


def below_score(channel):
    """How many numbers lie below the second vector and not the first: noise that is never negative put none there."""
    first, second = channel.witness
    return lambda outputs: (outputs < second).sum(axis=1) - (outputs < first).sum(axis=1)


def _sampled(name, broken, channel, epsilon, why, score=bit_score, samples=SAMPLES):
    def run(seed, error):
        return dptext.audit(
            channel,
            claim(PureDP(epsilon)),
            pair=channel.witness,
            score=score(channel),
            samples=samples,
            error=error,
            seed=seed,
        )

    return Case(name, broken, run, why)


PAPER = channel_of(OME, 50)
FEW = channel_of(OME, 2, lambda_=1.5, **SMALL)
STATED = channel_of(SUE, 50, epsilon=0.2, scores="public")
MANY, SOME = channel_of(DPNR, 64), channel_of(DPNR, 4, epsilon=0.5)
ONE_SCALAR = channel_of(DPNR, 64, noise="one scalar")

CASES += [
    _sampled("OME, lambda 100", True, PAPER, 1.0, "true epsilon 3451", samples=SAMPLES // 4),
    _sampled("OME, six bits, sent", False, FEW, FEW.guarantee.epsilon, "its true epsilon"),
    _sampled("OME, six bits, sent, as claimed", True, FEW, FEW.finding.claimed, "the same bits"),
    _sampled("SUE, 500 bits, as stated", False, STATED, 1.0, "claims eps / 500 a bit", samples=SAMPLES // 4),
    _sampled("DPNR, Laplace(1/eps) each", True, MANY, 1.0, "true epsilon 64", score=distance_score),
    _sampled("DPNR, four numbers, as stated", False, SOME, 2.0, "four times the claim", score=distance_score),
    _sampled("DPNR, four numbers, as claimed", True, SOME, 0.5, "true epsilon 2", score=distance_score),
    _sampled("DPNR's code, one scalar", True, ONE_SCALAR, 1.0, "subtract the minimum", shape_score),
    _sampled("DPText, epsilon .1", True, channel_of(DPText, 64, epsilon=0.1), 0.1, "never negative", score=below_score),
]
