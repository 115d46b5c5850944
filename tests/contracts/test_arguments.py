"""Mechanisms, randomizers, vectors and epsilon as arguments: the same everywhere."""

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
TEM, LAPLACE = dptext.TEM(VECTORS, epsilon=9.0), dptext.Laplace(epsilon=3.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("Tea tax.\nlaw\n")
    dptext.save_vectors(VECTORS, "tiny.txt")
    return tmp_path


def test_mechanisms_and_randomizers_are_objects_classes_or_names(monkeypatch):
    for kind in (TEM, "TEM", dptext.TEM):
        options = {} if kind is TEM else {"epsilon": 9.0, "vectors": VECTORS}
        assert word_mechanism(kind, **options).statement == TEM.statement
    assert randomizer_of(LAPLACE) is LAPLACE
    for name in RANDOMIZERS.keys() - {"Gaussian"}:
        assert randomizer_of(name.lower(), epsilon=3.0) == RANDOMIZERS[name](epsilon=3.0)
    monkeypatch.setattr("dptext.vectors.formats._known_vectors", lambda *arguments: seen.append(arguments) or VECTORS)
    seen = []
    assert word_mechanism("tem", epsilon=9.0).vectors is dptext.TEM("glove-6b-50d", epsilon=9.0).vectors is VECTORS
    assert seen == [("glove-6b-50d", 50_000)] * 2


def test_unknown_incomplete_or_unsafe_choices_are_refused():
    documents, public = [dptext.Document("tea cup tax", user="one")], ["tea cup", "tax law", "tea"]
    skip_gram = {"public_users": 30, "steps": 2}
    for call, message in (
        (lambda: word_mechanism(TEM, epsilon=9.0), "fixed epsilon"),
        (lambda: word_mechanism(TEM, vectors=VECTORS), "fixed vectors"),
        (lambda: word_mechanism("tem", vectors=VECTORS), "TEM needs epsilon|epsilon"),
        (lambda: word_mechanism("tme", epsilon=1.0, vectors=VECTORS), "did you mean 'tem'"),
        (lambda: randomizer_of(LAPLACE, epsilon=3.0), "fixed epsilon"),
        (lambda: randomizer_of("privunit"), "PrivUnit needs epsilon="),
        (lambda: randomizer_of("privunti", epsilon=3.0), "did you mean 'PrivUnit'"),
        (lambda: randomizer_of([8.0]), "got list"),
        (lambda: dptext.HidingEncoder(None, None, epsilon=3.0), "epsilon needs a randomizer"),
        (lambda: dptext.HidingEncoder(VECTORS), "PrivUnit needs epsilon="),
        (lambda: dptext.PrivateEncoder(VECTORS).fit(public), "PrivUnit needs epsilon="),
        (lambda: dptext.Cooccurrence(VECTORS).fit(documents), "Cooccurrence needs epsilon"),
        (lambda: dptext.SkipGram(VECTORS, **skip_gram).fit(documents), "SkipGram needs epsilon"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
    with pytest.raises(RefusedError, match="unsafe_as_published=True"):
        word_mechanism("truncatedgumbel", epsilon=1.0, vectors=VECTORS)
    for name in PUBLISHED_RANDOMIZERS:
        with pytest.raises(RefusedError, match="unsafe_as_published=True"):
            randomizer_of(name, epsilon=3.0)


def test_releases_and_audits_refuse_names_and_classes(folder):
    for mechanism in ("tem", dptext.TEM):
        for call in (
            lambda mechanism: dptext.privatize(["Tea tax.", "law"], mechanism),
            lambda mechanism: dptext.privatize_file("in.txt", "out.txt", mechanism),
            dptext.audit,
        ):
            with pytest.raises(ParameterError, match="mechanism must be "):
                call(mechanism)
    assert not (folder / "out.txt").exists()


@pytest.mark.parametrize("name", MECHANISMS)
def test_vectors_are_taken_by_path(name, folder):
    build, options = MECHANISMS[name], WORDS.get(name, {})
    vectors = dptext.load_vectors("tiny.txt", limit=50_000)
    for path in ("tiny.txt", folder / "tiny.txt"):
        assert build(path, epsilon=9.0, **options).statement == build(vectors, epsilon=9.0, **options).statement
    for bad, message in (("tiny", "known name"), ((["tea"], [[1.0]]), "vectors must be WordVectors")):
        with pytest.raises(ParameterError, match=message):
            build(bad, epsilon=9.0, **options)


def test_encoders_take_a_randomizer_by_name():
    public = ["tea cup", "tax law", "tea"]
    assert dptext.PrivateEncoder(VECTORS, "laplace", epsilon=3.0).fit(public).release_.randomizer == LAPLACE
    assert dptext.PrivateEncoder(VECTORS, epsilon=3.0).fit(public).release_.randomizer == dptext.PrivUnit(epsilon=3.0)
    assert dptext.HidingEncoder(None, epsilon=3.0).randomizer == dptext.PrivUnit(epsilon=3.0)
    assert dptext.HidingEncoder(None, None).randomizer is None


def test_no_epsilon_has_a_default():
    """None alone, for an object with its own epsilon, or to refuse the call."""
    for name in NAMES:
        public = getattr(dptext, name)
        methods = [value for value in vars(public).values() if callable(value)] if isinstance(public, type) else []
        for method in (public, *methods):
            try:
                parameters = inspect.signature(method).parameters
            except (TypeError, ValueError):
                continue
            if "epsilon" in parameters:
                assert parameters["epsilon"].default in (inspect.Parameter.empty, None)
