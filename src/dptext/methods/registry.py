"""The list of release methods: one line for each."""

from __future__ import annotations

from dptext.methods.bank import Bank
from dptext.methods.base import Method
from dptext.methods.embeddings import Embeddings
from dptext.methods.synthesis import Synthesis
from dptext.methods.vectors import Vectors
from dptext.methods.words import Words

METHODS: tuple[Method, ...] = (Synthesis(), Embeddings(), Bank(), Vectors(), Words())
