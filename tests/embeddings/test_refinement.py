"""The fit of equation (model) finds the planted signal, and noise alone gives none."""

import numpy as np
import pytest

from dptext.embeddings.refinement import bands, filtered, improved, news, public_base

WORDS, WIDTH = 2000, 8


def planted(sigma, *, seed=1, news_size=1.0):
    """Return Y, t, e and n of equation (model)."""
    generator = np.random.default_rng(seed)
    public = generator.normal(size=(WORDS, 6))
    slope, intercept = generator.normal(size=(6, WIDTH)), 3 * generator.normal(size=WIDTH)
    added = news_size * generator.normal(size=(WORDS, WIDTH))
    strength = 40 / np.sqrt(1 + np.arange(WORDS)) * np.exp(0.3 * generator.normal(size=WORDS))
    noisy = strength[:, None] * (public @ slope + intercept + added) + sigma * generator.normal(size=(WORDS, WIDTH))
    direction = intercept / np.linalg.norm(intercept)
    return noisy, public, added - np.outer(added @ direction, direction), direction


def test_bands_contain_every_word_once():
    for words in (1, 199, 200, 301, 20_000, 400_000):
        places = [place for band in bands(words) for place in range(band.start, band.stop)]
        assert places == list(range(words))


def test_the_contribution_of_the_corpus_is_found():
    noisy, public, added, direction = planted(0.1, news_size=0.5)
    result = news(noisy, 0.1, public, np.ones(WORDS, dtype=bool))
    assert np.abs(result.guess @ direction).max() < 0.2
    assert np.corrcoef(result.guess[:500].ravel(), added[:500].ravel())[0, 1] > 0.8


def test_estimates_shrink_with_the_noise():
    sizes = []
    for sigma in (0.0, 1.0, 4.0, 16.0, 64.0):
        noisy, public, *_ = planted(sigma)
        sizes.append(float(np.linalg.norm(news(noisy, sigma, public, np.ones(WORDS, dtype=bool)).guess)))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.1 * sizes[0]


def test_noise_alone_leaves_public_vectors_unchanged():
    for seed in range(5):
        generator = np.random.default_rng(seed)
        base = public_base(generator.normal(size=(WORDS, 6)).astype(np.float32), WORDS - 1)
        noisy = 0.65 * generator.normal(size=(WORDS, WIDTH))
        assert np.abs(improved(noisy, 0.65, base, np.ones(WORDS, dtype=bool)) - base).max() == 0


def test_the_filter_is_the_best_linear_estimate():
    generator = np.random.default_rng(2)
    signal = generator.normal(size=(5000, 4)) * [3.0, 1.0, 0.8, 0.0]
    guess, covariance = filtered(signal + generator.normal(size=signal.shape), 1.0)
    assert np.diag(covariance) == pytest.approx([9, 1, 0.64, 0], abs=0.5)
    target = signal.var(axis=0) / (signal.var(axis=0) + 1)
    error = ((guess - signal) ** 2).mean(axis=0)
    assert error[:3] == pytest.approx(target[:3], abs=0.05)
    assert error[3] < 0.01


def test_words_without_public_vectors_get_vectors_from_their_contexts():
    noisy, public, *_ = planted(0.05, news_size=0.2)
    base = public_base(public.astype(np.float32), WORDS - 1)
    known = np.delete(base, np.s_[1800:], axis=0)
    result = improved(noisy, 0.05, known, np.ones(WORDS, dtype=bool))[1800:]
    cosine = (result * base[1800:]).sum(axis=1) / np.linalg.norm(result, axis=1) / np.linalg.norm(base[1800:], axis=1)
    assert np.median(cosine) > 0.7


def test_public_vectors_without_a_direction_are_allowed():
    assert not public_base(np.ones((5, 3), dtype=np.float32), 4).any()
