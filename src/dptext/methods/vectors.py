"""Private vectors: each text becomes a noisy vector on its owner's device, for an untrusted server."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dptext.audits.mechanisms import audit
from dptext.audits.verdict import Verdict
from dptext.calibration.deniability import Floats
from dptext.errors import DataError
from dptext.io.artifacts import announced_format
from dptext.methods import files as checks
from dptext.methods import preview as numbers
from dptext.methods.base import PROTECTING, AdviceInput, Assessment, Caveat, Method, describe
from dptext.methods.examination import NO_ENCODER, RowExamination, infer_attribute
from dptext.methods.files import STATEMENT, Audit, Check, ReleaseFiles, Rows
from dptext.methods.preview import DRAWS, OUTCOMES, Piece, Previewer, Samples, Share, TextPreview, outcome_table
from dptext.privacy.guarantee import Trust
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.representations.bounds import fit_bound
from dptext.representations.device import DeviceEncoder, check_device, vectors_in
from dptext.representations.encoders import MeanOfWords
from dptext.representations.privunit import PrivUnit
from dptext.representations.published_protocols import PublishedChannel
from dptext.representations.randomizer import Channel
from dptext.representations.registry import (
    ON_NEWS,
    USUAL,
    is_randomizer,
    randomizer_from_parameters,
)
from dptext.vectors.word_vectors import WordVectors

_MOST_NUMBERS = 1 << 20  # of a vector: the audit must fit into memory
_NO_CONSTANTS = ("exposed", "witness", "witness_loss")
"""What follows from the encoder, which a statement does not hold, and what a search found."""

# of previews
_CANDIDATE_DRAWS = 20  # of each candidate of the adversary
_PAIR_DRAWS = 2000  # of each of two neighbours
_DIMENSION = 16
_INTERVAL_ERROR = 0.05


class VectorExamination(RowExamination):
    """Private vectors, of a randomizer."""

    def audit(self) -> Audit:
        return Vectors().check(self.files)

    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:  # noqa: ARG002
        self.notes.append(NO_ENCODER)


class VectorPreviewer(Previewer):
    """Private vectors of texts by PrivUnit: from a fixed number of draws."""

    key, title = "vectors", "A text becomes a private vector"
    epsilons = (0.5, 50.0, 8.0)

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:
        super().__init__(vectors, samples)
        self._encoder = MeanOfWords(vectors)
        public = self._encoder.encode(samples.public)
        self._bound = fit_bound(public, dimension=min(_DIMENSION, vectors.dimension), public_name=samples.name)
        self._public = self._bound.apply(public)

    def show(self, text: str, epsilon: float) -> TextPreview:
        device, bits = DeviceEncoder(self._encoder, self._bound, PrivUnit(epsilon=epsilon)), RandomBits()
        second, candidates = self._samples.neighbour(text), self._samples.candidates(text)
        clean = self._bound.apply(np.asarray(self._encoder.encode([*candidates, second]), dtype=np.float64))
        clean = device.channel.domain.bound(clean)
        known, pair = clean[:-1], clean[[0, -1]]
        private = _draw(device.channel, known, _CANDIDATE_DRAWS, bits)
        relative = log_densities(device.channel, private, known)
        relative -= relative.max(axis=1, keepdims=True)
        outputs = _draw(device.channel, pair, _PAIR_DRAWS, bits)
        logs = log_densities(device.channel, outputs, pair)
        nearest = self._nearest(outputs).reshape(2, _PAIR_DRAWS)
        one, other = (np.bincount(rows, minlength=len(self._public)) / _PAIR_DRAWS for rows in nearest)
        top = numbers.largest(np.maximum(one, other), OUTCOMES)
        names = [self._samples.public[row] for row in top]
        sample = np.asarray(device.encode([text] * DRAWS), dtype=np.float64)
        return self.preview(
            epsilon,
            device.statement,
            pieces=[Piece(text)],
            draws=(self._samples.public[row] for row in self._nearest(sample).tolist()),
            success=mean_of_draws(1.0 / np.exp(relative).sum(axis=1)),
            chance=1 / len(known),
            candidates=len(known),
            texts=(text, second),
            overlap=mean_of_draws(2.0 / (1.0 + np.exp(np.abs(logs[:, 0] - logs[:, 1])))),
            outcomes=outcome_table(names, one[top], other[top], rest="nearest to another text"),
        )

    def _nearest(self, vectors: Floats) -> npt.NDArray[np.intp]:
        """Return the public text nearest to each vector."""
        return np.asarray(np.argmax(vectors @ self._public.T, axis=1))


def _draw(channel: Channel, vectors: Floats, draws: int, bits: RandomBits) -> Floats:
    return np.asarray(channel.sample(np.repeat(vectors, draws, axis=0), bits), dtype=np.float64)


def log_densities(channel: Channel, outputs: Floats, vectors: Floats) -> Floats:
    """Return (n, m) log densities of outputs of PrivUnit for each input vector, up to a constant."""
    constants = channel.parameters()
    height, mass, chance = (float(constants[name] or 0.0) for name in ("cap_height", "cap_mass", "cap_chance"))
    directions = outputs / np.linalg.norm(outputs, axis=1, keepdims=True)
    inside, outside = math.log(chance / mass), math.log1p(-chance) - math.log1p(-mass)
    return np.asarray(np.where(directions @ vectors.T >= height, inside, outside))


def mean_of_draws(values: Floats) -> Share:
    """Return the mean of independent draws, each from 0 to 1."""
    mean = min(float(values.mean()), 1.0)
    reach = math.sqrt(math.log(2 / _INTERVAL_ERROR) / (2 * values.size))  # Hoeffding 1963
    return Share(mean, max(mean - reach, 0.0), min(mean + reach, 1.0), values.size)


class Vectors(Method):
    """``dptext encode``."""

    name = "private vectors"
    command = "encode"
    trust = Trust.LOCAL
    purposes: ClassVar = {None: 1, "read": 0, "classify": 1, "vectors": 0, "devices": 3, "statistics": 1}
    holds = "private vectors"
    examination = VectorExamination
    audited = "vectors"
    folder = "dptext-device-encoder"
    needs_vectors = True
    attacks: ClassVar = {"attribute": infer_attribute}
    playground = VectorPreviewer
    mismatch: ClassVar = {
        "read": "There is nothing to read: the output is one noisy vector per text.",
        "vectors": "The output is one vector per text, none per word.",
    }

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:  # noqa: ARG002
        saved = ["--save for-devices"] if case.requirements.purpose == "devices" else []
        options = (f"--epsilon {PROTECTING:g}", *case.keep_options(), case.public_options(), *saved)
        return Assessment(
            statement=PrivUnit(epsilon=PROTECTING).statement(USUAL),
            good_for=describe("vectors", on_news=ON_NEWS),
            caveats=tuple(_caveats(case)),
            commands=(case.command(self, ".encoded.parquet", *options),),
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


def _caveats(case: AdviceInput) -> Iterator[Caveat]:
    yield from case.label_caveats()
    if case.requirements.purpose == "devices":
        yield Caveat(
            0, "A device loads the folder of --save (dptext.DeviceEncoder.load). Here the file plays the devices."
        )


def _check_numbers(files: ReleaseFiles) -> Iterator[Check]:
    width = checks.whole_parameter(files.statement, "width")
    count = wrong = 0
    for vectors in vectors_in(files.data):
        count += len(vectors)
        fits = vectors.shape[1] == width
        wrong += int((~np.isfinite(vectors).all(axis=1)).sum()) if fits else len(vectors)
    seen = f"{count:,} vectors, {wrong:,} of them otherwise"
    yield Check(f"every vector has {width:,} finite numbers", wrong == 0, seen)


def _audit_randomizer(statement: PrivacyStatement, **sampling: Any) -> tuple[Check, Verdict]:
    """Check that the guarantee follows from the parameters, and audit the channel that they describe."""
    randomizer = randomizer_from_parameters(statement.mechanism, statement.parameters)
    dimension = checks.whole_parameter(statement, "dimension")
    if dimension > _MOST_NUMBERS:
        raise DataError(f"expected a statement of vectors of at most {_MOST_NUMBERS:,} numbers, got {dimension:,}")
    with checks.describes("a randomizer"):
        repeated = randomizer.statement(dimension)
    follows = checks.check_guarantee(statement, repeated, apart_from=_NO_CONSTANTS)
    # the claim comes from the file, and the channel from the parameters
    channel = randomizer.channel(dimension)
    pair = channel.witness if isinstance(channel, PublishedChannel) else None  # two that are known to lose most
    return follows, audit(channel, statement, pair=pair, **sampling)
