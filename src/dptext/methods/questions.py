"""What `advise` asks about a plan, the answers, and the placeholders that a command leaves to its owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from dptext.validation import check_choice

Purpose: TypeAlias = Literal["read", "classify", "vectors", "devices", "statistics"]
Recipient: TypeAlias = Literal["public", "partner", "colleagues"]
Holder: TypeAlias = Literal["central", "local"]
PUBLIC, LABELS, LICENCE, NEW = "PUBLIC.jsonl", "LABEL1,LABEL2", "LICENCE", "NEW.jsonl"
"""Placeholders: a file of public texts, the public labels (never read from the private file), the licence of the
public texts, and texts to label."""
PLACEHOLDERS = (PUBLIC, LABELS, LICENCE, NEW)


class Question(NamedTuple):
    """One question, by the name of its option."""

    name: str
    text: str
    choices: dict[str, str]


QUESTIONS = (
    Question(
        "purpose",
        "What will the release be used for?",
        {
            "read": "people read the texts",
            "classify": "a classifier is trained on it",
            "vectors": "word vectors of this domain",
            "devices": "vectors of texts, sent by devices to a server",
            "statistics": "what many people write about, or something else",
        },
    ),
    Question(
        "recipient",
        "Who receives it?",
        {"public": "anybody", "partner": "a partner, under a contract", "colleagues": "colleagues of the owner"},
    ),
    Question(
        "trust",
        "May one party hold all original texts?",
        {
            "central": "yes, they are collected in one trusted place",
            "local": "no, each owner or device protects its own texts",
        },
    ),
)


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """The answers; None: not answered, and nothing is excluded because of it."""

    purpose: Purpose | None = None
    recipient: Recipient | None = None
    trust: Holder | None = None

    def __post_init__(self) -> None:
        for name, kind in (("purpose", Purpose), ("recipient", Recipient), ("trust", Holder)):
            if (answer := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_choice(name, answer, get_args(kind)))

    @property
    def unanswered(self) -> list[str]:
        return [question.name for question in QUESTIONS if getattr(self, question.name) is None]

    @property
    def any(self) -> bool:
        return len(self.unanswered) < len(QUESTIONS)
