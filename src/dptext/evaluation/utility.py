"""Accuracy of models trained on private texts or vectors, and a comparison of epsilons."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, extra
from dptext.evaluation.measures import Fold, Measured, Rows, codes_of, make_folds
from dptext.evaluation.measures import measure as measured
from dptext.intervals import Estimate
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import NATURAL, fit_bound
from dptext.representations.device import encoder_of
from dptext.representations.encoders import check_texts
from dptext.representations.privunit import PrivUnit
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import best_dimension
from dptext.text.tokens import Kind, fold, kind_of, pieces
from dptext.threads import one_blas_thread

_BUCKETS = 1 << 16


# -- models trained on some rows and tested on others --------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class UtilityScore(Measured):
    """Score of models on ``rows`` held-out rows, over ``folds`` trained models."""

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
            f"{self.measure} {self.score} against {self.baseline:.3f} ({self.baseline_name}), logistic regression "
            f"trained on {self.trained_on}, tested on {self.tested_on}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions:
    """Answers of models for held-out rows: one target, answer and person per index in ``rows``."""

    rows: npt.NDArray[np.int64]
    true: npt.NDArray[Any]
    predicted: npt.NDArray[Any]
    people: npt.NDArray[np.int64] | None
    features: str
    trained_on: str
    tested_on: str
    folds: int

    def score(self, name: str) -> UtilityScore:
        """Return "accuracy" or "macro-F1" of these predictions."""
        result = measured(name, self.true, self.predicted, people=self.people)
        names = ("features", "trained_on", "tested_on", "folds")
        return UtilityScore(**vars(result), **{name: getattr(self, name) for name in names}, rows=self.rows.size)


def utility(rows: Any, targets: npt.ArrayLike, *, measure: str = "accuracy", **options: Any) -> UtilityScore:
    """Train a model on some rows, test it on others, and compare the score with the baseline.

    Args:
        rows: texts (strings, `dptext.Document`, None), or (rows, d) vectors.
        targets: (rows,) classes.
        measure: "accuracy" or "macro-F1".
        **options: options of `predictions`.

    Raises:
        ParameterError: one class, fewer rows than folds, NaN, unequal lengths, ...; the message names the argument.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> texts, stars = ["a good film", "a bad film"] * 20, ["+", "-"] * 20
    >>> print(utility(texts, stars, seed=1, trained_on="raw"))
    accuracy 1.000 [0.912, 1.000] against 0.500 (majority class), logistic regression trained on raw, tested on raw
    """
    return predictions(rows, targets, **options).score(measure)


def predictions(
    rows: Any,
    targets: npt.ArrayLike,
    *,
    test_rows: Any = None,
    trained_on: str = "private",
    tested_on: str | None = None,
    people: npt.ArrayLike | None = None,
    folds: int = 5,
    seed: int | None = None,
) -> Predictions:
    """Return answers for rows from logistic regressions (penalty 1) trained on the rows of other people.

    The features of a text are its words, hashed into 65,536 buckets and weighted by tf-idf; vectors are scaled.

    Args:
        rows: texts or vectors to train on, as in `utility`.
        targets: (rows,) classes.
        test_rows: the same rows in another form (such as the original texts) to test on; None: the rows themselves.
        trained_on, tested_on: names of the two forms in the result.
        people: (rows,) the person of each row, who is never on both sides of a fold; None: one row per person.
        folds: number of folds.
        seed: seed of the folds.

    Raises:
        ParameterError: see `utility`.
    """
    train_inputs, features = _features(rows)
    values = _check_targets(train_inputs, targets)
    test_inputs = train_inputs if test_rows is None else _features(test_rows)[0]
    if test_inputs.shape != train_inputs.shape:
        raise ParameterError(f"test_rows must be the same rows, of shape {train_inputs.shape}, got {test_inputs.shape}")
    codes = codes_of("targets", targets)
    owners = None if people is None else codes_of("people", people, rows=len(values))
    fold_seed = int(RandomBits(seed).integers(1)[0] >> np.uint64(33))
    split = make_folds(codes, count=folds, people=owners, seed=fold_seed)
    answers = [_answers(train_inputs[part.train], codes[part.train], test_inputs[part.test]) for part in split]
    tested = np.concatenate([part.test for part in split])
    return Predictions(
        rows=tested,
        true=values[tested],
        predicted=values[np.unique(codes, return_index=True)[1]][np.concatenate(answers)],
        people=None if owners is None else owners[tested],
        features=features,
        trained_on=trained_on,
        tested_on=tested_on or (trained_on if test_rows is None else "raw"),
        folds=len(split),
    )


def trained_answers(rows: Any, targets: npt.ArrayLike, questions: Any) -> npt.NDArray[Any]:
    """Return the answers of a linear model for rows, whose classes may be absent from its training data.

    >>> trained_answers(["a good film", "a bad film"] * 9, ["+", "-"] * 9, ["good", "bad"]).tolist()
    ['+', '-']
    """
    train_inputs, test_inputs = _features(rows)[0], _features(questions)[0]
    values, codes = _check_targets(train_inputs, targets), codes_of("targets", targets)
    labels = values[np.unique(codes, return_index=True)[1]]
    if labels.size == 1:
        return np.repeat(labels, test_inputs.shape[0])
    return labels[_answers(train_inputs, codes, test_inputs)]


def _features(rows: Any) -> tuple[Any, str]:
    """Return the word counts of texts (sparse) or the vectors, and their name."""
    is_matrix = isinstance(rows, np.ndarray) and rows.dtype.kind in "fiu"
    if isinstance(rows, str) or not hasattr(rows, "__len__"):
        raise ParameterError(f"rows must be a list of texts, or vectors, got {type(rows).__name__}")
    first = None if is_matrix else next((row for row in rows if row is not None), "")
    if isinstance(first, str) or hasattr(first, "text"):
        text = extra("sklearn.feature_extraction.text", "sklearn", "a bag of words")
        counter = text.HashingVectorizer(analyzer=words_of, n_features=_BUCKETS, norm=None, alternate_sign=False)
        return counter.transform(check_texts(rows)), f"bag of words ({_BUCKETS:,} buckets, tf-idf)"
    try:
        vectors: npt.NDArray[np.float64] = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("rows must be texts, or vectors of equal length") from None
    if vectors.ndim != 2 or not vectors.size:
        raise ParameterError(f"rows must be texts, or one vector per row, got shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        row = int(np.argmin(np.isfinite(vectors).all(axis=1)))
        raise ParameterError(f"rows must be finite vectors, row {row} contains NaN or infinity")
    return vectors, "vectors"


def _check_targets(inputs: Any, targets: npt.ArrayLike) -> npt.NDArray[Any]:
    values, count = np.asarray(targets), inputs.shape[0]
    if values.shape[:1] != (count,):
        raise ParameterError(f"targets must have one entry for each of {count} rows, got shape {values.shape}")
    return values


def words_of(text: str) -> list[str]:
    """Return the words of a text, case-folded, without numbers, addresses and punctuation.

    >>> words_of("Don't mail 7 DOCTORS!")
    ['do', "n't", 'mail', 'doctors']
    """
    return [fold(piece) for piece in pieces(text) if kind_of(piece) is Kind.WORD]


@one_blas_thread()
def _answers(train_inputs: Any, codes: Rows, test_inputs: Any) -> Rows:
    """Return the answers of a model; weights and scales come from the training rows."""
    model = extra("sklearn.linear_model", "sklearn", "a linear model").LogisticRegression(C=1.0, max_iter=1000)
    if isinstance(train_inputs, np.ndarray):
        mean, spread = train_inputs.mean(axis=0), train_inputs.std(axis=0)
        spread[spread == 0] = 1.0
        train_inputs, test_inputs = ((vectors - mean) / spread for vectors in (train_inputs, test_inputs))
    else:
        tfidf = extra("sklearn.feature_extraction.text", "sklearn", "a bag of words").TfidfTransformer
        weighting = tfidf(sublinear_tf=True).fit(train_inputs)
        train_inputs, test_inputs = weighting.transform(train_inputs), weighting.transform(test_inputs)
        used = np.flatnonzero(train_inputs.getnnz(axis=0))  # a word that nobody trained on has weight 0
        train_inputs, test_inputs = train_inputs[:, used], test_inputs[:, used]
    with warnings.catch_warnings():  # the score shows whether the steps were enough
        warnings.filterwarnings("ignore", message=".*(onverge|maximum iterations).*")
        return np.asarray(model.fit(train_inputs, codes).predict(test_inputs), dtype=np.int64)


# -- comparison of epsilons on public texts ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AtEpsilon:
    """Utility of private vectors at one epsilon."""

    epsilon: float
    dimension: int
    error: float  # E||z - x||^2, for a vector x of length 1
    accuracy: Estimate
    learned: Estimate | None  # the server's model for vectors without noise, tested on such vectors


@dataclass(frozen=True, kw_only=True)
class EpsilonComparison:
    """Result of `compare_epsilons`. Its text is a table."""

    rows: tuple[AtEpsilon, ...]
    clean: Estimate  # of the encoder's vectors, without projection and noise
    chance: float  # proportion of the most frequent label
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
        raise ParameterError("epsilons must contain at least one number, and no duplicates")
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
    """Return the answers for noisy vectors, and for vectors without noise if the channel has such a model."""
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
