"""DPNR (Lyu, He, Li 2020): private vectors of texts at the epsilon that is true, and the code that hid nothing.

Run it with: python examples/dpnr.py   (pip install "dptext[glove]")
"""

import numpy as np

import dptext
from dptext.representations.published import DPNR, min_max

TEXTS = [
    "The doctor listened to me for an hour.",
    "Two goals in the last minute of the match!",
    "Shares fell after the bank raised its rates.",
    "The new telescope found a planet like ours.",
]


def named(sent: np.ndarray, known: np.ndarray) -> str:
    """How many of the sent vectors are nearest to their own text, of those that somebody knows."""
    right = [np.argmin(((known - entry) ** 2).sum(axis=1)) == n for n, entry in enumerate(sent)]
    return f"{sum(right)} of {len(right)} texts named"


def main() -> None:
    """Send the same vectors as the paper prints it, as its code did, and with a mechanism that keeps its promise."""
    vectors = dptext.MeanOfWords(dptext.load_vectors("glove-6b-50d", limit=20_000)).encode(TEXTS)
    known = min_max(vectors)

    paper = DPNR(epsilon=0.05, dimension=50, unsafe_as_published=True)
    statement = paper.statement()
    print(f"the paper: printed epsilon {statement.claimed_epsilon}, true epsilon {statement.epsilon:g}")

    code = DPNR(epsilon=0.05, dimension=50, noise="one scalar", unsafe_as_published=True)
    statement = code.statement()
    undone = min_max(code.randomize(vectors).astype(np.float64))  # one number was added to all: take the smallest off
    print(f"its code: printed epsilon {statement.claimed_epsilon}, true epsilon {statement.epsilon:g}")
    print(f"  undone: off by {np.abs(undone - known).max():.0e} at most, {named(undone, known)}")

    sound = dptext.PrivUnit(epsilon=4.0)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    print(f"PrivUnit: {sound.statement(50).guarantee}, true for any two texts")
    print(f"  {named(sound.randomize(vectors), unit)}")


if __name__ == "__main__":
    main()
