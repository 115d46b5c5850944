"""dptext: differentially private text, with a privacy statement for every release.

Public names are imported on first use, so that importing the package is fast.
"""

from __future__ import annotations

from importlib import import_module
from sys import modules

# Public names by the module that defines them. Type checkers read __init__.pyi, which is generated from this table
# (cd tests && python -m golden).
_HOME = {
    name: home
    for home, names in {
        "methods.advise": "advise",
        "methods.registry": "register",
        "audits.mechanisms": "audit",
        "calibration.calibration": "calibrate",
        "calibration.deniability": "deniability",
        "embeddings.cooccurrence": "Cooccurrence",
        "embeddings.skipgram": "SkipGram",
        "errors": "DptextError",
        "evaluation.coverage": "coverage",
        "features.pool": "Pool",
        "io.documents": "Document read_documents",
        "io.tables": "strip_metadata",
        "hiding.encoder": "HidingEncoder",
        "ledger.ledger": "Ledger",
        "privacy.budgets": "PersonalBudgets",
        "privacy.claims": "read_claim",
        "privacy.guarantee": "ApproxDP MetricDP PureDP ZCDP",
        "privacy.restating": "statement_for_user",
        "privacy.shuffling": "shuffled",
        "privacy.statement": "PrivacyStatement",
        "release.privatize": "privatize privatize_file",
        "release.redaction": "Redacted",
        "release.release": "Release",
        "release.run": "TextFiles",
        "reports.judgement": "judge",
        "reports.page": "report",
        "representations.additive": "Gaussian L2Laplace Laplace",
        "representations.bits": "OneBit OptimizedUnary SymmetricUnary WeightedBits",
        "representations.classifiers": "NoisyClassifier",
        "representations.cube": "Hybrid Piecewise",
        "representations.device": "DeviceEncoder encode_file",
        "representations.encoders": "CallableEncoder MeanOfWords",
        "representations.private_encoder": "PrivateEncoder",
        "representations.privunit": "PrivUnit PrivUnitG",
        "representations.sentence_encoder": "SentenceEncoder",
        "sentences.bank": "TextBank",
        "sentences.rewriter": "BankRewriter",
        "sentences.sentence_privatizer": "SentencePrivatizer",
        "summary.describe": "describe",
        "summary.text_summary": "TextSummary",
        "synthesis.chat": "ChatEndpoint CompletionEndpoint",
        "synthesis.distribution": "TextDistribution",
        "synthesis.local_model": "LocalModel",
        "synthesis.synthesizer": "Synthesizer",
        "users.private_vocabulary": "private_labels private_vocabulary",
        "vectors.formats": "load_vectors save_vectors",
        "vectors.word_vectors": "WordVectors",
        "words.madlib": "Madlib Mahalanobis TruncatedGumbel Vickrey",
        "words.santext": "CusText SanText SanTextPlus",
        "words.subset": "SubsetSelection",
        "words.tem": "TEM",
        "words.mechanism": "statement_with_training",
        "words.word_privatizer": "WordPrivatizer",
    }.items()
    for name in names.split()
}
_WITH_SCIKIT_LEARN = ("NoisyClassifier", "PrivateEncoder", "SentencePrivatizer", "WordPrivatizer")
__all__ = [name for name in _HOME if name not in _WITH_SCIKIT_LEARN]  # ``import *`` must not import scikit-learn


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("dptext")
    if name in _HOME:
        value = globals()[name] = getattr(import_module(f"dptext.{_HOME[name]}"), name)
        return value
    for home in _HOME.values():  # allows dptext.privacy.guarantee after "import dptext" alone
        if home.partition(".")[0] == name:
            import_module(f"dptext.{home}")
    if f"dptext.{name}" in modules:
        return modules[f"dptext.{name}"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*_HOME, *(name for name in globals() if name.startswith("__")), "__version__"})
