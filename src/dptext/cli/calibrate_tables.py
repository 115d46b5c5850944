"""The tables of ``dptext calibrate``: at most 80 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dptext.calibration.calibration import Calibration
from dptext.calibration.deniability import Deniability, Replacements
from dptext.calibration.guessing import Compared
from dptext.privacy.wording import measured

__all__ = ["print_comparison", "print_epsilons", "print_found", "print_words"]

_WIDTH = 78
_SHOWN = (0.05, 0.5, 0.95)
_LONGEST_WORD = 14


def print_epsilons(console: Console, found: Sequence[Deniability], *, source: str) -> None:
    """One line an epsilon: how often words stay, how many they could become, how far replacements go."""
    console.print(f"What epsilon does to words of running text: {found[0].mechanism} on {source}", markup=False)
    table = _table()
    for name in ("epsilon", "stays\nmean", "\n5%", "of text\n50%", "\n95%", "could\n5%", "become\n50%", "(words)\n95%"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("moves\nby", justify="right", no_wrap=True)
    table.add_column("neigh-\nbour", justify="right", no_wrap=True)
    for each in found:
        table.add_row(
            f"{each.epsilon:.4g}",
            f"{each.mean('keep'):.3f}",
            *(_whole_percent(each.quantile("keep", share)) for share in _SHOWN),
            *(f"{each.quantile('support', share):,.0f}" for share in _SHOWN),
            f"{each.mean('replacement_distance'):.2f}",
            _rank(each.quantile("median_rank", 0.5)),
        )
    console.print(table)
    _say(console, _how_measured(found))


def _how_measured(found: Sequence[Deniability]) -> str:
    first = found[0]
    worst = max(each.error("keep") for each in found)
    parts = [
        "5%, 50%, 95%: quantiles over running text, words weighted by 1 / rank (an assumption). Could become: the "
        f"fewest words that hold {1 - first.eta:.0%} of the probability. Moves by: the mean distance of a replacement; "
        "neighbour: which one it is, in the median (1: the nearest)."
    ]
    if first.draws is None:
        parts.append(f"Exact for each of {len(first):,} words, from the numbers that the sampler draws from;")
    else:
        low, high = (max(each.quantile(name, 0.5) for each in found) for name in ("support_low", "support_high"))
        parts.append(
            f"From {first.draws:,} draws of each of {len(first):,} words: 'could become' is then too small rather than "
            f"too large (a largest median between {low:,.0f} and {high:,.0f});"
        )
    if first.sample.is_everything and first.draws is None:
        parts.append("these are all words.")
    else:
        parts.append(
            f"the means are within {worst:.3f} (95%), and what is called 50% is some quantile between "
            f"{0.5 - first.quantile_error:.0%} and {0.5 + first.quantile_error:.0%}."
        )
    return " ".join(parts)


def print_words(console: Console, words: Sequence[Sequence[Replacements]]) -> None:
    """Some words and what they become at some epsilons."""
    if not words:
        return
    console.print("\nWhat a word becomes")
    table = _table()
    table.add_column("word")
    for each in words[0]:
        table.add_column(f"epsilon {each.epsilon:.4g}", no_wrap=True)
    for row in words:
        known = "" if row[0].known else "\n(unknown)"
        table.add_row(f"{escape(_cut(row[0].word))}{known}", *map(_outputs, row))
    console.print(table)


def _outputs(each: Replacements) -> str:
    lines = [f"stays {_percent(each.keep)}"]
    lines += [f"{_cut(name)} {_percent(share)}" for name, share in each.likeliest[:3]]
    words = f"{'' if each.draws is None else '>= '}{each.support_low:,} word{'s' * (each.support_low > 1)}"
    lines.append(f"{1 - each.eta:.0%}: {words}")
    return escape("\n".join(lines))


def print_comparison(console: Console, compared: Sequence[Compared]) -> None:
    """The mechanisms where an attacker does equally well."""
    console.print("\nWhere the best attacker, who knows how frequent words are, guesses equally often")
    table = _table()
    for name in ("guessed", "mechanism", "epsilon", "stays", "mean distance"):
        table.add_column(name, justify="left" if name == "mechanism" else "right", no_wrap=True)
    for each in compared:
        spread = (each.guess.high - each.guess.low) / 2
        table.add_row(
            _with_error(each.guess.rate, spread),
            each.mechanism,
            f"{each.epsilon:.4g}",
            _with_error(each.keep, each.keep_error),
            _with_error(each.distance, each.distance_error),
        )
    console.print(table)
    blind = compared[0].guess.blind
    without = f"the attacker, who names the most frequent word, is right {blind:.3f} of the time."
    _say(console, f"Without any output {without}")


def print_found(console: Console, found: Calibration) -> None:
    """One sentence with the epsilon to use, and what it is not."""
    if found.target == "keep_rate":
        error = f" (+-{found.error:.3f})" if found.error > 0 else ""
        what = f"words of running text stay {found.reached:.3f} of the time{error}"
    else:
        what = f"half of the words of running text could become at least {found.reached:,.0f} words"
    pure = found.mechanism.statement.epsilon
    console.print()
    _say(console, f"Use --epsilon {found.epsilon:.4g}: {what}.")
    _say(console, measured(found.epsilon, pure))


def _table() -> Table:
    return Table(pad_edge=False, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _say(console: Console, text: str) -> None:
    for line in textwrap.wrap(text, _WIDTH):
        console.print(line, markup=False)


def _whole_percent(share: float) -> str:
    return ">99%" if 0.995 <= share < 1.0 else "<1%" if 0.0 < share < 0.005 else f"{share:.0%}"


def _with_error(value: float, error: float) -> str:
    return f"{value:.3f} +-{error:.3f}" if error > 0 else f"{value:.3f}       "


def _percent(share: float) -> str:
    if 0.995 <= share < 1.0:
        return ">99%"  # 100% would be another thing
    for digits, least in ((0, 0.0995), (1, 0.00095), (2, 0.000095)):
        if share >= least:
            return f"{share:.{digits}%}"
    return f"{share:.1g}"


def _cut(word: str) -> str:
    return word if len(word) <= _LONGEST_WORD else f"{word[: _LONGEST_WORD - 1]}…"


def _rank(value: float) -> str:
    return f"{value:,.0f}" if value == value else "-"
