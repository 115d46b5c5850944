"""OME (Lyu, Li, He, Xiao 2020): texts as flipped bits, beside a mechanism whose epsilon is true.

Run it with: python examples/ome.py   (pip install "dptext[glove]")
"""

import numpy as np

import dptext
from dptext.representations.published import OME, OUE, SUE

NOUNS = ["room", "staff", "kitchen", "garden", "breakfast", "street", "hotel", "waiter"]
TEXTS = [f"The {noun} was {word}." for noun in NOUNS for word in ("lovely", "friendly", "awful", "dirty")]


def relinked(mechanism: dptext.representations.randomizer.Randomizer, vectors: np.ndarray) -> str:
    """Send all texts twice: how many of the second release are nearest to the same text in the first."""
    first, second = mechanism.randomize(vectors), mechanism.randomize(vectors)
    right = [np.argmin(((first - entry) ** 2).sum(axis=1)) == n for n, entry in enumerate(second)]
    return f"{sum(right)} of {len(right)} texts found again (a guess: 1)"


def main() -> None:
    """Printed and true epsilon of the paper's three protocols, and what is seen of a text."""
    vectors = dptext.MeanOfWords(dptext.load_vectors("glove-6b-50d", limit=20_000)).encode(TEXTS)
    protocols = [OME(epsilon=1.0, lambda_=by, unsafe_as_published=True) for by in (1, 10, 50, 100)]
    protocols += [SUE(epsilon=1.0, unsafe_as_published=True), OUE(epsilon=1.0, unsafe_as_published=True)]
    for kind in protocols:
        statement = kind.statement(50)
        factor = f", lambda {kind.lambda_:g}" if isinstance(kind, OME) else ""
        print(
            f"{kind.name}{factor}: printed epsilon {statement.claimed_epsilon:g}, true epsilon {statement.epsilon:,.4g}"
        )
        print(f"  {relinked(kind, vectors)}")
    sound = dptext.PrivUnit(epsilon=1.0)
    print(f"PrivUnit: {sound.statement(50).guarantee}, true for any two texts")
    print(f"  {relinked(sound, vectors)}")


if __name__ == "__main__":
    main()
