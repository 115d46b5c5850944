"""Nothing private goes over the wire: a server in another process keeps every byte that it gets, and it is all read."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

from dptext.privacy.randomness import RandomBits
from dptext.synthesis.chat import ChatEndpoint, Limits
from dptext.synthesis.labels import Labels
from dptext.synthesis.rounds import generated
from synthesis.chat_server import running

LABELS = Labels.of(["sports", "money"], column="topic")
PUBLIC_WORDS = ("game", "team", "price", "shares", "tea")
PRIVATE = [
    (f"Zqx{at} told me that the {words} of Vexington{at} is over.", topic)
    for at in range(40)
    for words, topic in (("game and the team", "sports"), ("price of the shares", "money"))
]
MARKS = re.compile(r"zqx|vexington|told me|is over", re.IGNORECASE)


@dataclass
class Described:
    """What a release is, from the side of who uses it: public words, and noisy sums over them."""

    hints: dict
    matrix: np.ndarray

    @property
    def shares(self):
        return np.full(2, 0.5)

    def weigh(self, texts):
        counts = np.array([[word in text for word in PUBLIC_WORDS] for text in texts], dtype=float)
        scores = counts @ self.matrix.T
        return Weighed(scores, scores.max(axis=1))


@dataclass
class Weighed:
    scores: np.ndarray
    nearness: np.ndarray


def described(private) -> Described:
    """A stand-in with the interface of `TextDistribution`: replace it by `Synthesizer(...).fit(...)`."""
    sums = np.zeros((2, len(PUBLIC_WORDS)))
    for text, topic in private:
        sums[LABELS.code([topic])] += [word in text for word in PUBLIC_WORDS]
    matrix = (sums + RandomBits(1).normal(*sums.shape)) / len(private)
    hints = {
        name: tuple(PUBLIC_WORDS[at] for at in np.argsort(-row)[:2])
        for name, row in zip(LABELS.names, matrix, strict=True)
    }
    return Described(hints, matrix)  # fmt: skip


def broken(private) -> Described:
    """Its hints are words of the private texts themselves."""
    return Described(dict.fromkeys(LABELS.names, (private[0][0],)), described(private).matrix)


@pytest.fixture(scope="module")
def server():
    with running() as started:
        yield started


def wire_of(server, release, tmp_path):
    """Every byte that the server got while texts were generated, and the file of answers."""
    url, kept = server.url("ok,500,ok"), tmp_path / "answers.jsonl"
    limits = Limits(connect=60, read=60, call=60, backoff=0)
    source = ChatEndpoint(url, model="tiny", answers=kept, limits=limits)
    drawn = {"shares": release.shares, "variety": 0.5, "bits": RandomBits(1)}
    texts, _ = generated(release.weigh, source, LABELS, release.hints, 40, rounds=3, **drawn)
    assert len(texts) == 40
    got = server.asked(url)
    assert len(got) > 6
    return "\n".join(got), kept.read_text()


def test_no_private_text_goes_over_the_wire(server, tmp_path):
    sent, kept = wire_of(server, described(PRIVATE), tmp_path)
    assert not MARKS.search(sent + kept)
    assert "game" in sent  # a hint
    assert re.search(r"Text \d+ of tiny", sent)  # an own text, to be varied


def test_the_wire_of_a_release_that_shows_private_texts_is_seen_to(server, tmp_path):
    sent, _ = wire_of(server, broken(PRIVATE), tmp_path)
    assert MARKS.search(sent)
