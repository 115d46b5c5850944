"""``dptext embed``: texts of people in, word vectors to share and their statement out."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from dptext.cli import options
from dptext.cli.console import print_json, progress_bar, stopped_with_notes
from dptext.cli.outputs import as_input, begin
from dptext.embeddings.cooccurrence import WINDOW, Cooccurrence
from dptext.embeddings.participation import Unit, personal_participation
from dptext.embeddings.plan import ExpectedVectors, ReleasePlan, expected_vectors
from dptext.embeddings.sharing import Word2VecFormat, check_copy, check_place
from dptext.embeddings.skipgram import Progress, SkipGram, SkipGramPlan
from dptext.errors import ParameterError
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
_SHOWN = 20  # times in a training, what was spent is worked out: each takes some tenths of a second


@dataclass(frozen=True, kw_only=True)
class ProtectionOptions:
    """Who is protected, and how well.

    Attributes:
        user (COLUMN): The column that says who wrote a text: who is protected.
        unit: What is protected: a user; or a document, or (skip-gram) a pair of words, no promise to a person.
        level (COLUMN): A public column that says how strictly a user wants to be protected.
        levels (NAME=EPSILON,...): What these levels are (instead of --epsilon).
        default_level (NAME): The level of users who chose none. Default: the strictest.
        public_users (N): A public number that the users do not exceed, to check delta; for skip-gram about as many as
            there are, by which sums are divided. Never a count.
    """

    user: str | None = None
    unit: Unit = "user"
    epsilon: Annotated[float | None, typer.Option(help="Nats: what a user may lose (or --levels).")] = None
    delta: Annotated[float, typer.Option(help="Delta: added to the bound on every probability.")] = 1e-6
    level: str | None = None
    levels: tuple[str, ...] = ()
    default_level: str | None = None
    public_users: int | None = None

    def check(self, method: str) -> None:
        options.check_user(self.unit, self.user)
        if self.unit == "pair" and method != "skip-gram":
            raise ParameterError("--unit pair is for --method skip-gram; one release protects users or documents")
        if self.levels and self.epsilon is not None:
            raise ParameterError("--levels hold the epsilons: leave --epsilon out")
        if not self.levels and self.epsilon is None:
            raise ParameterError(
                "say what a user may lose: --epsilon 8 (nats), or --level COLUMN --levels strict=1,open=8; dptext "
                "advise FILE says what that would be good for, --plan how many people it takes"
            )
        if bool(self.levels) != (self.level is not None):
            raise ParameterError("--level COLUMN says which level a user has, --levels what it means: give both")
        if self.default_level is not None and not self.levels:
            raise ParameterError("--default-level is one of the --levels: give these too")

    @property
    def budgets(self) -> Any:
        return parse_levels(self.levels) if self.levels else self.epsilon


@dataclass(frozen=True, kw_only=True)
class NewWordsOptions:
    """The learning of words that no public list holds.

    Attributes:
        new_words (EPSILON): Learn words first that no public list holds; this budget comes on top (opendp).
        words_per_user: How many new words a user may bring. Default: 100.
    """

    new_words: float | None = None
    new_words_delta: Annotated[float | None, typer.Option(help="The delta for that. Default: --delta.")] = None
    words_per_user: int | None = None

    def check(self, *, unit: Unit, seed: int | None) -> None:
        if self.new_words is None:
            if self.new_words_delta is not None or self.words_per_user is not None:
                raise ParameterError(
                    "--new-words-delta and --words-per-user belong to --new-words EPSILON: give it too"
                )
            return
        if self.words_per_user is not None and self.words_per_user < 1:
            raise ParameterError(f"--words-per-user must be at least 1, got {self.words_per_user}")
        if unit != "user":
            raise ParameterError(
                f"new words are learned under a promise to users: leave out --new-words or --unit {unit}"
            )
        if seed is not None:
            raise ParameterError("the noise on new words takes no seed: leave out --new-words or --seed")

    def budget(self, delta: float) -> ApproxDP | None:
        if self.new_words is None:
            return None
        return ApproxDP(self.new_words, delta if self.new_words_delta is None else self.new_words_delta)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Those of skip-gram alone, by the names that `SkipGram` has for them.

    Attributes:
        sampling_rate (RATE): The chance of a user to take part in a step of skip-gram. Default: 0.05.
        dimension: Start skip-gram at random in so many dimensions, with the words of --vectors alone.
        trained_words (N): The most frequent words that skip-gram trains. Default: 5000.
        pairs: Pairs of words of a user in a step of skip-gram. Default: 500.
        checkpoint (FILE): Keep where skip-gram has come to: private, deleted at the end.
    """

    steps: Annotated[int | None, typer.Option(help="Of skip-gram. Default: 1000.")] = None
    sampling_rate: float | None = None
    dimension: int | None = None
    trained_words: int | None = None
    pairs: int | None = None
    checkpoint: Path | None = None

    @property
    def given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    def check(self, method: str, *, resume: bool, new_words: bool) -> None:
        flags = [*options.given_flags(self), *["--resume"] * resume]
        if flags and method != "skip-gram":
            raise ParameterError(f"{', '.join(flags)}: for --method skip-gram, which goes step by step; give that too")
        if resume and self.checkpoint is None:
            raise ParameterError("--resume goes on from a checkpoint: say which, --checkpoint FILE")
        if self.checkpoint is not None and new_words:
            raise ParameterError(
                "new words are drawn anew in each run, so no run goes on with those of another: leave out --checkpoint "
                "or --new-words"
            )


@dataclass(frozen=True, kw_only=True)
class Texts(options.Inputs):
    """Which texts are learned from; --plan takes none."""

    sources: options.Sources = ()


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is known before a budget is spent: public numbers and public texts.

    Attributes:
        public (FILE): For --plan: public texts that play people's (may be repeated); --user names a column of theirs.
    """

    plan: options.Plan = False
    people: options.People = None
    public: tuple[Path, ...] = ()


@options.collected
def embed(
    *,
    texts: Texts,
    out: str | None = None,
    planning: PlanOptions,
    method: Literal["co-occurrences", "skip-gram"] = "co-occurrences",
    protection: ProtectionOptions,
    vectors: options.Vectors = "glove-6b-50d",
    limit: options.Limit = 50_000,
    new: NewWordsOptions,
    window: int | None = None,
    training: TrainingOptions,
    word2vec: Literal["binary", "text", "none"] = "binary",
    run: options.Run,
    processes: options.Processes = 1,
    ledger: options.Ledger = None,
    yes: options.Yes = False,
    output: options.Output,
) -> None:
    """Learn word vectors from texts of people, and write a FOLDER that can be shared: vectors, statement, card.

    All files of IN together make one release.

    Args:
        out (--out -o FOLDER): A new folder (--force: or one that this command wrote).
        method: One noisy release; or skip-gram, step by step, for many users (extra skipgram).
        window: How many words on either side count as context. Default: 10; for skip-gram 5.
        word2vec: A copy for gensim: vectors.bin, vectors.txt, or none.
    """
    if planning.plan:
        _plan(planning, method, texts, protection, vectors, limit, window, training, output)
        return
    if planning.people is not None or planning.public:
        raise ParameterError("--people and --public belong to --plan: give it too, or leave them out")
    if not texts.sources or out is None:
        raise ParameterError("name the texts and where vectors go: dptext embed IN -o FOLDER; or --plan")
    files = [path for path, _ in find_files(texts.sources, any_format=texts.in_format is not None)]
    protection.check(method)
    new.check(unit=protection.unit, seed=run.seed)
    training.check(method, resume=run.resume, new_words=new.new_words is not None)
    twice = {
        "--new-words": new.new_words is not None,
        "--ledger": ledger is not None,
    }
    if any(map(is_pipe, files)) and any(twice.values()):
        given = next(name for name, there in twice.items() if there)
        raise ParameterError(f"{given} reads the input twice, and what went through a pipe is gone: name files as IN")
    if ledger is not None:
        _check_ledger(protection.unit, run, training)
    charges = Charges(ledger, protection.user if ledger is not None else None)

    place = check_place(out, replace=run.force)
    if training.checkpoint is not None:
        never = {"IN": files, "the ledger": [] if ledger is None else [ledger], "OUT": [place]}
        check_target(training.checkpoint, replace=run.resume, apart_from=never, by="go on from it with --resume")

    def read() -> DocumentReader:
        kept = [] if protection.level is None else [protection.level]
        return read_documents(files, text=texts.text, user=protection.user, keep=kept, **texts.layout)

    reader = read()  # what can fail fails before the work starts
    public = load_vectors(vectors, limit=limit)
    copy: Word2VecFormat | None = None if word2vec == "none" else word2vec
    check_copy(public.words, copy)
    plan, start = _planned(method, public, protection, training, window)
    more = new.budget(protection.delta)
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
            vocabulary = _learn(charges.watched(read()), more, new, public, processes, quiet=output.quiet)
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
    asked: NewWordsOptions,
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
            words_per_user=100 if asked.words_per_user is None else asked.words_per_user,
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
    method: str,
    public: WordVectors,
    protection: ProtectionOptions,
    training: TrainingOptions,
    window: int | None,
) -> tuple[ReleasePlan, Callable[..., Model]]:
    """All that is decided before a text is read, and what makes the model: called with new words and how it is run."""
    how: dict[str, Any] = {"unit": protection.unit, "level": protection.level, "delta": protection.delta}
    how |= {} if window is None else {"window": window}
    epsilon = protection.budgets
    if method != "skip-gram":
        how |= {"epsilon": epsilon, "default_level": protection.default_level}
        return Cooccurrence(public, **how).plan(), partial(Cooccurrence, public, **how)
    costs: dict[str, Any] = {"steps": 1000, "sampling_rate": 0.05}
    for name, value in training.given.items():
        if name != "checkpoint":
            (costs if name in costs else how)[name] = value
    if isinstance(epsilon, dict):
        epsilon = personal_participation(epsilon, delta=protection.delta, default=protection.default_level, **costs)
    plan = SkipGram(public, epsilon=epsilon, public_users=protection.public_users, **how, **costs).plan()
    import dptext.embeddings.training  # noqa: F401  # needs numba: said before anything is read

    return plan, partial(SkipGram, public, **how, epsilon=plan.participation)  # found once: it takes a second


def _announced(plan: ReleasePlan, public: WordVectors) -> list[str]:
    """What is done, for the person who is about to release something."""
    if not isinstance(plan, SkipGramPlan):
        return [f"co-occurrences on {public.source} ({len(public):,} words, {public.dimension} dimensions)"]
    size = f"({len(plan.words):,} words, {plan.dimension} dimensions)"
    start = " from" if plan.public is not None else ", random start, words of"
    taking_part = plan.participation
    most = "at most " if len(taking_part.rates) > 1 else ""
    often = f"each {plan.unit} in {most}{100 * taking_part.rates[taking_part.most]:.3g}% of them"
    return [
        f"skip-gram{start} {public.source} {size}",
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


# -- what a budget buys ----------------------------------------------------------------------------------------


def _plan(
    asked: PlanOptions,
    method: str,
    texts: Texts,
    protection: ProtectionOptions,
    vectors: str,
    limit: int,
    window: int | None,
    training: TrainingOptions,
    output: options.Output,
) -> None:
    if texts.sources:
        raise ParameterError("--plan reads no private text: leave out IN")
    if asked.people is None:
        raise ParameterError("--plan needs a public number of people: --people 1000 (never a count of IN)")
    if protection.levels:
        raise ParameterError("--plan is for one epsilon, or for several beside one another: leave out --levels")
    public = load_vectors(vectors, limit=limit)
    if method == "skip-gram":
        if protection.epsilon is None or protection.unit == "pair":
            raise ParameterError("--plan of skip-gram needs --epsilon, and people or documents as its unit")
        plan, _ = _planned(method, public, protection, training, window)
        assert isinstance(plan, SkipGramPlan)
        found = plan.signal(asked.people)
        if output.as_json:
            print_json(found.as_dict())
        else:
            typer.echo(str(found))
        return
    if not asked.public:
        raise ParameterError("--plan needs public texts that play people's: --public FILE")
    reach = WINDOW if window is None else window
    # the table has epsilons of its own
    release = Cooccurrence(
        public, epsilon=protection.epsilon or 1.0, unit=protection.unit, delta=protection.delta, window=reach
    ).plan()
    unit = "document" if protection.user is None else "user"
    expected = expected_vectors(
        release,
        read_documents(asked.public, text=texts.text, user=protection.user, **texts.layout),
        people=asked.people,
        epsilon=protection.epsilon,
        unit=unit,
    )
    if output.as_json:
        print_json([each.as_dict() for each in expected])
    else:
        for line in _table(expected, asked.people, protection.unit, "text" if unit == "document" else "author"):
            typer.echo(line)


def _table(found: Sequence[ExpectedVectors], people: int, unit: str, one: str) -> list[str]:
    lines = [
        f"With {people:,} {unit}s who write as much as one {one} of the public ones (nothing",
        "private was read): what their texts add to the public vectors, and how much of",
        "it comes through the noise.",
        "",
        f"                     with this   {unit}s until   {unit}s until",
        "  epsilon     sigma     number       anything           half",
    ]
    for each in found:
        least, half = (f"{n:,}" if n is not None else "never" for n in (each.least, each.half))
        lines.append(f"  {each.epsilon:<8g}{each.sigma:>9.3g}{each.passed:>11.0%}{least:>15}{half:>15}")
    nothing = [each for each in found if each.least is None or people < each.least]
    if len(nothing) == len(found):
        lines += ["", "Noise would hide all of it: the vectors would be the public ones again."]
    elif nothing:
        most = max(each.epsilon for each in nothing)
        lines += [
            "",
            f"Up to epsilon {most:g} noise would hide all of it: the vectors would be the public",
            "ones again.",
        ]
    return lines


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
