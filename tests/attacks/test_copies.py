"""Copies and membership scores beyond chance: exact tests, intervals that cover, and uncorrected ones that fail."""

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

from dptext.attacks.copies import (
    SEQUENCE,
    compare_copies,
    compare_scores,
    likelihood_ratios,
    nearest_similarity,
    shared_sequences,
    smallest_finding,
)
from dptext.intervals import significant

FALSE_ALARM = 1e-6
MEMBERS = np.arange(600) < 300
WORDS = [f"word{number}" for number in range(30)]


def random_texts(generator, count, length=12):
    return [" ".join(generator.choice(WORDS, size=length)) for _ in range(count)]


def test_shared_sequences_are_those_of_the_best_single_output_text():
    generator = np.random.default_rng(0)
    texts, output = random_texts(generator, 12), random_texts(generator, 9)
    texts, output = ([f"{text} thank you for calling us today" for text in rows] for rows in (texts, output))
    output += [texts[0], " ".join(texts[1].split()[:8]), f"{texts[2]} {texts[3]}"]

    def sequences(text):
        words = text.split()
        return {tuple(words[i : i + SEQUENCE]) for i in range(max(len(words) - SEQUENCE + 1, 1))}

    expected = [max(len(sequences(text) & sequences(other)) for other in output) for text in texts]
    expected = [count / len(sequences(text)) for count, text in zip(expected, texts, strict=True)]
    assert shared_sequences(texts, output) == pytest.approx(expected)
    assert shared_sequences(texts, output)[[0, 1, 2, 3]] == pytest.approx([1, 4 / 14, 1, 1])
    assert shared_sequences(["", "short text"], ["a short text", "Short, text!"]).tolist() == [0, 1]


def test_nearest_similarity_is_the_largest_cosine():
    generator = np.random.default_rng(1)
    vectors, output = generator.normal(size=(70, 5)), generator.normal(size=(40, 5))
    cosines = (vectors @ output.T) / np.linalg.norm(vectors, axis=1)[:, None] / np.linalg.norm(output, axis=1)
    assert nearest_similarity(vectors, output) == pytest.approx(cosines.max(axis=1))


def sequences_of(text, order):
    """(context, word) of each word, the context being the last words of "^" and all words before it."""
    words = text.split()
    return [(tuple(["^", *words][: place + 1][max(0, place + 2 - order) :]), word) for place, word in enumerate(words)]


def test_likelihood_ratios_follow_their_definition():
    generator = np.random.default_rng(6)
    texts, output = random_texts(generator, 6), random_texts(generator, 4)
    texts[0] = output[0]
    vocabulary = len({word for text in texts + output for word in text.split()})

    def likelihood(text, corpus):
        result = np.full(len(text.split()), 1 / vocabulary)
        for order in (1, 2, 3):
            pairs = [pair for other in corpus for pair in sequences_of(other, order)]
            ahead, total = Counter(pairs), Counter(context for context, _ in pairs)
            for place, (context, word) in enumerate(sequences_of(text, order)):
                result[place] = (ahead[context, word] + result[place]) / (total[context] + 1)
        return np.log(result).mean()

    expected = [
        likelihood(text, output) - likelihood(text, texts[:place] + texts[place + 1 :])
        for place, text in enumerate(texts)
    ]
    assert likelihood_ratios(texts, output) == pytest.approx(expected)


def test_likelihood_ratios_treat_private_and_held_out_texts_alike():
    generator = np.random.default_rng(2)
    texts, output = random_texts(generator, 30), random_texts(generator, 30)
    order = generator.permutation(30)
    assert likelihood_ratios([texts[row] for row in order], output) == pytest.approx(
        likelihood_ratios(texts, output)[order]
    )
    assert likelihood_ratios(texts, texts).min() > likelihood_ratios(texts, output).max()  # all texts are in the output


def test_the_p_value_of_copies_counts_all_choices_of_the_members():
    copied, members = np.array([1, 1, 0, 1, 0, 0, 0, 1], dtype=bool), np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=bool)
    hits = [sum(copied[list(chosen)]) for chosen in combinations(range(8), 4)]
    assert compare_copies("copies", copied, members).p_value == pytest.approx(np.mean(np.array(hits) >= 3))
    assert smallest_finding(10, 10, 1 / comb(20, 3) * comb(10, 3)) == 3
    assert smallest_finding(3, 3, 0.01) == 4  # no number suffices


@pytest.mark.statistical
@pytest.mark.parametrize("chance", [0.0, 0.02, 0.3])
def test_the_estimate_of_copies_is_corrected_for_chance_and_an_uncorrected_one_is_rejected(chance):
    generator, runs, share = np.random.default_rng(3), 400, 0.05
    covered = uncorrected = 0
    for _ in range(runs):
        copied = (generator.random(600) < chance) | (MEMBERS & (generator.random(600) < share))
        score = compare_copies("copies", copied, MEMBERS).scores[0].score
        covered += score.low <= share <= score.high
        interval = stats.binomtest(int(copied[MEMBERS].sum()), 300).proportion_ci(method="exact")
        uncorrected += interval.low <= share <= interval.high
    required = stats.binom.ppf(FALSE_ALARM, runs, 0.95)
    assert covered >= required
    if chance:
        assert uncorrected < required


@pytest.mark.statistical
def test_without_disclosure_a_finding_is_as_rare_as_stated_and_without_correction_it_is_not():
    generator, runs, error = np.random.default_rng(4), 1000, 0.01
    alarms, uncorrected = 0, 0
    for _ in range(runs):
        tests = [compare_copies("copies", generator.random(600) < rate, MEMBERS) for rate in (0.01, 0.1, 0.2)]
        scores = generator.normal(size=(12, 600)).round(1)
        tests += [compare_scores("membership", row, MEMBERS) for row in scores]
        p_values = [test.p_value for test in tests]
        alarms += any(significant(p_values, error))
        uncorrected += min(p_values) <= error
    allowed = stats.binom.isf(FALSE_ALARM, runs, error)
    assert alarms <= allowed < uncorrected


def test_a_few_members_with_the_highest_scores_are_found():
    scores = np.random.default_rng(5).normal(size=2000)
    members = np.arange(2000) < 1000
    assert compare_scores("membership", scores, members).p_value > 0.01
    scores[:15] += 10
    assert compare_scores("membership", scores, members).p_value < 0.001
    assert compare_scores("membership", np.zeros(2000), members).p_value == 1.0


def test_the_p_value_of_scores_is_valid_for_ties_and_few_members():
    """Three of 1,020 scores differ, so 6% of all choices of 20 members contain one of them: rank tests reject all."""
    scores, generator, runs = np.zeros(1020), np.random.default_rng(8), 1000
    scores[:3] = 1.0
    choices = [np.isin(np.arange(1020), generator.choice(1020, 20, replace=False)) for _ in range(runs)]
    alarms = sum(compare_scores("membership", scores, members).p_value <= 0.01 for members in choices)
    ranks = sum(stats.mannwhitneyu(scores[m], scores[~m], alternative="greater").pvalue <= 0.01 for m in choices)
    assert alarms <= stats.binom.isf(FALSE_ALARM, runs, 0.01) < ranks
