"""``dptext embed``: texts of people in, word vectors to share and their statement out."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.cli.console import reading_bar, say, stopped_with_notes
from dptext.cli.embed_methods import Cooccurrences, Learning, Training
from dptext.cli.embed_options import (
    COPIES,
    Method,
    UnitName,
    Word2Vec,
    check_ledger,
    check_new_words,
    check_together,
    parse_levels,
    training_options,
)
from dptext.cli.embed_promises import charge_of, promise_before_start, promises_of, summary, tell, warn_of_delta
from dptext.cli.options import ConfigOption, JsonOption, QuietOption, VerboseOption
from dptext.embeddings.sharing import check_copy, check_place, is_released
from dptext.errors import ParameterError
from dptext.files.documents import DocumentReader, read_documents
from dptext.files.folders import find_files
from dptext.files.formats import is_pipe
from dptext.own_files import check_target
from dptext.privacy.guarantee import ApproxDP
from dptext.privacy.public_users import DeltaWarning
from dptext.privacy.statement import new_release_id
from dptext.release.charges import Charges
from dptext.release.release import charged, end_earlier
from dptext.users.private_vocabulary import PrivateVocabulary, private_vocabulary
from dptext.vectors.formats import KNOWN_VECTORS, load_vectors
from dptext.vectors.word_vectors import WordVectors

__all__ = ["embed"]


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
    method: Annotated[
        Method, typer.Option(help="One noisy release; or skip-gram, step by step, for many users (extra skipgram).")
    ] = Method.COOCCURRENCES,
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
        typer.Option(
            metavar="N",
            help="A public number that the users do not exceed, to check delta; for skip-gram about as many as there "
            "are, by which sums are divided. Never a count.",
        ),
    ] = None,
    unit: Annotated[
        UnitName,
        typer.Option(
            help="What is protected: a user; or a document, or (skip-gram) a pair of words, no promise to a person."
        ),
    ] = UnitName.USER,
    window: Annotated[
        int | None,
        typer.Option(help="How many words on either side count as context. Default: 10; for skip-gram 5."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Of skip-gram. Default: 1000.")] = None,
    sampling_rate: Annotated[
        float | None,
        typer.Option(metavar="RATE", help="The chance of a user to take part in a step of skip-gram. Default: 0.05."),
    ] = None,
    dimension: Annotated[
        int | None,
        typer.Option(help="Start skip-gram at random in so many dimensions, with the words of --vectors alone."),
    ] = None,
    trained_words: Annotated[
        int | None, typer.Option(metavar="N", help="The most frequent words that skip-gram trains. Default: 5000.")
    ] = None,
    pairs: Annotated[
        int | None, typer.Option(help="Pairs of words of a user in a step of skip-gram. Default: 500.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep where skip-gram has come to: private, deleted at the end.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint, if it is there.")] = False,
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
    check_together(
        user=user, unit=unit, method=method, level=level, levels=levels, epsilon=epsilon, default_level=default_level
    )
    check_new_words(new_words, new_words_delta, words_per_user, unit=unit, seed=seed)
    of_training: dict[str, Any] = {"steps": steps, "sampling_rate": sampling_rate, "dimension": dimension}
    of_training |= {"trained_words": trained_words, "pairs": pairs, "checkpoint": checkpoint, "resume": resume}
    of_training = training_options(method, of_training, new_words=new_words)
    if any(map(is_pipe, files)) and (new_words is not None or ledger is not None):
        given = "--new-words" if new_words is not None else "--ledger"
        raise ParameterError(f"{given} reads the input twice, and what went through a pipe is gone: name files as IN")
    if ledger is not None:
        check_ledger(unit=unit, seed=seed, checkpoint=checkpoint)
    charges = Charges(ledger, user if ledger is not None else None)

    def is_out(name: str) -> bool:
        return is_released(out, name)

    end_earlier(Path(out), charges, is_out, restart=force)
    place = check_place(out, replace=force)
    if checkpoint is not None:
        never = {"IN": files, "the ledger": [] if ledger is None else [ledger], "OUT": [place]}
        check_target(checkpoint, replace=resume, apart_from=never, by="go on from it with --resume")

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
    public = load_vectors(vectors, limit=limit)
    check_copy(public.words, COPIES[word2vec])
    how: dict[str, Any] = {"epsilon": epsilon if levels is None else parse_levels(levels), "delta": delta}
    how |= {"unit": unit.value, "level": level, "default_level": default_level, "window": window}
    learning: Learning
    if method is Method.SKIP_GRAM:
        learning = Training(public, **how, public_users=public_users, options=of_training)
    else:
        learning = Cooccurrences(public, **how)
    more = None if new_words is None else ApproxDP(new_words, delta if new_words_delta is None else new_words_delta)
    promises = promises_of(learning, more, seeded=seed is not None)
    say(promise_before_start(learning, promises, more, user), quiet=quiet)
    warn_of_delta(max(each.delta for each in promises.values()), public_users, quiet=quiet)
    release_id = new_release_id()
    # what can be interrupted and resumed has no ledger, and its notes are of its own
    with stopped_with_notes(), charged(place, charges, release_id, lambda: charge_of(learning, more), read, is_out):
        vocabulary = None
        if more is not None:
            most = _WORDS_PER_USER if words_per_user is None else words_per_user
            vocabulary = _learn(compared(read()), more, most, public, processes, quiet=quiet)
        options = {"public_users": public_users, "processes": processes, "seed": seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeltaWarning)  # said already
            model = learning.fit(compared(reader), vocabulary, options, release_id=release_id, quiet=quiet)
        for seen in readings:
            charges.check_same(seen)
        model.save(place, word2vec=COPIES[word2vec], replace=force)
    tell(model, out, quiet=quiet)
    if as_json:
        typer.echo(json.dumps(summary(model, out), ensure_ascii=False))


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
