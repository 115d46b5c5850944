"""Attackers who learn: models of scikit-learn, made afresh for every attack."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from dptext.attacks.rows import are_texts, as_rows, as_texts, optional, unit_rows
from dptext.errors import ParameterError
from dptext.threads import available_cores

__all__ = [
    "ATTACKERS",
    "Attacker",
    "Learner",
    "as_features",
    "checked_attackers",
    "quiet_fit",
    "scaling_steps",
    "words_alone",
    "words_to_numbers",
]

Attacker: TypeAlias = Literal["linear", "mlp", "boosting"]
ATTACKERS: tuple[Attacker, ...] = get_args(Attacker)
NAMES = {"linear": "linear", "mlp": "two hidden layers of 512", "boosting": "gradient boosting"}

_LARGE = 1e100  # what lies beyond is scaled: its squares, summed, would be infinite
_DENSE = 100  # numbers that a sparse row is brought to, for attackers who need dense ones
_QUARTILES = 1.349  # between the quartiles of a normal distribution, in standard deviations
_MANY = 20_000  # rows from which an attacker trains on all cores
_FAR = 10.0  # from the middle of a column, in (normal) standard deviations; and of lengths, how often the median
_STOPPING = 20  # rows of the rarest class from which a tenth is held back to stop the training


def checked_attackers(attackers: Any) -> tuple[Attacker, ...]:
    """Names of attackers; one name alone will do."""
    names: tuple[Any, ...] = (attackers,) if isinstance(attackers, str) else tuple(attackers)
    if not names or any(name not in ATTACKERS for name in names):
        raise ParameterError(f"attackers must be some of {', '.join(ATTACKERS)}, got others or none")
    return names


def as_features(name: str, features: Any) -> Any:
    """Rows that can be indexed: a matrix, or an array of bags of words."""
    if not are_texts(features):
        numbers = as_rows(name, features)
        largest = float(abs(numbers).max())
        return numbers / largest if largest > _LARGE else numbers  # attackers who learn do not mind the scale
    bags = as_texts(name, features)
    rows = np.empty(len(bags), dtype=object)
    rows[:] = bags
    return rows


def words_to_numbers(*, pairs: bool) -> Any:
    """A fresh tf-idf of words, and of pairs of neighbours, over bags of words."""
    vectorizer = optional("sklearn.feature_extraction.text").TfidfVectorizer
    return vectorizer(analyzer=_with_pairs if pairs else words_alone, sublinear_tf=True, dtype=np.float64)


def _some_words(rows: Any) -> Any:
    """Bags to learn from; where all are empty, one gets a word, so that there is something to count."""
    if any(rows):
        return rows
    learnt = rows.copy()
    learnt[0] = [""]
    return learnt


class Learner:
    """An attacker who sees rows with labels once, and answers for other rows."""

    def __init__(self, attacker: Attacker, seed: int) -> None:
        self._attacker, self._seed = attacker, seed
        self._model: Any = None
        self._shares: npt.NDArray[np.float64] = np.empty(0)

    def fit(self, rows: Any, labels: npt.NDArray[np.int64]) -> Learner:
        """Learn; what turns words into numbers learns from these rows alone."""
        steps: list[Any] = []
        if rows.dtype == object:
            steps.append(words_to_numbers(pairs=True))
        if rows.dtype == object or hasattr(rows, "tocsr"):
            steps += [_SparseScaling()] if rows.dtype != object else []
            steps += [_Narrowing(self._seed), *scaling_steps()] if self._attacker != "linear" else []
        else:
            steps += scaling_steps()
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        self._shares = counts / labels.size
        named = [(str(place), step) for place, step in enumerate(steps)]
        model = optional("sklearn.pipeline").Pipeline([*named, ("model", self._classifier(rows, int(counts.min())))])
        weights = (1 / counts.size / self._shares)[codes]
        seen = _some_words(rows) if rows.dtype == object else rows
        self._model = quiet_fit(model, seen, labels, model__sample_weight=weights)
        return self

    def predict(self, rows: Any) -> npt.NDArray[np.int64]:
        """(n,) the likeliest label of each row."""
        return np.asarray(self._model.classes_[self.confidences(rows).argmax(axis=1)], dtype=np.int64)

    def confidences(self, rows: Any, *, alike: bool = False) -> npt.NDArray[np.float64]:
        """(n, classes) how likely each label is, in ascending order of labels."""
        with _cores_for(rows):
            found = np.asarray(self._model.predict_proba(rows), dtype=np.float64)
        if alike:
            return found
        found *= self._shares
        return np.asarray(found / found.sum(axis=1, keepdims=True), dtype=np.float64)

    def _classifier(self, rows: Any, rarest: int) -> Any:
        if self._attacker == "linear":
            # weighted words are small numbers: with the usual penalty the attacker would name the majority
            freedom = 30.0 if rows.dtype == object or hasattr(rows, "tocsr") else 1.0
            return optional("sklearn.linear_model").LogisticRegression(C=freedom, max_iter=300)
        if self._attacker == "boosting":
            return optional("sklearn.ensemble").HistGradientBoostingClassifier(
                max_iter=100, early_stopping=False, random_state=self._seed
            )
        return optional("sklearn.neural_network").MLPClassifier(
            hidden_layer_sizes=(512, 512),
            early_stopping=rarest >= _STOPPING,
            n_iter_no_change=5,
            max_iter=60,
            random_state=self._seed,
        )


def scaling_steps() -> list[Any]:
    """Steps that bring dense columns to one scale, however far out a few rows lie."""
    return [_RobustScaling(), optional("sklearn.preprocessing").StandardScaler()]


class _RobustScaling:
    """Dense rows: each column around its median, in units of its spread, cut off where nearly no row is."""

    def __init__(self) -> None:
        self._middle: Any = None
        self._spread: Any = None
        self._directions = False

    def fit(self, rows: Any, _labels: Any = None) -> _RobustScaling:
        low, self._middle, high = np.percentile(rows, [25, 50, 75], axis=0)
        self._spread = (high - low) / _QUARTILES
        for column in np.flatnonzero(self._spread == 0):  # most rows are alike there: how far the others are off
            apart = np.abs(rows[:, column] - self._middle[column])
            self._spread[column] = np.median(apart[apart > 0]) if apart.any() else 1.0
        self._directions = _differ(np.abs(rows).max(axis=1))
        return self

    def transform(self, rows: Any) -> Any:
        with np.errstate(over="ignore"):  # what is too far to be a number is cut off as well
            columns = np.clip((rows - self._middle) / self._spread, -_FAR, _FAR)
        return np.hstack([columns, unit_rows(rows)]) if self._directions else columns


class _SparseScaling:
    """Sparse rows in units of their median length, cut off far beyond; where lengths differ much, also at length 1."""

    def __init__(self) -> None:
        self._length = 1.0
        self._directions = False

    def fit(self, rows: Any, _labels: Any = None) -> _SparseScaling:
        lengths = np.asarray(abs(rows).max(axis=1).todense()).ravel()
        if lengths.any():
            at = int(np.flatnonzero(lengths == np.percentile(lengths[lengths > 0], 50, method="lower"))[0])
            self._length = float(lengths[at] * np.sqrt(((rows[at].data / lengths[at]) ** 2).sum()))
        self._directions = _differ(lengths)
        return self

    def transform(self, rows: Any) -> Any:
        columns = rows.copy()
        with np.errstate(over="ignore"):
            columns.data = np.clip(columns.data / self._length, -_FAR, _FAR)
        return optional("scipy.sparse").hstack([columns, unit_rows(rows)]).tocsr() if self._directions else columns


def _differ(lengths: npt.NDArray[np.float64]) -> bool:
    """Whether some rows are much longer than most."""
    long = lengths[lengths > 0]
    return bool(long.size and long.max() / _FAR > np.median(long))


class _Narrowing:
    """Sparse rows to at most a hundred dense numbers; as they are where they have fewer."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._reduce: Any = None

    def fit(self, rows: Any, _labels: Any = None) -> _Narrowing:
        if rows.shape[1] > _DENSE < rows.shape[0]:
            svd = optional("sklearn.decomposition").TruncatedSVD
            self._reduce = svd(n_components=_DENSE, random_state=self._seed).fit(rows)
        return self

    def transform(self, rows: Any) -> Any:
        return rows.toarray() if self._reduce is None else self._reduce.transform(rows)


def quiet_fit(model: Any, rows: Any, labels: Any, **options: Any) -> Any:
    """The model, trained."""
    with warnings.catch_warnings(), _cores_for(rows):
        # an attacker who stops training early is no fault of the protection
        warnings.simplefilter("ignore", optional("sklearn.exceptions").ConvergenceWarning)
        return model.fit(rows, labels, **options)


def _cores_for(rows: Any) -> Any:
    """Threads that wait for each other cost more than they bring where there is little to do."""
    return threadpool_limits(1 if rows.shape[0] < _MANY else available_cores())


def words_alone(bag: list[str]) -> list[str]:
    """An analyzer for scikit-learn that takes a bag of words as it is."""
    return bag


def _with_pairs(bag: list[str]) -> list[str]:
    return [*bag, *(f"{first} {second}" for first, second in pairwise(bag))]
