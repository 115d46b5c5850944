"""Words recovered from word2vec vectors by somebody who trained his own: the three situations of the study.

Source: Zouhri and Abecidan 2021, section 1.2 (a study of Lyu, He and Li 2020, arXiv:2010.01285).
Command: ``python -m papers.leakage.leakage [--data ../shared/data] [--quick] [--out results.csv]``. The study's
situations need gensim 4 (``pip install gensim``) and are left out without it; vectors trained under differential
privacy do not. A run that was stopped goes on where it was. No post is printed or written; the table holds shares only.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import lzma
import re
import sys
import time
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from papers.blogs import Blogger, bloggers, documents_of
from papers.data_sets import data_folder
from papers.dpugc.mechanism import DELTA, Cells, plan_of, released, total_of
from papers.dpugc.models import INSTALL, has_word2vec
from papers.reports import write_between

from dptext import WordVectors, load_vectors
from dptext.attacks import cross_corpus_recovery
from dptext.embeddings.cooccurrence import Plan
from dptext.privacy.randomness import RandomBits

WIKITEXT = "wikitext2/wiki.train.tokens.variant.xz"
DIMENSION, WINDOW, LEAST, EPOCHS = 100, 5, 5, 5  # gensim's defaults, which the study took
NEAREST, ANCHORS, SEED = 5, 1000, 2021
QUICK = 8  # one blogger and one line in so many
WORDS, EPSILON = 20_000, 8.0  # of the release: public words, and what each blogger is promised
HERE = Path(__file__).resolve().parent

Texts = list[list[str]]
Space = tuple[list[str], npt.NDArray[np.float32]]
Row = dict[str, str]
_WORD = re.compile(r"[^\W\d_]+")
SITUATIONS = {
    "overlapping halves": ("a half of the posts", "another half of the posts"),
    "other people": ("half of the bloggers", "the others"),
    "another source": ("half of the bloggers", "WikiText-2"),
}
"""Whose vectors were sent, and what the attacker trains on."""
RELEASED = "other people, differentially private"
_NAMED = {
    "overlapping halves": "two overlapping halves of one corpus",
    "other people": "other people of the same kind",
    "another source": "another source",
}
START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
_PRINTED = {"overlapping halves": "0.33 (English), 0.41 (French)", "other people": "0.18", "another source": "0.007"}


Cell = tuple[str, str, int, str]
"""Situation, first vectors, known pairs, epsilon: the columns that tell rows apart."""


def main() -> None:
    """Train, attack, write the table; rows that are there are not made again."""
    parser = argparse.ArgumentParser(description="How many words of a word2vec model another one recovers.")
    parser.add_argument("--data", help="folder of the blogs and WikiText-2 (default: ../shared/data)")
    parser.add_argument("--quick", action="store_true", help=f"one blogger in {QUICK}: a minute")
    parser.add_argument("--out", type=Path, default=None, help="where the table goes (.csv)")
    options = parser.parse_args()
    out = options.out or HERE / ("quick/results.csv" if options.quick else "results.csv")
    out.parent.mkdir(parents=True, exist_ok=True)
    done = {cell_of(row) for row in rows_of(out)}
    spaces = Spaces(data_folder(options.data), quick=options.quick)
    for cell in cells(word2vec=has_word2vec()):
        if cell not in done:
            append(out, row_of(cell, spaces))
    if not has_word2vec():
        say(f"without word2vec: the rows of the study's situations need gensim; {INSTALL}")
    write_report(out, readme=HERE / "README.md" if not options.quick and options.out is None else None)


def write_report(out: Path, *, readme: Path | None) -> None:
    """The tables of a file of rows, between the marks of a README."""
    write_between(readme, START, END, tables(rows_of(out)))


def cells(*, word2vec: bool) -> Iterator[Cell]:
    """What is measured."""
    if word2vec:
        for start in ("by word", "own"):
            for situation in SITUATIONS:
                for anchors in (0, ANCHORS):
                    yield situation, start, anchors, ""
    for epsilon in ("", f"{EPSILON:g}"):
        for anchors in (0, ANCHORS):
            yield RELEASED, "public", anchors, epsilon


def row_of(cell: Cell, spaces: Spaces) -> Row:
    """One attack."""
    situation, start, anchors, epsilon = cell
    if situation == RELEASED:
        sides = spaces.released(float(epsilon) if epsilon else None), spaces.released(None, of_attacker=True)
    else:
        victim, attacker = SITUATIONS[situation]
        sides = spaces.trained(victim, start), spaces.trained(attacker, start)
    score = cross_corpus_recovery(*sides, k=NEAREST, anchors=anchors, seed=SEED)
    say(f"{situation}, first vectors {start}, {anchors} pairs, epsilon {epsilon or 'infinite'}: {score.score}")
    return {
        "situation": situation,
        "printed": _PRINTED.get(situation, ""),
        "first_vectors": start,
        "known_pairs": str(anchors),
        "epsilon": epsilon,
        "recovered": f"{score.score.value:.4f}",
        "low": f"{score.score.low:.4f}",
        "high": f"{score.score.high:.4f}",
        "chance": f"{score.baseline:.5f}",
        "victim_words": str(len(sides[0][0])),
        "attacker_words": str(len(sides[1][0])),
        "shared_words": str(len(set(sides[0][0]) & set(sides[1][0]))),
        "seed": str(SEED),
    }


class Spaces:
    """The texts of each side, and vectors of them, each trained once.

    Args:
        data: the folder.
        quick: one blogger and one line in `QUICK`.
    """

    def __init__(self, data: Path, *, quick: bool) -> None:
        self._data, self._step = data, QUICK if quick else 1
        self._words = WORDS // self._step

    @cached_property
    def _written(self) -> list[tuple[Blogger, Texts]]:
        """Bloggers, and their posts in words."""
        written = ((person, words_of_posts(person)) for person in bloggers(self._data))
        return [entry for entry in written if entry[1]][:: self._step]

    @cached_property
    def _halves(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Two of the posts, and one of the bloggers."""
        bits, posts = RandomBits(SEED), sum(len(texts) for _, texts in self._written)
        return half(posts, bits), half(posts, bits), half(len(self._written), bits)

    @cached_property
    def _texts(self) -> dict[str, Texts]:
        one, other, people = self._halves
        posts = [post for _, texts in self._written for post in texts]
        sides = [(texts, mine) for (_, texts), mine in zip(self._written, people, strict=True)]
        return {
            "a half of the posts": kept(posts, one),
            "another half of the posts": kept(posts, other),
            "half of the bloggers": [post for texts, mine in sides if mine for post in texts],
            "the others": [post for texts, mine in sides if not mine for post in texts],
            "WikiText-2": list(wikitext(self._data / WIKITEXT))[:: self._step],
        }

    @cache  # noqa: B019  lives as long as the run
    def trained(self, name: str, start: str) -> Space:
        """Words and vectors of word2vec."""
        return train(self._texts[name], start, list(self._texts).index(name))

    @cache  # noqa: B019
    def released(self, epsilon: float | None, *, of_attacker: bool = False) -> Space:
        """Words and vectors of `dptext.Cooccurrence` on public vectors; without an epsilon: without noise."""
        vectors = released(self._plan, self._total(of_attacker), sigma=self._sigma(epsilon), run=SEED)
        return list(vectors.words), vectors.matrix

    def _sigma(self, epsilon: float | None) -> float:
        return 0.0 if epsilon is None else plan_of(self._public, epsilon).budgets.sigma

    @cached_property
    def _public(self) -> WordVectors:
        return load_vectors("glove-6b-50d", limit=self._words)

    @cached_property
    def _plan(self) -> Plan:
        return plan_of(self._public)

    @cache  # noqa: B019
    def _total(self, of_attacker: bool) -> Cells:
        sides = zip(self._written, self._halves[2], strict=True)
        return total_of(self._plan, documents_of([person for (person, _), mine in sides if mine != of_attacker]))


# -- rows -----------------------------------------------------------------------------------------------------------


def rows_of(path: Path) -> list[Row]:
    """Those that are there."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def cell_of(row: Row) -> Cell:
    """What it measures."""
    return row["situation"], row["first_vectors"], int(row["known_pairs"]), row["epsilon"]


def append(path: Path, row: Row) -> None:
    """Add a row, and the head where there is none."""
    fresh = not path.is_file()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, row, lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def tables(rows: list[Row]) -> str:
    """The study's situations, and the release, in Markdown."""
    result = {cell_of(row): row for row in rows}
    lines = [
        "| situation | printed | as in the study | unaligned | 1,000 known pairs |",
        "|---|---|---|---|---|",
        *(
            _line(
                named,
                _PRINTED[situation],
                *(
                    _spelled(result.get((situation, *anchor, "")))
                    for anchor in (("by word", 0), ("own", 0), ("own", ANCHORS))
                ),
            )
            for situation, named in _NAMED.items()
        ),
        "",
        "| `dptext.Cooccurrence` on public vectors, other people | as they are | 1,000 known pairs |",
        "|---|---|---|",
        *(
            _line(named, *(_spelled(result.get((RELEASED, "public", anchors, epsilon))) for anchors in (0, ANCHORS)))
            for epsilon, named in (
                ("", "no noise"),
                (f"{EPSILON:g}", f"epsilon {EPSILON:g}, delta {DELTA:g} a blogger"),
            )
        ),
    ]
    return "\n".join(lines) + "\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _spelled(row: Row | None) -> str:
    if row is None:
        return "not run"
    shares = [float(row[name]) for name in ("recovered", "low", "high")]
    value, low, high = (f"{share:.{4 if shares[0] < 0.001 else 3}f}" for share in shares)
    return f"{value} [{low}, {high}]"


# -- training ---------------------------------------------------------------------------------------------------------


def train(texts: Texts, start: str, place: int) -> Space:
    """Words and vectors of a word2vec model (continuous bag of words, as gensim has it by default)."""
    from gensim.models import Word2Vec

    began = time.perf_counter()
    model = Word2Vec(vector_size=DIMENSION, window=WINDOW, min_count=LEAST, epochs=EPOCHS, workers=1, seed=SEED + place)
    model.build_vocab(texts)
    if start == "by word":
        # what gensim before 4 did, and so the study (gensim 3.8.3): equal words start at equal points
        for row, word in enumerate(model.wv.index_to_key):
            model.wv.vectors[row] = first_vector(word)
    else:  # gensim 4 draws by row: two seeds, and the spaces have nothing in common
        bits = RandomBits(SEED + place)
        model.wv.vectors[:] = (bits.uniform(*model.wv.vectors.shape) - 0.5) / DIMENSION
    model.train(texts, total_examples=model.corpus_count, epochs=EPOCHS)
    say(f"trained on {len(texts):,} texts: {len(model.wv):,} words in {time.perf_counter() - began:.0f} s")
    return list(model.wv.index_to_key), np.array(model.wv.vectors)


def first_vector(word: str) -> npt.NDArray[np.float64]:
    """Uniform over (-1/2d, 1/2d) in every coordinate, a function of the word."""
    digest = hashlib.shake_256(word.encode()).digest(4 * DIMENSION)
    return (np.frombuffer(digest, dtype="<u4") / 2**32 - 0.5) / DIMENSION


def half(count: int, bits: RandomBits) -> npt.NDArray[np.bool_]:
    """A random half of so many."""
    chosen: npt.NDArray[np.bool_] = np.argsort(bits.uniform(count)) < count // 2
    return chosen


def kept(posts: Texts, chosen: npt.NDArray[np.bool_]) -> Texts:
    """The chosen posts."""
    return [post for post, mine in zip(posts, chosen, strict=True) if mine]


def words_of(text: str) -> list[str]:
    """Lower case, without punctuation and digits."""
    return _WORD.findall(text.lower())


def words_of_posts(person: Blogger) -> Texts:
    """The posts of a blogger, in words; those without any are left out."""
    texts = (post.replace("urlLink", " ").replace("&nbsp;", " ") for post in person.posts)
    return [words for text in texts if (words := words_of(text))]


def wikitext(path: Path) -> Iterator[list[str]]:
    """The paragraphs of WikiText-2, in words."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if words := words_of(line.replace("<unk>", " ")):
                yield words


def say(text: str) -> None:
    """Progress, on standard error."""
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
