"""OME (Lyu, Li, He, Xiao 2020): texts as randomized bits, compared with a mechanism whose epsilon is true.

Run it with: python examples/ome.py   (pip install "dptext[glove]")
"""

import numpy as np

import dptext
from dptext.representations.published_protocols import OME, OUE, SUE

NOUNS = ["room", "staff", "kitchen", "garden", "breakfast", "street", "hotel", "waiter"]
TEXTS = [f"The {noun} was {word}." for noun in NOUNS for word in ("lovely", "friendly", "awful", "dirty")]


def linked(mechanism: dptext.representations.randomizer.Randomizer, vectors: np.ndarray) -> str:
    """Send all texts twice and count the vectors of the second release that are nearest to their text in the first."""
    first, second = mechanism.randomize(vectors), mechanism.randomize(vectors)
    correct = [np.argmin(((first - vector) ** 2).sum(axis=1)) == n for n, vector in enumerate(second)]
    return f"{sum(correct)} of {len(correct)} texts linked (by chance: 1)"


def main() -> None:
    """Print the claimed and the true epsilon of three protocols, and how many texts an adversary links."""
    vectors = dptext.MeanOfWords(dptext.load_vectors("glove-6b-50d", limit=20_000)).encode(TEXTS)
    protocols = [OME(epsilon=1.0, lambda_=factor, unsafe_as_published=True) for factor in (1, 10, 50, 100)]
    protocols += [SUE(epsilon=1.0, unsafe_as_published=True), OUE(epsilon=1.0, unsafe_as_published=True)]
    for protocol in protocols:
        statement = protocol.statement(50)
        parameter = f", lambda {protocol.lambda_:g}" if isinstance(protocol, OME) else ""
        epsilons = f"printed epsilon {statement.claimed_epsilon:g}, true epsilon {statement.epsilon:,.4g}"
        print(f"{protocol.name}{parameter}: {epsilons}")
        print(f"  {linked(protocol, vectors)}")
    sound = dptext.PrivUnit(epsilon=1.0)
    print(f"PrivUnit: {sound.statement(50).guarantee}, true for any two texts")
    print(f"  {linked(sound, vectors)}")


if __name__ == "__main__":
    main()
