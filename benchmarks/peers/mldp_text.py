"""Runs in the peer's own environment: mldp-text's mechanisms on our vectors and words, one word at a time.

Start it with ``python -I``: otherwise this file, which has the name of the peer's package, would be imported in its
place. Arguments: a folder with vectors.npy, words.txt and input.txt; a mechanism; epsilon; a time limit in seconds.
The last line of output is JSON: words done, seconds, the versions that ran.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nltk
import numpy as np
from gensim.models import KeyedVectors

# mldp-text fetches WordNet when it is imported, for a mechanism that is not measured here.
nltk.download = lambda *_args, **_kwargs: True


def keyed_vectors(words: list[str], matrix: Any) -> Any:
    vectors = KeyedVectors(vector_size=matrix.shape[1])
    vectors.add_vectors(words, matrix)
    return vectors


def build(name: str, epsilon: float, words: list[str], matrix: Any) -> Any:
    from mldp_text import TEM, MultivariateCalibrated

    # without these three the peer would load 300-dimensional vectors of its own
    options = {"embedding_matrix": keyed_vectors(words, matrix), "dim": matrix.shape[1], "vocab": words}
    if name == "tem":
        return TEM(epsilon, **options)
    return MultivariateCalibrated(epsilon, use_faiss=name == "madlib-approximate", **options)


def words_until(limit: float, mechanism: Any, words: list[str]) -> tuple[int, float]:
    done, start = 0, time.perf_counter()
    for word in words:
        mechanism.replace_word(word)
        done += 1
        if time.perf_counter() - start >= limit:
            break
    return done, time.perf_counter() - start


def main() -> None:
    folder, name = Path(sys.argv[1]), sys.argv[2]
    epsilon, limit = float(sys.argv[3]), float(sys.argv[4])
    words, values = ((folder / file).read_text(encoding="utf-8").split("\n") for file in ("words.txt", "input.txt"))
    mechanism = build(name, epsilon, words, np.load(folder / "vectors.npy"))
    done, seconds = words_until(limit, mechanism, values)
    packages = ("mldp-text", "numpy", "scipy", "gensim", "faiss-cpu")
    print(json.dumps({"words": done, "seconds": seconds, "versions": {name: version(name) for name in packages}}))


if __name__ == "__main__":
    main()
