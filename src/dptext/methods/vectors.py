"""Private vectors: each text becomes a noisy vector on its owner's device, for an untrusted server."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dptext.audits.mechanisms import audit
from dptext.audits.verdict import Verdict
from dptext.calibration.deniability import Floats
from dptext.errors import DataError
from dptext.io.artifacts import announced_format
from dptext.methods import checks
from dptext.methods import preview as numbers
from dptext.methods.attacks import Attack, infer_attribute
from dptext.methods.base import PROTECTING, AdviceInput, Assessment, Caveat, Method, Preview, describe
from dptext.methods.checks import Audit, Check, ReleaseFiles
from dptext.methods.examination import NO_ENCODER, RowExamination
from dptext.methods.files import DEVICE, STATEMENT, Rows
from dptext.methods.preview import DELTA, OUTCOMES, Piece, Point, Previewer, Samples, Share, TextPreview, outcome_table
from dptext.privacy.guarantee import Trust
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.representations.additive import Gaussian
from dptext.representations.bounds import Bound, Domain, fit_bound
from dptext.representations.device import DeviceEncoder, check_device, encoder_of, vectors_in
from dptext.representations.encoders import MeanOfWords
from dptext.representations.privunit import PrivUnit
from dptext.representations.published_protocols import PublishedChannel
from dptext.representations.randomizer import Channel, Randomizer
from dptext.representations.registry import (
    ON_NEWS,
    USUAL,
    best_dimension,
    is_randomizer,
    randomizer_from_parameters,
    randomizer_of,
)
from dptext.vectors.word_vectors import WordVectors

_FITTED = 1_000  # public texts
_FIT: dict[str, Any] = {"bound": "normalise", "projection": "pca", "centre": True, "labels": None}
_MOST_NUMBERS = 1 << 20  # of a vector: the audit must fit into memory
_NO_CONSTANTS = ("exposed", "witness", "witness_loss")
"""What follows from the encoder, which a statement does not hold, and what a search found."""

# of previews
_CANDIDATE_DRAWS = 20  # of each candidate of the adversary
_PAIR_DRAWS = 2000  # of each of two neighbours
_POINTS = 150


class VectorExamination(RowExamination):
    """Private vectors, of a randomizer."""

    def audit(self) -> Audit:
        return Vectors().check(self.files)

    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:  # noqa: ARG002
        self.notes.append(NO_ENCODER)


class VectorPreviewer(Previewer):
    """Private vectors of texts: from a fixed number of draws."""

    key, title = "vectors", "A text becomes a private vector"
    choices = ("PrivUnit", "L2Laplace", "Gaussian")
    epsilons = (0.5, 50.0, 8.0)

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:
        super().__init__(vectors, samples)
        self._encoder = MeanOfWords(vectors)
        self._public = self._encoder.encode(samples.public)
        self._bounds: dict[tuple[str, int], Bound] = {}

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> TextPreview:
        device, bits = self._device(choice, epsilon), RandomBits()
        second = self._samples.neighbour(text) if neighbour is None else neighbour
        candidates = self._samples.candidates(text)
        clean = device.bound.apply(np.asarray(self._encoder.encode([*candidates, second]), dtype=np.float64))
        clean = device.channel.domain.bound(clean)
        known, pair = clean[:-1], clean[[0, -1]]
        public = device.bound.apply(self._public)
        private = _draw(device.channel, known, _CANDIDATE_DRAWS, bits)
        outputs = _draw(device.channel, pair, _PAIR_DRAWS, bits)
        logs = numbers.log_densities(device.channel, outputs, pair)
        is_same = bool(np.array_equal(pair[0], pair[1]))
        nearest = np.argmax(outputs @ public.T, axis=1).reshape(2, _PAIR_DRAWS)
        one, other = (np.bincount(rows, minlength=len(public)) / _PAIR_DRAWS for rows in nearest)
        top = numbers.largest(np.maximum(one, other), OUTCOMES)
        names = [self._samples.public[row] for row in top]
        sample = np.asarray(device.encode([text] * draws), dtype=np.float64)
        return self.preview(
            epsilon,
            device.statement,
            pieces=[Piece(text)],
            draws=(self._samples.public[row] for row in np.argmax(sample @ public.T, axis=1).tolist()),
            success=numbers.sampled_success(numbers.log_densities(device.channel, private, known)),
            chance=1 / len(known),
            candidates=len(known),
            texts=(text, second),
            overlap=Share(1.0) if is_same else numbers.sampled_overlap(logs[:, 0] - logs[:, 1]),
            outcomes=outcome_table(names, one[top], other[top], rest="nearest to another text"),
            points=_points(pair, outputs.reshape(2, _PAIR_DRAWS, -1)[:, :_POINTS]),
        )

    def _device(self, choice: str, epsilon: float) -> DeviceEncoder:
        """Return the encoder with the best dimension for the next smaller power of two: finding it takes long."""
        power = math.floor(math.log2(epsilon))
        if (choice, power) not in self._bounds:
            dimension = best_dimension(self._encoder.dimension, _randomizer(choice, 2.0**power))
            self._bounds[choice, power] = fit_bound(self._public, dimension=dimension, public_name=self._samples.name)
        return DeviceEncoder(self._encoder, self._bounds[choice, power], _randomizer(choice, epsilon))


def _randomizer(choice: str, epsilon: float) -> Randomizer:
    if choice == "Gaussian":
        return Gaussian(epsilon=epsilon, delta=DELTA, domain=Domain.SPHERE)
    return randomizer_of(choice, epsilon=epsilon)


def _draw(channel: Channel, vectors: Floats, draws: int, bits: RandomBits) -> Floats:
    return np.asarray(channel.sample(np.repeat(vectors, draws, axis=0), bits), dtype=np.float64)


def _points(pair: Floats, outputs: Floats) -> tuple[Point, ...]:
    """Return outputs in the plane of both vectors; the line between the two is horizontal."""
    across = _unit(pair[1] - pair[0])
    up = _unit(pair.sum(axis=0) - (pair.sum(axis=0) @ across) * across)
    return tuple(
        Point(float(vector @ across), float(vector @ up), source)
        for source, vectors in enumerate(outputs)
        for vector in vectors
    )


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 1e-12 else np.eye(vector.size)[0]


class Vectors(Method):
    """``dptext encode``."""

    name = "private vectors"
    command = "encode"
    trust = Trust.LOCAL
    purposes: ClassVar = {None: 1, "read": 0, "classify": 1, "vectors": 0, "devices": 3, "statistics": 1}
    holds = "private vectors"
    examination = VectorExamination
    audited = "vectors"
    folder = DEVICE
    playground = VectorPreviewer
    mismatch: ClassVar = {
        "read": "There is nothing to read: the output is one noisy vector per text.",
        "vectors": "The output is one vector per text, none per word.",
    }

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        vectors = case.vectors if figures else None
        randomizer = PrivUnit(epsilon=PROTECTING)
        statement = randomizer.statement(USUAL).replace(parameters={})
        if vectors is not None:
            encoder = encoder_of(vectors)
            public = encoder.encode(list(case.public.pool.texts[:_FITTED]))
            bound = fit_bound(public, dimension=best_dimension(encoder.dimension, randomizer), **_FIT)
            statement = DeviceEncoder(encoder, bound, randomizer).statement
        saved = ["--save for-devices"] if case.requirements.purpose == "devices" else []
        options = (f"--epsilon {PROTECTING:g}", *case.keep_options(), case.public_options(), *saved)
        return Assessment(
            statement=statement,
            good_for=describe("vectors", on_news=ON_NEWS),
            caveats=tuple(_caveats(case)),
            commands=(case.command(self, ".encoded.parquet", *options),),
            preview=Preview(missing="there are no texts: a list of numbers per text"),
        )

    def recognizes(self, statement: PrivacyStatement) -> bool:
        return is_randomizer(statement.mechanism)

    def attacks(self) -> Mapping[str, Attack]:
        return {"attribute": infer_attribute}

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
