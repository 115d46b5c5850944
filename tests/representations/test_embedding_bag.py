"""The device's part of a split model: means that hang on one text alone, frozen, saved, and said in a statement."""

import copy
import pickle
import zlib

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.representations.bounds import Bound
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import TextEncoder
from dptext.representations.privunit import PrivUnit
from dptext.representations.trained_encoders import EmbeddingBag, NGrams

NGRAMS = NGrams(buckets=512)
BAG = EmbeddingBag(np.random.default_rng(1).normal(size=(512, 6)), NGRAMS, trained_on="made up", trained_texts=3)
TEXTS = ["the cat sat", "", "dogs!", None, "a cat and a dog, and a cow " * 50]


def test_the_mean_of_the_ngrams_vectors():
    vectors = BAG.encode(TEXTS)
    assert vectors.dtype == np.float32
    for row, text in zip(vectors, TEXTS, strict=True):
        values = NGRAMS.of([text or ""]).values
        expected = BAG.matrix[values].mean(axis=0) if values.size else np.zeros(6)
        np.testing.assert_allclose(row, expected, rtol=1e-5, atol=1e-7)
    assert isinstance(BAG, TextEncoder)


def test_a_vector_hangs_on_its_text_alone_to_the_last_bit():
    long = "word " * 40_000  # more n-grams than are added up at once
    together = BAG.encode([*TEXTS, long])
    for row, text in zip(together, [*TEXTS, long], strict=True):
        np.testing.assert_array_equal(BAG.encode([text])[0], row)


def test_it_is_frozen_and_pickled():
    with pytest.raises(AttributeError, match="an encoder is frozen"):
        BAG.matrix = np.zeros((512, 6))
    with pytest.raises(ValueError, match="read-only"):
        BAG.matrix[0] = 0
    for other in (pickle.loads(pickle.dumps(BAG)), copy.deepcopy(BAG)):
        np.testing.assert_array_equal(other.encode(TEXTS), BAG.encode(TEXTS))
        assert other.parameters() == BAG.parameters()
        with pytest.raises(ValueError, match="read-only"):
            other.matrix[0] = 0


def test_the_statement_says_what_it_was_trained_on():
    device = DeviceEncoder(BAG, Bound(mean=np.zeros(6)), PrivUnit(epsilon=4.0))
    statement = device.statement
    assert statement.guarantee == dptext.PureDP(4.0)
    assert any("trained on 'made up' (3 texts and their labels)" in assumption for assumption in statement.assumptions)
    assert statement.parameters["encoder_matrix_sha256"] == BAG.sha256
    unnamed = EmbeddingBag(BAG.matrix, NGRAMS)
    assert any("were not computed from protected texts" in assumption for assumption in unnamed.assumptions())


def test_it_is_saved_with_a_device(tmp_path):
    device = DeviceEncoder(BAG, Bound(mean=np.zeros(6)), PrivUnit(epsilon=4.0))
    device.save(tmp_path / "saved")
    repeated = DeviceEncoder.load(tmp_path / "saved")
    assert repeated.statement.parameters == device.statement.parameters
    np.testing.assert_array_equal(repeated.encode(TEXTS, seed=1), device.encode(TEXTS, seed=1))
    other = EmbeddingBag(BAG.matrix + 1, NGRAMS, trained_on="made up", trained_texts=3)
    with pytest.raises(ParameterError, match="not the one that was saved"):
        DeviceEncoder.load(tmp_path / "saved", other)
    content = (tmp_path / "saved" / "config.json").read_text()
    (tmp_path / "saved" / "config.json").write_text(content.replace('"most": 2', '"most": 9'))
    with pytest.raises(DataError, match="not of one encoder"):
        DeviceEncoder.load(tmp_path / "saved")
    (tmp_path / "saved" / "config.json").write_text(content.replace('"most": 2', '"most": 1'))
    with pytest.raises(DataError, match="not the one that was saved"):
        DeviceEncoder.load(tmp_path / "saved")


def test_arguments_are_checked():
    for arguments, options, message in [
        ((np.zeros((3, 2)), NGRAMS), {}, r"finite numbers of shape \(512, d\), got the shape \(3, 2\)"),
        ((np.zeros(512), NGRAMS), {}, "finite numbers of shape"),
        ((np.zeros((512, 0)), NGRAMS), {}, "finite numbers of shape"),
        ((np.full((512, 2), np.nan), NGRAMS), {}, "finite numbers of shape"),
        ((np.zeros((512, 2)), 512), {}, "ngrams must be NGrams"),
        ((np.zeros((512, 2)), NGRAMS), {"trained_on": 3}, "trained_on must be text"),
        ((np.zeros((512, 2)), NGRAMS), {"trained_texts": -1}, "trained_texts must be an integer of at least 0"),
    ]:
        with pytest.raises(ParameterError, match=message):
            EmbeddingBag(*arguments, **options)


# -- n-grams -------------------------------------------------------------------------------------------------------


HASHED = NGrams(most=2, buckets=1 << 20)


def bucket(ngram):
    return zlib.crc32(ngram.encode()) % (1 << 20)


def test_words_then_pairs_hashed():
    result = HASHED.of(["The cat, the 7 DOGS!", "cat"])
    words = ["the", "cat", "the", "7", "dogs", "the cat", "cat the", "the 7", "7 dogs"]
    assert result.values.tolist() == [*map(bucket, words), bucket("cat")]
    assert result.starts.tolist() == [0, 9, 10]
    assert len(result) == 2


def test_longer_ngrams_and_single_words():
    assert NGrams(most=1).of(["a b c"]).lengths.tolist() == [3]
    assert NGrams(most=3).of(["a b c", "a b", "a"]).lengths.tolist() == [6, 3, 1]


def test_a_text_without_words_has_no_bucket():
    for text in ["", " ", "...", "\n\t", "!?"]:
        assert HASHED.of([text]).lengths.tolist() == [0]


def test_no_text_raises():
    for text in ["\ud800 x", "word " * 20_000, "x" * 100_000, "\u0301" * 500, "\U0001f600\U0001f600"]:
        result = HASHED.of([text])
        assert result.values.min(initial=0) >= 0
        assert result.values.max(initial=0) < 1 << 20


def test_a_texts_buckets_hang_on_it_alone():
    together = HASHED.of(["one two", "", "three"])
    for place, text in enumerate(["one two", "", "three"]):
        assert together.take(np.array([place])).values.tolist() == HASHED.of([text]).values.tolist()
    mixed = together.take(np.array([2, 0, 1, 2]))
    assert mixed.lengths.tolist() == [1, 3, 0, 1]
    assert mixed.values.tolist() == HASHED.of(["three", "one two", "", "three"]).values.tolist()
    assert together.take(np.array([], dtype=np.intp)).values.size == 0


def test_no_texts():
    assert len(HASHED.of([])) == 0


def test_a_mask_takes_all_ngrams_that_it_stands_in():
    result = HASHED.hash_words([["one", None, "two", "three"], [None, None], []])
    assert result.lengths.tolist() == [4, 0, 0]
    assert result.values.tolist() == [*map(bucket, ["one", "two", "three", "two three"])]


def test_words_are_folded():
    assert HASHED.words_of("CAFÉ don’t, cafe\u0301") == ["café", "do", "n't", "café"]


def test_arguments_of_n_grams_are_checked():
    for options in [{"most": 0}, {"most": 6}, {"most": True}, {"buckets": 0}, {"buckets": 2.0}, {"buckets": 1 << 27}]:
        with pytest.raises(ParameterError, match="must be an integer from 1 to"):
            NGrams(**options)


def test_masks_on_hashed_texts_are_those_on_words():
    for max_words in [1, 2, 3, 5]:
        ngrams = NGrams(most=max_words, buckets=1 << 20)
        texts = ["a b c d e f g", "", "x", "hello world foo", "one two"] * 8
        hashed = ngrams.of(texts)
        assert ngrams.words_in(hashed).tolist() == [len(ngrams.words_of(text)) for text in texts]
        for share in (0.0, 0.4, 1.0):
            kept = np.random.default_rng(1).random(13 * 8) >= share
            left = iter(kept)
            words = [[word if next(left) else None for word in ngrams.words_of(text)] for text in texts]
            result, expected = ngrams.masked(hashed, kept), ngrams.hash_words(words)
            assert result.values.tolist() == expected.values.tolist()
            assert result.starts.tolist() == expected.starts.tolist()
        assert len(ngrams.masked(ngrams.of([]), np.empty(0, bool))) == 0
        with pytest.raises(ParameterError, match="kept must say of each of 104 words"):
            ngrams.masked(hashed, kept[:-1])
