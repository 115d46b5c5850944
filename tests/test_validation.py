"""Checks of arguments: what passes, what does not, and that an error shows no text."""

import math
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

import numpy as np
import pytest

from dptext import validation
from dptext.errors import ParameterError
from dptext.privacy.guarantee import Relation


def test_a_number_is_a_float():
    for value in [1, 1.5, np.float32(1.5), np.int64(1), Fraction(3, 2)]:
        number = validation.check_float("x", value, above=0)
        assert type(number) is float
        assert number == float(value)


def test_what_is_none_is_refused():
    for value in [True, "1", None, math.nan, math.inf, 10**400, 0, -1.0, [1], Decimal(1), np.ones(2)]:
        with pytest.raises(ParameterError, match=r"^x must be a finite number above 0, got "):
            validation.check_float("x", value, above=0)


def test_bounds_are_what_they_say():
    for bounds, inside, outside, words in [
        ({"minimum": 0, "maximum": 1}, (0, 1), (-1e-300, 1.0000001), "a number from 0 to 1"),
        ({"above": 0, "below": 1}, (1e-300,), (0, 1), "a number above 0 and below 1"),
        ({"above": 0, "maximum": 500}, (500,), (0, 501), "a number above 0 and at most 500"),
        ({"minimum": 0, "below": 1}, (0,), (1,), "a number of at least 0 and below 1"),
        ({"minimum": 1}, (1, 1e308), (0.5,), "a finite number of at least 1"),
        ({"maximum": 1}, (1, -1e308), (1.5,), "a finite number of at most 1"),
        ({"below": 1}, (0.5,), (1,), "a finite number below 1"),
        ({}, (-1e308,), (math.inf,), "a finite number"),
    ]:
        for value in inside:
            assert validation.check_float("x", value, **bounds) == value
        for value in outside:
            with pytest.raises(ParameterError) as error:
                validation.check_float("x", value, **bounds)
            assert str(error.value) == f"x must be {words}, got {float(value)!r}".replace(
                f"{float(value)!r}", validation.display_value(value)
            )


def test_an_integer_in_range():
    for value in [True, 3.0, "3", None, 0, 11, 10**400]:
        assert validation.check_int("x", np.int32(10), minimum=1, maximum=10) == 10
        with pytest.raises(ParameterError, match=r"^x must be an integer from 1 to 10, got "):
            validation.check_int("x", value, minimum=1, maximum=10)


def test_large_bounds_are_printed_digit_by_digit():
    with pytest.raises(ParameterError, match="x must be an integer from 2 to 1,048,576, got 1"):
        validation.check_int("x", 1, minimum=2, maximum=2**20)


def test_infinity_passes_where_it_may_and_an_integer_beyond_every_float_never():
    assert validation.check_float("x", np.float32(math.inf), minimum=0, infinite=True) == math.inf
    for value in (10**400, math.nan, -math.inf):
        with pytest.raises(ParameterError, match=r"^x must be a number of at least 0, got "):
            validation.check_float("x", value, minimum=0, infinite=True)


def test_a_member_of_an_enumeration_may_be_given_by_its_name():
    for value in ("add/remove", Relation.ADD_REMOVE):
        assert validation.check_choice("relation", value, Relation) is Relation.ADD_REMOVE
    for value in ("ADD_REMOVE", None, [1], 3, math.nan):
        with pytest.raises(ParameterError, match=r"^relation must be one of 'substitution', 'add/remove', got "):
            validation.check_choice("relation", value, Relation)


def test_a_text_is_one_that_files_can_hold():
    with pytest.raises(ParameterError, match="text that UTF-8 can hold") as caught:
        validation.check_text("name", "Zaphod \udc80")
    assert "Zaphod" not in str(caught.value)
    with pytest.raises(ParameterError, match="names that UTF-8 can hold"):
        validation.check_names("columns", ["a", "Zaphod \udc80"])


def test_a_text_is_not_empty():
    assert validation.check_text("x", "a text") == "a text"
    for value in ("", None, b"a", ["a"]):
        with pytest.raises(ParameterError, match=r"^x must be text, got "):
            validation.check_text("x", value)


def test_a_choice_is_of_the_type_of_the_choices():
    assert validation.check_choice("x", "a", ("a", "b")) == "a"
    assert type(validation.check_choice("x", StrEnum("Letters", {"A": "a"}).A, ("a", "b"))) is str
    for value in ("c", 1, None, ["a"], np.ones(2)):
        with pytest.raises(ParameterError, match=r"^x must be one of 'a', 'b' or a function, got "):
            validation.check_choice("x", value, ("a", "b"), also=" or a function")
    with pytest.raises(ParameterError):
        validation.check_choice("x", True, (1, 2))


def test_names_are_distinct_strings():
    assert validation.check_names("keep", ["a", "b"]) == ("a", "b")
    for value in ("ab", 1, [1], [""], ["a", "a"], None):
        with pytest.raises(ParameterError, match=r"^keep must"):
            validation.check_names("keep", value)


def test_a_path_is_one(tmp_path):
    assert validation.check_path("out", str(tmp_path)) == validation.check_path("out", tmp_path) == tmp_path
    for value in ("", "a\0b", 1, None, b"a"):
        with pytest.raises(ParameterError, match=r"^out must be a path"):
            validation.check_path("out", value)


def test_no_text_is_shown():
    for value in ["my secret text", "secret\n", "x" * 40, ["secret"], b"secret", {"secret": 1}]:
        assert "secret" not in validation.display_value(value)
        assert "xxx" not in validation.display_value(value)


def test_a_choice_that_is_misspelled_gets_the_nearest_one():
    with pytest.raises(ParameterError, match=r"got 'Linaer': did you mean 'linear'\?$"):
        validation.check_choice("attacker", "Linaer", ("linear", "knn"))
    with pytest.raises(ParameterError, match=r"got 'zzz'$"):
        validation.check_choice("attacker", "zzz", ("linear", "knn"))
    assert validation.did_you_mean("text " * 20_000, ("linear",)) == ""  # difflib takes the square of the length
    assert validation.did_you_mean(7, ("linear",)) == ""


def test_a_list_of_names_has_an_end():
    assert validation.format_names(map(str, range(30)), maximum=3) == "'0', '1', '2' and 27 more"
    assert validation.format_names(["b", "Text", "a"], near="text") == "'Text', 'b', 'a'"
