"""One self-contained HTML page and a Markdown card: promise, audit, attacks, use and fairness of one release."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dptext.attacks.base import AttackScore
from dptext.audits.verdict import Verdict
from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError
from dptext.methods.checks import Check
from dptext.methods.findings import Picture
from dptext.methods.results import (
    Corpus,
    Grade,
    GroupGap,
    KeptColumn,
    Measurement,
    Of,
    Relinking,
    Sample,
    Stayed,
    grade,
    main_scores,
    sign,
)
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import (
    explanation_html,
    facts_of,
    filled,
    is_bank_statement,
    not_protected,
    percent_at_most,
    protected,
)
from dptext.reports.summary import (
    Level,
    Recommendation,
    answers,
    is_ceiling,
    is_exact,
    is_uncompared,
    judge,
    recommendation,
)
from dptext.text.tokens import Kind, split
from dptext.words.replacing import PLACEHOLDERS


@dataclass(frozen=True, kw_only=True, repr=False)
class Report(ReprMixin):
    """Everything that one page says. Frozen; `html` and `card` only put it into words.

    Attributes:
        title: of the page.
        statement: what was promised.
        checks: what was checked of the file.
        verdicts: audits of the promise.
        attacks: what an adversary got from what was released.
        owner_attacks: what one got, measured with the original texts: the promise does not cover these numbers.
        controls: the same attackers on original texts, where they should succeed: an attack that fails there too says
            nothing.
        limits: what the noise of a description allows an attack on who is in it on average, by measure.
        relinking: how often a text is given back to its author, of several numbers of people.
        utility: what the release is still good for.
        fairness: how good it is for each group.
        gaps: how far groups lie apart, for one model or several.
        samples: public or synthetic texts, before and after.
        stays: the share of words that stay as they are, at public frequencies; None where no words came out.
        corpus: what a synthetic corpus holds; None: the release is none.
        pictures: of the sections "audit", "attacks", "utility" and "spread".
        figures: further pictures.
        command: what makes the page again; a card shows it without folders and without the name of the original.
        notes: sentences for the reader.
        identifying: kept columns that look like identifiers: the release itself shows them.
        unchanged: of how many original texts that were looked at how many came out as they were, (unchanged, all), for
            their owner; None: they were not compared.
        stayed: what of the originals looks like names, addresses or numbers, and stayed; for the owner alone.
        at_home: columns that were asked for and that the release does not hold: a card names none of them.
    """

    title: str
    statement: PrivacyStatement
    checks: Sequence[Check] = ()
    verdicts: Sequence[Verdict] = ()
    attacks: Sequence[AttackScore] = ()
    owner_attacks: Sequence[AttackScore] = ()
    controls: Sequence[AttackScore] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    relinking: Sequence[Relinking] = ()
    utility: Sequence[Measurement] = ()
    fairness: Sequence[Measurement] = ()
    gaps: Sequence[GroupGap] = ()
    samples: Sequence[Sample] = ()
    stays: float | None = None
    corpus: Corpus | None = None
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    figures: Sequence[Picture] = ()
    command: str = ""
    notes: Sequence[str] = field(default=())
    identifying: Sequence[KeptColumn] = ()
    unchanged: tuple[int, int] | None = None
    unchanged_pieces: Sequence[Stayed] = ()
    at_home: Sequence[str] = ()

    def __post_init__(self) -> None:
        for caption, picture in (*self.figures, *self.pictures.values()):
            if not picture.startswith(b"\x89PNG"):
                raise ParameterError(f"a figure must be a PNG picture, {caption!r} is something else")

    @property
    def refuted(self) -> bool:
        """Whether a check failed, or an audit showed the promise to be false."""
        return any(verdict.refuted for verdict in self.verdicts) or any(check.held is False for check in self.checks)

    @property
    def noise_agrees(self) -> bool:
        """Whether the noise of the release was compared with the original texts, and agrees with the statement."""
        return any(check.owner_only and check.held for check in self.checks)

    @property
    def has_owner_numbers(self) -> bool:
        """Whether original texts had a part in any number."""
        measured: list[Check | Measurement] = [*self.checks, *self.utility, *self.fairness]
        of_corpus = self.corpus is not None and self.corpus.has_owner_numbers
        return bool(
            self.owner_attacks
            or self.controls
            or of_corpus
            or self.unchanged is not None
            or self.unchanged_pieces
            or any(entry.owner_only for entry in measured)
        )

    def shared(self) -> Report:
        """What of it may be shared: all that original texts had no part in, and nothing else."""
        corpus = self.corpus
        if corpus is not None:
            corpus = replace(
                corpus,
                labels=[replace(label, real=None) for label in corpus.labels],
                spread=[replace(entry, real="") for entry in corpus.spread if not entry.owner_only],
                owner_picture=False,
            )
        return replace(
            self,
            checks=[
                replace(check, seen=_OWNER) if check.owner_only else check for check in self.checks if check.is_shared
            ],
            owner_attacks=(),
            controls=(),
            utility=[entry for entry in self.utility if not entry.owner_only],
            fairness=[entry for entry in self.fairness if not entry.owner_only],
            gaps=[gap for gap in self.gaps if not gap.owner_only],
            corpus=corpus,
            pictures={},
            figures=(),
            command=_to_share(self.command, self.at_home),
            notes=(),
            unchanged=None,
            unchanged_pieces=(),
            at_home=(),
        )

    def html(self) -> str:
        """Return the page."""
        marked = [*((attack, True) for attack in self.owner_attacks), *((attack, False) for attack in self.attacks)]
        rows = [(_row(entry, entry.attack, *judge(self, entry), is_owners), entry) for entry, is_owners in marked]
        main = {id(score) for score in (*main_scores(self.owner_attacks), *main_scores(self.attacks))}
        return filled(
            "reports/templates/page.html",
            report=self,
            samples=[(sample.before, self._tokens_after(sample)) for sample in self.samples],
            attacks=[row for row, entry in rows if id(entry) in main],
            more_attacks=[row for row, entry in rows if id(entry) not in main],
            controls=[
                _row(score, score.attack, grade(score.score, score.baseline), "control", owner_only=True)
                for score in main_scores(self.controls)
            ],
            bank=is_bank_statement(self.statement),
            utility=[_row(entry, entry.what, entry.grade, "model", entry.owner_only) for entry in self.utility],
            fairness=[_row(entry, entry.what, entry.grade, "model", entry.owner_only) for entry in self.fairness],
            explanation=explanation_html(self.statement),
            verdict_sign=self._sign,
            base64=lambda picture: base64.b64encode(picture).decode(),
            **_shared_values(self, recommendation(self)),
        )

    def _tokens_after(self, sample: Sample) -> list[tuple[str, bool]]:
        """Return the tokens of a text after the mechanism, and whether each is a new word."""
        if is_bank_statement(self.statement):
            return [(sample.after, False)]
        known = {token.text.lower() for token in split(sample.before)}
        known |= {placeholder.strip("<>") for placeholder in PLACEHOLDERS.values()}
        return [(token.text, token.kind is Kind.WORD and token.text not in known) for token in split(sample.after)]

    def card(self) -> str:
        """Return a short page in Markdown to share, without the numbers that only the owner should see."""
        shared = self.shared()
        return filled(
            "reports/templates/card.md",
            report=shared,
            has_owner_numbers=self.has_owner_numbers,
            statement=self.statement,
            samples=shared.samples,
            attacks=[(attack.attack, attack) for attack in shared.attacks],
            utility=[(entry.what, entry) for entry in shared.utility],
            fairness=[(entry.what, entry) for entry in shared.fairness],
            fence="`" * (2 + max(map(len, re.findall("`+", shared.command)), default=1)),  # longer than any in a name
            **_shared_values(shared, recommendation(shared, to_recipient=True)),
        )

    def _repr_fields(self) -> Fields:
        yield "title", self.title
        yield "refuted", self.refuted
        yield "verdicts", len(self.verdicts)
        yield "attacks", len(self.attacks) + len(self.owner_attacks)
        yield "guarantee", str(self.statement.guarantee)

    def _html_fields(self) -> Fields:
        return facts_of(self.statement)

    def _sign(self, verdict: Verdict) -> bool | None:
        if self.refuted:
            return False
        return True if verdict.refutable and (self.noise_agrees or not is_uncompared(verdict)) else None


_OWNER = "measured with the original texts"
_COLUMNS = ("--label", "--attribute", "--group", "--user")


def _to_share(command: str, at_home: Sequence[str] = ()) -> str:
    try:
        words = iter(shlex.split(command))
    except ValueError:
        return ""
    kept: list[str] = []
    dropped: set[str] = set()
    for word in words:
        option, equals, value = word.partition("=")
        if option in ("--original", "--held-out", "--redact-list"):
            if not equals:
                next(words, None)
            continue
        if option in _COLUMNS and at_home:
            value = value if equals else next(words, "")
            if value in at_home:
                dropped.add(option)
            else:
                kept += [option, value]
            continue
        named = word if not (equals and option.startswith("-")) else value
        name = re.split(r"[/\\]", named.rstrip("/\\"))[-1]
        kept.append(name if named is word else f"{option}={name}")
    if "--label" in dropped and "--group" in kept:  # groups are judged by how well labels are named
        place = kept.index("--group")
        del kept[place : place + 2]
    return shlex.join(kept)


def _shared_values(report: Report, recommended: Recommendation) -> dict[str, Any]:
    """Return what page and card show alike."""
    result = answers(report)
    kept = next(entry.good for entry in result["guarantee"] if entry.topic == "held")
    levels = {
        "guarantee": kept if recommended.level in (Level.PROTECTS, Level.NONE, Level.TOO_LARGE) else None,
        "attack": next(
            (entry for entry in result["attacks"] if entry.topic == (recommended.attack or "membership")), None
        ),
        "utility": [entry for entry in result["utility"] if entry.topic != "groups"],
    }
    return {
        "answers": result,
        "recommended": recommended,
        "levels": levels,
        "protected": protected(report.statement),
        "not_protected": not_protected(report.statement),
        "percent": _percent,
        "percent_at_most": percent_at_most,
    }


def _row(result: AttackScore | Measurement, name: str, grade: Grade, of: Of, owner_only: bool) -> dict[str, Any]:
    """Return a result beside its baseline, as the tables of the page show it."""
    visible = _percent if result.measure == "accuracy" or result.measure.startswith("share ") else _three_digits
    is_lower = isinstance(result, Measurement) and result.lower_is_better
    is_rival = isinstance(result, Measurement) and result.is_rival
    ceiling = of in ("attacker", "allowed") and is_ceiling(result)
    return {
        "kind": next((kind for kind in _KINDS if name.startswith(kind)), ""),
        "name": name,
        "measure": f"{result.measure} (lower is better)" if is_lower else result.measure,
        "number": visible(result.score.value),
        "interval": "exact" if is_exact(result) else f"{visible(result.score.low)} to {visible(result.score.high)}",
        "baseline": visible(result.baseline),
        "baseline_name": result.baseline_name,
        "grade": grade,
        "of": of,
        "is_ceiling": ceiling,
        "detail": result.detail,
        "good": None if is_rival or ceiling else sign(grade, of),
        "owner_only": owner_only,
    }


_KINDS = ("membership", "linkage", "word recovery", "attribute inference")


def _three_digits(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # no minus before a zero


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%" if value >= 0.001 or value == 0 else f"{100 * value:.2g}%"
