"""Text inversion: which words stood in the text behind a vector?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.attack_score import AttackScore
from dptext.attacks.learners import quiet_fit, scaling_steps, words_alone
from dptext.attacks.rows import Rows, are_texts, as_people, as_rows, as_texts, optional, random_state
from dptext.checks import choice, whole
from dptext.errors import ParameterError
from dptext.estimates import CONFIDENCE, mean_of_people
from dptext.privacy.randomness import RandomBits

__all__ = ["bag_inversion"]

Floats: TypeAlias = npt.NDArray[np.float64]

_PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # for each pair that is learnt from
_BLOCK = 4096


def bag_inversion(
    public_vectors: npt.ArrayLike,
    public_bags: Rows,
    vectors: npt.ArrayLike,
    bags: Rows,
    *,
    decoder: Literal["ridge", "logistic"] = "ridge",
    top: int = 10,
    people: Iterable[Hashable] | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> list[AttackScore]:
    """Learn on public pairs to name the words behind a vector, and try it on private vectors.

    Args:
        public_vectors: (n, d) vectors of public texts, from the same encoder *and mechanism* as the private ones: an
            attacker knows both.
        public_bags: n texts or bags of words; or (n, words) counts, dense or sparse.
        vectors: (m, d) the private vectors.
        bags: what is behind them, of the same kind; words that no public bag holds cannot be named. Empty bags are
            left out.
        decoder: ``"ridge"`` (a linear map to the chance of each word; its penalty chosen on a fifth of the public
            pairs) or ``"logistic"`` (a logistic regression for every word).
        top: how many words the attacker names for each vector.
        people: (m,) whose vector each is; None: everybody has one.
        confidence: of the intervals, over people. On vectors that say nothing, `AttackScore.succeeded` is a false
            alarm with a probability of about (1 - confidence) / 2 for each score.
        seed: of training.

    Returns:
        Precision (the share of the named words that are in the bag) and recall (the share of the bag's words that
        are named).

    Raises:
        ParameterError: fewer than 10 public pairs, no word, NaN, rows of other lengths; the argument is named.
        MissingExtraError: scikit-learn or scipy is not installed.
    """
    choice("decoder", decoder, ("ridge", "logistic"))
    learnt, private = as_rows("public_vectors", public_vectors), as_rows("vectors", vectors)
    if learnt.shape[1] != private.shape[1]:
        raise ParameterError(f"vectors must have {learnt.shape[1]} numbers each as public_vectors, got other lengths")
    if len(learnt) < 10:
        raise ParameterError(f"public_vectors must be at least 10 to learn from, got {len(learnt)}")
    shown, hidden, sizes = _bags(public_bags, bags, (len(learnt), len(private)))
    top = whole("top", top, least=1, most=shown.shape[1] - 1)
    whose = as_people(people, len(private))
    asked = np.flatnonzero(sizes > 0)
    bits = RandomBits(seed)
    private = private[asked]
    for step in scaling_steps():
        learnt, private = step.fit(learnt).transform(learnt), step.transform(private)
    if decoder == "ridge":
        chances = _ridge(learnt, shown, private, top)
    else:
        chances = _logistic(learnt, shown, private, random_state(bits))
    frequent = np.argsort(-np.asarray(shown.sum(axis=0)).ravel(), kind="stable")[:top]
    hits = _hits(_likeliest(chances, top), hidden[asked])
    blind = _hits(np.tile(frequent, (asked.size, 1)), hidden[asked])
    detail = f"{asked.size:,} vectors, {len(learnt):,} public pairs, {shown.shape[1]:,} words, {top} named"
    return [
        AttackScore(
            attack=f"text inversion ({decoder})",
            measure=f"{name} of {top} words",
            score=mean_of_people(hits / of, whose[asked], confidence=confidence),
            baseline=float((blind / of).mean()),
            baseline_name="most frequent words",
            detail=detail,
        )
        for name, of in (("precision", np.float64(top)), ("recall", sizes[asked]))
    ]


def _bags(public: Rows, private: Rows, rows: tuple[int, int]) -> tuple[Any, Any, Floats]:
    """Sparse (n, words) and (m, words) of zeros and ones, and the (m,) numbers of distinct words behind the vectors."""
    sparse = optional("scipy.sparse")
    sizes: Floats
    if are_texts(public):
        counter = optional("sklearn.feature_extraction.text").CountVectorizer(analyzer=words_alone, binary=True)
        first, second = as_texts("public_bags", public), as_texts("bags", private)
        shown, hidden = counter.fit_transform(first), counter.transform(second)
        sizes = np.array([len(set(bag)) for bag in second], dtype=np.float64)
    else:
        shown, hidden = (
            sparse.csr_matrix(as_rows(name, each)) for name, each in (("public_bags", public), ("bags", private))
        )
        if shown.shape[1] != hidden.shape[1]:
            raise ParameterError(f"bags must count {shown.shape[1]:,} words as public_bags, got {hidden.shape[1]:,}")
        shown, hidden = (shown > 0).astype(np.float64), (hidden > 0).astype(np.float64)
        sizes = np.asarray(hidden.sum(axis=1), dtype=np.float64).ravel()
    for name, each, expected in (("public_bags", shown, rows[0]), ("bags", hidden, rows[1])):
        if each.shape[0] != expected:
            raise ParameterError(f"{name} must be one for each of {expected:,} vectors, got {each.shape[0]:,}")
        if each.nnz == 0:
            raise ParameterError(f"{name} must hold at least one word that can be named, got none")
    return shown, hidden, sizes


def _ridge(learnt: Floats, shown: Any, private: Floats, top: int) -> Floats:
    """(m, words) how likely each word is, linear in the vector; the penalty that does best on a fifth held back."""
    held = np.arange(len(learnt)) % 5 == 4  # every fifth: the pairs may be sorted
    precision = {
        penalty: float(
            _hits(_likeliest(_linear(learnt[~held], shown[~held], learnt[held], penalty), top), shown[held]).mean()
        )
        for penalty in _PENALTIES
    }
    return _linear(learnt, shown, private, max(precision, key=lambda each: precision[each]))


def _linear(learnt: Floats, shown: Any, asked: Floats, penalty: float) -> Floats:
    """Least squares with an intercept: the frequencies of the words plus what the vector adds."""
    frequency = np.asarray(shown.mean(axis=0)).ravel()
    gram = learnt.T @ learnt + penalty * len(learnt) * np.eye(learnt.shape[1])
    across = np.asarray((shown.T @ learnt).T) - learnt.sum(axis=0)[:, None] * frequency
    chances: Floats = asked @ np.linalg.solve(gram, across) + frequency
    return chances


def _logistic(learnt: Floats, shown: Any, private: Floats, seed: int) -> Floats:
    network = optional("sklearn.neural_network").MLPClassifier
    # without a hidden layer it is one logistic regression a word, all trained together
    model = network(hidden_layer_sizes=(), max_iter=200, learning_rate_init=0.01, random_state=seed)
    return np.asarray(quiet_fit(model, learnt, shown.toarray().astype(np.int64)).predict_proba(private))


def _likeliest(chances: Floats, top: int) -> npt.NDArray[np.int64]:
    """(m, top) the words with the largest numbers."""
    found: npt.NDArray[np.int64] = np.argpartition(-chances, top - 1, axis=1)[:, :top]
    return found


def _hits(named: npt.NDArray[np.int64], bags: Any) -> Floats:
    """(m,) how many of the named words are in the bag."""
    found = np.empty(len(named))
    for start in range(0, len(named), _BLOCK):
        at = slice(start, start + _BLOCK)
        found[at] = np.take_along_axis(bags[at].toarray(), named[at], axis=1).sum(axis=1)
    return found
