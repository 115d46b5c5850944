"""Every public constructor refuses NaN, text and lists where it takes a number, and names the argument.

The validators themselves are tested in `test_checks`, and bounds that depend on a mechanism in that mechanism's tests.
"""

import inspect
import math

import pytest

import dptext
from contracts.cases import RANDOM, UNSAFE, VECTORS
from dptext.errors import ParameterError
from dptext.representations.registry import PUBLISHED_ONLY, RANDOMIZERS

NO_NUMBERS = [math.nan, "8", True, [1.0], 1j]
BEYOND = {"epsilon": [-1.0, -math.inf, 10**400], "delta": [-0.5, 1.5, math.inf], "rho": [-1.0, 10**400]}
SOME = {"epsilon": 3.0, "delta": 1e-6}
BANK = dptext.TextBank(["tea cup", "tax law", "law"], encoder="words", cache=False, name="three")
GIVEN = {
    "BankRewriter": {"bank": BANK},
    "CallableEncoder": {"function": lambda texts: [[1.0] for _ in texts]},
    **{name: {"url": "http://localhost:1", "model": "none"} for name in ("ChatEndpoint", "CompletionEndpoint")},
    "MetricDP": {"metric": "euclidean"},
    "PersonalBudgets": {"levels": {"strict": 1.0, "open": 8.0}},
    "PrivacyStatement": {
        "guarantee": dptext.PureDP(1.0),
        "unit": "word",
        "relation": "substitution",
        "condition": "any two words",
        "trust": "local",
        "mechanism": "TEM",
    },
    "PrivateEncoder": {"encoder": VECTORS},
    "SentencePrivatizer": {"bank": BANK},
    "TruncatedGumbel": UNSAFE | {"epsilon": 9.0},
    "ZCDP": {"rho": 1.0},
}
"""Required arguments other than ``vectors``, ``epsilon`` and ``delta``."""
DOCUMENTS = [dptext.Document("tea cup tax", user=f"user {number}") for number in range(30)]
FITTED = {
    "Cooccurrence": (DOCUMENTS,),
    "SkipGram": (DOCUMENTS,),
    "NoisyClassifier": ([[1.0, 0.0], [0.0, 1.0]] * 5, [0, 1] * 5),
    "PrivateEncoder": (["tea cup", "tax law", "law"],),
    "SentencePrivatizer": (["tea"],),
    "WordPrivatizer": (["tea"],),
}
"""Estimators check their arguments in ``fit``, as scikit-learn's do."""
LATER = ("seed", "public_users")  # checked where they are used: `RandomBits`, `users.private_vocabulary`
ELSEWHERE = {
    **dict.fromkeys(("Release", "TextDistribution"), "created by dptext"),
    **dict.fromkeys(("Ledger", "LocalModel", "SentenceEncoder"), "needs a file"),
}


def constructors():
    names = sorted({*dptext.__all__, *FITTED} - ELSEWHERE.keys())
    public = {name: getattr(dptext, name) for name in names}
    kinds = {name: kind for name, kind in public.items() if inspect.isclass(kind) and not issubclass(kind, Exception)}
    return {**kinds, **{kind.__name__: kind for kind in (RANDOMIZERS | PUBLISHED_ONLY).values()}}


def numbers(kind):
    """Yield the names of the arguments that can only be numbers."""
    for name, parameter in inspect.signature(kind).parameters.items():
        kinds = {part.strip() for part in str(parameter.annotation).strip("'").split("|")}
        if kinds & {"int", "float"} and kinds <= {"int", "float", "None"} and name not in LATER:
            yield name


@pytest.mark.parametrize("name", [name for name, kind in constructors().items() if [*numbers(kind)]])
def test_what_is_no_number_is_refused_by_name(name):
    kind = constructors()[name]
    needed = {"vectors": VECTORS, **SOME, **GIVEN.get(name, {}), **RANDOM.get(name, {})}
    if name in PUBLISHED_ONLY:
        needed |= UNSAFE
    parameters = inspect.signature(kind).parameters
    known = {key: value for key, value in needed.items() if key in parameters}
    for argument in numbers(kind):
        for value in (*NO_NUMBERS, *BEYOND.get(argument, [])):
            with pytest.raises(ParameterError, match=argument.rstrip("_")):
                instance = kind(**{**known, argument: value})
                if name in FITTED:
                    instance.fit(*FITTED[name])
                pytest.fail(f"{name}({argument}={value!r}) was not refused")
