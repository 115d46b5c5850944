"""Texts of a bank: each private text becomes a public one, a similar one more often."""

from __future__ import annotations

from collections.abc import Iterator

from dptext.advice.pasted import LICENCE, folded, inputs, kept, out, pool, text_option, user_option
from dptext.advice.way import (
    PROTECTING,
    Case,
    Makeup,
    Objection,
    Preview,
    Way,
    built,
    of_labels,
    privatized,
)
from dptext.calibration.reidentification import bank_epsilon
from dptext.privacy.guarantee import Trust
from dptext.sentences.rewriter import BankRewriter


def bank(case: Case) -> Way:
    """The way of ``dptext privatize --mechanism bank``."""
    local = case.answers.trust == "local"
    return built(
        case,
        name="texts of a bank",
        command="privatize --mechanism bank",
        trust=Trust.LOCAL,
        serves={None: 2, "read": 2, "classify": 2, "vectors": 0, "devices": 2 if local else 1, "statistics": 2},
        mismatch={"vectors": "Public texts come out: the words are those of the bank's authors, not of these people."},
        makeup=_makeup,
        pasted=_pasted,
        preview=_preview,
    )


_GOOD = (
    "One readable text for each. Topics survive: a classifier of news has .79 at epsilon 4, .88 from the private "
    "texts. Sentiment does not: .58 at epsilon 3, where label descriptions alone have .74 (docs/mechanisms/sentences)."
)


def _makeup(case: Case) -> Makeup:
    made = case.public.bank
    rewriter = BankRewriter(made, epsilon=PROTECTING, unit="document")
    likeness, blind = bank_epsilon(made, PROTECTING, unit="document").similarity
    figure = f"Likeness {likeness:.2f} to what goes in, of {len(made):,} public texts; blindly {abs(blind):.2f}."
    return Makeup(rewriter.statement, f"{_GOOD} {figure}", tuple(_objections(case)))


def _objections(case: Case) -> Iterator[Objection]:
    yield from of_labels(case, kept=True)
    if case.answers.trust == "local":
        yield Objection(0, "Each owner runs it on their own texts, with the same public bank.")
    if case.answers.trust == "central":
        yield Objection(0, "Where somebody may hold all texts, a synthetic corpus promises more to a person.")


def _pasted(case: Case) -> tuple[str, ...]:
    data = case.data
    return (
        folded("dptext bank", pool(case.public), f"-o bank --licence {LICENCE}"),
        folded(
            f"dptext privatize {inputs(data)}",
            f"-o {out(data, 'bank', '.jsonl')}",
            *text_option(data),
            *user_option(data),
            "--mechanism bank --bank bank --unit document",
            f"--epsilon {PROTECTING:g}",
            *(kept(data) if case.answers.purpose == "classify" else ()),
        ),
    )


def _preview(case: Case) -> Preview:
    return privatized(case, BankRewriter(case.public.bank, epsilon=PROTECTING, unit="document"))
