"""Private vectors: each text becomes a noisy vector where it is, for a server that nobody trusts."""

from __future__ import annotations

import math

from dptext.advice.pasted import folded, inputs, option, out, public, text_option
from dptext.advice.way import PROTECTING, Case, Makeup, Objection, Preview, Way, built
from dptext.privacy.unit import Trust
from dptext.representations.privunit import PrivUnit
from dptext.representations.recommend import recommend

__all__ = ["private_vectors"]

_DIMENSION = 8


def private_vectors(case: Case) -> Way:
    """The way of ``dptext encode``."""
    return built(
        case,
        name="private vectors",
        command="encode",
        trust=Trust.LOCAL,
        serves={None: 1, "read": 0, "classify": 1, "vectors": 0, "devices": 3, "statistics": 1},
        mismatch={
            "read": "There is nothing to read: it is a noisy vector for each text.",
            "vectors": "It is a vector for each text, none for a word.",
        },
        makeup=_makeup,
        pasted=_pasted,
        preview=_preview,
    )


def _makeup(case: Case) -> Makeup:
    case.public.vectors  # noqa: B018  the encoder of the command: said before, where it is missing
    found = recommend(_DIMENSION, PROTECTING)
    error = found.candidates[0].error
    statement = (
        PrivUnit(epsilon=PROTECTING).statement(_DIMENSION).replace(exposed=("the number of texts, and their order",))
    )
    objections = []
    if case.answers.purpose == "classify" and case.data.classes is None:
        objections.append(Objection(1, "No column of few values is known: name the labels with --label."))
    good = (
        f"A server learns from many: one vector of {_DIMENSION} numbers is off by {math.sqrt(error):.2g} times its "
        f"length, the mean of {math.ceil(100 * error):,} by a tenth."
    )
    return Makeup(statement, good, tuple(objections))


def _pasted(case: Case) -> tuple[str, ...]:
    data = case.data
    label = data.roles.labels if case.answers.purpose == "classify" else ()
    return (
        folded(
            f"dptext encode {inputs(data)}",
            f"-o {out(data, 'encoded', '.parquet')}",
            *text_option(data),
            f"--epsilon {PROTECTING:g}",
            f"--dimension {_DIMENSION}",
            *(option("keep", each) for each in label),
            public(case.public),
        ),
    )


def _preview(_case: Case) -> Preview:
    return Preview(missing="there are no texts: some numbers for each")
