"""Blocks on all cores: errors come out, and the limit on BLAS is lifted by whoever leaves last."""

import threading

import pytest
from threadpoolctl import threadpool_info

from dptext.threads import for_each_block


def blas_threads():
    return [entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"]


def test_every_block_is_worked_on_once_and_errors_come_out():
    seen = []
    for_each_block(seen.append, range(100))
    assert sorted(seen) == list(range(100))
    for_each_block(seen.append, [])
    with pytest.raises(ZeroDivisionError):
        for_each_block(lambda number: 1 / number, [1, 0])


def test_overlapping_calls_leave_the_threads_of_blas_as_they_were():
    before = blas_threads()
    first_is_in, second_is_in = threading.Event(), threading.Event()

    def first(_):
        first_is_in.set()
        second_is_in.wait(600)

    def second(_):
        first_is_in.wait(600)
        second_is_in.set()

    threads = [threading.Thread(target=for_each_block, args=(work, [0])) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas_threads() == before
