"""The mechanism behind a release, of any kind: built again, or refused with what to do."""

import dataclasses

import pytest

import dptext
from dptext.errors import DataError, ParameterError, StorageError
from dptext.methods.bank import rewriter_from_statement
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
        repeated = rewriter_from_statement(dptext.PrivacyStatement.from_json(statement.to_json()), source)
        assert repeated.parameters() == rewriter.parameters()
        assert repeated.document_statement(2).guarantee == statement.guarantee


def changed(statement, **parameters):
    return dataclasses.replace(statement, parameters={**statement.parameters, **parameters})


def test_what_cannot_be_built_says_why(tmp_path):
    statement = dptext.BankRewriter(bank(), epsilon=5.0).statement
    other = dptext.TextBank(["tea", "milk", "law"], encoder="words", cache=False)
    refused = [
        (statement, None, DataError, "pass its folder with --bank"),
        (statement, other, ParameterError, "is not the bank of the statement"),
        (statement, tmp_path / "none", (DataError, StorageError), "none"),
        (changed(statement, size=len(bank())), bank(), DataError, "cannot exist: size must be"),
        (changed(statement, size="7"), bank(), DataError, "cannot exist: size must be"),
        (changed(statement, epsilon=-1.0), bank(), DataError, "cannot exist: epsilon must be"),
        (changed(statement, unit_of_epsilon="user"), bank(), DataError, "cannot exist: unit must be"),
    ]
    for text, source, kind, words in refused:
        with pytest.raises(kind, match=words):
            rewriter_from_statement(text, source)
    for missing in ("epsilon", "size", "max_sentences", "unit_of_epsilon"):
        left = {name: value for name, value in statement.parameters.items() if name != missing}
        with pytest.raises(DataError, match="lacks parameters"):
            rewriter_from_statement(dataclasses.replace(statement, parameters=left), bank())
    left = {name: value for name, value in statement.parameters.items() if name != "bank_sha256"}
    with pytest.raises(DataError, match="does not describe texts of a bank"):
        rewriter_from_statement(dataclasses.replace(statement, parameters=left), bank())
