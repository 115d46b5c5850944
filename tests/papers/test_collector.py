"""papers/collector: the text and the label of a message share its budget, and contributions of two servers add up."""

import math

import numpy as np
import pytest

from dptext import BankRewriter, PrivUnit
from dptext.noise.subset_selection import SubsetSelection

PAPERS = ("collector.experiment",)


def test_settings_are_distinct(papers, check_settings):
    for quick in (False, True):
        check_settings([*papers.experiment.settings_of(quick=quick)])


@pytest.fixture
def bench(papers, monkeypatch):
    """Two classes of texts, without files."""
    module = papers.experiment
    texts = tuple(f"{('tea and cocoa', 'tax and law')[row % 2]} of {row}" for row in range(80))
    pool = tuple(f"{('a cup of tea', 'a new law')[row % 2]}, {row}" for row in range(30))
    labels = np.arange(80) % 2
    split = module.Split(texts, labels, np.arange(80), pool, None, texts, labels, ("drinks", "rules"))
    task = module.Task(split, texts, labels)
    monkeypatch.setattr(module, "task_of", lambda *_: task)
    module._bank.cache_clear()
    module._plan.cache_clear()
    yield module.Bench(None)
    module._bank.cache_clear()
    module._plan.cache_clear()


@pytest.mark.parametrize("arm", ["bank", "encode"])
@pytest.mark.parametrize("label", ["noisy", "clear"])
def test_text_and_label_share_the_budget_of_a_message(papers, bench, monkeypatch, arm, label):
    spent = []

    def noted(kind):
        def make(*arguments, **options):
            result = kind(*arguments, **options)
            spent.append(result.epsilon)
            return result

        return make

    for kind in (BankRewriter, PrivUnit, SubsetSelection):
        monkeypatch.setattr(papers.experiment, kind.__name__, noted(kind))
    numbers = bench.cell({"data": "news", "arm": arm, "crowd": 10_000, "label": label}, 1)
    users = 10_000 if label == "noisy" else 5_000
    assert math.isclose(sum(spent), numbers["local epsilon"])
    assert numbers["local epsilon"] == papers.experiment.local_epsilon(1.0, users, 1e-6)
    assert 0 <= numbers["relinked"] <= 1


def test_two_servers_have_the_noise_of_two_curators(papers, bench):
    task = papers.experiment.task_of(bench, "news", 1)
    one, two = (bench._distribution("news", task, 1, by_servers=by_servers) for by_servers in (False, True))
    assert math.isclose(two.sigma, math.sqrt(2) * one.sigma)
    # without noise both are the same sum: they differ by less than 6 standard deviations (false alarms: about 1e-6)
    assert np.abs(one.matrix - two.matrix).max() < 6 * math.hypot(one.sigma, two.sigma)
