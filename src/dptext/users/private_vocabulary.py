"""Words that many users write and no public list holds, and labels that many have, learned under user-level
differential privacy.

Each user brings at most L of their words that are not known already, or of their labels, chosen at random; what enough
users brought comes out (`dptext.noise.thresholded`). Known words are public: they cost nothing and are not looked at.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from dptext import checks
from dptext.errors import ParameterError
from dptext.files.column import spelled_label
from dptext.files.documents import Document, DocumentReader
from dptext.noise.thresholded import ThresholdedCounts, thresholded_counts
from dptext.privacy.guarantee import ApproxDP
from dptext.privacy.public_users import warn_of_delta
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, of_release
from dptext.privacy.unit import Relation, Trust, Unit
from dptext.privacy.wording import facts_of
from dptext.showing import Facts, Showing
from dptext.text.tokens import UNKNOWN, Kind, Vocabulary, fold, is_single_word, kind_of, pieces
from dptext.users.grouping import LabelColumns, Remembered, UserUnit, grouped_users
from dptext.users.sorting import Lengths, Rows

__all__ = [
    "LONGEST_LABEL",
    "LONGEST_WORD",
    "LearnedVocabulary",
    "PrivateLabels",
    "PrivateVocabulary",
    "private_labels",
    "private_vocabulary",
]

LONGEST_WORD = 40
"""Letters of a word that may enter; longer ones are seldom words."""
LONGEST_LABEL = 100
"""Characters of a label that may enter; what is longer is a text."""
_JOINERS = "\u200c\u200d"  # between letters they are spelling: in Persian, Hindi, emoji


class LearnedVocabulary(Vocabulary):
    """Words that were learned from people: not public, though they may be shown. Another release of these people, to
    which they are given, has to count what they cost: it takes the `PrivateVocabulary`, which has the statement."""

    __slots__ = ()


@dataclass(frozen=True, repr=False)
class PrivateVocabulary(Showing):
    """What `private_vocabulary` returns.

    Attributes:
        words: the new words, folded (`dptext.text.tokens.fold`), most frequent first by their noisy counts. The counts
            themselves are not kept.
        statement: what was promised to the users.
    """

    words: tuple[str, ...]
    statement: PrivacyStatement

    @property
    def vocabulary(self) -> LearnedVocabulary:
        """The new words alone, and the unknown one."""
        return LearnedVocabulary((*self.words, UNKNOWN))

    def after(self, known: Vocabulary) -> LearnedVocabulary:
        """Known words, row by row as they are, and the new ones after them."""
        return LearnedVocabulary((*known.words, *(word for word in self.words if word not in known)))

    def _in_brief(self) -> Facts:
        yield "words", len(self.words)
        yield "guarantee", str(self.statement.guarantee)

    def _in_full(self) -> Facts:
        return facts_of(self.statement)


def private_vocabulary(
    documents: DocumentReader | Iterable[Document],
    *,
    epsilon: float,
    delta: float,
    words_per_user: int = 100,
    known: Vocabulary | Iterable[str] | None = None,
    public_users: int | None = None,
    processes: int = 1,
    seed: int | None = None,
    folder: str | Path | None = None,
) -> PrivateVocabulary:
    """Learn words from users' own texts.

    What may enter is what `dptext.text.tokens` calls a word, folded, of at most `LONGEST_WORD` characters without
    white space, control characters and marks that nobody sees: what a vocabulary can hold and a file of vectors can
    store.

    Args:
        documents: with users, in any order (see `dptext.users.grouping.users_of`).
        epsilon, delta: the budget of a user. Public, as all arguments.
        words_per_user: L, how many different words a user may bring. More of them say more about their vocabulary, and
            cost noise: the threshold grows as the root of L.
        known: public words, or words that were released under a statement of their own.
        public_users: a public number that the number of users does not exceed: a delta that is not below its inverse is
            warned of (`dptext.privacy.public_users.DeltaWarning`).
        processes: how many cut texts into words; the promise and the distribution do not depend on it.
        seed: must be None: OpenDP draws its noise from the operating system and takes no seed.
        folder: as in `users_of`.

    **Guarantee** (unit user, add/remove, central): (epsilon, delta)-DP, as the statement says. That a word comes out
    that only one user wrote has a probability of at most delta / words_per_user.

    Memory grows with the number of different words that are not known (100 bytes each, about), as their counts have to
    be there; neither with the users nor with their texts.

    Raises:
        MissingExtraError: OpenDP is not installed.
        ParameterError: an argument out of range; a seed.
        DataError, StorageError: as in `users_of`.
    """
    if seed is not None:
        raise ParameterError(
            "a private vocabulary takes no seed: its noise is drawn by OpenDP, which takes it from the operating system"
        )
    warn_of_delta(delta, public_users=public_users)
    mechanism = thresholded_counts(epsilon=epsilon, delta=delta, keys=words_per_user)
    work = _NewWords(_folded(known))
    return PrivateVocabulary(
        words=_brought_by_many(documents, work, mechanism, words_per_user, processes=processes, folder=folder),
        statement=_statement(
            mechanism,
            Unit.USER,
            "private vocabulary",
            {"words_per_user": words_per_user},
            {"longest_word": LONGEST_WORD, "known_words": len(work.known)},
            "the words that were known beforehand are public, or released under a statement of their own",
        ),
    )


@dataclass(frozen=True, repr=False)
class PrivateLabels(Showing):
    """What `private_labels` returns.

    Attributes:
        column: the column that holds them.
        names: the labels, spelled by `dptext.files.column.spelled_label`, most frequent first by their noisy counts.
            The counts themselves are not kept.
        statement: what was promised.
    """

    column: str
    names: tuple[str, ...]
    statement: PrivacyStatement

    def _in_brief(self) -> Facts:
        yield "column", self.column
        yield "names", self.names
        yield "guarantee", str(self.statement.guarantee)

    def _in_full(self) -> Facts:
        return facts_of(self.statement)


def private_labels(
    documents: DocumentReader | Iterable[Document],
    *,
    epsilon: float,
    delta: float,
    column: str = "label",
    labels_per_user: int = 3,
    unit: UserUnit = "user",
    public_users: int | None = None,
    folder: str | Path | None = None,
) -> PrivateLabels:
    """Learn which labels occur, where no public list says so.

    A set of labels that is read from a private file tells who is in it, if anybody has a rare one. Here a label comes
    out that enough users have. What may enter is a text of at most `LONGEST_LABEL` characters without control
    characters, line breaks and marks that nobody sees, or a number or truth value.

    Args:
        documents: with users, in any order (see `dptext.users.texts.texts_of`).
        epsilon, delta: the budget of a user, to be added to that of each release that uses the labels (their
            statements compose). Public, as all arguments.
        column: the column of the labels: a kept one (of `Document.attributes`), or where there is none of that name
            the label of the documents.
        labels_per_user: L, how many different labels a user may bring, chosen at random among theirs. More of them
            cost noise: the threshold grows as the root of L. With ``unit="document"`` it is 1.
        unit: who is protected: a user with all their documents, or a single document.
        public_users: as in `private_vocabulary`.
        folder: as in `dptext.users.grouping.users_of`.

    **Guarantee** (that unit, add/remove, central): (epsilon, delta)-DP, as the statement says. That a label comes out
    that only one user has, has a probability of at most delta / labels_per_user.

    Memory grows with the number of different labels; neither with the users nor with their texts.

    Raises:
        MissingExtraError: OpenDP is not installed.
        ParameterError: an argument out of range; the column is not read.
        DataError, StorageError: as in `dptext.users.grouping.users_of`.
    """
    checks.choice("unit", unit, get_args(UserUnit))
    columns = LabelColumns((checks.text("column", column),))
    warn_of_delta(delta, public_users=public_users)
    most = checks.whole("labels_per_user", labels_per_user, least=1) if unit == "user" else 1
    mechanism = thresholded_counts(epsilon=epsilon, delta=delta, keys=most)
    return PrivateLabels(
        column=column,
        names=_brought_by_many(documents, _numbered_labels, mechanism, most, columns=columns, unit=unit, folder=folder),
        statement=_statement(
            mechanism,
            Unit(unit),
            "private labels",
            {"labels_per_user": most},
            {"longest_label": LONGEST_LABEL},
        ),
    )


def _brought_by_many(
    documents: DocumentReader | Iterable[Document],
    work: Callable[[Any], tuple[Rows, Lengths, list[str]]],
    mechanism: ThresholdedCounts,
    most: int,
    **options: Any,
) -> tuple[str, ...]:
    """The names that enough users brought, at most so many each, most frequent first.

    Args:
        work: from what documents hold to names, numbered within the block (`grouped_users`).
        options: of `grouped_users`.
    """
    numbers = _Numbers()
    bits = RandomBits()
    with grouped_users(documents, work, numbers.of, **options) as users:
        counts = np.zeros(len(numbers.names), dtype=np.int64)
        for person in users:
            distinct = reduce(np.union1d, (rows for rows, _ in person.chunks()), np.empty(0, dtype=np.int32))
            counts[_some(distinct, most, bits)] += 1
    brought = np.flatnonzero(counts)
    noisy = mechanism.release(dict(zip(brought.tolist(), counts[brought].tolist(), strict=True)))
    names = list(numbers.names)
    # post-processing: the noisy counts decide about the order, and the alphabet between equal ones
    return tuple(name for _, name in sorted((-count, names[number]) for number, count in noisy.items()))


def _statement(
    mechanism: ThresholdedCounts,
    unit: Unit,
    name: str,
    bound: dict[str, Parameter],
    limits: dict[str, Parameter],
    *assumptions: str,
) -> PrivacyStatement:
    return of_release(
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
            *(("all documents of a user name them in the same way, and nobody else",) if unit is Unit.USER else ()),
            *assumptions,
            "OpenDP draws the noise that it announces, from the operating system's generator",
        ),
        release_id=new_release_id(),
    )


def _folded(known: Vocabulary | Iterable[str] | None) -> frozenset[str]:
    words: Any = known.words if isinstance(known, Vocabulary) else () if known is None else known
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise ParameterError(f"known must be a Vocabulary or a list of words, got {type(known).__name__}")
    words = tuple(words)
    if not all(isinstance(word, str) for word in words):
        raise ParameterError("known must hold words, got something else among them")
    return frozenset(map(fold, words))


def _some(numbers: npt.NDArray[np.int32], most: int, bits: RandomBits) -> npt.NDArray[np.int32]:
    """At most so many of them, every choice as likely as every other (but for 2^-64 n^2, where two draws agree)."""
    if numbers.size <= most:
        return numbers
    return numbers[np.argpartition(bits.integers(numbers.size), most - 1)[:most]]


@dataclass
class _Numbers:
    """Numbers for names, in the order in which they come."""

    names: dict[str, int] = field(default_factory=dict)

    def of(self, found: tuple[Rows, Lengths, list[str]]) -> tuple[Rows, Lengths]:
        """The names of a block, numbered within it, under their numbers."""
        rows, lengths, names = found
        numbers = np.fromiter((self.names.setdefault(name, len(self.names)) for name in names), np.int32, len(names))
        return numbers[rows], lengths


class _NewWords:
    """The words of texts that may enter a vocabulary and are not known, numbered within the block."""

    def __init__(self, known: frozenset[str]) -> None:
        self.known = known
        self._words: Remembered[str | None] = Remembered(self._word)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_NewWords, (self.known,))

    def __call__(self, texts: Sequence[str | None]) -> tuple[Rows, Lengths, list[str]]:
        numbers: dict[str, int] = {}
        rows: list[int] = []
        lengths = []
        for text in texts:
            before = len(rows)
            for token in pieces(text) if text else ():
                word = self._words[token]
                if word is not None:
                    rows.append(numbers.setdefault(word, len(numbers)))
            lengths.append(len(rows) - before)
        return np.array(rows, dtype=np.int32), np.array(lengths, dtype=np.int64), list(numbers)

    def _word(self, token: str) -> str | None:
        word = fold(token) if kind_of(token) is Kind.WORD else None
        return None if word is None or word in self.known or not _may_enter(word) else word


def _numbered_labels(columns: Sequence[Sequence[Any]]) -> tuple[Rows, Lengths, list[str]]:
    """The labels of one column that may enter, numbered within the block."""
    (values,) = columns
    numbers: dict[str, int] = {}
    rows: list[int] = []
    lengths = np.zeros(len(values), dtype=np.int64)
    for place, value in enumerate(values):
        label = spelled_label(value)
        if label is not None and _may_be_label(label):
            rows.append(numbers.setdefault(label, len(numbers)))
            lengths[place] = 1
    return np.array(rows, dtype=np.int32), lengths, list(numbers)


def _may_be_label(label: str) -> bool:
    return len(label) <= LONGEST_LABEL and not any(letter != " " and _is_no_letter(letter) for letter in label)


def _may_enter(word: str) -> bool:
    return (
        0 < len(word) <= LONGEST_WORD
        and fold(word) == word
        and not any(map(_is_no_letter, word))
        and is_single_word(word)
    )


def _is_no_letter(letter: str) -> bool:
    """White space (which stays with a mark that follows it), controls, marks of direction and what else nobody sees."""
    if letter in _JOINERS:
        return False
    return letter.isspace() or unicodedata.category(letter) in ("Cc", "Cf", "Cs")
