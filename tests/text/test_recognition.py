"""What patterns find: each form that they know, nothing in what only looks like one, and that in linear time."""

import random
import time

import pytest

from dptext.errors import ParameterError
from dptext.text.recognition import KINDS, Found, recognised

FOUND = [  # a text with what is to be found between brackets, and the kind
    ("write to ⟦me.too+x@mail.example.co.uk⟧.", "email"),
    ("write to ⟦ann [at] example [dot] com⟧ today", "email"),
    ("see ⟦https://a.example/b?c=d⟧, or ⟦www.example.org⟧.", "url"),
    ("look at ⟦example.com/about⟧.", "url"),
    ("thanks, ⟦@ann_lee⟧!", "handle"),
    ("pay to ⟦DE89 3704 0044 0532 0130 00⟧ BY NOON", "iban"),
    ("pay to ⟦GB82WEST12345698765432⟧.", "iban"),
    ("card ⟦4111 1111 1111 1111⟧, ⟦378282246310005⟧ or ⟦5555-5555-5555-4444⟧", "card"),
    ("from ⟦192.168.0.1⟧, ⟦2001:db8::ff00:42:8329⟧ and ⟦00:1B:44:11:3a:b7⟧.", "ip"),
    ("on ⟦2021-03-05⟧, ⟦05.03.2021⟧, ⟦3/5/21⟧ and ⟦2021-03-05T10:11:12Z⟧.", "date"),
    (
        "on ⟦3 May 2021⟧, ⟦March 5th, 2021⟧, ⟦5. März 2021⟧, ⟦1er janvier 2020⟧, ⟦5 de mayo de 2021⟧, ⟦2021年3月5日⟧",
        "date",
    ),
    ("born on ⟦March 5⟧ or on the ⟦5th of March⟧ or ⟦May 5th⟧ or ⟦12-Jan-99⟧", "date"),
    ("call ⟦+44 20 7946 0958⟧ or ⟦+1 (212) 555-0187⟧ or ⟦0049 30 1234567⟧", "phone"),
    ("call ⟦(212) 555-0187⟧, ⟦212-555-0187 x12⟧, ⟦212.555.0187⟧", "phone"),
    ("call ⟦020 7946 0958⟧, ⟦06 12 34 56 78⟧, ⟦030/1234567⟧, ⟦0612345678⟧", "phone"),
    ("my number: phone ⟦555-0187⟧", "phone"),
    ("SSN ⟦078-05-1120⟧", "id"),
    ("NI ⟦AB 12 34 56 C⟧, SIN ⟦130 692 544⟧, CPF ⟦529.982.247-25⟧, DNI ⟦12345678Z⟧", "id"),
    ("CF ⟦RSSMRA85T10A562S⟧ and NIR ⟦2 55 08 14 168 025 38⟧", "id"),
    ("passport ⟦C01X00T47⟧, account no. ⟦12-3456⟧, case ⟦123456789⟧", "id"),
    ("⟦123e4567-e89b-12d3-a456-426614174000⟧", "id"),
    ("at ⟦12 Elm Street⟧, ⟦221B Baker St.⟧, or ⟦1600 N. Pennsylvania Avenue, Apt. 5⟧", "address"),
    ("in der ⟦Goethestraße 12a⟧ und ⟦Alter Weg 3⟧", "address"),
    ("au ⟦12, rue de la Paix⟧, en ⟦Calle de Alcalá 45⟧, a ⟦Via Roma, 3⟧", "address"),
    ("⟦P.O. Box 123⟧", "address"),
    ("at ⟦51.50335, -0.12764⟧", "address"),
    ("⟦SW1A 2AA⟧, ⟦K1A 0B1⟧, ⟦CA 90210⟧, ⟦90210-1234⟧ and ⟦D-10115⟧", "postcode"),
    ("Dr. ⟦Ann Lee⟧ and Mrs ⟦O'Neil-Smith⟧ met Prof. Dr. ⟦J. van der Berg⟧.", "name"),
    ("Mr. ⟦Smith⟧'s dog. He barks at Herr ⟦Müller⟧ and Mme ⟦de la Tour⟧", "name"),
    ("Hello, my name is ⟦Ann Lee⟧ and my name is ⟦ann⟧ again", "name"),
    (
        "ich heiße ⟦Jürgen Groß⟧, je m'appelle ⟦Zoé⟧, me llamo ⟦Íñigo Montoya⟧, меня зовут ⟦Иван Петров⟧, 我叫⟦王小明⟧",
        "name",
    ),
    ("Name: ⟦Ann Lee⟧", "name"),
    # other digits, letters and spaces
    ("call ⟦＋４４ ２０ ７９４６ ０９５８⟧", "phone"),
    ("call ⟦+٤٤ ٢٠ ٧٩٤٦ ٠٩٥٨⟧", "phone"),
    ("born ⟦05‑03‑2021⟧", "date"),
    ("Mr.\N{NO-BREAK SPACE}⟦Smith⟧", "name"),
]
NOTHING = [
    "It cost 12,345.67 dollars in 1999, and 50,000 came in 2021.",
    "Chapter 3.4.5 of version 1.2.3, on pages 200-2010, at 12:30:45.",
    "A ratio of 3/4, 100% of 12 of them, 1984-1985, route 66, 3 Star hotel, 24/7 service.",
    "std::vector<int> a::b, x = y[0:5:2], #hashtag, 10:15",
    "My name is on the list, and my name is not spelled right. The doctor may see 5 people.",
    "I walked 5 miles down the road to a place on Main Street in May.",
    "card 4111 1111 1111 1112 and DE89 3704 0044 0532 0130 01",
    "He scored 21-14, then 7-6 7-6 and 100-99.",
    "999.999.999.999 and 300.1.1.1, 13/13/2020, 2020-02-30, 32 May",
    "Dr. The I. Mr. is short for mister. Miss You was a song.",
    "At 10 km/h, 3.14159, 6.022e23, -273.15, 0.000001, 1e-6",
    "",
]


@pytest.mark.parametrize(("marked", "kind"), FOUND)
def test_forms_are_found_whole(marked, kind):
    pieces = marked.replace("⟦", "\0").replace("⟧", "\0").split("\0")
    text, place, expected = "".join(pieces), 0, []
    for index, piece in enumerate(pieces):
        if index % 2:
            expected.append(Found(place, place + len(piece), kind))
        place += len(piece)
    assert expected
    assert recognised(text) == expected
    assert recognised(text, [kind]) == expected


@pytest.mark.parametrize("text", NOTHING)
def test_what_only_looks_like_one_is_left(text):
    assert recognised(text) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("http://example.org/?to=ann@example.org", "url"),
        ("DE89370400440532013000", "iban"),
        ("4111111111111111", "card"),
        ("20210305", "date"),
        ("0612345678", "phone"),
    ],
)
def test_of_what_overlaps_the_longest_or_most_specific_is_taken(text, kind):
    assert recognised(text) == [Found(0, len(text), kind)]


def test_only_the_kinds_asked_for_are_looked_for():
    text = "http://example.org/?to=ann@example.org on 3 May 2021"
    assert [text[start:end] for start, end, _ in recognised(text, ["email"])] == ["ann@example.org"]
    assert recognised(text, []) == []


@pytest.mark.parametrize("kinds", ["email", ["e-mail"], [None]])
def test_kinds_that_there_are_not_are_refused(kinds):
    with pytest.raises(ParameterError, match="kind"):
        recognised("a", kinds)


def test_pieces_of_any_text_are_in_order_within_it_and_apart():
    draws = random.Random(0)
    words = [
        *"0123456789+-./:@#()[]' \n",
        "Dr. ",
        "Ann",
        " Street",
        "my name is ",
        "a@x.org",
        "DE89",
        "٤",
        "é",
        "\u0301",
    ]
    words += ["May", "2021", "www.", "١٢", "王", "我叫", "\ud800", "\x00", "12 Elm", "call ", "00:1B:"]
    for _ in range(400):
        text = "".join(draws.choices(words, k=draws.randrange(60)))
        found = recognised(text)
        ends = [0, *(each.end for each in found)]
        assert all(end <= each.start < each.end <= len(text) for end, each in zip(ends, found, strict=False))
        assert {each.kind for each in found} <= set(KINDS)


LONG = 50_000
HOSTILE = [  # what a text begins with, what it repeats, what it ends with
    *(("", each, "!") for each in (*"aA109+-.:@('é王٤/", "\u0301")),
    *(
        ("", each, "!")
        for each in ("a ", "A ", "1 ", "1-", "0 ", "1.", "12:", "a@", "a.", "(1", "+1", "+1 ", "A1", "1a", "1/")
    ),
    *(
        ("", each, "")
        for each in ("a [at] ", "a[at]b.", "Dr. ", "Dr. A. ", "Mr. A ", "Mr. Aa ", "Mr. Aa-", "Mr. D'", "name:")
    ),
    *(("my name is ", each, "") for each in ("A. ", "Aa ", "van ", "a", "Aa'a", "de la ")),
    *(
        ("", each, "")
        for each in (
            "my name is ",
            "ich heiße Aa ",
            "12 Elm ",
            "12 Elm St. ",
            "1 1st ",
            "12 N. ",
            "1 rue ",
            "1 rue de ",
        )
    ),
    *(
        ("", each, "")
        for each in ("1 rue l'", "1, rue Aa ", "Calle Aa ", "Via de ", "Aastraße ", "Aa-", "A-Straße ", "P.O. Box ")
    ),
    *(
        ("", each, "")
        for each in ("DE89 ", "DE89", "de89 3704 ", "AA11", "4111 ", "4111-", "3782 822463 ", "4111111111111111 ")
    ),
    *(("", each, "") for each in ("::", "a:", "1:2::", "00:1B:", "00-1B-", "1.1.1.", "255.255.255.255.", "1.1.1.1 ")),
    *(
        ("", each, "")
        for each in ("1 May ", "May 1 ", "May ", "May 1, 2", "1/1/", "01-01-", "2021-01-", "20210101", "1. ", "1 of ")
    ),
    *(
        ("", each, "")
        for each in (
            "call ",
            "call me at ",
            "call: ",
            "phone1",
            "tel. 1 ",
            "(0",
            "(01) ",
            "01 ",
            "212-",
            "212 555 ",
            "+(1) ",
        )
    ),
    *(
        ("", each, "")
        for each in (
            "id ",
            "id a-",
            "id a1-",
            "ref:",
            "AAAAAA",
            "ABCDEF12",
            "123-45-",
            "046 454 ",
            "1 23 45 ",
            "AB 12 ",
        )
    ),
    *(
        ("", each, "")
        for each in (
            "www.",
            "www.a.",
            "a.com.",
            "a.com/",
            "a-",
            "aa.aa.",
            "http://",
            "1.0000",
            "51.5033, ",
            "CA ",
            "SW1A ",
        )
    ),
    *(("", each, "") for each in ("我叫", "私の名前は王", "2021年", "我的名字是王", "姓名:")),
]
MOST = 3.0  # seconds; the slowest takes an eighth of one, what is quadratic many times that


@pytest.mark.slow
def test_no_text_takes_much_longer_than_its_length_says():
    too_long = []
    for begin, repeated, end in HOSTILE:
        text = begin + repeated * (LONG // len(repeated)) + end
        start = time.process_time()
        recognised(text)
        if time.process_time() - start > MOST:
            too_long.append((begin, repeated, end))
    assert not too_long
