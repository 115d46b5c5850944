"""``dptext calibrate``: the effect of an epsilon, and the epsilon for a target."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dptext.calibration import calibration
from dptext.calibration.calibration import Calibration, Family
from dptext.calibration.deniability import Deniability, Replacements, deniability, replacements
from dptext.cli import options
from dptext.cli.console import stdout
from dptext.cli.options import method_option, privacy_option, run_option
from dptext.errors import ParameterError
from dptext.privacy.guarantee import rounded_down
from dptext.privacy.wording import calibrated_bank, measured, percent_at_most
from dptext.validation import check_choice
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors
from dptext.words.registry import MECHANISMS

if TYPE_CHECKING:
    from dptext.calibration.reidentification import BankCalibration, BankEpsilon
    from dptext.sentences.bank import TextBank

_WIDTH = 78  # of what is printed
_SHOWN = (0.05, 0.5, 0.95)
_LONGEST_WORD = 14

_AROUND = (0.5, 0.7, 0.85, 1.2, 1.4, 2.0)  # epsilons beside the one that was found
_WORDS = ("doctor", "london", "angry", "paid")
_USUAL_KEEP_RATE = 0.5
_EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0)


@dataclass
class _Answer:
    """What was found, to be printed."""

    epsilons: list[Deniability]
    words: list[list[Replacements]] = field(default_factory=list)
    found: Calibration | None = None


@dataclass(frozen=True, kw_only=True)
class WordOptions:
    """Word replacement: the mechanism, and the target that an epsilon should reach."""

    keep_rate: Annotated[
        float | None, method_option(help="Find the epsilon at which this share of words stays, on average.")
    ] = None
    word: Annotated[
        tuple[str, ...], method_option(metavar="WORD", help="Also show the replacements of this word (repeatable).")
    ] = ()
    mechanism: Annotated[str, method_option(metavar="NAME", help=f"Mechanism: {', '.join(MECHANISMS)}.")] = "tem"
    vectors: options.Vectors = "glove-6b-50d"
    limit: options.Limit = 50_000
    rows: Annotated[int, run_option(metavar="N", help="Number of words to measure, sampled by frequency.")] = 400


@dataclass(frozen=True, kw_only=True)
class BankOptions:
    """Sentence replacement: the bank, and the target that an epsilon should reach."""

    bank: Annotated[
        Path | None, method_option(metavar="FOLDER", help="Calibrate this bank instead of word replacement.")
    ] = None
    relinking: Annotated[
        float | None,
        method_option(
            metavar="CHANCE",
            help="Bank: find the epsilon at which an adversary who knows the texts of --people people names the right "
            "author at most this often.",
        ),
    ] = None
    people: Annotated[int, method_option(metavar="N", help="Bank: number of people for --relinking.")] = 300
    unit: Annotated[
        Literal["sentence", "document"],
        privacy_option(help="Bank: --epsilon covers one sentence, or a document with all its sentences."),
    ] = "sentence"


@options.collected
def calibrate(
    *,
    epsilon: Annotated[tuple[float, ...], privacy_option(help="Show this epsilon (repeatable).")] = (),
    words: WordOptions,
    texts: BankOptions,
    output: options.Output,
) -> None:
    """Show the effect of an epsilon on words, or find the epsilon for a target.

    The default target is that half of the words stay. With --bank, show how often a text is traced back to its author.

    Example: dptext calibrate --keep-rate 0.3 --word doctor
    """
    if texts.bank is not None:
        _refuse(options.given_flags(words), "for word replacement: leave it out with --bank")
        _calibrate_bank(texts, epsilon, output)
        return
    _refuse(options.given_flags(texts), "for a bank: add --bank FOLDER")
    if epsilon and words.keep_rate is not None:
        raise ParameterError("give either --epsilon or --keep-rate")
    name = check_choice("mechanism", words.mechanism.lower(), MECHANISMS)
    public = load_vectors(words.vectors, limit=words.limit)
    family = Family(public, name)
    how: dict[str, Any] = {"rows": words.rows, "seed": options.ANALYSIS_SEED}
    output.say(f"Measuring {family.name} on {public.source} ({len(public):,} words) ...")
    if epsilon:
        answer = _Answer(epsilons=[deniability(family(value), **how) for value in sorted(set(epsilon))])
    else:
        target = _USUAL_KEEP_RATE if words.keep_rate is None else words.keep_rate
        found = calibration.calibrate(public, name, keep_rate=target, **how)
        around = [rounded_down(found.epsilon * factor, 3) for factor in _AROUND]
        measured = [found.found, *(deniability(family(value), **how) for value in around)]
        answer = _Answer(epsilons=sorted(measured, key=lambda result: result.epsilon), found=found)
    built = [family(value) for value in _few_of([result.epsilon for result in answer.epsilons])]
    answer.words = [
        [replacements(mechanism, word, seed=options.ANALYSIS_SEED) for mechanism in built]
        for word in (words.word or _usual_words(public))
    ]
    output.answer(lambda: _as_json(answer, public), lambda: _print(answer, public))


def _refuse(flags: Sequence[str], why: str) -> None:
    if flags:
        raise ParameterError(f"{', '.join(flags)}: {why}")


def _calibrate_bank(asked: BankOptions, epsilon: Sequence[float], output: options.Output) -> None:
    from dptext.calibration.reidentification import bank_epsilon, calibrate_bank  # words do without
    from dptext.sentences.bank import TextBank

    assert asked.bank is not None
    if epsilon and asked.relinking is not None:
        raise ParameterError("give either --epsilon or --relinking")
    bank = TextBank.load(asked.bank)
    found = None
    if asked.relinking is not None:
        output.say(f"Calibrating {bank.name!r} ({len(bank):,} texts, {bank.features.name}) ...")
        found = calibrate_bank(
            bank, relinking=asked.relinking, people=asked.people, unit=asked.unit, seed=options.ANALYSIS_SEED
        )
    values = sorted({*(epsilon or _EPSILONS), *([found.epsilon] if found is not None else [])})
    rows = [bank_epsilon(bank, value, unit=asked.unit) for value in values]
    names = [] if found is None else [part.name for part in fields(found) if part.name != "rewriter"]
    output.answer(
        lambda: {
            "bank": bank.parameters(),
            "found": {name: getattr(found, name) for name in names} or None,
            "epsilons": [asdict(row) for row in rows],
        },
        lambda: _print_bank(rows, found, bank),
    )


def _print_bank(rows: Sequence[BankEpsilon], found: BankCalibration | None, bank: TextBank) -> None:
    console = stdout()
    console.print(f"Effect of epsilon on the bank {bank.name!r}, {len(bank):,} texts", markup=False)
    table = _table()
    for name in ("epsilon", "k", "similarity", *(f"of {people:,}" for people in rows[0].relinking)):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        chances = (percent_at_most(chance) for chance in row.relinking.values())
        table.add_row(f"{row.epsilon:.4g}", f"{row.size:,}", f"{row.similarity[0]:.2f}", *chances)
    console.print(table)
    _say(
        console,
        "k: number of the most similar texts of the bank that are drawn more often. Similarity: average similarity of "
        f"a replacement to its original, for texts of the bank; for a random text of the bank it is "
        f"{round(rows[0].similarity[1], 2) + 0.0:.2f}. Of 10, 100, ...: the largest chance with which an adversary "
        "who knows the texts of that many people, all equally likely before, names the right one.",
    )
    if found is not None:
        console.print()
        for line in calibrated_bank(found):
            _say(console, line)


def _few_of(epsilons: list[float]) -> list[float]:
    """Return three epsilons, as many as fit in a table."""
    if len(epsilons) <= 3:
        return epsilons
    outer = 1 if len(epsilons) > 5 else 0
    return [epsilons[outer], epsilons[len(epsilons) // 2], epsilons[-1 - outer]]


def _usual_words(vectors: WordVectors) -> tuple[str, ...]:
    known = tuple(each for each in _WORDS if each in vectors)
    return known or vectors.words[: len(_WORDS)]


def _print(answer: _Answer, vectors: WordVectors) -> None:
    console = stdout()
    _print_epsilons(console, answer.epsilons, source=f"{vectors.source}, {len(vectors):,} words")
    _print_words(console, answer.words)
    if answer.found is not None:
        _print_found(console, answer.found)


def _as_json(answer: _Answer, vectors: WordVectors) -> dict[str, Any]:
    found = answer.found
    return {
        "vectors": {"source": vectors.source, "words": len(vectors), "sha256": vectors.fingerprint},
        "found": None
        if found is None
        else {name: getattr(found, name) for name in ("epsilon", "target", "wanted", "reached", "error")},
        "epsilons": [each.as_dict() for each in answer.epsilons],
        "words": [asdict(each) for row in answer.words for each in row],
    }


def _print_epsilons(console: Console, found: Sequence[Deniability], *, source: str) -> None:
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


def _print_words(console: Console, words: Sequence[Sequence[Replacements]]) -> None:
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


def _print_found(console: Console, found: Calibration) -> None:
    error = f" (+-{found.error:.3f})" if found.error > 0 else ""
    console.print()
    _say(
        console,
        f"Use --epsilon {found.epsilon:.4g}: words of running text stay {found.reached:.3f} of the time{error}.",
    )
    _say(console, measured(found.epsilon, found.mechanism.statement))


def _table() -> Table:
    return Table(pad_edge=False, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _say(console: Console, text: str) -> None:
    for line in textwrap.wrap(text, _WIDTH):
        console.print(line, markup=False)


def _whole_percent(share: float) -> str:
    return ">99%" if 0.995 <= share < 1.0 else "<1%" if 0.0 < share < 0.005 else f"{share:.0%}"


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
