"""Private vectors: each text becomes a noisy vector where it is, for a server that nobody trusts."""

from __future__ import annotations

from collections.abc import Iterator

from dptext.advice.pasted import folded, inputs, kept, out, public, text_option, user_option
from dptext.advice.way import PROTECTING, Case, Makeup, Objection, Preview, Way, built, of_labels, without_parameters
from dptext.privacy.guarantee import Trust
from dptext.representations.dimension import ON_NEWS, USUAL
from dptext.representations.privunit import PrivUnit

_FITTED = 1_000  # public texts
_SAVED = "for-devices"
_BESIDE = (2.0, 4.0)  # epsilons at which that was measured


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
        bare=_bare,
        pasted=_pasted,
        preview=_preview,
    )


def _makeup(case: Case) -> Makeup:
    from dptext.representations.private_encoder import PrivateEncoder

    fitted = PrivateEncoder(case.public.vectors, PrivUnit(epsilon=PROTECTING)).fit(case.public.pool.texts[:_FITTED])
    kept = fitted.kept_
    left = "" if kept is None else f" of a vector {kept.recovered:.0%} comes through, in {kept.dimension} dimensions;"
    return Makeup(fitted.release_.statement, f"A server learns from many:{left} {_on_news()}", tuple(_objections(case)))


def _bare(case: Case) -> Makeup:
    statement = PrivUnit(epsilon=PROTECTING).statement(USUAL)
    return Makeup(without_parameters(statement), f"A server learns from many: {_on_news()}", tuple(_objections(case)))


def _on_news() -> str:
    below, above = (f"{ON_NEWS[each][0]:.0%} at epsilon {each:g}" for each in _BESIDE)
    return (
        f"topics of news, of four, are found with an accuracy of {below}, {above}; a model of public labelled texts "
        "alone is better where there are such texts (.87 there, docs/mechanisms/private-vectors)."
    )


def _objections(case: Case) -> Iterator[Objection]:
    yield from of_labels(case, kept=True)
    if case.answers.purpose == "devices":
        yield Objection(0, "A device runs what --save keeps: dptext.DeviceEncoder.load. The file plays the devices.")


def _pasted(case: Case) -> tuple[str, ...]:
    data = case.data
    return (
        folded(
            f"dptext encode {inputs(data)}",
            f"-o {out(data, 'encoded', '.parquet')}",
            *text_option(data),
            *user_option(data),
            f"--epsilon {PROTECTING:g}",
            *(kept(data) if case.answers.purpose == "classify" else ()),
            public(case.public),
            *([f"--save {_SAVED}"] if case.answers.purpose == "devices" else ()),
        ),
    )


def _preview(_case: Case) -> Preview:
    return Preview(missing="there are no texts: some numbers for each")
