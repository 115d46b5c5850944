"""The scikit-learn transformer: it works where estimators work, keeps no random state, states its guarantee."""

import pickle

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import dptext
from dptext import WordPrivatizer

GOOD = ["lovely", "excellent", "friendly"]
BAD = ["awful", "terrible", "dirty"]
NOUNS = ["room", "staff", "kitchen", "garden", "breakfast", "hotel", "street", "window", "city", "house"]
TEXTS = [f"the {noun} was {word}" for words in (GOOD, BAD) for word in words for noun in NOUNS]
LABELS = np.repeat([1, 0], 30)
LONG = " ".join(NOUNS * 20)
"""200 words: among 300 near-uniform ones, two independent draws agree with probability 300^-200 or so."""


@pytest.fixture(scope="module")
def vectors(glove):
    return dptext.load_vectors(glove, limit=12_000)


@pytest.fixture
def privatizer(small):
    return WordPrivatizer(epsilon=0.1, vectors=small, limit=None)


def test_missing_texts_become_empty_ones_so_that_what_follows_has_strings(privatizer):
    pandas = pytest.importorskip("pandas")
    privatizer.fit()
    for missing in (None, float("nan"), np.float64("nan"), pandas.NA, pandas.NaT):
        assert privatizer.transform(["a", missing]).tolist()[1] == ""
    assert privatizer.transform(pandas.Series(["a", None], dtype="string")).tolist()[1] == ""
    TfidfVectorizer().fit(privatizer.transform([LONG, None]))


# -- guarantees -----------------------------------------------------------------------------------------


def test_the_statement_is_that_of_the_same_release_by_privatize(vectors):
    options = {"document_epsilon": 30.0, "max_words": 3}
    privatizer = WordPrivatizer(epsilon=4.0, vectors=vectors, limit=None, mechanism_params=options)
    assert not hasattr(privatizer.fit(), "statement_")
    privatizer.transform(["one two three four", "five"])
    same = dptext.privatize(["one two three four", "five"], dptext.TEM(vectors, epsilon=4.0, **options)).statement
    assert privatizer.statement_.replace(release_id=None) == same.replace(release_id=None)
    assert privatizer.statement_.guarantee == dptext.PureDP(30.0)


# -- where estimators work ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("same_draws")
def test_in_a_pipeline(vectors):
    model = make_pipeline(
        WordPrivatizer(epsilon=200.0, vectors=vectors, limit=None), TfidfVectorizer(), LogisticRegression(C=10)
    )
    model.fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) > 0.9
    assert model[0].statement_.parameters["words_counted"] == 4
    assert pickle.loads(pickle.dumps(model)).predict(TEXTS[:3]).shape == (3,)
