"""Accuracy of models trained on private texts or vectors, fairness across groups, and a comparison of epsilons.

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
    Rows,
    check_folds,
    check_numbers,
    class_score,
    codes_of,
    codes_of_answers,
    make_folds,
    people_of,
)
from dptext.evaluation.measures import measure as measured
from dptext.intervals import Estimate, difference
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import NATURAL, fit_bound
from dptext.representations.device import encoder_of
from dptext.representations.encoders import check_texts
from dptext.representations.privunit import PrivUnit
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import best_dimension
from dptext.text.tokens import Kind, fold, kind_of, pieces
from dptext.threads import one_blas_thread
from dptext.validation import check_choice

Builder: TypeAlias = Callable[[int], Any]
"""A seed -> a model with ``fit(features, targets)`` and ``predict(features)``."""

SMALLEST_GROUP = 30
_CONFIDENCE = 0.95


# -- models trained on some rows and tested on others --------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class UtilityScore(Measured):
    """Score of a model on ``rows`` rows that did not train it, over ``folds`` trained models."""

    model: str
    features: str
    trained_on: str
    tested_on: str
    rows: int
    folds: int

    @property
    def above_baseline(self) -> bool:
        """True if the model beats the baseline beyond the interval of the difference."""
        return self.gain.low > 0

    def __str__(self) -> str:
        return (
            f"{self.measure} {self.score} against {self.baseline:.3f} ({self.baseline_name}), {self.model} trained on "
            f"{self.trained_on}, tested on {self.tested_on}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions:
    """Answers of models about rows that did not train them: one target, answer and person per index in ``rows``."""

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
        """Return one measure of these predictions; see `dptext.evaluation.measures.measure`."""
        options: dict[str, Any] = {"people": self.people, "resamples": resamples, "confidence": confidence}
        result = measured(name, self.true, self.predicted, seed=seed, **options)
        names = ("model", "features", "trained_on", "tested_on", "folds")
        return UtilityScore(**vars(result), **{name: getattr(self, name) for name in names}, rows=self.rows.size)


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
    """Train a model on some rows, test it on others, and compare the score with the baseline.

    Args:
        rows: texts (strings, `dptext.Document`, None), or (rows, d) vectors.
        targets: (rows,) classes for "accuracy" and "macro-F1", numbers for "RMSE" and "MAE".
        measure: one of these four.
        seed: seed of folds, models and resamples.
        **options: options of `predictions`.

    Raises:
        ParameterError: one class, fewer rows than folds, NaN, unequal lengths, ...; the message names the argument.
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
    """Return answers about rows from models trained on the rows of other people.

    Args:
        rows: texts or vectors to train on, as in `utility`.
        targets: (rows,) classes, or numbers with ``classes=False``.
        test_rows: the same rows in another form (such as the original texts) to test on; None: the rows themselves.
        trained_on, tested_on: names of the two forms in the result.
        features: `BagOfWords`, `VectorFeatures` or another object with their methods; None: a bag of words for
            texts, the vectors for vectors.
        model: ``"linear"`` (logistic or ridge regression, penalty 1), ``"mlp"`` (one hidden layer of 128, Adam, at
            most 100 epochs), or a `Builder`.
        people: (rows,) the person of each row, who is never in both sides of a fold; None: one row per person.
        folds: number of folds, or a list of `Fold` (one for a fixed training and test set).
        seed: seed of folds and models.

    Raises:
        ParameterError: see `utility`.
    """
    features = features or _default_features(rows)
    train_inputs = features.of(rows)
    values = _check_targets(train_inputs, targets)
    test_inputs = train_inputs if test_rows is None else features.of(test_rows)
    if test_inputs.shape != train_inputs.shape:
        raise ParameterError(f"test_rows must be the same rows, of shape {train_inputs.shape}, got {test_inputs.shape}")
    codes: npt.NDArray[Any] = codes_of("targets", targets) if classes else check_numbers("targets", targets)
    owners = None if people is None else codes_of("people", people, rows=len(values))
    bits = RandomBits(seed)
    fold_seed = _draw_seed(bits)
    if isinstance(folds, int | np.integer):
        split = make_folds(codes, count=folds, people=owners, classes=classes, seed=fold_seed)
    else:
        split = check_folds(folds, codes.size, people=owners)
        if classes and any(np.unique(codes[part.train]).size <= codes.max() for part in split):
            raise ParameterError("folds: the training rows must contain every class")
    model_name, build = _builder_of(model, classes=classes)
    class_count = int(codes.max()) + 1 if classes else 0
    answers = []
    for part in split:
        model_seed = _draw_seed(bits)
        train, test = train_inputs[part.train], test_inputs[part.test]
        answers.append(_train_and_answer(build(model_seed), features, train, codes[part.train], test, class_count))
    tested, predicted = np.concatenate([part.test for part in split]), np.concatenate(answers)
    return Predictions(
        rows=tested,
        true=values[tested] if classes else codes[tested],
        predicted=values[np.unique(codes, return_index=True)[1]][predicted] if classes else predicted,
        people=None if owners is None else owners[tested],
        model=model_name,
        features=features.name,
        trained_on=trained_on,
        tested_on=tested_on or (trained_on if test_rows is None else "raw"),
        folds=len(split),
    )


def trained_answers(rows: Any, targets: npt.ArrayLike, questions: Any, *, seed: int | None = None) -> npt.NDArray[Any]:
    """Return a linear model's answers about rows whose classes it may never have seen.

    >>> trained_answers(["a good film", "a bad film"] * 9, ["+", "-"] * 9, ["good", "bad"], seed=1).tolist()
    ['+', '-']
    """
    features = _default_features(rows)
    train_inputs, test_inputs = features.of(rows), features.of(questions)
    values, codes = _check_targets(train_inputs, targets), codes_of("targets", targets)
    labels = values[np.unique(codes, return_index=True)[1]]
    if labels.size == 1:
        return np.repeat(labels, test_inputs.shape[0])
    _, build = _builder_of("linear", classes=True)
    model = build(_draw_seed(RandomBits(seed)))
    result: npt.NDArray[Any] = labels[_train_and_answer(model, features, train_inputs, codes, test_inputs, labels.size)]
    return result


def _default_features(rows: Any) -> Features:
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "fiu":
        return VectorFeatures()
    if isinstance(rows, str) or not hasattr(rows, "__len__"):
        raise ParameterError(f"rows must be a list of texts, or vectors, got {type(rows).__name__}")
    first = next((row for row in rows if row is not None), "")
    return BagOfWords() if isinstance(first, str) or hasattr(first, "text") else VectorFeatures()


def _check_targets(inputs: Any, targets: npt.ArrayLike) -> npt.NDArray[Any]:
    values, count = np.asarray(targets), inputs.shape[0]
    if values.shape[:1] != (count,):
        raise ParameterError(f"targets must have one entry for each of {count} rows, got shape {values.shape}")
    return values


def _draw_seed(bits: RandomBits) -> int:
    return int(bits.integers(1)[0] >> np.uint64(33))  # scikit-learn takes 31 bits


class Features(Protocol):
    """Features of rows, and their name in a score."""

    name: str

    def of(self, rows: Any) -> Any:
        """Return one entry per row, to be selected by an array of indices."""

    def fitted(self, train: Any) -> Callable[[Any], Any]:
        """Return the map from a selection to the model's inputs, learnt from the training selection."""


class BagOfWords:
    """Word counts, weighted by rarity in the training rows (1 + ln tf, smooth idf, unit length).

    Args:
        vocabulary: public words to count; None: every word, hashed into 65,536 buckets.
    """

    def __init__(self, vocabulary: Sequence[str] | None = None) -> None:
        if vocabulary is not None and not len(vocabulary):
            raise ParameterError("vocabulary must contain at least one word")
        text = extra("sklearn.feature_extraction.text", "sklearn", "a bag of words")
        self._weighting = text.TfidfTransformer
        if vocabulary is None:
            self._counter = text.HashingVectorizer(
                analyzer=words_of, n_features=1 << 16, norm=None, alternate_sign=False
            )
            self.name = f"bag of words ({1 << 16:,} buckets, tf-idf)"
        else:
            rows = {word: row for row, word in enumerate(dict.fromkeys(map(fold, vocabulary)))}
            self._counter = text.CountVectorizer(analyzer=words_of, vocabulary=rows)
            self.name = f"bag of words ({len(rows):,} public words, tf-idf)"

    def of(self, rows: Iterable[str | None]) -> Any:
        """Return (rows, words) sparse counts."""
        return self._counter.transform(check_texts(rows))

    def fitted(self, train: Any) -> Callable[[Any], Any]:
        transform: Callable[[Any], Any] = self._weighting(sublinear_tf=True).fit(train).transform
        return transform


class VectorFeatures:
    """Vectors with every coordinate scaled to mean 0 and standard deviation 1 over the training rows."""

    name = "vectors"

    def of(self, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return (rows, d) finite numbers."""
        try:
            vectors: npt.NDArray[np.float64] = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError("rows must be texts, or vectors of equal length") from None
        if vectors.ndim != 2 or not vectors.size:
            raise ParameterError(f"rows must be texts, or one vector per row, got shape {vectors.shape}")
        if not np.isfinite(vectors).all():
            row = int(np.argmin(np.isfinite(vectors).all(axis=1)))
            raise ParameterError(f"rows must be finite vectors, row {row} holds NaN or infinity")
        return vectors

    def fitted(self, train: npt.NDArray[np.float64]) -> Callable[[Any], Any]:
        mean, spread = train.mean(axis=0), train.std(axis=0)
        spread[spread == 0] = 1.0
        return lambda vectors: (vectors - mean) / spread


def words_of(text: str) -> list[str]:
    """Return the words of a text, case-folded, without numbers, addresses and punctuation.

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
def _train_and_answer(
    model: Any, features: Features, train_inputs: Any, targets: npt.NDArray[Any], test_inputs: Any, classes: int
) -> npt.NDArray[Any]:
    """Return the answers of a model: codes of classes, or numbers if there are 0 classes."""
    transform = features.fitted(train_inputs)
    mean, spread = (0.0, 1.0) if classes else (float(targets.mean()), float(targets.std()) or 1.0)
    with warnings.catch_warnings():  # the number of steps is fixed; the score shows whether they were enough
        warnings.filterwarnings("ignore", message=".*(onverge|maximum iterations).*")
        model.fit(transform(train_inputs), targets if classes else (targets - mean) / spread)
    answers = np.asarray(model.predict(transform(test_inputs)))
    if answers.shape != test_inputs.shape[:1] or not np.isfinite(answers).all():
        raise ParameterError(
            f"model must return {test_inputs.shape[0]} finite predictions, got shape {answers.shape} or NaN"
        )
    if not classes:
        return answers * spread + mean
    if not np.isin(answers, np.arange(classes)).all():
        raise ParameterError(f"model must return class codes from 0 to {classes - 1}")
    return answers.astype(np.int64)


# -- fairness ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GroupScore:
    """Score of one group, with the baseline within the group and its number of people."""

    group: str
    score: Estimate
    baseline: float
    baseline_name: str
    people: int


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Difference between the scores of two groups; the intervals of all pairs hold simultaneously."""

    better: str
    worse: str
    gap: Estimate

    @property
    def is_shown(self) -> bool:
        """True if the interval excludes 0: chance does not explain the difference."""
        return self.gap.low > 0


@dataclass(frozen=True, kw_only=True)
class Fairness:
    """Scores of groups, and the gaps of all pairs, the largest first."""

    groups: tuple[GroupScore, ...]
    gaps: tuple[Gap, ...]

    @property
    def largest(self) -> Gap:
        """The largest gap."""
        return self.gaps[0]

    @property
    def is_unequal(self) -> bool:
        """True if chance does not explain some gap."""
        return any(gap.is_shown for gap in self.gaps)

    def __str__(self) -> str:
        lines = [f"{group.group}: accuracy {group.score} against {group.baseline:.3f}" for group in self.groups]
        gap = self.largest
        return "\n".join([*lines, f"largest gap: {gap.better} above {gap.worse} by {gap.gap}"])


def fairness(
    true: npt.ArrayLike,
    predicted: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    people: npt.ArrayLike | None = None,
    smallest: int = SMALLEST_GROUP,
) -> Fairness:
    """Compare the accuracy for groups of people under the same predictions, with 95% intervals.

    Args:
        true, predicted: (rows,) labels of rows that did not train the model
            (`dptext.evaluation.utility.predictions`).
        groups: (rows,) the group of each row's person.
        people: (rows,) the person of each row; None: one row per person.
        smallest: minimum number of people in a group. The score of fewer than about 30 reveals these people.

    Raises:
        ParameterError: one group only, an empty or a small one, a person in two groups, unequal lengths; the message
            names the argument.

    >>> true = ["+", "-"] * 100
    >>> predicted = ["+", "-"] * 50 + ["+", "+"] * 50
    >>> result = fairness(true, predicted, ["x"] * 100 + ["y"] * 100)
    >>> result.largest.better, round(result.largest.gap.value, 2), result.is_unequal
    ('x', 0.5, True)
    """
    labels, answers = codes_of_answers(true, predicted)
    codes = codes_of("groups", groups, rows=labels.size)
    owners = people_of(people, labels.size)
    names = [str(entry) for entry in np.asarray(groups)[np.unique(codes, return_index=True)[1]]]
    sizes = _group_sizes(codes, owners, smallest)
    pairs = list(combinations(range(len(names)), 2))
    scores, wide = [], []
    for group, name in enumerate(names):
        members = codes == group
        rows = labels[members], answers[members], None if people is None else owners[members]
        result = measured("accuracy", rows[0], rows[1], people=rows[2])
        baseline: dict[str, Any] = {"baseline": result.baseline, "baseline_name": result.baseline_name}
        scores.append(GroupScore(group=name, score=result.score, **baseline, people=int(sizes[group])))
        wide.append(class_score("accuracy", *rows, confidence=1 - (1 - _CONFIDENCE) / len(pairs)))
    gaps = []
    for pair in pairs:
        better, worse = sorted(pair, key=lambda group: -wide[group].value)
        gaps.append(Gap(better=names[better], worse=names[worse], gap=difference(wide[better], wide[worse])))
    return Fairness(groups=tuple(scores), gaps=tuple(sorted(gaps, key=lambda gap: -gap.gap.value)))


def _group_sizes(codes: Rows, owners: Rows, smallest: int) -> Rows:
    if codes.max() == 0:
        raise ParameterError("groups must have at least two values, got one")
    pairs = np.unique(np.stack([codes, owners]), axis=1)
    if pairs.shape[1] > np.unique(owners).size:
        raise ParameterError("groups: a person has rows in two groups; give each person one group")
    sizes: Rows = np.bincount(pairs[0])
    if sizes.min() < smallest:
        raise ParameterError(
            f"groups: the smallest has {sizes.min()} people, at least {smallest} are needed. Merge groups, or drop it"
        )
    return sizes


# -- comparison of epsilons on public texts ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AtEpsilon:
    """Utility of private vectors at one epsilon."""

    epsilon: float
    dimension: int
    error: float  # E||z - x||^2, for a vector x of length 1
    accuracy: Estimate
    learned: Estimate | None  # of the server's model for vectors without noise, on such vectors


@dataclass(frozen=True, kw_only=True)
class EpsilonComparison:
    """Result of `compare_epsilons`. Its text is a table."""

    rows: tuple[AtEpsilon, ...]
    clean: Estimate  # with the encoder's vectors, without projection and noise
    chance: float  # share of the most frequent label
    texts: int
    trained_on: int

    def __str__(self) -> str:
        lines = ["  epsilon  dimension   error  accuracy, noisy       accuracy, without noise"]
        lines += [
            f"  {row.epsilon:<7g}{row.dimension:>11}{row.error:>8.3g}  {_percent(row.accuracy):<22}"
            + ("-" if row.learned is None else _percent(row.learned))
            for row in self.rows
        ]
        lines.append(f"  {'no noise, public texts alone':<50}{_percent(self.clean)}")
        return "\n".join([*lines, f"  {'no vector, the most frequent label':<50}{self.chance:.1%}"])


def compare_epsilons(
    encoder: Any,
    public_texts: Iterable[str | None],
    public_labels: Sequence[Any] | npt.NDArray[Any],
    epsilons: Iterable[float],
    *,
    randomizer: Callable[[float], Randomizer] | None = None,
    seed: int | None = None,
) -> EpsilonComparison:
    """Compare the accuracy of a classifier of private vectors at several epsilons, on *public* labelled texts.

    **The authors of these texts are not protected.** ``randomizer`` maps an epsilon to a randomizer (None: PrivUnit);
    ``seed`` makes the table repeatable, and no privacy depends on it.

    >>> words = (["good", "bad", "film", "plot"], [[1.0, 0.0], [-1.0, 0.1], [0.0, 1.0], [0.1, -1.0]])
    >>> from dptext.vectors.formats import load_vectors
    >>> texts = ["good film", "bad film", "good plot", "bad plot"] * 25
    >>> result = compare_epsilons(load_vectors(words), texts, ["+", "-"] * 50, [1.0, 16.0], seed=1)
    >>> [row.accuracy.value > 0.9 for row in result.rows], result.chance
    ([False, True], 0.5)
    """
    values = [float(epsilon) for epsilon in epsilons]
    if not values or len(set(values)) < len(values):
        raise ParameterError("epsilons must be distinct, and at least one is needed")
    build = randomizer or (lambda epsilon: PrivUnit(epsilon=epsilon))
    randomizers = [build(epsilon) for epsilon in values]
    text_encoder, texts, labels = encoder_of(encoder), check_texts(public_texts), np.asarray(public_labels)
    codes = codes_of("public labels", labels, rows=len(texts))
    bits = RandomBits(seed)
    folds = make_folds(labels, seed=_noise_seed(bits))
    vectors = text_encoder.encode(texts)
    rows = []
    for epsilon, noise in zip(values, randomizers, strict=True):
        bound: dict[str, Any] = {"bound": NATURAL[noise.natural_domain], "projection": "pca"}
        dimension = best_dimension(text_encoder.dimension, noise, **bound)
        noisy, clean = _compare_answers(vectors, codes, folds, noise, bound | {"dimension": dimension}, bits)
        rows.append(
            AtEpsilon(
                epsilon=epsilon,
                dimension=dimension,
                error=noise.expected_squared_error(dimension),
                accuracy=measured("accuracy", codes, noisy).score,
                learned=None if clean is None else measured("accuracy", codes, clean).score,
            )
        )
    public = measured("accuracy", codes, _compare_answers(vectors, codes, folds, None, {}, bits)[0])
    trained_on = min(len(part.train) for part in folds)
    return EpsilonComparison(
        rows=tuple(rows), clean=public.score, chance=public.baseline, texts=len(texts), trained_on=trained_on
    )


def _compare_answers(
    vectors: npt.NDArray[Any],
    codes: Rows,
    folds: Sequence[Fold],
    randomizer: Randomizer | None,
    bound: dict[str, Any],
    bits: RandomBits,
) -> tuple[Rows, Rows | None]:
    """Return the answers about noisy vectors, and about vectors without noise if the channel has such a model."""
    from dptext.representations.classifiers import NoisyClassifier

    noisy_answers, clean_answers = np.empty_like(codes), np.empty_like(codes)
    has_model = randomizer is not None
    for part in folds:
        clean = noisy = vectors - vectors[part.train].mean(axis=0)
        if randomizer is not None:
            clean = fit_bound(vectors[part.train], labels=None, **bound).apply(vectors)
            noisy = randomizer.randomize(clean, seed=_noise_seed(bits))
        server = NoisyClassifier(channel=randomizer).fit(noisy[part.train], codes[part.train])
        noisy_answers[part.test] = server.predict(noisy[part.test])
        try:
            clean_answers[part.test] = server.device_model().predict(clean[part.test])
        except ParameterError:  # the channel has no model for vectors without noise
            has_model = False
    return noisy_answers, clean_answers if has_model else None


def _noise_seed(bits: RandomBits) -> int | None:
    return int(bits.uniform(1)[0] * 2**31) if bits.seeded else None


def _percent(score: Estimate) -> str:
    return f"{score.value:.1%} [{score.low:.1%}, {score.high:.1%}]"
