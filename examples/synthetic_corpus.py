"""A readable synthetic corpus: public texts chosen by one noisy release of private notes.

Run it with: python examples/synthetic_corpus.py
"""

import tempfile
from itertools import product
from pathlib import Path

import dptext

TOPICS = {
    "garden": (["planted", "watered", "cut", "sold"], ["the roses", "a young tree", "the tomatoes", "the lawn"]),
    "music": (["heard", "played", "sang", "recorded"], ["a song", "the new album", "a piano concerto", "some jazz"]),
}
WHEN = ["yesterday", "on Sunday", "this morning", "last week", "before dinner", "with my sister"]
OTHERS = ["We", "My neighbours", "The children", "Two friends", "They", "Everybody"]


def notes() -> list[dptext.Document]:
    """Return two made-up notes on one topic for each of 600 people."""
    result = []
    for person in range(600):
        topic = ["garden", "music"][person % 3 > 0]  # a third of them writes about a garden
        verbs, things = TOPICS[topic]
        for note in range(2):
            text = f"I {verbs[(person + note) % 4]} {things[person // 3 % 4]} {WHEN[person % 6]}."
            result.append(dptext.Document(text, user=f"person {person}", label=topic))
    return result


def public_texts() -> list[str]:
    """Return made-up texts of other people about gardens, music and other topics, without labels."""
    topics = [
        *TOPICS.values(),
        (["paid", "lost", "found", "forgot"], ["the bill", "my keys", "a letter", "the ticket"]),
    ]
    return [
        f"{who} {verb} {thing} {when}."
        for verbs, things in topics
        for who, verb, thing, when in product(OTHERS, verbs, things, WHEN)
    ]


def main() -> None:
    """Fit a release, sample from it, save it, and sample again from the saved folder."""
    pool = dptext.Pool(public_texts(), name="made-up public notes", licence="CC0-1.0")
    synthesizer = dptext.Synthesizer(
        epsilon=1.0, delta=1e-6, labels=["garden", "music"], features="static", cache=False
    )
    distribution = synthesizer.fit(notes(), public=pool)  # the release
    print(distribution.statement.guarantee, "for each", distribution.statement.unit)
    print({label: f"{share:.0%}" for label, share in distribution.shares().items()})

    sample = distribution.sample(pool, 300, cache=False)  # needs no further budget, here and below
    for label, text in list(zip(sample.labels, sample.texts, strict=True))[:6]:
        print(f"  {label:<8}{text}")

    folder = Path(tempfile.mkdtemp()) / "release"
    distribution.save(folder)  # can be shared: it contains its statement and a card
    more = dptext.TextDistribution.load(folder).sample(pool, 50, shares="uniform", variety=0.0, cache=False)
    print(f"{more.documents} more texts from the saved release")


if __name__ == "__main__":
    main()
