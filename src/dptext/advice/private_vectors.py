"""Private vectors: each text becomes a noisy vector where it is, for a server that nobody trusts."""

from __future__ import annotations

from dptext.advice.pasted import folded, inputs, option, out, public, text_option
from dptext.advice.way import PROTECTING, Case, Makeup, Objection, Preview, Way, built
from dptext.privacy.unit import Trust
from dptext.representations.dimension import ON_NEWS
from dptext.representations.privunit import PrivUnit

__all__ = ["private_vectors"]

_FITTED = 1_000  # public texts
_ON_NEWS_AT = 4.0


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
    from dptext.representations.private_encoder import PrivateEncoder  # of the extra sklearn

    fitted = PrivateEncoder(case.public.vectors, PrivUnit(epsilon=PROTECTING)).fit(case.public.pool.texts[:_FITTED])
    kept, (best, *_) = fitted.kept_, ON_NEWS[_ON_NEWS_AT]
    left = "" if kept is None else f" of a vector {kept.recovered:.0%} comes through, in {kept.dimension} dimensions;"
    objections = []
    if case.answers.purpose == "classify" and case.data.classes is None:
        objections.append(Objection(1, "No column of few values is known: name the labels with --label."))
    good = (
        f"A server learns from many:{left} four topics of news were told apart in {best:.0%} at epsilon "
        f"{_ON_NEWS_AT:g} (docs/representations)."
    )
    return Makeup(fitted.release_.statement, good, tuple(objections))


def _pasted(case: Case) -> tuple[str, ...]:
    data = case.data
    label = data.roles.labels if case.answers.purpose == "classify" else ()
    return (
        folded(
            f"dptext encode {inputs(data)}",
            f"-o {out(data, 'encoded', '.parquet')}",
            *text_option(data),
            f"--epsilon {PROTECTING:g}",
            *(option("keep", each) for each in label),
            public(case.public),
        ),
    )


def _preview(_case: Case) -> Preview:
    return Preview(missing="there are no texts: some numbers for each")
