"""dptext: differentially private text, with a statement that one can trust.

Its names come when they are asked for: to import the package costs next to nothing, and a program can say what an
interrupt means before numpy is there.
"""

from __future__ import annotations

from importlib import import_module
from sys import modules

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from dptext.advice.advice import advise as advise
    from dptext.audits.mechanisms import audit as audit
    from dptext.calibration.calibration import calibrate as calibrate
    from dptext.calibration.deniability import deniability as deniability
    from dptext.embeddings.cooccurrence import Cooccurrence as Cooccurrence
    from dptext.embeddings.levels import BudgetPolicy as BudgetPolicy
    from dptext.embeddings.skipgram import SkipGram as SkipGram
    from dptext.errors import DptextError as DptextError
    from dptext.features.pool import Pool as Pool
    from dptext.files.documents import Document as Document
    from dptext.files.documents import read_documents as read_documents
    from dptext.files.table_kinds import strip_metadata as strip_metadata
    from dptext.hiding.autoencoder import AutoEncoder as AutoEncoder
    from dptext.hiding.encoder import HidingEncoder as HidingEncoder
    from dptext.ledger.ledger import Ledger as Ledger
    from dptext.privacy.budgets import PersonalBudgets as PersonalBudgets
    from dptext.privacy.guarantee import ZCDP as ZCDP
    from dptext.privacy.guarantee import ApproxDP as ApproxDP
    from dptext.privacy.guarantee import MetricDP as MetricDP
    from dptext.privacy.guarantee import PureDP as PureDP
    from dptext.privacy.restating import statement_for_user as statement_for_user
    from dptext.privacy.statement import PrivacyStatement as PrivacyStatement
    from dptext.release.privatize import batch_privatizer as batch_privatizer
    from dptext.release.privatize import privatize as privatize
    from dptext.release.privatize import privatize_file as privatize_file
    from dptext.release.redaction import Redacted as Redacted
    from dptext.release.release import Release as Release
    from dptext.reports.measure import report as report
    from dptext.representations.additive import Gaussian as Gaussian
    from dptext.representations.additive import L2Laplace as L2Laplace
    from dptext.representations.additive import Laplace as Laplace
    from dptext.representations.bits import OneBit as OneBit
    from dptext.representations.bits import OptimizedUnary as OptimizedUnary
    from dptext.representations.bits import SymmetricUnary as SymmetricUnary
    from dptext.representations.bits import WeightedBits as WeightedBits
    from dptext.representations.classifiers import NoisyClassifier as NoisyClassifier
    from dptext.representations.cube import Hybrid as Hybrid
    from dptext.representations.cube import Piecewise as Piecewise
    from dptext.representations.device_encoder import DeviceEncoder as DeviceEncoder
    from dptext.representations.encoders import CallableEncoder as CallableEncoder
    from dptext.representations.files import encode_file as encode_file
    from dptext.representations.mean_of_words import MeanOfWords as MeanOfWords
    from dptext.representations.private_encoder import PrivateEncoder as PrivateEncoder
    from dptext.representations.privunit import PrivUnit as PrivUnit
    from dptext.representations.privunit import PrivUnitG as PrivUnitG
    from dptext.representations.recommend import recommend as recommend
    from dptext.representations.sentence_encoder import SentenceEncoder as SentenceEncoder
    from dptext.sentences.bank import TextBank as TextBank
    from dptext.sentences.rewriter import BankRewriter as BankRewriter
    from dptext.sentences.sentence_privatizer import SentencePrivatizer as SentencePrivatizer
    from dptext.synthesis.chat import ChatEndpoint as ChatEndpoint
    from dptext.synthesis.distribution import TextDistribution as TextDistribution
    from dptext.synthesis.local_model import LocalModel as LocalModel
    from dptext.synthesis.synthesizer import Synthesizer as Synthesizer
    from dptext.synthesis.votes import VoteSynthesizer as VoteSynthesizer
    from dptext.users.private_vocabulary import private_labels as private_labels
    from dptext.users.private_vocabulary import private_vocabulary as private_vocabulary
    from dptext.vectors.formats import load_vectors as load_vectors
    from dptext.vectors.formats import save_vectors as save_vectors
    from dptext.vectors.word_vectors import WordVectors as WordVectors
    from dptext.words.custext import CusText as CusText
    from dptext.words.gumbel import TruncatedGumbel as TruncatedGumbel
    from dptext.words.madlib import Madlib as Madlib
    from dptext.words.madlib import Mahalanobis as Mahalanobis
    from dptext.words.madlib import Vickrey as Vickrey
    from dptext.words.santext import SanText as SanText
    from dptext.words.santext import SanTextPlus as SanTextPlus
    from dptext.words.subset import SubsetSelection as SubsetSelection
    from dptext.words.tem import TEM as TEM
    from dptext.words.trained_vectors import statement_with_training as statement_with_training
    from dptext.words.word_privatizer import WordPrivatizer as WordPrivatizer

    __version__: str

# Every public name, by where it is. A new one stands here, and in the imports above, which are for type checkers alone.
_HOME = {
    name: home
    for home, names in {
        "advice.advice": ("advise",),
        "audits.mechanisms": ("audit",),
        "calibration.calibration": ("calibrate",),
        "calibration.deniability": ("deniability",),
        "embeddings.cooccurrence": ("Cooccurrence",),
        "embeddings.levels": ("BudgetPolicy",),
        "embeddings.skipgram": ("SkipGram",),
        "errors": ("DptextError",),
        "features.pool": ("Pool",),
        "files.documents": (
            "Document",
            "read_documents",
        ),
        "files.table_kinds": ("strip_metadata",),
        "hiding.autoencoder": ("AutoEncoder",),
        "hiding.encoder": ("HidingEncoder",),
        "ledger.ledger": ("Ledger",),
        "privacy.budgets": ("PersonalBudgets",),
        "privacy.guarantee": (
            "ZCDP",
            "ApproxDP",
            "MetricDP",
            "PureDP",
        ),
        "privacy.restating": ("statement_for_user",),
        "privacy.statement": ("PrivacyStatement",),
        "release.privatize": (
            "batch_privatizer",
            "privatize",
            "privatize_file",
        ),
        "release.redaction": ("Redacted",),
        "release.release": ("Release",),
        "reports.measure": ("report",),
        "representations.additive": (
            "Gaussian",
            "L2Laplace",
            "Laplace",
        ),
        "representations.bits": (
            "OneBit",
            "WeightedBits",
            "OptimizedUnary",
            "SymmetricUnary",
        ),
        "representations.classifiers": ("NoisyClassifier",),
        "representations.cube": (
            "Hybrid",
            "Piecewise",
        ),
        "representations.device_encoder": ("DeviceEncoder",),
        "representations.encoders": ("CallableEncoder",),
        "representations.mean_of_words": ("MeanOfWords",),
        "representations.files": ("encode_file",),
        "representations.private_encoder": ("PrivateEncoder",),
        "representations.privunit": (
            "PrivUnit",
            "PrivUnitG",
        ),
        "representations.recommend": ("recommend",),
        "representations.sentence_encoder": ("SentenceEncoder",),
        "sentences.bank": ("TextBank",),
        "sentences.rewriter": ("BankRewriter",),
        "sentences.sentence_privatizer": ("SentencePrivatizer",),
        "synthesis.chat": ("ChatEndpoint",),
        "synthesis.distribution": ("TextDistribution",),
        "synthesis.local_model": ("LocalModel",),
        "synthesis.synthesizer": ("Synthesizer",),
        "synthesis.votes": ("VoteSynthesizer",),
        "users.private_vocabulary": (
            "private_labels",
            "private_vocabulary",
        ),
        "vectors.formats": (
            "load_vectors",
            "save_vectors",
        ),
        "vectors.word_vectors": ("WordVectors",),
        "words.custext": ("CusText",),
        "words.gumbel": ("TruncatedGumbel",),
        "words.madlib": (
            "Madlib",
            "Mahalanobis",
            "Vickrey",
        ),
        "words.santext": (
            "SanText",
            "SanTextPlus",
        ),
        "words.subset": ("SubsetSelection",),
        "words.tem": ("TEM",),
        "words.trained_vectors": ("statement_with_training",),
        "words.word_privatizer": ("WordPrivatizer",),
    }.items()
    for name in names
}
_WITH_SCIKIT_LEARN = ("NoisyClassifier", "PrivateEncoder", "SentencePrivatizer", "WordPrivatizer")
__all__ = [name for name in _HOME if name not in _WITH_SCIKIT_LEARN]  # so that ``import *`` does without it


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("dptext")
    if name in _HOME:
        found = getattr(import_module(f"dptext.{_HOME[name]}"), name)
        globals()[name] = found
        return found
    for home in _HOME.values():  # dptext.privacy.guarantee, after "import dptext" alone
        if home.partition(".")[0] == name:
            import_module(f"dptext.{home}")
    if f"dptext.{name}" in modules:
        return modules[f"dptext.{name}"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*_HOME, *(name for name in globals() if name.startswith("__")), "__version__"})
