"""Rounds ask a source, weigh what it wrote by the release alone, vary the best, and choose among all that there is."""

from dataclasses import dataclass

import numpy as np
import pytest

from dptext.errors import DataError, ParameterError
from dptext.features.pool import Pool
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.moments import Labels
from dptext.synthesis.prompts import EXAMPLES, Request, generated

LABELS = Labels.of(["low", "high"], column="side")
HINTS = {"low": ("down",), "high": ("up", "above")}
SHARES = np.array([0.5, 0.5])


@dataclass
class Weights:
    scores: np.ndarray
    nearness: np.ndarray


def weigh(texts):
    """A text is a number; the larger it is, the likelier it is of the second class."""
    numbers = np.array([float(text) for text in texts])
    return Weights(np.stack([-numbers, numbers], axis=1), np.zeros(len(texts)))


class Numbers:
    """Proposes numbers around 0; a variation goes one further from 0. Keeps what it was asked."""

    name = "numbers"

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

    def parameters(self):
        return {}

    assumptions = exposed = parameters


def made(source, n=8, **options):
    values = {"shares": SHARES, "variety": 0.0, "bits": RandomBits(1)} | options
    return generated(weigh, source, LABELS, HINTS, n, **values)


def test_a_source_is_given_names_hints_and_its_own_texts_and_nothing_else():
    source = Numbers()
    made(source, 40, rounds=2)
    assert [dict(entry.label) for entry in source.proposed[:2]] == [{"side": "low"}, {"side": "high"}]
    assert [entry.hints for entry in source.proposed[:2]] == [("down",), ("up", "above")]
    assert [entry.examples for entry in source.proposed[:2]] == [(), ()]
    own = {text for texts in source.written[:2] for text in texts}
    for texts, request in source.varied:
        assert set(texts) <= own
        assert request.examples == tuple(texts)[:EXAMPLES]
        assert request.count == 10


def test_every_round_comes_closer_to_what_was_released():
    reached = []
    for rounds in (1, 2, 4):
        texts, classes = made(Numbers(), 8, rounds=rounds)
        assert np.bincount(classes).tolist() == [4, 4]
        reached.append(np.mean([abs(float(text)) for text in texts]))
    assert reached[0] < reached[1] < reached[2]


def test_texts_come_once_and_with_their_class():
    texts, classes = made(Numbers(), 20, rounds=3)
    assert len(set(texts)) == len(texts) == 20
    extreme = np.argsort([float(text) for text in texts])
    assert classes[extreme[0]] == 0
    assert classes[extreme[-1]] == 1


def test_each_text_is_weighed_once():
    weighed = []

    def counting(texts):
        weighed.extend(texts)
        return weigh(texts)

    generated(counting, Numbers(), LABELS, HINTS, 8, rounds=4, shares=SHARES, variety=0.0, bits=RandomBits(1))
    assert len(weighed) == len(set(weighed))


def test_progress_is_the_number_of_texts_so_far():
    seen = []
    made(Numbers(), 8, rounds=3, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[0] == 4


def test_classes_without_a_share_are_not_asked_for():
    source = Numbers()
    _, classes = made(source, 8, shares=np.array([0.0, 1.0]))
    assert {entry.label["side"] for entry in source.proposed} == {"high"}
    assert set(classes) == {1}


def test_a_round_asks_for_as_many_texts_as_are_wanted():
    source = Numbers()
    made(source, 30, rounds=1)
    assert [entry.count for entry in source.proposed] == [15, 15]


def test_a_pool_has_nothing_more_to_give_after_the_first_round():
    weighed = []
    pool = Pool([str(number) for number in range(-9, 9)])
    texts, _ = generated(
        lambda texts: weighed.append(len(texts)) or weigh(texts),
        pool, LABELS, HINTS, 6, rounds=50, shares=SHARES, variety=0.0, bits=RandomBits(1),
    )  # fmt: skip
    assert weighed == [18]
    assert set(texts) <= set(pool.texts)


def test_without_labels_there_is_one_class():
    source = Numbers()
    texts, classes = generated(
        lambda texts: Weights(weigh(texts).scores[:, 1:], np.zeros(len(texts))),
        source, Labels(), {"": ("up",)}, 5, rounds=2, shares=np.ones(1), variety=0.0, bits=RandomBits(1),
    )  # fmt: skip
    assert source.proposed[0].label == {}
    assert source.proposed[0].hints == ("up",)
    assert len(texts) == 5
    assert set(classes) == {0}


def test_a_source_that_gives_too_little_is_one_clear_error():
    with pytest.raises(DataError, match=r"gave 2 different texts, and 8 are wanted: ask for fewer texts"):
        made(Pool(["1", "2"]))


def test_a_source_may_say_why_it_gave_too_little():
    source = Pool(["1", "2"])
    source.trouble = "all 5 calls are made (max_calls)"
    with pytest.raises(DataError, match=r"2 different texts \(all 5 calls are made \(max_calls\)\), and 8 are wanted"):
        made(source)


class Repeating(Numbers):
    """Every answer but the last one repeats its first text."""

    def propose(self, request):
        texts = super().propose(request)
        return [texts[0], *texts[:-1]] if request.count > 1 else texts


def test_duplicates_are_made_up_for_after_the_last_round():
    source = Repeating()
    texts, _ = made(source, 8, rounds=1)
    assert len(set(texts)) == 8
    assert [request.count for request in source.proposed] == [4, 4, 1, 1]


class Nothing(Numbers):
    def propose(self, request):
        return ["", "  "]


def test_a_source_that_gives_nothing_is_never_weighed():
    with pytest.raises(DataError, match="gave 0 different texts"):
        made(Nothing())


def test_a_source_that_answers_with_something_else():
    for answer in ["one text", None, [1, 2], b"bytes", 7]:
        source = Numbers()
        source.propose = lambda request, answer=answer: answer
        with pytest.raises(ParameterError, match="must answer propose with a list of texts"):
            made(source)
