"""Figures on axes: rows below rows, styles that can be told apart, greys of the style in use, losses without end."""

import math
import sys

import pytest

from dptext.errors import MissingExtraError, ParameterError
from dptext.plotting import (
    add_guarantee_row,
    add_named_row,
    add_score_row,
    get_axes,
    grey,
    legend_below,
    next_style,
)

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


def test_new_axes_are_made_where_none_are_given_and_other_things_are_refused(monkeypatch):
    axes = get_axes(None)
    assert get_axes(axes) is axes
    with pytest.raises(ParameterError, match="axes must be matplotlib axes or None, got int"):
        get_axes(3)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[report\]"'):
        get_axes(None)


@pytest.mark.parametrize("style", ["default", "dark_background", "ggplot"])
def test_everything_stands_out_of_the_paper_of_every_style(style):
    with pyplot.style.context(style):
        axes = get_axes(None)
        paper = axes.get_facecolor()
        assert axes.figure.get_facecolor() == paper
        for share in (1.0, 0.75, 0.55, 0.4):
            assert max(abs(ink - below) for ink, below in zip(grey(axes, share), paper, strict=False)) > 0.2
        assert grey(axes, 0.0) == pytest.approx(paper[:3])


def test_four_lines_have_four_forms():
    axes = get_axes(None)
    forms = []
    for name in "abcd":
        style = next_style(axes)
        axes.plot([0, 1], label=name, **style)
        forms.append((style["linestyle"], style["marker"]))
    assert len(set(forms)) == 4


def test_rows_stand_below_each_other_and_a_dollar_is_a_letter():
    axes = get_axes(None)
    assert [add_named_row(axes, name) for name in ("one", "$two", "three")] == [0, 1, 2]
    assert [yticklabel.get_text() for yticklabel in axes.get_yticklabels()] == ["one", "$two", "three"]
    add_score_row(axes, "four$", value=0.5, low=0.4, high=0.6, baseline=0.1)
    add_score_row(axes, "five", value=0.5, low=0.4, high=0.6, baseline=0.1)
    legend_below(axes)
    axes.figure.canvas.draw()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["result, 95% interval", "without the data"]


@pytest.mark.parametrize("allowed", [0.0, 2.0, 1e9, math.inf])
@pytest.mark.parametrize("loss", [-1.0, 0.0, 5.0, math.inf])
@pytest.mark.parametrize("strongest", [3.0, math.inf])
def test_a_loss_without_end_is_drawn_as_long_as_the_paper(allowed, loss, strongest):
    axes = get_axes(None)
    add_guarantee_row(axes, "x", allowed=allowed, loss=loss, strongest=strongest, refuted=loss > allowed)
    axes.figure.canvas.draw()
    assert all(math.isfinite(patch.get_width()) for patch in axes.patches)
    text = " ".join(entry.get_text() for entry in axes.texts)
    assert ("infinite" in text) == (math.inf in (allowed, loss)) and ("beyond" in text) == (allowed == 1e9)
