"""Runs in an environment of its own: gensim's skip-gram, not private, on one worker.

Arguments: words, dimension, negatives, window, pairs (about). The last line of output is JSON: pairs, CPU seconds.
Windows have one length and no word is left out, so the pairs of a sentence can be counted.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from gensim.models import Word2Vec

LENGTH = 200


def main() -> None:
    words, dimension, negatives, window, pairs = map(int, sys.argv[1:6])
    places = np.arange(LENGTH)
    entry = int((np.minimum(places + window, LENGTH - 1) - np.maximum(places - window, 0)).sum())
    count = max(1, pairs // entry)
    weights = 1 / (np.arange(words) + 3.7)
    draws = np.random.default_rng(1).choice(words, (count, LENGTH), p=weights / weights.sum())
    sentences = [[f"w{word}" for word in sentence] for sentence in draws.tolist()]
    model = Word2Vec(
        vector_size=dimension,
        window=window,
        negative=negatives,
        sg=1,
        sample=0,
        shrink_windows=False,
        min_count=1,
        workers=1,
        seed=1,
    )
    model.build_vocab_from_freq({f"w{word}": max(1, round(1e9 * weights[word])) for word in range(words)})
    model.train(sentences[:20], total_examples=20, epochs=1)
    before = time.process_time()
    model.train(sentences, total_examples=count, epochs=1)
    seconds = time.process_time() - before
    print(json.dumps({"pairs": count * entry, "seconds": seconds, "version": version("gensim")}))


if __name__ == "__main__":
    main()
