"""The baselines of papers/synthesis: each finds planted classes, and spends the budget that it claims."""

import numpy as np
import pytest
from papers.sweeps import sweep

PAPERS = ("synthesis.baselines", "synthesis.corpus")
CLASSES, SIZE = 3, 20


@pytest.fixture
def planted():
    generator = np.random.default_rng(3)
    labels = generator.integers(CLASSES, size=3000)
    vectors = 0.2 * generator.normal(size=(3000, SIZE)) / np.sqrt(SIZE)
    vectors[np.arange(3000), labels] += 0.5
    return vectors, labels


def accuracy(scores, labels):
    return (scores.argmax(axis=1) == labels).mean()


def test_every_baseline_finds_planted_classes(papers, planted):
    vectors, labels = planted
    bits = np.random.default_rng(1)
    weights = papers.baselines.noisy_gradient_descent(vectors, labels, CLASSES, 0.0, 16.0, bits)
    assert accuracy(vectors @ weights[:, :-1].T + weights[:, -1], labels) > 0.95
    weights, offsets = papers.baselines.class_means(vectors, labels, CLASSES, 0.0, np.cov(vectors.T), bits)
    assert accuracy(vectors @ weights.T + offsets, labels) > 0.95
    assert accuracy(papers.baselines.histogram(labels, labels, labels, CLASSES, 1e-6, bits), labels) == 1.0
    assert accuracy(papers.baselines.label_names(vectors @ np.eye(SIZE)[:CLASSES].T), labels) > 0.95


def test_noise_of_each_baseline_is_the_one_it_claims(papers, planted):
    """Against the same call without noise, differences have the deviation claimed; 4 deviations of its estimate."""
    _, labels = planted
    sigma = 5.0
    counts = [
        np.exp(papers.baselines.histogram(np.arange(3000) % 10, np.arange(3000) % 10, labels, CLASSES, noise, bits))
        for noise, bits in ((0.0, np.random.default_rng(1)), (sigma, np.random.default_rng(1)))
    ]
    changes = (counts[1] - counts[0])[:10] * 300  # about 300 documents in each cluster
    assert changes.std() == pytest.approx(sigma * np.sqrt(2 / 3), rel=0.5)

    # One step from weights 0: the noise of T steps is sigma sqrt(T) each, so T of them are one release with sigma.
    steps, size = papers.baselines._STEPS, 1000.0
    noisy, clean = (
        papers.baselines.noisy_gradient_descent(
            np.zeros((3000, SIZE)), labels, CLASSES, noise, size, np.random.default_rng(2)
        )[:, :-1]
        for noise in (sigma, 0.0)
    )
    first = steps // 2
    # The average of w_t over the last half, w_t a sum of t steps of N(0, (size sigma sqrt(T) / n)^2).
    times = np.arange(first + 1, steps + 1)
    variance = np.minimum.outer(times, times).mean()
    expected = size * sigma * np.sqrt(steps) / 3000 * np.sqrt(variance)
    assert (noisy - clean).std() == pytest.approx(expected, rel=4 / np.sqrt(2 * CLASSES * SIZE))


def test_settings_are_distinct_and_a_report_names_the_cells_that_are_lost(papers, check_settings, tmp_path):
    settings = [setting for name in papers.baselines.POOLS for setting in papers.baselines._settings(name, quick=False)]
    check_settings(settings)
    methods = papers.baselines.METHODS
    values = {
        f"{kind}, {method}": 0.7 + 0.02 * (method == "class means")
        for kind in ("release", "corpus")
        for method in methods
    }
    rows = sweep(
        lambda _settings, seed: {name: value + 0.001 * seed for name, value in values.items()},
        settings[:2],
        (1, 2),
        path=tmp_path / "rows.jsonl",
        name="synthesis baselines",
    ).rows
    text = "\n".join(papers.baselines._tables(rows))
    assert (
        "below the best baseline in 2 of 2 cells: AG News, news, 50 (class means, by 0.020); AG News, news, 100" in text
    )
    assert "0.702 ± 0.006" in text


def test_texts_of_one_person_become_one_text_with_their_label(papers):
    texts = ("a b", "c d", " ".join("xyz" * 30), "e")
    joined, people, labels = papers.corpus._joined(texts, np.array([7, 2, 5, 7]), np.array([1, 0, 2, 1]))
    assert joined == ("c d", " ".join("xyz" * 20), "a b e")
    assert (people.tolist(), labels.tolist()) == ([2, 5, 7], [0, 2, 1])
