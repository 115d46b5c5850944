"""``dptext embed``: learn word vectors from private texts, and write a folder to share."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dptext.cli import options
from dptext.cli.console import print_json, progress_bar, resumable
from dptext.cli.options import input_option, method_option, output_option, privacy_option, run_option
from dptext.cli.outputs import announce, shell_argument
from dptext.cli.plans import EmbeddingModel, describe_plan, plan_embedding, print_vector_plan, total_guarantees
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.participation import Unit
from dptext.embeddings.sharing import Word2VecFormat, check_copy, check_place
from dptext.embeddings.skipgram import Progress
from dptext.errors import DataError, ParameterError
from dptext.io.atomic import check_target
from dptext.io.batches import is_pipe
from dptext.io.documents import DocumentReader, find_files, read_documents
from dptext.privacy.budgets import DeltaWarning, delta_too_large
from dptext.privacy.guarantee import ApproxDP, at_most, compose
from dptext.privacy.statement import new_release_id
from dptext.privacy.wording import cautioned_of, render
from dptext.release.run import Charges, charged
from dptext.users.private_vocabulary import PrivateVocabulary, private_vocabulary
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors

_WORDS_PER_USER = 100
_EPSILON_UPDATES = 20  # of the progress bar: each takes some tenths of a second


@dataclass(frozen=True, kw_only=True)
class ProtectionOptions:
    """The privacy unit and its budget."""

    user: str | None = options.USER
    unit: Unit = privacy_option("user", "Privacy unit: a user, a document, or (skip-gram) a pair of words.")
    epsilon: float | None = privacy_option(None, "Privacy budget (epsilon) per user (or --levels).")
    delta: float = options.DELTA
    level: str | None = privacy_option(
        None, "Public column with the privacy level of each user. Users without one get the strictest.", "COLUMN"
    )
    levels: tuple[str, ...] = privacy_option((), "Epsilon of each level, instead of --epsilon.", "NAME=EPSILON,...")
    new_words: float | None = privacy_option(
        None, "First learn words that no public list holds; this budget is added (extra opendp).", "EPSILON"
    )
    public_users: int | None = options.PUBLIC_USERS

    @property
    def budget(self) -> Any:
        return parse_levels(self.levels) if self.levels else self.epsilon

    @property
    def word_budget(self) -> ApproxDP | None:
        return None if self.new_words is None else ApproxDP(self.new_words, self.delta)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How vectors are learned."""

    method: Literal["co-occurrences", "skip-gram"] = method_option(
        "co-occurrences", "One noisy release of co-occurrences, or DP-SGD for many users (extra skipgram)."
    )
    vectors: str = options.VECTORS
    limit: int = options.LIMIT
    steps: int = method_option(1000, "Skip-gram: number of training steps.", "N")
    sampling_rate: float = method_option(0.05, "Skip-gram: chance that a user takes part in a step.", "RATE")
    checkpoint: Path | None = run_option(
        None, "Skip-gram: checkpoint for --resume. It is private, and deleted at the end.", "FILE"
    )


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Public numbers and texts that predict the quality."""

    plan: bool = options.PLAN
    people: int | None = options.PEOPLE
    public: tuple[Path, ...] = input_option((), "Public texts to simulate users with, for --plan (repeatable).", "FILE")


def embed(
    *,
    texts: options.OptionalInputs,
    out: str | None = output_option(None, "Output folder.", "FOLDER", "--out", "-o"),
    protection: ProtectionOptions,
    training: TrainingOptions,
    planning: PlanOptions,
    run: options.Run,
    processes: int = options.PROCESSES,
    ledger: Path | None = options.LEDGER,
    yes: bool = options.YES,
    output: options.Output,
) -> None:
    """Learn word vectors from private texts, and write a folder that can be shared.

    The folder holds vectors (also vectors.bin for gensim), a privacy statement and a card. All files of IN together
    make one release.

    Example: dptext embed notes.csv -o vectors --text note --user author --epsilon 8
    """
    if planning.plan:
        print_vector_plan(planning, texts, protection, training, output)
        return
    if not texts.sources or out is None:
        raise ParameterError("IN and --out FOLDER are required (unless --plan is given)")
    files = [path for path, _ in find_files(texts.sources, any_format=texts.in_format is not None)]
    _check(protection, training, planning, run, has_ledger=ledger is not None, has_pipe=any(map(is_pipe, files)))
    charges = Charges(ledger, protection.user if ledger is not None else None)
    place = check_place(out, replace=run.force)
    if training.checkpoint is not None:
        others = {"IN": files, "the ledger": [] if ledger is None else [ledger], "OUT": [place]}
        check_target(training.checkpoint, replace=run.resume, apart_from=others, by="resume it with --resume")

    def read() -> DocumentReader:
        keep = [] if protection.level is None else [protection.level]
        return read_documents(files, text=texts.text, user=protection.user, keep=keep, **texts.layout)

    reader = read()  # raises for a missing file or column
    public = load_vectors(training.vectors, limit=training.limit)
    word2vec: Word2VecFormat | None = "binary"
    try:
        check_copy(public.words, word2vec)
    except DataError as error:
        word2vec = None
        reason = str(error).partition(", or make no copy")[0]
        output.say(f"Note: no copy for gensim (vectors.bin) is written: {reason}.")
    plan, build = plan_embedding(protection, training, public)
    new_words = protection.word_budget
    levels = total_guarantees(plan, new_words, seeded=run.seed is not None)
    title, *details = describe_plan(plan, public)
    owner = {"unit": protection.unit, "user": protection.user}
    guarantee = render("before_embedding", head=title, further=details, promises=levels, more=new_words, **owner)
    statements = (
        plan.statement(level, seeded=False).replace(guarantee=ApproxDP(total.epsilon, total.delta))
        for level, total in levels.items()
    )
    caution = cautioned_of(statements, source=shell_argument(texts.sources[0]))
    announce(guarantee, caution, yes=yes, asks=not run.resume, output=output)
    problem = delta_too_large(max(total.delta for total in levels.values()), public_users=protection.public_users)
    if problem is not None:
        output.say(f"Warning: {problem.replace('public_users=', '--public-users')}.")
    release_id = new_release_id()
    with resumable(), charged(charges, release_id), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)  # printed above
        if ledger is not None:
            statement = plan.statement(plan.levels.most, seeded=False)
            total_cost = statement.guarantee if new_words is None else compose(statement.guarantee, new_words)
            terms = {name: getattr(statement, name) for name in ("unit", "relation", "mechanism")}
            charges.reserve(release_id, total_cost, read(), **terms)
        vocabulary = None
        if new_words is not None:
            vocabulary = _learn_words(charges.track(read()), new_words, public, processes, quiet=output.quiet)
        model = build(vocabulary=vocabulary, public_users=protection.public_users, processes=processes, seed=run.seed)
        _fit(model, charges.track(reader), training.checkpoint, run, release_id=release_id, output=output)
        charges.check(release_id)
        model.save(place, word2vec=word2vec, replace=run.force)
    # neither users nor texts are counted: the message may be shared
    added = model.statement_.parameters.get("new_words")
    output.say(
        f"Wrote vectors of {len(model.vectors_):,} words{'' if added is None else f' ({added:,} of them new)'} to "
        f"{out}, with the privacy statement (privacy.json) and a card (README.md).\n"
        f"To explain it: dptext explain {out}"
    )
    for doubt in model.doubts_:
        output.say(f"Note: {doubt}.")
    if output.as_json:
        data = {level: json.loads(statement.to_json()) for level, statement in model.statements_.items()}
        print_json({
            "out": out,
            "words": len(model.vectors_),
            "dimension": model.vectors_.dimension,
            "statement": json.loads(model.statement_.to_json()),
            **({"statements": data} if len(data) > 1 else {}),
        })  # fmt: skip


def _check(
    protection: ProtectionOptions,
    training: TrainingOptions,
    planning: PlanOptions,
    run: options.Run,
    *,
    has_ledger: bool,
    has_pipe: bool,
) -> None:
    """Raise for options that do not go together, before anything is read."""
    is_skipgram, learns_words = training.method == "skip-gram", protection.new_words is not None
    flags = options.changed_flags(training, "steps", "sampling_rate", "checkpoint") + ["--resume"] * run.resume
    second_reader = "--new-words" if learns_words else "--ledger"
    checks = {
        "--people and --public are for --plan: add --plan, or leave them out": planning.people or planning.public,
        "--unit pair is for --method skip-gram": protection.unit == "pair" and not is_skipgram,
        "--levels hold the epsilons: leave --epsilon out": protection.levels and protection.epsilon is not None,
        options.EPSILON_REQUIRED: not protection.levels and protection.epsilon is None,
        "--level COLUMN and --levels NAME=EPSILON,... must be given together": (
            bool(protection.levels) != (protection.level is not None)
        ),
        f"{', '.join(flags)} is for --method skip-gram: add it, or leave out {' '.join(flags)}": (
            flags and not is_skipgram
        ),
        "--resume needs --checkpoint FILE of the interrupted run": run.resume and training.checkpoint is None,
        "--new-words protects users only: use --unit user": learns_words and protection.unit != "user",
        "--new-words takes no seed: leave out --seed": learns_words and run.seed is not None,
        "--new-words draws new words in every run: leave out --checkpoint": learns_words and training.checkpoint,
        f"{second_reader} reads the input twice, which a pipe does not allow: name files as IN": (
            has_pipe and (learns_words or has_ledger)
        ),
        "--ledger charges guarantees, and a seed voids them: leave out --seed": has_ledger and run.seed is not None,
        "--ledger charges users or documents: leave it out with --unit pair": has_ledger and protection.unit == "pair",
        "--ledger charges the users of the final input, and steps before an interruption may have used others: leave "
        "out --checkpoint": has_ledger and training.checkpoint,
    }
    options.check_all(checks)
    options.check_user(protection.unit, protection.user)


def parse_levels(levels: Sequence[str]) -> dict[str, float]:
    """Return ``["strict=1,open=8"]`` as ``{"strict": 1.0, "open": 8.0}``."""
    parsed: dict[str, float] = {}
    for part in (part for level in levels for part in level.split(",")):
        name, _, value = (piece.strip() for piece in part.rpartition("="))
        try:
            epsilon = float(value)
        except ValueError:
            name = ""
        if not name or name in parsed:
            raise ParameterError("--levels expects NAME=EPSILON,NAME=EPSILON,..., each name once, got something else")
        parsed[name] = epsilon
    return parsed


def _learn_words(
    reader: DocumentReader, budget: ApproxDP, public: WordVectors, processes: int, *, quiet: bool
) -> PrivateVocabulary:
    with progress_bar("new words", quiet=quiet) as bar:
        reader.watch(lambda _block: bar.reading(reader, "choosing new words", "new words"))
        return private_vocabulary(
            reader,
            epsilon=budget.epsilon,
            delta=budget.delta,
            words_per_user=_WORDS_PER_USER,
            known=public.vocabulary,
            processes=processes,
        )


def _fit(
    model: EmbeddingModel,
    reader: DocumentReader,
    checkpoint: Path | None,
    run: options.Run,
    *,
    release_id: str,
    output: options.Output,
) -> None:
    """Fit the model, with a progress bar; an interrupt with a checkpoint says how to resume."""
    with progress_bar("reading", quiet=output.quiet) as bar:
        next_task = "adding up" if isinstance(model, Cooccurrence) else "grouping by user"
        reader.watch(lambda _block: bar.reading(reader, next_task))
        if isinstance(model, Cooccurrence):
            model.fit(reader, release_id=release_id)
            return
        spent = 0.0

        def show(state: Progress) -> None:
            nonlocal spent
            if not bar.is_visible:
                return
            if state.step % max(1, state.steps // _EPSILON_UPDATES) == 0 or state.step == state.steps:
                spent = state.epsilon
            bar.step(state.step, state.steps, f"training, epsilon {at_most(spent, 3)} spent")

        try:
            model.fit(reader, progress=show, release_id=release_id, checkpoint=checkpoint, resume=run.resume)
        except KeyboardInterrupt as error:
            if checkpoint is not None and checkpoint.exists():
                error.add_note(f"nothing is released yet; to resume from {checkpoint} (private), add --resume")
            raise
