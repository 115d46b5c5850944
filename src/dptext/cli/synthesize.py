"""``dptext synthesize``: make a synthetic corpus from one noisy release."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dptext.cli import options
from dptext.cli.console import Bar, print_json, progress_bar, resumable
from dptext.cli.labels import LabelCheck, LabelOptions, PrivateTexts
from dptext.cli.options import input_option, method_option, output_option, privacy_option
from dptext.cli.outputs import announce, check_columns, say_written, shell_argument, written_as_dict
from dptext.cli.plans import print_corpus_plan
from dptext.errors import ParameterError
from dptext.features.features import DEFAULT_IN_WORDS, NAMES
from dptext.features.pool import Pool
from dptext.privacy.budgets import DeltaWarning, delta_too_large
from dptext.privacy.guarantee import as_approx
from dptext.privacy.wording import before_synthesis, cautioned_of
from dptext.release.release import Release
from dptext.synthesis.distribution import Shares
from dptext.synthesis.planning import pool_warnings
from dptext.synthesis.prompts import Source
from dptext.synthesis.release import (
    Draw,
    PrivateFiles,
    check_places,
    distribution_path,
    draw_file,
    synthesize_file,
)
from dptext.synthesis.synthesizer import Synthesizer


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The guarantee, and the ledger that it is charged to."""

    epsilon: float | None = privacy_option(None, "Privacy budget (epsilon) per user. It covers texts and labels.")
    delta: float = options.DELTA
    public_users: int | None = options.PUBLIC_USERS
    ledger: Path | None = options.LEDGER


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """The corpus that is drawn from the release."""

    public: tuple[str, ...] = input_option((), "Public pool, chosen without regard to IN (repeatable).", "POOL")
    public_text: str = options.PUBLIC_TEXT
    public_label: str | None = options.PUBLIC_LABEL
    licence: str | None = options.LICENCE_OPTION
    count: int | None = output_option(None, "Number of texts to make.", "N", "-n", "--count")
    shares: Shares = method_option("released", "Shares of the labels: as released, or the same for all.")
    features: str | None = method_option(
        None,
        f"Text features: {', '.join(NAMES)}, or the path of word vectors or of a sentence model.",
        "NAME|PATH",
        show_default=DEFAULT_IN_WORDS,
    )

    def pool(self) -> Pool | None:
        paths = [Path(name) for name in self.public]
        return Pool(paths, text=self.public_text, licence=self.licence) if paths else None


@dataclass(frozen=True, kw_only=True)
class GeneratorOptions:
    """A language model that writes the texts."""

    generator: str | None = method_option(None, "Let an OpenAI-compatible server write candidate texts.", "URL")
    model: str | None = method_option(
        None, "Model of the server; without --generator, folder of a local model.", "NAME"
    )
    key: str | None = method_option(None, "Environment variable that holds the key of the server.", "VARIABLE")
    about: str = method_option("", "Public description of the texts to write, for the model.", "TEXT")
    max_calls: int = method_option(10_000, "Maximum number of calls to the server.", "N")

    def source(self, out: Path) -> Source | None:
        """Return the model that writes, if any."""
        if self.generator is not None:
            from dptext.synthesis.chat import ChatEndpoint

            if self.model is None:
                raise ParameterError("--model NAME is required with --generator: a model of the server")
            return ChatEndpoint(
                self.generator,
                model=self.model,
                key_variable=self.key,
                about=self.about,
                max_calls=self.max_calls,
                answers=_answers_path(out),
            )
        if self.model is not None:
            from dptext.synthesis.local_model import LocalModel

            return LocalModel(self.model, about=self.about)
        return None


def _answers_path(out: Path) -> Path:
    """File that keeps the answers of a server until the output is written, so that a resumed run repeats no call."""
    return out.with_name(f"{out.name}.answers.jsonl")


def synthesize(
    *,
    private: PrivateTexts,
    out: Path | None = output_option(None, "Output file of the corpus.", "OUT", "--out", "-o"),
    distribution: Path | None = output_option(
        None,
        "Folder of the released distribution. Without IN: draw from this earlier release, at no further "
        "privacy budget.",
        "FOLDER",
        show_default="OUT.distribution",
    ),
    budget: Budget,
    labels: LabelOptions,
    corpus: CorpusOptions,
    generator: GeneratorOptions,
    plan: bool = options.PLAN,
    people: int | None = options.PEOPLE,
    run: options.Run,
    yes: bool = options.YES,
    output: options.Output,
) -> None:
    """Make a synthetic corpus that people can read, from one noisy release.

    Texts come from a public pool (--public), or a language model writes them (--generator); the release decides which
    are typical. All files of IN together make one release. Drawing further texts from it spends no privacy budget.

    Example: dptext synthesize notes.csv -o readable.jsonl --user author --epsilon 1 --public pool.jsonl -n 5000
    """
    if plan:
        print_corpus_plan(corpus.pool(), budget, labels.build(), corpus, private.unit, people, output)
        return
    if out is None:
        raise ParameterError("--out OUT (.jsonl, .csv, .parquet, ...) is required")
    if corpus.count is None:
        raise ParameterError("--count N is required: a public number of texts to make, such as 5000 (do not count IN)")
    folder = distribution or distribution_path(out)
    with resumable(), progress_bar("public texts", quiet=output.quiet) as bar:
        if distribution is not None and not private.sources:
            _check_for_draw(private, budget, labels, corpus, run)
            draw = _draw(corpus.pool(), generator, corpus, out, bar)
            release = draw_file(distribution, out, draw, text=private.text, force=run.force)
        else:
            release = _release(private, out, folder, budget, labels, corpus, generator, run, output, bar, yes=yes)
    if generator.generator is not None:
        with suppress(OSError):
            _answers_path(out).unlink(missing_ok=True)
    say_written(release.documents, "texts", out, output, skipped=release.skipped)
    for doubt in release.doubts:
        output.say(f"Note: {doubt}.")
    if folder.is_dir():
        output.say(f"The released distribution is in {folder}. To draw more texts at no further privacy budget:")
        output.say(f"  dptext synthesize --distribution {folder} --public POOL -n N -o OUT")
    output.say(f"To explain it: dptext explain {out}")
    if output.as_json:
        print_json({"documents": release.documents, **written_as_dict(out, release.statement)})


def _check_for_draw(
    private: PrivateTexts, budget: Budget, labels: LabelOptions, corpus: CorpusOptions, run: options.Run
) -> None:
    """Raise for options that would change the earlier release."""
    flags = [
        *options.changed_flags(budget),
        *options.changed_flags(private, "user", "unit"),
        *options.changed_flags(labels),
        *options.changed_flags(corpus, "features"),
        *options.changed_flags(run, "seed", "resume"),
    ]
    if flags:
        raise ParameterError(
            f"{', '.join(flags)} cannot change the released distribution: leave it out, or name IN for a new release, "
            "which spends privacy budget"
        )


def _draw(pool: Pool | None, generator: GeneratorOptions, corpus: CorpusOptions, out: Path, bar: Bar) -> Draw:
    source = generator.source(out)
    if pool is None and source is None:
        raise ParameterError("--public POOL is required (or a model that writes texts: --generator)")
    assert corpus.count is not None
    count = len(pool) if pool is not None and source is None else corpus.count
    description = "public texts" if source is None else "written"
    return Draw(
        n=corpus.count,
        public=pool,
        generator=source,
        shares=corpus.shares,
        progress=lambda done: bar.step(min(done, count), count, description),
    )


def _release(
    private: PrivateTexts,
    out: Path,
    folder: Path,
    budget: Budget,
    labels: LabelOptions,
    corpus: CorpusOptions,
    generator: GeneratorOptions,
    run: options.Run,
    output: options.Output,
    bar: Bar,
    *,
    yes: bool,
) -> Release:
    """Check everything, print the guarantee, release a distribution and draw the corpus."""
    if not private.sources:
        raise ParameterError("IN is required; or draw from an earlier release with --distribution FOLDER")
    options.check_user(private.unit, private.user)
    if budget.epsilon is None:
        raise ParameterError(options.EPSILON_REQUIRED)
    public_labels = labels.build()
    columns = public_labels.columns
    synthesizer = Synthesizer(
        epsilon=budget.epsilon,
        delta=budget.delta,
        labels=public_labels,
        features=corpus.features,
        unit=private.unit,
        public_users=budget.public_users,
        seed=run.seed,
    )
    check = None if labels.labels_as_given else LabelCheck(synthesizer.labels, yes=yes, output=output, bar=bar)
    rows = private.rows(columns, lambda reader: reader.watch(lambda _block: bar.reading(reader, "adding up")), check)
    settings: dict[str, Any] = {"ledger": budget.ledger, "resume": run.resume, "force": run.force}
    if isinstance(rows, PrivateFiles):  # before the pool is read
        check_places(rows, out, folder, public=(), **settings)
        keep = [name for name in columns if name != private.user]
        check_columns(
            [Path(path) for path in rows.sources], text=private.text, user=private.user, keep=keep, **private.layout
        )
    pool = corpus.pool()
    if pool is None:
        raise ParameterError("--public POOL is required: public texts, chosen without regard to IN")
    draw = _draw(pool, generator, corpus, out, bar)
    check_places(rows, out, folder, public=pool.files, **settings)  # before features are fitted
    is_resumed = run.resume and folder.exists()
    if is_resumed:
        output.say(f"Resumes from the distribution in {folder}: IN is not read again, and no budget is spent.")
    plan = synthesizer.plan(pool, progress=lambda done: bar.step(done, len(pool), "public texts"))
    caution = cautioned_of([plan.statement(seeded=False)], source=shell_argument(private.sources[0]))
    with bar.paused():
        for warning in pool_warnings(plan):
            output.say(f"Warning: {warning}.")
        announce(before_synthesis(plan, user=private.user), caution, yes=yes, asks=not run.resume, output=output)
    problem = delta_too_large(as_approx(plan.promise.guarantee).delta, public_users=synthesizer.public_users)
    if problem is not None:
        output.say(f"Warning: {problem.replace('public_users=', '--public-users')}.")
    if check is not None and columns and private.engine == "spark" and not is_resumed:
        frame: Any = rows
        for values, count in frame.label_counts(synthesizer.labels):
            check.add(values, count)
        check.decide()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)  # printed above
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # about the versions of packages
        return synthesize_file(rows, out, synthesizer, draw, public=plan, distribution=folder, **settings)
