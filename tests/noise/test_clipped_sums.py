"""No user's matrix is longer than the norm, counted in integers, for any numbers."""

from fractions import Fraction

import numpy as np
import pytest

from dptext.noise.gaussian_sums import CELL, _allowed, clipped_matrices


def squared_length(cells):
    """Exactly, in Python's integers."""
    return sum(int(cell) ** 2 for cell in cells.ravel())


def test_a_matrix_is_scaled_to_its_norm_as_a_whole_and_by_itself():
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(9, 4)) * np.geomspace(1e-3, 1e3, 9)[:, None]
    starts, norms = np.array([0, 2, 3]), np.array([1.0, 0.3, 0.7])
    cells = clipped_matrices(rows, starts, norms)
    for part, whole, norm in zip(np.split(cells, starts[1:]), np.split(rows, starts[1:]), norms, strict=True):
        assert (part == clipped_matrices(whole, np.array([0]), np.array([norm]))).all()
        assert np.abs(part * CELL - norm * whole / np.linalg.norm(whole)).max() < 2 * CELL
        assert squared_length(part) <= Fraction(norm) ** 2 * 2**48


def test_rounding_that_lengthens_is_cut_back():
    """Rows whose float length is too small by rounding, huge rows, rows too small to have a length."""
    generator = np.random.default_rng(4)
    for scale in (1e-300, 1e-160, 1.0, 1e150, 1e300):
        rows = generator.normal(size=(50, 8)) * scale
        with np.errstate(over="ignore"):
            cells = clipped_matrices(rows, np.array([0, 20]), np.array([1.0, 0.3]))
        assert squared_length(cells[:20]) <= CELL**-2
        assert squared_length(cells[20:]) <= (0.3 / CELL) ** 2


@pytest.mark.parametrize("norm", [0.102575, 0.154552, 1.0, 0.7268998898943755])
def test_what_is_allowed_is_the_square_of_the_norm_and_not_its_rounding(norm):
    """C^2 2^48 seldom is a double; that of .102575 would round up over the next integer."""
    exact = Fraction(norm) ** 2 * 2**48
    assert _allowed(norm) <= exact < _allowed(norm) + 1
