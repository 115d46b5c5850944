"""Words replaced by a mask token: by coins, a fixed number of them, or those on a list."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.checks import number, whole
from dptext.errors import DataError, ParameterError
from dptext.files.column import is_missing, one_column
from dptext.files.documents import Document
from dptext.noise.bits import SCALE, coins
from dptext.privacy.condition import Condition, WordsChanged
from dptext.privacy.guarantee import NoGuarantee
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement, new_release_id, of_release
from dptext.privacy.unit import Relation, Trust, Unit
from dptext.text.tokens import Kind, fold, kind_of, pieces

__all__ = ["MaskedTexts", "mask_words"]

Masks = npt.NDArray[np.bool_]
Phrases = dict[str, set[tuple[str, ...]]]

_NO_WORDS = (Kind.PUNCTUATION, Kind.SPACE)


@dataclass(frozen=True)
class MaskedTexts:
    """What `mask_words` returns.

    Attributes:
        texts: one text for each text, in order; None where there was none.
        statement: that nothing is promised, and why.
    """

    texts: list[str | None] = field(repr=False)
    statement: PrivacyStatement


def mask_words(
    texts: Iterable[str | Document | None],
    *,
    mu: float | None = None,
    count: int | None = None,
    sensitive: Iterable[str] = (),
    mask: str = "[MASK]",
    seed: int | None = None,
) -> MaskedTexts:
    """Replace words by a mask token; numbers and addresses count as words, punctuation and space stay.

    **Guarantee**: none for what is returned, as its statement says. See `with_word_dropout` for what a mechanism behind
    it promises.

    Args:
        texts: strings, or `Document`; None (no text) stays None.
        mu: each word is masked with this chance (rounded up to a multiple of 2^-32), independently of all else.
        count: so many words of each text are masked, any subset as likely as any other; all of a text with fewer.
        sensitive: words, or several that follow each other, that are always masked, in any case and Unicode form and
            whatever punctuation stands between them.
        mask: the token. ``"[MASK]"`` is BERT's; for means of word vectors a word that they lack, or ``"#"``.
        seed: None for cryptographic randomness; an integer for tests and papers only.

    Raises:
        ParameterError: nothing that says which words; mu and count both; a number out of range; an entry of the list
            without a word; an empty mask.
        DataError: a text is not a string; its place is named.

    >>> masked = mask_words(["Call Dr. Smith's office, 555-0100!"], sensitive=["dr smith", "555-0100"])
    >>> masked.texts
    ["Call [MASK]. [MASK] 's office, [MASK]-[MASK]!"]
    >>> masked.statement.epsilon
    inf
    """
    listed = _checked(mu, count, sensitive, mask)
    given = [_text(entry, place) for place, entry in enumerate(one_column(texts), 1)]  # type: ignore[arg-type]
    tokens = [None if text is None else pieces(text) for text in given]
    found = _words(tokens)
    masked = _drawn([len(places) for places in found], mu, count, RandomBits(seed))
    if listed:
        for places, hidden, split in zip(found, masked, tokens, strict=True):
            _mark_listed([fold(split[place]) for place in places] if split else [], hidden, listed)
    private = [
        None if split is None else _joined(split, places, hidden, mask)
        for split, places, hidden in zip(tokens, found, masked, strict=True)
    ]
    entries = sum(map(len, listed.values()))
    return MaskedTexts(private, _statement(mu, count, entries, mask, seeded=seed is not None))


def _text(entry: Any, place: int) -> str | None:
    text = entry.text if isinstance(entry, Document) else entry
    if isinstance(text, str):
        return text
    if is_missing(text):
        return None
    raise DataError(f"texts must be strings, entry {place} is {type(text).__name__}")


def _words(tokens: list[list[str] | None]) -> list[list[int]]:
    """Which tokens of each text are words."""
    return [[place for place, each in enumerate(split or []) if kind_of(each) not in _NO_WORDS] for split in tokens]


def _drawn(lengths: list[int], mu: float | None, count: int | None, bits: RandomBits) -> list[Masks]:
    """Which words of each text are masked at random; how much is drawn depends on their number only."""
    if count is not None:
        keys = np.split(bits.integers(sum(lengths)), np.cumsum(lengths)[:-1]) if lengths else []
        # those with the smallest keys: two keys are equal once in 2^64
        return [each.argsort(kind="stable").argsort() < count for each in keys]
    threshold = math.ceil((mu or 0.0) * SCALE)
    if threshold in (0, SCALE):
        return [np.full(length, threshold > 0) for length in lengths]
    drawn = coins(bits, sum(lengths), threshold)
    return np.split(drawn, np.cumsum(lengths)[:-1]) if lengths else []


def _mark_listed(words: list[str], hidden: Masks, listed: Phrases) -> None:
    """Mask every run of words that is on the list, in place; they are looked up by their first word."""
    for place, word in enumerate(words):
        for phrase in listed.get(word, ()):
            if tuple(words[place : place + len(phrase)]) == phrase:
                hidden[place : place + len(phrase)] = True


def _joined(tokens: list[str], places: list[int], hidden: Masks, mask: str) -> str:
    """The text again; a space parts two words that touched where one of them is masked."""
    parts = list(tokens)
    for place, is_hidden in zip(places, hidden.tolist(), strict=True):
        if is_hidden:
            parts[place] = mask
    for (before, one), (place, other) in zip(
        zip(places, hidden.tolist(), strict=True), zip(places[1:], hidden.tolist()[1:], strict=True), strict=False
    ):
        if place == before + 1 and (one or other):
            parts[place] = f" {parts[place]}"
    return "".join(parts)


def _statement(mu: float | None, count: int | None, listed: int, mask: str, *, seeded: bool) -> PrivacyStatement:
    if mu is None and count is None:
        reason = (
            "words on a list were masked and all others are shown as they are, and a mask shows that a word of the "
            "list stood there: this reduces exposure and hides nothing that the rest of the text gives away"
        )
    else:
        reason = (
            "a word that was not masked is shown as it is; word dropout lowers the epsilon of a mechanism that comes "
            "after it, and promises nothing by itself"
        )
    return of_release(
        guarantee=NoGuarantee(reason),
        unit=Unit.WORD,
        relation=Relation.SUBSTITUTION,
        condition=Condition(requirements=(WordsChanged(1),)),
        trust=Trust.LOCAL,
        mechanism="masked words",
        parameters={"mu": mu, "masks_a_text": count, "sensitive_words": listed, "mask": mask},
        exposed=(
            "every word that was not masked",
            "where the masked words stood, and how many they were",
            "punctuation, space, letter case, the number of texts and their order",
        ),
        seeded=seeded,
        release_id=new_release_id(),
    )


def _checked(mu: Any, count: Any, sensitive: Any, mask: Any) -> Phrases:
    """The listed words as they are looked up."""
    if isinstance(sensitive, str):
        raise ParameterError("sensitive must be several words, got one string: sensitive=[word]")
    entries = list(sensitive)
    if mu is not None and count is not None:
        raise ParameterError("mu masks by coins, count masks so many of each text: give one of them")
    if mu is None and count is None and not entries:
        raise ParameterError("which words are to be masked? give mu, count or sensitive words")
    if mu is not None:
        number("mu", mu, least=0, most=1)
    if count is not None:
        whole("count", count, least=0)
    if not isinstance(mask, str) or not mask.strip():
        raise ParameterError("mask must be a token, got nothing but space or no text")
    listed: Phrases = {}
    for place, entry in enumerate(entries, 1):
        split = pieces(entry) if isinstance(entry, str) else []
        phrase = tuple(fold(each) for each in split if kind_of(each) not in _NO_WORDS)
        if not phrase:
            raise ParameterError(f"the list of sensitive words must hold words, entry {place} has none")
        listed.setdefault(phrase[0], set()).add(phrase)
    return listed
