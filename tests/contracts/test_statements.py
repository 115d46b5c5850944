"""What every release states, whatever made it: one builder, what all take for granted, a condition, and a way back."""

import ast
from pathlib import Path

import pytest

import dptext
from contracts.cases import CASES
from dptext import PrivacyStatement
from dptext.privacy.condition import SameLayout
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
