"""Words and labels that many users share, learned under user-level differential privacy (`dptext.noise.set_union`)."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from dptext import validation
from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError
from dptext.noise.gaussian_sums import ELEMENTARY, MOST_USERS
from dptext.noise.set_union import SetUnion
from dptext.privacy.budgets import warn_of_delta
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import HasStatement, Parameter, PrivacyStatement, new_release_id, release_statement
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
        words: new words, folded (`dptext.text.tokens.fold`), by descending noisy weight. The weights are not
            stored.
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
        words_per_user: L, the maximum number of different words that a user contributes: the most frequent ones. A user
            with m words gives each the weight 1 / sqrt(m), so a larger L covers more words with smaller weights.
        known: public words, or words that were released under their own privacy statement.
        public_users: public upper bound on the number of users, used to check delta: a
            `dptext.privacy.budgets.DeltaWarning` is issued unless delta is below its inverse.

    **Guarantee** (unit user, add/remove, central): (epsilon, delta)-DP, as in the statement. Words that only one user
    wrote are released with a probability of at most delta.

    Memory grows with the number of distinct unknown words (about 100 bytes each). One user's words must fit as well.

    Raises:
        ParameterError: an argument is out of range.
        DataError, StorageError: as in `dptext.users.grouping.users_of`.
    """
    documents = documents_of(documents, "user", text=text, user=user)
    warn_of_delta(delta, public_users=public_users)
    union = SetUnion.calibrated(epsilon=epsilon, delta=delta, keys=words_per_user)
    if isinstance(known, str):
        raise ParameterError("known must be a Vocabulary or a list of words, got a single string. Put it into a list")
    known_words = frozenset(map(fold, known.words if isinstance(known, Vocabulary) else known or ()))
    numbers: dict[str, int] = {}

    def row_of(token: str) -> int:
        word = fold(token)
        is_candidate = kind_of(token) is Kind.WORD and word not in known_words and is_printable_word(word)
        return numbers.setdefault(word, len(numbers)) if is_candidate else NO_WORD

    rows_of = TokenRows(row_of)
    with texts_of(documents) as users:
        contributions = ((rows_of(texts)[0] for texts, _ in user.chunks()) for user in users)
        words = _released(contributions, numbers, union)
    return PrivateVocabulary(
        words=words,
        statement=_statement(
            union,
            Unit.USER,
            "private vocabulary",
            {"epsilon": float(epsilon), "delta": float(delta), "words_per_user": words_per_user},
            {"longest_word": LONGEST_WORD, "known_words": len(known_words)},
            "the previously known words are public, or were released with their own statement",
        ),
    )


@dataclass(frozen=True, repr=False)
class PrivateLabels(HasStatement, ReprMixin):
    """The result of `private_labels`.

    Attributes:
        column: name of the label column.
        names: labels in the form of `dptext.io.documents.canonical_label`, by descending noisy weight. The weights
            are not stored.
        statement: the privacy statement.
    """

    column: str
    names: tuple[str, ...]
    statement: PrivacyStatement

    def _repr_fields(self) -> Fields:
        yield "column", self.column
        yield "names", self.names
        yield "guarantee", str(self.statement.guarantee)


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
        labels_per_user: L, the maximum number of different labels that a user contributes: the most frequent ones. The
            weight of a user is split among them. With ``unit="document"``, L is 1.
        unit: privacy unit: a user with all their documents, or a single document.
        public_users: as in `private_vocabulary`.

    **Guarantee** (that unit, add/remove, central): (epsilon, delta)-DP, as in the statement. Labels that only one user
    has are released with a probability of at most delta.

    Memory grows with the number of distinct labels.

    Raises:
        ParameterError: an argument is out of range, or the column is not read.
        DataError, StorageError: as in `dptext.users.grouping.users_of`.
    """
    validation.check_choice("unit", unit, get_args(UserUnit))
    validation.check_text("column", column)
    documents = documents_of(documents, unit, text=text, user=user, columns=(column,))
    warn_of_delta(delta, public_users=public_users)
    limit = validation.check_int("labels_per_user", labels_per_user, minimum=1) if unit == "user" else 1
    union = SetUnion.calibrated(epsilon=epsilon, delta=delta, keys=limit)
    numbers: dict[str, int] = {}

    def code(values: tuple[str | None, ...]) -> int:
        (label,) = values
        return OUTSIDE if label is None or not _may_be_label(label) else numbers.setdefault(label, len(numbers))

    with texts_of(documents, columns=(column,), code=code, unit=unit) as users:
        contributions = ((codes[codes != OUTSIDE] for _, codes in user.chunks()) for user in users)
        names = _released(contributions, numbers, union)
    return PrivateLabels(
        column=column,
        names=names,
        statement=_statement(
            union,
            Unit(unit),
            "private labels",
            {"epsilon": float(epsilon), "delta": float(delta), "labels_per_user": limit},
            {"longest_label": LONGEST_LABEL},
        ),
    )


def _released(
    users: Iterable[Iterable[npt.NDArray[np.int32]]], names: Collection[str], union: SetUnion
) -> tuple[str, ...]:
    """Return the names that enough users contribute, by descending noisy weight."""
    bits, cells = RandomBits(), np.zeros(0, dtype=np.int64)
    for parts in users:
        numbers, counts = np.unique(np.concatenate(list(parts)), return_counts=True)
        if len(names) > len(cells):  # names are numbered while users are read
            cells = np.concatenate([cells, np.zeros(len(names), dtype=np.int64)])
        cells[numbers] += union.contributions(np.zeros(len(numbers), dtype=np.int64), counts, bits)
    kept, noisy = union.release(np.arange(len(cells)), cells, bits)
    words = np.array([*names, ""], dtype=object)[kept]
    return tuple(words[np.lexsort((words, -noisy))])  # post-processing: by noisy weight, then alphabetically


def _statement(
    union: SetUnion, unit: Unit, name: str, budget: dict[str, Any], limits: dict[str, Parameter], *assumptions: str
) -> PrivacyStatement:
    return release_statement(
        guarantee=ApproxDP(budget["epsilon"], budget["delta"]),
        unit=unit,
        relation=Relation.ADD_REMOVE,
        trust=Trust.CENTRAL,
        mechanism=name,
        parameters={
            **budget,
            "noise": union.noise,
            "weight_per_key": "1 / sqrt(keys)" if union.noise == "gaussian" else "1 / keys",
            "scale": union.scale,
            "threshold": union.threshold,
            **limits,
        },
        assumptions=(
            *(_USER_IDS if unit is Unit.USER else ()),
            *assumptions,
            ELEMENTARY,
            f"at most {MOST_USERS:,} {unit}s take part",
        ),
        release_id=new_release_id(),
    )


def _may_be_label(label: str) -> bool:
    return len(label) <= LONGEST_LABEL and not any(letter != " " and _is_nonletter(letter) for letter in label)


def is_printable_word(word: str) -> bool:
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
