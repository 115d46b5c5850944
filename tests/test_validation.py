"""Checks of arguments: accepted values have a plain type, and an error shows no text."""

import math
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

import numpy as np
import pytest

from dptext import validation
from dptext.errors import ParameterError
from dptext.privacy.guarantee import Relation
from secrecy import MARKER, assert_error

FLOATS = [
    ({"minimum": 0, "maximum": 1}, (0, 1), (-1e-300, 1.0000001), "a number from 0 to 1"),
    ({"above": 0, "below": 1}, (1e-300,), (0, 1), "a number above 0 and below 1"),
    ({"above": 0, "maximum": 500}, (500,), (0, 501), "a number above 0 and at most 500"),
    ({"minimum": 0, "below": 1}, (0,), (1,), "a number of at least 0 and below 1"),
    ({"minimum": 1}, (1, 1e308), (0.5,), "a finite number of at least 1"),
    ({"maximum": 1}, (1, -1e308), (1.5,), "a finite number of at most 1"),
    ({"below": 1}, (0.5,), (1,), "a finite number below 1"),
    ({}, (-1e308,), (math.inf,), "a finite number"),
    ({"minimum": 0, "infinite": True}, (math.inf,), (10**400, math.nan, -math.inf), "a number of at least 0"),
]


def test_floats_are_within_their_bounds():
    for bounds, inside, outside, words in FLOATS:
        for value in inside:
            assert validation.check_float("x", value, **bounds) == value
        for value in outside:
            with pytest.raises(ParameterError) as error:
                validation.check_float("x", value, **bounds)
            assert str(error.value) == f"x must be {words}, got {validation.display_value(value)}"
    for value in [1, 1.5, np.float32(1.5), np.int64(1), Fraction(3, 2)]:
        number = validation.check_float("x", value, above=0)
        assert type(number) is float and number == float(value)
    for value in [True, "1", None, math.nan, 10**400, [1], Decimal(1), np.ones(2)]:
        message = "x must be a finite number above 0, got "
        assert_error(ParameterError, lambda value=value: validation.check_float("x", value, above=0), message)


def test_integers_are_within_their_bounds():
    assert validation.check_int("x", np.int32(10), minimum=1, maximum=10) == 10
    for value in [True, 3.0, "3", None, 0, 11, 10**400]:
        call = lambda value=value: validation.check_int("x", value, minimum=1, maximum=10)  # noqa: E731
        assert_error(ParameterError, call, "x must be an integer from 1 to 10, got ")
    message = "x must be an integer from 2 to 1,048,576, got 1"
    assert_error(ParameterError, lambda: validation.check_int("x", 1, minimum=2, maximum=2**20), message)


def test_choices_are_members_of_their_type_and_misspelled_ones_get_the_nearest():
    for value in ("add/remove", Relation.ADD_REMOVE):
        assert validation.check_choice("relation", value, Relation) is Relation.ADD_REMOVE
    assert type(validation.check_choice("x", StrEnum("Letters", {"A": "a"}).A, ("a", "b"))) is str
    for value, choices, message in (
        *((value, Relation, "must be one of 'substitution', 'add/remove'") for value in ("ADD_REMOVE", None, [1], 3)),
        *((value, ("a", "b"), "must be one of 'a', 'b' or a function") for value in ("c", 1, None, np.ones(2))),
        (True, (1, 2), "must be one of 1, 2"),
        ("Linaer", ("linear", "knn"), "got 'Linaer': did you mean 'linear'?"),
    ):
        call = lambda v=value, c=choices: validation.check_choice("x", v, c, also=" or a function")  # noqa: E731
        assert_error(ParameterError, call, message)
    assert validation.did_you_mean("text " * 20_000, ("linear",)) == ""  # difflib takes the square of the length
    assert validation.did_you_mean(7, ("linear",)) == ""
    assert validation.format_names(map(str, range(30)), maximum=3) == "'0', '1', '2' and 27 more"
    assert validation.format_names(["b", "Text", "a"], near="text") == "'Text', 'b', 'a'"


def test_texts_names_and_paths_are_those_that_files_can_hold(tmp_path):
    assert validation.check_text("x", "a text") == "a text"
    assert validation.check_names("keep", ["a", "b"]) == ("a", "b")
    assert validation.check_path("out", str(tmp_path)) == validation.check_path("out", tmp_path) == tmp_path
    surrogate = f"{MARKER} \udc80"
    for check, values, message in (
        (validation.check_text, ("", None, b"a", ["a"]), "x must be text, got "),
        (validation.check_text, (surrogate,), "must be text that UTF-8 can encode,"),
        (validation.check_names, ("ab", 1, [1], [""], ["a", "a"], None), "x must"),
        (validation.check_names, (["a", surrogate],), "must be names that UTF-8 can encode,"),
        (validation.check_path, ("", "a\0b", 1, None, b"a"), "x must be a "),
    ):
        for value in values:
            assert_error(ParameterError, lambda check=check, value=value: check("x", value), message)


def test_no_text_is_shown():
    for value in [f"my {MARKER} text", f"{MARKER}\n", "x" * 40, [MARKER], MARKER.encode(), {MARKER: 1}]:
        assert MARKER not in validation.display_value(value) and "xxx" not in validation.display_value(value)
