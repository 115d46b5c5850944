"""The pictures of the mechanisms' pages, drawn by the mechanisms themselves while the site is built.

Each function of `FIGURES` draws on a figure of matplotlib and returns the numbers that it has drawn, so that a test can
compare them with the mechanism's own. Nothing is kept: mkdocs-gen-files writes the pictures into the virtual folder
``mechanisms/figures``. To look at them: ``python docs/scripts/figures.py FOLDER``.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import dptext

Numbers = dict[str, Any]

ROOT = Path(__file__).parents[2]
FOLDER = "mechanisms/figures"
SIZE = 20_000
WORDS = ("doctor", "monday")
EPSILONS = (2.0, 5.0, 10.0)
GROUPS = {"itself": 1, "1-10": 11, "11-100": 101, "101-\n1,000": 1_001, "1,001-\n10,000": 10_001, "farther": SIZE}
"""Words by nearness to the true one, and the rank at which the next group begins."""
DRAWS = 1_500
DIMENSION = 64
PURE = ("PrivUnit", "PrivUnitG", "L2Laplace", "Laplace", "Piecewise", "Hybrid", "OneBit", "WeightedBits")
BUDGETS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_STYLE = {
    "svg.hashsalt": "dptext",
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
}
_FORMS = (
    {"linestyle": "-", "marker": "o"},
    {"linestyle": "--", "marker": "s"},
    {"linestyle": ":", "marker": "^"},
    {"linestyle": "-.", "marker": "D"},
)
_SHARES = (1.0, 0.55, 0.75, 0.4)
_BARS = ({"fc": "1.0", "hatch": "....."}, {"fc": "0.6"}, {"fc": "0.1"})


@cache
def vectors() -> dptext.WordVectors:
    """The words of all pictures of word mechanisms."""
    return dptext.load_vectors("glove-6b-50d", limit=SIZE)


@cache
def ranked(word: str) -> Any:
    """All rows by Euclidean distance from a word, itself first."""
    matrix, row = vectors().matrix.astype(np.float64), vectors().vocabulary.row(word)
    far = np.square(matrix - matrix[row]).sum(axis=1)
    far[row] = -1.0
    return np.argsort(far, kind="stable")


@cache
def sample_texts() -> tuple[str, ...]:
    """Utterances of SNIPS that come with the package: public texts for the pictures of texts."""
    bundled = files("dptext.cli") / "sample" / "snips-train.jsonl.gz"
    return tuple(document.text for document in dptext.read_documents(str(bundled)))[1::16]


# -- axes -----------------------------------------------------------------------------------------------------------


def grey(axes: Any, share: float = 1.0) -> tuple[float, float, float]:
    """Mix the text colour (``share``) with the background colour: black and greys in the default style."""
    text = axes.xaxis.label.get_color()
    red, green, blue = (
        share * ink + (1 - share) * paper
        for ink, paper in zip(to_rgb(text), to_rgb(axes.get_facecolor()[:3]), strict=True)
    )
    return red, green, blue


def next_style(axes: Any, place: int | None = None) -> dict[str, Any]:
    """Return the style of a line; ``place`` None: the next one after the labelled lines."""
    if place is None:
        place = len({label for label in axes.get_legend_handles_labels()[1] if label})
    return {"color": grey(axes, _SHARES[place % len(_SHARES)]), **_FORMS[place % len(_FORMS)]}


def label_axes(axes: Any, x: str, y: str, title: str = "") -> None:
    """Label the axes, draw a grid in the background, and add a legend."""
    axes.set(xlabel=x, ylabel=y, title=title)
    axes.grid(visible=True, color=grey(axes, 0.1), linewidth=0.6)
    axes.set_axisbelow(True)
    _legend(axes)


def legend_below(axes: Any) -> None:
    """Add a legend below, with each name once."""
    _legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3, frameon=False)


def _legend(axes: Any, **where: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        axes.legend(once.values(), once.keys(), fontsize=8, **where)


# -- word mechanisms -----------------------------------------------------------------------------------------------


def shares_of(mechanism: dptext.words.mechanism.WordMechanism, word: str) -> Any:
    """(6,) chance that a word comes out in each of `GROUPS`: exact where the mechanism can say it, else of draws."""
    order = ranked(word)
    if hasattr(mechanism, "probabilities"):
        chances = mechanism.probabilities(word)
    else:
        rows = np.full(DRAWS, vectors().vocabulary.row(word))
        draws = mechanism.sample_rows(rows, dptext.privacy.randomness.RandomBits(24))
        chances = np.bincount(draws, minlength=len(order)) / DRAWS
    running = np.cumsum(chances[order])
    ends = [0.0, *(running[end - 1] for end in GROUPS.values())]
    return np.diff(ends)


def words(figure: Figure, kind: str, *, name: str = "epsilon {:g}") -> Numbers:
    """Where two words go at three epsilons; the same axes for all mechanisms."""
    axes = figure.subplots(1, 2, sharey=True)
    build: Any = getattr(dptext, kind)
    result: Numbers = {}
    for epsilon, style, shift in zip(EPSILONS, _BARS, (-0.27, 0.0, 0.27), strict=True):
        mechanism = build(vectors(), epsilon=epsilon)
        label = name.format(epsilon, mechanism.statement.epsilon)
        for entry, word in zip(axes, WORDS, strict=True):
            shares = result[f"{word} {epsilon:g}"] = shares_of(mechanism, word)
            entry.bar(np.arange(len(GROUPS)) + shift, shares, 0.27, ec="0.1", lw=0.6, label=label, **style)
    for entry, word in zip(axes, WORDS, strict=True):
        entry.set(title=f'what becomes of "{word}"', ylim=(0, 1), xticks=range(len(GROUPS)))
        entry.set_xticklabels(list(GROUPS), fontsize=7.5)
        entry.set_xlabel("rank among the nearest words")
        entry.grid(visible=True, axis="y", color="0.9", linewidth=0.6)
        entry.set_axisbelow(True)
    axes[0].set_ylabel("chance")
    axes[1].legend(fontsize=8, loc="upper center")
    return result


def truncated_gumbel(figure: Figure) -> Numbers:
    """What pairs of a word lose at least, beside what the paper prints."""
    known = dptext.load_vectors("glove-6b-50d", limit=2_000)
    mechanism = dptext.TruncatedGumbel(known, epsilon=100.0, scale=1.0, unsafe_as_published=True)
    word = WORDS[0]
    row = known.vocabulary.row(word)
    far = np.linalg.norm(known.matrix.astype(np.float64) - known.matrix[row], axis=1)
    order = np.argsort(far)[1:]
    lost, printed = mechanism.least_loss(word)[order], mechanism.epsilon * far[order]
    axes = figure.subplots()
    axes.plot(far[order], lost, color=grey(axes), lw=1.6, label="true loss, at least")
    axes.plot(far[order], printed, color=grey(axes, 0.55), ls="--", lw=1.6, label="printed: 100 x distance")
    axes.set(yscale="log", xlim=(float(far[order][0]), float(far[order][-1])))
    label_axes(axes, f'distance of the other word from "{word}"', "privacy loss in nats")
    return {"distance": far[order], "lost": lost, "printed": printed}


def sampler(figure: Figure) -> Numbers:
    """Error of TEM's integer weights for every word, and its proved bound."""
    mechanism = dptext.TEM(vectors(), epsilon=5.0)
    table, row = mechanism.distance_table(), np.array([vectors().vocabulary.row(WORDS[0])])
    squared = table.squared(table.rows(row), table.columns(0, SIZE))[0]
    far = np.sqrt(squared) * table.step
    capped = np.minimum(far, mechanism.threshold)
    weights = mechanism.weights([WORDS[0]])[0]
    off = np.abs(np.log(weights.astype(np.float64)) - 44 * math.log(2) + 2.5 * capped)
    theta = (mechanism.slack - 2 * mechanism.epsilon * table.rounding) / 4
    axes = figure.subplots()
    order = np.argsort(far)
    axes.plot(far[order], np.maximum(off[order], 1e-9), ".", ms=2, color=grey(axes, 0.6), label="a word")
    axes.axhline(theta, color=grey(axes), lw=1.4, label=f"proved: theta = {theta:.1e}")
    axes.set(yscale="log", ylim=(1e-9, 1e-4))
    label_axes(axes, f'distance from "{WORDS[0]}"', "|ln(integer weight) - ln(formula)|")
    return {"off": off, "theta": theta, "slack": mechanism.slack}


# -- randomizers ---------------------------------------------------------------------------------------------------


def error_of(name: str, epsilon: float, dimension: int = DIMENSION) -> float:
    """E||z - x||^2 for a vector of length 1, whose coordinates are cut at 3 / sqrt(d) where noise is for the cube."""
    options = {"delta": 1e-5} if name == "Gaussian" else {}
    channel = getattr(dptext, name)(epsilon=epsilon, **options).channel(dimension)
    limit = min(1.0, 3 / math.sqrt(dimension)) if channel.domain == "unit cube" else 1.0
    return limit**2 * channel.expected_squared_error


def _errors(axes: Any, names: Sequence[str]) -> Numbers:
    """Errors over epsilon, on the same axes for all randomizers, with PrivUnit for comparison."""
    result: Numbers = {}
    for name in dict.fromkeys((*names, "PrivUnit")):
        result[name] = np.array([error_of(name, epsilon) for epsilon in BUDGETS])
        style = next_style(axes)
        axes.plot(BUDGETS, result[name], label=name, markersize=4, **style)
    axes.axhline(1.0, color=grey(axes, 0.5), lw=0.8)
    axes.set(xscale="log", yscale="log", ylim=(0.2, 2e5))
    axes.set_xticks(BUDGETS, [f"{budget:g}" for budget in BUDGETS])
    axes.minorticks_off()
    label_axes(axes, "epsilon", "squared error (line: 1, as far as\na vector is long)", "64 dimensions")
    return result


def _outputs(axes: Any, kinds: Mapping[str, Any]) -> Numbers:
    """Draws around one vector of the plane."""
    x = np.array([[0.8, 0.6]])
    result: Numbers = {}
    for (label, randomizer), marker, share in zip(kinds.items(), "o^s", (1.0, 0.6, 0.4), strict=False):
        draws = result[label] = randomizer.randomize(np.repeat(x, 150, axis=0), seed=24)
        axes.plot(*draws.T, marker, ms=2.6, mew=0.6, mfc="none", color=grey(axes, share), label=label)
    axes.plot(*x[0], "*", ms=13, color=grey(axes), mec=(1, 1, 1), label="the vector")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_title("150 private vectors of one, epsilon 4, in the plane")
    axes.grid(visible=True, color=grey(axes, 0.1), linewidth=0.6)
    axes.set_axisbelow(True)
    legend_below(axes)
    return result


def privunit(figure: Figure) -> Numbers:
    """Outputs of PrivUnit and PrivUnitG, and their errors."""
    left, right = figure.subplots(1, 2)
    kinds = {"PrivUnit": dptext.PrivUnit(epsilon=4.0), "PrivUnitG": dptext.PrivUnitG(epsilon=4.0)}
    return {"drawn": _outputs(left, kinds), "errors": _errors(right, ["PrivUnit", "PrivUnitG"])}


def additive(figure: Figure) -> Numbers:
    """Outputs of additive noise, and its errors."""
    left, right = figure.subplots(1, 2)
    kinds = {
        "Laplace": dptext.Laplace(epsilon=4.0),
        "L2Laplace": dptext.L2Laplace(epsilon=4.0),
        "Gaussian": dptext.Gaussian(epsilon=4.0, delta=1e-5),
    }
    return {"drawn": _outputs(left, kinds), "errors": _errors(right, ["Laplace", "L2Laplace", "Gaussian"])}


def numbers(figure: Figure) -> Numbers:
    """What the mechanisms of the cube send for one number, and their errors for vectors."""
    left, right = figure.subplots(1, 2)
    edges = np.linspace(-2.5, 2.5, 51)
    result: Numbers = {}
    forms = ({"fc": "0.8", "ec": "0.1", "lw": 0.8}, {"fc": "none", "ec": "0.1", "lw": 1.2, "ls": "--"})
    for kind, form in zip((dptext.Piecewise, dptext.OneBit), forms, strict=True):
        draws = kind(epsilon=2.5).randomize(np.full((20_000, 1), 0.5), seed=24)[:, 0]
        result[kind.__name__] = draws
        left.hist(
            draws,
            edges,
            weights=np.full(len(draws), 1 / len(draws)),
            label=kind.__name__,
            histtype="stepfilled",
            **form,
        )
    left.axvline(0.5, color=grey(left), lw=0.8, ls=":", label="the number")
    label_axes(left, "output", "share of draws", "one number, .5, at epsilon 2.5")
    return {"drawn": result, "errors": _errors(right, ["Piecewise", "Hybrid", "OneBit"])}


def bits(figure: Figure) -> Numbers:
    """How often WeightedBits flips each bit; how far shares of things are off that unary codes estimate."""
    from dptext.representations.bits import bit_budgets

    left, right = figure.subplots(1, 2)
    result: Numbers = {}
    for epsilon in (2.0, 8.0):
        chances = result[f"flips {epsilon:g}"] = 1 / (1 + np.exp(bit_budgets(epsilon, 6)[::-1]))
        left.plot(range(1, 7), chances, label=f"epsilon {epsilon:g} a number", markersize=5, **next_style(left))
    left.axhline(0.5, color=grey(left, 0.5), lw=0.8, label="a coin: nothing is said")
    left.set_ylim(0, 0.55)
    label_axes(left, "bit of 6, the heaviest first", "chance to be flipped", "WeightedBits")
    kinds, people = 100, 10_000
    for kind in (dptext.SymmetricUnary, dptext.OptimizedUnary):
        variance = [kind(epsilon=budget).expected_squared_error(kinds) / kinds for budget in BUDGETS[:4]]
        result[kind.__name__] = np.sqrt(np.array(variance) / people)
        right.plot(BUDGETS[:4], result[kind.__name__], label=kind.__name__, markersize=5, **next_style(right))
    right.set(xscale="log", yscale="log")
    right.set_xticks(BUDGETS[:4], [f"{budget:g}" for budget in BUDGETS[:4]])
    right.minorticks_off()
    label_axes(right, "epsilon", "error of a share", "shares of 100 things, 10,000 people")
    return result


def published(figure: Figure) -> Numbers:
    """Printed and true epsilon of 50 numbers of the papers."""
    from dptext.representations.published import DPNR, DPText
    from dptext.representations.published_protocols import OME, OUE, SUE

    claimed, result = 1.0, {}
    for kind in (SUE, OUE, OME, DPNR, DPText):
        result[kind.__name__] = kind(epsilon=claimed, unsafe_as_published=True).statement(50).epsilon
    axes = figure.subplots()
    position, end = np.arange(len(result)), 2e4
    true = [min(entry, end) for entry in result.values()]
    axes.barh(position - 0.18, claimed, 0.34, ec="0.1", lw=0.6, fc="1.0", hatch=".....", label="printed")
    axes.barh(position + 0.18, true, 0.34, ec="0.1", lw=0.6, fc="0.1", label="true")
    for place, value in zip(position, result.values(), strict=True):
        text = f"{value:,.4g}" if math.isfinite(value) else "infinite"
        axes.text(min(value, end) * 1.1, place + 0.18, text, va="center", fontsize=8)
    axes.set_yticks(position, list(result))
    axes.invert_yaxis()
    axes.set(xscale="log", xlim=(0.3, 1e5))
    label_axes(axes, "epsilon for one vector of 50 numbers", "")
    return result


def private_vectors(figure: Figure) -> Numbers:
    """The least error by dimension, at three budgets."""
    axes, result = figure.subplots(), {}
    for epsilon in (2.0, 8.0, 32.0):
        points = [(d, min(error_of(name, epsilon, d) for name in PURE)) for d in (2, 8, 32, 128)]
        axes.plot(*zip(*points, strict=True), label=f"epsilon {epsilon:g}", markersize=5, **next_style(axes))
        result[f"{epsilon:g}"] = points
    axes.axhline(1.0, color=grey(axes, 0.5), linewidth=0.8, label="as far as a vector is long")
    axes.set(xscale="log", yscale="log")
    label_axes(axes, "dimension", "expected squared error", "")
    axes.set_xticks([2, 8, 32, 128], ["2", "8", "32", "128"])
    axes.minorticks_off()
    return result


# -- corpora, sentences, shared vectors ----------------------------------------------------------------------------


def synthesis(figure: Figure) -> Numbers:
    """How many texts get the right label, by the number of people."""
    from dptext.representations.encoders import MeanOfWords
    from dptext.synthesis.planning import expected_quality

    people = (100, 300, 1_000, 10_000)
    axes, result = figure.subplots(), {"people": people}
    texts, labels, encoder = list(sample_texts()[::2]), [str(index) for index in range(7)], MeanOfWords(vectors())
    for epsilon in (0.5, 1.0, 4.0):
        expected = [
            expected_quality(
                texts, people=count, labels=labels, epsilon=epsilon, features=encoder, cache=False, seed=24
            )
            for count in people
        ]
        agreed = result[f"{epsilon:g}"] = [entry[0].agreement for entry in expected]
        axes.plot(people, agreed, label=f"epsilon {epsilon:g}", markersize=5, **next_style(axes))
    axes.axhline(1 / 7, color=grey(axes, 0.5), lw=0.8, label="by chance")
    axes.set(xscale="log", ylim=(0, 1))
    label_axes(axes, "people", "texts with the label that they\nwould get without noise")
    return result


def sentences(figure: Figure) -> Numbers:
    """The chance that one of the texts most like the true one comes out, by epsilon."""
    from dptext.representations.encoders import MeanOfWords

    encoder = MeanOfWords(vectors())
    bank = dptext.TextBank(list(sample_texts()), encoder=encoder, name="SNIPS", licence="CC0-1.0", cache=False)
    epsilons = (2.0, 4.0, 6.0, 8.0, 10.0, 12.0)
    near, sizes = [], []
    for epsilon in epsilons:
        chosen = dptext.BankRewriter(bank, epsilon=epsilon, unit="document")
        shares = chosen.probabilities("book a table at an italian restaurant for three people")
        near.append(float(np.sort(shares)[-chosen.size :].sum()))
        sizes.append(chosen.size)
    axes = figure.subplots()
    position = np.arange(len(epsilons))
    axes.bar(position, near, 0.6, fc="0.1", ec="0.1", lw=0.6, label="one of the k texts most like it")
    axes.bar(
        position,
        1 - np.array(near),
        0.6,
        bottom=near,
        fc="1.0",
        ec="0.1",
        lw=0.6,
        hatch=".....",
        label=f"any other of {len(bank):,}",
    )
    axes.set_xticks(position, [f"{entry:g}\nk = {size}" for entry, size in zip(epsilons, sizes, strict=True)])
    axes.set(xlabel="epsilon, and the k that is best for it", ylabel="chance", ylim=(0, 1))
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return {"epsilons": epsilons, "near": near, "sizes": sizes, "bank": len(bank)}


def cooccurrence(figure: Figure) -> Numbers:
    """The share of what texts add to public vectors that comes through the noise."""
    from dptext.embeddings.plan import expected_vectors

    people = (300, 1_000, 3_000, 10_000, 30_000, 100_000)
    plan = dptext.Cooccurrence(dptext.load_vectors("glove-6b-50d", limit=2_000), epsilon=1.0).plan()
    texts = [dptext.Document(text) for text in sample_texts()]
    result: Numbers = {"people": people}
    for count in people:
        for vector in expected_vectors(plan, texts, people=count):
            result.setdefault(f"{vector.epsilon:g}", []).append(vector.passed)
    axes = figure.subplots()
    for epsilon in ("1", "4", "16"):
        axes.plot(people, result[epsilon], label=f"epsilon {epsilon}", markersize=5, **next_style(axes))
    axes.set(xscale="log", ylim=(-0.02, 1.02))
    label_axes(axes, "people, each with one short utterance", "share that comes\nthrough the noise")
    return result


def skip_gram(figure: Figure) -> Numbers:
    """Noise of all steps, and the largest possible sum for a number of people."""
    from dptext.embeddings.participation import EVERYONE, Participation

    # the noise that `Participation.calibrated` finds for epsilon 8
    training = Participation(noise_multiplier=1.273, steps=1000, delta=1e-6, rates={EVERYONE: 0.05})
    people = np.array([100, 1_000, 10_000, 100_000])
    axes, result = figure.subplots(), {"people": people, "noise_multiplier": training.noise_multiplier}
    for size in (5_000, 20_000):
        plan = dptext.SkipGram(vectors(), epsilon=training, trained_words=size).plan()
        length = training.noise_multiplier * math.sqrt(len(plan.rows) * plan.dimension)
        ratio = result[f"{size:,}"] = length / (0.05 * math.sqrt(1000) * people)
        axes.plot(people, ratio, label=f"{size:,} words are trained", markersize=5, **next_style(axes))
    axes.axhline(1.0, color=grey(axes, 0.5), lw=0.8, label="as long as all gradients\ncan be together")
    axes.set(xscale="log", yscale="log")
    label_axes(axes, "people", "length of the noise of all steps\n(epsilon 8, 1,000 steps)")
    return result


def hiding(figure: Figure) -> Numbers:
    """Task and attribute, with noise and with training, as measured on blogs (papers/dptext)."""
    rows = [json.loads(line) for line in (ROOT / "papers/dptext/results/topic, GloVe.jsonl").read_text().splitlines()]
    curves: dict[str, Callable[[Any], bool]] = {
        "trained to hide, and noise": lambda row: row["method"] == "ours, PrivUnit" and row["alpha"] == 1.0,
        "noise alone": lambda row: row["method"] == "PrivUnit, no training",
        "no protection": lambda row: row["method"] == "ORIGINAL",
    }
    axes = figure.subplots()
    result: Numbers = {}
    for name, belongs in curves.items():
        points = []
        for row in rows:
            if "settings" in row and belongs(row["settings"]):
                seen = row["numbers"]
                best = max(seen[f"gender {entry} accuracy"] for entry in ("linear", "mlp", "boosting"))
                points.append((row["settings"]["epsilon"] or math.inf, best, seen["task accuracy"]))
                guess = seen["gender linear accuracy blind"]
        points.sort()
        result[name] = points
        style = next_style(axes) | {"linestyle": "none"}
        axes.plot([point[1] for point in points], [point[2] for point in points], label=name, markersize=6, **style)
        for epsilon, x, y in points:
            if math.isfinite(epsilon):
                axes.annotate(
                    f"epsilon {epsilon:g}", (x, y), (0, -13), textcoords="offset points", ha="center", fontsize=7
                )
    result["guess"] = guess
    axes.axvline(guess, color=grey(axes, 0.5), lw=0.8, label="gender by chance")
    axes.set(xlim=(0.5, 0.65), ylim=(0.6, 0.9))
    label_axes(axes, "how often the best of three attackers names the gender", "topic that a server reads, accuracy")
    return result


FIGURES: dict[str, Callable[[Figure], Numbers]] = {
    "tem": partial(words, kind="TEM"),
    "madlib": partial(words, kind="Madlib"),
    "mahalanobis": partial(words, kind="Mahalanobis"),
    "santext": partial(words, kind="SanText"),
    "santext-plus": partial(words, kind="SanTextPlus", name="asked {:g}, true {:.3g}"),
    "custext": partial(words, kind="CusText"),
    "vickrey": partial(words, kind="Vickrey"),
    "subset-selection": partial(words, kind="SubsetSelection"),
    "truncated-gumbel": truncated_gumbel,
    "sampler": sampler,
    "privunit": privunit,
    "additive-noise": additive,
    "numbers": numbers,
    "bits": bits,
    "published-protocols": published,
    "private-vectors": private_vectors,
    "synthesis": synthesis,
    "sentences": sentences,
    "cooccurrence": cooccurrence,
    "skip-gram": skip_gram,
    "hiding": hiding,
}
"""By name of the page."""

_NARROW = (
    "truncated-gumbel",
    "sampler",
    "private-vectors",
    "cooccurrence",
    "skip-gram",
    "synthesis",
    "hiding",
)


def drawn(name: str) -> tuple[Figure, Numbers]:
    """A picture, and its numbers."""
    with mpl.rc_context({"backend": "agg", **_STYLE}):
        figure = Figure(figsize=(5.4 if name in _NARROW else 7.4, 3.2), layout="constrained")
        result = FIGURES[name](figure)
        return figure, result


def save(name: str, file: Any) -> None:
    """Draw a picture into a file, the same bytes for the same numbers."""
    figure, _ = drawn(name)
    with mpl.rc_context(_STYLE):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})


def _build() -> None:
    """Into the site that mkdocs is building."""
    import mkdocs_gen_files

    for name in FIGURES:
        with mkdocs_gen_files.open(f"{FOLDER}/{name}.svg", "wb") as file:
            save(name, file)


if __name__ == "__main__":
    for figure_name in FIGURES:
        save(figure_name, Path(sys.argv[1]) / f"{figure_name}.svg")
elif __name__ == "<run_path>":  # mkdocs-gen-files runs it
    _build()
