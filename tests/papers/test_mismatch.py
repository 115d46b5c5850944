"""The mismatch of server's and user's epsilon: every pair, the same texts, beside the majority class."""

import numpy as np
import pytest
from papers.dpnr.mismatch import mismatch

from dptext.errors import ParameterError
from dptext.intervals import mean_over_runs

LABELS = np.array(["a", "b", "b", "b"])


class Server:
    """Right about as many rows as it was told."""

    def __init__(self, right):
        self.right = right

    def predict(self, sent):
        answers = LABELS.copy()
        wrong = 4 - min(self.right, sent)
        answers[:wrong] = "?"
        return answers


def test_every_server_meets_every_user_in_every_run():
    trained, sent = [], []

    def train(server, seed):
        trained.append((server, seed))
        return Server(4 if server == "adaptive" else int(server) + (seed == 7))

    def send(user, seed):
        sent.append((user, seed))
        return int(user)

    seen = []
    result = mismatch(
        train,
        send,
        LABELS,
        servers=[1.0, 2.0, "adaptive"],
        users=[1.0, 3.0],
        seeds=[5, 7],
        progress=lambda *done: seen.append(done),
    )
    assert trained == [(server, seed) for seed in (5, 7) for server in (1.0, 2.0, "adaptive")]
    assert sent == [(user, seed) for seed in (5, 7) for user in (1.0, 3.0)]
    assert seen == [(done, 6) for done in range(1, 7)]
    assert result.of(1.0, 1.0) == mean_over_runs([0.25, 0.25])
    assert result.of(1.0, 3.0) == mean_over_runs([0.25, 0.5])
    assert result.of(2.0, 3.0) == mean_over_runs([0.5, 0.75])
    assert result.of("adaptive", 3.0).value == 0.75
    assert (result.baseline, result.rows) == (0.75, 4)
    assert result.best_server(3.0) == "adaptive"
    assert result.best_server(1.0) == 1.0  # the first of equals


def test_the_table_has_the_majority_class_and_can_do_without_intervals():
    result = mismatch(
        lambda server, _: Server(int(server)), lambda user, _: int(user), LABELS, servers=[1, 4], users=[4]
    )
    assert result.table().splitlines() == [
        "| server, by user | 4 |",
        "| --- | --- |",
        "| 1 | 0.250 [0.250, 0.250] |",
        "| 4 | 1.000 [1.000, 1.000] |",
        "| majority class | 0.750 |",
    ]
    assert "| 1 | 0.250 |" in result.table(intervals=False)


def test_what_is_wrong_is_said():
    train, send = (lambda server, _: Server(4)), (lambda user, _: 4)
    good = {"servers": [1.0], "users": [1.0], "seeds": [1, 2]}
    for name, value in (("servers", []), ("users", [1.0, 1.0]), ("users", "plain"), ("seeds", [3, 3])):
        with pytest.raises(ParameterError, match=f"{name} must be a list of one or more different entries"):
            mismatch(train, send, LABELS, **good | {name: value})
    with pytest.raises(ParameterError, match="at least two for an interval over runs, got 1"):
        mismatch(train, send, LABELS, **good | {"seeds": [1]})
    with pytest.raises(ParameterError, match="labels must be one entry per row"):
        mismatch(train, send, [], **good)
    with pytest.raises(ParameterError, match="answer each of 3 rows with one class, got shape"):
        mismatch(train, send, LABELS[:3], **good)
    with pytest.raises(ParameterError, match="no entry for server 9"):
        mismatch(train, send, LABELS, **good).of(9, 1.0)
