"""Nothing private goes over the wire: a server in another process keeps every byte that it gets, and it is all read."""

import re

import pytest

import dptext
from dptext.errors import SourceError
from dptext.synthesis.chat import ChatEndpoint, Limits
from dptext.synthesis.distribution import TextDistribution
from synthesis.chat_server import running

WORDS = ["game", "team", "goal", "price", "shares", "market"]
VECTORS = dptext.load_vectors((WORDS, [[2, 0.1], [1.5, 0.3], [2, 0.4], [-1, 2], [-2, 2], [-1.5, 1.8]]))
POOL = [f"{one} {other} {number}" for one in WORDS for other in WORDS for number in ("", "please", "today")]
COMMON = " ".join(one + other for one in "abcdefghij" for other in "abcdefghij")
POOL += [f"{COMMON} {number}" for number in range(100)]  # the hundred most frequent words are no hints
PRIVATE = [
    dptext.Document(
        f"Zqx{index} told me that the {words} of Vexington{index} is over.", user=f"Zqx{index} {topic}", label=topic
    )
    for index in range(60)
    for words, topic in (("game and the team", "sports"), ("price of the shares", "money"))
]
MARKS = re.compile(r"zqx|vexington|told me|is over", re.IGNORECASE)


@pytest.fixture(scope="module")
def server():
    with running() as started:
        yield started


@pytest.fixture(scope="module")
def description():
    fields = {"labels": ["sports", "money"], "column": "topic", "features": dptext.MeanOfWords(VECTORS), "cache": False}
    return dptext.Synthesizer(epsilon=4.0, **fields).fit(PRIVATE, public=POOL)


def wire_of(server, description, tmp_path):
    """Every byte that the server got while texts were generated, and the file of answers."""
    url, kept = server.url("ok,500,ok"), tmp_path / "answers.jsonl"
    source = ChatEndpoint(url, model="tiny", answers=kept, limits=Limits(timeout=60, backoff=0))
    release = description.generate(source, 40, rounds=3)
    assert len(set(release.made["texts"])) == 40
    assert any("no private text" in line for line in release.statement.assumptions)
    assert any("who runs the model's server" in line for line in release.statement.exposed)
    assert release.statement.guarantee == description.statement.guarantee  # rounds cost nothing
    got = server.asked(url)
    assert len(got) > 6
    return "\n".join(got), kept.read_text()


def test_no_private_text_goes_over_the_wire(server, description, tmp_path):
    sent, kept = wire_of(server, description, tmp_path)
    assert not MARKS.search(sent + kept)
    assert "topic: sports" in sent
    assert any(word in sent for word in WORDS)  # a hint
    assert re.search(r"Text \d+ of tiny", sent)  # an own text, to be varied


@pytest.mark.parametrize("calls_before", [6, *(pytest.param(count, marks=pytest.mark.slow) for count in (2, 10))])
def test_a_run_that_stopped_in_some_round_asks_for_nothing_twice(server, description, tmp_path, calls_before):
    """Without a seed: what is asked for does not depend on the random bits of the choice."""
    few = {"texts_per_call": 5, "connections": 1, "limits": Limits(retries=0, failures=1, backoff=0)}
    first, second = server.url(",".join(["ok"] * calls_before + ["500"])), server.url("ok")
    with pytest.raises(SourceError):
        description.generate(
            ChatEndpoint(first, model="tiny", answers=tmp_path / "kept", **few), 20, rounds=3, shares="uniform"
        )
    source = ChatEndpoint(second, model="tiny", answers=tmp_path / "kept", **few)
    assert len(description.generate(source, 20, rounds=3, shares="uniform").made["texts"]) == 20
    assert len(server.asked(first)) == calls_before + 1
    assert len(server.asked(second)) == 12 - calls_before


def test_a_release_whose_hints_are_private_words_is_seen_on_the_wire(server, description, tmp_path, monkeypatch):
    monkeypatch.setattr(TextDistribution, "hints", lambda _: dict.fromkeys(("sports", "money"), (PRIVATE[0].text,)))
    sent, _ = wire_of(server, description, tmp_path)
    assert MARKS.search(sent)
