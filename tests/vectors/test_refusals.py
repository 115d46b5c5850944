"""Sources, files and arguments that the vectors refuse: the row is named, and nothing that stands in it."""

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError, StorageError
from dptext.vectors.metrics import Ellipsoid, metric_space
from dptext.vectors.nearest_sets import NearestSets
from dptext.vectors.search import NearestNeighbours

SECRETS = ("secret", "7.25")
VECTORS = dptext.load_vectors((["cat", "dog"], [[1.0, 2.0], [3.0, 4.0]]))
SETS, QUERIES = NearestSets(np.eye(3, dtype=np.float32)[[0, 1, 2, 0, 1]]), np.eye(3, dtype=np.float32)[:2]
NEIGHBOURS = NearestNeighbours(VECTORS.matrix)


def load(*source, **options):
    return lambda: dptext.load_vectors(source if len(source) > 1 else source[0], **options)


def space(metric):
    return lambda: metric_space(VECTORS, metric, threshold=1.0)


def vectors(words, matrix=((1.0,), (2.0,)), **options):
    return lambda: dptext.WordVectors(words, matrix, **options)


def save(words, name):
    return lambda: dptext.save_vectors(dptext.WordVectors(words, np.ones((len(words), 1))), name)


REFUSED = [
    (load("missing"), ParameterError, "expected a known name"),
    (load(["cat"], [[1.0]], "more"), ParameterError, "expected a pair (words, matrix), got 3"),
    (load("glove-6b-50d", limit=1), ParameterError, "limit must be an integer of at least 2"),
    (load(["secret"], [[1.0], [2.0]]), DataError, "expected one vector per word, got 1 words and 2"),
    (load(["secret", "secret"], [[1.0], [2.0]]), DataError, "rows 0 and 1 contain the same word"),
    (load(["secret", 3], [[1.0], [2.0]]), DataError, "row 1 has another type"),
    (load(["cat", "secret"], [[1.0], [np.nan]]), DataError, "row 1: the vector contains NaN or infinity"),
    (load(["cat", "dog"], [[7.25], [1.0, 2.0]]), DataError, "rows of equal length"),
    (load(["cat"], [7.25]), DataError, "two axes (words, dimensions), got shape (1,)"),
    (load({"cat": [1.0, 2.0], "secret": [7.25]}), DataError, "rows of equal length"),
    (vectors(["<unk>", "secret"], [[1.0], [np.inf]]), DataError, "row 1 of the matrix contains NaN or infinity"),
    (vectors(["cat", "secret"]), DataError, "<unk>"),
    (lambda: VECTORS.most_similar("secret"), ParameterError, "the word is not among these"),
    (lambda: VECTORS.most_similar([7.25]), ParameterError, "expected a word, or a vector of 2 finite numbers"),
    (lambda: VECTORS["secret"], KeyError, "the word is not among the 3 words"),
    (save(["<unk>", "secret\n"], "folder"), DataError, "row 1: the word contains a line feed"),
    (save(["<unk>", "secret word"], "a.txt"), DataError, "row 1: word2vec cannot store"),
    (save(["<unk>", "secret\ud800"], "a.bin"), DataError, "row 1: the word contains a lone surrogate"),
    (save(["<unk>", "cat"], "a.npz"), ParameterError, "expected a file name that ends in .txt"),
    (save(["<unk>", "cat"], "no/such/folder/a.txt"), StorageError, "a.txt"),
    (space("Cosine"), ParameterError, "use 'angular'"),
    (space(lambda rows, matrix: matrix), ParameterError, "a metric needs a name for the statement"),
    (lambda: Ellipsoid(VECTORS.matrix, 1.5), ParameterError, "lambda"),
    (lambda: NEIGHBOURS.find_several(np.ones((1, 2)), 4), ParameterError, "count"),
    (lambda: NearestSets(np.zeros((2, 2))), ParameterError, "rows of float32 numbers"),
    (lambda: SETS.find(QUERIES, 6), ParameterError, "count must be an integer from 1 to 5"),
]


def test_sources_and_arguments_are_refused_without_their_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call, kind, message in REFUSED:
        with pytest.raises(kind) as caught:
            call()
        assert message in str(caught.value)
        error = caught.value
        while error is not None:
            assert not any(secret in repr(error) for secret in SECRETS)
            error = None if error.__suppress_context__ else error.__context__
    assert not any(path.name != "." for path in tmp_path.iterdir())
