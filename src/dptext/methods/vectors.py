"""Private vectors: each text becomes a noisy vector on its owner's device, for an untrusted server."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dptext.audits.mechanisms import audit
from dptext.audits.verdict import Verdict
from dptext.errors import DataError, MissingExtraError, ParameterError
from dptext.evaluation.utility import compare_epsilons
from dptext.io.artifacts import announced_format
from dptext.methods import files as checks
from dptext.methods.base import PROTECTING, AdviceInput, Assessment, Caveat, Method, describe
from dptext.methods.examination import RowExamination, infer_attribute
from dptext.methods.files import Audit, Check, ReleaseFiles, Rows
from dptext.privacy.guarantee import Trust
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import STATEMENT
from dptext.representations.device import check_device, vectors_in
from dptext.representations.privunit import PrivUnit
from dptext.representations.published_protocols import PublishedChannel
from dptext.representations.registry import ON_NEWS, USUAL, is_randomizer, randomizer_from_parameters

_MOST_NUMBERS = 1 << 20  # of a vector: the audit must fit into memory
_NO_CONSTANTS = ("exposed", "witness", "witness_loss")
"""Parameters that follow from the encoder, which is not in a statement, or that a search found."""


class VectorExamination(RowExamination):
    """Private vectors of a randomizer."""

    def audit(self) -> Audit:
        return Vectors().check(self.files)

    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:  # noqa: ARG002
        self.notes.append("Private vectors were not linked to their texts: that requires the encoder.")


class Vectors(Method):
    """``dptext encode``."""

    name = "private vectors"
    command = "encode"
    suffix = ".encoded.parquet"
    trust = Trust.LOCAL
    purposes: ClassVar = {None: 1, "read": 0, "classify": 1, "vectors": 0, "devices": 3, "statistics": 1}
    holds = "private vectors"
    examination = VectorExamination
    audited = "vectors"
    folder = "dptext-device-encoder"
    needs_vectors = True
    attacks: ClassVar = {"attribute": infer_attribute}
    mismatch: ClassVar = {
        "read": "There is nothing to read: the output is one noisy vector per text.",
        "vectors": "The output is one vector per text, none per word.",
    }

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        saved, caveats = [], list(case.label_caveats())
        if case.requirements.purpose == "devices":
            saved, load = ["--save for-devices"], "A device loads the folder of --save (dptext.DeviceEncoder.load)."
            caveats.append(Caveat(0, f"{load} Here the rows play the devices."))
        options = (f"--epsilon {PROTECTING:g}", *case.keep_options(), case.public_options(), *saved)
        return Assessment(
            statement=PrivUnit(epsilon=PROTECTING).statement(USUAL),
            good_for=describe("vectors", on_news=ON_NEWS),
            accuracy=_expected_accuracy(case) if figures else None,
            caveats=tuple(caveats),
            commands=(case.command(self, *options),),
        )

    def recognizes(self, statement: PrivacyStatement) -> bool:
        return is_randomizer(statement.mechanism)

    def verify_folder(self, folder: Path) -> Collection[str]:
        check_device(folder)
        return (STATEMENT,)

    def check(self, files: ReleaseFiles) -> Audit:
        if files.data.is_dir() and announced_format(files.data) == self.folder:  # an encoder for devices
            statement = check_device(files.data)
            follows, verdict = _audit_randomizer(statement, **files.sampling)
            return Audit(statement, [checks.FILES_AGREE, follows], verdict)
        return checks.audit_file(
            files, lambda: _check_numbers(files), *_audit_randomizer(files.statement, **files.sampling)
        )


def _expected_accuracy(case: AdviceInput) -> tuple[float, float] | None:
    """Return the interval of the accuracy on public texts; None: unknown."""
    texts, labels = case.public.labelled
    rows = min(case.data.rows, len(texts))
    with suppress(MissingExtraError, ParameterError):  # a label of few texts
        if case.vectors is not None:
            [result] = compare_epsilons(case.vectors, texts[:rows], labels[:rows], [PROTECTING], seed=0).rows
            score = result.learned or result.accuracy
            return score.low, score.high
    return None


def _check_numbers(files: ReleaseFiles) -> Iterator[Check]:
    width = checks.whole_parameter(files.statement, "width")
    count = wrong = 0
    for vectors in vectors_in(files.data):
        count += len(vectors)
        fits = vectors.shape[1] == width
        wrong += int((~np.isfinite(vectors).all(axis=1)).sum()) if fits else len(vectors)
    seen = f"{count:,} vectors, {wrong:,} of them do not"
    yield Check(f"all vectors have {width:,} finite numbers", wrong == 0, seen)


def _audit_randomizer(statement: PrivacyStatement, **sampling: Any) -> tuple[Check, Verdict]:
    """Check that the guarantee follows from the parameters, and audit the channel that they describe."""
    randomizer = randomizer_from_parameters(statement.mechanism, statement.parameters)
    dimension = checks.whole_parameter(statement, "dimension")
    if dimension > _MOST_NUMBERS:
        raise DataError(f"a vector may have at most {_MOST_NUMBERS:,} numbers here, the statement says {dimension:,}")
    with checks.describes("a randomizer"):
        repeated = randomizer.statement(dimension)
    follows = checks.check_guarantee(statement, repeated, apart_from=_NO_CONSTANTS)
    # the claim comes from the file, and the channel from the parameters
    if statement.trust is Trust.SHUFFLER:  # a message has the local guarantee, which the check above repeated
        statement = repeated
    channel = randomizer.channel(dimension)
    pair = channel.witness if isinstance(channel, PublishedChannel) else None  # the largest known loss
    return follows, audit(channel, statement, pair=pair, **sampling)
