"""What a function takes for a mechanism, a randomizer, vectors and an epsilon: the same everywhere."""

import inspect

import pytest

import dptext
from contracts.cases import VECTORS, WORDS
from dptext.errors import ParameterError, RefusedError
from dptext.representations.registry import PUBLISHED_ONLY as PUBLISHED_RANDOMIZERS
from dptext.representations.registry import RANDOMIZERS, randomizer_of
from dptext.words.registry import MECHANISMS, word_mechanism

SCIKIT_LEARN = ("NoisyClassifier", "PrivateEncoder", "SentencePrivatizer", "WordPrivatizer")
NAMES = sorted({*dptext.__all__, *SCIKIT_LEARN})
TEXTS = ["Tea tax.", "law"]
TEM = dptext.TEM(VECTORS, epsilon=9.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("Tea tax.\nlaw\n")
    dptext.save_vectors(VECTORS, "tiny.txt")
    return tmp_path


def test_a_word_mechanism_is_an_object_a_class_or_a_name():
    assert word_mechanism(TEM) is TEM
    for kind in ("TEM", dptext.TEM):
        assert word_mechanism(kind, epsilon=9.0, vectors=VECTORS).statement == TEM.statement
    for options, message in (
        ({"epsilon": 9.0}, "TEM has a fixed epsilon: omit epsilon"),
        ({"vectors": VECTORS}, "has a fixed vectors"),
        ({"epsilon": 9.0, "vectors": "glove-6b-50d"}, "has a fixed epsilon and vectors: omit epsilon and vectors"),
    ):
        with pytest.raises(ParameterError, match=message):
            word_mechanism(TEM, **options)
    with pytest.raises(ParameterError, match=r"TEM needs epsilon=\.\.\.: .* dptext.advise or dptext.calibrate"):
        word_mechanism("tem", vectors=VECTORS)
    with pytest.raises(ParameterError, match=r"must be one of 'tem', .* got 'tme': did you mean 'tem'\?"):
        word_mechanism("tme", epsilon=1.0, vectors=VECTORS)
    with pytest.raises(RefusedError, match="unsafe_as_published=True to compare"):
        word_mechanism("truncatedgumbel", epsilon=1.0, vectors=VECTORS)


TAKE_AN_OBJECT = {
    "privatize": lambda mechanism: dptext.privatize(TEXTS, mechanism),
    "privatize_file": lambda mechanism: dptext.privatize_file("in.txt", "out.txt", mechanism),
    "audit": dptext.audit,
}


@pytest.mark.parametrize("call", TAKE_AN_OBJECT.values(), ids=TAKE_AN_OBJECT)
@pytest.mark.parametrize("mechanism", ["tem", dptext.TEM])
def test_releases_and_audits_refuse_names_and_classes(call, mechanism, folder):
    with pytest.raises(ParameterError, match="mechanism must be "):
        call(mechanism)
    assert not (folder / "out.txt").exists()


def test_a_name_alone_takes_the_known_vectors(monkeypatch):
    monkeypatch.setattr("dptext.vectors.formats._known_vectors", lambda *arguments: seen.append(arguments) or VECTORS)
    seen = []
    assert word_mechanism("tem", epsilon=9.0).vectors is VECTORS
    assert dptext.TEM("glove-6b-50d", epsilon=9.0).vectors is VECTORS
    assert seen == [("glove-6b-50d", 50_000)] * 2


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_word_mechanism_takes_vectors_by_path(name, folder):
    build, options = MECHANISMS[name], WORDS.get(name, {})
    vectors = dptext.load_vectors("tiny.txt", limit=50_000)
    for path in ("tiny.txt", folder / "tiny.txt"):
        assert build(path, epsilon=9.0, **options).statement == build(vectors, epsilon=9.0, **options).statement
    with pytest.raises(ParameterError, match="expected a known name"):
        build("tiny", epsilon=9.0, **options)
    with pytest.raises(ParameterError, match="vectors must be WordVectors, or their name or path, got tuple"):
        build((["tea"], [[1.0]]), epsilon=9.0, **options)


def test_a_calibration_takes_vectors_by_path(folder):
    vectors = dptext.load_vectors("tiny.txt")
    assert dptext.calibrate("tiny.txt", keep_rate=0.5).epsilon == dptext.calibrate(vectors, keep_rate=0.5).epsilon


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_a_randomizer_is_an_object_or_a_name(name):
    if name == "Gaussian":
        with pytest.raises(TypeError, match="'delta'"):
            randomizer_of(name, epsilon=3.0)
        return
    output = randomizer_of(name.lower(), epsilon=3.0)
    assert output == RANDOMIZERS[name](epsilon=3.0)
    assert randomizer_of(output) is output
    with pytest.raises(ParameterError, match="has a fixed epsilon: omit epsilon"):
        randomizer_of(output, epsilon=3.0)
    with pytest.raises(ParameterError, match=f"{name} needs epsilon="):
        randomizer_of(name)


def test_what_is_no_randomizer_is_refused():
    with pytest.raises(
        ParameterError, match=r"must be one of 'PrivUnit', .* got 'privunti': did you mean 'PrivUnit'\?"
    ):
        randomizer_of("privunti", epsilon=3.0)
    with pytest.raises(ParameterError, match="got list"):
        randomizer_of([8.0])
    for name in PUBLISHED_RANDOMIZERS:
        with pytest.raises(RefusedError, match=rf"{name} does not keep .* unsafe_as_published=True"):
            randomizer_of(name, epsilon=3.0)


def test_encoders_take_a_randomizer_by_name():
    public = ["tea cup", "tax law", "tea"]
    by_name = dptext.PrivateEncoder(VECTORS, "laplace", epsilon=3.0).fit(public)
    assert by_name.release_.randomizer == dptext.Laplace(epsilon=3.0)
    assert dptext.PrivateEncoder(VECTORS, epsilon=3.0).fit(public).release_.randomizer == dptext.PrivUnit(epsilon=3.0)
    assert dptext.HidingEncoder(None, epsilon=3.0).randomizer == dptext.PrivUnit(epsilon=3.0)
    assert dptext.HidingEncoder(None, None).randomizer is None
    with pytest.raises(ParameterError, match="epsilon needs a randomizer"):
        dptext.HidingEncoder(None, None, epsilon=3.0)
    for build in (dptext.HidingEncoder, lambda *arguments_value: dptext.PrivateEncoder(*arguments_value).fit(public)):
        with pytest.raises(ParameterError, match="PrivUnit needs epsilon="):
            build(VECTORS)


def test_what_learns_from_people_has_to_be_given_an_epsilon():
    documents = [dptext.Document("tea cup tax", user="one")]
    for build, more in ((dptext.Cooccurrence, {}), (dptext.SkipGram, {"public_users": 30, "steps": 2})):
        with pytest.raises(ParameterError, match=rf"{build.__name__} needs epsilon=\.\.\."):
            build(VECTORS, **more).fit(documents)


def test_no_epsilon_has_a_default():
    """None alone, which means that an object brings its own, or that the call refuses."""
    for name in NAMES:
        public = getattr(dptext, name)
        methods = [var for var in vars(public).values() if callable(var)] if isinstance(public, type) else []
        for method in (public, *methods):
            try:
                parameters = inspect.signature(method).parameters
            except (TypeError, ValueError):
                continue
            if "epsilon" in parameters:
                assert parameters["epsilon"].default in (inspect.Parameter.empty, None)
