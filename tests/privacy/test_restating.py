"""Statements restated for people with several texts: never more than what holds, on distributions that are known."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

import dptext
from dptext.errors import ParameterError, RefusedError
from dptext.ledger.ledger import Ledger
from dptext.ledger.terms import TEXT
from dptext.privacy.condition import ANY_TWO, Condition, OfLevel, OneGroup, SameLayout, TextsOfOne
from dptext.privacy.guarantee import ZCDP, ApproxDP, MetricDP, NoGuarantee, PureDP, for_group
from dptext.privacy.restating import statement_for_user, under_substitution
from dptext.privacy.statement import of_release
from dptext.privacy.unit import Relation, Trust, Unit

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
    return of_release(guarantee=guarantee, **fields | changes)


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
@pytest.mark.parametrize("made", [statement, central])
def test_a_condition_is_carried_to_people(condition, made):
    said = statement_for_user(made(condition=condition), 4)
    assert said.unit is Unit.USER
    assert said.condition.narrows(condition, said.unit)
    assert said.condition.has(TextsOfOne)
    assert said.trust is made().trust
    assert said.relation is made().relation


def test_the_promise_inside_groups_stays_one_inside_groups(tmp_path):
    """Two people whose words are of two groups are told apart with certainty; "any two people" was claimed."""
    vectors = dptext.load_vectors((["cat", "dog", "tax", "fee"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]]))
    mechanism = dptext.CusText(vectors, epsilon=2.0, size=2)
    said = statement_for_user(mechanism.document_statement(1), 1)
    assert "one group of the public partition" in said.neighbours
    assert "the same layout" in said.neighbours
    ledger = Ledger.create(tmp_path / "l.ledger", epsilon=100.0)
    for promise, by in ((mechanism.document_statement(1), TEXT), (said, "author")):
        with pytest.raises(RefusedError, match="one group"):
            ledger.reserve("r", promise, ["a"], by=by)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_texts_that_are_changed_one_by_one_compose(guarantee):
    said = statement_for_user(statement(guarantee, slack=0.001), 3)
    assert said.slack == pytest.approx(0.003)
    match guarantee:
        case PureDP(epsilon):
            assert said.guarantee == PureDP(3 * epsilon)
        case ApproxDP(epsilon, delta):
            assert said.guarantee == ApproxDP(3 * epsilon, 3 * delta)
        case ZCDP(rho):
            assert said.guarantee == ZCDP(3 * rho)
        case MetricDP(epsilon, _, farthest, space):
            assert said.guarantee.epsilon == epsilon
            assert said.guarantee.space == space
            assert said.guarantee.max_distance == (None if farthest is None else 3 * farthest)
            assert said.epsilon >= 3 * statement(guarantee).epsilon
        case _:
            assert said.guarantee == guarantee


@pytest.mark.parametrize("guarantee", [PureDP(0.5), ApproxDP(0.5, 1e-6), ZCDP(0.1), NoGuarantee("none")])
def test_texts_in_one_output_are_a_group(guarantee):
    assert statement_for_user(central(guarantee), 5).guarantee == for_group(guarantee, 5)


def exact_delta(sigma, distance, epsilon):
    """Balle and Wang 2018, Theorem 8."""
    return stats.norm.cdf(distance / 2 / sigma - epsilon * sigma / distance) - math.exp(epsilon) * stats.norm.cdf(
        -distance / 2 / sigma - epsilon * sigma / distance
    )


def test_the_sum_over_documents_of_a_gaussian_release_holds_and_the_sum_of_deltas_did_not():
    """Central noise at (2, 1e-6) a document, five documents of one user: (10, 5e-6) was claimed."""
    grid = np.linspace(0.5, 5.0, 2001)
    sigma = float(grid[np.argmax([exact_delta(each, 1.0, 2.0) <= 1e-6 for each in grid])])
    said = statement_for_user(central(), 5)
    true = exact_delta(sigma, 5.0, 10.0)
    assert said.guarantee.epsilon == 10.0
    assert 5e-6 < true <= said.guarantee.delta == pytest.approx(3.45e-3, rel=0.01)
    assert true == pytest.approx(1.6e-4, rel=0.1)


def test_slack_is_counted_in_before_a_group_is():
    said = statement_for_user(central(slack=0.5), 3)
    assert said.guarantee == for_group(ApproxDP(2.5, 1e-6), 3)
    assert said.slack == 0.0


def test_numbers_that_were_computed_for_documents_are_not_read_as_those_of_users():
    exact = {"epsilon_under_substitution": 3.0, "delta_under_substitution": 1e-6}
    made = central(parameters=exact)
    assert under_substitution(made) == ApproxDP(3.0, 1e-6)
    assert under_substitution(statement_for_user(made, 4)).epsilon == 16.0


@pytest.mark.parametrize("made", [statement, central])
def test_a_printed_epsilon_is_carried_only_where_it_adds_up(made):
    about = {"claim_is": "false", "reason": "r", "holds_for": "h", "witness": "w", "witness_loss": 8.0}
    said = statement_for_user(made(claimed_epsilon=0.5, parameters=about), 4)
    if made is statement:
        assert said.claimed_epsilon == 2.0
        assert said.parameters["witness_loss"] == 32.0
    else:
        assert said.claimed_epsilon is None
        assert not set(about) & set(said.parameters)


@pytest.mark.parametrize("texts", [0, -1, 1.5, True, "3", None, 10**9])
def test_bounds_on_texts_that_are_none(texts):
    with pytest.raises(ParameterError, match="texts must be an integer"):
        statement_for_user(statement(), texts)


@pytest.mark.parametrize("unit", [Unit.USER, Unit.WORD, Unit.EXAMPLE])
def test_other_units_are_refused(unit):
    with pytest.raises(ParameterError, match="for one text"):
        statement_for_user(dataclasses.replace(statement(), unit=unit), 2)


def test_what_has_no_proof_is_refused():
    with pytest.raises(RefusedError, match="zCDP with slack"):
        statement_for_user(central(ZCDP(0.1), slack=0.1), 2)
    with pytest.raises(RefusedError, match="no pure epsilon"):
        statement_for_user(central(MetricDP(1.0, "euclidean")), 2)
