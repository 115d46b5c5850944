"""Runs in the peer's own environment: faiss's exact search by scalar product on our vectors.

Arguments: a folder with bank.npy and queries.npy, how many neighbours, how many threads. The last line of output is
JSON: wall and CPU seconds of the search alone, and the version.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import faiss
import numpy as np


def main() -> None:
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    faiss.omp_set_num_threads(int(sys.argv[3]))
    bank, queries = np.load(folder / "bank.npy"), np.load(folder / "queries.npy")
    index = faiss.IndexFlatIP(bank.shape[1])
    index.add(bank)
    index.search(queries[:64], count)
    wall, cpu = time.perf_counter(), time.process_time()
    index.search(queries, count)
    spent = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    print(json.dumps({**spent, "version": faiss.__version__}))


if __name__ == "__main__":
    main()
