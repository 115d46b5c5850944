"""`Labels`: classes from lists, mappings and learned labels, in one spelling; everything else is outside."""

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
    assert (len(labels), labels.columns, labels.names, labels.values_of(0)) == (1, (), ("",), {})
    assert labels.code([]) == labels.code(()) == 0


def test_a_list_is_one_column_and_unknown_values_are_outside():
    labels = Labels.of(["news", "sports"])
    assert labels == Labels(("label",), (("news", "sports"),)) == Labels.of({"label": iter(["news", "sports"])})
    assert Labels.of(labels) is labels
    assert Labels.of(["a"], column="topic").columns == ("topic",)
    assert Labels.of({"b", "a", "c"}).values == (("a", "b", "c"),)  # the same codes in every process
    assert [labels.code([entry]) for entry in ("news", " sports ")] == [0, 1]
    assert {labels.code([entry]) for entry in ("Sports", "", None, 7)} == {OUTSIDE}
    several = Labels.of({"topic": ["news", "sports"], "stars": [1, 2]})
    for values in [[], ["news"], ["news", "1", "x"], [["news"], {}], [None, "1"], ["news", None]]:
        assert several.code(values) == OUTSIDE
    for code in (2, OUTSIDE):
        with pytest.raises(ParameterError, match=f"from 0 to 1, got {code}"):
            labels.values_of(code)


def test_numbers_and_truth_values_have_one_spelling():
    numbers = Labels.of([1, 2.0, "3", 4.5, np.int64(5)])
    assert numbers.values == (("1", "2", "3", "4.5", "5"),)
    for value in (1, 1.0, "1", "1.0", np.int32(1), np.float32(1)):
        assert numbers.code([value]) == 0
    truth = Labels.of([True, False])
    assert [truth.code([entry]) for entry in (True, "true", "True", np.True_, "FALSE", 1)] == [0, 0, 0, 0, 1, OUTSIDE]


@given(st.lists(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=4, unique=True), max_size=3))
def test_every_class_is_one_combination_of_values(values):
    labels = Labels(tuple(f"column {place}" for place in range(len(values))), values)
    results = [labels.values_of(code) for code in range(len(labels))]
    assert [labels.code(list(entry.values())) for entry in results] == list(range(len(labels)))
    assert len({tuple(entry.items()) for entry in results}) == len(labels)
    assert [" / ".join(entry.values()) for entry in results] == list(labels.names)
    assert all(tuple(entry) == labels.columns for entry in results)
    copy = pickle.loads(pickle.dumps(labels))
    assert (copy, hash(copy)) == (labels, hash(labels))


def test_names_of_classes_differ():
    assert len(set(Labels.of({"first": ["a", "a / b"], "second": ["b / c", "c"]}).names)) == 4
    assert Labels.of({"first": ["a"], "second": ["b"]}).names == ("a / b",)


def test_learned_labels_keep_their_statement():
    statement = private_labels([], epsilon=1.0, delta=1e-6).statement
    learned = PrivateLabels("topic", ("news", "sports"), statement)
    assert Labels.of(learned) == Labels.of(["news", "sports"], column="topic")
    assert Labels.of(learned).learned == Labels.of(Labels.of(learned)).learned == (("labels", statement),)
    several = Labels.of({"theme": learned, "stars": [1]})
    assert (several.columns, several.learned) == (("theme", "stars"), (("labels of theme", statement),))
    assert pickle.loads(pickle.dumps(several)).learned == several.learned
    with pytest.raises(ParameterError, match="found no label"):
        Labels.of(PrivateLabels("topic", (), statement))


def test_descriptions_belong_to_labels_and_not_to_their_digest():
    labels = Labels.of({"news": "politics", "sports": "football"}, column="topic")
    assert (labels.columns, labels.values) == (("topic",), (("news", "sports"),))
    assert labels.described == ("politics", "football")
    several = Labels.of({"topic": {"news": "politics", "sports": "football"}, "stars": [1, 2]})
    assert several.names == ("news / 1", "news / 2", "sports / 1", "sports / 2")
    assert several.described == ("politics", "politics", "football", "football")
    assert pickle.loads(pickle.dumps(several)).described == several.described
    assert Labels.of(["news", "sports"], column="topic").described is None
    assert Labels.of({"news": "politics"}).sha256 == Labels.of(["news"]).sha256


def test_invalid_labels_are_refused():
    assert len(Labels.of({"one": range(100), "other": range(100)})) == MOST_CLASSES
    for wrong, part in [
        ("news", "'label' must be a list, got one text"),
        (7, "'label' must be a list, got 7"),
        ([], "at least one"),
        ({}, "at least one column"),
        ({"topic": 7}, "'topic' must be a list, got 7"),
        ({"topic": "news", "stars": [1]}, "'topic' must be a list, got one text"),
        ({"news": ""}, "descriptions of the labels of 'label'"),
        ({"topic": {"news": "a", "sports": None}}, "descriptions of the labels of 'topic'"),
        ({"": ["a"]}, "list of names|strings only"),
        *(([label], "must be texts") for label in ("", None, ["a"], b"a", float("nan"), "b\udc80")),
        ({"a\udc80": ["b"]}, "UTF-8"),
        (["a", "b", " a"], "entry 3 occurs before"),
        ([1, "1.0"], "entry 2 occurs before"),
        ({"one": range(101), "other": range(100)}, "at most 10,000 classes, got 10,100"),
    ]:
        with pytest.raises(ParameterError, match=part):
            Labels.of(wrong)
    for build, part in [
        (lambda: Labels.of(["a"], column=""), "column must be text"),
        (
            lambda: Labels(("topic",), (("news", "sports"),), descriptions=(("politics",),)),
            "one non-empty UTF-8 text per label",
        ),
    ]:
        with pytest.raises(ParameterError, match=part):
            build()
