"""The number of texts per person: counted wherever texts are released, resumed or not, and for the owner alone."""

import collections
import io
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
from dptext.privacy.guarantee import MetricDP, canonical_id
from dptext.privacy.wording import for_person
from dptext.release import release
from dptext.release.release import MostTexts, TextsOfPeople, statement_for_largest_user
from secrecy import assert_error

WHO = ["ann"] * 5 + ["bob"] * 2 + [None, "", " ann", 7, "7", 7.0]
MOST = MostTexts(6, 2)


@pytest.fixture(scope="module")
def mechanism():
    return TEM(load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])), epsilon=2.0)


@pytest.fixture
def work(tmp_path, monkeypatch):
    """13 rows in several blocks, at most 6 of one person and two without a person."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(batches, "BATCH_ROWS", 4)
    Path("in.jsonl").write_text("".join(json.dumps({"text": "the cat", "who": who}) + "\n" for who in WHO))
    return tmp_path


@pytest.mark.parametrize("at_least", [1, 7, 1 << 16])
def test_the_count_is_that_of_a_dictionary(monkeypatch, at_least):
    monkeypatch.setattr(release, "_MIN_WAITING", at_least)
    draw = random.Random(3)
    result, names = [TextsOfPeople("who"), TextsOfPeople("who")], []
    for block in range(40):
        rows = [draw.choice(WHO + [f"p{number}" for number in range(50)]) for _ in range(draw.randrange(1, 30))]
        texts = [draw.choice(["a text", None]) for _ in rows]
        result[block % 2].add(rows, texts)
        names += [canonical_id(who) for who, text in zip(rows, texts, strict=True) if text is not None]
    counted = collections.Counter(names)
    unnamed = counted.pop(None)
    assert (result[0] + result[1]).most == MostTexts(max(counted.values()), unnamed)
    assert TextsOfPeople("who").most == MostTexts(0)


def test_sixteen_bytes_are_kept_per_person_and_no_name(mechanism):
    people = TextsOfPeople("who")
    for start in range(0, 140_000, 70_000):
        people.add([f"{'a long name ' * 4}{number}" for number in range(start, start + 70_000)], ["x"] * 70_000)
    assert people.most == MostTexts(1)
    assert people._users.nbytes + people._texts.nbytes == 16 * 140_000 and not people._waiting
    output = privatize(pa.table({"text": ["the cat"], "who": ["somebody-in-particular"]}), mechanism, user="who")
    kept = pickle.dumps(output) + repr(output).encode() + output._repr_html_().encode()
    assert b"somebody-in-particular" not in kept and release._key() not in kept


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_files_and_streams_count_and_write_nothing_of_it(work, mechanism, processes):
    output = privatize_file("in.jsonl", "out.jsonl", mechanism, user="who", processes=processes, seed=1)
    assert output.most_texts == MOST
    assert output.for_user == statement_for_user(output.statement, 6)
    sent = privatize_file("in.jsonl", io.BytesIO(), mechanism, user="who", to=".jsonl", statement_file="said.json")
    assert sent.most_texts == MOST
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
    assert (output.documents, output.most_texts) == (len(WHO), None)
    assert "were not counted" in for_person(output.for_user, output.most_texts, user="who")


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table])
def test_tables_count_without_missing_texts(mechanism, kind):
    table = kind({"text": ["the cat", "a dog", None, "tax"], "who": ["ann", "ann", "ann", "bob"]})
    result = privatize(table, mechanism, user="who")
    assert result.most_texts == MostTexts(2)
    assert "who" not in (result.table.columns if kind is pd.DataFrame else result.table.column_names)
    assert_error(ParameterError, lambda: privatize(table, mechanism, user="person"), "expected a column 'person'")
    assert_error(ParameterError, lambda: privatize(["the cat"], mechanism, user="who"), "user names columns of a table")


def test_the_guarantee_for_a_person_is_that_of_the_weakest_release_and_says_so(mechanism):
    short, long = mechanism.document_statement(2), mechanism.document_statement(9)
    text = statement_for_largest_user(MostTexts(3), [short, long, short])
    assert text == statement_for_user(long, 3) and isinstance(text.guarantee, MetricDP)
    for maximum, uncounted, sentence in (
        (MostTexts(3), 0, "for all of them together: epsilon at most"),
        (MostTexts(3, 1), 0, "1 text has no 'who', and is not counted."),
        (MostTexts(0, 2), 0, "No text has a 'who'."),
        (MostTexts(3), 2, "(2 processed before are not counted)"),
        (MostTexts(10**6 + 1), 0, "There is no stated guarantee for that many."),
    ):
        person = statement_for_largest_user(maximum, [mechanism.document_statement(4)])
        assert (person is None) == (maximum.texts in (0, 10**6 + 1))
        output = " ".join(for_person(person, maximum, user="who", uncounted=uncounted).split())
        assert sentence in output and ("does not protect" in output) == (person is not None)
