"""Statements restated for another unit or relation, each by a proof and for the neighbours of the original only.

Derivation: docs/understand/statements.md#privacy-restating
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from dptext.errors import ParameterError, RefusedError
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    PureDP,
    Relation,
    Trust,
    Unit,
    compose,
    for_group,
    product_upwards,
    substitution_from_add_remove,
)
from dptext.privacy.neighbours import (
    AfterRedaction,
    Condition,
    OneGroup,
    Requirement,
    SameLayout,
    SameSentenceCount,
    Stated,
    TextsOfOne,
    WordsChanged,
)
from dptext.privacy.statement import OF_SUBSTITUTION, OF_THE_GUARANTEE, Parameter, PrivacyStatement
from dptext.privacy.wording import OF_A_CLAIM
from dptext.validation import check_choice, check_float, check_int

_MOST_TEXTS = 10**6
_BETWEEN_REDACTED = " (between texts once they are redacted)"  # added to the name of a metric


def restated(
    statement: PrivacyStatement, guarantee: Guarantee, *requirements: Requirement, **changes: Any
) -> PrivacyStatement:
    """Return the statement with another guarantee, for neighbours that also fulfil the requirements."""
    values = changes.pop("parameters", statement.parameters)
    parameters = {name: value for name, value in values.items() if name not in OF_THE_GUARANTEE}
    condition = statement.condition.and_(*requirements)
    return dataclasses.replace(statement, guarantee=guarantee, condition=condition, parameters=parameters, **changes)


def statement_for_user(statement: PrivacyStatement, texts: int) -> PrivacyStatement:
    """Return the statement for a person with up to ``texts`` texts in a release.

    Args:
        statement: the statement of the release, for one text.
        texts: k, a public bound on the texts of one person.

    **Guarantee** (unit: user; relation, condition and trust of ``statement``). Local, under substitution (all texts of
    a person are replaced), k texts are a composition of k releases: k epsilon and k delta; k rho; distances add up.
    Otherwise they are a group of k documents: k epsilon and delta (e^(k epsilon) - 1) / (e^epsilon - 1), with slack
    added to epsilon; k^2 rho.

    Raises:
        ParameterError: the statement is not for one text, or k is out of range.
        RefusedError: zCDP with slack, or a metric guarantee without a bound in the second case: no proof.

    >>> from dptext.representations.privunit import PrivUnit
    >>> person = statement_for_user(PrivUnit(epsilon=2.0).statement(64), texts=3)
    >>> print(person.guarantee, "for", person.neighbours)
    6-differential privacy (pure) for any two people with equally many texts, at most 3
    """
    if statement.unit is not Unit.DOCUMENT:
        raise ParameterError(f"expected a statement for one text (unit document), got one for a {statement.unit}")
    count = check_int("texts", texts, minimum=1, maximum=_MOST_TEXTS)
    parameters, slack, claimed = dict(statement.parameters), product_upwards(statement.slack, count), None
    if statement.trust is Trust.LOCAL and statement.relation is Relation.SUBSTITUTION:  # each text separately
        match statement.guarantee:
            case ApproxDP(epsilon, delta):
                delta = min(1.0, product_upwards(count, delta))
                guarantee: Guarantee = ApproxDP(product_upwards(count, epsilon), delta)
            case ZCDP(rho):
                guarantee = ZCDP(product_upwards(count, rho))
            case MetricDP(epsilon, metric, farthest, space):
                metric = metric if count == 1 else f"{metric}, added up over the texts of a person"
                farthest = None if farthest is None else product_upwards(count, farthest)
                guarantee = MetricDP(epsilon, metric, farthest, space)
            case pure_or_none:
                guarantee = for_group(pure_or_none, count)
        if isinstance(loss := parameters.get("witness_loss"), float):
            parameters["witness_loss"] = loss * count  # two people whose texts all equal the witness
        if statement.claimed_epsilon is not None:
            claimed = statement.claimed_epsilon * count
    else:
        guarantee, slack = for_group(statement.whole_guarantee, count), 0.0
        parameters = without_claim(parameters)
    return restated(
        statement,
        guarantee,
        TextsOfOne(count),
        unit=Unit.USER,
        slack=slack,
        claimed_epsilon=claimed,
        parameters=parameters,
        assumptions=(*statement.assumptions, f"no person has more than {count:,} texts in this release"),
        exposed=(*statement.exposed, "the number of texts of a person, if a kept column identifies people"),
    )


def after_redaction(statement: PrivacyStatement, **changes: Any) -> PrivacyStatement:
    """Return the statement for texts that are redacted before the mechanism."""
    if statement.relation is not Relation.SUBSTITUTION or statement.trust is not Trust.LOCAL:
        raise RefusedError("redaction needs a mechanism that replaces each text separately, under substitution")
    if statement.unit not in (Unit.DOCUMENT, Unit.SENTENCE, Unit.WORD):
        raise RefusedError(f"redaction applies to texts and their parts, not to a {statement.unit}")
    condition = statement.condition
    try:
        wrapped = tuple(map(AfterRedaction.after_redaction_of, condition.requirements))
    except ParameterError:
        raise RefusedError(
            f"the guarantee compares {statement.neighbours}, and there is no proof for redacted texts"
        ) from None
    if statement.unit is not Unit.DOCUMENT:
        wrapped = (AfterRedaction("unit"), *wrapped)
    guarantee = statement.guarantee
    if isinstance(guarantee, MetricDP):
        guarantee = dataclasses.replace(guarantee, metric=f"{guarantee.metric}{_BETWEEN_REDACTED}")
    changed = Condition(requirements=wrapped, about=condition.about, note=condition.note)
    return dataclasses.replace(statement, guarantee=guarantee, condition=changed, **changes)


def substitution_guarantee(statement: PrivacyStatement) -> Guarantee:
    """Return the guarantee of a statement under substitution, including slack."""
    if statement.relation is Relation.SUBSTITUTION:
        return statement.whole_guarantee
    epsilon, delta = (statement.parameters.get(name) for name in OF_SUBSTITUTION)
    if statement.slack == 0 and isinstance(epsilon, float) and isinstance(delta, float):
        return ApproxDP(epsilon, delta)
    metric = isinstance(statement.guarantee, MetricDP)  # raises below, with the reason
    return substitution_from_add_remove(statement.guarantee if metric else statement.whole_guarantee)


def without_claim(parameters: dict[str, Parameter]) -> dict[str, Parameter]:
    """Return the parameters without those about a printed epsilon, which is for another unit."""
    return {name: value for name, value in parameters.items() if name not in OF_A_CLAIM}


Base = Literal["any two texts", "one word"]


def amplified_by_dropout(epsilon: float, mu: float, *, words: int = 1, base: Base = "any two texts") -> float:
    """Return the epsilon for a change of some words, each first masked independently with probability ``mu``.

    ``epsilon`` is the epsilon of the mechanism for the pairs of ``base``; the mask token counts as a word.
    """
    epsilon, mu = check_float("epsilon", epsilon, minimum=0, infinite=True), check_float("mu", mu, minimum=0, maximum=1)
    words = check_int("words", words, minimum=1)
    check_choice("base", base, get_args(Base))
    visible = 1 - mu
    if base == "any two texts" and words > 1 and mu not in (0, 1):
        visible = -math.expm1(words * math.log(mu))
    if visible == 0.0 or epsilon == 0.0:
        return 0.0
    large = epsilon > 700  # a / e^epsilon is negligible in equation (dropout), 1 - a = visible
    lowered = epsilon + math.log(visible) if large else math.log1p(visible * math.expm1(epsilon))
    lowered = min(epsilon, lowered * (1 + 2.0**-48))
    return product_upwards(words, lowered) if base == "one word" else lowered


def apply_word_dropout(statement: PrivacyStatement, mu: float, *, words: int = 1) -> PrivacyStatement:
    """Restate a statement for words that were masked before the mechanism (`amplified_by_dropout`).

    The guarantee must cover a text with a word masked and the same text with the word shown; guarantees for texts of
    equal layout, or for words of one group, do not. The guarantee for whole texts does not change.
    """
    guarantee = statement.guarantee
    if not isinstance(guarantee, PureDP) or statement.relation is not Relation.SUBSTITUTION:
        raise RefusedError("word dropout improves only a pure epsilon under substitution")
    if statement.unit not in (Unit.DOCUMENT, Unit.WORD):
        raise RefusedError(f"word dropout does not improve a guarantee for a {statement.unit}: it hides single words")
    if statement.condition.has(SameLayout, SameSentenceCount, OneGroup, WordsChanged, Stated, AfterRedaction):
        raise RefusedError(
            f"under this statement neighbours are {statement.neighbours}. It does not cover a text with a word masked "
            "and the same text with the word shown, so the output may reveal which words were masked. Use a mechanism "
            "that covers any two texts, such as a private vector"
        )
    base: Base = "any two texts" if statement.unit is Unit.DOCUMENT else "one word"
    claimed = statement.claimed_epsilon
    if claimed is not None:
        claimed = amplified_by_dropout(claimed, mu, words=words, base=base)
    parameters = dict(statement.parameters)
    if "claim_is" in parameters:  # the witness, a pair of texts, depends on the encoder
        parameters |= {"claim_is": "open", "witness": None, "witness_loss": None}
        parameters["holds_for"] = "words of a text of which each may be masked"
    lowered = amplified_by_dropout(guarantee.epsilon + statement.slack, mu, words=words, base=base)
    return restated(
        statement,
        PureDP(lowered),
        WordsChanged(words),
        unit=Unit.WORD,
        slack=0.0,
        claimed_epsilon=claimed,
        parameters={**parameters, "word_dropout": float(mu), "words_changed": words},
        assumptions=(
            *statement.assumptions,
            f"before it was encoded, every word was replaced by a mask token with a chance of at least {mu:g}, by a "
            "coin of its own, without a look at any word, and which words were masked is not shown",
        ),
    )


Prior = Mapping[str, PrivacyStatement]
"""Earlier statements by the plural name of their release: "words", "vectors"."""


def check_prior(prior: Prior, unit: Unit) -> None:
    """Raise if an earlier statement cannot be composed with a release about this unit."""
    for name, before in prior.items():
        if (before.unit, before.relation) != (unit, Relation.ADD_REMOVE):
            raise RefusedError(
                f"the {name} were released under a statement about a {before.unit} ({before.relation}), this release "
                f"is about a {unit} ({Relation.ADD_REMOVE}): the two have no proved sum. Use public {name}, or ones "
                "released for the same unit and relation"
            )
        # zCDP and metric guarantees are refused below, with their own reasons
        if math.isinf(before.epsilon) and not isinstance(before.guarantee, ZCDP | MetricDP):
            raise RefusedError(
                f"the {name} have a statement without a guarantee, so the release would have none. Use public {name}, "
                "or ones released with a finite epsilon"
            )
    substituted(ApproxDP(0.0, 0.0), prior)


def counted_in(statement: PrivacyStatement, prior: Prior) -> PrivacyStatement:
    """Compose the statement of a release with all earlier ones; keep its parameters and its release id."""
    parameters, release_id = statement.parameters, statement.release_id
    for before in prior.values():
        statement = statement.compose(before).replace(parameters=parameters, release_id=release_id)
    return statement


def substituted(release: ApproxDP, prior: Prior) -> ApproxDP:
    total: Guarantee = release
    for before in prior.values():
        total = compose(total, substitution_from_add_remove(before.whole_guarantee))
    assert isinstance(total, ApproxDP)
    return total
