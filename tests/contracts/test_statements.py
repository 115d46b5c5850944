"""What every release states, whatever made it: one builder, what all take for granted, a condition, and a way back."""

import ast
from pathlib import Path

import pytest

import dptext
from contracts.cases import CASES
from dptext import PrivacyStatement
from dptext.privacy.condition import SameLayout, SameSentenceCount
from dptext.privacy.statement import TAKEN_FOR_GRANTED, software
from dptext.words import registry

SOURCE = Path(dptext.__file__).parent


@pytest.mark.filterwarnings("ignore:delta")
@pytest.mark.parametrize("name", CASES)
def test_every_release_says_what_all_take_for_granted_and_reads_back(name):
    made = list(CASES[name]())
    assert made
    for statement in made:
        assert set(TAKEN_FOR_GRANTED) <= set(statement.assumptions)
        assert len(set(statement.assumptions)) == len(statement.assumptions)
        assert statement.software == software()
        assert statement.neighbours
        assert PrivacyStatement.from_json(statement.to_json()) == statement
        assert statement.neighbours in " ".join(statement.explain().split())


@pytest.mark.parametrize("name", registry.MECHANISMS | registry.PUBLISHED_ONLY)
def test_a_release_that_shows_the_layout_promises_nothing_between_layouts(name):
    word, document, release, *_ = CASES[name]()
    for statement in (word, document, release, dptext.statement_for_user(release, 2)):
        assert statement.condition.has(SameLayout)


@pytest.mark.parametrize(
    "options", [{}, {"max_sentences": 3}, {"unit": "document"}, {"unit": "document", "max_sentences": 3}]
)
def test_a_release_that_shows_the_number_of_sentences_promises_nothing_between_two_numbers(options):
    bank = dptext.TextBank(["tea cup", "tax law", "cup law"], encoder="words", cache=False)
    mechanism = dptext.BankRewriter(bank, epsilon=3.0, **options)
    document = mechanism.document_statement(3)
    release = dptext.privatize(["Tea tax. A law."], mechanism).statement
    user = dptext.statement_for_user(document, 2)
    is_shown = "unit" not in options
    assert not mechanism.statement.condition.has(SameSentenceCount)
    assert all(each.condition.has(SameSentenceCount) == is_shown for each in (document, release, user))
    assert any("number of sentences in each" in each for each in release.exposed) == is_shown
    assert any("public, chosen without regard" in each for each in user.assumptions)


def calls(tree, name):
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def test_statements_begin_in_one_place():
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if (lines := calls(ast.parse(path.read_text("utf-8")), "PrivacyStatement"))
    }
    assert list(found) == ["privacy/statement.py"], "build a statement with dptext.privacy.statement.of_release"
