"""``dptext embed``: learn word vectors from private texts, and write a folder to share."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from dptext.cli import options
from dptext.cli.console import print_json, print_paragraphs, print_table
from dptext.cli.options import input_option, method_option, output_option, privacy_option, run_option
from dptext.cli.outputs import announce, hidden_warnings, say_coverage, say_large_delta, say_skipped, shell_argument
from dptext.display import progress_bar
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.participation import Unit, personal_participation
from dptext.embeddings.plan import ReleasePlan, expected_vectors
from dptext.embeddings.sharing import check_place
from dptext.embeddings.skipgram import SkipGram
from dptext.errors import ParameterError
from dptext.features.pool import public_sources, read_public
from dptext.io.atomic import check_target
from dptext.io.batches import is_pipe
from dptext.io.documents import DocumentReader, find_files, read_documents
from dptext.privacy.guarantee import ApproxDP, Guarantee, compose, substitution_from_add_remove
from dptext.privacy.statement import new_release_id
from dptext.privacy.wording import cautioned_of, render
from dptext.release.run import Charges, TextFiles, charged
from dptext.users.private_vocabulary import private_vocabulary
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors

_WORDS_PER_USER = 100


@dataclass(frozen=True, kw_only=True)
class EmbedOptions:
    """The guarantee, how vectors are learned, and public numbers that predict the quality."""

    user: str | None = options.USER
    unit: Unit = privacy_option("user", "Privacy unit: a user, a document, or (skip-gram) a pair of words.")
    epsilon: float | None = privacy_option(None, "Privacy budget (epsilon) per user (or --levels).")
    delta: float = options.DELTA
    level: str | None = privacy_option(None, "Public column of privacy levels (missing: the strictest).", "COLUMN")
    levels: tuple[str, ...] = privacy_option((), "Epsilon of each level, instead of --epsilon.", "NAME=EPSILON,...")
    new_words: float | None = privacy_option(None, "Extra budget to learn new words.", "EPSILON", min=1e-3, max=100)
    public_users: int | None = options.PUBLIC_USERS
    method: Literal["co-occurrences", "skip-gram"] = method_option(
        "co-occurrences", "One noisy release of co-occurrences, or DP-SGD for many users (extra skipgram)."
    )
    vectors: str = options.VECTORS
    limit: int = options.LIMIT
    steps: int = method_option(1000, "Skip-gram: number of training steps.", "N")
    sampling_rate: float = method_option(0.05, "Skip-gram: probability that a user takes part in a step.", "RATE")
    checkpoint: Path | None = run_option(None, "Skip-gram: private checkpoint, deleted at the end.", "FILE")
    plan: bool = options.PLAN
    people: int | None = options.PEOPLE
    public: tuple[str, ...] = input_option((), "Public texts to simulate users with, for --plan (repeatable).", "FILE")
    ledger: Path | None = options.LEDGER

    @property
    def budget(self) -> Any:
        """The epsilon; or, of ``["strict=1,open=8"]``, the levels ``{"strict": 1.0, "open": 8.0}``."""
        if not self.levels:
            return self.epsilon
        parts = [part.rpartition("=") for part in ",".join(self.levels).split(",")]
        with suppress(ValueError):
            parsed = {name.strip(): float(value) for name, _, value in parts}
            if len(parsed) == len(parts) and "" not in parsed:
                return parsed
        raise ParameterError("--levels expects NAME=EPSILON,NAME=EPSILON,... with each name once")


def embed(
    *,
    texts: options.OptionalInputs,
    out: str | None = output_option(None, "Output folder.", "FOLDER", "--out", "-o"),
    settings: EmbedOptions,
    run: options.Run,
    output: options.Output,
) -> None:
    """Learn word vectors from private texts, and write a folder that can be shared.

    The folder contains vectors (also vectors.bin for gensim), a privacy statement and a card. All files of IN together
    make one release.

    Example: dptext embed notes.csv -o vectors --text note --user author --epsilon 8
    """
    if settings.plan:
        _print_prediction(settings, texts, output)
        return
    if not texts.sources or out is None:
        raise ParameterError("IN and --out FOLDER are required (unless --plan is given)")
    files = find_files(texts.sources, any_format=texts.in_format is not None)
    _check(settings, run, has_pipe=any(map(is_pipe, files)))
    ledger, charges = settings.ledger, Charges(settings.ledger, None if settings.ledger is None else settings.user)
    place = check_place(out, replace=run.force)
    if settings.checkpoint is not None:
        others = {"IN": files, "the ledger": [] if ledger is None else [ledger], "OUT": [place]}
        check_target(settings.checkpoint, replace=run.resume, apart_from=others, by="resume it with --resume")

    def read() -> DocumentReader:
        keep = [] if settings.level is None else [settings.level]
        columns: dict[str, Any] = {"text": texts.text, "user": settings.user, "keep": keep}
        return read_documents(files, on_error=texts.on_error, **columns, **texts.layout)

    reader = read()  # raises for a missing file or column
    reader.check_users(has_unit=True)
    public = load_vectors(settings.vectors, limit=settings.limit)
    say_coverage(TextFiles(files, text=texts.text, **texts.layout).first, public, "vectors", output)
    plan, build = _plan(settings, public)
    new_words = None if settings.new_words is None else ApproxDP(settings.new_words, settings.delta)
    levels = {level: _total(plan, level, new_words, seeded=run.seed is not None) for level in plan.levels.shares}
    guarantee = render(
        "before_embedding", plan=plan, public=public, totals=levels, new_words=new_words, user=settings.user
    )
    statements = [plan.statement(level, seeded=False).replace(guarantee=levels[level]["guarantee"]) for level in levels]
    caution = cautioned_of(statements, source=shell_argument(texts.sources[0]))
    announce(guarantee, caution, run, output)
    say_large_delta(max(total["guarantee"].delta for total in levels.values()), settings.public_users, output)
    release_id = new_release_id()
    with charged(charges, release_id), hidden_warnings():
        if ledger is not None:
            statement = plan.statement(plan.levels.most, seeded=False)
            total_cost = statement.guarantee if new_words is None else compose(statement.guarantee, new_words)
            terms = {name: getattr(statement, name) for name in ("unit", "relation", "mechanism")}
            charges.reserve(release_id, total_cost, read(), **terms)
        vocabulary = None
        if new_words is not None:
            vocabulary = private_vocabulary(
                charges.track(read()),
                epsilon=new_words.epsilon,
                delta=new_words.delta,
                words_per_user=_WORDS_PER_USER,
                known=public.vocabulary,
            )
        model = build(vocabulary=vocabulary, public_users=settings.public_users, seed=run.seed)
        _fit(model, charges.track(reader), settings.checkpoint, resume=run.resume, release_id=release_id)
        charges.check(release_id)
        model.save(place, replace=run.force)
    say_skipped(reader.skipped, output)
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


def _check(settings: EmbedOptions, run: options.Run, *, has_pipe: bool) -> None:
    """Raise for options that do not go together, before anything is read."""
    is_skipgram, learns_words = settings.method == "skip-gram", settings.new_words is not None
    has_ledger, is_resumable = settings.ledger is not None, settings.checkpoint is not None
    flags = options.changed_flags(settings, "steps", "sampling_rate", "checkpoint") + ["--resume"] * run.resume
    options.check_all({
        "--people and --public are for --plan: add --plan, or omit them": settings.people or settings.public,
        "--unit pair is for --method skip-gram: add it, or omit --unit": settings.unit == "pair" and not is_skipgram,
        "--levels contain the epsilons: omit --epsilon": settings.levels and settings.epsilon is not None,
        options.EPSILON_REQUIRED: not settings.levels and settings.epsilon is None,
        "--level COLUMN and --levels NAME=EPSILON,... must be given together": (
            bool(settings.levels) != (settings.level is not None)
        ),
        f"{', '.join(flags)} is for --method skip-gram: add it, or omit {' '.join(flags)}": (
            flags and not is_skipgram
        ),
        "--resume needs --checkpoint FILE of the interrupted run": run.resume and not is_resumable,
        "--new-words protects users only: use --unit user": learns_words and settings.unit != "user",
        "--new-words takes no seed: omit --seed": learns_words and run.seed is not None,
        "--new-words draws new words in every run: omit --checkpoint": learns_words and is_resumable,
        f"{'--new-words' if learns_words else '--ledger'} reads the input twice, which a pipe does not allow: name "
        "files as IN": has_pipe and (learns_words or has_ledger),
        "--ledger charges guarantees, and a seed voids them: omit --seed": has_ledger and run.seed is not None,
        "--ledger charges users or documents: omit it with --unit pair": has_ledger and settings.unit == "pair",
        "--ledger charges the users of the final input, and steps before an interruption may have used others: omit "
        "--checkpoint": has_ledger and is_resumable,
    })  # fmt: skip
    options.check_user(settings.unit, settings.user)


def _plan(settings: EmbedOptions, public: WordVectors) -> tuple[ReleasePlan, Callable[..., Cooccurrence | SkipGram]]:
    """Return the plan of the release, and a function that builds its model."""
    common: dict[str, Any] = {"unit": settings.unit, "level": settings.level, "delta": settings.delta}
    epsilon = settings.budget
    if settings.method != "skip-gram":
        common["epsilon"] = epsilon
        return Cooccurrence(public, **common).plan(), partial(Cooccurrence, public, **common)
    costs: dict[str, Any] = {"steps": settings.steps, "sampling_rate": settings.sampling_rate}
    if isinstance(epsilon, dict):
        epsilon = personal_participation(epsilon, delta=settings.delta, **costs)
    plan = SkipGram(public, epsilon=epsilon, public_users=settings.public_users, **common, **costs).plan()
    import dptext.embeddings.training  # noqa: F401  needs numba: raise before anything is read

    return plan, partial(SkipGram, public, **common, epsilon=plan.participation)


def _total(plan: ReleasePlan, level: str, new_words: ApproxDP | None, *, seeded: bool) -> dict[str, Any]:
    """Return the guarantee of a user of one level for everything that is released."""
    statement = plan.statement(level, seeded=seeded)
    guarantee: Any = statement.guarantee
    substituted: Guarantee = plan.substitution_guarantee(level)
    if new_words is not None:
        guarantee = compose(guarantee, new_words)
        substituted = compose(substituted, substitution_from_add_remove(new_words))
    total = ApproxDP(guarantee.epsilon + statement.slack, guarantee.delta)
    return {"guarantee": total, "substituted": substituted}


def _fit(
    model: Cooccurrence | SkipGram, reader: DocumentReader, checkpoint: Path | None, *, resume: bool, release_id: str
) -> None:
    if isinstance(model, Cooccurrence):
        with progress_bar(None, "reading", reader.size or None) as done:
            reader.watch(lambda _block: done(reader.position))
            model.fit(reader, release_id=release_id)
        return
    try:
        model.fit(reader, release_id=release_id, checkpoint=checkpoint, resume=resume)
    except KeyboardInterrupt as error:
        if checkpoint is not None and checkpoint.exists():
            error.add_note(f"nothing is released yet; to resume from {checkpoint} (private), add --resume")
        raise


# -- plan ----------------------------------------------------------------------------------------------------------


def _print_prediction(settings: EmbedOptions, texts: options.Inputs, output: options.Output) -> None:
    options.check_all({
        "--plan reads no private text: omit IN": texts.sources,
        options.PEOPLE_REQUIRED: settings.people is None,
        "--plan takes one --epsilon or compares several: omit --levels": settings.levels,
        "--plan is for --method co-occurrences": settings.method == "skip-gram",
    })  # fmt: skip
    people: Any = settings.people
    public = load_vectors(settings.vectors, limit=settings.limit)
    if not settings.public:
        raise ParameterError("--plan needs public texts that stand for users: --public FILE")
    epsilon = settings.epsilon or 1.0  # the table shows several
    unit = "document" if settings.user is None else "user"
    expected = expected_vectors(
        Cooccurrence(public, epsilon=epsilon, unit=settings.unit, delta=settings.delta).plan(),
        read_public(public_sources(settings.public), texts.text, user=settings.user, **texts.layout),
        people=people,
        epsilon=settings.epsilon,
        unit=unit,
    )

    def show() -> None:
        sentences: dict[str, Any] = {"template": "cli/templates/plan.txt"}
        print_paragraphs(topic="vectors", people=people, unit=settings.unit, simulated=unit, **sentences)
        rows = [[f"{row.epsilon:g}", f"{row.sigma:.3g}", f"{row.passed:.0%}"] for row in expected]
        for cells, row in zip(rows, expected, strict=True):
            cells += ["never" if count is None else f"{count:,}" for count in (row.min_people, row.half)]
        print_table(("epsilon", "sigma", "share", f"{settings.unit}s until 1%", f"{settings.unit}s until 50%"), rows)
        hidden = [row.epsilon for row in expected if row.min_people is None or people < row.min_people]
        print_paragraphs(topic="hidden", hidden=hidden, expected=expected, **sentences)

    output.print_result(lambda: [asdict(row) for row in expected], show)
