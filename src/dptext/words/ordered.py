"""Words in one public list: geometric noise on the place of a word (Ghosh et al. 2012; 1-Diffractor, 2405.01678)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise.geometric import LARGEST_RATE, STEPS, two_sided_geometric
from dptext.privacy.guarantee import MetricDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.vectors.formats import VectorsLike
from dptext.vectors.partition import principal_order, walk_order
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import Rows, ShownMechanism, UnknownWords

__all__ = ["OrderedList"]

GIVEN = "given"
_ORDERS = {"walk": walk_order, "principal": principal_order}
_HAIR = 2.0**-26
"""The noise is larger than asked for by this share: the bound is attained by every pair, and an audit in float64 must
not be decided by its own rounding."""


class OrderedList(ShownMechanism):
    """Put all words into one public list; move a word by Z places, P(Z = z) proportional to e^(-epsilon |z|).

    Places beyond an end of the list become that end. This is the geometric mechanism of 1-Diffractor (Meisenbacher,
    Chevli and Matthes 2024, section 4), with sensitivity 1 a place, on one list.

    **Guarantee** (unit word, substitution, local). With d(w, w') the number of places between two words,
    P(x | w) <= exp(epsilon * d(w, w')) P(x | w') for all words w, w', x. Proof: for all places i, j, z,
    | |z - i| - |z - j| | <= |i - j|, and what is done with the ends is post-processing. No pair loses more than
    epsilon (|W| - 1). The noise is drawn exactly, from integers (`dptext.noise.geometric`), so there is no slack;
    epsilon is rounded down to a multiple of 2^-40 after 2^-26 of itself is taken off. Assumptions: public vocabulary,
    vectors and list.

    The promise is in places, and not in meanings. ``"walk"`` (the default, after the paper's lists) goes from word to
    the nearest words not yet seen, so that neighbours in the list are neighbours in meaning mostly; but words near in
    meaning may stand far apart in the list, and these lose more. ``"principal"`` sorts along the first principal
    component, which for GloVe is little more than how frequent a word is. The authors' code lets stop words and words
    outside the list through as they are, which tells them apart with certainty; here an unknown word is ``"<unk>"`` and
    has a place like any other.

    Args:
        epsilon: nats a place.
        order: ``"walk"`` or ``"principal"`` (`dptext.vectors.partition`), or all words of the vocabulary (``"<unk>"``
            too) in an order of your own, which must be public.

    Raises:
        ParameterError: a number out of range; an order that is not one of the vocabulary.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["one", "two", "three"], [[1.0], [2.0], [3.0]]))
    >>> mechanism = OrderedList(vectors, epsilon=1.0, order=["one", "two", "<unk>", "three"])
    >>> mechanism.probabilities("two").round(3)
    array([0.269, 0.462, 0.099, 0.17 ])
    >>> print(mechanism.statement.guarantee)
    1 per unit of rank distance, never more than 3 for a pair (metric differential privacy)
    """

    name = "OrderedList"

    def __init__(
        self,
        vectors: VectorsLike,
        *,
        epsilon: float,
        order: str | Sequence[str] = "walk",
        unknown: UnknownWords = "unk",
    ) -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        vectors = self.vectors
        self._rate = min(math.floor(self.epsilon * (1 - _HAIR) * STEPS), LARGEST_RATE)
        if self._rate < 1:
            raise ParameterError(f"epsilon must be at least {2 / STEPS:.2g} for a place, got {epsilon}")
        self.order = order if isinstance(order, str) else GIVEN
        self._row_at = _rows_of(order, vectors)
        self.places = np.empty(len(vectors), dtype=np.int64)
        """(V,) the place of each word in the list."""
        self.places[self._row_at] = np.arange(len(vectors))
        for array in (self._row_at, self.places):
            array.setflags(write=False)
        listed = "\n".join(vectors.words[row] for row in self._row_at)
        self._digest = hashlib.sha256(listed.encode("utf-8", "surrogatepass")).hexdigest()
        self._freeze()

    @property
    def labels(self) -> Rows:
        """(V,) the place of each word in the list."""
        return self.places

    def word_guarantee(self) -> MetricDP:
        """Metric DP on the places of the list."""
        return MetricDP(self.epsilon, self._metric("rank"), float(len(self.vectors) - 1), self._digest)

    def parameters(self) -> dict[str, Parameter]:
        """The public parameters, for the statement."""
        return {"metric": "rank", "order": self.order, "order_sha256": self._digest, **super().parameters()}

    def assumptions(self) -> tuple[str, ...]:
        """What the proof takes for granted, for the statement."""
        return (*super().assumptions(), "the order of the list is public: it was not made from protected texts")

    def distributions(self, words: list[str]) -> npt.NDArray[np.float64]:
        """(n, V) float64: what `sample` draws from, in closed form; far words may be below what a float64 holds."""
        shares: npt.NDArray[np.float64] = np.exp(self.log_distributions(words))
        return shares

    def log_distributions(self, words: list[str]) -> npt.NDArray[np.float64]:
        """(n, V) natural logs of `distributions`, finite for every word."""
        rows = self._rows(words)
        logs = self._logs(rows)
        if self.unknown == "uniform":
            logs[rows == self.vectors.vocabulary.unknown_row] = self._mean_logs()
        return logs

    def _shares(self, rows: Rows) -> npt.NDArray[np.float64]:
        shares: npt.NDArray[np.float64] = np.exp(self._logs(rows))
        return shares

    def _logs(self, rows: Rows) -> npt.NDArray[np.float64]:
        rate, last = self._rate / STEPS, len(self.vectors) - 1
        one_less, one_more = math.log(-math.expm1(-rate)), math.log1p(math.exp(-rate))  # ln(1 - a), ln(1 + a)
        steps = np.abs(self.places - self.places[rows][:, None])
        logs: npt.NDArray[np.float64] = -rate * steps.astype(np.float64)
        inside = (self.places > 0) & (self.places < last)
        # an end has the whole tail beyond it: the sum of (1 - a) / (1 + a) a^k from its distance on
        logs += np.where(inside, one_less, 0.0) - one_more
        return logs

    def _mean_logs(self) -> npt.NDArray[np.float64]:
        """(V,) logs of the mean over all words: the geometric series on both sides of a place."""
        rate, size = self._rate / STEPS, len(self.vectors)
        up_to = -np.expm1(-rate * (self.places + 1.0))  # 1 - a^(places + 1)
        beyond = math.exp(-rate) * -np.expm1(-rate * (size - 1.0 - self.places))
        inside = (self.places > 0) & (self.places < size - 1)
        at_end = -math.expm1(-rate * size) / -math.expm1(-rate)
        total = np.where(inside, up_to + beyond, at_end)
        logs: npt.NDArray[np.float64] = np.log(total / size) - math.log1p(math.exp(-rate))
        return logs

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        last = len(self.vectors) - 1
        noise = two_sided_geometric(bits, rows.size, rate=self._rate, most=last)
        drawn: Rows = self._row_at[np.clip(self.places[rows] + noise, 0, last)]
        return drawn


def _rows_of(order: str | Sequence[str], vectors: WordVectors) -> Rows:
    if isinstance(order, str):
        if order not in _ORDERS:
            raise ParameterError(f"order must be 'walk', 'principal' or a list of words, got {order!r}")
        return _ORDERS[order](vectors)
    words = list(order)
    rows = np.array([vectors.vocabulary.row(word) if isinstance(word, str) else -1 for word in words], dtype=np.int64)
    if not np.array_equal(np.sort(rows), np.arange(len(vectors))):
        raise ParameterError(
            f"order must hold each of the {len(vectors):,} words of the vocabulary once, '<unk>' among them; got a "
            f"list of {len(words):,} that does not"
        )
    return rows
