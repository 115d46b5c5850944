"""Personal budgets: the proof checked on adversarial sums, and clear errors."""

import copy
import math
import pickle

import pytest
from dp_accounting import get_epsilon_gaussian, get_sigma_gaussian
from hypothesis import given
from hypothesis import strategies as st

from dptext.errors import ParameterError
from dptext.privacy.budgets import DEFAULT_FLOOR, PersonalBudgets
from dptext.privacy.gaussian import compose_gaussians
from dptext.privacy.guarantee import ApproxDP, Relation
from laws import delta_of_gaussian

DELTA = 1e-6
LEVELS = {"strict": 1.0, "standard": 4.0, "open": 8.0}
tables = st.dictionaries(st.text(min_size=1), st.floats(DEFAULT_FLOOR, 60), min_size=1, max_size=6)
deltas = st.floats(-25, -0.7).map(math.exp)


@pytest.fixture
def budgets():
    return PersonalBudgets(LEVELS, delta=DELTA, default="strict")


# -- the norms ------------------------------------------------------------------------------------------------


def test_norms_agree_with_dp_accounting(budgets):
    cap = get_sigma_gaussian(8.0, DELTA)
    assert budgets.sigma == pytest.approx(cap, rel=3e-5)
    assert budgets.cap == 8.0
    for level, epsilon in LEVELS.items():
        assert budgets.clipping_norm(level) == pytest.approx(cap / get_sigma_gaussian(epsilon, DELTA), rel=5e-5)
    assert budgets.clipping_norm("open") == 1.0
    assert budgets.clipping_norm() == budgets.clipping_norm("strict")


@pytest.mark.slow
@given(tables, deltas)
def test_every_level_keeps_its_promise_and_wastes_nothing(levels, delta):
    budgets = PersonalBudgets(levels, delta=delta)
    for level, epsilon in levels.items():
        moved = budgets.clipping_norm(level)
        assert 0 < moved <= 1
        assert delta_of_gaussian(moved / budgets.sigma, epsilon) <= delta * (1 + 1e-9) + 1e-14
        exact = budgets.release(level).epsilon(delta=delta)
        assert epsilon * 0.999 - 1e-4 < exact <= epsilon * (1 + 1e-9)
        assert budgets.guarantee(level) == ApproxDP(epsilon, delta)
    assert budgets.clipping_norm(max(levels, key=levels.get)) == 1.0
    assert budgets.level(None) == budgets.default
    assert levels[budgets.default] == min(levels.values())


def test_proportional_clipping_is_rejected():
    """A broken variant: a norm of epsilon_l / epsilon_max breaks the guarantee of small budgets."""
    budgets = PersonalBudgets(LEVELS, delta=DELTA)
    assert delta_of_gaussian(4.0 / 8.0 * 1.5 / budgets.sigma, 4.0) > DELTA  # half too long a vector
    twin = PersonalBudgets({"standard": 8.0, "open": 60.0}, delta=DELTA)
    assert delta_of_gaussian(1.0 / twin.sigma, 8.0) > 1e4 * DELTA  # no clipping
    classical = math.sqrt(2 * math.log(1.25 / DELTA)) / 60.0  # the classical sigma for the cap
    assert delta_of_gaussian(1.0 / classical, 60.0) > 10 * DELTA


# -- relations ------------------------------------------------------------------------------------------------


def test_substitution_within_and_across_levels(budgets):
    for level, other in (
        ("strict", None),
        ("strict", "strict"),
        ("strict", "open"),
        ("open", "strict"),
        ("open", None),
    ):
        moved = budgets.clipping_norm(level) + budgets.clipping_norm(other or level)
        result = budgets.guarantee(level, relation=Relation.SUBSTITUTION, other=other)
        assert result.epsilon == pytest.approx(get_epsilon_gaussian(budgets.sigma / moved, DELTA), rel=1e-4)
        assert result.delta == DELTA
        release = budgets.release(level, relation="substitution", other=other)
        assert (release.sensitivity, release.relation) == (moved, Relation.SUBSTITUTION)
    forth, back = (
        budgets.guarantee(a, relation=Relation.SUBSTITUTION, other=b)
        for a, b in (("strict", "open"), ("open", "strict"))
    )
    assert forth == back
    assert budgets.guarantee("open") == ApproxDP(8.0, DELTA)
    assert budgets.guarantee("open", relation=Relation.SUBSTITUTION).epsilon == pytest.approx(18.65, abs=0.01)


def test_several_releases_keep_the_norms(budgets):
    for level, epsilon in LEVELS.items():
        whole = compose_gaussians(*budgets.release(level).split([0.3, 0.7]))
        assert whole.epsilon(delta=DELTA) <= epsilon * (1 + 1e-9)


# -- one number, copies ------------------------------------------------------------------------------------


def test_one_number_is_one_level():
    budgets = PersonalBudgets(8.0, delta=DELTA)
    assert budgets == PersonalBudgets({"everyone": 8.0}, delta=DELTA, default="everyone")
    assert (budgets.clipping_norm(), budgets.default) == (1.0, "everyone")
    assert PersonalBudgets(8, delta=DELTA) == budgets


def test_copies_are_equal_and_frozen(budgets):
    for other in (copy.deepcopy(budgets), pickle.loads(pickle.dumps(budgets)), copy.copy(budgets)):
        assert other == budgets
        assert hash(other) == hash(budgets)
    assert budgets != PersonalBudgets(LEVELS, delta=DELTA, default="open")
    with pytest.raises(AttributeError):
        budgets.delta = 0.5
    with pytest.raises(TypeError):
        budgets.levels["open"] = 100.0
    given_levels = dict(LEVELS)
    kept = PersonalBudgets(given_levels, delta=DELTA)
    given_levels["open"] = 100.0
    assert kept.cap == 8.0


# -- errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ({}, "levels must have at least one entry,"),
        ({"ok": 1.0, "Ada": -1.0}, r"^the epsilon of level 2 of 2 must be a finite number"),
        ({"Ada": math.nan}, "must be a finite number above 0, got nan"),
        ({"Ada": "8"}, "must be a finite number above 0, got another text"),
        ({"Ada": ApproxDP(1.0, 1e-6)}, "Pass the delta of all levels"),
        ({"Ada\ud800": 1.0}, "the name of level 1 of 1 must be text"),
        ({"Ada": 0.01, "ok": 1.0}, r"level 1 of 2 is 0\.01, below the minimum 0\.05: "),
        (0.01, ": the noise would exceed its contribution."),
    ],
)
def test_levels_that_cannot_be_are_refused_without_their_names(levels, message):
    with pytest.raises(ParameterError, match=message) as caught:
        PersonalBudgets(levels, delta=DELTA)
    assert "Ada" not in str(caught.value)


def test_the_floor_is_the_callers():
    low = PersonalBudgets({"a": 0.01, "b": 8.0}, delta=DELTA, floor=0)
    assert low.clipping_norm("a") < 0.003
    with pytest.raises(ParameterError, match=r"below the minimum 2: "):
        PersonalBudgets(LEVELS, delta=DELTA, floor=2)
    for floor in (-1, math.nan, "0", True):
        with pytest.raises(ParameterError, match=r"^floor must be"):
            PersonalBudgets(LEVELS, delta=DELTA, floor=floor)
    with pytest.raises(ParameterError, match="exceeds the range of floats"):
        PersonalBudgets(1e-300, delta=1e-300, floor=0)


def test_unknown_levels_are_refused_without_repeating_them(budgets):
    for declared in ("Ada", "", 3, ["strict"]):
        with pytest.raises(ParameterError, match="one of 'strict', 'standard', 'open'") as caught:
            budgets.clipping_norm(declared)
        assert "Ada" not in str(caught.value)
    for default in ("Ada", 3, ["strict"]):
        with pytest.raises(ParameterError, match="default must be one of 'strict', 'standard', 'open', got"):
            PersonalBudgets(LEVELS, delta=DELTA, default=default)
