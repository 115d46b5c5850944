"""`report`: examine a release in a file, and put the results on one page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from dptext.display import progress_bar
from dptext.errors import ParameterError, extras
from dptext.io.batches import display_name
from dptext.io.documents import PathLike
from dptext.methods.examination import (
    Examination,
    ReportConfig,
    attack_picture,
    guarantee_figure,
    scores_figure,
)
from dptext.methods.files import FolderKind, folder_kind, no_report
from dptext.methods.registry import method_of, refuse_inputs
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
    """Examine a release, and put its guarantee, audit, attacks, utility and fairness on one page.

    Args:
        private: private texts, a .parquet of vectors, or a synthetic corpus, with its statement next to it; or the
            release of `dptext.privatize_file`.
        title: of the page; empty: the name of the private file.
        command: the command that makes the page again.
        say: called with a line for each step.
        progress: a bar with the step, as `dptext.display` says.
        options: fields of `ReportConfig` (``original``, ``label``, ``attribute``, ``group``, ``user``, ``seed`` ...).

    Returns:
        A `Report`: ``html()`` is the page, ``card()`` a short one in Markdown without the numbers that only the owner
        of the texts should see, ``refuted`` whether the guarantee does not hold.

    Raises:
        DataError: a file is not what it should be: other rows than the original, a missing column, no statement.
        ParameterError: an option that does not fit the release, a column with one class, groups that are too small.
        StorageError: a file cannot be read.
        MissingExtraError: matplotlib, scikit-learn or scipy is not installed.
    """
    if isinstance(private, Release):
        if "out" not in private.made:
            raise ParameterError("this release is in memory: make a file with dptext.privatize_file, and give its path")
        private = private.out
    if isinstance(private, ReportConfig):
        config = replace(private, **options)
    else:
        paths = {
            name: Path(options[name]) for name in ("original", "distribution", "held_out", "bank") if options.get(name)
        }
        config = ReportConfig(private=Path(private), **options | paths)
    if config.private.is_dir():
        folder = config.private if config.private.name else config.private.resolve()
        if (kind := folder_kind(folder)) is not FolderKind.ONE_FILE:
            raise ParameterError(no_report(folder, kind))
    data, statement_file = data_and_statement(config.private)
    statement = read_statement(statement_file)
    required = [("matplotlib.figure", "report"), ("scipy.stats", "report"), ("sklearn", "report")]
    if (config.vectors or statement.parameters.get("vectors")) == GLOVE:
        required.append((GLOVE_PACKAGE, "glove"))
    extras(required, "this report")  # all of them, before minutes of work
    method = method_of(statement)
    if method.examination is None:
        raise ParameterError(no_report(data, FolderKind(method.folder or FolderKind.OTHER)))
    refuse_inputs(method, data, vars(config))
    with progress_bar(progress, "examining the release", describe=lambda line: (0, None, line)) as step:

        def say_and_show(line: str) -> None:
            say(line)
            step(line)

        examination = method.examination(config, data, statement, say_and_show)
        examination.run()
        return _page(examination, title, command)


def _page(examination: Examination, title: str, command: str) -> Report:
    [verdict] = examination.verdicts
    pictures = {"attacks": attack_picture([*examination.owner_attacks, *examination.attacks])}
    if verdict.allowed < 1e6:
        caption = "Privacy loss of the worst pair found: the bound of the guarantee, and the result of the audit"
        name = f"worst pair found, {verdict.method.partition(',')[0]}"
        pictures["audit"] = caption, guarantee_figure([(name, verdict)])
    rows = [
        (entry.name.replace(", ", ",\n"), entry.score, entry.baseline)
        for entry in examination.utility
        if entry.measure == "accuracy"
    ]
    if len(rows) > 1:
        pictures["utility"] = (
            "Accuracy of each model (dot) and chance level (grey bar)",
            scores_figure(rows, measure="accuracy"),
        )
    pictures |= examination.pictures
    names = {field.name for field in fields(Report)}
    values: dict[str, Any] = {name: value for name, value in vars(examination).items() if name in names}
    values |= {
        "title": title or f"Report on {display_name(examination.data)}",
        "pictures": {name: picture for name, picture in pictures.items() if picture is not None},
        "command": command,
    }
    return Report(**values)
