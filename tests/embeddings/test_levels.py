"""`BudgetPolicy`: declared, default and predicted levels, and the guarantees of users of a level."""

import dataclasses
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy.stats import norm

import dptext
from dptext import BudgetPolicy, Document
from dptext.audits import exact_loss
from dptext.embeddings.levels import concerns_by
from dptext.embeddings.participation import Participation, personal_participation
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.guarantee import ApproxDP, PureDP, Relation, Trust, Unit, sum_upwards
from dptext.privacy.statement import PrivacyStatement

LEVELS = {"standard": 3.0, "strict": 1.0, "open": 8.0}
DELTA = 1e-6


class FirstFeature:
    """Predictor whose concern is the first feature."""

    def predict(self, features):
        return np.array([float(row[0]) for row in features])


def policy(predicted_from="public", **options):
    fields = {"predictor": FirstFeature(), "training": "public", "epsilon": 0.5 if predicted_from == "device" else None}
    return BudgetPolicy(LEVELS, predicted_from=predicted_from, **fields | options)


def training_statement(**changes):
    statement = PrivacyStatement(
        guarantee=ApproxDP(0.25, 1e-8),
        unit=Unit.USER,
        relation=Relation.ADD_REMOVE,
        condition="two groups of volunteers, one of which has one more",
        trust=Trust.CENTRAL,
        mechanism="ridge regression with noise",
    )
    return dataclasses.replace(statement, **changes)


@pytest.fixture(scope="module")
def vectors():
    return dptext.load_vectors((["tea", "cup", "tax", "law"], [[1, 0], [2, 1], [-1, 2], [-2, 1]]))


def people(levels):
    return [Document("A cup of tea", user=str(n), attributes={"consent": level}) for n, level in enumerate(levels)]


def cooccurrence(vectors, its_policy, **options):
    model = dptext.Cooccurrence(vectors, epsilon=its_policy.levels, delta=DELTA, level=its_policy, seed=1, **options)
    return model.fit(people(["strict", "open", None, "standard"] * 3))


def skipgram(vectors, its_policy):
    rates = {"standard": 0.5, "strict": 0.25, "open": 1.0}  # fast accounting
    participation = Participation(noise_multiplier=2.0, steps=3, delta=DELTA, rates=rates, default="strict")
    model = dptext.SkipGram(vectors, epsilon=participation, level=its_policy, public_users=20, seed=1)
    return model.fit(people(["strict", "open", None, "standard"] * 3))


# -- assignment of levels ---------------------------------------------------------------------------------------------


def test_a_concern_between_two_levels_gets_the_stricter_one():
    values = [0.0, 1 / 3, 0.34, 2 / 3, 0.7, 1.0, 1.5, -2.0, math.nan, math.inf]
    expected = ["open", "open", "standard", "standard", *["strict"] * 3, "open", "strict", "strict"]
    assert list(policy().predict([[entry] for entry in values])) == expected
    assert policy(margin=0.1).predict([[0.0], [0.3], [0.6]]) == ("open", "standard", "strict")
    custom = policy(concerns={"open": 0.1, "standard": 0.2, "strict": 0.3})
    assert custom.predict([[0.1], [0.11], [0.9]]) == ("open", "standard", "strict")

    class Odd:
        def predict(self, rows):
            warnings.warn("a row is odd", stacklevel=1)
            return np.array([np.nan, np.inf, -np.inf, 0.5])

    assert concerns_by(Odd(), np.zeros((4, 1))).tolist() == [np.inf, np.inf, np.inf, 0.5]


def test_a_device_draws_afresh_and_pickled_policies_share_no_draws():
    device = policy("device", epsilon=0.1)
    other = pickle.loads(pickle.dumps(device))
    assert other.levels == device.levels
    rows = [[0.5]] * 80
    assert device.predict(rows) != other.predict(rows)  # equal with chance below 1e-30
    assert device.predict(rows, seed=1) == other.predict(rows, seed=1)
    sent = policy("device", predictor=None)  # documents hold the sent levels
    assert sent.epsilon == 0.5
    for unable in (sent, BudgetPolicy(LEVELS)):
        with pytest.raises(ParameterError, match="predicts nothing"):
            unable.predict([[0.5]])


# -- guarantees -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("train", [cooccurrence, skipgram])
def test_levels_from_public_features_have_the_guarantee_of_declared_ones(vectors, train):
    declared, predicted = train(vectors, BudgetPolicy(LEVELS)), train(vectors, policy())
    for level in LEVELS:
        assert predicted.statements_[level].guarantee == declared.statements_[level].guarantee
    assert any("public data about them" in assumption for assumption in predicted.statement_.assumptions)
    assert any("volunteers published" in assumption for assumption in predicted.statement_.assumptions)
    assert predicted.statement_.parameters["levels_predicted_from"] == "public"


@pytest.mark.parametrize("train", [cooccurrence, skipgram])
def test_levels_from_private_texts_have_the_largest_epsilon(vectors, train):
    model = train(vectors, policy("texts"))
    assert model.statement_.epsilon == max(statement.epsilon for statement in model.statements_.values())
    assert "strict" not in model.statement_.neighbours
    assert any(
        "the guarantee for these users is the largest epsilon" in assumption
        for assumption in model.statement_.assumptions
    )
    strict = model.statements_["strict"]
    assert strict.epsilon < model.statement_.epsilon
    assert strict.neighbours.endswith("who declared the level 'strict' themselves")


@pytest.mark.parametrize("train", [cooccurrence, skipgram])
def test_the_budget_of_a_level_from_a_device_is_added(vectors, train):
    plain, counted = train(vectors, BudgetPolicy(LEVELS)), train(vectors, policy("device"))
    for level in LEVELS:
        without, having = plain.statements_[level], counted.statements_[level]
        assert having.guarantee == ApproxDP(without.guarantee.epsilon + 0.5, DELTA)
        difference = [entry.parameters["epsilon_under_substitution"] for entry in (having, without)]
        assert difference[0] - difference[1] == pytest.approx(0.5, abs=0.002)
        assert "their device sends a level with and without them" in having.neighbours
    assert counted.statement_ == counted.statements_["open"]
    assert counted.statement_.parameters["epsilon_for_level"] == 0.5
    assert any(
        "once by randomised response of epsilon 0.5" in assumption for assumption in counted.statement_.assumptions
    )


def test_the_card_states_the_source_of_levels(vectors, tmp_path):
    for source, text in (("device", "the one that was sent"), ("texts", "who chose their level themselves")):
        cooccurrence(vectors, policy(source)).save(tmp_path / source)
        assert text in (tmp_path / source / "README.md").read_text()


def hockey_stick(epsilon, p, shift, q):
    """Return the maximum of p N(shift, 1)(S) - e^epsilon q N(0, 1)(S) over sets S."""
    border = (epsilon - math.log(p / q)) / shift + shift / 2
    return p * norm.sf(border - shift) - math.exp(epsilon) * q * norm.sf(border)


def joint_delta(budgets, chances, epsilon, only=None):
    """Return the delta of (sent level, co-occurrences) for texts with level 0 against no texts, with level 1."""
    total = 0.0
    for place, level in enumerate(budgets.levels):
        if only in (None, level):
            shift = budgets.clipping_norm(level) / budgets.sigma
            total += hockey_stick(epsilon, chances[0, place], shift, chances[1, place])
    return total


@pytest.mark.parametrize("sent", ["open", "strict"])
def test_the_joint_guarantee_of_level_and_release_needs_the_budget_of_the_level(sent):
    """Equation (drawn) for the worst texts, whose predicted level is the examined one."""
    budgets = dptext.PersonalBudgets({"open": 2.0, "strict": 0.5}, delta=DELTA)
    chances = policy_of_two = BudgetPolicy(
        budgets.levels, predicted_from="device", predictor=FirstFeature(), training="public", epsilon=1.0
    ).response.probabilities
    if sent == "strict":
        chances = policy_of_two[::-1]
    assert joint_delta(budgets, chances, 3.0) <= DELTA  # the cap, and 1 for the level
    assert joint_delta(budgets, chances, budgets.levels[sent] + 1.0, only=sent) <= DELTA
    assert joint_delta(budgets, chances, budgets.levels[sent], only=sent) > 50 * DELTA  # without counting
    if sent == "open":
        assert joint_delta(budgets, chances, 2.0) > 50 * DELTA


def test_a_level_without_noise_has_unbounded_loss():
    assert exact_loss(np.log(np.maximum(np.eye(3), 1e-300)), allowed=0.5).excess > 600
    assert exact_loss(np.log(policy("device").response.probabilities), allowed=0.5).excess <= 0


def test_a_level_from_a_device_has_a_statement():
    statement = policy("device").statement()
    assert statement.guarantee == PureDP(0.5)
    assert (statement.unit, statement.relation, statement.trust) == (Unit.USER, Relation.SUBSTITUTION, Trust.LOCAL)
    with pytest.raises(ParameterError, match="drawn on a device"):
        policy().statement()


def test_private_training_of_the_predictor_is_composed(vectors):
    with pytest.raises(ParameterError, match="training must name"):
        policy(training=None)
    model = cooccurrence(vectors, policy(training=training_statement()))
    assert model.statement_.guarantee == ApproxDP(8.25, sum_upwards(DELTA, 1e-8))
    assert model.statements_["strict"].epsilon == 1.25
    assert model.statement_.parameters["promise_of_predictor"] == "(0.25, 1e-08)-differential privacy"
    assert not any("volunteers published" in assumption for assumption in model.statement_.assumptions)
    for other in ({"unit": Unit.DOCUMENT}, {"relation": Relation.SUBSTITUTION}):
        with pytest.raises(RefusedError, match="no proved sum"):
            cooccurrence(vectors, policy(training=training_statement(**other)))


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_a_policy_for_another_release_is_refused(vectors):
    its = policy("texts")
    with pytest.raises(ParameterError, match="is not for the unit 'document'"):
        cooccurrence(vectors, its, unit="document")
    with pytest.raises(ParameterError, match="same levels and the same default"):
        cooccurrence(vectors, its, default_level="open")
    for levels in (8.0, {"strict": 1.0, "open": 8.0}, {"strict": 8.0, "standard": 3.0, "open": 1.0}):
        with pytest.raises(ParameterError, match="same levels"):
            dptext.Cooccurrence(vectors, epsilon=levels, default_level=None, level=its).plan()
    rates = personal_participation({"strict": 1.0, "open": 8.0}, delta=DELTA, steps=3, sampling_rate=1.0)
    with pytest.raises(ParameterError, match="same levels"):
        dptext.SkipGram(vectors, epsilon=rates, level=its).plan()


def test_invalid_policies_are_refused():
    for options, message in [
        ({"predicted_from": "server"}, "'public', 'texts', 'device' or None"),
        ({"predicted_from": None}, "belong to predicted_from"),
        ({"predictor": None}, "fitted regressor"),
        ({"training": "private"}, "training must name"),
        ({"epsilon": 1.0}, "epsilon is required"),
        ({"predicted_from": "device", "epsilon": None}, "epsilon is required"),
        ({"predicted_from": "device", "epsilon": 0.0}, "epsilon"),
        ({"predicted_from": "device", "epsilon": 50.0}, "at most 20"),
        ({"attribute": ""}, "attribute must"),
        ({"margin": -0.1}, "margin must be a finite number of at least 0"),
        ({"margin": math.nan}, "margin must be a finite"),
        ({"default": "none"}, "default must be one"),
        ({"concerns": {"open": 1.0}}, "one number for each"),
        ({"concerns": {"open": 1.0, "standard": 0.5, "strict": 2.0}}, "must not fall"),
        ({"concerns": {"open": "low", "standard": 0.5, "strict": 2.0}}, "finite number"),
    ]:
        with pytest.raises(ParameterError, match=message):
            policy(**options)
    with pytest.raises(ParameterError, match="floor"):
        BudgetPolicy({"strict": 0.01})
