"""TEM, the truncated exponential mechanism (Carvalho, Vasiloudis and Feyisetan 2021, arXiv:2107.07928)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dptext.errors import ParameterError
from dptext.noise.selection import DistanceTable, TruncatedExponential
from dptext.privacy.guarantee import Guarantee, MetricDP, PureDP
from dptext.privacy.statement import Parameter
from dptext.validation import check_float, check_int
from dptext.vectors.formats import VectorsLike
from dptext.vectors.metrics import Metric, metric_space
from dptext.words.mechanism import SelectingMechanism


def threshold_for(epsilon: float, size: int, beta: float) -> float:
    """Return the g such that TEM stays within g of its input with probability at least 1 - beta (Theorem 3)."""
    return max(0.0, 2 / epsilon * math.log((1 - beta) * (size - 1) / beta))  # Theorem 3


class TEM(SelectingMechanism):
    """Replace a word by x with probability proportional to exp(-(epsilon / 2) min(d(w, x), g)).

    This is Algorithm 2 of the paper, exactly: its Gumbel noise of scale 2 / epsilon on the scores -d(w, x) selects
    with these odds, and its element "bottom" with score -g + (2 / epsilon) ln |W \\ L_w| represents the words farther
    than g, which share its mass equally.

    **Guarantee** (unit word, substitution, local). For all words w, w' and x:
    P(x | w) <= exp(epsilon * min(d(w, w'), g) + slack) P(x | w') (Theorem 2, sharpened: the truncated distance is
    1-Lipschitz and at most g). So TEM is also pure (epsilon * g)-DP for a word. If beta sets g, this epsilon is
    2 ln((1 - beta)(|W| - 1) / beta), *at every epsilon*: 35.5 for 50,000 words.
    Assumptions: public vocabulary and vectors; d is a metric. ``slack`` (about 3e-5; up to 1e-4 with other metrics
    than the Euclidean) bounds the loss that finite arithmetic adds.

    **Document budget.** With ``document_epsilon`` E and ``max_words`` n the threshold is E / (n epsilon), so that the
    pure epsilon of n words is E; later words of a document become ``"<unk>"`` without being read.

    Args:
        vectors: public word vectors, or their name or path.
        epsilon: nats per unit of distance.
        metric: ``"euclidean"``, ``"angular"`` (radians), or a function ((n, d), (m, d)) float64 -> (n, m), such as
            another distance of `scipy.spatial.distance.cdist`. The statement assumes that the function is a
            metric; only a sample of triples is checked.
        beta: maximum probability of a replacement farther than g (ignored if g is set otherwise).
        threshold: the distance g.
        pure_epsilon: the pure epsilon of a word, epsilon * g: it sets the threshold to pure_epsilon / epsilon.
        document_epsilon: pure budget of a document, together with ``max_words``.
        max_words: number of words per document that the budget covers.

    Raises:
        ParameterError: a number is out of range; the sampler cannot represent the probabilities of the threshold; a
            budget without ``max_words``; two of threshold, pure epsilon and budget; the metric is unknown, or is not a
            metric (cosine "distance").

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> mechanism = TEM(vectors, epsilon=2.0, threshold=3.0)
    >>> mechanism.probabilities("cat").round(3)
    array([0.681, 0.251, 0.034, 0.034])
    >>> print(mechanism.statement.guarantee)
    2 per unit of euclidean distance, never more than 6 for a pair (metric differential privacy)
    """

    name = "TEM"

    def __init__(
        self,
        vectors: VectorsLike,
        *,
        epsilon: float,
        metric: Metric = "euclidean",
        beta: float = 0.001,
        threshold: float | None = None,
        pure_epsilon: float | None = None,
        document_epsilon: float | None = None,
        max_words: int | None = None,
    ) -> None:
        super().__init__(vectors, epsilon=epsilon)
        vectors = self.vectors
        check_float("beta", beta, above=0, below=1)
        if document_epsilon is not None:
            self.document_epsilon = check_float("document_epsilon", document_epsilon, above=0)
        self.max_words = max_words
        if pure_epsilon is not None:
            if threshold is not None or document_epsilon is not None:
                raise ParameterError("pure_epsilon, threshold and document_epsilon set the threshold: pass only one")
            threshold = check_float("pure_epsilon", pure_epsilon, above=0) / self.epsilon
        if self.document_epsilon is not None and max_words is not None:
            if threshold is not None:
                raise ParameterError("document_epsilon sets the threshold: pass one of them")
            words = check_int("max_words", max_words, minimum=1)
            self.threshold = self.document_epsilon / (words * self.epsilon)  # epsilon * g = E / n
        elif document_epsilon is not None or max_words is not None:
            raise ParameterError("document_epsilon and max_words must be passed together")
        elif threshold is not None:
            self.threshold = check_float("threshold", threshold, above=0)
        else:
            self.threshold = threshold_for(self.epsilon, len(vectors), beta)
        self._space = metric_space(vectors, metric, threshold=self.threshold)
        self.metric = self._space.name
        self._selection = TruncatedExponential(
            self._space.exact,
            rate=self.epsilon / 2,
            threshold=min(self.threshold, self._space.diameter),
            coarse=self._space.coarse,
        )
        self._freeze()

    @property
    def beta(self) -> float:
        """Maximum probability of a replacement farther than the threshold (Theorem 3, solved for beta)."""
        others = len(self.vectors) - 1
        return others / (others + math.exp(self.epsilon * self.threshold / 2))

    @property
    def pure_epsilon(self) -> float:
        """The pure epsilon of a word."""
        return self.epsilon * self.threshold

    def word_guarantee(self) -> MetricDP:
        """Return metric DP with distances capped at the threshold, or at the diameter if it is known and smaller."""
        farthest = min(self.threshold, self._space.diameter)
        return MetricDP(self.epsilon, self.metric, farthest, self._space.space)

    def document_guarantee(self, longest: int) -> Guarantee:
        if self.document_epsilon is not None:
            return PureDP(self.document_epsilon)
        return super().document_guarantee(longest)

    def parameters(self) -> dict[str, Parameter]:
        budget: dict[str, Parameter] = {}
        if self.document_epsilon is not None:
            budget = {"document_epsilon": self.document_epsilon, "max_words": self.max_words, "beyond": "unk"}
        return {
            "epsilon": self.epsilon,
            "metric": self.metric,
            "threshold": self.threshold,
            "beta": self.beta,
            **budget,
            **super().parameters(),
        }

    @classmethod
    def arguments_in(cls, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
        options = ("document_epsilon", "max_words") if "document_epsilon" in parameters else ("threshold",)
        return {name: parameters[name] for name in ("epsilon", "metric", *options)}

    def distance_table(self) -> DistanceTable:
        return self._space.exact
