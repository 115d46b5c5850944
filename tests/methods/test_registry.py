"""One method for each statement, and classes of the caller."""

import pytest

import dptext
from dptext.errors import ParameterError
from dptext.methods.registry import METHODS, method_of
from dptext.words.tem import TEM


def test_every_statement_belongs_to_one_method(statements):
    for statement in statements:
        assert sum(method.recognizes(statement) for method in METHODS) == 1, statement.mechanism
        assert method_of(statement).recognizes(statement)


@pytest.fixture
def statements():
    words = ["good", "bad", "long", "short"]
    vectors = dptext.load_vectors((words, [[float(row), row % 2.0] for row in range(4)]))
    bank = dptext.TextBank(["good", "bad long", "short"], encoder=dptext.MeanOfWords(vectors), cache=False)
    encoder, document = dptext.MeanOfWords(vectors), dptext.Document("good bad", user="u")
    pool = ["good bad", "long", "short good"]
    return [
        dptext.TEM(vectors, epsilon=1.0).document_statement(3),
        dptext.Redacted(dptext.SanText(vectors, epsilon=1.0)).document_statement(3),
        dptext.BankRewriter(bank, epsilon=1.0).statement,
        dptext.PrivUnit(epsilon=1.0).statement(8),
        dptext.Cooccurrence(vectors, epsilon=1.0, delta=1e-6).fit([document]).statement_,
        dptext.Synthesizer(epsilon=1.0, features=encoder, cache=False).plan(pool).future_statement,
    ]


def test_what_cannot_be_registered():
    for bad in (object, TEM.sample, "TEM"):
        with pytest.raises(ParameterError, match="subclass of WordMechanism or Randomizer"):
            dptext.register(bad)

    class Other(TEM):
        pass

    with pytest.raises(ParameterError, match="there is a word mechanism 'TEM' already"):
        dptext.register(Other)
    assert dptext.register(TEM) is TEM


def test_another_object_is_no_mechanism():
    with pytest.raises(ParameterError, match="got dict: derive yours from ShownMechanism"):
        dptext.audit({})
