"""One user's words at a time: who is one person, what is a word, what is refused, and that nothing else matters."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from dptext.errors import DataError, ParameterError
from dptext.files import blocks
from dptext.files.documents import Document, read_documents
from dptext.ledger.ledger import Ledger
from dptext.privacy.guarantee import PureDP
from dptext.privacy.unit import Relation, Unit, canonical_id
from dptext.release.people import TextsOfPeople
from dptext.text.tokens import Kind, Vocabulary, kind_of, pieces
from dptext.users import grouping, sorting
from dptext.users.grouping import OUTSIDE, users_of
from files.secrecy import MARKER

WORDS = Vocabulary(["cat", "dog", "tax", "<unk>"])


def collected(documents, vocabulary=WORDS, **options):
    """A sorted list of (documents, levels), one entry for each user."""
    with users_of(documents, vocabulary, **options) as users:
        found = [(texts_of(person), person.levels) for person in users]
        assert found == [(texts_of(person), person.levels) for person in users]
    return sorted(found, key=repr)


def texts_of(person):
    chunks = list(person.chunks())
    assert chunks
    texts = []
    for rows, lengths in chunks:
        assert rows.dtype == np.int32
        assert lengths.dtype == np.int64
        texts += [each.tolist() for each in np.split(rows, np.cumsum(lengths))[:-1]]
    return texts


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# -- words ----------------------------------------------------------------------------------------------------


def test_words_are_looked_up_as_everywhere_and_nothing_else_is_a_word():
    text = "The CAT paid 3.50 in tax, see https://x.org/cat or mail dog@cat.org @cat... \U0001f600 don't"
    ((texts, _),) = collected([Document(text, user="a")])
    words = [piece for piece in pieces(text) if kind_of(piece) is Kind.WORD]
    rows = [WORDS.row(word) for word in words]
    assert texts == [[OUTSIDE if row == WORDS.unknown_row else row for row in rows]]
    assert texts[0].count(0) == texts[0].count(2) == 1


def test_texts_without_words_are_documents_of_length_zero():
    documents = [Document(text, user="a") for text in (None, "", "... 7", "cat", None)] + [Document(None, user="b")]
    assert collected(documents) == [([[], [], [], [0], []], (None,)), ([[]], (None,))]


def test_a_word_that_is_written_like_the_unknown_one_is_outside():
    assert collected([Document("<unk> unk", user="a")]) == [([[OUTSIDE, OUTSIDE]], (None,))]


def test_tokens_that_are_forgotten_and_long_ones_are_looked_up_again(monkeypatch):

    long = "a" * 70
    vocabulary = Vocabulary(["cat", "dog", long, "<unk>"])
    monkeypatch.setattr(grouping, "_TOKENS_REMEMBERED", 3)
    texts = [f"cat {long} zebra dog x y z cat {long}"] * 3
    assert collected([Document(text, user="a") for text in texts], vocabulary) == [
        ([[0, 2, -1, 1, -1, -1, -1, 0, 2]] * 3, (None,))
    ]


# -- users ----------------------------------------------------------------------------------------------------


def test_scattered_users_come_whole_with_their_documents_in_order(tmp_path):
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


def test_one_person_may_be_spelled_in_several_ways():
    users = [7, 7.0, "7", " 7 ", "7.0", np.int64(7), np.float64(7)]
    assert collected([Document("cat", user=user) for user in users]) == [([[0]] * len(users), (None,))]
    others = ["07", "7 a", "seven", 77, "-7", "７"]
    assert len(collected([Document("cat", user=user) for user in others])) == len(others)
    assert canonical_id("7.0") == "7"


def test_mechanisms_counters_and_ledgers_tell_users_apart_in_the_same_way(tmp_path):
    users = ["José", "Jose\N{COMBINING ACUTE ACCENT}", " José ", 7, "7.0", "jose", "07"]
    ledger = Ledger.create(tmp_path / "book", epsilon=9)
    terms = {"by": "author", "unit": Unit.USER, "relation": Relation.ADD_REMOVE}
    counter = TextsOfPeople("author")
    counter.add(users, ["cat"] * len(users))
    assert len(collected([Document("cat", user=user) for user in users])) == 4
    assert ledger.reserve("a", PureDP(1.0), map(str, users), **terms).units == 4
    assert counter.most.texts == 3


def test_a_whole_number_of_any_length_is_a_key():
    long = 10**6000 + 7
    spelled = "1" + "0" * 5999 + "7"
    assert (canonical_id(long), canonical_id(-long), canonical_id(spelled)) == (spelled, f"-{spelled}", spelled)
    assert len(collected([Document("cat", user=user) for user in (long, spelled, long + 1)])) == 2


@pytest.mark.parametrize("user", [None, "", "  ", float("nan"), 7.5, True, float("inf"), b"x", ["x"]])
def test_a_row_without_a_user_is_refused_and_named(user):
    documents = [Document(MARKER, user=MARKER)] * 3 + [Document(MARKER, user=user)]
    with pytest.raises(DataError, match="row 4 has no user") as caught, users_of(documents, WORDS):
        pass
    assert MARKER not in str(caught.value)


def test_missing_users_are_nobody_however_the_documents_are_read(tmp_path):
    """One by one too: people without a name, taken for one called "nan", would share what one of them may move."""
    path = write(tmp_path / "a.jsonl", [{"text": "cat", "who": float("nan")}] * 2)
    for documents in (read_documents(path, user="who"), list(read_documents(path, user="who"))):
        with pytest.raises(DataError, match="row 1 has no user"):
            collected(documents)


def test_a_row_without_a_user_is_counted_over_blocks(monkeypatch, tmp_path):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 10)
    documents = [Document("cat", user="a")] * 25 + [Document("cat")]
    with pytest.raises(DataError, match="row 26 has no user"), users_of(documents, WORDS):
        pass
    path = write(tmp_path / "a.jsonl", [{"text": "cat", "who": "a"}] * 25 + [{"text": "cat", "who": None}])
    with pytest.raises(DataError, match="row 26 has no user"), users_of(read_documents(path, user="who"), WORDS):
        pass


def test_single_documents_are_units_when_asked_for_only(tmp_path):
    rows = [{"text": text, "who": 1} for text in ("cat", "dog", "cat", "")]
    path = write(tmp_path / "a.jsonl", rows)
    expected = [([[0]], (None,)), ([[0]], (None,)), ([[1]], (None,)), ([[]], (None,))]
    assert collected(read_documents(path), unit="document") == expected
    assert collected(read_documents(path, user="who"), unit="document") == expected
    assert collected([Document(row["text"]) for row in rows], unit="document") == expected
    with pytest.raises(ParameterError, match="unit='document'"), users_of(read_documents(path), WORDS):
        pass


def test_the_order_of_the_users_is_random_and_says_nothing_about_names_or_the_input():
    documents = [Document(word, user=str(place)) for place, word in enumerate(["cat", "dog", "tax", "zebra"] * 8)]

    def order(given, **options):
        with users_of(given, WORDS, **options) as users:
            return [texts_of(person)[0][0] for person in users]

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


def test_levels_of_a_prolific_user_come_with_him_too(monkeypatch):
    monkeypatch.setattr(sorting, "BATCH_WORDS", 5)
    documents = [Document("cat", user="a", attributes={"level": place // 40}) for place in range(100)]
    assert collected(documents, level="level") == [([[0]] * 100, (0, 1, 2))]


def test_wrong_levels_are_refused(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"text": "cat", "who": "a", "level": 1}])
    with pytest.raises(ParameterError, match="keep"), users_of(read_documents(path, user="who"), WORDS, level="level"):
        pass
    with pytest.raises(DataError, match="row 1 has no attribute"):
        collected([Document("cat", user="a")], level="level")
    with pytest.raises(DataError, match="a text or a number, got list"):
        collected([Document("cat", user="a", attributes={"level": []})], level="level")
    many = [Document("cat", user="a", attributes={"level": place}) for place in range(1001)]
    with pytest.raises(DataError, match="more than 1,000"):
        collected(many, level="level")


# -- bounds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1 << 20, 4])
@pytest.mark.parametrize("most", range(1, 12))
def test_the_first_words_of_a_user_are_looked_at_and_no_more(monkeypatch, batch, most):
    monkeypatch.setattr(sorting, "BATCH_WORDS", batch)
    monkeypatch.setattr(sorting, "RUN_DOCUMENTS", 1 if batch == 4 else 100)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 1 if batch == 4 else 100)
    texts = ["cat zebra", "", "dog", "tax tax tax", "", "cat cat", ""]
    full = [[0, -1], [], [1], [2, 2, 2], [], [0, 0], []]
    ((found, _),) = collected([Document(text, user="a") for text in texts], most_words=most)
    together = [row for text in full for row in text]
    assert [row for text in found for row in text] == together[:most]
    for got, whole in zip(found, full, strict=False):
        assert got == whole[: len(got)]
    if most > 8:
        assert found == full


@pytest.mark.slow
def test_one_user_with_a_million_words_is_bounded_and_others_do_not_notice():
    document = Document("cat dog " * 50_000, user="a")
    documents = [Document("tax", user="b"), *[document] * 10, Document("tax", user="c"), document]
    with users_of(documents, WORDS, most_words=1000) as users:
        sizes = sorted(sum(rows.size for rows, _ in person.chunks()) for person in users)
    assert sizes == [1, 1, 1000]
    with users_of(documents, WORDS) as users:
        chunks = sorted([rows.size for rows, _ in person.chunks()] for person in users)
    assert chunks[:2] == [[1], [1]]
    assert sum(chunks[2]) == 1_100_000


# -- processes, arguments, traces -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(tmp_path):
    generator = np.random.default_rng(5)
    words = np.array(["cat", "dog", "tax", "zebra", "é", "don't"], dtype=object)
    rows = [{"text": " ".join(generator.choice(words, 2000)), "who": place % 50} for place in range(400)]
    path = write(tmp_path / "a.jsonl", rows)  # several blocks
    found = []
    for processes in (1, 2):
        with users_of(read_documents(path, user="who"), WORDS, processes=processes, seed=1) as users:
            found.append([texts_of(person) for person in users])
    assert found[0] == found[1]
    assert len(found[0]) == 50


@pytest.mark.parametrize(
    "options",
    [{"unit": "word"}, {"most_words": 0}, {"most_words": True}, {"most_words": 1.5}, {"processes": 0}, {"seed": "x"}],
)
def test_wrong_arguments_are_refused(options):
    with pytest.raises(ParameterError), users_of([Document("cat", user="a")], WORDS, **options):
        pass


@pytest.mark.parametrize("documents", ["cat", {"a": 1}, 7, None])
def test_what_are_no_documents_is_refused(documents):
    with pytest.raises(ParameterError, match="documents must be"), users_of(documents, WORDS):
        pass


def test_entries_that_are_no_documents_are_named_by_their_row():
    with pytest.raises(DataError, match="row 2 must be a Document, got str"):
        collected([Document("cat", user="a"), "cat"])
    with pytest.raises(DataError, match="row 1: expected a string as text, got int"):
        collected([Document(7, user="a")])
    with pytest.raises(ParameterError, match="must be a Vocabulary"):
        collected([Document("cat", user="a")], ["cat"])


@pytest.mark.skipif(sys.platform == "win32", reason="there the file has a name, and goes with its last handle")
@pytest.mark.parametrize("processes", [1, 2])
def test_nothing_stays_on_the_disk_whatever_happens(tmp_path, monkeypatch, processes):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    documents = [Document("cat", user="a"), Document("cat", user="b")]
    with users_of(documents, WORDS, processes=processes) as users:
        assert os.listdir(folder) == []
        assert len(list(users)) == 2
    with pytest.raises(KeyboardInterrupt), users_of(documents, WORDS) as users:
        for _ in users:
            raise KeyboardInterrupt
    with pytest.raises(DataError), users_of([*documents, Document("cat")], WORDS, processes=processes):
        pass

    def interrupted():
        yield from documents * 100_000
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), users_of(interrupted(), WORDS):
        pass
    assert os.listdir(folder) == []


@pytest.mark.skipif(not os.path.exists("/proc"), reason="needs /proc")
def test_neither_a_name_nor_a_word_reaches_the_disk(tmp_path):
    documents = [Document(f"caterpillar {MARKER}", user=f"{MARKER} {place}") for place in range(100)]
    with users_of(documents, Vocabulary(["caterpillar", "<unk>"]), folder=tmp_path) as users:
        links = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
        (content,) = (link.read_bytes() for link in links if os.path.realpath(link).startswith(f"{tmp_path}/"))
        assert len(content) > 4 * 100
        assert MARKER.encode() not in content
        assert b"caterpillar" not in content  # three letters stand in random bytes by chance
        assert users is not None


@pytest.mark.slow
def test_memory_stays_flat_in_the_number_of_users():
    """A process of its own for each size: ten times the users, the same peak (16 MiB may come and go)."""
    code = """
        import resource, sys
        from dptext.users import sorting
        from dptext.users.grouping import users_of
        from dptext.files.documents import Document
        from dptext.text.tokens import Vocabulary
        sorting.RUN_DOCUMENTS = 1 << 12
        sorting.PART_RECORDS = 1 << 10
        count = int(sys.argv[1])
        documents = (Document("cat dog", user=str(place)) for place in range(count))
        from dptext.files import blocks
        blocks.BLOCK_ROWS = 1 << 10
        with users_of(documents, Vocabulary(["cat", "<unk>"])) as users:
            assert sum(1 for person in users for _ in person.chunks()) == count
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    if sys.platform == "win32":
        pytest.skip("needs resource")
    peaks = []
    for count in (10_000, 100_000):
        command = [sys.executable, "-c", textwrap.dedent(code), str(count)]
        peaks.append(int(subprocess.run(command, capture_output=True, check=True, text=True).stdout))
    unit = 1024 if sys.platform != "darwin" else 1
    assert abs(peaks[1] - peaks[0]) * unit < 16 << 20


def test_by_user_hands_on_what_the_caller_may_name():
    assert set(grouping.__all__) >= {"OUTSIDE", "Person", "Users", "users_of"}
