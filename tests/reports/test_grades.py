"""Which figures give which grade, which words and which sign: the whole table, and what must never be good news."""

import itertools
import math

import pytest

from dptext.intervals import Estimate, share
from dptext.methods.results import Grade, advantage, grade, sign
from dptext.privacy import wording
from dptext.privacy.wording import Strength


def between(value, low, high):
    return Estimate(value, low, high, 100, "rows")


def test_figures_have_one_grade_and_one_sign():
    for value, low, high, baseline, expected, good in [
        # chance explains it, and even the upper end is near the guess
        (0.27, 0.25, 0.29, 0.27, Grade.GUESS, True),
        (0.0005, 0.0, 0.003, 1 / 2000, Grade.GUESS, True),
        (0.20, 0.17, 0.23, 0.27, Grade.GUESS, True),  # worse than a guess
        (0.27, 0.26, 0.342, 0.27, Grade.GUESS, True),  # a tenth of what a guess gets wrong is 7.3 points here
        # chance explains it, but the rows are too few
        (0.31, 0.26, 0.36, 0.27, Grade.UNCLEAR, None),
        (0.27, 0.17, 0.37, 0.27, Grade.UNCLEAR, None),
        (0.9, 0.27, 1.0, 0.27, Grade.UNCLEAR, None),
        # chance does not explain it: no tick, however little it is
        (0.31, 0.29, 0.33, 0.27, Grade.LITTLE, None),
        (0.01, 0.006, 0.016, 1 / 2000, Grade.LITTLE, None),
        # more than a little at one end of the interval
        (0.31, 0.275, 0.35, 0.27, Grade.MORE, False),
        (0.5, 0.47, 0.53, 0.27, Grade.MORE, False),
        (0.7, 0.68, 0.72, 0.27, Grade.MOST, False),
        (0.81, 0.81, 0.81, 0.05, Grade.MOST, False),  # computed: no interval
        (0.979, 0.972, 0.985, 1 / 2000, Grade.NEARLY_ALL, False),
        (1.0, 0.99, 1.0, 0.5, Grade.NEARLY_ALL, False),
        (1.0, 0.99, 1.0, 1.0, Grade.GUESS, True),  # everybody has the same answer
    ]:
        result = grade(between(value, low, high), baseline)
        assert result is expected
        assert sign(result, "attacker") is good
        assert sign(result, "model") is (None if good is None else not good)


def test_no_number_that_chance_does_not_explain_is_good_news():
    """Every share of 500, against every guess: a tick needs chance within the interval and an upper end near it."""
    for hits, baseline in itertools.product(range(0, 501, 5), (0.002, 0.1, 0.27, 0.5, 0.9)):
        score = share(hits, 500)
        result = sign(grade(score, baseline), "attacker")
        if score.low > baseline:
            assert result is not True
        elif result is True:
            assert advantage(score.high, baseline) <= 0.1
        far = advantage(score.high, baseline) > 0.1 or score.low > 20 * baseline
        assert (result is False) == (score.low > baseline and far)


def test_where_a_guess_is_rarely_right_a_tenth_is_much():
    """80 of a thousand texts traced back, where a guess traces one, are no "little more"; 10 of 2,000 may be."""
    assert grade(Estimate(0.08, 0.065, 0.095, 1000, "rows"), 0.001) is Grade.MORE
    assert grade(Estimate(0.08, 0.065, 0.095, 1000, "rows"), 0.07) is not Grade.MORE
    assert grade(Estimate(0.02, 0.01, 0.05, 100, "people"), 0.0) is Grade.LITTLE  # a gap, of which nothing is expected


def test_a_grade_by_the_number_alone_is_rejected():
    """The broken twin: without the interval few rows look as good as many."""
    few, many = share(3, 10), share(300, 1000)
    alone = [grade(between(entry.value, entry.value, entry.value), 0.3) for entry in (few, many)]
    assert alone == [Grade.GUESS, Grade.GUESS]
    assert [grade(entry, 0.3) for entry in (few, many)] == [Grade.UNCLEAR, Grade.GUESS]


def test_grades_rise_with_the_number():
    grades = [grade(share(hits, 2000), 0.27) for hits in range(0, 2001, 10)]
    visible = [entry for entry in grades if entry.is_shown]
    assert visible == sorted(visible)
    assert grades[0] is Grade.GUESS
    assert grades[-1] is Grade.NEARLY_ALL


def test_nine_tenths_are_what_a_bound_that_protects_allows_at_most():
    """tanh(epsilon / 2): who held two inputs for equally likely."""
    limit = 3.0
    assert Strength.of(limit) is Strength.PROTECTS
    assert Strength.of(math.nextafter(limit, 4)) is not Strength.PROTECTS
    assert 0.9 < math.tanh(limit / 2) < 0.91
    assert math.tanh(0.2 / 2) == pytest.approx(0.1, abs=0.001)
    assert math.tanh(1.1 / 2) == pytest.approx(0.5, abs=0.01)


def test_every_grade_has_words_for_everybody():
    words = wording._templates("txt").get_template("reports/templates/grades.txt").module.grade_words
    visible = {}
    for entry, of in itertools.product(Grade, ("attacker", "allowed", "model", "control")):
        visible[entry, of] = words(entry, of, "the {majority}")
        assert (sign(entry, of) is None) or of != "control"
        assert (sign(entry, "attacker") is False) == ("allows" in words(entry, "allowed"))
    assert all(words.strip() == words != "" for words in visible.values())
    for of in ("attacker", "allowed", "model"):
        assert len({visible[entry, of] for entry in Grade}) == len(Grade)
