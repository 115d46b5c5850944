"""A label set is what the caller said, in one spelling; everything else is outside, and no error."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext.errors import ParameterError
from dptext.synthesis.moments import MOST_CLASSES, OUTSIDE, Labels
from dptext.users.private_vocabulary import PrivateLabels, private_labels


def test_no_labels_are_one_class_without_a_name():
    labels = Labels.of(None)
    assert (len(labels), labels.columns, labels.names) == (1, (), ("",))
    assert labels.code([]) == labels.code(()) == 0
    assert labels.values_of(0) == {}


def test_a_list_is_one_column():
    labels = Labels.of(["news", "sports"])
    assert labels == Labels(("label",), (("news", "sports"),)) == Labels.of({"label": iter(["news", "sports"])})
    assert [labels.code([entry]) for entry in ("news", "sports", " sports ", "Sports", "", None, 7)] == [
        0, 1, 1, OUTSIDE, OUTSIDE, OUTSIDE, OUTSIDE,
    ]  # fmt: skip
    assert labels.names == ("news", "sports")
    assert Labels.of(["a"], column="topic").columns == ("topic",)
    assert Labels.of(labels) is labels


def test_numbers_and_truth_values_are_spelled_once():
    numbers = Labels.of([1, 2.0, "3", 4.5, np.int64(5)])
    assert numbers.values == (("1", "2", "3", "4.5", "5"),)
    for spelled in (1, 1.0, "1", "1.0", np.int32(1), np.float32(1)):
        assert numbers.code([spelled]) == 0
    truth = Labels.of([True, False])
    assert [truth.code([entry]) for entry in (True, "true", "True", np.True_, "FALSE", 1)] == [0, 0, 0, 0, 1, OUTSIDE]


def test_a_set_has_the_same_codes_in_every_process():
    assert Labels.of({"b", "a", "c"}).values == (("a", "b", "c"),)


@given(st.lists(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=4, unique=True), max_size=3))
def test_every_class_is_one_combination_and_goes_there_and_back(values):
    labels = Labels(tuple(f"column {place}" for place in range(len(values))), values)
    results = [labels.values_of(code) for code in range(len(labels))]
    assert [labels.code(list(entry.values())) for entry in results] == list(range(len(labels)))
    assert len({tuple(entry.items()) for entry in results}) == len(labels)
    assert [" / ".join(entry.values()) for entry in results] == list(labels.names)
    assert all(tuple(entry) == labels.columns for entry in results)
    copy = pickle.loads(pickle.dumps(labels))
    assert (copy, hash(copy)) == (labels, hash(labels))


def test_what_is_no_combination_is_outside_and_no_error():
    for values in [[], ["news"], ["news", "1", "x"], [["news"], {}], [None, "1"], ["news", None]]:
        assert Labels.of({"topic": ["news", "sports"], "stars": [1, 2]}).code(values) == OUTSIDE


def test_a_class_that_is_not_there_is_refused():
    with pytest.raises(ParameterError, match="from 0 to 1, got 2"):
        Labels.of(["a", "b"]).values_of(2)
    with pytest.raises(ParameterError, match="got -1"):
        Labels.of(["a", "b"]).values_of(OUTSIDE)


def test_one_clear_error():
    for wrong, words in [
        ("news", "got one text"),
        (7, "got 7"),
        ([], "at least one"),
        ({}, "at least one column"),
        ({"topic": []}, "'topic'.*at least one"),
        ({"topic": 7}, "'topic' must be a list, got 7"),
        ({"topic": "news", "stars": [1]}, "'topic' must be a list, got one text"),
        ({"news": ""}, "descriptions of the labels of 'label'"),
        ({"topic": {"news": "a", "sports": None}}, "descriptions of the labels of 'topic'"),
        ({"topic": {"news": "\udc80"}}, "descriptions of the labels of 'topic'"),
        ({"topic": None}, "'topic' must be a list, got None"),
        ({"": ["a"]}, "list of names"),
        ({1: ["a"]}, "list of names"),
        (["a", ""], "must be texts"),
        (["a", "b", None], "must be texts"),
        ([["a"]], "must be texts"),
        ([b"a"], "must be texts"),
        ([float("nan")], "must be texts"),
        (["a", "b", " a"], "at place 3 before"),
        ([1, "1.0"], "at place 2 before"),
        ({"one": range(101), "other": range(100)}, "at most 10,000 classes, got 10,100"),
    ]:
        with pytest.raises(ParameterError, match=words):
            Labels.of(wrong)


def test_values_and_columns_belong_together():
    with pytest.raises(ParameterError, match="got 0 for 1"):
        Labels(("topic",))
    with pytest.raises(ParameterError, match="column must be text"):
        Labels.of(["a"], column="")
    assert len(Labels.of({"one": range(100), "other": range(100)})) == MOST_CLASSES


def test_labels_that_were_learned_are_taken_as_they_are():
    statement = private_labels([], epsilon=1.0, delta=1e-6).statement
    learned = PrivateLabels("topic", ("news", "sports"), statement)
    assert Labels.of(learned) == Labels.of(["news", "sports"], column="topic")
    assert Labels.of(learned).learned == (("labels", statement),)
    assert Labels.of(Labels.of(learned)).learned == (("labels", statement),)
    several = Labels.of({"theme": learned, "stars": [1]})
    assert (several.columns, several.learned) == (("theme", "stars"), (("labels of theme", statement),))
    assert pickle.loads(pickle.dumps(several)).learned == several.learned
    with pytest.raises(ParameterError, match="found no label"):
        Labels.of(PrivateLabels("topic", (), statement))


def test_classes_whose_values_look_like_several_have_names_of_their_own():
    labels = Labels.of({"first": ["a", "a / b"], "second": ["b / c", "c"]})
    assert len(set(labels.names)) == len(labels) == 4
    assert Labels.of({"first": ["a"], "second": ["b"]}).names == ("a / b",)


@pytest.mark.parametrize("given", [{"a\udc80": ["b"]}, {"a": ["b\udc80"]}])
def test_what_no_statement_can_hold_is_refused_before_a_budget_is_spent(given):
    with pytest.raises(ParameterError, match="UTF-8"):
        Labels.of(given)


def test_descriptions_of_one_column_and_of_several():
    labels = Labels.of({"news": "politics", "sports": "football"}, column="topic")
    assert (labels.columns, labels.values, labels.described) == (
        ("topic",),
        (("news", "sports"),),
        ("politics", "football"),
    )
    several = Labels.of({"topic": {"news": "politics", "sports": "football"}, "stars": [1, 2]})
    assert several.names == ("news / 1", "news / 2", "sports / 1", "sports / 2")
    assert several.described == ("politics", "politics", "football", "football")
    assert Labels.of(["news", "sports"], column="topic").described is None
    assert pickle.loads(pickle.dumps(several)).described == several.described


def test_descriptions_do_not_change_the_label_set_of_the_statement():
    """The digest in a statement is that of the labels: descriptions are no part of the release."""
    assert Labels.of({"news": "politics"}).sha256 == Labels.of(["news"]).sha256


def test_one_description_per_label():
    with pytest.raises(ParameterError, match="one text for each label"):
        Labels(("topic",), (("news", "sports"),), descriptions=(("politics",),))
