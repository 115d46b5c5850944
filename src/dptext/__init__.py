"""dptext: differentially private text, with a statement that one can trust."""

from typing import TYPE_CHECKING, Any

from dptext.audits.judge import audit
from dptext.audits.verdict import Verdict
from dptext.errors import (
    DataError,
    DptextError,
    MissingExtraError,
    ParameterError,
    RefusedError,
    StorageError,
)
from dptext.privacy.guarantee import ZCDP, ApproxDP, Guarantee, MetricDP, NoGuarantee, PureDP
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.unit import Relation, Trust, Unit
from dptext.text.documents import Document
from dptext.vectors.formats import load_vectors, save_vectors
from dptext.vectors.word_vectors import WordVectors
from dptext.words.bags import PrivateBags, privatize_bags
from dptext.words.batches import batch_privatizer
from dptext.words.calibration import Calibration, calibrate
from dptext.words.corpus import FileRelease, privatize_file
from dptext.words.custext import CusText
from dptext.words.deniability import Deniability, deniability
from dptext.words.gumbel import TruncatedGumbel
from dptext.words.madlib import Madlib
from dptext.words.mahalanobis import Mahalanobis
from dptext.words.ordered import OrderedList
from dptext.words.rewriter import PrivateTexts, privatize
from dptext.words.santext import SanText
from dptext.words.santext_plus import SanTextPlus
from dptext.words.tables import PrivateTable, privatize_table
from dptext.words.tem import TEM
from dptext.words.training import statement_with_training
from dptext.words.vickrey import Vickrey

if TYPE_CHECKING:
    from dptext.words.estimator import WordPrivatizer as WordPrivatizer

__all__ = [
    "TEM",
    "ZCDP",
    "ApproxDP",
    "Calibration",
    "CusText",
    "DataError",
    "Deniability",
    "Document",
    "DptextError",
    "FileRelease",
    "Guarantee",
    "Madlib",
    "Mahalanobis",
    "MetricDP",
    "MissingExtraError",
    "NoGuarantee",
    "OrderedList",
    "ParameterError",
    "PrivacyStatement",
    "PrivateBags",
    "PrivateTable",
    "PrivateTexts",
    "PureDP",
    "RefusedError",
    "Relation",
    "SanText",
    "SanTextPlus",
    "StorageError",
    "TruncatedGumbel",
    "Trust",
    "Unit",
    "Verdict",
    "Vickrey",
    "WordVectors",
    "audit",
    "batch_privatizer",
    "calibrate",
    "deniability",
    "load_vectors",
    "privatize",
    "privatize_bags",
    "privatize_file",
    "privatize_table",
    "save_vectors",
    "statement_with_training",
]


def __getattr__(name: str) -> Any:
    """`WordPrivatizer` needs scikit-learn, so it comes when it is asked for (and ``import *`` does without it)."""
    if name == "WordPrivatizer":
        from dptext.words.estimator import WordPrivatizer

        return WordPrivatizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
