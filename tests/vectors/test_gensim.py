"""Through gensim itself and back, where it is installed: nothing changes."""

import numpy as np
import pytest

import dptext

models = pytest.importorskip("gensim.models")


@pytest.mark.parametrize(("name", "binary"), [("v.bin", True), ("v.vec", False)])
def test_gensim_reads_our_files_and_we_read_its_files_and_models(glove, tmp_path, name, binary):
    vectors = dptext.load_vectors(glove, limit=500)
    dptext.save_vectors(vectors, tmp_path / name)
    keyed = models.KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=binary)
    assert keyed.index_to_key == list(vectors.words)
    assert np.array_equal(keyed.vectors, vectors.matrix)
    keyed.save_word2vec_format(str(tmp_path / f"other-{name}"), binary=binary)
    for source in (keyed, tmp_path / f"other-{name}"):
        assert dptext.load_vectors(source).fingerprint == vectors.fingerprint
    model = models.Word2Vec([["the", "doctor", "lied"]] * 5, vector_size=4, min_count=1, epochs=1, workers=1, seed=1)
    assert np.array_equal(dptext.load_vectors(model)["doctor"], model.wv["doctor"])
