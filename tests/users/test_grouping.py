"""Words and texts grouped by user: identity of users, words, limits, errors, and an empty disk afterwards."""

import gc
import json
import os
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.errors import DataError, ParameterError
from dptext.io import batches
from dptext.io.documents import Document, read_documents
from dptext.ledger.ledger import Ledger
from dptext.privacy.guarantee import PureDP, Relation, Unit, canonical_id
from dptext.release.release import TextsOfPeople
from dptext.text.tokens import Kind, Vocabulary, kind_of, pieces
from dptext.users import grouping
from dptext.users.grouping import OUTSIDE, TokenRows, texts_of, users_of
from secrecy import MARKER, assert_error

WORDS = Vocabulary(["cat", "dog", "tax", "<unk>"])


def collected(documents, vocabulary=WORDS, **options):
    """A sorted list of (documents, levels), one entry for each user."""
    with users_of(documents, vocabulary, **options) as users:
        results = [(words_of(person), person.levels) for person in users]
        assert results == [(words_of(person), person.levels) for person in users]
    return sorted(results, key=repr)


def words_of(person):
    chunks = list(person.chunks())
    assert chunks
    texts = []
    for rows, lengths in chunks:
        assert rows.dtype == np.int32
        assert lengths.dtype == np.int64
        texts += [part.tolist() for part in np.split(rows, np.cumsum(lengths))[:-1]]
    return texts


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# -- words ----------------------------------------------------------------------------------------------------


def test_words_become_rows_of_the_vocabulary_and_other_tokens_are_left_out(monkeypatch):
    text = "The CAT paid 3.50 in tax, see https://x.org/cat or mail dog@cat.org @cat... \U0001f600 don't"
    ((texts, _),) = collected([Document(text, user="a")])
    rows = [WORDS.row(word) for word in pieces(text) if kind_of(word) is Kind.WORD]
    assert texts == [[OUTSIDE if row == WORDS.unknown_row else row for row in rows]]
    assert texts[0].count(0) == texts[0].count(2) == 1
    documents = [Document(text, user="a") for text in (None, "", "... 7", "cat", None)] + [Document(None, user="b")]
    assert collected(documents) == [([[], [], [], [0], []], (None,)), ([[]], (None,))]
    assert collected([Document("<unk> unk", user="a")]) == [([[OUTSIDE, OUTSIDE]], (None,))]
    long = "a" * 70  # longer than the cache keeps
    vocabulary = Vocabulary(["cat", "dog", long, "<unk>"])
    monkeypatch.setattr(grouping, "_CACHE_SIZE", 3)
    texts = [f"cat {long} zebra dog x y z cat {long}"] * 3
    assert collected([Document(text, user="a") for text in texts], vocabulary) == [
        ([[0, 2, -1, 1, -1, -1, -1, 0, 2]] * 3, (None,))
    ]


# -- users ----------------------------------------------------------------------------------------------------


def test_scattered_users_are_grouped_with_their_documents_in_order(tmp_path):
    generator = np.random.default_rng(3)
    words = ["cat", "dog", "tax", "zebra", "7"]
    rows = [
        {"text": " ".join(generator.choice(words, generator.integers(0, 6))), "who": int(generator.integers(0, 40))}
        for _ in range(500)
    ]
    by_hand = {}
    for row in rows:
        texts = by_hand.setdefault(row["who"], [])
        texts.append([WORDS.row(word) if word in WORDS else OUTSIDE for word in row["text"].split() if word != "7"])
    expected = sorted(((texts, (None,)) for texts in by_hand.values()), key=repr)
    path = write(tmp_path / "a.jsonl", rows)
    assert collected(read_documents(path, user="who")) == expected
    assert collected(list(read_documents(path, user="who"))) == expected


def test_one_canonical_id_counts_for_mechanisms_counters_and_ledgers(tmp_path):
    same = [7, 7.0, "7", " 7 ", "7.0", np.int64(7), np.float64(7)]
    assert collected([Document("cat", user=user) for user in same]) == [([[0]] * len(same), (None,))]
    others = ["07", "7 a", "seven", 77, "-7", "７"]
    assert len(collected([Document("cat", user=user) for user in others])) == len(others)
    long, digits = 10**6000 + 7, "1" + "0" * 5999 + "7"
    assert (canonical_id(long), canonical_id(-long), canonical_id(digits)) == (digits, f"-{digits}", digits)
    assert len(collected([Document("cat", user=user) for user in (long, digits, long + 1)])) == 2
    users = ["José", "Jose\N{COMBINING ACUTE ACCENT}", " José ", 7, "7.0", "jose", "07"]
    ledger = Ledger.create(tmp_path / "book", epsilon=9)
    terms = {"by": "author", "unit": Unit.USER, "relation": Relation.ADD_REMOVE}
    counter = TextsOfPeople("author")
    counter.add(users, ["cat"] * len(users))
    assert len(collected([Document("cat", user=user) for user in users])) == 4
    assert ledger.reserve("a", PureDP(1.0), map(str, users), **terms).units == 4
    assert counter.most.texts == 3


def test_a_row_without_a_user_is_refused_and_named_by_its_number(monkeypatch, tmp_path):
    for user in [None, "  ", float("nan"), 7.5, True, b"x", ["x"]]:
        documents = [Document(MARKER, user=MARKER)] * 3 + [Document(MARKER, user=user)]
        for group in (collected, collected_texts):
            assert_error(DataError, lambda group=group, d=documents: group(d), "row 4 has no user")
    path = write(tmp_path / "a.jsonl", [{"text": "cat", "who": float("nan")}] * 2)
    assert_error(DataError, lambda: collected(read_documents(path, user="who")), "2 of 2 rows have no usable value")
    assert_error(DataError, lambda: list(read_documents(path, user="who")), "a.jsonl, row 1 has no usable value")
    monkeypatch.setattr(batches, "BATCH_ROWS", 10)
    rows = [{"text": "cat", "who": "a"}] * 25 + [{"text": "cat", "who": None}]
    path = write(tmp_path / "a.jsonl", rows)
    assert_error(DataError, lambda: collected([Document("cat", user=row["who"]) for row in rows]), "row 26 has no")
    error = "1 of 26 rows has no usable value in the column 'who' (first: a.jsonl, row 26)"
    assert_error(DataError, lambda: collected(read_documents(path, user="who")), error)


def test_single_documents_are_units_when_asked_for_only(tmp_path):
    rows = [{"text": text, "who": 1} for text in ("cat", "dog", "cat", "")]
    path = write(tmp_path / "a.jsonl", rows)
    expected = [([[0]], (None,)), ([[0]], (None,)), ([[1]], (None,)), ([[]], (None,))]
    assert collected(read_documents(path), unit="document") == expected
    assert collected(read_documents(path, user="who"), unit="document") == expected
    assert collected([Document(row["text"]) for row in rows], unit="document") == expected
    with pytest.raises(ParameterError, match="unit='document'"), users_of(read_documents(path), WORDS):
        pass


def test_the_order_of_users_is_random_and_reveals_neither_names_nor_the_input():
    documents = [Document(word, user=str(place)) for place, word in enumerate(["cat", "dog", "tax", "zebra"] * 8)]

    def order(documents_in_order, **options):
        with users_of(documents_in_order, WORDS, **options) as users:
            return [words_of(person)[0][0] for person in users]

    # two random orders of 8 + 8 + 8 + 8 things agree with a probability of (8!)^4 / 32! < 1e-16
    assert order(documents) != order(documents)
    assert order(documents, seed=1) == order(documents[::-1], seed=1) == order(documents, seed=1)
    assert order(documents, seed=1) != order(documents, seed=2)


# -- levels ---------------------------------------------------------------------------------------------------


def test_all_levels_of_a_user_come_with_him(tmp_path):
    rows = [("a", 8.0, "cat"), ("b", 2.0, "dog"), ("a", 1.0, "tax"), ("a", 8.0, ""), ("c", None, "cat")]
    expected = [([[0], [2], []], (8.0, 1.0)), ([[0]], (None,)), ([[1]], (2.0,))]
    documents = [Document(text, user=user, attributes={"level": level}) for user, level, text in rows]
    assert collected(documents, level="level") == expected
    path = write(tmp_path / "a.jsonl", [{"text": text, "who": user, "level": level} for user, level, text in rows])
    assert collected(read_documents(path, user="who", keep=["level"]), level="level") == expected
    assert {level for _, levels in collected(documents) for level in levels} == {None}


def test_levels_of_a_large_user_are_kept_beyond_the_limit(monkeypatch):
    """The strictest level counts, wherever it stands."""
    shrink(monkeypatch)
    documents = [Document("cat", user="a", attributes={"level": row // 40}) for row in range(100)]
    assert collected(documents, level="level") == [([[0]] * 100, (0, 1, 2))]
    assert collected(documents, level="level", most_words=2) == [([[0]] * 2, (0, 1, 2))]


def test_wrong_levels_are_refused(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"text": "cat", "who": "a", "level": 1}])
    many = [Document("cat", user="a", attributes={"level": place}) for place in range(1001)]
    for kind, documents, message in (
        (ParameterError, read_documents(path, user="who"), "keep"),
        (DataError, [Document("cat", user="a")], "row 1 has no attribute"),
        (DataError, [Document("cat", user="a", attributes={"level": []})], "a text or a number, got list"),
        (DataError, many, "more than 1,000"),
    ):
        assert_error(kind, lambda d=documents: collected(d, level="level"), message)


# -- bounds ---------------------------------------------------------------------------------------------------


def shrink(patch):
    """Sizes so small that a few documents need several parts, runs, partitions and chunks."""
    for name, size in {"BUFFER_BYTES": 80, "LARGE_BUCKET": 60, "CHUNK_SIZE": 4}.items():
        patch.setattr(grouping, name, size)
    patch.setattr(batches, "BATCH_ROWS", 2)


@pytest.mark.parametrize("is_small", [False, True])
def test_the_first_words_of_a_user_are_used_and_no_more(monkeypatch, is_small):
    if is_small:
        shrink(monkeypatch)
    texts = ["cat zebra", "", "dog", "tax tax tax", "", "cat cat", ""]
    full = [[0, -1], [], [1], [2, 2, 2], [], [0, 0], []]
    words = [row for text in full for row in text]
    for limit in range(1, 12):
        ((result, _),) = collected([Document(text, user="a") for text in texts], most_words=limit)
        assert [row for text in result for row in text] == words[:limit]
        assert result == [text[: len(kept)] for kept, text in zip(result, full, strict=False)]
    assert result == full


@pytest.mark.slow
def test_one_user_with_a_million_words_is_bounded_and_others_do_not_notice():
    document = Document("cat dog " * 50_000, user="a")
    documents = [Document("tax", user="b"), *[document] * 10, Document("tax", user="c"), document]
    with users_of(documents, WORDS, most_words=1000) as users:
        sizes = sorted(sum(rows.size for rows, _ in person.chunks()) for person in users)
    assert sizes == [1, 1, 1000]


# -- processes, arguments, traces -----------------------------------------------------------------------------


def test_entries_other_than_documents_are_refused():
    text, number = [Document("cat", user="a"), "cat"], [Document(7, user="a")]
    for group in (collected, collected_texts):
        assert_error(DataError, lambda g=group: g(text), "row 2 must be a Document, got str")
        assert_error(DataError, lambda g=group: g(number, unit="document"), "texts must be strings, entry 1 is int")


@pytest.mark.skipif(sys.platform == "win32", reason="there the file has a name, and goes with its last handle")
def test_nothing_stays_on_the_disk_whatever_happens(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    documents = [Document("cat", user="a"), Document("cat", user="b")]
    with users_of(documents, WORDS) as users:
        assert os.listdir(folder) == []
        assert len(list(users)) == 2
    with pytest.raises(KeyboardInterrupt), texts_of(documents) as users:
        for _ in users:
            raise KeyboardInterrupt
    with pytest.raises(DataError), users_of([*documents, Document("cat")], WORDS):
        pass

    def interrupted():
        yield from documents * 100_000
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), users_of(interrupted(), WORDS):
        pass
    assert os.listdir(folder) == []


@pytest.mark.skipif(not os.path.exists("/proc"), reason="needs /proc")
@pytest.mark.parametrize("group", [users_of, lambda documents, _, **options: texts_of(documents, **options)])
def test_neither_a_name_nor_a_word_reaches_the_disk(tmp_path, monkeypatch, group):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    documents = [Document(f"caterpillar {MARKER}", user=f"{MARKER} {place}", label=MARKER) for place in range(100)]
    with group(documents, Vocabulary(["caterpillar", "<unk>"])) as users:
        links = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
        (content,) = (link.read_bytes() for link in links if os.path.realpath(link).startswith(f"{tmp_path}/"))
        assert len(content) > 24 * 100
        assert MARKER.encode() not in content
        assert b"caterpillar" not in content  # three letters stand in random bytes by chance
        assert len(list(users)) == 100


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs resource")
@pytest.mark.parametrize("user", ["str(row)", "'one'"])
def test_memory_does_not_grow_with_the_documents(user):
    """A process of its own for each size: ten times the documents, the same peak (16 MiB may come and go)."""
    code = f"""
        import resource, sys
        from dptext.io.documents import Document
        from dptext.users import grouping
        from dptext.users.grouping import texts_of
        grouping.BUFFER_BYTES, grouping.LARGE_BUCKET = 1 << 16, 1 << 18
        documents = (Document("cat dog", user={user}, label=f"label {{row}}" * 3) for row in range(int(sys.argv[1])))
        with texts_of(documents, columns=["label"], code=lambda _: -1, most_documents=100) as users:
            sum(len(texts) for user in users for texts, _ in user.chunks())
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    peaks = []
    for count in (20_000, 200_000):
        command = [sys.executable, "-c", textwrap.dedent(code), str(count)]
        peaks.append(int(subprocess.run(command, capture_output=True, check=True, text=True).stdout))
    unit = 1024 if sys.platform != "darwin" else 1
    assert abs(peaks[1] - peaks[0]) * unit < 16 << 20


# -- texts ----------------------------------------------------------------------------------------------------


def topic(values):
    return {("news",): 0, ("sports",): 1}.get(values, -1)


def collected_texts(documents, **options):
    """A sorted list of [(text, class), ...], one entry for each user."""
    with texts_of(documents, **options) as users:
        results = [texts_and_classes(user) for user in users]
        assert results == [texts_and_classes(user) for user in users]
    return sorted(results)


def texts_and_classes(user):
    result = []
    for texts, classes in user.chunks():
        assert len(texts) == len(classes) > 0
        assert classes.dtype == np.int32
        result += zip(texts, classes.tolist(), strict=True)
    return result


DOCUMENTS = st.lists(
    st.builds(
        Document,
        st.none() | st.text(st.characters(), max_size=20),  # surrogates, zeros and all
        user=st.sampled_from(["a", "b", " b ", 1, 1.0, "1", "c"]),
        label=st.sampled_from(["news", "sports", "other", None]),
    ),
    max_size=40,
)


@given(documents=DOCUMENTS, limit=st.none() | st.integers(1, 5), is_small=st.booleans())
@settings(max_examples=100, deadline=None)
def test_texts_and_classes_come_as_from_a_dictionary(documents, limit, is_small):
    groups = {}
    for document in documents:
        user = groups.setdefault(canonical_id(document.user), [])
        user.append((document.text or "", topic((document.label,))))
    with pytest.MonkeyPatch.context() as patch:
        if is_small:
            shrink(patch)
        options = {"columns": ["topic"], "code": topic, "most_documents": limit}
        assert collected_texts(documents, **options) == sorted(texts[:limit] for texts in groups.values())


def test_classes_come_from_kept_columns_or_the_label(tmp_path):
    rows = [
        {"text": "one", "who": "a", "topic": "news", "stars": 1},
        {"text": "two", "who": 7, "topic": None, "stars": 2.0},
        {"text": "three", "who": "a", "topic": "sports", "stars": "2"},
    ]
    path = write(tmp_path / "a.jsonl", rows)
    expected = [[("one", 0), ("three", 1)], [("two", -1)]]
    kept = read_documents(path, user="who", keep=["topic", "stars"])
    assert collected_texts(kept, columns=["topic"], code=topic) == expected
    for name in ("topic", "another"):
        for kind in (iter, list):
            labelled = kind(read_documents(path, user="who", label="topic"))
            assert collected_texts(labelled, columns=[name], code=topic) == expected
    both = {("news", "1"): 0, (None, "2"): 1, ("sports", "2"): 2}
    for kind in (iter, list):
        documents = kind(read_documents(path, user="who", keep=["topic", "stars"]))
        result = collected_texts(documents, columns=["topic", "stars"], code=both.__getitem__)
        assert result == [[("one", 0), ("three", 2)], [("two", 1)]]
    # an existing column wins over the label
    stars = read_documents(path, user="who", label="topic", keep=["stars"])
    result = collected_texts(stars, columns=["stars"], code=lambda values: int(values[0]))
    assert result == [[("one", 1), ("three", 2)], [("two", 2)]]
    with pytest.raises(ParameterError, match=r"'topic'.*keep=\['topic'\]"):
        collected_texts(read_documents(path, user="who", keep=["stars"]), columns=["topic"], code=topic)


def test_a_missing_or_unusual_value_is_a_value():
    """Private values never raise: a list, a nan, a document without the attribute."""
    seen = []
    documents = [
        Document("x", user="a", attributes={"one": value, "two": "2"})
        for value in (None, float("nan"), [1], {}, b"y", True, 1, 1.0, " 1", 4.5, "True")
    ]
    documents += [Document("x", user="a"), Document("x", user="a", attributes={"one": "1"})]
    collected_texts(documents, columns=["one", "two"], code=lambda values: seen.append(values) or 0)
    assert set(seen) == {(None, "2"), ("true", "2"), ("1", "2"), ("4.5", "2"), (None, None), ("1", None)}


def test_classes_without_columns():
    documents = [Document("x", user="a", label="news"), Document("y", user="b")]
    assert collected_texts(documents) == [[("x", 0)], [("y", 0)]]
    for code in (3, OUTSIDE):
        assert collected_texts(documents, code=lambda _, code=code: code) == [[("x", code)], [("y", code)]]


def test_cached_words_are_freed_with_their_cache():
    """Without waiting for the garbage collector: they are private, and many calls would add up."""
    gc.disable()
    try:
        rows = TokenRows(len)
        rows(["tea tax"])
        left = weakref.ref(rows)
        del rows
        assert left() is None
    finally:
        gc.enable()
