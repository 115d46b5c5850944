"""``dptext embed``: texts of people in, word vectors to share and their statement out."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from dptext.cli import options
from dptext.cli.console import print_json, progress_bar, stopped_with_notes
from dptext.cli.options import input_option, method_option, output_option, privacy_option, run_option
from dptext.cli.outputs import as_input, begin
from dptext.cli.plans import plan_vectors
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.participation import Unit, personal_participation
from dptext.embeddings.plan import ReleasePlan
from dptext.embeddings.sharing import Word2VecFormat, check_copy, check_place
from dptext.embeddings.skipgram import Progress, SkipGram, SkipGramPlan
from dptext.errors import DataError, ParameterError
from dptext.io.atomic import check_target
from dptext.io.batches import is_pipe
from dptext.io.documents import DocumentReader, find_files, read_documents
from dptext.privacy.budgets import DeltaWarning, delta_too_large
from dptext.privacy.guarantee import ApproxDP, Guarantee, at_most, compose, substitution_from_add_remove
from dptext.privacy.statement import new_release_id
from dptext.privacy.wording import before_embedding, cautioned_of
from dptext.release.run import Charges, charged
from dptext.users.private_vocabulary import PrivateVocabulary, private_vocabulary
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors

Model: TypeAlias = Cooccurrence | SkipGram
_WORDS_PER_USER = 100
_SHOWN = 20  # times in a training, what was spent is worked out: each takes some tenths of a second


@dataclass(frozen=True, kw_only=True)
class ProtectionOptions:
    """Who is protected, and how strongly."""

    user: options.User = None
    unit: Annotated[Unit, privacy_option(help="Privacy unit: a user, a document, or (skip-gram) a pair of words.")] = (
        "user"
    )
    epsilon: Annotated[float | None, privacy_option(help="Privacy budget (epsilon) per user (or --levels).")] = None
    delta: options.Delta = 1e-6
    level: Annotated[
        str | None,
        privacy_option(
            metavar="COLUMN",
            help="Public column with the privacy level of each user. Users without one get the strictest.",
        ),
    ] = None
    levels: Annotated[
        tuple[str, ...], privacy_option(metavar="NAME=EPSILON,...", help="Epsilon of each level, instead of --epsilon.")
    ] = ()
    new_words: Annotated[
        float | None,
        privacy_option(
            metavar="EPSILON", help="First learn words that no public list holds; this budget is added (extra opendp)."
        ),
    ] = None
    public_users: Annotated[
        int | None,
        privacy_option(
            metavar="N",
            help="Public upper bound on the number of users: delta is checked against it, and skip-gram divides by it. "
            "Do not count the private data.",
        ),
    ] = None

    def check(self, method: str) -> None:
        options.check_user(self.unit, self.user)
        if self.unit == "pair" and method != "skip-gram":
            raise ParameterError("--unit pair is for --method skip-gram; one release protects users or documents")
        if self.levels and self.epsilon is not None:
            raise ParameterError("--levels hold the epsilons: leave --epsilon out")
        if not self.levels and self.epsilon is None:
            raise ParameterError(options.EPSILON_REQUIRED)
        if bool(self.levels) != (self.level is not None):
            raise ParameterError("--level COLUMN and --levels NAME=EPSILON,... belong together: give both")

    def check_new_words(self, *, seed: int | None, checkpoint: Path | None) -> None:
        if self.new_words is None:
            return
        if self.unit != "user":
            raise ParameterError(f"--new-words protects users: leave out --new-words or --unit {self.unit}")
        if seed is not None:
            raise ParameterError("the noise on new words takes no seed: leave out --new-words or --seed")
        if checkpoint is not None:
            raise ParameterError("every run draws new words afresh: leave out --checkpoint or --new-words")

    @property
    def budgets(self) -> Any:
        return parse_levels(self.levels) if self.levels else self.epsilon

    @property
    def budget_of_words(self) -> ApproxDP | None:
        return None if self.new_words is None else ApproxDP(self.new_words, self.delta)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How vectors are learned."""

    method: Annotated[
        Literal["co-occurrences", "skip-gram"],
        method_option(help="One noisy release of co-occurrences, or DP-SGD for many users (extra skipgram)."),
    ] = "co-occurrences"
    vectors: options.Vectors = "glove-6b-50d"
    limit: options.Limit = 50_000
    steps: Annotated[int, method_option(metavar="N", help="Skip-gram: number of training steps.")] = 1000
    sampling_rate: Annotated[
        float, method_option(metavar="RATE", help="Skip-gram: chance that a user takes part in a step.")
    ] = 0.05
    checkpoint: Annotated[
        Path | None,
        run_option(metavar="FILE", help="Skip-gram: checkpoint for --resume. It is private, and deleted at the end."),
    ] = None

    def check(self, *, resume: bool) -> None:
        flags = [*options.given_flags(self, "steps", "sampling_rate", "checkpoint"), *["--resume"] * resume]
        if flags and self.method != "skip-gram":
            raise ParameterError(f"{', '.join(flags)} is for --method skip-gram: add that, or leave it out")
        if resume and self.checkpoint is None:
            raise ParameterError("--resume needs the checkpoint of the interrupted run: --checkpoint FILE")


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is known before a budget is spent: public numbers and public texts."""

    plan: options.Plan = False
    people: options.People = None
    public: Annotated[
        tuple[Path, ...],
        input_option(metavar="FILE", help="Public texts to simulate users with, for --plan (repeatable)."),
    ] = ()


@options.collected
def embed(
    *,
    texts: options.OptionalInputs,
    out: Annotated[str | None, output_option("--out", "-o", metavar="FOLDER", help="Output folder.")] = None,
    protection: ProtectionOptions,
    training: TrainingOptions,
    planning: PlanOptions,
    run: options.Run,
    processes: options.Processes = 1,
    ledger: options.Ledger = None,
    yes: options.Yes = False,
    output: options.Output,
) -> None:
    """Learn word vectors from private texts, and write a folder that can be shared.

    The folder holds vectors (also vectors.bin for gensim), a privacy statement and a card. All files of IN together
    make one release.

    Example: dptext embed notes.csv -o vectors --text note --user author --epsilon 8
    """
    if planning.plan:

        def skip_gram_plan(public: WordVectors) -> SkipGramPlan:
            plan, _ = _planned(public, protection, training)
            assert isinstance(plan, SkipGramPlan)
            return plan

        plan_vectors(planning, texts, protection, training, skip_gram_plan, output)
        return
    if planning.people is not None or planning.public:
        raise ParameterError("--people and --public are for --plan: add --plan, or leave them out")
    if not texts.sources or out is None:
        raise ParameterError("IN and --out FOLDER are required (unless --plan is given)")
    files = [path for path, _ in find_files(texts.sources, any_format=texts.in_format is not None)]
    protection.check(training.method)
    protection.check_new_words(seed=run.seed, checkpoint=training.checkpoint)
    training.check(resume=run.resume)
    if any(map(is_pipe, files)) and (protection.new_words is not None or ledger is not None):
        name = "--new-words" if protection.new_words is not None else "--ledger"
        raise ParameterError(f"{name} reads the input twice, which a pipe does not allow: name files as IN")
    if ledger is not None:
        _check_ledger(protection.unit, run, training)
    charges = Charges(ledger, protection.user if ledger is not None else None)

    place = check_place(out, replace=run.force)
    if training.checkpoint is not None:
        never = {"IN": files, "the ledger": [] if ledger is None else [ledger], "OUT": [place]}
        check_target(training.checkpoint, replace=run.resume, apart_from=never, by="go on from it with --resume")

    def read() -> DocumentReader:
        return read_documents(files, text=texts.text, user=protection.user, keep=kept, **texts.layout)

    kept = [] if protection.level is None else [protection.level]
    reader = read()  # raises for a missing file or column
    public = load_vectors(training.vectors, limit=training.limit)
    copy: Word2VecFormat | None = "binary"
    try:
        check_copy(public.words, copy)
    except DataError as error:
        copy = None
        output.say(
            f"Note: no copy for gensim (vectors.bin) is written: {str(error).partition(', or make no copy')[0]}."
        )
    plan, start = _planned(public, protection, training)
    more = protection.budget_of_words
    promises = _promises(plan, more, seeded=run.seed is not None)
    head, *further = _announced(plan, public)
    promise = before_embedding(
        head=head, further=further, unit=protection.unit, user=protection.user, promises=promises, more=more
    )
    statements = (
        plan.statement(level, seeded=False).replace(guarantee=ApproxDP(each.epsilon, each.delta))
        for level, each in promises.items()
    )
    caution = cautioned_of(statements, source=as_input(texts.sources[0]))
    begin(promise, caution, yes=yes, asks=not run.resume, output=output)
    problem = delta_too_large(max(each.delta for each in promises.values()), public_users=protection.public_users)
    if problem is not None:
        output.say(f"Warning: {problem.replace('public_users=', '--public-users')}.")
    release_id = new_release_id()
    # what can be interrupted and resumed has no ledger, and its notes are of its own
    with stopped_with_notes(), charged(charges, release_id):
        if ledger is not None:
            guarantee, terms = _charge(plan, more)
            charges.reserve(release_id, guarantee, read(), **terms)
        vocabulary = None
        if more is not None:
            vocabulary = _learn(charges.watched(read()), more, public, processes, quiet=output.quiet)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeltaWarning)  # said already
            model = start(
                vocabulary=vocabulary, public_users=protection.public_users, processes=processes, seed=run.seed
            )
            watched = charges.watched(reader)
            _fit(model, watched, training.checkpoint, run, release_id=release_id, output=output)
        charges.check(release_id)
        model.save(place, word2vec=copy, replace=run.force)
    output.say(_written(model, out))
    for doubt in model.doubts_:
        output.say(f"Note: {doubt}.")
    if output.as_json:
        print_json(_summary(model, out))


def _learn(
    reader: DocumentReader,
    budget: ApproxDP,
    public: WordVectors,
    processes: int,
    *,
    quiet: bool,
) -> PrivateVocabulary:
    with progress_bar("new words", quiet=quiet) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)  # said already, of all together
        reader.watch(lambda _block: bar.reading(reader, "choosing new words", "new words"))
        return private_vocabulary(
            reader,
            epsilon=budget.epsilon,
            delta=budget.delta,
            words_per_user=_WORDS_PER_USER,
            known=public.vocabulary,
            processes=processes,
        )


def _check_ledger(unit: Unit, run: options.Run, training: TrainingOptions) -> None:
    if run.seed is not None:
        raise ParameterError("a seed voids the promise, and a ledger counts promises: leave one of the two out")
    if unit == "pair":
        raise ParameterError("a ledger charges users or documents, and nobody can count pairs of words: leave it out")
    if training.checkpoint is not None:
        raise ParameterError(
            "a ledger charges who is in the input when the release appears, and steps before an interruption may have "
            "seen others: leave out --ledger or --checkpoint"
        )


def parse_levels(given: Sequence[str]) -> dict[str, float]:
    """``["strict=1,open=8"]`` as ``{"strict": 1.0, "open": 8.0}``."""
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


# -- the two ways in which vectors are learned -----------------------------------------------------------------


def _planned(
    public: WordVectors,
    protection: ProtectionOptions,
    training: TrainingOptions,
) -> tuple[ReleasePlan, Callable[..., Model]]:
    """All that is decided before a text is read, and what makes the model: called with new words and how it is run."""
    how: dict[str, Any] = {"unit": protection.unit, "level": protection.level, "delta": protection.delta}
    epsilon = protection.budgets
    if training.method != "skip-gram":
        how["epsilon"] = epsilon
        return Cooccurrence(public, **how).plan(), partial(Cooccurrence, public, **how)
    costs: dict[str, Any] = {"steps": training.steps, "sampling_rate": training.sampling_rate}
    if isinstance(epsilon, dict):
        epsilon = personal_participation(epsilon, delta=protection.delta, **costs)
    plan = SkipGram(public, epsilon=epsilon, public_users=protection.public_users, **how, **costs).plan()
    import dptext.embeddings.training  # noqa: F401  # needs numba: said before anything is read

    return plan, partial(SkipGram, public, **how, epsilon=plan.participation)  # found once: it takes a second


def _announced(plan: ReleasePlan, public: WordVectors) -> list[str]:
    """What is done, for the person who is about to release something."""
    if not isinstance(plan, SkipGramPlan):
        return [f"co-occurrences on {public.source} ({len(public):,} words, {public.dimension} dimensions)"]
    size = f"({len(plan.words):,} words, {plan.dimension} dimensions)"
    taking_part = plan.participation
    most = "at most " if len(taking_part.rates) > 1 else ""
    often = f"each {plan.unit} in {most}{100 * taking_part.rates[taking_part.most]:.3g}% of them"
    return [
        f"skip-gram from {public.source} {size}",
        f"  training  {taking_part.steps:,} steps, {often}, noise {taking_part.noise_multiplier:g} x bound",
    ]


def _fit(
    model: Model,
    reader: DocumentReader,
    checkpoint: Path | None,
    run: options.Run,
    *,
    release_id: str,
    output: options.Output,
) -> None:
    """Learn, and show how far it is. An interrupt says how to go on, where there is a checkpoint to go on from."""
    with stopped_with_notes(), progress_bar("reading", quiet=output.quiet) as bar:
        if isinstance(model, Cooccurrence):
            reader.watch(lambda _block: bar.reading(reader, "adding up"))
            model.fit(reader, release_id=release_id)
            return
        reader.watch(lambda _block: bar.reading(reader, "grouping by user"))
        spent = 0.0

        def show(at: Progress) -> None:
            nonlocal spent
            if not bar.shown:
                return
            if at.step % max(1, at.steps // _SHOWN) == 0 or at.step == at.steps:
                spent = at.epsilon
            bar.step(at.step, at.steps, f"training, epsilon {at_most(spent, 3)} spent")

        try:
            model.fit(reader, progress=show, release_id=release_id, checkpoint=checkpoint, resume=run.resume)
        except KeyboardInterrupt as error:
            if checkpoint is not None and checkpoint.exists():
                error.add_note(
                    f"nothing is released yet; what is done is kept in {checkpoint} (private): run the same command "
                    "with --resume to go on"
                )
            raise


# -- what is promised ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Promise:
    """What a user of a level is promised, all counted in."""

    epsilon: float
    delta: float
    substituted: ApproxDP


def _promises(plan: ReleasePlan, more: ApproxDP | None, *, seeded: bool) -> dict[str, Promise]:
    found = {}
    for level in plan.levels.shares:
        statement = plan.statement(level, seeded=seeded)
        promise: Guarantee = statement.guarantee
        substituted: Guarantee = plan.under_substitution(level)
        if more is not None:
            promise, substituted = compose(promise, more), compose(substituted, substitution_from_add_remove(more))
        assert isinstance(promise, ApproxDP)
        assert isinstance(substituted, ApproxDP)
        found[level] = Promise(promise.epsilon + statement.slack, promise.delta, substituted)
    return found


def _charge(plan: ReleasePlan, more: ApproxDP | None) -> tuple[Guarantee, dict[str, Any]]:
    """What a ledger charges every user with, before anything is read: the guarantee and its terms."""
    statement = plan.statement(plan.levels.most, seeded=False)
    guarantee = statement.guarantee if more is None else compose(statement.guarantee, more)
    return guarantee, {"unit": statement.unit, "relation": statement.relation, "mechanism": statement.mechanism}


def _written(model: Model, out: str) -> str:
    """What was written. Neither users nor texts are counted: what is printed may be shared, and these are protected."""
    new = model.statement_.parameters.get("new_words")
    return (
        f"Wrote vectors of {len(model.vectors_):,} words{'' if new is None else f' ({new:,} of them new)'} to {out}, "
        f"and beside them what was promised and a card (README.md).\nExplained by: dptext explain {out}/privacy.json"
    )


def _summary(model: Model, out: str) -> dict[str, Any]:
    statements = {level: json.loads(each.to_json()) for level, each in model.statements_.items()}
    return {
        "out": out,
        "words": len(model.vectors_),
        "dimension": model.vectors_.dimension,
        "statement": json.loads(model.statement_.to_json()),
        **({"statements": statements} if len(statements) > 1 else {}),
    }
