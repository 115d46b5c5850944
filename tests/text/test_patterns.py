"""Patterns find addresses, numbers and dates, nothing else, and in linear time."""

import pytest

from dptext.errors import ParameterError
from dptext.release.redaction import Redaction
from dptext.text.patterns import KINDS, check_kinds, find

FOUND = [  # a text with the expected finds in brackets, and their kind
    ("write to ⟦me.too+x@mail.example.co.uk⟧.", "email"),
    ("see ⟦https://a.example/b?c=d⟧, ⟦www.example.org⟧, or ⟦example.com/about⟧.", "url"),
    ("from ⟦192.168.0.1⟧ and ⟦2001:db8::ff00:42:8329⟧.", "ip"),
    ("card ⟦4111 1111 1111 1111⟧, ⟦378282246310005⟧ or ⟦5555-5555-5555-4444⟧", "card"),
    ("on ⟦2021-03-05⟧, ⟦05.03.2021⟧, ⟦3/5/21⟧, ⟦3 May 2021⟧ and ⟦March 5th, 2021⟧", "date"),
    ("call ⟦+44 20 7946 0958⟧, ⟦(212) 555-0187⟧, ⟦212-555-0187 x12⟧, ⟦020 7946 0958⟧", "phone"),
    ("SSN ⟦478-05-1120⟧, pay ⟦GB82 WEST 1234 5698 7654 32⟧, case ⟦123456789⟧", "number"),
    ("call ⟦＋４４ ２０ ７９４６ ０９５８⟧ or ⟦+٤٤ ٢٠ ٧٩٤٦ ٠٩٥٨⟧", "phone"),
]
NOTHING = [
    "It cost 12,345.67 dollars in 1999, and 50,000 came in 2021.",
    "Chapter 3.4.5 of version 1.2.3, on pages 200-2010, at 12:30:45.",
    "std::vector<int> a::b, x = y[0:5:2], #hashtag, 10:15",
    "He scored 21-14, then 7-6 7-6 and 100-99. I may see 5 people.",
    "999.999.999.999 and 300.1.1.1, 13/13/2020, 2020-02-30",
    "At 10 km/h, 3.14159, 6.022e23, -273.15, 0.000001, 1e-6, Mr. Smith",
]


def test_forms_are_found_whole():
    for marked, kind in FOUND:
        parts = marked.replace("⟦", "\0").replace("⟧", "\0").split("\0")
        text, expected = "".join(parts), parts[1::2]
        assert [(text[start:end], result) for start, end, result in Redaction().spans(text)] == [
            (part, kind) for part in expected
        ]


def test_other_text_is_left():
    for text in NOTHING:
        assert find(text) == []


def test_a_number_with_a_wrong_check_digit_is_no_card():
    assert find("4111 1111 1111 1112", ["card"]) == []


def test_unknown_kinds_are_refused():
    for kinds in ("email", ["name"]):
        with pytest.raises(ParameterError, match="kinds"):
            check_kinds(kinds)


def test_a_long_text_is_searched():
    """A pattern that takes quadratic time would not come back."""
    for unit in ["1", "1 ", "1-", "a.", "a@", "+1", "1:", "A1", "www.", "may 1 ", "(0", "2020-"]:
        text = unit * (200_000 // len(unit))
        assert all(start < end <= len(text) for start, end, _ in find(text))


def test_kinds_are_found_alone():
    text = "http://example.org/?to=ann@example.org on 3 May 2021"
    assert [text[start:end] for start, end, _ in find(text, ["email"])] == ["ann@example.org"]
    assert check_kinds(reversed(KINDS)) == KINDS
