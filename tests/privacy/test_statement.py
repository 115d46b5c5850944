"""Privacy statements: frozen, faithful through JSON, strict when read, and plain when explained."""

import copy
import dataclasses
import importlib.resources
import json
import math
import pickle
import re
from dataclasses import FrozenInstanceError

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.privacy.guarantee import ZCDP, ApproxDP, MetricDP, NoGuarantee, PureDP, Relation, Trust, Unit
from dptext.privacy.neighbours import (
    Condition,
    EncoderStays,
    OfLevel,
    OneGroup,
    SameLayout,
    SameSentenceCount,
    Stated,
    TextsOfOne,
    WordsChanged,
)
from dptext.privacy.statement import SCHEMA_VERSION, PrivacyStatement, new_release_id
from statements import statement

SCHEMA = json.loads((importlib.resources.files("dptext.privacy") / "statement.schema.json").read_text("utf-8"))
FOLLOWS_SCHEMA = jsonschema.Draft202012Validator(SCHEMA)


def plain(**changes):
    """A statement as JSON data, for spoiling."""
    return json.loads(statement(**changes).to_json())


def reading(data):
    return PrivacyStatement.from_json(json.dumps(data))


amounts = st.floats(min_value=0, allow_nan=False)
shares = st.floats(min_value=0, max_value=1)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
requirements = st.one_of(
    st.sampled_from([SameLayout(), SameSentenceCount(), EncoderStays()]),
    st.builds(OneGroup, words),
    st.builds(WordsChanged, st.integers(1, 9)),
    st.builds(TextsOfOne, st.integers(1, 9)),
    st.builds(OfLevel, words),
    st.builds(Stated, words.filter(bool)),
)
conditions = st.builds(
    Condition,
    requirements=st.lists(requirements, max_size=4).map(tuple),
    about=st.sampled_from([None, "vectors", "collections", "pairs"]),
    note=st.none() | words,
)
guarantees = st.one_of(
    st.builds(PureDP, amounts),
    st.builds(ApproxDP, amounts, shares),
    st.builds(ZCDP, amounts),
    st.builds(MetricDP, amounts, words.filter(bool), st.none() | amounts, st.none() | words.filter(bool)),
    st.builds(NoGuarantee, words.filter(bool)),
)
digests = st.text("0123456789abcdef", min_size=64, max_size=64)
scalars = st.one_of(words, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())
statements = st.builds(
    PrivacyStatement,
    guarantee=guarantees,
    unit=st.sampled_from(Unit),
    relation=st.sampled_from(Relation),
    condition=conditions,
    trust=st.sampled_from(Trust),
    mechanism=words,
    parameters=st.dictionaries(words, scalars, max_size=4),
    assumptions=st.lists(words, max_size=3).map(tuple),
    exposed=st.lists(words, max_size=3).map(tuple),
    slack=st.floats(min_value=0, max_value=1e3),
    claimed_epsilon=st.none() | amounts,
    seeded=st.booleans(),
    data_sha256=st.none() | digests,
    release_id=st.none() | words,
    supersedes=st.none() | words,
    software=st.none() | words,
)


# -- JSON -----------------------------------------------------------------------------------------------------


@given(statements)
def test_a_statement_survives_json_and_follows_the_schema(original):
    FOLLOWS_SCHEMA.validate(json.loads(original.to_json()))
    assert PrivacyStatement.from_json(original.to_json()) == original


def test_infinities_are_spelled_out_because_json_has_none():
    text = statement(guarantee=MetricDP(math.inf, "euclidean", math.inf), claimed_epsilon=math.inf).to_json()
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert data["guarantee"]["epsilon"] == data["guarantee"]["max_distance"] == "infinity"
    assert data["claimed_epsilon"] == "infinity"


def test_the_schema_names_the_fields_and_the_version_that_are_written():
    data = plain()
    assert set(SCHEMA["properties"]) == set(SCHEMA["required"]) == set(data)
    assert data["schema"] == SCHEMA_VERSION == SCHEMA["properties"]["schema"]["const"]
    assert SCHEMA["properties"]["unit"]["enum"] == [str(unit) for unit in Unit]
    assert SCHEMA["properties"]["relation"]["enum"] == [str(relation) for relation in Relation]
    assert SCHEMA["properties"]["trust"]["enum"] == [str(trust) for trust in Trust]


# -- reading strictly -----------------------------------------------------------------------------------------


strange = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=300)
@given(statements, st.sampled_from(SCHEMA["required"]), strange)
@example(statement(), "slack", 10**400)
@example(statement(), "claimed_epsilon", 10**400)
def test_what_is_read_is_what_the_schema_allows(original, name, value):
    data = json.loads(original.to_json()) | {name: value}
    try:
        PrivacyStatement.from_json(json.dumps(data))
    except DataError:
        return
    assert FOLLOWS_SCHEMA.is_valid(data), f"{name} was read and the schema forbids it"


GUARANTEE_FIELDS = ["kind", "epsilon", "delta", "rho", "metric", "max_distance", "space", "reason", "other"]


@settings(max_examples=300)
@given(guarantees, st.sampled_from(GUARANTEE_FIELDS), strange | st.just("infinity") | st.just(...))
@example(MetricDP(1.0, "euclidean", 2.0), "max_distance", ...)
@example(MetricDP(1.0, "euclidean", 2.0), "space", ...)
def test_a_guarantee_that_is_read_is_one_that_the_schema_allows(guarantee, name, value):
    data = plain(guarantee=guarantee)
    if value is ...:
        data["guarantee"].pop(name, None)
    else:
        data["guarantee"][name] = value
    try:
        PrivacyStatement.from_json(json.dumps(data))
    except DataError:
        return
    assert FOLLOWS_SCHEMA.is_valid(data), f"a guarantee was read and the schema forbids its {name}"


# -- checked at birth, frozen afterwards ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["guarantee", "unit", "exposed", "parameters", "slack", "seeded", "new"])
def test_a_statement_cannot_be_changed(name):
    with pytest.raises((FrozenInstanceError, AttributeError)):
        setattr(statement(), name, None)
    with pytest.raises((FrozenInstanceError, AttributeError)):
        delattr(statement(), name)


def test_the_parameters_of_a_statement_cannot_be_changed():
    given_parameters = {"beta": 0.001}
    output = statement(parameters=given_parameters)
    with pytest.raises(TypeError):
        output.parameters["beta"] = 0.5
    with pytest.raises((TypeError, AttributeError)):
        del output.parameters["beta"]
    given_parameters["beta"] = 0.5
    assert output.parameters == {"beta": 0.001}


@given(statements)
def test_equal_statements_have_equal_hashes(original):
    same = PrivacyStatement.from_json(original.to_json())
    assert hash(same) == hash(original)
    assert {original: "found"}[same] == "found"
    for one, two in (
        ({"parameters": {"a": 1, "b": 2}}, {"parameters": {"b": 2, "a": 1}}),
        ({"guarantee": PureDP(1)}, {"guarantee": PureDP(1.0)}),
        ({"slack": 0}, {"slack": -0.0}),
    ):
        assert statement(**one) == statement(**two)
        assert hash(statement(**one)) == hash(statement(**two))


@given(statements)
def test_a_statement_can_be_pickled_and_copied(original):
    for duplicate in (pickle.loads(pickle.dumps(original)), copy.copy(original), copy.deepcopy(original)):
        assert duplicate == original
        with pytest.raises(TypeError):
            duplicate.parameters["new"] = 1


def test_replace_gives_a_changed_copy_that_is_checked_too():
    original = statement(parameters={"beta": 0.1})
    changed = original.replace(slack=0.5)
    assert (original.slack, changed.slack) == (0.0, 0.5)
    assert changed.replace(slack=0.0) == original
    with pytest.raises(ParameterError, match="slack"):
        original.replace(slack=-1.0)


def test_release_ids_are_random_and_do_not_repeat():
    output = {new_release_id() for _ in range(1000)}
    assert len(output) == 1000
    assert all(re.fullmatch(r"[0-9a-f]{32}", entry) for entry in output)


# -- epsilon and composition ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guarantee", "epsilon"),
    [
        (PureDP(1.5), 1.75),
        (ApproxDP(2.5, 1e-6), 2.75),
        (MetricDP(4.5, "euclidean", 8.0), 36.25),
        (MetricDP(4.5, "euclidean"), math.inf),
        (ZCDP(0.25), math.inf),
        (NoGuarantee("empirical"), math.inf),
    ],
)
def test_the_epsilon_of_a_statement_is_that_of_the_worst_pair_with_its_slack(guarantee, epsilon):
    assert statement(guarantee=guarantee, slack=0.25).epsilon == epsilon


def test_a_composed_statement_adds_what_is_lost_and_merges_what_is_said():
    first = statement(
        slack=0.25,
        exposed=("letter case", "row order"),
        assumptions=("the vectors are public",),
        mechanism="TEM",
        software="dptext 0.1",
        release_id="a",
        data_sha256="0" * 64,
        parameters={"beta": 0.1},
    )
    second = statement(
        guarantee=PureDP(2.0),
        slack=0.5,
        exposed=("row order", "punctuation"),
        assumptions=("the metric is a metric",),
        mechanism="Madlib",
        software="dptext 0.1",
        release_id="b",
        seeded=True,
        trust=Trust.CENTRAL,
        condition="two words of one language",
    )
    total = first.compose(second)
    assert total.guarantee == PureDP(3.5)
    assert total.slack == 0.75
    assert total.epsilon == first.epsilon + second.epsilon
    assert total.exposed == ("letter case", "row order", "punctuation")
    assert total.assumptions == ("the vectors are public", "the metric is a metric")
    assert total.seeded
    assert total.trust is Trust.CENTRAL
    assert total.mechanism == "TEM + Madlib"
    assert "any two words" in total.neighbours
    assert "two words of one language" in total.neighbours
    assert total.software == "dptext 0.1"
    assert total.data_sha256 is None
    assert total.release_id not in ("a", "b", None)
    FOLLOWS_SCHEMA.validate(json.loads(total.to_json()))


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        ({}, {}, None),
        ({"claimed_epsilon": 0.25}, {"claimed_epsilon": 0.5}, 0.75),
        ({"claimed_epsilon": 0.25}, {}, 1.75),
        ({"claimed_epsilon": 0.25}, {"guarantee": NoGuarantee("empirical")}, math.inf),
    ],
)
def test_a_composed_statement_says_what_papers_would_print_for_the_whole(first, second, total):
    assert statement(**first).compose(statement(**second)).claimed_epsilon == total
    assert statement(**second).compose(statement(**first)).claimed_epsilon == total


@pytest.mark.slow
@given(statements, statements)
def test_a_composed_statement_never_promises_more_than_its_parts(first, second):
    second = dataclasses.replace(second, unit=first.unit, relation=first.relation)
    try:
        total = first.compose(second)
    except RefusedError:
        return
    assert total.epsilon >= max(first.epsilon, second.epsilon) or isinstance(total.guarantee, MetricDP)
    assert total.condition.narrows(first.condition, total.unit)
    assert total.condition.narrows(second.condition, total.unit)
    assert set(first.exposed + second.exposed) == set(total.exposed)
    assert set(first.assumptions + second.assumptions) == set(total.assumptions)
    assert total.seeded == (first.seeded or second.seeded)
