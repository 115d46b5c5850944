"""DPNR (Lyu, He, Li 2020): private vectors at their true epsilon, and published code that hides nothing.

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


def identified(received: np.ndarray, known: np.ndarray) -> str:
    """Count the received vectors that are nearest to their own text."""
    correct = [np.argmin(((known - vector) ** 2).sum(axis=1)) == n for n, vector in enumerate(received)]
    return f"{sum(correct)} of {len(correct)} texts identified"


def main() -> None:
    """Send the same vectors as the paper describes, as its code did, and with a mechanism whose guarantee holds."""
    vectors = dptext.MeanOfWords(dptext.load_vectors("glove-6b-50d", limit=20_000)).encode(TEXTS)
    known = min_max(vectors)

    paper = DPNR(epsilon=0.05, dimension=50, unsafe_as_published=True)
    statement = paper.statement()
    print(f"the paper: printed epsilon {statement.claimed_epsilon}, true epsilon {statement.epsilon:g}")

    code = DPNR(epsilon=0.05, dimension=50, noise="one scalar", unsafe_as_published=True)
    statement = code.statement()
    recovered = min_max(
        code.randomize(vectors).astype(np.float64)
    )  # one number was added to all coordinates: subtract the smallest
    print(f"its code: printed epsilon {statement.claimed_epsilon}, true epsilon {statement.epsilon:g}")
    print(f"  recovered: error at most {np.abs(recovered - known).max():.0e}, {identified(recovered, known)}")

    sound = dptext.PrivUnit(epsilon=4.0)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    print(f"PrivUnit: {sound.statement(50).guarantee}, true for any two texts")
    print(f"  {identified(sound.randomize(vectors), unit)}")


if __name__ == "__main__":
    main()
