"""Goodness-of-fit tests of samplers against the distribution or the noise that their statement names.

Derivation: docs/understand/audits.md#audits-draws
Derivation: docs/understand/audits.md#audits-goodness
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.audits.losses import Floats, call_mechanism
from dptext.errors import ParameterError, extra
from dptext.privacy.gaussian import gaussian_epsilon
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.threads import for_each_block

Rows: TypeAlias = npt.NDArray[np.int64]
Sampler: TypeAlias = Callable[[Rows, RandomBits], npt.ArrayLike]
"""((n,) input indices, bits) -> (n,) output indices, drawn independently; an index out of range is not an output."""

Release: TypeAlias = Callable[[list[str], RandomBits], Sequence[str]]
"""(documents, bits) -> one private text per document."""

_TESTS = 5
_DOCUMENTS = 2_000
_REFERENCE = 5  # reference documents per document
_EXPECTED = 5.0  # smallest expected number of draws in a group
_ALONE = 48  # largest number of outputs that form their own group
_TOGETHER = 16  # largest number of groups of the other outputs


@dataclass(frozen=True)
class DrawTest:
    """Comparison of draws with a distribution or with stated noise."""

    agree: bool
    draws: int
    inputs: int
    error: float
    witness: str


def compare_draws(
    log_probabilities: Floats,
    sampler: Sampler,
    *,
    samples: int,
    error: float,
    bits: RandomBits,
    names: Sequence[str],
    outputs: Sequence[str] | None = None,
    closely: Sequence[int] = (),
) -> DrawTest:
    """Draw outputs for every input, and compare them with the reported distribution."""
    size = len(log_probabilities)
    inputs = _inputs(size, samples // 2, closely, bits)
    once, repeated = (_drawn(sampler, inputs, bits) for _ in range(2))
    every, draws = np.concatenate([inputs, inputs]), np.concatenate([once, repeated])

    def output_name(output: int) -> str:
        return f"output {output}" if outputs is None else f"the output {outputs[output]!r}"

    witness = _impossible(log_probabilities, every, draws, names, output_name)
    if not witness:
        order = np.argsort(every, kind="stable")
        parts = np.split(draws[order], np.searchsorted(every[order], np.arange(1, size)))
        rows: list[Any] = [None] * size

        def compare(row: int) -> None:
            rows[row] = _compared_row(log_probabilities[row], parts[row], output_name)

        for_each_block(compare, range(size))
        log_error = math.log(error / _TESTS)
        witness = _off(rows, log_error, names) or _repeated(rows, inputs, once, repeated, log_error)
    return DrawTest(agree=not witness, draws=draws.size, inputs=size, error=error, witness=witness)


def compare_releases(
    released: Release, expected: Release, parts: Sequence[str], *, copies: int, error: float, bits: RandomBits
) -> DrawTest:
    """Release documents of equal parts, each twice, and compare the repetitions with independent draws."""
    chosen = bits.below(np.full(_DOCUMENTS // 2, len(parts), dtype=np.uint64)).tolist()
    documents = [" ".join([parts[place]] * copies) for place in chosen for _ in range(2)]
    observed = _repeats(released(documents, bits))
    reference = [_repeats(expected(documents, bits)) for _ in range(_REFERENCE)]
    log_share = math.log(error / 8)  # two means, two sides, draws and reference
    witness = ""
    for name, values in observed.items():
        share, mean = float(values.mean()), float(np.mean([entry[name] for entry in reference]))
        by_chance = sum(math.sqrt(-log_share / (2 * n)) for n in (values.size, _REFERENCE * values.size))
        if abs(share - mean) > by_chance and not witness:
            witness = f"{name}: {share:.1%} in {values.size:,} cases (expected: {mean:.1%})"
    return DrawTest(agree=not witness, draws=len(documents), inputs=len(parts), error=error, witness=witness)


def _repeats(private: Sequence[str]) -> dict[str, Floats]:
    words = [text.split() for text in private]
    return {
        "different words in documents of equal parts": np.array([len({*word}) / max(1, len(word)) for word in words]),
        "equal documents with equal outputs": np.array([one == other for one, other in pairwise(private)][::2], float),
    }


def _inputs(count: int, draws: int, closely: Sequence[int], bits: RandomBits) -> Rows:
    """Return the inputs of a call in random order, each at least twice."""
    minimum = max(2, draws // count // (2 if closely else 1))
    more = draws // 2 // len(closely) if closely else 0
    inputs = np.repeat([*range(count), *closely], [minimum] * count + [more] * len(closely)).astype(np.int64)
    return inputs[np.argsort(bits.uniform(inputs.size))]


def _drawn(sampler: Sampler, inputs: Rows, bits: RandomBits) -> Rows:
    draws = call_mechanism(lambda: sampler(inputs.copy(), bits), inputs.size)
    if draws.shape != inputs.shape or draws.dtype.kind not in "iu":
        raise ParameterError(
            f"the mechanism must return one output per input, got shape {draws.shape} for {inputs.size} inputs"
        )
    return draws.astype(np.int64)


def _impossible(
    logs: Floats, inputs: Rows, sample: Rows, names: Sequence[str], output_name: Callable[[int], str]
) -> str:
    is_known = (sample >= 0) & (sample < logs.shape[1])
    chances = np.zeros(sample.size)
    chances[is_known] = np.exp(logs[inputs[is_known], sample[is_known]])
    places = np.flatnonzero(chances == 0.0)
    if not places.size:
        return ""
    first = places[0]
    text = output_name(sample[first]) if is_known[first] else "an unknown output"
    return (
        f"under {names[inputs[first]]!r} {text} was drawn, which has probability 0. This "
        f"affects {places.size:,} of {sample.size:,} draws"
    )


class _ComparedRow(NamedTuple):
    """Draws of one input compared with its probabilities."""

    draws: int
    distance: float  # G of equation (tail)
    freedom: int  # K
    likeliest: int  # count of the likeliest output
    highest: float  # its probability
    equal: float  # probability that two draws are equal
    worst: str  # group of outputs with the largest deviation


def _compared_row(logs: Floats, sample: Rows, output_name: Callable[[int], str]) -> _ComparedRow:
    chances = np.exp(logs)
    chances /= chances.sum()
    order = np.argsort(-chances, kind="stable")
    starts = _groups(chances[order], sample.size)
    expected = sample.size * np.add.reduceat(chances[order], starts)
    counts = np.add.reduceat(np.bincount(sample, minlength=chances.size)[order], starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, counts * np.log(counts / expected), 0.0)
    worst = int(np.argmax(terms - counts + expected))
    size = int(np.append(starts, chances.size)[worst + 1] - starts[worst])
    text = output_name(int(order[starts[worst]])) if size == 1 else f"one of a group of {size:,} outputs"
    return _ComparedRow(
        draws=sample.size,
        distance=max(0.0, float(terms.sum())),
        freedom=starts.size - 1,
        likeliest=int((sample == order[0]).sum()),
        highest=float(chances[order[0]]),
        equal=float((chances**2).sum()),
        worst=f"{text} was drawn {counts[worst]:,} times (expected: {expected[worst]:,.1f})",
    )


def _groups(falling: Floats, draws: int) -> Rows:
    """Return the starts of groups of sorted outputs: single ones, then several with about equal total probability."""
    alone = int(np.searchsorted(-falling[:_ALONE] * draws, -_EXPECTED, side="right"))
    rest = falling[alone:]
    if not rest.any():
        return np.arange(max(alone, 1))
    sums = np.cumsum(rest)
    together = int(np.clip(draws * sums[-1] // _EXPECTED, 1, _TOGETHER))
    borders = np.searchsorted(sums, sums[-1] * np.arange(together) / together, side="right")
    return np.append(np.arange(alone), alone + np.unique(borders))


def _log_tail(distance: float, freedom: int) -> float:
    """Return the logarithm of equation (tail)."""
    if distance <= freedom:
        return 0.0
    return freedom - distance + (freedom * math.log(distance / freedom) if freedom else 0.0)


def _off(rows: Sequence[_ComparedRow], log_error: float, names: Sequence[str]) -> str:
    """Describe a group of outputs drawn too often or too rarely, or an excess of the likeliest outputs, if any."""
    tails = [_log_tail(row.distance, row.freedom) for row in rows]
    place = int(np.argmin(tails))
    together = _log_tail(sum(row.distance for row in rows), sum(row.freedom for row in rows))
    if tails[place] <= log_error - math.log(len(rows)) or together <= log_error:
        return f"under {names[place]!r} {rows[place].worst}"
    draws = sum(row.draws for row in rows)
    share = sum(row.likeliest for row in rows) / draws
    mean = sum(row.draws * row.highest for row in rows) / draws
    if -draws * _divergence(share, min(mean, 1.0)) > log_error - math.log(2):
        return ""
    return f"{share:.2%} of {draws:,} draws are the likeliest output of their input (expected: {mean:.2%})"


def _repeated(rows: Sequence[_ComparedRow], inputs: Rows, once: Rows, second: Rows, log_error: float) -> str:
    chances = np.array([row.equal for row in rows])
    order = np.argsort(inputs, kind="stable")
    place = np.arange(inputs.size) - np.searchsorted(inputs[order], inputs[order])
    first = np.flatnonzero((place[:-1] % 2 == 0) & (np.diff(inputs[order]) == 0))
    pairs = {
        "of two calls for the same inputs": (inputs, once, second),
        "of one call for the same input": (inputs[order[first]], once[order[first]], once[order[first + 1]]),
    }
    for label, (which, one, other) in pairs.items():
        share, mean = float((one == other).mean()), float(chances[which].mean())
        if share > mean and -which.size * _divergence(share, min(mean, 1.0)) <= log_error:
            return f"{share:.2%} of {which.size:,} pairs of draws {label} are equal (expected: {mean:.2%})"
    return ""


def _divergence(one: float, other: float) -> float:
    terms = [(one, other), (1 - one, 1 - other)]
    return sum(a * math.log(a / b) if b > 0 else math.inf for a, b in terms if a > 0)


Draw: TypeAlias = Callable[[Floats, RandomBits], npt.ArrayLike]
"""((n, d) vectors, bits) -> (n, k) private vectors with independent noise."""
Constants: TypeAlias = dict[str, Any]
Noise: TypeAlias = tuple[Draw, Callable[[Floats, Floats], float] | float]

_KINDS = ("axis", "diagonal", "dense", "sparse", "short")
_ROWS = 2_000
_FEW = 50
_SMOOTHED = 1e-3  # relative to the scale of a statistic
_NUMBERS = 1 << 20  # per call
_NUMBERS_IN_ALL = 1 << 20


class StatedNoise(NamedTuple):
    """The noise that a statement names."""

    domain: str
    dimension: int
    draw: Draw
    loss: Callable[[Floats, Floats], float]


def stated_noise(claim: PrivacyStatement) -> StatedNoise | None:
    """Return the noise that a statement names, or None if the noise is unknown."""
    constants: Constants = {"delta": claim.delta, **claim.parameters}
    try:
        draw, loss = _NOISES[claim.mechanism](constants)
        domain, dimension = str(constants["domain"]), int(constants["dimension"])
    except (KeyError, TypeError, ValueError):  # no known noise, or a foreign statement with the same mechanism name
        return None
    return StatedNoise(domain, dimension, draw, loss if callable(loss) else lambda _first, _second: loss)


def _laplace(constants: Constants, *, normalised: bool) -> Noise:
    """Return Laplace noise on every coordinate of the vector, or of the vector divided by its L1 norm."""
    scale = constants["scale"]

    def draw(x: Floats, bits: RandomBits) -> Floats:
        noise = scale * (bits.exponential(*x.shape) - bits.exponential(*x.shape))
        outputs: Floats = noise + (x / np.abs(x).sum(axis=1, keepdims=True) if normalised else x)
        return outputs

    return draw, 2 / scale if normalised else lambda first, second: float(np.abs(first - second).sum()) / scale


def _l2_laplace(constants: Constants) -> Noise:
    scale = constants["scale"]

    def draw(x: Floats, bits: RandomBits) -> Floats:
        radius = scale * bits.exponential(*x.shape).sum(axis=1)  # a gamma variable of shape d
        outputs: Floats = x + radius[:, None] * _directions(bits.normal(*x.shape))
        return outputs

    return draw, lambda first, second: float(np.linalg.norm(first - second)) / scale


def _gaussian(constants: Constants) -> Noise:
    sigma, delta = constants["sigma"], constants["delta"]

    def loss(first: Floats, second: Floats) -> float:
        return gaussian_epsilon(sigma, delta=delta, sensitivity=float(np.linalg.norm(first - second)))

    return lambda x, bits: x + sigma * bits.normal(*x.shape), loss


def _cap(constants: Constants, *, sphere: bool) -> Noise:
    """Return PrivUnit2 (``sphere``) or PrivUnitG; the height comes from its inverse distribution function."""
    special = extra("scipy.special", "audit", "the stated noise")
    height, chance, d = constants["cap_height"], constants["cap_chance"], constants["dimension"]
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
        above = np.where(inside, share * mass, mass + share * (1 - mass))  # probability of a greater height
        heights = 1 - 2 * special.betaincinv(shape, shape, above) if sphere else -special.ndtri(above) / math.sqrt(d)
        across = bits.normal(*x.shape)
        across -= np.einsum("ij,ij->i", across, x)[:, None] * x
        across = _directions(across) * np.sqrt(1 - heights**2)[:, None] if sphere else across / math.sqrt(d)
        outputs: Floats = np.rint((heights[:, None] * x + across) * 2.0**20) / (2.0**20 * shrinkage)
        return outputs

    return draw, math.log(chance * (1 - mass)) - math.log(mass * (1 - chance))


def _codes(constants: Constants) -> Noise:
    """Return noise that rounds numbers to a code at random and flips its bits."""
    thresholds = constants["flip_thresholds"].removesuffix(" of 2^32").split()
    chances = np.array([float(threshold) for threshold in reversed(thresholds)]) * 2.0**-32  # the lowest bit first
    last = 2**chances.size - 1

    def draw(x: Floats, bits: RandomBits) -> Floats:
        codes = np.floor((x + 1) * last / 2 + 1 - bits.uniform(*x.shape)).astype(np.int64)
        outputs = np.zeros(x.shape)
        for place, chance in enumerate(chances):
            signs = np.where(bits.uniform(*x.shape) <= chance, -1.0, 1.0) * (2.0 * (codes >> place & 1) - 1)
            outputs += 2.0**place / last / (1 - 2 * chance) * signs
        return outputs

    return draw, constants["dimension"] * float(np.log(1 / chances - 1).sum())


def _unary(constants: Constants) -> Noise:
    one, zero = constants["one_threshold"] * 2.0**-32, constants["zero_threshold"] * 2.0**-32

    def draw(x: Floats, bits: RandomBits) -> Floats:
        ones = bits.uniform(*x.shape) <= np.where(x > 0, one, zero)
        outputs: Floats = np.where(ones, 1 - zero, -zero) / (one - zero)
        return outputs

    return draw, math.log(one * (1 - zero)) - math.log((1 - one) * zero)


def _window(constants: Constants) -> Noise:
    """Return noise that sends some coordinates, each through a window or as one bit."""
    names = ("window_threshold", "windowed_threshold", "flip_threshold")
    inside, windowed, flip = (constants.get(name, 0) * 2.0**-32 for name in names)
    sent, steps, half = constants["numbers_sent"], constants.get("steps", 1), constants.get("half_window", 0)
    scale, size = constants["dimension"] / sent, 2 * half + 1

    def draw(x: Floats, bits: RandomBits) -> Floats:
        outputs = np.zeros(x.shape)
        if windowed:
            middle = np.floor(x * steps + 1 - bits.uniform(*x.shape))
            near = np.ceil(bits.uniform(*x.shape) * size) - 1 - half + middle
            far = np.ceil(bits.uniform(*x.shape) * 2 * steps) - 1 - steps - half
            far += size * (far >= middle - half)
            gain = inside - (1 - inside) * size / (2 * steps)
            outputs = np.where(bits.uniform(*x.shape) <= inside, near, far) / (gain * steps)
        if flip:
            up = bits.uniform(*x.shape) <= (1 + x * (1 - 2 * flip)) / 2
            as_bit = np.where(up, 1.0, -1.0) / (1 - 2 * flip)
            outputs = np.where(bits.uniform(*x.shape) <= windowed, outputs, as_bit)
        ranks = bits.uniform(*x.shape).argsort(axis=1).argsort(axis=1)
        return np.where(ranks < sent, scale * outputs, 0.0)

    losses = [math.log(1 / flip - 1)] if flip else []
    if windowed:
        losses.append(math.log(inside * 2 * steps) - math.log((1 - inside) * size))
    return draw, sent * max(losses)


_NOISES: dict[str, Callable[[Constants], Noise]] = {
    "Laplace": partial(_laplace, normalised=False),
    "NormalisedLaplace": partial(_laplace, normalised=True),
    "L2Laplace": _l2_laplace,
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
"""Noise by mechanism name, built from the parameters of a statement; a constant loss is for any two vectors."""


def compare_vectors(
    draw: Draw, noise: StatedNoise, *, error: float, bits: RandomBits, scores: Sequence[tuple[Floats, Floats]] = ()
) -> DrawTest:
    """Compare outputs of a mechanism with outputs of the stated noise."""
    rows = max(4, min(_ROWS, _NUMBERS_IN_ALL // noise.dimension))
    draws = _statistics(draw, noise, rows, bits)
    expected = _statistics(noise.draw, noise, _REFERENCE * rows, bits)
    for place, (of_mechanism, of_noise) in enumerate(scores, start=1):
        name = f"the score of outputs of vector {place} of the pair"
        draws[name], expected[name] = of_mechanism, of_noise
    log_share = math.log(error / (2 * len(draws)) / 2)  # each bound has two sides
    for name, values in draws.items():
        reference = expected[name]
        few = reference[: min(_FEW, reference.size // 2)]  # for the scale only, not compared
        # outputs that differ only in their last digit count as equal
        width = _SMOOTHED * float(np.abs(few).max(initial=0.0))
        values, reference = (value + width * bits.uniform(value.size) for value in (values, reference[few.size :]))
        if not values.size or not reference.size:
            continue
        distance = _distance(values, reference)
        by_chance = sum(math.sqrt(-log_share / (2 * value.size)) for value in (values, reference))
        if distance > by_chance:
            witness = f"{name}, {values.size:,} draws: the distance is {distance:.2f} (by chance: {by_chance:.2f})"
            return DrawTest(agree=False, draws=rows, inputs=rows, error=error, witness=witness)
    return DrawTest(agree=True, draws=rows, inputs=rows, error=error, witness="")


def _distance(values: Floats, reference: Floats) -> float:
    """Return the largest distance between the empirical distribution functions (Kolmogorov and Smirnov)."""
    if not np.isfinite(values).all():
        return 1.0
    stats = extra("scipy.stats", "audit", "a comparison of draws")
    return float(stats.ks_2samp(values, reference, method="asymp").statistic)


def _statistics(draw: Draw, noise: StatedNoise, rows: int, bits: RandomBits) -> dict[str, Floats]:
    """Return statistics of the noise by name, each of independent draws."""
    calls = 2 * -(-rows * noise.dimension // (2 * _NUMBERS))
    of_a_call = 2 * -(-rows // (2 * calls))
    parts = []
    for _ in range(calls):
        kinds, vectors = _test_vectors(noise, of_a_call, bits)
        outputs = np.asarray(draw(vectors.copy(), bits), dtype=np.float32)
        parts.append((kinds, vectors, outputs.astype(np.float64) - vectors))
    measured = [(of, lengths_of(moved), _cosines(moved, x) * lengths_of(moved)) for of, x, moved in parts]
    kinds, lengths, along = map(np.concatenate, zip(*measured, strict=True))
    statistics = {"the length of the noise": lengths, "the projection of the noise on the input": along}
    for kind, name in enumerate(_KINDS):
        statistics |= {
            f"{statistic} ({name} vectors)": values[kinds == kind] for statistic, values in [*statistics.items()][:2]
        }
    moves = [moved for _, _, moved in parts]
    pairs = {
        "the cosine of the noise of neighbouring rows": [(moved[::2], moved[1::2]) for moved in moves],
        "the cosine of the noise of one row in two calls": list(zip(moves[::2], moves[1::2], strict=True)),
    }
    return statistics | {name: np.concatenate([_cosines(*pair) for pair in rows]) for name, rows in pairs.items()}


def _test_vectors(noise: StatedNoise, rows: int, bits: RandomBits) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the kind of each row, and test vectors of the domain."""
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
    vectors /= (
        np.abs(vectors).max(axis=1, keepdims=True) if noise.domain == "unit cube" else lengths_of(vectors)[:, None]
    )
    if noise.domain != "unit sphere":  # half of the short vectors are zero
        vectors[kinds == 4] *= np.maximum(0.0, 2 * bits.uniform(rows, 1)[kinds == 4] - 1)
    return kinds, vectors


def lengths_of(vectors: Floats) -> Floats:
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return lengths


def _directions(vectors: Floats) -> Floats:
    return vectors / np.maximum(lengths_of(vectors), 1e-300)[:, None]


def _cosines(first: Floats, second: Floats) -> Floats:
    cosines: Floats = np.einsum("ij,ij->i", _directions(first), _directions(second))
    return cosines
