"""A statement with usual fields, for tests that change some of them."""

from dptext.privacy.guarantee import PureDP, Relation, Trust, Unit
from dptext.privacy.statement import PrivacyStatement


def statement(**changes):
    fields = {
        "guarantee": PureDP(1.5),
        "unit": Unit.WORD,
        "relation": Relation.SUBSTITUTION,
        "condition": "any two words",
        "trust": Trust.LOCAL,
        "mechanism": "TEM",
    }
    return PrivacyStatement(**fields | changes)


def statement_of_texts(**changes):
    return statement(guarantee=PureDP(1.0), unit=Unit.DOCUMENT, condition="any two texts", **changes)
