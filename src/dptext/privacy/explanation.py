"""A privacy statement in words that a data-protection officer can act on."""

from __future__ import annotations

import html
import math
import textwrap
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING

from dptext.privacy.guarantee import ZCDP, ApproxDP, Guarantee, MetricDP, NoGuarantee
from dptext.privacy.unit import Relation, Trust, Unit

if TYPE_CHECKING:
    from dptext.privacy.statement import PrivacyStatement

__all__ = ["explanation_html", "explanation_text", "odds"]

_WIDTH = 96
_PLURAL = {Unit.WORD: "words", Unit.EXAMPLE: "examples", Unit.DOCUMENT: "documents", Unit.USER: "users"}


def odds(epsilon: float) -> str:
    """e^epsilon as a factor that a reader can picture.

    >>> odds(1.0), odds(35.5), odds(2000.0)
    ('2.7', '2.6 million billion', 'astronomically many')
    """
    if epsilon < math.log(1e4):
        factor = math.exp(epsilon)
        return f"{factor:,.0f}" if factor >= 99.5 else f"{factor:.2g}"
    for name, power in (
        ("thousand", 3),
        ("million", 6),
        ("billion", 9),
        ("thousand billion", 12),
        ("million billion", 15),
    ):
        scaled = epsilon - power * math.log(10)
        if scaled < math.log(1000):
            factor = math.exp(scaled)
            return f"{factor:,.0f} {name}" if factor >= 99.5 else f"{factor:.2g} {name}"
    return "astronomically many"


def at_most(value: float, digits: int) -> str:
    """A number in few digits, never rounded down.

    >>> at_most(1.04e-4, 1), at_most(0.12349, 3)
    ('0.0002', '0.124')
    """
    rounded = f"{value:.{digits}g}"
    if float(rounded) < value:
        upwards = Context(prec=digits, rounding=ROUND_CEILING)
        rounded = f"{float(upwards.create_decimal(value)):.{digits}g}"
    return rounded


def explanation_sections(statement: PrivacyStatement) -> list[tuple[str, list[str]]]:
    """Headings with their paragraphs, in the order in which a reader needs them."""
    sections = [
        ("What is promised", _promise(statement)),
        ("Who is protected", _protected(statement)),
        ("What is not protected", _not_protected(statement)),
    ]
    if statement.assumptions:
        sections.append(("What the proof takes for granted", [f"- {each}" for each in statement.assumptions]))
    warnings = _warnings(statement)
    if warnings:
        sections.append(("Warnings", warnings))
    sections.append(("How it was made", _made(statement)))
    return sections


def explanation_text(statement: PrivacyStatement) -> str:
    """The sections as plain text, wrapped."""
    blocks = []
    for heading, paragraphs in explanation_sections(statement):
        lines = [heading.upper()]
        for each in paragraphs:
            hang = "    " if each.startswith("- ") else "  "
            lines.append(textwrap.fill(each, _WIDTH, initial_indent="  ", subsequent_indent=hang))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def explanation_html(statement: PrivacyStatement) -> str:
    """The sections as an HTML fragment (for notebooks); everything is escaped."""
    parts = ['<div class="dptext-statement">']
    for heading, paragraphs in explanation_sections(statement):
        parts.append(f"<h4>{html.escape(heading)}</h4>")
        items = [each.removeprefix("- ") for each in paragraphs if each.startswith("- ")]
        plain = [each for each in paragraphs if not each.startswith("- ")]
        parts.extend(f"<p>{html.escape(each)}</p>" for each in plain)
        if items:
            parts.append("<ul>" + "".join(f"<li>{html.escape(each)}</li>" for each in items) + "</ul>")
    parts.append("</div>")
    return "".join(parts)


def _promise(statement: PrivacyStatement) -> list[str]:
    lines = [f"{str(statement.guarantee)[0].upper()}{str(statement.guarantee)[1:]}."]
    lines += _meaning(statement.guarantee, statement.unit)
    if statement.slack > 0:
        lines.append(f"Finite arithmetic may add at most {at_most(statement.slack, 1)} to epsilon; this too is proved.")
    return lines


def _meaning(guarantee: Guarantee, unit: Unit) -> list[str]:
    if isinstance(guarantee, NoGuarantee):
        return ["Whoever sees the output may learn everything about the input. Treat it like the input."]
    if isinstance(guarantee, ZCDP):
        return ["The privacy loss behaves like that of Gaussian noise; ask for an epsilon at a delta to compare it."]
    if isinstance(guarantee, MetricDP):
        lines = [
            f"Take any two {_PLURAL[unit]} that could have stood there, at distance d from each other. Whatever the "
            f"output is, it is at most e^({guarantee.epsilon:.4g} d) times more likely under one than under the "
            "other. Near ones are hard to tell apart, far ones easier: what is hidden is the exact choice "
            "among neighbours in meaning, not the subject."
        ]
        if guarantee.max_distance is None:
            lines.append("Nothing bounds the loss for pairs that are far apart.")
        else:
            lines.append(_worst_case(guarantee.pure_epsilon))
        return lines
    lines = [_worst_case(guarantee.epsilon)]
    if isinstance(guarantee, ApproxDP) and guarantee.delta > 0:
        lines.append(f"This bound may fail with a probability of at most {at_most(guarantee.delta, 3)}.")
    return lines


def _worst_case(epsilon: float) -> str:
    if math.isinf(epsilon):
        return "For some pair of inputs one output tells them apart with certainty: there is no protection."
    sentence = (
        f"In the worst case (any two inputs, the most telling output) somebody who thought both equally likely may "
        f"end up believing in one of them {odds(epsilon)} times more than in the other (epsilon {epsilon:.4g})."
    )
    if epsilon > 10:
        return f"{sentence} A bound of this size does not protect by itself."
    return sentence


def _protected(statement: PrivacyStatement) -> list[str]:
    change = (
        f"replacing one {statement.unit} by another"
        if statement.relation is Relation.SUBSTITUTION
        else f"the presence or absence of one {statement.unit}"
    )
    trust = (
        "The noise was added before the data left its owner: no reader of the output has to be trusted."
        if statement.trust is Trust.LOCAL
        else "A curator saw the data in the clear and has to be trusted with it; readers of the output do not."
    )
    return [
        f"The unit is the {statement.unit}: the promise is about {change} ({statement.relation}). "
        f"Neighbours are {statement.neighbours}.",
        f"Releases add up: a second release of the same {_PLURAL[statement.unit]} costs again, and so does "
        f"every further {statement.unit} of the same person.",
        trust,
    ]


def _not_protected(statement: PrivacyStatement) -> list[str]:
    if not statement.exposed:
        return ["Nothing of the input is shown beside the output of the mechanism."]
    return ["The output shows the following as it was:", *(f"- {each}" for each in statement.exposed)]


def _warnings(statement: PrivacyStatement) -> list[str]:
    warnings = []
    if statement.seeded:
        warnings.append(
            "- A seed was used. Whoever knows it can repeat the noise and undo the release: towards him nothing "
            "is promised. Seeds are for tests and papers."
        )
    if statement.claimed_epsilon is not None:
        warnings.append(
            f"- The paper behind this mechanism prints epsilon = {statement.claimed_epsilon:.4g}. That is not what "
            "can be proved; the number above is."
        )
    if statement.supersedes:
        warnings.append(f"- This statement replaces that of release {statement.supersedes}.")
    return warnings


def _made(statement: PrivacyStatement) -> list[str]:
    parameters = ", ".join(f"{name} = {_number(value)}" for name, value in statement.parameters.items())
    lines = [f"Mechanism: {statement.mechanism}" + (f" ({parameters})." if parameters else ".")]
    if statement.software:
        lines.append(f"Software: {statement.software}.")
    if statement.release_id:
        lines.append(f"Release: {statement.release_id}.")
    if statement.data_sha256:
        lines.append(f"SHA-256 of the data: {statement.data_sha256}.")
    return lines


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
