"""Build the mechanism behind a release of texts from the public parameters in its statement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dptext.errors import DataError, ParameterError
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import of_bank
from dptext.release.mechanism import TextMechanism
from dptext.release.redaction import behind
from dptext.sentences.bank import TextBank
from dptext.sentences.rewriter import BankRewriter
from dptext.words.registry import mechanism_from_statement as word_mechanism_from_statement


def is_of_bank(statement: PrivacyStatement) -> bool:
    """Whether the statement speaks of texts that became texts of a bank."""
    return behind(statement) == BankRewriter.name


def mechanism_from_statement(
    statement: PrivacyStatement, *, vectors: str | None = None, bank: Path | TextBank | None = None
) -> TextMechanism:
    """The mechanism of which a statement speaks; of redacted texts the one behind the redaction."""
    if is_of_bank(statement):
        if vectors is not None:
            raise ParameterError("the texts became texts of a bank, without word vectors: leave vectors out")
        return rewriter_from_statement(statement, bank)
    if bank is not None:
        raise ParameterError("the release is not of texts of a bank: leave bank out")
    return word_mechanism_from_statement(statement, vectors=vectors)


def rewriter_from_statement(statement: PrivacyStatement, bank: Path | TextBank | None) -> BankRewriter:
    """The rewriter of which a statement speaks."""
    said = statement.parameters
    if not (is_of_bank(statement) and of_bank(statement)):
        raise DataError("the statement is not of texts of a bank that can be looked at")
    if bank is None:
        raise DataError(
            f"the statement is of texts of the bank {str(said.get('bank'))!r}, of which it holds the fingerprint: say "
            "in which folder the bank is (--bank)"
        )
    if not isinstance(bank, TextBank):
        bank = TextBank.load(bank)
    if bank.fingerprint != said["bank_sha256"]:
        count = said.get("bank_texts")
        texts = f"{count:,} texts, " if isinstance(count, int) else ""
        raise ParameterError(
            f"this bank ({len(bank):,} texts) is not the bank of the statement ({texts}SHA-256 digest "
            f"{said['bank_sha256']}): pass that one as --bank"
        )
    try:
        options: dict[str, Any] = {name: said[name] for name in ("epsilon", "max_sentences", "size")}
        return BankRewriter(bank, unit=said["unit_of_epsilon"], **options)  # type: ignore[arg-type]
    except KeyError:
        raise DataError("the statement lacks parameters of a rewriter: it is not one that dptext wrote") from None
    except ParameterError as problem:
        raise DataError(f"the statement speaks of a rewriter that cannot be: {problem}") from None
