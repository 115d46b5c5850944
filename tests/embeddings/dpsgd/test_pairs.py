"""Pairs lie within a window of one document; negative words follow public weights; keys determine every draw."""

import numpy as np
from scipy import stats

from dptext.embeddings.training import NONE, PairDrawing
from dptext.users.grouping import DOCUMENT_END as END

ALARM = 1e-6
WORDS = 50
KEYS = np.random.default_rng(1).integers(0, 2**64, 1000, dtype=np.uint64)


def drawing(window=2, negatives=5, kept=None, weights=None, unknown=WORDS - 1):
    kept = np.ones(WORDS) if kept is None else kept
    weights = np.arange(1, WORDS + 1) ** -0.75 if weights is None else weights
    return PairDrawing.of(kept, weights, unknown=unknown, window=window, negatives=negatives)


def pairs_of(text, count=20_000, key=KEYS[0], **options):
    rows = np.array(text, dtype=np.int32)
    pairs, ends = drawing(**options).draw_users(rows, np.array([0]), np.array([len(rows)]), np.array([key]), count)
    assert ends.tolist() == [len(pairs)]
    return pairs


def test_pairs_lie_in_the_window_within_a_document():
    text = [0, 1, -1, 2, 3, END, 4, 5, END, END, 6, END]
    results = {(word, other - WORDS) for word, other, *_ in pairs_of(text).tolist()}
    near = {(0, 1), (1, 2), (2, 3), (4, 5)}  # 0 and 2 are three apart; -1 is no word but has its place
    assert results == near | {(other, word) for word, other in near}


def test_nearer_words_come_more_often():
    """Weights 3, 2, 1 in a window of 3. One test of `ALARM`."""
    text = [*range(40), END]
    pairs = pairs_of(text, window=3)
    distances = np.abs(pairs[:, 0] - (pairs[:, 1] - WORDS))
    inner = (pairs[:, 0] >= 3) & (pairs[:, 0] < 37)
    counts = np.bincount(distances[inner], minlength=4)[1:]
    assert stats.chisquare(counts, counts.sum() * np.array([3, 2, 1]) / 6).pvalue > ALARM
    assert stats.chisquare(counts, counts.sum() * np.ones(3) / 3).pvalue < ALARM


def test_negative_words_follow_their_weights():
    """One test of `ALARM`, against the weights; another power is rejected."""
    pairs = pairs_of([3, 4, END], count=20_000)
    assert ((pairs[:, 2:] == NONE) | (pairs[:, 2:] >= WORDS)).all()
    draws = pairs[:, 2:][pairs[:, 2:] != NONE] - WORDS
    assert (WORDS - 1) not in draws  # the unknown word
    neighbours = (pairs[:, 1] - WORDS)[:, None]
    assert not ((pairs[:, 2:] - WORDS) == neighbours).any()
    others = draws[(draws != 3) & (draws != 4)]
    counts = np.bincount(others, minlength=WORDS)
    for power, right in ((0.75, True), (0.85, False)):
        weights = np.arange(1, WORDS + 1.0) ** -power
        weights[[3, 4, WORDS - 1]] = 0
        positive = weights > 0
        pvalue = stats.chisquare(counts[positive], (weights / weights.sum() * counts.sum())[positive]).pvalue
        assert (pvalue > ALARM) == right


def test_frequent_words_are_left_out_at_both_ends():
    """Word 0 stays with chance .1: beside others and as the first of a pair. Two tests of `ALARM`."""
    kept = np.ones(WORDS)
    kept[0] = 0.1
    text = [0, 1] * 50 + [END]
    pairs = pairs_of(text, kept=kept, window=1)
    share = float(((pairs[:, 0] == 0) | (pairs[:, 1] == WORDS)).mean())
    assert share == 1.0  # every pair has a 0
    text = [0, 1, 2, 3] * 50 + [END]
    pairs = pairs_of(text, kept=kept, window=1)
    for column, row in ((0, 0), (1, WORDS)):
        count = int((pairs[:, column] == row).sum())
        # of the eight kinds of pairs two have the 0 at this end (chance .1 each), two at the other end
        chance = 0.2 / (0.4 + 4)
        assert min(stats.binom.cdf(count, len(pairs), chance), stats.binom.sf(count, len(pairs), chance)) > ALARM


def test_texts_without_pairs_have_none():
    for text in [[], [END], [END] * 5, [-1, -1, END], [7, END], [7, END, 8, END], [-1, 7, -1, END]]:
        assert len(pairs_of(text, count=100)) == 0


def test_one_word_a_million_times():
    pairs = pairs_of([7] * 1_000_000 + [END], count=500)
    assert len(pairs) == 500
    assert (pairs[:, :2] == [7, WORDS + 7]).all()


def test_pairs_depend_on_the_key_and_texts_of_the_user_only():
    texts = [np.array([*range(start, start + 8), END], dtype=np.int32) for start in (0, 10, 20)]
    output = drawing()

    def of(*which):
        rows = np.concatenate([texts[user] for user in which])
        stops = np.cumsum([len(texts[user]) for user in which])
        starts = np.concatenate([[0], stops[:-1]])
        pairs, ends = output.draw_users(rows, starts, stops, KEYS[list(which)], 30)
        return {user: part.tolist() for user, part in zip(which, np.split(pairs, ends[:-1]), strict=True)}

    together = of(0, 1, 2)
    assert of(2, 0) == {user: together[user] for user in (0, 2)}
    assert of(1)[1] == together[1]
    assert pairs_of(texts[0], count=30, key=KEYS[1])[:, :2].tolist() != [pair[:2] for pair in together[0]]


def test_every_pair_of_a_corpus_has_one_slot():
    rows = np.array([0, 1, -1, 2, 3, END, 4, 5, END], dtype=np.int32)
    output = drawing(window=2, kept=np.ones(WORDS))
    slots = np.arange(len(rows) * 4)
    result = set()
    for seed in range(20):  # distance 2 stays with chance 1/2
        keys = np.random.default_rng(seed).integers(0, 2**64, len(slots), dtype=np.uint64)
        pairs = output.draw_slots(rows, slots, keys)
        some = [(int(word), int(other) - WORDS) for word, other, *_ in pairs]
        assert len(some) == len(set(some))
        result |= set(some)
    near = {(0, 1), (1, 2), (2, 3), (4, 5)}
    assert result == near | {(other, word) for word, other in near}


def test_slots_thin_out_by_distance():
    """Distances 1 and 2 in a window of 2 stay with chances 1 and 1/2. Two tests of `ALARM`."""
    rows = np.array([*range(40), END], dtype=np.int32)
    slots = np.repeat(np.arange(len(rows) * 4), 100)
    keys = np.random.default_rng(3).integers(0, 2**64, len(slots), dtype=np.uint64)
    pairs = drawing(window=2).draw_slots(rows, slots, keys)
    distances = np.bincount(np.abs(pairs[:, 0] - (pairs[:, 1] - WORDS)))
    assert distances[1] == 78 * 100
    assert min(stats.binom.cdf(distances[2], 7600, 0.5), stats.binom.sf(distances[2], 7600, 0.5)) > ALARM
