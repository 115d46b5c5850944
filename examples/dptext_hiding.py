"""DPText (Beigi, Shu, Guo, Wang, Liu 2019): vectors that keep a task, hide an attribute, and keep their promise.

Run it with: python examples/dptext_hiding.py   (pip install "dptext[glove,sklearn,train]")
"""

from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression

import dptext
from dptext.representations.published import DPText

TOPICS = {"food": ["soup", "bread", "dinner", "wine"], "travel": ["train", "flight", "hotel", "airport"]}
WHO = {"young": ["school", "teacher", "exam", "classmates"], "old": ["office", "pension", "grandchildren", "garden"]}
ENDS = ["yesterday", "on Sunday", "again", "last week", "this morning", "with friends", "alone", "in a hurry"]


def reviews(ends: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Made up: texts, the topic of each, and the age of who wrote it."""
    rows = [
        (f"The {thing} was fine, then {place} {end}.", topic, age)
        for topic, age in product(TOPICS, WHO)
        for thing, place, end in product(TOPICS[topic], WHO[age], ends)
    ]
    texts, topics, ages = zip(*rows, strict=True)
    return list(texts), list(topics), list(ages)


def told(vectors: np.ndarray, answers: list[str]) -> str:
    """What somebody reads from the vectors of one half who was trained on the other."""
    model = LogisticRegression(max_iter=1000).fit(vectors[::2], answers[::2])
    return f"{model.score(vectors[1::2], answers[1::2]):.2f}"


def main() -> None:
    """The paper's noise, and an encoder trained with the noise of a promise that holds."""
    paper = DPText(epsilon=0.1, dimension=64, unsafe_as_published=True)
    text, sent = paper.statement(), paper.randomize(np.full((1, 64), 0.5))
    print(f"the paper: printed epsilon {text.claimed_epsilon}, true epsilon {text.epsilon}")
    print(f"  64 numbers of 0.5 were sent; how many arrived as less: {int((sent < 0.5).sum())}")

    texts, topics, ages = reviews(ENDS[:4])
    mine, my_topics, my_ages = reviews(ENDS[4:])
    hiding = dptext.HidingEncoder("glove-6b-50d", epsilon=8.0, dimension=4, epochs=15, public=True, seed=1)
    private = hiding.fit(texts, task=topics, attributes={"age": ages}).transform(mine)
    clean = dptext.MeanOfWords(dptext.load_vectors("glove-6b-50d")).encode(mine)
    print(f"HidingEncoder: {hiding.statement_.guarantee}, true for any two texts")
    print(f"  topic told from {told(private, my_topics)} of the texts (without noise {told(clean, my_topics)})")
    print(f"  age told from {told(private, my_ages)} of the texts (without noise {told(clean, my_ages)}; a guess .50)")


if __name__ == "__main__":
    main()
