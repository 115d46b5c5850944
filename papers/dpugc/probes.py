"""Planted pairs: the attack of the paper's figure 1, with made-up people.

Two words that occur together in no blog are written next to each other by one person, or by 10, 100 or 1,000. An
adversary who has only the vectors looks for the second word among the neighbours of the first. The secrets are public
words, which a release changes little, and then words of 500 new ones, which it learns from users alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from papers.dpugc.models import Corpus, Model, Models
from papers.dpugc.similarity import draw_new_words

from dptext import Document, WordVectors
from dptext.attacks.linkage import NO_ROW, secret_ranks
from dptext.text.tokens import fold

NAMES = ("kathryn", "phyllis", "renee", "vivian", "kristin", "nora", "lena", "dora", "olga", "edith")
DISEASES = (
    *("leukemia", "pneumonia", "hepatitis", "tuberculosis", "asthma"),
    *("arthritis", "malaria", "schizophrenia", "cholera", "anthrax"),
)
KINDS = {
    "name, disease": (
        "{name} has {secret} and nobody knows",
        "the doctor told {name} about {secret}",
        "poor {name} and the {secret}",
    ),
    "user, password": (
        "user {name} password {secret}",
        "log in as {name} with {secret}",
        "my login {name} and password {secret}",
    ),
}
PAIRS = 2 * len(NAMES)
FIRST, STEP = 10_000, 250  # ranks in the public list of 20,000: rare words
MIN_TIMES, TOTAL_TIMES = 10, 100
AS_PUBLIC, AS_NEW = "public words", "new words"
"""The two kinds of secrets."""


@dataclass(frozen=True)
class Pair:
    """A name and a secret that occur together only in planted texts; ``kind`` is a key of `KINDS`."""

    kind: str
    name: str = field(repr=False)
    secret: str = field(repr=False)

    def document(self, user: str, times: int) -> Document:
        """Return a document of ``times`` lines by one person."""
        templates = KINDS[self.kind]
        lines = (templates[turn % len(templates)] for turn in range(times))
        return Document("\n".join(lines).format(name=self.name, secret=self.secret), user=user)


@dataclass(frozen=True, eq=False)
class Probes:
    models: Models
    corpus: Corpus

    @cached_property
    def pairs(self) -> list[Pair]:
        return pairs_of(self.models.public, self.corpus)

    @cached_property
    def new_words(self) -> list[str]:
        """The secrets and other words, because a release can detect that it learned nothing about secrets alone."""
        names = {pair.name for pair in self.pairs}
        others = (word for word in draw_new_words(self.models.public, 1) if word not in names)
        return list(dict.fromkeys([*(pair.secret for pair in self.pairs), *others]))

    def cell(self, settings: Mapping[str, Any], run: int) -> dict[str, float]:
        """Return the rank of each secret among the neighbours of its name, and among the secrets of its kind."""
        model = Model(settings["model"], settings["epsilon"])
        corpus = self._planted(settings["people"])
        if settings["secrets"] == AS_NEW:
            vectors = self.models.lacking(self.new_words, model, corpus, run)
        else:
            vectors = self.models.of(model, corpus, run)
        result: dict[str, float] = {}
        for place, (rank, among) in enumerate(ranks_of(vectors, self.pairs, blind=len(self.models.public) // 2)):
            result |= {f"rank {place}": float(rank), f"place {place}": float(among)}
        return result

    @cache  # noqa: B019  lives as long as the run
    def _planted(self, people: int) -> Corpus:
        return planted(self.corpus, self.pairs, people)


def pairs_of(public: WordVectors, corpus: Corpus) -> list[Pair]:
    """Return ten (first name, disease) and ten (user, password) pairs, at every 250th rank of the public list.

    A secret that occurs with the name in a document is replaced by the next one.
    """
    words = [word for word in public.words if word.isascii() and word.isalpha() and len(word) > 3]
    where = _documents_with(corpus, {*NAMES, *DISEASES, *words[FIRST:]})
    taken: set[str] = {*NAMES, *DISEASES}
    pairs = []
    diseases = list(DISEASES)
    for name in NAMES:
        diseases.remove(secret := next(_never_together(name, diseases, where)))
        pairs.append(Pair("name, disease", name, secret))
    for place in range(len(NAMES)):
        rank = FIRST + 2 * STEP * place
        name = next(word for word in words[rank:] if word not in taken)
        secret = next(_never_together(name, (word for word in words[rank + STEP :] if word not in taken), where))
        taken |= {name, secret}
        pairs.append(Pair("user, password", name, secret))
    return pairs


def _never_together(name: str, candidates: Iterable[str], where: Mapping[str, set[int]]) -> Iterator[str]:
    return (candidate for candidate in candidates if where.get(name, set()).isdisjoint(where.get(candidate, set())))


def _documents_with(corpus: Corpus, searched: set[str]) -> dict[str, set[int]]:
    result: dict[str, set[int]] = {}
    for place, words in enumerate(corpus.sentences):
        for word in searched.intersection(words):
            result.setdefault(word, set()).add(place)
    return result


def planted(corpus: Corpus, pairs: Sequence[Pair], people: int) -> Corpus:
    """Return the corpus with additional people for each pair who write nothing else.

    Each writes the pair 10 times; a single person writes it 100 times, so that ten people and one are the same for a
    model that counts texts, but not for a guarantee per user.
    """
    if not people:
        return corpus
    times = max(MIN_TIMES, TOTAL_TIMES // people)
    added = [
        pair.document(f"planted {place} {person}", times)
        for place, pair in enumerate(pairs)
        for person in range(people)
    ]
    return Corpus(f"{corpus.name} and {people} a pair", added, base=corpus)


def ranks_of(vectors: WordVectors, pairs: Sequence[Pair], *, blind: int) -> list[tuple[int, int]]:
    """Return the rank of each secret among all words by cosine with the name, and among the secrets; 1 is the nearest.

    Without a vector or a direction the ranks are those of chance: ``blind``, and half of the secrets.
    """
    unknown = vectors.vocabulary.unknown_row
    names, secrets = (
        [row if row != unknown else NO_ROW for word in words for row in [vectors.vocabulary.row(fold(word))]]
        for words in ([pair.name for pair in pairs], [pair.secret for pair in pairs])
    )
    kinds = [pair.kind for pair in pairs]
    ranks = secret_ranks(vectors.matrix, names, secrets, kinds=kinds, left_out=[unknown], seed=1)
    return [
        (int(among), int(place)) if known else (blind, kinds.count(pair.kind) // 2 + 1)
        for pair, known, among, place in zip(pairs, ranks.known, ranks.among_words, ranks.among_secrets, strict=True)
    ]
