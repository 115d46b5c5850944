"""SanText, the exponential mechanism over a vocabulary (Yue, Du, Wang, Li, Sun and Chow 2021, arXiv:2106.01221)."""

from __future__ import annotations

from dptext.checks import number
from dptext.noise.selection import TruncatedExponential, largest_exponent
from dptext.privacy.guarantee import Guarantee, MetricDP
from dptext.privacy.statement import Parameter
from dptext.vectors.formats import VectorsLike
from dptext.vectors.metrics import metric_space
from dptext.words.mechanism import SelectingMechanism, UnknownWords

__all__ = ["SanText"]

_BELOW_LARGEST = 1e-6  # nats, so that rate * reach stays below the largest exponent however it is rounded


class SanText(SelectingMechanism):
    """Replace a word by x with probability proportional to exp(-(epsilon / 2) d(w, x)), d Euclidean.

    Section 4.2 of the paper: f(x, y) = C_x exp(-(epsilon / 2) d(x, y)), over the whole vocabulary, with no threshold.

    **Guarantee** (unit word, substitution, local). For all words w, w' and x:
    P(x | w) <= exp(epsilon * d(w, w') + slack) P(x | w') (Theorem 1). Proof: by the triangle inequality the weight of
    x changes by a factor of at most exp((epsilon / 2) d(w, w')), and so does the sum over all x that divides it.
    Assumptions: public vocabulary and vectors.

    **Reach.** Weights are integers (`dptext.noise.selection`) that fall from 2^44 to the smallest one whose rounding
    costs less than 1e-3 nats: (epsilon / 2) d up to 22.8. Words beyond the `reach` = 45.6 / epsilon count as if they
    lay there: what is drawn from is exp(-(epsilon / 2) min(d, reach)). min(d, reach) obeys the triangle inequality
    too, so the proof above holds for it, and it is at most d, so the promise holds as printed; besides, no pair loses
    more than epsilon * reach. What is gained by words beyond is at most |W| e^-22.8 of the probability in all (6e-6
    at 50,000 words). Where no two words lie farther apart than the reach, this is the formula itself. In short: TEM,
    with the largest threshold that its integers represent.

    What the authors' code does otherwise, and this one does not: it takes the vocabulary from the texts to be
    protected, and draws with a 53-bit uniform number from a running sum, which gives words of probability below
    2^-53 no chance at all.

    Args:
        epsilon: nats a unit of Euclidean distance.

    Raises:
        ParameterError: a number out of range; more words than the sampler counts (2^20 - 1).

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> mechanism = SanText(vectors, epsilon=2.0)
    >>> mechanism.probabilities("cat").round(6)
    array([7.25077e-01, 2.66741e-01, 2.00000e-06, 8.18000e-03])
    >>> mechanism.reach == vectors.diameter_bound
    True
    """

    name = "SanText"

    def __init__(self, vectors: VectorsLike, *, epsilon: float, unknown: UnknownWords = "unk") -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        self._set_up(self.largest_reach())
        self._freeze()

    def largest_reach(self) -> float:
        """The diameter of the vocabulary, or where the integer weights end if that is nearer."""
        representable = (largest_exponent() - _BELOW_LARGEST) / (self.epsilon / 2)
        # with all words at one point any reach will do, but the sampler wants one above 0
        return min(self.vectors.diameter_bound, representable) if self._is_spread() else representable

    def _is_spread(self) -> bool:
        return bool((self.vectors.matrix != self.vectors.matrix[0]).any())

    def _set_up(self, reach: float) -> None:
        self.reach = reach
        rate = number("epsilon / 2", self.epsilon / 2, above=0)
        self._space = metric_space(self.vectors, "euclidean", rate=rate, threshold=reach)
        self._selection = TruncatedExponential(self._space.exact, rate=rate, threshold=reach, coarse=self._space.coarse)

    def word_guarantee(self) -> Guarantee:
        """Metric DP with pairs counted up to the reach, or to the diameter where that is smaller."""
        return MetricDP(self.epsilon, self._metric("euclidean"), self.reach, self._space.space)

    def parameters(self) -> dict[str, Parameter]:
        """The public parameters, for the statement."""
        return {"metric": "euclidean", "reach": self.reach, **super().parameters()}
