"""Sentence replacement as a scikit-learn transformer (extra ``sklearn``)."""

from __future__ import annotations

import os
from typing import Any, Self

from dptext.errors import ParameterError
from dptext.features.features import Spec
from dptext.release.scikit_learn import TextPrivatizer
from dptext.sentences.bank import FOLDER, TextBank
from dptext.sentences.rewriter import BankRewriter, UnitOfEpsilon
from dptext.validation import check_path, require_epsilon


class SentencePrivatizer(TextPrivatizer):
    """Scikit-learn transformer that replaces texts, or their sentences, with texts of a public bank.

    ``fit`` loads or builds the bank and ignores the texts, so nothing is learned from them. ``transform`` draws fresh
    noise at every call (`dptext.release.scikit_learn.TextPrivatizer`).

    **Guarantee** (unit document, substitution, local): as for `dptext.BankRewriter`, for one call of
    ``transform`` (see ``statement_``). *Every call is a new release with its own privacy loss*, and pipelines call
    often: ``fit`` transforms the training texts, ``predict`` the test texts, and a cross-validation of k folds
    privatizes each text k times per candidate. To release once, privatize first
    (`dptext.privatize`) and search on the private texts.

    Args:
        bank: a `dptext.TextBank`, its folder, or *public* texts to build one from. A `TextBank` saves time if ``fit``
            is called often.
        epsilon, unit, max_sentences, size: see `dptext.BankRewriter`. ``fit`` requires an epsilon.
        encoder: encoder for a bank built from texts (see `dptext.TextBank`), or one that its folder does not contain.
        seed: None for cryptographic randomness. An integer, for tests and papers only, makes equal calls give equal
            texts (other texts or parameters still get different noise); the statement records it.

    Attributes:
        mechanism_: immutable mechanism.
        statement_: privacy statement of the *last* call of ``transform``, for a document.

    Raises:
        MissingExtraError: scikit-learn is not installed (when the name is imported).
        ParameterError: from ``fit``: epsilon is missing, a number is out of range, or the bank already has an encoder.
        DataError, StorageError: from ``fit``: the bank cannot be read or built.

    >>> public = ["I like tea.", "She drinks tea.", "He pays his tax.", "Taxes are due."]
    >>> privatizer = SentencePrivatizer(public, encoder="words", epsilon=20.0, size=1, seed=1)
    >>> privatizer.fit_transform(["Tea I like! Taxes are due.", None]).tolist()
    ['I like tea. Taxes are due.', '']
    >>> print(privatizer.statement_.guarantee)
    40-differential privacy (pure)
    """

    mechanism_: BankRewriter

    def __init__(
        self,
        bank: Any,
        *,
        epsilon: float | None = None,
        unit: UnitOfEpsilon = "sentence",
        max_sentences: int | None = None,
        size: int | None = None,
        encoder: Spec = None,
        seed: int | None = None,
    ) -> None:
        self.bank, self.epsilon, self.unit, self.encoder, self.seed = bank, epsilon, unit, encoder, seed
        self.max_sentences, self.size = max_sentences, size

    def fit(self, texts: object = None, y: object = None) -> Self:  # noqa: ARG002  scikit-learn passes both
        """Load or build the bank, and create the mechanism; the texts are ignored."""
        bank, epsilon = self._bank(), require_epsilon(self.epsilon, "SentencePrivatizer")
        self.mechanism_ = BankRewriter(
            bank, epsilon=epsilon, unit=self.unit, max_sentences=self.max_sentences, size=self.size
        )
        return self

    def _bank(self) -> TextBank:
        if isinstance(self.bank, TextBank):
            if self.encoder is not None:
                raise ParameterError("a TextBank has an encoder: omit encoder")
            return self.bank
        if isinstance(self.bank, str | os.PathLike) and FOLDER.announces(check_path("bank", self.bank)):
            encoder: Any = self.encoder
            return TextBank.load(self.bank, encoder=encoder)
        return TextBank(self.bank, encoder=self.encoder)
