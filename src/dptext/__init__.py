"""dptext: differentially private text, with a statement that one can trust."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dptext.audits.judge import audit
from dptext.audits.verdict import Verdict
from dptext.embeddings.concerns import fit_concerns
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.personal import personal_participation
from dptext.embeddings.policy import BudgetPolicy
from dptext.embeddings.skipgram import SkipGram
from dptext.errors import (
    DataError,
    DptextError,
    MissingExtraError,
    ParameterError,
    RefusedError,
    StorageError,
)
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.guarantee import ZCDP, ApproxDP, Guarantee, MetricDP, NoGuarantee, PureDP
from dptext.privacy.restating import statement_for_user
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.unit import Relation, Trust, Unit
from dptext.representations.additive import Gaussian, L2Laplace, Laplace
from dptext.representations.bits import OneBit, WeightedBits
from dptext.representations.cube import Hybrid, Piecewise
from dptext.representations.encoders import CallableEncoder
from dptext.representations.files import VectorRelease, encode_file, vectors_in
from dptext.representations.hiding.autoencoder import AutoEncoder
from dptext.representations.hiding.encoder import HidingEncoder
from dptext.representations.mean_of_words import MeanOfWords
from dptext.representations.privunit import PrivUnit, PrivUnitG
from dptext.representations.recommend import Recommendation, recommend
from dptext.representations.release import DeviceEncoder
from dptext.representations.sentence_encoder import SentenceEncoder
from dptext.representations.unary import OptimizedUnary, SymmetricUnary
from dptext.text.documents import Document
from dptext.text.private_vocabulary import PrivateVocabulary, private_vocabulary
from dptext.text.table_kinds import strip_metadata
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
    from dptext.representations.classifiers import NoisyClassifier as NoisyClassifier
    from dptext.representations.estimator import PrivateEncoder as PrivateEncoder
    from dptext.words.estimator import WordPrivatizer as WordPrivatizer

__all__ = [
    "TEM",
    "ZCDP",
    "ApproxDP",
    "AutoEncoder",
    "BudgetPolicy",
    "Calibration",
    "CallableEncoder",
    "Cooccurrence",
    "CusText",
    "DataError",
    "Deniability",
    "DeviceEncoder",
    "Document",
    "DptextError",
    "FileRelease",
    "Gaussian",
    "Guarantee",
    "HidingEncoder",
    "Hybrid",
    "L2Laplace",
    "Laplace",
    "Madlib",
    "Mahalanobis",
    "MeanOfWords",
    "MetricDP",
    "MissingExtraError",
    "NoGuarantee",
    "OneBit",
    "OptimizedUnary",
    "OrderedList",
    "ParameterError",
    "PersonalBudgets",
    "Piecewise",
    "PrivUnit",
    "PrivUnitG",
    "PrivacyStatement",
    "PrivateBags",
    "PrivateTable",
    "PrivateTexts",
    "PrivateVocabulary",
    "PureDP",
    "Recommendation",
    "RefusedError",
    "Relation",
    "SanText",
    "SanTextPlus",
    "SentenceEncoder",
    "SkipGram",
    "StorageError",
    "SymmetricUnary",
    "TruncatedGumbel",
    "Trust",
    "Unit",
    "VectorRelease",
    "Verdict",
    "Vickrey",
    "WeightedBits",
    "WordVectors",
    "audit",
    "batch_privatizer",
    "calibrate",
    "deniability",
    "encode_file",
    "fit_concerns",
    "load_vectors",
    "personal_participation",
    "private_vocabulary",
    "privatize",
    "privatize_bags",
    "privatize_file",
    "privatize_table",
    "recommend",
    "save_vectors",
    "statement_for_user",
    "statement_with_training",
    "strip_metadata",
    "vectors_in",
]


_ESTIMATORS = {
    "NoisyClassifier": "dptext.representations.classifiers",
    "PrivateEncoder": "dptext.representations.estimator",
    "WordPrivatizer": "dptext.words.estimator",
}


def __getattr__(name: str) -> Any:
    """Estimators need scikit-learn, so they come when they are asked for (and ``import *`` does without them)."""
    if name in _ESTIMATORS:
        return getattr(import_module(_ESTIMATORS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
