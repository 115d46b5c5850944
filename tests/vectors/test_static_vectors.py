"""The word vectors that the package ships: their content, their licence, and their neighbours."""

from pathlib import Path

import dptext
from dptext.vectors import formats

FILE = Path(formats.__file__).with_name("minilm_words.npz")
FINGERPRINT = "94aff36a544e8c84e92b8f0807d5a15b520c6df3db5795c9dd82f94f07be6d2a"


def test_the_bundled_vectors_are_the_ones_that_were_built():
    static = dptext.load_vectors("minilm-words-128d")
    assert (len(static), static.dimension, static.fingerprint) == (30_001, 128, FINGERPRINT)
    assert FILE.stat().st_size < 4_000_000
    for word, near, far in (("terrible", "awful", "guitar"), ("dentist", "tooth", "weather"), ("n't", "not", "music")):
        likeness = dict(static.most_similar(word, len(static)))
        assert likeness[near] > likeness[far] + 0.1
    licences = (Path(__file__).parents[2] / "THIRD_PARTY.md").read_text().splitlines()
    (row,) = (line for line in licences if FILE.name in line)
    assert "all-MiniLM-L6-v2" in row and "Apache-2.0" in row and "PDDL" in row
