"""Cooccurrence as users meet it: what comes out, what is promised, and what is refused."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.budgets import DeltaWarning
from dptext.privacy.guarantee import ZCDP, ApproxDP, MetricDP, NoGuarantee, PureDP, Relation, Trust, Unit
from dptext.privacy.statement import PrivacyStatement
from dptext.text.tokens import Vocabulary
from dptext.users.grouping import users_of
from dptext.users.private_vocabulary import PrivateVocabulary

TOPICS = (("tea", "cup", "milk", "kettle"), ("tax", "law", "court", "judge"))
WORDS = [word for topic in TOPICS for word in topic] + [f"word{n}" for n in range(60)]


@pytest.fixture(scope="module")
def vectors():
    return dptext.load_vectors((WORDS, np.random.default_rng(1).normal(size=(len(WORDS), 8))))


def people(count, seed=1, **attributes):
    """Each writes of one topic, in several documents."""
    generator = np.random.default_rng(seed)
    return [
        dptext.Document(" ".join(generator.choice(TOPICS[user % 2], 6)), user=f"user {user}", **attributes)
        for user in range(count)
        for _ in range(3)
    ]


def fitted(documents, vectors, **options):
    return dptext.Cooccurrence(vectors, **{"epsilon": 8.0, "seed": 1} | options).fit(documents)


def test_the_release_hangs_neither_on_the_order_nor_on_processes(vectors):
    documents = people(40)
    first = fitted(documents, vectors)
    shuffled = [documents[place] for place in np.random.default_rng(2).permutation(len(documents))]
    assert (fitted(shuffled, vectors).release_ == first.release_).all()
    assert (fitted(documents, vectors, processes=2).release_ == first.release_).all()


def test_without_a_seed_every_release_is_another(vectors):
    documents = people(5)
    one, other = (fitted(documents, vectors, seed=None) for _ in range(2))
    # two draws meet on the grid with probability 7e-5 a number; more than 5 of 552 do with 1e-11
    assert (one.release_ != other.release_).mean() > 0.99
    assert one.statement_.release_id != other.statement_.release_id
    assert not one.statement_.seeded
    assert fitted(documents, vectors, seed=3).statement_.seeded


def test_what_is_promised(vectors):
    model = fitted(people(5), vectors)
    statement = model.vectors_.statement
    assert statement == model.statement_
    assert statement.guarantee == ApproxDP(8.0, 1e-6)
    assert (statement.unit, statement.relation, statement.trust) == (Unit.USER, Relation.ADD_REMOVE, Trust.CENTRAL)
    assert statement.parameters["epsilon_under_substitution"] == pytest.approx(18.65, abs=0.02)
    assert statement.parameters["sigma"] == pytest.approx(0.65294, abs=1e-4)
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    assert "adding or removing one user" in " ".join(statement.explain().split())
    assert "no two people share a user id" in str(statement.assumptions)


def test_people_who_share_a_name_move_the_sum_by_more_than_one_of_them_may(vectors):
    """Why that is taken for granted: with one of them, or with both, a matrix of full length is another one."""

    def total(texts):
        plan = dptext.Cooccurrence(vectors, epsilon=8.0, delta=1e-6).plan()
        with users_of([dptext.Document(text, user="John Smith") for text in texts], plan.words) as users:
            return plan.total(users) * CELL

    one, other = "word20 word21 " * 10, " ".join([*WORDS[3:20], *WORDS[30:]]) * 10
    assert np.linalg.norm(total([one])) == pytest.approx(1.0, abs=1e-3)
    assert 1.1 < np.linalg.norm(total([one, other]) - total([one])) <= 2


def test_nothing_that_is_shown_tells_how_many_users_there_are(vectors):
    few, many = (fitted(people(count), vectors) for count in (3, 300))
    anonymous = [entry.statement_.replace(release_id=None) for entry in (few, many)]
    assert anonymous[0] == anonymous[1]
    assert few.vectors_.source == many.vectors_.source
    assert few.release_.shape == many.release_.shape


def test_topics_are_learned_from_enough_people_without_public_vectors():
    words = Vocabulary([*WORDS, "<unk>"])
    model = fitted(people(4000), words, dimension=4, epsilon=8.0)
    points = {word: model.vectors_[word] / np.linalg.norm(model.vectors_[word]) for topic in TOPICS for word in topic}
    assert points["tea"] @ points["cup"] > 0.8
    assert points["tax"] @ points["judge"] > 0.8
    assert points["tea"] @ points["tax"] < 0
    assert model.vectors_.dimension == 4


def test_levels_have_their_own_statements_and_the_strictest_counts(vectors):
    levels = {"strict": 1.0, "open": 8.0}
    documents = people(6, attributes={"wish": "strict"})
    documents += [dptext.Document("tea tax", user="user 0", attributes={"wish": "open"})]
    model = fitted(documents, vectors, epsilon=levels, level="wish")
    assert model.statement_.guarantee.epsilon == 8.0
    assert {name: entry.guarantee.epsilon for name, entry in model.statements_.items()} == levels
    plan = dptext.Cooccurrence(vectors, epsilon=levels, delta=1e-6).plan()
    assert (
        plan.clipping_norm(("open", "strict"))
        == plan.clipping_norm(("strict",))
        == plan.clipping_norm((None,))
        < plan.clipping_norm(("open",))
        == 1.0
    )
    assert plan.clipping_norm(()) == plan.clipping_norm(("strict",))
    # its statement may be all that somebody sees: an epsilon of 1 is not everybody's
    assert model.statements_["strict"].neighbours.endswith("of one more user of the level 'strict'")
    assert model.statements_["open"].neighbours.endswith("of one more user")


def test_a_level_that_is_none_is_refused_without_naming_it(vectors):
    with pytest.raises(ParameterError, match="a level must be one of ") as error:
        fitted(people(2, attributes={"wish": "Hugo"}), vectors, epsilon={"a": 1.0, "b": 2.0}, level="wish")
    assert "Hugo" not in str(error.value)


def test_documents_as_unit_need_no_user(vectors):
    documents = [dptext.Document("a cup of tea")] * 3
    assert fitted(documents, vectors, unit="document").statement_.unit is Unit.DOCUMENT
    with pytest.raises(DataError, match="user"):
        fitted(documents, vectors)


def learned(words, unit=Unit.USER):
    statement = PrivacyStatement(
        guarantee=ApproxDP(1.0, 1e-7),
        unit=unit,
        relation=Relation.ADD_REMOVE,
        condition="two collections, one of which holds one more",
        trust=Trust.CENTRAL,
        mechanism="private vocabulary",
    )
    return PrivateVocabulary(words=words, statement=statement)


def test_new_words_come_after_known_ones_and_their_promise_is_composed_in(vectors):
    documents = [dptext.Document("kettle teabag cup teabag milk", user=str(user)) for user in range(500)]
    model = fitted(documents, vectors, vocabulary=learned(("teabag", "tea")))
    assert model.vectors_.words[-1] == "teabag"
    assert model.vectors_.words[: len(vectors)] == vectors.words
    assert model.statement_.guarantee.epsilon == pytest.approx(9.0)
    assert model.statement_.guarantee.delta == pytest.approx(1.1e-6)
    assert "none was computed from the protected texts" not in str(model.statement_.assumptions)  # the words were
    assert np.linalg.norm(model.vectors_["teabag"]) > 0
    with pytest.raises(RefusedError, match="no proved sum"):
        fitted(documents, vectors, vocabulary=learned(("teabag",), unit=Unit.DOCUMENT))


def test_learned_words_do_not_pass_for_public_ones(vectors):
    """Their promise would get lost: epsilon 8 where 9 is spent, and a list that is said to be public."""
    new = learned(("teabag", "tea"))
    for words in (new.vocabulary, new.after(vectors.vocabulary)):
        with pytest.raises(ParameterError, match="separate guarantee"):
            fitted(people(2), words)
    with pytest.raises(ParameterError, match="separate guarantee"):
        fitted(people(2), new)
    alone = fitted(people(2), Vocabulary(["<unk>"]), vocabulary=new)
    assert alone.vectors_.words == ("<unk>", "teabag", "tea")
    assert alone.statement_.guarantee.epsilon == pytest.approx(9.0)
    assert alone.statement_.parameters["new_words"] == 2


def test_words_without_public_vectors_count_more_than_those_with_them(vectors):
    new = learned(tuple(f"new{n}" for n in range(100)))
    with_vectors = dptext.Cooccurrence(vectors, epsilon=8.0, delta=1e-6, vocabulary=new).plan()
    assert (with_vectors.weights[len(vectors) :] == 4.0).all()
    assert with_vectors.weights[: len(vectors)].max() == 1.0
    assert with_vectors.weights[with_vectors.words.unknown_row] == 0.0
    without = dptext.Cooccurrence(
        vectors.vocabulary, epsilon=8.0, delta=1e-6, vocabulary=new
    ).plan()  # all words are new there
    assert without.weights.max() == 1.0


def test_vectors_that_were_released_before_are_composed_in(vectors):
    before = fitted(people(50), vectors)
    repeated = fitted(people(50, seed=2), before.vectors_)
    assert repeated.statement_.guarantee.epsilon == pytest.approx(16.0)
    assert "co-occurrences + co-occurrences" in repeated.statement_.mechanism


def released(vectors, guarantee, **changes):
    output = learned(()).statement
    statement = dataclasses.replace(output, guarantee=guarantee, mechanism="skip-gram", **changes)
    return dptext.load_vectors((vectors.words, vectors.matrix), statement=statement)


def test_the_slack_of_what_came_before_counts_twice_under_substitution(vectors):
    statement = fitted(people(5), released(vectors, ApproxDP(1.0, 1e-6), slack=0.5)).statement_
    assert statement.epsilon == pytest.approx(9.5)
    alone = dptext.PersonalBudgets(8.0, delta=1e-6).guarantee(relation=Relation.SUBSTITUTION)
    assert statement.parameters["epsilon_under_substitution"] >= alone.epsilon + 2 * 1.5
    assert statement.parameters["delta_under_substitution"] >= 1e-6 + (1 + np.exp(1.5)) * 1e-6


@pytest.mark.parametrize(
    ("guarantee", "expected"),
    [
        (NoGuarantee("empirical"), "without a guarantee"),
        (ApproxDP(np.inf, 0.0), "without a guarantee"),
        (PureDP(np.inf), "without a guarantee"),
        (ZCDP(0.5), "zCDP"),
        (MetricDP(1.0, "euclidean", 3.0), "metric guarantee"),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_vectors_whose_promise_has_no_sum_are_refused(vectors, guarantee, expected):
    read = iter(people(2))
    with pytest.raises(RefusedError, match=expected):
        fitted(read, released(vectors, guarantee))
    assert next(read) == people(2)[0]  # refused before anything was read


@pytest.mark.parametrize(
    ("documents", "shape"),
    [
        ([dptext.Document("tea", user="a")], "one word"),
        ([dptext.Document("", user="a"), dptext.Document(None, user="b")], "no word"),
        ([dptext.Document("zzz qqq 12 !", user="a")], "unknown words"),
        ([dptext.Document("tea " * 5000, user="a")], "one word many times"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_users_who_say_nothing_are_a_release_like_any_other(vectors, documents, shape):
    model = fitted(documents, vectors)
    assert np.isfinite(model.vectors_.matrix).all()
    assert np.isfinite(model.release_).all()


def test_bad_input_is_named(vectors):
    with pytest.raises(DataError, match="no documents"):
        fitted([], vectors)
    with pytest.raises(ParameterError, match="hold a word besides"):
        fitted(people(1), Vocabulary(["<unk>"]))
    for options, label in (
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 0.01}, "floor"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": 0.0}, "delta"),
        ({"window": 0}, "window"),
        ({"most_words": 0}, "most_words"),
        ({"unit": "word"}, "unit"),
        ({"vocabulary": ["tea"]}, "vocabulary"),
        ({"dimension": True}, "dimension"),
        ({"epsilon": {"a": 1.0}, "default_level": "b"}, "default"),
        ({"seed": "x"}, "seed"),
    ):
        with pytest.raises(ParameterError, match=label):
            fitted(people(1), vectors, **options)


def test_numbers_of_numpy_are_numbers(vectors):
    """In statements too, which hold Python's only."""
    options = {"window": np.int64(3), "most_words": np.int32(50), "epsilon": np.float64(8.0), "delta": np.float64(1e-6)}
    statement = fitted(people(2), vectors, **options).statement_
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    assert fitted(people(2), vectors.vocabulary, dimension=np.int64(3)).vectors_.dimension == 3


def test_a_delta_that_allows_publishing_somebody_is_warned_of(vectors):
    with pytest.warns(DeltaWarning, match="not below"):
        fitted(people(2), vectors, delta=1e-3, public_users=5000)
    new = learned(("teabag",))
    new = replace(new, statement=new.statement.replace(guarantee=ApproxDP(1.0, 6e-6)))
    with pytest.warns(DeltaWarning, match="delta 1.2e-05 is not below 1 / 100,000") as caught:  # both together
        dptext.Cooccurrence(vectors, epsilon=8.0, delta=6e-6, vocabulary=new).fit(people(2))
    assert caught[0].filename == __file__


def test_the_vectors_feed_a_word_mechanism_and_the_promises_add(vectors):
    model = fitted(people(200), vectors, epsilon=2.0)
    mechanism = dptext.TEM(model.vectors_, epsilon=5.0)
    result = dptext.privatize(["the judge drank tea"], mechanism)
    both = dptext.statement_with_training(result.statement, model.vectors_)
    assert both.unit is Unit.USER
    assert both.relation is Relation.SUBSTITUTION
    exact = model.statement_.parameters
    assert both.guarantee.epsilon == pytest.approx(exact["epsilon_under_substitution"] + result.statement.epsilon)
    assert both.guarantee.delta == pytest.approx(1e-6)  # not (1 + e^2) times that
    dptext.Madlib(model.vectors_, epsilon=5.0)
