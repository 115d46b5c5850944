"""Before a release: ``dptext bank`` and ``dptext calibrate``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import typer

from dptext.calibration import calibration
from dptext.calibration.deniability import ETA, Deniability, Replacements, deniability, replacements
from dptext.cli import options
from dptext.cli.console import print_paragraphs, print_table
from dptext.cli.options import argument, method_option, output_option, privacy_option, run_option
from dptext.cli.outputs import say_coverage
from dptext.errors import ParameterError
from dptext.privacy.guarantee import rounded_down
from dptext.privacy.wording import percent_at_most
from dptext.text.tokens import TextUnit
from dptext.validation import check_choice
from dptext.vectors.formats import load_vectors
from dptext.words.registry import MECHANISMS

_SENTENCES = "cli/templates/calibrate.txt"
_COLUMNS = "epsilon|stays\nmean|\n5%|of text\n50%|\n95%|could\n5%|become\n50%|(words)\n95%|moves\nby|neigh-\nbour"
_QUANTILES = (0.05, 0.5, 0.95)
_WORD_LENGTH = 14
_FACTORS = (0.5, 0.7, 0.85, 1.2, 1.4, 2.0)  # epsilons around the calibrated one
_WORDS = ("doctor", "london", "angry", "paid")
_KEEP_RATE = 0.5
_EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0)


# -- bank ----------------------------------------------------------------------------------------------------------


def bank(
    *,
    public: tuple[str, ...] = argument(
        ..., "Public files, folders, patterns or hf://datasets/..., chosen without regard to private texts.", "POOL..."
    ),
    text: str = options.TEXT,
    out: Path = output_option(..., "Output folder.", "FOLDER", "--out", "-o"),
    name: str | None = output_option(None, "Name of the public texts in the statement and the card."),
    licence: str | None = options.LICENCE_OPTION,
    force: bool = options.FORCE,
    pool_unit: TextUnit = options.POOL_UNIT,
    encoder: str | None = options.ENCODER,
    output: options.Output,
) -> None:
    """Make a bank of public texts for sentence replacement.

    The table shows how similar replacements are to their originals. The texts of POOL are published unchanged; their
    authors are not protected.

    Example: dptext bank reviews.jsonl -o public --pool-unit sentence --licence CC0-1.0
    """
    from dptext.features.pool import Pool, public_sources
    from dptext.sentences.bank import FOLDER, TextBank

    target = FOLDER.place(out, replace=force)
    texts = Pool(public_sources(public), text=text, name=name, licence=licence, unit=pool_unit)
    if any(target in path.resolve().parents for path in texts.files):
        raise ParameterError(f"{str(out)!r} contains a file of POOL, which would be deleted: choose another folder")
    saved = TextBank(texts, encoder=encoder)
    saved.save(out, replace=force)
    if pool_unit != "document":
        output.say(f"Cut the documents into {texts.given:,} {pool_unit}s.")
    features = saved.features
    output.say(f"Wrote a bank of {len(saved):,} texts ({features.name}, {features.dimension:,} dimensions) to {out}.")
    if texts.repeated or texts.empty:
        output.say(f"Left out {texts.repeated:,} repeated and {texts.empty:,} empty texts.")
    say_coverage(lambda: saved.texts, saved.features, "features", output)
    if saved.licence is None:
        output.say("Warning: --licence is missing, and the texts of the bank are published unchanged.")
    counts = {"texts": len(saved), "repeated": texts.repeated, "empty": texts.empty}
    _show_bank(saved, _EPSILONS, "sentence", output, {"out": str(out), **counts, **saved.parameters()})
    output.say(f"To use it: dptext privatize IN -o OUT --mechanism bank --bank {shlex.quote(str(out))} --epsilon 8")


# -- calibrate -----------------------------------------------------------------------------------------------------


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
        None, "Bank: find the epsilon at which an adversary names the author, one of --people, this often.", "CHANCE"
    )
    people: int = method_option(300, "Bank: number of people for --relinking.", "N")
    unit: Literal["sentence", "document"] = options.BANK_UNIT


def calibrate(
    *,
    epsilon: tuple[float, ...] = privacy_option((), "Show this epsilon (repeatable)."),
    words: WordOptions,
    texts: BankOptions,
    output: options.Output,
) -> None:
    """Show the effect of an epsilon on words, or find the epsilon for a target.

    The default target is that half of the words stay. With --bank, show how often an adversary names a text's author.

    Example: dptext calibrate --keep-rate 0.3 --word doctor
    """
    has_bank = texts.bank is not None
    if flags := options.changed_flags(words if has_bank else texts):
        hint = "for word replacement: omit it with --bank" if has_bank else "for a bank: add --bank FOLDER"
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
    family = calibration.Family(vectors, name)
    sampling: dict[str, Any] = {"rows": words.rows, "seed": options.ANALYSIS_SEED}
    output.say(f"Measuring {family.name} on {vectors.source} ({len(vectors):,} words) ...")
    target: calibration.Calibration | None = None
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
        names = ("epsilon", "goal", "reached", "error")
        return {
            "vectors": {"source": vectors.source, "words": len(vectors), "sha256": vectors.fingerprint},
            "found": None if target is None else {name: getattr(target, name) for name in names},
            "epsilons": [row.as_dict() for row in rows],
            "words": [asdict(example) for row in examples for example in row],
        }

    def show() -> None:
        typer.echo(f"Effect of epsilon on words of running text: {rows[0].mechanism} on {vectors.source}")
        print_table(_COLUMNS.split("|"), map(_cells, rows), left=0)
        print_paragraphs(_SENTENCES, topic="words", first=rows[0], error=max(row.error("keep") for row in rows))
        typer.echo("\nReplacements of single words")
        columns = ["word", *(f"epsilon {example.epsilon:.4g}" for example in examples[0])]
        cells = (
            [row[0].word[:_WORD_LENGTH] + ("" if row[0].known else "\n(unknown)"), *map(_likeliest, row)]
            for row in examples
        )
        print_table(columns, cells, left=len(columns))
        if target is not None:
            statement = target.mechanism.statement
            print_paragraphs(_SENTENCES, topic="target", target=target)
            print_paragraphs("privacy/templates/measured.txt", epsilon=target.epsilon, statement=statement)

    output.print_result(as_dict, show)


def _cells(row: Deniability) -> list[str]:
    """Return how often words stay, how many they could become, and how far replacements are, at one epsilon."""
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


def _percent(share: float) -> str:
    """Return a share that is never rounded to certain or impossible."""
    if share >= 0.995:
        return "100%" if share == 1.0 else ">99%"
    return f"{100 * share:.2g}%"


def _calibrate_bank(texts: BankOptions, epsilons: Sequence[float], output: options.Output) -> None:
    from dptext.calibration.reidentification import calibrate_bank
    from dptext.sentences.bank import TextBank

    assert texts.bank is not None
    bank, target, values = TextBank.load(texts.bank), None, epsilons or _EPSILONS
    if texts.relinking is not None:
        output.say(f"Calibrating {bank.name!r} ({len(bank):,} texts, {bank.features.name}) ...")
        target = calibrate_bank(bank, relinking=texts.relinking, people=texts.people, unit=texts.unit)
        values = [*values, target.epsilon]
    names = [] if target is None else [field.name for field in fields(target) if field.name != "rewriter"]
    target_values = {name: getattr(target, name) for name in names} or None
    _show_bank(bank, values, texts.unit, output, {"bank": bank.parameters(), "found": target_values})
    if target is not None and not (output.quiet or output.as_json):
        print_paragraphs("privacy/templates/calibrated_bank.txt", found=target)


def _show_bank(
    bank: Any,
    epsilons: Sequence[float],
    unit: Literal["sentence", "document"],
    output: options.Output,
    data: dict[str, Any],
) -> None:
    """Print the effect of several epsilons on a bank, with further data for JSON."""
    from dptext.calibration.reidentification import bank_epsilon

    rows = [bank_epsilon(bank, value, unit=unit) for value in sorted(set(epsilons))]

    def show() -> None:
        typer.echo(f"Effect of epsilon on the bank {bank.name!r}, {len(bank):,} texts")
        columns = ["epsilon", "k", "similarity", *(f"of {people:,}" for people in rows[0].relinking)]
        cells = (
            [
                f"{row.epsilon:.4g}",
                f"{row.size:,}",
                f"{row.similarity[0]:.2f}",
                *map(percent_at_most, row.relinking.values()),
            ]
            for row in rows
        )
        print_table(columns, cells, left=0)
        print_paragraphs(_SENTENCES, topic="bank", random=round(rows[0].similarity[1], 2) + 0.0)

    output.print_result(lambda: data | {"epsilons": [asdict(row) for row in rows]}, show)
