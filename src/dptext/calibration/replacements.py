"""What one word becomes, word by word, most likely first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptext.calibration.deniability import distributions_of
from dptext.calibration.outcomes import reach_of_masses, smallest_support
from dptext.privacy.randomness import RandomBits
from dptext.words.mechanism import WordMechanism

__all__ = ["Replacements", "replacements"]


@dataclass(frozen=True)
class Replacements:
    """The outputs of one word.

    Attributes:
        word: as it was given.
        known: whether it is in the vocabulary; if not, it is treated as ``"<unk>"``.
        epsilon: of the mechanism.
        keep: the probability that it stays (that ``"<unk>"`` comes out, for an unknown word).
        support: the size of the smallest set of outputs that holds all but ``eta`` of the probability.
        support_low: the same where that is exact; otherwise it is not below this, with probability 97.5%.
        likeliest: (word, probability) of the likeliest other words.
        eta: as above.
        draws: how many draws this comes from; None: exact.
    """

    word: str
    known: bool
    epsilon: float
    keep: float
    support: int
    support_low: int
    likeliest: tuple[tuple[str, float], ...]
    eta: float
    draws: int | None


def replacements(
    mechanism: WordMechanism,
    word: str,
    *,
    most: int = 5,
    eta: float = 0.05,
    draws: int = 2000,
    seed: int | None = None,
) -> Replacements:
    """What a word becomes: exactly for mechanisms with ``distributions``, from ``draws`` draws for the others.

    >>> from dptext import TEM, load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> found = replacements(TEM(vectors, epsilon=2.0, threshold=3.0), "cat", most=1)
    >>> found.likeliest[0][0], found.support
    ('dog', 3)
    """
    vocabulary = mechanism.vectors.vocabulary
    row = vocabulary.row(word)
    distributions = distributions_of(mechanism)
    if distributions is not None:
        shares = distributions([word])[0]
    else:
        drawn = mechanism.sample_rows(np.full(draws, row, dtype=np.int64), RandomBits(seed))
        shares = np.bincount(drawn, minlength=len(vocabulary)) / draws
    reach = 0.0 if distributions is not None else reach_of_masses(draws)
    support, support_low = (int(smallest_support(shares, left_out)) for left_out in (eta, eta + reach))
    keep, shares[row] = float(shares[row]), 0.0
    order = [int(at) for at in np.argsort(-shares, kind="stable")[:most] if shares[at] > 0]
    likeliest = tuple((vocabulary.words[at], float(shares[at])) for at in order)
    return Replacements(
        word=word,
        known=word in vocabulary,
        epsilon=mechanism.epsilon,
        keep=keep,
        support=support,
        support_low=support_low,
        likeliest=likeliest,
        eta=eta,
        draws=draws if distributions is None else None,
    )
