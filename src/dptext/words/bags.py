"""Documents as bags of private words: which words, not where they stood.

Every word goes through the mechanism, and the private words of a document come out sorted, so that nothing is left of
their order. Then a document is hidden among all those that have similar words *somewhere*: what counts is not the
distance of the words place by place, but that of the cheapest way to pair the words of one document with those of the
other (n times the Earth Mover's distance of two bags of n words).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dptext.errors import ParameterError, RefusedError
from dptext.files.blocks import in_blocks
from dptext.files.documents import Document
from dptext.privacy.condition import Condition, SameWordCount
from dptext.privacy.guarantee import MetricDP
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.privacy.wording import facts_of
from dptext.release.mechanism import text_mechanism
from dptext.release.release import without_text
from dptext.release.rewriting import checked_texts
from dptext.showing import Facts, Showing
from dptext.text.tokens import pieces
from dptext.vectors.formats import VectorsLike
from dptext.words.mechanism import WordMechanism
from dptext.words.replacing import Codes

__all__ = ["PrivateBags", "privatize_bags"]

Bag = list[str]
_LAYOUT_GONE = "the number of documents, their order, and the number of words in each"


@dataclass(frozen=True, repr=False)
class PrivateBags(Showing):
    """What `privatize_bags` returns.

    Attributes:
        bags: the private words of each document, sorted; None where there was no text.
        statement: what was promised for a document.
    """

    bags: list[Bag | None]
    statement: PrivacyStatement

    def _in_brief(self) -> Facts:
        yield "bags", len(self.bags)
        yield "mechanism", self.statement.mechanism
        yield "guarantee", str(self.statement.guarantee)

    def _in_full(self) -> Facts:
        return facts_of(self.statement)


def privatize_bags(
    texts: Iterable[str | Document | None],
    mechanism: WordMechanism | str,
    *,
    epsilon: float | None = None,
    vectors: VectorsLike | None = None,
    seed: int | None = None,
) -> PrivateBags:
    """Replace every word of every text through a mechanism, and release the words of a text without their order.

    Numbers, addresses, punctuation and spaces leave: nothing shows that they were there. ``Counter(bag)`` gives counts,
    ``" ".join(bag)`` what a vectorizer takes.

    Args:
        texts: strings, or `Document`; None (no text) stays None.
        mechanism: a word mechanism, or the name of one (``"tem"``). Under a document budget words after the first
            ``max_words`` leave unseen.
        epsilon, vectors: of one that is given by name: see `dptext.words.registry.word_mechanism`.
        seed: None for cryptographic randomness; an integer for tests and papers only (the statement says so).

    **Guarantee** (unit document, substitution among documents with the same number n of words, local). Let the
    mechanism lose at most L(w, w') = epsilon d(w, w') + slack for a pair of words. For documents w and w' of n words
    and every bag b,

        P(b | w) <= exp(min over pairings p of the sum over i of L(w_i, w'_p(i))) P(b | w').

    *Proof.* Reorder w' by p. Its private words are drawn one by one, each with a distribution that depends on its word
    alone, so reordering w' reorders their joint distribution; sorting forgets the order, so P(b | w') stays as it is.
    Place by place the losses between w and the reordered w' add up, and sorting, which is post-processing, adds none.
    This holds for every p, so for the cheapest. The cheapest pairing costs n times the Earth Mover's distance of the
    bags: transport plans between n equal masses are mixtures of pairings (Birkhoff and von Neumann), so one of these is
    optimal. Without the sorting it is false: two orders of the same words are at distance 0 and can be told apart.

    Where the mechanism has a pure bound for a document (a document budget), this one holds, as for texts.

    Source: Fernandes, Dras and McIver 2019 (arXiv:1811.10256), whose privacy of a bag this is.

    Raises:
        ParameterError: one string instead of a list of them; no word mechanism.
        DataError: an entry is not a string; its place is named.

    >>> from dptext import TEM, load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> result = privatize_bags(["Tax 7 dogs? Cat, dog!", None], TEM(vectors, epsilon=200.0, threshold=0.2))
    >>> result.bags
    [['<unk>', 'cat', 'dog', 'tax'], None]
    >>> print(result.statement.guarantee)
    200 per unit of summed earth mover's over euclidean distance, never more than 160.1 for a pair (metric ...
    """
    if isinstance(texts, str):
        raise ParameterError("texts must be a list of strings, got one string: put it into a list")
    mechanism = text_mechanism(mechanism, epsilon=epsilon, vectors=vectors)
    if not isinstance(mechanism, WordMechanism):
        raise ParameterError(f"mechanism must be a word mechanism such as TEM, got {type(mechanism).__name__}")
    if mechanism.labels is not None and not isinstance(mechanism.word_guarantee(), MetricDP):
        raise RefusedError(
            f"{mechanism.name} promises nothing between words of different groups, and a bag does not say which word "
            "stood where: use a mechanism without groups"
        )
    key = NoiseKey(seed)
    # a release of bags and one of texts under one seed must not share noise, so their parameters differ
    parameters = hashlib.sha256(b"bags\0" + mechanism.statement.to_json().encode()).digest()
    codes = Codes(mechanism)
    bags: list[Bag | None] = []
    for place, block in enumerate(in_blocks(checked_texts(texts))):
        bags += _private(block.texts, mechanism, codes, key.stream(parameters, place, block.digest()))
    longest = max((len(bag) for bag in bags if bag is not None), default=0)
    statement = _statement(mechanism, longest, seeded=key.seeded, missing=None in bags)
    return PrivateBags(bags, statement.replace(release_id=new_release_id()))


def _private(texts: Iterable[str | None], mechanism: WordMechanism, codes: Codes, bits: RandomBits) -> list[Bag | None]:
    """The bags of one block."""
    # codes below 0 are not of words
    rows = [None if text is None else [code for piece in pieces(text) if (code := codes[piece]) >= 0] for text in texts]
    counted = [(row or [])[: mechanism.max_words] for row in rows]
    ends = np.cumsum([0, *map(len, counted)]).tolist()
    flat = np.fromiter((row for each in counted for row in each), dtype=np.int64, count=ends[-1])
    words = mechanism.vectors.words
    drawn = [words[row] for row in mechanism.sample_rows(flat, bits).tolist()]
    return [
        None if row is None else sorted(drawn[start:end])
        for row, (start, end) in zip(rows, pairwise(ends), strict=True)
    ]


def _statement(mechanism: WordMechanism, longest: int, *, seeded: bool, missing: bool) -> PrivacyStatement:
    """That of a release of texts, with the bags' neighbours, metric, and the little that bags show."""
    guarantee, word = mechanism.document_guarantee(longest), mechanism.word_guarantee()
    counts = _LAYOUT_GONE
    bags = "the bags of their words"
    if mechanism.max_words is not None:
        counts += f" (up to {mechanism.max_words}; words after these left)"
        bags = f"the bags of their first {mechanism.max_words} words"
    note = "their words may be any, in any order"
    if isinstance(guarantee, MetricDP) and isinstance(word, MetricDP):
        guarantee = MetricDP(
            guarantee.epsilon, f"summed earth mover's over {word.metric}", guarantee.max_distance, guarantee.space
        )
        note = (
            f"their distance is that of {bags}: each word of one is paired with a word of the other in the cheapest "
            "way, and the distances of the pairs add up"
        )
    statement = mechanism.statement_of_release(
        longest,
        guarantee,
        condition=Condition(requirements=(SameWordCount(), *mechanism.requirements()), note=note),
        exposed=(counts, *mechanism.exposes(), *without_text(missing)),
        seeded=seeded,
    )
    return statement.replace(parameters={**statement.parameters, "released": "bags of words"})
