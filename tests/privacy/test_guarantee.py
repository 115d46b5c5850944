"""Guarantees: how they add and convert, and that the arithmetic bounds exact small mechanisms."""

import itertools
import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dptext.errors import RefusedError
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    MetricDP,
    NoGuarantee,
    PureDP,
    Relation,
    approx_from_zcdp,
    as_approx,
    at_most,
    compose,
    compose_parallel,
    for_group,
    guarantee_from_dict,
    guarantee_to_dict,
    pure_from_metric,
    rounded_down,
    substitution_from_add_remove,
    zcdp_from_pure,
)
from laws import delta_of_gaussian

amounts = st.floats(min_value=0, allow_nan=False)
finite = st.floats(min_value=0, max_value=1e6)
shares = st.floats(min_value=0, max_value=1)
pures = st.builds(PureDP, finite)
one_metric = st.builds(MetricDP, finite, st.just("euclidean"), st.none() | finite)
names, spaces = st.sampled_from(["euclidean", "angular"]), st.none() | st.sampled_from(["2014", "2024"])
any_guarantee = st.one_of(
    st.builds(PureDP, amounts),
    st.builds(ApproxDP, amounts, shares),
    st.builds(ZCDP, amounts),
    st.builds(MetricDP, amounts, names, st.none() | amounts, spaces),
    st.builds(NoGuarantee, st.sampled_from(["empirical", "the proof is wrong"])),
)


@given(any_guarantee)
def test_guarantees_are_frozen_hashable_and_survive_plain_data(guarantee):
    data = guarantee_to_dict(guarantee)
    assert next(iter(data)) == "kind"
    assert len({guarantee, guarantee_from_dict(data)}) == 1
    assert guarantee_to_dict(guarantee) == data, "reading must not change the data"
    with pytest.raises(FrozenInstanceError):
        guarantee.epsilon = 0.0


@example(0.0, math.inf)
@example(math.inf, 0.0)
@given(amounts, st.none() | amounts)
def test_the_pure_epsilon_of_a_metric_guarantee_is_its_worst_pair(epsilon, max_distance):
    assert MetricDP(epsilon, "euclidean", max_distance).pure_epsilon >= 0  # false for NaN, as 0 * inf would be
    assert MetricDP(5.0, "euclidean", 7.1).pure_epsilon == 35.5
    assert MetricDP(5.0, "euclidean").pure_epsilon == MetricDP(5.0, "euclidean", math.inf).pure_epsilon == math.inf


@given(st.floats(min_value=0, allow_nan=False), st.integers(1, 6))
@example(1.04e-4, 1)
@example(0.12349, 3)
@example(math.inf, 3)
def test_a_number_in_few_digits_is_never_too_small_and_hardly_too_large(value, digits):
    text = float(at_most(value, digits))
    assert text >= value
    if value < 1e300:
        assert text <= value * (1 + 10.0 ** (1 - digits)) * (1 + 1e-12) + 1e-300


def test_rounding_goes_down():
    for value in (9.9999, 10.0, 1.00049, 0.99995, 123456.0, 3e-7):
        result = rounded_down(value, 4)
        assert result <= value < result * (1 + 2e-3)
        assert result == float(f"{result:.4g}")


# -- composition -------------------------------------------------------------------------------------------------

P, A, Z = PureDP(1.0), ApproxDP(2.0, 0.25), ZCDP(3.0)
M, FREE, OTHER = MetricDP(4.0, "euclidean", 0.5), MetricDP(8.0, "euclidean"), MetricDP(16.0, "angular", 2.0)
OTHER_FREE, NOTHING = MetricDP(16.0, "angular"), NoGuarantee("empirical")
OLD, NEW = MetricDP(1.0, "euclidean", 2.0, "vectors of 2014"), MetricDP(1.0, "euclidean", 3.0, "vectors of 2024")

SUMS = [
    (P, P, PureDP(2.0)),
    (P, A, ApproxDP(3.0, 0.25)),
    (P, Z, ZCDP(3.5)),
    (P, M, PureDP(3.0)),
    (A, A, ApproxDP(4.0, 0.5)),
    (A, M, ApproxDP(4.0, 0.25)),
    (Z, Z, ZCDP(6.0)),
    (Z, M, ZCDP(5.0)),
    (M, M, MetricDP(8.0, "euclidean", 0.5)),
    (M, MetricDP(1.0, "euclidean", 3.0), MetricDP(5.0, "euclidean", 3.0)),
    (M, FREE, MetricDP(12.0, "euclidean")),
    (M, OTHER, PureDP(34.0)),
    (OTHER_FREE, OTHER_FREE, MetricDP(32.0, "angular")),
    (OLD, OLD, MetricDP(2.0, "euclidean", 2.0, "vectors of 2014")),
    (OLD, NEW, PureDP(5.0)),  # distances in two spaces do not add
    (OLD, MetricDP(1.0, "euclidean", 3.0), PureDP(5.0)),
    (ApproxDP(1.0, 0.7), ApproxDP(1.0, 0.7), ApproxDP(2.0, 1.0)),
    *((NOTHING, other, NOTHING) for other in (P, A, Z, M, FREE)),
]
REFUSED = [
    (Z, A, "approx_from_zcdp"),
    *((FREE, other, "public diameter") for other in (P, A, Z, OTHER, OTHER_FREE)),
    (M, OTHER_FREE, "public diameter"),
    (OLD, FREE, "public diameter"),
]


def test_two_guarantees_add_as_the_table_says_in_both_orders():
    for first, second, total in SUMS:
        assert compose(first, second) == compose(second, first) == total
    for first, second, reason in REFUSED:
        for pair in ((first, second), (second, first)):
            with pytest.raises(RefusedError, match=reason):
                compose(*pair)
    assert compose(P, NOTHING, P) == NOTHING
    assert compose(NOTHING, NoGuarantee("b"), NOTHING).reason == "empirical; b; empirical"


@given(any_guarantee, any_guarantee)
def test_composition_commutes_in_value_and_in_refusal(first, second):
    def outcome(*pair):
        try:
            return compose(*pair)
        except RefusedError:
            return None

    one, two = outcome(first, second), outcome(second, first)
    if isinstance(one, NoGuarantee):
        assert sorted(one.reason.split("; ")) == sorted(two.reason.split("; "))
    else:
        assert one == two


@given(st.lists(one_metric, min_size=2, max_size=5))
def test_metric_guarantees_lose_for_no_distance_more_than_their_sum(parts):
    total = compose(*parts)

    def loss(guarantee, distance):
        bound = math.inf if guarantee.max_distance is None else guarantee.max_distance
        return guarantee.epsilon * min(distance, bound)

    for distance in (0.0, 0.1, 1.0, 10.0, 1e3, 1e6):
        assert loss(total, distance) >= sum(loss(part, distance) for part in parts) * (1 - 1e-9) - 1e-300


# -- conversions: closed forms -----------------------------------------------------------------------------------


@given(st.floats(min_value=1e-6, max_value=20), st.floats(min_value=1e-12, max_value=1e-3), st.integers(1, 12))
def test_group_privacy_is_the_repeated_chain(epsilon, delta, size):
    # P_k <= e^eps P_(k-1) + delta, unrolled: delta_k = e^eps delta_(k-1) + delta
    chained = 0.0
    for _ in range(size):
        chained = math.exp(epsilon) * chained + delta
    result = for_group(ApproxDP(epsilon, delta), size)
    assert result.epsilon == pytest.approx(size * epsilon)
    assert result.delta == pytest.approx(min(1.0, chained), rel=1e-9)


def test_group_privacy_in_numbers():
    assert for_group(PureDP(0.5), 4) == PureDP(2.0)
    assert for_group(ZCDP(0.5), 3) == ZCDP(4.5)
    assert for_group(MetricDP(2.0, "euclidean", 3.0), 2) == PureDP(12.0)
    assert for_group(NOTHING, 3) == NOTHING
    assert for_group(ApproxDP(800.0, 1e-6), 1) == ApproxDP(800.0, 1e-6)
    for epsilon in (0.0, 1e-300, 5e-324):  # a vanishing epsilon tends to the plain multiple
        assert for_group(ApproxDP(epsilon, 1e-6), 3).delta == pytest.approx(3e-6)
    assert for_group(ApproxDP(300.0, 1e-6), 5) == ApproxDP(1500.0, 1.0)
    assert for_group(ApproxDP(300.0, 0.0), 5) == ApproxDP(1500.0, 0.0)


@given(st.floats(min_value=0, max_value=50), st.floats(min_value=0, max_value=1e-3))
def test_substitution_costs_twice_epsilon_and_one_plus_e_to_epsilon_delta(epsilon, delta):
    result = substitution_from_add_remove(ApproxDP(epsilon, delta))
    assert result.epsilon == 2 * epsilon
    assert result.delta == pytest.approx(min(1.0, (1 + math.exp(epsilon)) * delta), rel=1e-9)


def test_conversions_in_numbers_and_refusals():
    assert substitution_from_add_remove(PureDP(1.5)) == PureDP(3.0)
    assert substitution_from_add_remove(ZCDP(0.5)) == ZCDP(2.0)
    assert zcdp_from_pure(PureDP(2.0)) == ZCDP(2.0)
    assert approx_from_zcdp(ZCDP(0.0), delta=0.0) == ApproxDP(0.0, 0.0)
    result = approx_from_zcdp(ZCDP(0.1), delta=1e-6)
    assert result.epsilon == pytest.approx(0.1 + 2 * math.sqrt(0.1 * math.log(1e6)))
    assert as_approx(P) == ApproxDP(1.0, 0.0)
    assert as_approx(M) == ApproxDP(2.0, 0.0)
    assert pure_from_metric(M) == PureDP(2.0)
    for convert, guarantee, reason in (
        (substitution_from_add_remove, M, "already covers substitution"),
        (as_approx, FREE, "public diameter"),
        (as_approx, Z, "approx_from_zcdp"),
        (as_approx, NOTHING, "empirical"),
        (pure_from_metric, FREE, "no pure epsilon"),
    ):
        with pytest.raises(RefusedError, match=reason):
            convert(guarantee)


@example(math.inf, 5e-324)
@example(1e308, 1e-300)
@given(amounts, st.floats(min_value=5e-324, max_value=1))
def test_zcdp_converts_at_every_rho_and_every_delta(rho, delta):
    result = approx_from_zcdp(ZCDP(rho), delta=delta)
    assert result.delta == delta
    assert result.epsilon >= rho


def test_disjoint_parts_cost_the_worst_of_them_under_add_remove():
    for parts, total in (
        ((PureDP(1.0), PureDP(3.0), PureDP(2.0)), PureDP(3.0)),
        ((ZCDP(1.0), ZCDP(3.0)), ZCDP(3.0)),
        ((ApproxDP(1.0, 1e-3), ApproxDP(3.0, 1e-6)), ApproxDP(3.0, 1e-3)),
        ((PureDP(4.0), ApproxDP(3.0, 1e-6)), ApproxDP(4.0, 1e-6)),
    ):
        for order in itertools.permutations(parts):
            assert compose_parallel(*order, relation=Relation.ADD_REMOVE) == total


@given(pures, pures, st.integers(1, 10**6))
def test_sums_and_products_are_never_rounded_down(first, second, size):
    one, two = Fraction(first.epsilon), Fraction(second.epsilon)
    assert compose(first, second).epsilon >= one + two
    assert for_group(first, size).epsilon >= size * one
    assert zcdp_from_pure(first).rho >= one * one / 2
    assert MetricDP(first.epsilon, "m", second.epsilon).pure_epsilon >= one * two
    delta = min(1.0, first.epsilon)
    assert compose(ApproxDP(0.0, delta), ApproxDP(0.0, delta)).delta >= min(1, 2 * Fraction(delta))


def test_extremes_round_up_and_never_fail():
    assert compose(PureDP(1.0), PureDP(1e-17)).epsilon > 1.0
    assert compose(ApproxDP(1.0, 1e-6), ApproxDP(1.0, 1e-23)).delta > 1e-6
    assert zcdp_from_pure(PureDP(1e-200)).rho > 0
    assert MetricDP(1e-200, "m", 1e-200).pure_epsilon > 0
    assert for_group(ZCDP(1e-300), 10**200).rho >= 1e100 * (1 - 1e-15)
    assert for_group(PureDP(1.0), 10**400).epsilon == math.inf
    assert "inf" in str(MetricDP(2**999, "m", 2**999))


# -- meaning: exact tables of probabilities ----------------------------------------------------------------------
# Rows are inputs, columns are outputs. The arithmetic has to bound the losses of these tables, and a wrong formula
# must fall below them: otherwise the check could not tell right from wrong.

ROUNDING = 1e-12


def hockey_stick(one, two, epsilon):
    """The delta that these two distributions need at epsilon, in both directions: max_S P(S) - e^epsilon Q(S)."""
    growth = math.exp(epsilon)
    return max(np.maximum(one - growth * two, 0).sum(), np.maximum(two - growth * one, 0).sum())


def holds(guarantee, one, two):
    """True if (epsilon, delta) covers this pair of distributions."""
    needed = as_approx(guarantee)
    return hockey_stick(one, two, needed.epsilon) <= needed.delta + ROUNDING


def both(one, two):
    """The distribution of two independent outputs."""
    return np.outer(one, two).ravel()


def randomised_response(epsilon, delta=0.0):
    """Two inputs, four outputs; with probability delta the input is shown: exactly (epsilon, delta)-DP."""
    keep = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    flip = (1 - delta) / (1 + math.exp(epsilon))
    return np.array([[keep, flip, delta, 0.0], [flip, keep, 0.0, delta]])


@pytest.mark.parametrize("first", [(0.5, 0.0), (1.0, 0.05), (2.0, 0.2)])
@pytest.mark.parametrize("second", [(0.3, 0.0), (1.5, 0.01)])
def test_the_composed_guarantee_bounds_two_randomised_responses_and_less_does_not(first, second):
    tables = [randomised_response(*pair) for pair in (first, second)]
    for (epsilon, delta), table in zip((first, second), tables, strict=True):
        assert holds(ApproxDP(epsilon, delta), *table)
        assert not holds(ApproxDP(0.99 * epsilon, delta), *table)
    together = [both(tables[0][row], tables[1][row]) for row in (0, 1)]
    total = as_approx(compose(ApproxDP(*first), ApproxDP(*second)))
    assert holds(total, *together)
    assert not holds(ApproxDP(max(first[0], second[0]), max(first[1], second[1])), *together)
    assert not holds(ApproxDP(0.9 * total.epsilon, total.delta * 0.9), *together)


def test_a_sum_of_pure_epsilons_is_reached_exactly():
    one = two = np.ones(1)
    epsilons = (0.1, 1.0, 2.0, 0.5)
    for epsilon in epsilons:
        table = randomised_response(epsilon)[:, :2]
        one, two = both(one, table[0]), both(two, table[1])
    total = compose(*map(PureDP, epsilons))
    assert np.log(one / two).max() == pytest.approx(total.epsilon)
    assert holds(total, one, two)
    assert not holds(PureDP(0.999 * total.epsilon), one, two)


def test_adaptive_choice_of_the_second_mechanism_stays_within_the_sum():
    # the second release is made only when the first output was 0: the choice depends on a public output
    first, second = randomised_response(1.0)[:, :2], randomised_response(0.4)[:, :2]
    table = [np.append(first[row, 0] * second[row], first[row, 1]) for row in (0, 1)]
    assert holds(compose(PureDP(1.0), PureDP(0.4)), *table)
    assert not holds(PureDP(1.0), *table)


def tight_chain(epsilon, delta, length):
    """Distributions for 0 .. length records; each step costs (epsilon, delta), and the outer ones cost the whole."""
    chances = [0.0]
    for _ in range(length):
        chances.append(math.exp(epsilon) * chances[-1] + delta)
    assert chances[-1] < 0.5
    return np.array([[chance, 1 - chance] for chance in chances])


@pytest.mark.parametrize(("epsilon", "delta", "size"), [(0.5, 0.01, 2), (1.0, 0.001, 4), (0.1, 0.02, 5)])
def test_group_privacy_bounds_a_tight_chain_and_a_delta_without_the_geometric_sum_does_not(epsilon, delta, size):
    chain = tight_chain(epsilon, delta, size)
    unit = ApproxDP(epsilon, delta)
    for one, two in itertools.pairwise(chain):
        assert holds(unit, one, two)
    group = for_group(unit, size)
    assert holds(group, chain[0], chain[-1])
    assert hockey_stick(chain[0], chain[-1], group.epsilon) == pytest.approx(group.delta)
    for wrong in (delta, size * delta):
        assert not holds(ApproxDP(size * epsilon, wrong), chain[0], chain[-1])
    # one record replaced by another: one removed, one added
    with_a, without, with_b = chain[:3]
    assert holds(substitution_from_add_remove(unit), with_a, with_b)
    assert not holds(ApproxDP(2 * epsilon, 2 * delta), with_a, with_b)
    assert not holds(unit, with_a, with_b)
    assert holds(unit, with_a, without)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_parallel_composition_holds_under_add_remove_and_breaks_under_substitution(epsilon):
    def release(first, second):
        tables = randomised_response(epsilon)[:, :2]
        return both(tables[first], tables[second])

    worst = compose_parallel(PureDP(epsilon), PureDP(epsilon), relation=Relation.ADD_REMOVE)
    assert holds(worst, release(0, 0), release(1, 0))
    assert holds(worst, release(0, 0), release(0, 1))
    replaced = release(1, 0), release(0, 1)  # one record replaced by one of the other part
    assert not holds(worst, *replaced), "this is why compose_parallel refuses substitution"
    assert holds(compose(PureDP(epsilon), PureDP(epsilon)), *replaced)


def line_metric_holds(guarantee, tables, points):
    """True if independent outputs of the tables stay within epsilon min(|w - w'|, max_distance) for all pairs."""
    for one, two in itertools.combinations(range(len(points)), 2):
        loss = sum(np.abs(np.log(table[one] / table[two])).max() for table in tables)
        if loss > guarantee.epsilon * min(abs(points[one] - points[two]), guarantee.max_distance) + ROUNDING:
            return False
    return True


def alternating(points, epsilon, threshold):
    """Two outputs; the loss of a pair is exactly epsilon min(|w - w'|, threshold): the tightest metric mechanism."""
    share = 0.5 * np.exp(-epsilon * np.minimum(points - points[0], threshold)) * np.exp(-2.0)
    return np.stack([share, 1 - share], axis=1)


def test_composed_metric_guarantees_bound_every_pair_and_the_smaller_distance_does_not():
    points = np.array([0.0, 0.3, 1.0, 2.5, 4.0])
    parts = [MetricDP(2.0, "line", 0.8), MetricDP(1.0, "line", 3.0)]
    tables = [alternating(points, part.epsilon, part.max_distance) for part in parts]
    for part, table in zip(parts, tables, strict=True):
        assert line_metric_holds(part, [table], points)
    assert line_metric_holds(compose(*parts), tables, points)
    assert not line_metric_holds(MetricDP(3.0, "line", 0.8), tables, points)
    assert not line_metric_holds(MetricDP(2.0, "line", 3.0), tables, points)


def test_one_metric_in_two_spaces_is_bounded_by_its_worst_pairs_only():
    # the same three words at other points: the first two are near in one space and far in the other
    points, others = np.array([0.0, 0.1, 1.0]), np.array([0.0, 1.0, 0.1])
    tables = [alternating(points, 1.0, 1.0), alternating(others, 1.0, 1.0)]
    assert not line_metric_holds(MetricDP(2.0, "line", 1.0, "one"), tables, points)
    total = compose(MetricDP(1.0, "line", 1.0, "one"), MetricDP(1.0, "line", 1.0, "two"))
    for one, two in itertools.combinations(range(3), 2):
        assert holds(total, *(both(tables[0][row], tables[1][row]) for row in (one, two)))


def test_the_pure_epsilon_of_a_truncated_metric_mechanism_bounds_its_farthest_pair():
    points = np.array([0.0, 0.5, 1.0, 6.0, 7.0])
    weights = np.exp(-1.5 * np.minimum(np.abs(points[:, None] - points), 2.0))
    table, guarantee = weights / weights.sum(axis=1, keepdims=True), MetricDP(3.0, "line", 2.0)
    assert line_metric_holds(guarantee, [table], points)
    assert all(holds(pure_from_metric(guarantee), *pair) for pair in itertools.combinations(table, 2))
    # the diameter of a part of the domain is too small
    assert not all(holds(PureDP(3.0 * 0.5), *pair) for pair in itertools.combinations(table, 2))


def renyi(one, two, order):
    """The Renyi divergence of this order, larger of both directions; order 1 is that of Kullback and Leibler."""
    if order == 1:
        return max((one * np.log(one / two)).sum(), (two * np.log(two / one)).sum())
    return max(np.log((p**order * q ** (1 - order)).sum()) / (order - 1) for p, q in ((one, two), (two, one)))


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0, 6.0])
def test_half_of_epsilon_squared_bounds_every_renyi_divergence_of_randomised_response(epsilon):
    one, two = randomised_response(epsilon)[:, :2]
    rho = zcdp_from_pure(PureDP(epsilon)).rho
    orders = [1, 1.01, 1.5, 2, 3, 5, 10, 20]
    assert all(renyi(one, two, order) <= rho * order + ROUNDING for order in orders)
    if epsilon < 1:  # the bound is tight for small epsilon: three quarters of it would be broken
        assert any(renyi(one, two, order) > 0.75 * rho * order for order in orders)


@pytest.mark.parametrize("shift", [0.1, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_the_epsilon_of_zcdp_bounds_the_gaussian_mechanism_and_without_the_factor_two_it_does_not(shift, delta):
    rho = shift**2 / 2
    assert delta_of_gaussian(shift, approx_from_zcdp(ZCDP(rho), delta=delta).epsilon) <= delta
    assert delta_of_gaussian(shift, rho + math.sqrt(rho * math.log(1 / delta))) > delta


def test_zcdp_of_several_gaussian_releases_and_of_a_group():
    total = compose(ZCDP(1.0**2 / 2), ZCDP(2.0**2 / 2))
    together = math.hypot(1.0, 2.0)  # two independent Gaussian releases are one with this shift
    assert total.rho == pytest.approx(together**2 / 2)
    assert delta_of_gaussian(together, approx_from_zcdp(total, delta=1e-6).epsilon) <= 1e-6
    assert delta_of_gaussian(5.0, approx_from_zcdp(ZCDP(2.0), delta=1e-6).epsilon) > 1e-6, "a maximum is too small"
    shift, size = 0.5, 4
    group = for_group(ZCDP(shift**2 / 2), size)
    assert group.rho == pytest.approx((size * shift) ** 2 / 2)
    linear = approx_from_zcdp(ZCDP(size * shift**2 / 2), delta=1e-6)
    assert delta_of_gaussian(size * shift, approx_from_zcdp(group, delta=1e-6).epsilon) <= 1e-6
    assert delta_of_gaussian(size * shift, linear.epsilon) > 1e-6
