"""Scores of attacks, validation of their rows, and models that learn to attack."""

from __future__ import annotations

import re
import warnings
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError, extra
from dptext.intervals import Estimate, mean_of_people, share
from dptext.threads import available_cores
from dptext.validation import is_missing


@dataclass(frozen=True, kw_only=True, repr=False)
class AttackScore(ReprMixin):
    """Success of an attack, compared with a baseline that does not see the private output; higher is worse for people.

    Attributes:
        measure: the kind of number ("AUC", "accuracy", "macro-F1", "share of words recovered").
        score: the number with its interval.
        baseline: the score without the private output.
        baseline_name: the method of the baseline ("chance", "majority class", "most frequent words").
        detail: one sentence for the reader of a report; never any text of a user.
    """

    attack: str
    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    detail: str = ""

    @property
    def succeeded(self) -> bool:
        """True if the score is above the baseline, beyond its interval."""
        return self.score.low > self.baseline

    @property
    def advantage(self) -> float:
        """The score minus the baseline."""
        return self.score.value - self.baseline

    def __str__(self) -> str:
        return f"{self.attack}: {self.measure} {self.score} against {self.baseline:.3f} ({self.baseline_name})"

    def _repr_fields(self) -> Fields:
        yield "attack", self.attack
        yield "measure", self.measure
        yield "score", self.score.value
        yield "baseline", self.baseline
        yield "succeeded", self.succeeded

    def _html_fields(self) -> Fields:
        yield "95% interval", f"{self.score.low:.3f} to {self.score.high:.3f} ({self.score.count:,} {self.score.of})"
        yield "baseline is", self.baseline_name
        yield "detail", self.detail or None


def share_of_rows(hits: npt.NDArray[np.bool_], people: Iterable[Hashable] | None) -> Estimate:
    """Return a proportion of rows, with an interval over people if the person of each row is known."""
    return share(int(hits.sum()), hits.size) if people is None else mean_of_people(hits, as_people(people, hits.size))


Floats: TypeAlias = npt.NDArray[np.float64]
Ids: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = Any
"""(n, d) numbers, n texts, or n bags (sequences of words)."""


def optional(module: str) -> Any:
    """Import a module of scikit-learn or scipy, which an attack needs."""
    return extra(module, "audit", "an attack")


def are_texts(values: Rows) -> bool:
    """Return True for texts or bags of words, False for numbers."""
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "OUS"
    first = next((value for value in values if not is_missing(value)), None) if isinstance(values, Iterable) else None
    return isinstance(first, str) or (isinstance(first, Sequence) and all(isinstance(word, str) for word in first))


def as_texts(name: str, texts: Iterable[Any]) -> list[list[str]]:
    """Return bags of words: a text is split into runs of letters and digits in lower case; a missing one is empty."""
    if isinstance(texts, str):
        raise ParameterError(f"{name} must be a list of texts, got a single string. Put it into a list")
    bags: list[list[str]] = []
    for place, text in enumerate(texts):
        if isinstance(text, str) or is_missing(text):
            bags.append(re.findall(r"\w+", text.lower() if isinstance(text, str) else ""))
        elif isinstance(text, Sequence) and all(isinstance(word, str) for word in text):
            bags.append(list(text))
        else:
            raise ParameterError(f"{name} must contain texts or sequences of words, entry {place} is neither")
    if not any(bags):
        raise ParameterError(f"{name} must contain at least one word, got none in {len(bags):,} texts")
    return bags


def as_rows(name: str, values: Any) -> Floats:
    """Return values as (n, d) finite float64."""
    rows = None
    with suppress(ValueError, TypeError):
        rows = np.asarray(values, dtype=np.float64)
    if rows is None or rows.ndim != 2 or 0 in rows.shape:
        raise ParameterError(f"{name} must be a dense matrix of numbers with at least one row and one column")
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise ParameterError(f"{name} must be finite, row {int(np.argmin(finite))} contains NaN or infinity")
    return rows


def unit_rows(rows: Any) -> Any:
    """Return rows scaled to length 1; a row of zeros stays zero."""
    if not isinstance(rows, np.ndarray):
        return optional("sklearn.preprocessing").normalize(rows)
    largest = np.abs(rows).max(axis=1, keepdims=True)  # first, so that squares neither underflow nor overflow
    scaled = rows / np.where(largest > 0, largest, 1.0)
    lengths = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    return scaled / np.where(lengths > 0, lengths, 1.0)


def as_codes(name: str, values: Iterable[Any], rows: int) -> tuple[Ids, int]:
    """Return (rows,) codes 0 .. k - 1 of labels or names, in order of first appearance, and k."""
    codes: dict[Hashable, int] = {}
    result = []
    for row, value in enumerate(values.tolist() if isinstance(values, np.ndarray) else values):
        if is_missing(value) or not isinstance(value, Hashable):
            raise ParameterError(f"{name} must have a value for every row, row {row} has none. Drop such rows")
        result.append(codes.setdefault(value, len(codes)))
    if len(result) != rows:
        raise ParameterError(f"{name} must have one entry for each of {rows:,} rows, got {len(result):,}")
    return np.array(result, dtype=np.int64), len(codes)


def as_people(people: Iterable[Hashable] | None, rows: int) -> Ids:
    """Return (rows,) codes of the person of each row; None: each row has a different person."""
    return np.arange(rows) if people is None else as_codes("people", people, rows)[0]


def as_ids(name: str, ids: npt.ArrayLike, below: int, rows: int | None = None, *, minimum: int = 0) -> Ids:
    """Return (n,) int64 ids from ``minimum`` to below - 1."""
    result = np.asarray(ids)
    if result.ndim != 1 or not result.size or result.dtype.kind not in "iu":
        raise ParameterError(
            f"{name} must be a one-dimensional array of integers with at least one entry, got shape "
            f"{result.shape}, {result.dtype}"
        )
    if rows is not None and result.size != rows:
        raise ParameterError(f"{name} must have one entry for each of {rows:,} rows, got {result.size:,}")
    inside = (result >= minimum) & (result < below)
    if not inside.all():
        raise ParameterError(f"{name} must be from {minimum} to {below - 1:,}, entry {int(np.argmin(inside))} is not")
    return result.astype(np.int64)


def random_state(bits: Any) -> int:
    """Return a random seed for a model of scikit-learn."""
    return int(bits.below(np.array([2**31], dtype=np.uint64))[0])


Attacker: TypeAlias = Literal["linear", "mlp", "boosting"]
ATTACKERS: tuple[Attacker, ...] = get_args(Attacker)
NAMES = {"linear": "linear", "mlp": "two hidden layers of 512", "boosting": "gradient boosting"}

_LARGE = 1e100  # larger rows are scaled, because their sums of squares would overflow
_DENSE = 100  # columns of texts for attackers that need dense rows
_QUARTILES = 1.349  # interquartile range of a normal distribution, in standard deviations
_MANY = 20_000  # rows from which an attacker trains on all cores
_FAR = 10.0  # limit for columns, in (normal) standard deviations from the median; for lengths, in medians
_STOPPING = 20  # rows of the rarest class required to hold out a tenth for early stopping


def as_features(name: str, features: Any) -> Any:
    """Return rows that can be indexed: a matrix, or an array of bags of words."""
    if not are_texts(features):
        numbers = as_rows(name, features)
        largest = float(np.abs(numbers).max())
        return numbers / largest if largest > _LARGE else numbers  # the scale does not matter to trained attackers
    bags = as_texts(name, features)
    rows = np.empty(len(bags), dtype=object)
    rows[:] = bags
    return rows


def words_to_numbers(*, pairs: bool) -> Any:
    """Return a new tf-idf vectorizer of words, and with ``pairs`` of neighbouring words, with rows of length 1."""
    vectorizer = optional("sklearn.feature_extraction.text").TfidfVectorizer
    return vectorizer(analyzer=_add_word_pairs if pairs else words_alone, sublinear_tf=True, dtype=np.float64)


class Learner:
    """Attacker that is trained on labelled rows and predicts labels of other rows."""

    def __init__(self, attacker: Attacker, seed: int) -> None:
        self._attacker, self._seed = attacker, seed

    def fit(self, rows: Any, labels: Ids) -> Learner:
        """Train on rows; the vectorizer of words is fitted on these rows only."""
        dense = isinstance(rows, np.ndarray) and rows.dtype != object  # otherwise bags of words, or their vectors
        self._steps: list[Any] = [words_to_numbers(pairs=True)] if rows.dtype == object else []
        if not dense and self._attacker != "linear":
            self._steps.append(_Narrowing(self._seed))
        if dense or self._attacker != "linear":
            self._steps += scaling_steps()
        seen = rows
        if rows.dtype == object and not any(rows):  # one empty bag gets a word, because the vectorizer needs one
            seen = rows.copy()
            seen[0] = [""]
        for step in self._steps:
            seen = step.fit(seen).transform(seen)
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        self._shares: Floats = counts / labels.size
        weights = (1 / counts.size / self._shares)[codes]
        model = _classifier(self._attacker, self._seed, texts=not dense, rarest=int(counts.min()))
        self._model = quiet_fit(model, seen, labels, weights)
        return self

    def predict(self, rows: Any) -> Ids:
        """Return (n,) the likeliest label of each row."""
        return np.asarray(self._model.classes_[self.confidences(rows).argmax(axis=1)], dtype=np.int64)

    def confidences(self, rows: Any, *, balanced: bool = False) -> Floats:
        """Return (n, classes) probabilities of the labels, in ascending order of labels."""
        for step in self._steps:
            rows = step.transform(rows)
        with _cores_for(rows):
            result: Floats = np.asarray(self._model.predict_proba(rows), dtype=np.float64)
        if not balanced:
            result = result * self._shares
            result /= result.sum(axis=1, keepdims=True)
        return result


def _classifier(attacker: Attacker, seed: int, *, texts: bool, rarest: int) -> Any:
    if attacker == "linear":
        # tf-idf weights are small: with the usual penalty the attacker would predict the majority
        return optional("sklearn.linear_model").LogisticRegression(C=30.0 if texts else 1.0, max_iter=300)
    if attacker == "boosting":
        boosting = optional("sklearn.ensemble").HistGradientBoostingClassifier
        return boosting(max_iter=100, early_stopping=False, random_state=seed)
    options = {"early_stopping": rarest >= _STOPPING, "n_iter_no_change": 5, "max_iter": 60, "random_state": seed}
    return optional("sklearn.neural_network").MLPClassifier(hidden_layer_sizes=(512, 512), **options)


def scaling_steps() -> list[Any]:
    """Return steps that scale dense columns, robustly to outliers."""
    return [_RobustScaling(), optional("sklearn.preprocessing").StandardScaler()]


class _RobustScaling:
    """Scaling of dense rows: each column minus its median, divided by its spread, clipped at outliers."""

    def fit(self, rows: Floats) -> _RobustScaling:
        low, self._middle, high = np.percentile(rows, [25, 50, 75], axis=0)
        self._spread = (high - low) / _QUARTILES
        for column in np.flatnonzero(self._spread == 0):  # most rows are equal: use the distance of the others
            distance = np.abs(rows[:, column] - self._middle[column])
            self._spread[column] = np.median(distance[distance > 0]) if distance.any() else 1.0
        lengths = np.abs(rows).max(axis=1)
        long = lengths[lengths > 0]
        self._directions = bool(long.size and long.max() / _FAR > np.median(long))
        return self

    def transform(self, rows: Floats) -> Floats:
        with np.errstate(over="ignore"):  # infinite values are clipped too
            columns: Floats = np.clip((rows - self._middle) / self._spread, -_FAR, _FAR)
        return np.hstack([columns, unit_rows(rows)]) if self._directions else columns


class _Narrowing:
    """Reduction of sparse rows to at most a hundred dense columns; unchanged if they have fewer."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._reduce: Any = None

    def fit(self, rows: Any) -> _Narrowing:
        if rows.shape[1] > _DENSE < rows.shape[0]:
            svd = optional("sklearn.decomposition").TruncatedSVD
            self._reduce = svd(n_components=_DENSE, random_state=self._seed).fit(rows)
        return self

    def transform(self, rows: Any) -> Any:
        return rows.toarray() if self._reduce is None else self._reduce.transform(rows)


def quiet_fit(model: Any, rows: Any, labels: Any, weights: Any = None) -> Any:
    """Train the model without convergence warnings, and return it."""
    with warnings.catch_warnings(), _cores_for(rows):
        # incomplete training of an attacker is not a problem of the protection
        warnings.simplefilter("ignore", optional("sklearn.exceptions").ConvergenceWarning)
        return model.fit(rows, labels) if weights is None else model.fit(rows, labels, sample_weight=weights)


def _cores_for(rows: Any) -> Any:
    """Limit BLAS to one thread for few rows, where more threads are slower."""
    return threadpool_limits(1 if rows.shape[0] < _MANY else available_cores())


def words_alone(bag: list[str]) -> list[str]:
    """Return the bag unchanged: an analyzer for scikit-learn."""
    return bag


def _add_word_pairs(bag: list[str]) -> list[str]:
    return [*bag, *(f"{first} {second}" for first, second in pairwise(bag))]
