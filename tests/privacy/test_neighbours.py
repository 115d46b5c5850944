"""Conditions: redundant requirements, their order, and that no step of a statement widens one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext.errors import RefusedError
from dptext.privacy.guarantee import PureDP, Relation, Trust, Unit
from dptext.privacy.neighbours import (
    ANY_TWO,
    Condition,
    EncoderStays,
    OfLevel,
    OneGroup,
    SameLayout,
    Stated,
    TextsOfOne,
    WordsChanged,
)
from dptext.privacy.restating import substitution_guarantee
from dptext.privacy.statement import release_statement

REQUIREMENTS = [
    SameLayout(),
    OneGroup("2 groups"),
    OneGroup("3 groups"),
    WordsChanged(1),
    WordsChanged(2),
    TextsOfOne(2),
    TextsOfOne(3),
    OfLevel("strict"),
    EncoderStays(),
    Stated("two texts of one language"),
]
conditions = st.builds(
    Condition,
    requirements=st.lists(st.sampled_from(REQUIREMENTS), max_size=5).map(tuple),
    about=st.sampled_from([None, "vectors", "collections", "pairs"]),
    note=st.sampled_from([None, "n"]),
)
whom = st.tuples(st.sampled_from(Unit), st.sampled_from(Relation))


def statement(condition=ANY_TWO, **changes):
    fields = {"unit": Unit.DOCUMENT, "relation": Relation.SUBSTITUTION, "trust": Trust.LOCAL, "mechanism": "made up"}
    return release_statement(guarantee=PureDP(1.0), condition=condition, **fields | changes)


def both_hold(first, second):
    return Condition(requirements=(first, second))


@given(st.sampled_from(Unit), conditions, conditions, conditions)
def test_narrowing_is_an_order_with_a_meet(unit, one, two, three):
    def narrows(tight, wide):
        return tight.narrows(wide, unit)

    assert narrows(one, one)
    meet = one.meet(two, unit)
    assert narrows(meet, one)
    assert narrows(meet, two)
    assert narrows(meet, three) or not (narrows(one, three) or narrows(two, three))
    if narrows(one, two) and narrows(two, three):
        assert narrows(one, three)
    if narrows(one, two) and narrows(two, one):
        assert one.requirements == two.requirements


@given(conditions)
def test_a_condition_survives_its_data(condition):
    assert Condition.from_dict(condition.to_dict()) == condition


@given(conditions, whom)
def test_every_requirement_is_said(condition, whom):
    plain = Condition(note=condition.note).describe(*whom)
    text = condition.describe(*whom)
    assert text
    if condition.requirements:
        assert text != plain or whom[0] is Unit.WORD  # two words at one place: the layout is the same by itself


@pytest.mark.parametrize(
    ("tight", "wide"),
    [(WordsChanged(1), SameLayout()), (WordsChanged(1), WordsChanged(2)), (TextsOfOne(2), TextsOfOne(3))],
)
def test_what_follows_is_left_out(tight, wide):
    assert both_hold(wide, tight).requirements == (tight,)
    assert not Condition(requirements=(wide,)).narrows(Condition(requirements=(tight,)), Unit.DOCUMENT)


def test_a_promise_to_some_only_is_known_as_one():
    assert ANY_TWO.for_some_only is None
    assert "one group" in Condition(requirements=(OneGroup("p"),)).for_some_only
    assert "one level" in Condition(requirements=(OfLevel("strict"),)).for_some_only
    assert "some words" in Condition(requirements=(WordsChanged(2),)).for_some_only


@pytest.mark.parametrize("required", [(), (SameLayout(),)])
def test_a_promise_for_one_word_never_becomes_one_for_texts_that_differ_in_several(required):
    one_word = statement(Condition(requirements=required), unit=Unit.WORD)
    with pytest.raises(RefusedError, match="the condition of a statement can only"):
        one_word.replace(condition=one_word.condition.and_(WordsChanged(2)))
    three = statement(Condition(requirements=(WordsChanged(3),)), unit=Unit.WORD)
    for both in (one_word.compose(three), three.compose(one_word)):
        assert both.condition.requirements == (WordsChanged(1),)
        assert "differ in one word" in both.neighbours


@pytest.mark.parametrize(
    ("unit", "relation", "before", "after"),
    [
        (Unit.EXAMPLE, Relation.ADD_REMOVE, "pairs", None),
        (Unit.USER, Relation.SUBSTITUTION, None, "collections"),
        (Unit.DOCUMENT, Relation.SUBSTITUTION, None, "vectors"),
    ],
)
def test_what_the_inputs_are_never_becomes_more_than_they_were(unit, relation, before, after):
    output = statement(Condition(about=before), unit=unit, relation=relation)
    with pytest.raises(RefusedError, match="the condition of a statement can only"):
        output.replace(condition=Condition(about=after))
    assert output.compose(statement(Condition(about=after), unit=unit, relation=relation)).condition.about == before


@pytest.mark.parametrize(
    ("before", "change"), [({"trust": Trust.CENTRAL}, {"trust": Trust.LOCAL}), ({"seeded": True}, {"seeded": False})]
)
def test_replace_takes_no_trust_and_no_seed_back(before, change):
    output = statement(**before)
    with pytest.raises(RefusedError):
        output.replace(**change)
    assert output.replace(**before) == output


def test_another_guarantee_leaves_out_what_followed_from_the_one_before():
    exact = {"epsilon_under_substitution": 2.1, "delta_under_substitution": 1e-6}
    output = statement(relation=Relation.ADD_REMOVE, parameters={"sigma": 3.0, **exact})
    assert output.replace(mechanism="other").parameters == output.parameters
    assert output.replace(guarantee=PureDP(9.0)).parameters == {"sigma": 3.0}
    assert substitution_guarantee(output.replace(guarantee=PureDP(9.0))) == PureDP(18.0)


def test_what_copies_with_changes_does_what_replace_does():
    """``copy.replace`` of Python 3.13 calls this."""
    with pytest.raises(RefusedError, match="without a proof"):
        statement().__replace__(unit=Unit.USER)


@given(st.sampled_from(Unit), conditions, conditions)
def test_replace_tightens_or_refuses(unit, one, two):
    output = statement(one, unit=unit)
    if two.narrows(one, unit):
        assert output.replace(condition=two).condition == two
    else:
        with pytest.raises(RefusedError, match="the condition of a statement can only"):
            output.replace(condition=two)
