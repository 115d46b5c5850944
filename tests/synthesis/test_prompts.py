"""List prompts contain public text only; strict parsing of answers into texts; near copies."""

import time
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.synthesis.prompts import NEAR_COPY, Request, list_prompt, near_copies, texts_of

# -- prompts ----------------------------------------------------------------------------------------------------------


def test_a_prompt_begins_a_list_and_leaves_out_lines_without_a_value():
    assert list_prompt(Request({}, (), 3)) == "Different short texts that people wrote\n\n-"
    request = Request({"topic": "sports", "stars": "5"}, ("game", "{0}"), 3, ("One\r\n- {x}\u2028text.", "Two."), "{a}")
    lines = [
        "{about}",
        "topic: sports; stars: 5 ({a})",
        "",
        "- One - {x} text.",
        "- Two.",
        "-",
    ]
    assert list_prompt(request, about="{about}").splitlines() == lines
    assert list_prompt(Request({}, ("game", "{0}"), 3)).splitlines()[1:] == ["Typical words: game, {0}", "", "-"]
    assert "\nonly described\n" in list_prompt(Request({}, (), 1, description="only described"))


def test_each_turn_continues_with_other_hints_and_examples():
    hints, public, earlier = (tuple(f"{name}{n}" for n in range(10, 25)) for name in ("hint", "Public ", "Own "))
    for turn, start in [(0, 10), (1, 20), (2, 15)]:
        line = list_prompt(Request({}, hints, 1), turn=turn).split("\n")[1]
        assert line.startswith(f"Typical words: hint{start}, ") and line.count(",") == 9
    for examples, written, expected in [
        (public, (), 8),
        (public[:3], earlier, 3),
        (public, earlier, 4),
        ((), earlier, 0),
    ]:
        prompts = [list_prompt(Request({}, (), 1, examples, written=written), turn=turn) for turn in range(3)]
        for prompt in prompts:
            lines = prompt.split("\n")[2:-1]
            assert (len(lines), len(set(lines)), sum("Public" in line for line in lines)) == (8, 8, expected)
        assert len(set(prompts)) == 3


# -- answers ----------------------------------------------------------------------------------------------------------


def test_each_line_is_a_text_without_marks_of_a_list():
    for answer, texts in [
        ("One.\nTwo.\r\n\n Three. ", ["One.", "Two.", "Three."]),
        (" One.\n- Two.\n* Three.\n• Four.", ["One.", "Two.", "Three.", "Four."]),
        ("1. One.\n2) Two.\n(3) Three.\n[4] Four.\n5: Five.", ["One.", "Two.", "Three.", "Four.", "Five."]),
        ("\"One.\"\n1. “Two.”\n«Three.»\n'Four.'", ["One.", "Two.", "Three.", "Four."]),
        ('[\n  "One.",\n  "Two."\n]', ["One.", "Two."]),
        ("Sure! Here are ten texts:\n\n- One.", ["One."]),
        ("<think>\nNo text.\n</think>\nOne.", ["One."]),
        ("One\x00\x1b \ud800text,\tand more.", ["One text, and more."]),
    ]:
        assert texts_of(answer, 10) == texts


NO_TEXTS = [
    *("", " \n", "-", "1.", "---", "…", "[]", "{", '{"texts": ["One."]}', '["One.", "Two."]', '["One.", "Tw'),
    *('"data": [', '"text": "One.",', '"count": 3', "```json", "# Texts", "<|im_end|>", "</s>", "<think>\nWell"),
    *("Sure! Here is one.", "Sure! Here are ten texts:", "Certainly, here's a list of reviews", "Of course!"),
    *("Here are ten texts:", "Here is one.", "Below are ten texts.", "These are some examples:", "Texts:"),
    *("I cannot write that.", "I’m sorry, but I can’t help with that.", "Sorry, I can't assist you with this."),
    *(
        "I cannot fulfill your request.",
        "I'm unable to write that.",
        "Unfortunately, I cannot help.",
        "I hope this helps!",
    ),
    *("I am unable to provide such content, as it may be harmful.", "As an AI language model, I do not eat."),
]
TEXTS = [
    *("sorry i could not come yesterday", "I'm sorry I missed this deal", "i can't help but love it"),
    *("I can't write about this place without crying", "i cannot create an account", "I am unable to create a PIN"),
    *("here is the thing.", "Here is where we ate every Sunday.", "Here are my two cents on the matter!"),
    *(
        "Absolutely, the best pizza in town.",
        "Okay. Not great.",
        "Okay here we go again.",
        "Of course I will come back.",
    ),
    *("#blessed to be here", "<3 this place", '"Great" and "bad"', '"Best pizza": a lie', "It's 10/10 :)", "-5 °C"),
    *("good - cheap - fast", "See [1] and {x}", "3.5 stars", "没有问题", "don't"),
]
"""Good texts that begin like a preface, a refusal or a mark."""


def test_json_prefaces_and_refusals_are_no_texts():
    for line in NO_TEXTS:
        assert texts_of(line, 5) == [], line
        assert texts_of(f"One.\n- {line}", 5) == ["One."], line
    for text in TEXTS:
        assert texts_of(f"{text}\n", 5) == texts_of(f"- {text}", 5) == [text]


def test_texts_are_limited_and_the_last_line_of_a_cut_answer_is_dropped():
    assert texts_of("Sure!\nOne.\nTwo.", 1) == ["One."]
    assert texts_of("One.\nTwo.\nThr", 10, is_cut=True) == ["One.", "Two."]
    assert texts_of("One", 10, is_cut=True) == []


@settings(max_examples=50)
@given(st.text() | st.text(alphabet='[]{}",:\\ \n1.-a`'))
def test_every_answer_is_parsed(answer):
    for text in texts_of(answer, 5):
        assert text.strip() == text != ""
        assert any(letter.isalnum() for letter in text)
        assert text.encode().decode().splitlines() == [text]


def test_parsing_takes_linear_time():
    sorry = "sorry, i cannot write" + " that" * 100_000 + "x"
    for hard in [
        "<think>" * 50_000,
        "```" * 100_000,
        '["' * 100_000,
        '"' * 200_000,
        "1. " * 100_000,
        "_" * 200_000,
        sorry,
    ]:
        texts_of(hard, 5)  # would take hours, if it took the square of its length


# -- near copies ------------------------------------------------------------------------------------------------------


def naive_near_copies(texts, others):
    """Compare every text with each earlier one that is no copy, and with all others."""

    def is_near(one, other):
        one, other = (set(pairwise(["", *text.split(), ""])) for text in (one, other))
        return len(one & other) / len(one | other) >= NEAR_COPY

    copies = set()
    for place, text in enumerate(texts):
        if any(is_near(text, texts[earlier]) for earlier in range(place) if earlier not in copies):
            copies.add(place)
    return copies | {place for place, text in enumerate(texts) if any(is_near(text, other) for other in others)}


WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=8).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=12), st.lists(WORDS, max_size=3))
def test_near_copies_are_those_of_all_comparisons(texts, others):
    assert near_copies(texts, others) == naive_near_copies(texts, others)


def test_near_copies_of_an_earlier_text_and_of_others():
    text = "a b c d e f g h i j k l m"
    one_word_of_thirteen, two_words = text.replace("g", "x"), text.replace("g", "x").replace("c", "y")
    assert near_copies([text, "Other words.", one_word_of_thirteen, two_words]) == {2}  # 12 / 16; 10 / 18
    assert near_copies(["Tea, please!", "TEA please", "please tea", "?!", "..."]) == {1, 4}
    assert near_copies([text, one_word_of_thirteen], [text]) == {0, 1}
    assert near_copies(["Other words."], ["other  WORDS"]) == {0}


def test_near_copies_of_many_texts_with_a_common_beginning_take_linear_time():
    texts = [f"i want to {place * 7919 % 20011} and {place * 104729 % 20011} please" for place in range(20_000)]
    start = time.process_time()
    assert near_copies(texts) == set()
    assert time.process_time() - start < 20  # 0.3 s; comparing all of them takes minutes
