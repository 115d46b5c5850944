"""What is seen of somebody's rows: which column is what, and how many there are."""

import pandas
import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.methods import data as module
from dptext.methods.data import look
from methods.conftest import SECRET, made_up_rows

NAMES = [
    ("text", "user", "label"),
    ("review", "reviewer", "stars"),
    ("body", "author", "topic"),
    ("said", "speaker", "intent"),
]


def looked(source, **columns):
    return look(source, **{"text": None, "user": None, "labels": None} | columns)


def rows_of(text, user, label, count=120):
    long = "this is one of the longer texts that people write when nobody asks them number"
    return [{user: f"u{n % 20}", text: f"{long} {n}", label: n % 3} for n in range(count)]


@pytest.mark.parametrize("names", NAMES)
def test_columns_are_guessed_by_their_names_and_values(names):
    roles = looked(rows_of(*names)).roles
    assert (roles.text, roles.user, *roles.labels) == names
    assert set(roles.guessed) == {"text", "user", "labels"}


def test_short_texts_are_found_too_and_no_key_is_taken_for_one():
    rows = [{"device": f"{n * 7919:016x}", "asked": f"play the {n}th song {'abc'[n % 3]}"} for n in range(300)]
    assert looked(rows).roles.text == "asked"
    with pytest.raises(ParameterError, match="no column of texts among 'device', 'score'"):
        looked([{"device": f"{n * 7919:016x}", "score": n % 7} for n in range(300)])


def test_columns_without_telling_names_are_guessed_by_what_they_hold():
    rows = [
        {"a": f"long text of many words that differ from all of the others here {n}", "b": "xyz"[n % 3], "c": n * 1.5}
        for n in range(200)
    ]
    roles = looked(rows).roles
    assert (roles.text, roles.user, roles.labels) == ("a", None, ("b",))


def test_a_column_of_which_each_row_has_a_value_of_its_own_is_not_taken_for_the_person():
    rows = [{"text": f"some words of a text here {n}", "ticket_id": f"AB-{n:06}"} for n in range(100)]
    assert looked(rows).roles.user is None


def test_a_person_is_not_taken_for_a_label_nor_an_identifier():
    rows = [{"text": f"some words of a text here {n}", "email": f"p{n % 3}@example.org"} for n in range(100)]
    assert looked(rows).roles.labels == ()


def test_what_the_caller_says_is_no_guess(rows):
    roles = looked(rows, text="note", user="mail", labels=("stars",)).roles
    assert (roles.text, roles.user, roles.labels, roles.guessed) == ("note", "mail", ("stars",), ())
    assert looked(rows, labels=()).roles.labels == ()


def test_counts(rows):
    result = looked(rows)
    assert (result.rows, result.people, result.most_texts, result.classes, result.empty) == (200, 40, 5, 3, 0)
    assert result.protected == 40
    assert looked([{"text": f"a text {n}"} for n in range(30)]).protected == 30


def test_files_tables_and_rows_say_the_same(rows, notes, tmp_path):
    frame = pandas.DataFrame(rows)
    csv = tmp_path / "notes.csv"
    frame.to_csv(csv, index=False)
    results = [looked(row) for row in (rows, notes, [notes], csv, frame)]
    counted = [
        (entry.rows, entry.people, entry.most_texts, entry.classes, entry.words, entry.roles) for entry in results
    ]
    assert counted == counted[:1] * 5
    assert [len(entry.files) for entry in results] == [0, 1, 1, 1, 0]


def test_documents_and_texts():
    documents = [dptext.Document(f"a text {n}", user=f"u{n % 4}", label="ab"[n % 2]) for n in range(40)]
    result = looked(documents)
    assert (result.roles.text, result.roles.user, result.people, result.classes) == ("text", "user", 4, 2)
    assert looked(["one text", None, "another"]).empty == 1


def test_rows_that_cannot_be_read_are_counted_and_rows_after_the_first_many_are_not(notes, monkeypatch):
    with notes.open("a") as stream:
        stream.write("{broken\n")
    assert (looked(notes).rows, looked(notes).unread) == (200, 1)
    monkeypatch.setattr(module, "MOST_ROWS", 50)
    assert (looked(notes).rows, looked(notes).is_all) == (50, False)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": "nothing"}, "expected a column 'nothing' for text, there is none among its 6: .*'note'"),
        ({"user": "who"}, "column 'who' for user"),
        ({"labels": ("day", "era")}, "column 'era' for label"),
        ({"text": "note", "user": "note"}, "different columns"),
        ({"labels": "topic"}, "labels must be a list of names"),
    ],
)
def test_columns_that_cannot_be(rows, columns, message):
    with pytest.raises(ParameterError, match=message):
        looked(rows, **columns)


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("empty.jsonl", b"", DataError, "(?i)no (row|doc)"),
        ("empty.csv", b"text,user\n", DataError, "(?i)no (row|doc)"),
        ("numbers.jsonl", b'{"a": 1, "b": 2}\n' * 60, ParameterError, "--text"),
        ("binary.jsonl", bytes(range(256)) * 8, DataError, "could be read"),
        ("binary.bin", b"\x00\x01", ParameterError, "expected"),
        ("binary.parquet", b"PAR1" + bytes(100), DataError, "binary"),
    ],
)  # fmt: skip
def test_hostile_files_get_one_clear_error(tmp_path, name, content, error, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(error, match=message):
        looked(path)


@pytest.mark.parametrize("content", [f'{{"text": "{SECRET}"}}\n', f'{{"{SECRET}": "one text alone"}}\n'])
def test_one_row_and_one_column_are_enough(tmp_path, content):
    path = tmp_path / "one.jsonl"
    path.write_text(content)
    assert looked(path).rows == 1
    plain = tmp_path / "plain.txt"
    plain.write_text(f"{SECRET} and more\n")
    assert (looked(plain).rows, looked(plain).roles.text) == (1, "text")


def test_no_error_holds_a_value(tmp_path):
    path = tmp_path / "broken.jsonl"
    path.write_text(f'{{"text": "{SECRET}"\n{SECRET}\n')
    with pytest.raises(DataError) as caught:
        looked(path)
    assert SECRET not in str(caught.value)


def test_made_up_rows_are_what_they_say():
    assert len(made_up_rows(3, 2)) == 6
