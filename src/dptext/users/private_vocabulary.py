"""Words and labels that many users share, learned under user-level differential privacy.

Derivation: docs/mechanisms/cooccurrence.md#noise-thresholded
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext import validation
from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError, extra, extras
from dptext.privacy.budgets import warn_of_delta
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import HasStatement, Parameter, PrivacyStatement, new_release_id, release_statement
from dptext.privacy.wording import facts_of
from dptext.text.tokens import UNKNOWN, Kind, Vocabulary, fold, is_single_word, kind_of
from dptext.users.grouping import NO_WORD, OUTSIDE, TokenRows, UserUnit, documents_of, texts_of

LONGEST_WORD = 40
"""Maximum length of a released word."""
LONGEST_LABEL = 100
"""Maximum length of a released label."""
_USER_IDS = ("all documents of a user have the same user id, and documents of others have different ones",)
_JOINERS = "\u200c\u200d"  # part of the spelling in Persian, Hindi and emoji


class LearnedVocabulary(Vocabulary):
    """Words learned from users; they are not public, although they may be published."""

    __slots__ = ()


@dataclass(frozen=True, repr=False)
class PrivateVocabulary(HasStatement, ReprMixin):
    """The result of `private_vocabulary`.

    Attributes:
        words: new words, folded (`dptext.text.tokens.fold`), by descending noisy count. The counts are not stored.
        statement: the privacy statement.
    """

    words: tuple[str, ...]
    statement: PrivacyStatement

    @property
    def vocabulary(self) -> LearnedVocabulary:
        """Vocabulary of the new words and the unknown word."""
        return LearnedVocabulary((*self.words, UNKNOWN))

    def after(self, known: Vocabulary) -> LearnedVocabulary:
        """Return a vocabulary of the known words, in their rows, followed by the new words."""
        return LearnedVocabulary((*known.words, *(word for word in self.words if word not in known)))

    def _repr_fields(self) -> Fields:
        yield "words", len(self.words)
        yield "guarantee", str(self.statement.guarantee)

    def _html_fields(self) -> Fields:
        return facts_of(self.statement)


def private_vocabulary(
    documents: Any,
    *,
    epsilon: float,
    delta: float,
    text: str = "text",
    user: str | None = None,
    words_per_user: int = 100,
    known: Vocabulary | Iterable[str] | None = None,
    public_users: int | None = None,
) -> PrivateVocabulary:
    """Learn words from users' own texts.

    A candidate is a folded word in the sense of `dptext.text.tokens`, with at most `LONGEST_WORD` characters and
    without white space, control characters and invisible marks. Vocabularies and all vector formats can represent it.

    Args:
        documents: a table, as in `dptext.privatize`, or documents with users, in any order.
        epsilon, delta: privacy budget per user. All arguments are public.
        text, user: columns of the table.
        words_per_user: L, the maximum number of different words that a user contributes. A larger value covers more of
            a user's vocabulary but raises the threshold, which grows as the square root of L.
        known: public words, or words that were released under their own privacy statement.
        public_users: public upper bound on the number of users, used to check delta: a
            `dptext.privacy.budgets.DeltaWarning` is issued unless delta is below its inverse.

    **Guarantee** (unit user, add/remove, central): (epsilon, delta)-DP, as in the statement. A word that only one user
    wrote is released with a probability of at most delta / words_per_user.

    Memory grows with the number of distinct unknown words (about 100 bytes each). One user's words must fit as well.

    Raises:
        MissingExtraError: OpenDP is not installed.
        ParameterError: an argument is out of range.
        DataError, StorageError: as in `dptext.users.grouping.users_of`.
    """
    documents = documents_of(documents, "user", text=text, user=user)
    warn_of_delta(delta, public_users=public_users)
    mechanism = thresholded_counts(epsilon=epsilon, delta=delta, keys=words_per_user)
    if isinstance(known, str):
        raise ParameterError("known must be a Vocabulary or a list of words, got a single string. Put it into a list")
    known_words = frozenset(map(fold, known.words if isinstance(known, Vocabulary) else known or ()))
    numbers: dict[str, int] = {}

    def row_of(token: str) -> int:
        word = fold(token)
        is_candidate = kind_of(token) is Kind.WORD and word not in known_words and _may_enter(word)
        return numbers.setdefault(word, len(numbers)) if is_candidate else NO_WORD

    rows_of = TokenRows(row_of)
    with texts_of(documents) as users:
        contributions = ((rows_of(texts)[0] for texts, _ in user.chunks()) for user in users)
        words = _released(contributions, numbers, mechanism, words_per_user)
    return PrivateVocabulary(
        words=words,
        statement=_statement(
            mechanism,
            Unit.USER,
            "private vocabulary",
            {"words_per_user": words_per_user},
            {"longest_word": LONGEST_WORD, "known_words": len(known_words)},
            "the previously known words are public, or were released with their own statement",
        ),
    )


@dataclass(frozen=True, repr=False)
class PrivateLabels(HasStatement, ReprMixin):
    """The result of `private_labels`.

    Attributes:
        column: name of the label column.
        names: labels in the form of `dptext.io.documents.canonical_label`, by descending noisy count. The counts are
            not stored.
        statement: the privacy statement.
    """

    column: str
    names: tuple[str, ...]
    statement: PrivacyStatement

    def _repr_fields(self) -> Fields:
        yield "column", self.column
        yield "names", self.names
        yield "guarantee", str(self.statement.guarantee)

    def _html_fields(self) -> Fields:
        return facts_of(self.statement)


def private_labels(
    documents: Any,
    *,
    epsilon: float,
    delta: float,
    column: str = "label",
    text: str = "text",
    user: str | None = None,
    labels_per_user: int = 3,
    unit: UserUnit = "user",
    public_users: int | None = None,
) -> PrivateLabels:
    """Learn the label set of private documents, if there is no public list of labels.

    The set of labels of a private file reveals who is in it, if a user has a rare label. Here, a label is released
    only if enough users have it. A candidate is a number, a truth value, or a text of at most `LONGEST_LABEL`
    characters without control characters, line breaks and invisible marks.

    Args:
        documents: a table, as in `dptext.privatize`, or documents with users, in any order.
        epsilon, delta: privacy budget per user. It adds to the budget of each release that uses the labels (the
            statements compose). All arguments are public.
        column: name of the label column of the table, or in `Document.attributes` (a kept column); if it does not
            exist there, the label of the documents is used.
        text, user: columns of the table.
        labels_per_user: L, the maximum number of different labels that a user contributes, chosen at random. The
            threshold grows as the square root of L. With ``unit="document"`` it is 1.
        unit: privacy unit: a user with all their documents, or a single document.
        public_users: as in `private_vocabulary`.

    **Guarantee** (that unit, add/remove, central): (epsilon, delta)-DP, as in the statement. A label that only one user
    has is released with a probability of at most delta / labels_per_user.

    Memory grows with the number of distinct labels.

    Raises:
        MissingExtraError: OpenDP is not installed.
        ParameterError: an argument is out of range, or the column is not read.
        DataError, StorageError: as in `dptext.users.grouping.users_of`.
    """
    validation.check_choice("unit", unit, get_args(UserUnit))
    validation.check_text("column", column)
    documents = documents_of(documents, unit, text=text, user=user, columns=(column,))
    warn_of_delta(delta, public_users=public_users)
    limit = validation.check_int("labels_per_user", labels_per_user, minimum=1) if unit == "user" else 1
    mechanism = thresholded_counts(epsilon=epsilon, delta=delta, keys=limit)
    numbers: dict[str, int] = {}

    def code(values: tuple[str | None, ...]) -> int:
        (label,) = values
        return OUTSIDE if label is None or not _may_be_label(label) else numbers.setdefault(label, len(numbers))

    with texts_of(documents, columns=(column,), code=code, unit=unit) as users:
        contributions = ((codes[codes != OUTSIDE] for _, codes in user.chunks()) for user in users)
        names = _released(contributions, numbers, mechanism, limit)
    return PrivateLabels(
        column=column,
        names=names,
        statement=_statement(
            mechanism, Unit(unit), "private labels", {"labels_per_user": limit}, {"longest_label": LONGEST_LABEL}
        ),
    )


def _released(
    users: Iterable[Iterable[npt.NDArray[np.int32]]], names: Iterable[str], mechanism: ThresholdedCounts, limit: int
) -> tuple[str, ...]:
    """Return the names that enough users contribute, at most ``limit`` each, by descending noisy count."""
    bits, counts = RandomBits(), Counter[int]()
    for parts in users:
        counts.update(_sample(np.unique(np.concatenate(list(parts))), limit, bits).tolist())
    words = list(names)
    # post-processing: ordered by noisy count, then alphabetically
    noisy = sorted((-count, words[number]) for number, count in mechanism.release(counts).items())
    return tuple(name for _, name in noisy)


def _statement(
    mechanism: ThresholdedCounts,
    unit: Unit,
    name: str,
    bound: dict[str, Parameter],
    limits: dict[str, Parameter],
    *assumptions: str,
) -> PrivacyStatement:
    return release_statement(
        guarantee=ApproxDP(mechanism.epsilon, mechanism.delta),
        unit=unit,
        relation=Relation.ADD_REMOVE,
        trust=Trust.CENTRAL,
        mechanism=name,
        parameters={
            "epsilon": mechanism.epsilon,
            "delta": mechanism.delta,
            **bound,
            "noise": mechanism.noise,
            "scale": mechanism.scale,
            "threshold": mechanism.threshold,
            **limits,
            "opendp": version("opendp"),
        },
        assumptions=(
            *(_USER_IDS if unit is Unit.USER else ()),
            *assumptions,
            "OpenDP draws its noise correctly, from the operating system's generator",
        ),
        release_id=new_release_id(),
    )


def _sample(numbers: npt.NDArray[np.int32], limit: int, bits: RandomBits) -> npt.NDArray[np.int32]:
    """Choose at most ``limit`` numbers uniformly (up to n^2 / 2^64, the probability of equal random draws)."""
    if numbers.size <= limit:
        return numbers
    return numbers[np.argpartition(bits.integers(numbers.size), limit - 1)[:limit]]


def _may_be_label(label: str) -> bool:
    return len(label) <= LONGEST_LABEL and not any(letter != " " and _is_nonletter(letter) for letter in label)


def _may_enter(word: str) -> bool:
    return (
        0 < len(word) <= LONGEST_WORD
        and fold(word) == word
        and not any(map(_is_nonletter, word))
        and is_single_word(word)
    )


def _is_nonletter(letter: str) -> bool:
    """Return True for white space, control characters, direction marks and other invisible characters."""
    if letter in _JOINERS:
        return False
    return letter.isspace() or unicodedata.category(letter) in ("Cc", "Cf", "Cs")


NoiseKind: TypeAlias = Literal["gaussian", "laplace"]
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # candidate fractions of delta for the release of names
_MARGIN = 1 + 1e-9  # covers rounding errors of a tail


@dataclass(frozen=True)
class ThresholdedCounts:
    """Noise and threshold for (epsilon, delta); see `thresholded_counts`."""

    epsilon: float
    delta: float
    keys: int
    noise: NoiseKind
    scale: float
    threshold: int
    delta_of_names: float

    def release(self, counts: Mapping[int, int]) -> dict[int, int]:
        """Return the noisy counts that reach the threshold, in no particular order."""
        with _opendp() as opendp:
            measurement = _measurement(opendp, self.noise, self.scale, self.threshold)
        noisy: dict[int, int] = measurement(dict(counts))
        return {number: count for number, count in noisy.items() if count >= self.threshold}


def thresholded_counts(*, epsilon: float, delta: float, keys: int) -> ThresholdedCounts:
    """Return the noise with the lower threshold, Gaussian or Laplace; it depends on the arguments only."""
    epsilon = validation.check_float("epsilon", epsilon, minimum=1e-3, maximum=100)
    delta = validation.check_float("delta", delta, minimum=1e-100, below=1)
    keys = validation.check_int("the counts that a user may be in", keys, minimum=1, maximum=1 << 20)
    result = [_laplace(epsilon, delta, keys), *(_gaussian(epsilon, delta, keys, share) for share in _SHARES)]
    return min(result, key=lambda option: option.threshold)


def gaussian_tail(scale: float, cutoff: int) -> float:
    """Return an upper bound on P(Z >= cutoff) for the discrete Gaussian distribution."""
    near = cutoff - 0.5
    if near < scale:
        return 1.0
    return _MARGIN * math.erfc(near / scale / math.sqrt(2)) / 2


def laplace_tail(scale: float, cutoff: int) -> float:
    """Return P(Z >= cutoff) = q^cutoff / (1 + q), q = exp(-1 / scale), for discrete Laplace noise and cutoff >= 1."""
    return _MARGIN * math.exp(-cutoff / scale) / (1 + math.exp(-1 / scale))


def _laplace(epsilon: float, delta: float, keys: int) -> ThresholdedCounts:
    scale = keys / epsilon
    with _opendp() as opendp:
        while _measurement(opendp, "laplace", scale, 2).map((keys, keys, 1))[0] > epsilon:
            scale *= 1 + 1e-12  # the map of the measurement rounds upwards
    threshold = _threshold(lambda cutoff: laplace_tail(scale, cutoff), delta / keys)
    return ThresholdedCounts(epsilon, delta, keys, "laplace", scale, threshold, delta)


def _gaussian(epsilon: float, delta: float, keys: int, share: float) -> ThresholdedCounts:
    names = share * delta
    with _opendp() as opendp:

        def is_enough(scale: float) -> bool:
            zcdp = _measurement(opendp, "gaussian", scale, 2)
            profile = opendp.combinators.make_zCDP_to_approxDP(zcdp).map((keys, keys, 1))[0]
            return bool(profile.epsilon(delta - names) <= epsilon)

        high = math.sqrt(keys) / epsilon
        while not is_enough(high):
            high *= 2
        low = high / 2
        while is_enough(low):
            low, high = low / 2, low
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
    threshold = _threshold(lambda cutoff: gaussian_tail(high, cutoff), names / keys)
    return ThresholdedCounts(epsilon, delta, keys, "gaussian", high, threshold, names)


def _threshold(tail: Callable[[int], float], limit: float) -> int:
    """Return the smallest T with P(Z >= T - 1) <= limit.  (1)"""
    high = 1
    while tail(high) > limit:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tail(middle) <= limit else (middle, high)
    return high + 1


def _measurement(opendp: Any, noise: NoiseKind, scale: float, threshold: int) -> Any:
    domain = opendp.domains.map_domain(opendp.domains.atom_domain(T="i32"), opendp.domains.atom_domain(T="i64"))
    distance = opendp.metrics.absolute_distance(T="i64")
    if noise == "gaussian":
        metric = opendp.metrics.l02inf_distance(distance)
        return opendp.measurements.make_gaussian_threshold(domain, metric, scale=scale, threshold=threshold)
    metric = opendp.metrics.l01inf_distance(distance)
    return opendp.measurements.make_laplace_threshold(domain, metric, scale=scale, threshold=threshold)


@contextmanager
def _opendp() -> Iterator[Any]:
    """Enable the OpenDP feature for thresholds in a context; restore the process-wide features at the end."""
    parts = [f"opendp.{part}" for part in ("combinators", "domains", "measurements", "metrics", "mod")]
    extras([(part, "opendp") for part in parts], "counting unknown words")
    opendp = extra("opendp", "opendp", "counting unknown words")
    features = opendp.mod
    had = "contrib" in features.GLOBAL_FEATURES
    features.enable_features("contrib")
    try:
        yield opendp
    finally:
        if not had:
            features.disable_features("contrib")
