"""Prompts contain public text only; answers of every form are parsed into texts."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.synthesis.prompts import Request, proposal, texts_of, variation


def test_lines_without_a_value_are_left_out():
    _, prompt = proposal(Request({}, (), 3), 3)
    assert "How many: 3" in prompt
    for absent in ("label", "frequent", "Examples", "What they are"):
        assert absent not in prompt
    _, prompt = proposal(Request({"topic": "sports"}, ("game",), 3, ("One.",)), 3, about="news")
    for present in ("topic: sports", "game", '["One."]', "What they are: news"):
        assert present in prompt


def test_braces_in_values_are_kept():
    _, prompt = variation(["{count} {0} {x.y}"], Request({"{a}": "{b}"}, (), 1))
    assert '["{count} {0} {x.y}"]' in prompt
    assert "{a}: {b}" in prompt


def test_texts_are_found_in_answers_of_every_form():
    for answer, texts in [
        ('["One.", "Two."]', ["One.", "Two."]),
        ('{"texts": ["One.", "Two."]}', ["One.", "Two."]),
        ('Sure!\n```json\n["One.",\n "Two."]\n```\nAnything else?', ["One.", "Two."]),
        ('Sure: ["One.", "Two."] Done.', ["One.", "Two."]),
        ('<think>["No."]</think>["One."]', ["One."]),
        ('["One.", "Two', ["One."]),
        ('["One." "Two."]', ["One.", "Two."]),
        ('["One\nline."]', ["One\nline."]),
        ("1. One.\n2. Two.", ["One.", "Two."]),
        ('Here:\n\n1) "One."\n2) “Two.”', ["One.", "Two."]),
        ("- One,\n  and more.\n- Two.", ["One,\nand more.", "Two."]),
        ("Here they are:\nOne.\nTwo.", ["One.", "Two."]),
        ('One, [sic] "two".\nThree.', ['One, [sic] "two".', "Three."]),
        ("It's one.", ["It's one."]),
        ('"One."', ["One."]),
        ("One\x00 \ud800text.", ["One text."]),
    ]:
        assert texts_of(answer, 10) == texts


def test_other_answers_give_no_text():
    for garbage in ["", " \n", "[]", "{}", "[1, 2]", "[[[", '{"error": 3}', "[" * 9999]:
        assert texts_of(garbage, 10) == []


def test_texts_are_limited_and_cut_texts_dropped():
    assert texts_of('["One.", "Two."]', 1) == ["One."]
    assert texts_of("One.\nTwo.\nThr", 10, is_cut=True) == ["One.", "Two."]
    assert texts_of("1. One.\n2. Tw", 10, is_cut=True) == ["One."]
    assert texts_of("One", 10, is_cut=True) == ["One"]


@settings(max_examples=50)
@given(st.text() | st.text(alphabet='[]{}",:\\ \n1.-a`'))
def test_every_answer_is_parsed(answer):
    for text in texts_of(answer, 5):
        assert text.strip() == text != ""
        text.encode()


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("C",)))))
def test_json_lists_are_parsed_exactly(texts):
    assert texts_of(json.dumps(texts), 100) == [text.strip() for text in texts if text.strip()][:100]


def test_parsing_takes_linear_time():
    for hard in ["<think>" * 50_000, "```" * 100_000, "[ " * 100_000, '["' * 100_000, "1. " * 100_000]:
        texts_of(hard, 5)  # would take hours, if it took the square of its length
