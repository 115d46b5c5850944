"""Statements restated for people with several texts: never more than what holds, on distributions that are known."""

import dataclasses
import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import dptext
from dptext.errors import RefusedError
from dptext.ledger.ledger import Ledger
from dptext.ledger.store import TEXT
from dptext.privacy.guarantee import ZCDP, ApproxDP, MetricDP, NoGuarantee, PureDP, Relation, Trust, Unit, for_group
from dptext.privacy.neighbours import (
    ANY_TWO,
    Condition,
    EncoderStays,
    OfLevel,
    OneGroup,
    SameLayout,
    SameSentenceCount,
    Stated,
    TextsOfOne,
    WordsChanged,
)
from dptext.privacy.restating import (
    amplified_by_dropout,
    apply_word_dropout,
    statement_for_user,
    substitution_guarantee,
)
from dptext.privacy.statement import PrivacyStatement, release_statement
from dptext.representations.published import mask_words
from laws import delta_of_gaussian

GUARANTEES = [
    PureDP(0.5),
    ApproxDP(0.5, 1e-6),
    ZCDP(0.1),
    MetricDP(2.0, "euclidean", 3.0, "space"),
    MetricDP(2.0, "euclidean", None),
    NoGuarantee("none"),
]


def statement(guarantee=PureDP(1.0), **changes):  # noqa: B008  frozen
    fields = {"unit": Unit.DOCUMENT, "relation": Relation.SUBSTITUTION, "trust": Trust.LOCAL, "mechanism": "made up"}
    return release_statement(guarantee=guarantee, **fields | changes)


def central(guarantee=ApproxDP(2.0, 1e-6), **changes):  # noqa: B008  frozen
    return statement(guarantee, relation=Relation.ADD_REMOVE, trust=Trust.CENTRAL, **changes)


@pytest.mark.parametrize(
    "condition",
    [
        ANY_TWO,
        Condition(requirements=(SameLayout(),)),
        Condition(requirements=(SameLayout(), OneGroup("2 groups"))),
        Condition(requirements=(OfLevel("strict"),), note="n"),
    ],
)
@pytest.mark.parametrize("build", [statement, central])
def test_a_condition_is_carried_to_people(condition, build):
    text = statement_for_user(build(condition=condition), 4)
    assert text.unit is Unit.USER
    assert text.condition.narrows(condition, text.unit)
    assert text.condition.has(TextsOfOne)
    assert text.trust is build().trust
    assert text.relation is build().relation


def test_the_promise_inside_groups_stays_one_inside_groups(tmp_path):
    """Two people whose words are of two groups are told apart with certainty; "any two people" was claimed."""
    vectors = dptext.load_vectors((["cat", "dog", "tax", "fee"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]]))
    mechanism = dptext.CusText(vectors, epsilon=2.0, size=2)
    text = statement_for_user(mechanism.document_statement(1), 1)
    assert "one group of the public partition" in text.neighbours
    assert "the same layout" in text.neighbours
    ledger = Ledger.create(tmp_path / "l.ledger", epsilon=100.0)
    for promise, by in ((mechanism.document_statement(1), TEXT), (text, "author")):
        with pytest.raises(RefusedError, match="one group"):
            ledger.reserve("r", promise, ["a"], by=by)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_texts_that_are_changed_one_by_one_compose(guarantee):
    text = statement_for_user(statement(guarantee, slack=0.001), 3)
    assert text.slack == pytest.approx(0.003)
    match guarantee:
        case PureDP(epsilon):
            assert text.guarantee == PureDP(3 * epsilon)
        case ApproxDP(epsilon, delta):
            assert text.guarantee == ApproxDP(3 * epsilon, 3 * delta)
        case ZCDP(rho):
            assert text.guarantee == ZCDP(3 * rho)
        case MetricDP(epsilon, _, farthest, space):
            assert text.guarantee.epsilon == epsilon
            assert text.guarantee.space == space
            assert text.guarantee.max_distance == (None if farthest is None else 3 * farthest)
            assert text.epsilon >= 3 * statement(guarantee).epsilon
        case _:
            assert text.guarantee == guarantee


@pytest.mark.parametrize("guarantee", [PureDP(0.5), ApproxDP(0.5, 1e-6), ZCDP(0.1), NoGuarantee("none")])
def test_texts_in_one_output_are_a_group(guarantee):
    assert statement_for_user(central(guarantee), 5).guarantee == for_group(guarantee, 5)


def test_the_sum_over_documents_of_a_gaussian_release_holds_and_the_sum_of_deltas_did_not():
    """Central noise at (2, 1e-6) a document, five documents of one user: (10, 5e-6) was claimed."""
    grid = np.linspace(0.5, 5.0, 2001)
    sigma = float(grid[np.argmax([delta_of_gaussian(1 / entry, 2.0) <= 1e-6 for entry in grid])])
    text = statement_for_user(central(), 5)
    true = delta_of_gaussian(5 / sigma, 10.0)
    assert text.guarantee.epsilon == 10.0
    assert 5e-6 < true <= text.guarantee.delta == pytest.approx(3.45e-3, rel=0.01)
    assert true == pytest.approx(1.6e-4, rel=0.1)


def test_slack_is_counted_in_before_a_group_is():
    text = statement_for_user(central(slack=0.5), 3)
    assert text.guarantee == for_group(ApproxDP(2.5, 1e-6), 3)
    assert text.slack == 0.0


def test_numbers_that_were_computed_for_documents_are_not_read_as_those_of_users():
    exact = {"epsilon_under_substitution": 3.0, "delta_under_substitution": 1e-6}
    output = central(parameters=exact)
    assert substitution_guarantee(output) == ApproxDP(3.0, 1e-6)
    assert substitution_guarantee(statement_for_user(output, 4)).epsilon == 16.0


@pytest.mark.parametrize("build", [statement, central])
def test_a_printed_epsilon_is_carried_only_where_it_adds_up(build):
    about = {"claim_is": "false", "reason": "r", "holds_for": "h", "witness": "w", "witness_loss": 8.0}
    text = statement_for_user(build(claimed_epsilon=0.5, parameters=about), 4)
    if build is statement:
        assert text.claimed_epsilon == 2.0
        assert text.parameters["witness_loss"] == 32.0
    else:
        assert text.claimed_epsilon is None
        assert not set(about) & set(text.parameters)


# -- word dropout --------------------------------------------------------------------------------------------------


MASK = "#"
SMALL = 1e-4  # of the probabilities of the telling output: its contrary then tells next to nothing


def independent(words, mu):
    """(mask, probability): which words are hidden."""
    for hidden in product([False, True], repeat=words):
        yield hidden, math.prod(mu if entry else 1 - mu for entry in hidden)


def fixed_number(words, count):
    subsets = list(combinations(range(words), count))
    for chosen in subsets:
        yield tuple(place in chosen for place in range(words)), 1 / len(subsets)


def masked(text, hidden):
    return tuple(MASK if off else word for word, off in zip(text, hidden, strict=True))


def loss(mechanism, first, second, masks):
    """The worst log-ratio of the two outputs, over both directions; `mechanism` gives the chance of one of them."""
    one, other = (sum(chance * mechanism[masked(text, hidden)] for hidden, chance in masks) for text in (first, second))
    return max(abs(math.log(one / other)), abs(math.log((1 - one) / (1 - other))))


def texts(words, letters="ab"):
    return list(product([*letters, MASK], repeat=words))


def pairs(words, changed):
    """Texts without masks that differ in a given number of words."""
    plain = [text for text in texts(words) if MASK not in text]
    return [
        (x, y) for x in plain for y in plain if sum(one != other for one, other in zip(x, y, strict=True)) == changed
    ]


@pytest.mark.parametrize("mu", [0.1, 0.9])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("changed", [1, 3])
def test_it_holds_for_mechanisms_that_hide_any_two_texts_and_is_attained(mu, epsilon, changed):
    rng = np.random.default_rng(1)
    masks = list(independent(3, mu))
    bound = amplified_by_dropout(epsilon, mu, words=changed)
    for _ in range(5):
        chances = SMALL * np.exp(epsilon * rng.integers(0, 2, size=27))
        mechanism = dict(zip(texts(3), chances, strict=True))
        assert max(loss(mechanism, *pair, masks) for pair in pairs(3, changed)) <= bound + 1e-9
    tells_of_a = {text: SMALL * math.exp(epsilon * ("a" in text[:changed])) for text in texts(3)}
    worst = loss(tells_of_a, ("a",) * changed + ("b",) * (3 - changed), ("b",) * 3, masks)
    assert worst == pytest.approx(bound, rel=1e-9)
    # a broken variant of the formula: one word's rate for several
    if changed > 1:
        assert worst > amplified_by_dropout(epsilon, mu) * 1.001


@pytest.mark.parametrize("mu", [0.1, 0.9])
@pytest.mark.parametrize("changed", [1, 2, 3])
def test_it_holds_for_one_word_where_masks_are_independent_and_is_attained(mu, changed):
    """Each word multiplies the chance by its own factor: epsilon a word, and three times that for a text."""
    epsilon, masks = 1.5, list(independent(3, mu))
    bound = amplified_by_dropout(epsilon, mu, words=changed, base="one word")
    assert bound == pytest.approx(changed * math.log(mu + (1 - mu) * math.exp(epsilon)), rel=1e-9)
    rng = np.random.default_rng(3)
    for _ in range(5):
        factors = rng.uniform(0, epsilon, size=(3, 3))
        mechanism = {
            text: SMALL * math.exp(sum(factors[place, "ab#".index(word)] for place, word in enumerate(text)))
            for text in texts(3)
        }
        assert max(loss(mechanism, *pair, masks) for pair in pairs(3, changed)) <= bound + 1e-9
    counts_a = {text: SMALL * math.exp(epsilon * text.count("a")) for text in texts(3)}
    worst = loss(counts_a, ("a",) * changed + ("b",) * (3 - changed), ("b",) * 3, masks)
    assert worst == pytest.approx(bound, rel=1e-9)


def test_a_fixed_number_of_masks_breaks_it_for_one_word():
    """Of two words one is shown; epsilon 1.5 for one word. Claimed 1.008, lost 1.347; independent masks keep it."""
    epsilon = 1.5
    steps = {("a", MASK): 2, (MASK, "b"): 0, ("b", "b"): 1, ("b", MASK): 1, (MASK, MASK): 1, ("a", "b"): 1}
    steps |= {text: 1 for text in texts(2) if text not in steps}
    mechanism = {text: SMALL * math.exp(epsilon * step) for text, step in steps.items()}
    for x, y in product(texts(2), repeat=2):  # the guarantee of the base
        if sum(one != other for one, other in zip(x, y, strict=True)) == 1:
            assert abs(math.log(mechanism[x] / mechanism[y])) <= epsilon + 1e-12
            assert abs(math.log((1 - mechanism[x]) / (1 - mechanism[y]))) <= epsilon
    lost = loss(mechanism, ("a", "b"), ("b", "b"), list(fixed_number(2, 1)))
    assert lost == pytest.approx(1.347, abs=5e-4)
    claimed = amplified_by_dropout(epsilon, 0.5, base="one word")
    assert claimed == pytest.approx(1.008, abs=5e-4)
    assert loss(mechanism, ("a", "b"), ("b", "b"), list(independent(2, 0.5))) <= claimed


def test_the_ends_and_large_numbers():
    assert amplified_by_dropout(2.0, 0.0) == 2.0
    assert amplified_by_dropout(2.0, 1.0) == 0.0
    assert amplified_by_dropout(0.0, 0.3) == 0.0
    assert amplified_by_dropout(math.inf, 0.3) == math.inf
    assert amplified_by_dropout(math.inf, 1.0) == 0.0
    assert amplified_by_dropout(3000.0, 0.5) == pytest.approx(3000 - math.log(2))
    assert amplified_by_dropout(699.9, 0.5) == pytest.approx(amplified_by_dropout(700.1, 0.5) - 0.2)
    assert amplified_by_dropout(1e-9, 0.25) == pytest.approx(0.75e-9, rel=1e-6)
    assert amplified_by_dropout(1.0, 0.5, words=4000) == pytest.approx(1.0)
    assert amplified_by_dropout(1.0, 0.5, words=3) > amplified_by_dropout(1.0, 0.5, words=2)


# -- statements ------------------------------------------------------------------------------------------------------


def text_statement(**changes):
    fields = {
        "guarantee": PureDP(8.0),
        "unit": Unit.DOCUMENT,
        "relation": Relation.SUBSTITUTION,
        "condition": ANY_TWO,
        "trust": Trust.LOCAL,
        "mechanism": "made up",
        "slack": 0.5,
    }
    return PrivacyStatement(**{**fields, **changes})


def test_a_statement_for_texts_becomes_one_for_words():
    text = apply_word_dropout(text_statement(), 0.5)
    assert text.guarantee == PureDP(amplified_by_dropout(8.5, 0.5))
    assert (text.unit, text.slack) == (Unit.WORD, 0.0)
    assert "differ in one word" in text.neighbours
    assert text.parameters["word_dropout"] == 0.5
    assert "a coin of its own" in text.assumptions[-1]
    assert PrivacyStatement.from_json(text.to_json()) == text
    two = apply_word_dropout(text_statement(), 0.5, words=2)
    assert two.guarantee.epsilon > text.guarantee.epsilon
    assert "differ in 2 words" in two.neighbours
    words = apply_word_dropout(text_statement(unit=Unit.WORD), 0.5, words=2)
    assert words.guarantee.epsilon == pytest.approx(2 * amplified_by_dropout(8.5, 0.5, base="one word"))


def test_a_printed_epsilon_is_amplified_as_printed_and_is_not_proved():
    about = {"claim_is": "false", "reason": "r", "holds_for": "h", "witness": "w", "witness_loss": 8.0}
    text = apply_word_dropout(text_statement(claimed_epsilon=1.0, parameters=about), 0.5)
    assert text.claimed_epsilon == pytest.approx(math.log(0.5 + 0.5 * math.e))
    assert "This is not proved: r." in " ".join(text.explain().split())


@pytest.mark.parametrize(
    "requirement",
    [SameLayout(), SameSentenceCount(), OneGroup("two groups"), WordsChanged(1), Stated("two lists of words")],
)
@pytest.mark.parametrize("unit", [Unit.DOCUMENT])
def test_a_masked_text_is_no_neighbour_under_a_condition(requirement, unit):
    with pytest.raises(RefusedError, match="which words were masked"):
        apply_word_dropout(text_statement(unit=unit, condition=Condition(requirements=(requirement,))), 0.5)


def test_masks_show_in_the_layout_that_a_mechanism_for_words_lets_out():
    """ln(.5 e^4 + .5) = 3.326 was claimed for this, whose output shows with certainty which words were masked."""
    vectors = dptext.load_vectors((["cat", "dog"], [[0.0, 1.0], [1.0, 0.0]]))
    mechanism = dptext.TEM(vectors, epsilon=8.0, document_epsilon=4.0, max_words=1)
    result = dptext.privatize(mask_words(["cat", "cat"], mu=1.0).texts, mechanism)
    assert all(text.startswith("[") and text.endswith("]") for text in result.texts)  # no word ever does
    pure = dataclasses.replace(result.statement, guarantee=PureDP(result.statement.epsilon), slack=0.0)
    for output in (pure, mechanism.statement, dptext.CusText(vectors, epsilon=4.0, size=2).document_statement(1)):
        with pytest.raises(RefusedError):
            apply_word_dropout(output, 0.5)


def test_conditions_of_a_trained_encoder_stay():
    text = apply_word_dropout(text_statement(condition=Condition(requirements=(EncoderStays(),))), 0.5)
    assert text.condition == Condition(requirements=(EncoderStays(), WordsChanged(1)))


def test_words_that_are_nearly_always_masked_round_up():
    mu = 1 - 1e-10
    for words in (1, 2, 3, 7):
        exact = math.log1p(float(1 - Fraction(mu) ** words) * math.expm1(3.0))
        assert exact <= amplified_by_dropout(3.0, mu, words=words) <= exact * (1 + 1e-12)
    assert amplified_by_dropout(math.inf, 0.5) == math.inf
