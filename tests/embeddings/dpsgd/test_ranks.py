"""SkipGram on several ranks: one model, one noise, one user on one rank; and what happens when a rank dies."""

import collections
import json
import math
import multiprocessing
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import dptext
from dptext.embeddings.dpsgd.noise import CellNoise
from dptext.embeddings.dpsgd.ranks import Ranks
from dptext.embeddings.dpsgd.recipe import CELLS, MOST
from dptext.embeddings.dpsgd.training import Tables
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement

pytest.importorskip("numba")
pytest.importorskip("torch")

from dptext.embeddings.dpsgd.ranks import TorchRanks
from embeddings.dpsgd.rank import train

# torch takes seconds to import: one process does it, and each rank is forked from that
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["torch.distributed", "dptext.embeddings.dpsgd.training", "dptext.embeddings.skipgram"])
LONGEST = 1200  # seconds
TOPICS = (("tea", "cup", "milk", "kettle"), ("tax", "law", "court", "judge"))
WORDS = [word for topic in TOPICS for word in topic] + [f"word{n}" for n in range(30)]
OPTIONS = {"epsilon": 8.0, "steps": 20, "sampling_rate": 0.5, "public_users": 50, "pairs": 20, "seed": 1}


def people(count):
    generator = np.random.default_rng(1)
    return [
        (" ".join(generator.choice(TOPICS[user % 2], 6)), f"user {user}") for user in range(count) for _ in range(3)
    ]


def started(folder, job, count=2):
    """Ranks of a job, processes of their own; its words and documents may be left out."""
    folder.mkdir()
    job = {"words": WORDS, "dimension": 8, "documents": people(40), "options": OPTIONS} | job
    ranks = [
        FORKED.Process(target=train, args=(number, count, folder / "meeting", folder, job)) for number in range(count)
    ]
    for each in ranks:
        each.start()
    return ranks


def ended(ranks):
    """The exit status of each."""
    until = time.monotonic() + LONGEST
    for rank in ranks:
        rank.join(max(0.0, until - time.monotonic()))
    statuses = [rank.exitcode for rank in ranks]
    for rank in ranks:
        rank.kill()  # where one of them did not end
        rank.join()
    return statuses


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks") / "job"
    assert ended(started(folder, {})) == [0, 0]
    return folder


def alone(said=None, **options):
    vectors = dptext.load_vectors((WORDS, np.random.default_rng(1).normal(size=(len(WORDS), 8))))
    documents = [dptext.Document(text, user=user) for text, user in said or people(40)]
    return dptext.SkipGram(vectors, **OPTIONS | options).fit(documents)


@pytest.mark.slow
def test_all_ranks_have_one_model_and_one_promise(together):
    first, second = (np.load(together / f"{number}.npy") for number in range(2))
    assert (first == second).all()
    statement = PrivacyStatement.from_json((together / "0.json").read_text())
    one = alone(noise="dense").statement_
    assert statement.guarantee == one.guarantee
    assert (statement.unit, statement.relation, statement.trust) == (one.unit, one.relation, one.trust)
    assert statement.parameters == {**one.parameters, "ranks": 2}
    of_ranks = [each for each in statement.assumptions if "all ranks" in each]
    assert len(of_ranks) == 1
    assert [each for each in statement.assumptions if each not in of_ranks] == list(one.assumptions)


@pytest.mark.slow
def test_ranks_learn_what_one_process_learns(tmp_path):
    """Without noise, from the same people: both go as far, in one direction. (Two seeds of one process agree to
    .97.) A rank that hears nothing of the other goes less far."""
    thorough = {"mode": "clipped", "steps": 50, "sampling_rate": 1.0, "pairs": 200, "distance": 20.0}
    assert ended(started(tmp_path / "job", {"options": OPTIONS | thorough})) == [0, 0]
    base = alone(mode="clipped", distance=1e-12).vectors_.matrix
    two = np.load(tmp_path / "job" / "0.npy") - base
    one = alone(**thorough).vectors_.matrix - base
    held = {each.user for each in Alike(0, 2).own([dptext.Document(*each) for each in people(40)], "user")}
    deaf = alone([each for each in people(40) if each[1] in held], **thorough).vectors_.matrix - base
    length = np.linalg.norm
    assert length(two) == pytest.approx(length(one), rel=0.1)
    assert (two * one).sum() > 0.9 * length(two) * length(one)
    assert length(deaf) < 0.85 * length(one)


class Pair(Ranks):
    """Two ranks in one process, which take turns: what they say to each other waits in a common place."""

    count = 2

    def __init__(self, number, heard):
        self.number, self.heard = number, heard

    def rows(self, count):
        return TorchRanks._rows(self, count, self.number)

    def exchange(self, rows):
        own = TorchRanks._rows(self, len(rows), self.number)
        self.heard[self.number] = rows[own].copy()


def noise_of(keys, *, only_own=True, steps=4, words=5000, dimension=100):
    """What two ranks add to all rows in some steps, without anybody's texts, in units of what it should be."""
    rates = np.full(steps, 1.0 / CELLS)
    heard, parts = {}, []
    for number in range(2):
        ranks = Pair(number, heard) if only_own else Ranks()
        tables = Tables(
            np.zeros((2 * words, dimension), dtype=np.float32), rates, CellNoise(1.5 * CELLS), lazy=False, ranks=ranks
        )
        for step, bits in enumerate(RandomBits(keys[number]).spawn(steps)):
            tables.descend(step, bits)
        parts.append(tables.matrix)
    both = np.concatenate([heard[0], heard[1]]) if only_own else parts[0] + parts[1]
    return both / (1.5 * math.sqrt(steps))


def variance(matrix):
    return float(np.mean(matrix.astype(np.float64) ** 2))


def test_noise_comes_once():
    """The variance of a million numbers is right within half a per cent: its standard deviation is .14%, so the false
    alarm has a probability of 4e-4 over keys, and none with this one. Twins: each rank adds noise of its own to
    everything (twice too much); both ranks have one key (the second half of the rows repeats the first)."""
    noise = noise_of((1, 2))
    assert variance(noise) == pytest.approx(1.0, rel=0.005)
    halves = noise.reshape(2, -1)
    assert abs(np.corrcoef(halves)[0, 1]) < 5 / math.sqrt(halves.shape[1])

    assert variance(noise_of((1, 2), only_own=False)) > 1.9
    halves = noise_of((1, 1)).reshape(2, -1)
    assert np.corrcoef(halves)[0, 1] > 0.99


@pytest.mark.slow
def test_noise_of_ranks_that_talk(tmp_path):
    """The same, of two processes with one seed, whose users wrote nothing: through everything that there is."""
    job = {
        "words": [f"word{n}" for n in range(6000)],
        "dimension": 100,
        "documents": [(None, f"user {n}") for n in range(4)],
        "options": OPTIONS | {"dimension": 100, "steps": 5, "trained_words": 6000},
    }
    assert ended(started(tmp_path / "job", job)) == [0, 0]
    first, second = (np.load(tmp_path / "job" / f"{number}.npy") for number in range(2))
    assert (first == second).all()
    vectors = dptext.load_vectors((job["words"], np.ones((6000, 100))))
    plan = dptext.SkipGram(vectors, **job["options"]).plan()
    start = plan.finish(plan.start())
    noise = (first - start)[:6000].astype(np.float64)
    assert variance(noise) == pytest.approx(plan.noise_of_tables**2, rel=0.0075)  # 600,000 numbers: .18% each
    upper, lower = noise[:3000].ravel(), noise[3000:].ravel()
    assert abs(np.corrcoef(upper, lower)[0, 1]) < 5 / math.sqrt(upper.size)


# -- who is where -------------------------------------------------------------------------------------------------


class Alike(TorchRanks):
    """A rank without a network."""

    def __init__(self, number, count):
        self.number, self.count = number, count


def test_a_user_is_on_one_rank_however_he_is_spelled():
    documents = [dptext.Document("a", user=user) for user in ("7", " 7", 7, 7.0, *map(str, range(100)))]
    held = collections.Counter()
    for number in range(3):
        users = {str(each.user).strip().removesuffix(".0") for each in Alike(number, 3).own(documents, "user")}
        held.update(users)
    assert set(held.values()) == {1}
    assert sum(1 for n in range(3) for _ in Alike(n, 3).own(documents, "user")) == len(documents)


def test_a_document_is_on_one_rank_wherever_it_stands():
    """Also where ranks read in different orders, or one more document comes first."""
    documents = [dptext.Document(text) for text in ("a", "a", None, "", *(f"text {n}" for n in range(100)))]
    held = [[each.text for each in Alike(n, 3).own(documents, "document")] for n in range(3)]
    assert sum(map(len, held)) == len(documents)
    assert min(map(len, held)) > 20
    assert not set(held[0]) & set(held[1])
    for number in range(3):
        turned = [each.text for each in Alike(number, 3).own([dptext.Document("new"), *documents[::-1]], "document")]
        assert [text for text in turned[::-1] if text != "new"] == held[number]


def test_what_is_no_document():
    with pytest.raises(dptext.errors.DataError, match="row 1 must be a Document"):
        list(Alike(0, 2).own(["a"], "user"))


def test_a_row_without_a_user_is_named():
    documents = [dptext.Document("a", user="b"), dptext.Document("c")]
    with pytest.raises(dptext.errors.DataError, match="row 2 has no user"):
        list(Alike(0, 2).own(documents, "user"))


def test_sums_of_all_ranks_never_run_over_and_move_by_one_users_cells():
    """Whatever the ranks hold, one user's cells move the total by no more than themselves, number by number."""
    generator = np.random.default_rng(1)
    most = MOST // 3
    for _ in range(200):
        sums = generator.integers(-MOST, MOST + 1, (3, 50), dtype=np.int64)
        cells = generator.integers(-CELLS, CELLS + 1, 50)
        without = np.clip(sums, -most, most).sum(axis=0)
        sums[1] = np.clip(sums[1] + cells, -MOST, MOST)
        moved = np.clip(sums, -most, most).sum(axis=0) - without
        assert (np.abs(moved) <= np.abs(cells)).all()
        assert np.abs(without).max() < 2**31


# -- what goes wrong ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_rank_that_dies_stops_all_and_the_checkpoint_goes_on(tmp_path):
    checkpoint = str(tmp_path / "run.bin")
    job = {"killed": 1, "killed at": 12, "fit": {"checkpoint": checkpoint}}
    statuses = ended(started(tmp_path / "first", job))
    assert statuses[1] == -signal.SIGKILL
    assert statuses[0] == 4
    said = (tmp_path / "first" / "0.error").read_text()
    assert "another rank has stopped" in said
    assert "resume=True" in said
    assert not list((tmp_path / "first").glob("*.npy"))
    head = json.loads(Path(checkpoint).read_bytes().split(b"\n")[0])
    assert head["steps"] == 10
    assert Path(checkpoint).stat().st_mode & 0o777 == 0o600

    again = ended(started(tmp_path / "second", {"fit": {"checkpoint": checkpoint, "resume": True}}, count=3))
    assert again == [0, 0, 0]
    matrices = [np.load(tmp_path / "second" / f"{number}.npy") for number in range(3)]
    assert all((each == matrices[0]).all() for each in matrices)
    assert not Path(checkpoint).exists()


@pytest.mark.slow
def test_ranks_with_other_parameters_are_refused(tmp_path):
    statuses = ended(started(tmp_path / "job", {"of the last": {"epsilon": 4.0}}))
    assert statuses == [3, 3]
    assert "different parameters" in (tmp_path / "job" / "0.error").read_text()


def test_what_one_process_does_alone():
    for options, said in (({"mode": "plain"}, "one process"), ({"noise": "lazy"}, "dense")):
        with pytest.raises(dptext.errors.ParameterError, match=said):
            alone_on_two(**options)
    with pytest.raises(dptext.errors.ParameterError, match="torchrun"):
        TorchRanks()


def alone_on_two(**options):
    vectors = dptext.load_vectors((WORDS, np.random.default_rng(1).normal(size=(len(WORDS), 8))))
    return dptext.SkipGram(vectors, **OPTIONS | options).fit([], ranks=Alike(0, 2))
