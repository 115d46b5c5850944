"""Is delta small enough for so many people? Asked of a public number, never of the data.

Derivation: docs/understand/accounting.md#privacy-public-users
"""

from __future__ import annotations

from dptext.checks import number, whole
from dptext.errors import warn

__all__ = ["ASSUMED_USERS", "DeltaWarning", "delta_too_large", "warn_of_delta"]

ASSUMED_USERS = 100_000
"""How many users are taken where the caller states no public bound."""


class DeltaWarning(UserWarning):
    """Delta is too large for the public number of users: the guarantee would allow publishing one of them."""


def delta_too_large(delta: float, *, public_users: int | None = None) -> str | None:
    """Why delta is too large for this many users, in a sentence; None where it is not."""
    delta = number("delta", delta, above=0, below=1)
    users = ASSUMED_USERS if public_users is None else whole("public_users", public_users, least=1, most=10**18)
    if delta * users < 1:
        return None
    stated = (
        "the public bound on the number of users"
        if public_users is not None
        else "the bound that is taken where none is stated (give public_users= if fewer is publicly known)"
    )
    return (
        f"delta {delta:g} is not below 1 / {users:,}, {stated}: a promise that loose would allow publishing one user's "
        "texts; take a tenth of that or less"
    )


def warn_of_delta(delta: float, *, public_users: int | None = None) -> None:
    """Warns with `DeltaWarning` where `delta_too_large` finds delta too large."""
    problem = delta_too_large(delta, public_users=public_users)
    if problem is not None:
        warn(problem, DeltaWarning)
