"""How many texts a person has: counted in every way of texts, resumed or not, and for the owner alone."""

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
from dptext.privacy.wording import for_person, render
from dptext.release import release
from dptext.release.release import MostTexts, TextsOfPeople, statement_for_largest_user

WHO = ["ann"] * 5 + ["bob"] * 2 + [None, "", " ann", 7, "7", 7.0]
MOST = MostTexts(6, 2)


@pytest.fixture(scope="module")
def mechanism():
    return TEM(load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])), epsilon=2.0)


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Return 13 rows, at most 6 of one person and two without a person, in several blocks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(batches, "BATCH_ROWS", 4)
    with open("in.jsonl", "w") as stream:
        for who in WHO:
            stream.write(json.dumps({"text": "the cat", "who": who}) + "\n")
    return tmp_path


def ending(count):
    def progress(_, rows):
        if rows >= count:
            raise KeyboardInterrupt

    return progress


# -- the count --------------------------------------------------------------------------------------------------------


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


def test_memory_is_sixteen_bytes_for_each_person():
    people = TextsOfPeople("who")
    for start in range(0, 140_000, 70_000):
        people.add([f"{'a long name ' * 4}{number}" for number in range(start, start + 70_000)], ["x"] * 70_000)
    assert people.most == MostTexts(1)
    assert people._users.nbytes + people._texts.nbytes == 16 * 140_000
    assert not people._waiting


def test_what_is_kept_of_a_person_is_not_their_name(mechanism):
    output = privatize(pa.table({"text": ["the cat"], "who": ["somebody-in-particular"]}), mechanism, user="who")
    kept = pickle.dumps(output) + repr(output).encode() + output._repr_html_().encode()
    assert b"somebody-in-particular" not in kept
    assert output.statement.to_json() == output.statement.replace().to_json()
    assert release._key() not in kept


# -- the ways of texts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_file_and_a_stream_count(work, mechanism, processes):
    output = privatize_file("in.jsonl", "out.jsonl", mechanism, user="who", processes=processes)
    assert output.most_texts == MOST
    assert output.for_user == statement_for_user(output.statement, 6)
    sent = privatize_file("in.jsonl", io.BytesIO(), mechanism, user="who", to=".jsonl", statement_file="said.json")
    assert sent.most_texts == MOST


def test_nothing_of_it_is_written(work, mechanism):
    with_user = privatize_file("in.jsonl", "a.jsonl", mechanism, user="who", seed=1)
    without = privatize_file("in.jsonl", "b.jsonl", mechanism, seed=1)
    assert without.most_texts is None
    assert without.for_user is None
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
    assert with_user.statement.replace(release_id=None) == without.statement.replace(release_id=None)
    assert sorted(path.name for path in work.iterdir()) == [
        "a.jsonl",
        "a.jsonl.privacy.json",
        "b.jsonl",
        "b.jsonl.privacy.json",
        "in.jsonl",
    ]


def test_a_resumed_run_counts_what_was_done_before(work, mechanism):
    with pytest.raises(KeyboardInterrupt):
        privatize_file("in.jsonl", "out.jsonl", mechanism, user="who", progress=ending(4))
    with pytest.raises(ParameterError, match=r"other options \(user changed\)"):
        privatize_file("in.jsonl", "out.jsonl", mechanism, resume=True)
    output = privatize_file("in.jsonl", "out.jsonl", mechanism, user="who", resume=True)
    assert output.resumed == 4
    assert output.most_texts == MOST


def test_a_run_that_is_only_put_in_place_says_that_nobody_counted(work, mechanism, monkeypatch):
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("dptext.release.job.Job.publish", lambda *_: ending(0)(None, 1))
        privatize_file("in.jsonl", "out.jsonl", mechanism, user="who")
    output = privatize_file("in.jsonl", "out.jsonl", mechanism, user="who", resume=True)
    assert output.documents == len(WHO)
    assert output.most_texts is None
    assert "were not counted" in for_person(output.for_user, output.most_texts, user="who")


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table])
def test_a_table_counts_and_a_missing_text_is_none(mechanism, kind):
    table = kind({"text": ["the cat", "a dog", None, "tax"], "who": ["ann", "ann", "ann", "bob"]})
    release = privatize(table, mechanism, user="who")
    assert release.most_texts == MostTexts(2)
    assert "who" not in (release.table.columns if kind is pd.DataFrame else release.table.column_names)
    with pytest.raises(ParameterError, match="expected a column 'person'"):
        privatize(table, mechanism, user="person")
    with pytest.raises(ParameterError, match="user names columns of a table"):
        privatize(["the cat"], mechanism, user="who")


# -- messages ---------------------------------------------------------------------------------------------------------


def test_the_promise_is_that_of_the_release_that_promises_least(mechanism):
    short, long = mechanism.document_statement(2), mechanism.document_statement(9)
    text = statement_for_largest_user(MostTexts(3), [short, long, short])
    assert text == statement_for_user(long, 3)
    assert isinstance(text.guarantee, MetricDP)
    assert statement_for_largest_user(MostTexts(0, 4), [short]) is None
    assert statement_for_largest_user(MostTexts(10**6 + 1), [short]) is None


@pytest.mark.parametrize(
    ("largest", "uncounted", "sentences"),
    [
        (MostTexts(3), 0, ["The 'who' with the most texts has 3.", "for all of them together: epsilon at most"]),
        (MostTexts(1), 0, ["has 1.", "is also one for a person: epsilon at most"]),
        (MostTexts(3, 1), 0, ["1 text has no 'who', and is not counted."]),
        (MostTexts(0, 2), 0, ["No text has a 'who'.", "2 texts have no 'who', and are not counted."]),
        (MostTexts(3), 2, ["(2 processed before are not counted)"]),
        (MostTexts(10**6 + 1), 0, ["has 1,000,001. There is no stated guarantee for that many."]),
    ],
)
def test_what_the_owner_reads(mechanism, largest, uncounted, sentences):
    person = statement_for_largest_user(largest, [mechanism.document_statement(4)])
    text = for_person(person, largest, user="who", uncounted=uncounted)
    assert all(sentence in " ".join(text.split()) for sentence in sentences), text
    assert max(map(len, text.split("\n"))) <= 79
    assert ("does not protect" in " ".join(text.split())) == (person is not None)  # TEM at 2: 36 nats a word


def test_before_it_starts_the_promise_says_that_it_is_one_for_each_text():
    text = render("before_people", user="author")
    assert "the guarantee is per text" in " ".join(text.split())
    assert max(map(len, text.split("\n"))) <= 79
