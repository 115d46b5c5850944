"""Bad arguments and data of the package: one clear error each, without private text."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import dptext
from dptext.errors import DataError, ParameterError, StorageError
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian, Laplace
from dptext.representations.bits import OneBit, OptimizedUnary, WeightedBits
from dptext.representations.bounds import Bound, check_vectors, fit_bound
from dptext.representations.classifiers import NoisyClassifier
from dptext.representations.cube import CubeChannel, Piecewise, Plan
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import CallableEncoder, MeanOfWords
from dptext.representations.layers import DeviceModel, HidingLayers
from dptext.representations.private_encoder import PrivateEncoder
from dptext.representations.privunit import PrivUnit
from dptext.representations.published import DPText, mask_words
from dptext.representations.published_protocols import OME, SUE
from dptext.representations.registry import randomizer_from_parameters

SAFE = {"unsafe_as_published": True}
PUBLIC, LABELS, SIMILAR = np.arange(24.0).reshape(6, 4) ** 1.1, np.array([0, 1] * 3), np.ones((5, 4))
NOISE = PrivUnit(epsilon=4.0)
WORDS = dptext.load_vectors((["good", "bad", "film", "plot"], [[1.0, 0.0], [-1.0, 0.1], [0.0, 1.0], [0.1, -1.0]]))
TEXTS = ["good film", "bad plot", "good plot", "bad"]
LENGTHS = CallableEncoder(lambda texts: [[len(text), 1.0, 2.0] for text in texts])
ZERO = Bound(mean=np.zeros(3))


def linear(**options):
    return lambda: NoisyClassifier(**options).fit(PUBLIC, LABELS)


def fit_public(**options):
    return lambda: NoisyClassifier(**{"channel": NOISE} | options).fit_public(PUBLIC, LABELS)


def private(**options):
    return lambda: PrivateEncoder(**{"encoder": WORDS, "randomizer": NOISE, "public_texts": TEXTS} | options).fit()


PARAMETER_ERRORS = {
    "bounds": [
        (lambda: fit_bound(PUBLIC, dimension=7), "dimension must be an integer from 1 to 4, got 7"),
        (lambda: fit_bound(PUBLIC, projection="supervised"), "labels are for projection='supervised'"),
        (lambda: fit_bound(PUBLIC, projection="supervised", labels=LABELS[:-1]), "must have 6 entries, one per text"),
        (lambda: fit_bound(PUBLIC, projection="supervised", labels=np.zeros(6)), "two different public labels"),
        (lambda: fit_bound(SIMILAR), "all have the same vector"),
        (lambda: Bound(mean=[np.nan]), "one-dimensional array of finite numbers"),
        (lambda: Bound(mean=[0.0, 0.0], directions=np.zeros((3, 1))), r"at most \(2, 2\), got \(3, 1\)"),
        (lambda: Bound(mean=[0.0], kind="clip"), "radius of 'clip' must be"),
    ],
    "vectors": [
        (lambda: check_vectors([1.0, 2.0]), r"shape \(n, d\)"),
        (lambda: check_vectors([[1.0, 2.0]], 3), "vectors of 3 numbers, got 2"),
        *(
            (lambda vectors=vectors: NOISE.randomize(vectors), "vectors must be a numeric array of")
            for vectors in ([["1.5"]], [[1j]], [[1.0], [1.0, 2.0]], [[{}]], np.array([["7", 1.0]], dtype=object))
        ),
        (lambda: OneBit(epsilon=1.0).channel(3).send(np.zeros((1, 4)), RandomBits(1)), "vectors of 3 numbers"),
    ],
    "randomizers": [
        (lambda: Gaussian(epsilon=1.0, delta=0.0), "delta must be a number above 0 and below 1, got 0"),
        (lambda: Laplace(epsilon=1.0, domain="disc"), "'unit sphere', 'unit cube', 'one-hot', got 'disc'"),
        (lambda: WeightedBits(epsilon=1.0, bits=17), "bits must be an integer from 1 to 16"),
        (lambda: WeightedBits(epsilon=1e-6, bits=16).channel(8), "send fewer bits"),
        (lambda: OptimizedUnary(epsilon=1.0).frequencies(np.zeros((3, 4)), 4), "expected uint8"),
        *(
            (lambda sent=sent: OneBit(epsilon=8.0).decode(sent, 11), r"expected uint8 of shape \(n, 2\)")
            for sent in (np.zeros((2, 3), dtype=np.uint8), np.zeros(2, dtype=np.uint8), np.zeros((2, 2), dtype=bool))
        ),
        *(
            (lambda channel=channel: channel.debiased_second_moment(np.eye(channel.dimension)), "second moments")
            for channel in (
                OneBit(epsilon=4.0).channel(3),
                WeightedBits(epsilon=4.0, bits=1).channel(3),
                Piecewise(epsilon=1.0).channel(8),
                CubeChannel("bits alone", 4.0, 2, Plan(2, 1, 0.0), steps=3),
            )
        ),
    ],
    "published": [
        (lambda: OME(epsilon=1.0, lambda_=0.5, **SAFE), "lambda_ must be a number from 1 to 10,000, got 0.5"),
        (lambda: SUE(epsilon=1.0, bits=17, **SAFE), "bits must be an integer from 2 to 16"),
        (lambda: SUE(epsilon=1.0, bits=4, **SAFE), "integer_bits must be an integer from 0 to 3, got 4"),
        (lambda: OME(epsilon=1.0, **SAFE).statement(), "depends on the dimension"),
        (lambda: DPText(epsilon=1e-30, **SAFE).channel(4), "choose a larger epsilon"),
        (lambda: mask_words(["a b"], mu=0.0), "mu must be a number above 0 and at most 1"),
    ],
    "classifiers": [
        (linear(channel="PrivUnit"), "channel must be a Channel, a Randomizer, a PrivacyStatement or None, got str"),
        (linear(channel=NOISE.statement(4).replace(mechanism="TEM")), "'TEM' describes no noise on vectors"),
        (linear(public=(PUBLIC, np.zeros(6))), "public labels must have the same classes"),
        (fit_public(public=(PUBLIC, LABELS)), "public vectors were passed twice: to the"),
    ],
    "encoders": [
        (lambda: MeanOfWords(WORDS, weighting=5e-324), "weighting must be a finite number of at least 1e-30"),
        (lambda: CallableEncoder(7), "expected a function"),
        (lambda: DeviceEncoder("words", ZERO, NOISE), "encoder must be a TextEncoder, got str"),
        (lambda: DeviceEncoder(LENGTHS, ZERO, 8.0), "randomizer must be a Randomizer"),
        (lambda: DeviceEncoder(MeanOfWords(WORDS), ZERO, NOISE), "vectors of 3 numbers, the encoder returns 2"),
        (
            lambda: DeviceEncoder(LENGTHS, Bound(mean=np.zeros(3), kind="clip", radius=1.0), NOISE),
            "PrivUnit takes vectors of the unit sphere, the bound 'clip' maps into the unit ball: choose another bound",
        ),
        (lambda: DeviceEncoder(LENGTHS, ZERO, OME(epsilon=1.0, **SAFE)).save("nowhere"), "with a proof can be saved"),
        (private(bound="clip"), "takes vectors of the unit sphere"),
    ],
    "layers": [
        (lambda: DeviceModel((0, 1, 2), ((np.eye(2), np.zeros(2)),)), "2 outputs for 3 classes"),
        (lambda: DeviceModel((0, 1), ((np.eye(2), np.zeros(2)),)).predict(np.zeros((1, 3))), "2 numbers, got 3"),
        (lambda: HidingLayers((([[np.nan]], [1.0]),)), "weights of layers must be finite"),
    ],
}


@pytest.mark.parametrize("part", PARAMETER_ERRORS)
def test_bad_arguments_are_refused(part):
    for call, message in PARAMETER_ERRORS[part]:
        with pytest.raises(ParameterError, match=message):
            call()


def test_bad_data_is_refused(tmp_path):
    huge = np.ones((6, 4))
    huge[3, 2] = 1e39
    for call, error, message in [
        (lambda: NoisyClassifier(channel=NOISE).fit(huge, LABELS), DataError, "row 4"),
        (lambda: NoisyClassifier().fit(PUBLIC, ["same"] * 6), DataError, "at least two classes"),
        (lambda: NoisyClassifier().device_model(), NotFittedError, "fit"),
        (lambda: randomizer_from_parameters("Privunit", {"epsilon": 1.0}), DataError, "A newer version of dptext may"),
        (lambda: randomizer_from_parameters("PrivUnit", {"eps": 1.0}), DataError, "lack epsilon"),
        (lambda: DeviceModel.load(tmp_path / "absent"), StorageError, "cannot read"),
    ]:
        with pytest.raises(error, match=message):
            call()
    layers = '[{"weights": [[WEIGHT, 2]], "bias": [1, 2]}]'
    model = f'{{"format": "dptext device model 1", "classes": [0, 1], "domain": null, "layers": {layers}}}'
    for content in (
        *(model.replace("WEIGHT", weight).encode() for weight in ("1e400", "NaN", "1e39", "[" * 100_000)),
        *(model.replace("WEIGHT", "1").replace("[0, 1]", classes).encode() for classes in ("[0, [1]]", "7")),
        *(b"", b"[]", b"{}", b'{"format": "other"}', b"\xff\xfe\x00"),
    ):
        (tmp_path / "model").write_bytes(content)
        with pytest.raises(DataError, match="not a device model"):
            DeviceModel.load(tmp_path / "model")
