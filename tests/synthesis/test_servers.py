"""Sums by two servers: equal to the sum of one curator to the last bit, with full noise of each server."""

import dataclasses
import json
import random

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.noise.gaussian_sums import CELL, count_off_grid
from dptext.privacy.guarantee import Trust
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.summary.describe import SummaryPlan, UserSums
from dptext.synthesis.distribution import TextDistribution
from dptext.synthesis.servers import ServerSum, ShareSum, load_plan
from dptext.synthesis.synthesizer import SynthesisPlan
from dptext.users.private_vocabulary import PrivateLabels

LABELS = ["drinks", "rules"]
POOL = ["a cup of tea", "tea and cocoa", "the tax law", "law and court", "cocoa today", "a new law on tax"]
TEXTS = {"drinks": ["my cup of tea", "cocoa, please"], "rules": ["the law", "a tax on tea"]}
DOCUMENTS = [
    dptext.Document(text, user=str(user), label=label, attributes={"date": f"2024-0{1 + user % 3}-02"})
    for user in range(40)
    for label in LABELS
    for text in TEXTS[label][: 1 + user % 2]
]
FALSE_ALARM = 6.0
"""Deviations of a normal: a sound build fails with probability 2e-9."""


@pytest.fixture(scope="module")
def synthesis():
    return dptext.Synthesizer(epsilon=1.0, labels=LABELS, features="static", cache=False).plan(POOL)


@pytest.fixture(scope="module")
def summary():
    return SummaryPlan(epsilon=1.0, phrases=0, time="date", bins="2024-01..2024-03")


def exact(plan):
    if isinstance(plan, SynthesisPlan):
        return plan.total_of(DOCUMENTS).ravel()
    sums = UserSums(plan)
    with plan.people(DOCUMENTS) as people:
        sums.add(people)
    return np.concatenate([cells.ravel() for cells in sums.cells.values()])


def messages_of(plan):
    return [contribution.shares() for contribution in plan.contributions(DOCUMENTS)]


def summed(plan, messages, **settings):
    total = ShareSum(plan, **settings)
    for message in messages:
        total.add(message)
    return total


def exact_sum(first, second):
    one, two = (np.frombuffer(total.part()["sum"], dtype=np.uint64) for total in (first, second))
    return (one + two).view(np.int64)


@pytest.fixture(params=["synthesis", "summary"])
def plan(request):
    return request.getfixturevalue(request.param)


def test_the_shares_add_up_to_the_sum_of_one_curator_in_any_order(plan):
    messages, order = messages_of(plan), random.Random(1)
    assert len(messages) == 40
    expected = exact(plan)
    assert expected.any()
    for _ in range(3):
        firsts, seconds = ([message[place] for message in messages] for place in (0, 1))
        order.shuffle(firsts)
        order.shuffle(seconds)
        assert (exact_sum(summed(plan, firsts), summed(plan, [b"".join(seconds)])) == expected).all()


def test_devices_that_drop_out_between_the_servers_are_left_out(synthesis):
    messages = messages_of(synthesis)
    firsts, seconds = [first for first, _ in messages[3:]], [second for _, second in messages[:-2]]
    one, two = summed(synthesis, firsts), summed(synthesis, seconds)
    with pytest.raises(DataError, match="different messages"):
        synthesis.combine(one.publish(), two.publish())
    first, second = summed(synthesis, firsts, only=two.ids), summed(synthesis, seconds, only=one.ids)
    both = messages[3:-2]
    expected = exact_sum(summed(synthesis, [m for m, _ in both]), summed(synthesis, [m for _, m in both]))
    assert (exact_sum(first, second) == expected).all()
    assert (first.left_out, second.left_out) == (2, 3)
    assert isinstance(synthesis.combine(first.publish(), second.publish()), TextDistribution)


def test_a_message_that_arrives_twice_counts_once(synthesis):
    (first, _), *_ = messages_of(synthesis)
    once, twice = summed(synthesis, [first]), summed(synthesis, [first, first + first])
    assert once.part() == twice.part()
    assert twice.left_out == 2


def test_each_share_alone_is_uniform(synthesis):
    """The bytes of both shares of one user, over many splits; false alarms: chi-square at six deviations."""
    contribution = synthesis.contribution([dptext.Document("tea", label="drinks")])
    pairs = [contribution.shares() for _ in range(200)]
    for share in (b"".join(first[-32:] for first, _ in pairs), b"".join(second[56:] for _, second in pairs)):
        counts = np.bincount(np.frombuffer(share, dtype=np.uint8), minlength=256)
        expected = len(share) / 256
        statistic = float(((counts - expected) ** 2).sum() / expected)
        assert abs(statistic - 255) < FALSE_ALARM * np.sqrt(2 * 255) + 20
    assert len({first[40:56] for first, _ in pairs}) == 200, "an id occurs twice"
    assert len({first[-32:] for first, _ in pairs}) == 200, "a mask is used twice"


def test_each_server_adds_noise_of_full_scale(synthesis):
    """The rounded noise of a published sum; false alarm 2e-9, for a fixed seed none."""
    total = summed(synthesis, [first for first, _ in messages_of(synthesis)])
    own = np.frombuffer(total.part()["sum"], dtype=np.uint64)
    noise = (total.publish(seed=3).values - own).view(np.int64) * CELL
    scale = np.sqrt(np.mean(noise**2)) / synthesis.server_sigma
    assert abs(scale - 1) < FALSE_ALARM / np.sqrt(2 * noise.size)
    assert (total.publish().values != total.publish().values).any()


def test_the_combination_is_the_release_with_more_noise(synthesis):
    one, two = (summed(synthesis, messages) for messages in zip(*messages_of(synthesis), strict=True))
    released = synthesis.combine(one.publish(seed=1), two.publish(seed=2))
    assert released.sigma == np.sqrt(2) * synthesis.server_sigma
    assert count_off_grid(released.matrix, released.sigma) == 0
    noise = released.matrix.ravel() - exact(synthesis) * CELL
    assert abs(np.sqrt(np.mean(noise**2)) / released.sigma - 1) < FALSE_ALARM / np.sqrt(2 * noise.size)
    statement = released.statement
    assert (statement.trust, statement.seeded) == (Trust.TWO_SERVERS, True)
    assert statement.guarantee == synthesis.future_statement.guarantee
    assert statement.parameters["server_sigma"] == synthesis.server_sigma
    assert statement.mu == pytest.approx(1 / synthesis.server_sigma), "one server subtracts its own noise"
    assert "to both servers: who sends a message, and when" in statement.exposed
    assert not synthesis.combine(one.publish(), two.publish()).statement.seeded


def test_a_summary_of_two_servers_has_intervals_for_their_noise(summary):
    one, two = (summed(summary, messages) for messages in zip(*messages_of(summary), strict=True))
    released = summary.combine(one.publish(seed=1), two.publish(seed=2))
    curator = summary.release(DOCUMENTS, RandomBits(1))
    assert released.deviation("people") == pytest.approx(np.sqrt(2) * curator.deviation("people"))
    assert released.people.low <= 40 <= released.people.high
    assert released.statement.trust is Trust.TWO_SERVERS


def test_a_plan_and_a_sum_survive_a_folder(plan, tmp_path):
    one, two = (summed(plan, messages) for messages in zip(*messages_of(plan), strict=True))
    sums = one.publish(seed=1), two.publish(seed=2)
    plan.save(tmp_path / "plan")
    loaded, none = load_plan(tmp_path / "plan", SynthesisPlan, SummaryPlan)
    assert none is None
    assert (loaded.digest, loaded.size, loaded.server_sigma) == (plan.digest, plan.size, plan.server_sigma)
    expected, messages = exact(plan), [c.shares() for c in loaded.contributions(DOCUMENTS)]
    assert (exact_sum(*(summed(plan, part) for part in zip(*messages, strict=True))) == expected).all()
    for name, total in zip("ab", sums, strict=True):
        loaded.save(tmp_path / name, total)
    again = [load_plan(tmp_path / name, SynthesisPlan, SummaryPlan)[1] for name in "ab"]
    for before, after in zip(sums, again, strict=True):
        assert (before.values == after.values).all()
        assert (before.server, before.ids, before.seeded) == (after.server, after.ids, after.seeded)
    folder = tmp_path / "released"
    loaded.combine(*again).save(folder)
    statement = PrivacyStatement.from_json((folder / "privacy.json").read_text())
    assert statement.trust is Trust.TWO_SERVERS
    assert statement.release_id == plan.release_id
    assert sum(file.stat().st_size for file in (tmp_path / "plan").iterdir()) < 1_000_000


def test_a_plan_that_was_changed_is_rejected(synthesis, tmp_path):
    synthesis.save(tmp_path / "plan")
    file = tmp_path / "plan" / "config.json"
    text = file.read_text()
    file.write_text(text.replace('"epsilon": 1.0', '"epsilon": 9.0'))
    with pytest.raises(DataError, match="do not agree"):
        load_plan(tmp_path / "plan", SynthesisPlan)
    file.write_text(text.replace('"kind": "synthesize"', '"kind": "describe"'))
    with pytest.raises(DataError, match="another command"):
        load_plan(tmp_path / "plan", SynthesisPlan)


def test_a_release_whose_servers_had_too_little_noise_is_rejected(synthesis, tmp_path):
    one, two = (summed(synthesis, messages) for messages in zip(*messages_of(synthesis), strict=True))
    released = synthesis.combine(one.publish(), two.publish())
    parameters = {**released.statement.parameters, "server_sigma": synthesis.server_sigma / 2}
    dataclasses.replace(released, statement=released.statement.replace(parameters=parameters)).save(tmp_path / "bad")
    with pytest.raises(DataError, match="guarantee"):
        TextDistribution.load(tmp_path / "bad")


def test_sums_that_do_not_belong_together_are_rejected(synthesis, summary):
    one, two = (summed(synthesis, messages).publish() for messages in zip(*messages_of(synthesis), strict=True))
    with pytest.raises(DataError, match="both sums are of server a"):
        synthesis.combine(one, one)
    with pytest.raises(DataError, match="another plan"):
        summary.combine(one, two)
    again = dataclasses.replace(synthesis, release_id="0" * 32)
    assert again.digest != synthesis.digest, "each plan is another release"
    with pytest.raises(DataError, match="another plan"):
        again.combine(one, two)
    assert isinstance(one, ServerSum)


@pytest.mark.parametrize("server", ["x", None, ["a"]])
def test_a_changed_server_of_a_sum_is_rejected(synthesis, tmp_path, server):
    total = summed(synthesis, [messages[0] for messages in messages_of(synthesis)]).publish()
    synthesis.save(tmp_path / "sum", dataclasses.replace(total, seeded=True))
    assert load_plan(tmp_path / "sum", type(synthesis))[1].seeded
    config = json.loads((tmp_path / "sum" / "config.json").read_text())
    (tmp_path / "sum" / "config.json").write_text(json.dumps(config | {"server": server}))
    with pytest.raises(DataError, match="do not agree"):
        load_plan(tmp_path / "sum", type(synthesis))


@pytest.mark.parametrize(
    ("damaged", "match"),
    [
        (lambda first, second: first[:-1], "incomplete"),
        (lambda first, second: first + b"x", "incomplete"),
        (lambda first, second: first + second, "incomplete"),
        (lambda first, second: first[:8] + bytes(32) + first[40:], "another plan"),
        (lambda first, second: b"", "no share"),
        (lambda first, second: b"dptextX1" + first[8:], "no share"),
    ],
)
def test_a_message_that_is_no_share_is_rejected_and_changes_nothing(synthesis, damaged, match):
    (first, second), (other, _), *_ = messages_of(synthesis)
    total = summed(synthesis, [other])
    before = total.part()
    with pytest.raises(DataError, match=match):
        total.add(damaged(first, second))
    with pytest.raises(DataError, match="share for server b"):
        total.add(second)
    assert total.part() == before


def test_a_contribution_is_small(synthesis):
    seven = dptext.Synthesizer(epsilon=1.0, labels=list("abcdefg"), features="static", cache=False).plan(POOL)
    messages = seven.contribution([dptext.Document("tea", label="a")]).shares()
    assert sum(map(len, messages)) < 10_000
    assert {len(message) for message in seven.contribution([]).shares()} == set(map(len, messages)), "the size tells"


def test_a_contribution_is_of_one_user(synthesis):
    both = synthesis.contribution([dptext.Document("tea", label="drinks"), dptext.Document("law", label="rules")])
    user = [dptext.Document("tea", user="a", label="drinks"), dptext.Document("law", user="a", label="rules")]
    [expected] = synthesis.contributions(user)
    assert (both.cells == expected.cells).all()
    assert (both.cells.astype(object) ** 2).sum() <= 2**48
    one = dptext.Synthesizer(epsilon=1.0, unit="document", features="static", cache=False).plan(POOL)
    with pytest.raises(DataError, match="one document here"):
        one.contribution(["tea", "law"])
    assert one.contribution(["tea"]).cells.any()
    assert not synthesis.contribution([]).cells.any()


def test_plans_that_two_servers_cannot_compute_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="topics and times only"):
        SummaryPlan(epsilon=1.0).save(tmp_path / "phrases")
    with pytest.raises(ParameterError, match="too small"):
        SummaryPlan(epsilon=1e-9, delta=1e-12, phrases=0).contribution([])
    statement = dptext.private_labels([], epsilon=1.0, delta=1e-6).statement
    learned = PrivateLabels("label", tuple(LABELS), statement)
    plan = dptext.Synthesizer(epsilon=1.0, labels=learned, features="static", cache=False).plan(POOL)
    with pytest.raises(RefusedError, match="a curator released"):
        plan.save(tmp_path / "learned")
    with pytest.raises(DataError, match="at least one"):
        ShareSum(SummaryPlan(epsilon=1.0, phrases=0)).publish()
