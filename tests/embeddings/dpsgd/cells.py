"""Read and write the sum of a step as one array."""

import numpy as np

from dptext.embeddings.noise import NOWHERE


def put(sums, rows, cells):
    """Write rows that are not touched yet: 16 bits per number where they fit, else 32."""
    for row, values in zip(rows, cells, strict=True):
        fits = np.abs(values.astype(np.int64)).max() < 2**15
        place = sums.used[0 if fits else 1]
        (sums.narrow if fits else sums.wide)[place] = values
        sums.places[row] = place if fits else -2 - place
        sums.used[0 if fits else 1] += 1


def get(sums, rows):
    """(n, d) the numbers of some rows."""
    cells = np.zeros((len(rows), sums.narrow.shape[1]), dtype=np.int32)
    for number, place in enumerate(sums.places[rows]):
        if place != NOWHERE:
            cells[number] = sums.narrow[place] if place >= 0 else sums.wide[-2 - place]
    return cells
