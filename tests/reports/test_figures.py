"""Figures: what cannot be drawn is said before any work, what can is written."""

import sys

import pytest

from dptext import TEM, Madlib, deniability
from dptext.errors import MissingExtraError, ParameterError, StorageError
from dptext.methods.figures import calibration_figure, figure_format


def test_bad_places_are_named(tmp_path):
    with pytest.raises(ParameterError, match=r"ends in \.png, \.pdf, \.svg"):
        figure_format(tmp_path / "x.jpg")
    with pytest.raises(StorageError, match="does not exist; create it first"):
        figure_format(tmp_path / "nowhere" / "x.png")


def test_a_missing_matplotlib_is_answered_with_its_install_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[report\]"'):
        figure_format(tmp_path / "x.png")


@pytest.mark.slow
def test_a_figure_is_drawn_and_needs_no_window(small, tmp_path):
    pytest.importorskip("matplotlib")
    before = "matplotlib.pyplot" in sys.modules
    results = [deniability(TEM(small, epsilon=epsilon)) for epsilon in (1.0, 2.0, 4.0)]
    sampled = [deniability(Madlib(small, epsilon=epsilon), draws=20, seed=1) for epsilon in (2.0, 1e4)]
    curves = {"TEM": results, "Madlib": sampled}
    for name in ("x.png", "x.svg", "x.pdf"):
        calibration_figure(tmp_path / name, curves, {"TEM": results[1], "Madlib": sampled[1]}, source="small")
        assert (tmp_path / name).stat().st_size > 5000
    assert ("matplotlib.pyplot" in sys.modules) == before
