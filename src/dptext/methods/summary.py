"""Summaries: shares of topics, phrases and trends in the texts of many people, with intervals."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dptext.errors import ParameterError
from dptext.io.documents import read_documents
from dptext.methods import base
from dptext.methods.base import AdviceInput, Assessment, Caveat, round_down
from dptext.methods.corpus import check_noise, judge_people, membership_bound, repeated_statement
from dptext.methods.examination import AttackResult, Examination, attack_result
from dptext.methods.files import (
    FILES_AGREE,
    Audit,
    Check,
    ReleaseFiles,
    check_guarantee,
    describes,
    own_guarantee,
    real_parameter,
)
from dptext.noise.gaussian_sums import count_off_grid
from dptext.privacy.guarantee import ApproxDP, Trust, Unit
from dptext.privacy.statement import PrivacyStatement, software
from dptext.release.release import STATEMENT
from dptext.summary.describe import SummaryPlan, UserSums
from dptext.summary.text_summary import FOLDER, TextSummary

_EPSILON = 1.0
_WIDE = 0.02  # half an interval of a share
_CRITICAL = 3.3  # of 60 simultaneous intervals


class SummaryExamination(Examination):
    """A summary: its audit, the bound on membership inference, and its noise compared with the original texts."""

    def run(self) -> None:
        self.add_audit(Summaries().check(self.files))
        self.attacks.append(membership_bound(self.statement))
        if self.files.original is None:
            return
        if self.statement.unit is Unit.USER and self.files.user is None:
            raise ParameterError("--user COLUMN is required: the noise is compared with the texts of each user")
        summary = TextSummary.load(self.files.data)
        topics = dict(zip(summary.labels.names, summary.labels.described or (), strict=True))
        used: Any = self.statement.parameters["most_documents"]
        unit = "user" if self.statement.unit is Unit.USER else "document"
        plan = SummaryPlan(epsilon=1.0, topics=topics, bins=summary.bins, unit=unit, most_documents=used)
        if plan.topics.features.fingerprint != self.statement.parameters.get("features_sha256"):
            self.notes.append("The noise was not compared with the original texts: other features were used.")
            return
        reading: dict[str, Any] = {"keep": plan.columns, "user": self.files.user, "on_error": "skip"}
        reader, sums = read_documents(self.files.original, text=self.files.text, **reading), UserSums(plan)
        with closing(reader), plan.people(reader) as people:
            sums.add(people)
        noise = [
            ((summary.part(name) - cells / plan.units[name]) / summary.deviation(name)).reshape(-1)
            for name, cells in sums.cells.items()
        ]
        self.checks.append(check_noise(np.concatenate(noise)[None], np.zeros((1, 1)), 1.0))


def bound_membership(files: ReleaseFiles) -> AttackResult:
    """Bound the success of any membership attack by the stated noise."""
    bound = membership_bound(files.statement)
    return attack_result("membership", [bound], bound=bound.score.value, details=[])


class Summaries(base.Method):
    """``dptext describe``."""

    name = "text summary"
    command = "describe"
    suffix = ".summary"
    trust = Trust.CENTRAL
    purposes: ClassVar = {None: 2, "read": 0, "classify": 0, "vectors": 0, "devices": 0, "statistics": 4}
    holds = "a summary of texts"
    audited = "people"
    folder = FOLDER.format
    attacks: ClassVar = {"membership": bound_membership}
    examination = SummaryExamination
    mismatch: ClassVar = {
        "read": "The output is counts: there are no texts to read.",
        "classify": "The output is counts: a classifier needs texts.",
        "vectors": "The output is counts: there are no word vectors.",
        "devices": "The texts must be collected first: devices cannot send vectors themselves.",
    }

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:  # noqa: ARG002
        unit, people = case.data.unit, round_down(case.data.protected)
        plan = SummaryPlan(epsilon=_EPSILON, unit=unit)
        reach = _CRITICAL * plan.sigma / math.sqrt(plan.weights["topics"]) / people
        return Assessment(
            statement=plan.statement(seeded=False),
            good_for=base.describe("summary", reach=reach, people=people, whom=case.data.whom),
            caveats=tuple(_caveats(case, reach)),
            commands=(
                case.command(self, f"--epsilon {_EPSILON:g}", *([case.public_options()] if case.public.count else [])),
            ),
        )

    def recognizes(self, statement: PrivacyStatement) -> bool:
        return statement.mechanism == TextSummary.mechanism

    def verify_folder(self, folder: Path) -> Collection[str]:
        TextSummary.load(folder)
        return (STATEMENT,)

    def check(self, files: ReleaseFiles) -> Audit:
        summary = TextSummary.load(files.data)
        statement, guarantee = summary.statement, own_guarantee(summary.statement)
        names, weight = (real_parameter(statement, name) for name in ("delta_of_names", "weight_of_phrases"))
        squares = [
            scale**2 * (len(summary.phrases) if name == "counts" else 1) for name, scale in summary.scales.items()
        ]
        norm = math.sqrt(math.fsum([*squares, weight]))
        sigma = real_parameter(statement, "sigma")
        off = sum(count_off_grid(values, sigma) for values in summary.sums.values())
        with describes("a budget"):
            noise = ApproxDP(guarantee.epsilon + math.log1p(-names), guarantee.delta - names)
        needed = [names, weight] if summary.phrases or summary.other_phrases else [1.0]
        agree = {name: (files.data / name).read_bytes() == content for name, content in summary.files().items()}
        follows: bool | None = all(agree.values())
        if not follows and statement.software != software():  # another version may write other pages
            follows = None
        checks = [
            FILES_AGREE,
            Check("page, card and numbers follow from the sums", follows, ", ".join(n for n in agree if not agree[n])),
            Check("phrases have a part of the budget", min(needed) > 0, f"{len(summary.phrases):,} phrases"),
            Check("all parts of a user have norm 1 at most together", norm <= 1 + 1e-6, f"norm {norm:.6f}"),
            Check("the numbers lie on the grid of the stated noise", off == 0, f"{off:,} do not"),
            check_guarantee(
                statement, repeated_statement(statement, TextSummary.mechanism, {"sensitivity": 1.0}), apart_from=()
            ),
        ]
        return Audit(statement, checks, judge_people(statement, noise))


def _caveats(case: AdviceInput, reach: float) -> Iterator[Caveat]:
    if case.data.unit == "document":
        yield base.NO_USER
    if reach > _WIDE:
        few = f"Too few {case.data.whom} for epsilon {_EPSILON:g}: an interval of a share is +- {100 * reach:.0f}%."
        yield Caveat(2 if reach > 10 * _WIDE else 1, few)
