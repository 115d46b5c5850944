"""Phrases of many users: candidates against a brute-force computation, norms of users, and what one user can reveal."""

from collections import Counter
from contextlib import closing

import numpy as np
import pytest
from scipy.stats import binom

from dptext.noise.gaussian_sums import CELL
from dptext.noise.set_union import SetUnion, weights
from dptext.privacy.randomness import RandomBits
from dptext.summary import phrases as module
from dptext.summary.phrases import UserPhrases

KNOWN = ("the", "of", "and", "to")
WORDS = ("tea", "cup", "milk", "tax", "law", "dog", "cat", *KNOWN)

ROUNDS = 4


class Exact(SetUnion):
    """No noise: releases sums of at least the threshold."""

    def release(self, keys, cells, bits):
        keys, sums = keys[cells > 0], cells[cells > 0] * CELL
        return keys[sums >= self.threshold], sums[sums >= self.threshold]


def exact(*thresholds, keys=1000):
    return [Exact("gaussian", 0.0, threshold, keys, 0.0) for threshold in thresholds]


def phrases_of(texts, length):
    """The phrases of one user, of texts without punctuation."""
    words = [text.lower().split() for text in texts]
    return {tuple(entry[start : start + length]) for entry in words for start in range(len(entry) - length + 1)}


def union(candidates, threshold):
    """Sums of weights of norm 1 of at least the threshold, from the candidates of each user."""
    sums = Counter()
    for entries in candidates:
        sums.update(dict.fromkeys(entries, int(weights(len(entries))))) if entries else None
    return {entry: total * CELL for entry, total in sums.items() if total * CELL >= threshold}


def brute_force(users, thresholds):
    """All rounds with sets of words."""
    first = union([{p for p in phrases_of(texts, 1) if p[0] not in KNOWN} for texts in users], thresholds[0])
    rest = [{p for p in phrases_of(texts, 1) if p[0] not in KNOWN and p not in first} for texts in users]
    words = {**first, **union(rest, thresholds[1])}
    pairs = union([{p for p in phrases_of(t, 2) if all((w,) in words for w in p)} for t in users], thresholds[2])

    def is_candidate(triple):
        if (triple[0],) not in words or (triple[2],) not in words:
            return False
        return triple[1] in KNOWN or (triple[:2] in pairs and triple[1:] in pairs)

    triples = union([set(filter(is_candidate, phrases_of(texts, 3))) for texts in users], thresholds[3])
    return words | pairs | triples


def random_users(seed, count=60):
    generator = np.random.default_rng(seed)
    chances = 1 / np.arange(1, len(WORDS) + 1)
    return [
        [
            " ".join(generator.choice(WORDS, generator.integers(0, 12), p=chances / chances.sum()))
            for _ in range(generator.integers(0, 4))
        ]
        for _ in range(count)
    ]


def found(users, unions, seed=1, known=KNOWN):
    with closing(UserPhrases(known)) as phrases:
        for texts in users:
            phrases.add(texts)
        return {entry.words: entry.weight for entry in phrases.find(unions, RandomBits(seed))}


@pytest.mark.parametrize("tokens", [module._TOKENS_AT_ONCE, 40])
@pytest.mark.parametrize("seed", range(3))
def test_all_rounds_are_those_of_sets_of_words(seed, tokens, monkeypatch):
    monkeypatch.setattr(module, "_TOKENS_AT_ONCE", tokens)
    monkeypatch.setattr(module, "_ENTRIES", tokens)
    users, thresholds = random_users(seed), (12.0, 4.0, 3.0, 1.2)
    result = found(users, exact(*thresholds))
    assert result == brute_force(users, thresholds)
    assert {len(entry) for entry in result} == {1, 2, 3}
    assert any(entry[1] in KNOWN for entry in result if len(entry) == 3)


def test_users_of_each_phrase_are_counted():
    users = random_users(5)
    named = [("tea",), ("the",), ("tea", "cup"), ("the", "tea"), ("tea", "the", "cup"), ("tea", "cup"), ("zorp", "tea")]
    with closing(UserPhrases(KNOWN)) as phrases:
        for texts in users:
            phrases.add(texts)
        counts, people = phrases.count(named)
        assert counts.tolist() == [sum(entry in phrases_of(texts, len(entry)) for texts in users) for entry in named]
        assert people == len(users)
        phrases.add(["Tea. Cup"])
        assert phrases.count([("tea",), ("tea", "cup")])[0].tolist() == [counts[0] + 1, counts[2]]
        assert phrases.count([])[0].size == 0
    for texts in ([], [[]], [[""]], [["the of"]]):
        assert found(texts, exact(0, 0, 0, 0)) == {}


def test_a_phrase_crosses_no_punctuation_number_or_text_and_is_folded():
    texts = ["Green Tea, hot green\ttea 7 hot\nmilk. Cup of Tea", "cup", "\u202ex tea"]
    result = found([texts], exact(0, 0, 0, 0), known=["OF"])
    expected = "green tea hot milk cup|green tea|hot green|hot milk|hot green tea|cup of tea"
    words, *others = expected.split("|")
    assert result.keys() == {(word,) for word in words.split()} | {tuple(other.split()) for other in others}


# -- privacy ---------------------------------------------------------------------------------------------------


class Sums(Exact):
    """Keeps the exact sums of a round and releases fixed keys, as if the round had the same output."""

    def __init__(self, keys=1000, released=None):
        super().__init__("gaussian", 0.0, 0.0, keys, 0.0)
        object.__setattr__(self, "released", released)
        object.__setattr__(self, "sums", {})

    def release(self, keys, cells, bits):
        self.sums.update(zip(keys.tolist(), cells.tolist(), strict=True))
        kept = keys if self.released is None else np.intersect1d(keys, self.released)
        return kept, np.ones(len(kept))


def moved(others, user, keys):
    """Change of the sums of each round by one more user, if earlier rounds released the same."""
    before = [Sums(keys) for _ in range(ROUNDS)]
    found(others, before)
    after = [Sums(keys, released=np.array(list(entry.sums), dtype=np.int64)) for entry in before]
    found([*others, user], after)
    return [
        np.array([total - one.sums.get(key, 0) for key, total in other.sums.items()], dtype=object)
        for one, other in zip(before, after, strict=True)
    ]


@pytest.mark.parametrize("keys", [1000, 5])
def test_one_user_moves_each_round_by_a_norm_of_1(keys):
    """Exactly, in integers: any number of words, repeated or not, in one text or many."""
    others = [
        [text] for text in ("tea cup milk tax law", "law dog cat tea", "dog tea cup", "cup the milk of", "milk dog")
    ]
    for user in (
        ["tea"],
        ["tea cup milk tax law dog cat " * 30],
        ["tea cup", "cup milk", "milk dog", "dog tea cup milk"] * 10,
        [" ".join(f"w{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(400))],
        ["tea the cup the milk of law"],
    ):
        changes = moved(others, user, keys)
        assert len(changes) == ROUNDS
        for change in changes:
            assert (change**2).sum() <= 2**48
            assert np.count_nonzero(change) <= keys
        assert (changes[0] ** 2).sum() > 0.999 * 2**48


def test_the_order_of_the_result_reveals_nothing_about_the_order_of_users():
    """All words have the same sum, and all pairs."""
    users = [[f"{one} {other}"] for one in WORDS[:7] for other in WORDS[:7] if one != other]
    orders = [users, users[::-1], sorted(users)]
    results = [list(found(entry, exact(2.0, 2.0, 0.5, 1.0)).items()) for entry in orders]
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 7 + 42


def test_the_most_frequent_phrases_of_a_user_are_chosen():
    user = ["tea cup tea cup milk", "cup tea dog", "milk dog tea"]
    result = found([user], exact(0.5, 9, 0.5, 9, keys=2))
    assert result.keys() == {("tea",), ("cup",), ("tea", "cup"), ("cup", "tea")}


def test_equally_frequent_phrases_are_chosen_at_random():
    user = [" ".join(f"w{letter}" for letter in "abcdefghij")]
    seen = Counter()
    for seed in range(200):
        result = found([user], exact(0.5, 0.5, 9, 9, keys=3), seed=seed)
        seen.update({entry for entry in result if result[entry] > 0})
        assert len(result) == 6  # three in each of the rounds of words
    assert min(seen.values()) > 60 and len(seen) == 10  # 120 expected; false alarm 1e-15


@pytest.mark.statistical
def test_phrases_of_one_user_pass_as_seldom_as_stated_and_a_lower_threshold_is_caught():
    """Releases of 300 users, and one whose words are unique; each round may show one with probability 1 / 20.

    False alarm 1e-7; the others write enough to pass every round.
    """
    others, runs, share = [["tea cup milk"]] * 300, 300, 0.05
    user = ["zorp frab quux tea zorp", "frab tea quux"]

    def revealing(less):
        unions = [SetUnion.build(1.3, share, 10) for _ in range(ROUNDS)]
        unions = [SetUnion("gaussian", 1.3, union.threshold - less, 10, share) for union in unions]
        phrases = UserPhrases()
        with closing(phrases):
            for texts in [*others, user]:
                phrases.add(texts)
            results = [{entry.words for entry in phrases.find(unions, RandomBits())} for _ in range(runs)]
        assert all(("tea", "cup", "milk") in entries for entries in results)
        return sum(any({"zorp", "frab", "quux"} & {*entry} for entry in entries) for entries in results)

    limit = binom.isf(1e-7, runs, 1 - (1 - share) ** ROUNDS)
    assert revealing(less=0.0) <= limit < revealing(less=1.3)
