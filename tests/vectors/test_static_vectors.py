"""The word vectors that the package ships: their content, their licence, and their neighbours."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dptext
from dptext.representations.encoders import MeanOfWords
from dptext.text.tokens import fold, is_single_word
from dptext.vectors import formats

ROOT = Path(__file__).parents[2]
FILE = Path(formats.__file__).with_name("minilm_words.npz")
FINGERPRINT = "94aff36a544e8c84e92b8f0807d5a15b520c6df3db5795c9dd82f94f07be6d2a"


@pytest.fixture(scope="module")
def static() -> dptext.WordVectors:
    return dptext.load_vectors("minilm-words-128d")


def test_the_content_is_the_one_that_was_built(static):
    assert (len(static), static.dimension) == (30_001, 128)
    assert static.fingerprint == FINGERPRINT
    assert FILE.stat().st_size < 4_000_000


def test_the_tokenizer_yields_every_word(static):
    assert all(is_single_word(word) and fold(word) == word for word in static.words[:-1])


def test_a_limit_keeps_the_most_frequent_words(static):
    few = dptext.load_vectors("minilm-words-128d", limit=101)
    assert few.words == (*static.words[:100], "<unk>")
    np.testing.assert_array_equal(few.matrix[:-1], static.matrix[:100])


@pytest.mark.parametrize(
    ("word", "near", "far"),
    [
        ("good", "great", "table"),
        ("terrible", "awful", "guitar"),
        ("dentist", "tooth", "weather"),
        ("n't", "not", "music"),
        ("restaurant", "dinner", "senator"),
    ],
)
def test_words_of_like_meaning_are_near(static, word, near, far):
    likeness = dict(static.most_similar(word, len(static)))
    assert likeness[near] > likeness[far] + 0.1


def test_statements_name_source_licence_and_digest(static):
    parameters = MeanOfWords(static).parameters()
    assert parameters["encoder_vectors"] == "minilm-words-128d"
    assert "all-MiniLM-L6-v2, Apache-2.0" in parameters["encoder_vectors_licence"]
    assert parameters["encoder_vectors_sha256"] == FINGERPRINT
    assert "encoder_vectors_licence" not in MeanOfWords(dptext.load_vectors({"cat": [1.0]})).parameters()


def test_third_party_material_lists_the_file():
    (row,) = (line for line in (ROOT / "THIRD_PARTY.md").read_text().splitlines() if FILE.name in line)
    assert "all-MiniLM-L6-v2" in row and "Apache-2.0" in row and "PDDL" in row


def test_no_other_package_is_needed():
    code = (
        "import dptext, sys; sys.modules.update(pyarrow=None, sklearn=None); dptext.load_vectors('minilm-words-128d')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
