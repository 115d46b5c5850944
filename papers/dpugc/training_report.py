"""Tables and the figure of part two, from its rows."""

from __future__ import annotations

from pathlib import Path

from papers.dpugc.age import WORDS_AND_CHARACTERS
from papers.dpugc.compare import SKIP_GRAM, SKIP_GRAM_CLIPPED, SKIP_GRAM_LARGER
from papers.dpugc.models import Model
from papers.dpugc.published import EPSILON, LOSSES, PRINTED, epsilon_of_a_step_as_coded
from papers.dpugc.results import Rows
from papers.dpugc.trained import KINDS, PAIRS, USERS
from papers.dpugc.training_figure import draw
from papers.reports import duration, interval, join_sections, plain, require_rows, table, write_between

START, END = "<!-- tables of part two: written by the experiment -->", "<!-- end of the tables of part two -->"
CORPORA = ("WikiText-2", "text8", "blogs", "IMDb")
BENCHMARKS = ("WordSim-353", "MEN", "MTurk-771", "SimLex-999")
ORDER = ("private", SKIP_GRAM, "simulated: 8 times the people", SKIP_GRAM_LARGER, "no noise", SKIP_GRAM_CLIPPED)
RELEASE = "Cooccurrence"


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``training.md`` and the figure next to the rows, and the tables into a README."""
    none = Rows(out / "none")
    steps, spent, frequent, compared = (
        {name: rows for name in CORPORA if (rows := Rows(out / f"{part}_{name}.jsonl"))}
        for part in ("steps", "spent", "frequent", "compare")
    )
    age, delta = Rows(out / "training_age.jsonl"), Rows(out / "delta.jsonl")
    require_rows(steps or compared or age or delta, out)
    parts: list[str] = []
    for name, rows in steps.items():
        for kinds, unit in ((USERS, "users"), (PAIRS, "pairs")):
            parts += [
                neighbours_table(name, rows, spent.get(name, none), frequent.get(name, none), measure, kinds, unit)
                for measure in ("MAP-Word", "MAP-Char")
            ]
    if age:
        parts.append(age_table(age, spent.get("blogs", none)))
    if delta:
        parts.append(delta_table(delta))
    if compared:
        parts += [compared_table(compared), between_table(compared)]
    files = [*steps.values(), *spent.values(), *frequent.values(), *compared.values(), age, delta]
    parts.append(duration(sum(len(rows.rows) for rows in files), sum(rows.seconds for rows in files)))
    text = join_sections(parts)
    (out / "training.md").write_text(text, encoding="utf-8")
    write_between(readme, START, END, text)
    draw(steps, frequent, delta, out / "training.png")


def neighbours_table(
    corpus: str, rows: Rows, spent: Rows, frequent: Rows, measure: str, kinds: tuple[str, ...], unit: str
) -> str:
    models = [model for model in rows.models(kinds) if model.kind in kinds]
    if not models:
        return ""
    marks = rows.values("steps", model=models[0].kind)
    lines = []
    for model in models:
        means = [plain(rows.mean(measure, **model.settings, steps=mark)) for mark in marks]
        last = rows.precision(measure, **model.settings, steps=marks[-1])
        cost = spent.mean("spent", **model.settings, steps=marks[-1])
        lines.append([_label(model), *means, f"[{last.low:.3f}, {last.high:.3f}]" if last else "", _spent(model, cost)])
    random = plain(rows.mean(f"{measure} random"))
    lines.append(["random words", *(random for _ in marks), "", ""])
    if (blind := frequent.precision(measure)) is not None:
        means = [plain(blind.value) for _ in marks]
        lines.append(["the most frequent words", *means, f"[{blind.low:.3f}, {blind.high:.3f}]", ""])
    head = ["model", *(f"{mark:,}" for mark in marks), "95% interval, last step", "epsilon spent"]
    return (
        f"**{measure}, {corpus}, noise for {unit}**, by the number of steps, against the gold model; "
        f"{rows.constants['users']:,} users [95% over queries and runs].\n\n{table(head, lines)}"
    )


def age_table(rows: Rows, spent: Rows) -> str:
    models = [model for model in rows.models(("private", "clipped", "plain")) if model.kind in KINDS]
    learners = rows.values("learner")
    private = [model for model in models if model.epsilon is not None]
    lines = []
    for mark in (steps for steps in rows.values("steps") if steps is not None):
        errors = [
            interval(rows.estimate("RMSE", learner=learner, **model.settings, steps=mark), 2)
            for learner in learners
            for model in models
        ]
        costs = [_spent(model, spent.mean("spent", **model.settings, steps=mark)) for model in private]
        lines.append([f"{mark:,}", *errors, *costs])
    blind = rows.estimate("mean age", learner=learners[0], model=WORDS_AND_CHARACTERS)
    public = "; ".join(
        f"{learner} {interval(rows.estimate('RMSE', learner=learner, model=model), 2)} with {model}"
        for learner in learners
        for model in rows.values("model")
        if model not in KINDS
    )
    head = ["steps", *(f"{learner}, {_label(model)}" for learner in learners for model in models)]
    head += [f"epsilon spent, {_label(model)}" for model in private]
    return (
        f"**Table 3's layout: age.** RMSE in years of {rows.constants['held out']} held-out bloggers "
        f"[95% over people and runs]. Mean age (baseline): {interval(blind, 2)}. Baselines: {public}. The columns add "
        f"vectors after the number of steps to words and characters.\n\n{table(head, lines)}"
    )


def delta_table(rows: Rows) -> str:
    first, *_ = LOSSES
    lines = []
    for steps, printed in PRINTED.items():
        numbers = {name: rows.select(of=name, steps=steps)[0].numbers for name in LOSSES}
        line = [f"{steps:,}", f"{printed:.4f}", f"{numbers[first]['moments delta']:.4f}"]
        line.append(f"{numbers[first]['moments order']:.0f}")
        line += ["below 1e-14" if entry["delta"] < 1e-14 else f"{entry['delta']:.2g}" for entry in numbers.values()]
        lines.append([*line, *(f"{entry['epsilon']:.4f}" for entry in numbers.values())])
    head = ["steps", "printed", f"moments accountant, N = {first.rpartition(' ')[2]}", "order"]
    head += [f"delta, {name}" for name in LOSSES] + [f"epsilon, {name}" for name in LOSSES]
    return (
        f"**The delta column.** The paper's delta at epsilon {EPSILON}, the value of its accountant, and the exact "
        "privacy loss if lots were drawn at random and the noise were as stated: delta at that epsilon, and epsilon at "
        f"delta 1e-6. With the noise of the code one step has epsilon {epsilon_of_a_step_as_coded():.0f} for a pair "
        f"that is in it.\n\n{table(head, lines)}"
    )


def compared_table(compared: dict[str, Rows]) -> str:
    lines = []
    for name, rows in compared.items():
        lines.append([f"{name}, {rows.constants['users']:,} users", "public, processed", *_public_scores(rows)])
        for model in rows.models(ORDER):
            settings = model.settings | {"beside": "public, processed"}
            cells = []
            for benchmark in BENCHMARKS:
                score = plain(rows.mean("score", **settings, benchmark=benchmark))
                difference = interval(rows.estimate("difference", **settings, benchmark=benchmark), sign=True)
                cells.append(f"{score} ({difference})" if score else "")
            lines.append(["", _released(model), *cells])
    return (
        "**Skip-gram and the one release**, from the same public vectors: Spearman's correlation with human ratings, "
        "and the difference to processed public vectors [95% over pairs and runs].\n\n"
        + table(["corpus", "model", *BENCHMARKS], lines, text_columns=2)
    )


def between_table(compared: dict[str, Rows]) -> str:
    lines = []
    for name, rows in compared.items():
        for model in rows.models(ORDER):
            other = {SKIP_GRAM: "private", SKIP_GRAM_CLIPPED: "no noise"}.get(model.kind)
            if other is not None:
                settings = model.settings | {"beside": other}
                cells = [
                    interval(rows.estimate("difference", **settings, benchmark=benchmark), sign=True)
                    for benchmark in BENCHMARKS
                ]
                lines.append([name, "no noise" if model.epsilon is None else f"epsilon {model.epsilon:g}", *cells])
    head = ["corpus", "both at", *BENCHMARKS]
    return f"**Skip-gram minus {RELEASE}** at equal epsilon, same pairs and runs [95%].\n\n" + table(
        head, lines, text_columns=2
    )


def _public_scores(rows: Rows) -> list[str]:
    """Return the scores of processed public vectors: score minus difference of any row."""
    cells = []
    for benchmark in BENCHMARKS:
        first = rows.select(beside="public, processed", benchmark=benchmark)[:1]
        cells += [plain(row.numbers["score"] - row.numbers["difference"]) for row in first] or [""]
    return cells


def _label(model: Model) -> str:
    return str(model).replace("farther", "larger steps")


def _released(model: Model) -> str:
    if model.kind.startswith(SKIP_GRAM):
        return str(model)
    return str(Model(RELEASE if model.kind == "private" else f"{RELEASE}, {model.kind}", model.epsilon))


def _spent(model: Model, cost: float | None) -> str:
    if KINDS[model.kind].mode != "private":
        return "no guarantee"
    if cost is None:
        return ""
    return "a simulation" if KINDS[model.kind].times > 1 else f"{cost:.3g}"
