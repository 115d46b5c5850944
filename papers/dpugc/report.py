"""Tables and the figure of the experiment, from its rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from papers.dpugc.age import LEARNERS, WORDS, WORDS_AND_CHARACTERS
from papers.dpugc.figure import draw
from papers.dpugc.models import LARGER, Model
from papers.dpugc.neighbours import PAPER_QUERIES
from papers.dpugc.probes import PAIRS
from papers.dpugc.results import Rows, over_things, share_over_things
from papers.dpugc.semantic import LISTS
from papers.running import write_between
from papers.sweeps import Setting

from dptext.errors import DataError
from dptext.intervals import Estimate

__all__ = ["write_report"]

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
FILES = ("similarity", "difference", "new_words", "neighbours", "probes", "age")
SET_OUT = {"WordSim-353": 0.579, "MEN": 0.705}
"""What the project set out from: public vectors, by an earlier handling of them (README.md)."""
GOAL = {"WordSim-353": 0.020, "MEN": 0.013}
"""By how much the release was to be better than that at epsilon 8."""


def write_report(out: Path, *, readme: Path | None) -> None:
    """``tables.md``, ``figure.png`` and ``figure.svg`` beside the rows; the tables also between the marks of a README.

    Raises:
        DataError: there are no rows.
    """
    rows = {name: Rows(out / f"{name}.jsonl") for name in FILES}
    if not any(rows.values()):
        raise DataError(f"no rows in {str(out)!r}: run the experiment first")
    parts: list[str] = []
    if rows["similarity"]:
        parts += [similarity_table(rows["similarity"]), goal(rows["similarity"])]
    if rows["difference"]:
        parts += [difference_table(rows["difference"], str(beside)) for beside in rows["difference"].values("beside")]
        parts += [smallest_epsilons(rows["difference"])]
    if rows["new_words"]:
        parts += [new_words_table(rows["new_words"])]
    if rows["neighbours"]:
        parts += [map_table(rows["neighbours"])]
    if (out / "neighbours.md").exists():
        parts += ["**The nearest words** (first run).", (out / "neighbours.md").read_text(encoding="utf-8").strip()]
    if rows["probes"]:
        parts += [named_table(rows["probes"]), bits_table(rows["probes"])]
    if rows["age"]:
        parts += [age_table(rows["age"])]
    text = "\n\n".join([*parts, summary(rows)]) + "\n"
    (out / "tables.md").write_text(text, encoding="utf-8")
    write_between(readme, START, END, text)
    draw(rows, out / "figure.png")


def similarity_table(rows: Rows) -> str:
    """Scores of all benchmarks, means over runs."""
    lines = _head("model", *LISTS)
    for model in rows.models():
        lines.append(_line(model, *(plain(rows.mean(model, name)) for name in LISTS)))
    covered = {model: [rows.mean(model, f"{name} pairs") for name in LISTS] for model in rows.models()}
    full = max(covered.values(), key=lambda each: each[0] or 0)
    lines.append(_line("pairs", *(f"{entry:.0f}" for entry in full if entry is not None)))
    fewer = [
        f"{model}: {' / '.join(f'{count:.0f}' for count in counts if count is not None)}"
        for model, counts in covered.items()
        if counts != full
    ]
    note = f"\n\nFewer pairs: {'; '.join(fewer)}." if fewer else ""
    return "**Similarity.** Spearman's correlation with people's ratings, mean of the runs.\n\n" + _joined(lines) + note


def goal(rows: Rows) -> str:
    """Who reaches the goal that was set."""
    needed = {name: SET_OUT[name] + more for name, more in GOAL.items()}
    reached = [
        f"{model} ({_slashed(rows.mean(model, name) for name in needed)})"
        for model in rows.models()
        if model.kind not in LARGER
        and all((rows.mean(model, name) or 0.0) >= minimum for name, minimum in needed.items())
    ]
    return (
        f"**The goal that was set**, {_slashed(needed.values())} on {' / '.join(needed)} ({_slashed(SET_OUT.values())} "
        f"and {_slashed(GOAL.values())} more), is reached by: {', '.join(reached) or 'none'}."
    )


def difference_table(rows: Rows, beside: str) -> str:
    """How much better than public vectors, on the same pairs."""
    lines = _head("model", *LISTS)
    for model in rows.models():
        results = [rows.estimate(model, "difference", beside=beside, benchmark=name) for name in LISTS]
        if any(results):
            lines.append(_line(model, *(spelled(entry, sign=True) for entry in results)))
    return f"**Difference to the {_named(beside)}**, on the same pairs [95% over pairs and runs].\n\n" + _joined(lines)


def smallest_epsilons(rows: Rows) -> str:
    """From which epsilon on the private vectors are better, beyond the interval, at each larger one as well."""
    lines = []
    for beside in rows.values("beside"):
        results = [f"{name} {_from(rows, beside, name)}" for name in LISTS]
        lines.append(f"better than the {_named(str(beside))} from epsilon on: {', '.join(results)}")
    return f"**The smallest epsilon that helps** (interval above 0, there and at each larger one): {'; '.join(lines)}."


def _from(rows: Rows, beside: Setting, benchmark: str) -> str:
    smallest = None
    for model in sorted(
        (entry for entry in rows.models() if entry.kind == "private"), key=lambda each: -(each.epsilon or 0)
    ):
        result = rows.estimate(model, "difference", beside=beside, benchmark=benchmark)
        if result is None or result.low <= 0:
            break
        smallest = model.epsilon
    return "none" if smallest is None else f"{smallest:g}"


def new_words_table(rows: Rows) -> str:
    """What was learned of words without public vectors."""
    benchmarks = ("MEN", "WordSim-353")
    lines = _head("model", *benchmarks, "median rank of the true word", "among the 100 nearest")
    lines.append(_line("no vector", *(plain(0.0) for _ in benchmarks), "10,000", plain(0.005)))
    for model in rows.models():
        rank = rows.estimate(model, "median rank")
        lines.append(
            _line(
                "their public vectors, processed" if model.kind.startswith("public") else model,
                *(spelled(rows.estimate(model, name)) for name in benchmarks),
                "" if rank is None else f"{rank.value:,.0f} [{rank.low:,.0f}, {rank.high:,.0f}]",
                spelled(rows.estimate(model, "nearest")),
            )
        )
    counts = " and ".join(f"{rows.mean(rows.models()[0], f'{name} pairs'):.0f} of {name}" for name in benchmarks)
    return (
        f"**Words that public vectors lack.** Spearman's correlation on the pairs that hold one ({counts}, over "
        f"{rows.constants['draws']} draws), and where the true word stands among all by the cosine of what was learned "
        "with public vectors [95% over pairs or words, and runs].\n\n" + _joined(lines)
    )


def map_table(rows: Rows) -> str:
    """MAP-Word and MAP-Char against the gold model."""
    lines = _head("model", "MAP-Word", "random words", "MAP-Word per 100", "MAP-Char", "random words")
    for model in rows.models():
        cells = []
        for measure in ("MAP-Word", "MAP-Char"):
            result = over_things(rows.table(model, [f"{measure} {query}" for query in PAPER_QUERIES]), of="queries")
            cells += [spelled(result), plain(rows.mean(model, f"{measure} random"))]
        lines.append(_line(model, *cells[:2], plain(rows.mean(model, "MAP-Word per 100")), *cells[2:]))
    return "**Neighbours against the gold model**, 11 queries, K = 100 [95% over queries and runs].\n\n" + _joined(
        lines
    )


def named_table(rows: Rows) -> str:
    """How often the secret is the nearest of the ten of its kind."""
    people = rows.values("people")
    lines = _head("secrets", "model", *(_people(person) for person in people))
    for secrets, model in _probed(rows):
        cells = []
        for person in people:
            places, ranks = (
                rows.table(model, [f"{number} {pair}" for pair in range(PAIRS)], people=person, secrets=secrets)
                for number in ("place", "rank")
            )
            share = share_over_things(places == 1, of="pairs") if places.size else None
            cells.append("" if share is None else f"{spelled(share, 2)}, {np.median(ranks):,.0f}")
        lines.append(_line(secrets, model, *cells))
    return (
        "**Planted probes.** Share of the names whose secret is the nearest of the ten of its kind (a guess: .1) "
        "[95% over pairs and runs], and the median rank of the secret among all words.\n\n" + _joined(lines)
    )


def bits_table(rows: Rows) -> str:
    """How much nearer the secrets are than in the same model without the plants."""
    people = [row for row in rows.values("people") if row]
    lines = _head("secrets", "model", *(_people(person) for person in people))
    names = [f"rank {pair}" for pair in range(PAIRS)]
    for secrets, model in _probed(rows):
        without = rows.table(model, names, people=0, secrets=secrets)
        cells = []
        for person in people:
            ranks = rows.table(model, names, people=person, secrets=secrets)
            result = over_things(np.log2(without / ranks), of="pairs") if ranks.shape == without.shape else None
            cells.append(spelled(result, 2, sign=True))
        lines.append(_line(secrets, model, *cells))
    return (
        "**What the plants changed**: bits, the mean over pairs of log2(rank without the plants / rank with them), the "
        "noise of a run being the same in both [95% over pairs and runs].\n\n" + _joined(lines)
    )


def _probed(rows: Rows) -> list[tuple[str, Model]]:
    """What secrets were to which model."""
    results = [(str(row), model) for row in rows.values("secrets") for model in rows.models()]
    return [(secrets, model) for secrets, model in results if rows.runs(model, secrets=secrets)]


def age_table(rows: Rows) -> str:
    """RMSE, beside the mean and the public features."""
    lines = _head("features", *(f"{entry}{label}" for entry in LEARNERS for label in ("", ": change")))
    blind = ""
    for model in rows.models():
        cells = []
        for learner in LEARNERS:
            blind = spelled(rows.estimate(model, "mean age", learner=learner), 2) or blind
            cells.append(spelled(rows.estimate(model, "RMSE", learner=learner), 2))
            change = rows.estimate(model, "change", learner=learner)
            cells.append("" if model.kind == WORDS_AND_CHARACTERS else spelled(change, 2, sign=True))
        lines.append(
            _line(model if model.kind in (WORDS, WORDS_AND_CHARACTERS) else f"words, characters and {model}", *cells)
        )
    lines.insert(2, _line("the mean age", *([blind, ""] * len(LEARNERS))))
    return (
        "**Age.** RMSE in years, 10 folds; *change*: against public words and characters, negative is better "
        "[95% over people and runs].\n\n" + _joined(lines)
    )


def summary(rows: dict[str, Rows]) -> str:
    """What the numbers come from."""
    constants = next(row.constants for row in rows.values() if row)
    count, seconds = (sum(getattr(row, name) for row in rows.values()) for name in ("count", "seconds"))
    held = f" ({rows['age'].constants['held out']} of them held out for their age)" if rows["age"] else ""
    return (
        f"{constants['bloggers']:,} bloggers{held}, {constants['documents']:,} posts; {count} cells in "
        f"{seconds / 60:.0f} minutes, vectors that were there before aside."
    )


# -- the parts of a table --------------------------------------------------------------------------------------


def plain(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _slashed(values: Iterable[float | None]) -> str:
    return " / ".join(map(plain, values))


def spelled(found: Estimate | None, digits: int = 3, *, sign: bool = False) -> str:
    if found is None:
        return ""
    value, low, high = (f"{entry:{'+' if sign else ''}.{digits}f}" for entry in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


def _head(*names: str) -> list[str]:
    return [_line(*names), "|---" + "|---:" * (len(names) - 1) + "|"]


def _line(*cells: Model | str) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _people(count: Setting) -> str:
    return {0: "nobody", 1: "1 person"}.get(count if isinstance(count, int) else -1, f"{count:,} people")


def _named(beside: str) -> str:
    return {"public": "public vectors as they are", "public, processed": "public vectors, processed"}.get(
        beside, beside
    )
