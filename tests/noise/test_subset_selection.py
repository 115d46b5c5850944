"""Subset selection: the ratio in whole numbers, the draws, the best k, and the best attacker."""

import re
from decimal import Decimal, localcontext
from itertools import combinations, product

import numpy as np
import pytest

from dptext.audits.losses import exact_loss
from dptext.errors import ParameterError
from dptext.noise.subset_selection import Profile, SubsetSelection, best_size
from dptext.privacy.guarantee import best_guesses, rate_at_most
from dptext.privacy.randomness import RandomBits

SIZES = [(2, 1), (10, 3), (1000, 1), (1000, 999), (1_000_000, 335), (2**40, 2**20)]


@pytest.mark.parametrize("candidates, size", SIZES)
@pytest.mark.parametrize("epsilon", [1e-12, 1.0, 20.0])
def test_the_ratio_of_the_weights_is_never_above_the_promise(candidates, size, epsilon):
    selection = SubsetSelection(candidates, size, epsilon)
    low, high = selection.low, selection.high
    assert isinstance(low, int)
    assert isinstance(high, int)
    assert 2**10 <= low <= high
    assert selection.total == size * high + (candidates - size) * low < 2**63
    with localcontext() as context:
        context.prec = 60
        true = (Decimal(high) / Decimal(low)).ln()
        assert Decimal(epsilon) - Decimal(2) ** -47 - 1 / Decimal(high) <= true <= Decimal(epsilon)


@pytest.mark.parametrize("candidates, size", [(10, 3), (1_000_000, 335)])
def test_the_weights_are_as_large_as_they_can_be_up_to_the_largest_epsilon(candidates, size):
    with pytest.raises(ParameterError) as refused:
        SubsetSelection(candidates, size, 60.0)
    largest = float(re.search(r"at most (\d+\.\d+)", str(refused.value))[1])
    selection = SubsetSelection(candidates, size, largest - 1e-2)
    assert 2**10 <= selection.low < 2**10 * 1.1
    assert selection.total > 2**62


def every_set(candidates, size):
    return np.array(list(combinations(range(candidates), size)))


@pytest.mark.parametrize("epsilon", [0.1, 5.0])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_loss_between_any_two_sets_is_epsilon(size, epsilon):
    """All pairs of all sets of 5 candidates, on the drawn weights."""
    selection = SubsetSelection(5, size, epsilon)
    shares = selection.distributions(every_set(5, size))
    assert shares.sum(axis=1) == pytest.approx(1.0, rel=1e-12)
    result = exact_loss(np.log(shares), allowed=epsilon)
    assert result.excess <= 1e-12
    assert result.loss == pytest.approx(epsilon, rel=1e-9)


def test_the_audit_refutes_one_and_a_half_times_the_ratio():
    shares = SubsetSelection(5, 2, 1.0 + np.log(1.5)).distributions(every_set(5, 2))
    assert exact_loss(np.log(shares), allowed=1.0).excess == pytest.approx(np.log(1.5), rel=1e-6)


def test_every_number_that_is_drawn_gives_each_candidate_its_whole_weight(monkeypatch):
    """The partition of 0 .. T - 1 itself, with weights small enough to try every number."""
    selection = SubsetSelection(5, 2, 1.0)
    selection.__dict__.update(low=3, high=8)  # T = 2 * 8 + 3 * 3
    draws = np.arange(selection.total, dtype=np.uint64)
    monkeypatch.setattr(RandomBits, "below", lambda _bits, bounds: draws % bounds)
    for chosen in every_set(5, 2):
        came = selection.draw(RandomBits(), np.tile(chosen, (draws.size, 1)))
        weights = np.bincount(came, minlength=5)
        expected = np.full(5, 3)
        expected[chosen] = 8
        assert weights.tolist() == expected.tolist()


def test_what_comes_out_has_these_chances():
    """Chi-square of 21 cells, 18 free: above 75 with chance 7e-9 if all is right; 1.5 times the ratio is far above."""
    count = 40_000
    sets = np.array([[0, 1], [1, 5], [3, 6]])
    sent = SubsetSelection(7, 2, 1.0).draw(RandomBits(5), np.repeat(sets, count, axis=0))
    seen = np.stack([np.bincount(part, minlength=7) for part in sent.reshape(3, count)])

    def distance(epsilon):
        expected = count * SubsetSelection(7, 2, epsilon).distributions(sets)
        return float(((seen - expected) ** 2 / expected).sum())

    assert distance(1.0) < 75 < distance(1.0 + np.log(1.5))


def test_the_same_bits_are_drawn_for_any_sets_and_before_any_is_known():
    selection = SubsetSelection(50, 7, 3.0)
    sets = np.sort(np.argsort(np.random.default_rng(0).random((200, 50)), axis=1)[:, :7], axis=1)
    one, other = RandomBits(3), RandomBits(3)
    draws = selection.draw(one, sets)
    rows, places = selection.choose(other, 200)
    assert one.take(16) == other.take(16)
    assert ((rows < 0) == (places >= 0)).all()
    inside = places >= 0
    assert 0 < inside.sum() < 200
    assert (draws[~inside] == rows[~inside]).all()
    assert (draws[inside] == sets[inside, places[inside]]).all()


def test_an_epsilon_too_small_for_two_weights_is_uniform():
    selection = SubsetSelection(10, 3, 1e-30)
    assert selection.low == selection.high
    assert (selection.choose(RandomBits(), 100)[1] == -1).all()


# -- the best k --------------------------------------------------------------------------------------------------


def falling(count, seed):
    return np.sort(np.random.default_rng(seed).normal(size=count) ** 3)[::-1]


@pytest.mark.parametrize(("epsilon", "seed"), [(0.2, 0), (4.0, 1)])
def test_no_weights_by_rank_are_better_than_the_best_two_levels(epsilon, seed):
    """All corners of the box of weights, random points in it, and the program whose optimum it is."""
    from scipy.optimize import linprog

    use = falling(9, seed)
    top = np.exp(epsilon)
    profile = Profile(np.arange(1, 10), np.cumsum(use), candidates=9)
    size = best_size(epsilon, profile)
    best = profile.expected(size, epsilon)

    def expected(weights):
        return weights @ use / weights.sum(axis=-1)

    assert expected(np.where(np.arange(9) < size, top, 1.0)) == pytest.approx(best, rel=1e-12)
    corners = np.array(list(product((1.0, top), repeat=9)))
    inner = np.exp(np.random.default_rng(seed).uniform(0, epsilon, size=(2000, 9)))
    assert expected(corners).max() == pytest.approx(best, rel=1e-12)
    assert expected(inner).max() < best
    # shares p = w / sum(w) and s = 1 / sum(w): s <= p <= s e^epsilon, a linear program (Charnes and Cooper 1962)
    identity = np.eye(9)
    limits = np.block([[identity, np.full((9, 1), -top)], [-identity, np.ones((9, 1))]])
    result = linprog(
        np.append(-use, 0.0),
        A_ub=limits,
        b_ub=np.zeros(18),
        A_eq=np.append(np.ones(9), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * 10,
    )
    assert -result.fun == pytest.approx(best, rel=1e-7)


# -- the best attacker ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("people", "size"), [(1, 5), (2, 1), (5, 1), (5, 5)])
def test_relinking_is_the_best_attacker_and_disjoint_sets_are_the_worst(people, size):
    selection = SubsetSelection(8, size, 1.5)
    generator = np.random.default_rng(people)
    prior = np.full(people, 1 / people)
    rates = []
    for _ in range(100):
        sets = np.sort(np.argsort(generator.random((people, 8)), axis=1)[:, :size], axis=1)
        rate = best_guesses([selection.distributions(sets)], prior).rate
        assert rate == pytest.approx(selection.relinking(people, union=np.unique(sets).size), rel=1e-12)
        rates.append(rate)
    assert max(rates) <= selection.relinking(people) * (1 + 1e-12)
    # sets laid one after another cover as much as n sets can
    worst = np.sort((np.arange(people * size) % 8).reshape(people, size), axis=1)
    rate = best_guesses([selection.distributions(worst)], prior).rate
    assert rate == pytest.approx(selection.relinking(people), rel=1e-12)
    assert selection.relinking(people) <= rate_at_most(1.5, people) * (1 + 1e-12)


def _chance_of_naming(selection, people_sets):
    """(people, parts, size) sets -> the best attacker's chance, over all outputs of all parts."""
    shares = np.ones((len(people_sets), 1))
    for part in range(people_sets.shape[1]):
        draws = selection.distributions(people_sets[:, part])
        shares = (shares[:, :, None] * draws[:, None, :]).reshape(len(people_sets), -1)
    return shares.max(axis=0).sum() / len(people_sets)


@pytest.mark.parametrize("epsilon", [0.3, 6.0])
@pytest.mark.parametrize(("people", "parts", "size"), [(2, 2, 1), (2, 3, 2), (4, 3, 1), (5, 2, 3)])
def test_no_attacker_on_several_parts_exceeds_the_bound(epsilon, people, parts, size):
    selection = SubsetSelection(6, size, epsilon)
    bound = selection.relinking(people, parts=parts)
    generator = np.random.default_rng(people)
    shape = (200, people, parts, 6)
    sets = np.sort(np.argsort(generator.random(shape), axis=-1)[..., :size], axis=-1)
    results = [_chance_of_naming(selection, entry) for entry in sets]
    distance = (np.arange(people * size) % 6).reshape(people, 1, size)
    results.append(_chance_of_naming(selection, np.sort(np.repeat(distance, parts, axis=1), axis=-1)))
    assert max(results) <= bound * (1 + 1e-12)
    assert bound <= rate_at_most(epsilon * parts, people) * (1 + 1e-12)
    # the chance of one part alone is exceeded, so a bound that forgets the others is none
    assert parts == 2 or max(results) > selection.relinking(people) * (1 + 1e-9)
