"""What every release states, whatever made it: one builder, what all take for granted, a condition, and a way back."""

import ast
from pathlib import Path

import pytest

import dptext
from dptext import BudgetPolicy, Document, PrivacyStatement
from dptext.privacy.condition import SameLayout
from dptext.privacy.statement import TAKEN_FOR_GRANTED, software
from dptext.representations.hiding.provenance import Provenance, statement_of_vectors
from dptext.representations.mean_of_words import MeanOfWords
from dptext.representations.registry import PUBLISHED_ONLY as PUBLISHED_RANDOMIZERS
from dptext.representations.registry import RANDOMIZERS
from dptext.text.masking import mask_words
from dptext.words import registry

SOURCE = Path(dptext.__file__).parent
DIMENSION = 8
UNSAFE = {"unsafe_as_published": True}
WORDS = {
    "vickrey": {"t": 0.3},
    "mahalanobis": {"lambda_": 0.4},
    "custext": {"size": 2},
    "santext+": {"p": 0.2},
}
VECTORS = dptext.load_vectors((["tea", "cup", "tax", "law"], [[1, 0], [2, 1], [-1, 2], [-2, 1]]))
RANDOM = {"Gaussian": {"delta": 1e-6}, "CappedLaplace": {}, "OME": UNSAFE | {"lambda_": 100.0}}


def of_words(name, kind):
    mechanism = kind(VECTORS, epsilon=9.0, **WORDS.get(name, UNSAFE if name in registry.PUBLISHED_ONLY else {}))
    yield mechanism.statement
    yield mechanism.document_statement(3)
    yield dptext.privatize(["Tea tax."], mechanism).statement
    if mechanism.labels is None:
        yield dptext.privatize_bags(["Tea tax."], mechanism).statement


def of_vectors(name, kind):
    options = RANDOM.get(name, UNSAFE if name in PUBLISHED_RANDOMIZERS else {})
    randomizer = kind(epsilon=3.0, **options)
    yield randomizer.statement(DIMENSION)
    yield dptext.statement_for_user(randomizer.statement(DIMENSION), 3)
    for public in (True, False):
        yield statement_of_vectors(randomizer, {}, Provenance(texts=3, public=public, hidden="age"), DIMENSION, False)


def of_people():
    documents = [Document("tea cup tax", user=f"user {number}") for number in range(30)]
    small = {"epsilon": 3.0, "delta": 1e-6}
    yield dptext.Cooccurrence(VECTORS, **small).fit(documents).statement_
    yield dptext.SkipGram(VECTORS, **small, public_users=30, steps=2, sampling_rate=0.5).fit(documents).statement_
    yield dptext.private_vocabulary(documents, **small, words_per_user=3).statement


def of_others():
    yield mask_words(["a b c"], mu=0.5).statement
    yield mask_words(["a b c"], sensitive=["a"]).statement
    encoder = dptext.PrivateEncoder(MeanOfWords(VECTORS), dptext.PrivUnit(epsilon=3.0)).fit(
        ["tea cup", "tax law", "law"]
    )
    encoder.transform(["tea"])
    yield encoder.statement_
    yield statement_of_vectors(None, {}, Provenance(hidden="age"), DIMENSION, False)

    class Said:
        def predict(self, features):
            return features[:, 0]

    yield BudgetPolicy(
        {"strict": 1.0, "open": 8.0}, predicted_from="device", predictor=Said(), training="public", epsilon=0.5
    ).statement()


CASES = {
    **{
        name: (lambda name=name, kind=kind: of_words(name, kind))
        for name, kind in (registry.MECHANISMS | registry.PUBLISHED_ONLY).items()
    },
    **{
        name: (lambda name=name, kind=kind: of_vectors(name, kind))
        for name, kind in (RANDOMIZERS | PUBLISHED_RANDOMIZERS).items()
    },
    "people": of_people,
    "others": of_others,
}


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
