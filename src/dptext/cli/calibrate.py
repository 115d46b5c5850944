"""``dptext calibrate``: the effect of an epsilon, and the epsilon for a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from operator import add
from pathlib import Path
from typing import Any, Literal

import typer

from dptext.calibration import calibration
from dptext.calibration.calibration import Calibration, Family
from dptext.calibration.deniability import ETA, Deniability, Replacements, deniability, replacements
from dptext.cli import options
from dptext.cli.console import print_paragraphs, print_table
from dptext.cli.options import method_option, privacy_option, run_option
from dptext.errors import ParameterError
from dptext.privacy.guarantee import rounded_down
from dptext.privacy.wording import percent_at_most
from dptext.validation import check_choice
from dptext.vectors.formats import load_vectors
from dptext.words.registry import MECHANISMS

_COLUMNS = "epsilon|stays\nmean|\n5%|of text\n50%|\n95%|could\n5%|become\n50%|(words)\n95%|moves\nby|neigh-\nbour"
_QUANTILES = (0.05, 0.5, 0.95)
_WORD_LENGTH = 14
_FACTORS = (0.5, 0.7, 0.85, 1.2, 1.4, 2.0)  # epsilons around the calibrated one
_WORDS = ("doctor", "london", "angry", "paid")
_KEEP_RATE = 0.5
_EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0)


@dataclass(frozen=True, kw_only=True)
class WordOptions:
    """Word replacement: the mechanism, and the target that an epsilon should reach."""

    keep_rate: float | None = method_option(None, "Find the epsilon at which this share of words stays, on average.")
    word: tuple[str, ...] = method_option((), "Also show the replacements of this word (repeatable).", "WORD")
    mechanism: str = method_option("tem", f"Mechanism: {', '.join(MECHANISMS)}.", "NAME")
    vectors: str = options.VECTORS
    limit: int = options.LIMIT
    rows: int = run_option(400, "Number of words to measure, sampled by frequency.", "N")


@dataclass(frozen=True, kw_only=True)
class BankOptions:
    """Sentence replacement: the bank, and the target that an epsilon should reach."""

    bank: Path | None = method_option(None, "Calibrate this bank instead of word replacement.", "FOLDER")
    relinking: float | None = method_option(
        None,
        "Bank: find the epsilon at which an adversary who knows the texts of --people people names the right "
        "author at most this often.",
        "CHANCE",
    )
    people: int = method_option(300, "Bank: number of people for --relinking.", "N")
    unit: Literal["sentence", "document"] = privacy_option(
        "sentence", "Bank: --epsilon covers one sentence, or a document with all its sentences."
    )


def calibrate(
    *,
    epsilon: tuple[float, ...] = privacy_option((), "Show this epsilon (repeatable)."),
    words: WordOptions,
    texts: BankOptions,
    output: options.Output,
) -> None:
    """Show the effect of an epsilon on words, or find the epsilon for a target.

    The default target is that half of the words stay. With --bank, show how often a text is traced back to its author.

    Example: dptext calibrate --keep-rate 0.3 --word doctor
    """
    has_bank = texts.bank is not None
    flags = options.changed_flags(words if has_bank else texts)
    if flags:
        hint = "for word replacement: leave it out with --bank" if has_bank else "for a bank: add --bank FOLDER"
        raise ParameterError(f"{', '.join(flags)} is {hint}")
    if epsilon and (words.keep_rate is not None or texts.relinking is not None):
        raise ParameterError("give either --epsilon or a target (--keep-rate, --relinking)")
    if has_bank:
        _calibrate_bank(texts, epsilon, output)
    else:
        _calibrate_words(words, epsilon, output)


def _calibrate_words(words: WordOptions, epsilons: Sequence[float], output: options.Output) -> None:
    name = check_choice("mechanism", words.mechanism.lower(), MECHANISMS)
    vectors = load_vectors(words.vectors, limit=words.limit)
    family = Family(vectors, name)
    sampling: dict[str, Any] = {"rows": words.rows, "seed": options.ANALYSIS_SEED}
    output.say(f"Measuring {family.name} on {vectors.source} ({len(vectors):,} words) ...")
    target: Calibration | None = None
    rows = [deniability(family(value), **sampling) for value in sorted(set(epsilons))]
    if not epsilons:
        rate = _KEEP_RATE if words.keep_rate is None else words.keep_rate
        target = calibration.calibrate(vectors, name, keep_rate=rate, **sampling)
        around = [rounded_down(target.epsilon * factor, 3) for factor in _FACTORS]
        rows = [target.deniability, *(deniability(family(value), **sampling) for value in around)]
        rows.sort(key=lambda row: row.epsilon)
    last = len(rows) - 1
    mechanisms = [family(rows[place].epsilon) for place in sorted({(last + 1) // 6, (last + 1) // 2, last - last // 6})]
    known = tuple(word for word in _WORDS if word in vectors) or vectors.words[: len(_WORDS)]
    examples = [
        [replacements(mechanism, word, seed=options.ANALYSIS_SEED) for mechanism in mechanisms]
        for word in (words.word or known)
    ]

    def as_dict() -> dict[str, Any]:
        names = ("epsilon", "target", "goal", "reached", "error")
        return {
            "vectors": {"source": vectors.source, "words": len(vectors), "sha256": vectors.fingerprint},
            "found": None if target is None else {name: getattr(target, name) for name in names},
            "epsilons": [row.as_dict() for row in rows],
            "words": [asdict(example) for row in examples for example in row],
        }

    def show() -> None:
        typer.echo(f"Effect of epsilon on words of running text: {rows[0].mechanism} on {vectors.source}")
        print_table(_COLUMNS.split("|"), map(_cells, rows), left=0)
        print_paragraphs(
            "cli/templates/calibrate.txt", topic="words", first=rows[0], error=max(row.error("keep") for row in rows)
        )
        typer.echo("\nReplacements of single words")
        columns = ["word", *(f"epsilon {example.epsilon:.4g}" for example in examples[0])]
        print_table(columns, ([_shortened(row[0]), *map(_likeliest, row)] for row in examples), left=len(columns))
        if target is not None:
            statement = target.mechanism.statement
            print_paragraphs("cli/templates/calibrate.txt", topic="target", target=target)
            print_paragraphs("privacy/templates/measured.txt", epsilon=target.epsilon, statement=statement)

    output.print_result(as_dict, show)


def _cells(row: Deniability) -> list[str]:
    """Return how often words stay, how many they could become, and how far replacements are."""
    rank = row.quantile("median_rank", 0.5)
    return [
        f"{row.epsilon:.4g}",
        f"{row.mean('keep'):.3f}",
        *(_percent(row.quantile("keep", share)) for share in _QUANTILES),
        *(f"{row.quantile('support', share):,.0f}" for share in _QUANTILES),
        f"{row.mean('replacement_distance'):.2f}",
        "-" if rank != rank else f"{rank:,.0f}",
    ]


def _likeliest(example: Replacements) -> str:
    """Return how often a word stays, its likeliest replacements, and how many words it could become."""
    lines = [f"stays {_percent(example.keep)}"]
    lines += [f"{word[:_WORD_LENGTH]} {_percent(share)}" for word, share in example.likeliest[:3]]
    count = f"{example.support_low:,} word{'s' * (example.support_low > 1)}"
    return "\n".join([*lines, f"{1 - ETA:.0%}: {'' if example.draws is None else '>= '}{count}"])


def _shortened(example: Replacements) -> str:
    return f"{example.word[:_WORD_LENGTH]}{'' if example.known else chr(10) + '(unknown)'}"


def _percent(share: float) -> str:
    """Return a share that is never rounded to certain or impossible."""
    if share == 0.0 or 0.995 <= share < 1.0:
        return ">99%" if share else "0%"
    for places, smallest in ((0, 0.0995), (1, 0.00095), (2, 0.000095)):
        if share >= smallest:
            return f"{share:.{places}%}"
    return f"{share:.1g}"


def _calibrate_bank(texts: BankOptions, epsilons: Sequence[float], output: options.Output) -> None:
    from dptext.calibration.reidentification import BankCalibration, bank_epsilon, calibrate_bank  # words do without
    from dptext.sentences.bank import TextBank

    assert texts.bank is not None
    bank = TextBank.load(texts.bank)
    target: BankCalibration | None = None
    if texts.relinking is not None:
        output.say(f"Calibrating {bank.name!r} ({len(bank):,} texts, {bank.features.name}) ...")
        target = calibrate_bank(
            bank, relinking=texts.relinking, people=texts.people, unit=texts.unit, seed=options.ANALYSIS_SEED
        )
    values = sorted({*(epsilons or _EPSILONS), *([] if target is None else [target.epsilon])})
    rows = [bank_epsilon(bank, value, unit=texts.unit) for value in values]
    names = [] if target is None else [field.name for field in fields(target) if field.name != "rewriter"]

    def show() -> None:
        typer.echo(f"Effect of epsilon on the bank {bank.name!r}, {len(bank):,} texts")
        columns = ["epsilon", "k", "similarity", *(f"of {people:,}" for people in rows[0].relinking)]
        shares = [[percent_at_most(share) for share in row.relinking.values()] for row in rows]
        numbers = [[f"{row.epsilon:.4g}", f"{row.size:,}", f"{row.similarity[0]:.2f}"] for row in rows]
        print_table(columns, map(add, numbers, shares), left=0)
        random = round(rows[0].similarity[1], 2) + 0.0
        print_paragraphs("cli/templates/calibrate.txt", topic="bank", random=random)
        if target is not None:
            print_paragraphs("privacy/templates/calibrated_bank.txt", found=target)

    output.print_result(
        lambda: {
            "bank": bank.parameters(),
            "found": {name: getattr(target, name) for name in names} or None,
            "epsilons": [asdict(row) for row in rows],
        },
        show,
    )
