"""A privacy statement in words that a data-protection officer can act on."""

from __future__ import annotations

import html
import math
import re
import textwrap
from typing import TYPE_CHECKING

from dptext.privacy.guarantee import ZCDP, ApproxDP, Guarantee, MetricDP, NoGuarantee, at_most
from dptext.privacy.unit import Relation, Trust, Unit

if TYPE_CHECKING:
    from dptext.privacy.statement import PrivacyStatement

__all__ = ["OF_A_CLAIM", "explanation_html", "explanation_text", "odds"]

_WIDTH = 96
_PLURAL = {Unit.WORD: "words", Unit.EXAMPLE: "examples", Unit.DOCUMENT: "documents", Unit.USER: "users"}


def odds(epsilon: float) -> str:
    """e^epsilon as a factor that a reader can picture, rounded up: it stands after "at most".

    >>> odds(1.0), odds(35.5), odds(2000.0)
    ('2.8', '2.7 million billion', 'astronomically many')
    """
    if epsilon < math.log(1e4):
        return _few_digits(math.exp(epsilon))
    for name, power in (
        ("thousand", 3),
        ("million", 6),
        ("billion", 9),
        ("thousand billion", 12),
        ("million billion", 15),
    ):
        scaled = epsilon - power * math.log(10)
        if scaled < math.log(1000):
            return f"{_few_digits(math.exp(scaled))} {name}"
    return "astronomically many"


def _few_digits(factor: float) -> str:
    factor *= 1 - 1e-12  # what a logarithm and its inverse add is no reason to round up
    return f"{math.ceil(factor):,}" if factor > 99 else at_most(factor, 2)


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
            lines.append(textwrap.fill(_on_a_line(each), _WIDTH, initial_indent="  ", subsequent_indent=hang))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _on_a_line(text: str) -> str:
    """Without control characters, which a statement from elsewhere could send to a terminal; spaces run together.

    ``textwrap`` takes quadratic time for long white space.
    """
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


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
            f"Take any two neighbouring {_PLURAL[unit]} that could have stood there, at distance d from each other. "
            f"Whatever the output is, it is at most e^({at_most(guarantee.epsilon, 4)} d) times more likely under one "
            "than under the other. Near ones are hard to tell apart, far ones easier: what is hidden is the exact "
            "choice among neighbours in meaning, not the subject."
        ]
        if math.isinf(guarantee.pure_epsilon):
            lines.append("Nothing bounds the loss for pairs that are far apart.")
        else:
            lines.append(_worst_case(guarantee.pure_epsilon))
        return lines
    lines = [_worst_case(guarantee.epsilon)]
    if isinstance(guarantee, ApproxDP) and guarantee.delta > 0:
        lines.append(
            f"Beyond this bound, any set of outputs may be likelier by a probability of at most "
            f"{at_most(guarantee.delta, 3)}."
        )
    return lines


def _worst_case(epsilon: float) -> str:
    if math.isinf(epsilon):
        return "For some pair of inputs one output tells them apart with certainty: there is no protection."
    sentence = (
        f"In the worst case (any two neighbours, the most telling output) somebody who thought both equally likely "
        f"may end up believing in one of them {odds(epsilon)} times more than in the other (epsilon "
        f"{at_most(epsilon, 4)})."
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
    if not _promises_something(statement.guarantee):
        return [
            f"Nobody, by proof. The unit is the {statement.unit}: {change} ({statement.relation}) was to be hidden. "
            f"Neighbours are {statement.neighbours}.",
            _TRUST[statement.trust],
        ]
    return [
        f"The unit is the {statement.unit}: the promise is about {change} ({statement.relation}). "
        f"Neighbours are {statement.neighbours}.",
        f"Releases add up: a second release of the same {_PLURAL[statement.unit]} costs again"
        f"{_of_one_person(statement)}",
        f"{_TRUST[statement.trust]} Readers of the output do not have to be trusted.",
    ]


def _of_one_person(statement: PrivacyStatement) -> str:
    if statement.unit is Unit.USER:
        return ", and whoever counts as several users is protected less."
    return f", and so does every further {statement.unit} of the same person."


def _promises_something(guarantee: Guarantee) -> bool:
    """Whether any pair of neighbours is bounded at all."""
    match guarantee:
        case NoGuarantee():
            return False
        case ZCDP(rho):
            return math.isfinite(rho)
        case ApproxDP(epsilon, delta):
            return math.isfinite(epsilon) and delta < 1
        case _:
            return math.isfinite(guarantee.epsilon)


_TRUST = {
    Trust.LOCAL: (
        "Each unit is changed by itself, so the owner of a text can do it before anybody else sees it; whoever ran "
        "it has seen what was put in, and has to be trusted with that."
    ),
    Trust.CENTRAL: "A curator saw the data of all in the clear and has to be trusted with it.",
}


def _not_protected(statement: PrivacyStatement) -> list[str]:
    if not statement.exposed:
        return ["Nothing of the input is shown beside the output of the mechanism."]
    return ["The output shows the following as it was:", *(f"- {each}" for each in statement.exposed)]


def _warnings(statement: PrivacyStatement) -> list[str]:
    warnings = []
    if statement.seeded:
        warnings.append(
            "- A seed was used. Whoever knows it, or guesses it, can repeat the noise and undo the release: towards "
            "him nothing is promised. One seed for two releases repeats the noise. Seeds are for tests and papers."
        )
    if statement.claimed_epsilon is not None:
        warnings.append(f"- {_claim(statement, statement.claimed_epsilon)}")
    if statement.supersedes:
        warnings.append(f"- This statement replaces that of release {statement.supersedes}.")
    return warnings


OF_A_CLAIM = ("claim_is", "reason", "holds_for", "witness", "witness_loss")
"""What a mechanism that was published with a claim puts among its parameters about it."""


def _claim(statement: PrivacyStatement, claimed: float) -> str:
    """What a paper prints, and what is known of it."""
    about = statement.parameters
    printed = f"The paper behind this mechanism prints epsilon = {claimed:.4g}."
    numbers = f"epsilon = {at_most(statement.epsilon, 6)}"
    if isinstance(statement.guarantee, ApproxDP) and statement.guarantee.delta > 0:
        numbers += f" with delta = {at_most(statement.guarantee.delta, 3)}"
    proved = f"What is proved is {numbers} ({about.get('holds_for')})."
    match about.get("claim_is"):
        case "true":
            return f"{printed} That holds here. {proved}"
        case "open":
            return f"{printed} That is not proved: {about.get('reason')}. {proved}"
        case "false":
            if math.isinf(statement.epsilon):
                proved = "Nothing bounds the loss."
            loss, inputs = about.get("witness_loss"), about.get("witness")
            lost = f"{at_most(loss, 6)} nats" if isinstance(loss, int | float) else "without bound"
            shown = f"Two inputs that show it lose {lost}: {inputs}."
            return f"{printed} That is false: {about.get('reason')}. {proved} {shown}"
        case _:
            return f"{printed} That is not what can be proved; what can be proved stands above."


def _made(statement: PrivacyStatement) -> list[str]:
    told = OF_A_CLAIM if "claim_is" in statement.parameters and statement.claimed_epsilon is not None else ()
    said = {name: value for name, value in statement.parameters.items() if value is not None and name not in told}
    parameters = ", ".join(f"{name} = {_number(name, value)}" for name, value in said.items())
    lines = [f"Mechanism: {statement.mechanism}" + (f" ({parameters})." if parameters else ".")]
    if statement.software:
        lines.append(f"Software: {statement.software}.")
    if statement.release_id:
        lines.append(f"Release: {statement.release_id}.")
    if statement.data_sha256:
        lines.append(f"SHA-256 of the data: {statement.data_sha256}.")
    return lines


def _number(name: str, value: object) -> str:
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return f"{value[:12]}…"  # the statement itself has all of it
    if not isinstance(value, float):
        return str(value)
    return at_most(value, 6) if _OF_A_LOSS.search(name) else f"{value:.6g}"


_OF_A_LOSS = re.compile("epsilon|delta|rho|loss")
_DIGEST = re.compile(r"[0-9a-f]{64}")
