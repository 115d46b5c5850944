"""One measurement for every setting and every seed: in parallel, kept row by row, gone on with after a stop.

    found = sweep(measure, grid(epsilon=[1.0, 2.0, 4.0]), seeds=range(5), path="tem.jsonl", name="tem", processes=2)

``measure(settings, seed)`` returns a dict of numbers. A cell that is done is never done again: the same call goes on
where it was, more settings or seeds add to what is there. Its `Sweep` has a mean and an interval for each setting, and
the difference of two settings seed by seed. What else decides about the numbers (which data, which
vectors) belongs into ``constants``: a file of other constants, of a function whose code differs or of another version
of dptext is refused (`papers.sweep_file`). The values that the function holds (its defaults, what it closes
over, the arguments of a partial, the instance of a method) count by their content; one that cannot be compared has to
be named in ``not_compared``. Code that it *calls*, and global names that it reads, are not looked at.

**Equal conditions.** Every cell has one thread for BLAS and OpenMP with any number of processes, so a table does
not depend on how many cores there were. Several processes are started afresh (spawn): the function and its settings
go there by pickling, so it must be a function of a module, and a script needs ``if __name__ == "__main__":``.

**Errors.** A cell that raises is written down with the class of its error (never its message, which may hold data); the
others are done, then the sweep ends with a `DataError` that names the cells. The next call tries them again. With
``stop_at_error`` the function's own error comes out at once.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from papers.sweep_file import Row, Setting, SweepFile, cell_name, checked_settings, experiment_of, read_rows
from threadpoolctl import threadpool_limits

from dptext.display import Fields, ProgressOption, ReprMixin, progress_bar
from dptext.errors import DataError, ParameterError, StorageError
from dptext.intervals import Estimate, mean_over_runs
from dptext.plotting import get_axes, in_letters, label_axes, next_style
from dptext.processes import begin_worker
from dptext.validation import check_choice, check_float, check_int
from dptext.validation import check_float as checked_number

__all__ = ["Progress", "Summary", "Sweep", "grid", "read_sweep", "sweep"]

Cell: TypeAlias = tuple[dict[str, Setting], int]
Run: TypeAlias = Callable[[Mapping[str, Any], int], Mapping[str, float]]
_AHEAD = 2  # cells that wait, for each process
_NAMED = 5  # cells that a message names
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Summary:
    """One number of one setting: its mean over the seeds with Student's interval, and the mean time of a row."""

    settings: Mapping[str, Setting]
    estimate: Estimate
    seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Sweep(ReprMixin):
    """The rows of a sweep.

    Attributes:
        rows: one for each setting and seed.
        experiment: what was held constant, and by which software it was done.
    """

    rows: tuple[Row, ...]
    experiment: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """What was measured."""
        return tuple(self.rows[0].numbers) if self.rows else ()

    @property
    def seconds(self) -> float:
        """The time of all rows together."""
        return sum(row.seconds for row in self.rows)

    def summary(self, number: str, *, confidence: float = 0.95) -> list[Summary]:
        """The mean of one number for each setting, with its interval over seeds.

        Raises:
            ParameterError: nothing of this name, or a setting with fewer than two seeds.
        """
        check_choice("number", number, self.names)
        result = []
        for rows in self._by_setting().values():
            if len(rows) < 2:
                raise ParameterError("seeds must be at least two for an interval over runs, a setting has 1")
            estimate = mean_over_runs([row.numbers[number] for row in rows], confidence=confidence)
            result.append(Summary(rows[0].settings, estimate, sum(row.seconds for row in rows) / len(rows)))
        return result

    def difference(
        self, number: str, first: Mapping[str, Setting], second: Mapping[str, Setting], *, confidence: float = 0.95
    ) -> Estimate:
        """How much larger a number is for the first setting than for the second, seed by seed.

        What a seed decides for both (folds, samples) cancels, so the interval is narrower than that of two means.

        Of ``first`` and ``second``, settings that single out one setting of the sweep suffice.

        Raises:
            ParameterError: settings that fit none or several, or fewer than two seeds in common.
        """
        check_choice("number", number, self.names)
        ones, others = (
            {row.seed: row.numbers[number] for row in self._only(name, entry)}
            for name, entry in (("first", first), ("second", second))
        )
        common = sorted(ones.keys() & others.keys())
        if len(common) < 2:
            raise ParameterError(f"first and second must have at least two seeds in common, got {len(common)}")
        return mean_over_runs([ones[seed] - others[seed] for seed in common], confidence=confidence)

    def table(self, *numbers: str) -> str:
        """Settings, means with their intervals, and seconds a row, in Markdown."""
        target = numbers or self.names
        columns = [self.summary(number) for number in target]
        names = list(self.rows[0].settings)
        lines = [[*names, *target, "seconds"], ["---"] * (len(names) + len(target) + 1)]
        for entry in zip(*columns, strict=True):
            results = [str(summary.estimate) for summary in entry]
            lines.append([*(str(entry[0].settings[name]) for name in names), *results, f"{entry[0].seconds:.3g}"])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _by_setting(self) -> dict[str, list[Row]]:
        result: dict[str, list[Row]] = {}
        for row in self.rows:
            result.setdefault(cell_name(row.settings, 0), []).append(row)
        return result

    def _only(self, name: str, wanted: Mapping[str, Setting]) -> list[Row]:
        missing = object()
        fitting = [
            rows
            for rows in self._by_setting().values()
            if all(rows[0].settings.get(key, missing) == value for key, value in wanted.items())
        ]
        if len(fitting) != 1:
            raise ParameterError(f"{name} must single out one setting, it fits {len(fitting)}")
        return fitting[0]

    def _repr_fields(self) -> Fields:
        yield "experiment", self.experiment.get("experiment")
        yield "rows", len(self.rows)
        yield "settings", len(self._by_setting())
        yield "numbers", ", ".join(self.names)
        yield "seconds", self.seconds

    def plot(self, number: str | None = None, *, over: str = "epsilon", axes: Any = None) -> Any:
        """Draw one number over one setting: a line for each combination of the others, with intervals over seeds.

        Args:
            number: what was measured; None: the only thing that was.
            over: the setting along the horizontal axis, in which all have numbers.
            axes: of matplotlib; None: of a new figure.

        Returns:
            The axes.

        Raises:
            ParameterError: nothing of this name; settings that are no numbers.
            MissingExtraError: matplotlib is not installed.
        """
        if number is None and len(self.names) == 1:
            number = self.names[0]
        name = check_choice("number", number, self.names)
        settings = tuple(self.rows[0].settings)
        check_choice("over", over, settings)
        lines: dict[str, list[tuple[float, list[float]]]] = {}
        for rows in self._by_setting().values():
            others = ", ".join(f"{key} {value}" for key, value in rows[0].settings.items() if key != over)
            index = checked_number(over, rows[0].settings[over])
            lines.setdefault(others, []).append((index, [row.numbers[str(name)] for row in rows]))
        axes = get_axes(axes)
        for others, result in lines.items():
            result.sort(key=lambda each: each[0])
            style = next_style(axes)
            means = [sum(values) / len(values) for _, values in result]
            points = [position for position, _ in result]
            axes.plot(points, means, label=in_letters(others or str(name)), markersize=4, **style)
            if all(len(values) > 1 for _, values in result):
                reach = [mean_over_runs(values) for _, values in result]
                low, high = [entry.low for entry in reach], [entry.high for entry in reach]
                axes.fill_between(points, low, high, color=style["color"], alpha=0.15, linewidth=0)
        label_axes(axes, over, f"{name}\n(mean; band: 95% over seeds)")
        return axes


@dataclass(frozen=True)
class Progress:
    """How far a sweep is: cells that are done (those of earlier calls among them), and the row just done."""

    done: int
    total: int
    row: Row | None
    seconds_left: float | None
    """At the pace of this call, or None before its first cell."""


def grid(**settings: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination of named values.

    >>> grid(mechanism=["tem", "madlib"], epsilon=[1.0, 5.0])[1:3]
    [{'mechanism': 'tem', 'epsilon': 5.0}, {'mechanism': 'madlib', 'epsilon': 1.0}]
    """
    for name, values in settings.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ParameterError(f"{name} must be a list of values, got {type(values).__name__}")
    return [dict(zip(settings, values, strict=True)) for values in product(*settings.values())]


def sweep(
    run: Run,
    settings: Iterable[Mapping[str, Any]],
    seeds: Iterable[int],
    *,
    path: str | Path,
    name: str,
    constants: Mapping[str, Any] | None = None,
    packages: Sequence[str] = (),
    not_compared: Sequence[str] = (),
    processes: int = 1,
    stop_at_error: bool = False,
    restart: bool = False,
    progress: ProgressOption = None,
) -> Sweep:
    """Measure every setting with every seed; go on where an earlier call was stopped.

    Args:
        run: (settings, seed) -> finite numbers by name, the same names for every cell.
        settings: the settings, distinct; see `grid`. Texts, finite numbers, truth values and None.
        seeds: distinct integers.
        path: the file of rows (``.jsonl``); its folder must be there.
        name: of the experiment.
        constants: what else decides about the numbers, such as a digest of the data.
        packages: further packages whose versions must be the same to go on ("scikit-learn").
        not_compared: names of values that ``run`` holds and that do not decide whether a file may be gone on with, such
            as an open file or a cache (``"self"`` for all that a method's instance holds); the file says which. What
            they are belongs into ``constants``.
        processes: how many at a time; 1 works in this one.
        stop_at_error: let the first error out instead of going on.
        restart: throw away a file of another experiment.
        progress: a bar, as `dptext.display` says; or called with a `Progress` at the start and after each cell.

    Returns:
        The rows, in the order of settings and seeds, with their summaries.

    Raises:
        ParameterError: no settings or seeds, one twice, a function that cannot be sent to other processes, or that
            holds what cannot be compared.
        RefusedError: the file holds rows of another experiment.
        DataError: cells failed, or the file is damaged.
        StorageError: the file cannot be written, another process is at it, or a worker died.
    """
    cells = _cells(settings, seeds)
    if check_int("processes", processes, minimum=1) > 1:
        _check_pickle(run)
    experiment = experiment_of(run, name, constants or {}, packages, not_compared)
    with SweepFile(Path(path), experiment, restart=restart) as file:
        done = {row.cell: row for row in file.rows if row.error is None}
        todo = [cell for cell in cells if cell_name(*cell) not in done]
        failed: list[Row] = []
        with progress_bar(progress, "cells", len(cells), describe=_of_cells) as show:
            clock = _Clock(len(cells), len(todo), show)
            try:
                for row in _work(run, todo, processes, stop_at_error=stop_at_error):
                    file.add(row)
                    if row.error is None:
                        done[row.cell] = row
                    else:
                        failed.append(row)
                    clock.tick(row)
            except KeyboardInterrupt as stop:
                stop.add_note(f"{clock.done} of {clock.total} cells are done: the same call goes on from there")
                raise
    if failed:
        raise DataError(_failure(failed, len(cells), Path(path)))
    results = [done[cell_name(*cell)] for cell in cells]
    names = {tuple(sorted(row.numbers)) for row in results}
    if len(names) > 1:
        raise DataError("run must return the same names of numbers for every cell, it returned different ones")
    return Sweep(rows=tuple(results), experiment=experiment)


def read_sweep(path: str | Path) -> Sweep:
    """The rows of a file as far as they are done, in its order; failed cells are left out.

    Raises:
        StorageError, DataError: it cannot be read, or is no file of a sweep.
    """
    experiment, rows = read_rows(Path(path))
    latest = {row.cell: row for row in rows if row.error is None}
    return Sweep(rows=tuple(latest.values()), experiment=experiment)


def _cells(settings: Iterable[Mapping[str, Any]], seeds: Iterable[int]) -> list[Cell]:
    checked = [checked_settings("settings", setting) for setting in settings]
    values: list[Any] = list(seeds)
    numbers = [int(seed) if isinstance(seed, np.integer) else seed for seed in values]
    if not checked or not numbers:
        raise ParameterError(f"{'seeds' if checked else 'settings'} must hold at least one, got none")
    if any(isinstance(seed, bool) or not isinstance(seed, int) for seed in numbers):
        raise ParameterError("seeds must be integers, got something else")
    if len({frozenset(entry) for entry in checked}) > 1:
        raise ParameterError("settings must all have the same names, got different ones")
    cells = [(entry, seed) for entry in checked for seed in numbers]
    if len({cell_name(*cell) for cell in cells}) < len(cells):
        raise ParameterError("settings and seeds must be distinct, one stands twice")
    return cells


def _check_pickle(run: Run) -> None:
    try:
        pickle.dumps(run)
    except Exception:  # noqa: BLE001 - an object may raise anything
        raise ParameterError(
            "run must be a function of a module to go to other processes (no lambda, no function in a function): move "
            "it there, or use processes=1"
        ) from None


def _work(run: Run, cells: Sequence[Cell], processes: int, *, stop_at_error: bool) -> Iterator[Row]:
    """The rows of the cells, as they come."""
    if processes == 1 or len(cells) < 2:
        for cell in cells:
            yield _measured(run, *cell, stop_at_error=stop_at_error)
        return
    pool = ProcessPoolExecutor(
        min(processes, len(cells)),
        # a forked process would share locks that threads of this one may hold
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
    )
    waiting: set[Future[Row]] = set()
    left, is_done = iter(cells), False
    try:
        while True:
            for cell in islice(left, _AHEAD * processes - len(waiting)):
                waiting.add(pool.submit(_measured, run, *cell, stop_at_error=stop_at_error))
            if not waiting:
                is_done = True
                return
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready:
                yield future.result()
    except BrokenProcessPool:
        raise StorageError(
            "a worker process died; the rows that are done are kept: use fewer processes if memory ran out; a script "
            "that asks for processes needs the line: if __name__ == '__main__':"
        ) from None
    finally:
        if not is_done:  # a cell may take hours, too long to wait for when the sweep is stopped
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _measured(run: Run, settings: dict[str, Setting], seed: int, *, stop_at_error: bool) -> Row:
    """One cell, with one thread for BLAS and OpenMP."""
    begin = time.perf_counter()
    try:
        with threadpool_limits(limits=1):
            numbers = _checked_numbers(run(dict(settings), seed))
    except Exception as error:
        if stop_at_error:
            raise
        return Row(settings, seed, {}, _since(begin), type(error).__name__)
    return Row(settings, seed, numbers, _since(begin))


def _checked_numbers(found: object) -> dict[str, float]:
    if not isinstance(found, Mapping) or not found:
        raise ParameterError(f"run must return a dict of numbers, got {type(found).__name__}")
    if not all(isinstance(key, str) for key in found):
        raise ParameterError("run must return numbers by name, got something else")
    return {key: check_float(f"what run returns as {key!r}", value) for key, value in found.items()}


def _since(begin: float) -> float:
    return round(time.perf_counter() - begin, 3)


def _start() -> None:
    """In the worker."""
    begin_worker(1)
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # for libraries that are loaded from now on


def _failure(failed: Sequence[Row], total: int, path: Path) -> str:
    cells = [f"{_spelled(row)} ({row.error})" for row in failed[:_NAMED]]
    more = f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
    return (
        f"{len(failed)} of {total} cells failed: {'; '.join(cells)}{more}. The others are in {str(path)!r}; the same "
        "call tries these again, with stop_at_error=True it shows the first error"
    )


def _spelled(row: Row) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in (*row.settings.items(), ("seed", row.seed)))


def _of_cells(progress: Progress) -> tuple[int, int, str]:
    return progress.done, progress.total, "cells"


class _Clock:
    """Counts cells, and reports them to ``progress``."""

    def __init__(self, total: int, todo: int, progress: Callable[[Progress], object]) -> None:
        self.total, self.done = total, total - todo
        self._left, self._worked, self._progress = todo, 0, progress
        self._begin = time.perf_counter()
        self._report(None)

    def tick(self, row: Row) -> None:
        self.done += row.error is None
        self._left -= 1
        self._worked += 1
        self._report(row)

    def _report(self, row: Row | None) -> None:
        pace = (time.perf_counter() - self._begin) / self._worked if self._worked else None
        self._progress(Progress(self.done, self.total, row, None if pace is None else pace * self._left))
