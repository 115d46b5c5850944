"""Is delta small enough for so many people? Asked of a public number, never of the data.

Delta is added to the bound on every probability, for each person. A mechanism that publishes one random user
of n entirely is (0, 1/n)-DP, so a delta of 1/n or more forbids nothing worth forbidding. The check that suggests
itself, delta < 1 / (number of users in the data), must not be made:

- under add/remove the number of users is itself protected, so a warning, an error, a log line, an exit code or a
  default that depends on it is a release without noise: at the threshold one user more or less flips it;
- a warning on the curator's terminal alone would be no release (they see the data anyway), but they would react, and
  the delta that they then publish depends on the number of users;
- comparing a stated bound with the data, to refuse a wrong one, asks the same question of the data.

What is sound: the caller states a *public* number that the users are known not to exceed (the size of a town, or a
power of ten above what has been published about the corpus). An upper bound N suffices to certify, since n <= N and
delta < 1/N give delta < 1/n. It is the caller's word, like every public number; nothing compares it with the data.
Without one, a hundred thousand is taken, which is a convention and depends on nothing. (A lower bound could only
condemn: delta >= 1/N is then too large for certain, but delta < 1/N shows nothing.)
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
    """Why delta is too large for this many users, in a sentence; None where it is not.

    **Guarantee.** The answer follows from its arguments, which are public: it costs no privacy, and may be printed,
    logged or refused on.

    Args:
        delta: above 0 and below 1.
        public_users: a *public* number that the number of users does not exceed. Never a count of the data. None:
            `ASSUMED_USERS`.

    Raises:
        ParameterError: delta is outside (0, 1); public_users is no integer of at least 1.

    >>> delta_too_large(1e-6, public_users=10_000) is None
    True
    >>> print(delta_too_large(1e-3, public_users=10_000))
    delta 0.001 is not below 1 / 10,000, ... take a tenth of that or less
    """
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
    """Warns with `DeltaWarning` where `delta_too_large` finds delta too large.

    To be called with the arguments alone, before any data is read.

    Raises:
        ParameterError: delta is outside (0, 1); public_users is no integer of at least 1.
    """
    problem = delta_too_large(delta, public_users=public_users)
    if problem is not None:
        warn(problem, DeltaWarning)
