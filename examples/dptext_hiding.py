"""DPText (Beigi, Shu, Guo, Wang, Liu 2019): vectors that keep a task and hide an attribute, with a true guarantee.

Run it with: python examples/dptext_hiding.py   (pip install "dptext[glove,sklearn,train]")
"""

from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression

import dptext
from dptext.representations.published import DPText

TOPICS = {"food": ["soup", "bread", "dinner", "wine"], "travel": ["train", "flight", "hotel", "airport"]}
AUTHORS = {
    "young": ["school", "teacher", "exam", "classmates"],
    "old": ["office", "pension", "grandchildren", "garden"],
}
ENDS = ["yesterday", "on Sunday", "again", "last week", "this morning", "with friends", "alone", "in a hurry"]


def reviews(ends: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Return made-up texts with their topics and the ages of their authors."""
    rows = [
        (f"The {thing} was fine, then {place} {end}.", topic, age)
        for topic, age in product(TOPICS, AUTHORS)
        for thing, place, end in product(TOPICS[topic], AUTHORS[age], ends)
    ]
    texts, topics, ages = zip(*rows, strict=True)
    return list(texts), list(topics), list(ages)


def accuracy(vectors: np.ndarray, answers: list[str]) -> str:
    """Return the accuracy on one half of the vectors of a classifier trained on the other half."""
    model = LogisticRegression(max_iter=1000).fit(vectors[::2], answers[::2])
    return f"{model.score(vectors[1::2], answers[1::2]):.2f}"


def main() -> None:
    """Compare the noise of the paper with an encoder trained with noise whose guarantee holds."""
    paper = DPText(epsilon=0.1, dimension=64, unsafe_as_published=True)
    statement, received = paper.statement(), paper.randomize(np.full((1, 64), 0.5))
    print(f"the paper: printed epsilon {statement.claimed_epsilon}, true epsilon {statement.epsilon}")
    print(f"  64 numbers of 0.5 were sent; {int((received < 0.5).sum())} arrived below 0.5")

    texts, topics, ages = reviews(ENDS[:4])
    test_texts, test_topics, test_ages = reviews(ENDS[4:])
    hiding = dptext.HidingEncoder("glove-6b-50d", epsilon=8.0, dimension=4, epochs=15, public=True, seed=1)
    private = hiding.fit(texts, task=topics, attributes={"age": ages}).transform(test_texts)
    clean = dptext.MeanOfWords(dptext.load_vectors("glove-6b-50d")).encode(test_texts)
    print(f"HidingEncoder: {hiding.statement_.guarantee}, true for any two texts")
    print(f"  accuracy for the topic {accuracy(private, test_topics)} (without noise {accuracy(clean, test_topics)})")
    print(
        f"  accuracy for age {accuracy(private, test_ages)} (without noise {accuracy(clean, test_ages)}; a guess .50)"
    )


if __name__ == "__main__":
    main()
