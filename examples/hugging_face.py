"""Private texts in a Hugging Face dataset, with their statement.

Run it with: python examples/hugging_face.py   (pip install "dptext[glove]" datasets)
"""

import tempfile

import datasets

import dptext

REVIEWS = {
    "text": ["The doctor listened to my wife for an hour.", "Rude staff, we left at 9.", "Fine."] * 20,
    "stars": [5, 1, 4] * 20,
    "author": ["A", "B", "C"] * 20,
}


def main() -> None:
    """Privatize the texts, drop all columns but the stars, and print the statement."""
    reviews = datasets.Dataset.from_dict(REVIEWS)
    mechanism = dptext.TEM(dptext.load_vectors("glove-6b-50d", limit=20_000), epsilon=10.0)
    release = dptext.privatize(reviews, mechanism, keep=["stars"])
    print(release.table)
    print(release.statement.explain())
    with tempfile.TemporaryDirectory() as folder:
        release.table.save_to_disk(folder)  # share this folder and release.statement.to_json()


if __name__ == "__main__":
    main()
