"""What counts as a column of texts, and what as a missing one."""

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.io.batches import describe_columns
from dptext.io.documents import canonical_label, check_one_column, is_missing


def test_what_goes_over_texts_is_a_column():
    pandas = pytest.importorskip("pandas")
    for texts in (["a"], ("a",), np.array(["a"]), pandas.Series(["a"]), iter(["a"])):
        assert check_one_column(texts) is texts


def test_what_goes_over_something_else_is_refused():
    pandas = pytest.importorskip("pandas")
    for texts in ("a", b"a", {"a": "b"}, 7, None):
        with pytest.raises(ParameterError, match="must be a list, an array or a Series"):
            check_one_column(texts)
    for texts in (pandas.DataFrame({"a": ["b"]}), np.array([["a"]]), np.array("a")):
        with pytest.raises(ParameterError, match="must be one column"):
            check_one_column(texts)


def test_missing_is_what_pandas_and_numpy_have_for_it():
    pandas = pytest.importorskip("pandas")
    assert all(map(is_missing, (None, float("nan"), np.float64("nan"), pandas.NA, pandas.NaT)))
    assert not any(map(is_missing, ("", "nan", 0, 0.0, False, [])))


def test_a_label_has_one_spelling():
    """Files of different formats have the same label as a number, as a text or as a truth value."""
    for spelled, values in {
        "1": (1, 1.0, "1", "1.0", " 1", np.int64(1), np.float32(1)),
        "4.5": (4.5, "4.5", np.float64(4.5)),
        "true": (True, "true", "True", "TRUE", np.True_),
        "news": ("news", " news ", np.str_("news")),
    }.items():
        assert {canonical_label(value) for value in values} == {spelled}
    assert {canonical_label(value) for value in (None, "", " ", float("nan"), float("inf"), b"a", ["a"])} == {None}


# -- names of columns ---------------------------------------------------------------------------------------------

USUAL = ["review_text", "userId", "Overall rating (1-5)", "stars"]


def test_the_columns_that_there_are_stand_in_the_error_the_nearest_first():
    assert describe_columns("star", USUAL) == (
        "none among its 4: 'stars', 'review_text', 'userId', 'Overall rating (1-5)'"
    )
    many = [f"field_{place}" for place in range(30)]
    assert describe_columns("text", many).endswith("'field_18', 'field_19' and 10 more")
    assert describe_columns("text", [0, 1, 2]) == "none among its 3: 0, 1, 2"
    assert describe_columns("text", []) == "none among its 0"


@pytest.mark.parametrize(
    "values",
    [
        ["qsecretq", "5"],  # a number is no name
        ["qsecretq"],
        ["qsecretq", "Ann"],  # could be names, and nothing says that they are
        ["stars", "qsecretq came home, and never left again"],
        ["stars", "qsecretq one two three four"],
        ["stars", "qsecretq@example.org"],
        ["stars", "qsecretq\x1b[2J"],
        ["stars", "+49 30 qsecretq"],
        ["stars", "", "qsecretq"],
        ["qsecretq is late", "lovely"],
        ["x" * 41 + "qsecretq", "stars"],
    ],
)
def test_a_first_line_that_may_hold_values_is_not_shown(values):
    found = describe_columns("text", values)
    assert "qsecretq" not in found
    assert found.startswith(f"none among its {len(values)} (not shown")


def test_a_column_that_was_asked_for_says_that_it_is_a_header():
    names = ["befund", "zeile"]
    assert "not shown" in describe_columns("text", names)
    assert describe_columns("text", names, wanted=("text", "zeile")) == "none among its 2: 'befund', 'zeile'"


def test_names_of_a_schema_are_shown_but_what_is_a_sentence():
    assert (
        describe_columns("text", ["befund", "he came home late that night"], sure=True) == "none among its 2: 'befund'"
    )
