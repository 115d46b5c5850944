"""The card of shared word vectors: for somebody who receives the folder, and has never heard of differential privacy.

It says nothing but what statements and vectors say: it is post-processing of the release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dptext.embeddings.card_methods import how_levels, how_made, plain, whose_method
from dptext.privacy.guarantee import at_most
from dptext.privacy.statement import OF_SUBSTITUTION, PrivacyStatement
from dptext.privacy.unit import Unit
from dptext.privacy.wording import odds
from dptext.vectors.formats import KNOWN_VECTORS
from dptext.vectors.word_vectors import WordVectors

__all__ = ["card_of"]

_SURE_IS_FINE = 3.0  # above this epsilon the worst case, 95% sure and more, reassures nobody


def card_of(
    vectors: WordVectors, statements: Mapping[str, PrivacyStatement], *, files: Mapping[str, str], word2vec: str | None
) -> str:
    """The card as Markdown.

    Args:
        vectors: with the statement for everybody.
        statements: by level.
        files: of the statements, by level; empty where there is one only.
        word2vec: the name of the copy for gensim, if there is one.
    """
    statement = vectors.statement
    assert statement is not None
    parts = [
        _head(vectors, statement),
        _promised(statement, statements, files),
        _not_promised(statement),
        _use(word2vec),
        _made_from(vectors, statement),
        _trust(statement),
        _passing_on(statement),
        _files(files, word2vec),
        _cite(statement),
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _head(vectors: WordVectors, statement: PrivacyStatement) -> list[str]:
    lines = [
        "# Word vectors learned from people's texts, under differential privacy",
        "",
        f"{len(vectors):,} words, {vectors.dimension} numbers for each: words that are used alike have similar "
        "numbers. They were learned from texts that people wrote. The texts are not in this folder, and random noise "
        f"was added while the vectors were made, so that it is limited what they can tell about any one "
        f"{_ONE[statement.unit]}. The limit is proved, and stands below as a number.",
    ]
    if statement.seeded:
        lines += [
            "",
            "> **Warning: for tests only.** The noise was made from a seed. Whoever knows the seed, or guesses it, can "
            "take the noise away, and whoever has two releases made with one seed can take one from the other: towards "
            "them nothing below is promised.",
        ]
    return lines


_ONE = {Unit.USER: "of these people", Unit.DOCUMENT: "of these documents", Unit.EXAMPLE: "pair of words in them"}
_WHOSE = {
    Unit.USER: "a person, with everything that he or she wrote in these texts",
    Unit.DOCUMENT: "a single document, **not** a person: nothing is promised to somebody who wrote several",
    Unit.EXAMPLE: "a single pair of words that stand near each other, **not** a person, nor a text, nor a word of it: "
    "a sentence has hundreds of such pairs",
}
_THERE = {
    Unit.USER: "taking part with staying away",
    Unit.DOCUMENT: "a document that is there with one that is not",
    Unit.EXAMPLE: "a pair that is there with one that is not",
}
_OTHER = {
    Unit.USER: "other texts from the same person",
    Unit.DOCUMENT: "another document in its place",
    Unit.EXAMPLE: "another pair in its place",
}
_WITHOUT = {
    Unit.USER: "without that person's texts",
    Unit.DOCUMENT: "without that document",
    Unit.EXAMPLE: "without that pair",
}


def _promised(
    statement: PrivacyStatement, statements: Mapping[str, PrivacyStatement], files: Mapping[str, str]
) -> list[str]:
    unit, epsilon, delta = statement.unit, statement.epsilon, _delta(statement)
    lines = [
        "## What is promised, and to whom",
        "",
        f"**To whom:** {_WHOSE[unit]}.",
        "",
        f"**What:** all that is in this folder could have come out {_WITHOUT[unit]} as well; how much less, or more, "
        "likely that would have been is limited. So it is limited what anybody can find out from these files, whatever "
        "he knows already and whatever he does with them, now or later: whether they were among the texts at all, and "
        "so what stood in them.",
        "",
        f"**How strongly:** epsilon {at_most(epsilon, 4)}, delta {at_most(delta, 3)}. In words: whatever somebody "
        f"looks for in these files, to find it is at most {odds(epsilon)} times likelier with them than without, or "
        f"without than with, plus a probability of {_chance(delta)}. {_sure(epsilon)}",
        "",
    ]
    if epsilon > _SURE_IS_FINE:
        lines += [
            "That is the worst case, for which the proof has to hold: somebody who knows all other texts, meets the "
            "most telling outcome, and asks about the one who is easiest to tell. It does not say how an ordinary "
            "attack fares, but nothing better is *proved*. A bound of this size says little by itself, and a smaller "
            "epsilon would be a stronger promise.",
            "",
        ]
    substituted = _substitution(statement)
    if substituted is not None:
        lines += [
            f"That compares {_THERE[unit]} (*add/remove*). Compared with {_OTHER[unit]} (*substitution*) it is "
            f"{substituted}. Compare the numbers of two releases only if they are of one kind.",
            "",
        ]
    if files:
        lines += [*_levels(statements, files), ""]
    lines += ["**Taken for granted:**", "", *(f"- {plain(each)};" for each in statement.assumptions)]
    lines[-1] = lines[-1].removesuffix(";") + "."
    lines += [
        "- Whoever made the vectors had all texts in the clear. He has to be trusted with that; you who read this do "
        "not.",
    ]
    return lines


def _chance(delta: float) -> str:
    return f"at most 1 in {math.floor(1 / delta * (1 + 1e-12)):,}" if delta > 0 else "0"


def _sure(epsilon: float) -> str:
    sure = math.floor(1e4 / (1 + math.exp(-min(epsilon, 700.0))) + 1) / 100
    if sure >= 100:
        return "Somebody who held both for equally likely may become as good as certain."
    return (
        f"Delta aside, somebody who held both for equally likely, 50% sure, can be at most {sure:g}% sure afterwards."
    )


def _levels(statements: Mapping[str, PrivacyStatement], files: Mapping[str, str]) -> list[str]:
    lines = [
        how_levels(next(iter(statements.values()))),
        "",
        "| level | epsilon | delta | times likelier, at most | under substitution, within the level | statement |",
        "|---|---|---|---|---|---|",
    ]
    for level, each in statements.items():
        lines.append(
            f"| {plain(level)} | {at_most(each.epsilon, 4)} | {at_most(_delta(each), 3)} | {odds(each.epsilon)} | "
            f"{_substitution(each) or ''} | [{files[level]}]({files[level]}) |"
        )
    return lines


def _not_promised(statement: PrivacyStatement) -> list[str]:
    lines = [
        "## What is not promised",
        "",
        "- **What many people say.** If many of them use a word in the same way, the vectors show it: that is what "
        "they are for. Such a conclusion may well be true of somebody whose texts were never used.",
        "- **The list of words.** " + _words(statement),
    ]
    if statement.unit is Unit.USER:
        lines.append(
            "- **What others wrote about somebody.** Protected is who *wrote*; whoever is named by many is not."
        )
    if statement.parameters.get("public_vectors") is not None:
        kind = "What was public before.** These vectors start from public ones"
        if _released_before(statement):
            kind = "What was released before.** These vectors start from others"
        lines.append(
            f"- **{kind}: what those show of the people and the prejudices in their own texts, these show too."
        )
    if statement.unit is Unit.USER:
        lines.append(
            "- **Names.** Somebody who wrote under two names counts as two people, and people who share one as one."
        )
    else:
        much = "documents somebody wrote" if statement.unit is Unit.DOCUMENT else "somebody wrote"
        lines.append(f"- **People.** The more {much}, the more the vectors may tell of him.")
    return [*lines, "- **Further releases** from the same texts: see *Passing it on*."]


def _words(statement: PrivacyStatement) -> str:
    new = statement.parameters.get("new_words")
    before = _released_before(statement)
    if new is None and before:
        return "It is that of vectors which were released before, under a promise that is counted in above."
    if new is None:
        return "It was public beforehand: that a word is in it does not say that anybody used it."
    first = (
        "Most were released before, under a promise that is counted in above."
        if before
        else "Most are from a public list: that such a word is in it does not say that anybody used it."
    )
    return (
        f"{first} Those after them ({new:,}) are words of these people, chosen under a promise of their own "
        f"({statement.parameters.get('promise_of_vocabulary')}), which is counted in above. Most stand there because "
        "several people wrote them; that one stands there which a given person alone wrote has a probability of at "
        "most the delta of that promise."
    )


def _released_before(statement: PrivacyStatement) -> bool:
    """Whether the vectors that these start from were learned from people as well."""
    return statement.parameters.get("promise_of_vectors") is not None


def _use(word2vec: str | None) -> list[str]:
    lines = [
        "## How to use it",
        "",
        "Run from within this folder. `<unk>` stands for all words that have no vector.",
        "",
        "With dptext (`pip install dptext`), which checks the files and keeps the promise with the vectors:",
        "",
        "```python",
        "import dptext",
        "",
        'vectors = dptext.load_vectors(".")',
        "print(vectors.words[:5], vectors[vectors.words[0]])",
        "print(vectors.statement.explain())  # the promise in words",
        "```",
        "",
    ]
    if word2vec is not None:
        lines += [
            "With gensim:",
            "",
            "```python",
            "from gensim.models import KeyedVectors",
            "",
            f'vectors = KeyedVectors.load_word2vec_format("{word2vec}", binary={word2vec.endswith(".bin")})',
            "print(vectors.most_similar(vectors.index_to_key[0]))",
            "```",
            "",
        ]
    return [
        *lines,
        "With numpy and safetensors alone:",
        "",
        "```python",
        "from pathlib import Path",
        "",
        "import numpy as np",
        "from safetensors.numpy import load_file",
        "",
        'words = Path("words.txt").read_text(encoding="utf-8").split("\\n")[:-1]',
        'matrix = load_file("vectors.safetensors")["vectors"]  # a row for each word',
        "unit = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)",
        "nearest = np.argsort(-unit @ unit[0])[:10]",
        "print([words[row] for row in nearest])  # most like the first word",
        "```",
    ]


def _made_from(vectors: WordVectors, statement: PrivacyStatement) -> list[str]:
    said = statement.parameters
    public = said.get("public_vectors")
    lines = ["## What it was made from", ""]
    if public is None:
        lines.append("- **Public vectors:** none. Everything in these vectors comes from the texts.")
    elif _released_before(statement):
        lines.append(
            f"- **Vectors to start from:** {plain(str(public))} (fingerprint `{said.get('public_vectors_sha256')}`), "
            f"released before: {said['promise_of_vectors']}, which is counted in above."
        )
    else:
        lines.append(
            f"- **Public vectors:** {plain(str(public))} (fingerprint `{said.get('public_vectors_sha256')}`). They "
            "have a licence of their own, which may hold for what is made from them: ask whoever gave you this folder, "
            "if it does not stand beside these files."
        )
    return [*lines, *how_made(vectors, statement)]


def _trust(statement: PrivacyStatement) -> list[str]:
    public = statement.parameters.get("public_vectors")
    lines = [
        "## How far to trust the vectors",
        "",
        "Noise hides people, and with them what few people say: a rare word, or a rare meaning of a frequent one, has "
        "learned little. Test them on the task that you have.",
    ]
    if public is None:
        return [*lines, "", "Compare with public vectors on the same task: these have to be better to be worth it."]
    if _released_before(statement):
        return [*lines, "", "Where the texts said too little, a word kept the vector that it started from."]
    lines += [
        "",
        "Where the texts said too little, a word kept its public vector, so a good score does not yet mean that "
        "anything was learned. Put the numbers that you get *without* private texts beside those that you get with "
        "them: not those of the public vectors as they are published, but after the same preparation "
        "(`dptext.embeddings.refinement.public_base`), which helps by itself.",
    ]
    if public not in KNOWN_VECTORS:
        return lines
    count = _public_words(statement)
    return [
        *lines,
        "",
        "```python",
        "import dptext",
        "from dptext.embeddings.refinement import public_base",
        "",
        f'public = dptext.load_vectors("{public}", limit={count})',
        "without = public_base(public.matrix, public.vocabulary.unknown_row)  # row i: public.words[i]",
        "```",
    ]


def _passing_on(statement: PrivacyStatement) -> list[str]:
    return [
        "## Passing it on",
        "",
        "- The promise holds for whatever is computed from these files, however often and by whom. Keep "
        "`privacy.json` with them: without it nobody can know what was promised, and they would pass for public.",
        f"- Another release from the texts of the same {_PEOPLE[statement.unit]} **adds up** with this one: two with "
        "epsilon 8 promise 16. Only whoever holds the texts can count that.",
        "- If you privatize *texts* with these vectors (`dptext.TEM`, `dptext.Madlib`) and their authors may have been "
        "among the people above, both losses add up for them: `dptext.statement_with_training` has the sum.",
    ]


_PEOPLE = {Unit.USER: "people", Unit.DOCUMENT: "documents", Unit.EXAMPLE: "people"}


def _files(files: Mapping[str, str], word2vec: str | None) -> list[str]:
    rows = [
        ("vectors.safetensors", "the vectors: one tensor, `vectors`, float32, a row a word"),
        ("words.txt", "the words, in the order of the rows"),
        ("config.json", "sizes, and SHA-256 of words with vectors and of the statements: dptext checks them"),
        ("privacy.json", "what is promised to everybody: the statement behind this card"),
        *((file, f"what is promised to people of the level {plain(level)}") for level, file in files.items()),
    ]
    if word2vec is not None:
        rows.append((word2vec, "the same vectors in the format of word2vec; it holds no statement"))
    return ["## Files", "", "| file | what it is |", "|---|---|", *(f"| {name} | {what} |" for name, what in rows)]


def _cite(statement: PrivacyStatement) -> list[str]:
    return [
        "## Name it",
        "",
        f"Word vectors, release {statement.release_id}, made with {statement.software}: epsilon "
        f"{at_most(statement.epsilon, 4)}, delta {at_most(_delta(statement), 3)}, per {statement.unit}, "
        f"{statement.relation}. {whose_method(statement)}",
    ]


def _delta(statement: PrivacyStatement) -> float:
    return float(getattr(statement.guarantee, "delta", 0.0))


def _substitution(statement: PrivacyStatement) -> str | None:
    epsilon, delta = (statement.parameters.get(name) for name in OF_SUBSTITUTION)
    if not isinstance(epsilon, float) or not isinstance(delta, float):
        return None
    return f"epsilon {at_most(epsilon, 4)}, delta {at_most(delta, 3)}"


def _public_words(statement: PrivacyStatement) -> int:
    words, new = (statement.parameters.get(name) or 0 for name in ("words", "new_words"))
    return int(words) - int(new)
