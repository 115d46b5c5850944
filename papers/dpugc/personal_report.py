"""Tables of part three, from its rows."""

from __future__ import annotations

from pathlib import Path

from papers.dpugc.training_results import Found
from papers.dpugc.wishes import BY, DEVICE, LEVELS, VECTOR
from papers.running import write_between
from papers.sweeps import Setting

from dptext.errors import DataError
from dptext.intervals import Estimate

__all__ = ["write_report"]

START, END = "<!-- tables of part three: written by the experiment -->", "<!-- end of the tables of part three -->"
ORDER = (
    "what they have in common",
    *("the least for all", "the liberal alone", "levels", "levels, half strictest", "levels, half guessed"),
    *("the largest for all", "four times the largest for all", "no noise"),
)
SENT = {DEVICE: "texts: the level", VECTOR: "texts: their vector"}
RELEASES = {"personal": "One noisy release (`Cooccurrence`)", "personal_training": "Training (`SkipGram`)"}


def write_report(out: Path, *, readme: Path | None) -> None:
    """``personal.md`` beside the rows; the tables also into the README.

    Raises:
        DataError: there are no rows.
    """
    result = {
        name: Found(out / f"{name}.jsonl") for name in (*RELEASES, "cold_start", "personal_account", "personal_printed")
    }
    if not any(result.values()):
        raise DataError(f"no rows in {str(out)!r}: run the experiment first")
    parts = [
        released_table(result[name], title, by)
        for name, title in RELEASES.items()
        if result[name]
        for by in BY
        if result[name].of(by=by)
    ]
    if result["cold_start"]:
        parts.append(cold_start_table(result["cold_start"]))
    if result["personal_account"]:
        parts.append(account_table(result["personal_account"]))
    if result["personal_printed"]:
        parts.append(printed_table(result["personal_printed"]))
    seconds = sum(entry.seconds for entry in result.values())
    parts.append(
        f"{sum(len(entry.rows) for entry in result.values())} cells in {seconds / 60:.0f} minutes by the clock."
    )
    text = "\n\n".join(parts) + "\n"
    (out / "personal.md").write_text(text, encoding="utf-8")
    write_between(readme, START, END, text)


def released_table(found: Found, title: str, by: str) -> str:
    """Each system with what it promises, for all and for the people of each level."""
    fits = ("fit: all", "beyond", *(f"fit: {level}" for level in LEVELS))
    lines = _head("system", "true epsilon of a user", "MEN", "median rank", *fits)
    lines.append(_line("no vector", "0", "0.000", "10,000", *["0.000"] * len(fits)))
    for name in ORDER:
        kind = next((k for k in (name, f"{name}, by {by}") if found.of(model=k, by=by)), None)
        if kind is None:
            continue
        [row] = found.of(model=kind, by=by)
        promised = [row.numbers[f"epsilon of {level}"] for level in LEVELS]
        rank = found.estimate("median rank", model=kind, by=by)
        lines.append(
            _line(
                name,
                _promise(promised, name),
                _three(found.estimate("MEN", model=kind, by=by)),
                "" if rank is None else f"{rank.value:,.0f} [{rank.low:,.0f}, {rank.high:,.0f}]",
                *(_three(found.estimate(name, model=kind, by=by)) for name in ("fit", "fit beyond")),
                *(_three(found.estimate(f"fit of {level}", model=kind, by=by)) for level in LEVELS),
            )
        )
    constants = found.constants
    return (
        f"**{title}, levels by {by}**, {constants['people']:,} people, {constants['draws']} draw(s) of 500 new words, "
        f"{constants['runs']} runs: Spearman's correlation on MEN's pairs with a new word, the median rank of the true "
        "word among 20,000, and *fit*: the mean cosine with the true vectors of the new words that people use, over "
        "all people, less that of the mean of what was learned (*beyond*), and over those who want a level [95% over "
        "pairs, words or people, and runs].\n\n" + "\n".join(lines)
    )


def cold_start_table(found: Found) -> str:
    """Errors of predicted levels."""
    lines = _head("levels", "read off", "margin", "RMSE of the mean", "RMSE", "right", "too much", "too little")
    for by in BY:
        rows = found.of(by=by)
        if not rows:
            continue
        first: dict[str, Setting] = dict(rows[0].settings)
        blind = found.estimate("right, the strictest for all", **first)
        mean = _three(found.estimate("RMSE of the mean", **first))
        if blind is not None:
            little = f"{1 - blind.value:.3f}"
            lines.append(
                _line(f"by {by}", "nothing: the strictest for all", "", mean, "", _three(blind), "0.000", little)
            )
        for row in rows:
            who: dict[str, Setting] = dict(row.settings)
            source = str(who["source"])
            if source in SENT:
                source = f"{SENT[source]}, sent by a device with epsilon {float(str(who['epsilon'])):g}"
            names = ("RMSE", "right", "too much", "too little")
            margin = f"{float(str(who['margin'])):g}"
            lines.append(_line("", source, margin, "", *(_three(found.estimate(name, **who)) for name in names)))
    constants = found.constants
    return (
        f"**Levels of people who say nothing.** Fitted on {constants['volunteers']} volunteers, of "
        f"{constants['people']:,} others: error of the predicted concern (0 to 1) beside that of the volunteers' mean, "
        "and the share of people whose level comes out right, with more epsilon than they want (*too much*) or less "
        "[95% over people].\n\n" + "\n".join(lines)
    )


def account_table(found: Found) -> str:
    """Algorithm 1-b as printed: what it charges, and what is lost."""
    heads = (f"{name}: {part}" for name in LEVELS for part in ("charged", "lost", "left"))
    lines = [_line("steps", *heads, "a user alone", "bound"), "|" + "---:|" * (3 + 3 * len(LEVELS))]
    for steps in found.values("steps"):
        cells = []
        for level in LEVELS:
            for name in ("claimed", "true"):
                middle, maximum = (found.mean(f"{name} {level}{more}", steps=steps) for more in ("", " most"))
                cells.append(f"{_short(middle)} (most {_short(maximum)})")
            cells.append(f"{100 * (found.mean(f'left {level}', steps=steps) or 0):.0f}%")
        alone, bound = (found.mean(name, steps=steps) for name in (f"witness {next(iter(LEVELS))}", "bound"))
        lines.append(_line(f"{int(str(steps)):,}", *cells, _short(alone), _short(bound)))
    constants = found.constants
    return (
        f"**Algorithm 1-b as printed: its account.** Levels by age, {constants['people']:,} people, sigma 5, lots of "
        f"{constants['lot']}, delta {constants['delta']:g}: epsilon that a user is charged, and that they lose where "
        "it is known who was in which lot (the median user, and the one with the most), and the share who were out of "
        "budget in the end; what a conservative user alone with a whole lot of samples loses, and the bound for any "
        "two corpora (mean of the runs).\n\n" + "\n".join(lines)
    )


def printed_table(found: Found) -> str:
    """Algorithm 1-b as printed: what is learned."""
    lines = _head("sigma", "steps", "MAP-Word", "random words", "MAP-Char", "random words")
    for sigma in found.values("sigma"):
        for steps in found.values("steps", sigma=sigma):
            who: dict[str, Setting] = {"sigma": sigma, "steps": steps}
            cells = []
            for measure in ("MAP-Word", "MAP-Char"):
                cells += [_three(found.precision(measure, **who)), f"{found.mean(f'{measure} random', **who) or 0:.3f}"]
            lines.append(_line(f"{float(str(sigma)):g}", f"{int(str(steps)):,}", *cells))
    return (
        "**Algorithm 1-b as printed: what is learned**, against the gold model of part two on the blogs, C = .01 [95% "
        "over queries and runs].\n\n" + "\n".join(lines)
    )


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _promise(epsilons: list[float], name: str) -> str:
    if all(epsilon >= 1e9 for epsilon in epsilons):
        return "no promise"
    if len(set(epsilons)) == 1:
        return f"{epsilons[0]:g}"
    text = " / ".join("0 (left out)" if epsilon == 0 else f"{epsilon:g}" for epsilon in epsilons)
    return text + (f"; who does not say: {max(epsilons):g}" if "guessed" in name else "")


def _three(found: Estimate | None) -> str:
    return "" if found is None else f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _head(*names: str) -> list[str]:
    return [_line(*names), "|---|---" + "|---:" * (len(names) - 2) + "|"]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
