"""Public privacy levels of users (declared, default or predicted), and their part in a privacy statement.

Derivation: docs/mechanisms/skip-gram.md#embeddings-levels
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError
from dptext.noise.discrete import RandomizedResponse
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.guarantee import ApproxDP, PureDP, Relation, Trust, Unit
from dptext.privacy.neighbours import Condition, LevelIsSent, OfLevel, Requirement
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, release_statement
from dptext.validation import check_choice, check_float

PredictedFrom: TypeAlias = Literal["public", "texts", "device"]
Floats = npt.NDArray[np.float64]


class BudgetPolicy(ReprMixin):
    """Public privacy levels and their assignment to users, for ``level=`` of `SkipGram` and `Cooccurrence`.

    A user has the declared level, otherwise a predicted one (if the policy predicts), otherwise the default. A
    regressor predicts a concern between 0 and 1 from features. Each level suffices up to its own concern; a user gets
    the largest epsilon that suffices for the predicted concern plus a margin.

    The guarantee depends on the source of the features (unit user, add/remove, central, delta of the release):

    * **"public"** (a sign-up form, a public profile): a user of level l has epsilon_l, as if the level were declared.
    * **"texts"** (private texts, on the server): the guarantee is the *cap*, the largest epsilon, because the level
      itself depends on the protected texts. A smaller epsilon holds for users who *declared* their level only.
    * **"device"** (private texts, on the user's device): the device sends one level by randomised response with
      epsilon_p over all k levels (`dptext.noise.discrete`). A user whose device sent l has epsilon_l + epsilon_p,
      everybody has cap + epsilon_p, and the sent levels may be public. Every other level is sent with probability
      1 / (e^epsilon_p + k - 1), so offer only levels that are acceptable for every user. A device draws once and keeps
      the result: a second draw spends epsilon_p again. Proof: docs/mechanisms/skip-gram.md#embeddings-levels.

    **Labels.** ``training`` states whose features and concerns the regressor was fitted on: "public", if volunteers
    published them, or the statement of a private training, whose guarantee is added. Otherwise a volunteer who is also
    a user would change the levels of others, and no proof would hold.

    Args:
        levels: public names and their epsilons.
        attribute: attribute of documents that holds the level.
        default: level of users without one; None: the level with the smallest epsilon.
        predicted_from: source of the features; None: no prediction.
        predictor: a fitted regressor with scikit-learn's ``predict``; optional for "device", if documents hold the
            levels that devices sent.
        training: source of its labels; required with ``predicted_from``.
        epsilon: epsilon_p, for "device".
        concerns: the greatest concern for which each level suffices; None: evenly spaced from 1 / k (largest epsilon)
            to 1 (smallest). The strictest level applies to every greater concern.
        margin: added to the predicted concern.

    Raises:
        ParameterError: levels that `PersonalBudgets` refuses; a missing argument, or one out of range.

    >>> from sklearn.linear_model import LinearRegression
    >>> regressor = LinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.2, 0.5, 0.8])
    >>> levels = {"strict": 1.0, "standard": 3.0, "open": 8.0}
    >>> policy = BudgetPolicy(levels, predicted_from="public", predictor=regressor, training="public")
    >>> policy.concerns
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
    ) -> None:
        budgets = PersonalBudgets(levels, delta=0.5, default=default)  # checks names and epsilons only
        if not isinstance(attribute, str) or not attribute:
            raise ParameterError("attribute must name the attribute of documents that holds a user's level")
        _check_prediction(predicted_from, predictor, training, epsilon)
        self.levels, self.default = dict(budgets.levels), budgets.default
        self.attribute, self.predicted_from, self.predictor = attribute, predicted_from, predictor
        self.training = training if isinstance(training, PrivacyStatement) else None
        self.response = None if epsilon is None else RandomizedResponse(len(self.levels), epsilon)
        self._by_epsilon = sorted(self.levels, key=self.levels.__getitem__, reverse=True)
        self.concerns = self._check_concerns(concerns)
        self.margin = check_float("margin", margin, minimum=0)

    @property
    def epsilon(self) -> float:
        """epsilon_p, the budget of a level sent by a device; otherwise 0."""
        return 0.0 if self.response is None else self.response.epsilon

    def level(self, concern: float) -> str:
        """Return the level with the largest epsilon that suffices for a concern plus the margin."""
        sufficient = (name for name in self._by_epsilon if concern + self.margin <= self.concerns[name])
        return next(sufficient, self._by_epsilon[-1])  # the strictest also for NaN

    def predict(self, features: Any, *, seed: int | None = None) -> tuple[str, ...]:
        """Return a level per row of features; for "device" a *random* one: a release, to be made once and kept.

        The predictor must return a number for every row, because its own errors would reveal private rows. Texts that
        are None count as empty. A ``seed`` is for tests and papers: it voids the guarantee of a draw.

        Raises:
            ParameterError: the policy has no predictor.
        """
        if self.predictor is None:
            raise ParameterError("this policy predicts nothing: give predicted_from=, predictor= and training=")
        predicted = [self.level(concern) for concern in concerns_by(self.predictor, features).tolist()]
        if self.response is None:
            return tuple(predicted)
        names = list(self.levels)
        codes = np.array([names.index(name) for name in predicted], dtype=np.int64)
        return tuple(names[code] for code in self.response.draw(RandomBits(seed), codes).tolist())

    def statement(self, *, seeded: bool = False) -> PrivacyStatement:
        """Return the statement for the level that a device sends.

        Raises:
            ParameterError: devices send no level under this policy.
        """
        if self.response is None:
            raise ParameterError("only a level that is drawn on a device has a separate statement")
        return release_statement(
            guarantee=PureDP(self.epsilon),
            unit=Unit.USER,
            relation=Relation.SUBSTITUTION,
            condition=Condition(about="collections"),
            trust=Trust.LOCAL,
            mechanism="randomised response on a predicted level",
            parameters={"levels": len(self.levels), "epsilon": self.epsilon},
            assumptions=(
                "the device draws once and keeps the drawn level",
                "the predictor was fixed before and is public",
            ),
            exposed=("the fact that the device sent a level",),
            seeded=seeded,
        )

    def _check_concerns(self, concerns: Mapping[str, float] | None) -> dict[str, float]:
        count = len(self.levels)
        if concerns is None:
            even = {name: (rank + 1) / count for rank, name in enumerate(self._by_epsilon)}
            return {name: even[name] for name in self.levels}
        if not isinstance(concerns, Mapping) or concerns.keys() != self.levels.keys():
            raise ParameterError(f"concerns must hold one number for each of the {count} levels")
        result = {name: check_float("a concern", concerns[name]) for name in self.levels}
        ordered = [result[name] for name in self._by_epsilon]
        if ordered != sorted(ordered):
            raise ParameterError("concerns must not fall where epsilons fall: give a smaller epsilon a larger concern")
        return result

    def _repr_fields(self) -> Fields:
        yield "levels", self.levels
        yield "attribute", self.attribute
        yield "default", self.default
        yield "predicted_from", self.predicted_from


def _check_prediction(predicted_from: Any, predictor: Any, training: Any, epsilon: Any) -> None:
    if predicted_from is None:
        if (predictor, training, epsilon) != (None, None, None):
            raise ParameterError("predictor, training and epsilon belong to predicted_from=: name the features' source")
        return
    check_choice("predicted_from", predicted_from, get_args(PredictedFrom), also=" or None")
    if not (hasattr(predictor, "predict") or (predictor is None and predicted_from == "device")):
        raise ParameterError("predictor must be a fitted regressor, for example one of scikit-learn")
    if training != "public" and not isinstance(training, PrivacyStatement):
        raise ParameterError(
            "training must name the source of the predictor's labels: 'public' if volunteers published them, or the "
            "statement of a private training"
        )
    if (predicted_from == "device") != (epsilon is not None):
        raise ParameterError("epsilon is required with predicted_from='device', and only there")


@dataclass(frozen=True)
class Levels:
    """Levels of one release: epsilon or sampling rate per level, default, and assignment to users."""

    shares: Mapping[str, float]
    default: str
    attribute: str | None = None
    policy: BudgetPolicy | None = None

    @classmethod
    def of(cls, level: str | BudgetPolicy | None, shares: Mapping[str, float], default: str, unit: str) -> Levels:
        """Build them from the argument ``level`` of a release for this unit."""
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
                "to Cooccurrence, and what personal_participation makes of them to SkipGram"
            )
        if level.predicted_from in ("texts", "device") and unit != "user":
            raise ParameterError(f"a level predicted from a user's texts is not for the unit {unit!r}")
        return cls(shares, default, level.attribute, level)

    @property
    def most(self) -> str:
        """The level with the largest share; its guarantee holds for every user."""
        return max(self.shares, key=self.shares.__getitem__)

    def add_level(self, guarantee: ApproxDP) -> ApproxDP:
        """Add the budget of a level sent by a device."""
        if self.policy is None:
            return guarantee
        return ApproxDP(guarantee.epsilon + self.policy.epsilon, guarantee.delta)

    def condition(self, level: str) -> Condition:
        """Return the users that the statement of a level is about."""
        sources: dict[str | None, Literal["device", "declaration"]] = {"device": "device", "texts": "declaration"}
        requirements: list[Requirement] = []
        predicted_from = None if self.policy is None else self.policy.predicted_from
        if self.shares[level] < max(self.shares.values()):
            requirements.append(OfLevel(level, sources.get(predicted_from, "level")))
        if predicted_from == "device":
            requirements.append(LevelIsSent())
        return Condition(requirements=tuple(requirements))

    @property
    def assumptions(self) -> tuple[str, ...]:
        if len(self.shares) == 1:
            return ()
        if self.policy is None or self.policy.predicted_from is None:
            return ("each user's level was declared without regard to the texts, and may be public",)
        text = {
            "public": "each user's level was declared, or predicted from public data about them, and may be public",
            "texts": (
                "a level that was not declared was predicted from the user's own texts and is as private as they are: "
                "it stays secret, and the guarantee for these users is the largest epsilon"
            ),
            "device": (
                "a level that was not declared was predicted from the user's own texts on the user's device, and sent "
                f"once by randomised response of epsilon {self.policy.epsilon:g}, which is included above (users who "
                "declared a level do not spend it); the sent levels may be public"
            ),
        }[self.policy.predicted_from]
        if self.policy.training is not None:
            return (text,)
        return (text, "volunteers published the labels and features that predict levels")

    @property
    def parameters(self) -> dict[str, Parameter]:
        if self.policy is None or self.policy.predicted_from is None:
            return {}
        parameters: dict[str, Parameter] = {"levels_predicted_from": self.policy.predicted_from}
        if self.policy.response is not None:
            parameters["epsilon_for_level"] = self.policy.epsilon
        return parameters


def concerns_by(regressor: Any, features: Any) -> Floats:
    """Return (n,) predicted concerns of n rows of features; infinite where the regressor gives no number."""
    if isinstance(features, list | tuple):
        features = ["" if feature is None else feature for feature in features]
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # a warning would reveal a private row
        warnings.simplefilter("ignore")
        result = np.asarray(regressor.predict(features), dtype=np.float64).reshape(-1)
    return np.where(np.isfinite(result), result, np.inf)
