"""Users' words in a file: the store returns the input, in little memory."""

import sys

import numpy as np
import pytest

from dptext import Document
from dptext.errors import StorageError
from dptext.text.tokens import Vocabulary
from dptext.users.grouping import DOCUMENT_END, UserWords, stored_users, users_of

WORDS = Vocabulary(["cat", "sat", "mat", "<unk>"])


def test_each_user_is_one_run_of_rows_with_marks_after_documents():
    users = {"a": ["cat sat", "", "dog mat"], "b": [""], "c": [None], "d": ["mat"] * 4}
    documents = [Document(text, user=user) for user, texts in users.items() for text in texts]
    with users_of(documents, WORDS) as grouped, stored_users(grouped) as store:
        bounds = zip(store.offsets, store.offsets[1:], strict=False)
        result = sorted(store.rows[start:stop].tolist() for start, stop in bounds)
        assert len(store.offsets) == len(store) + 1 == 5 and isinstance(store.rows, np.memmap)
    end = DOCUMENT_END
    assert result == sorted([[0, 1, end, end, -1, 2, end], [end], [end], [2, end] * 4])


def test_levels_become_small_numbers_and_a_user_takes_ten_bytes(monkeypatch):
    documents = [Document("cat", user=str(n), attributes={"wish": "ab"[n % 2]}) for n in range(6)]
    documents += [Document("cat", user="6", attributes={"wish": wish}) for wish in "ab"]

    def code(levels):
        return 7 if set(levels) == {"a", "b"} else ord(levels[0])

    with users_of(documents, WORDS, level="wish") as users, stored_users(users, code) as store:
        assert sorted(store.levels.tolist()) == [7, 97, 97, 97, 98, 98, 98]

    user = UserWords(np.array([0, DOCUMENT_END], dtype=np.int32), (None,))
    with stored_users(user for _ in range(100_000)) as store:
        assert store.offsets.nbytes + store.levels.nbytes == 10 * len(store) + 8
        assert sys.getsizeof(store.offsets.base) < 9.5 * len(store)  # the array behind it grows by an eighth
    with stored_users([]) as store:
        assert (len(store), store.rows.size, store.offsets.tolist()) == (0, 0, [0])
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(StorageError, match="temporary file"), stored_users([]):
        pass


def test_other_texts_users_and_levels_have_other_digests():
    def digest(*rows):
        documents = [Document(text, user=user, attributes={"wish": wish}) for text, user, wish in rows]
        grouped = users_of(documents, WORDS, level="wish", seed=1)
        with grouped as users, stored_users(users, lambda levels: ord(levels[0])) as store:
            return store.digest()

    first = ("cat sat", "a", "x")
    others = [
        (first, ("mat", "a", "x")),
        (first, ("mat", "b", "x")),
        (("cat sat mat", "a", "x"),),
        (("cat sat", "a", "y"),),
        (("cat", "a", "x"), ("sat", "a", "x")),
    ]
    assert digest(first) == digest(first)
    with stored_users([]) as store:
        assert len({digest(first), store.digest(), *(digest(*other) for other in others)}) == 2 + len(others)
