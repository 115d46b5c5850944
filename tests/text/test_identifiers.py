"""Columns that look like identifiers: each rule on both of its sides, for every format, without a value in a reason."""

import datetime
import random
import string
from pathlib import Path

import pytest

from dptext.errors import DataError
from dptext.text.identifiers import Column, columns_of, look_at
from sample_files import put
from secrecy import MARKER


def test_a_whole_part_of_a_name_identifies():
    for name in [
        *("author", "author_id", "bookAuthor", "USER_ID", "userName", "customer-name", "reviewerID", "patient"),
        *("e-mail", "Email Address", "phoneNumber", "ssn", "ip", "IPAddress", "zip_code", "ZIPCode", "latitude"),
        *("dateOfBirth", "birth_year", "dob", "id", "tweet_id", "uuid", "name", "full_name"),
        *("Nachname", "Straße", "PLZ", "Geburtsdatum", "prénom", "teléfono", "usuario", "indirizzo"),
    ]:
        assert look_at(name, []).identifies


def test_a_piece_of_a_word_does_not_identify():
    for name in [
        *("rating", "stars", "label", "country", "year", "is_verified", "text", "category", "gender", "split", "n"),
        *("user_rating", "product_name", "country_name", "label_id", "n_users", "email_count"),
        *("authority", "useful", "validity", "idea", "paid", "widget", "zipper", "nameplate", "ipso", "persistence"),
    ]:
        assert look_at(name, []) == Column(name, 0, 0, 0, "empty", ())


def test_values_that_many_rows_share_are_no_identifiers():
    for values in [
        [5, 4, 1, 3, 2] * 40,
        ["5", "4.5", "1.0"] * 40,
        ["news", "sport", "music", "very good", "New York"] * 40,
        [True, False] * 100,
        ["true", "false", ""] * 50,
        [1950 + number % 71 for number in range(400)],
        ["Germany", "United Kingdom", "New Zealand", "Brazil", "France"] * 40,
        ["2021-03-01", "2021-09-01", "2022-03-01"] * 50,  # the waves of a survey
        ["I agree with this statement to a large extent", "I do not agree with this statement at all"] * 40,
        [None, float("nan"), "", "  "] * 40,
        ["F32.1", "J45.0", "E11.9"] * 40,
    ]:
        assert look_at("column", values).reasons == ()


def test_few_rows_that_all_differ_are_no_identifier():
    for values in [
        ["New York", "Los Angeles", "San Jose", "El Paso", "Fort Worth"],
        [1999, 2003, 2010, 2020, 2021],
        ["a"],
        [0.25],
    ]:
        assert not look_at("column", values).identifies


def test_a_value_per_row_links_rows():
    draw = random.Random(3)
    measured = [draw.random() for _ in range(50)]
    assert look_at("column", measured).reasons == (
        "nearly every row has a different value, which links rows to other tables",
    )
    assert not look_at("column", measured[:49]).identifies  # fewer than 50 values
    assert not look_at("column", measured[:43] + [0.5] * 7).identifies  # 44 different ones of 50
    assert look_at("column", measured[:44] + [0.5] * 6).identifies
    assert look_at("column", range(1000, 1050)).kind == "identifier"


def test_codes_are_found_where_people_have_many_rows():
    draw = random.Random(5)
    codes = ["".join(draw.choices(string.ascii_uppercase + string.digits, k=11)) + "07" for _ in range(20)]
    result = look_at("column", codes * 40)
    assert result.reasons == ("most of its values are codes or long numbers, which link rows to other tables",)
    assert (result.kind, result.distinct, result.rows) == ("identifier", 20, 800)
    assert not look_at("column", codes[:19] * 40).identifies


def test_ten_names_of_people_are_found():
    names = [f"{first} {last}" for first in ("Ann", "José", "Li") for last in ("Lee", "van der Berg", "O'Hara", "Wu")]
    assert "most of its values look like names of people" in look_at("column", names[:10] * 5).reasons
    assert not look_at("column", names[:9]).identifies


def test_a_tenth_of_the_values_is_enough():
    for value, kind in [
        ("ann@example.org", "e-mail addresses"),
        ("+44 20 7946 0958", "telephone numbers"),
        ("4111 1111 1111 1111", "card numbers"),
        ("192.0.2.17", "IP addresses"),
        ("https://example.org/ann", "web addresses"),
    ]:
        result = look_at("column", [value, *["none"] * 9] * 3)
        assert result.reasons == (f"some of its values contain {kind}",)
        assert not look_at("column", [value, *["none"] * 10]).identifies


def test_free_text_and_exact_dates_are_named():
    texts = [f"this row number {number} says something that nobody else has said before" for number in range(5)]
    assert look_at("column", texts).reasons == ("it contains free text, which no guarantee covers",)
    assert look_at("column", texts).kind == "text"
    days = [datetime.date(2021, 5, day) for day in range(1, 6)]
    times = [f"{day} 10:0{day.day}:59" for day in days]
    for dates in (
        days,
        times,
        [*map(str, days)],
        [f"{day:%d.%m.%Y}" for day in days],
        [f"{day}T09:30:00Z" for day in days],
    ):
        result = look_at("column", dates * 4)
        assert (result.kind, result.reasons) == ("date", ("it contains exact dates, which distinguish people",))
    assert look_at("column", [f"{day:%Y-%m}" for day in days] * 4).reasons == ()


def test_no_reason_holds_a_value_or_a_count():
    values = [f"{MARKER}{number}@example.org wrote at length about 4711 things of that day" for number in range(60)]
    for reason in look_at("author", values).reasons:
        assert MARKER not in reason and not any(letter.isdigit() for letter in reason)


def test_values_of_any_kind_are_examined():
    mails = [{"who": {"mail": ["ann@example.org"]}}, [None, {"mail": "bob@example.org"}]]
    nested = [*mails, {}, [], object(), 10**5000, b"\xff"]
    result = look_at("column", nested)
    assert (result.rows, result.present, result.distinct) == (7, 5, 5)
    assert result.reasons == ("some of its values contain e-mail addresses",)
    deep = []
    for _ in range(50_000):
        deep = [deep]
    assert look_at("column", [deep]).kind == "nested"


def rows(count):
    return [
        {
            "text": f"it is what they said, and text number {n} of all",
            "member": f"M{n:07}",
            "stars": n % 5 + 1,
            "when": f"2021-05-{n % 28 + 1:02}",
        }
        for n in range(count)
    ]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".jsonl.gz", ".parquet"])
def test_the_first_rows_of_files_of_every_format_are_examined(tmp_path, suffix):
    columns = {name: [row[name] for row in rows(60)] for name in ("member", "stars", "when")}
    path = put(tmp_path / f"in{suffix}", [row["text"] for row in rows(60)], columns)
    result = {column.name: column for column in columns_of([path])}
    assert [*result] == ["text", "member", "stars", "when"]
    assert [name for name, entry in result.items() if entry.identifies] == ["text", "member", "when"]
    assert [entry.kind for entry in result.values()] == ["text", "identifier", "number", "date"]
    assert {entry.rows for entry in result.values()} == {60}
    assert {column.rows for column in columns_of([path, path], limit=70)} == {70}
    assert [column.name for column in columns_of([path], only=["stars", "gone"])] == ["stars", "gone"]


def test_rows_that_cannot_be_read_and_pipes_are_passed_over(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"text": "a", "stars": 1}\nnot json\n[1]\n\xff\n{"text": "b"}\n')
    assert [(column.name, column.rows) for column in columns_of([path])] == [("text", 2), ("stars", 1)]
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    assert [(column.name, column.rows) for column in columns_of([tmp_path / "in.txt"])] == [("text", 2)]
    assert columns_of([Path("-")], suffix=".jsonl") == []
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match="is not a parquet file"):
        columns_of([tmp_path / "broken.parquet"])


@pytest.mark.parametrize("size", [20_000, 200_000])
def test_a_long_value_takes_linear_time(size):
    for letter in ("a", " ", "a.", "A ", "1", "1-", "@"):
        look_at("column", [letter * size])
