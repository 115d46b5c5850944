"""Batches for datasets.map: no process repeats noise, and the statement comes from the private texts alone."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptext
from dptext import TEM, batch_privatizer
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.release.mechanism import Rewriter
from dptext.text.tokens import kind_of, letters_between
from secrecy import assert_error

LONG = " ".join(["word"] * 100)


@pytest.fixture(scope="module")
def mechanism(small):
    return TEM(small, epsilon=0.1)


@pytest.fixture
def datasets(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    return datasets


@pytest.fixture
def stored(datasets, tmp_path):
    """Return a dataset on disk, for which `datasets` caches the results of map."""
    datasets.Dataset.from_dict({"text": [LONG] * 8, "stars": [1, 2] * 4}).save_to_disk(tmp_path / "stored")
    return datasets.load_from_disk(tmp_path / "stored")


def share_of_equal_words(texts):
    words = np.array([text.split() for text in texts])
    equal = [np.mean(words[a] == words[b]) for a in range(len(words)) for b in range(a)]
    return max(equal)


@pytest.mark.parametrize("processes", [None, 4])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_no_two_batches_copies_or_processes_share_noise(mechanism, stored, processes):
    privatizer = batch_privatizer(mechanism)
    copy = pickle.loads(pickle.dumps(privatizer))
    texts = [call({"text": [LONG]})["text"][0] for call in (privatizer, privatizer, copy, copy)]
    private = stored.map(privatizer, batched=True, batch_size=2, num_proc=processes, remove_columns=["stars"])
    assert private.column_names == ["text"] and len(private) == 8
    # about 1 in 300 equal by chance: 30 of 100 with probability below 1e-40
    assert share_of_equal_words([*texts, *private["text"]]) < 0.3
    statement = privatizer.statement(private["text"])
    assert statement.parameters["words_counted"] >= 100 and statement.guarantee.epsilon == mechanism.epsilon


def test_the_same_privatizer_finds_its_release_on_disk_and_names_reveal_nothing(mechanism, stored, datasets):
    """`datasets` names a dataset by a hash of its source; equal originals must not give equal names."""
    privatizer = batch_privatizer(mechanism)
    first, repeated = (stored.map(privatizer, batched=True)["text"][:] for _ in range(2))
    assert first == repeated
    assert privatizer.statement(first).release_id == privatizer.statement(repeated).release_id
    assert stored.map(batch_privatizer(mechanism), batched=True)["text"][:] != first
    rows = datasets.Dataset.from_dict({"text": ["a b"], "stars": [1]})
    assert len({rows.map(batch_privatizer(mechanism), batched=True)._fingerprint for _ in range(3)}) == 3


def test_wrong_batches_and_outputs_are_refused(mechanism):
    privatizer = batch_privatizer(mechanism)
    body = batch_privatizer(mechanism, text="body")
    odd = batch_privatizer(TEM(dptext.WordVectors(["...", "a", "<unk>"], [[0.0], [1.0], [2.0]]), epsilon=1.0))
    for kind, call, message in (
        (ParameterError, lambda: privatizer({"text": "one text"}), "use map(..., batched=True)"),
        (ParameterError, lambda: privatizer({"text": None}), "use map(..., batched=True)"),
        (ParameterError, lambda: body({"text": ["a"]}), "expected a column 'body', the batch has none among its 1"),
        (DataError, lambda: privatizer({"text": ["a", 7]}), "entry 2 is int"),
        (ParameterError, lambda: batch_privatizer(3), "mechanism must be a TextMechanism"),
        (DataError, lambda: privatizer.statement([0.5]), "entry 1 is float"),
        (RefusedError, lambda: odd.statement(["..."]), "has no letter"),
    ):
        assert_error(kind, call, message)


# -- the statement from the output ----------------------------------------------------------------------------


@pytest.mark.slow
@given(st.lists(st.none() | st.text(max_size=40), max_size=5))
@settings(max_examples=100, deadline=None)
def test_never_fewer_words_are_counted_than_there_were(small, texts):
    mechanism = TEM(small, epsilon=5.0)
    rewriter = Rewriter(mechanism)
    private = list(rewriter.rewrite(texts))
    exact = rewriter.statement()
    counted = batch_privatizer(mechanism).statement(private)
    assert counted.parameters["words_counted"] >= exact.parameters["words_counted"]
    assert counted.epsilon >= exact.epsilon
    assert counted.exposed[:-1] == exact.exposed


@pytest.mark.slow
def test_real_words_are_counted_as_they_are(glove):
    """With clitics and abbreviations among the outputs, and words between all kinds of punctuation."""
    mechanism = TEM(glove, epsilon=0.5)
    texts = ["don't-you (know):it's 😀:b a.b 3.a x", "l'ami d'un", "日本 😀😀", "plain words only here"]
    for _ in range(50):
        rewriter = Rewriter(mechanism)
        private = list(rewriter.rewrite(texts))
        longest = batch_privatizer(mechanism).statement(private).parameters["words_counted"]
        assert rewriter.tally.longest <= longest <= 2 * rewriter.tally.longest + 3


@pytest.mark.slow
def test_every_kept_character_parts_runs_of_letters():
    """Were a kept character no boundary, two replacements could be counted as one."""
    for code in range(0x110000):
        if kind_of(chr(code)).value in ("space", "punctuation"):
            assert letters_between(f"a{chr(code)}b") == ["a", "b"], hex(code)


def test_the_statement_has_exact_budgets_kept_columns_and_missing_texts(mechanism, small):
    privatizer = batch_privatizer(mechanism)
    statement = privatizer.statement(privatizer({"text": ["one two", None]})["text"], keep=["stars"])
    assert statement.parameters["words_counted"] == 2 and not statement.seeded
    missing, carried, column = statement.exposed[-3:]
    assert (missing, column) == ("which rows had no text (null)", "the column 'stars', unchanged")
    assert "unless dptext.strip_metadata was applied" in carried
    assert privatizer.statement([]).parameters["words_counted"] == 0
    exact = batch_privatizer(TEM(small, epsilon=5.0, document_epsilon=8.0, max_words=2))
    statement = exact.statement(exact({"text": ["a b c d 1 2 3"]})["text"])
    assert (statement.guarantee, statement.parameters["words_counted"]) == (dptext.PureDP(8.0), 2)
