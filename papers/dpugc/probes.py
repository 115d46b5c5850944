"""Planted probes: what the paper's figure 1 warns of, with people who do not exist.

Two words that stand together in no blog are told, side by side, by one person, or by 10, 100, 1,000. An attacker who
has nothing but the vectors asks for the neighbours of the first and looks for the second.

Few passwords have a public vector. So the secrets are once public words, of which a release changes little, and once
among 500 new ones, of which it says all that it knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from papers.dpugc.corpus import Corpus
from papers.dpugc.models import Model, Models
from papers.dpugc.new_words import taken_away

from dptext import Document, WordVectors
from dptext.attacks.linkage import NO_ROW, secret_ranks
from dptext.errors import DataError
from dptext.text.tokens import fold

__all__ = ["AS_NEW", "AS_PUBLIC", "PAIRS", "Pair", "Probes", "pairs_of", "planted", "ranks_of"]

NAMES = ("kathryn", "phyllis", "renee", "vivian", "kristin", "nora", "lena", "dora", "olga", "edith")
DISEASES = (
    *("leukemia", "pneumonia", "hepatitis", "tuberculosis", "asthma"),
    *("arthritis", "malaria", "schizophrenia", "cholera", "anthrax"),
)
KINDS = {  # how the two words are told
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
FIRST, STEP = 10_000, 250  # ranks in the public list: rare words, and sure to be among 20,000
LEAST_TIMES, TOLD = 10, 100
AS_PUBLIC, AS_NEW = "public words", "new words"
"""What the secrets are to a release."""


@dataclass(frozen=True)
class Pair:
    """Two words that stand together in the texts of planted people and nowhere else.

    Attributes:
        kind: "name, disease" or "user, password".
        name: what an attacker asks for.
        secret: what he wants to hear.
    """

    kind: str
    name: str = field(repr=False)
    secret: str = field(repr=False)

    def document(self, user: str, times: int) -> Document:
        """Told so often by one person, a line each."""
        told = KINDS[self.kind]
        lines = (told[turn % len(told)] for turn in range(times))
        return Document("\n".join(lines).format(name=self.name, secret=self.secret), user=user)


@dataclass(frozen=True, eq=False)
class Probes:
    """What cells of this part share.

    Attributes:
        models: vectors.
        corpus: all bloggers.
    """

    models: Models
    corpus: Corpus

    @cached_property
    def pairs(self) -> list[Pair]:
        return pairs_of(self.models.public, self.corpus)

    @cached_property
    def new_words(self) -> list[str]:
        """The secrets, and other words beside them: of secrets alone a release might know that it knows nothing."""
        names = {pair.name for pair in self.pairs}
        others = (word for word in taken_away(self.models.public, 1) if word not in names)
        return list(dict.fromkeys([*(pair.secret for pair in self.pairs), *others]))

    def cell(self, settings: Mapping[str, Any], run: int) -> dict[str, float]:
        """For each pair the rank of the secret among the neighbours of the name, and among the secrets of its kind."""
        model = Model(settings["model"], settings["epsilon"])
        corpus = planted(self.corpus, self.pairs, settings["people"])
        if settings["secrets"] == AS_NEW:
            vectors = self.models.lacking(self.new_words, model, corpus, run, of="secrets")
        else:
            vectors = self.models.of(model, corpus, run)
        result: dict[str, float] = {}
        for place, (rank, among) in enumerate(ranks_of(vectors, self.pairs, blind=len(self.models.public) // 2)):
            result |= {f"rank {place}": float(rank), f"place {place}": float(among)}
        return result


def pairs_of(public: WordVectors, corpus: Corpus) -> list[Pair]:
    """Ten (first name, disease), then ten (user, password): words at every 250th rank of the public list.

    A secret that some document holds together with the name is passed over: the next one is taken.

    Raises:
        DataError: the public vocabulary has too few words.
    """
    words = [word for word in public.words if word.isascii() and word.isalpha() and len(word) > 3]
    if len(words) < FIRST + 2 * STEP * len(NAMES) or not all(word in public for word in (*NAMES, *DISEASES)):
        raise DataError(
            f"the public vocabulary must hold {FIRST + 2 * STEP * len(NAMES):,} words of letters, the names and "
            "diseases of the probes among them"
        )
    where = _documents_with(corpus, {*NAMES, *DISEASES, *words[FIRST:]})
    taken: set[str] = {*NAMES, *DISEASES}
    pairs = []
    diseases = list(DISEASES)
    for name in NAMES:
        diseases.remove(secret := next(_squared_distances(name, diseases, where)))
        pairs.append(Pair("name, disease", name, secret))
    for place in range(len(NAMES)):
        rank = FIRST + 2 * STEP * place
        name = next(word for word in words[rank:] if word not in taken)
        secret = next(_squared_distances(name, (word for word in words[rank + STEP :] if word not in taken), where))
        taken |= {name, secret}
        pairs.append(Pair("user, password", name, secret))
    return pairs


def _squared_distances(name: str, candidates: Iterable[str], where: Mapping[str, set[int]]) -> Iterator[str]:
    return (candidate for candidate in candidates if where.get(name, set()).isdisjoint(where.get(candidate, set())))


def _documents_with(corpus: Corpus, wanted: set[str]) -> dict[str, set[int]]:
    result: dict[str, set[int]] = {}
    for place, words in enumerate(corpus.sentences):
        for word in wanted.intersection(words):
            result.setdefault(word, set()).add(place)
    return result


def planted(corpus: Corpus, pairs: Sequence[Pair], people: int) -> Corpus:
    """The corpus with so many people more for each pair, who write of nothing else.

    Each says it 10 times; where that would be less than 100 times in all, one says it 100 times: to a model that counts
    texts ten people and that one are the same, to a promise to people they are not.
    """
    if not people:
        return corpus
    times = max(LEAST_TIMES, TOLD // people)
    added = [
        pair.document(f"planted {place} {person}", times)
        for place, pair in enumerate(pairs)
        for person in range(people)
    ]
    return Corpus(f"{corpus.name} and {people} a pair", added, base=corpus)


def ranks_of(vectors: WordVectors, pairs: Sequence[Pair], *, blind: int) -> list[tuple[int, int]]:
    """For each pair the rank of the secret among all words by their cosine with the name, and among the secrets.

    1 is the nearest. Where a word has no vector, or one without a direction, nobody can do better than guess:
    ``blind``, and half of the secrets.
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
