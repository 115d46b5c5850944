"""One self-contained HTML page and a Markdown card: promise, audit, attacks, use and fairness of one release.

The page loads nothing from anywhere: its figures are inside it, it runs no script, and it prints well. Whatever comes
from outside (file names, column names, samples) is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dptext.attacks.score import AttackScore
from dptext.audits.verdict import Verdict
from dptext.errors import ParameterError
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import explanation_html, not_protected, protected
from dptext.report.brief import answers
from dptext.report.card import card_of
from dptext.report.checks import Check
from dptext.report.parts import GroupGap, Measurement, Sample
from dptext.report.style import STYLE
from dptext.report.tables import (
    attack_tables,
    brief,
    escaped,
    figure,
    glossary,
    listed,
    measurement_table,
    sample_table,
    tests,
)

__all__ = ["GroupGap", "Measurement", "Report", "Sample"]

Picture = tuple[str, bytes]
"""A caption and a PNG picture."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that one page says. Frozen; `html` and `card` only put it into words.

    Attributes:
        title: of the page.
        statement: what was promised.
        checks: what was checked of the file.
        verdicts: audits of the promise.
        attacks: what an adversary got from what was released.
        owner_attacks: what one got, measured with the original texts: the promise does not cover these numbers.
        utility: what the release is still good for.
        fairness: how good it is for each group.
        gaps: how far groups lie apart, for one model or several.
        samples: public or synthetic texts, before and after.
        stays: the share of words that stay as they are, at public frequencies; None where no words came out.
        pictures: of the sections "audit", "attacks" and "utility".
        figures: further pictures.
        command: what makes the page again; a card shows it without folders and without the name of the original.
        notes: sentences for the reader.
    """

    title: str
    statement: PrivacyStatement
    checks: Sequence[Check] = ()
    verdicts: Sequence[Verdict] = ()
    attacks: Sequence[AttackScore] = ()
    owner_attacks: Sequence[AttackScore] = ()
    utility: Sequence[Measurement] = ()
    fairness: Sequence[Measurement] = ()
    gaps: Sequence[GroupGap] = ()
    samples: Sequence[Sample] = ()
    stays: float | None = None
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    figures: Sequence[Picture] = ()
    command: str = ""
    notes: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        for caption, picture in (*self.figures, *self.pictures.values()):
            if not picture.startswith(b"\x89PNG"):
                raise ParameterError(f"a figure must be a PNG picture, {caption!r} is something else")

    @property
    def refuted(self) -> bool:
        """Whether a check failed, or an audit showed the promise to be false."""
        return any(each.refuted for each in self.verdicts) or any(each.held is False for each in self.checks)

    @property
    def has_owner_numbers(self) -> bool:
        """Whether original texts had a part in any number."""
        measured = (*self.utility, *self.fairness)
        return bool(self.owner_attacks or any(each.owner_only for each in measured))

    def html(self) -> str:
        """The page."""
        body = "\n".join(
            [
                f"<h1>{escaped(self.title)}</h1>",
                self._warning(),
                brief(answers(self)),
                f'<div class="sides"><div><h3>Protected</h3>{listed(protected(self.statement))}</div>'
                f"<div><h3>Not protected</h3>{listed(not_protected(self.statement))}</div></div>",
                *_section("Before and after", sample_table(self.samples)),
                *_section(
                    "What an attacker gets",
                    self._picture("attacks") + attack_tables(self.owner_attacks, self.attacks),
                ),
                *_section(
                    "What it is still good for", self._picture("utility") + measurement_table(self.utility, "task")
                ),
                *_section(
                    "Is it equally good for everybody?",
                    "".join(f"<p>{escaped(each.words)}</p>" for each in self.gaps)
                    + measurement_table(self.fairness, "group"),
                ),
                *_section(
                    "Was the promise put to the test?", tests(self.checks, self.verdicts) + self._picture("audit")
                ),
                *_section("What was promised, in full", explanation_html(self.statement)),
                *_section("Pictures", "".join(figure(*each) for each in self.figures)),
                *_section("Words on this page", glossary()),
                *_section("How to make this page again", self._made()),
            ]
        )
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escaped(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
        )

    def card(self) -> str:
        """The same in Markdown, short, for the folder that is shared: without what only its owner should see."""
        return card_of(self)

    def _warning(self) -> str:
        found = []
        if self.refuted:
            found.append("The promise of this release was refuted: its statement says more than is true.")
        if self.statement.seeded:
            found.append("A seed was used: the promise does not hold towards whoever knows it.")
        if self.has_owner_numbers:
            found.append(
                "This page is for the owner of the data. Numbers marked “owner” were computed from the original texts; "
                "the promise does not cover them. Publish them knowingly, or make the page without the originals."
            )
        return "".join(f'<p class="warning">{escaped(each)}</p>' for each in found)

    def _picture(self, name: str) -> str:
        return figure(*self.pictures[name]) if name in self.pictures else ""

    def _made(self) -> str:
        command = f"<pre>{escaped(self.command)}</pre>" if self.command else ""
        software = f"<p>The release was made with {escaped(self.statement.software or '')}.</p>"
        return command + listed(self.notes) * bool(self.notes) + (software if self.statement.software else "")


def _section(heading: str, content: str) -> list[str]:
    return [f"<section><h2>{escaped(heading)}</h2>{content}</section>"] if content else []
