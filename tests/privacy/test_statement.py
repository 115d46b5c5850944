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
    LevelIsSent,
    OfLevel,
    OneGroup,
    SameLayout,
    SameSentenceCount,
    Stated,
    TextsOfOne,
    WordsChanged,
)
from dptext.privacy.statement import SCHEMA_VERSION, PrivacyStatement, new_release_id

SCHEMA = json.loads((importlib.resources.files("dptext.privacy") / "statement.schema.json").read_text("utf-8"))
FOLLOWS_SCHEMA = jsonschema.Draft202012Validator(SCHEMA)

ONE_OF_EACH_KIND = [
    PureDP(1.5),
    PureDP(math.inf),
    ApproxDP(2.5, 1e-6),
    ApproxDP(math.inf, 0.5),
    ZCDP(0.25),
    MetricDP(4.5, "euclidean", 8.0),
    MetricDP(4.5, "euclidean"),
    MetricDP(4.5, "euclidean", math.inf),
    MetricDP(4.5, "euclidean", 8.0, "sha256 of the vectors"),
    NoGuarantee("the noise is one-sided"),
]


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


def plain(**changes):
    """A statement as JSON data, for spoiling."""
    return json.loads(statement(**changes).to_json())


def reading(data):
    return PrivacyStatement.from_json(json.dumps(data))


amounts = st.floats(min_value=0, allow_nan=False)
shares = st.floats(min_value=0, max_value=1)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
requirements = st.one_of(
    st.sampled_from([SameLayout(), SameSentenceCount(), LevelIsSent(), EncoderStays()]),
    st.builds(OneGroup, words),
    st.builds(WordsChanged, st.integers(1, 9)),
    st.builds(TextsOfOne, st.integers(1, 9)),
    st.builds(OfLevel, words, st.sampled_from(["level", "declaration", "device"])),
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
def test_a_statement_survives_the_way_to_json_and_back(original):
    assert PrivacyStatement.from_json(original.to_json()) == original


@given(statements)
def test_every_written_statement_follows_the_schema(original):
    FOLLOWS_SCHEMA.validate(json.loads(original.to_json()))


@pytest.mark.parametrize("guarantee", ONE_OF_EACH_KIND, ids=repr)
def test_every_kind_survives_json_and_follows_the_schema(guarantee):
    original = statement(guarantee=guarantee)
    FOLLOWS_SCHEMA.validate(json.loads(original.to_json()))
    assert PrivacyStatement.from_json(original.to_json()) == original


def test_infinities_are_spelled_out_because_json_has_none():
    text = statement(guarantee=MetricDP(math.inf, "euclidean", math.inf), claimed_epsilon=math.inf).to_json()
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert data["guarantee"]["epsilon"] == data["guarantee"]["max_distance"] == "infinity"
    assert data["claimed_epsilon"] == "infinity"


def test_an_infinite_parameter_is_refused_or_survives_json():
    try:
        original = statement(parameters={"threshold": math.inf})
    except ParameterError:
        return
    FOLLOWS_SCHEMA.validate(json.loads(original.to_json()))
    assert PrivacyStatement.from_json(original.to_json()) == original


@pytest.mark.parametrize(
    "changes",
    [
        {"mechanism": "infinity"},
        {"condition": "infinity"},
        {"release_id": "infinity"},
        {"guarantee": NoGuarantee("infinity")},
        {"guarantee": MetricDP(1.0, "infinity", 2.0)},
        {"guarantee": MetricDP(1.0, "euclidean", 2.0, "infinity")},
        {"exposed": ("infinity",)},
        {"parameters": {"infinity": 1.0}},
    ],
    ids=repr,
)
def test_the_word_infinity_is_a_word_where_words_stand(changes):
    original = statement(**changes)
    assert PrivacyStatement.from_json(original.to_json()) == original


def test_a_parameter_that_is_the_word_infinity_is_refused_or_stays_a_word():
    try:
        original = statement(parameters={"norm": "infinity"})
    except ParameterError:
        return
    assert PrivacyStatement.from_json(original.to_json()) == original


def test_the_schema_names_the_fields_and_the_version_that_are_written():
    data = plain()
    assert set(SCHEMA["properties"]) == set(SCHEMA["required"]) == set(data)
    assert data["schema"] == SCHEMA_VERSION == SCHEMA["properties"]["schema"]["const"]
    assert SCHEMA["properties"]["unit"]["enum"] == [str(unit) for unit in Unit]
    assert SCHEMA["properties"]["relation"]["enum"] == [str(relation) for relation in Relation]
    assert SCHEMA["properties"]["trust"]["enum"] == [str(trust) for trust in Trust]


def test_other_alphabets_stay_readable_in_the_file():
    assert "Wörter, 单词" in statement(condition="Wörter, 单词").to_json()


# -- reading strictly -----------------------------------------------------------------------------------------


def assert_refused(text, *names):
    """A DataError on one line that holds each of the names."""
    with pytest.raises(DataError) as caught:
        PrivacyStatement.from_json(text)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    for name in names:
        assert name in message
    assert caught.value.__cause__ is None
    return message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "epsilon: 1",
        "{",
        statement().to_json()[:-20],
        "[" * 100_000,
        '{"schema": ' + "1" * 5000 + "}",
    ],
    ids=["empty", "yaml", "brace", "cut", "deep", "long number"],
)
def test_what_is_no_json_is_refused(text):
    assert_refused(text, "JSON")


@pytest.mark.parametrize("text", ["[]", "[1]", "null", "3", '"pure"', "true"])
def test_json_that_is_no_object_is_refused(text):
    assert_refused(text, "object")


@pytest.mark.parametrize("version", [0, 1, 3, "2", None, True, [1], 2.0])
def test_another_schema_version_is_refused(version):
    assert_refused(json.dumps(plain() | {"schema": version}), "schema version 2")


def test_a_missing_schema_version_is_refused():
    data = plain()
    del data["schema"]
    assert_refused(json.dumps(data), "schema version 2")


def test_a_missing_field_is_refused_by_name():
    for name in [name for name in SCHEMA["required"] if name != "schema"]:
        data = plain()
        del data[name]
        assert_refused(json.dumps(data), name)


def test_an_unknown_field_is_refused_by_name():
    assert_refused(json.dumps(plain() | {"epsilon_total": 1.0}), "epsilon_total")


WRONG_TYPES = [
    *((name, 5) for name in ("unit", "relation", "condition", "trust", "mechanism")),
    *((name, 5) for name in ("data_sha256", "release_id", "supersedes", "software")),
    *((name, None) for name in ("guarantee", "unit", "relation", "condition", "trust", "mechanism", "slack")),
    *((name, None) for name in ("parameters", "assumptions", "exposed", "seeded")),
    ("guarantee", []),
    ("guarantee", "pure"),
    ("parameters", []),
    ("assumptions", "one"),
    ("exposed", {"a": "b"}),
    ("slack", "0"),
    ("slack", True),
    ("slack", "infinity"),
    ("claimed_epsilon", []),
    ("claimed_epsilon", True),
    ("seeded", 1),
    ("seeded", "no"),
]


def test_a_field_of_the_wrong_type_is_refused_by_name():
    for name, value in WRONG_TYPES:
        assert_refused(json.dumps(plain() | {name: value}), name)


WRONG_VALUES = [
    ("slack", -1.0),
    ("claimed_epsilon", -1.0),
    ("claimed_epsilon", "three"),
    ("data_sha256", "abc"),
    ("data_sha256", "A" * 64),
    ("data_sha256", "a" * 64 + "\n"),
    ("assumptions", [5]),
    ("exposed", ["letter case", None]),
    ("parameters", {"beta": [0.1]}),
    ("parameters", {"beta": {"of": 1}}),
]


def test_a_field_with_a_wrong_value_is_refused_by_name():
    for name, value in WRONG_VALUES:
        assert_refused(json.dumps(plain() | {name: value}), name)


@pytest.mark.parametrize("name", ["unit", "relation", "trust"])
@pytest.mark.parametrize("value", ["colour", "Word"])
def test_a_choice_that_does_not_exist_is_refused_by_name(name, value):
    assert_refused(json.dumps(plain() | {name: value}), name)


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("name", ["slack", "claimed_epsilon"])
def test_literals_that_json_does_not_have_are_refused(literal, name):
    text = re.sub(rf'"{name}": [^,]*', f'"{name}": {literal}', statement().to_json())
    assert literal in text
    assert_refused(text)


@pytest.mark.parametrize(
    ("guarantee", "name"),
    [
        ({"kind": "renyi", "epsilon": 1.0}, "kind"),
        ({"kind": "pure"}, "guarantee"),
        ({"kind": "pure", "epsilon": -1.0}, "epsilon"),
        ({"kind": "pure", "epsilon": "1"}, "epsilon"),
        ({"kind": "approximate", "epsilon": 1.0, "delta": 2.0}, "delta"),
        ({"kind": "approximate", "epsilon": 1.0, "delta": "infinity"}, "delta"),
        ({"kind": "metric", "epsilon": 1.0, "metric": "l1", "max_distance": "far", "space": None}, "max_distance"),
        ({"kind": "metric", "epsilon": 1.0, "metric": "l1", "max_distance": None, "space": 5}, "space"),
    ],
)
def test_a_broken_guarantee_is_refused_by_name(guarantee, name):
    assert_refused(json.dumps(plain() | {"guarantee": guarantee}), name)


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("guarantee", 1.5),
        ("unit", "person"),
        ("slack", math.nan),
        ("slack", -1e-9),
        ("claimed_epsilon", -1.0),
        ("data_sha256", "abc"),
        ("parameters", {"beta": [0.1]}),
        ("assumptions", (1,)),
    ],
)
def test_what_could_not_be_written_is_refused_at_birth_by_name(name, value):
    with pytest.raises(ParameterError, match=name):
        statement(**{name: value})


def test_choices_given_as_plain_strings_mean_the_same():
    assert statement(unit="word", relation="substitution", trust="local").explain() == statement().explain()
    assert statement(unit="word", relation="add/remove").unit is Unit.WORD
    statement().compose(statement(unit="word", relation="substitution"))


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


def test_lists_given_to_a_statement_are_copied():
    exposed, assumptions = ["letter case"], ["the vectors are public"]
    output = statement(exposed=exposed, assumptions=assumptions)
    exposed.clear()
    assumptions.clear()
    assert (output.exposed, output.assumptions) == (("letter case",), ("the vectors are public",))


@given(statements)
def test_equal_statements_have_equal_hashes(original):
    same = PrivacyStatement.from_json(original.to_json())
    assert hash(same) == hash(original)
    assert {original: "found"}[same] == "found"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"parameters": {"a": 1, "b": 2}}, {"parameters": {"b": 2, "a": 1}}),
        ({"guarantee": PureDP(1)}, {"guarantee": PureDP(1.0)}),
        ({"slack": 0}, {"slack": 0.0}),
        ({"slack": 0.0}, {"slack": -0.0}),
        ({"claimed_epsilon": 2}, {"claimed_epsilon": 2.0}),
    ],
    ids=repr,
)
def test_statements_that_are_equal_but_spelled_otherwise_have_equal_hashes(one, two):
    first, second = statement(**one), statement(**two)
    assert first == second
    assert hash(first) == hash(second)


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("unit", Unit.DOCUMENT),
        ("unit", Unit.USER),
        ("unit", Unit.EXAMPLE),
        ("relation", Relation.ADD_REMOVE),
    ],
)
def test_statements_of_another_unit_or_relation_do_not_compose(name, value):
    for pair in ((statement(), statement(**{name: value})), (statement(**{name: value}), statement())):
        with pytest.raises(RefusedError, match=f"one {name}.*convert"):
            pair[0].compose(pair[1])


def test_guarantees_that_do_not_add_do_not_compose_as_statements_either():
    with pytest.raises(RefusedError, match="approx_from_zcdp"):
        statement(guarantee=ZCDP(1.0)).compose(statement(guarantee=ApproxDP(1.0, 1e-6)))


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


def test_metric_statements_over_other_vectors_count_with_their_worst_pairs():
    first = statement(guarantee=MetricDP(1.0, "euclidean", 2.0, "vectors of 2014"))
    second = statement(guarantee=MetricDP(1.0, "euclidean", 3.0, "vectors of 2024"))
    assert first.compose(first).guarantee == MetricDP(2.0, "euclidean", 2.0, "vectors of 2014")
    assert first.compose(second).guarantee == PureDP(5.0)


def test_a_part_without_a_guarantee_leaves_the_whole_without_one():
    total = statement().compose(statement(guarantee=NoGuarantee("empirical")))
    assert total.guarantee == NoGuarantee("empirical")
    assert total.epsilon == math.inf


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


def test_a_condition_that_was_edited_in_words_alone_is_refused():
    data = plain(condition=Condition(requirements=(SameLayout(),)))
    assert data["condition"]["in_words"] != "any two texts"
    data["condition"]["in_words"] = "any two texts"
    assert_refused(json.dumps(data), "edited")


def test_a_name_that_is_there_twice_is_refused():
    """People read the first one, parsers the last."""
    text = statement(guarantee=PureDP(9.0)).to_json()
    twice = text.replace('"guarantee": {', '"guarantee": {"kind": "pure", "epsilon": 0.1},\n  "guarantee": {', 1)
    with pytest.raises(DataError, match="each thing once"):
        PrivacyStatement.from_json(twice)
