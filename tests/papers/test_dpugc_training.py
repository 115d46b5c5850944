"""Part two of papers/dpugc on made-up texts: users, the paper's deltas, trainings, and the quick form."""

import math
from contextlib import ExitStack

import numpy as np
import pytest
from papers.dpugc.trained import follow_unclipped

import dptext
from dptext.embeddings.training import Scratch
from dptext.privacy.gaussian import SampledGaussian
from embeddings.dpsgd.test_clipping import DIMENSION, autograd_gradient, pairs_of, tables_of

PAPERS = ("dpugc.models", "dpugc.trained", "dpugc.training", "dpugc.training_report")


@pytest.fixture(scope="module")
def documents(glove):
    rows = np.random.default_rng(1).integers(0, 300, (60, 40))
    return [dptext.Document(" ".join(glove.words[row] for row in entry), user=str(n)) for n, entry in enumerate(rows)]


def test_the_printed_deltas_take_the_vocabulary_as_the_number_of_examples(papers):
    published = papers.training_report
    options = {"sigma": 5.0, "epsilon": 0.125, "orders": 32}
    for steps, printed in published.PRINTED.items():
        result, _ = published.moments_delta(steps, rate=published.LOT / published.VOCABULARY, **options)
        assert result == pytest.approx(printed, abs=7e-5), steps
    of_text8, order = published.moments_delta(100_000, rate=published.LOT / published.TEXT8_PAIRS, **options)
    assert of_text8 == pytest.approx(math.exp(-32 * 0.125), rel=1e-4)  # no loss: only the largest order
    assert order == 32


def test_the_loss_of_one_pair_is_that_of_a_poisson_sample_and_a_user_loses_more(papers):
    costs = papers.training_report.measure_costs
    one = costs({"of": "a pair of 50,000", "steps": 10_000}, 1)
    account = SampledGaussian(noise_multiplier=5.0, sampling_rate=128 / 50_000, steps=10_000)
    assert one["epsilon"] == pytest.approx(account.epsilon(delta=1e-6), rel=5e-3)
    assert one["delta"] < one["moments delta"] / 100  # the accountant's bound, not the training's loss
    pair, user = (costs({"of": f"a {of}", "steps": 10_000}, 1) for of in ("pair of text8", "user of myPersonality"))
    assert user["epsilon"] > 10 * pair["epsilon"]


def test_without_clipping_each_unit_is_followed_at_once():
    tables, pairs = tables_of(2), pairs_of(2, 30)
    expected = tables - 0.1 * autograd_gradient(tables, pairs[:10])
    expected -= 0.1 * autograd_gradient(expected, pairs[10:])
    scratch = Scratch.of(len(tables), pairs.size, DIMENSION)
    offsets = np.zeros(len(tables), dtype=np.float32)
    follow_unclipped(tables, offsets, pairs, np.array([10, 30]), 0.1, True, scratch)
    assert np.abs(tables - expected).max() < 1e-5


def test_vectors_after_the_last_step_are_those_of_the_library(papers, documents, glove):
    public = dptext.load_vectors((glove.words[:300], glove.matrix[:300]))
    schedule = papers.trained.Schedule(words=300, dimension=8, marks=(0, 2, 5), rate=0.5, pairs=20, pair_marks=(3,))
    with ExitStack() as opened:
        trainings = papers.trained.Trainings(public, papers.models.Corpus("x", documents), schedule, opened)
        start, middle, end = (trainings.vectors("private", 8.0, mark, 1) for mark in schedule.marks)
        none, few, all_steps = (
            trainings.spent({"model": "private", "epsilon": 8.0, "steps": steps}, 1)["spent"] for steps in (0, 2, 5)
        )
        assert none == 0 < few < all_steps <= 8
        less = trainings.vectors("simulated: 100 times the people", 8.0, 5, 1)
        clipped = trainings.vectors("clipped", None, 5, 1)
    options = {"steps": 5, "sampling_rate": 0.5, "pairs": 20, "public_users": 60, "distance": 1000, "seed": 1}
    model = dptext.SkipGram(public, dimension=8, epsilon=8.0, **options).fit(documents)
    assert np.array_equal(end.matrix, model.vectors_.matrix)
    assert not np.array_equal(start.matrix, middle.matrix)
    far, near = (np.abs(entry.matrix - clipped.matrix).max() for entry in (end, less))
    assert near < far / 3  # a hundredth of the noise, but other gradients after it


def test_the_quick_form_resumes_and_reports(papers, documents, tmp_path, monkeypatch):
    training = papers.training
    schedule = papers.trained.Schedule(words=2000, dimension=4, marks=(0, 2), rate=0.5, pairs=5, pair_marks=(0, 3))
    trained = (("plain", None, 2), ("private", 8.0, 2), ("private pairs", 8.0, 1))
    plan = training.Plan(schedules={"text8": schedule}, trained=trained, pairs={"text8": 5}, runs=(1, 2), resamples=10)
    monkeypatch.setattr(training, "QUICK", plan)
    monkeypatch.setattr(training, "WORDS_LIMIT", 2000)
    monkeypatch.setattr(training, "text8_users", lambda _: iter(documents))
    arguments = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--parts", "steps", "--quick"]
    arguments += ["--corpora", "--text8", str(tmp_path / "text8")]
    training.main(arguments)
    rows = (tmp_path / "out" / "steps_text8.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + 2 + 4 + 2  # the header; plain without the gold model; private; pairs
    training.main(arguments)
    assert (tmp_path / "out" / "steps_text8.jsonl").read_text(encoding="utf-8").splitlines() == rows
    text = (tmp_path / "out" / "training.md").read_text(encoding="utf-8")
    assert "MAP-Word, text8, noise for users" in text
    assert "no guarantee" in text
    assert (tmp_path / "out" / "training.png").exists()
