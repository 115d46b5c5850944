"""Texts of a bank: each private text becomes a public one, a similar one more often."""

from __future__ import annotations

from dptext.advice.pasted import folded, inputs, out, pool, text_option
from dptext.advice.way import PROTECTING, Case, Makeup, Objection, Preview, Way, built
from dptext.calibration.relinking import bank_epsilon
from dptext.privacy.unit import Trust
from dptext.release.privatize import privatize
from dptext.sentences.rewriter import BankRewriter

__all__ = ["bank"]

_LICENCE = "LICENCE"


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


def _makeup(case: Case) -> Makeup:
    made = case.public.bank
    rewriter = BankRewriter(made, epsilon=PROTECTING, unit="document")
    likeness, blind = bank_epsilon(made, PROTECTING, unit="document").similarity
    good = (
        "One text that can be read for each; many together say what many say (news at epsilon 4: .68 right, .87 with "
        f"the private ones, papers/sentences). Likeness {likeness:.2f} to what goes in, of {len(made):,} public "
        f"texts; blindly {abs(blind):.2f}."
    )
    objections = []
    if case.answers.purpose == "classify" and case.data.classes is None:
        objections.append(Objection(1, "No column of few values is known: name the labels with --label."))
    if case.answers.trust == "central":
        objections.append(
            Objection(0, "Where somebody may hold all texts, a synthetic corpus promises more to a person.")
        )
    return Makeup(rewriter.statement, good, tuple(objections))


def _pasted(case: Case) -> tuple[str, ...]:
    data = case.data
    return (
        folded("dptext bank", pool(case.public), f"-o bank --licence {_LICENCE}"),
        folded(
            f"dptext privatize {inputs(data)}",
            f"-o {out(data, 'bank', '.jsonl')}",
            *text_option(data),
            "--mechanism bank --bank bank --unit document",
            f"--epsilon {PROTECTING:g}",
        ),
    )


def _preview(case: Case) -> Preview:
    shown = case.public.shown
    made = privatize(
        list(shown), BankRewriter(case.public.bank, epsilon=PROTECTING, unit="document"), seed=case.public.seed
    )
    return Preview(tuple((before, after or "") for before, after in zip(shown, made.texts, strict=True)))
