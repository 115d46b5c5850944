"""Arguments of word mechanisms, releases and statements that are refused, with what to do."""

import math

import pytest

import dptext
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.guarantee import ZCDP, ApproxDP, MetricDP, Relation, Trust, Unit

WORDS = (["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
TRAINING = {
    "guarantee": ApproxDP(1.0, 1e-6),
    "unit": Unit.USER,
    "relation": Relation.ADD_REMOVE,
    "condition": "two corpora, one of which lacks the texts of one user",
    "trust": Trust.CENTRAL,
    "mechanism": "skip-gram",
}
BUDGET = {"document_epsilon": 5.0, "max_words": 3}
METRIC = MetricDP(1.0, "euclidean")

MECHANISMS = [
    (dptext.TEM, {"epsilon": math.nan}, "epsilon must be a finite number above 0, got nan"),
    (dptext.TEM, {"beta": 0.0}, "beta must be a number above 0 and below 1"),
    (dptext.TEM, {"threshold": -2.0}, "threshold must be"),
    (dptext.TEM, {"threshold": 100.0}, "Use a threshold of at most"),
    (dptext.TEM, {"metric": "cosine"}, "use 'angular', the angle itself"),
    (dptext.TEM, {"max_words": 5}, "must be passed together"),
    (dptext.TEM, {"document_epsilon": 5.0, "max_words": 0}, "max_words must be an integer of at least 1"),
    (dptext.TEM, {**BUDGET, "threshold": 1.0}, "pass one of them"),
    (dptext.TEM, {"pure_epsilon": 3.0, "threshold": 1.0}, "set the threshold"),
    (dptext.CusText, {"size": 1}, "size must be an integer from 2 to 512, got 1"),
    (dptext.SanTextPlus, {"p": 1.1}, "p must be a number above 0 and at most 1"),
    (dptext.SanTextPlus, {"sensitive": 2}, "sensitive must be a number above 0 and at most 1"),
    (dptext.SanTextPlus, {"reach": 1e9}, "reach must be at most"),
    (dptext.SubsetSelection, {"size": 301}, "size must be an integer from 1 to 300"),
    (dptext.SubsetSelection, {"epsilon": 50.0}, "Use a smaller epsilon"),
    (dptext.Mahalanobis, {"lambda_": 1.5}, "lambda"),
    (dptext.Madlib, {"epsilon": 1e-12}, "times the diameter of the vocabulary. Use"),
    (dptext.Vickrey, {"t": 1.5}, "t must be a number from 0 to 1"),
    (dptext.TruncatedGumbel, {"epsilon": 1e-3, "unsafe_as_published": True}, "the paper has no scale"),
]


def released(**changes):
    vectors = dptext.load_vectors(WORDS, statement=dptext.PrivacyStatement(**TRAINING | changes))
    mechanism = dptext.TEM(vectors, epsilon=2.0, threshold=3.0)
    return mechanism, dptext.privatize(["my cat"], mechanism).statement


def test_mechanisms_refuse_bad_arguments_by_name(small):
    for build, options, message in MECHANISMS:
        with pytest.raises(ParameterError) as caught:
            build(small, **{"epsilon": 5.0, **options})
        assert message in str(caught.value)
    with pytest.raises(RefusedError, match="unsafe_as_published=True to compare"):
        dptext.TruncatedGumbel(small, epsilon=20.0)


def test_training_and_release_are_added_only_where_that_is_proved(small, tmp_path):
    mechanism, statement = released()
    vectors = mechanism.vectors
    for call, kind, message in (
        (lambda: dptext.statement_with_training(statement, small), ParameterError, "are public"),
        (lambda: dptext.statement_with_training(mechanism.statement, vectors), ParameterError, "one about a word"),
        (
            lambda: dptext.statement_with_training(statement, small.attach_statement(vectors.statement)),
            ParameterError,
            "other vectors",
        ),
        (lambda: dptext.statement_with_training(statement, vectors, documents=0), ParameterError, "documents must be"),
        (
            lambda: dptext.load_vectors(vectors, statement=statement),
            ParameterError,
            "these vectors already have another statement, which",
        ),
        (
            lambda: dptext.save_vectors(vectors, tmp_path / "v.txt"),
            ParameterError,
            "cannot contain: give the name of a",
        ),
    ):
        with pytest.raises(kind) as caught:
            call()
        assert message in str(caught.value)
    for changes, message in (
        ({"unit": Unit.WORD}, "of their training texts, and one person"),
        ({"guarantee": METRIC, "relation": Relation.SUBSTITUTION}, "has no pure epsilon"),
        ({"guarantee": METRIC}, "already covers substitution"),
        ({"guarantee": ZCDP(0.1), "slack": 0.1}, "zCDP with slack"),
    ):
        mechanism, statement = released(**changes)
        with pytest.raises(RefusedError, match=message):
            dptext.statement_with_training(statement, mechanism.vectors)
