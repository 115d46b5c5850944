"""Whether private vectors are drawn from the noise that their statement names.

A statement names a mechanism and the constants of its noise. From these alone, `stated_noise` draws the noise a second
time: nothing is shared with the mechanism under audit. `compare_vectors` draws about 2,000 outputs from both, for
inputs that differ from row to row (axes, diagonals, short, sparse and zero vectors), and compares three statistics:

- the length of the noise: its scale;
- the projection of the noise on the input: whether the output leans towards the input more than stated;
- the cosine between the noise of neighbouring rows: whether rows share their noise.

Length and projection are compared for each kind of input and for all of them together, the cosine between neighbouring
rows of a call and between the same row of two calls; and the scores that a sampled audit has drawn. Each comparison
gets an equal share of the error (Bonferroni), and half of that share is for the reference draws (Dvoretzky, Kiefer and
Wolfowitz 1956, with the constant of Massart 1990), so a mechanism with exactly the stated noise is found to differ with
probability at most ``error``, for every number of draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.audits.draws import DrawTest
from dptext.errors import ParameterError, extra
from dptext.privacy.accounting import gaussian_epsilon
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement

__all__ = ["StatedNoise", "compare_vectors", "distance_from", "stated_noise"]

Floats: TypeAlias = npt.NDArray[np.float64]
Draw: TypeAlias = Callable[[Floats, RandomBits], npt.ArrayLike]
"""((n, d) vectors, bits) -> (n, k) private ones, each with noise of its own."""

_KINDS = ("axis", "diagonal", "dense", "sparse", "short")
_ROWS = 2_000
_REFERENCE = 5  # reference draws for each draw
_FEW = 50
_SMOOTHED = 1e-3  # of the scale of a statistic
_NUMBERS = 1 << 20  # of one call
_NUMBERS_IN_ALL = 1 << 20


def distance_from(draws: npt.ArrayLike, cdf: Callable[[Floats], npt.ArrayLike]) -> tuple[float, float]:
    """Compare independent draws with a known distribution function (Kolmogorov-Smirnov).

    Args:
        draws: (n,) numbers.
        cdf: (m,) numbers -> (m,) probabilities of at most this number. It may have jumps.

    Returns:
        D, the largest distance between the share of draws up to a number and its probability, and a bound on the
        probability that draws of this distribution are at least as far away: 2 exp(-2 n D^2) (Massart 1990), for every
        n. A draw that is not finite gives (1, 0).

    Raises:
        ParameterError: no draws.

    >>> distance_from([0.1, 0.4, 0.8], lambda numbers: numbers)[0].__round__(3)
    0.267
    """
    ordered = np.sort(np.asarray(draws, dtype=np.float64))
    if ordered.ndim != 1 or ordered.size == 0:
        raise ParameterError(f"draws must have shape (n,) with n >= 1, got {ordered.shape}")
    if not np.isfinite(ordered).all():
        return 1.0, 0.0
    places, counts = np.unique(ordered, return_counts=True)
    up_to = np.cumsum(counts) / ordered.size
    above = np.abs(up_to - np.asarray(cdf(places)))
    below = np.abs(up_to - counts / ordered.size - np.asarray(cdf(np.nextafter(places, -np.inf))))
    distance = float(max(above.max(), below.max()))
    return distance, min(1.0, 2 * math.exp(-2 * ordered.size * distance**2))


# -- what a statement names ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StatedNoise:
    """The noise that a statement names.

    Attributes:
        domain: of the vectors.
        dimension: of the vectors, and of the outputs.
        draw: ((n, d) vectors of the domain, bits) -> (n, d) outputs, each with noise of its own.
        loss: two (d,) vectors -> the privacy loss of this noise between them, or between any two vectors; at the
            statement's delta.
    """

    domain: str
    dimension: int
    draw: Draw
    loss: Callable[[Floats, Floats], float]


def stated_noise(claim: PrivacyStatement) -> StatedNoise | None:
    """Return the noise that a statement names, or None where it names none that is known here."""
    build = _NOISES.get(claim.mechanism)
    try:
        return None if build is None else build(_Constants(claim))
    except (KeyError, TypeError, ValueError):  # a statement of another origin under the same name
        return None


class _Constants:
    """The constants of a statement, by name."""

    def __init__(self, claim: PrivacyStatement) -> None:
        self._parameters: dict[str, Any] = dict(claim.parameters)
        self.domain, self.dimension = str(self["domain"]), int(self["dimension"])
        self.delta: float = getattr(claim.guarantee, "delta", 0.0)

    def __getitem__(self, name: str) -> Any:
        return self._parameters[name]

    def threshold(self, name: str) -> float:
        """Return a number of multiples of 2^-32 as a chance; 0 if it is missing."""
        return float(self._parameters.get(name, 0)) * 2.0**-32

    def noise(self, draw: Draw, loss: Callable[[Floats, Floats], float] | float) -> StatedNoise:
        """Return the noise; a number as ``loss`` is the loss between any two vectors."""
        of_pair = loss if callable(loss) else lambda _first, _second: loss
        return StatedNoise(self.domain, self.dimension, draw, of_pair)


def _laplace(of: _Constants) -> StatedNoise:
    scale = float(of["scale"])
    return of.noise(
        lambda x, bits: x + scale * (bits.exponential(*x.shape) - bits.exponential(*x.shape)),
        lambda first, second: float(np.abs(first - second).sum()) / scale,
    )


def _normalised_laplace(of: _Constants) -> StatedNoise:
    """Laplace noise on vectors of L1 norm 1."""
    draw = _laplace(of).draw
    return of.noise(lambda x, bits: draw(x / np.abs(x).sum(axis=1, keepdims=True), bits), 2 / float(of["scale"]))


def _l2_laplace(of: _Constants) -> StatedNoise:
    scale = float(of["scale"])

    def draw(x: Floats, bits: RandomBits) -> Floats:
        radius = scale * bits.exponential(*x.shape).sum(axis=1)  # a gamma variable of shape d
        outputs: Floats = x + radius[:, None] * _directions(bits.normal(*x.shape))
        return outputs

    return of.noise(draw, lambda first, second: float(np.linalg.norm(first - second)) / scale)


def _gaussian(of: _Constants) -> StatedNoise:
    sigma = float(of["sigma"])
    return of.noise(
        lambda x, bits: x + sigma * bits.normal(*x.shape),
        lambda first, second: gaussian_epsilon(
            sigma, delta=of.delta, sensitivity=float(np.linalg.norm(first - second))
        ),
    )


def _cap(of: _Constants, *, sphere: bool) -> StatedNoise:
    """PrivUnit2 (``sphere``) or PrivUnitG: the height above the input by its inverse distribution function."""
    special = extra("scipy.special", "audit", "the stated noise")
    height, chance, d = float(of["cap_height"]), float(of["cap_chance"]), of.dimension
    shape = (d - 1) / 2
    if sphere:
        mass = float(special.betainc(shape, shape, (1 - height) / 2))
        first = math.exp(shape * math.log1p(-height * height) - special.betaln(0.5, shape)) / (d - 1)
    else:
        mass = float(special.ndtr(-height * math.sqrt(d)))
        first = math.exp(-(height**2) * d / 2) / math.sqrt(2 * math.pi * d)
    shrinkage = first * (chance / mass - (1 - chance) / (1 - mass))

    def draw(x: Floats, bits: RandomBits) -> Floats:
        inside, share = bits.uniform(len(x)) <= chance, bits.uniform(len(x))
        above = np.where(inside, share * mass, mass + share * (1 - mass))  # the chance of a greater height
        heights = 1 - 2 * special.betaincinv(shape, shape, above) if sphere else -special.ndtri(above) / math.sqrt(d)
        across = bits.normal(*x.shape)
        across -= np.einsum("ij,ij->i", across, x)[:, None] * x
        if sphere:
            across = _directions(across) * np.sqrt(1 - heights**2)[:, None]
        else:
            across /= math.sqrt(d)
        outputs: Floats = np.rint((heights[:, None] * x + across) * 2.0**20) / (2.0**20 * shrinkage)
        return outputs

    return of.noise(draw, math.log(chance * (1 - mass)) - math.log(mass * (1 - chance)))


def _codes(of: _Constants) -> StatedNoise:
    """Numbers rounded to a code at random, and flipped bits."""
    thresholds = str(of["flip_thresholds"]).removesuffix(" of 2^32").split()
    chances = np.array([float(each) for each in thresholds][::-1]) * 2.0**-32  # the lowest bit first
    last = 2**chances.size - 1

    def draw(x: Floats, bits: RandomBits) -> Floats:
        codes = np.floor((x + 1) * last / 2 + 1 - bits.uniform(*x.shape)).astype(np.int64)
        outputs = np.zeros(x.shape)
        for place, chance in enumerate(chances):
            signs = 2.0 * (codes >> place & 1) - 1
            flips = np.where(bits.uniform(*x.shape) <= chance, -1.0, 1.0)
            outputs += 2.0**place / last / (1 - 2 * chance) * signs * flips
        return outputs

    return of.noise(draw, of.dimension * float(np.log(1 / chances - 1).sum()))


def _unary(of: _Constants) -> StatedNoise:
    one, zero = of.threshold("one_threshold"), of.threshold("zero_threshold")

    def draw(x: Floats, bits: RandomBits) -> Floats:
        ones = bits.uniform(*x.shape) <= np.where(x > 0, one, zero)
        outputs: Floats = (ones - zero).astype(np.float64) / (one - zero)
        return outputs

    return of.noise(draw, math.log(one * (1 - zero)) - math.log((1 - one) * zero))


def _window(of: _Constants) -> StatedNoise:
    """Some coordinates, each through a window or as one bit."""
    sent, flip = int(of["numbers_sent"]), of.threshold("flip_threshold")
    inside, windowed = of.threshold("window_threshold"), of.threshold("windowed_threshold")
    steps, half = (int(of["steps"]), int(of["half_window"])) if windowed else (1, 0)
    scale, size = of.dimension / sent, 2 * half + 1

    def draw(x: Floats, bits: RandomBits) -> Floats:
        outputs = np.zeros(x.shape)
        if windowed:
            near = np.floor(x * steps + 1 - bits.uniform(*x.shape))
            beside = np.ceil(bits.uniform(*x.shape) * size) - 1 - half + near
            far = np.ceil(bits.uniform(*x.shape) * 2 * steps) - 1 - steps - half
            far += size * (far >= near - half)
            gain = inside - (1 - inside) * size / (2 * steps)
            outputs = np.where(bits.uniform(*x.shape) <= inside, beside, far) / (gain * steps)
        if flip:
            up = bits.uniform(*x.shape) <= (1 + x * (1 - 2 * flip)) / 2
            as_bit = np.where(up, 1.0, -1.0) / (1 - 2 * flip)
            outputs = np.where(bits.uniform(*x.shape) <= windowed, outputs, as_bit)
        ranks = bits.uniform(*x.shape).argsort(axis=1).argsort(axis=1)
        return np.where(ranks < sent, scale * outputs, 0.0)

    losses = [math.log(1 / flip - 1)] if flip else []
    if windowed:
        losses.append(math.log(inside * 2 * steps) - math.log((1 - inside) * size))
    return of.noise(draw, sent * max(losses))


_NOISES: dict[str, Callable[[_Constants], StatedNoise]] = {
    "Laplace": _laplace,
    "L2Laplace": _l2_laplace,
    "CappedLaplace": _l2_laplace,
    "NormalisedLaplace": _normalised_laplace,
    "Gaussian": _gaussian,
    "PrivUnit": partial(_cap, sphere=True),
    "PrivUnitG": partial(_cap, sphere=False),
    "OneBit": _codes,
    "WeightedBits": _codes,
    "SymmetricUnary": _unary,
    "OptimizedUnary": _unary,
    "Piecewise": _window,
    "Hybrid": _window,
}


# -- the comparison --------------------------------------------------------------------------------------------------


def compare_vectors(
    draw: Draw,
    noise: StatedNoise,
    *,
    error: float,
    bits: RandomBits,
    scores: Sequence[tuple[Floats, Floats]] = (),
) -> DrawTest:
    """Compare outputs of a mechanism with outputs of the stated noise, as the module's docstring says.

    Args:
        draw: ((n, d) vectors, bits) -> (n, d) outputs of the mechanism, each with noise of its own.
        noise: what its statement names.
        error: a bound on the probability that draws of exactly this noise are found to differ.
        bits: for inputs and draws.
        scores: more to compare: scores of outputs of the mechanism, and of the noise.
    """
    rows = max(4, min(_ROWS, _NUMBERS_IN_ALL // noise.dimension))
    drawn = _statistics(draw, noise, rows, bits)
    expected = _statistics(noise.draw, noise, _REFERENCE * rows, bits)
    for place, (of_mechanism, of_noise) in enumerate(scores, start=1):
        name = f"the score of outputs of vector {place} of the pair"
        drawn[name], expected[name] = of_mechanism, of_noise
    log_share = math.log(error / (2 * len(drawn)) / 2)  # a bound that holds on both sides counts twice
    for name, values in drawn.items():
        reference = expected[name]
        few = reference[: min(_FEW, reference.size // 2)]  # they set the scale, and are not compared
        # outputs of probability above 0 that differ in their last digit are the same output
        width = _SMOOTHED * float(np.abs(few).max(initial=0.0))
        values, reference = (each + width * bits.uniform(each.size) for each in (values, reference[few.size :]))
        if not values.size or not reference.size:
            continue
        distance, _ = distance_from(values, partial(_share_up_to, np.sort(reference)))
        by_chance = sum(math.sqrt(-log_share / (2 * each.size)) for each in (values, reference))
        if distance > by_chance:
            found = f"{name}, {values.size:,} draws: off by {distance:.2f}, where chance explains {by_chance:.2f}"
            return DrawTest(agree=False, draws=rows, inputs=rows, error=error, found=found)
    return DrawTest(agree=True, draws=rows, inputs=rows, error=error, found="")


def _share_up_to(ordered: Floats, numbers: Floats) -> Floats:
    shares: Floats = np.searchsorted(ordered, numbers, side="right") / ordered.size
    return shares


def _statistics(draw: Draw, noise: StatedNoise, rows: int, bits: RandomBits) -> dict[str, Floats]:
    """Return the statistics of the module's docstring, by name: of independent draws each."""
    calls = 2 * -(-rows * noise.dimension // (2 * _NUMBERS))
    of_a_call = 2 * -(-rows // (2 * calls))
    parts = []
    for _ in range(calls):
        kinds, vectors = _inputs(noise, of_a_call, bits)
        outputs = np.asarray(draw(vectors.copy(), bits), dtype=np.float32)
        parts.append((kinds, vectors, outputs.astype(np.float64) - vectors))
    kinds, lengths, along = (
        np.concatenate(each)
        for each in zip(
            *((of, _lengths(moved), _cosines(moved, x) * _lengths(moved)) for of, x, moved in parts), strict=True
        )
    )
    found = {"the length of the noise": lengths, "the projection of the noise on the input": along}
    for kind, name in enumerate(_KINDS):
        found |= {f"{what} ({name} vectors)": values[kinds == kind] for what, values in [*found.items()][:2]}
    moves = [moved for _, _, moved in parts]
    found["the cosine of the noise of neighbouring rows"] = np.concatenate(
        [_cosines(moved[::2], moved[1::2]) for moved in moves]
    )
    found["the cosine of the noise of one row in two calls"] = np.concatenate(
        [_cosines(one, other) for one, other in zip(moves[::2], moves[1::2], strict=True)]
    )
    return found


def _inputs(noise: StatedNoise, rows: int, bits: RandomBits) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the kind of each row, and vectors of the domain."""
    shape = (rows, noise.dimension)
    kinds, one, other = (
        bits.below(np.full(rows, bound, dtype=np.uint64)).astype(np.int64)
        for bound in (len(_KINDS), noise.dimension, noise.dimension)
    )
    axes, pairs = np.zeros(shape), np.zeros(shape)
    axes[np.arange(rows), one] = 1.0
    if noise.domain == "one-hot":
        return kinds, axes
    normal = bits.normal(*shape)
    signs = np.where(normal > 0, 1.0, -1.0)
    pairs[np.arange(rows), one] = pairs[np.arange(rows), other] = 1.0
    every = kinds[:, None]
    vectors = np.select([every == 0, every == 1, every == 3], [axes * signs, signs, pairs * normal], normal)
    vectors /= np.abs(vectors).max(axis=1, keepdims=True) if noise.domain == "unit cube" else _lengths(vectors)[:, None]
    if noise.domain != "unit sphere":  # half of the short ones are zero
        vectors[kinds == 4] *= np.maximum(0.0, 2 * bits.uniform(rows, 1)[kinds == 4] - 1)
    return kinds, vectors


def _lengths(vectors: Floats) -> Floats:
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return lengths


def _directions(vectors: Floats) -> Floats:
    return vectors / np.maximum(_lengths(vectors), 1e-300)[:, None]


def _cosines(first: Floats, second: Floats) -> Floats:
    cosines: Floats = np.einsum("ij,ij->i", _directions(first), _directions(second))
    return cosines
