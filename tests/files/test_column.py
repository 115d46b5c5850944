"""What counts as a column of texts, and what as a missing one."""

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.files.column import is_missing, one_column, spelled_label


def test_what_goes_over_texts_is_a_column():
    pandas = pytest.importorskip("pandas")
    for texts in (["a"], ("a",), np.array(["a"]), pandas.Series(["a"]), iter(["a"])):
        assert one_column(texts) is texts


def test_what_goes_over_something_else_is_refused():
    pandas = pytest.importorskip("pandas")
    for texts in ("a", b"a", {"a": "b"}, 7, None):
        with pytest.raises(ParameterError, match="must be a list, an array or a Series"):
            one_column(texts)
    for texts in (pandas.DataFrame({"a": ["b"]}), np.array([["a"]]), np.array("a")):
        with pytest.raises(ParameterError, match="must be one column"):
            one_column(texts)


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
        assert {spelled_label(value) for value in values} == {spelled}
    assert {spelled_label(value) for value in (None, "", " ", float("nan"), float("inf"), b"a", ["a"])} == {None}
