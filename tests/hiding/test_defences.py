"""Published defences as options of the training: their objectives, and that they run and hide something."""

import numpy as np
import pytest

from dptext.representations.additive import NormalisedLaplace
from dptext.representations.published import DPText

torch = pytest.importorskip("torch")

from dptext.hiding.encoder import HidingEncoder  # noqa: E402
from dptext.hiding.game import denial, pushed_apart  # noqa: E402


def test_denial_is_the_log_of_what_is_left_to_the_other_classes():
    answers = torch.tensor([[2.0, 0.0, -1.0], [0.5, 0.5, 3.0], [9.0, 9.0, 9.0]], dtype=torch.float64)
    shares = torch.softmax(answers, dim=1)
    result = denial(torch, answers, torch.tensor([0, 2, 1]), torch.tensor([1.0, 3.0, 0.0], dtype=torch.float64))
    target = -(torch.log(1 - shares[0, 0]) + 3 * torch.log(1 - shares[1, 2])) / 4
    assert float(result) == pytest.approx(float(target))
    sure = denial(torch, torch.tensor([[200.0, 0.0]]), torch.tensor([0]), torch.ones(1))
    assert float(sure) == pytest.approx(200.0)  # no overflow where the adversary is sure
    nobody = denial(torch, answers, torch.tensor([0, 0, 0]), torch.zeros(3, dtype=torch.float64))
    assert float(nobody) == 0.0


def test_pushed_apart_is_least_where_documents_are_opposite():
    opposite = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert float(pushed_apart(opposite)) == -4.0
    assert float(pushed_apart(torch.ones(3, 2))) == 0.0


@pytest.fixture(scope="module")
def rows():
    """(600, 6): the first two tell the task, the third one the group, which the fourth repeats."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(600, 6))
    task, group = vectors[:, 0] + vectors[:, 1] > 0, vectors[:, 2] > 0
    vectors[:, 3] = vectors[:, 2] + 0.1 * vectors[:, 3]
    return vectors, task.tolist(), group.tolist()


def told(vectors, labels):
    from sklearn.linear_model import LogisticRegression

    labels = np.array(labels)
    return LogisticRegression().fit(vectors[:300], labels[:300]).score(vectors[300:], labels[300:])


def trained(rows, randomizer=None, **options):
    vectors, task, group = rows
    options = {"dimension": 4, "epochs": 20, "learning_rate": 0.005, "seed": 1} | options
    hiding = HidingEncoder(None, randomizer, **options).fit(vectors, task=task, attributes={"group": group})
    return hiding, np.asarray(hiding.transform(vectors, seed=2), dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"aim": "deny", "alpha": 0.5}, {"aim": "oppose", "game": "reversal"}])
def test_an_adversary_hides_what_is_told_otherwise(rows, options):
    pytest.importorskip("sklearn")
    _, task, group = rows
    assert told(trained(rows, alpha=0.0)[1], group) > 0.75
    _, result = trained(rows, **options)
    assert told(result, task) > 0.85
    assert told(result, group) < 0.7


def test_declustering_keeps_the_task_and_spreads_documents(rows):
    pytest.importorskip("sklearn")
    _, task, _ = rows
    _, result = trained(rows, aim="decluster")
    assert told(result, task) > 0.85
    assert np.linalg.norm(result.mean(axis=0)) < 0.2  # on the sphere: as far apart as can be


def test_federate_learns_through_its_own_noise(rows):
    pytest.importorskip("sklearn")
    _, task, _ = rows
    hiding, result = trained(rows, NormalisedLaplace(epsilon=20.0), game="reversal", dimension=2)
    assert told(result, task) > 0.7
    assert hiding.statement_.epsilon == 20.0
    assert hiding.statement_.mechanism == "NormalisedLaplace"


def test_dptext_as_published_trains_and_promises_nothing(rows):
    hiding, result = trained(rows, DPText(epsilon=5.0, unsafe_as_published=True), epochs=2)
    assert np.isinf(hiding.statement_.epsilon)
    assert hiding.statement_.claimed_epsilon == 5.0
    assert (result >= hiding.clean(rows[0]) - 1e-6).all()
