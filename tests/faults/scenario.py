"""A command with a fault, the next run after it, and the checks of their files, ledgers and messages."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from dptext.errors import StorageError
from dptext.io.artifacts import file_digest
from dptext.ledger.ledger import RELEASED, Ledger
from dptext.release.job import Job
from dptext.release.release import statement_path
from faults.injection import How, Injection, Operation
from faults.running import Outcome, run

MARKER = "qsecretq"
"""Stands in every text; no message may hold it."""

_SECRETS = ("first", "second", "third", "fourth")
_VARIES = ("release_id", "data_sha256")
_EXIT_CODES = {How.FAIL: (0, 4), How.FULL: (0, 4), How.INTERRUPT: (0, 130), How.KILL: (-9, 0, 4)}


@dataclass(frozen=True)
class Scenario:
    """A command in a folder that `prepare` filled.

    Attributes:
        before: commands that run undisturbed before it.
        resumes: True if ``--resume`` continues it.
        stopped: kill the command in the middle first: the run that continues is the one that is tried.
        first: the folder that is released before the output, which is derived from it without further budget: the
            ledger counts the folder, and an output is whole if its statement belongs to it and to this folder.
    """

    name: str
    arguments: tuple[str, ...]
    out: str
    prepare: Callable[[Path], None]
    before: tuple[tuple[str, ...], ...] = ()
    ledger: str | None = None
    resumes: bool = True
    stopped: bool = False
    first: str | None = None


@dataclass(frozen=True, order=True)
class Point:
    """What happens to which operation of a scenario."""

    scenario: str
    fault: str
    number: int
    operation: str = field(compare=False)


@dataclass(frozen=True)
class _End:
    """What an undisturbed run leaves."""

    content: dict[str, str]
    statements: dict[str, dict[str, object]]
    modes: dict[str, int]
    spent: tuple[object, ...] | None


def imports_of(scenario: Scenario, folder: Path, injection: Injection) -> list[str]:
    """The modules that the command has imported at its end."""
    root, modules = _begun(scenario, folder), folder / "modules"
    for arguments in (*scenario.before, scenario.arguments):
        run(injection, root, arguments, secret="", modules=modules)
    return modules.read_text().split()


def _begun(scenario: Scenario, folder: Path) -> Path:
    """A folder with the input."""
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    for name in ("work", "tmp"):
        (root / name).mkdir(parents=True)
    scenario.prepare(root / "work")
    return root


class Trial:
    """A scenario in a folder of its own, which begins anew for every point."""

    def __init__(self, scenario: Scenario, folder: Path, injection: Injection) -> None:
        self.scenario = scenario
        self._injection = injection
        self._went_on = False
        self._root, self._template = _begun(scenario, folder), folder / "template"
        shutil.rmtree(self._template, ignore_errors=True)
        for arguments in scenario.before:
            self._undisturbed(arguments, "before")
        self._arguments = scenario.arguments
        if scenario.stopped:
            self._stop_in_the_middle()
        self._set = set(self._listing())
        self._old = self._published()
        self._old_first = self._first()
        self._old_counted = self._counted()
        shutil.copytree(self._root, self._template)
        self._ends: dict[str, _End] = {}
        for secret in _SECRETS:
            self._begin()
            outcome = self._undisturbed(self._arguments, secret)
            if secret == _SECRETS[0]:
                self.operations: list[Operation] = outcome.operations
            self._ends[secret] = self._end()
            assert not scenario.stopped or self._first() == self._old_first, "another release was made"
        first = self._ends[_SECRETS[0]]
        assert all(end.modes == first.modes and end.spent == first.spent for end in self._ends.values())
        if scenario.stopped and scenario.first is None:
            assert all(end.content == first.content for end in self._ends.values()), "nothing was done to go on with"
        assert not any(name.startswith("tmp/") for name in first.modes), f"left behind: {sorted(first.modes)}"

    def _stop_in_the_middle(self) -> None:
        """Return the point after two thirds of the run, or after its first operation."""
        saved = self._template
        shutil.copytree(self._root, saved)
        operations = self._undisturbed(self._arguments, _SECRETS[0]).operations
        position = 2 * len(operations) // 3
        if self.scenario.first is not None:
            position = (
                next(
                    operation.number
                    for operation in operations
                    if operation.name == f"rename /work/{self.scenario.first}"
                )
                + 1
            )
        shutil.rmtree(self._root)
        shutil.copytree(saved, self._root)
        shutil.rmtree(saved)
        run(self._injection, self._root, self._arguments, secret=_SECRETS[0], fault=How.KILL, number=position)
        self._arguments = (*self._arguments, "--resume")

    def _undisturbed(self, arguments: Sequence[str], secret: str) -> Outcome:
        outcome = run(self._injection, self._root, arguments, secret=secret)
        assert outcome.code == 0, f"an undisturbed run ended with {outcome.code}: {outcome.err}"
        assert outcome.err == "", f"an undisturbed run said: {outcome.err}"
        return outcome

    def _begin(self) -> None:
        shutil.rmtree(self._root)
        shutil.copytree(self._template, self._root)

    # -- points -----------------------------------------------------------------------------------------------

    def points(self) -> Iterator[Point]:
        """Return the points of failure: of like operations one after the other, to the first and the last of them.

        An interrupt is heard when control is back with Python, so that one among them stands for all.
        """
        for settings in (How.FAIL, How.FULL, How.KILL, How.INTERRUPT):
            for _, similar in groupby(
                filter(lambda entry: entry.can(settings), self.operations), lambda entry: entry.name
            ):
                first, *more = similar
                for entry in (first, *more[-1:]) if settings is not How.INTERRUPT else (first,):
                    yield Point(self.scenario.name, settings.name, entry.number, entry.name)

    def problems(self, point: Point) -> list[str]:
        """Yield the faults after a point; none if all is well."""
        self._begin()
        settings = How[point.fault]
        outcome = run(
            self._injection, self._root, self._arguments, secret=_SECRETS[0], fault=settings, number=point.number
        )
        if not outcome.happened:
            return [f"it never came to this: the run is not the same twice (exit code {outcome.code})"]
        result = [*self._run_problems(outcome, settings), *self._file_problems(), *self._first_output_problems(outcome)]
        if outcome.code != 0:
            result += self._continuation_problems(outcome)
        # what could not be removed, or was cut off, stays until the same output is written again
        excused = settings is How.FAIL and _REMOVAL.match(point.operation) is not None
        return result or list(self._end_problems(outcome, excused or (settings is How.KILL and not self._went_on)))

    def _run_problems(self, outcome: Outcome, fault: How) -> Iterator[str]:
        if outcome.code is None:
            yield "it hung, or left a process behind that did not end"
        elif outcome.code == 1 and "the disk failed" in outcome.err:
            pass  # SQLite takes what cannot be read for damaged
        elif outcome.code not in _EXIT_CODES[fault]:
            yield f"exit code {outcome.code}, expected one of {_EXIT_CODES[fault]}: {outcome.err.strip()!r}"
        yield from _message_problems(outcome)

    def _file_problems(self) -> Iterator[str]:
        """Nothing half, and nothing for others."""
        published = self._published()
        if published and published != self._old:
            whole = self._ends[_SECRETS[0]]
            wrong = sorted(name for name in whole.content if published.get(name) != whole.content[name])
            if self.scenario.first is not None:
                pass  # see `_first_output_problems`
            elif wrong:
                yield f"half published: {wrong} differs from the expected file"
            elif whole.statements and not self._end().statements:  # a bank has none
                yield "published without its statement"
        expected = self._ends[_SECRETS[0]].modes
        for name, mode in self._listing().items():
            was_out = ".replaced" in name  # it was released before
            if name not in self._set and name not in expected and mode & 0o077 and not was_out:
                yield f"{name} can be read by others: {mode:o}"

    def _continuation_problems(self, outcome: Outcome) -> Iterator[str]:
        """Do as the message says, or else run the same again and do as that says."""
        self._went_on = True
        resume = self.scenario.resumes and "--resume" in outcome.err
        if outcome.code == -9 and "--force" in self._arguments:
            resume = self._is_resumable()
            if not resume and self._is_done():
                self._went_on = False  # once more would be another release
                return
        for secret in _SECRETS[1:]:
            arguments = self._arguments
            if resume and "--resume" not in arguments:
                arguments = (*arguments, "--resume")
            outcome = run(self._injection, self._root, arguments, secret=secret)
            if outcome.code == 0:
                return
            yield from _message_problems(outcome)
            is_last = resume or "--resume" not in outcome.err
            if is_last and "already exists" in outcome.err and self._is_done():
                self._went_on = False  # a finished run is not continued, so its temporary files stay
                return
            if outcome.code is None or resume or not self.scenario.resumes or "--resume" not in outcome.err:
                break
            resume = True
        yield f"no way on: {outcome.code}, {outcome.err.strip()!r}"

    def _is_resumable(self) -> bool:
        """After a kill, whether there is something to go on with."""
        if self.scenario.first is not None:
            return self._first() not in (None, self._old_first) and not self._is_done()
        return Job.is_open(self._root / "work" / self.scenario.out)

    def _first_output_problems(self, outcome: Outcome, *, at_the_end: bool = False) -> Iterator[str]:
        """The files in the folder count; the other files are derived from them."""
        if self.scenario.first is None:
            return
        work = self._root / "work"
        name = self._first()
        if (work / self.scenario.first).is_dir() and name is None:
            yield "a folder without a statement, or cut"
        counted = self._counted()
        if counted is not None and self._old_counted is not None:
            if name is not None and name not in counted:
                yield "a release that the ledger does not count"
            is_pending = any(counted[entry] != RELEASED for entry in counted.keys() - self._old_counted.keys())
            if is_pending and outcome.code not in (0, -9) and "dptext ledger " not in outcome.err and not at_the_end:
                yield "a release that stays charged, and no message says so"
            if at_the_end and name is not None and counted.get(name) != RELEASED:
                yield "the ledger has not settled the release that stands there"
        published = self._published()
        if published and published != self._old and not self._is_done():
            yield "an output that is not what its statement says, or of another release"
        for path in (self._root / "cache").rglob("*"):
            if path.stat().st_mode & 0o077:
                yield f"{path.name} can be read by others"

    def _end_problems(self, outcome: Outcome, excused: bool) -> Iterator[str]:
        yield from self._first_output_problems(outcome, at_the_end=True)
        end, first = self._end(), self._ends[_SECRETS[0]]
        allowed = {name: [entry.content[name] for entry in self._ends.values()] for name in first.content}
        if "rows are done and kept" in outcome.err:
            allowed = {name: [digest] for name, digest in first.content.items()}
        if self.scenario.first is None:
            for name, digests in allowed.items():
                if end.content.get(name) not in digests:
                    yield f"{name} is not what an undisturbed run makes of it"
        if end.modes != first.modes:
            left, lost = sorted(end.modes.keys() - first.modes.keys()), sorted(first.modes.keys() - end.modes.keys())
            other = [
                name for name in first.modes.keys() & end.modes.keys() if not self._has_its_rights(name, end, first)
            ]
            # a killed run leaves temporary files and folders, for its owner alone
            left = [name for name in left if not _TEMPORARY.search(name) or end.modes[name] & 0o077]
            if excused:
                left = [name for name in left if "/." not in name and not name.startswith("tmp/")]
                left = [name for name in left if not name.endswith("-journal")]  # of SQLite: the next write removes it
            if left or lost or other:
                yield f"left behind: {left}, missing: {lost}, of another mode: {other}"
        if end.statements != first.statements:
            yield "the statement is another one"
        if end.spent != first.spent:
            yield f"the ledger says {end.spent}, after an undisturbed run {first.spent}"

    def _has_its_rights(self, name: str, end: _End, first: _End) -> bool:
        """Return whether the mode is right; files that no job continues may still be for their owner only."""
        inside = {str(Path(mode).parent) for mode in first.modes}
        is_alone = name in inside or str(Path(name).parent) != "work"
        is_alone |= self.scenario.first is not None and not self._went_on
        return end.modes[name] == first.modes[name] or (is_alone and end.modes[name] == first.modes[name] & 0o700)

    # -- files ------------------------------------------------------------------------------------------------

    def _first(self) -> str | None:
        """The name of the release in the folder that comes first, if that is whole."""
        if self.scenario.first is None:
            return None
        folder = self._root / "work" / self.scenario.first
        try:
            announced = json.loads((folder / "config.json").read_text())["sha256"]
            if all(file_digest(folder / name) == digest for name, digest in announced.items()):
                return str(json.loads((folder / "privacy.json").read_text())["release_id"])
        except (OSError, StorageError):
            pass
        return None

    def _counted(self) -> dict[str, str] | None:
        """The releases that the ledger counts, and how."""
        if self.scenario.ledger is None or self.scenario.first is None:
            return None
        return {
            release.release_id: release.state
            for release in Ledger(self._root / "work" / self.scenario.ledger).releases()
        }

    def _listing(self) -> dict[str, int]:
        """Return modes by name; the content of folders for their owner only is not reachable."""
        result: dict[str, int] = {}
        for top, folders, files in os.walk(self._root):
            parent_path = Path(top)
            for name in (*folders, *files):
                path = parent_path / name
                inside = path.relative_to(self._root)
                closed = any(result.get(str(parent), 0o077) & 0o077 == 0 for parent in list(inside.parents)[:-2])
                mode = stat.S_IMODE(path.lstat().st_mode)
                result[str(inside)] = mode & 0o700 if closed else mode
        return {name: mode for name, mode in result.items() if Path(name).parts[0] != "cache" and "/" in name}

    def _published(self) -> dict[str, str]:
        """Digests of the output, a file or all of a folder."""
        out = self._root / "work" / self.scenario.out
        inside = sorted(out.rglob("[!.]*")) if out.is_dir() else [out]
        files = [entry for entry in inside if not entry.is_dir()]
        return {str(file.relative_to(out.parent)): file_digest(file) for file in files if file.exists()}

    def _is_done(self) -> bool:
        """Return whether the output equals the first run's or, for the first file, its statement."""
        if self.scenario.first is not None:
            out = self._root / "work" / self.scenario.out
            statement = statement_path(out)
            if not out.exists() or not statement.exists():
                return False
            data = json.loads(statement.read_text())
            is_new = (
                "--force" not in self._arguments or "--resume" in self._arguments or self._first() != self._old_first
            )
            return is_new and data["data_sha256"] == file_digest(out) and data["release_id"] == self._first()
        return self._content() == self._ends[_SECRETS[0]].content

    def _content(self) -> dict[str, str]:
        """The same without statements, which name the release."""
        return {name: digest for name, digest in self._published().items() if "privacy" not in name}

    def _end(self) -> _End:
        work = self._root / "work"
        statements = {}
        for path in sorted(work.rglob("*privacy*.json")):
            if any(part.startswith(".") for part in path.relative_to(work).parts):
                continue
            read = json.loads(path.read_text())
            statements[str(path.relative_to(work))] = {key: read[key] for key in read if key not in _VARIES}
        spent = None
        if self.scenario.ledger is not None:
            ledger = Ledger(work / self.scenario.ledger)
            # without a job file to continue, every stopped run stays charged in addition to the one that ended
            is_counted_once = self.scenario.resumes and self.scenario.first is None and "--force" not in self._arguments
            spent = (is_counted_once and len(ledger.releases()), ledger.summary().units)
        return _End(self._content(), statements, self._listing(), spent)


_REMOVAL = re.compile(r"unlink|rmdir|open \S*/(dptext-work-\w+|\.[\w.]+\.(replaced|part))$")
_TEMPORARY = re.compile(r"^tmp/dptext-work-|/\.[^/]+\.part(/|$)")
_LINE = re.compile(r"dptext: \S.*")


def _message_problems(outcome: Outcome) -> Iterator[str]:
    """Lines for a person, and nothing of the texts."""
    text = outcome.err.strip()
    lines = text.splitlines()
    is_ours = len(lines) <= 4 and all(_LINE.fullmatch(line) or "ledger void" in line for line in lines)
    if MARKER in outcome.err + outcome.out:
        yield "a message holds a text"
    if not is_ours or any(word in text for word in ("Traceback", "Exception ignored", "Warning", "Error:")):
        yield f"not a line for people: {text[-600:]!r}"
    elif outcome.code is not None and outcome.code > 0 and not lines:
        yield f"exit code {outcome.code} without a word"
    elif outcome.code == 0 and lines and "ledger void" not in text:
        yield f"all is well, but it said {text!r}"
