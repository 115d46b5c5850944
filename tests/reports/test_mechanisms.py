"""The mechanism behind a release, of any kind: built again, or refused with what to do."""

import dataclasses

import pytest

import dptext
from dptext.errors import DataError, ParameterError, StorageError
from dptext.reports.file_attacks import is_of_bank, mechanism_from_statement
from sentences.banks import bank


@pytest.mark.parametrize(
    "options",
    [{}, {"max_sentences": 2}, {"unit": "document"}, {"unit": "document", "max_sentences": 3, "size": 7}],
)
def test_a_rewriter_is_what_its_statement_says(options, tmp_path):
    bank().save(tmp_path / "bank")
    rewriter = dptext.BankRewriter(bank(), epsilon=5.0, **options)
    statement = dptext.privatize(["Tea. Milk.", "The law."], rewriter).statement
    for source in (bank(), tmp_path / "bank"):
        again = mechanism_from_statement(dptext.PrivacyStatement.from_json(statement.to_json()), bank=source)
        assert again.parameters() == rewriter.parameters()
        assert again.document_statement(2).guarantee == statement.guarantee


def test_word_mechanisms_come_from_their_registry(small):
    mechanism = dptext.TEM(small, epsilon=3.0)
    statement = mechanism.document_statement(2)
    assert not is_of_bank(statement)
    with pytest.raises(ParameterError, match="leave bank out"):
        mechanism_from_statement(statement, bank=bank())
    with pytest.raises(DataError, match="say where they are"):  # vectors of a test lie nowhere
        mechanism_from_statement(statement)


def changed(statement, **parameters):
    return dataclasses.replace(statement, parameters={**statement.parameters, **parameters})


def test_what_cannot_be_built_says_why(tmp_path):
    statement = dptext.BankRewriter(bank(), epsilon=5.0).statement
    other = dptext.TextBank(["tea", "milk", "law"], encoder="words", cache=False)
    refused = [
        (statement, {}, DataError, "in which folder the bank is"),
        (statement, {"bank": other}, ParameterError, "is not the bank of the statement"),
        (statement, {"bank": tmp_path / "none"}, (DataError, StorageError), "none"),
        (statement, {"bank": bank(), "vectors": "x"}, ParameterError, "leave vectors out"),
        (changed(statement, size=len(bank())), {"bank": bank()}, DataError, "cannot be: size must be"),
        (changed(statement, size="7"), {"bank": bank()}, DataError, "cannot be: size must be"),
        (changed(statement, epsilon=-1.0), {"bank": bank()}, DataError, "cannot be: epsilon must be"),
        (changed(statement, unit_of_epsilon="user"), {"bank": bank()}, DataError, "cannot be: unit must be"),
    ]
    for said, options, kind, words in refused:
        with pytest.raises(kind, match=words):
            mechanism_from_statement(said, **options)
    for missing in ("epsilon", "size", "max_sentences", "unit_of_epsilon"):
        left = {name: value for name, value in statement.parameters.items() if name != missing}
        with pytest.raises(DataError, match="lacks parameters"):
            mechanism_from_statement(dataclasses.replace(statement, parameters=left), bank=bank())
    left = {name: value for name, value in statement.parameters.items() if name != "bank_sha256"}
    with pytest.raises(DataError, match="not of texts of a bank"):
        mechanism_from_statement(dataclasses.replace(statement, parameters=left), bank=bank())
