"""Words recovered from word2vec vectors by an attacker with own vectors: the three situations of the study.

Source: Zouhri and Abecidan 2021, section 1.2 (a study of Lyu, He and Li 2020, arXiv:2010.01285).
Command: ``python -m papers.leakage.leakage [--data FOLDER] [--quick]``. The study's situations need gensim 4 (``pip
install gensim``) and are skipped without it; vectors with differential privacy do not. Every finished attack is a row
of ``results.csv``; an interrupted run resumes. No post is printed or written.
"""

from __future__ import annotations

import csv
import hashlib
import lzma
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from papers.blogs import Blogger, bloggers, documents_of
from papers.data_sets import WIKITEXT
from papers.dpugc.models import DELTA, INSTALL, Cells, has_word2vec, plan_of, released, total_of
from papers.reports import join_sections, parse_options, run_command, table, write_between

from dptext import WordVectors, load_vectors
from dptext.attacks.base import AttackScore, Floats, Ids, as_rows, unit_rows
from dptext.attacks.linkage import rank_scores, similarities
from dptext.intervals import share
from dptext.privacy.randomness import RandomBits

_ROUNDS = 10
_FREQUENT = 10_000  # words of each side that may make pairs: rare ones have vectors of little use
_BLOCK = 1024
Space: TypeAlias = tuple[Sequence[str], npt.ArrayLike]
"""Words, most frequent first, and a (V, d) matrix, row i of which belongs to word i."""


def cross_corpus_recovery(
    victim: Space, attacker: Space, *, k: int = 5, anchors: int = 0, seed: int | None = None
) -> AttackScore:
    """Return the share of a victim's words that an attacker recovers from their vectors with another model.

    A word that the attacker's model does not know counts as not recovered, as in the study. The attacker may name ``k``
    words, and knows ``anchors`` pairs (word, vector of the victim): the most frequent words that both models have. From
    them, and from words that are then each other's nearest, the rotation between the spaces is learnt (orthogonal
    Procrustes, Schoenemann 1966; Artetxe, Labaka and Agirre 2017); they are left out of the score. The interval takes
    words as independent, an approximation.

    >>> public = (["a", "cat", "dog"], [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> print(cross_corpus_recovery(public, public, k=1))
    cross-corpus recovery (as they are): share of words among the 1 nearest 1.000 [0.292, 1.000] against 0.333 (chance)
    """
    words, known = list(victim[0]), list(attacker[0])
    points, candidates = as_rows("victim", victim[1]), as_rows("attacker", attacker[1])
    row_of = {word: row for row, word in enumerate(known)}
    shared = np.array([row for row, word in enumerate(words) if word in row_of], dtype=np.int64)
    points, candidates = unit_rows(points), unit_rows(candidates)
    anchor_rows = np.array([row_of[words[row]] for row in shared], dtype=np.int64)
    if anchors:
        points = points @ _alignment(points, candidates, shared[:anchors], anchor_rows[:anchors])
    requested, true = shared[anchors:], anchor_rows[anchors:]
    hits = 0
    if requested.size:
        pairs, _ = similarities(candidates, points[requested], similarity="cosine")
        hits = int((rank_scores(pairs, true, len(known), RandomBits(seed)) < k).sum())
    total = len(words) - anchors
    detail = (
        f"{total:,} words of the victim, {requested.size:,} of them known to the attacker, {hits:,} of these recovered"
    )
    return AttackScore(
        attack=f"cross-corpus recovery ({'aligned' if anchors else 'as they are'})",
        measure=f"share of words among the {k} nearest",
        score=share(hits, total),
        baseline=requested.size / total * k / len(known),
        baseline_name="chance",
        detail=f"{detail}; {anchors:,} known pairs" if anchors else detail,
    )


def _alignment(points: Floats, candidates: Floats, known: Ids, anchor_rows: Ids) -> Floats:
    """The rotation that known pairs of rows (of length 1) suggest, refined by the pairs that it makes."""
    rotation = _rotation(points[known], candidates[anchor_rows])
    before: tuple[Ids, Ids] | None = None
    for _ in range(_ROUNDS):
        pairs = _mutual(points[:_FREQUENT] @ rotation, candidates[:_FREQUENT])
        if before is not None and all(np.array_equal(one, other) for one, other in zip(pairs, before, strict=True)):
            break
        mutual, targets = (np.concatenate(entry) for entry in zip((known, anchor_rows), pairs, strict=True))
        rotation, before = _rotation(points[mutual], candidates[targets]), pairs
    return rotation


def _mutual(points: Floats, candidates: Floats) -> tuple[Ids, Ids]:
    """Rows of both that are each other's nearest by cosine."""
    nearest = np.empty(len(points), dtype=np.int64)
    back, best = np.zeros(len(candidates), dtype=np.int64), np.full(len(candidates), -np.inf)
    for start in range(0, len(points), _BLOCK):
        cosines = points[start : start + _BLOCK] @ candidates.T
        nearest[start : start + _BLOCK] = cosines.argmax(axis=1)
        rows = cosines.argmax(axis=0)
        value = cosines[rows, np.arange(len(candidates))]
        back[value > best] = start + rows[value > best]
        best = np.maximum(best, value)
    mutual = np.flatnonzero(back[nearest] == np.arange(len(points)))
    return mutual, nearest[mutual]


def _rotation(points: Floats, targets: Floats) -> Floats:
    """The orthogonal R that minimises ||points R - targets||: U V' of the singular vectors of points' targets."""
    left, _, right = np.linalg.svd(points.T @ targets)
    rotation: Floats = left @ right
    return rotation


HERE = Path(__file__).resolve().parent
START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
DIMENSION, WINDOW, MIN_COUNT, EPOCHS = 100, 5, 5, 5  # gensim's defaults, as in the study
NEAREST, ANCHORS, SEED = 5, 1000, 2021
QUICK = 8  # every 8th blogger and line
WORDS, EPSILON = 20_000, 8.0  # of the release: public words, and epsilon of a blogger
SITUATIONS = {
    "overlapping halves": ("half of the posts", "another half of the posts"),
    "other people": ("half of the bloggers", "the other bloggers"),
    "another source": ("half of the bloggers", "WikiText-2"),
}
"""Texts of the published vectors, and of the attacker's."""
RELEASED = "other people, differentially private"
_LABELS = {
    "overlapping halves": ("two overlapping halves of one corpus", "0.33 (English), 0.41 (French)"),
    "other people": ("other people of the same kind", "0.18"),
    "another source": ("another source", "0.007"),
}
"""Names and printed numbers."""
_WORD = re.compile(r"[^\W\d_]+")

Texts = list[list[str]]
Row = dict[str, str]
Cell = tuple[str, str, int, str]  # situation, first vectors, known pairs, epsilon


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options("Words of one word2vec model that another one recovers.", HERE, arguments)
    file = HERE / "results.csv" if options.readme else options.out / "results.csv"
    if not options.report:
        spaces = Spaces(options.data, QUICK if options.quick else 1)
        done = {_cell(row) for row in read_rows(file)}
        for cell in cells(word2vec=has_word2vec()):
            if cell not in done:
                _append(file, attack(cell, spaces))
        if not has_word2vec():
            print(f"The study's situations need gensim; {INSTALL}")
    write_report(file, readme=options.readme)


def cells(*, word2vec: bool) -> Iterator[Cell]:
    if word2vec:
        for start in ("by word", "own"):
            for situation in SITUATIONS:
                yield from ((situation, start, anchors, "") for anchors in (0, ANCHORS))
    for epsilon in ("", f"{EPSILON:g}"):
        yield from ((RELEASED, "public", anchors, epsilon) for anchors in (0, ANCHORS))


def attack(cell: Cell, spaces: Spaces) -> Row:
    """Return the row of one attack."""
    situation, start, anchors, epsilon = cell
    if situation == RELEASED:
        victim = spaces.release(float(epsilon) if epsilon else None, is_attacker=False)
        attacker = spaces.release(None, is_attacker=True)
    else:
        victim, attacker = (spaces.train(name, start) for name in SITUATIONS[situation])
    score = cross_corpus_recovery(victim, attacker, k=NEAREST, anchors=anchors, seed=SEED)
    print(f"{situation}, first vectors {start}, {anchors} pairs, epsilon {epsilon or 'infinite'}: {score.score}")
    return {
        "situation": situation,
        "printed": _LABELS.get(situation, ("", ""))[1],
        "first_vectors": start,
        "known_pairs": str(anchors),
        "epsilon": epsilon,
        "recovered": f"{score.score.value:.4f}",
        "low": f"{score.score.low:.4f}",
        "high": f"{score.score.high:.4f}",
        "chance": f"{score.baseline:.5f}",
        "victim_words": str(len(victim[0])),
        "attacker_words": str(len(attacker[0])),
        "shared_words": str(len(set(victim[0]) & set(attacker[0]))),
        "seed": str(SEED),
    }


class Spaces:
    """The texts of both sides, every ``step``-th blogger and line, and their vectors, each trained once."""

    def __init__(self, data: Path, step: int) -> None:
        self._data, self._step = data, step

    @cached_property
    def _people(self) -> list[tuple[Blogger, Texts]]:
        """Bloggers, and the words of their posts."""
        people = ((person, words_of_posts(person)) for person in bloggers(self._data))
        return [entry for entry in people if entry[1]][:: self._step]

    @cached_property
    def _halves(self) -> tuple[npt.NDArray[np.bool_], ...]:
        """Two halves of the posts, and one of the bloggers."""
        bits, posts = RandomBits(SEED), sum(len(texts) for _, texts in self._people)
        return tuple(np.argsort(bits.uniform(count)) < count // 2 for count in (posts, posts, len(self._people)))

    @cached_property
    def _texts(self) -> dict[str, Texts]:
        first, second, people = self._halves
        posts = [post for _, texts in self._people for post in texts]

        def posts_of(is_half: bool) -> Texts:
            sides = zip(self._people, people, strict=True)
            return [post for (_, texts), in_half in sides if in_half == is_half for post in texts]

        return {
            "half of the posts": [post for post, chosen in zip(posts, first, strict=True) if chosen],
            "another half of the posts": [post for post, chosen in zip(posts, second, strict=True) if chosen],
            "half of the bloggers": posts_of(True),
            "the other bloggers": posts_of(False),
            "WikiText-2": list(wikitext(self._data / WIKITEXT[0]))[:: self._step],
        }

    @cache  # noqa: B019  lives as long as the run
    def train(self, name: str, start: str) -> Space:
        """Return words and vectors of word2vec."""
        return train_word2vec(self._texts[name], start, SEED + list(self._texts).index(name))

    @cache  # noqa: B019
    def release(self, epsilon: float | None, *, is_attacker: bool) -> Space:
        """Return words and vectors of `dptext.Cooccurrence` on public vectors; without an epsilon, without noise."""
        sigma = 0.0 if epsilon is None else plan_of(self._public, epsilon).budgets.sigma
        vectors = released(plan_of(self._public), self._total(is_attacker), sigma=sigma, run=SEED)
        return list(vectors.words), vectors.matrix

    @cached_property
    def _public(self) -> WordVectors:
        return load_vectors("glove-6b-50d", limit=WORDS // self._step)

    @cache  # noqa: B019
    def _total(self, is_attacker: bool) -> Cells:
        sides = zip(self._people, self._halves[2], strict=True)
        people = [person for (person, _), in_half in sides if in_half != is_attacker]
        return total_of(plan_of(self._public), documents_of(people))


def train_word2vec(texts: Texts, start: str, seed: int) -> Space:
    """Train a word2vec model (continuous bag of words, gensim's default).

    ``start`` "by word": equal words start at equal points, as in gensim before 4 and the study (gensim 3.8.3). "own":
    first vectors by row, as in gensim 4, so that two seeds have nothing in common.
    """
    from gensim.models import Word2Vec

    model = Word2Vec(vector_size=DIMENSION, window=WINDOW, min_count=MIN_COUNT, epochs=EPOCHS, workers=1, seed=seed)
    model.build_vocab(texts)
    if start == "by word":
        for row, word in enumerate(model.wv.index_to_key):
            model.wv.vectors[row] = first_vector(word)
    else:
        model.wv.vectors[:] = (RandomBits(seed).uniform(*model.wv.vectors.shape) - 0.5) / DIMENSION
    model.train(texts, total_examples=model.corpus_count, epochs=EPOCHS)
    return list(model.wv.index_to_key), np.array(model.wv.vectors)


def first_vector(word: str) -> npt.NDArray[np.float64]:
    """Return a vector that is uniform over (-1/2d, 1/2d) in every coordinate, a function of the word."""
    digest = hashlib.shake_256(word.encode()).digest(4 * DIMENSION)
    return (np.frombuffer(digest, dtype="<u4") / 2**32 - 0.5) / DIMENSION


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def words_of_posts(person: Blogger) -> Texts:
    texts = (post.replace("urlLink", " ").replace("&nbsp;", " ") for post in person.posts)
    return [words for text in texts if (words := words_of(text))]


def wikitext(path: Path) -> Iterator[list[str]]:
    """Yield the words of each paragraph of WikiText-2."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if words := words_of(line.replace("<unk>", " ")):
                yield words


# -- rows -----------------------------------------------------------------------------------------------------------


def read_rows(path: Path) -> list[Row]:
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _cell(row: Row) -> Cell:
    return row["situation"], row["first_vectors"], int(row["known_pairs"]), row["epsilon"]


def _append(path: Path, row: Row) -> None:
    is_new = not path.is_file()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, row, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def write_report(file: Path, *, readme: Path | None) -> None:
    """Write the tables of a file of rows into a README."""
    write_between(readme, START, END, tables(read_rows(file)))


def tables(rows: Iterable[Row]) -> str:
    """Return the study's situations and the release in Markdown."""
    by_cell = {_cell(row): row for row in rows}

    def numbers(*cells: Cell) -> list[str]:
        return [_spell(by_cell.get(cell)) for cell in cells]

    study = [
        [label, printed, *numbers((name, "by word", 0, ""), (name, "own", 0, ""), (name, "own", ANCHORS, ""))]
        for name, (label, printed) in _LABELS.items()
    ]
    labels = {"": "no noise", f"{EPSILON:g}": f"epsilon {EPSILON:g}, delta {DELTA:g} for a blogger"}
    releases = [
        [label, *numbers(*((RELEASED, "public", anchors, epsilon) for anchors in (0, ANCHORS)))]
        for epsilon, label in labels.items()
    ]
    head = ["`dptext.Cooccurrence` on public vectors, other people", "unchanged", "1,000 known pairs"]
    study_head = ["situation", "printed", "as in the study", "unaligned", "1,000 known pairs"]
    return join_sections([table(study_head, study), table(head, releases)])


def _spell(row: Row | None) -> str:
    if row is None:
        return "not run"
    shares = [float(row[name]) for name in ("recovered", "low", "high")]
    value, low, high = (f"{share:.{4 if shares[0] < 0.001 else 3}f}" for share in shares)
    return f"{value} [{low}, {high}]"


if __name__ == "__main__":
    run_command(main)
