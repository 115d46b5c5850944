"""What private texts or vectors are still good for: a model is trained on them and tested on people it has not seen.

Derivation: docs/understand/utility.md#evaluation-fairness
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, extra
from dptext.evaluation.measures import (
    CLASS_MEASURES,
    NUMBER_MEASURES,
    Fold,
    Measured,
    check_folds,
    check_numbers,
    class_score,
    codes_of,
    codes_of_answers,
    make_folds,
    people_of,
)
from dptext.evaluation.measures import (
    measure as measured,
)
from dptext.intervals import Estimate, difference
from dptext.privacy.randomness import RandomBits
from dptext.release.mechanism import check_texts
from dptext.text.tokens import Kind, fold, kind_of, pieces
from dptext.threads import one_blas_thread
from dptext.validation import check_choice, check_float, check_int

Builder: TypeAlias = Callable[[int], Any]
"""A seed -> a model with ``fit(features, targets)`` and ``predict(features)`` or ``predict_proba(features)``."""


@dataclass(frozen=True, kw_only=True)
class UtilityScore(Measured):
    """How good a model trained on some rows is, beside somebody who sees none.

    Attributes:
        model: its name.
        features: what it sees.
        trained_on, tested_on: in which form the rows came ("private", "raw").
        rows: rows tested.
        folds: how often a model was trained.
    """

    model: str
    features: str
    trained_on: str
    tested_on: str
    rows: int
    folds: int

    @property
    def lower_is_better(self) -> bool:
        """Whether the measure counts errors."""
        return self.measure in NUMBER_MEASURES

    @property
    def above_baseline(self) -> bool:
        """Whether the model is better than the blind guess, beyond the interval of the difference."""
        return self.gain.low > 0

    def __str__(self) -> str:
        return (
            f"{self.measure} {self.score} against {self.baseline:.3f} ({self.baseline_name}), {self.model} trained on "
            f"{self.trained_on}, tested on {self.tested_on}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions:
    """What models answered about rows that had no part in their training.

    Attributes:
        rows: (tested,) which rows were tested.
        true, predicted: (tested,) targets and answers.
        people: (tested,) whose row each is; None: everybody has one.
        model, features, trained_on, tested_on, folds: as in `UtilityScore`.
    """

    rows: npt.NDArray[np.int64]
    true: npt.NDArray[Any]
    predicted: npt.NDArray[Any]
    people: npt.NDArray[np.int64] | None
    model: str
    features: str
    trained_on: str
    tested_on: str
    folds: int

    def score(
        self, name: str, *, resamples: int = 1000, confidence: float = 0.95, seed: int | None = None
    ) -> UtilityScore:
        """One measure of these predictions; see `dptext.evaluation.measures.measure`."""
        fields: dict[str, Any] = {"people": self.people, "resamples": resamples, "confidence": confidence, "seed": seed}
        result = measured(name, self.true, self.predicted, **fields)
        return UtilityScore(
            **vars(result),
            model=self.model,
            features=self.features,
            trained_on=self.trained_on,
            tested_on=self.tested_on,
            rows=self.rows.size,
            folds=self.folds,
        )


def utility(
    rows: Any,
    targets: npt.ArrayLike,
    *,
    measure: str = "accuracy",
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int | None = None,
    **options: Any,
) -> UtilityScore:
    """Train on some rows, test on others, and say how good it is beside the best blind guess.

    Args:
        rows: texts (strings, `dptext.Document`, None), or (rows, d) vectors.
        targets: (rows,) classes for "accuracy" and "macro-F1", numbers for "RMSE" and "MAE".
        measure: one of these four.
        seed: of folds, models and resamples.
        **options: of `predictions` (``test_rows``, ``trained_on``, ``tested_on``, ``features``, ``model``,
            ``people``, ``folds``).

    Raises:
        ParameterError: one class, fewer rows than folds, NaN, unequal lengths, ...; the argument is named.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> texts, stars = ["a good film", "a bad film"] * 20, ["+", "-"] * 20
    >>> print(utility(texts, stars, seed=1, trained_on="raw"))
    accuracy 1.000 [0.912, 1.000] against 0.500 (majority class), logistic regression trained on raw, tested on raw
    """
    check_choice("measure", measure, (*CLASS_MEASURES, *NUMBER_MEASURES))
    result = predictions(rows, targets, classes=measure in CLASS_MEASURES, seed=seed, **options)
    return result.score(measure, resamples=resamples, confidence=confidence, seed=seed)


def predictions(
    rows: Any,
    targets: npt.ArrayLike,
    *,
    classes: bool = True,
    test_rows: Any = None,
    trained_on: str = "private",
    tested_on: str | None = None,
    features: Features | None = None,
    model: str | Builder = "linear",
    people: npt.ArrayLike | None = None,
    folds: int | Sequence[Fold] = 5,
    seed: int | None = None,
) -> Predictions:
    """Answers about rows by models that were trained on the rows of other people.

    Args:
        rows: texts or vectors, as in `utility`: what models are trained on.
        targets: (rows,) classes, or numbers with ``classes=False``.
        test_rows: the same rows in another form (as they were before they were made private), to be tested on; None:
            the rows themselves.
        trained_on, tested_on: how the result names the two forms. Not given, ``tested_on`` is "raw" where there are
            ``test_rows`` and otherwise what ``trained_on`` says.
        features: `BagOfWords`, `WordIds`, `VectorFeatures` or another; None: a bag of words for texts, the vectors for
            vectors.
        model: ``"linear"`` (logistic or ridge regression, penalty 1), ``"mlp"`` (one hidden layer of 128, Adam, at
            most 100 epochs), or a `Builder`.
        people: (rows,) whose row each is: folds go by them; None: everybody has one.
        folds: how many, or the caller's own (one `Fold` for a fixed training and test set).
        seed: of folds and models.

    Raises:
        ParameterError: see `utility`.
    """
    output = features or _features_for(rows)
    seen = output.of(rows)
    target = _targets_of(seen, targets)
    tested = seen if test_rows is None else output.of(test_rows)
    if tested.shape != seen.shape:
        raise ParameterError(f"test_rows must be the same rows, of shape {seen.shape}, got {tested.shape}")
    codes: npt.NDArray[Any] = codes_of("targets", targets) if classes else check_numbers("targets", targets)
    owners = None if people is None else codes_of("people", people, rows=target.shape[0])
    bits = RandomBits(seed)
    split = _split(codes, folds, owners, classes=classes, seed=_small_seed(bits))
    name, build = _builder_of(model, classes=classes)
    how_many = int(codes.max()) + 1 if classes else 0
    which = np.concatenate([part.test for part in split])
    answered = np.concatenate([
        _answers(build, output, seen[part.train], codes[part.train], tested[part.test], how_many, _small_seed(bits))
        for part in split
    ])  # fmt: skip
    if classes:
        answered = target[np.unique(codes, return_index=True)[1]][answered]
    return Predictions(
        rows=which,
        true=target[which] if classes else codes[which],
        predicted=answered,
        people=None if owners is None else owners[which],
        model=name,
        features=output.name,
        trained_on=trained_on,
        tested_on=tested_on or (trained_on if test_rows is None else "raw"),
        folds=len(split),
    )


def trained_answers(
    rows: Any,
    targets: npt.ArrayLike,
    questions: Any,
    *,
    features: Features | None = None,
    model: str | Builder = "linear",
    seed: int | None = None,
) -> npt.NDArray[Any]:
    """Return a model's answers about rows that may have classes it never saw: it names those that it knows.

    >>> trained_answers(["a good film", "a bad film"] * 9, ["+", "-"] * 9, ["good", "bad"], seed=1).tolist()
    ['+', '-']
    """
    output = features or _features_for(rows)
    seen, tested = output.of(rows), output.of(questions)
    target, codes = _targets_of(seen, targets), codes_of("targets", targets)
    labels = target[np.unique(codes, return_index=True)[1]]
    if labels.size == 1:
        return np.repeat(labels, tested.shape[0])
    _, build = _builder_of(model, classes=True)
    codes = _answers(build, output, seen, codes, tested, labels.size, _small_seed(RandomBits(seed)))
    answered: npt.NDArray[Any] = labels[codes]
    return answered


def _features_for(rows: Any) -> Features:
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "fiu":
        return VectorFeatures()
    if isinstance(rows, str) or not hasattr(rows, "__len__"):
        raise ParameterError(f"rows must be a list of texts, or vectors, got {type(rows).__name__}")
    first = next((row for row in rows if row is not None), "")
    return BagOfWords() if isinstance(first, str) or hasattr(first, "text") else VectorFeatures()


def _targets_of(rows: Any, targets: npt.ArrayLike) -> npt.NDArray[Any]:
    target, count = np.asarray(targets), rows.shape[0]
    if target.shape[:1] != (count,):
        raise ParameterError(f"targets must have one entry for each of {count} rows, got shape {target.shape}")
    return target


def _split(
    codes: npt.NDArray[Any],
    folds: int | Sequence[Fold],
    owners: npt.NDArray[np.int64] | None,
    *,
    classes: bool,
    seed: int,
) -> list[Fold]:
    if isinstance(folds, int | np.integer):
        return make_folds(codes, count=folds, people=owners, classes=classes, seed=seed)
    checked = check_folds(folds, codes.size, people=owners)
    if classes and any(np.unique(codes[part.train]).size <= codes.max() for part in checked):
        raise ParameterError("folds: the rows that train must hold every class")
    return checked


def _small_seed(bits: RandomBits) -> int:
    return int(bits.integers(1)[0] >> np.uint64(33))  # what scikit-learn takes


class Features(Protocol):
    """What a feature offers, and its name for the reader of a score."""

    name: str

    def of(self, rows: Any) -> Any:
        """Rows -> something of as many rows that an array of indices selects from."""

    def fitted(self, train: Any) -> Callable[[Any], Any]:
        """What turns a selection into what the model gets, learnt from the selection that trains."""


class BagOfWords:
    """How often each word stands in a text; frequent in the text and rare elsewhere weighs most (tf-idf).

    Args:
        vocabulary: public words, all others do not count; None: every word counts, hashed into a bucket.
        buckets: for hashing; words that share one are not told apart.
        tf_idf: weigh by rarity in the rows that train (1 + ln tf, smooth idf, unit length); otherwise counts.
    """

    def __init__(self, vocabulary: Sequence[str] | None = None, *, buckets: int = 1 << 16, tf_idf: bool = True) -> None:
        buckets = check_int("buckets", buckets, minimum=2)
        if vocabulary is not None and not len(vocabulary):
            raise ParameterError("vocabulary must hold at least one word, got none")
        self._rows = (
            None if vocabulary is None else {word: row for row, word in enumerate(dict.fromkeys(map(fold, vocabulary)))}
        )
        self._buckets, self._tf_idf = buckets, tf_idf
        size = f"{buckets:,} buckets" if self._rows is None else f"{len(self._rows):,} public words"
        self.name = f"bag of words ({size}{', tf-idf' if tf_idf else ''})"

    def of(self, rows: Iterable[str | None]) -> Any:
        """(rows, words) sparse counts."""
        text = extra("sklearn.feature_extraction.text", "sklearn", "a bag of words")
        texts = ["" if entry is None else entry for entry in check_texts(rows)]
        if self._rows is None:
            counter = text.HashingVectorizer(
                analyzer=words_of, n_features=self._buckets, norm=None, alternate_sign=False
            )
        else:
            counter = text.CountVectorizer(analyzer=words_of, vocabulary=self._rows)
        return counter.transform(texts)

    def fitted(self, train: Any) -> Callable[[Any], Any]:
        """Weights of words, from the counts of the rows that train."""
        if not self._tf_idf:
            return lambda counts: counts
        text = extra("sklearn.feature_extraction.text", "sklearn", "a bag of words")
        transform: Callable[[Any], Any] = text.TfidfTransformer(sublinear_tf=True).fit(train).transform
        return transform


class VectorFeatures:
    """Vectors, each coordinate scaled to mean 0 and spread 1 over the rows that train."""

    name = "vectors"

    def of(self, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """(rows, d) finite numbers."""
        try:
            vectors: npt.NDArray[np.float64] = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError("rows must be texts, or vectors of equal length: got something else") from None
        if vectors.ndim != 2 or not vectors.size:
            raise ParameterError(f"rows must be texts, or one vector a row, got shape {vectors.shape}")
        if not np.isfinite(vectors).all():
            row = int(np.argmin(np.isfinite(vectors).all(axis=1)))
            raise ParameterError(f"rows must be finite vectors, row {row} holds NaN or infinity")
        return vectors

    def fitted(self, train: npt.NDArray[np.float64]) -> Callable[[Any], Any]:
        middle = train.mean(axis=0)
        spread = train.std(axis=0)
        spread[spread == 0] = 1.0
        return lambda vectors: (vectors - middle) / spread


def words_of(text: str) -> list[str]:
    """The words of a text, folded: no numbers, addresses, punctuation.

    >>> words_of("Don't mail 7 DOCTORS!")
    ['do', "n't", 'mail', 'doctors']
    """
    return [fold(piece) for piece in pieces(text) if kind_of(piece) is Kind.WORD]


def _builder_of(model: str | Builder, *, classes: bool) -> tuple[str, Builder]:
    if callable(model):
        return getattr(model, "__name__", type(model).__name__), model
    if model == "linear":
        linear = extra("sklearn.linear_model", "sklearn", "a linear model")
        if classes:
            return "logistic regression", lambda _seed: linear.LogisticRegression(C=1.0, max_iter=1000)
        return "ridge regression", lambda _seed: linear.Ridge(alpha=1.0)
    if model == "mlp":
        network = extra("sklearn.neural_network", "sklearn", "a neural network")
        kind = network.MLPClassifier if classes else network.MLPRegressor
        return "MLP (128 hidden units)", lambda seed: kind(hidden_layer_sizes=(128,), max_iter=100, random_state=seed)
    raise ParameterError(f"model must be 'linear', 'mlp' or a function that builds one from a seed, got {model!r}")


@one_blas_thread()
def _answers(
    build: Builder, features: Features, seen: Any, targets: npt.NDArray[Any], tested: Any, classes: int, seed: int
) -> npt.NDArray[Any]:
    visible, count = features.fitted(seen), tested.shape[0]
    middle, spread = (0.0, 1.0) if classes else (float(targets.mean()), float(targets.std()) or 1.0)
    model = build(seed)
    with warnings.catch_warnings():
        # a fit that stops after the stated number of steps is what was asked for; the score says how good it is
        warnings.filterwarnings("ignore", message=".*(onverge|maximum iterations).*")
        model.fit(visible(seen), targets if classes else (targets - middle) / spread)
    if hasattr(model, "predict"):
        answers = np.asarray(model.predict(visible(tested)))
    else:
        shares = np.asarray(model.predict_proba(visible(tested)))
        if shares.ndim != 2 or shares.shape[1] != classes:
            raise ParameterError(f"model: predict_proba must give one column for each of {classes} classes")
        answers = shares.argmax(axis=1)
    if answers.shape != (count,) or not np.isfinite(answers).all():
        raise ParameterError(f"model: expected {count} finite answers, got shape {answers.shape} or NaN")
    if not classes:
        return answers * spread + middle
    codes = answers.astype(np.int64)
    if (codes != answers).any() or codes.min() < 0 or codes.max() >= classes:
        raise ParameterError(f"model: expected class codes 0 to {classes - 1}, got something else")
    return codes


Rows: TypeAlias = npt.NDArray[np.int64]

SMALLEST_GROUP = 30


@dataclass(frozen=True, kw_only=True)
class GroupScore:
    """How well one group is served.

    Attributes:
        score: with its interval.
        baseline, baseline_name: of the best blind guess within the group.
        people: of how many people the group is; rows where everybody has one.
    """

    group: str
    score: Estimate
    baseline: float
    baseline_name: str
    people: int


@dataclass(frozen=True, kw_only=True)
class Gap:
    """How much better one group is served than another.

    Attributes:
        gap: the difference of their scores, with an interval that holds for all pairs together.
    """

    better: str
    worse: str
    gap: Estimate

    @property
    def is_shown(self) -> bool:
        """Whether the difference is more than chance: its interval leaves 0 out."""
        return self.gap.low > 0


@dataclass(frozen=True, kw_only=True)
class Fairness:
    """Scores of groups, and the gaps between them.

    Attributes:
        measure: "accuracy" or "macro-F1".
        gaps: of all pairs, the largest first.
    """

    measure: str
    groups: tuple[GroupScore, ...]
    gaps: tuple[Gap, ...]

    @property
    def largest(self) -> Gap:
        """The largest gap."""
        return self.gaps[0]

    @property
    def is_unequal(self) -> bool:
        """Whether any gap is more than chance."""
        return any(gap.is_shown for gap in self.gaps)

    def __str__(self) -> str:
        lines = [f"{group.group}: {self.measure} {group.score} against {group.baseline:.3f}" for group in self.groups]
        gap = self.largest
        return "\n".join([*lines, f"largest gap: {gap.better} above {gap.worse} by {gap.gap}"])


def fairness(
    true: npt.ArrayLike,
    predicted: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    people: npt.ArrayLike | None = None,
    measure: str = "accuracy",
    smallest: int = SMALLEST_GROUP,
    confidence: float = 0.95,
) -> Fairness:
    """Compare how groups of people are served by the same predictions.

    Args:
        true, predicted: (rows,) labels, of rows that had no part in training
            (`dptext.evaluation.utility.predictions`).
        groups: (rows,) the group of each row's person.
        people: (rows,) whose row each is; None: everybody has one.
        smallest: people that a group must have. Of fewer than about 30 the score is rather about these people.
        confidence: of each group's interval, and of all gaps together.

    Raises:
        ParameterError: one group only, an empty or a small one, a person in two groups, macro-F1 of a group that
            lacks a class, unequal lengths; the argument is named.

    >>> true = ["+", "-"] * 100
    >>> predicted = ["+", "-"] * 50 + ["+", "+"] * 50
    >>> found = fairness(true, predicted, ["x"] * 100 + ["y"] * 100)
    >>> found.largest.better, round(found.largest.gap.value, 2), found.is_unequal
    ('x', 0.5, True)
    """
    check_choice("measure", measure, CLASS_MEASURES)
    confidence = check_float("confidence", confidence, above=0, below=1)
    right, answer = codes_of_answers(true, predicted)
    codes = codes_of("groups", groups, rows=right.size)
    owners = people_of(people, right.size)
    names = [str(entry) for entry in np.asarray(groups)[np.unique(codes, return_index=True)[1]]]
    sizes = _sizes(codes, owners, smallest)
    _check_classes(measure, right, codes)
    pairs = list(combinations(range(len(names)), 2))
    scores, spreads = [], []
    for group, name in enumerate(names):
        in_group = codes == group
        rows = right[in_group], answer[in_group], None if people is None else owners[in_group]
        result = measured(measure, rows[0], rows[1], people=rows[2], confidence=confidence)
        blind: dict[str, Any] = {"baseline": result.baseline, "baseline_name": result.baseline_name}
        scores.append(GroupScore(group=name, score=result.score, **blind, people=int(sizes[group])))
        spreads.append(class_score(measure, *rows, confidence=1 - (1 - confidence) / len(pairs)))
    gaps = []
    for pair in pairs:
        better, worse = sorted(pair, key=lambda group: -spreads[group].value)
        gaps.append(Gap(better=names[better], worse=names[worse], gap=difference(spreads[better], spreads[worse])))
    return Fairness(measure=measure, groups=tuple(scores), gaps=tuple(sorted(gaps, key=lambda each: -each.gap.value)))


def _sizes(codes: Rows, owners: Rows, smallest: int) -> Rows:
    if codes.max() == 0:
        raise ParameterError("groups must be at least two, all rows have the same")
    pairs = np.unique(np.stack([codes, owners]), axis=1)
    if pairs.shape[1] > np.unique(owners).size:
        raise ParameterError("groups: somebody has rows in two groups; give each person one group")
    sizes: Rows = np.bincount(pairs[0])
    if sizes.min() < smallest:
        raise ParameterError(
            f"groups: the smallest has {sizes.min()} people, expected at least {smallest}: merge groups or leave it out"
        )
    return sizes


def _check_classes(which: str, classes: Rows, codes: Rows) -> None:
    pairs_present = np.unique(np.stack([codes, classes]), axis=1)
    if which == "macro-F1" and pairs_present.shape[1] < (codes.max() + 1) * np.unique(classes).size:
        raise ParameterError("groups: macro-F1 compares groups that hold every class, and one lacks a class")
