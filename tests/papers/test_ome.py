"""The OME experiment: its one-bit channel, its public projection, its data."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from dptext.errors import DataError, StorageError
from dptext.privacy.randomness import RandomBits

PAPERS = Path(__file__).resolve().parents[2] / "papers"


def load(path):
    spec = importlib.util.spec_from_file_location(f"papers_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


projections = load(PAPERS / "ome" / "projections.py")
data_sets = load(PAPERS / "data_sets.py")


@pytest.mark.parametrize(("given", "refuted"), [(1.0, False), (1.5, True)])
def test_the_sign_keeps_its_epsilon_and_one_and_a_half_times_it_is_noticed(given, refuted):
    """10^5 draws, 5.5 standard errors: false alarm below 1e-7."""
    signs = projections.Sign(given).sample(np.ones((100_000, 1)), RandomBits(seed=3))[:, 0] > 0
    chance = 1 / (1 + math.exp(-1.0))
    assert (abs(signs.mean() - chance) > 5.5 * (chance * (1 - chance) / 100_000) ** 0.5) == refuted


def test_the_sign_is_unbiased_and_its_error_is_the_stated_one():
    channel = projections.Sign(2.0)
    draws = channel.sample(np.full((100_000, 1), -0.3), RandomBits(seed=4)).astype(float)
    assert abs(draws.mean() + 1) < 5.5 * draws.std() / 100_000**0.5
    assert np.mean((draws + 1) ** 2) == pytest.approx(channel.expected_squared_error, rel=0.05)


def test_the_first_supervised_axis_is_the_label_and_the_energy_is_shared():
    rng = np.random.default_rng(5)
    labels = np.arange(1000) % 2
    vectors = rng.normal(size=(1000, 10)) * np.arange(10, 0, -1)
    vectors[:, 9] += 3.0 * labels
    result = projections.supervised(vectors, labels, 4)
    mapped = (vectors - result.centre) @ result.axes
    assert np.abs(np.corrcoef(mapped[:, 0], labels)[0, 1]) > 0.7
    assert mapped[:, 0].var() == pytest.approx(1.0)
    assert mapped[:, 1:].var(axis=0).sum() == pytest.approx(1.0)
    assert np.abs(np.corrcoef(mapped.T)[0, 1:]).max() < 0.05
    np.testing.assert_allclose(np.linalg.norm(result(vectors), axis=1), 1.0)


def test_the_loader_reads_sentences_and_refuses_other_files(tmp_path):
    folder = tmp_path / "sentiment_labelled"
    folder.mkdir()
    for file in data_sets.SENTIMENT.values():
        (folder / file).write_text("so\ttabbed, good \t1\nbad\u0085line\t0\n\n", encoding="utf-8")
    result = data_sets.sentiment_labelled(tmp_path)
    assert list(result) == ["IMDb", "Amazon", "Yelp"]
    assert result["Yelp"].texts == ("so\ttabbed, good", "bad\u0085line")
    assert result["Yelp"].labels.tolist() == [1, 0]
    (folder / "imdb_labelled.txt").write_text("no label\n")
    with pytest.raises(DataError, match="a tab and 0 or 1"):
        data_sets.sentiment_labelled(tmp_path)
    (folder / "imdb_labelled.txt").unlink()
    with pytest.raises(StorageError, match="cannot read"):
        data_sets.sentiment_labelled(tmp_path)
    with pytest.raises(StorageError, match="--data"):
        data_sets.data_folder(str(tmp_path / "absent"))
