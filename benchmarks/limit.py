"""What the machine can do: the time of the matrix product that an exact neighbour search cannot avoid."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

from dptext.threads import available_cores, for_each_block

_SHAPES = ((256, 4096), (512, 8192), (2048, 2048), (2048, 8192))
"""Rows and columns of a block. Small ones stay in the cache, large ones fill the kernels of BLAS; the best counts."""


def matmul_seconds(rows: int, inner: int, columns: int, *, repeats: int) -> float:
    """Best wall time of a float32 product (rows x inner) (inner x columns) whose blocks are thrown away."""
    generator = np.random.default_rng(3)
    left = generator.standard_normal((rows, inner), dtype=np.float32)
    right = generator.standard_normal((inner, columns), dtype=np.float32)
    return min(_in_blocks(left, right, *shape) for shape in _SHAPES for _ in range(repeats))


def _in_blocks(left: np.ndarray, right: np.ndarray, height: int, width: int) -> float:
    cuts = [*range(0, right.shape[1], width), right.shape[1]]
    bands = [*range(0, len(left), height), len(left)]
    if len(bands) - 1 < available_cores():
        raise ValueError("too few rows to keep every core busy")

    def multiply(band: tuple[int, int]) -> None:
        part = left[slice(*band)]
        room = np.empty(height * width, dtype=np.float32)
        for first, last in pairwise(cuts):
            np.matmul(part, right[:, first:last], out=room[: len(part) * (last - first)].reshape(len(part), -1))

    start = time.perf_counter()
    for_each_block(multiply, list(pairwise(bands)))
    return time.perf_counter() - start
