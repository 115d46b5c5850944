"""`Cooccurrence`: the release, its statement, its composition with earlier releases, and refusals."""

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.budgets import DeltaWarning
from dptext.privacy.guarantee import ZCDP, ApproxDP, MetricDP, NoGuarantee, PureDP, Relation, Trust, Unit
from dptext.privacy.statement import PrivacyStatement
from dptext.users.grouping import users_of
from embeddings.conftest import WORDS, learned, people


@pytest.fixture
def vectors(topic_vectors):
    return topic_vectors


def fitted(documents, vectors, **options):
    return dptext.Cooccurrence(vectors, **{"epsilon": 8.0, "seed": 1} | options).fit(documents)


def test_the_release_does_not_depend_on_order(vectors):
    documents = people(40)
    first = fitted(documents, vectors)
    shuffled = [documents[place] for place in np.random.default_rng(2).permutation(len(documents))]
    assert (fitted(shuffled, vectors).release_ == first.release_).all()


def test_every_release_has_fresh_noise(vectors):
    documents = people(5)
    one, other = (fitted(documents, vectors, seed=None) for _ in range(2))
    # two draws agree on the grid with probability 7e-5 per number
    assert (one.release_ != other.release_).mean() > 0.99
    assert one.statement_.release_id != other.statement_.release_id
    assert not one.statement_.seeded
    assert fitted(documents, vectors, seed=3).statement_.seeded


def test_the_statement_has_noise_guarantee_and_assumptions(vectors):
    model = fitted(people(5), vectors)
    statement = model.vectors_.statement
    assert statement == model.statement_
    assert statement.guarantee == ApproxDP(8.0, 1e-6)
    assert (statement.unit, statement.relation, statement.trust) == (Unit.USER, Relation.ADD_REMOVE, Trust.CENTRAL)
    assert statement.parameters["epsilon_under_substitution"] == pytest.approx(18.65, abs=0.02)
    assert statement.parameters["sigma"] == pytest.approx(0.65294, abs=1e-4)
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    assert "no two people share a user id" in str(statement.assumptions)
    few, many = (fitted(people(count), vectors) for count in (3, 300))  # nothing shows the number of users
    assert few.statement_.replace(release_id=None) == many.statement_.replace(release_id=None)
    assert few.vectors_.source == many.vectors_.source
    assert few.release_.shape == many.release_.shape
    options = {"window": np.int64(3), "most_words": np.int32(50), "epsilon": np.float64(8.0), "delta": np.float64(1e-6)}
    statement = fitted(people(2), vectors, **options).statement_
    assert PrivacyStatement.from_json(statement.to_json()) == statement


def test_users_with_the_same_id_break_the_sensitivity(vectors):
    """The reason for the assumption: with one of two such users, or with both, a matrix of norm 1 is another one."""

    def total(texts):
        plan = dptext.Cooccurrence(vectors, epsilon=8.0, delta=1e-6).plan()
        with users_of([dptext.Document(text, user="John Smith") for text in texts], plan.words) as users:
            return plan.total(users) * CELL

    one, other = "word20 word21 " * 10, " ".join([*WORDS[3:20], *WORDS[30:]]) * 10
    assert np.linalg.norm(total([one])) == pytest.approx(1.0, abs=1e-3)
    assert 1.1 < np.linalg.norm(total([one, other]) - total([one])) <= 2


def test_levels_have_separate_statements_and_the_strictest_counts(vectors):
    levels = {"strict": 1.0, "open": 8.0}
    documents = people(6, attributes={"wish": "strict"})
    documents += [dptext.Document("tea tax", user="user 0", attributes={"wish": "open"})]
    model = fitted(documents, vectors, epsilon=levels, level="wish")
    assert model.statement_.guarantee.epsilon == 8.0
    assert {name: entry.guarantee.epsilon for name, entry in model.statements_.items()} == levels
    plan = dptext.Cooccurrence(vectors, epsilon=levels, delta=1e-6).plan()
    strict = [plan.clipping_norm(entry) for entry in (("open", "strict"), ("strict",), (None,), ())]
    assert len(set(strict)) == 1
    assert strict[0] < plan.clipping_norm(("open",)) == 1.0
    assert model.statements_["strict"].neighbours.endswith("of one more user of the level 'strict'")
    assert model.statements_["open"].neighbours.endswith("of one more user")
    with pytest.raises(ParameterError, match="a level must be one of ") as error:
        fitted(people(2, attributes={"wish": "Hugo"}), vectors, epsilon=levels, level="wish")
    assert "Hugo" not in str(error.value)


def test_documents_as_unit_need_no_user(vectors):
    documents = [dptext.Document("a cup of tea")] * 3
    assert fitted(documents, vectors, unit="document").statement_.unit is Unit.DOCUMENT
    with pytest.raises(DataError, match="user"):
        fitted(documents, vectors)


# -- composition with earlier releases --------------------------------------------------------------------------------


def test_learned_words_follow_public_ones_and_are_composed(vectors):
    documents = [dptext.Document("kettle teabag cup teabag milk", user=str(user)) for user in range(500)]
    new = learned(("teabag", "tea"))
    model = fitted(documents, vectors, vocabulary=new)
    assert model.vectors_.words == (*vectors.words, "teabag")
    assert model.statement_.guarantee.epsilon == pytest.approx(9.0)
    assert model.statement_.guarantee.delta == pytest.approx(1.1e-6)
    assert "none was computed from the protected texts" not in str(model.statement_.assumptions)
    assert np.linalg.norm(model.vectors_["teabag"]) > 0
    with pytest.raises(RefusedError, match="no proved sum"):
        fitted(documents, vectors, vocabulary=learned(("teabag",), unit=Unit.DOCUMENT))
    for words in (new, new.vocabulary, new.after(vectors.vocabulary)):  # their guarantee would get lost
        with pytest.raises(ParameterError, match="separate guarantee"):
            fitted(people(2), words)


def test_words_without_public_vectors_have_a_larger_weight(vectors):
    new = learned(tuple(f"new{n}" for n in range(100)))
    plan = dptext.Cooccurrence(vectors, epsilon=8.0, delta=1e-6, vocabulary=new).plan()
    assert (plan.weights[len(vectors) :] == 4.0).all()
    assert plan.weights[: len(vectors)].max() == 1.0
    assert plan.weights[plan.words.unknown_row] == 0.0


def released(vectors, guarantee, **changes):
    statement = learned((), guarantee=guarantee, mechanism="skip-gram", **changes).statement
    return dptext.load_vectors((vectors.words, vectors.matrix), statement=statement)


def test_released_vectors_are_composed_with_their_slack(vectors):
    repeated = fitted(people(50, seed=2), fitted(people(50), vectors).vectors_)
    assert repeated.statement_.guarantee.epsilon == pytest.approx(16.0)
    assert "co-occurrences + co-occurrences" in repeated.statement_.mechanism
    statement = fitted(people(5), released(vectors, ApproxDP(1.0, 1e-6), slack=0.5)).statement_
    assert statement.epsilon == pytest.approx(9.5)
    alone = dptext.PersonalBudgets(8.0, delta=1e-6).guarantee(relation=Relation.SUBSTITUTION)
    assert statement.parameters["epsilon_under_substitution"] >= alone.epsilon + 2 * 1.5
    assert statement.parameters["delta_under_substitution"] >= 1e-6 + (1 + np.exp(1.5)) * 1e-6


def test_vectors_whose_guarantee_cannot_be_composed_are_refused_before_reading(vectors):
    for guarantee, part in [
        (NoGuarantee("empirical"), "without a guarantee"),
        (ApproxDP(np.inf, 0.0), "without a guarantee"),
        (PureDP(np.inf), "without a guarantee"),
        (ZCDP(0.5), "zCDP"),
        (MetricDP(1.0, "euclidean", 3.0), "metric guarantee"),
    ]:
        documents = iter(people(2))
        with pytest.raises(RefusedError, match=part):
            fitted(documents, released(vectors, guarantee))
        assert next(documents) == people(2)[0]


def test_word_mechanisms_on_the_vectors_add_both_guarantees(vectors):
    model = fitted(people(200), vectors, epsilon=2.0)
    result = dptext.privatize(["the judge drank tea"], dptext.TEM(model.vectors_, epsilon=5.0))
    both = dptext.statement_with_training(result.statement, model.vectors_)
    assert (both.unit, both.relation) == (Unit.USER, Relation.SUBSTITUTION)
    exact = model.statement_.parameters["epsilon_under_substitution"]
    assert both.guarantee.epsilon == pytest.approx(exact + result.statement.epsilon)
    assert both.guarantee.delta == pytest.approx(1e-6)  # not (1 + e^2) times that
    dptext.Madlib(model.vectors_, epsilon=5.0)


# -- unusual and invalid input ----------------------------------------------------------------------------------------


def test_users_without_known_words_are_a_release_like_any_other(vectors):
    for texts in (["tea"], ["", None], ["zzz qqq 12 !"], ["tea " * 5000]):
        model = fitted([dptext.Document(text, user=str(user)) for user, text in enumerate(texts)], vectors)
        assert np.isfinite(model.vectors_.matrix).all()
        assert np.isfinite(model.release_).all()


def test_invalid_arguments_are_refused(vectors):
    with pytest.raises(DataError, match="no documents"):
        fitted([], vectors)
    with pytest.raises(ParameterError, match="must be public word vectors"):
        fitted(people(1), vectors.vocabulary)
    for options, part in (
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 0.01}, "floor"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": 0.0}, "delta"),
        ({"window": 0}, "window"),
        ({"most_words": 0}, "most_words"),
        ({"unit": "word"}, "unit"),
        ({"vocabulary": ["tea"]}, "vocabulary"),
        ({"epsilon": {"a": 1.0}, "default_level": "b"}, "default"),
        ({"seed": "x"}, "seed"),
    ):
        with pytest.raises(ParameterError, match=part):
            fitted(people(1), vectors, **options)


def test_a_large_delta_is_warned_of(vectors):
    with pytest.warns(DeltaWarning, match="not below"):
        fitted(people(2), vectors, delta=1e-3, public_users=5000)
    new = learned(("teabag",), guarantee=ApproxDP(1.0, 6e-6))
    with pytest.warns(DeltaWarning, match="delta 1.2e-05 is not below 1 / 100,000") as caught:  # both together
        dptext.Cooccurrence(vectors, epsilon=8.0, delta=6e-6, vocabulary=new).fit(people(2))
    assert caught[0].filename == __file__
