"""A word mechanism in a scikit-learn pipeline: the classifier learns from texts whose words may have been replaced.

At this epsilon most words stay unchanged: the guarantee is for single words and says little about a whole text.

Run it with: python examples/scikit_learn.py   (pip install "dptext[glove,sklearn]")
"""

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dptext import WordPrivatizer

ADJECTIVES = {1: ["lovely", "excellent", "friendly", "clean"], 0: ["awful", "terrible", "rude", "dirty"]}
NOUNS = ["room", "staff", "kitchen", "garden", "breakfast"]
TEXTS = [f"The {noun} was {word}." for words in ADJECTIVES.values() for word in words for noun in NOUNS]
LABELS = [label for label, words in ADJECTIVES.items() for _ in words for _ in NOUNS]


def main() -> None:
    """Train on private texts and print the guarantee for a document."""
    privatizer = WordPrivatizer(epsilon=10.0, limit=20_000)
    model = make_pipeline(privatizer, TfidfVectorizer(), LogisticRegression())
    model.fit(TEXTS, LABELS)  # one release of TEXTS
    print(privatizer.statement_.guarantee)
    print(f"Accuracy on private texts: {model.score(TEXTS, LABELS):.2f}")  # a second release, with its own privacy loss


if __name__ == "__main__":
    main()
