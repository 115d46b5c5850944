"""`report`: examine a release in a file, and put the results on one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from dptext.audits.verdict import Verdict
from dptext.display import progress_bar
from dptext.errors import ParameterError, extras
from dptext.io.batches import display_name
from dptext.io.documents import PathLike
from dptext.methods.figures import promise_figure, scores_figure
from dptext.methods.files import FolderKind, folder_kind, no_report, other_than_reported
from dptext.methods.findings import Examination, Picture, ReportConfig, picture_of_attacks
from dptext.methods.registry import method_of, refuse_inputs
from dptext.methods.results import Measurement
from dptext.release.release import Release, data_and_statement, read_statement
from dptext.reports.page import Report
from dptext.vectors.formats import GLOVE, GLOVE_PACKAGE


def report(
    private: PathLike | ReportConfig | Release,
    *,
    title: str = "",
    command: str = "",
    say: Callable[[str], None] = lambda _line: None,
    progress: bool | None = None,
    **options: Any,
) -> Report:
    """Look at a release, and put what was found on one page: its promise, audits, attacks, utility and fairness.

    Args:
        private: private texts, a .parquet of vectors, or a synthetic corpus, with the statement beside it; or the
            release of `dptext.privatize_file`.
        title: of the page; empty: the name of the private file.
        command: what makes the page again.
        say: called with a line for each step.
        progress: a bar with the step, as `dptext.display` says.
        asked: what to look at, and in which rows: fields of `ReportConfig` (``original``, ``label``,
            ``attribute``, ``group``, ``user``, ``seed`` ...).

    Returns:
        A `Report`: ``html()`` is the page, ``card()`` a short one in Markdown without the numbers that only the owner
        of the texts should see, ``refuted`` whether the promise does not hold.

    Raises:
        DataError: a file cannot be what it is said to be: other rows than the original, a column that is missing, no
            statement of this library.
        ParameterError: what was asked for cannot be (one class, groups that are too small); the option is named.
        StorageError: a file cannot be read.
        MissingExtraError: matplotlib, scikit-learn or scipy is not installed.
    """
    if isinstance(private, Release) and "out" in private.made:
        private = private.out
    if isinstance(private, Release):
        raise ParameterError(
            "a report looks at a file with its statement beside it, and this release is in memory: make one with "
            "dptext.privatize_file, and give its path"
        )
    if isinstance(private, ReportConfig):
        private = replace(private, **options)
    else:
        for name in ("original", "distribution", "held_out", "bank"):
            if options.get(name) is not None:
                options[name] = Path(options[name])
        private = ReportConfig(private=Path(private), **options)
    if private.private.is_dir():
        folder = private.private if private.private.name else private.private.resolve()
        why_not = other_than_reported(folder, folder_kind(folder))
        if why_not is not None:
            raise ParameterError(why_not)
    data, statement_file = data_and_statement(private.private)
    statement = read_statement(statement_file)
    needed = [("matplotlib.figure", "report"), ("scipy.stats", "report"), ("sklearn", "report")]
    if (private.vectors or statement.parameters.get("vectors")) == GLOVE:
        needed.append((GLOVE_PACKAGE, "glove"))
    extras(needed, "this report")  # before minutes of work, and all of them at once
    method = method_of(statement)
    if method.examination is None:
        raise ParameterError(no_report(data, FolderKind(method.folder or FolderKind.OTHER)))
    refuse_inputs(method, data, vars(private))
    with progress_bar(progress, "looking at the release", describe=lambda line: (0, None, line)) as step:

        def both(line: str) -> None:
            say(line)
            step(line)

        return _page(method.examination(private, data, statement, both).run(), title, command)


def _page(examination: Examination, title: str, command: str) -> Report:
    pictures = {
        "audit": _picture_of_promise(examination.verdicts[0]),
        "attacks": picture_of_attacks([*examination.owner_attacks, *examination.attacks]),
        "utility": _picture_of_use(examination.utility),
    } | examination.pictures
    names = {field.name for field in fields(Report)}
    result: dict[str, Any] = {name: value for name, value in vars(examination).items() if name in names}
    result |= {
        "title": title or f"What is known about {display_name(examination.data)}",
        "pictures": {name: picture for name, picture in pictures.items() if picture is not None},
        "command": command,
    }
    return Report(**result)


def _picture_of_promise(verdict: Verdict) -> Picture | None:
    if verdict.allowed >= 1e6:
        return None
    return (
        "For the pair of words, texts or vectors that comes closest: what it may give away, and what the audit showed",
        promise_figure([(f"worst pair found, {verdict.method.partition(',')[0]}", verdict)]),
    )


def _picture_of_use(measurements: Sequence[Measurement]) -> Picture | None:
    accuracies = [entry for entry in measurements if entry.measure == "accuracy"]
    draws = [(accuracy.what.replace(", ", ",\n"), accuracy.score, accuracy.baseline) for accuracy in accuracies]
    caption = "How often each model was right (dot), beside the best blind guess (grey bar)"
    return (caption, scores_figure(draws, measure="accuracy")) if len(draws) > 1 else None
