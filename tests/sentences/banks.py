"""A bank that many tests share: 240 short sentences about four things, and documents made of such sentences."""

from functools import cache

import numpy as np

import dptext

THINGS = {
    "drinks": ("tea", "milk", "cup", "kettle", "sugar"),
    "taxes": ("tax", "law", "court", "judge", "office"),
    "animals": ("dog", "cat", "horse", "barn", "tail"),
    "roads": ("car", "road", "wheel", "bridge", "truck"),
}


def sentence(thing: str, generator: np.random.Generator) -> str:
    """Three to five words about one thing."""
    return " ".join(generator.choice(THINGS[thing], size=generator.integers(3, 6))).capitalize() + "."


@cache
def bank() -> dptext.TextBank:
    """Made once."""
    generator = np.random.default_rng(5)
    texts = [sentence(thing, generator) for _ in range(60) for thing in THINGS]
    return dptext.TextBank(texts, encoder="words", cache=False, name="four things", licence="made up")


def documents(count: int, *, max_sentences: int = 3, seed: int = 1) -> tuple[list[str], list[str]]:
    """Return texts with one to ``most`` sentences on one topic each, and their topics."""
    generator = np.random.default_rng(seed)
    names = list(THINGS)
    about = [names[number % len(names)] for number in range(count)]
    texts = [
        " ".join(sentence(thing, generator) for _ in range(generator.integers(1, max_sentences + 1))) for thing in about
    ]
    return texts, about
