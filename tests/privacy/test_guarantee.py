"""Guarantees: what they accept, how they add, and that the arithmetic bounds exact small mechanisms."""

import itertools
import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

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

amounts = st.floats(min_value=0, allow_nan=False)
finite = st.floats(min_value=0, max_value=1e6)
shares = st.floats(min_value=0, max_value=1)
names = st.sampled_from(["euclidean", "angular"])
pures = st.builds(PureDP, finite)
one_metric = st.builds(MetricDP, finite, st.just("euclidean"), st.none() | finite)
nothings = st.builds(NoGuarantee, st.sampled_from(["empirical", "the proof is wrong"]))
any_guarantee = st.one_of(
    st.builds(PureDP, amounts),
    st.builds(ApproxDP, amounts, shares),
    st.builds(ZCDP, amounts),
    st.builds(MetricDP, amounts, names, st.none() | amounts, st.none() | st.sampled_from(["2014", "2024"])),
    nothings,
)


def numbers(guarantee):
    """The numbers of a guarantee, for comparisons up to rounding."""
    return [value for value in guarantee_to_dict(guarantee).values() if isinstance(value, float | int)]


def same(first, second):
    return type(first) is type(second) and numbers(first) == pytest.approx(numbers(second), rel=1e-9, abs=1e-12)


# -- numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guarantee", "name"),
    [
        (PureDP(1.0), "epsilon"),
        (ApproxDP(1.0, 1e-6), "delta"),
        (ZCDP(1.0), "rho"),
        (MetricDP(1.0, "euclidean", 2.0), "max_distance"),
        (NoGuarantee("empirical"), "reason"),
    ],
)
def test_guarantees_are_frozen_and_hashable(guarantee, name):
    with pytest.raises(FrozenInstanceError):
        setattr(guarantee, name, 0.0)
    assert len({guarantee, guarantee_from_dict(guarantee_to_dict(guarantee))}) == 1


def test_the_pure_epsilon_of_a_metric_guarantee_is_its_worst_pair():
    assert MetricDP(5.0, "euclidean", 7.1).pure_epsilon == 35.5
    assert MetricDP(5.0, "euclidean").pure_epsilon == math.inf
    assert MetricDP(5.0, "euclidean", math.inf).pure_epsilon == math.inf
    assert MetricDP(0.0, "euclidean", 3.0).pure_epsilon == 0.0


@example(0.0, math.inf)
@example(math.inf, 0.0)
@given(amounts, st.none() | amounts)
def test_the_pure_epsilon_of_a_metric_guarantee_is_a_number_for_every_choice(epsilon, max_distance):
    assert MetricDP(epsilon, "euclidean", max_distance).pure_epsilon >= 0  # false for NaN, as 0 * inf would be


@given(st.floats(min_value=0, allow_nan=False), st.integers(1, 6))
@example(1.04e-4, 1)
@example(0.12349, 3)
@example(9e-5, 1)
@example(math.inf, 3)
def test_a_number_said_in_few_digits_is_never_too_small_and_hardly_too_large(value, digits):
    text = float(at_most(value, digits))
    assert text >= value
    if value < 1e300:
        assert text <= value * (1 + 10.0 ** (1 - digits)) * (1 + 1e-12) + 1e-300


# -- composition: the table -----------------------------------------------------------------------------------

P, A, Z = PureDP(1.0), ApproxDP(2.0, 0.25), ZCDP(3.0)
M, FREE, OTHER = MetricDP(4.0, "euclidean", 0.5), MetricDP(8.0, "euclidean"), MetricDP(16.0, "angular", 2.0)
OTHER_FREE = MetricDP(16.0, "angular")

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
    (FREE, FREE, MetricDP(16.0, "euclidean")),
    (M, OTHER, PureDP(34.0)),
    (OTHER_FREE, OTHER_FREE, MetricDP(32.0, "angular")),
]


@pytest.mark.parametrize(("first", "second", "total"), SUMS)
def test_two_guarantees_add_as_the_table_says_in_both_orders(first, second, total):
    assert compose(first, second) == total
    assert compose(second, first) == total


REFUSED = [
    (Z, A, "approx_from_zcdp"),
    (FREE, P, "public diameter"),
    (FREE, A, "public diameter"),
    (FREE, Z, "public diameter"),
    (FREE, OTHER, "public diameter"),
    (FREE, OTHER_FREE, "public diameter"),
    (M, OTHER_FREE, "public diameter"),
]


@pytest.mark.parametrize(("first", "second", "reason"), REFUSED)
def test_what_does_not_add_without_a_choice_is_refused_with_its_reason_in_both_orders(first, second, reason):
    for pair in ((first, second), (second, first)):
        with pytest.raises(RefusedError, match=reason):
            compose(*pair)


@pytest.mark.parametrize("other", [None, "vectors of 2024"])
def test_distances_in_other_spaces_do_not_add(other):
    first, second = MetricDP(1.0, "euclidean", 2.0, "vectors of 2014"), MetricDP(1.0, "euclidean", 3.0, other)
    for pair in ((first, second), (second, first)):
        assert compose(*pair) == PureDP(5.0)
    assert compose(first, first) == MetricDP(2.0, "euclidean", 2.0, "vectors of 2014")
    with pytest.raises(RefusedError, match="public diameter"):
        compose(first, MetricDP(1.0, "euclidean", None, other))


@pytest.mark.parametrize("other", [P, A, Z, M, FREE, OTHER])
def test_no_guarantee_absorbs_every_other(other):
    nothing = NoGuarantee("empirical")
    assert compose(nothing, other) == nothing
    assert compose(other, nothing) == nothing
    assert compose(other, nothing, other) == nothing


def test_deltas_add_up_to_one_at_most():
    assert compose(ApproxDP(1.0, 0.7), ApproxDP(1.0, 0.7)).delta == 1.0


@given(any_guarantee, any_guarantee)
def test_composition_commutes_in_value_and_in_refusal(first, second):
    def outcome(*pair):
        try:
            return compose(*pair)
        except RefusedError:
            return None

    one, two = outcome(first, second), outcome(second, first)
    if isinstance(one, NoGuarantee):
        assert isinstance(two, NoGuarantee)
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


# -- conversions: closed forms --------------------------------------------------------------------------------


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
    assert for_group(ApproxDP(1.0, 1e-6), 3).delta == pytest.approx(1e-6 * (1 + math.e + math.e**2))
    assert numbers(for_group(ApproxDP(0.0, 1e-6), 3)) == pytest.approx([0.0, 3e-6])
    assert for_group(NoGuarantee("empirical"), 3) == NoGuarantee("empirical")


def test_group_privacy_of_a_vanishing_epsilon_tends_to_the_plain_multiple():
    assert for_group(ApproxDP(1e-300, 1e-6), 3).delta == pytest.approx(3e-6)
    assert for_group(ApproxDP(5e-324, 1e-6), 3).delta == pytest.approx(3e-6)


def test_a_group_delta_never_exceeds_one_and_zero_stays_zero():
    assert for_group(ApproxDP(300.0, 1e-6), 5) == ApproxDP(1500.0, 1.0)
    assert for_group(ApproxDP(300.0, 0.0), 5) == ApproxDP(1500.0, 0.0)


def test_a_group_of_one_is_the_unit_itself_at_a_huge_epsilon():
    assert for_group(ApproxDP(800.0, 1e-6), 1) == ApproxDP(800.0, 1e-6)


@given(st.floats(min_value=0, max_value=50), st.floats(min_value=0, max_value=1e-3))
def test_substitution_costs_twice_epsilon_and_one_plus_e_to_epsilon_delta(epsilon, delta):
    result = substitution_from_add_remove(ApproxDP(epsilon, delta))
    assert result.epsilon == 2 * epsilon
    assert result.delta == pytest.approx(min(1.0, (1 + math.exp(epsilon)) * delta), rel=1e-9)


def test_substitution_of_the_other_kinds():
    assert substitution_from_add_remove(PureDP(1.5)) == PureDP(3.0)
    assert substitution_from_add_remove(ZCDP(0.5)) == ZCDP(2.0)
    assert substitution_from_add_remove(NoGuarantee("empirical")) == NoGuarantee("empirical")
    for metric in (M, FREE):
        with pytest.raises(RefusedError, match="already covers substitution"):
            substitution_from_add_remove(metric)


def test_zcdp_in_numbers():
    assert zcdp_from_pure(PureDP(2.0)) == ZCDP(2.0)
    assert zcdp_from_pure(PureDP(math.inf)) == ZCDP(math.inf)
    assert approx_from_zcdp(ZCDP(0.0), delta=1e-6) == ApproxDP(0.0, 1e-6)
    assert approx_from_zcdp(ZCDP(0.0), delta=0.0) == ApproxDP(0.0, 0.0)
    result = approx_from_zcdp(ZCDP(0.1), delta=1e-6)
    assert result.epsilon == pytest.approx(0.1 + 2 * math.sqrt(0.1 * math.log(1e6)))
    assert result.epsilon == pytest.approx(2.4508, abs=5e-5)
    assert result.delta == 1e-6


@example(math.inf, 1.0)
@example(math.inf, 5e-324)
@example(1e308, 1e-300)
@given(amounts, st.floats(min_value=5e-324, max_value=1))
def test_zcdp_converts_at_every_rho_and_every_delta(rho, delta):
    result = approx_from_zcdp(ZCDP(rho), delta=delta)
    assert result.delta == delta
    assert result.epsilon >= rho


def test_as_approx_converts_what_needs_no_choice_and_refuses_the_rest():
    assert as_approx(A) is A
    assert as_approx(P) == ApproxDP(1.0, 0.0)
    assert as_approx(M) == ApproxDP(2.0, 0.0)
    for guarantee, reason in ((FREE, "public diameter"), (Z, "approx_from_zcdp"), (NoGuarantee("empirical"), "empir")):
        with pytest.raises(RefusedError, match=reason):
            as_approx(guarantee)


def test_a_metric_guarantee_is_pure_over_a_bounded_domain_only():
    assert pure_from_metric(M) == PureDP(2.0)
    with pytest.raises(RefusedError, match="no pure epsilon"):
        pure_from_metric(FREE)


# -- parallel composition -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "total"),
    [
        ((PureDP(1.0), PureDP(3.0), PureDP(2.0)), PureDP(3.0)),
        ((ZCDP(1.0), ZCDP(3.0)), ZCDP(3.0)),
        ((ApproxDP(1.0, 1e-3), ApproxDP(3.0, 1e-6)), ApproxDP(3.0, 1e-3)),
        ((PureDP(4.0), ApproxDP(3.0, 1e-6)), ApproxDP(4.0, 1e-6)),
        ((PureDP(4.0),), PureDP(4.0)),
    ],
)
def test_disjoint_parts_cost_the_worst_of_them_under_add_remove(parts, total):
    for order in itertools.permutations(parts):
        assert compose_parallel(*order, relation=Relation.ADD_REMOVE) == total


# -- plain data -----------------------------------------------------------------------------------------------


@given(any_guarantee)
def test_a_guarantee_survives_the_way_to_plain_data_and_back(guarantee):
    data = guarantee_to_dict(guarantee)
    assert next(iter(data)) == "kind"
    assert guarantee_from_dict(data) == guarantee
    assert guarantee_to_dict(guarantee) == data, "reading must not change what is read"


# -- meaning: exact tables of probabilities -------------------------------------------------------------------
# Rows are inputs, columns are outputs. What the arithmetic says has to bound what these tables really lose, and
# a wrong formula must fall below it: otherwise the check could not tell right from wrong.

ROUNDING = 1e-12


def hockey_stick(one, two, epsilon):
    """The delta that these two distributions need at epsilon, in both directions: max_S P(S) - e^epsilon Q(S)."""
    growth = math.exp(epsilon)
    return max(np.maximum(one - growth * two, 0).sum(), np.maximum(two - growth * one, 0).sum())


def holds(guarantee, one, two):
    """Whether (epsilon, delta) covers this pair of distributions."""
    needed = as_approx(guarantee)
    return hockey_stick(one, two, needed.epsilon) <= needed.delta + ROUNDING


def both(one, two):
    """The distribution of two independent outputs."""
    return np.outer(one, two).ravel()


def randomised_response(epsilon, delta=0.0):
    """Two inputs, four outputs; with probability delta the input is told: exactly (epsilon, delta)-DP."""
    keep = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    flip = (1 - delta) / (1 + math.exp(epsilon))
    return np.array([[keep, flip, delta, 0.0], [flip, keep, 0.0, delta]])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_randomised_response_needs_exactly_what_it_states(epsilon, delta):
    one, two = randomised_response(epsilon, delta)
    assert holds(ApproxDP(epsilon, delta), one, two)
    assert not holds(ApproxDP(0.99 * epsilon, delta), one, two)
    if delta:
        assert not holds(ApproxDP(epsilon, 0.99 * delta), one, two)


@pytest.mark.parametrize("first", [(0.5, 0.0), (1.0, 0.05), (2.0, 0.2)])
@pytest.mark.parametrize("second", [(0.3, 0.0), (1.5, 0.01)])
def test_the_composed_guarantee_bounds_two_randomised_responses_and_less_does_not(first, second):
    tables = [randomised_response(*pair) for pair in (first, second)]
    together = [both(tables[0][row], tables[1][row]) for row in (0, 1)]
    total = as_approx(compose(ApproxDP(*first), ApproxDP(*second)))
    assert holds(total, *together)
    assert not holds(ApproxDP(max(first[0], second[0]), max(first[1], second[1])), *together)
    assert not holds(ApproxDP(0.9 * total.epsilon, total.delta * 0.9), *together)


@pytest.mark.parametrize("epsilons", [(0.5, 0.5, 0.5, 0.5), (0.1, 1.0, 2.0)])
def test_a_sum_of_pure_epsilons_is_reached_exactly(epsilons):
    one = two = np.ones(1)
    for epsilon in epsilons:
        table = randomised_response(epsilon)[:, :2]
        one, two = both(one, table[0]), both(two, table[1])
    total = compose(*map(PureDP, epsilons))
    assert np.log(one / two).max() == pytest.approx(total.epsilon)
    assert holds(total, one, two)
    assert not holds(PureDP(0.999 * total.epsilon), one, two)


def tight_chain(epsilon, delta, length):
    """Distributions for 0 .. length records; each step costs (epsilon, delta), and the outer ones all of it."""
    shares = [0.0]
    for _ in range(length):
        shares.append(math.exp(epsilon) * shares[-1] + delta)
    assert shares[-1] < 0.5
    return np.array([[share, 1 - share] for share in shares])


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


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01), (2.0, 1e-3)])
def test_substitution_is_bounded_by_its_conversion_and_not_by_twice_delta(epsilon, delta):
    # three data sets: with record a, without, with record b; each step adds or removes one record
    with_a, without, with_b = tight_chain(epsilon, delta, 2)
    add_remove = ApproxDP(epsilon, delta)
    assert holds(add_remove, with_a, without)
    assert holds(add_remove, without, with_b)
    assert holds(substitution_from_add_remove(add_remove), with_a, with_b)
    assert not holds(ApproxDP(2 * epsilon, 2 * delta), with_a, with_b)
    assert not holds(add_remove, with_a, with_b)


def count_in_one_part(count, epsilon):
    """A count of 0 or 1 under randomised response: epsilon for adding or removing the record."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    return np.array([keep, 1 - keep]) if count == 0 else np.array([1 - keep, keep])


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_parallel_composition_holds_under_add_remove_and_breaks_under_substitution(epsilon):
    def release(first, second):
        return both(count_in_one_part(first, epsilon), count_in_one_part(second, epsilon))

    worst = compose_parallel(PureDP(epsilon), PureDP(epsilon), relation=Relation.ADD_REMOVE)
    assert holds(worst, release(0, 0), release(1, 0))
    assert holds(worst, release(0, 0), release(0, 1))
    moved = release(1, 0), release(0, 1)  # one record replaced by one of the other part
    assert not holds(worst, *moved), "this is why compose_parallel refuses substitution"
    assert holds(compose(PureDP(epsilon), PureDP(epsilon)), *moved)


def metric_mechanism(points, epsilon, threshold):
    """(n, n): word -> word with P(x | w) ~ exp(-epsilon/2 min(|w - x|, threshold))."""
    far = np.minimum(np.abs(points[:, None] - points), threshold)
    weights = np.exp(-epsilon / 2 * far)
    return weights / weights.sum(axis=1, keepdims=True), far


def line_metric_holds(guarantee, tables, points):
    """Whether independent outputs of the tables stay within epsilon min(|w - w'|, max_distance) for all pairs."""
    bound = math.inf if guarantee.max_distance is None else guarantee.max_distance
    for one, two in itertools.combinations(range(len(points)), 2):
        loss = sum(np.abs(np.log(table[one] / table[two])).max() for table in tables)
        if loss > guarantee.epsilon * min(abs(points[one] - points[two]), bound) + ROUNDING:
            return False
    return True


def alternating(points, epsilon, threshold):
    """Two outputs; the loss of a pair is exactly epsilon min(|w - w'|, threshold): the tightest metric mechanism."""
    reach = np.minimum(points - points[0], threshold)
    share = 0.5 * np.exp(-epsilon * reach) * np.exp(-2.0)
    return np.stack([share, 1 - share], axis=1)


def test_composed_metric_guarantees_bound_every_pair_and_the_smaller_distance_does_not():
    points = np.array([0.0, 0.3, 1.0, 2.5, 4.0])
    parts = [MetricDP(2.0, "line", 0.8), MetricDP(1.0, "line", 3.0)]
    tables = [alternating(points, part.epsilon, part.max_distance) for part in parts]
    for part, table in zip(parts, tables, strict=True):
        assert line_metric_holds(part, [table], points)
    total = compose(*parts)
    assert line_metric_holds(total, tables, points)
    assert not line_metric_holds(MetricDP(3.0, "line", 0.8), tables, points)
    assert not line_metric_holds(MetricDP(2.0, "line", 3.0), tables, points)


def test_one_metric_in_two_spaces_is_bounded_by_its_worst_pairs_only():
    # the same three words at other points: the first two are near in one space and far in the other
    points, moved = np.array([0.0, 0.1, 1.0]), np.array([0.0, 1.0, 0.1])
    parts = [MetricDP(1.0, "line", 1.0, "one"), MetricDP(1.0, "line", 1.0, "two")]
    tables = [alternating(points, 1.0, 1.0), alternating(moved, 1.0, 1.0)]
    assert not line_metric_holds(MetricDP(2.0, "line", 1.0, "one"), tables, points)
    total = compose(*parts)
    for one, two in itertools.combinations(range(3), 2):
        assert holds(total, *(both(tables[0][row], tables[1][row]) for row in (one, two)))


def test_the_pure_epsilon_of_a_truncated_metric_mechanism_bounds_its_farthest_pair():
    points = np.array([0.0, 0.5, 1.0, 6.0, 7.0])
    table, _ = metric_mechanism(points, 3.0, 2.0)
    guarantee = MetricDP(3.0, "line", 2.0)
    assert line_metric_holds(guarantee, [table], points)
    pure = pure_from_metric(guarantee)
    for one, two in itertools.combinations(table, 2):
        assert holds(pure, one, two)
    # the diameter of a domain that is not the whole one is no diameter
    assert not all(holds(PureDP(3.0 * 0.5), one, two) for one, two in itertools.combinations(table, 2))


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


def gaussian_delta(shift, epsilon):
    """The exact delta of N(0, 1) against N(shift, 1) at epsilon (Balle and Wang 2018, Theorem 8); rho = shift^2/2."""
    return stats.norm.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * stats.norm.cdf(
        -shift / 2 - epsilon / shift
    )


@pytest.mark.parametrize("shift", [0.1, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_the_epsilon_of_zcdp_bounds_the_gaussian_mechanism_and_without_the_factor_two_it_does_not(shift, delta):
    rho = shift**2 / 2
    result = approx_from_zcdp(ZCDP(rho), delta=delta)
    assert gaussian_delta(shift, result.epsilon) <= delta
    assert gaussian_delta(shift, rho + math.sqrt(rho * math.log(1 / delta))) > delta


def test_composed_zcdp_bounds_two_gaussian_releases():
    shifts = (1.0, 2.0)
    total = compose(*(ZCDP(shift**2 / 2) for shift in shifts))
    together = math.hypot(*shifts)  # two independent Gaussian releases are one with this shift
    assert total.rho == pytest.approx(together**2 / 2)
    result = approx_from_zcdp(total, delta=1e-6)
    assert gaussian_delta(together, result.epsilon) <= 1e-6
    worst = approx_from_zcdp(ZCDP(max(shifts) ** 2 / 2), delta=1e-6)
    assert gaussian_delta(5.0, worst.epsilon) > 1e-6, "a maximum instead of a sum is caught for a large enough part"


def test_a_group_under_zcdp_moves_the_gaussian_by_its_size():
    shift, size = 0.5, 4
    group = for_group(ZCDP(shift**2 / 2), size)
    assert group.rho == pytest.approx((size * shift) ** 2 / 2)
    linear = approx_from_zcdp(ZCDP(size * shift**2 / 2), delta=1e-6)
    assert gaussian_delta(size * shift, approx_from_zcdp(group, delta=1e-6).epsilon) <= 1e-6
    assert gaussian_delta(size * shift, linear.epsilon) > 1e-6


def test_adaptive_choice_of_the_second_mechanism_stays_within_the_sum():
    # the second release is made only when the first output was 0: the choice depends on what is public already
    first, second = randomised_response(1.0)[:, :2], randomised_response(0.4)[:, :2]
    table = [np.append(first[row, 0] * second[row], first[row, 1]) for row in (0, 1)]
    assert holds(compose(PureDP(1.0), PureDP(0.4)), *table)
    assert not holds(PureDP(1.0), *table)


@given(pures, pures, st.integers(1, 10**6))
def test_what_is_computed_is_never_rounded_down(first, second, size):
    one, two = Fraction(first.epsilon), Fraction(second.epsilon)
    assert compose(first, second).epsilon >= one + two
    assert for_group(first, size).epsilon >= size * one
    assert zcdp_from_pure(first).rho >= one * one / 2
    assert MetricDP(first.epsilon, "m", second.epsilon).pure_epsilon >= one * two
    delta = min(1.0, first.epsilon)
    assert compose(ApproxDP(0.0, delta), ApproxDP(0.0, delta)).delta >= min(1, 2 * Fraction(delta))


@pytest.mark.parametrize(
    "result",
    [
        lambda: compose(PureDP(1.0), PureDP(1e-17)).epsilon > 1.0,
        lambda: compose(ApproxDP(1.0, 1e-6), ApproxDP(1.0, 1e-23)).delta > 1e-6,
        lambda: zcdp_from_pure(PureDP(1e-200)).rho > 0,
        lambda: MetricDP(1e-200, "m", 1e-200).pure_epsilon > 0,
        lambda: for_group(ZCDP(1e-300), 10**200).rho >= 1e100 * (1 - 1e-15),
        lambda: for_group(PureDP(1e-300), 10**400).epsilon >= 1e100 * (1 - 1e-15),
        lambda: for_group(PureDP(1.0), 10**400).epsilon == math.inf,
        lambda: "inf" in str(MetricDP(2**999, "m", 2**999)),
    ],
)
def test_extremes_round_up_and_never_fail(result):
    assert result()


@pytest.mark.parametrize("value", [9.9999, 10.0, 1.00049, 0.99995, 123456.0, 3e-7])
def test_rounding_goes_down(value):
    result = rounded_down(value, 4)
    assert result <= value < result * (1 + 2e-3)
    assert result == float(f"{result:.4g}")
