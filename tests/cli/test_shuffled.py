"""``--shuffled``: the statement of mixed messages, rows in random order, refusals, and the commands that read them."""

import json
from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import dptext
from cli.conftest import change_statement, plain, read_rows, statement_of
from dptext.errors import RefusedError
from dptext.io.batches import Batch, Reject
from dptext.ledger.ledger import Ledger
from dptext.privacy.guarantee import ApproxDP, Trust
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.shuffling import shuffled_epsilon
from dptext.release.run import _mixed
from laws import follows

ROWS = 120
PUBLIC = [f"the {noun} was {kind}" for noun in ("tea", "room", "staff") for kind in ("good", "bad", "late", "new")]


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    place = tmp_path_factory.mktemp("public") / "bank"
    dptext.TextBank(PUBLIC, encoder="words", name="hotels", cache=False).save(place)
    return place


@pytest.fixture
def privatize(run, work, bank):
    rows = [{"text": PUBLIC[n % 12], "n": n, "label": n % 2, "author": f"a{n // 2}"} for n in range(ROWS)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def call(*options, out="out.jsonl", users=10_000):
        usual = ("--mechanism", "bank", "--bank", bank, "--unit", "document", "--epsilon", 4, "--shuffled", users)
        return run("privatize", "in.jsonl", "-o", out, *usual, *options)

    return call


def test_the_statement_and_the_order_of_a_shuffled_file(privatize):
    code, out, err = privatize("--keep", "n!", "--keep", "label", "--user", "author", "--seed", 1)
    assert (code, out) == (0, "")
    rows = read_rows("out.jsonl")
    order = [row["n"] for row in rows]
    assert sorted(order) == list(range(ROWS)) and order != list(range(ROWS))
    assert all(row["label"] == row["n"] % 2 for row in rows)  # kept columns move with their row
    statement = statement_of("out.jsonl")
    assert statement.guarantee == ApproxDP(shuffled_epsilon(4.0, 10_000, 1e-6), 1e-6)
    assert statement.trust is Trust.SHUFFLER
    assert statement.parameters["local_epsilon"] == 4.0
    assert statement.exposed[0] == "the number of documents"
    assert {"the column 'n', unchanged", "the column 'label', unchanged"} <= set(statement.exposed)
    for line in (
        "shuffled (0.601, 1e-06)-differential privacy for a document, if a trusted shuffler mixes at least 10,000",
        "this file has 120 texts, fewer than the 10,000 of the statement",
        "Until then epsilon is 4 (local)",
        "for all of them together: epsilon at most 1.202",
    ):
        assert line in plain(err)


def test_enough_rows_need_no_note(privatize):
    _, _, err = privatize("--yes", users=ROWS)
    assert "Note: this file has" not in err
    Path("in.jsonl").write_text(Path("in.jsonl").read_text() + '{"text": null}\n')
    _, _, err = privatize("--yes", users=ROWS + 1, out="second.jsonl")
    assert "this file has 120 texts" in plain(err)  # a missing text is no message


def test_the_warning_is_about_the_shuffled_guarantee(privatize):
    assert "NOT PROTECTED" not in privatize("--epsilon", 12, users=10**8)[2]
    assert "NOT PROTECTED by the bound" in privatize("--epsilon", 12, "--yes", users=100, out="second.jsonl")[2]


def test_rows_of_each_run_have_another_order(privatize):
    orders = set()
    for number in range(3):  # two of them agree with probability 3 / 120!
        privatize("--keep", "n!", "--quiet", out=f"{number}.jsonl")
        orders.add(tuple(row["n"] for row in read_rows(f"{number}.jsonl")))
    assert len(orders) == 3


def test_encode_writes_shuffled_vectors(run, work, vectors):
    rows = [{"text": "the city of music", "n": n} for n in range(50)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    usual = ("--encoder", vectors, "--epsilon", 8, "--keep", "n!", "--shuffled", 100_000)
    code, _, err = run("encode", "in.jsonl", "-o", "out.parquet", *usual, "--seed", 2)
    assert code == 0
    assert "shuffled (2.189, 1e-06)-differential privacy for a document" in plain(err)
    order = pq.read_table("out.parquet")["n"].to_pylist()
    assert sorted(order) == list(range(50)) and order != list(range(50))
    statement = statement_of("out.parquet")
    assert statement.guarantee == ApproxDP(shuffled_epsilon(8.0, 100_000, 1e-6), 1e-6)
    code, out, _ = run("audit", "out.parquet")
    assert code == 0
    assert "Only single messages were tested, at their local epsilon of 8" in plain(out)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--unit", "sentence"), 3, "a guarantee for any two documents or users"),
        (("--engine", "spark"), 2, "--shuffled is for --mechanism bank on this machine"),
        (("--shuffled", 0), 2, "users must be"),
    ],
)
def test_refusals_come_before_any_output(privatize, options, code, message):
    before = sorted(Path().iterdir())
    for quiet in ((), ("--quiet",)):
        result, _, err = privatize(*options, *quiet)
        assert (result, message in plain(err)) == (code, True), err
    assert sorted(Path().iterdir()) == before


def test_word_mechanisms_are_refused(run, work, vectors):
    Path("in.txt").write_text("tea\n")
    code, _, err = run("privatize", "in.txt", "-o", "out.txt", "--vectors", vectors, "--epsilon", 4, "--shuffled", 99)
    assert (code, "--shuffled is for --mechanism bank" in plain(err)) == (2, True)
    assert not Path("out.txt").exists()


def test_python_refuses_a_mechanism_without_a_proof(work, glove):
    Path("in.txt").write_text("tea\n")
    mechanism = dptext.TEM(dptext.load_vectors(glove, limit=50), epsilon=2.0)
    with pytest.raises(RefusedError, match="any two documents or users"):
        dptext.privatize_file("in.txt", "out.txt", mechanism, shuffled=100)
    assert sorted(path.name for path in Path().iterdir()) == ["in.txt"]


def test_a_ledger_charges_the_guarantee_of_the_statement(privatize):
    ledger = Ledger.create("book", epsilon=1.0, delta=1e-5)
    assert privatize("--ledger", "book")[0] == 0
    code, _, err = privatize("--ledger", "book", out="second.jsonl")
    assert code == 3 and "would be overspent" in err
    assert ledger.left(PUBLIC[0]).spent == pytest.approx(statement_of("out.jsonl").epsilon)


def test_commands_recompute_the_statement(privatize, run, bank):
    privatize("--keep", "label")
    code, out, _ = run("explain", "out.jsonl")
    assert code == 0
    assert "the local guarantee of each message still holds: 4-differential privacy (pure)" in plain(out)
    code, out, _ = run("audit", "out.jsonl", "--bank", bank)
    assert code == 0
    assert "yes the guarantee follows from the parameters ((0.601, 1e-06)-differential privacy)" in plain(out)
    assert "No test shows that at least 10,000 of them were mixed" in plain(out)
    assert (
        run("report", "out.jsonl", "--bank", bank, "-o", "page.html", "--card", "page.md", "--label", "label")[0] == 0
    )
    page = plain(Path("page.md").read_text())
    assert "shuffler that mixed at least 10,000 messages. Without it, epsilon is 4 for each message." in page
    assert run("attack", "attribute", "out.jsonl", "--label", "label")[0] == 0


@pytest.mark.parametrize(
    "command",
    [
        ("attack", "linkage", "in.jsonl", "out.jsonl"),
        ("report", "out.jsonl", "-o", "page.html", "--original", "in.jsonl"),
    ],
)
def test_shuffled_rows_are_not_compared_with_originals(privatize, run, bank, command):
    privatize()
    code, _, err = run(*command, "--bank", bank)
    assert (code, "its rows cannot be compared with their originals" in plain(err)) == (1, True)


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"parameters": {"shuffled_users": 20_000}}, "guarantee"),
        ({"parameters": {"local_epsilon": 3.0}}, "local_epsilon"),
        ({"guarantee": ApproxDP(0.5, 1e-6)}, "guarantee"),
    ],
)
def test_a_false_statement_is_refuted(privatize, run, bank, changes, differs):
    privatize()
    change_statement("out.jsonl", **changes)
    code, out, _ = run("audit", "out.jsonl", "--bank", bank)
    assert code == 3
    assert f"{differs} differ" in plain(out) or f"{differs}, " in plain(out)


def test_a_statement_that_cannot_be_shuffled_is_an_error(privatize, run, bank):
    privatize()
    change_statement("out.jsonl", parameters={"unit_of_epsilon": "sentence"})
    code, _, err = run("audit", "out.jsonl", "--bank", bank)
    assert (code, "describes a shuffled release that cannot exist" in plain(err)) == (1, True)


def test_all_orders_are_equally_likely():
    orders = Counter()
    for seed in range(3_000):
        [block] = _mixed(NoiseKey(seed), iter([Batch(["a", "b"], {"n": [0, 1]}), Batch(["c"], {"n": [2]})]))
        assert ["abc"[n] for n in block.columns["n"]] == block.texts
        orders["".join(block.texts)] += 1
    names = ["".join(order) for order in permutations("abc")]
    assert sum(orders.values()) == sum(orders[name] for name in names)
    assert follows(np.array([orders[name] for name in names]), np.full(6, 1 / 6))  # false alarm 1e-6


def test_rejected_rows_are_kept_when_rows_are_mixed():
    rejects = tuple(Reject("in.jsonl", row, "broken") for row in (2, 5))
    blocks = list(_mixed(NoiseKey(1), iter([Batch(["a"], {}, rejects[:1]), Batch(["b", None], {}, rejects[1:])])))
    assert [reject.row for block in blocks for reject in block.rejects] == [2, 5]
    assert Counter(text for block in blocks for text in block.texts) == Counter(["a", "b", None])
