"""Contract of all statements: one builder, common assumptions, a condition, and a JSON round trip."""

import math
import re
from pathlib import Path

import pytest

import dptext
from contracts.cases import CASES, statements_of
from dptext import ZCDP, MetricDP, PrivacyStatement, PureDP
from dptext.privacy.guarantee import NoGuarantee
from dptext.privacy.neighbours import SameLayout, SameSentenceCount
from dptext.privacy.statement import TAKEN_FOR_GRANTED, software
from dptext.privacy.wording import Strength, held_in_brief, strength_in_brief
from dptext.reports.page import Report
from dptext.reports.summary import Decision, recommendation
from dptext.words import registry

SOURCE = Path(dptext.__file__).parent


@pytest.mark.filterwarnings("ignore:delta")
@pytest.mark.parametrize("name", CASES)
def test_every_statement_has_the_common_assumptions_and_reads_back(name):
    output = statements_of(name)
    assert output
    for statement in output:
        assert set(TAKEN_FOR_GRANTED) <= set(statement.assumptions)
        assert len(set(statement.assumptions)) == len(statement.assumptions)
        assert statement.software == software()
        assert statement.neighbours
        assert PrivacyStatement.from_json(statement.to_json()) == statement
        assert statement.neighbours in " ".join(statement.explain().split())


def _strengths(text):
    """Which sentences about how much a bound protects stand in a text."""
    return [entry for entry in Strength if entry.value and entry.value in " ".join(text.split())]


@pytest.mark.filterwarnings("ignore:delta")
@pytest.mark.parametrize("name", CASES)
def test_explanation_page_and_card_agree_on_the_strength(name):
    """One `Strength`: what `explain` calls too large no page calls strong, and no card."""
    for statement in statements_of(name):
        result = Strength.of(statement.epsilon)
        words = [result] if result.value and math.isfinite(statement.epsilon) else []
        report = Report(title="a release", statement=statement)
        explained, (brief, good) = statement.explain(), strength_in_brief(statement)
        assert _strengths(explained) == _strengths(brief) == words
        assert _strengths(report.card()) == words
        assert (good is False) == (result is Strength.TOO_LARGE)
        verdict, protects = held_in_brief(statement, "exact")
        assert protects is {Strength.PROTECTS: True, Strength.WEAK: None, Strength.TOO_LARGE: False}[result]
        assert math.isfinite(statement.epsilon) or "There is no guarantee" in verdict
        assert ("strong enough" in verdict) == (result is Strength.PROTECTS)
        decision = recommendation(report).decision
        assert (decision is Decision.HAND_ON) == (result is Strength.PROTECTS)
        assert (decision is Decision.NOT) == (result is Strength.TOO_LARGE)


@pytest.mark.parametrize(
    "guarantee", [NoGuarantee("it is a copy"), PureDP(math.inf), MetricDP(1.0, "euclidean"), ZCDP(math.inf)]
)
def test_an_unbounded_loss_is_strong_nowhere(guarantee):
    statement = PrivacyStatement(
        guarantee=guarantee, unit="document", relation="substitution", condition="any two texts", trust="local",
        mechanism="x",
    )  # fmt: skip
    report = Report(title="a release", statement=statement)
    unbounded = ("oss is unbounded", "no protection", "no guarantee", "may learn everything")
    for text in (statement.explain(), report.html(), report.card(), strength_in_brief(statement)[0]):
        assert "strong enough" not in text
        assert any(entry in text for entry in (*unbounded, Strength.TOO_LARGE.value))
    assert recommendation(report).decision is Decision.NOT


@pytest.mark.parametrize("name", registry.MECHANISMS | registry.PUBLISHED_ONLY)
def test_word_releases_have_no_guarantee_between_two_layouts(name):
    word, document, release, *_ = statements_of(name)
    for statement in (word, document, release, dptext.statement_for_user(release, 2)):
        assert statement.condition.has(SameLayout)


@pytest.mark.parametrize(
    "options", [{}, {"max_sentences": 3}, {"unit": "document"}, {"unit": "document", "max_sentences": 3}]
)
def test_shown_sentence_counts_are_in_the_condition(options):
    bank = dptext.TextBank(["tea cup", "tax law", "cup law"], encoder="words", cache=False)
    mechanism = dptext.BankRewriter(bank, epsilon=3.0, **options)
    document = mechanism.document_statement(3)
    release = dptext.privatize(["Tea tax. A law."], mechanism).statement
    user = dptext.statement_for_user(document, 2)
    is_shown = "unit" not in options
    assert not mechanism.statement.condition.has(SameSentenceCount)
    assert all(entry.condition.has(SameSentenceCount) == is_shown for entry in (document, release, user))
    assert any("number of sentences in each" in entry for entry in release.exposed) == is_shown
    assert any("was chosen without regard" in assumption for assumption in user.assumptions)


def test_statements_begin_in_one_place():
    call = re.compile(r"^(?! *>>>).*(?<![\w.`])(?<!class )PrivacyStatement\(", re.MULTILINE)
    builders = [path for path in SOURCE.rglob("*.py") if call.search(path.read_text("utf-8"))]
    claims = "privacy/claims.py"  # about noise of other tools: assumptions about random bits of dptext do not hold
    assert {str(path.relative_to(SOURCE)) for path in builders} == {"privacy/statement.py", claims}, (
        "build a statement with dptext.privacy.statement.release_statement"
    )
