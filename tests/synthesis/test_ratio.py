"""`LogRatio`: planted classes are found, noise is not mistaken for signal, and every score is finite."""

import math

import numpy as np
import pytest

from dptext.synthesis.density import LogRatio

B = 0.2


def released(vectors, classes, count, *, sigma, generator, b=B):
    """Return noisy sums of rows [b, sqrt(1 - b^2) v]."""
    rows = np.hstack([np.full((len(vectors), 1), b), math.sqrt(1 - b * b) * vectors])
    sums = np.stack([rows[classes == index].sum(axis=0) for index in range(count)])
    return sums + sigma * generator.normal(size=sums.shape)


def spread(size):
    return np.linspace(0.02, 0.16, size)


def planted(generator, count=4000, size=20, classes=3, gap=0.4, shares=None):
    """Return classes with one covariance whose means differ where vectors vary much, like vectors of texts."""
    centres = gap * np.eye(size)[-classes:]
    labels = generator.choice(classes, size=count, p=shares)
    return centres[labels] + spread(size) * generator.normal(size=(count, size)), labels


@pytest.fixture
def generator():
    return np.random.default_rng(5)


def fitted(generator, *, sigma, count=4000, **changed):
    vectors, labels = planted(generator, count=count, **changed)
    pool, truth = planted(generator, count=3000, **changed)
    matrix = released(vectors, labels, changed.get("classes", 3), sigma=sigma, generator=generator)
    return LogRatio.fit(matrix, sigma, B, pool.mean(axis=0), np.cov(pool.T)), pool, truth


def accuracy(ratio, pool, truth):
    return float((ratio.weigh(pool).scores.argmax(axis=1) == truth).mean())


def test_planted_classes_are_found(generator):
    """Nearly as accurate as with known means: false alarms far below 1e-6 (the accuracy has a deviation of .004)."""
    ratio, pool, truth = fitted(generator, sigma=4.2)
    centres = 0.4 * np.eye(20)[-3:]
    inverse = np.diag(spread(20) ** -2.0)
    scores = pool @ inverse @ centres.T - 0.5 * np.einsum("ij,jk,ik->i", centres, inverse, centres)
    best = float((scores.argmax(axis=1) == truth).mean())
    assert best > 0.9
    assert accuracy(ratio, pool, truth) > best - 0.03


def test_weights_are_those_of_fisher_without_noise(generator):
    vectors, labels = planted(generator, count=20_000)
    matrix = released(vectors, labels, 3, sigma=0.0, generator=generator)
    covariance = np.cov(vectors.T)
    ratio = LogRatio.fit(matrix, 0.0, B, vectors.mean(axis=0), covariance)
    means = np.stack([vectors[labels == index].mean(axis=0) for index in range(3)])
    fisher = np.linalg.solve(covariance, (means - ratio.shares @ means).T).T
    cosine = (ratio.weights * fisher).sum() / np.linalg.norm(ratio.weights) / np.linalg.norm(fisher)
    assert cosine > 0.99


def test_noise_alone_gives_small_weights():
    """Most of 15 releases of pure noise leave the weights near 0; in none do scores spread as planted ones do."""
    spreads = []
    for seed in range(15):
        generator = np.random.default_rng(seed)
        pool, _ = planted(generator, count=500)
        matrix = 4.2 * generator.normal(size=(3, 21))
        ratio = LogRatio.fit(matrix, 4.2, B, pool.mean(axis=0), np.cov(pool.T))
        scores = ratio.weigh(pool).scores
        assert np.isfinite(scores).all()
        spreads.append(float((scores - ratio.weigh(pool).nearness[:, None]).std(axis=0).max()))
    planted_ratio, pool, _ = fitted(np.random.default_rng(0), sigma=4.2)
    usual = float((planted_ratio.weigh(pool).scores - planted_ratio.weigh(pool).nearness[:, None]).std(axis=0).max())
    assert np.median(spreads) < 0.05 * usual
    assert max(spreads) < usual


def test_shrinkage_grows_with_the_stated_noise(generator):
    vectors, labels = planted(generator)
    pool, _ = planted(generator, count=1000)
    matrix = released(vectors, labels, 3, sigma=0.0, generator=generator)
    fits = [LogRatio.fit(matrix, sigma, B, pool.mean(axis=0), np.cov(pool.T)) for sigma in (0.0, 10.0, 40.0, 160.0)]
    sizes = [np.linalg.norm(ratio.weights) for ratio in fits]
    assert sizes == sorted(sizes, reverse=True)


def test_known_noise_beats_no_noise():
    """The known-broken version inverts the covariance as if there were no noise; few users, so the noise is large."""
    wins = []
    for seed in range(3):
        generator = np.random.default_rng(seed)
        pool, truth = planted(generator, count=2000, size=60, gap=0.3)
        vectors, labels = planted(generator, count=300, size=60, gap=0.3)
        matrix = released(vectors, labels, 3, sigma=4.2, generator=generator)
        moments = pool.mean(axis=0), np.cov(pool.T)
        sound, naive = (LogRatio.fit(matrix, sigma, B, *moments) for sigma in (4.2, 0.0))
        wins.append(accuracy(sound, pool, truth) - accuracy(naive, pool, truth))
    assert np.mean(wins) > 0.03


def described_accuracy(people, *, sign=1.0, seeds=range(5), described=True):
    """The mean accuracy with few users and descriptions that point, with some error, to the classes (or away)."""
    results = []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        pool, truth = planted(generator, count=1500, size=60, gap=0.3)
        vectors, labels = planted(generator, count=people, size=60, gap=0.3)
        matrix = released(vectors, labels, 3, sigma=4.2, generator=generator)
        directions = sign * np.eye(60)[-3:] + 0.1 * generator.normal(size=(3, 60))
        moments = pool.mean(axis=0), np.cov(pool.T)
        ratio = LogRatio.fit(matrix, 4.2, B, *moments, directions if described else None)
        results.append((accuracy(ratio, pool, truth), ratio.trust))
    return np.mean(results, axis=0)


def test_descriptions_help_with_few_users_and_are_overruled_by_many():
    """Both accuracies have a deviation below .06 over five seeds."""
    assert described_accuracy(30)[0] > described_accuracy(30, described=False)[0] + 0.2
    opposite, trust = described_accuracy(5000, sign=-1.0)
    plain, none = described_accuracy(5000, described=False)
    assert trust < 0
    assert none == 0
    assert opposite > plain - 0.02


def test_descriptions_alone_give_every_class_texts(generator):
    pool, _ = planted(generator, count=1500, size=60, gap=0.3)
    matrix = 4.2 * generator.normal(size=(3, 61))
    ratio = LogRatio.fit(matrix, 4.2, B, pool.mean(axis=0), np.cov(pool.T), np.eye(60)[-3:])
    assert np.bincount(ratio.weigh(pool).scores.argmax(axis=1), minlength=3).min() > 0.15 * len(pool)


def unit_rows(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_descriptions_are_corrected_by_the_covariance_of_the_pool():
    """Descriptions with noise in directions that texts hardly use: better than cosines to them, with 30 users."""
    gains = []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        pool, truth = planted(generator, count=1500, size=60, gap=0.3)
        vectors, labels = planted(generator, count=30, size=60, gap=0.3)
        matrix = released(vectors, labels, 3, sigma=4.2, generator=generator)
        directions = unit_rows(np.eye(60)[-3:] + 0.4 * generator.normal(size=(3, 60)))
        ratio = LogRatio.fit(matrix, 4.2, B, pool.mean(axis=0), np.cov(pool.T), directions)
        alone = (pool - pool.mean(axis=0)) @ (directions - directions.mean(axis=0)).T
        gains.append(accuracy(ratio, pool, truth) - float((alone.argmax(axis=1) == truth).mean()))
    assert np.mean(gains) > 0.03


def test_descriptions_have_no_effect_without_noise(generator):
    """Without noise, the weights are about the same with descriptions, right or wrong, and without."""
    vectors, labels = planted(generator, count=20_000)
    matrix = released(vectors, labels, 3, sigma=0.0, generator=generator)
    moments = vectors.mean(axis=0), np.cov(vectors.T)
    plain = LogRatio.fit(matrix, 1e-6, B, *moments).weights
    for directions in (np.eye(20)[-3:], -np.eye(20)[-3:], generator.normal(size=(3, 20))):
        weights = LogRatio.fit(matrix, 1e-6, B, *moments, directions).weights
        np.testing.assert_allclose(weights, plain, atol=0.05 * np.abs(plain).max())


def test_a_block_unrelated_to_the_descriptions_is_ignored():
    """Half of the features do not vary with the classes, and their part of the descriptions is arbitrary."""
    results = []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        known, truth = planted(generator, count=1500, gap=0.3)
        vectors, labels = planted(generator, count=30, gap=0.3)
        pool, private = (np.hstack([rows, 0.2 * generator.normal(size=rows.shape)]) for rows in (known, vectors))
        matrix = released(private, labels, 3, sigma=4.2, generator=generator)
        directions = np.hstack([np.eye(20)[-3:], unit_rows(generator.normal(size=(3, 20)))]) / np.sqrt(2)
        inputs = matrix, 4.2, B, pool.mean(axis=0), np.cov(pool.T), directions
        fits = LogRatio.fit(*inputs), LogRatio.fit(*inputs, (20, 20)), LogRatio.fit(*inputs, (20, 20), leading=1)
        results.append([accuracy(ratio, pool, truth) for ratio in fits])
    one_block, right, wrong = np.mean(results, axis=0)
    assert right > one_block + 0.05
    assert right > wrong + 0.2


def test_blocks_that_agree_count_alike(generator):
    """The second block is a copy of the first one: with it, the ratio is as if there were one block."""
    vectors, _ = planted(generator, count=1500)
    pool, directions = np.hstack([vectors, vectors]), np.hstack([np.eye(20)[-3:]] * 2)
    inputs = 4.2 * generator.normal(size=(3, 41)), 4.2, B, pool.mean(axis=0), np.cov(pool.T), directions
    np.testing.assert_allclose(LogRatio.fit(*inputs, (20, 20)).weights, LogRatio.fit(*inputs).weights, atol=1e-9)


def test_empty_classes_are_never_likeliest(generator):
    vectors, labels = planted(generator)
    pool, truth = planted(generator, count=1000)
    sums = released(vectors, labels, 3, sigma=0.0, generator=generator)
    matrix = np.vstack([sums, np.zeros((2, 21))]) + 4.2 * generator.normal(size=(5, 21))
    ratio = LogRatio.fit(matrix, 4.2, B, pool.mean(axis=0), np.cov(pool.T))
    assert ratio.shares[3:].sum() < 0.05
    assert (ratio.weigh(pool).scores.argmax(axis=1) == truth).mean() > 0.85


def test_rotations_and_the_order_of_classes_do_not_matter(generator):
    vectors, labels = planted(generator, shares=[0.6, 0.3, 0.1])
    pool, _ = planted(generator, count=1000)
    matrix = released(vectors, labels, 3, sigma=4.2, generator=generator)
    mean, covariance = pool.mean(axis=0), np.cov(pool.T)
    plain = LogRatio.fit(matrix, 4.2, B, mean, covariance)
    turn = np.linalg.qr(generator.normal(size=(20, 20)))[0]
    turned = np.hstack([matrix[:, :1], matrix[:, 1:] @ turn])
    other = LogRatio.fit(turned, 4.2, B, mean @ turn, turn.T @ covariance @ turn)
    np.testing.assert_allclose(other.weigh(pool @ turn).scores, plain.weigh(pool).scores, atol=1e-6)
    np.testing.assert_allclose(other.weigh(pool @ turn).nearness, plain.weigh(pool).nearness, atol=1e-6)
    order = [2, 0, 1]
    scores = LogRatio.fit(matrix[order], 4.2, B, mean, covariance).weigh(pool).scores
    np.testing.assert_allclose(scores, plain.weigh(pool).scores[:, order], atol=1e-9)


def test_nearness_finds_the_domain(generator):
    people, labels = planted(generator)
    strangers = generator.normal(size=(3000, 20)) * spread(20) - 0.15
    pool = np.vstack([strangers, people[:500]])
    matrix = released(people, labels, 3, sigma=4.2, generator=generator)
    ratio = LogRatio.fit(matrix, 4.2, B, pool.mean(axis=0), np.cov(pool.T))
    near = ratio.weigh(pool).nearness
    assert abs(ratio.weigh(people).nearness.mean()) < 0.15 * near.std()
    assert (near[3000:, None] > near[None, :3000]).mean() > 0.95
    same_domain, pool, _ = fitted(generator, sigma=4.2)
    assert same_domain.weigh(pool).nearness.std() < 0.5


def test_one_class_has_shares_and_a_nearness(generator):
    vectors, _ = planted(generator)
    pool = generator.normal(size=(500, 20)) * 0.1
    matrix = released(vectors, np.zeros(len(vectors), dtype=int), 1, sigma=4.2, generator=generator)
    ratio = LogRatio.fit(matrix, 4.2, B, pool.mean(axis=0), np.cov(pool.T))
    assert ratio.shares.tolist() == [1.0]
    np.testing.assert_allclose(ratio.weigh(pool).scores[:, 0], ratio.weigh(pool).nearness)
    assert ratio.domain.any()


def test_every_score_is_finite():
    vectors = np.vstack([np.eye(3), np.zeros((1, 3))])
    for matrix in (np.zeros((2, 4)), -np.ones((2, 4)), np.full((2, 4), 1e9), np.full((2, 4), 1e-9)):
        for sigma in (0.0, 1e-6, 1e6):
            for covariance in (np.zeros((3, 3)), np.eye(3), np.diag([1.0, 1e-12, 0.0])):
                ratio = LogRatio.fit(matrix, sigma, B, np.zeros(3), covariance)
                assert np.isfinite(ratio.weigh(vectors).scores).all()
                assert np.isfinite(ratio.weigh(vectors).nearness).all()
                assert ratio.shares.sum() == pytest.approx(1)
                assert ratio.weigh(np.zeros((0, 3))).scores.shape == (0, 2)
