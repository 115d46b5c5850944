"""Small vectors and samples, for which the numbers of a preview can be computed in another way."""

import pytest

from dptext import load_vectors
from dptext.methods import synthesis, words
from dptext.methods.preview import Samples
from dptext.privacy.randomness import RandomBits

WORDS = ("cat", "dog", "fox", "tax", "fee", "law", "red", "blue", "sun", "rain")


class FewSamples(Samples):
    """A few made-up texts in the place of the bundled ones."""

    name = "made up"
    examples = (("animals", "the cat and the dog"), ("law", "tax law and a fee"))
    public = tuple(f"{one} {other}" for one in WORDS for other in WORDS)
    people = tuple(f"{one} {other} {one}" for one in WORDS for other in WORDS if one != other)

    def candidates(self, text):
        return [text, *[entry for entry in self.public[:30:2] if entry != text]]


@pytest.fixture(scope="session")
def vectors():
    return load_vectors((list(WORDS), RandomBits(5).normal(len(WORDS), 4)))


@pytest.fixture(scope="session")
def samples():
    return FewSamples()


@pytest.fixture(autouse=True)
def _seeded(monkeypatch):
    """Draw all numbers that tests compare from a seed."""
    for module in (synthesis, words):
        monkeypatch.setattr(module, "RandomBits", lambda: RandomBits(11))
