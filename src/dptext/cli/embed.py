"""``dptext embed``: texts of people in, word vectors to share and their statement out."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.cli.console import ConfigOption, JsonOption, QuietOption, VerboseOption, reading_bar, say
from dptext.cli.places import is_pipe
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.plan import WINDOW, Plan
from dptext.embeddings.promise import statement_of, under_substitution
from dptext.embeddings.sharing import Word2VecFormat, check_copy, check_place
from dptext.errors import ParameterError
from dptext.privacy.guarantee import ApproxDP, Guarantee, at_most, compose, substitution_from_add_remove
from dptext.privacy.public_users import DeltaWarning, delta_too_large
from dptext.text.charges import Charges
from dptext.text.documents import DocumentReader, read_documents
from dptext.text.folders import find_files
from dptext.text.private_vocabulary import PrivateVocabulary, private_vocabulary
from dptext.vectors.formats import KNOWN_VECTORS, load_vectors
from dptext.vectors.word_vectors import WordVectors

__all__ = ["embed"]


class UnitName(StrEnum):
    """What the promise is about."""

    USER = "user"
    DOCUMENT = "document"


class Word2Vec(StrEnum):
    """The copy for gensim."""

    BINARY = "binary"
    TEXT = "text"
    NONE = "none"


_COPIES: dict[Word2Vec, Word2VecFormat | None] = {
    Word2Vec.BINARY: "binary",
    Word2Vec.TEXT: "text",
    Word2Vec.NONE: None,
}
_WORDS_PER_USER = 100


def embed(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="IN...",
            help="Files (.txt, .jsonl, .csv, .tsv, each may be .gz or .zst; .parquet), folders, patterns, or - for "
            "standard input. All together make one release.",
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FOLDER", help="A new folder.")],
    text: Annotated[str, typer.Option(help="The column that holds the text.")] = "text",
    user: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that says who wrote a text: who is protected.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Nats: what a user may lose (or --levels).")] = None,
    delta: Annotated[float, typer.Option(help="The probability that this may fail for a user.")] = 1e-6,
    level: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="A public column that says how strictly a user wants to be protected."),
    ] = None,
    levels: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=EPSILON,...", help="What these levels are (instead of --epsilon)."),
    ] = None,
    default_level: Annotated[
        str | None, typer.Option(metavar="NAME", help="The level of users who chose none. Default: the strictest.")
    ] = None,
    vectors: Annotated[
        str,
        typer.Option(
            metavar="NAME|PATH", help=f"Public word vectors to start from: {', '.join(KNOWN_VECTORS)}, file or folder."
        ),
    ] = "glove-6b-50d",
    limit: Annotated[int, typer.Option(help="Use this many of the most frequent words.")] = 50_000,
    new_words: Annotated[
        float | None,
        typer.Option(
            metavar="EPSILON", help="Learn words first that no public list holds; this budget comes on top (opendp)."
        ),
    ] = None,
    new_words_delta: Annotated[float | None, typer.Option(help="The delta for that. Default: --delta.")] = None,
    words_per_user: Annotated[
        int | None, typer.Option(help="How many new words a user may bring. Default: 100.")
    ] = None,
    public_users: Annotated[
        int | None,
        typer.Option(metavar="N", help="A public number that the users do not exceed, to check delta. Never a count."),
    ] = None,
    unit: Annotated[
        UnitName, typer.Option(help="What is protected: a user; or a document, which is no promise to a person.")
    ] = UnitName.USER,
    window: Annotated[int, typer.Option(help="How many words on either side count as context.")] = WINDOW,
    word2vec: Annotated[
        Word2Vec, typer.Option(help="A copy for gensim: vectors.bin, vectors.txt, or none.")
    ] = Word2Vec.BINARY,
    processes: Annotated[int, typer.Option(help="How many processes work; the release does not depend on it.")] = 1,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A ledger that charges every user once, or refuses the release."),
    ] = None,
    in_format: Annotated[
        str | None, typer.Option("--format", metavar="SUFFIX", help="Format of IN where its name does not tell.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeatable noise, for tests and papers only: it voids the promise.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace FOLDER, if it is one that this command wrote.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    _verbose: VerboseOption = False,
    _config: ConfigOption = None,
) -> None:
    """Learn word vectors from texts of people, and write a FOLDER that can be shared: vectors, statement, card."""
    files = [path for path, _ in find_files(sources, any_format=in_format is not None)]
    _check_together(user=user, unit=unit, level=level, levels=levels, epsilon=epsilon, default_level=default_level)
    _check_new_words(new_words, new_words_delta, words_per_user, unit=unit, seed=seed)
    if any(map(is_pipe, files)) and (new_words is not None or ledger is not None):
        given = "--new-words" if new_words is not None else "--ledger"
        raise ParameterError(f"{given} reads the input twice, and what went through a pipe is gone: name files as IN")
    if ledger is not None and seed is not None:
        raise ParameterError("a seed voids the promise, and a ledger counts promises: leave one of the two out")
    place = check_place(out, replace=force)

    def read() -> DocumentReader:
        kept = () if level is None else (level,)
        return read_documents(files, text=text, user=user, keep=kept, suffix=in_format)

    readings: list[list[bytes]] = []

    def compared(reader: DocumentReader) -> DocumentReader:
        if ledger is not None:  # what it charges is a reading of its own
            readings.append(seen := [])
            reader.watch(lambda block: seen.append(block.identity()))
        return reader

    reader = read()  # what can fail fails before the work starts
    charges = Charges(ledger, user if ledger is not None else None)
    public = load_vectors(vectors, limit=limit)
    check_copy(public.words, _COPIES[word2vec])
    budget: Any = epsilon if levels is None else parse_levels(levels)
    how: dict[str, Any] = {"epsilon": budget, "delta": delta, "unit": unit.value, "default_level": default_level}
    how |= {"window": window}
    plan = Plan.of(public, **how)
    more = None if new_words is None else ApproxDP(new_words, delta if new_words_delta is None else new_words_delta)
    promises = _promises(plan, more, seeded=seed is not None)
    say(_promise_before_start(plan, public, promises, more, user), quiet=quiet)
    _warn_of_delta(max(each.delta for each in promises.values()), public_users, quiet=quiet)
    vocabulary = None
    if more is not None:
        most = _WORDS_PER_USER if words_per_user is None else words_per_user
        vocabulary = _learn(compared(read()), more, most, public, processes, quiet=quiet)
    model = Cooccurrence(
        public, **how, level=level, vocabulary=vocabulary, public_users=public_users, processes=processes, seed=seed
    )
    with reading_bar("reading", "adding up", quiet=quiet) as show, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)  # said already
        _watched(reader, show)
        model.fit(compared(reader))
    release_id = model.statement_.release_id
    assert release_id is not None
    try:
        if ledger is not None:
            charges.reserve(release_id, model.statement_, read())
            for seen in readings:
                charges.check_same(seen)
            charges.settle(release_id)
        model.save(place, word2vec=_COPIES[word2vec], replace=force)
    except BaseException:
        charges.void(release_id)  # unless it is settled
        raise
    _tell(model, out, quiet=quiet)
    if as_json:
        typer.echo(json.dumps(_summary(model, out), ensure_ascii=False))


def _check_together(
    *,
    user: str | None,
    unit: UnitName,
    level: str | None,
    levels: Sequence[str] | None,
    epsilon: float | None,
    default_level: str | None,
) -> None:
    """Which options belong together.

    Raises:
        ParameterError: one is missing, or one too many.
    """
    if unit is UnitName.USER and user is None:
        raise ParameterError(
            "say who wrote a text, and so who is protected: --user COLUMN (or protect single documents, which is no "
            "promise to a person: --unit document)"
        )
    if unit is UnitName.DOCUMENT and user is not None:
        raise ParameterError(
            "--unit document promises nothing to a user: leave --user out, or protect users (--unit user)"
        )
    if levels and epsilon is not None:
        raise ParameterError("--levels hold the epsilons: leave --epsilon out")
    if not levels and epsilon is None:
        raise ParameterError("say what a user may lose: --epsilon 8 (nats), or --level COLUMN --levels strict=1,open=8")
    if bool(levels) != (level is not None):
        raise ParameterError("--level COLUMN says which level a user has, --levels what it means: give both")
    if default_level is not None and not levels:
        raise ParameterError("--default-level is one of the --levels: give these too")


def _check_new_words(
    new_words: float | None, delta: float | None, words_per_user: int | None, *, unit: UnitName, seed: int | None
) -> None:
    if new_words is None:
        if delta is not None or words_per_user is not None:
            raise ParameterError("--new-words-delta and --words-per-user belong to --new-words EPSILON: give it too")
        return
    if words_per_user is not None and words_per_user < 1:
        raise ParameterError(f"--words-per-user must be at least 1, got {words_per_user}")
    if unit is UnitName.DOCUMENT:
        raise ParameterError("new words are learned under a promise to users: leave out --new-words or --unit document")
    if seed is not None:
        raise ParameterError("the noise on new words takes no seed: leave out --new-words or --seed")


def parse_levels(given: Sequence[str]) -> dict[str, float]:
    """``["strict=1,open=8"]`` as ``{"strict": 1.0, "open": 8.0}``.

    Raises:
        ParameterError: no name, no number, or a name twice.
    """
    found: dict[str, float] = {}
    for each in (part for one in given for part in one.split(",")):
        name, sign, value = (part.strip() for part in each.rpartition("="))
        try:
            epsilon = float(value)
        except ValueError:
            sign = ""
        if not sign or not name or name in found:
            raise ParameterError("--levels expects NAME=EPSILON,NAME=EPSILON,..., each name once, got something else")
        found[name] = epsilon
    return found


def _learn(
    reader: DocumentReader, budget: ApproxDP, words_per_user: int, public: WordVectors, processes: int, *, quiet: bool
) -> PrivateVocabulary:
    """The words that no public list holds."""
    with reading_bar("new words", "choosing new words", quiet=quiet) as show, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)  # said already, of all together
        _watched(reader, show)
        return private_vocabulary(
            reader,
            epsilon=budget.epsilon,
            delta=budget.delta,
            words_per_user=words_per_user,
            known=public.vocabulary,
            processes=processes,
        )


def _watched(reader: DocumentReader, show: Callable[[DocumentReader], None]) -> None:
    reader.watch(lambda _block: show(reader))


# -- what is said ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Promise:
    """What a user of a level is promised, all counted in."""

    epsilon: float
    delta: float
    substituted: ApproxDP


def _promises(plan: Plan, more: ApproxDP | None, *, seeded: bool) -> dict[str, _Promise]:
    """By level, before anything is read.

    Raises:
        RefusedError: the vectors were released under a statement that cannot be added.
    """
    found = {}
    for level in plan.budgets.levels:
        statement = statement_of(plan, level, seeded=seeded)
        promise: Guarantee = statement.guarantee
        substituted: Guarantee = under_substitution(plan, level)
        if more is not None:
            promise, substituted = compose(promise, more), compose(substituted, substitution_from_add_remove(more))
        assert isinstance(promise, ApproxDP)
        assert isinstance(substituted, ApproxDP)
        found[level] = _Promise(promise.epsilon + statement.slack, promise.delta, substituted)
    return found


def _promise_before_start(
    plan: Plan, public: WordVectors, promises: dict[str, _Promise], more: ApproxDP | None, user: str | None
) -> str:
    """Unit, relation and epsilon, for the person who is about to release something."""
    whose = (
        f"user (all texts of one {user!r})" if plan.unit == "user" else "document (one text; no promise to a person)"
    )
    lines = [
        f"co-occurrences on {public.source} ({len(public):,} words, {public.dimension} dimensions)",
        f"  unit      {whose}; relation: add/remove; central",
    ]
    for level, each in promises.items():
        head = "promise" if len(promises) == 1 else level
        other = each.substituted
        lines += [
            f"  {head:<9} epsilon {at_most(each.epsilon, 4)}, delta {at_most(each.delta, 3)}",
            f"            (under substitution epsilon {at_most(other.epsilon, 4)}, delta {at_most(other.delta, 3)})",
        ]
    if more is not None:
        lines.append(f"  of that   epsilon {at_most(more.epsilon, 4)}, delta {at_most(more.delta, 3)} for new words")
    return "\n".join(lines)


def _warn_of_delta(delta: float, public_users: int | None, *, quiet: bool) -> None:
    problem = delta_too_large(delta, public_users=public_users)
    if problem is not None:
        say(f"Warning: {problem.replace('public_users=', '--public-users')}.", quiet=quiet)


def _tell(model: Cooccurrence, out: str, *, quiet: bool) -> None:
    """What was written; neither users nor texts are counted: what is printed may be shared, and these are protected."""
    vectors = model.vectors_
    new = model.statement_.parameters.get("new_words")
    say(
        f"Wrote vectors of {len(vectors):,} words{'' if new is None else f' ({new:,} of them new)'} to {out}, and "
        "beside them what was promised and a card (README.md).",
        quiet=quiet,
    )
    say(f"Read it aloud: dptext explain {out}/privacy.json", quiet=quiet)


def _summary(model: Cooccurrence, out: str) -> dict[str, Any]:
    several = len(model.statements_) > 1
    statements = {level: json.loads(each.to_json()) for level, each in model.statements_.items()}
    return {
        "out": out,
        "words": len(model.vectors_),
        "dimension": model.vectors_.dimension,
        "statement": json.loads(model.statement_.to_json()),
        **({"statements": statements} if several else {}),
    }
