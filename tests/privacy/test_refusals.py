"""Arguments and files that guarantees, statements and accounting refuse, with the argument named."""

import json
import math
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import statements
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.privacy.budgets import PersonalBudgets, delta_too_large
from dptext.privacy.gaussian import (
    GaussianRelease,
    SampledGaussian,
    compose_gaussians,
    greatest_sampling_rate,
    l2_sensitivity,
    least_noise_multiplier,
)
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    MetricDP,
    NoGuarantee,
    PureDP,
    Relation,
    Trust,
    Unit,
    approx_from_zcdp,
    best_guesses,
    compose,
    compose_parallel,
    for_group,
    guarantee_from_dict,
)
from dptext.privacy.neighbours import Condition
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.restating import amplified_by_dropout, apply_word_dropout, statement_for_user
from dptext.privacy.statement import PrivacyStatement

P, A, Z, M = PureDP(1.0), ApproxDP(2.0, 0.25), ZCDP(3.0), MetricDP(4.0, "euclidean", 0.5)
FREE = MetricDP(8.0, "euclidean")
SAMPLED = {"noise_multiplier": 1.0, "sampling_rate": 0.01, "steps": 100}
GAUSSIAN = GaussianRelease(sigma=1.0)
PARALLEL = {"relation": Relation.ADD_REMOVE}
LEVELS = {"strict": 1.0, "open": 8.0}
statement = partial(statements.statement, unit=Unit.DOCUMENT, condition="any two texts")


def central(guarantee=A, **changes):
    return statement(guarantee=guarantee, relation=Relation.ADD_REMOVE, trust=Trust.CENTRAL, **changes)


def sampled(**changes):
    return lambda: SampledGaussian(**SAMPLED | changes)


PARAMETERS = [
    (lambda: PureDP(None), "epsilon must be a number of at least 0, got None"),
    (lambda: PureDP(10**400), "epsilon"),
    (lambda: ApproxDP(1.0, 1.0000001), "delta must be a number from 0 to 1"),
    (lambda: MetricDP(1.0, ""), "metric"),
    (lambda: MetricDP(1.0, "euclidean", 2.0, 5), "space"),
    (lambda: NoGuarantee(""), "reason"),
    (compose, "at least one"),
    (lambda: for_group(P, 0), "size must be"),
    (lambda: for_group(P, 1.5), "size must be"),
    (lambda: approx_from_zcdp(Z, delta=math.nan), "delta must be"),
    (lambda: guarantee_from_dict({"kind": "renyi"}), "kind"),
    (lambda: guarantee_from_dict({"kind": "pure", "epsilon": 1.0, "delta": 0.0}), "guarantee are missing or unknown"),
    (lambda: best_guesses([np.eye(3), np.eye(3)], np.full(3, 1 / 3)), "one row for each of 3 inputs"),
    (lambda: Condition.from_dict({}), "condition"),
    (lambda: Condition.from_dict({"about": None, "note": None, "requirements": [{"kind": "no"}]}), "condition"),
    (lambda: Condition.read(""), "condition"),
    (lambda: statement(guarantee=1.5), "guarantee"),
    (lambda: statement(unit="person"), "unit"),
    (lambda: statement(slack=math.nan), "slack"),
    (lambda: statement(parameters={"beta": [0.1]}), "parameters"),
    (lambda: statement(data_sha256="abc"), "data_sha256"),
    (lambda: statement_for_user(statement(), 10**9), "texts must be an integer"),
    (lambda: statement_for_user(statement(unit=Unit.USER), 2), "for one text"),
    (lambda: amplified_by_dropout(-1.0, 0.5), "epsilon must be a number of at least 0"),
    (lambda: amplified_by_dropout(1.0, 1.5), "mu must be a number from 0 to 1"),
    (lambda: amplified_by_dropout(1.0, 0.5, words=0), "words must be an integer"),
    (lambda: amplified_by_dropout(1.0, 0.5, base="document"), "base must be"),
    (lambda: GaussianRelease(sigma=0.0), "sigma"),
    (lambda: GaussianRelease(sigma=1.0, sensitivity=1e300), "the ratio of sensitivity and sigma exceeds"),
    (lambda: GAUSSIAN.epsilon(delta=1.0), "delta"),
    (lambda: GAUSSIAN.split([]), "shares"),
    (lambda: l2_sensitivity(0.0, Relation.SUBSTITUTION), "norm"),
    (compose_gaussians, "at least one"),
    (sampled(noise_multiplier=0.01), "noise_multiplier"),
    (sampled(sampling_rate=1.5), "sampling_rate"),
    (sampled(steps=0), "steps"),
    (lambda: least_noise_multiplier(epsilon=0, delta=1e-6, sampling_rate=0.1, steps=9), "epsilon"),
    (lambda: greatest_sampling_rate(epsilon=1.0, delta=0, noise_multiplier=1.0, steps=9), "delta"),
    (lambda: PersonalBudgets(LEVELS, delta=1), "delta must be"),
    (
        lambda: PersonalBudgets(LEVELS, delta=1e-6).guarantee("strict", other="open"),
        "other is the level of a replacement:",
    ),
    (lambda: delta_too_large(0.0), "delta must be"),
    (lambda: delta_too_large(1e-6, public_users=1.5), "public_users must be"),
    (lambda: RandomBits(1.5), "seed"),
    (lambda: RandomBits(1).below(np.array([3, 0], dtype=np.uint64)), "at least 1"),
    (lambda: NoiseKey("7"), "seed"),
    (lambda: NoiseKey.restored(b"short", seeded=False), "32 bytes"),
]

REFUSED = [
    (lambda: for_group(FREE, 2), "public diameter"),
    (lambda: approx_from_zcdp(Z, delta=0.0), "Choose a delta above 0"),
    (lambda: compose_parallel(P, P, relation=Relation.SUBSTITUTION), "does not hold under substitution"),
    (lambda: compose_parallel(P, Z, **PARALLEL), "one kind"),
    (lambda: compose_parallel(**PARALLEL), "one kind"),
    (lambda: statement().replace(unit=Unit.USER), "without a proof"),
    (lambda: statement().replace(relation=Relation.ADD_REMOVE), "without a proof"),
    (lambda: statement().compose(statement(unit=Unit.WORD)), "one unit"),
    (lambda: statement().compose(statement(relation=Relation.ADD_REMOVE)), "one relation"),
    (lambda: statement(guarantee=Z).compose(statement(guarantee=A)), "approx_from_zcdp"),
    (lambda: statement_for_user(central(Z, slack=0.1), 2), "zCDP with slack"),
    (lambda: statement_for_user(central(FREE), 2), "no pure epsilon"),
    (lambda: apply_word_dropout(statement(guarantee=A), 0.5), "word dropout improves only a pure epsilon"),
    (lambda: apply_word_dropout(central(P), 0.5), "word dropout improves only a pure epsilon"),
    (lambda: apply_word_dropout(statement(unit=Unit.USER), 0.5), "hides single words"),
    (lambda: compose_gaussians(GAUSSIAN, replace(GAUSSIAN, relation=Relation.SUBSTITUTION)), "one relation"),
]


@pytest.mark.parametrize(("calls", "kind"), [(PARAMETERS, ParameterError), (REFUSED, RefusedError)])
def test_arguments_are_refused_by_name(calls, kind):
    for call, message in calls:
        with pytest.raises(kind) as caught:
            call()
        assert message in str(caught.value)


# -- statements are read strictly --------------------------------------------------------------------------------

PLAIN = json.loads(statement(guarantee=PureDP(9.0)).to_json())
METRIC = {"kind": "metric", "epsilon": 1.0, "metric": "l1", "max_distance": None, "space": None}
CHANGED = [
    ("guarantee", None),
    ("guarantee", "pure"),
    ("guarantee", {"kind": "renyi", "epsilon": 1.0}),
    ("guarantee", {"kind": "pure", "epsilon": "1"}, "epsilon"),
    ("guarantee", {"kind": "approximate", "epsilon": 1.0, "delta": "infinity"}, "delta"),
    ("guarantee", METRIC | {"max_distance": "far"}, "max_distance"),
    ("unit", "Word"),
    ("relation", 5),
    ("trust", None),
    ("condition", 5),
    ("condition", PLAIN["condition"] | {"in_words": "any two people"}),
    ("mechanism", 5),
    ("parameters", []),
    ("parameters", {"beta": {"of": 1}}),
    ("assumptions", "one"),
    ("exposed", ["letter case", None]),
    ("slack", -1.0),
    ("slack", "infinity"),
    ("slack", True),
    ("claimed_epsilon", "three"),
    ("seeded", 1),
    ("data_sha256", "a" * 64 + "\n"),
    ("release_id", 5),
    ("software", 5),
    ("schema", 1),
    ("schema", 2.0),
    ("epsilon_total", 1.0),
]


def refused_on_one_line(text, *names):
    with pytest.raises(DataError) as caught:
        PrivacyStatement.from_json(text)
    assert len(str(caught.value).splitlines()) == 1
    assert all(name in str(caught.value) for name in names)
    assert caught.value.__cause__ is None


def test_statements_with_other_fields_and_values_are_refused_by_name():
    for name, value, *inner in CHANGED:
        refused_on_one_line(json.dumps(PLAIN | {name: value}), *(inner or [name]))
    for name in PLAIN:
        seen = "not a privacy statement" if name in ("schema", "guarantee") else name
        refused_on_one_line(json.dumps({key: value for key, value in PLAIN.items() if key != name}), seen)
    refused_on_one_line(json.dumps(PLAIN | {"epsilon\ntotal": 1.0}))


def test_text_that_is_no_json_object_is_refused():
    for text in ("", "epsilon: 1", "{", json.dumps(PLAIN)[:-20], "[" * 100_000, '{"schema": ' + "1" * 5000 + "}"):
        refused_on_one_line(text, "JSON")
    for text in ("[]", "null", "3", '"pure"'):
        refused_on_one_line(text, "not a privacy statement")
    for literal in ("NaN", "-Infinity"):
        refused_on_one_line(re.sub(r'"slack": [^,]*', f'"slack": {literal}', json.dumps(PLAIN)))
    # people read the first of two equal names, parsers the last
    pair = '"guarantee": {"kind": "pure", "epsilon": 0.1},  "guarantee": {'
    refused_on_one_line(
        json.dumps(PLAIN).replace('"guarantee": {', pair, 1), "a privacy statement must be JSON without"
    )
