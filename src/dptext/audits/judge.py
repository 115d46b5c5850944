"""The audit of a whole mechanism, of words or of vectors, as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from dptext.audits.distances import Distance
from dptext.audits.judgement import judge_canaries, judge_exact, judge_sample, require_refutable
from dptext.audits.vectors import ChannelLike, Pair, VectorScore, audit_vectors
from dptext.audits.verdict import Verdict
from dptext.audits.words import Labels, WordMechanismLike, audit_words
from dptext.errors import ParameterError
from dptext.privacy.statement import PrivacyStatement

__all__ = ["audit", "judge_canaries", "judge_exact", "judge_sample", "require_refutable"]


class RandomizerLike(Protocol):
    """A choice of noise that becomes a channel for vectors of a dimension."""

    def channel(self, dimension: int) -> Any:
        """What draws the noise."""
        ...

    def statement(self, dimension: int) -> PrivacyStatement:
        """The claim for one vector."""
        ...


class DeviceLike(Protocol):
    """What a device runs: its channel is all that stands between a text and what is sent."""

    @property
    def channel(self) -> ChannelLike:
        """What draws the noise."""
        ...

    @property
    def statement(self) -> PrivacyStatement:
        """The claim for one text."""
        ...


def audit(
    mechanism: WordMechanismLike | RandomizerLike | DeviceLike | ChannelLike,
    claim: PrivacyStatement | None = None,
    *,
    words: Sequence[str] | None = None,
    distance: Distance | None = None,
    labels: Labels | None = None,
    dimension: int | None = None,
    pair: Pair | None = None,
    score: VectorScore | None = None,
    samples: int = 200_000,
    error: float = 1e-6,
    seed: int | None = None,
) -> Verdict:
    """Try to refute what a mechanism promises, for one word or for one vector.

    A word mechanism (`dptext.audits.words.audit_words`): exact where it shows its distribution (``log_distributions``,
    ``distributions`` or ``probabilities``), over every pair of the audited words and every output, and draws are
    compared with that distribution. Else sampled: the pair of words whose promise is the tightest, as a black box. A
    randomizer of vectors
    (`dptext.audits.vectors.audit_vectors`): sampled, at two vectors as far apart as they can be.

    Args:
        mechanism: a word mechanism; a randomizer of vectors, or its channel for one dimension; a `DeviceEncoder`, or
            a fitted `PrivateEncoder`.
        claim: the statement to put to the test; None: the mechanism's own (a channel alone has none).
        words: which words to take pairs of; None: all of a vocabulary of up to 2,000, else 600 (a random half and
            their nearest neighbours, the unknown word among them).
        distance: for a claim in a metric of the caller's: its function, ((n, d), (m, d)) float64 -> (n, m). It is
            asked for here because a mechanism must not bring along what it is measured with.
        labels: for a claim about words of one group of a public partition: the group of each word of the vocabulary
            (pairs of two groups are left out, as the claim leaves them out). For a claim in rank distance: the place of
            each word in the public list.
        dimension: for a randomizer: of the vectors to audit it with.
        pair: for vectors: which two; None: chosen.
        score: for vectors: what ranks the outputs; None: chosen; ``"learnt"``: by a classifier.
        samples: outputs of each input that test a sampled bound; of an exact audit, draws in all that are compared with
            the shown distribution.
        error: how often a true claim may be refuted: by a sampled bound, or by draws that happen to disagree.
        seed: for the choice of inputs and for draws; None for fresh randomness.

    Raises:
        ParameterError: the claim is not about one word or one vector, or promises nothing; it speaks of a metric that
            only its caller knows, and there is no ``distance``, or of groups or places, and there are no ``labels``;
            the mechanism breaks its contract; an option that is not for it.

    >>> import dptext
    >>> vectors = dptext.load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> verdict = audit(dptext.TEM(vectors, epsilon=2.0))
    >>> str(verdict.outcome), verdict.loss <= verdict.allowed
    ('exact', True)
    """
    how: dict[str, Any] = {"samples": samples, "error": error, "seed": seed}
    of_words = {"words": words, "distance": distance, "labels": labels}
    of_vectors = {"dimension": dimension, "pair": pair, "score": score}
    if hasattr(mechanism, "vectors"):
        _refuse(of_vectors, "a word mechanism")
        return audit_words(mechanism, claim, **of_words, **how)  # type: ignore[arg-type]
    _refuse(of_words, "a mechanism of vectors")
    given: Any = getattr(mechanism, "release_", mechanism)  # of a fitted estimator: what it sends
    channel = getattr(given, "channel", None)
    if callable(channel):
        if dimension is None:
            raise ParameterError("the loss of a randomizer depends on the dimension: say of which, dimension=64")
        claim = given.statement(dimension) if claim is None else claim
        given = channel(dimension)
    elif dimension is not None:
        raise ParameterError("a channel has its dimension already: leave dimension= out")
    elif channel is not None:
        claim = given.statement if claim is None else claim
        given = channel
    if claim is None:
        raise ParameterError("a channel brings no claim along: give the statement that is to be put to the test")
    return audit_vectors(given, claim, pair=pair, score=score, **how)


def _refuse(options: dict[str, Any], what: str) -> None:
    foreign = [name for name, value in options.items() if value is not None]
    if foreign:
        raise ParameterError(f"{', '.join(f'{name}=' for name in foreign)} means nothing for {what}: leave it out")
