"""Private vectors: each text becomes a noisy vector on its owner's device, for a server that nobody trusts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from dptext.methods.base import PROTECTING, AdviceInput, Assessment, Caveat, Method, Preview, label_caveats, option
from dptext.methods.questions import PUBLIC
from dptext.privacy.guarantee import Trust
from dptext.representations.bounds import fit_bound
from dptext.representations.device import DeviceEncoder, encoder_of
from dptext.representations.dimension import ON_NEWS, USUAL, best_dimension
from dptext.representations.privunit import PrivUnit

_FITTED = 1_000  # public texts
_FIT: dict[str, Any] = {
    "bound": "normalise",
    "projection": "pca",
    "centre": True,
    "labels": None,
}
_LOW, _HIGH = 2.0, 4.0
_GOOD_FOR = (
    f"A server learns from many vectors: news topics (four) with accuracy {ON_NEWS[_LOW][0]:.0%} at epsilon {_LOW:g}, "
    f"{ON_NEWS[_HIGH][0]:.0%} at epsilon {_HIGH:g}. If labelled public texts exist, a model of these alone is better "
    "(.87 there)."
)


class Vectors(Method):
    """``dptext encode``."""

    name = "private vectors"
    command = "encode"
    trust = Trust.LOCAL
    purposes: ClassVar = {None: 1, "read": 0, "classify": 1, "vectors": 0, "devices": 3, "statistics": 1}
    mismatch: ClassVar = {
        "read": "There is nothing to read: the output is one noisy vector per text.",
        "vectors": "The output is one vector per text, none per word.",
    }

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        good_for, vectors = _GOOD_FOR, case.vectors if figures else None
        randomizer = PrivUnit(epsilon=PROTECTING)
        statement = randomizer.statement(USUAL).replace(parameters={})
        if vectors is not None:
            encoder = encoder_of(vectors)
            public = encoder.encode(list(case.public.pool.texts[:_FITTED]))
            retained = best_dimension(public, randomizer, **_FIT)
            bound = fit_bound(public, dimension=USUAL if retained is None else retained.dimension, **_FIT)
            statement = DeviceEncoder(encoder, bound, randomizer).statement
            if retained is not None:
                good_for += (
                    f" Of a vector, {retained.recovered:.0%} passes the noise in {retained.dimension} dimensions."
                )
        column = [] if case.public.column == "text" else [option("public-text", case.public.column)]
        pool = " ".join([*(option("public", path) for path in case.public.files or (PUBLIC,)), *column])
        saved = ["--save for-devices"] if case.requirements.purpose == "devices" else []
        options = (f"--epsilon {PROTECTING:g}", *case.keep_options(), pool, *saved)
        return Assessment(
            statement=statement,
            good_for=good_for,
            caveats=tuple(_caveats(case)),
            commands=(case.command("encode", ".encoded.parquet", *options, trust=Trust.LOCAL),),
            preview=Preview(missing="there are no texts: a list of numbers per text"),
        )


def _caveats(case: AdviceInput) -> Iterator[Caveat]:
    yield from label_caveats(case)
    if case.requirements.purpose == "devices":
        yield Caveat(
            0, "A device loads the folder of --save (dptext.DeviceEncoder.load). Here the file plays the devices."
        )
