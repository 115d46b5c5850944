"""Levels that are declared, given by default or predicted: who gets which, and what is promised to them."""

import dataclasses
import math
import pickle
import warnings

import numpy as np
import pytest
from papers.dpugc.concerns import fit_concerns
from scipy.stats import norm

import dptext
from dptext import BudgetPolicy, Document
from dptext.audits import exact_loss
from dptext.embeddings.levels import concerns_by
from dptext.embeddings.participation import Participation
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.privacy.guarantee import ApproxDP, PureDP, Relation, Trust, Unit, sum_upwards
from dptext.privacy.statement import PrivacyStatement

LEVELS = {"standard": 3.0, "strict": 1.0, "open": 8.0}
DELTA = 1e-6
WORRIED, OTHER = ["curtain", "lock", "whisper", "alone"], ["river", "bread", "song", "train", "blue", "stone"]


class Said:
    """A predictor that reads the concern off the features."""

    def predict(self, features):
        return np.array([float(row[0]) for row in features])


def policy(predicted_from="public", **options):
    fields = {"predictor": Said(), "training": "public", "epsilon": 0.5 if predicted_from == "device" else None}
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
    rates = {"standard": 0.5, "strict": 0.25, "open": 1.0}  # whose accounting takes little time
    participation = Participation(noise_multiplier=2.0, steps=3, delta=DELTA, rates=rates, default="strict")
    model = dptext.SkipGram(vectors, epsilon=participation, level=its_policy, public_users=20, seed=1)
    return model.fit(people(["strict", "open", None, "standard"] * 3))


# -- who gets which level -----------------------------------------------------------------------------------------


def test_of_two_levels_the_stricter():
    values = [0.0, 1 / 3, 0.34, 2 / 3, 0.7, 1.0, 1.5, -2.0, math.nan, math.inf]
    expected = ["open", "open", "standard", "standard", *["strict"] * 3, "open", "strict", "strict"]
    assert list(policy().predict([[entry] for entry in values])) == expected
    with_margin = policy(margin=0.1).predict([[0.0], [0.3], [0.6]])
    assert with_margin == ("open", "standard", "strict")
    custom = policy(concerns={"open": 0.1, "standard": 0.2, "strict": 0.3})
    assert custom.predict([[0.1], [0.11], [0.9]]) == ("open", "standard", "strict")


def test_predicted_levels_follow_the_concern_that_drives_the_texts():
    generator = np.random.default_rng(5)
    concerns = generator.uniform(size=240)
    texts = [
        " ".join(["curtain" if generator.uniform() < concern else "river" for _ in range(40)]) for concern in concerns
    ]
    model = fit_concerns(texts[:120], concerns[:120])
    assert model.error.relative_to_mean < 0.5
    predictions = policy(predictor=model).predict(texts[120:])
    epsilons = np.array([LEVELS[level] for level in predictions])
    # a correlation below -.5 among 120 by chance alone: about 1e-8
    assert np.corrcoef(epsilons, concerns[120:])[0, 1] < -0.5
    assert set(predictions) == set(LEVELS)


def test_who_declared_keeps_his_level_and_who_is_not_known_gets_the_default(vectors):
    documents = [
        Document("a", user="A", attributes={"consent": "open"}),
        Document("b", user="B", attributes={"consent": None, "age": 7}),
        Document("c", user="C"),
        Document("d"),
    ]
    result = list(policy().assigned(documents, {"A": "strict", "B": "standard"}))
    assert [(entry.attributes or {}).get("consent") for entry in result] == ["open", "standard", None, None]
    assert result[1].attributes["age"] == 7
    with pytest.raises(ParameterError, match="one of 'standard', 'strict', 'open'") as error:
        next(policy().assigned(documents, {"A": "Hugo"}))
    assert "Hugo" not in str(error.value)


def test_a_device_draws_afresh_and_pickled_policies_share_no_draws():
    device = policy("device", epsilon=0.1)
    other = pickle.loads(pickle.dumps(device))
    assert other.levels == device.levels
    rows = [[0.5]] * 80
    assert device.predict(rows) != other.predict(rows)  # equal with chance below 1e-30
    assert device.predict(rows, seed=1) == other.predict(rows, seed=1)


# -- what is promised ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("train", [cooccurrence, skipgram])
def test_from_public_features_a_level_is_as_good_as_declared(vectors, train):
    declared, predicted = train(vectors, BudgetPolicy(LEVELS)), train(vectors, policy())
    for level in LEVELS:
        assert predicted.statements_[level].guarantee == declared.statements_[level].guarantee
    assert any("public data about them" in assumption for assumption in predicted.statement_.assumptions)
    assert any("volunteers published" in assumption for assumption in predicted.statement_.assumptions)
    assert predicted.statement_.parameters["levels_predicted_from"] == "public"


@pytest.mark.parametrize("train", [cooccurrence, skipgram])
def test_from_private_texts_only_the_cap_is_promised(vectors, train):
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
def test_a_level_that_is_drawn_on_a_device_is_counted(vectors, train):
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


def test_the_card_says_how_levels_came_about(vectors, tmp_path):
    for source, text in (("device", "the one that was sent"), ("texts", "who chose their level themselves")):
        cooccurrence(vectors, policy(source)).save(tmp_path / source)
        assert text in (tmp_path / source / "README.md").read_text()


def hockey_stick(epsilon, p, shift, q):
    """The largest of p N(shift, 1)(S) - e^epsilon q N(0, 1)(S) over sets S."""
    border = (epsilon - math.log(p / q)) / shift + shift / 2
    return p * norm.sf(border - shift) - math.exp(epsilon) * q * norm.sf(border)


def joint_delta(budgets, chances, epsilon, only=None):
    """The delta at epsilon of (level sent, co-occurrences) for texts read as level 0 against none, read as level 1."""
    total = 0.0
    for place, level in enumerate(budgets.levels):
        if only in (None, level):
            shift = budgets.clipping_norm(level) / budgets.sigma
            total += hockey_stick(epsilon, chances[0, place], shift, chances[1, place])
    return total


@pytest.mark.parametrize("sent", ["open", "strict"])
def test_exactly_what_is_promised_for_the_pair_of_level_and_release_and_not_without_counting(sent):
    """Equation (drawn), worst texts: read as the level that is looked at, where no texts are read as another one."""
    budgets = dptext.PersonalBudgets({"open": 2.0, "strict": 0.5}, delta=DELTA)
    chances = policy_of_two = BudgetPolicy(
        budgets.levels, predicted_from="device", predictor=Said(), training="public", epsilon=1.0
    ).response.probabilities
    if sent == "strict":
        chances = policy_of_two[::-1]
    assert joint_delta(budgets, chances, 3.0) <= DELTA  # the cap, and 1 for the level
    assert joint_delta(budgets, chances, budgets.levels[sent] + 1.0, only=sent) <= DELTA
    assert joint_delta(budgets, chances, budgets.levels[sent], only=sent) > 50 * DELTA  # without counting
    if sent == "open":
        assert joint_delta(budgets, chances, 2.0) > 50 * DELTA


def test_a_level_that_is_sent_as_it_is_tells_all():
    assert exact_loss(np.log(np.maximum(np.eye(3), 1e-300)), allowed=0.5).excess > 600
    assert exact_loss(np.log(policy("device").response.probabilities), allowed=0.5).excess <= 0


def test_what_a_device_sends_has_a_statement():
    statement = policy("device").statement()
    assert statement.guarantee == PureDP(0.5)
    assert (statement.unit, statement.relation, statement.trust) == (Unit.USER, Relation.SUBSTITUTION, Trust.LOCAL)
    with pytest.raises(ParameterError, match="drawn on a device"):
        policy().statement()


def test_labels_of_users_have_to_be_public_or_promised_for(vectors):
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


# -- what does not fit --------------------------------------------------------------------------------------------


def test_a_policy_that_does_not_fit_the_release(vectors):
    its = policy("texts")
    with pytest.raises(ParameterError, match="is not for the unit 'document'"):
        cooccurrence(vectors, its, unit="document")
    with pytest.raises(ParameterError, match="same levels and the same default"):
        cooccurrence(vectors, its, default_level="open")
    for levels in (8.0, {"strict": 1.0, "open": 8.0}, {"strict": 8.0, "standard": 3.0, "open": 1.0}):
        with pytest.raises(ParameterError, match="same levels"):
            dptext.Cooccurrence(vectors, epsilon=levels, default_level=None, level=its).plan()
    rates = BudgetPolicy({"strict": 1.0, "open": 8.0}).participation(delta=DELTA, steps=3, noise_multiplier=2.0)
    with pytest.raises(ParameterError, match="same levels"):
        dptext.SkipGram(vectors, epsilon=rates, level=its).plan()


def test_bad_arguments_of_a_policy():
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


def test_what_predicts_nothing():
    with pytest.raises(ParameterError, match="predicts nothing"):
        BudgetPolicy(LEVELS).predict([[0.5]])
    with pytest.raises(ParameterError, match="floor"):
        BudgetPolicy({"strict": 0.01})


def test_levels_of_those_who_declare_none_are_read_off_attributes_or_texts():
    documents = [
        Document("a", user="A", attributes={"consent": "open", "age": 1.0}),
        Document("a", user="B", attributes={"consent": None, "age": None}),
        Document("a", user=" B", attributes={"consent": "", "age": "0.9"}),  # the same person, in a csv file
        Document("a", user="C", attributes={"age": None}),
        Document("a", user="A", attributes={"consent": None, "age": 1.0}),  # who has declared one elsewhere
    ]
    result = policy().levels_of(documents, features=["age"])
    assert result == {"B": "strict", " B": "strict"}
    values = [(entry.attributes or {}).get("consent") for entry in policy().assigned(documents, result)]
    assert values == ["open", "strict", "strict", None, None]
    with pytest.raises(ParameterError, match="features="):
        policy().levels_of(documents)
    with pytest.raises(DataError, match="row 2: expected a number in the column 'age'"):
        policy().levels_of([documents[0], Document("x", user="D", attributes={"age": "old"})], features=["age"])
    with pytest.raises(DataError, match="row 1 has no user"):
        policy().levels_of([Document("x")], features=["age"])

    class Longest:
        def predict(self, texts):
            return [min(1.0, len(text) / 2_000_000) for text in texts]

    many = [Document("x" * 700_000, user="A"), Document(None, user="B"), Document("x" * 700_000, user="A")]
    assert policy("texts", predictor=Longest()).levels_of(many) == {"A": "standard", "B": "open"}  # the first million


def test_levels_that_devices_sent_need_no_predictor():
    sent = policy("device", predictor=None)
    assert sent.epsilon == 0.5
    with pytest.raises(ParameterError, match="predicts nothing"):
        sent.predict([[0.5]])


# -- concerns predicted from synthetic labels: what drives some features is found, and the mean stands beside it -----


def volunteers(count, seed=3, drive=1.0):
    """Texts in which concern drives how often some words are used; without drive, it does not."""
    generator = np.random.default_rng(seed)
    concerns = generator.uniform(size=count)
    texts = []
    for concern in concerns:
        share = 0.1 + 0.4 * (drive * concern + (1 - drive) * generator.uniform())
        words = [generator.choice(WORRIED if generator.uniform() < share else OTHER) for _ in range(60)]
        texts.append(" ".join(words))
    return texts, concerns


@pytest.fixture(scope="module")
def concern_value():
    return fit_concerns(*volunteers(300))


def test_concern_is_found_in_texts_and_the_mean_is_worse(concern_value):
    """On held-out volunteers; a correlation of .5 among 200 by chance alone: below 1e-13."""
    texts, concerns = volunteers(200, seed=4)
    assert np.corrcoef(concern_value.predict(texts), concerns)[0, 1] > 0.5
    assert concern_value.error.relative_to_mean < 0.85
    assert len(concern_value.error.folds) == len(concern_value.error.mean) == 5
    assert "by the mean), 5 folds" in str(concern_value.error)


def test_where_there_is_nothing_to_find_the_error_says_so():
    assert fit_concerns(*volunteers(300, drive=0.0)).error.relative_to_mean > 0.95


def test_numbers_and_any_regressor():
    from sklearn.ensemble import GradientBoostingRegressor

    generator = np.random.default_rng(1)
    features = generator.normal(size=(200, 3))
    concerns = 1 / (1 + np.exp(-features[:, 0]))
    for regressor in (None, GradientBoostingRegressor(random_state=0, n_estimators=30)):
        model = fit_concerns(features, concerns, regressor=regressor, folds=4)
        assert model.error.relative_to_mean < 0.5
        assert model.predict(features[:7]).shape == (7,)
    same = fit_concerns(features, np.full(200, 0.5))
    assert same.error.relative_to_mean == np.inf or same.error.relative_to_mean >= 0


def test_a_hostile_text_raises_and_warns_of_nothing(concern_value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = concern_value.predict([None, "", "curtain " * 100_000, "\0", "🜁" * 1000])
    assert np.isfinite(predicted).all()


def test_what_is_no_number_is_the_most_concern():
    class Odd:
        def predict(self, rows):
            warnings.warn("a row is odd", stacklevel=1)
            return np.array([np.nan, np.inf, -np.inf, 0.5])

    assert concerns_by(Odd(), np.zeros((4, 1))).tolist() == [np.inf, np.inf, np.inf, 0.5]


def test_bad_features_and_concerns():
    for features, concerns, options, error, message in [
        ([[1.0]] * 20, [0.5] * 19, {}, DataError, "one finite concern for each of the 20 rows"),
        ([[1.0]] * 20, [np.nan] * 20, {}, DataError, "one finite concern"),
        ([[1.0]] * 20, ["much"] * 20, {}, DataError, "must be numbers"),
        (3, [0.5], {}, DataError, "must have rows"),
        ([[1.0]] * 9, [0.5] * 9, {}, DataError, "two volunteers a fold, got 5 folds and 9 rows"),
        ([[1.0]] * 20, [0.5] * 20, {"folds": 1}, DataError, "2 folds or more"),
        ([[1.0]] * 20, [0.5] * 20, {"folds": 2.5}, ParameterError, "folds must be"),
        ([[1.0]] * 20, [0.5] * 20, {"regressor": "ridge"}, ParameterError, "fit and predict"),
    ]:
        with pytest.raises(error, match=message):
            fit_concerns(features, concerns, **options)
