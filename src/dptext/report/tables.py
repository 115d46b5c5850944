"""The sections of a page as HTML; whatever comes from outside is escaped."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence

from dptext.attacks.score import AttackScore
from dptext.audits.verdict import Outcome, Verdict
from dptext.estimates import Estimate
from dptext.report.brief import GLOSSARY, Answer
from dptext.report.checks import Check
from dptext.report.parts import Measurement, Sample, main_scores
from dptext.text.tokens import Kind, split
from dptext.words.rewriter import PLACEHOLDERS

__all__ = [
    "attack_tables",
    "brief",
    "escaped",
    "figure",
    "glossary",
    "headline",
    "listed",
    "measurement_table",
    "sample_table",
    "tests",
]

_OWNER = '<span class="owner">owner</span>'
_EXACT = 1e-9  # an interval this narrow holds rounding only
_HOW = (
    (
        "linkage",
        "Linkage: the attacker holds the originals and says which of them each private row was made from, by the "
        "layout alone (number of words, punctuation, line breaks), or by the words that both share.",
    ),
    (
        "word recovery",
        "Word recovery: he says which word stood where, one by one, without reading the sentence. The best possible "
        "attacker (Bayes-optimal) knows the mechanism and how frequent words are in general; another one takes each "
        "word as it stands (nearest vector).",
    ),
    (
        "attribute inference",
        "Attribute inference: he knows the attribute for some people, learns from their private rows, and names it for "
        "other people.",
    ),
)


def brief(found: Sequence[Answer]) -> str:
    """Questions and answers."""
    rows = "".join(
        f'<dt>{escaped(each.question)}</dt><dd class="{_class(each.good)}">{escaped(each.words)}</dd>' for each in found
    )
    return f'<dl class="box">{rows}</dl>'


def listed(lines: Sequence[str]) -> str:
    """A list."""
    return "<ul>" + "".join(f"<li>{escaped(each)}</li>" for each in lines) + "</ul>"


def headline(verdict: Verdict) -> str:
    """A verdict in a line."""
    match verdict.outcome:
        case Outcome.REFUTED:
            return f"REFUTED: {verdict.loss:.3g} nats were shown where {verdict.allowed:.3g} are promised."
        case Outcome.EXACT:
            return (
                f"kept, computed exactly: the pair that comes closest gives away {verdict.loss:.3g} nats where "
                f"{verdict.allowed:.3g} are promised."
            )
        case _ if not verdict.refutable:
            return (
                f"not tested: these samples can show {verdict.strongest:.3g} nats, {verdict.allowed:.3g} are promised."
            )
        case _:
            return f"not refuted: {verdict.loss:.3g} nats were shown where {verdict.allowed:.3g} are promised."


def tests(checks: Sequence[Check], verdicts: Sequence[Verdict]) -> str:
    """What was checked of the file, and the audits."""
    rows = "".join(
        f'<li class="{_class(each.held)}">{escaped(each.name)} <small>{escaped(each.seen)}</small></li>'
        for each in checks
    )
    checked = f'<p>The file:</p><ul class="marks">{rows}</ul>' if rows else ""
    audited = "".join(
        f'<p class="{_class(not each.refuted if each.refuted or each.refutable else None)}">'
        f"<b>The promise: {escaped(headline(each))}</b></p>"
        f"<details><summary>The audit in full</summary><pre>{escaped(each.explain())}</pre></details>"
        for each in verdicts
    )
    return checked + audited


def attack_tables(owner: Sequence[AttackScore], others: Sequence[AttackScore]) -> str:
    """The main number of each attack; the others behind a fold."""
    marked = [*((each, True) for each in owner), *((each, False) for each in others)]
    if not marked:
        return ""
    first = {id(each) for each in (*main_scores(owner), *main_scores(others))}
    heads = ("attack", "the attacker is right for", "without looking", "in words")
    rows = "".join(
        _row(
            [each.attack, each.measure], each.score, each.measure, each.baseline, each.baseline_name, *_told(each), own
        )
        for each, own in marked
        if id(each) in first
    )
    more = "".join(
        _row(
            [each.attack, each.measure], each.score, each.measure, each.baseline, each.baseline_name, *_told(each), own
        )
        for each, own in marked
        if id(each) not in first
    )
    how = [words for kind, words in _HOW if any(each.attack.startswith(kind) for each, _ in marked)]
    return (
        "<p>Higher is better for the attacker, and worse for the people in the data. Another attacker may do better: "
        "what holds against all of them is the promise alone.</p>"
        + _table(heads, rows)
        + listed(how)
        + (
            f"<details><summary>More numbers of the same attacks</summary>{_table(heads, more)}</details>"
            if more
            else ""
        )
    )


def _told(score: AttackScore) -> tuple[str, str, bool]:
    words = "the attacker learns something" if score.succeeded else "no better than somebody who sees nothing"
    return words, score.detail, not score.succeeded


def measurement_table(found: Sequence[Measurement], what: str) -> str:
    """Tasks or groups, each beside the best blind guess."""
    if not found:
        return ""
    rows = "".join(
        _row(
            [each.what, each.measure + (" (lower is better)" if each.lower_is_better else "")],
            each.score,
            each.measure,
            each.baseline,
            each.baseline_name,
            "better than without the texts" if each.is_useful else "no better than without the texts",
            each.detail,
            each.is_useful,
            each.owner_only,
        )
        for each in found
    )
    return _table((what, "result (95% interval)", "without it", "in words"), rows)


def _row(
    name: Sequence[str],
    score: Estimate,
    measure: str,
    baseline: float,
    how: str,
    words: str,
    detail: str,
    good: bool,
    owner_only: bool,
) -> str:
    first = f"{escaped(name[0])} {_OWNER if owner_only else ''}<br><small>{escaped(name[1])}</small>"
    number, interval = _number(measure, score)
    blind = _percent(baseline) if _is_share(measure) else f"{baseline:.3f}"
    more = f"<br><small>{escaped(detail)}</small>" if detail else ""
    return (
        f"<tr><td>{first}</td><td><b>{number}</b><br><small>{interval}</small></td>"
        f"<td>{blind}<br><small>{escaped(how)}</small></td>"
        f'<td class="{_class(good)}">{escaped(words)}{more}</td></tr>'
    )


def _is_share(measure: str) -> bool:
    return measure == "accuracy" or measure.startswith("share ")


def _number(measure: str, score: Estimate) -> tuple[str, str]:
    if score.high - score.low < _EXACT:
        return (_percent(score.value) if _is_share(measure) else f"{score.value:.3f}"), "exact"
    if _is_share(measure):
        return _percent(score.value), f"{_percent(score.low)} to {_percent(score.high)}"
    return f"{score.value:.3f}", f"{score.low:.3f} to {score.high:.3f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%" if value >= 0.001 or value == 0 else f"{100 * value:.2g}%"


def _table(heads: Sequence[str], rows: str) -> str:
    columns = "".join(f"<th>{escaped(each)}</th>" for each in heads)
    return f"<table><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table>"


def sample_table(samples: Sequence[Sample]) -> str:
    """Texts before and after, new words in bold."""
    if not samples:
        return ""
    rows = "".join(f"<tr><td>{escaped(each.before)}</td><td>{_marked(each)}</td></tr>" for each in samples)
    return (
        "<p>These sentences are public or made up, drawn afresh through the same mechanism: no text of the release is "
        "shown here. New words are in bold. Capital letters are never kept.</p>"
        f"<table><thead><tr><th>before</th><th>after</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _marked(sample: Sample) -> str:
    known = {token.text.lower() for token in split(sample.before)}
    known |= {each.strip("<>") for each in PLACEHOLDERS.values()}
    return "".join(
        f"<b>{escaped(token.text)}</b>" if token.kind is Kind.WORD and token.text not in known else escaped(token.text)
        for token in split(sample.after)
    )


def figure(caption: str, picture: bytes) -> str:
    """A picture inside the page."""
    data = base64.b64encode(picture).decode()
    return (
        f'<figure><img alt="{escaped(caption)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escaped(caption)}</figcaption></figure>"
    )


def glossary() -> str:
    """The words of a page explained."""
    return "<dl>" + "".join(f"<dt>{escaped(word)}</dt><dd>{escaped(said)}</dd>" for word, said in GLOSSARY) + "</dl>"


def _class(good: bool | None) -> str:
    return "plain" if good is None else "good" if good else "bad"


def escaped(text: str) -> str:
    """Text as HTML."""
    return html.escape(text, quote=True)
