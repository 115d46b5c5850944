"""Small vectors and samples, on which what the playground shows can be computed in another way."""

from importlib import import_module

import pytest

from dptext import load_vectors
from dptext.methods.preview import Samples
from dptext.privacy.randomness import RandomBits

WORDS = ("cat", "dog", "fox", "tax", "fee", "law", "red", "blue", "sun", "rain")


class FewSamples(Samples):
    """As those that are bundled, and few."""

    name = "made up"
    samples_to_try = (("animals", "the cat and the dog"), ("law", "tax law and a fee"))
    public = tuple(f"{one} {other}" for one in WORDS for other in WORDS)
    people = tuple(f"{one} {other} {one}" for one in WORDS for other in WORDS if one != other)

    def among(self, text):
        return [text, *[entry for entry in self.public[:30:2] if entry != text]]


@pytest.fixture(scope="session")
def vectors():
    return load_vectors((list(WORDS), RandomBits(5).normal(len(WORDS), 4)))


@pytest.fixture(scope="session")
def samples():
    return FewSamples()


@pytest.fixture(autouse=True)
def _seeded(monkeypatch):
    """What tests compare with figures is drawn from a seed."""
    for name in ("word_preview", "text_previews"):
        monkeypatch.setattr(import_module(f"dptext.methods.{name}"), "RandomBits", lambda: RandomBits(11))
