"""One user's texts at a time: whole, in order, with their classes, whoever wrote how much, in any order it came."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from dptext.users.texts import MOST_CODES, texts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.errors import DataError, ParameterError
from dptext.files import blocks
from dptext.files.documents import Document, read_documents
from dptext.users import sorting, texts
from files.secrecy import MARKER

TOPICS = {("news",): 0, ("sports",): 1}


def topic(values):
    return TOPICS.get(values, -1)


def collected(documents, **options):
    """A sorted list of [(text, class), ...], one entry for each user."""
    with texts_of(documents, **options) as authors:
        found = [of_author(author) for author in authors]
        if options.get("unit") != "document":
            assert found == [of_author(author) for author in authors]
    return sorted(found)


def of_author(author):
    found = []
    for said, classes in author.chunks():
        assert len(said) == len(classes) > 0
        assert classes.dtype == np.int32
        found += zip(said, classes.tolist(), strict=True)
    assert found
    return found


def by_hand(documents, most=None):
    people = {}
    for document in documents:
        people.setdefault(str(document.user).strip(), []).append((document.text or "", topic((document.label,))))
    return sorted(each[:most] for each in people.values())


def make_small(patch):
    """Sizes so small that a few documents need many parts, runs, batches and chunks."""
    sizes = {"RUN_WORDS": 20, "RUN_DOCUMENTS": 5, "BATCH_WORDS": 12, "PART_RECORDS": 3}
    for name, size in sizes.items():
        patch.setattr(sorting, name, size)
    patch.setattr(blocks, "BLOCK_ROWS", 4)
    patch.setattr(texts, "_VALUES_REMEMBERED", 2)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


DOCUMENTS = st.lists(
    st.builds(
        Document,
        st.none() | st.text(st.characters(), max_size=20),  # surrogates, zeros and all
        user=st.sampled_from(["a", "b", " b ", 1, 1.0, "1", "c"]),
        label=st.sampled_from(["news", "sports", "other", None]),
    ),
    max_size=40,
)


@given(documents=DOCUMENTS, most=st.none() | st.integers(1, 5), is_small=st.booleans())
@settings(max_examples=100, deadline=None)
def test_every_user_comes_whole_with_texts_and_classes_in_order(documents, most, is_small):
    with pytest.MonkeyPatch.context() as patch:
        if is_small:
            make_small(patch)
        given = [Document(each.text, str(each.user).replace(".0", ""), each.label) for each in documents]
        assert collected(documents, columns=["topic"], code=topic, most_documents=most) == by_hand(given, most)


@given(documents=DOCUMENTS)
@settings(max_examples=30, deadline=None)
def test_documents_stand_for_themselves_when_asked_for(documents):
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        with texts_of(iter(documents), columns=["topic"], code=topic, unit="document", most_documents=1) as authors:
            found = [of_author(author) for author in authors]
            assert found == [[(each.text or "", topic((each.label,)))] for each in documents]
            with pytest.raises(ParameterError, match="come once"):
                list(authors)
        with texts_of(iter(documents), columns=["topic"], code=topic, unit="document", again=True) as authors:
            for _ in range(2):
                assert sorted(of_author(author) for author in authors) == sorted(found)


def test_any_string_survives():
    said = ["", "a", "\0", "\0\0\0\0", "\ud800", "x\udfff\U0001f600", "é" * 7, "abcd"]
    assert collected([Document(each, user="a") for each in said]) == [[(each, 0) for each in said]]


def test_single_documents_need_no_disk(monkeypatch):
    monkeypatch.setattr(sorting, "nameless_file", None)
    documents = (Document("x", user=None) for _ in range(3))
    assert collected(documents, unit="document") == [[("x", 0)]] * 3


def test_one_user_who_wrote_most_comes_in_chunks(monkeypatch):
    make_small(monkeypatch)
    documents = [Document(f"text {place}", user="a", label="news") for place in range(300)]
    documents[100:100] = [Document("x", user="b"), Document("", user="c", label="sports")]
    with texts_of(documents, columns=["label"], code=topic) as authors:
        most = max(len(list(author.chunks())) for author in authors)
        assert most > 20
    assert collected(documents, columns=["label"], code=topic) == by_hand(documents)
    assert collected(documents, columns=["label"], code=topic, most_documents=77) == by_hand(documents, 77)


def test_classes_come_from_kept_columns_or_the_label(tmp_path):
    rows = [
        {"text": "one", "who": "a", "topic": "news", "stars": 1},
        {"text": "two", "who": 7, "topic": None, "stars": 2.0},
        {"text": "three", "who": "a", "topic": "sports", "stars": "2"},
    ]
    path = write(tmp_path / "a.jsonl", rows)
    expected = [[("one", 0), ("three", 1)], [("two", -1)]]
    kept = read_documents(path, user="who", keep=["topic", "stars"])
    assert collected(kept, columns=["topic"], code=topic) == expected
    for name in ("topic", "another"):
        labelled = read_documents(path, user="who", label="topic")
        assert collected(labelled, columns=[name], code=topic) == expected
        assert collected(list(read_documents(path, user="who", label="topic")), columns=[name], code=topic) == expected
    both = {("news", "1"): 0, (None, "2"): 1, ("sports", "2"): 2}
    for documents in (
        read_documents(path, user="who", label="topic", keep=["stars"]),
        read_documents(path, user="who", keep=["topic", "stars"]),
        list(read_documents(path, user="who", keep=["topic", "stars"])),
    ):
        assert collected(documents, columns=["topic", "stars"], code=both.__getitem__) == [
            [("one", 0), ("three", 2)],
            [("two", 1)],
        ]
    # a column that is there by name is meant, and not the label beside it
    stars = read_documents(path, user="who", label="topic", keep=["stars"])
    assert collected(stars, columns=["stars"], code=lambda values: int(values[0])) == [
        [("one", 1), ("three", 2)],
        [("two", 2)],
    ]


def test_columns_that_are_not_read_are_asked_for(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"text": "x", "who": "a", "topic": "news", "stars": 1}])
    with pytest.raises(ParameterError, match=r"'topic'.*keep=\['topic'\]"):
        collected(read_documents(path, user="who", keep=["stars"]), columns=["topic"], code=topic)
    with pytest.raises(ParameterError, match=r"'lang'.*keep=\['lang'\]"):
        reader = read_documents(path, user="who", label="topic", keep=["stars"])
        collected(reader, columns=["lang", "stars"], code=topic)
    with pytest.raises(ParameterError, match="unit='document'"):
        collected(read_documents(path, keep=["topic"]), columns=["topic"], code=topic)


def test_a_value_that_is_missing_or_strange_is_one_more_value():
    """What is private raises nothing: a list, a nan, a document without the attribute."""
    seen = []
    documents = [
        Document("x", user="a", attributes={"one": value, "two": "2"})
        for value in (None, float("nan"), [1], {}, b"y", True, 1, 1.0, " 1", 4.5, "True")
    ]
    documents += [Document("x", user="a"), Document("x", user="a", attributes={"one": "1"})]
    collected(documents, columns=["one", "two"], code=lambda values: seen.append(values) or 0)
    assert set(seen) == {(None, "2"), ("true", "2"), ("1", "2"), ("4.5", "2"), (None, None), ("1", None)}


def test_without_columns_all_are_of_one_class():
    documents = [Document("x", user="a", label="news"), Document("y", user="b")]
    assert collected(documents) == [[("x", 0)], [("y", 0)]]
    assert collected(documents, code=lambda values: 3 if values == () else -1) == [[("x", 3)], [("y", 3)]]


def test_the_greatest_class_comes_back():
    assert collected([Document("abc", user="a")], code=lambda _: MOST_CODES - 1) == [[("abc", MOST_CODES - 1)]]
    for wrong in (-2, MOST_CODES, None, 1.0):
        with pytest.raises(ParameterError, match="the code of a class"):
            collected([Document("abc", user="a")], code=lambda _, wrong=wrong: wrong)


@pytest.mark.parametrize("user", [None, "", "  ", float("nan"), 7.5, True, b"x"])
def test_a_row_without_a_user_is_refused_and_named(user):
    documents = [Document(MARKER, user=MARKER, label=MARKER)] * 3 + [Document(MARKER, user=user)]
    with pytest.raises(DataError, match="row 4 has no user") as caught:
        collected(documents)
    assert MARKER not in str(caught.value)


def test_wrong_arguments_are_refused():
    documents = [Document("x", user="a")]
    for options in (
        {"unit": "word"},
        {"most_documents": 0},
        {"most_documents": True},
        {"seed": "x"},
        {"columns": "topic", "code": topic},
        {"columns": ["topic", "topic"], "code": topic},
        {"columns": ["topic"]},
    ):
        with pytest.raises(ParameterError):
            collected(documents, **options)
    for wrong in ("cat", {"a": 1}, 7, None):
        with pytest.raises(ParameterError, match="documents must be"):
            collected(wrong)
    with pytest.raises(DataError, match="row 2 must be a Document, got str"):
        collected([*documents, "cat"])
    with pytest.raises(DataError, match="row 1: expected a string as text, got int"):
        collected([Document(7, user="a")], unit="document")


def test_the_order_of_the_users_is_random():
    documents = [Document(str(place % 4), user=str(place)) for place in range(32)]

    def order(given, **options):
        with texts_of(given, **options) as authors:
            return [of_author(author)[0][0] for author in authors]

    # two random orders of 8 + 8 + 8 + 8 things agree with a probability of (8!)^4 / 32! < 1e-16
    assert order(documents) != order(documents)
    assert order(documents, seed=1) == order(documents[::-1], seed=1)


@pytest.mark.skipif(not os.path.exists("/proc"), reason="needs /proc")
def test_no_text_no_name_and_no_label_reaches_the_disk(tmp_path):
    documents = [Document(f"caterpillar {MARKER}", user=f"{MARKER} {place}", label=MARKER) for place in range(100)]
    with texts_of(documents, columns=["label"], code=lambda _: 0, folder=tmp_path) as authors:
        links = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
        (content,) = (link.read_bytes() for link in links if os.path.realpath(link).startswith(f"{tmp_path}/"))
        assert len(content) > 100 * len(MARKER)
        assert MARKER.encode() not in content
        assert b"caterpillar" not in content  # three letters stand in random bytes by chance
        assert len(list(authors)) == 100


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs resource")
@pytest.mark.parametrize("people", ["str(place)", "'one'"])
def test_memory_stays_flat_in_users_texts_and_labels(people):
    """A process of its own for each size: ten times the documents, the same peak (16 MiB may come and go)."""
    code = f"""
        import resource, sys
        from dptext.files import blocks
        from dptext.files.documents import Document
        from dptext.users import sorting
        from dptext.users.texts import texts_of
        sorting.RUN_DOCUMENTS, sorting.RUN_WORDS = 1 << 12, 1 << 14
        sorting.BATCH_WORDS, sorting.PART_RECORDS, blocks.BLOCK_ROWS = 1 << 12, 1 << 10, 1 << 10
        count = int(sys.argv[1])
        documents = (Document("cat dog", user={people}, label=f"label {{place}}" * 3) for place in range(count))
        with texts_of(documents, columns=["label"], code=lambda values: -1) as authors:
            assert sum(len(said) for author in authors for said, _ in author.chunks()) == count
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    peaks = []
    for count in (20_000, 200_000):
        command = [sys.executable, "-c", textwrap.dedent(code), str(count)]
        peaks.append(int(subprocess.run(command, capture_output=True, check=True, text=True).stdout))
    unit = 1024 if sys.platform != "darwin" else 1
    assert abs(peaks[1] - peaks[0]) * unit < 16 << 20
