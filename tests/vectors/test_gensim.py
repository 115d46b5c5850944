"""Through gensim itself and back, where it is installed: nothing changes."""

import numpy as np
import pytest

import dptext

models = pytest.importorskip("gensim.models")


@pytest.mark.parametrize(("name", "binary"), [("v.bin", True), ("v.txt", False), ("v.vec", False)])
def test_what_gensim_reads_of_ours_comes_back_with_the_same_fingerprint(glove, tmp_path, name, binary):
    vectors = dptext.load_vectors(glove, limit=3_000)
    dptext.save_vectors(vectors, tmp_path / name)
    keyed = models.KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=binary)
    assert keyed.index_to_key == list(vectors.words)
    assert np.array_equal(keyed.vectors, vectors.matrix)
    assert dptext.load_vectors(keyed).fingerprint == vectors.fingerprint


@pytest.mark.parametrize("binary", [True, False])
def test_what_gensim_writes_is_read_as_it_was(glove, tmp_path, binary):
    vectors = dptext.load_vectors(glove, limit=500)
    keyed = models.KeyedVectors(vectors.dimension)
    keyed.add_vectors(list(vectors.words), np.asarray(vectors.matrix))
    path = tmp_path / ("v.bin" if binary else "v.txt")
    keyed.save_word2vec_format(str(path), binary=binary)
    assert dptext.load_vectors(path).fingerprint == vectors.fingerprint


def test_a_trained_model_is_taken_as_it_is():
    sentences = [["the", "doctor", "lied"], ["the", "nurse", "sang"]] * 5
    model = models.Word2Vec(sentences, vector_size=4, min_count=1, epochs=1, workers=1, seed=1)
    vectors = dptext.load_vectors(model)
    assert set(vectors.words) == {"the", "doctor", "lied", "nurse", "sang", "<unk>"}
    assert np.array_equal(vectors["doctor"], model.wv["doctor"])
