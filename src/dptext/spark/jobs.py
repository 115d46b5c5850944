"""Work of the engine that ends before anything else goes on, whatever happens to it.

An interrupt reaches Python at once and Java never: whoever clears up at once does it while tasks still write, and what
these make afterwards stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, TypeVar

from dptext.privacy.randomness import RandomBits

__all__ = ["completed", "run_job"]

Result = TypeVar("Result")
_LONGEST_END = 30.0  # seconds that tasks which were stopped have to end
_BETWEEN = 0.05
_BETWEEN_STOPS = 0.3


def run_job(spark: Any, work: Callable[[], Result], *, stop: Callable[[], None] = lambda: None) -> Result:
    """The result of jobs of the engine; when they fail or are interrupted, all of their tasks have ended.

    Args:
        spark: the session.
        work: what starts the jobs, and waits for them.
        stop: what else an interrupt has to stop, if that is not a job.
    """
    context = spark.sparkContext
    tag = f"dptext-{RandomBits().take(12).hex()}"

    def tagged() -> Result:
        context.addJobTag(tag)  # of this thread alone; groups are the caller's
        return work()

    def cancel() -> None:
        stop()
        context.cancelJobsWithTag(tag)

    try:
        return completed(tagged, stop=cancel)
    except BaseException:
        with suppress(Exception):  # Java may be gone, and its tasks with it
            _wait_for_tasks(context, tag)
        raise


def completed(work: Callable[[], Result], *, stop: Callable[[], None] = lambda: None) -> Result:
    """The result of something that an interrupt does not cut in two: it is waited for all the same.

    Args:
        work: done in a thread of its own. A second interrupt does not wait for it any more.
        stop: called on an interrupt, until the work has ended.

    Raises:
        KeyboardInterrupt: when the work has ended, if there was one.
    """
    from pyspark import InheritableThread

    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  raised where it is waited for
            future.set_exception(error)

    InheritableThread(target=run, daemon=True).start()
    try:
        return future.result()
    except KeyboardInterrupt:
        while not future.done():
            with suppress(Exception):  # Java may be gone
                stop()  # again and again: a job may begin after it
            wait([future], timeout=_BETWEEN_STOPS)
        raise


def _wait_for_tasks(context: Any, tag: str) -> None:
    tracker = context._jsc.sc().statusTracker()
    until = time.monotonic() + _LONGEST_END
    while time.monotonic() < until:
        if not any(_active(tracker, job) for job in tracker.getJobIdsForTag(tag)):
            return
        time.sleep(_BETWEEN)


def _active(tracker: Any, job: int) -> bool:
    """Whether a task of a job is running."""
    found = tracker.getJobInfo(job)
    stages = found.get().stageIds() if found.isDefined() else ()
    infos = [tracker.getStageInfo(stage) for stage in stages]
    return any(each.isDefined() and each.get().numActiveTasks() for each in infos)
