"""What `advise` asks of a plan, the answers, and the words in capitals that a command leaves to its owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from dptext.checks import choice

Purpose: TypeAlias = Literal["read", "classify", "vectors", "devices", "statistics"]
Recipient: TypeAlias = Literal["public", "partner", "colleagues"]
Holder: TypeAlias = Literal["central", "local"]
PUBLIC = "PUBLIC.jsonl"
"""Stands for a file of public texts that nobody has named."""
LABELS = "LABEL1,LABEL2"
"""Stands for the public labels: they are never read from the private file."""
LICENCE = "LICENCE"
"""Stands for that of the public texts."""
NEW = "NEW.jsonl"
"""Stands for texts to label."""
TO_FILL_IN = (PUBLIC, LABELS, LICENCE, NEW)


class Question(NamedTuple):
    """One thing that is asked, by the name of its option."""

    name: str
    asked: str
    choices: dict[str, str]


QUESTIONS = (
    Question(
        "purpose",
        "What is to be handed on, and what for?",
        {
            "read": "texts that people read",
            "classify": "something that a classifier is trained on",
            "vectors": "word vectors of this domain",
            "devices": "vectors of texts that devices send to a server",
            "statistics": "what many people write about, or something else",
        },
    ),
    Question(
        "recipient",
        "Who gets it?",
        {"public": "anybody", "partner": "a partner, under a contract", "colleagues": "colleagues of the owner"},
    ),
    Question(
        "trust",
        "Is there somebody who may hold all texts?",
        {
            "central": "yes, they are collected in one trusted place",
            "local": "no, each owner or device protects itself",
        },
    ),
)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What was said; None where nothing was, and then nothing is ruled out by it."""

    purpose: Purpose | None = None
    recipient: Recipient | None = None
    trust: Holder | None = None

    def __post_init__(self) -> None:
        for name, kind in (("purpose", Purpose), ("recipient", Recipient), ("trust", Holder)):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, choice(name, given, get_args(kind)))

    @property
    def any(self) -> bool:
        return (self.purpose, self.recipient, self.trust) != (None, None, None)
