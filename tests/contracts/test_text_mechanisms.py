"""What every mechanism that replaces words or sentences keeps: any text, silent messages, noise, counts."""

import logging
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptext
from contracts.forked import outputs_of_processes
from dptext.errors import DataError, ParameterError, ProtectionWarning
from dptext.io.batches import Batch
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.release.mechanism import Rewriter, rewrite_blocks
from secrecy import MARKER, assert_error

WORDS = ("tea", "milk", "cup", "tax")
VECTORS = dptext.load_vectors((WORDS, np.random.default_rng(2).normal(size=(4, 3))))
BANK = dptext.TextBank(
    [" ".join(words) for words in product(WORDS, repeat=3)], encoder=dptext.MeanOfWords(VECTORS), cache=False
)
OF_WORDS = dptext.load_vectors(([f"word{letter}" for letter in "abcdefghijklmnop"], np.eye(16)))
OF_BANK = {
    "sentences": dptext.BankRewriter(BANK, epsilon=1.5),
    "three sentences at most": dptext.BankRewriter(BANK, epsilon=1.5, max_sentences=3),
    "documents": dptext.BankRewriter(BANK, epsilon=1.5, unit="document"),
    "documents of three sentences": dptext.BankRewriter(BANK, epsilon=1.5, unit="document", max_sentences=3),
}
MECHANISMS = {
    "words by distance": dptext.TEM(OF_WORDS, epsilon=1.5),
    "words by subset": dptext.SubsetSelection(OF_WORDS, epsilon=1.5),
    "words once redacted": dptext.Redacted(dptext.TEM(OF_WORDS, epsilon=1.5), words=["tea cup"]),
    "documents once redacted": dptext.Redacted(OF_BANK["documents"], kinds=["date", "url"]),
    **OF_BANK,
}
FIXED = {"documents": 1, "documents once redacted": 1, "documents of three sentences": 3}
"""Mechanisms that say nothing of a document but what the noise lets through, and how many parts each document has."""

LONG = 1_000_000
ODD = [
    "",
    " \t\n ",
    "\0",
    "\0. \0! \0",
    "\ud800",
    "half \udfff. a pair",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd. \u0645\u0631\u062d\u0628\u0627\u061f \u202e!txet",
    "e\u0301" * 50 + ". " + "\u0301" * 50,
    "\u200b\u200d\ufeff",
    "\u65e5\u672c\u8a9e\u3002\u4e2d\u6587\uff01",
    "\U0001f600\U0001f468\u200d\U0001f469 1.5 3,000 http://a.b/c?d=e x@y.z",
    "...!!!???",
    '." ) ' * 50,
    "a. " * 400,
    "tea milk. Tax!\r\n\r\nCup?\u2028Tea\x85tax\x1cmilk",
    MARKER,
]
HUGE = ["a" * LONG, "tea " * (LONG // 4), "." * LONG, ". " * (LONG // 2), "a." * (LONG // 2), "'" * LONG, "\n" * LONG]


def replaced(name, texts):
    """Return the private texts and the counts."""
    return MECHANISMS[name].replacing()(texts, RandomBits(1))


def pieces_of_the_bank(text):
    words = text.split()
    assert len(words) % 3 == 0 and set(words) <= set(WORDS)
    return len(words) // 3


# -- all texts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_text_has_an_output_and_no_message_shows_a_text(name, caplog, recwarn):
    mechanism, texts = MECHANISMS[name], [*ODD, None, *ODD]
    with caplog.at_level(logging.DEBUG):
        release = dptext.privatize(texts, mechanism)
    assert [text is None for text in release.texts] == [text is None for text in texts]
    assert MARKER not in caplog.text and {entry.category for entry in recwarn} <= {ProtectionWarning}
    assert MARKER not in "".join(text or "" for text in release.texts)
    statement = release.statement
    assert MARKER not in statement.to_json() + statement.explain()
    assert dptext.PrivacyStatement.from_json(statement.to_json()) == statement
    assert "which rows had no text (null)" in statement.exposed
    for text in release.texts:  # another program can read it
        assert text is None or text.encode().decode() == text
    for wrong in (7, [MARKER], MARKER.encode()):
        assert_error(DataError, lambda wrong=wrong: dptext.privatize(["tea", MARKER, wrong], mechanism), "entry 3")
        if hasattr(mechanism, "sample"):
            assert_error((DataError, ParameterError), lambda wrong=wrong: mechanism.sample([MARKER, wrong]), "entry")
    for wrong in (MARKER, 7):
        with pytest.raises((ParameterError, DataError, TypeError)) as caught:
            dptext.privatize(wrong, mechanism)
        assert MARKER not in str(caught.value)


@pytest.mark.parametrize("name", MECHANISMS)
@settings(max_examples=10)
@given(texts=st.lists(st.none() | st.text(max_size=80), max_size=5))
def test_any_text_is_taken(name, texts):
    mechanism = MECHANISMS[name]
    release = dptext.privatize(texts, mechanism)
    assert [text is None for text in release.texts] == [text is None for text in texts]
    assert release.documents == len(texts)
    if name in FIXED and None not in texts:  # any two documents: one statement for all
        assert release.statement.replace(release_id=None) == mechanism.document_statement(0).replace(release_id=None)
        assert release.statement.guarantee == PureDP(1.5)


@pytest.mark.parametrize("name", OF_BANK)
def test_outputs_consist_of_texts_of_the_bank(name):
    mechanism = OF_BANK[name]
    private = dptext.privatize(ODD, mechanism).texts
    assert [pieces_of_the_bank(text) for text in private] == [len(mechanism.parts(text)) for text in ODD]
    if name in FIXED:
        assert {pieces_of_the_bank(text) for text in private} == {FIXED[name]}


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_text_of_a_million_characters_is_replaced(name):
    for text in HUGE:
        [private], tally = replaced(name, [text])
        assert tally.longest <= LONG // 2
        if name in OF_BANK:
            assert pieces_of_the_bank(private) == tally.longest <= FIXED.get(name, 1)


# -- noise ------------------------------------------------------------------------------------------------------------

TEXTS = ["worda wordb. wordc wordd? worde wordf!", "tea. milk. tax.", None, "", "cup"] * 8


@pytest.mark.parametrize("name", MECHANISMS)
def test_only_seeds_and_repeated_blocks_repeat(name):
    mechanism = MECHANISMS[name]
    seeded = dptext.privatize(TEXTS, mechanism, seed=4)
    assert seeded.texts == dptext.privatize(TEXTS, mechanism, seed=4).texts and seeded.statement.seeded
    assert seeded.texts != dptext.privatize(TEXTS, mechanism, seed=5).texts
    fresh = dptext.privatize(TEXTS, mechanism)
    assert fresh.texts != dptext.privatize(TEXTS, mechanism).texts and not fresh.statement.seeded
    key, block = NoiseKey.restored(bytes(range(32)), seeded=False), Batch(TEXTS, {})
    first, repeated = (Rewriter(mechanism, key=key) for _ in range(2))
    done = first.rewrite_block(3, block)
    first.rewrite_block(0, Batch(ODD, {}))  # earlier texts change nothing
    assert first.rewrite_block(3, block) == done == repeated.rewrite_block(3, block)
    assert first.rewrite_block(4, block)[0] != done[0]
    assert first.rewrite_block(3, Batch([*TEXTS, ""], {}))[0][: len(TEXTS)] != done[0]
    assert Rewriter(mechanism).rewrite_block(3, block)[0] != done[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["words by distance", "documents of three sentences"])
def test_the_number_of_processes_changes_nothing(name):
    blocks = [(place, Batch([f"{text or ''} {place}" for text in TEXTS], {})) for place in range(5)]
    done = []
    for processes in (1, 2):
        rewriter = Rewriter(MECHANISMS[name], key=NoiseKey.restored(bytes(range(32)), seeded=False))
        done.append([private for _, _, (private, _) in rewrite_blocks(rewriter, blocks, processes=processes)])
    assert done[0] == done[1]


@pytest.mark.parametrize("name", OF_BANK)
def test_a_text_changes_its_own_output_only(name):
    """The same bits give the same parts, independent of the surrounding texts."""
    mechanism = OF_BANK[name]
    others = ["tea milk. cup", "tax. Tax", "milk. milk", "nothing. known"]
    for place, instead in product(range(4), ["cup cup. tax", "milk. tea " * 2]):
        changed = [*others[:place], instead, *others[place + 1 :]]
        if len(mechanism.parts(instead)) != 2 and name not in FIXED:
            continue
        for seed in range(3):
            before, after = (mechanism.replacing()(texts, RandomBits(seed))[0] for texts in (others, changed))
            assert [*before[:place], *before[place + 1 :]] == [*after[:place], *after[place + 1 :]]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
@pytest.mark.parametrize("name", OF_BANK)
def test_processes_draw_afresh_and_pickles_and_threads_share_no_state(name):
    mechanism = OF_BANK[name]
    before = pickle.dumps(mechanism)
    texts = dptext.privatize([MARKER, *TEXTS], mechanism, seed=1).texts
    assert pickle.dumps(mechanism) == before
    assert not any(state in before for state in (b"RandomBits", b"NoiseKey", b"privacy.randomness", MARKER.encode()))
    repeated = pickle.loads(before)
    assert repeated.statement == mechanism.statement
    assert dptext.privatize([MARKER, *TEXTS], repeated, seed=1).texts == texts
    with ThreadPoolExecutor(4) as pool:
        done = [*pool.map(lambda seed: dptext.privatize(TEXTS, mechanism, seed=seed).texts, [1, 2] * 3)]
    assert done == [dptext.privatize(TEXTS, mechanism, seed=seed).texts for seed in (1, 2)] * 3
    outputs = outputs_of_processes(mechanism, lambda inherited: dptext.privatize(["tea milk"] * 200, inherited).texts)
    # the likeliest of 64 texts comes with a chance below .1: of 200 places two draws share less than half
    for one, other in combinations([np.array(output) for output in outputs], 2):
        assert np.mean(one == other) < 0.5


# -- the statement ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_frozen(name):
    mechanism = MECHANISMS[name]
    for attribute in (*vars(mechanism), "new"):
        with pytest.raises(AttributeError, match=r"frozen|immutable"):
            setattr(mechanism, attribute, 0.01)
