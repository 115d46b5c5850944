"""Public levels of privacy: declared, default or predicted levels of users, and their part in a statement.

Derivation: docs/mechanisms/skip-gram.md#embeddings-levels
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.embeddings.participation import Participation, personal_participation
from dptext.errors import DataError, ParameterError
from dptext.io.documents import Document, is_missing
from dptext.noise.discrete import RandomizedResponse
from dptext.privacy.budgets import DEFAULT_FLOOR, PersonalBudgets
from dptext.privacy.guarantee import ApproxDP, PureDP, Relation, Trust, Unit
from dptext.privacy.neighbours import Condition, LevelIsSent, OfLevel, Requirement
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, release_statement
from dptext.users.grouping import user_name
from dptext.validation import check_choice, check_float, format_names

PredictedFrom: TypeAlias = Literal["public", "texts", "device"]
Floats = npt.NDArray[np.float64]

_CHECKED_AT = 0.5  # any delta will do to check names and epsilons
_LABELS = "the labels and features that levels are predicted with were given by volunteers for publication"


class BudgetPolicy(ReprMixin):
    """Public levels, and how users come by theirs: it goes as ``level=`` into `SkipGram` and `Cooccurrence`.

    Those who declared a level have it; those who did not get one that is predicted, if the policy predicts; all others
    get the default. A prediction is the degree of somebody's concern, 0 to 1, that a regressor reads off features;
    each level is enough up to a concern of its own, and a user gets the largest epsilon that is
    enough for the predicted concern plus a margin: of two levels, the stricter.

    What is promised depends on where the features come from (unit user, add/remove, central, delta as in the release).

    **"public"** (a sign-up form, what somebody shows on their profile): the level is as public as the features. A user
    of level l has epsilon_l, as if they had declared it: whether they take part with their texts changes neither their
    level nor anybody else's.

    **"texts"** (private texts, on the server): what is promised is the *cap*, the largest epsilon. Somebody whose texts
    are read as those of level l takes part like one of level l, but l follows from what is to be hidden. So nobody can
    say whether they are of level l without saying something of their texts that no noise covers, and over all texts
    that somebody may have the worst level counts. A smaller epsilon holds for those who *declared* their level, and
    their statements say so. Texts that are replaced may bring another level; the cap under substitution covers that.

    **"device"** (private texts, on the user's own device): the device sends one level, by randomised response of
    epsilon_p on all k levels (`dptext.noise.discrete`). A user whose device sent l has epsilon_l + epsilon_p,
    everybody has cap + epsilon_p, and the levels that were sent may be known to all.
    Proof: docs/mechanisms/skip-gram.md#embeddings-levels.

    A user's *own* epsilon is thus that of the level that was *sent*, not of the one that fits their concern: with k
    levels, they are sent as each other one with chance 1 / (e^epsilon_p + k - 1). Offer no level that would be too much
    for anybody. A device draws once and keeps the answer: a second draw costs epsilon_p again.

    **Labels.** The regressor was fitted on somebody's features and concerns. ``training`` says whose: "public", of
    volunteers who gave them for publication; or the statement of a private training, whose promise is then composed
    in. Otherwise a volunteer who is a user as well would move the levels of others, and no proof would hold.

    Args:
        levels: public names and their epsilons.
        attribute: of documents, that holds the level.
        default: for users who have none; None: the one with the least epsilon.
        predicted_from: None: nothing is predicted.
        predictor: a fitted regressor, as scikit-learn has them; for "device" it may be left out where the documents
            hold the levels that devices sent.
        training: whose labels it was fitted on: has to be said.
        epsilon: epsilon_p, for "device".
        concerns: the greatest concern that each level is enough for; None: evenly from 1 / k for the largest epsilon to
            1 for the least. Beyond the last one the strictest level is given all the same.
        margin: added to what is predicted: a little more privacy than people are thought to want.
        floor: the least epsilon that a level may have.

    Raises:
        ParameterError: levels as `PersonalBudgets` refuses them; something is missing, or out of range.

    >>> from sklearn.linear_model import LinearRegression
    >>> said = LinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.2, 0.5, 0.8])
    >>> levels = {"strict": 1.0, "standard": 3.0, "open": 8.0}
    >>> policy = BudgetPolicy(levels, predicted_from="public", predictor=said, training="public")
    >>> dict(policy.concerns)
    {'strict': 1.0, 'standard': 0.666..., 'open': 0.333...}
    >>> policy.predict([[0.0], [2.0], [3.0]])
    ('open', 'standard', 'strict')
    """

    def __init__(
        self,
        levels: Mapping[str, float],
        *,
        attribute: str = "consent",
        default: str | None = None,
        predicted_from: PredictedFrom | None = None,
        predictor: Any = None,
        training: Literal["public"] | PrivacyStatement | None = None,
        epsilon: float | None = None,
        concerns: Mapping[str, float] | None = None,
        margin: float = 0.0,
        floor: float = DEFAULT_FLOOR,
    ) -> None:
        budgets = PersonalBudgets(levels, delta=_CHECKED_AT, default=default, floor=floor)
        if not isinstance(attribute, str) or not attribute:
            raise ParameterError("attribute must name the attribute of documents that holds a user's level")
        _check_together(predicted_from, predictor, training, epsilon)
        self.levels, self.default, self.floor = budgets.levels, budgets.default, budgets.floor
        self.attribute, self.predicted_from, self.predictor = attribute, predicted_from, predictor
        self.training = training if isinstance(training, PrivacyStatement) else None
        self.response = None if epsilon is None else RandomizedResponse(len(self.levels), epsilon)
        self._strict_last = sorted(self.levels, key=self.levels.__getitem__, reverse=True)
        self.concerns = MappingProxyType(self._check_concerns(concerns))
        self.margin = check_float("margin", margin, minimum=0)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (self.__dict__ | {"levels": dict(self.levels), "concerns": dict(self.concerns)},))

    @property
    def epsilon(self) -> float:
        """epsilon_p: what a level costs that is drawn on a device; otherwise 0."""
        return 0.0 if self.response is None else self.response.epsilon

    def level(self, concern: float) -> str:
        """The level for a degree of concern: the largest epsilon that is enough for it and the margin."""
        for name in self._strict_last:
            if concern + self.margin <= self.concerns[name]:
                return name
        return self._strict_last[-1]  # more than any is enough for, or no number at all

    def predict(self, features: Any, *, seed: int | None = None) -> tuple[str, ...]:
        """A level for each row of features; on a device, *drawn*: a release, to be made once and kept.

        Features are what the predictor takes; texts that are None count as empty. An error of the predictor's own on a
        private row would tell of it: it has to give some number for any row. A ``seed`` is for tests and papers: it
        voids the promise of a draw for everybody who knows it.

        Raises:
            ParameterError: the policy predicts nothing.
        """
        if self.predicted_from is None:
            raise ParameterError("this policy predicts nothing: say predicted_from=, predictor= and training=")
        if self.predictor is None:
            raise ParameterError("this policy has no predictor: its levels were drawn on devices, and sent")
        predicted = [self.level(concern) for concern in concerns_by(self.predictor, features).tolist()]
        if self.response is None:
            return tuple(predicted)
        names = list(self.levels)
        truth = np.array([names.index(name) for name in predicted], dtype=np.int64)
        return tuple(names[sent] for sent in self.response.draw(RandomBits(seed), truth).tolist())

    def levels_of(
        self, documents: Iterable[Document], *, features: Sequence[str] = (), seed: int | None = None
    ) -> dict[str, str]:
        """A level for each user who declares none, for `assigned`: a first reading of the documents.

        Args:
            features: attributes of documents that hold a user's features, as numbers; the first document of a user that
                has all of them counts, and a user without gets no level here, so the default. None: their texts are
                read, the first million characters of each user.
            seed: as in `predict`.

        Raises:
            ParameterError: the policy predicts nothing; it predicts from what is public, and no feature is named.
            DataError: a feature is no number; a document of nobody. The row is named.
        """
        if self.predicted_from == "public" and not features:
            raise ParameterError(
                "a level that is predicted from what is public needs the attributes that hold it: features="
            )
        gathered = _Undeclared(self.attribute, tuple(features))
        for row, document in enumerate(documents, 1):
            gathered.add(document, row)
        users, rows = gathered.taken()
        if not users:
            return {}
        levels = dict(zip(users, self.predict(rows, seed=seed), strict=True))
        return {name: levels[user] for name, user in gathered.spelled.items() if user in levels}

    def assigned(self, documents: Iterable[Document], levels: Mapping[str, str]) -> Iterator[Document]:
        """The same documents, with the level of their user where they declare none; None, and so the default, for users
        who are not in ``levels`` either.

        Raises:
            ParameterError: a level that is none of the policy's.
        """
        if not self.levels.keys() >= set(levels.values()):
            raise ParameterError(f"a level must be one of {format_names(self.levels)}, got another")
        for document in documents:
            known = document.attributes or {}
            level = known.get(self.attribute)
            if _undeclared(level):
                level = None if document.user is None else levels.get(document.user)
            yield replace(document, attributes={**known, self.attribute: level})

    def participation(
        self, *, delta: float, steps: int, sampling_rate: float | None = None, noise_multiplier: float | None = None
    ) -> Participation:
        """For `SkipGram`: a sampling rate for each level, by `personal_participation`."""
        return personal_participation(
            self.levels,
            delta=delta,
            steps=steps,
            sampling_rate=sampling_rate,
            noise_multiplier=noise_multiplier,
            default=self.default,
            floor=self.floor,
        )

    def statement(self, *, seeded: bool = False) -> PrivacyStatement:
        """What is promised to somebody whose device sends a level, by that alone.

        Raises:
            ParameterError: no level is drawn on a device.
        """
        if self.response is None:
            raise ParameterError("only a level that is drawn on a device has a promise of its own")
        return release_statement(
            guarantee=PureDP(self.epsilon),
            unit=Unit.USER,
            relation=Relation.SUBSTITUTION,
            condition=Condition(about="collections"),
            trust=Trust.LOCAL,
            mechanism="randomised response on a predicted level",
            parameters={"levels": len(self.levels), "epsilon": self.epsilon},
            assumptions=(
                "the device draws once and keeps what it drew",
                "the predictor was fixed before, and is public",
            ),
            exposed=("that the device sent a level",),
            seeded=seeded,
        )

    def _check_concerns(self, concerns: Mapping[str, float] | None) -> dict[str, float]:
        count = len(self.levels)
        if concerns is None:
            even = {name: (place + 1) / count for place, name in enumerate(self._strict_last)}
            return {name: even[name] for name in self.levels}
        if not isinstance(concerns, Mapping) or concerns.keys() != self.levels.keys():
            raise ParameterError(f"concerns must hold one number for each of the {count} levels, and nothing else")
        result = {name: check_float("a concern", concerns[name]) for name in self.levels}
        ordered = [result[name] for name in self._strict_last]
        if ordered != sorted(ordered):
            raise ParameterError("concerns must not fall where epsilons do: less epsilon is enough for more concern")
        return result

    def _repr_fields(self) -> Fields:
        yield "levels", self.levels
        yield "attribute", self.attribute
        yield "default", self.default
        yield "predicted_from", self.predicted_from


def _restored(state: dict[str, Any]) -> BudgetPolicy:
    policy = object.__new__(BudgetPolicy)
    policy.__dict__ |= state
    policy.levels, policy.concerns = MappingProxyType(state["levels"]), MappingProxyType(state["concerns"])
    return policy


def _check_together(predicted_from: Any, predictor: Any, training: Any, epsilon: Any) -> None:
    if predicted_from is None:
        if predictor is not None or training is not None or epsilon is not None:
            raise ParameterError(
                "predictor, training and epsilon belong to predicted_from=: say where features are from"
            )
        return
    check_choice("predicted_from", predicted_from, get_args(PredictedFrom), also=" or None")
    if not (hasattr(predictor, "predict") or (predictor is None and predicted_from == "device")):
        raise ParameterError("predictor must be a fitted regressor, for example one of scikit-learn")
    if training != "public" and not isinstance(training, PrivacyStatement):
        raise ParameterError(
            "say whose labels the predictor was fitted on: training='public' where volunteers gave labels and features "
            "for publication, or the statement of a private training"
        )
    if (predicted_from == "device") != (epsilon is not None):
        raise ParameterError(
            "a level that is predicted on a device is sent with an epsilon of its own, and no other is"
        )


_MOST_CHARACTERS = 1_000_000


def _undeclared(level: Any) -> bool:
    return is_missing(level) or (isinstance(level, str) and not level.strip())


class _Undeclared:
    """The features of users who declare no level, out of documents in any order."""

    def __init__(self, attribute: str, features: tuple[str, ...]) -> None:
        self._attribute, self._features = attribute, features
        self.spelled: dict[str, str] = {}
        self._declared: set[str] = set()
        self._texts: dict[str, list[str]] = {}
        self._left: dict[str, int] = {}
        self._values: dict[str, list[float]] = {}

    def add(self, document: Document, row: int) -> None:
        known = document.attributes or {}
        user = self.spelled.get(document.user or "")
        if user is None:
            user = user_name(document.user, row)
            self.spelled[str(document.user)] = user
        if not _undeclared(known.get(self._attribute)):
            self._declared.add(user)
        elif not self._features:
            left = self._left.get(user, _MOST_CHARACTERS)
            if left > 0 and document.text:
                self._texts.setdefault(user, []).append(document.text[:left])
            self._texts.setdefault(user, [])
            self._left[user] = left - len(document.text or "")
        elif user not in self._values:
            values = [known.get(name) for name in self._features]
            if not any(map(_undeclared, values)):
                self._values[user] = _numbers_of(values, self._features, row)

    def taken(self) -> tuple[list[str], Any]:
        """Users, and a row of features for each."""
        if self._features:
            users = [user for user in self._values if user not in self._declared]
            return users, [self._values[user] for user in users]
        users = [user for user in self._texts if user not in self._declared]
        return users, [" ".join(self._texts[user]) for user in users]


def _numbers_of(values: Sequence[Any], names: Sequence[str], row: int) -> list[float]:
    """Columns of a row as finite numbers."""
    result = []
    for value, name in zip(values, names, strict=True):
        try:
            entry = float(value)
        except (TypeError, ValueError):
            entry = float("nan")
        if not np.isfinite(entry):
            raise DataError(f"row {row}: expected a number in the column {name!r}, got something else")
        result.append(entry)
    return result


@dataclass(frozen=True)
class Levels:
    """The levels of one release: whom a statement is about, how users came by their levels, and what that cost."""

    shares: Mapping[str, float]
    default: str
    attribute: str | None = None
    policy: BudgetPolicy | None = None

    @classmethod
    def of(cls, level: str | BudgetPolicy | None, shares: Mapping[str, float], default: str, unit: str) -> Levels:
        """From the argument ``level`` of a release for this unit."""
        shares = dict(shares)
        if not isinstance(level, BudgetPolicy):
            return cls(shares, default, level)
        order = sorted(level.levels, key=lambda name: (level.levels[name], shares.get(name, 0.0)))
        if (
            shares.keys() != level.levels.keys()
            or default != level.default
            or [shares[name] for name in order] != sorted(shares.values())
        ):
            raise ParameterError(
                "the release and its policy must have the same levels and the same default: give epsilon=policy.levels "
                "to Cooccurrence, epsilon=policy.participation(...) to SkipGram"
            )
        if level.predicted_from in ("texts", "device") and unit != "user":
            raise ParameterError(f"a level that is predicted from the texts of a user is not for the unit {unit!r}")
        return cls(shares, default, level.attribute, level)

    @property
    def most(self) -> str:
        """The level that takes part most: what it is promised holds for everybody."""
        return max(self.shares, key=self.shares.__getitem__)

    @property
    def predicted_from(self) -> PredictedFrom | None:
        """See `BudgetPolicy`; None: all levels are declared."""
        return None if self.policy is None else self.policy.predicted_from

    def add_level(self, guarantee: ApproxDP) -> ApproxDP:
        if self.policy is None:
            return guarantee
        return ApproxDP(guarantee.epsilon + self.policy.epsilon, guarantee.delta)

    def condition(self, level: str) -> Condition:
        """Whom the statement of a level is about."""
        source = self.predicted_from
        known_by: Literal["device", "declaration", "level"] = "level"
        if source == "device":
            known_by = "device"
        elif source == "texts":
            known_by = "declaration"
        largest = self.shares[level] == max(self.shares.values())
        required: list[Requirement] = [] if largest else [OfLevel(level, known_by)]
        if source == "device":
            required.append(LevelIsSent())
        return Condition(requirements=tuple(required))

    @property
    def assumptions(self) -> tuple[str, ...]:
        if len(self.shares) == 1:
            return ()
        match self.predicted_from:
            case "public":
                text = (
                    "each user's level was declared, or predicted from what is public about them, and may be known to "
                    "all"
                )
            case "texts":
                text = (
                    "a level that was not declared was predicted from the user's own texts, and is as private as they "
                    "are: it stays secret, and no more than the largest epsilon is promised to them"
                )
            case "device":
                assert self.policy is not None
                text = (
                    "a level that was not declared was predicted from the user's own texts on his own device, and sent "
                    f"by randomised response of epsilon {self.policy.epsilon:g}, once: that is counted in above, and "
                    "who declared his level is spared it; that a device sent a level, and which, may be known to all"
                )
            case _:
                return ("each user's level was declared without regard to the texts, and may be known to all",)
        assert self.policy is not None
        return (text,) if self.policy.training is not None else (text, _LABELS)

    @property
    def parameters(self) -> dict[str, Parameter]:
        if self.policy is None or self.predicted_from is None:
            return {}
        text: dict[str, Parameter] = {"levels_predicted_from": self.predicted_from}
        if self.policy.response is not None:
            text["epsilon_for_level"] = self.policy.epsilon
        return text


def concerns_by(regressor: Any, features: Any) -> Floats:
    """(n,) what a fitted regressor says of n rows of features; infinite where it says nothing."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # a warning would tell of a private row
        warnings.simplefilter("ignore")
        result = np.asarray(regressor.predict(readable(features)), dtype=np.float64).reshape(row_count(features))
    return np.where(np.isfinite(result), result, np.inf)


def readable(features: Any) -> Any:
    if are_texts(features):
        return ["" if feature is None else feature for feature in features]
    return features


def are_texts(features: Any) -> bool:
    return isinstance(features, Sequence) and len(features) > 0 and all(isinstance(f, str | None) for f in features)


def row_count(features: Any) -> int:
    return int(features.shape[0]) if hasattr(features, "shape") else len(features)
