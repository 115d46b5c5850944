"""Guarantees in plain words. All other packages take their sentences from here."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from dptext.errors import ProtectionWarning, warn
from dptext.privacy.guarantee import (
    ApproxDP,
    Guarantee,
    MetricDP,
    NoGuarantee,
    PureDP,
    Relation,
    Unit,
    at_most,
    product_upwards,
    rate_at_most,
)
from dptext.validation import check_choice

if TYPE_CHECKING:
    from dptext.privacy.statement import PrivacyStatement

_WIDTH = 79
OF_A_CLAIM = ("claim_is", "reason", "holds_for", "witness", "witness_loss", "claimed_by", "flaws")
"""Parameters about the claim with which a mechanism was published."""
GUESSED_AMONG = 300
"""Number of candidates in the sentence about a guess."""
UNBOUNDED = "The privacy loss is unbounded. Treat the output like the original."
"""Sentence for an output without a guarantee."""
UNCOMPARED = "the stated noise is sufficient for the guarantee. The file cannot show that this noise was really drawn."
"""Result of an exact audit that compared no draws with the stated noise."""
RELINKING = f"relinking_among_{GUESSED_AMONG}"
"""Parameter with the success rate of the best attack among these candidates, an upper bound."""

Form: TypeAlias = Literal["text", "dataset-card", "registry"]
_MOST_DELTA = 1e-3
"""A larger delta allows more than one user in a thousand to be published unchanged."""


class Strength(Enum):
    """Strength of protection by the size of a bound, with a sentence of caution."""

    PROTECTS = ""
    """Up to 3 nats: a guess between two equally likely neighbours is right with probability at most 95.3%."""
    WEAK = "A bound of this size says little on its own."
    """Up to 10 nats: attacks are more informative."""
    TOO_LARGE = "A bound of this size does not protect on its own."

    @classmethod
    def of(cls, epsilon: float) -> Strength:
        """Return the strength of a bound."""
        return cls.PROTECTS if epsilon <= 3.0 else cls.WEAK if epsilon <= 10.0 else cls.TOO_LARGE

    @classmethod
    def for_statement(cls, statement: PrivacyStatement) -> Strength:
        """Return the strength of a guarantee; with a large delta no epsilon protects."""
        if _delta(statement.guarantee) > _MOST_DELTA or isinstance(statement.guarantee, NoGuarantee):
            return cls.TOO_LARGE
        return cls.of(statement.epsilon)


def odds(epsilon: float) -> str:
    """Return e^epsilon, the largest change of even odds, as a readable factor."""
    if epsilon < math.log(1e4):
        return _few_digits(math.exp(epsilon))
    for place, name in enumerate(("thousand", "million", "billion", "thousand billion", "million billion"), start=1):
        scaled = epsilon - 3 * place * math.log(10)
        if scaled < math.log(1000):
            return f"{_few_digits(math.exp(scaled))} {name}"
    return "astronomically many"


def _few_digits(factor: float) -> str:
    factor *= 1 - 1e-12  # do not round up because of rounding errors
    return f"{math.ceil(factor):,}" if factor > 99 else at_most(factor, 2)


def percent_right(epsilon: float, delta: float = 0.0) -> float:
    """Return an upper bound, in percent, on the probability of a right guess between two equally likely neighbours."""
    chance = rate_at_most(epsilon, 2, delta)
    for power in (100, 1000, 10_000):
        result = (math.floor(100 * power * chance) + 1) / power
        if result < 100:
            return result
    return 100.0


def percent_at_most(share: float) -> str:
    """Return a probability in percent, rounded up."""
    return f"{math.ceil(100 * share * (1 - 1e-12))}%" if share > 0.1 else f"{at_most(100 * share, 2)}%"


def explanation_text(statement: PrivacyStatement, form: Form = "text") -> str:
    """Return the explanation of a statement as wrapped plain text, or in another form."""
    if check_choice("form", form, get_args(Form)) != "text":
        return filled(f"privacy/templates/{form}.md", statement=statement)
    blocks = []
    for heading, result in _explanation(statement):
        lines = [heading.upper()]
        for entry in result:
            hang = "    " if entry.startswith("- ") else "  "
            lines.append(textwrap.fill(entry, _WIDTH, initial_indent="  ", subsequent_indent=hang))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def explanation_html(statement: PrivacyStatement) -> str:
    """Return the explanation as an escaped HTML fragment, for notebooks and pages."""
    return filled("privacy/templates/explanation.html", sections=_explanation(statement))


def _explanation(statement: PrivacyStatement) -> list[tuple[str, list[str]]]:
    """Return the headings with their paragraphs."""
    guarantee, text = statement.guarantee, dict(statement.parameters)
    guarantee_text = str(guarantee)
    claim = {name: text.get(name) for name in OF_A_CLAIM}
    if "claimed_by" in text or (statement.claimed_epsilon is not None and "claim_is" in text):
        text = {name: value for name, value in text.items() if name not in OF_A_CLAIM}
    return sections(
        "privacy/templates/explanation.txt",
        statement=statement,
        guarantee_text=guarantee_text[0].upper() + guarantee_text[1:],
        units=f"{statement.unit}s",
        has_guarantee=_is_finite(guarantee),
        claim=claim,
        bank=is_bank_statement(statement),
        relinking=_relinking(statement),
        strongest_test=[1 - statement.false_negatives(rate) for rate in (0.01, 0.05, 0.1)],
        one_guess_says_more=isinstance(guarantee, PureDP)
        and statement.relation is Relation.SUBSTITUTION
        and (Strength.of(statement.epsilon) is not Strength.TOO_LARGE or _relinking(statement) is not None),
        parameters=", ".join(f"{name} = {_number(name, value)}" for name, value in text.items() if value is not None),
    )


def sections(template: str, **values: Any) -> list[tuple[str, list[str]]]:
    """Render a text template and return its headings (``# ...``) with their paragraphs."""
    result: list[tuple[str, list[str]]] = []
    for entry in paragraphs(template, **values):
        if entry.startswith("# "):
            result.append((entry.removeprefix("# "), []))
        else:
            result[-1][1].append(entry)
    return result


def _is_finite(guarantee: Guarantee) -> bool:
    """Return whether any pair of neighbours has a finite bound."""
    numbers = (getattr(guarantee, name, 0.0) for name in ("epsilon", "rho"))
    return not isinstance(guarantee, NoGuarantee) and all(map(math.isfinite, numbers)) and _delta(guarantee) < 1


def _delta(guarantee: Guarantee) -> float:
    return guarantee.delta if isinstance(guarantee, ApproxDP) else 0.0


def _relinking(statement: PrivacyStatement) -> float | None:
    """Return the success rate of the best attack among `GUESSED_AMONG` candidates, if the mechanism states one."""
    value = statement.parameters.get(RELINKING)
    return value if isinstance(value, float) and 0 <= value <= 1 else None


def _number(name: str, value: object) -> str:
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return f"{value[:12]}…"  # the statement contains the full digest
    if not isinstance(value, float):
        return str(value)
    return at_most(value, 6) if _OF_A_LOSS.search(name) else f"{value:.6g}"


_OF_A_LOSS = re.compile("epsilon|delta|rho|loss")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def strength_in_brief(statement: PrivacyStatement, *, attacks_follow: bool = True) -> tuple[str, bool | None]:
    """Return the strength of a guarantee in plain words, and whether it protects (None: weakly)."""
    words = render("strength", statement=statement, follow=attacks_follow)
    return " ".join(words.split()), False if is_unprotected(statement) else None


def is_unprotected(statement: PrivacyStatement) -> bool:
    """Return whether a guarantee is too weak to protect on its own."""
    return not is_bounded(statement) or Strength.for_statement(statement) is Strength.TOO_LARGE


def warn_unprotected(statement: PrivacyStatement) -> None:
    """Warn with `ProtectionWarning`, once per process, that a guarantee does not protect on its own."""
    message = (
        f"NOT PROTECTED: a guarantee with epsilon {at_most(statement.epsilon, 4)} for one {statement.unit} does not "
        "protect on its own. Use a smaller epsilon, or compare the methods with `dptext advise`."
    )
    if is_unprotected(statement) and message not in _WARNINGS:
        warn(message, ProtectionWarning)
        _WARNINGS.add(message)


_WARNINGS: set[str] = set()


def is_bounded(statement: PrivacyStatement) -> bool:
    """Return whether the privacy loss is bounded."""
    guarantee = statement.guarantee
    return not isinstance(guarantee, NoGuarantee) and (
        math.isfinite(statement.epsilon) or isinstance(guarantee, MetricDP)
    )


def facts_of(statement: PrivacyStatement) -> list[tuple[str, str]]:
    """Return the guarantee as table rows, for notebooks."""
    guarantee, (strength, _) = str(statement.guarantee), strength_in_brief(statement, attacks_follow=False)
    facts = {"guarantee": guarantee[0].upper() + guarantee[1:], "for": statement.neighbours, "strength": strength}
    if statement.seeded:
        facts["seed"] = filled("privacy/templates/seeded.txt")
    return list(facts.items())


Test = Literal["refuted", "exact", "compared", "stated", "evidence", "untestable", "untested"]
"""Result of an audit: refuted; computed, and compared with draws of the mechanism, with the noise of this release, or
with no draws; not refuted by samples; too few samples to refute; no audit."""


def held_in_brief(statement: PrivacyStatement, test: Test, *, looked_at: str = "") -> tuple[str, bool | None]:
    """Return whether a guarantee holds *and* protects: either alone could be mistaken for the other."""
    bounded, strength = is_bounded(statement), Strength.for_statement(statement)
    words = render("held", statement=statement, how=test, looked_at=looked_at)
    words = " ".join(words.split()).replace(" ,", ",")
    if test == "refuted" or not bounded or statement.seeded or strength is Strength.TOO_LARGE:
        return words, False
    return words, True if strength is Strength.PROTECTS and test in ("exact", "compared", "evidence") else None


def table_cells(
    statement: PrivacyStatement, *, person: PrivacyStatement | None = None, texts: int = 1
) -> tuple[str, str]:
    """Return the guarantee and the attack success as two short texts for a table of methods."""
    among = _relinking(statement)
    text_rate, person_rate = (
        rate_at_most(entry.epsilon, GUESSED_AMONG, _delta(entry.guarantee))
        for entry in (statement, person or statement)
    )
    values = {"guessed": text_rate if among is None else among, "guessed_of_person": person_rate}
    template = "privacy/templates/in_a_table.txt"
    guarantee, attack = paragraphs(template, statement=statement, person=person, texts=texts, **values)
    return guarantee, attack


def protected(statement: PrivacyStatement) -> list[str]:
    """Return the parts of the input that the guarantee covers."""
    return paragraphs("privacy/templates/protected.txt", statement=statement)


def not_protected(statement: PrivacyStatement) -> list[str]:
    """Return the parts of the input that the guarantee does not cover."""
    return paragraphs("privacy/templates/not_protected.txt", statement=statement)


def is_bank_statement(statement: PrivacyStatement) -> bool:
    """Return whether the release replaced texts by texts of a public bank."""
    return "bank_sha256" in statement.parameters


def is_word_statement(statement: PrivacyStatement) -> bool:
    """Return whether the release replaced words."""
    return "vectors" in statement.parameters and statement.unit in (Unit.WORD, Unit.DOCUMENT)


def strength_sentence(statement: PrivacyStatement) -> str:
    """Return the caution about a weak guarantee in one sentence, or an empty string."""
    if not _is_finite(statement.guarantee):
        return UNBOUNDED
    return Strength.for_statement(statement).value


def strength_of_documents(mechanism: Any, parts: str) -> str:
    """Return the caution for the longest possible documents of a mechanism, before any is read."""
    first = unprotected_from(mechanism)
    if first is None:
        return strength_sentence(mechanism.document_statement(mechanism.longest_document or _LONG))
    text = strength_sentence(mechanism.document_statement(first))
    return text if first == 1 else f"For documents of {first:,} {parts} or more: {text}"


def unprotected_from(mechanism: Any) -> int | None:
    """Return the smallest number of parts at which a document is not protected, or None."""
    longest = mechanism.longest_document or _LONG
    low, high = 0, 1
    while not is_unprotected(mechanism.document_statement(high)):  # doubles, because statements for many parts are slow
        if high == longest:
            return None
        low, high = high, min(2 * high, longest)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_unprotected(mechanism.document_statement(middle)) else (middle, high)
    return high


_LONG = 10_000  # parts of a document, if the mechanism has no limit


def cautioned(*, first: int | None, most_stay: bool, source: str, parts: str) -> str:
    """Return the warning before a release that is not protected, or an empty string."""
    if first is None and not most_stay:
        return ""
    return _for_a_terminal(render("cautioned", first=first, most_stay=most_stay, source=source, parts=parts))


def cautioned_of(statements: Iterable[PrivacyStatement], *, source: str) -> str:
    """Return the warning for a release whose statements (one per level) are known before it starts."""
    weak = any(map(is_unprotected, statements))
    return cautioned(first=1 if weak else None, most_stay=False, source=source, parts="texts")


def came_out(statement: PrivacyStatement, tally: Any, documents: int | None = None) -> str:
    """Return the number of unchanged parts and texts, for the owner of the texts only."""
    if not tally.words:
        return ""
    many = tally.unchanged > _MANY * (documents or 0) and is_unprotected(statement)
    return _for_a_terminal(render("came_out", statement=statement, tally=tally, documents=documents, many=many))


def for_person(person: PrivacyStatement | None, maximum: Any, *, user: str) -> str:
    """Return the guarantee for the person with the most texts, for the owner of the texts only."""
    return _for_a_terminal(render("for_person", person=person, most=maximum, user=user))


def _for_a_terminal(text: str) -> str:
    """Wrap a paragraph for a terminal of 80 columns."""
    return "\n".join(textwrap.wrap(" ".join(text.split()), _WIDTH, subsequent_indent="  ", break_on_hyphens=False))


_MANY = 0.01  # fraction of unchanged texts above which to warn


def render(template: str, **values: Any) -> str:
    """Render a text template of this package, such as ``before_ledger``."""
    return filled(f"privacy/templates/{template}.txt", **values).rstrip("\n")


def filled(template: str, **values: Any) -> str:
    """Render a template."""
    text: str = _templates(template.rpartition(".")[2]).get_template(template).render(values)
    return text


def paragraphs(template: str, **values: Any) -> list[str]:
    """Render a text template and return its paragraphs, each on one line."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", filled(template, **values)) if part.strip()]


@cache
def _templates(kind: str) -> Any:
    """Return the environment of all templates for one kind of output."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def in_markdown(text: str) -> str:  # a text must not end a cell or line, or become markup
        escaped = (f"\\{letter}" if letter in "\\|`*_<>[]" else letter for letter in text)
        return "".join(letter if letter.isprintable() else " " for letter in escaped)

    def in_yaml(value: Any) -> Markup:
        text = json.dumps(_on_a_line(value) if isinstance(value, str) else value, ensure_ascii=False)
        return Markup(re.sub(r"^(\d+)e", r"\1.0e", text))  # noqa: S704  # YAML 1.1 reads 1e-06 as text

    harmless = {"txt": _on_a_line, "md": in_markdown, "html": None}[kind]

    def finalize(value: Any) -> Any:
        if harmless is None or isinstance(value, Markup):
            return value
        return Markup(harmless(str(value)))  # noqa: S704  # this is the escaping

    def labelled(label: str, text: str) -> Markup:
        lines = textwrap.wrap(_on_a_line(text), _WIDTH - 12, break_on_hyphens=False)
        return Markup("\n".join(f"  {'' if position else label:<9} {line}" for position, line in enumerate(lines)))  # noqa: S704

    options: dict[str, Any] = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=PackageLoader("dptext", ""), autoescape=True, finalize=finalize, **options)
    environment.filters.update(at_most=at_most, thousands="{:,}".format, yaml=in_yaml)
    numbers = (odds, percent_at_most, percent_right, product_upwards, rate_at_most)
    strengths = (Strength, is_bounded, strength_of_documents, strength_sentence)
    kinds = (is_bank_statement, is_word_statement)
    environment.globals.update({value.__name__: value for value in (*numbers, *strengths, *kinds)})
    environment.globals.update(line=labelled, inf=math.inf)
    environment.globals.update(UNBOUNDED=UNBOUNDED, UNCOMPARED=UNCOMPARED, GUESSED_AMONG=GUESSED_AMONG)
    environment.globals.update(quoted="{!r}".format)
    return environment


def _on_a_line(text: str) -> str:
    """Remove control characters, which a foreign statement could send to a terminal, and collapse spaces."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
