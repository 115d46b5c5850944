"""No private text is sent to a server: another process records every byte, and all of them are searched."""

import re

import pytest

import dptext
from dptext.errors import SourceError
from dptext.synthesis.chat import ChatEndpoint, CompletionEndpoint, Limits
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
def distribution():
    fields = {"labels": ["sports", "money"], "column": "topic", "features": dptext.MeanOfWords(VECTORS), "cache": False}
    return dptext.Synthesizer(epsilon=4.0, **fields).fit(PRIVATE, public=POOL)


def recorded(server, distribution, tmp_path, kind=ChatEndpoint):
    """Return the bytes that the server received while texts were generated, and the file of answers."""
    url, kept = server.url("ok,500,ok"), tmp_path / "answers.jsonl"
    source = kind(url, model="tiny", answers=kept, limits=Limits(timeout=60, backoff=0))
    release = distribution.generate(source, 40, rounds=3, examples={"sports": ["A public example."]}, public=POOL[:9])
    assert len(set(release.outputs["texts"])) == 40
    assert any("no private text" in line for line in release.statement.assumptions)
    assert any("operator of the model's server" in line for line in release.statement.exposed)
    assert release.statement.guarantee == distribution.statement.guarantee  # rounds cost nothing
    received = server.requests(url)
    assert len(received) > 6
    return "\n".join(received), kept.read_text()


@pytest.mark.parametrize("kind", [ChatEndpoint, CompletionEndpoint])
def test_no_private_text_goes_over_the_wire(server, distribution, tmp_path, kind):
    sent, kept = recorded(server, distribution, tmp_path, kind)
    assert not MARKS.search(sent + kept)
    assert "topic: sports" in sent
    assert any(word in sent for word in WORDS)  # a hint
    assert "- A public example." in sent
    assert re.search(r"- Text \d+ of tiny", sent)  # an own text


@pytest.mark.parametrize("calls_before", [2, 6])
def test_an_interrupted_run_repeats_no_request(server, distribution, tmp_path, calls_before):
    few = {"texts_per_call": 5, "connections": 1, "limits": Limits(retries=0, failures=1, backoff=0)}
    options = {"candidates": 1, "shares": "uniform", "seed": 1}  # two calls per label and round
    first, second = server.url(",".join(["ok"] * calls_before + ["500"])), server.url("ok")
    with pytest.raises(SourceError):
        distribution.generate(ChatEndpoint(first, model="tiny", answers=tmp_path / "kept", **few), 20, **options)
    source = ChatEndpoint(second, model="tiny", answers=tmp_path / "kept", **few)
    assert len(distribution.generate(source, 20, **options).outputs["texts"]) == 20
    assert len(server.requests(first)) == calls_before + 1
    assert len(server.requests(second)) == 8 - calls_before


def test_private_hints_would_be_found(server, distribution, tmp_path, monkeypatch):
    monkeypatch.setattr(TextDistribution, "hints", lambda _: dict.fromkeys(("sports", "money"), (PRIVATE[0].text,)))
    sent, _ = recorded(server, distribution, tmp_path)
    assert MARKS.search(sent)
