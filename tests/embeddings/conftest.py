"""Made-up users with two topics, public vectors for their words, and learned vocabularies."""

import numpy as np
import pytest

import dptext
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.statement import PrivacyStatement
from dptext.users.private_vocabulary import PrivateVocabulary

TOPICS = (("tea", "cup", "milk", "kettle"), ("tax", "law", "court", "judge"))
WORDS = [word for topic in TOPICS for word in topic] + [f"word{n}" for n in range(60)]

GUARANTEE = ApproxDP(1.0, 1e-7)


@pytest.fixture(scope="session")
def topic_vectors():
    return dptext.load_vectors((WORDS, np.random.default_rng(1).normal(size=(len(WORDS), 8))))


def people(count, seed=1, **attributes):
    """Return documents of users who each write about one topic, three documents per user."""
    generator = np.random.default_rng(seed)
    return [
        dptext.Document(" ".join(generator.choice(TOPICS[user % 2], 6)), user=f"user {user}", **attributes)
        for user in range(count)
        for _ in range(3)
    ]


def learned(words, unit=Unit.USER, guarantee=GUARANTEE, **changes):
    """Return a private vocabulary with a statement."""
    fields = {"relation": Relation.ADD_REMOVE, "trust": Trust.CENTRAL, "mechanism": "private vocabulary"} | changes
    condition = "two collections, one of which holds one more"
    return PrivateVocabulary(
        words=words, statement=PrivacyStatement(guarantee=guarantee, unit=unit, condition=condition, **fields)
    )
