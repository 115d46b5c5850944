"""papers/dptext/defences.py: a learnt budget stays below its cap, and the other games and aims hide an attribute."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import dptext
from dptext.hiding.inputs import check_targets
from dptext.hiding.training import HidingOptions
from dptext.privacy.guarantee import NoGuarantee, PureDP
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import NormalisedLaplace
from dptext.representations.published import DPText

PAPERS = ("dptext.defences",)
torch = pytest.importorskip("torch")
SAFE = {"unsafe_as_published": True}


@pytest.fixture(scope="module")
def defences(papers):
    return papers.defences


@pytest.fixture(scope="module")
def rows():
    """(600, 6): the first two coordinates determine the task, the third one the group, which the fourth repeats."""
    vectors = np.random.default_rng(1).normal(size=(600, 6))
    task, group = vectors[:, 0] + vectors[:, 1] > 0, vectors[:, 2] > 0
    vectors[:, 3] = vectors[:, 2] + 0.1 * vectors[:, 3]
    return vectors, task, group


def trained(defences, rows, randomizer=None, **options):
    vectors, task, group = rows
    usual = {"dimension": 4, "epochs": 20, "batch_size": 64, "learning_rate": 0.005, "seed": 1, "public": True}
    encoder = defences.DefendedEncoder(None, randomizer, **usual | options)
    encoder.fit(vectors, task=task.tolist(), attributes={"group": group.tolist()})
    return encoder, np.asarray(encoder.transform(vectors, seed=2), dtype=float)


def readable(vectors, labels):
    return LogisticRegression().fit(vectors[:300], labels[:300]).score(vectors[300:], labels[300:])


def test_games_and_aims_hide_an_attribute_and_keep_the_task(defences, rows):
    _, task, group = rows
    assert readable(trained(defences, rows, alpha=0.0)[1], group) > 0.75
    for options in ({"aim": "deny", "alpha": 0.5}, {"game": "reversal"}):
        private = trained(defences, rows, **options)[1]
        assert readable(private, task) > 0.85
        assert readable(private, group) < 0.7
    spread = trained(defences, rows, aim="decluster")[1]
    assert readable(spread, task) > 0.85
    assert np.linalg.norm(spread.mean(axis=0)) < 0.2  # on the sphere: as far apart as possible
    federate, private = trained(defences, rows, NormalisedLaplace(epsilon=20.0), game="reversal", dimension=2)
    assert readable(private, task) > 0.7
    assert (federate.statement_.epsilon, federate.statement_.mechanism) == (20.0, "NormalisedLaplace")


# -- the learnt budget ---------------------------------------------------------------------------------------------


def test_learnt_budget_scales_the_noise_of_the_cap_with_a_gradient(defences):
    channel = dptext.L2Laplace(epsilon=4.0).channel(4)
    targets = check_targets(4, [0, 1, 0, 1], {"group": [0, 0, 1, 1]})
    game = defences.DefenceGame(
        *(torch, torch.nn.Identity(), channel, targets, HidingOptions(dimension=4)),
        game="alternating",
        aim="oppose",
        learn=True,
    )
    game.bits = RandomBits(1)
    wide = game.add(torch.zeros(2, 4))
    at_cap = channel.sample(np.zeros((2, 4)), RandomBits(1))
    np.testing.assert_allclose(wide.detach().numpy() * game.share, at_cap, rtol=1e-5)
    (wide**2).sum().backward()
    assert game.theta.grad < 0  # less noise with a larger budget
    with torch.no_grad():
        game.theta.fill_(50.0)
    assert game.share <= 1.0


def test_capped_noise_has_the_guarantee_or_the_claim_of_the_cap_and_is_larger(defences):
    capped = defences.CappedLaplace(epsilon=4.0, share=0.5)
    assert capped.statement(8).guarantee == PureDP(4.0)
    assert capped.expected_squared_error(8) == dptext.L2Laplace(epsilon=2.0).expected_squared_error(8)

    def audited(randomizer):
        return dptext.audit(randomizer, capped.statement(2), dimension=2, samples=40_000, seed=1)

    assert not audited(capped).refuted
    assert audited(dptext.L2Laplace(epsilon=8.0)).refuted  # a broken guarantee is detected
    learnt, fixed = defences.CappedDPText(epsilon=2.0, share=0.25, **SAFE), DPText(epsilon=0.5, **SAFE)
    x = np.zeros((3, 4))
    assert learnt.randomize(x, seed=1).tolist() == fixed.randomize(x, seed=1).tolist()
    statement = learnt.statement(4)
    assert (statement.claimed_epsilon, statement.epsilon) == (2.0, np.inf)
    assert isinstance(statement.guarantee, NoGuarantee)


def test_learnt_budget_is_stated_as_its_cap(defences, rows):
    for noise, epsilon in ((dptext.L2Laplace(epsilon=9.0), 9.0), (DPText(epsilon=400.0, **SAFE), np.inf)):
        encoder, _ = trained(defences, rows, noise, learn_epsilon=True, epochs=2)
        assert encoder.statement().epsilon == epsilon
        assert 0 < encoder.randomizer_.share == encoder.budgets_[encoder.best_ - 1].share < 1
        assert encoder.randomizer_.share != pytest.approx(1 / (1 + np.exp(-2.0)), abs=1e-4)  # it moved
        assert len(encoder.budgets_) == 2
    with pytest.raises(dptext.DptextError, match="pass L2Laplace or DPText"):
        trained(defences, rows, dptext.PrivUnit(epsilon=8.0), learn_epsilon=True)
