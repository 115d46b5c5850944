"""Rounds of generation: a source writes, the release weighs, the source varies the best texts."""

import numpy as np
import pytest

from dptext.errors import DataError
from dptext.features.pool import Pool
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.density import Weights
from dptext.synthesis.moments import Labels
from dptext.synthesis.prompts import EXAMPLES, Request, generated

LABELS = Labels.of(["low", "high"], column="side")
HINTS = {"low": ("down",), "high": ("up", "above")}


def weigh(texts):
    """Weigh texts that are numbers: the larger, the likelier the second class."""
    numbers = np.array([float(text) for text in texts])
    return Weights(np.stack([-numbers, numbers], axis=1), np.zeros(len(texts)))


class Numbers:
    """Source that proposes numbers around 0; a variation is 1 further from 0. It keeps the requests."""

    def __init__(self):
        self.proposed, self.varied, self.written = [], [], []

    def propose(self, request: Request):
        self.proposed.append(request)
        shift = 0.00001 * len(self.proposed)
        self.written.append([f"{shift + place * 0.001 - 0.01:.6f}" for place in range(request.count)])
        return self.written[-1]

    def vary(self, texts, request: Request):
        self.varied.append((list(texts), request))
        return [f"{float(text) + np.sign(float(text)):.6f}" for text in texts][: request.count]


class Repeating(Numbers):
    """Source whose answers repeat their first text, except answers of one text."""

    def propose(self, request):
        texts = super().propose(request)
        return [texts[0], *texts[:-1]] if request.count > 1 else texts


def generate(source, n=8, *, weigh=weigh, labels=LABELS, hints=HINTS, **options):
    values = {"shares": np.full(len(labels), 1 / len(labels)), "variety": 0.0, "bits": RandomBits(1)} | options
    return generated(weigh, source, labels, hints, n, **values)


def test_a_source_gets_labels_hints_and_its_own_texts_only():
    source = Numbers()
    generate(source, 40, rounds=2)
    low, high = source.proposed[:2]
    assert (dict(low.label), low.hints, low.examples, low.count) == ({"side": "low"}, ("down",), (), 20)
    assert (dict(high.label), high.hints, high.examples) == ({"side": "high"}, ("up", "above"), ())
    written = {text for texts in source.written[:2] for text in texts}
    for texts, request in source.varied:
        assert set(texts) <= written
        assert request.examples == tuple(texts)[:EXAMPLES]
        assert request.count == 10


def test_every_round_comes_closer_to_the_release():
    reached = []
    for rounds in (1, 2, 4):
        weighed, seen = [], []
        texts, classes = generate(
            Numbers(),
            rounds=rounds,
            weigh=lambda texts, weighed=weighed: weighed.extend(texts) or weigh(texts),
            progress=seen.append,
        )
        assert np.bincount(classes).tolist() == [4, 4]
        assert len(set(texts)) == 8
        extreme = np.argsort([float(text) for text in texts])
        assert (classes[extreme[0]], classes[extreme[-1]]) == (0, 1)
        assert len(weighed) == len(set(weighed))  # each text once
        assert (seen[0], seen) == (4, sorted(seen))
        reached.append(np.mean([abs(float(text)) for text in texts]))
    assert reached[0] < reached[1] < reached[2]


def test_classes_without_a_share_and_missing_labels():
    source = Numbers()
    _, classes = generate(source, shares=np.array([0.0, 1.0]))
    assert {entry.label["side"] for entry in source.proposed} == {"high"}
    assert set(classes) == {1}
    source = Numbers()
    one_class = lambda texts: Weights(weigh(texts).scores[:, 1:], np.zeros(len(texts)))  # noqa: E731
    texts, classes = generate(source, 5, weigh=one_class, labels=Labels(), hints={"": ("up",)}, rounds=2)
    assert (dict(source.proposed[0].label), source.proposed[0].hints) == ({}, ("up",))
    assert (len(texts), set(classes)) == (5, {0})


def test_a_pool_gives_nothing_after_the_first_round():
    weighed = []
    pool = Pool([str(number) for number in range(-9, 9)])
    texts, _ = generate(pool, 6, rounds=50, weigh=lambda texts: weighed.append(len(texts)) or weigh(texts))
    assert weighed == [18]
    assert set(texts) <= set(pool.texts)


def test_duplicates_are_replaced_after_the_last_round():
    source = Repeating()
    texts, _ = generate(source, rounds=1)
    assert len(set(texts)) == 8
    assert [request.count for request in source.proposed] == [4, 4, 1, 1]


def test_a_source_with_too_few_texts_is_an_error():
    with pytest.raises(DataError, match=r"returned 2 different texts, and 8 are needed: request fewer texts"):
        generate(Pool(["1", "2"]))
    source = Pool(["1", "2"])
    source.trouble = "the maximum of 5 calls was reached (max_calls)"
    with pytest.raises(
        DataError, match=r"2 different texts \(the maximum of 5 calls was reached \(max_calls\)\), and 8 are needed"
    ):
        generate(source)
    source = Numbers()
    source.propose = lambda request: ["", "  "]
    with pytest.raises(DataError, match="returned 0 different texts"):
        generate(source)
