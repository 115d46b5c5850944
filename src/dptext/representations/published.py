"""Published protocols for private text representations as printed, with their true epsilon; word masking.

DPNR is Lyu, He and Li 2020, DPText Beigi et al. 2019; SUE, OUE and OME are in
`dptext.representations.published_protocols`.

Derivation: docs/mechanisms/published-protocols.md#representations-published-dpnr
Derivation: docs/mechanisms/published-protocols.md#representations-published-dptext
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.io.documents import Document, check_one_column, text_of
from dptext.noise.discrete import SCALE, coins
from dptext.noise.gaussian_sums import rounded_laplace
from dptext.privacy.guarantee import NoGuarantee, PureDP, Relation, Trust, Unit
from dptext.privacy.neighbours import Condition, WordsChanged
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Finding, Parameter, PrivacyStatement, new_release_id, release_statement
from dptext.representations.additive import AdditiveChannel
from dptext.representations.bounds import Domain, Floats
from dptext.representations.published_protocols import Published, PublishedChannel, alternating
from dptext.representations.randomizer import Private
from dptext.text.tokens import Kind, kind_of, pieces
from dptext.validation import check_choice, check_float

_WIDEN = 1 + 2.0**-30  # more than the rounding error of d * epsilon: the stated product is never too small
_LARGEST = 2.0**100  # well within float32
_ONE_SCALAR = (
    "one draw of noise is added to all coordinates: subtracting the smallest number leaves the normalised vector as it "
    "was"
)


# -- word masking --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MaskedTexts:
    """The texts of `mask_words` (None for a missing one), and a statement without guarantee that says why."""

    texts: list[str | None] = field(repr=False)
    statement: PrivacyStatement


def mask_words(
    texts: Iterable[str | Document | None], *, mu: float, mask: str = "[MASK]", seed: int | None = None
) -> MaskedTexts:
    """Replace words by a mask token; numbers and addresses count as words, punctuation and space stay.

    **Guarantee**: none for the masked text. See `dptext.privacy.restating.apply_word_dropout` for the guarantee with
    a mechanism after the masks.

    Args:
        texts: strings, or `Document`; None (no text) stays None.
        mu: probability of masking each word, independently (rounded up to a multiple of 2^-32).
        mask: the token. ``"[MASK]"`` is BERT's; for means of word vectors, use a word without a vector, or ``"#"``.
        seed: None for cryptographic randomness; an integer for tests and papers only.

    Raises:
        ParameterError: mu is out of range, or the mask is empty.
        DataError: a text is not a string; the message names its index.

    >>> masked = mask_words(["Call Dr. Smith's office, 555-0100!"], mu=1.0)
    >>> masked.texts
    ['[MASK] [MASK]. [MASK] [MASK] [MASK], [MASK]-[MASK]!']
    >>> masked.statement.epsilon
    inf
    """
    check_float("mu", mu, above=0, maximum=1)
    if not isinstance(mask, str) or not mask.strip():
        raise ParameterError("mask must be a non-empty token")
    entries = [text_of(entry, place) for place, entry in enumerate(check_one_column(texts), 1)]  # type: ignore[arg-type]
    tokens = [None if entry is None else pieces(entry) for entry in entries]
    not_words = (Kind.PUNCTUATION, Kind.SPACE)
    words = [[place for place, token in enumerate(split or ()) if kind_of(token) not in not_words] for split in tokens]
    threshold, total = math.ceil(mu * SCALE), sum(map(len, words))
    hidden = coins(RandomBits(seed), total, threshold) if threshold < SCALE else np.ones(total, dtype=bool)
    draws = iter(hidden.tolist())
    masked = [
        None if split is None else _joined(split, places, [next(draws) for _ in places], mask)
        for split, places in zip(tokens, words, strict=True)
    ]
    statement = release_statement(
        guarantee=NoGuarantee(
            "unmasked words are visible; word dropout lowers the epsilon of a later mechanism and has no guarantee of "
            "its own"
        ),
        unit=Unit.WORD,
        relation=Relation.SUBSTITUTION,
        condition=Condition(requirements=(WordsChanged(1),)),
        trust=Trust.LOCAL,
        mechanism="masked words",
        parameters={"mu": mu, "mask": mask},
        exposed=(
            "every word that was not masked",
            "positions and number of the masked words",
            "punctuation, spaces, letter case, the number of texts and their order",
        ),
        seeded=seed is not None,
        release_id=new_release_id(),
    )
    return MaskedTexts(masked, statement)


def _joined(tokens: list[str], places: list[int], hidden: list[bool], mask: str) -> str:
    """Return the masked text; a space separates a mask from a word that directly follows or precedes it."""
    parts = list(tokens)
    for place, is_hidden in zip(places, hidden, strict=True):
        if is_hidden:
            parts[place] = mask
    for (one, one_hidden), (other, other_hidden) in pairwise(zip(places, hidden, strict=True)):
        if other == one + 1 and (one_hidden or other_hidden):
            parts[other] = f" {parts[other]}"
    return "".join(parts)


# -- DPNR ----------------------------------------------------------------------------------------------------------


def min_max(vectors: Floats) -> Floats:
    """Return (n, d) vectors scaled to [0, 1], each by its own minimum and maximum; zeros for a constant one.

    >>> min_max([[1.0, 2.0, 5.0], [7.0, 7.0, 7.0]]).tolist()
    [[0.0, 0.25, 1.0], [0.0, 0.0, 0.0]]
    """
    low = np.min(vectors, axis=1, keepdims=True)
    scaled: Floats = np.asarray(vectors, dtype=np.float64) - low
    spread = scaled.max(axis=1, keepdims=True)
    scaled /= np.where(spread > 0, spread, np.inf)
    return scaled


def _one_draw(bits: RandomBits, x: Floats, *, scale: float, step: float) -> Floats:
    """Return (n, d) x / step and one whole number of steps for each row."""
    return x / step + rounded_laplace(bits, np.zeros((len(x), 1)), scale=scale, step=step)


class MinMaxLaplace(AdditiveChannel, PublishedChannel):
    """DPNR for vectors of one dimension; ``expected_squared_error`` is relative to the min-max vector."""

    def __init__(self, mechanism: DPNR, dimension: int) -> None:
        if dimension < 2:
            raise ParameterError("dimension must be at least 2: min-max normalisation makes all single numbers equal")
        self.one_scalar = mechanism.noise == "one scalar"
        bound = float(f"{dimension * mechanism.epsilon:.12g}")  # eq. (true)
        scale = _WIDEN / mechanism.epsilon
        noise = _one_draw if self.one_scalar else rounded_laplace
        guarantee = NoGuarantee(_ONE_SCALAR) if self.one_scalar else PureDP(bound)
        # min-max normalisation undoes any scale, so the sphere is as good as any domain
        super().__init__(mechanism, Domain.SPHERE, dimension, guarantee, scale * math.sqrt(2), noise, scale=scale)
        high = (1 + alternating(dimension)) / 2
        self.witness = (high, 1 - high)
        self.finding = Finding(
            claimed=mechanism.epsilon,
            bound=math.inf if self.one_scalar else bound,
            attained=math.inf if self.one_scalar else bound,
            reason=_ONE_SCALAR if self.one_scalar else mechanism.flaw,
            holds_for=f"any two vectors of {dimension} numbers, attained",
            witness="(1, 0, 1, 0, ...) and (0, 1, 0, 1, ...)",
        )

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        return super()._sample(min_max(vectors), bits)

    def noiseless(self, vectors: npt.ArrayLike) -> Floats:
        """Return (n, d) min-max vectors. *Not private.*"""
        return min_max(super().noiseless(vectors))

    def debiased_second_moment(self, moment: Floats) -> Floats:
        """Subtract the noise of min-max vectors, which is equal for all coordinates, or uncorrelated."""
        if self.one_scalar:
            return moment - self._variance
        return super().debiased_second_moment(moment)

    def parameters(self) -> dict[str, Parameter]:
        return {**super().parameters(), **self.finding.parameters()}


@dataclass(frozen=True, kw_only=True)
class DPNR(Published):
    """Min-max normalisation, then Laplace noise of scale 1 / epsilon.

    **Guarantee** (unit: one vector; substitution; local), with noise per coordinate: pure d * epsilon, equation (true)
    of this module, attained (the noise is a part in 10^9 wider than printed). Assumption:
    `dptext.noise.gaussian_sums.ELEMENTARY`. With one scalar: none.

    Word dropout, the paper's third part, masks words before encoding: `mask_words`. It does not change the guarantee of
    a whole text; for single words see `dptext.privacy.restating.apply_word_dropout`.

    Input: (n, d), d at least 2. Output: (n, d) float32 around the min-max vector.

    Args:
        noise: ``"per coordinate"`` (the paper) or ``"one scalar"`` (its authors' code).
        others: see `Published`.

    >>> DPNR(epsilon=1.0, dimension=64, unsafe_as_published=True).statement().epsilon
    64.0
    >>> DPNR(epsilon=1.0, dimension=64, noise="one scalar", unsafe_as_published=True).statement().epsilon
    inf
    """

    name: ClassVar[str] = "DPNR"
    domains: ClassVar[tuple[Domain, ...]] = (Domain.SPHERE,)
    flaw: ClassVar[str] = (
        "the noise is scaled to a sensitivity of 1, but two min-max vectors of d numbers are up to d apart in L1"
    )
    instead: ClassVar[str] = "PrivUnit, L2Laplace or Gaussian, whose noise is scaled to what two vectors may differ by"

    noise: str = "per coordinate"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("noise", self.noise, ("per coordinate", "one scalar"))

    def _calibrate(self, dimension: int) -> MinMaxLaplace:
        return MinMaxLaplace(self, dimension)


# -- DPText --------------------------------------------------------------------------------------------------------


class OneSidedNoise(PublishedChannel):
    """DPText's noise for vectors of one dimension."""

    def __init__(self, mechanism: DPText, dimension: int, *, share: float = 1.0) -> None:
        self.name, self.domain = mechanism.name, Domain.CUBE  # the last state of a GRU is between -1 and 1
        self.dimension = self.width = dimension
        self.guarantee = NoGuarantee(mechanism.flaw)
        self.scale = self.domain.sensitivity(dimension)[0] / (mechanism.epsilon * share)  # D / epsilon
        if self.scale > _LARGEST:
            raise ParameterError(
                f"{self.name} would add noise of {self.scale:.3g}, beyond the range of float32: choose a larger epsilon"
            )
        self.expected_squared_error = 2 * dimension * self.scale**2
        self.witness = (alternating(dimension), -alternating(dimension))
        self.finding = Finding(
            claimed=mechanism.epsilon,
            bound=math.inf,
            attained=math.inf,
            reason=mechanism.flaw,
            holds_for="any two vectors that differ",
            witness="(1, -1, 1, -1, ...) and (-1, 1, -1, 1, ...)",
        )

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        r = bits.uniform(*vectors.shape) / 2  # r above 1/2, where the noise is undefined, is drawn again
        with np.errstate(divide="ignore"):
            noise = -self.scale * np.sign(r) * np.log(1 - 2 * np.abs(r))  # eq. (printed)
        # ln 0 where r is 1/2 exactly, once in 2^53: as large as the largest other noise
        noise[noise == np.inf] = self.scale * 53 * math.log(2)
        sent: Private = (vectors + noise).astype(np.float32)
        return sent

    def parameters(self) -> dict[str, Parameter]:
        return {"undefined": "drawn again", "scale": self.scale, **self.finding.parameters()}


@dataclass(frozen=True, kw_only=True)
class DPText(Published):
    """DPText's noise as printed. It gives no protection: the true epsilon is infinite at every printed one.

    **Guarantee**: none. The output for x is never below x. Of two opposite corners of the cube, (1, -1, 1, -1, ...) and
    (-1, 1, -1, 1, ...), an output of one rules out the other with probability 1 - e^(-epsilon / 2): in each of the
    d / 2 coordinates with -1, it stays below 1 with probability 1 - e^(-2 epsilon / D) = 1 - e^(-epsilon / d).
    Undefined draws (half of them) are drawn again, so the noise is exponential.

    The paper's vectors are states of a GRU, between -1 and 1, so D = 2 d: vectors are clipped to that cube first. With
    r uniform over [-1/2, 1/2] the same scale is sound, and is `dptext.Laplace` in the domain ``"unit cube"``.

    Input: (n, d). Output: (n, d) float32.

    Args:
        epsilon: as printed; 0.1 in the paper.
        others: see `Published`.

    >>> given = DPText(epsilon=0.1, dimension=64, unsafe_as_published=True)
    >>> given.statement().claimed_epsilon, given.statement().epsilon
    (0.1, inf)
    >>> bool((given.randomize([[0.5] * 64]) >= 0.5).all())  # never below
    True
    """

    name: ClassVar[str] = "DPText"
    domains: ClassVar[tuple[Domain, ...]] = (Domain.CUBE,)
    flaw: ClassVar[str] = (
        "the uniform numbers that its noise is made of come from [0, 1] in place of [-1/2, 1/2]: the noise is never "
        "negative, so a number that is sent rules out every larger one"
    )
    instead: ClassVar[str] = "Laplace(domain='unit cube'), or with less noise L2Laplace, Gaussian or PrivUnit"

    def _calibrate(self, dimension: int) -> OneSidedNoise:
        return OneSidedNoise(self, dimension)
