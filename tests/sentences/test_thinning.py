import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError
from dptext.noise.subset_selection import best_size
from dptext.sentences.bank import default_size, optimal_weights
from dptext.vectors.nearest_sets import NearestSets


def clustered(count, rng, clusters=40, dimension=24):
    """Unit vectors in grids of 2^-15: tight and loose clusters, so that some stand better for others."""
    centres = rng.standard_normal((clusters, dimension))
    points = centres[rng.integers(clusters, size=count)] + 0.7 * rng.standard_normal((count, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return (np.trunc(points * 2**15) / 2**15).astype(np.float32)


def expected_similarity(bank, queries, epsilon):
    """Of a draw at the best k."""
    profile = NearestSets(bank).profile(queries)
    size = best_size(epsilon, profile)
    return profile.expected(size, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_a_thinned_bank_is_nearer_to_texts_that_it_never_saw(epsilon):
    rng = np.random.default_rng(5)
    vectors = clustered(2300, rng)
    bank, held_out = vectors[:2000], vectors[2000:]
    floor = optimal_weights(bank, epsilon)
    best = np.sort(np.argsort(-floor, kind="stable")[: default_size(floor)])
    worst = np.sort(np.argsort(floor, kind="stable")[: best.size])
    every = expected_similarity(bank, held_out, epsilon)
    assert expected_similarity(bank[best], held_out, epsilon) > every + 0.005
    assert expected_similarity(bank[worst], held_out, epsilon) < every


@pytest.mark.slow
def test_equal_banks_are_thinned_alike(monkeypatch):
    vectors = clustered(500, np.random.default_rng(2))
    once = optimal_weights(vectors, 3.0)
    monkeypatch.setattr("dptext.threads.available_cores", lambda: 1)
    assert (optimal_weights(vectors, 3.0) == once).all()


def test_a_thinned_bank_is_a_bank(tmp_path):
    texts = [f"{entry} {other}" for entry in ("tea", "milk", "tax", "law", "dog") for other in ("here", "there", "now")]
    bank = dptext.TextBank(texts, encoder="words", cache=False, name="things", licence="CC0-1.0")
    thin = bank.thinned(1.0, texts=6)
    assert (len(thin), thin.name, thin.licence) == (6, "things, thinned", "CC0-1.0")
    assert set(thin.texts) < set(bank.texts)
    assert thin.fingerprint != bank.fingerprint
    assert (thin.vectors == bank.vectors[[texts.index(text) for text in thin.texts]]).all()
    thin.save(tmp_path / "thin")
    assert dptext.TextBank.load(tmp_path / "thin").fingerprint == thin.fingerprint
    assert 3 <= len(bank.thinned(1.0)) <= len(bank)


def test_what_cannot_be_thinned_is_refused():
    for epsilon, texts in [(0.0, 4), (30.0, 4), (1.0, 2), (1.0, 10)]:
        bank = dptext.TextBank(["tea", "milk", "tax", "law", "dog", "cat"], encoder="words", cache=False)
        with pytest.raises(ParameterError, match="must be"):
            bank.thinned(epsilon, texts=texts)
