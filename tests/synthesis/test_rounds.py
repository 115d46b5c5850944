"""Generation in rounds: a source writes, the release selects, and the source sees the good texts."""

import re

import numpy as np
import pytest

from dptext.errors import DataError
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.density import Weights
from dptext.synthesis.moments import Labels
from dptext.synthesis.prompts import Generation, generated, near_copies

LABELS = Labels.of({"side": {"low": "Below zero.", "high": "Above zero."}})
HINTS = {"low": ("down",), "high": ("up", "above")}
PUBLIC = {"low": ["value -1 of low"], "high": ["value 1 of high", "value 2 of high"]}


def weigh(texts):
    """Weigh texts by the number in them: the larger, the likelier the second class; all are equally near."""
    numbers = np.array([float(re.search(r"-?[\d.]+", text)[0]) for text in texts])
    return Weights(np.stack([-numbers, numbers], axis=1) / 2, np.zeros(len(texts)))


class Writer:
    """Source that writes different texts with a number, one per round, the last one again; it records all.

    A negative number is one of the other class. A thrifty source writes a quarter of the requested texts, and one.
    """

    def __init__(self, *numbers, is_thrifty=False):
        self.numbers, self.is_thrifty = numbers, is_thrifty
        self.requests, self.written = [], []

    def propose(self, request):
        turn = sum(earlier.label == request.label for earlier in self.requests)
        self.requests.append(request)
        label, start = request.label.get("side", "high"), len(self.written)
        number = self.numbers[min(turn, len(self.numbers) - 1)] * (1 if label == "high" else -1)
        count = 1 + request.count // 4 if self.is_thrifty else request.count
        self.written += [f"value {number} number {place} of {label}" for place in range(start, start + count)]
        return self.written[start:]


class Scripted:
    """Source with a given answer to each call, and empty ones after the last; it records the requests."""

    def __init__(self, *answers):
        self.answers, self.requests = iter(answers), []

    def propose(self, request):
        self.requests.append(request)
        return next(self.answers, [])


def generate(source, n=8, *, weigh=weigh, labels=LABELS, hints=HINTS, **options):
    values = {"shares": np.full(len(labels), 1 / len(labels)), "variety": 0.0, "bits": RandomBits(1)} | options
    return generated(weigh, source, labels, hints, n, **values)


def test_a_source_gets_labels_hints_public_examples_and_its_own_texts():
    source = Writer(2, 3)
    generate(source, 40, examples=PUBLIC, pool=["value 9 of a pool"], candidates=3)
    low, high, *later = source.requests
    assert (dict(low.label), low.hints, low.examples) == ({"side": "low"}, ("down",), ("value -1 of low",))
    assert (dict(high.label), high.hints, high.examples) == ({"side": "high"}, ("up", "above"), tuple(PUBLIC["high"]))
    received = [(request.count, request.description) for request in source.requests]
    assert received == [(60, "Below zero."), (60, "Above zero.")] * 2
    for request, texts in zip(later, PUBLIC.values(), strict=True):
        assert (request.examples, len(request.written)) == (tuple(texts), 20)
        assert all(text in source.written and f"of {request.label['side']}" in text for text in request.written)


def test_later_rounds_show_selected_texts_whose_label_is_confirmed():
    for number, confirmed in [(2, True), (-2, False)]:
        source = Writer(number)
        generate(source, 20, candidates=1, examples=PUBLIC)
        for request in source.requests[2:]:
            assert len(request.written) == (10 if confirmed else 0)


def test_a_run_that_is_repeated_without_a_seed_shows_the_same_texts():
    one, other = Writer(2, 3), Writer(2, 3)
    for number, source in enumerate([one, other]):
        generate(source, 40, variety=1.0, bits=RandomBits(number))
    assert one.requests == other.requests


def test_classes_without_a_share_and_missing_labels():
    source = Writer(2)
    result = generate(source, shares=np.array([0.0, 1.0]))
    assert {request.label["side"] for request in source.requests} == {"high"}
    assert set(result.classes) == {1}
    one_class = lambda texts: Weights(weigh(texts).scores[:, 1:], np.zeros(len(texts)))  # noqa: E731
    result = generate(source, 5, weigh=one_class, labels=Labels(), hints={"": ("up",)}, examples={"": ["value 1"]})
    request = source.requests[2]
    assert (dict(request.label), request.hints, request.examples, request.description) == (
        {},
        ("up",),
        ("value 1",),
        "",
    )
    assert (len(result.texts), set(result.classes)) == (5, {0})


def test_rounds_improve_the_texts_and_one_without_improvement_is_the_last():
    for numbers, rounds, calls, score in [((1, 2, 3), 1, 1, 1.5), ((1, 2, 3), 3, 3, 2.5), ((3, 1, 9), 5, 2, 2.5)]:
        source = Writer(*numbers)
        result = generate(source, rounds=rounds)
        assert len(source.requests) == 2 * calls
        assert result.score == score  # half of the number, and the requested label
        assert np.bincount(result.classes).tolist() == [4, 4]
    source, seen = Scripted(*[["value -1 of low", "value -2 of low"], ["value 1 of high", "value 2 of high"]] * 2), []
    assert len(generate(source, 4, rounds=5, progress=seen.append).texts) == 4
    assert seen == [2, 4, 6, 8]  # a round without a new text is the last, too


def test_near_copies_are_left_out_and_counted():
    pool, example = ["value 7 of the pool", "value -8 of one more"], "value 5 among the few examples that are given"
    low = ["value -8 of ONE more!", "value -3 of a", " value  -3 of a", "value -4 of b and more", ""]
    high = [f"{example}.", "value 5 of c", "value 6 of d and more", "value 6 of d and, MORE!", "value 7 of the pool"]
    result = generate(Scripted(low, high), 6, examples={"high": [example]}, pool=pool, candidates=1)
    assert sorted(result.texts) == sorted([*pool, low[1], low[3], high[1], high[2]])
    assert result.copies == 5
    repeated = generate(Scripted(low, high, low, high), 4, examples={"high": [example]}, pool=pool, candidates=1)
    assert repeated.copies == 5 + 9
    assert not near_copies(result.texts, [example])


def test_the_requested_label_is_evidence():
    for number, classes in [(-0.9, {"low": 0, "high": 1}), (-1.1, {"low": 1, "high": 0})]:  # its weight is 1
        result = generate(Writer(number), 8, rounds=1, candidates=1)
        assert [classes[text.split()[-1]] for text in result.texts] == result.classes.tolist()
        assert result.confirmed == 0.0
    assert generate(Writer(1), 8, rounds=1).confirmed == 1.0


def test_texts_are_selected_from_the_pool_and_the_written_ones_together():
    pool = [f"value {sign}{size} pool {place}" for place in range(4) for sign in ("-", "") for size in (1, 9)]
    better = generate(Writer(5), 8, pool=pool)
    assert sorted(better.texts) == sorted(text for text in pool if "9" in text.split()[1])
    by_place = lambda texts: Weights(weigh(texts).scores, np.array([-9.0 * (text in pool) for text in texts]))  # noqa: E731
    assert not {*generate(Writer(5), 16, pool=pool, weigh=by_place).texts} & {*pool}  # of another kind
    both = generate(Writer(5), 16, pool=pool)
    assert len([text for text in both.texts if text in pool]) == 8
    assert all((" -" in text) == (code == 0) for text, code in zip(both.texts, both.classes, strict=True))


def test_lost_texts_are_replaced_until_there_are_enough_or_none_is_new():
    source = Writer(2, is_thrifty=True)
    assert len(set(generate(source, rounds=1, candidates=1).texts)) == 8
    assert [request.count for request in source.requests] == [4, 4, 2, 2, 1, 1]
    source = Scripted(*[["value 1", "value 2"]] * 100)
    with pytest.raises(DataError, match="returned 2 different texts, and 8 are needed: request fewer texts"):
        generate(source)
    assert len(source.requests) == 4
    source.trouble = "the maximum of 5 calls was reached (max_calls)"
    with pytest.raises(DataError, match=r"different texts \(the maximum of 5 calls was reached \(max_calls\)\), and 8"):
        generate(source)
    for pool in ([], [f"value {n} of the pool" for n in range(20)]):  # a pool alone is not generated
        with pytest.raises(DataError, match="returned 0 different texts"):
            generate(Scripted(["", "  "]), pool=pool)


def test_texts_of_another_class_are_not_shown_as_good():
    source = Scripted([f"value -{n} of low" for n in range(1, 30)], ["value -99 of high"])
    generate(source, 20, candidates=1)
    assert source.requests[3].written == ()


def test_unconfirmed_labels_and_repetitive_texts_are_doubted():
    for texts, confirmed, part in [
        (["same"] * 3, 0.5, None),
        (["one"], 0.49, "confirms the requested label of only 49% of the texts that the model wrote"),
        (["same"] * 4, 1.0, "the texts repeat each other: only 25% of their word pairs differ"),
    ]:
        figures = {"score": 0.0, "nearness": 0.0, "confirmed": confirmed, "copies": 0}
        doubts = [*Generation(texts=texts, classes=np.zeros(len(texts), dtype=np.intp), good=[], **figures).doubts()]
        assert (part is None and doubts == []) or (part in doubts[0] and len(doubts) == 1)
