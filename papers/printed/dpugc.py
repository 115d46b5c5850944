"""Tables of "dpUGC: Learn Differentially Private Representation for User Generated Contents"."""

from __future__ import annotations

from pathlib import Path

from papers.dpugc.published import EPSILON, PRINTED
from papers.dpugc.results import Rows
from papers.printed.tables import NO_CLAIM, Cell, Line, Note, Table, over_runs

from dptext.intervals import Estimate

RESULTS = Path(__file__).resolve().parents[1] / "dpugc" / "results"
TRUE = 8.0
"""The true epsilon of our private columns, for a user (add/remove, delta 1e-6)."""
_MEASURES = ("MAP-Word", "MAP-Char")
_WITHDRAWN = "withdrawn"

_SIZES = {
    "myPersonality, private": ("153,727", "22,043,394", "416,862,367"),
    "myPersonality, public": ("250", "9,917", "144,616"),
    "Text8": ("-", "-", "17,005,207"),
}
_NEIGHBOURS = {
    "(a) DP-Embedding": {"three": ("0", "3.814"), "eight": ("0.5", "0.1347"), "they": ("0", "0.4237")},
    "(b) Non-DP Embedding": {"three": ("0", "0.1288"), "eight": ("0.33", "0.3561"), "they": ("0", "0.2341")},
}
_BASELINES = {"SVR": "2.6563", "linear": "1.2903"}
_ERRORS = {
    20: ("1.7881", "3.5942", "1.2616", "1.2642"),
    200: ("2.4983", "2.0198", "1.2589", "1.2717"),
    500: ("2.7795", "3.6231", "1.2514", "1.2909"),
    1_000: ("3.2146", "2.0206", "1.2611", "1.262"),
    5_000: ("6.1596", "2.7472", "1.2577", "1.2642"),
    10_000: ("1.6396", "3.9155", "1.2768", "1.2574"),
    50_000: ("2.9438", "2.5769", "1.2574", "1.2556"),
    90_000: ("2.4033", "2.5175", "1.2585", "1.258"),
    100_000: ("2.6043", "2.0215", "1.2548", "1.262"),
}
"""RMSE of table 3 by the number of steps: DP-SVR, NoneDP-SVR, DP-LR, NoneDP-LR."""


def sections() -> list[Table | Note]:
    return [
        Note(
            "Figure 1, a prank that shows passwords",
            "A picture; nothing is measured. Ours: [planted probes](dpugc/README.md#what-it-shows).",
        ),
        Note("Figure 2, a drawing", "Nothing to run."),
        _sizes(),
        Note(
            "Figure 3, MAP-Word and MAP-Char over steps",
            "Curves without numbers in the text; ours: [part two](dpugc/README.md#what-it-shows-part-two), with "
            "lists of random words and of the most frequent words.",
        ),
        _neighbours(),
        _regression(),
        Note(
            "Algorithm 1-b, a budget for each person",
            "The paper does not measure it. Ours, levels compared with one epsilon for all, users who state no level, "
            "and the algorithm as printed: [part three](dpugc/README.md#what-it-shows-part-three).",
        ),
    ]


def _sizes() -> Table:
    """Table 1: sizes of unavailable data, and of Text8."""
    text8 = Rows(RESULTS / "steps_text8.jsonl")
    part = f"its first {text8.constants['users']:,} thousand words, no more were available" if text8 else "not run"
    lines = []
    for name, sizes in _SIZES.items():
        why = part if name == "Text8" else _WITHDRAWN
        lines.append(Line(name, "", [Cell(siz, why) if siz != "-" else Cell("", "-") for siz in sizes]))
    return Table(
        "Table 1, sizes of the data",
        ["users", "documents", "words"],
        lines,
        note="Ours are 2,532 bloggers, WikiText-2 and IMDb reviews ([papers/dpugc](dpugc/README.md#what-is-done)).",
    )


def _neighbours() -> Table:
    """Table 2: the score of three queries after the last step."""
    corpus, result = _steps()
    models = {"(a) DP-Embedding": ("private", TRUE), "(b) Non-DP Embedding": ("clipped", None)}
    claimed = {"(a) DP-Embedding": f"(0.125, 0.7926) for a pair, {TRUE:g} for a user", "(b) Non-DP Embedding": NO_CLAIM}
    lines = []
    for part, queries in _NEIGHBOURS.items():
        model, epsilon = models[part]
        last = max(int(str(entry)) for entry in result.values("steps", model=model, epsilon=epsilon))
        of = result.select(model=model, epsilon=epsilon, steps=last)
        for query, printed in queries.items():
            cells = [
                Cell(entry, over_runs([row.numbers[f"{measure} {query}"] for row in of]), 3)
                for entry, measure in zip(printed, _MEASURES, strict=True)
            ]
            lines.append(Line(f"{part}, {query}", claimed[part], cells))
    blind = {"random words": [result.mean(f"{measure} random") for measure in _MEASURES]}
    frequent = Rows(RESULTS / f"frequent_{corpus}.jsonl")
    if frequent:
        scores = [frequent.precision(measure) for measure in _MEASURES]
        blind["the most frequent words"] = [score and score.value for score in scores]
    return Table(
        "Table 2, MAP of three queries",
        _MEASURES,
        lines,
        [
            (f"{name}, all 11 queries", [f"{value:.3f}" for value in values if value is not None])
            for name, values in blind.items()
        ],
        f"Ours on {'a part of ' * (corpus == 'text8')}{corpus}, against a gold model of the same texts, for a whole "
        "user instead of a pair. Some of the paper's scores of single queries exceed 1 (3.814). The words: "
        "[the nearest words](dpugc/README.md#what-it-shows).",
    )


def _steps() -> tuple[str, Rows]:
    for corpus in ("text8", "WikiText-2"):
        result = Rows(RESULTS / f"steps_{corpus}.jsonl")
        if result.values("steps", model="private", epsilon=TRUE) and result.values("steps", model="clipped"):
            return corpus, result
    raise FileNotFoundError("no rows of the private vectors: run papers.dpugc.training first")


def _regression() -> Table:
    """Table 3, with the delta that it prints for each number of steps."""
    result, delta = Rows(RESULTS / "training_age.jsonl"), Rows(RESULTS / "delta.jsonl")
    lines = []
    for steps, errors in _ERRORS.items():
        cells = []
        for learner, printed in zip(("SVR", "linear"), (errors[:2], errors[2:]), strict=True):
            baseline = result.estimate("RMSE", learner=learner, model="public words and characters")
            cells.append(Cell(_BASELINES[learner], baseline or "not run", 2))
            for (model, epsilon), entry in zip((("private", TRUE), ("clipped", None)), printed, strict=True):
                estimate = result.estimate("RMSE", learner=learner, model=model, epsilon=epsilon, steps=steps)
                cells.append(Cell(entry, estimate or "not run: ours end at 400 steps", 2))
        (costs,) = delta.select(of="a pair of 50,000", steps=steps)
        exact = costs.numbers["moments delta"]
        cells.append(Cell(f"{PRINTED[steps]:.4f}", Estimate(exact, exact, exact, 0, ""), 4))
        claimed = f"({EPSILON:g}, {PRINTED[steps]:.4f}) for a pair, {TRUE:g} for a user"
        lines.append(Line(f"{steps:,} steps", claimed, cells))
    mean = result.estimate("mean age", learner="SVR", model="public words and characters")
    always = "" if mean is None else f"{mean.value:.2f} [{mean.low:.2f}, {mean.high:.2f}]"
    return Table(
        "Table 3, RMSE",
        ["Baseline-SVR", "DP-SVR", "NoneDP-SVR", "Baseline-LR", "DP-LR", "NoneDP-LR", "delta at epsilon .125"],
        lines,
        [("always the mean", [always] * 6 + [""])],
        "Printed: extraversion of 250 people, where always the mean has .919. Ours: age of 500 bloggers, in years, so "
        "only the order can be compared; intervals over people and two runs. The delta is computed as the authors' "
        "code does; it is about one pair and takes the vocabulary for the number of pairs.",
    )
