"""Columns and counts of private rows: roles are guessed, and no message contains a value."""

import pandas
import pytest

from dptext.errors import DataError, ParameterError
from dptext.methods import data as module
from dptext.methods.data import look
from methods.conftest import SECRET


def looked(source, **columns):
    return look(source, **{"text": None, "user": None, "labels": None} | columns)


def test_columns_are_guessed_by_their_names_and_the_text_also_by_its_values():
    long = "this is one of the longer texts that people write on a form with the number"
    for text, user, label in [("text", "user", "label"), ("review", "writer", "stars"), ("said", "speaker", "intent")]:
        roles = looked([{user: f"u{n % 20}", text: f"{long} {n}", label: n % 3} for n in range(120)]).roles
        assert (roles.text, roles.user, *roles.labels) == (text, user, label)
        assert set(roles.guessed) == {"text", "user", "labels"}
    roles = looked([{"a": f"{long} {n}", "b": "xyz"[n % 3], "c": n * 1.5} for n in range(200)]).roles
    assert (roles.text, roles.user, roles.labels) == ("a", None, ())
    short = [{"device": f"{n * 7919:016x}", "asked": f"play the {n}th song {'abc'[n % 3]}"} for n in range(300)]
    assert looked(short).roles.text == "asked"
    rows = [{"text": f"some words of a text here {n}", "label": f"AB-{n:06}"} for n in range(100)]
    assert looked(rows).roles.labels == ()  # too many values for a label


def test_named_columns_are_no_guess(rows):
    roles = looked(rows, text="note", user="mail", labels=("stars",)).roles
    assert (roles.text, roles.user, roles.labels, roles.guessed) == ("note", "mail", ("stars",), ())
    assert looked(rows, labels=()).roles.labels == ()


def test_files_tables_documents_and_texts_give_the_same_counts(rows, notes, tmp_path, monkeypatch):
    frame, csv = pandas.DataFrame(rows), tmp_path / "notes.csv"
    frame.to_csv(csv, index=False)
    results = [looked(source) for source in (rows, notes, [notes], csv, frame)]
    names = ("rows", "people", "most_texts", "classes", "empty", "protected")
    for result in results:
        assert [getattr(result, name) for name in names] == [200, 40, 5, 3, 0, 40]
        assert (result.words, result.roles) == (results[0].words, results[0].roles)
    assert [len(result.files) for result in results] == [0, 1, 1, 1, 0]
    with notes.open("a") as stream:
        stream.write("{broken\n")
    assert (looked(notes).rows, looked(notes).unread) == (200, 1)
    monkeypatch.setattr(module, "MOST_ROWS", 50)
    assert (looked(notes).rows, looked(notes).is_all) == (50, False)


def test_unsuitable_columns_are_refused(rows):
    for columns, message in [
        ({"text": "nothing"}, "there is no column 'nothing', but 6 others: .*'note'"),
        ({"user": "who"}, "column 'who'"),
        ({"labels": ("day", "era")}, "column 'era'"),
        ({"text": "note", "user": "note"}, "different columns"),
        ({"labels": "topic"}, "labels must be a list of names"),
    ]:
        with pytest.raises(ParameterError, match=message):
            looked(rows, **columns)
    with pytest.raises(ParameterError, match="no column of 'device', 'score' looks like texts"):
        looked([{"device": f"{n * 7919:016x}", "score": n % 7} for n in range(300)])


def test_unreadable_files_get_one_clear_error_without_a_value(tmp_path):
    for name, content, error, message in [
        ("empty.jsonl", b"", DataError, "(?i)no (row|doc)"),
        ("empty.csv", b"text,user\n", DataError, "(?i)no (row|doc)"),
        ("numbers.jsonl", b'{"a": 1, "b": 2}\n' * 60, ParameterError, "--text"),
        ("binary.jsonl", bytes(range(256)) * 8, DataError, "could be read"),
        ("binary.bin", b"\x00\x01", ParameterError, "expected"),
        ("binary.parquet", b"PAR1" + bytes(100), DataError, "binary"),
        ("broken.jsonl", f'{{"text": "{SECRET}"\n{SECRET}\n'.encode(), DataError, "could be read"),
    ]:
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(error, match=message) as caught:
            looked(path)
        assert SECRET not in str(caught.value)


def test_one_row_and_one_column_are_enough(tmp_path):
    for name, content in [
        ("one.jsonl", f'{{"text": "{SECRET}"}}\n'),
        ("name.jsonl", f'{{"{SECRET}": "one text alone"}}\n'),
        ("plain.txt", f"{SECRET} and more\n"),
    ]:
        (tmp_path / name).write_text(content)
        assert looked(tmp_path / name).rows == 1
    assert looked(tmp_path / "plain.txt").roles.text == "text"
