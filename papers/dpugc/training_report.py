"""Tables and the figure of part two, from its rows."""

from __future__ import annotations

from pathlib import Path

from papers.dpugc.age import WORDS_AND_CHARACTERS
from papers.dpugc.compare import SKIP_GRAM, SKIP_GRAM_CLIPPED, SKIP_GRAM_LARGER
from papers.dpugc.published import EPSILON, LOSSES, PRINTED, epsilon_of_a_step_as_coded
from papers.dpugc.trained import KINDS, PAIRS, USERS
from papers.dpugc.training_figure import draw
from papers.dpugc.training_results import Found
from papers.running import write_between
from papers.sweeps import Setting

from dptext.errors import DataError
from dptext.intervals import Estimate

__all__ = ["CORPORA", "write_report"]

START, END = "<!-- tables of part two: written by the experiment -->", "<!-- end of the tables of part two -->"
CORPORA = ("WikiText-2", "text8", "blogs", "IMDb")
BENCHMARKS = ("WordSim-353", "MEN", "MTurk-771", "SimLex-999")
ORDER = ("private", SKIP_GRAM, "simulated: 8 times the people", SKIP_GRAM_LARGER, "no noise", SKIP_GRAM_CLIPPED)
RELEASE = "Cooccurrence"


def write_report(out: Path, *, readme: Path | None) -> None:
    """``training.md``, ``training.png`` and ``training.svg`` beside the rows; the tables also into the README.

    Raises:
        DataError: there are no rows.
    """
    none = Found(out / "none")
    steps, spent, frequent, compared = (
        {name: results for name in CORPORA if (results := Found(out / f"{part}_{name}.jsonl"))}
        for part in ("steps", "spent", "frequent", "compare")
    )
    age, delta = Found(out / "training_age.jsonl"), Found(out / "delta.jsonl")
    if not any((steps, compared, age, delta)):
        raise DataError(f"no rows in {str(out)!r}: run the experiment first")
    parts: list[str] = []
    for name, result in steps.items():
        for kinds, unit in ((USERS, "users"), (PAIRS, "pairs")):
            parts += [
                neighbours_table(name, result, spent.get(name, none), frequent.get(name, none), measure, kinds, unit)
                for measure in ("MAP-Word", "MAP-Char")
            ]
    if age:
        parts.append(age_table(age, spent.get("blogs", none)))
    if delta:
        parts.append(delta_table(delta))
    if compared:
        parts += [compared_table(compared), between_table(compared)]
    files = [*steps.values(), *spent.values(), *frequent.values(), *compared.values(), age, delta]
    seconds = sum(file.seconds for file in files)
    parts.append(f"{sum(len(file.rows) for file in files)} cells in {seconds / 60:.0f} minutes by the clock.")
    text = "\n\n".join(part for part in parts if part) + "\n"
    (out / "training.md").write_text(text, encoding="utf-8")
    write_between(readme, START, END, text)
    draw(steps, frequent, delta, out / "training.png")


def neighbours_table(
    corpus: str, found: Found, spent: Found, frequent: Found, measure: str, kinds: tuple[str, ...], unit: str
) -> str:
    """One measure after each number of steps, with the interval after the last one, and what that cost."""
    models = [entry for entry in found.models(kinds) if entry[0] in kinds]
    if not models:
        return ""
    marks = [int(str(mark)) for mark in found.values("steps", model=models[0][0])]
    lines = _head("model", *(f"{mark:,}" for mark in marks), "95%, the last", "spent in the end")
    for model, epsilon in models:
        who: dict[str, Setting] = {"model": model, "epsilon": epsilon}
        last = found.precision(measure, **who, steps=marks[-1])
        cost = spent.mean("spent", **who, steps=marks[-1])
        lines.append(
            _line(
                _named(model, epsilon),
                *(_plain(found.mean(measure, **who, steps=mark)) for mark in marks),
                "" if last is None else f"[{last.low:.3f}, {last.high:.3f}]",
                _spent(model, cost),
            )
        )
    random = found.mean(f"{measure} random")
    lines.append(_line("random words", *(_plain(random) for _ in marks), "", ""))
    blind = frequent.precision(measure)
    if blind is not None:
        cells = (f"{blind.value:.3f}" for _ in marks)
        lines.append(_line("the most frequent words", *cells, f"[{blind.low:.3f}, {blind.high:.3f}]", ""))
    users = found.constants["users"]
    return (
        f"**{measure}, {corpus}, noise for {unit}**: after so many steps, against the gold model; {users:,} users "
        "[95% over queries and runs].\n\n" + "\n".join(lines)
    )


def age_table(found: Found, spent: Found) -> str:
    """The layout of table 3: RMSE for each number of steps."""
    models = found.models(("private", "clipped", "plain"))
    models = [entry for entry in models if entry[0] in KINDS]
    learners = [str(entry) for entry in found.values("learner")]
    steps = [int(str(entry)) for entry in found.values("steps") if entry is not None]
    epsilons = [entry for entry in models if entry[1] is not None]
    heads = [f"{learner}, {_named(*model)}" for learner in learners for model in models]
    lines = _head("steps", *heads, *(f"spent, {_named(*model)}" for model in epsilons))
    for mark in steps:
        cells = [
            _spelled(found.estimate("RMSE", learner=learner, model=model, epsilon=epsilon, steps=mark))
            for learner in learners
            for model, epsilon in models
        ]
        costs = (
            _spent(model, spent.mean("spent", model=model, epsilon=entry, steps=mark)) for model, entry in epsilons
        )
        lines.append(_line(f"{mark:,}", *cells, *costs))
    blind = next(found.estimate("mean age", learner=learner, model=WORDS_AND_CHARACTERS) for learner in learners)
    public = "; ".join(
        f"{learner} {_spelled(found.estimate('RMSE', learner=learner, model=model))} with {model}"
        for learner in learners
        for model in found.values("model")
        if model not in KINDS
    )
    return (
        f"**Table 3's layout: age.** RMSE in years of {found.constants['held out']} bloggers who are held out "
        f"[95% over people and runs]. Always the mean age: {_spelled(blind)}. Baselines: {public}. The columns have "
        "vectors of so many steps beside words and characters.\n\n" + "\n".join(lines)
    )


def delta_table(found: Found) -> str:
    """What the paper prints, where it comes from, and what it would be."""
    first, *_ = LOSSES
    heads = ["steps", "printed", f"moments accountant, N = {first.rpartition(' ')[2]}", "order"]
    heads += [f"delta, {name}" for name in LOSSES] + [f"epsilon, {name}" for name in LOSSES]
    lines = _head(*heads)
    for steps, printed in PRINTED.items():
        numbers = {name: found.of(of=name, steps=steps)[0].numbers for name in LOSSES}
        lines.append(
            _line(
                f"{steps:,}",
                f"{printed:.4f}",
                f"{numbers[first]['moments delta']:.4f}",
                f"{numbers[first]['moments order']:.0f}",
                *(_small(number["delta"]) for number in numbers.values()),
                *(f"{number['epsilon']:.4f}" for number in numbers.values()),
            )
        )
    return (
        f"**The delta column.** The paper's delta at epsilon {EPSILON}, what its accountant says, then the loss "
        "itself, if lots were drawn at random and the noise were what it is said to be: delta at that epsilon, and "
        "epsilon at delta 1e-6. With the noise of the code one step tells epsilon "
        f"{epsilon_of_a_step_as_coded():.0f} of a pair that is in it.\n\n" + "\n".join(lines)
    )


def compared_table(compared: dict[str, Found]) -> str:
    """Scores, and how much more than public vectors, processed."""
    lines = _head("corpus", "model", *BENCHMARKS)
    for name, result in compared.items():
        lines.append(_line(f"{name}, {result.constants['users']:,} users", "public, processed", *_base(result)))
        for model, epsilon in result.models(ORDER):
            who: dict[str, Setting] = {"model": model, "epsilon": epsilon, "beside": "public, processed"}
            cells = []
            for benchmark in BENCHMARKS:
                score = result.mean("score", **who, benchmark=benchmark)
                cells.append(f"{_plain(score)} {_bounds(result.estimate('difference', **who, benchmark=benchmark))}")
            lines.append(_line("", _released(model, epsilon), *cells))
    return (
        "**Skip-gram and the one release**, from the same public vectors: Spearman's correlation with people's "
        "ratings, and how much more it is than that of processed public vectors [95% over pairs and runs].\n\n"
        + "\n".join(lines)
    )


def between_table(compared: dict[str, Found]) -> str:
    """Skip-gram less the one release."""
    lines = _head("corpus", "both at", *BENCHMARKS)
    for name, result in compared.items():
        for model, epsilon in result.models(ORDER):
            beside = {SKIP_GRAM: "private", SKIP_GRAM_CLIPPED: "no noise"}.get(model)
            if beside is not None:
                who: dict[str, Setting] = {"model": model, "epsilon": epsilon, "beside": beside}
                cells = (_signed(result.estimate("difference", **who, benchmark=benchmark)) for benchmark in BENCHMARKS)
                lines.append(_line(name, "no noise" if epsilon is None else f"epsilon {epsilon:g}", *cells))
    return f"**Skip-gram less {RELEASE}** at equal epsilon, same pairs and runs [95%].\n\n" + "\n".join(lines)


# -- the parts of a table --------------------------------------------------------------------------------------


def _base(found: Found) -> list[str]:
    """What the differences start from."""
    cells = []
    for benchmark in BENCHMARKS:
        rows = found.of(beside="public, processed", benchmark=benchmark)
        cells.append(_plain(rows[0].numbers["score"] - rows[0].numbers["difference"]) if rows else "")
    return cells


def _named(model: str, epsilon: float | None) -> str:
    return model if epsilon is None else f"{model}, epsilon {epsilon:g}"


def _released(model: str, epsilon: float | None) -> str:
    if model.startswith(SKIP_GRAM):
        return _named(model, epsilon)
    return _named(RELEASE if model == "private" else f"{RELEASE}, {model}", epsilon)


def _spent(model: str, cost: float | None) -> str:
    if KINDS[model].mode != "private":
        return "no promise"
    if cost is None:
        return ""
    return "a simulation" if KINDS[model].times > 1 else f"{cost:.3g}"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _spelled(found: Estimate | None) -> str:
    return "" if found is None else f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _signed(found: Estimate | None) -> str:
    return "" if found is None else f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _bounds(found: Estimate | None) -> str:
    return "" if found is None else f"({_signed(found)})"


def _small(delta: float) -> str:
    return "below 1e-14" if delta < 1e-14 else f"{delta:.2g}"


def _head(*names: str) -> list[str]:
    return [_line(*names), "|---" + "|---:" * (len(names) - 1) + "|"]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
