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
    return matmul_costs(rows, inner, columns, repeats=repeats)[0]


def matmul_costs(
    rows: int, inner: int, columns: int, *, repeats: int, shapes: tuple[tuple[int, int], ...] = _SHAPES
) -> tuple[float, float]:
    """Best wall time and best CPU time of it, which other programs disturb differently."""
    generator = np.random.default_rng(3)
    left = generator.standard_normal((rows, inner), dtype=np.float32)
    right = generator.standard_normal((inner, columns), dtype=np.float32)
    walls, cpus = zip(*(_in_blocks(left, right, *shape) for shape in shapes for _ in range(repeats)), strict=True)
    return min(walls), min(cpus)


def best_shape(rows: int, inner: int, columns: int) -> tuple[int, int]:
    """By CPU time."""
    return min(_SHAPES, key=lambda shape: matmul_costs(rows, inner, columns, repeats=2, shapes=(shape,))[1])


def _in_blocks(left: np.ndarray, right: np.ndarray, height: int, width: int) -> tuple[float, float]:
    cuts = [*range(0, right.shape[1], width), right.shape[1]]
    bands = [*range(0, len(left), height), len(left)]
    if len(bands) - 1 < available_cores():
        raise ValueError("too few rows to keep every core busy")

    def multiply(band: tuple[int, int]) -> None:
        part = left[slice(*band)]
        room = np.empty(height * width, dtype=np.float32)
        for first, last in pairwise(cuts):
            np.matmul(part, right[:, first:last], out=room[: len(part) * (last - first)].reshape(len(part), -1))

    wall, cpu = time.perf_counter(), time.process_time()
    for_each_block(multiply, list(pairwise(bands)))
    return time.perf_counter() - wall, time.process_time() - cpu
