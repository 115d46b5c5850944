"""The number of texts per person: counted wherever texts are released, resumed or not, and for the owner alone."""

import collections
import json
import pickle
import random
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from dptext import TEM, load_vectors, privatize, privatize_file, statement_for_user
from dptext.errors import ParameterError
from dptext.io import batches
from dptext.privacy.guarantee import canonical_id
from dptext.privacy.wording import for_person
from dptext.release.release import MostTexts, TextsOfPeople, statement_for_largest_user
from secrecy import assert_error

NAMED = ["ann"] * 5 + ["bob"] * 2 + [" ann", 7, "7", 7.0]
WHO = [*NAMED, None, ""]
MOST = MostTexts(6)


@pytest.fixture(scope="module")
def mechanism():
    return TEM(load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])), epsilon=2.0)


@pytest.fixture
def work(tmp_path, monkeypatch):
    """11 rows in several blocks, at most 6 of one person."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(batches, "BATCH_ROWS", 4)
    Path("in.jsonl").write_text("".join(json.dumps({"text": "the cat", "who": who}) + "\n" for who in NAMED))
    return tmp_path


def test_the_count_is_that_of_a_dictionary():
    draw = random.Random(3)
    result, names = TextsOfPeople("who"), []
    for _ in range(40):
        rows = [draw.choice(WHO + [f"p{number}" for number in range(50)]) for _ in range(draw.randrange(1, 30))]
        texts = [draw.choice(["a text", None]) for _ in rows]
        result.add(rows, texts)
        names += [canonical_id(who) for who, text in zip(rows, texts, strict=True) if text is not None]
    counted = collections.Counter(names)
    unnamed = counted.pop(None)
    assert result.most == MostTexts(max(counted.values()), unnamed)
    assert TextsOfPeople("who").most == MostTexts(0)


def test_eight_bytes_are_kept_per_text_and_no_name(mechanism):
    people = TextsOfPeople("who")
    people.add([f"{'a long name ' * 4}{number}" for number in range(7_000)], ["x"] * 7_000)
    assert people.most == MostTexts(1) and len(people._users) == 8 * 7_000
    output = privatize(pa.table({"text": ["the cat"], "who": ["somebody-in-particular"]}), mechanism, user="who")
    assert b"somebody-in-particular" not in pickle.dumps(output) + repr(output).encode() + output._repr_html_().encode()


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_files_count_and_write_nothing_of_it(work, mechanism, processes):
    output = privatize_file("in.jsonl", "out.jsonl", mechanism, user="who", processes=processes, seed=1)
    assert output.most_texts == MOST
    assert output.for_user == statement_for_user(output.statement, 6)
    without = privatize_file("in.jsonl", "b.jsonl", mechanism, seed=1)
    assert (without.most_texts, without.for_user) == (None, None)
    assert Path("out.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
    assert output.statement.replace(release_id=None) == without.statement.replace(release_id=None)


def test_a_resumed_run_counts_all_rows_and_a_published_one_says_that_none_were_counted(work, mechanism, monkeypatch):
    def stop(_, rows):
        if rows >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        privatize_file("in.jsonl", "out.jsonl", mechanism, user="who", progress=stop)
    other = "other options (user changed)"
    assert_error(ParameterError, lambda: privatize_file("in.jsonl", "out.jsonl", mechanism, resume=True), other)
    output = privatize_file("in.jsonl", "out.jsonl", mechanism, user="who", resume=True)
    assert (output.resumed, output.most_texts) == (4, MOST)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("dptext.release.job.Job.publish", lambda *_: stop(None, 4))
        privatize_file("in.jsonl", "again.jsonl", mechanism, user="who")
    output = privatize_file("in.jsonl", "again.jsonl", mechanism, user="who", resume=True)
    assert (output.documents, output.most_texts) == (len(NAMED), None)
    assert "were not counted" in for_person(output.for_user, output.most_texts, user="who")


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table])
def test_tables_count_without_missing_texts(mechanism, kind):
    table = kind({"text": ["the cat", "a dog", None, "tax"], "who": ["ann", "ann", "ann", "bob"]})
    result = privatize(table, mechanism, user="who")
    assert result.most_texts == MostTexts(2)
    assert "who" not in (result.table.columns if kind is pd.DataFrame else result.table.column_names)
    assert_error(ParameterError, lambda: privatize(table, mechanism, user="person"), "expected a column 'person'")
    assert_error(ParameterError, lambda: privatize(["the cat"], mechanism, user="who"), "user names columns of a table")


def test_the_guarantee_for_a_person_says_what_was_counted(mechanism):
    for maximum, sentence in (
        (MostTexts(3), "for all of them together: epsilon at most"),
        (MostTexts(3, 1), "1 text has no 'who', and is not counted."),
        (MostTexts(0, 2), "No text has a 'who'."),
        (MostTexts(10**6 + 1), "There is no stated guarantee for that many."),
    ):
        person = statement_for_largest_user(maximum, mechanism.document_statement(4))
        assert (person is None) == (maximum.texts in (0, 10**6 + 1))
        output = " ".join(for_person(person, maximum, user="who").split())
        assert sentence in output and ("does not protect" in output) == (person is not None)
