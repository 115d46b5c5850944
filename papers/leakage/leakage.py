"""Words recovered from word2vec vectors by somebody who trained his own: the three situations of the study.

Source: Zouhri and Abecidan 2021, section 1.2 (a study of Lyu, He and Li 2020, arXiv:2010.01285).
Command: ``python -m papers.leakage.leakage [--data ../shared/data] [--quick] [--out results.csv]``; needs gensim >= 4
(``pip install gensim``). No post is printed or written; the table holds shares only.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import lzma
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from papers.blogs import bloggers

from dptext.attacks import cross_corpus_recovery
from dptext.privacy.randomness import RandomBits

WIKITEXT = "wikitext2/wiki.train.tokens.variant.xz"
DIMENSION, WINDOW, LEAST, EPOCHS = 100, 5, 5, 5  # gensim's defaults, which the study took
NEAREST, ANCHORS, SEED = 5, 1000, 2021
QUICK = 8  # one blogger and one line in so many

Texts = list[list[str]]
_WORD = re.compile(r"[^\W\d_]+")
_PRINTED = {"overlapping halves": "0.33 (English), 0.41 (French)", "other people": "0.18", "another source": "0.007"}


def main() -> None:
    """Train, attack, write the table."""
    parser = argparse.ArgumentParser(description="How many words of a word2vec model another one recovers.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help=f"one blogger in {QUICK}: a minute")
    parser.add_argument("--out", type=Path, default=None, help="where the table goes (.csv)")
    options = parser.parse_args()
    step = QUICK if options.quick else 1
    people = list(blogs(options.data))[::step]
    wiki = list(wikitext(options.data / WIKITEXT))[::step]
    bits = RandomBits(SEED)
    posts = [post for person in people for post in person]
    half_a, half_b = (half(len(posts), bits) for _ in range(2))
    one = half(len(people), bits)
    texts = {
        "a half of the posts": kept(posts, half_a),
        "another half of the posts": kept(posts, half_b),
        "half of the bloggers": [post for person, mine in zip(people, one, strict=True) if mine for post in person],
        "the others": [post for person, mine in zip(people, one, strict=True) if not mine for post in person],
        "WikiText-2": wiki,
    }
    situations = {
        "overlapping halves": ("a half of the posts", "another half of the posts"),
        "other people": ("half of the bloggers", "the others"),
        "another source": ("half of the bloggers", "WikiText-2"),
    }
    rows = []
    for start in ("by word", "own"):
        trained = {name: train(each, start, place) for place, (name, each) in enumerate(texts.items())}
        for name, sides in situations.items():
            spaces = [trained[side] for side in sides]
            for anchors in (0, ANCHORS):
                score = cross_corpus_recovery(*spaces, k=NEAREST, anchors=anchors, seed=SEED)
                rows.append(
                    {
                        "situation": name,
                        "printed": _PRINTED[name],
                        "first_vectors": start,
                        "known_pairs": anchors,
                        "recovered": f"{score.score.value:.4f}",
                        "low": f"{score.score.low:.4f}",
                        "high": f"{score.score.high:.4f}",
                        "chance": f"{score.baseline:.5f}",
                        "victim_words": len(spaces[0][0]),
                        "attacker_words": len(spaces[1][0]),
                        "shared_words": len(set(spaces[0][0]) & set(spaces[1][0])),
                        "seed": SEED,
                    }
                )
                say(f"{name}, first vectors {start}, {anchors} pairs: {score.score}")
    table = io.StringIO()
    writer = csv.DictWriter(table, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    sys.stdout.write(table.getvalue())
    if options.out is not None:
        options.out.write_text(table.getvalue(), encoding="utf-8")


def train(texts: Texts, start: str, place: int) -> tuple[list[str], npt.NDArray[np.float32]]:
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
    drawn = hashlib.shake_256(word.encode()).digest(4 * DIMENSION)
    return (np.frombuffer(drawn, dtype="<u4") / 2**32 - 0.5) / DIMENSION


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


def blogs(data: Path) -> Iterator[Texts]:
    """The posts of each blogger, in words."""
    for person in bloggers(data):
        texts = (post.replace("urlLink", " ").replace("&nbsp;", " ") for post in person.posts)
        posts = [words for text in texts if (words := words_of(text))]
        if posts:
            yield posts


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
