"""The word vectors that the package ships: their content, their licence, and their neighbours."""

from pathlib import Path

import pytest

import dptext
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


def test_third_party_material_lists_the_file():
    (row,) = (line for line in (ROOT / "THIRD_PARTY.md").read_text().splitlines() if FILE.name in line)
    assert "all-MiniLM-L6-v2" in row and "Apache-2.0" in row and "PDDL" in row
