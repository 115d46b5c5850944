"""Statements of every mechanism and of every kind of release, for contracts and golden files."""

from functools import cache

import dptext
from dptext import Document
from dptext.hiding.encoder import statement_of_vectors
from dptext.representations.encoders import MeanOfWords, Provenance
from dptext.representations.published import mask_words
from dptext.representations.registry import PUBLISHED_ONLY as PUBLISHED_RANDOMIZERS
from dptext.representations.registry import RANDOMIZERS
from dptext.words import registry

DIMENSION = 8
UNSAFE = {"unsafe_as_published": True}
WORDS = {"vickrey": {"t": 0.3}, "mahalanobis": {"lambda_": 0.4}, "custext": {"size": 2}, "santext+": {"p": 0.2}}
VECTORS = dptext.load_vectors((["tea", "cup", "tax", "law"], [[1, 0], [2, 1], [-1, 2], [-2, 1]]))
RANDOM = {"Gaussian": {"delta": 1e-6}, "OME": UNSAFE | {"lambda_": 100.0}}


def word_statements(name, kind):
    mechanism = kind(VECTORS, epsilon=9.0, **WORDS.get(name, UNSAFE if name in registry.PUBLISHED_ONLY else {}))
    yield mechanism.statement
    yield mechanism.document_statement(3)
    yield dptext.privatize(["Tea tax."], mechanism).statement


def vector_statements(name, kind):
    options = RANDOM.get(name, UNSAFE if name in PUBLISHED_RANDOMIZERS else {})
    randomizer = kind(epsilon=3.0, **options)
    yield randomizer.statement(DIMENSION)
    yield dptext.statement_for_user(randomizer.statement(DIMENSION), 3)
    for public in (True, False):
        yield statement_of_vectors(randomizer, {}, Provenance(texts=3, public=public, hidden="age"), DIMENSION)
    if isinstance(randomizer.statement(DIMENSION).guarantee, dptext.PureDP):
        yield dptext.shuffled(randomizer.statement(DIMENSION), users=5_000)


def people_statements():
    documents = [Document("tea cup tax", user=f"user {number}") for number in range(30)]
    small = {"epsilon": 3.0, "delta": 1e-6}
    yield dptext.Cooccurrence(VECTORS, **small).fit(documents).statement_
    yield dptext.SkipGram(VECTORS, **small, public_users=30, steps=2, sampling_rate=0.5).fit(documents).statement_
    yield dptext.private_vocabulary(documents, **small, words_per_user=3).statement
    yield dptext.private_labels(documents, **small).statement
    yield dptext.private_labels(documents, **small, unit="document").statement


def bank_statements():
    bank = dptext.TextBank(
        ["tea cup", "cup of tea", "tax law", "the law"], encoder="words", cache=False, name="four texts"
    )
    for options in ({}, {"max_sentences": 2}, {"unit": "document"}, {"unit": "document", "max_sentences": 3}):
        rewriter = dptext.BankRewriter(bank, epsilon=8.0, size=1, **options)
        yield rewriter.statement
        yield dptext.privatize(["Tea. Tax.", "Law."], rewriter).statement
    yield dptext.statement_for_user(dptext.privatize(["Tea."], rewriter).statement, 3)
    yield dptext.shuffled(dptext.privatize(["Tea."], rewriter).statement, users=10_000)


def redacted_statements():
    bank = dptext.TextBank(["tea cup", "tax law", "law"], encoder="words", cache=False, name="three texts")
    behind = [
        *(kind(VECTORS, epsilon=9.0, **WORDS.get(name, {})) for name, kind in registry.MECHANISMS.items()),
        dptext.TEM(VECTORS, epsilon=9.0, document_epsilon=5.0, max_words=3),
        *(dptext.BankRewriter(bank, epsilon=8.0, size=1, **entry) for entry in ({}, {"unit": "document"})),
    ]
    for mechanism in behind:
        redacted = dptext.Redacted(mechanism, words=["cup"])
        yield redacted.statement
        yield redacted.document_statement(3)
        yield dptext.privatize(["Mr. Tea. Tax."], redacted).statement
    yield dptext.statement_for_user(redacted.document_statement(3), 3)


def other_statements():
    yield mask_words(["a b c"], mu=0.5).statement
    encoder = dptext.PrivateEncoder(MeanOfWords(VECTORS), dptext.PrivUnit(epsilon=3.0)).fit(
        ["tea cup", "tax law", "law"]
    )
    encoder.transform(["tea"])
    yield encoder.statement_
    yield statement_of_vectors(None, {}, Provenance(hidden="age"), DIMENSION)


CASES = {
    **{
        name: (lambda name=name, kind=kind: word_statements(name, kind))
        for name, kind in (registry.MECHANISMS | registry.PUBLISHED_ONLY).items()
    },
    **{
        name: (lambda name=name, kind=kind: vector_statements(name, kind))
        for name, kind in (RANDOMIZERS | PUBLISHED_RANDOMIZERS).items()
    },
    "bank": bank_statements,
    "redacted": redacted_statements,
    "people": people_statements,
    "others": other_statements,
}


@cache
def statements_of(name):
    """The statements of a case, made once."""
    return tuple(CASES[name]())
