"""dptext: differentially private text, with a statement that one can trust.

Its names come when they are asked for: to import the package costs next to nothing, and a program can say what an
interrupt means before numpy is there.
"""

from __future__ import annotations

from importlib import import_module
from sys import modules

from dptext.moved import install

install()
TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from dptext.audits.mechanisms import audit
    from dptext.audits.verdict import Verdict
    from dptext.calibration.calibration import Calibration, calibrate
    from dptext.calibration.deniability import Deniability, deniability
    from dptext.embeddings.cooccurrence import Cooccurrence
    from dptext.embeddings.dpsgd.participation import personal_participation
    from dptext.embeddings.levels import BudgetPolicy, fit_concerns
    from dptext.embeddings.skipgram import SkipGram
    from dptext.errors import (
        DataError,
        DptextError,
        MissingExtraError,
        ParameterError,
        RefusedError,
        StorageError,
    )
    from dptext.files.documents import Document
    from dptext.files.table_kinds import strip_metadata
    from dptext.hiding.autoencoder import AutoEncoder
    from dptext.hiding.encoder import HidingEncoder
    from dptext.privacy.budgets import PersonalBudgets
    from dptext.privacy.guarantee import ZCDP, ApproxDP, Guarantee, MetricDP, NoGuarantee, PureDP
    from dptext.privacy.restating import statement_for_user
    from dptext.privacy.statement import PrivacyStatement
    from dptext.privacy.unit import Relation, Trust, Unit
    from dptext.release.release import Release
    from dptext.representations.additive import Gaussian, L2Laplace, Laplace
    from dptext.representations.bits import OneBit, WeightedBits
    from dptext.representations.classifiers import NoisyClassifier as NoisyClassifier
    from dptext.representations.cube import Hybrid as Hybrid
    from dptext.representations.cube import Piecewise as Piecewise
    from dptext.representations.device_encoder import DeviceEncoder as DeviceEncoder
    from dptext.representations.encoders import CallableEncoder as CallableEncoder
    from dptext.representations.files import encode_file as encode_file
    from dptext.representations.files import vectors_in as vectors_in
    from dptext.representations.mean_of_words import MeanOfWords as MeanOfWords
    from dptext.representations.private_encoder import PrivateEncoder as PrivateEncoder
    from dptext.representations.privunit import PrivUnit as PrivUnit
    from dptext.representations.privunit import PrivUnitG as PrivUnitG
    from dptext.representations.recommend import Recommendation as Recommendation
    from dptext.representations.recommend import recommend as recommend
    from dptext.representations.sentence_encoder import SentenceEncoder as SentenceEncoder
    from dptext.representations.unary import OptimizedUnary as OptimizedUnary
    from dptext.representations.unary import SymmetricUnary as SymmetricUnary
    from dptext.users.private_vocabulary import PrivateVocabulary as PrivateVocabulary
    from dptext.users.private_vocabulary import private_vocabulary as private_vocabulary
    from dptext.vectors.formats import load_vectors as load_vectors
    from dptext.vectors.formats import save_vectors as save_vectors
    from dptext.vectors.word_vectors import WordVectors as WordVectors
    from dptext.words.bags import PrivateBags as PrivateBags
    from dptext.words.bags import privatize_bags as privatize_bags
    from dptext.words.custext import CusText as CusText
    from dptext.words.gumbel import TruncatedGumbel as TruncatedGumbel
    from dptext.words.madlib import Madlib as Madlib
    from dptext.words.mahalanobis import Mahalanobis as Mahalanobis
    from dptext.words.ordered import OrderedList as OrderedList
    from dptext.words.privatize import batch_privatizer as batch_privatizer
    from dptext.words.privatize import privatize as privatize
    from dptext.words.privatize import privatize_file as privatize_file
    from dptext.words.santext import SanText as SanText
    from dptext.words.santext_plus import SanTextPlus as SanTextPlus
    from dptext.words.tem import TEM as TEM
    from dptext.words.trained_vectors import statement_with_training as statement_with_training
    from dptext.words.vickrey import Vickrey as Vickrey
    from dptext.words.word_privatizer import WordPrivatizer as WordPrivatizer

# Every public name, by where it is. A new one stands here, and in the imports above, which are for type checkers alone.
_HOME = {
    "TEM": "words.tem",
    "ZCDP": "privacy.guarantee",
    "ApproxDP": "privacy.guarantee",
    "AutoEncoder": "hiding.autoencoder",
    "BudgetPolicy": "embeddings.levels",
    "Calibration": "calibration.calibration",
    "CallableEncoder": "representations.encoders",
    "Cooccurrence": "embeddings.cooccurrence",
    "CusText": "words.custext",
    "DataError": "errors",
    "Deniability": "calibration.deniability",
    "DeviceEncoder": "representations.release",
    "Document": "files.documents",
    "DptextError": "errors",
    "Gaussian": "representations.additive",
    "Guarantee": "privacy.guarantee",
    "HidingEncoder": "hiding.encoder",
    "Hybrid": "representations.cube",
    "L2Laplace": "representations.additive",
    "Laplace": "representations.additive",
    "Madlib": "words.madlib",
    "Mahalanobis": "words.mahalanobis",
    "MeanOfWords": "representations.mean_of_words",
    "MetricDP": "privacy.guarantee",
    "MissingExtraError": "errors",
    "NoGuarantee": "privacy.guarantee",
    "OneBit": "representations.bits",
    "OptimizedUnary": "representations.unary",
    "OrderedList": "words.ordered",
    "ParameterError": "errors",
    "PersonalBudgets": "privacy.budgets",
    "Piecewise": "representations.cube",
    "PrivUnit": "representations.privunit",
    "PrivUnitG": "representations.privunit",
    "PrivacyStatement": "privacy.statement",
    "PrivateBags": "words.bags",
    "PrivateVocabulary": "users.private_vocabulary",
    "PureDP": "privacy.guarantee",
    "Recommendation": "representations.recommend",
    "RefusedError": "errors",
    "Relation": "privacy.unit",
    "Release": "release.release",
    "SanText": "words.santext",
    "SanTextPlus": "words.santext_plus",
    "SentenceEncoder": "representations.sentence_encoder",
    "SkipGram": "embeddings.skipgram",
    "StorageError": "errors",
    "SymmetricUnary": "representations.unary",
    "TruncatedGumbel": "words.gumbel",
    "Trust": "privacy.unit",
    "Unit": "privacy.unit",
    "Verdict": "audits.verdict",
    "Vickrey": "words.vickrey",
    "WeightedBits": "representations.bits",
    "WordVectors": "vectors.word_vectors",
    "audit": "audits.mechanisms",
    "batch_privatizer": "words.privatize",
    "calibrate": "calibration.calibration",
    "deniability": "calibration.deniability",
    "encode_file": "representations.files",
    "fit_concerns": "embeddings.levels",
    "load_vectors": "vectors.formats",
    "personal_participation": "embeddings.dpsgd.participation",
    "private_vocabulary": "users.private_vocabulary",
    "privatize": "words.privatize",
    "privatize_bags": "words.bags",
    "privatize_file": "words.privatize",
    "recommend": "representations.recommend",
    "save_vectors": "vectors.formats",
    "statement_for_user": "privacy.restating",
    "statement_with_training": "words.trained_vectors",
    "strip_metadata": "files.table_kinds",
    "vectors_in": "representations.files",
    "NoisyClassifier": "representations.classifiers",
    "PrivateEncoder": "representations.estimator",
    "WordPrivatizer": "words.estimator",
}
_WITH_SCIKIT_LEARN = ("NoisyClassifier", "PrivateEncoder", "WordPrivatizer")
__all__ = [name for name in _HOME if name not in _WITH_SCIKIT_LEARN]  # so that ``import *`` does without it

# Names of earlier versions and what they are now: they work for one more version, and say so.
_OLD = {
    "FileRelease": "Release",
    "PrivateTable": "Release",
    "PrivateTexts": "Release",
    "StreamRelease": "Release",
    "VectorRelease": "Release",
    "privatize_stream": "privatize_file",
    "privatize_table": "privatize",
}


def __getattr__(name: str) -> Any:
    if name in _OLD:
        import warnings

        new = _OLD[name]
        warnings.warn(
            f"dptext.{name} is dptext.{new} now; the old name goes in the next version",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(modules[__name__], new)
    if name in _HOME:
        found = globals()[name] = getattr(import_module(f"dptext.{_HOME[name]}"), name)
        return found
    for each in __all__:  # dptext.privacy.guarantee, after "import dptext" alone
        room = _HOME[each].partition(".")[0]
        if room == name:
            import_module(f"dptext.{_HOME[each]}")
    if f"dptext.{name}" in modules:
        return modules[f"dptext.{name}"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
