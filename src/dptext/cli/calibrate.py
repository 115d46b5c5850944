"""``dptext calibrate``: which epsilon means what, for this vocabulary, and which one reaches a target."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.calibration import calibration
from dptext.calibration.calibration import COMPARED, Calibration, Family
from dptext.calibration.deniability import Deniability, Replacements, deniability, replacements
from dptext.calibration.guessing import Compared, compare
from dptext.cli import options
from dptext.cli.calibrate_tables import print_comparison, print_epsilons, print_found, print_words
from dptext.cli.console import print_json, stdout
from dptext.errors import ParameterError
from dptext.own_files import check_target
from dptext.privacy.guarantee import rounded_down
from dptext.report.figures import calibration_figure, figure_format
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors

__all__ = ["calibrate"]

_AROUND = (0.5, 0.7, 0.85, 1.2, 1.4, 2.0)  # epsilons beside the one that was found
_CURVE = (0.4, 0.55, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.9)  # the same, for a figure
_WORDS = ("doctor", "london", "angry", "paid")
_COMPARED_WORDS, _COMPARED_DRAWS = 1000, 100_000
_USUAL_KEEP_RATE = 0.5
_SEED = 0  # no private word has a part in this, so the same question may get the same answer


@dataclass
class _Answer:
    """What was found, to be printed."""

    epsilons: list[Deniability]
    words: list[list[Replacements]] = field(default_factory=list)
    found: Calibration | None = None
    compared: list[Compared] | None = None


@dataclass(frozen=True, kw_only=True)
class FamilyOptions:
    """A mechanism, of which the epsilon is open."""

    vectors: options.Vectors = "glove-6b-50d"
    limit: options.Limit = 50_000
    mechanism: options.Mechanism = "tem"
    metric: options.Metric = None
    beta: options.Beta = None
    pure_epsilon: Annotated[
        float | None, typer.Option(help="TEM: the worst case of a word; the threshold follows from it.")
    ] = None

    @property
    def of_tem(self) -> dict[str, Any]:
        """Its further options, by the names that it has for them.

        Raises:
            ParameterError: they are for another mechanism.
        """
        found = {"metric": self.metric, "beta": self.beta, "pure_epsilon": self.pure_epsilon}
        given = {name: value for name, value in found.items() if value is not None}
        if given and self.mechanism != "tem":
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ParameterError(f"the mechanism {self.mechanism} has no {names}: leave it out, or use --mechanism tem")
        return given


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """How much is looked at."""

    rows: Annotated[int, typer.Option(help="How many words to look at: a public sample by frequency.")] = 400
    draws: Annotated[int, typer.Option(help="Draws of each word, for mechanisms that can only be sampled.")] = 200
    eta: Annotated[float, typer.Option(help="'Could become' leaves out outputs of this probability in all.")] = 0.05
    seed: Annotated[int, typer.Option(help="Other draws (no private word has a part in them).")] = _SEED


@options.collected
def calibrate(
    *,
    of: FamilyOptions,
    epsilon: Annotated[tuple[float, ...], typer.Option(help="Show this epsilon (may be repeated).")] = (),
    keep_rate: Annotated[
        float | None, typer.Option(help="Find the epsilon at which words of running text stay so often (mean).")
    ] = None,
    support: Annotated[
        float | None, typer.Option(help="Find the epsilon at which half of them could become so many words.")
    ] = None,
    word: Annotated[tuple[str, ...], typer.Option(help="Show what this word becomes (may be repeated).")] = (),
    compared: Annotated[
        bool,
        typer.Option("--compare", help="Compare the mechanisms where an attacker guesses equally well (a minute)."),
    ] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="OUT.png", help="Draw it (.png, .pdf, .svg; needs the extra report).")
    ] = None,
    measure: MeasureOptions,
    output: options.Output,
) -> None:
    """Say what an epsilon does to words, and find the one that reaches a target (default: half of the words stay)."""
    if sum(each not in (None, ()) for each in (epsilon, keep_rate, support)) > 1:
        raise ParameterError("give one of --epsilon, --keep-rate and --support")
    if figure is not None:
        figure_format(figure)
        check_target(figure, replace=True, apart_from={"the vectors": [of.vectors]})
    options = of.of_tem
    if compared and options:
        raise ParameterError("--compare takes the mechanisms as they are by default: leave out the options of TEM")
    public = load_vectors(of.vectors, limit=of.limit)
    family = Family(public, of.mechanism, **options)
    how = asdict(measure)
    output.say(f"Measuring {family.name} on {public.source} ({len(public):,} words) ...")
    if epsilon:
        answer = _Answer(epsilons=[deniability(family(each), **how) for each in sorted(set(epsilon))])
    else:
        wanted = keep_rate if keep_rate is not None or support is not None else _USUAL_KEEP_RATE
        found = calibration.calibrate(public, of.mechanism, keep_rate=wanted, support=support, **how, **options)
        beside = [rounded_down(found.epsilon * factor, 3) for factor in _AROUND]
        measured = [found.found, *(deniability(family(each), **how) for each in beside)]
        answer = _Answer(epsilons=sorted(measured, key=lambda each: each.epsilon), found=found)
    built = [family(each) for each in _few_of([each.epsilon for each in answer.epsilons])]
    answer.words = [
        [replacements(each, name, eta=measure.eta, seed=measure.seed) for each in built]
        for name in (word or _usual_words(public))
    ]
    if compared:
        few = load_vectors(of.vectors, limit=min(of.limit, _COMPARED_WORDS))
        output.say(f"Comparing {', '.join(COMPARED)} on its {len(few):,} most frequent words ...")
        answer.compared = compare(few, COMPARED, draws=_COMPARED_DRAWS, seed=measure.seed)
    if figure is not None:
        output.say(f"Drawing {figure} ...")
        _draw(figure, public, of.mechanism, options, answer, how)
    if output.as_json:
        print_json(_as_json(answer, public, figure))
    elif not output.quiet:
        _print(answer, public)


def _few_of(epsilons: list[float]) -> list[float]:
    """Three of them, as many columns as fit: the middle one and two around it; the outermost where they are few."""
    if len(epsilons) <= 3:
        return epsilons
    outer = 1 if len(epsilons) > 5 else 0
    return [epsilons[outer], epsilons[len(epsilons) // 2], epsilons[-1 - outer]]


def _usual_words(vectors: WordVectors) -> tuple[str, ...]:
    """Words that everybody knows; where the vocabulary does not, some of its own."""
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
    print_epsilons(console, answer.epsilons, source=f"{vectors.source}, {len(vectors):,} words")
    print_words(console, answer.words)
    if answer.compared is not None:
        print_comparison(console, answer.compared)
    if answer.found is not None:
        print_found(console, answer.found)


def _as_json(answer: _Answer, vectors: WordVectors, figure: Path | None) -> dict[str, Any]:
    found = answer.found
    return {
        "vectors": {"source": vectors.source, "words": len(vectors), "sha256": vectors.fingerprint},
        "found": None
        if found is None
        else {
            "epsilon": found.epsilon,
            "target": found.target,
            "wanted": found.wanted,
            "reached": found.reached,
            "error": found.error if found.target == "keep_rate" else None,
        },
        "epsilons": [each.as_dict() for each in answer.epsilons],
        "words": [asdict(each) for row in answer.words for each in row],
        "compared": None if answer.compared is None else [asdict(each) for each in answer.compared],
        "figure": None if figure is None else str(figure),
    }
