"""Tasks without an engine: the noise of a row depends on the rows only."""

import hashlib
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

import dptext
from dptext.errors import ParameterError
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.processes import load_shared, save_shared
from dptext.spark import tasks
from dptext.spark.tasks import COPY, GROUP, LABEL, BlockTask, LabelTask, encode_rows, placed_blocks, privatize_rows
from dptext.words.registry import MECHANISMS
from secrecy import assert_error

GROUPS = 8


@pytest.fixture(scope="module")
def mechanism(glove):
    return dptext.TEM(dptext.load_vectors(glove, limit=300), epsilon=2.0)


@pytest.fixture
def context(monkeypatch, mechanism):
    """Tasks find the mechanism on their node, and themselves in partition 0."""
    state = SimpleNamespace(partition=0, thing=mechanism)
    monkeypatch.setattr(
        tasks, "task_context", lambda: SimpleNamespace(cpus=lambda: 1, partitionId=lambda: state.partition)
    )
    monkeypatch.setattr(tasks, "from_node", lambda _name: state.thing)
    return state


def table(count, *, text=lambda n: f"the doctor of town {n % 3} said it was fine"):
    """Rows with ids, in groups that a hash of the id says."""
    ids = np.arange(count)
    groups = np.array([hashlib.sha256(str(n).encode()).digest()[0] % GROUPS for n in ids], dtype=np.int32)
    return pa.table({"text": pa.array([text(n) for n in ids], pa.string()), "n": ids, GROUP: groups})


def partitions(rows, count, order=None):
    """As the engine hands them over: whole groups in each partition, sorted; the input in any order."""
    shuffled = rows if order is None else rows.take(order)
    for number in range(count):
        part_value = shuffled.filter(pa.compute.equal(pa.compute.bit_wise_and(shuffled[GROUP], count - 1), number))
        yield number, part_value.sort_by([(GROUP, "ascending"), ("n", "ascending")])


def released(context, rows, task, *, count=2, batch=7, order=None):
    """Private text by id."""
    result = {}
    for number, part in partitions(rows, count, order):
        context.partition = number
        for out in task(iter(part.to_batches(max_chunksize=batch))):
            for row in out.to_pylist():
                assert result.setdefault(row["n"], row["text"]) is row["text"], "a row came twice"
    return result


def rewriting(is_grouped=True, seed=5):
    return BlockTask(privatize_rows, "tables", NoiseKey(seed).secret(), "text", ("n",), is_grouped)


def test_order_batches_and_partitions_change_nothing(context):
    rows = table(300)
    once = released(context, rows, rewriting())
    assert len(once) == 300
    for count, batch, seed in ((1, 1000, 1), (4, 3, 2), (8, 50, 3)):
        order = np.random.default_rng(seed).permutation(300)
        assert released(context, rows, rewriting(), count=count, batch=batch, order=order) == once


def test_naming_rows_by_their_place_would_release_them_twice(context):
    """A known-broken version: names by position, for rows that a shuffle reorders."""
    rows = table(300)
    once = released(context, rows, rewriting(is_grouped=False))
    repeated = released(
        context, rows, rewriting(is_grouped=False), count=4, order=np.random.default_rng(1).permutation(300)
    )
    assert sum(once[n] != repeated[n] for n in once) > 100


def test_an_attempt_that_is_made_again_is_the_same_to_the_byte(context):
    for is_grouped in (True, False):
        batches = table(200).sort_by([(GROUP, "ascending"), ("n", "ascending")]).to_batches(max_chunksize=33)
        first, second = (list(rewriting(is_grouped)(iter(batches))) for _ in range(2))
        assert pa.Table.from_batches(first).equals(pa.Table.from_batches(second))


def test_blocks_of_equal_texts_share_no_noise(context):
    rows = table(400, text=lambda _n: "doctor town street music")
    for is_grouped in (True, False):
        result = released(context, rows, rewriting(is_grouped), count=4)
        # 300 words, epsilon 2: the chance of a pair is far below 1 / 100, so 400 equal draws mean equal noise
        assert len(set(result.values())) > 200
    secret = released(context, rows, rewriting(seed=6), count=4)
    assert secret != released(context, rows, rewriting(seed=7), count=4)


def test_another_text_gives_its_whole_block_fresh_noise(context):
    once = released(context, table(300), rewriting())
    other = released(
        context,
        table(300, text=lambda n: "another" if n == 17 else f"the doctor of town {n % 3} said it was fine"),
        rewriting(),
    )
    rows = table(300)
    groups = dict(zip(rows["n"].to_pylist(), rows[GROUP].to_pylist(), strict=True))
    same = {n for n in once if groups[n] != groups[17]}
    assert all(once[n] == other[n] for n in same)
    changed = [once[n] != other[n] for n in once if n not in same]
    assert sum(changed) > len(changed) / 2


def test_missing_texts_stay_and_counts_stand_in_the_first_row_of_a_block(context):
    result = released(context, table(30, text=lambda n: (None, "", "doctor")[n % 3]), rewriting())
    assert [result[n] for n in (0, 1)] == [None, ""] and result[2] not in (None, "")
    batches = table(50).sort_by([(GROUP, "ascending"), ("n", "ascending")]).to_batches()
    out = pa.Table.from_batches(list(rewriting()(iter(batches))))
    assert pa.compute.max(out["dptext longest"]).as_py() == 8
    assert pa.compute.sum(out["dptext words"]).as_py() == 50 * 8


@pytest.mark.parametrize("size", [1, 64])
def test_a_block_ends_where_the_rows_say(size, monkeypatch):
    monkeypatch.setattr(dptext.io.batches, "BATCH_ROWS", 10)
    monkeypatch.setattr(dptext.io.batches, "BATCH_CHARACTERS", 100)
    texts = ["x" * (n * 7 % 31) for n in range(200)]
    rows = pa.table({"text": texts, "n": range(200), GROUP: pa.array([n // 60 for n in range(200)], pa.int32())})
    output = list(placed_blocks(rows.to_batches(max_chunksize=size), "text", None))
    assert [place for place, _, _ in output] == sorted({place for place, _, _ in output})
    assert [text for _, block, _ in output for text in block.texts] == texts
    for place, block, parts in output:
        lengths = [len(text) for text in block.texts]
        assert len(lengths) <= 10
        assert sum(lengths[:-1]) < 100
        assert {group for part in parts for group in part.column(GROUP).to_pylist()} == {place >> 32}
        assert [text for part in parts for text in part.column("text").to_pylist()] == list(block.texts)


def test_another_version_is_refused_and_no_secret_has_a_repr(context):
    task = BlockTask(privatize_rows, "tables", bytes(32), "text", ("n",), is_grouped=True, software="0.0.0")
    assert_error(ParameterError, lambda: list(task(iter(table(3).to_batches()))), "install one version")
    secret = NoiseKey(5).secret()
    for task in (BlockTask(encode_rows, "t", secret, "text", (), is_grouped=True), LabelTask(secret, "text", (), 2)):
        assert secret.hex() not in repr(task) and repr(secret)[2:-1] not in repr(task)


def labels_of(rows, secret=b"s" * 32):
    task = LabelTask(secret, "text", ("text",), GROUPS)
    return pa.Table.from_batches(list(task(rows.to_batches(max_chunksize=5))))


def test_labels_of_equal_texts_are_far_apart_and_keyed():
    rows = pa.table({"text": ["same"] * 1000 + [None, ""], COPY: [*range(1, 1001), 1, 1]})
    result = labels_of(rows)
    assert len(set(result[LABEL].to_pylist())) == 1002
    # every group is hit about 125 times; 60 is more than 6 standard deviations off (chance below 1e-8)
    counts = np.bincount(result[GROUP].to_numpy(), minlength=GROUPS)
    assert ((counts > 65) & (counts < 185)).all()
    assert labels_of(rows, b"t" * 32)[LABEL] != result[LABEL]


def test_every_mechanism_draws_the_same_after_it_was_sent(small, tmp_path):
    for name, kind in MECHANISMS.items():
        mechanism = kind(small, epsilon=3.0, **({"size": 8} if name == "custext" else {}))
        shared = load_shared(save_shared(mechanism, tmp_path))
        rows = np.arange(len(small)) % 50
        draws = [entry.sample_rows(rows, RandomBits.keyed(bytes(32))) for entry in (mechanism, shared)]
        assert (draws[0] == draws[1]).all()
        assert shared.statement == mechanism.statement
