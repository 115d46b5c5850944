"""Words: each word becomes one of similar meaning, at random."""

from __future__ import annotations

from dptext.advice.pasted import folded, inputs, out, text_option, user_option
from dptext.advice.way import PROTECTING, Case, Makeup, Preview, Way, built, privatized
from dptext.calibration.deniability import deniability
from dptext.privacy.guarantee import Trust
from dptext.words.tem import TEM

_UNKNOWN = "What its promise is for two words, and how many stay, depends on the word vectors."
_ROWS = 100
_SEED = 0


def words(case: Case) -> Way:
    """The way of ``dptext privatize``, word by word."""
    return built(
        case,
        name="words",
        command="privatize",
        trust=Trust.LOCAL,
        serves={None: 1, "read": 1, "classify": 1, "vectors": 0, "devices": 1, "statistics": 1},
        mismatch={"vectors": "Words at random have no neighbours to learn from."},
        makeup=_makeup,
        bare=lambda _: Makeup(None, _UNKNOWN),
        pasted=_pasted,
        preview=_preview,
        never="No epsilon both protects by its bound and leaves a text that can be read.",
    )


def _makeup(case: Case) -> Makeup:
    mechanism = TEM(case.public.vectors, epsilon=PROTECTING)
    found = deniability(mechanism, rows=_ROWS, seed=_SEED)
    good = (
        f"Hiding the exact word among its neighbours in meaning: {found.mean('keep'):.0%} of the words stay (public "
        f"frequencies), half of them could become {int(found.quantile('support', 0.5)):,} others. At 5, nine of ten "
        "stay."
    )
    return Makeup(mechanism.statement, good)


def _pasted(case: Case) -> tuple[str, ...]:
    data = case.data
    return (
        folded(
            f"dptext privatize {inputs(data)}",
            f"-o {out(data, 'words', '.jsonl')}",
            *text_option(data),
            *user_option(data),
            f"--epsilon {PROTECTING:g}",
        ),
    )


def _preview(case: Case) -> Preview:
    return privatized(case, TEM(case.public.vectors, epsilon=PROTECTING))
