"""Tables of part three, from its rows."""

from __future__ import annotations

from pathlib import Path

from papers.dpugc.levels import BY, DEVICE, LEVELS, VECTOR
from papers.dpugc.results import Rows
from papers.reports import duration, interval, require_rows, table, write_tables

START, END = "<!-- tables of part three: written by the experiment -->", "<!-- end of the tables of part three -->"
SYSTEMS = {
    "what they have in common": "common mean",
    "the least for all": "smallest epsilon for all",
    "the liberal alone": "liberal users only",
    "levels": "levels",
    "levels, half strictest": "levels, half strictest",
    "levels, half guessed": "levels, half predicted",
    "the largest for all": "largest epsilon for all",
    "four times the largest for all": "four times the largest epsilon for all",
    "no noise": "no noise",
}
"""Names in tables by names in rows, in the order of tables."""
ASSIGNMENTS = {"age": "by age", "chance": "at random"}
SOURCES = {DEVICE: "texts: the level", VECTOR: "texts: their vector"}
RELEASES = {"personal": "One noisy release (`Cooccurrence`)", "personal_training": "Training (`SkipGram`)"}


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``personal.md`` next to the rows, and the tables into a README."""
    files = (*RELEASES, "cold_start", "personal_account", "personal_printed")
    parts = {name: Rows(out / f"{name}.jsonl") for name in files}
    require_rows(any(parts.values()), out)
    sections = [
        released_table(parts[name], title, by)
        for name, title in RELEASES.items()
        if parts[name]
        for by in BY
        if parts[name].select(by=by)
    ]
    if parts["cold_start"]:
        sections.append(cold_start_table(parts["cold_start"]))
    if parts["personal_account"]:
        sections.append(account_table(parts["personal_account"]))
    if parts["personal_printed"]:
        sections.append(printed_table(parts["personal_printed"]))
    sections.append(duration(parts.values()))
    write_tables(out / "personal.md", sections, readme=readme, start=START, end=END)


def released_table(rows: Rows, title: str, by: str) -> str:
    numbers = ("fit", "fit beyond", *(f"fit of {level}" for level in LEVELS))
    lines = [["no vector", "0", "0.000", "10,000", *["0.000"] * len(numbers)]]
    for name, label in SYSTEMS.items():
        kind = next((kind for kind in (name, f"{name}, by {by}") if rows.select(model=kind, by=by)), None)
        if kind is None:
            continue
        [row] = rows.select(model=kind, by=by)
        epsilons = [row.numbers[f"epsilon of {level}"] for level in LEVELS]
        ranks = interval(rows.estimate("median rank", model=kind, by=by), 0)
        fits = [interval(rows.estimate(number, model=kind, by=by)) for number in numbers]
        scores = interval(rows.estimate("MEN", model=kind, by=by))
        lines.append([label, _epsilons(epsilons, name), scores, ranks, *fits])
    constants = rows.constants
    head = ["system", "true epsilon of a user", "MEN", "median rank", "fit: all", "fit above mean"]
    head += [f"fit: {level}" for level in LEVELS]
    return (
        f"**{title}, levels {ASSIGNMENTS[by]}**, {constants['people']:,} people, draws of 500 new words: "
        f"{constants['draws']}, runs: {constants['runs']}. Spearman's correlation on MEN's pairs with a new word, the "
        "median rank of the true word among 20,000, and *fit*: the mean cosine of learned and true vectors of the new "
        "words that people use, over all people, minus the fit of the mean of the learned vectors (*fit above mean*), "
        "and over the people of a level [95% over pairs, words or people, and runs].\n\n"
        + table(head, lines, text_columns=2)
    )


def cold_start_table(rows: Rows) -> str:
    lines = []
    for by in BY:
        selected = rows.select(by=by)
        if not selected:
            continue
        first = selected[0].settings
        strictest = rows.estimate("right, the strictest for all", **first)
        assert strictest is not None
        mean = interval(rows.estimate("RMSE of the mean", **first))
        too_little = f"{1 - strictest.value:.3f}"
        baseline = "nothing: strictest level for all"
        lines.append([ASSIGNMENTS[by], baseline, "", mean, "", interval(strictest), "0.000", too_little])
        for row in selected:
            source = str(row.settings["source"])
            if source in SOURCES:
                source = f"{SOURCES[source]}, sent by a device with epsilon {row.settings['epsilon']:g}"
            numbers = [rows.estimate(name, **row.settings) for name in ("RMSE", "right", "too much", "too little")]
            lines.append(["", source, f"{row.settings['margin']:g}", "", *map(interval, numbers)])
    constants = rows.constants
    head = ["levels", "predicted from", "margin", "RMSE of the mean", "RMSE", "correct", "too much", "too little"]
    return (
        f"**Predicted levels.** Fitted on {constants['volunteers']} volunteers, for {constants['people']:,} others: "
        "error of the predicted concern (0 to 1), error of the volunteers' mean, and the share of people with the "
        "correct level, with a larger epsilon than they want (*too much*) or a smaller one [95% over people].\n\n"
        + table(head, lines, text_columns=2)
    )


def account_table(rows: Rows) -> str:
    lines = []
    for steps in rows.values("steps"):
        cells = []
        for level in LEVELS:
            for name in ("claimed", "true"):
                median, maximum = (rows.mean(f"{name} {level}{end}", steps=steps) for end in ("", " most"))
                cells.append(f"{_short(median)} (at most {_short(maximum)})")
            cells.append(f"{100 * (rows.mean(f'left {level}', steps=steps) or 0):.0f}%")
        single, bound = (rows.mean(name, steps=steps) for name in (f"witness {next(iter(LEVELS))}", "bound"))
        lines.append([f"{steps:,}", *cells, _short(single), _short(bound)])
    constants = rows.constants
    head = ["steps", *(f"{name}: {part}" for name in LEVELS for part in ("charged", "true loss", "spent"))]
    return (
        f"**Algorithm 1-b as printed: privacy loss.** Levels by age, {constants['people']:,} people, sigma 5, lots of "
        f"{constants['lot']}, delta {constants['delta']:g}. The epsilon that a user is charged, and the true loss "
        "if an adversary knows who was in which lot (median user, and maximum); the share of users whose budget "
        "was spent; the loss of a single conservative user who fills every lot; and the bound for any two corpora "
        f"(mean of the runs).\n\n{table([*head, 'single user', 'bound'], lines)}"
    )


def printed_table(rows: Rows) -> str:
    lines = []
    for sigma in rows.values("sigma"):
        for steps in rows.values("steps", sigma=sigma):
            settings = {"sigma": sigma, "steps": steps}
            cells = []
            for measure in ("MAP-Word", "MAP-Char"):
                random = f"{rows.mean(f'{measure} random', **settings):.3f}"
                cells += [interval(rows.precision(measure, **settings)), random]
            lines.append([f"{sigma:g}", f"{steps:,}", *cells])
    head = ["sigma", "steps", "MAP-Word", "random words", "MAP-Char", "random words"]
    return (
        "**Algorithm 1-b as printed: utility**, against the gold model of part two on the blogs, C = .01 [95% over "
        f"queries and runs].\n\n{table(head, lines)}"
    )


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _epsilons(epsilons: list[float], name: str) -> str:
    if all(epsilon >= 1e9 for epsilon in epsilons):
        return "no guarantee"
    if len(set(epsilons)) == 1:
        return f"{epsilons[0]:g}"
    text = " / ".join("0 (left out)" if epsilon == 0 else f"{epsilon:g}" for epsilon in epsilons)
    return text + (f"; no stated level: {max(epsilons):g}" if "guessed" in name else "")
