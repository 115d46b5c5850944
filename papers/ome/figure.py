"""The figure: accuracy against true epsilon, mean of the three sets, readable in grey."""

from __future__ import annotations

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from papers.ome.tables import Accuracies, interval, over_sets

CURVES = (
    ("minilm", "supervised", "clean", "MiniLM, model sent back (nothing leaves at use)", "black", "-", "o"),
    ("minilm", "supervised", "noisy", "MiniLM, supervised public projection", "black", "--", "s"),
    ("glove", "supervised", "noisy", "GloVe, supervised public projection", "0.35", "--", "^"),
    ("glove", "centred, noise known", "noisy", "GloVe, 50 dimensions, centred", "0.35", ":", "D"),
    ("glove", "raw, noise known", "noisy", "GloVe, 50 dimensions, not centred", "0.6", ":", "v"),
)
LINES = (
    ("minilm", "public alone", "clean", "MiniLM, public\ntexts alone"),
    ("glove", "not private", "clean", "GloVe, no noise"),
    ("glove", "OME as published", "noisy", "OME, true\nepsilon {epsilon}"),
    ("glove", "majority", "clean", "majority class"),
)


def draw(found: Accuracies, folder: Path) -> None:
    figure = Figure(figsize=(8.4, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for encoder, setting, meets, label in LINES:
        for key, sets in found.items():
            if key[:3] == (encoder, setting, meets):
                level = interval(over_sets(sets))[0]
                axes.axhline(level, color="0.7", linewidth=1.0, zorder=0)
                text = f"{label.replace('{epsilon}', f'{float(key[3]):,.0f}')}: {level:.1f}"
                place = axes.get_yaxis_transform()  # beside the axes, where no curve runs
                axes.text(1.01, level, text, transform=place, fontsize=8, va="center")
    for encoder, setting, meets, label, colour, line, marker in CURVES:
        keys = sorted((key for key in found if key[:3] == (encoder, setting, meets)), key=lambda key: float(key[3]))
        points = [(float(key[3]), *interval(over_sets(found[key]))) for key in keys]
        if points:
            x, y, error = zip(*points, strict=True)
            axes.errorbar(
                x,
                y,
                error,
                label=label,
                color=colour,
                linestyle=line,
                marker=marker,
                markersize=5,
                capsize=2.5,
                linewidth=1.4,
            )
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 2, 4, 8, 16, 32, 64], labels=["1", "2", "4", "8", "16", "32", "64"])
    axes.set_xlabel("true epsilon of each text (local, any two texts)")
    axes.set_ylabel("accuracy, per cent: mean of IMDb, Amazon and Yelp\n(bars: 95% over 20 splits)")
    axes.set_ylim(46, 92)
    axes.grid(visible=True, axis="x", color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.savefig(folder / "accuracy.png", dpi=150)
    figure.savefig(folder / "accuracy.svg", metadata={"Date": None})
