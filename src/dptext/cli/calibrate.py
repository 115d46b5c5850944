"""``dptext calibrate``: which epsilon means what, for this vocabulary, and which one reaches a target."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dptext.calibration import calibration
from dptext.calibration.calibration import COMPARED, Calibration, Family
from dptext.calibration.deniability import Deniability, Replacements, deniability, replacements
from dptext.cli import options
from dptext.cli.console import stdout
from dptext.errors import ParameterError
from dptext.io.atomic import check_target
from dptext.methods.figures import calibration_figure, figure_format
from dptext.privacy.guarantee import rounded_down
from dptext.privacy.wording import calibrated_bank, measured, percent_at_most
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors
from dptext.words.registry import MECHANISMS

if TYPE_CHECKING:
    from dptext.calibration.reidentification import BankCalibration, BankEpsilon
    from dptext.sentences.bank import TextBank

_WIDTH = 78  # of what is printed
_SHOWN = (0.05, 0.5, 0.95)
_LONGEST_WORD = 14
_OF_TEM = ("metric", "beta", "pure_epsilon")

_AROUND = (0.5, 0.7, 0.85, 1.2, 1.4, 2.0)  # epsilons beside the one that was found
_CURVE = (0.4, 0.55, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.9)  # the same, for a figure
_WORDS = ("doctor", "london", "angry", "paid")
_USUAL_KEEP_RATE = 0.5
_EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0)
_SEED = 0  # no private word has a part in this, so the same question may get the same answer


@dataclass
class _Answer:
    """What was found, to be printed."""

    epsilons: list[Deniability]
    words: list[list[Replacements]] = field(default_factory=list)
    found: Calibration | None = None


@dataclass(frozen=True, kw_only=True)
class FamilyOptions:
    """A mechanism, of which the epsilon is open."""

    vectors: options.Vectors = "glove-6b-50d"
    limit: options.Limit = 50_000
    mechanism: Annotated[str, options.OneOf(MECHANISMS), typer.Option(help="How words are replaced.")] = "tem"
    metric: options.Metric = None
    beta: options.Beta = None
    pure_epsilon: options.PureEpsilon = None

    @property
    def of_tem(self) -> dict[str, Any]:
        given = {name: value for name in _OF_TEM if (value := getattr(self, name)) is not None}
        if given and self.mechanism != "tem":
            names = ", ".join(map(options.flag, given))
            raise ParameterError(f"the mechanism {self.mechanism} has no {names}: leave it out, or use --mechanism tem")
        return given


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """How much is looked at."""

    rows: Annotated[int, typer.Option(help="How many words to look at: a public sample by frequency.")] = 400
    draws: Annotated[int, typer.Option(help="Draws of each word, for mechanisms that can only be sampled.")] = 200
    eta: Annotated[float, typer.Option(help="'Could become' leaves out outputs of this probability in all.")] = 0.05
    seed: Annotated[int, typer.Option(help="Other draws (no private word has a part in them).")] = _SEED


@dataclass(frozen=True, kw_only=True)
class BankOptions:
    """Texts of a bank, of which the epsilon is open, and how rarely they are to be traced back.

    Attributes:
        bank (FOLDER): Of texts of a bank, in place of words: its folder.
        relinking: bank: find the epsilon at which somebody who knows the texts of --people people names the right one
            with this chance at most.
        unit: bank: what epsilon is for, as in privatize.
        max_sentences: bank: as in privatize; the attacker sees so many sentences of a document (default: one).
        like (FILE): bank: public texts of the kind of the private ones (may be repeated), one a person, for what holds
            among these. Never private ones.
    """

    bank: Path | None = None
    relinking: float | None = None
    people: Annotated[int, typer.Option(help="bank: among how many people.")] = 300
    unit: Literal["sentence", "document"] = "sentence"
    max_sentences: int | None = None
    like: tuple[str, ...] = ()
    text: options.Text = "text"


@options.collected
def calibrate(
    *,
    of: FamilyOptions,
    texts: BankOptions,
    epsilon: Annotated[tuple[float, ...], typer.Option(help="Show this epsilon (may be repeated).")] = (),
    keep_rate: float | None = None,
    support: float | None = None,
    word: Annotated[tuple[str, ...], typer.Option(help="Show what this word becomes (may be repeated).")] = (),
    figure: Path | None = None,
    measure: MeasureOptions,
    output: options.Output,
) -> None:
    """Say what an epsilon does to words, and find the one that reaches a target (default: half of the words stay).

    With --bank: how often a text of a bank is traced back at an epsilon, and which one keeps --relinking.

    Args:
        keep_rate: Find the epsilon at which words of running text stay so often (mean).
        support: Find the epsilon at which half of them could become so many words.
        figure (OUT.png): Draw it (.png, .pdf, .svg; needs the extra report).
    """
    if texts.bank is not None:
        targets = {"keep_rate": keep_rate, "support": support, "word": word, "figure": figure}
        others = [options.flag(name) for name, value in targets.items() if value not in (None, ())]
        others += options.given_flags(of) + options.given_flags(measure, "rows", "draws", "eta")
        _refuse(others, "for words: leave it out with a bank")
        _calibrate_bank(texts, epsilon, measure.seed, output)
        return
    _refuse(options.given_flags(texts), "for texts of a bank: name it with --bank")
    if sum(each not in (None, ()) for each in (epsilon, keep_rate, support)) > 1:
        raise ParameterError("give one of --epsilon, --keep-rate and --support")
    if figure is not None:
        figure_format(figure)
        check_target(figure, replace=True, apart_from={"the vectors": [of.vectors]})
    of_tem = of.of_tem
    public = load_vectors(of.vectors, limit=of.limit)
    family = Family(public, of.mechanism, **of_tem)
    how = asdict(measure)
    output.say(f"Measuring {family.name} on {public.source} ({len(public):,} words) ...")
    if epsilon:
        answer = _Answer(epsilons=[deniability(family(each), **how) for each in sorted(set(epsilon))])
    else:
        wanted = keep_rate if keep_rate is not None or support is not None else _USUAL_KEEP_RATE
        found = calibration.calibrate(public, of.mechanism, keep_rate=wanted, support=support, **how, **of_tem)
        beside = [rounded_down(found.epsilon * factor, 3) for factor in _AROUND]
        measured = [found.found, *(deniability(family(each), **how) for each in beside)]
        answer = _Answer(epsilons=sorted(measured, key=lambda each: each.epsilon), found=found)
    built = [family(each) for each in _few_of([each.epsilon for each in answer.epsilons])]
    answer.words = [
        [replacements(each, name, eta=measure.eta, seed=measure.seed) for each in built]
        for name in (word or _usual_words(public))
    ]
    if figure is not None:
        output.say(f"Drawing {figure} ...")
        _draw(figure, public, of.mechanism, of_tem, answer, how)
    output.answer(lambda: _as_json(answer, public, figure), lambda: _print(answer, public))


def _refuse(flags: Sequence[str], why: str) -> None:
    if flags:
        raise ParameterError(f"{', '.join(flags)}: {why}")


def _calibrate_bank(asked: BankOptions, epsilon: Sequence[float], seed: int, output: options.Output) -> None:
    from dptext.calibration.reidentification import (  # words do without all that reads texts
        bank_epsilon,
        calibrate_bank,
    )
    from dptext.features.pool import Pool
    from dptext.sentences.bank import TextBank

    assert asked.bank is not None
    if epsilon and asked.relinking is not None:
        raise ParameterError("give one of --epsilon and --relinking")
    bank = TextBank.load(asked.bank)
    how: dict[str, Any] = {"unit": asked.unit, "max_sentences": asked.max_sentences}
    sample = Pool([Path(each) for each in asked.like], text=asked.text) if asked.like else None
    if sample is not None and asked.unit == "sentence" and asked.max_sentences is None:
        sample = sample.sentences()
    found = None
    if asked.relinking is not None:
        output.say(f"Looking for the epsilon of texts of {bank.name!r} ({len(bank):,} texts, {bank.features.name}) ...")
        public = None if sample is None else list(sample.texts)
        found = calibrate_bank(bank, relinking=asked.relinking, people=asked.people, texts=public, seed=seed, **how)
    wanted = sorted({*(epsilon or _EPSILONS), *([found.epsilon] if found is not None else [])})
    profile = None if sample is None else bank.profile_of(sample)
    rows = [bank_epsilon(bank, each, **how, profile=profile) for each in wanted]
    names = [] if found is None else [part.name for part in fields(found) if part.name != "rewriter"]
    output.answer(
        lambda: {
            "bank": bank.parameters(),
            "found": {name: getattr(found, name) for name in names} or None,
            "epsilons": [asdict(row) for row in rows],
        },
        lambda: _print_bank(rows, found, bank, like=sample is not None),
    )


def _print_bank(rows: Sequence[BankEpsilon], found: BankCalibration | None, bank: TextBank, *, like: bool) -> None:
    """One line an epsilon: how similar, and how often traced back among how many people; and the one that was found."""
    console = stdout()
    console.print(f"What epsilon does to texts of the bank {bank.name!r}, {len(bank):,} texts", markup=False)
    table = _table()
    for name in ("epsilon", "k", "similarity", *(f"of {people:,}" for people in rows[0].relinking)):
        table.add_column(name, justify="right", no_wrap=True)
    for each in rows:
        chances = (percent_at_most(chance) for chance in each.relinking.values())
        table.add_row(f"{each.epsilon:.4g}", f"{each.size:,}", f"{each.similarity[0]:.2f}", *chances)
    console.print(table)
    _say(
        console,
        "k: how many texts of the bank are drawn more often, the most similar ones. Similarity: of what comes out to "
        f"what goes in, on average over {'the public texts of --like' if like else 'texts of the bank'}; of a text of "
        f"the bank at random it is {round(rows[0].similarity[1], 2) + 0.0:.2f}. Of so many people, all equally likely "
        "before, whose texts somebody knows, they name the right one with this chance at most.",
    )
    if found is not None:
        console.print()
        for line in calibrated_bank(found):
            _say(console, line)


def _few_of(epsilons: list[float]) -> list[float]:
    """Three of them, as many columns as fit: the middle one and two around it; the outermost where they are few."""
    if len(epsilons) <= 3:
        return epsilons
    outer = 1 if len(epsilons) > 5 else 0
    return [epsilons[outer], epsilons[len(epsilons) // 2], epsilons[-1 - outer]]


def _usual_words(vectors: WordVectors) -> tuple[str, ...]:
    known = tuple(each for each in _WORDS if each in vectors)
    return known or vectors.words[: len(_WORDS)]


def _draw(
    path: Path, vectors: WordVectors, mechanism: str, options: dict[str, Any], answer: _Answer, how: dict[str, Any]
) -> None:
    """The mechanism that was asked for, beside the others where they measure in the same metric."""
    names = [mechanism, *(name for name in COMPARED if name != mechanism and not options)]
    curves, at_half = {}, {}
    for name in names:
        mine = options if name == mechanism else {}
        family = Family(vectors, name, **mine)
        ours = answer.found if name == mechanism else None
        if ours is None or ours.target != "keep_rate" or ours.wanted != _USUAL_KEEP_RATE:
            ours = calibration.calibrate(vectors, name, keep_rate=_USUAL_KEEP_RATE, **how, **mine)
        curves[family.name] = [deniability(family(ours.epsilon * factor), **how) for factor in _CURVE]
        at_half[family.name] = ours.found
    calibration_figure(path, curves, at_half, source=f"{vectors.source}, {len(vectors):,} words")


def _print(answer: _Answer, vectors: WordVectors) -> None:
    console = stdout()
    _print_epsilons(console, answer.epsilons, source=f"{vectors.source}, {len(vectors):,} words")
    _print_words(console, answer.words)
    if answer.found is not None:
        _print_found(console, answer.found)


def _as_json(answer: _Answer, vectors: WordVectors, figure: Path | None) -> dict[str, Any]:
    found = answer.found
    return {
        "vectors": {"source": vectors.source, "words": len(vectors), "sha256": vectors.fingerprint},
        "found": None
        if found is None
        else {name: getattr(found, name) for name in ("epsilon", "target", "wanted", "reached")}
        | {"error": found.error if found.target == "keep_rate" else None},
        "epsilons": [each.as_dict() for each in answer.epsilons],
        "words": [asdict(each) for row in answer.words for each in row],
        "figure": None if figure is None else str(figure),
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
    if found.target == "keep_rate":
        error = f" (+-{found.error:.3f})" if found.error > 0 else ""
        what = f"words of running text stay {found.reached:.3f} of the time{error}"
    else:
        what = f"half of the words of running text could become at least {found.reached:,.0f} words"
    console.print()
    _say(console, f"Use --epsilon {found.epsilon:.4g}: {what}.")
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
