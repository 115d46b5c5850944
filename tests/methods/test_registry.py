"""The method of each statement, methods without attacks or reports, and classes of the caller."""

import pytest

import dptext
from dptext.errors import ParameterError
from dptext.methods.registry import METHODS, attack_release, method_of
from dptext.methods.words import Words
from dptext.words.tem import TEM

VECTORS = dptext.load_vectors((["good", "bad", "long", "short"], [[float(row), row % 2.0] for row in range(4)]))


def test_every_statement_belongs_to_one_method():
    bank = dptext.TextBank(["good", "bad long", "short"], encoder=dptext.MeanOfWords(VECTORS), cache=False)
    encoder, document = dptext.MeanOfWords(VECTORS), dptext.Document("good bad", user="u")
    for statement in [
        dptext.TEM(VECTORS, epsilon=1.0).document_statement(3),
        dptext.Redacted(dptext.SanText(VECTORS, epsilon=1.0)).document_statement(3),
        dptext.BankRewriter(bank, epsilon=1.0).statement,
        dptext.PrivUnit(epsilon=1.0).statement(8),
        dptext.Cooccurrence(VECTORS, epsilon=1.0, delta=1e-6).fit([document]).statement_,
        dptext.Synthesizer(epsilon=1.0, features=encoder, cache=False)
        .plan(["good bad", "long", "short good"])
        .future_statement,
    ]:
        assert sum(method.recognizes(statement) for method in METHODS) == 1, statement.mechanism
        assert method_of(statement).recognizes(statement)


def test_a_method_without_attacks_or_reports_is_named(tmp_path, monkeypatch):
    (tmp_path / "in.txt").write_text("good\nbad\n" * 8)
    out = tmp_path / "out.txt"
    dptext.privatize_file(tmp_path / "in.txt", out, dptext.TEM(VECTORS, epsilon=1.0))
    with pytest.raises(ParameterError, match="run `dptext attack` with linkage or recovery or attribute, not member"):
        attack_release("membership", out)
    monkeypatch.setattr(Words, "attacks", {})
    monkeypatch.setattr(Words, "examination", None)
    with pytest.raises(ParameterError, match=r"out.txt contains words .*: no attack applies"):
        attack_release("linkage", out)
    with pytest.raises(ParameterError, match=r"out.txt contains words .*: there is no report about this method"):
        dptext.report(out)


def test_only_new_mechanisms_can_be_registered():
    for bad in (object, TEM.sample, "TEM"):
        with pytest.raises(ParameterError, match="subclass of WordMechanism or Randomizer"):
            dptext.register(bad)
    with pytest.raises(ParameterError, match="a word mechanism 'TEM' already exists"):
        dptext.register(type("Other", (TEM,), {}))
    assert dptext.register(TEM) is TEM
    with pytest.raises(ParameterError, match="got dict: derive yours from ShownMechanism"):
        dptext.audit({})
