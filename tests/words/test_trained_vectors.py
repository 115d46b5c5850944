"""Vectors that were trained on private texts: the statement goes with them, and the sum of the losses is right."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import dptext
from dptext import ZCDP, ApproxDP, MetricDP, PrivacyStatement, PureDP, statement_with_training
from dptext.errors import DataError
from dptext.privacy.guarantee import NoGuarantee, Relation, Trust, Unit

WORDS = (["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])


def training(guarantee=ApproxDP(1.0, 1e-6), **changes):  # noqa: B008  frozen
    statement = PrivacyStatement(
        guarantee=guarantee,
        unit=Unit.USER,
        relation=Relation.ADD_REMOVE,
        condition="two corpora, one of which lacks the texts of one user",
        trust=Trust.CENTRAL,
        mechanism="skip-gram",
        assumptions=("users are sampled at random",),
        exposed=("the dimension",),
        release_id="abc",
    )
    return dataclasses.replace(statement, **changes)


def released(statement, texts=("my cat", "the old dog"), **options):
    vectors = dptext.load_vectors(WORDS, statement=statement)
    mechanism = dptext.TEM(vectors, epsilon=2.0, **({"threshold": 3.0} | options))
    return mechanism, dptext.privatize(texts, mechanism).statement


# -- the statement goes with the vectors ----------------------------------------------------------------------


@pytest.mark.parametrize("build", [dptext.TEM, dptext.Madlib])
def test_a_mechanism_on_protected_vectors_states_the_training(build):
    vectors = dptext.load_vectors(WORDS, statement=training())
    statement = build(vectors, epsilon=2.0).statement
    assert not any("are public:" in assumption for assumption in statement.assumptions)
    assert any(
        "the author of the words has no text in the training" in assumption for assumption in statement.assumptions
    )
    assert statement.parameters["vectors_promise"] == "(1, 1e-06)-differential privacy; unit user, add/remove"
    assert statement.parameters["vectors_release"] == "abc"
    assert isinstance(statement.guarantee, MetricDP)  # for every fixed matrix, so for who is in the texts only


def test_the_statement_of_a_folder_cannot_get_lost_or_changed(tmp_path):
    dptext.save_vectors(dptext.load_vectors(WORDS, statement=training()), tmp_path / "folder")
    file = tmp_path / "folder" / "privacy.json"
    better = file.read_text().replace("1e-06", "1e-09")
    for spoil in (lambda: file.write_text(better), file.unlink):
        spoil()
        with pytest.raises(DataError, match=r"privacy\.json does not match its digest in config\.json"):
            dptext.load_vectors(tmp_path / "folder")
    dptext.save_vectors(dptext.load_vectors(WORDS), tmp_path / "public")
    assert not (tmp_path / "public" / "privacy.json").exists()
    (tmp_path / "public" / "privacy.json").write_text(training().to_json())
    with pytest.raises(DataError, match=r"privacy\.json does not match its digest"):
        dptext.load_vectors(tmp_path / "public")


# -- who is in both -------------------------------------------------------------------------------------------


def test_losses_of_training_and_release_add_up_for_a_user_in_both():
    mechanism, statement = released(training())
    both = statement_with_training(statement, mechanism.vectors)
    words = 3 * (2.0 * 3.0 + mechanism.slack)  # three words, each at most epsilon * threshold
    assert both.guarantee.epsilon == pytest.approx(2 * 1.0 + words, rel=1e-12)
    assert both.guarantee.delta == pytest.approx((1 + math.e) * 1e-6, rel=1e-12)
    assert (both.unit, both.relation, both.trust, both.slack) == (Unit.USER, Relation.SUBSTITUTION, Trust.CENTRAL, 0)
    mechanism, statement = released(training(PureDP(0.5)), threshold=None, document_epsilon=6.0, max_words=3)
    for documents in (1, 4):
        both = statement_with_training(statement, mechanism.vectors, documents=documents)
        assert both.guarantee == PureDP(both.guarantee.epsilon)
        assert both.guarantee.epsilon == pytest.approx(1.0 + documents * (6.0 + statement.slack), rel=1e-12)
    assert "4 documents in the release" in both.neighbours and both.parameters["documents_of_one"] == 4
    substitution = {"relation": Relation.SUBSTITUTION}
    for statement, epsilon, delta in (
        (training(PureDP(3.0), **substitution), 3.0, 0.0),
        (training(PureDP(3.0), slack=0.25), 6.5, 0.0),
        (training(ApproxDP(2.0, 1e-7), slack=0.5, **substitution), 2.5, 1e-7),
        (training(MetricDP(2.0, "summed euclidean", 4.0), **substitution), 8.0, 0.0),
    ):
        mechanism, words = released(statement)
        guarantee = statement_with_training(words, mechanism.vectors).guarantee
        assert guarantee.epsilon == pytest.approx(epsilon + words.guarantee.pure_epsilon + words.slack, rel=1e-12)
        assert getattr(guarantee, "delta", 0.0) == delta
    mechanism, words = released(training(ZCDP(0.1)))
    loss = words.guarantee.pure_epsilon + words.slack
    rho = statement_with_training(words, mechanism.vectors).guarantee.rho
    assert rho == pytest.approx(4 * 0.1 + loss**2 / 2, rel=1e-12)
    mechanism, words = released(training(NoGuarantee("plain skip-gram")))
    assert statement_with_training(words, mechanism.vectors).guarantee == NoGuarantee("plain skip-gram")


def test_assumptions_and_exposures_of_both_are_combined():
    mechanism, statement = released(training(seeded=True))
    both = statement_with_training(statement, mechanism.vectors)
    assert not any("author of the words" in assumption for assumption in both.assumptions)
    assert "users are sampled at random" in both.assumptions
    assert set(both.exposed) == {*statement.exposed, "the dimension"}
    assert both.seeded
    assert both.release_id == statement.release_id
    assert "lacks the texts of one user" in both.neighbours
    assert "the same layout" in both.neighbours
    assert PrivacyStatement.from_json(both.to_json()) == both
    assert "ONE USER" in both.explain().upper()


# -- the bound against a joint distribution -------------------------------------------------------------------


def joint(score, word, epsilon, matrices):
    """log P(vectors, private word): a training whose log odds grow by epsilon a user, then TEM on its vectors."""
    first = -np.logaddexp(0.0, -epsilon * score)
    second = -np.logaddexp(0.0, epsilon * score)
    parts = []
    for log_share, points in zip((first, second), matrices, strict=True):
        mechanism = dptext.TEM(dptext.load_vectors((WORDS[0], points)), epsilon=1.0, threshold=0.5)
        parts.append(log_share + np.log(mechanism.probabilities(word)))
    return np.concatenate(parts)


def test_the_sum_holds_for_a_joint_release_and_the_unconverted_one_does_not():
    """The training is epsilon-DP for adding or removing a user (a vote of +1 or -1); substituting one moves it by 2."""
    epsilon = 3.0
    matrices = ([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]], [[0.0, 0.0], [5.0, 1.0], [1.0, 0.0]])
    worst = max(
        np.max(joint(score + 1, one, epsilon, matrices) - joint(score - 1, other, epsilon, matrices))
        for score in range(-8, 9)
        for one, other in itertools.permutations(WORDS[0], 2)
    )
    statement = training(PureDP(epsilon))
    vectors = dptext.load_vectors((WORDS[0], matrices[0]), statement=statement)
    words = dptext.privatize(["cat"], dptext.TEM(vectors, epsilon=1.0, threshold=0.5)).statement
    both = statement_with_training(words, vectors).guarantee.epsilon
    assert worst <= both
    assert worst > 0.95 * both  # the bound is tight
    assert worst > epsilon + words.epsilon + 1.0  # the sum without the conversion is refuted
