"""Where a cold TEM sample spends its time: functions by their own time, on one core (threads hide from cProfile).

Command: ``python benchmarks/profile_tem.py``
"""

from __future__ import annotations

import cProfile
import os
import pstats

import zipf

import words
from dptext import TEM, load_vectors


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    vectors = load_vectors(words.SOURCE, limit=words.BESIDE_PEER)
    draws = zipf.draw_words(vectors, words.WORDS)
    profile = cProfile.Profile()
    with profile:
        TEM(vectors, epsilon=words.TEM_EPSILON).sample(draws)
    pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    main()
