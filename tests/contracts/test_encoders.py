"""What every encoder keeps: a vector for any text, of that text alone, the same from a pickle and from a folder."""

import copy
import json
import pickle

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.representations.bounds import Bound
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import CallableEncoder, MeanOfWords, TextEncoder
from dptext.representations.layers import HidingLayers, LayeredEncoder

VECTORS = dptext.load_vectors((["the", "doctor", "said", "fine"], np.random.default_rng(1).normal(size=(4, 5))))
ODD = ["", "   ", "7, 8!", "qqqzzz", "\ud800", "\0", "a" * 5_000, "the " * 3_000, "’'’", "👩‍👩‍👧‍👦", "The doctor said."]


def lengths(texts):
    """A caller's function."""
    return np.array([[len(text), text.count("a"), np.inf if "7" in text else np.nan] for text in texts])


ENCODERS = {
    "mean of words": lambda: MeanOfWords(VECTORS),
    "weighted mean of words": lambda: MeanOfWords(VECTORS, weighting=1e-3),
    "the caller's function": lambda: CallableEncoder(lengths),
    "layers": lambda: LayeredEncoder(MeanOfWords(VECTORS), HidingLayers(((np.ones((5, 2)), [1.0, 2.0]),))),
}


@pytest.fixture(params=ENCODERS)
def encoder(request):
    return ENCODERS[request.param]()


def test_every_text_has_a_finite_vector_that_hangs_on_it_alone(encoder):
    assert isinstance(encoder, TextEncoder)
    with np.errstate(all="raise"):
        together = encoder.encode(ODD)
        assert encoder.encode([]).shape == (0, encoder.dimension)
    assert together.shape == (len(ODD), encoder.dimension)
    assert together.dtype == np.float32
    assert np.isfinite(together).all()
    for row, text in zip(together, ODD, strict=True):
        np.testing.assert_array_equal(encoder.encode([text])[0], row)
        np.testing.assert_array_equal(encoder.encode(["fine " * 90, text, "the"])[1], row)


def test_documents_arrays_and_missing_texts_are_taken_and_other_things_refused(encoder):
    expected = encoder.encode(["the doctor", ""])
    for texts in ((dptext.Document("the doctor"), None), np.array(["the doctor", ""]), ["the doctor", float("nan")]):
        np.testing.assert_array_equal(encoder.encode(texts), expected)
    with pytest.raises(ParameterError, match="got str") as one:
        encoder.encode("secret")
    with pytest.raises(DataError, match="entry 2 is bytes") as other:
        encoder.encode(["a", b"secret"])
    assert "secret" not in str(one.value) + str(other.value)
    heard = []
    encoder.encode(["the"] * 2_500, progress=heard.append)
    assert heard == sorted(heard) and heard[-1] == 2_500


def test_copies_pickles_and_folders_give_the_same_vectors(encoder, tmp_path):
    for other in (pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder)):
        np.testing.assert_array_equal(other.encode(ODD), encoder.encode(ODD))
        for field in ("name", "parameters", "assumptions"):
            one, two = getattr(other, field), getattr(encoder, field)
            assert (one() == two()) if callable(one) else (one == two)
    assert json.loads(json.dumps(encoder.parameters())) == encoder.parameters()
    device = DeviceEncoder(encoder, Bound(mean=np.zeros(encoder.dimension)), dptext.PrivUnit(epsilon=4.0))
    device.save(tmp_path / "saved")
    try:
        repeated = DeviceEncoder.load(tmp_path / "saved")
    except DataError as error:  # a folder holds no function
        assert "encoder=" in str(error)
        repeated = DeviceEncoder.load(tmp_path / "saved", encoder)
    assert repeated.statement == device.statement
    np.testing.assert_array_equal(repeated.encode(ODD, seed=1), device.encode(ODD, seed=1))
