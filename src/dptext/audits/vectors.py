"""Sampled audits of randomizers of vectors, for the most distant inputs and the score that separates them best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.audits.goodness import Draw, compare_vectors, lengths_of, stated_noise
from dptext.audits.losses import Floats, call_mechanism, learn_score, loss_bound
from dptext.audits.verdict import Outcome, Verdict, add_draws, as_approx, check_claim, delta_of, judge_sample
from dptext.errors import ParameterError
from dptext.privacy.guarantee import MetricDP, Relation
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.validation import check_int

Pair: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike]
VectorScore: TypeAlias = Callable[[Floats], Floats] | Literal["learnt"]
"""(n, k) outputs -> (n,) scores; **higher means likelier under the first** vector of the pair."""

_NUMBERS_AT_ONCE = 1 << 22
_FIRST = 64
_CHOICE_SAMPLES = 20_000  # outputs per vector to choose a pair and a score
_WIDEST = 1024  # largest width of outputs for a covariance
_ROUNDING = 1e-6  # relative, for losses
_REPEATED = 40  # equal outputs in one call only: by chance with probability 2^-40


class ChannelLike(Protocol):
    """A randomizer of vectors of one dimension; domain: ``unit sphere``, ``unit ball``, ``unit cube``, ``one-hot``."""

    @property
    def domain(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    def sample(self, vectors: Any, bits: RandomBits) -> Any:
        """Return (n, k) private vectors for (n, d) vectors."""


def audit_vectors(
    mechanism: ChannelLike | Draw,
    claim: PrivacyStatement,
    *,
    pair: Pair | None = None,
    score: VectorScore | None = None,
    samples: int = 200_000,
    error: float = 1e-6,
    seed: int | None = None,
) -> Verdict:
    """Try to refute the guarantee of a randomizer for two vectors, by samples; `dptext.audit` describes the arguments.

    ``mechanism`` is a channel, or a sampling function, which needs a ``pair``; the claim is about substitution. By
    default, the score with the largest sampled loss is used, or a classifier if outputs and inputs differ in width.
    """
    guarantee = check_claim(claim).guarantee
    if claim.relation is not Relation.SUBSTITUTION or isinstance(guarantee, MetricDP):
        raise ParameterError(
            "expected a claim for any two vectors (substitution, no metric): the allowed loss of two vectors does "
            "not follow from this one"
        )
    draw: Draw = mechanism.sample if hasattr(mechanism, "sample") else mechanism
    if pair is not None:
        first, second = np.empty(0), np.empty(0)
        with suppress(TypeError, ValueError):
            first, second = (np.asarray(entry, dtype=np.float64) for entry in pair)
        if first.ndim != 1 or first.shape != second.shape or first.size == 0 or np.array_equal(first, second):
            raise ParameterError("pair must contain two different vectors of numbers of the same length")
        pairs = {"the two given vectors": (first, second)}
    elif not callable(mechanism):
        pairs = extreme_pairs(str(mechanism.domain), int(mechanism.dimension))
    else:
        raise ParameterError("the domain of a plain function is unknown: pass two vectors as pair=")
    samples = check_int("samples", samples, minimum=100)
    bits = RandomBits(seed)
    noise = stated_noise(claim)
    error_of_bound = error if noise is None else error / 2
    size = next(iter(pairs.values()))[0].size
    comparable = _width(draw, pairs, bits) == size
    delta = delta_of(claim)
    few = min(samples, _CHOICE_SAMPLES)
    if score == "learnt" or (score is None and not comparable):
        (name, *_), used = pairs, "a learnt score"
        learnt = learn_score(*(_outputs(draw, vector, few, bits) for vector in pairs[name]))
        ranking: Ranking = lambda outputs, _first, _second: learnt(outputs)  # noqa: E731
    else:
        caller_score = None if score is None else {"the given score": lambda outputs, _first, _second: score(outputs)}
        name, used, ranking = _best_pair_and_ranking(draw, pairs, caller_score, few, error_of_bound, delta, bits)
    pair = pairs[name]
    # fresh draws, not used for the choices
    scores = [_outputs(draw, vector, 2 * samples, bits, lambda outputs: ranking(outputs, *pair)) for vector in pair]
    for entry in scores:
        _refuse_shared_noise(entry, _rows_a_call(size, 2 * samples))
    bound = loss_bound(scores[0], scores[1], error=error_of_bound, delta=delta)
    verdict = judge_sample(
        claim,
        bound,
        allowed=as_approx(claim).epsilon + claim.slack,
        error=error_of_bound,
        witness=f"{name}, ranked by {used}: {bound.event}",
        coverage=f"{len(pairs)} {'pair' if len(pairs) == 1 else 'pairs'} of vectors of {size} numbers, one of them "
        f"with {samples:,} samples each",
    )
    if verdict.refuted or noise is None or not comparable or noise.dimension != size:
        return verdict
    expected = [_outputs(noise.draw, entry, 2 * few, bits, lambda outputs: ranking(outputs, *pair)) for entry in pair]
    compared = list(zip(scores, expected, strict=True))
    loss = max(noise.loss(*entry) for entry in pairs.values())
    if loss > verdict.allowed * (1 + _ROUNDING):
        method = "exact, from the noise that the statement names"
        return replace(verdict, outcome=Outcome.REFUTED, loss=loss, error=0.0, method=method)
    draws = compare_vectors(draw, noise, error=error - error_of_bound, bits=bits, scores=compared)
    return add_draws(
        verdict,
        draws,
        error=error,
        strongest=max(loss_bound(*expected, error=error_of_bound, delta=delta).loss, verdict.loss),
        method=f"{verdict.method}; {draws.draws:,} draws compared with the noise that the statement names (length, "
        "projection, neighbouring rows)",
    )


def extreme_pairs(domain: str, dimension: int) -> dict[str, tuple[Floats, Floats]]:
    """Return the most distant pairs of vectors of a domain, by name."""
    axes = np.eye(2, dimension)
    if domain == "one-hot" and dimension > 1:
        return {"the first category against the second": (axes[0], axes[1])}
    ones = np.ones(dimension)
    reach = {"unit sphere": dimension**-0.5, "unit ball": dimension**-0.5, "unit cube": 1.0}.get(domain)
    if reach is None or domain == "one-hot":
        raise ParameterError(
            f"no most distant pair is known for the domain {domain!r} in {dimension} dimensions (known: unit sphere, "
            "unit ball, unit cube, one-hot vectors): pass two vectors as pair="
        )
    pairs = {
        "a diagonal against its opposite": (ones * reach, -ones * reach),
        "the first axis against its opposite": (axes[0], -axes[0]),
    }
    if domain != "unit sphere":
        pairs["a diagonal against the zero vector"] = (ones * reach, 0 * ones)
    return pairs


Ranking: TypeAlias = Callable[[Floats, Floats, Floats], Floats]
"""(n, k) outputs and the two vectors -> (n,) scores."""


_RANKINGS: dict[str, Ranking] = {
    "the output's projection on their difference": lambda outputs, first, second: outputs @ (first - second),
    "the output's distance to the second minus its distance to the first": lambda outputs, first, second: (
        lengths_of(outputs - second) - lengths_of(outputs - first)
    ),
    "the output's L1 distance to the second minus its L1 distance to the first": lambda outputs, first, second: (
        np.abs(outputs - second).sum(axis=1) - np.abs(outputs - first).sum(axis=1)
    ),
}


def _discriminant(draw: Draw, pair: tuple[Floats, Floats], count: int, bits: RandomBits) -> Ranking:
    """Return Fisher's linear discriminant of the two vectors' outputs: directions with less noise weigh more."""
    size = pair[0].size
    means, within = [], np.zeros((size, size))
    for vector in pair:
        total, squares = np.zeros(size), np.zeros((size, size))
        for outputs in _blocks(draw, vector, count, bits):
            total += outputs.sum(axis=0)
            squares += outputs.T @ outputs
        means.append(total / count)
        within += (squares / count - np.outer(means[-1], means[-1])) / 2
    # a direction without noise gets a very large but finite weight
    ridge = 1e-12 * max(float(np.trace(within)) / size, 1e-200)
    values, basis = np.linalg.eigh(within)
    direction = basis @ ((basis.T @ (means[0] - means[1])) / np.maximum(values, ridge))
    direction /= max(float(np.abs(direction).max()), 1e-200)
    return lambda outputs, _first, _second: outputs @ direction


def _best_pair_and_ranking(
    draw: Draw,
    pairs: dict[str, tuple[Floats, Floats]],
    scores: dict[str, Ranking] | None,
    count: int,
    error: float,
    delta: float,
    bits: RandomBits,
) -> tuple[str, str, Ranking]:
    """Return the names of the pair and the ranking with the largest loss on these outputs, and the ranking."""
    result = []
    for name, pair in pairs.items():
        rankings = _RANKINGS if scores is None else scores
        if scores is None and pair[0].size <= _WIDEST:
            rankings = {**rankings, "Fisher's discriminant": _discriminant(draw, pair, count, bits)}
        ranked = [_outputs(draw, vector, count, bits, partial(_all, rankings, pair)) for vector in pair]
        for place, (used, ranking) in enumerate(rankings.items()):
            first, second = (values[:, place] for values in ranked)
            result.append((loss_bound(first, second, error=error, delta=delta).loss, name, used, ranking))
    return max(result, key=lambda entry: entry[0])[1:]


def _all(rankings: dict[str, Ranking], pair: tuple[Floats, Floats], outputs: Floats) -> Floats:
    return np.stack([ranking(outputs, *pair) for ranking in rankings.values()], axis=1)


def _outputs(
    draw: Draw, vector: Floats, count: int, bits: RandomBits, score: Callable[[Floats], Floats] | None = None
) -> Floats:
    """Draw outputs of one vector in blocks; return them, or only their scores."""
    results = [
        outputs if score is None else np.asarray(score(outputs), dtype=np.float64)
        for outputs in _blocks(draw, vector, count, bits)
    ]
    return np.concatenate(results)


def _blocks(draw: Draw, vector: Floats, count: int, bits: RandomBits) -> Iterator[Floats]:
    """Yield outputs of one vector, one call at a time."""
    step = _rows_a_call(vector.size, count)
    for start in range(0, count, step):
        values = np.repeat(vector[None, :], min(step, count - start), axis=0)
        yield np.nan_to_num(np.asarray(draw(values, bits), dtype=np.float64))


def _rows_a_call(size: int, count: int) -> int:
    """Return the number of outputs per call: limited by memory, and small enough for two calls."""
    return max(1, min(_NUMBERS_AT_ONCE // size, -(-count // 2)))


def _refuse_shared_noise(scores: Floats, rows_a_call: int) -> None:
    """Raise if equal outputs always come from the same call: independent outputs are spread over both calls."""
    order = np.argsort(scores, kind="stable")
    equal = np.diff(scores[order]) == 0
    same_call = np.diff(order // rows_a_call) == 0
    if int(equal.sum()) >= _REPEATED and bool(same_call[equal].all()):
        raise ParameterError(
            f"{int(equal.sum()):,} of {len(scores):,} outputs of one call are equal: rows share their noise, so "
            "the difference of two outputs reveals the difference of their vectors"
        )


def _width(draw: Draw, pairs: dict[str, tuple[Floats, Floats]], bits: RandomBits) -> int:
    """Return the number of columns of the outputs; raise if the mechanism breaks its contract."""
    widths: set[int] = set()
    for vector in (entry for pair in pairs.values() for entry in pair):
        values = np.repeat(vector[None, :], _FIRST, axis=0)
        once, repeated = (call_mechanism(partial(draw, values.copy(), bits), _FIRST) for _ in range(2))
        if once.ndim != 2:
            raise ParameterError(f"the mechanism returned shape {once.shape} for {_FIRST} vectors: expected (n, k)")
        # equal rows may be chance if outputs are few, or a lack of noise, which the bound will show
        if np.array_equal(once, repeated) and not (once == once[0]).all():
            raise ParameterError(f"the mechanism returned the same {_FIRST} outputs twice: a fixed seed is not noise")
        widths.add(once.shape[1])
    if len(widths) > 1:
        raise ParameterError("the outputs of the mechanism have different widths, which reveals the input")
    return widths.pop()
