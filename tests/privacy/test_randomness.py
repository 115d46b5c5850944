"""Random bits: repeatable only under a seed, never copied, unbiased, and fine enough for the tails.

Statistical tests use fixed seeds, so they cannot flicker; on a fresh seed each would raise a false alarm with a
probability of at most `FALSE_ALARM`. Each also rejects a broken variant, or it would prove nothing.
"""

import copy
import hashlib
import itertools
import multiprocessing
import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dptext.privacy.randomness import NoiseKey, RandomBits

FALSE_ALARM = 1e-6
DRAWS = 200_000
CHUNK = 1 << 20
TOP = 2**64


class Fed(RandomBits):
    """A stream that yields the given 64-bit numbers and then has no more."""

    def __init__(self, *numbers):
        super().__init__(seed=0)
        self.left = b"".join(number.to_bytes(8, "little") for number in numbers)

    def take(self, count):
        part, self.left = self.left[:count], self.left[count:]
        assert len(part) == count, "more was drawn than was fed"
        return part


# -- seeds ----------------------------------------------------------------------------------------------------


def test_a_seed_repeats_the_stream_and_another_seed_does_not():
    assert RandomBits(seed=7).take(1000) == RandomBits(seed=7).take(1000)
    assert RandomBits(7).take(1000) == RandomBits(seed=7).take(1000)
    assert len({RandomBits(seed=seed).take(32) for seed in range(-50, 50)}) == 100


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000, CHUNK // 8, CHUNK // 8 + 1, CHUNK // 4 + 3])
def test_filling_an_array_gives_the_same_stream(size):
    out = np.zeros(size, dtype="<u8")
    RandomBits(seed=7).fill(out)
    assert out.tobytes() == RandomBits(seed=7).take(8 * size)


def test_filling_and_taking_never_give_the_same_bits():
    bits, out = RandomBits(seed=7), np.empty((3, 5), dtype=np.uint8)
    stream = bits.take(10)
    bits.fill(out)
    rest = bits.take(CHUNK)
    assert stream + rest[: CHUNK - 10] == RandomBits(seed=7).take(CHUNK)
    assert out.tobytes() == RandomBits(seed=7).take(CHUNK + 15)[CHUNK:]
    assert out.tobytes() not in rest
    with pytest.raises((TypeError, ValueError)):
        bits.fill(np.empty((4, 4))[:, ::2])  # a copy would be filled instead


def test_streams_without_a_seed_never_repeat():
    assert len({RandomBits().take(32) for _ in range(200)}) == 200


def test_the_stream_of_a_seed_is_aes_256_in_counter_mode_under_the_digest_of_the_seed():
    key = hashlib.sha256(b"dptext seed\x007").digest()
    count = 2 * CHUNK + 5000
    keystream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(count))
    assert RandomBits(seed=7).take(count) == keystream
    assert RandomBits(seed=7).integers(3).tolist() == np.frombuffer(keystream[:24], dtype="<u8").tolist()
    assert NoiseKey(seed=7).secret() != keystream[:32]


def test_without_a_seed_the_key_is_32_bytes_from_the_operating_system(monkeypatch):
    requested = []

    def urandom(count):
        requested.append(count)
        return b"k" * count

    monkeypatch.setattr(os, "urandom", urandom)
    result = RandomBits().take(64)
    assert requested == [32]
    assert result == Cipher(algorithms.AES256(b"k" * 32), modes.CTR(bytes(16))).encryptor().update(bytes(64))


# -- spawned streams ------------------------------------------------------------------------------------------


def test_spawned_streams_differ_from_each_other_and_from_their_parent():
    parent = RandomBits(seed=7)
    before = parent.take(32)
    streams = [*parent.spawn(20), *parent.spawn(20), *parent.spawn(1)[0].spawn(5)]
    draws = [stream.take(32) for stream in streams] + [before, parent.take(32), RandomBits(seed=7).take(32)]
    assert len(set(draws)) == len(draws) - 1, "only the last one repeats the first of the parent"
    assert streams[0]._key not in parent.take(10_000)
    assert streams[0]._key not in streams[0].take(10_000)


# -- bytes ----------------------------------------------------------------------------------------------------

sizes = st.sampled_from([0, 1, 7, 8, 1000, CHUNK - 1, CHUNK, CHUNK + 1]) | st.integers(0, 100_000)


@settings(deadline=None, max_examples=40)
@given(st.lists(sizes, max_size=6))
@example([CHUNK - 1, 2])
@example([1, CHUNK])
@example([1, 3 * CHUNK, 5])
@example([0])
def test_taking_in_pieces_is_taking_at_once(counts):
    pieces, whole = RandomBits(seed=7), RandomBits(seed=7)
    taken = [pieces.take(count) for count in counts]
    assert [len(part) for part in taken] == counts
    assert b"".join(taken) == whole.take(sum(counts))


def test_threads_that_share_a_stream_never_get_the_same_bytes():
    shared, count, workers = RandomBits(seed=7), 5_000, 8
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(workers) as pool:
            taken = pool.map(lambda _: [shared.take(16) for _ in range(count)], range(workers))
            draws = [part for parts in taken for part in parts]
    finally:
        sys.setswitchinterval(interval)
    whole = RandomBits(seed=7).take(16 * count * workers)
    assert sorted(draws) == sorted(whole[place : place + 16] for place in range(0, len(whole), 16))


# -- integers -------------------------------------------------------------------------------------------------


def bits_are_balanced(numbers, width):
    """Whether each of the lowest `width` bits is set in half of the numbers."""
    ones = [int(((numbers >> np.uint64(place)) & np.uint64(1)).sum()) for place in range(width)]
    return all(stats.binomtest(count, len(numbers)).pvalue > FALSE_ALARM / width for count in ones)


def test_every_bit_of_an_integer_is_set_in_half_of_the_draws():
    draws = RandomBits(seed=1).integers(DRAWS)
    assert draws.dtype == np.uint64
    assert bits_are_balanced(draws, 64)
    assert not bits_are_balanced(draws & ~np.uint64(1), 64)
    assert not bits_are_balanced(draws >> np.uint64(1), 64)


def test_integers_are_uniform_and_neighbours_are_independent():
    draws = RandomBits(seed=2).integers(DRAWS)

    def fits(numbers):
        pairs = (numbers[:-1] >> np.uint64(59)) << np.uint64(5) | (numbers[1:] >> np.uint64(59))
        return stats.chisquare(np.bincount(pairs.astype(np.int64), minlength=1024)).pvalue > FALSE_ALARM

    assert fits(draws)
    assert not fits(np.repeat(draws, 2))
    assert not fits((draws.astype(np.float64) ** 1.02).clip(0, 1.8e19).astype(np.uint64))


# -- bounded integers -----------------------------------------------------------------------------------------


def below(bits, bound, count):
    return bits.below(np.full(count, bound, dtype=np.uint64))


@given(st.integers(1, TOP - 1))
@example(1)
@example(2)
@example(3)
@example(3 * 2**62)
@example(2**63)
@example(2**63 + 1)
@example(TOP - 1)
def test_each_remainder_has_the_same_number_of_accepted_candidates(bound):
    # exactly the candidates below the largest multiple of the bound are accepted: the last of them, the first
    # one after them, and the largest candidate of all decide it
    multiple = TOP // bound * bound
    assert below(Fed(multiple - 1), bound, 1).tolist() == [bound - 1]
    if multiple < TOP:
        assert below(Fed(multiple, 0), bound, 1).tolist() == [0]
        assert below(Fed(TOP - 1, multiple, 5), bound, 1).tolist() == [5 % bound]
    else:
        assert below(Fed(TOP - 1), bound, 1).tolist() == [bound - 1]


def fits_three_parts(numbers):
    """Whether numbers below 3 * 2^62 fall evenly into three parts of 2^62 each."""
    counts = np.bincount((numbers >> np.uint64(62)).astype(np.int64), minlength=3)
    return stats.chisquare(counts).pvalue > FALSE_ALARM


def test_a_bound_where_modulo_is_grossly_biased_is_met_without_bias():
    bound = 3 * 2**62
    assert fits_three_parts(below(RandomBits(seed=4), bound, 20_000))
    # 2^64 mod 3*2^62 = 2^62: the naive remainder hits the first part twice as often
    naive = RandomBits(seed=4).integers(20_000) % np.uint64(bound)
    assert not fits_three_parts(naive)


def test_bounds_of_one_batch_are_each_met_evenly():
    bounds = np.tile(np.array([1, 2, 3, 7, 3 * 2**62, TOP - 1], dtype=np.uint64), 20_000)
    draws = RandomBits(seed=6).below(bounds)
    assert draws.dtype == np.uint64
    assert (draws < bounds).all()
    assert not draws[bounds == 1].any()
    for bound in (2, 3, 7):
        counts = np.bincount(draws[bounds == bound].astype(np.int64), minlength=bound)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM
    assert fits_three_parts(draws[bounds == 3 * 2**62])
    assert bits_are_balanced(draws[bounds == TOP - 1], 64)


def test_a_rejected_candidate_is_drawn_again_in_its_own_place():
    bounds = np.array([10, 3 * 2**62, 10], dtype=np.uint64)
    assert Fed(4, TOP - 1, 6, 77).below(bounds).tolist() == [4, 77, 6]


# -- uniform, exponential and normal numbers ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "count", "distribution", "scales"),
    [
        ("uniform", DRAWS, "uniform", (1.5, 2 / 3, 0.98)),
        ("exponential", DRAWS, "expon", (1.5, 2 / 3, 0.98)),
        ("normal", DRAWS, "norm", (1.5, 2 / 3, 0.96)),
        ("normal", DRAWS + 1, "norm", (1.5, 2 / 3, 0.96)),
    ],
)
def test_numbers_follow_their_distribution_and_other_scales_are_rejected(method, count, distribution, scales):
    draws = getattr(RandomBits(seed=8), method)(count)

    def fits(values):
        return stats.kstest(values, distribution).pvalue > FALSE_ALARM

    assert fits(draws)
    assert not any(fits(scale * draws) for scale in scales)
    assert not fits(draws + 0.02)


def test_uniforms_are_above_zero_and_at_most_one():
    lowest, highest = Fed(0, TOP - 1).uniform(2)
    assert lowest == 2.0**-53
    assert highest == 1.0
    assert Fed(2**11 - 1).uniform(1)[0] == 2.0**-53
    assert Fed(2**11).uniform(1)[0] == 2.0**-52


def test_uniforms_have_53_random_bits():
    steps = RandomBits(seed=9).uniform(DRAWS) * 2.0**53
    assert (steps == np.floor(steps)).all()
    numbers = steps.astype(np.uint64) - np.uint64(1)
    assert bits_are_balanced(numbers, 53)
    coarse = numbers >> np.uint64(29) << np.uint64(29)  # 24 bits, as of a float32
    assert not bits_are_balanced(coarse, 53)


# -- exponential and normal numbers ---------------------------------------------------------------------------


def test_normals_have_the_right_mass_beyond_three_sigma():
    draws = RandomBits(seed=12).normal(1_000_000)

    def tail_fits(values):
        beyond = int((np.abs(values) > 3).sum())
        return stats.binomtest(beyond, values.size, 2 * stats.norm.sf(3)).pvalue > FALSE_ALARM

    assert tail_fits(draws)
    assert not tail_fits(draws.clip(-3, 3))
    assert not tail_fits(1.1 * draws)


def test_the_two_normals_of_one_radius_are_independent():
    draws = RandomBits(seed=13).normal(DRAWS)
    cosines, sines = np.split(draws, 2)

    def independent(one, two):
        return all(
            stats.pearsonr(change(one), change(two)).pvalue > FALSE_ALARM / 3
            for change in (np.asarray, np.square, np.abs)
        )

    assert independent(cosines, sines)
    assert independent(draws[:-1], draws[1:])
    # a radius that is not exponential would show in the squares
    shrunk = np.hypot(cosines, sines) < 2
    assert not independent(cosines[shrunk], sines[shrunk])


# -- one holder only ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        *(lambda bits, version=version: pickle.dumps([bits], version) for version in (0, 2, pickle.HIGHEST_PROTOCOL)),
    ],
)
def test_streams_and_secrets_are_never_copied_or_pickled(duplicate):
    for secret in (RandomBits(), RandomBits(7), NoiseKey()):
        with pytest.raises(TypeError, match="never copied or pickled"):
            duplicate(secret)


def test_a_stream_of_another_process_is_refused(monkeypatch):
    bits = RandomBits(seed=7)
    bits.take(5)
    process = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: process + 1)
    for use in (
        lambda: bits.take(1),
        lambda: bits.take(0),
        lambda: bits.integers(1),
        lambda: bits.uniform(1),
        lambda: bits.normal(1),
        lambda: bits.spawn(1),
        lambda: bits.below(np.array([3], dtype=np.uint64)),
    ):
        with pytest.raises(RuntimeError, match="created in another process"):
            use()
    assert len(RandomBits(seed=7).take(5)) == 5
    monkeypatch.setattr(os, "getpid", lambda: process)
    assert len(bits.take(5)) == 5


def _use_in_child(bits, pipe):
    try:
        pipe.send(("inherited", bits.take(16)))
    except RuntimeError as error:
        pipe.send(("refused", str(error)))
    pipe.send(("fresh", RandomBits().take(16)))
    pipe.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
@pytest.mark.parametrize("used_before", [False, True])
def test_a_forked_process_cannot_use_the_stream_of_its_parent_and_makes_its_own(used_before):
    context = multiprocessing.get_context("fork")
    bits = RandomBits()
    if used_before:
        bits.take(5)
    fresh = set()
    for _ in range(2):
        receiver, sender = context.Pipe()
        child = context.Process(target=_use_in_child, args=(bits, sender))
        child.start()
        sender.close()
        outcome, message = receiver.recv()
        assert outcome == "refused"
        assert "created in another process" in message
        fresh.add(receiver.recv()[1])
        child.join(600)
        assert child.exitcode == 0
        receiver.close()
        child.close()
    assert len(fresh) == 2


# -- the secret of a job -------------------------------------------------------------------------------------------


def bits(key, parameters=b"p", place=0, content=b"c"):
    return key.stream(parameters, place, content).take(16)


def test_a_part_gets_the_same_bits_again():
    key = NoiseKey()
    assert bits(key) == bits(key)
    assert bits(NoiseKey.restored(key.secret(), seeded=False)) == bits(key)
    assert bits(NoiseKey(seed=7)) == bits(NoiseKey(seed=7))


def test_anything_changed_gets_other_bits():
    key = NoiseKey(seed=7)
    parts = list(itertools.product([b"", b"p", b"pp"], [0, 1, 11], [b"", b"c", b"1c"]))
    assert len({bits(key, *part) for part in parts}) == len(parts)
    assert len({bits(NoiseKey(seed=seed)) for seed in (0, 1, -1, 10)}) == 4
    assert bits(NoiseKey()) != bits(NoiseKey())
