"""Word vectors to gensim and back: the same words, the same numbers, the same fingerprint in every statement.

Run it with: python examples/gensim_vectors.py   (pip install "dptext[glove]" gensim)
"""

import tempfile
from pathlib import Path

from gensim.models import KeyedVectors

import dptext


def main() -> None:
    """Save public vectors in word2vec's formats, load them with gensim, take them back as an object."""
    vectors = dptext.load_vectors("glove-6b-50d", limit=5_000)
    for name, binary in (("vectors.bin", True), ("vectors.txt", False)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            dptext.save_vectors(vectors, path)
            keyed = KeyedVectors.load_word2vec_format(str(path), binary=binary)
        repeated = dptext.load_vectors(keyed)
        print(f"{name}: the same fingerprint is {repeated.fingerprint == vectors.fingerprint}")
    print("gensim's nearest words of 'doctor':", [word for word, _ in keyed.most_similar("doctor", topn=3)])


if __name__ == "__main__":
    main()
