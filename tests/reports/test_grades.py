"""Grades, words and signs of numbers: the whole table, and the numbers that must never be good news."""

import itertools
import math

import pytest

from dptext.intervals import Estimate, share
from dptext.methods.examination import Grade, advantage, grade
from dptext.privacy import wording
from dptext.privacy.wording import Strength
from dptext.reports.summary import sign


def between(value, low, high):
    return Estimate(value, low, high, 100, "rows")


def test_each_number_has_one_grade_and_one_sign():
    for value, low, high, baseline, expected, good in [
        # chance explains it, and even the upper end is near the chance level
        (0.27, 0.25, 0.29, 0.27, Grade.GUESS, True),
        (0.0005, 0.0, 0.003, 1 / 2000, Grade.GUESS, True),
        (0.20, 0.17, 0.23, 0.27, Grade.GUESS, True),  # worse than chance
        (0.27, 0.26, 0.342, 0.27, Grade.GUESS, True),  # a tenth of the distance to 1 is 7.3 points here
        # chance explains it, but the rows are too few
        (0.31, 0.26, 0.36, 0.27, Grade.UNCLEAR, None),
        (0.27, 0.17, 0.37, 0.27, Grade.UNCLEAR, None),
        (0.9, 0.27, 1.0, 0.27, Grade.UNCLEAR, None),
        # chance does not explain it: no tick, however little it is
        (0.31, 0.29, 0.33, 0.27, Grade.LITTLE, None),
        (0.01, 0.006, 0.016, 1 / 2000, Grade.LITTLE, None),
        (0.02, 0.01, 0.05, 0.0, Grade.LITTLE, None),  # a gap, whose chance level is 0
        # more than a little at one end of the interval
        (0.31, 0.275, 0.35, 0.27, Grade.MORE, False),
        (0.5, 0.47, 0.53, 0.27, Grade.MORE, False),
        (0.08, 0.065, 0.095, 0.001, Grade.MORE, False),  # far above a rare chance
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


def test_a_number_above_chance_is_never_good_news():
    """Every share of 500, against every chance level: a tick needs chance within the interval and an end near it."""
    for hits, baseline in itertools.product(range(0, 501, 5), (0.002, 0.1, 0.27, 0.5, 0.9)):
        score = share(hits, 500)
        result = sign(grade(score, baseline), "attacker")
        if score.low > baseline:
            assert result is not True
        elif result is True:
            assert advantage(score.high, baseline) <= 0.1
        far = advantage(score.high, baseline) > 0.1 or score.low > 20 * baseline
        assert (result is False) == (score.low > baseline and far)
    grades = [grade(share(hits, 2000), 0.27) for hits in range(0, 2001, 10)]
    above = [entry for entry in grades if entry >= Grade.LITTLE]
    assert above == sorted(above)
    assert (grades[0], grades[-1]) == (Grade.GUESS, Grade.NEARLY_ALL)


def test_a_grade_without_the_interval_is_rejected():
    """The known-broken version, for which few rows look as good as many."""
    few, many = share(3, 10), share(300, 1000)
    alone = [grade(between(entry.value, entry.value, entry.value), 0.3) for entry in (few, many)]
    assert alone == [Grade.GUESS, Grade.GUESS]
    assert [grade(entry, 0.3) for entry in (few, many)] == [Grade.UNCLEAR, Grade.GUESS]


def test_grades_agree_with_the_advantage_that_a_protecting_bound_allows():
    """tanh(epsilon / 2) for two equally likely inputs."""
    assert Strength.of(3.0) is Strength.PROTECTS
    assert Strength.of(math.nextafter(3.0, 4)) is not Strength.PROTECTS
    assert 0.9 < math.tanh(3.0 / 2) < 0.91
    assert math.tanh(0.2 / 2) == pytest.approx(0.1, abs=0.001)
    assert math.tanh(1.1 / 2) == pytest.approx(0.5, abs=0.01)


def test_every_grade_has_its_words():
    words = wording._templates("txt").get_template("reports/templates/grades.txt").module.grade_words
    for of in ("attacker", "allowed", "model", "control"):
        texts = [words(entry, of, "the {majority}") for entry in Grade]
        assert all(text.strip() == text != "" for text in texts)
        assert of == "control" or len(set(texts)) == len(Grade)
    for entry in Grade:
        assert sign(entry, "control") is None
        assert (sign(entry, "attacker") is False) == ("allows" in words(entry, "allowed"))
