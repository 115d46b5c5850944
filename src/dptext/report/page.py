"""One self-contained HTML page and a Markdown card: promise, audit, attacks, use and fairness of one release.

The page loads nothing from anywhere: its figures are inside it, it runs no script, and it prints well. Whatever comes
from outside (file names, column names, samples) is escaped.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass, field

from dptext.attacks.score import AttackScore
from dptext.audits.verdict import Outcome, Verdict
from dptext.errors import ParameterError
from dptext.estimates import Estimate
from dptext.privacy.explanation import explanation_html, odds
from dptext.privacy.guarantee import ApproxDP, MetricDP, NoGuarantee, at_most
from dptext.privacy.statement import PrivacyStatement
from dptext.report.style import STYLE

__all__ = ["Measurement", "Report", "Sample"]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What the release is still good for, or how good it is for one group.

    Attributes:
        what: the task or the group.
        measure: what the number is; higher is better unless ``lower_is_better``.
        score: the number with its interval.
        baseline: what is reached without the texts.
        baseline_name: how ("majority class", "mean").
        detail: how it was measured, in one sentence.
    """

    what: str
    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    lower_is_better: bool = False
    detail: str = ""

    @property
    def is_useful(self) -> bool:
        """Whether it lies beyond the baseline with its whole interval."""
        return self.score.high < self.baseline if self.lower_is_better else self.score.low > self.baseline


@dataclass(frozen=True)
class Sample:
    """A *public or synthetic* text before and after."""

    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that one page says. Frozen; `html` and `card` only put it into words.

    Attributes:
        title: of the page.
        statement: what was promised.
        verdicts: audits of the promise.
        attacks: what an adversary got.
        utility: what the release is still good for.
        fairness: how good it is for each group.
        samples: public or synthetic texts, before and after.
        figures: PNG pictures with a caption each.
        command: what makes the page again.
        notes: sentences for the reader.
    """

    title: str
    statement: PrivacyStatement
    verdicts: Sequence[Verdict] = ()
    attacks: Sequence[AttackScore] = ()
    utility: Sequence[Measurement] = ()
    fairness: Sequence[Measurement] = ()
    samples: Sequence[Sample] = ()
    figures: Sequence[tuple[str, bytes]] = ()
    command: str = ""
    notes: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        for caption, picture in self.figures:
            if not picture.startswith(b"\x89PNG"):
                raise ParameterError(f"a figure must be a PNG picture, {caption!r} is something else")

    def html(self) -> str:
        """The page."""
        body = "\n".join(
            [
                f"<h1>{_e(self.title)}</h1>",
                _summary(self),
                *_section("What was promised, in full", explanation_html(self.statement)),
                *_section("Was the promise put to the test?", _verdicts(self.verdicts)),
                *_section("What an attacker gets", _attacks(self.attacks)),
                *_section("What it is still good for", _measurements(self.utility, "task")),
                *_section("Is it equally good for everybody?", _measurements(self.fairness, "group")),
                *_section("Before and after", _samples(self.samples)),
                *_section("Pictures", "".join(_figure(caption, picture) for caption, picture in self.figures)),
                *_section("How to make this page again", _made(self)),
            ]
        )
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{_e(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
        )

    def card(self) -> str:
        """The same in Markdown, short, for the folder that is shared."""
        lines = [f"# {self.title}", "", *(f"- **{name}** {words}" for name, words in in_short(self.statement)), ""]
        if self.verdicts:
            lines += ["## Audit", "", *(f"- {_headline(each)}" for each in self.verdicts), ""]
        for heading, rows in (
            ("What an attacker gets", [(each.attack, each) for each in self.attacks]),
            ("What it is still good for", [(each.what, each) for each in self.utility]),
            ("For each group", [(each.what, each) for each in self.fairness]),
        ):
            if rows:
                lines += [
                    f"## {heading}",
                    "",
                    "| | measure | result (95% interval) | without it |",
                    "|---|---|---|---|",
                ]
                lines += [
                    f"| {name} | {each.measure} | {each.score} | {each.baseline:.3f} ({each.baseline_name}) |"
                    for name, each in rows
                ]
                lines.append("")
        if self.statement.exposed:
            lines += ["## Not protected", "", *(f"- {each}" for each in self.statement.exposed), ""]
        if self.command:
            lines += ["## Made by", "", "```", self.command, "```", ""]
        return "\n".join(lines)


def in_short(statement: PrivacyStatement) -> list[tuple[str, str]]:
    """Who, against what, how strongly: a line each."""
    guarantee = statement.guarantee
    worst = (
        "nothing is promised"
        if isinstance(guarantee, NoGuarantee)
        else f"an output is at most {odds(statement.epsilon)} times likelier for one of two neighbours than for another"
    )
    if isinstance(guarantee, MetricDP):
        worst += f"; {at_most(guarantee.epsilon, 4)} nats for each unit of distance between near ones"
    if isinstance(guarantee, ApproxDP) and guarantee.delta > 0:
        worst += f", but for a probability of {at_most(guarantee.delta, 3)}"
    lines = [
        ("Protected:", f"one {statement.unit}; neighbours are {statement.neighbours}."),
        ("Strength:", f"{worst} (epsilon {at_most(statement.epsilon, 4)})."),
        (
            "Trust:",
            "nobody who holds the output has to be trusted."
            if statement.trust == "local"
            else "a curator saw everything and has to be trusted.",
        ),
    ]
    if statement.seeded:
        lines.append(("Warning:", "a seed was used: the promise does not hold towards whoever knows it."))
    return lines


def _summary(report: Report) -> str:
    statement = report.statement
    lines = "".join(f"<p><b>{_e(name)}</b> {_e(words)}</p>" for name, words in in_short(statement))
    protected = (
        "<li>nothing</li>"
        if isinstance(statement.guarantee, NoGuarantee)
        else f"<li>the content of one {_e(str(statement.unit))}, as far as the promise goes</li>"
    )
    exposed = "".join(f"<li>{_e(each)}</li>" for each in statement.exposed) or "<li>nothing that is known</li>"
    return (
        f'<div class="box">{lines}</div>\n<div class="sides"><div><h3>Protected</h3><ul>{protected}</ul></div>'
        f"<div><h3>Not protected</h3><ul>{exposed}</ul></div></div>"
    )


def _section(heading: str, content: str) -> list[str]:
    return [f"<section><h2>{_e(heading)}</h2>{content}</section>"] if content else []


def _headline(verdict: Verdict) -> str:
    match verdict.outcome:
        case Outcome.REFUTED:
            return f"REFUTED: {verdict.loss:.3g} nats were shown where {verdict.allowed:.3g} are promised."
        case Outcome.EXACT:
            return f"kept, computed exactly: at most {verdict.loss:.3g} nats where {verdict.allowed:.3g} are promised."
        case _ if not verdict.refutable:
            return (
                f"not tested: these samples can show {verdict.strongest:.3g} nats, {verdict.allowed:.3g} are promised."
            )
        case _:
            return f"not refuted: {verdict.loss:.3g} nats were shown where {verdict.allowed:.3g} are promised."


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    return "".join(
        f'<p class="{_mark(bad=each.refuted)}"><b>{_e(_headline(each))}</b></p><pre>{_e(each.explain())}</pre>'
        for each in verdicts
    )


def _attacks(scores: Sequence[AttackScore]) -> str:
    if not scores:
        return ""
    rows = "".join(
        _row(
            each.attack,
            each.measure,
            each.score,
            each.baseline,
            each.baseline_name,
            "the attacker learns something" if each.succeeded else "no better than somebody who sees nothing",
            each.detail,
            bad=each.succeeded,
        )
        for each in scores
    )
    return f"<p>Higher is better for the attacker, and worse for the people in the data.</p>{_table('attack', rows)}"


def _measurements(found: Sequence[Measurement], what: str) -> str:
    if not found:
        return ""
    rows = "".join(
        _row(
            each.what,
            each.measure + (" (lower is better)" if each.lower_is_better else ""),
            each.score,
            each.baseline,
            each.baseline_name,
            "better than without the texts" if each.is_useful else "no better than without the texts",
            each.detail,
            bad=not each.is_useful,
        )
        for each in found
    )
    return _table(what, rows)


def _table(first: str, rows: str) -> str:
    heads = "".join(
        f"<th>{each}</th>" for each in (first, "measure", "result (95% interval)", "without it", "in words")
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _row(
    name: str, measure: str, score: Estimate, baseline: float, how: str, words: str, detail: str, *, bad: bool
) -> str:
    cells = [name, measure, str(score), f"{baseline:.3f} ({how})"]
    more = f"<br><small>{_e(detail)}</small>" if detail else ""
    told = f'<td class="{_mark(bad=bad)}">{_e(words)}{more}</td>'
    return "<tr>" + "".join(f"<td>{_e(cell)}</td>" for cell in cells) + told + "</tr>"


def _mark(*, bad: bool) -> str:
    return "bad" if bad else "good"


def _samples(samples: Sequence[Sample]) -> str:
    if not samples:
        return ""
    rows = "".join(f"<tr><td>{_e(each.before)}</td><td>{_e(each.after)}</td></tr>" for each in samples)
    return (
        "<p>These texts are public or made up; no text of the release is shown here.</p>"
        f"<table><thead><tr><th>before</th><th>after</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _figure(caption: str, picture: bytes) -> str:
    data = base64.b64encode(picture).decode()
    return (
        f'<figure><img alt="{_e(caption)}" src="data:image/png;base64,{data}"><figcaption>{_e(caption)}</figcaption>'
        "</figure>"
    )


def _made(report: Report) -> str:
    command = f"<pre>{_e(report.command)}</pre>" if report.command else ""
    software = f"<p>Made with {_e(report.statement.software)}.</p>" if report.statement.software else ""
    return command + "".join(f"<p>{_e(each)}</p>" for each in report.notes) + software


def _e(text: str) -> str:
    return html.escape(text, quote=True)
