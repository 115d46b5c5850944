"""Which public level of privacy each user of a release gets: declared, a default, or predicted for who said nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dptext.embeddings.concerns import concerns_by
from dptext.embeddings.dpsgd.participation import Participation, personal_participation
from dptext.errors import ParameterError
from dptext.files.documents import Document
from dptext.noise.categories import RandomizedResponse
from dptext.privacy.budgets import DEFAULT_FLOOR, PersonalBudgets
from dptext.privacy.condition import Condition
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement, of_release
from dptext.privacy.unit import Relation, Trust, Unit

__all__ = ["BudgetPolicy", "PredictedFrom"]

PredictedFrom: TypeAlias = Literal["public", "texts", "device"]

_CHECKED_AT = 0.5  # any delta will do to check names and epsilons


class BudgetPolicy:
    """Public levels, and how a user comes by his: it goes as ``level=`` into `SkipGram` and `Cooccurrence`.

    Who declared a level has it; who did not gets one that is predicted, if the policy predicts; all others get the
    default. A prediction is the degree of somebody's concern, 0 to 1, that a regressor reads off features
    (`dptext.embeddings.concerns.fit_concerns`); each level is enough up to a concern of its own, and he gets the
    largest epsilon that is enough for the predicted concern plus a margin: of two levels, the stricter.

    What is promised hangs on where the features come from (unit user, add/remove, central, delta as in the release).

    **"public"** (a sign-up form, what somebody shows on his profile): the level is as public as the features. A user of
    level l has epsilon_l, as if he had declared it: whether he takes part with his texts changes neither his level nor
    anybody else's.

    **"texts"** (private texts, on the server): what is promised is the *cap*, the largest epsilon. Somebody whose texts
    are read as those of level l takes part like one of level l, but l follows from what is to be hidden. So nobody can
    say whether he is of level l without saying something of his texts that no noise covers, and over all texts that
    somebody may have the worst level counts. A smaller epsilon holds for those who *declared* their level, and their
    statements say so. Texts that are replaced may bring another level; the cap under substitution covers that: a
    shorter vector is one of length C at most, and who takes part at rate q_l < q takes part at rate q with a vector
    that another coin, of q_l / q, makes 0 (divergences are convex: a coin is no worse than its worst outcome).

    **"device"** (private texts, on the user's own device): the device sends one level, by randomised response of
    epsilon_p on all k levels (`dptext.noise.categories`). A user whose device sent l has epsilon_l + epsilon_p,
    everybody has cap + epsilon_p, and the levels that were sent may be known to all.
    *Proof.* Let f be the predictor, fixed before; R the response; L what is sent; t the texts of a user, none of them
    in the other world. His device sends a level in both worlds: that somebody has the device is not what is hidden.
    R(f(t)) and R(f(no texts)) are a pair of inputs of a mechanism that is epsilon_p-DP for *all* pairs (local,
    substitution), so no relation has to be converted. Given L = l, which is now a fixed number, the release is
    (epsilon_l, delta) for his texts, there or not, by the proof of the release. For any set S of levels and releases,
    with S_l the releases that are in S beside l,

        P(S | t) = sum over l of P(L = l | t) P(S_l | t, l)
                <= sum over l of P(L = l | t) (e^epsilon_l P(S_l | none, l) + delta)
                <= sum over l of e^(epsilon_l + epsilon_p) P(L = l | none) P(S_l | none, l) + delta        (drawn)

    and the other way round alike. With the cap for epsilon_l that is the promise to everybody; a set S that holds
    outcomes of one level l only has that level's: epsilon_l + epsilon_p. The same holds, with the release's promise
    under substitution, for texts that are replaced. |
    His *own* epsilon is thus that of the level that was *sent*, not of the one that fits his concern: with k levels,
    he is sent as each other one with chance 1 / (e^epsilon_p + k - 1). Offer no level that would be too much for
    anybody. A device draws once and keeps the answer: a second draw costs epsilon_p again.

    **Labels.** The regressor was fitted on somebody's features and concerns. ``training`` says whose: "public", of
    volunteers who gave them for publication; or the statement of a private training, whose promise is then composed
    in. Otherwise a volunteer who is a user as well would move the levels of others, and no proof would hold.

    Args:
        levels: public names and their epsilons.
        attribute: of documents, that holds the level.
        default: for who has none; None: the one with the least epsilon.
        predicted_from: None: nothing is predicted.
        predictor: a fitted regressor, or a `dptext.embeddings.concerns.ConcernModel`.
        training: whose labels it was fitted on: has to be said.
        epsilon: epsilon_p, for "device".
        concerns: the greatest concern that each level is enough for; None: evenly from 1 / k for the largest epsilon to
            1 for the least. Beyond the last one the strictest level is given all the same.
        margin: added to what is predicted: a little more privacy than people are thought to want.
        floor: the least epsilon that a level may have.

    Raises:
        ParameterError: levels as `PersonalBudgets` refuses them; something is missing, or out of range.

    >>> from dptext.embeddings.concerns import fit_concerns
    >>> said = fit_concerns([[0.0], [1.0], [2.0], [3.0]] * 10, [0.0, 0.2, 0.5, 0.8] * 10)
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
        self.concerns = MappingProxyType(self._checked_concerns(concerns))
        self.margin = _checked_number("margin", margin)
        if self.margin < 0:
            raise ParameterError("margin must be 0 or more: less privacy than people are thought to want is no policy")

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

        Features are whatever the predictor takes; texts that are None count as empty. An error of the predictor's own
        on a private row would tell of it: it has to give some number for any row.

        Args:
            features: n rows.
            seed: for tests and papers: it voids the promise of a draw for whoever knows it.

        Raises:
            ParameterError: the policy predicts nothing.
        """
        if self.predicted_from is None:
            raise ParameterError("this policy predicts nothing: say predicted_from=, predictor= and training=")
        predicted = [self.level(concern) for concern in concerns_by(self.predictor, features).tolist()]
        if self.response is None:
            return tuple(predicted)
        names = list(self.levels)
        truth = np.array([names.index(name) for name in predicted], dtype=np.int64)
        return tuple(names[sent] for sent in self.response.draw(RandomBits(seed), truth).tolist())

    def assigned(self, documents: Iterable[Document], levels: Mapping[str, str]) -> Iterator[Document]:
        """The same documents, with the level of their user where they declare none.

        Args:
            documents: with users.
            levels: by user; who is not in it and declared nothing has None: the default counts.

        Raises:
            ParameterError: a level that is none of the policy's.
        """
        if not self.levels.keys() >= set(levels.values()):
            raise ParameterError(f"a level must be one of the {len(self.levels)} that were given, got another")
        for document in documents:
            known = document.attributes or {}
            level = known.get(self.attribute)
            if level is None and document.user is not None:
                level = levels.get(document.user)
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
        return of_release(
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

    def _checked_concerns(self, given: Mapping[str, float] | None) -> dict[str, float]:
        count = len(self.levels)
        if given is None:
            even = {name: (place + 1) / count for place, name in enumerate(self._strict_last)}
            return {name: even[name] for name in self.levels}
        if not isinstance(given, Mapping) or given.keys() != self.levels.keys():
            raise ParameterError(f"concerns must hold one number for each of the {count} levels, and nothing else")
        found = {name: _checked_number("a concern", given[name]) for name in self.levels}
        ordered = [found[name] for name in self._strict_last]
        if ordered != sorted(ordered):
            raise ParameterError("concerns must not fall where epsilons do: less epsilon is enough for more concern")
        return found


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
    if predicted_from not in get_args(PredictedFrom):
        raise ParameterError(f"predicted_from must be 'public', 'texts', 'device' or None, got {predicted_from!r}")
    if not hasattr(predictor, "predict"):
        raise ParameterError("predictor must be a fitted regressor: dptext.fit_concerns gives one")
    if training != "public" and not isinstance(training, PrivacyStatement):
        raise ParameterError(
            "say whose labels the predictor was fitted on: training='public' where volunteers gave labels and features "
            "for publication, or the statement of a private training"
        )
    if (predicted_from == "device") != (epsilon is not None):
        raise ParameterError(
            "a level that is predicted on a device is sent with an epsilon of its own, and no other is"
        )


def _checked_number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ParameterError(f"{name} must be a finite number")
    return float(value)
