"""Claims of other tools: numbers of their own packages, missing proofs, known flaws, and a reader that is broken."""

import math

import numpy as np
import pytest

from dptext import ZCDP, ApproxDP, PrivacyStatement, PureDP
from dptext.audits.verdict import judge_gaussian
from dptext.errors import ParameterError
from dptext.privacy.claims import SETTINGS, read_claim
from dptext.privacy.gaussian import GaussianRelease, SampledGaussian
from dptext.privacy.guarantee import NoGuarantee, Relation, Unit

pytest.importorskip("dp_accounting")
OPACUS = {"noise_multiplier": 1.1, "sample_rate": 0.01, "steps": 10_000, "delta": 1e-5}
KERAS = {
    "noise_multiplier": 2.0, "batch_size": 8, "train_size": 80, "train_steps": 10, "gradient_accumulation_steps": 1,
    "delta": 1e-5, "clipping_norm": 1.0,
}  # fmt: skip
SAMPLED = {"noise_multiplier": 3.0, "sampling_prob": 0.1, "iterations": 512, "delta": 1e-6}
CLIENTS = {"epsilon": 1.0, "delta": 1e-6, "num_iterations": 5, "vote_normalization_level": "client"}

# Printed by benchmarks/claims.py with opacus 1.6.0, jax-privacy 2.0.0, opendp 0.16.0, DPSDA 9078c679: (tool, settings,
# the tool's epsilon or rho, by how much dptext may be smaller and larger; its own accounting is the tighter one)
OF_THE_TOOLS = [
    ("opacus", OPACUS | {"mechanism": "prv"}, 5.20287, 0.011, 0),
    ("opacus", OPACUS | {"mechanism": "rdp"}, 5.63199, 0.45, 0),
    ("opacus", {"history": [(1.0, 0.01, 1_000), (1.5, 0.02, 2_000)], "delta": 1e-5}, 3.45883, 0.011, 0),
    ("jax_privacy", SAMPLED, 3.76969, 1e-5, 1e-5),
    ("opendp", {"measurement": "laplace", "scale": 0.7, "d_in": 3.0}, 4.28571, 1e-5, 1e-5),
    ("opendp", {"measurement": "gaussian", "scale": 0.7, "d_in": 3.0}, 9.18367, 1e-5, 1e-5),
    ("dpsda", {"epsilon": 1.0, "delta": 1e-6, "num_iterations": 5}, 1.0, 0, 1e-4),
    ("dpsda", CLIENTS | {"labels_per_client": 4}, 2.12286, 1e-5, 1e-4),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "settings", "expected", "below", "above"), OF_THE_TOOLS)
def test_the_recomputed_numbers_agree_with_those_of_the_tools(tool, settings, expected, below, above):
    guarantee = read_claim(tool, settings).guarantee
    number = guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.epsilon
    assert expected - below <= number <= expected + above


def test_the_gdp_accountant_of_opacus_understates():
    statement = read_claim("opacus", OPACUS | {"mechanism": "gdp", "epsilon": 5.06473})  # printed by opacus 1.6.0
    assert statement.epsilon > statement.claimed_epsilon == 5.06473
    assert "understate" in statement.parameters["flaws"]
    assert "The recomputed epsilon is larger: 5.193." in " ".join(statement.explain().split())


def test_a_statement_says_that_it_is_a_claim():
    statement = read_claim("opacus", OPACUS | {"epsilon": 5.7, "unit": "user"})
    assert (statement.mechanism, statement.unit) == ("DP-SGD (as claimed by Opacus)", Unit.USER)
    assert (statement.relation, statement.claimed_epsilon) == (Relation.ADD_REMOVE, 5.7)
    assert statement.assumptions[0].startswith("as claimed by Opacus: dptext recomputed the guarantee")
    assert any("Poisson sampling" in entry for entry in statement.assumptions)
    text = " ".join(statement.explain().split())
    assert (
        "verified neither the run nor its output. Opacus states epsilon = 5.7. The recomputed epsilon is 5.193" in text
    )
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    assert read_claim("opacus", OPACUS).release_id != read_claim("opacus", OPACUS).release_id


def test_without_poisson_samples_each_pass_counts_in_full():
    statement = read_claim("opacus", OPACUS | {"poisson_sampling": False, "noise_multiplier": 20, "steps": 301})
    release = GaussianRelease(sigma=20, sensitivity=2 * math.sqrt(4), relation=Relation.SUBSTITUTION)  # 3.01 passes
    assert statement.guarantee.epsilon == pytest.approx(release.epsilon(delta=1e-5), rel=1e-9)
    assert statement.guarantee.epsilon >= release.epsilon(delta=1e-5) * (1 - 1e-12)
    assert (statement.relation, statement.mu) == (Relation.SUBSTITUTION, pytest.approx(0.2))
    assert "not Poisson samples" in statement.parameters["flaws"]
    assert statement.epsilon > read_claim("opacus", OPACUS | {"noise_multiplier": 20, "steps": 301}).epsilon
    runs = [(20, 0.01, 100), (10, 0.01, 100)]
    composed = read_claim("opacus", {"history": runs, "delta": 1e-5, "poisson_sampling": "false"})
    assert composed.mu == pytest.approx(math.hypot(2 / 20, 2 / 10))


def test_keras_shuffles_by_default_and_micro_batches_are_samples_of_their_own():
    shuffled = read_claim("jax_privacy", KERAS)
    assert (shuffled.relation, shuffled.mu) == (Relation.SUBSTITUTION, pytest.approx(2 / 2.0))  # one pass
    sampled = read_claim("jax_privacy", KERAS | {"poisson_sampling_in_fit": True})
    assert sampled.guarantee == SampledGaussian(noise_multiplier=2.0, sampling_rate=0.1, steps=10).guarantee(delta=1e-5)
    assert sampled.parameters["flaws"] is None
    micro = read_claim("jax_privacy", KERAS | {"poisson_sampling_in_fit": True, "gradient_accumulation_steps": 2})
    accounted = SampledGaussian(noise_multiplier=2.0, sampling_rate=0.2, steps=10).epsilon(delta=1e-5)
    assert micro.epsilon > accounted  # of the accountant, which forgets that both halves can hold an example
    assert "several micro-batches" in micro.parameters["flaws"]


def test_truncated_batches_count_twice_under_substitution():
    statement = read_claim("jax_privacy", SAMPLED | {"num_examples": 1_000, "truncated_batch_size": 120})
    assert statement.relation is Relation.SUBSTITUTION
    assert statement.guarantee.epsilon == pytest.approx(2 * 4.37578, abs=1e-4)  # printed by jax-privacy 2.0.0
    assert statement.guarantee.delta == pytest.approx(1e-6 * (1 + math.exp(4.37578)), rel=1e-4)
    assert "the number of training examples" in statement.exposed


def test_a_seed_voids_a_claim():
    assert read_claim("jax_privacy", KERAS | {"seed": 1}).seeded
    assert not read_claim("jax_privacy", KERAS | {"seed": None}).seeded


def test_opendp_measurements_have_their_relation_and_exact_numbers():
    assert read_claim("opendp", {"measurement": "laplace", "scale": 3}).guarantee == PureDP(math.nextafter(1 / 3, 1))
    assert read_claim("opendp", {"measurement": "gaussian", "scale": 2.0}).guarantee == ZCDP(0.125)
    for metric, relation in (("SymmetricDistance", Relation.ADD_REMOVE), ("ChangeOneDistance", Relation.SUBSTITUTION)):
        statement = read_claim("opendp", {"measurement": "geometric", "scale": 1.0, "input_metric": metric})
        assert statement.relation is relation


# -- votes of DPSDA ------------------------------------------------------------------------------------------------


def votes_by_label(votes):
    """The histogram of one client as DPSDA computes it: a vector of norm 1 for each label with texts."""
    return np.concatenate([counts / np.linalg.norm(counts) for counts in votes if counts.any()])


@pytest.mark.parametrize("labels", [1, 2, 4, 9])
def test_a_client_moves_the_votes_by_the_root_of_its_labels(labels):
    rng = np.random.default_rng(labels)
    votes = rng.integers(0, 5, size=(labels, 6)) + 1
    assert np.linalg.norm(votes_by_label(votes)) == pytest.approx(math.sqrt(labels))
    statement = read_claim("dpsda", CLIENTS | {"labels_per_client": labels})
    moved = math.sqrt(5) * np.linalg.norm(votes_by_label(votes))  # over five rounds
    assert statement.parameters["sensitivity"] == pytest.approx(moved)
    assert statement.unit is Unit.USER
    assert (statement.parameters["flaws"] is None) == (labels == 1)


def _judged(statement, guarantee):
    """Judge a guarantee by the noise of DPSDA and the votes of a client with texts of four labels, in five rounds."""
    moved = math.sqrt(5) * float(np.linalg.norm(votes_by_label(np.eye(4))))
    return judge_gaussian(
        statement.replace(guarantee=guarantee),
        sigma=statement.parameters["sigma"],
        sensitivity=moved,
        release_guarantee=guarantee,
        coverage="one client",
    )


def test_a_reader_without_the_root_of_the_labels_is_refuted():
    statement = read_claim("dpsda", CLIENTS | {"labels_per_client": 4})
    assert not _judged(statement, statement.guarantee).refuted
    broken = read_claim("dpsda", CLIENTS | {"labels_per_client": 1})  # what DPSDA states for every client
    verdict = _judged(statement, broken.guarantee)
    assert verdict.refuted
    assert verdict.loss == pytest.approx(2.12, abs=0.01)


def test_without_the_number_of_labels_there_is_no_proof():
    statement = read_claim("dpsda", CLIENTS)
    assert isinstance(statement.guarantee, NoGuarantee)
    assert "labels_per_client was not given" in statement.guarantee.reason
    assert "sqrt(k)" in statement.parameters["flaws"]
    assert "It is not proved here." in " ".join(statement.explain().split())


def test_samples_have_one_label_and_the_label_shares_are_exposed():
    settings = {"noise_multiplier": 10.0, "delta": 1e-6, "num_iterations": 4}
    statement = read_claim("dpsda", settings)
    assert statement.guarantee == ApproxDP(GaussianRelease(sigma=10.0, sensitivity=2.0).epsilon(delta=1e-6), 1e-6)
    assert (statement.unit, statement.mu) == (Unit.DOCUMENT, 0.2)
    assert any("shares of the labels" in entry for entry in statement.exposed)
    assert read_claim("dpsda", settings | {"fraction_per_label_id": [0.5, 0.5]}).exposed == ()


# -- wrong settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "settings", "message"),
    [
        ("tensorflow", {}, "tool must be one of 'opacus', 'jax_privacy', 'opendp', 'dpsda'"),
        ("opacus", OPACUS | {"sampling_rate": 0.1}, "a claim of Opacus has no 'sampling_rate', it takes 'epsilon'"),
        ("opacus", OPACUS | {"delta": None}, "delta must be a number above 0 and below 1, got None"),
        ("opacus", OPACUS | {"noise_multiplier": 0}, "noise_multiplier must be a finite number of at least 0.1"),
        ("opacus", {"history": [], "delta": 1e-5}, "history must be a list of"),
        ("opacus", {"history": [[1.0, 0.1]], "delta": 1e-5}, "history must be a list of"),
        ("opacus", OPACUS | {"unit": "word"}, "unit must be one of 'document', 'user'"),
        ("opacus", OPACUS | {"epsilon": -1}, "claimed_epsilon must be a number of at least 0"),
        ("jax_privacy", KERAS | {"train_size": None}, "train_size must be an integer of at least 1"),
        ("jax_privacy", {"noise_multiplier": 1.0, "delta": 1e-5}, "sampling_rate must be a number from 1e-09 to 1"),
        ("opendp", {"scale": 1.0}, "measurement must be one of 'laplace', 'geometric', 'gaussian'"),
        ("opendp", {"measurement": "laplace"}, "scale must be a finite number above 0, got None"),
        ("dpsda", {"delta": 1e-6, "num_iterations": 5}, "epsilon must be a finite number above 0, got None"),
        ("dpsda", CLIENTS | {"labels_per_client": 0}, "labels_per_client must be an integer of at least 1"),
    ],
)  # fmt: skip
def test_wrong_settings_are_named(tool, settings, message):
    with pytest.raises(ParameterError, match=message):
        read_claim(tool, settings)


def test_every_tool_has_settings():
    assert set(SETTINGS) == {"opacus", "jax_privacy", "opendp", "dpsda"}
    assert all({"epsilon", "delta"} <= set(names) for names in SETTINGS.values())
