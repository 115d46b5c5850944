"""``dptext synthesize``: describe people's texts by one noisy release, and make a synthetic corpus from it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from dptext.cli import options
from dptext.cli.console import Bar, print_json, progress_bar, stopped_with_notes
from dptext.cli.labels import LabelCheck, LabelOptions
from dptext.cli.options import input_option, method_option, output_option, privacy_option
from dptext.cli.outputs import as_input, begin, check_columns
from dptext.cli.plans import plan_corpus
from dptext.errors import ParameterError
from dptext.features.features import DEFAULT_IN_WORDS, NAMES
from dptext.features.pool import Pool
from dptext.io.documents import DocumentReader, find_files
from dptext.privacy.budgets import DeltaWarning, delta_too_large
from dptext.privacy.guarantee import as_approx
from dptext.privacy.wording import before_synthesis, cautioned_of
from dptext.release.release import Release, rejects_path, statement_path
from dptext.synthesis.distribution import Shares
from dptext.synthesis.moments import Labels
from dptext.synthesis.planning import pool_warnings
from dptext.synthesis.prompts import Source
from dptext.synthesis.release import (
    Draw,
    PrivateFiles,
    PrivateRows,
    check_places,
    distribution_path,
    draw_file,
    synthesize_file,
)
from dptext.synthesis.synthesizer import Synthesizer


@dataclass(frozen=True, kw_only=True)
class PrivateTexts(options.OptionalInputs):
    """Whose documents are described."""

    on_error: Annotated[Literal["fail", "skip"], input_option(help="Unreadable row: stop, or skip it.")] = "fail"
    user: options.User = None
    unit: Annotated[
        Literal["user", "document"], privacy_option(help="Privacy unit: a user with all documents, or one document.")
    ] = "user"
    engine: options.Engine = "local"

    def rows(
        self, labels: Sequence[str], watch: Callable[[DocumentReader], None], check: LabelCheck | None
    ) -> PrivateRows:
        return self._files(watch, check) if self.engine == "local" else self._frame(labels)

    def check(self) -> None:
        if not self.sources:
            raise ParameterError("IN is required; or draw from an earlier release with --distribution FOLDER")
        options.check_user(self.unit, self.user)

    def _files(self, watch: Callable[[DocumentReader], None], check: LabelCheck | None) -> PrivateFiles:
        found = [path for path, _ in find_files(self.sources or (), any_format=self.in_format is not None)]
        reading: dict[str, Any] = {"text": self.text, "user": self.user, "on_error": self.on_error, **self.layout}
        return _CheckedFiles(paths=found, watch=(watch,), check=check, **reading)

    def _frame(self, labels: Sequence[str]) -> PrivateRows:
        sources = self.sources or ()
        if self.on_error == "skip":
            raise ParameterError("Spark has no --on-error skip: leave it out, and repair the rows")
        if self.encoding is not None:
            raise ParameterError("Spark reads UTF-8 only: leave --encoding out")
        if "-" in sources:
            raise ParameterError("Spark reads no pipes: name paths that the cluster sees")
        from dptext.spark.frames import PrivateFrame, read_files

        keep = [*labels, *([] if self.user is None else [self.user])]
        frame = read_files(sources, text=self.text, keep=keep, kind=self.in_format)
        return PrivateFrame(frame, text=self.text, user=self.user)


@dataclass(frozen=True, kw_only=True)
class _CheckedFiles(PrivateFiles):
    """Private files whose labels are checked at the end of the first pass, which comes before any charge or release."""

    check: LabelCheck | None

    def labelled(self, columns: Sequence[str]) -> DocumentReader:
        reader = super().labelled(columns)
        if self.check is not None:
            self.check.watch(reader)
        return reader


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The guarantee."""

    epsilon: Annotated[
        float | None, privacy_option(help="Privacy budget (epsilon) per user. It covers texts and labels.")
    ] = None
    delta: options.Delta = 1e-6
    public_users: options.PublicUsers = None


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """The corpus that is made from the release."""

    public: Annotated[
        tuple[str, ...],
        input_option(metavar="POOL", help="Public pool, chosen without regard to IN (repeatable)."),
    ] = ()
    public_text: options.PublicText = "text"
    public_label: options.PublicLabel = None
    licence: options.Licence = None
    count: Annotated[int | None, output_option("-n", "--count", metavar="N", help="Number of texts to make.")] = None
    shares: Annotated[Shares, method_option(help="Shares of the labels: as released, or the same for all.")] = (
        "released"
    )
    features: Annotated[
        str | None,
        method_option(
            metavar="NAME|PATH",
            help=f"Text features: {', '.join(NAMES)}, or the path of word vectors or of a sentence model.",
            show_default=DEFAULT_IN_WORDS,
        ),
    ] = None

    def pool(self) -> Pool | None:
        if not self.public:
            return None
        return Pool([Path(name) for name in self.public], text=self.public_text, licence=self.licence)


@dataclass(frozen=True, kw_only=True)
class GeneratorOptions:
    """A language model that writes the texts."""

    generator: Annotated[
        str | None, method_option(metavar="URL", help="Let an OpenAI-compatible server write candidate texts.")
    ] = None
    model: Annotated[
        str | None,
        method_option(metavar="NAME", help="Model of the server; without --generator, folder of a local model."),
    ] = None
    key: Annotated[
        str | None, method_option(metavar="VARIABLE", help="Environment variable that holds the key of the server.")
    ] = None
    about: Annotated[
        str, method_option(metavar="TEXT", help="Public description of the texts to write, for the model.")
    ] = ""
    max_calls: Annotated[int, method_option(metavar="N", help="Maximum number of calls to the server.")] = 10_000

    def source(self, out: Path) -> Source | None:
        """What writes, if anything does; answers of a server are kept beside the output until it is written."""
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
                answers=answers_path(out),
            )
        if self.model is not None:
            from dptext.synthesis.local_model import LocalModel

            return LocalModel(self.model, about=self.about)
        return None


def answers_path(out: Path) -> Path:
    """Path of the file that keeps the answers of a server, so that a resumed run asks for the missing ones only."""
    return out.with_name(f"{out.name}.answers.jsonl")


@options.collected
def synthesize(
    *,
    private: PrivateTexts,
    out: Annotated[Path | None, output_option("--out", "-o", metavar="OUT", help="Output file of the corpus.")] = None,
    distribution: Annotated[
        Path | None,
        output_option(
            metavar="FOLDER",
            help="Folder of the released distribution. Without IN: draw from this earlier release, at no further "
            "privacy budget.",
            show_default="OUT.distribution",
        ),
    ] = None,
    budget: Budget,
    ledger: options.Ledger = None,
    labels: LabelOptions,
    corpus: CorpusOptions,
    generator: GeneratorOptions,
    plan: options.Plan = False,
    people: options.People = None,
    run: options.Run,
    yes: options.Yes = False,
    output: options.Output,
) -> None:
    """Make a synthetic corpus that people can read, from one noisy release.

    Texts come from a public pool (--public), or a language model writes them (--generator); the release decides which
    are typical. All files of IN together make one release. Drawing further texts from it spends no privacy budget.

    Example: dptext synthesize notes.csv -o readable.jsonl --user author --epsilon 1 --public pool.jsonl -n 5000
    """
    if plan:
        plan_corpus(corpus.pool(), budget, labels.found(), corpus, private.unit, people, output)
        return
    if out is None:
        raise ParameterError("--out OUT (.jsonl, .csv, .parquet, ...) is required")
    if corpus.count is None:
        raise ParameterError("--count N is required: a public number of texts to make, such as 5000 (do not count IN)")
    with stopped_with_notes(), progress_bar("public texts", quiet=output.quiet) as bar:
        is_draw = distribution is not None and not private.sources
        if is_draw:
            _check_is_a_draw(private, budget, labels, corpus, run, ledger)
        else:
            private.check()
            _check_early(private, Places(out, distribution, ledger), budget, labels.found(), run)
        pool = corpus.pool()
        if not is_draw and pool is None:
            raise ParameterError("--public POOL is required: public texts, chosen without regard to IN")
        draw = _draw(pool, generator, corpus, out, bar)
        if is_draw:
            assert distribution is not None
            made = draw_file(distribution, out, draw, text=private.text, force=run.force)
        else:
            synthesizer = _synthesizer(budget, labels.found(), corpus, private, run.seed)
            check = None
            if not labels.labels_as_given:
                check = LabelCheck(synthesizer.labels, yes=yes, output=output, bar=bar)
            places = Places(out, distribution, ledger)
            made = _released(private, synthesizer, draw, places, check, run, output, bar, yes=yes)
    if generator.generator is not None:
        with suppress(OSError):
            answers_path(out).unlink(missing_ok=True)
    _say_what_was_made(made, out, distribution or distribution_path(out), output)


def _check_early(private: PrivateTexts, places: Places, budget: Budget, labels: Labels, run: options.Run) -> None:
    """Raise for a missing column or an output that cannot be written, before the pool is read."""
    if budget.epsilon is None:
        raise ParameterError(options.EPSILON_REQUIRED)
    rows = private.rows(labels.columns, lambda _reader: None, None)
    if private.engine == "local":
        folder = places.distribution or distribution_path(places.out)
        check_places(rows, places.out, folder, public=(), ledger=places.ledger, resume=run.resume, force=run.force)
        files = [path for path, _ in find_files(private.sources, any_format=private.in_format is not None)]
        keep = [name for name in labels.columns if name != private.user]
        check_columns(files, text=private.text, user=private.user, keep=keep, **private.layout)


def _check_is_a_draw(
    private: PrivateTexts,
    budget: Budget,
    labels: LabelOptions,
    corpus: CorpusOptions,
    run: options.Run,
    ledger: Path | None,
) -> None:
    """Raise if an option would change a description that was released before."""
    asked = [
        *options.given_flags(budget),
        *options.given_flags(private, "user", "unit"),
        *options.given_flags(labels),
        *options.given_flags(corpus, "features"),
        *(["--ledger"] if ledger is not None else []),
        *options.given_flags(run, "seed", "resume"),
    ]
    if asked:
        raise ParameterError(
            "texts are drawn from an earlier description, which was decided when it was released: leave out "
            f"{', '.join(asked)}; or name private files, IN, for a new description, which costs"
        )


@dataclass(frozen=True)
class Places:
    """Where what is made goes, and what is charged."""

    out: Path
    distribution: Path | None
    ledger: Path | None


def _draw(pool: Pool | None, generator: GeneratorOptions, corpus: CorpusOptions, out: Path, bar: Bar) -> Draw:
    source = generator.source(out)
    if pool is None and source is None:
        raise ParameterError("say which public texts to choose from: --public POOL (or let a model write: --generator)")
    assert corpus.count is not None
    wanted = len(pool) if pool is not None and source is None else corpus.count
    what = "public texts" if source is None else "written"
    return Draw(
        n=corpus.count,
        public=pool,
        generator=source,
        shares=corpus.shares,
        progress=lambda done: bar.step(min(done, wanted), wanted, what),
    )


def _released(
    private: PrivateTexts,
    synthesizer: Synthesizer,
    draw: Draw,
    places: Places,
    check: LabelCheck | None,
    run: options.Run,
    output: options.Output,
    bar: Bar,
    *,
    yes: bool,
) -> Release:
    assert draw.public is not None
    columns = synthesizer.labels.columns
    rows = private.rows(columns, lambda reader: reader.watch(lambda _block: bar.reading(reader, "adding up")), check)
    pool: Pool = draw.public
    folder = places.distribution or distribution_path(places.out)
    going: dict[str, Any] = {"ledger": places.ledger, "resume": run.resume, "force": run.force}
    check_places(rows, places.out, folder, public=pool.files, **going)  # before features are fitted
    if run.resume and folder.exists():
        output.say(f"Goes on with the description in {folder}, at no further cost: IN is not read again.")
    plan = synthesizer.plan(pool, progress=lambda done: bar.step(done, len(pool), "public texts"))
    assert private.sources is not None
    caution = cautioned_of([plan.statement(seeded=False)], source=as_input(private.sources[0]))
    with bar.away():
        for warning in pool_warnings(plan):
            output.say(f"Warning: {warning}.")
        begin(before_synthesis(plan, user=private.user), caution, yes=yes, asks=not run.resume, output=output)
    problem = delta_too_large(as_approx(plan.promise.guarantee).delta, public_users=synthesizer.public_users)
    if problem is not None:
        output.say(f"Warning: {problem.replace('public_users=', '--public-users')}.")
    if check is not None and columns and private.engine == "spark" and not (run.resume and folder.exists()):
        frame: Any = rows
        for values, count in frame.label_counts(synthesizer.labels):
            check.add(values, count)
        check.decide()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)  # said already
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # about the versions of packages
        return synthesize_file(rows, places.out, synthesizer, draw, public=plan, distribution=folder, **going)


def _synthesizer(
    budget: Budget, labels: Labels, corpus: CorpusOptions, private: PrivateTexts, seed: int | None
) -> Synthesizer:
    if budget.epsilon is None:
        raise ParameterError(options.EPSILON_REQUIRED)
    return Synthesizer(
        epsilon=budget.epsilon,
        delta=budget.delta,
        labels=labels,
        features=corpus.features,
        unit=private.unit,
        public_users=budget.public_users,
        seed=seed,
    )


def _say_what_was_made(made: Release, out: Path, folder: Path, output: options.Output) -> None:
    output.say(f"Wrote {made.documents:,} texts to {out} and what was promised to {statement_path(out)}.")
    if made.skipped:
        listed = rejects_path(out)
        output.say(f"Left out {made.skipped:,} rows that could not be read: they are listed in {listed}.")
    for doubt in made.doubts:
        output.say(f"Note: {doubt}.")
    if folder.is_dir():
        output.say(f"The description is in {folder}: draw more from it for nothing (--distribution {folder}).")
    output.say(f"Explained by: dptext explain {out}")
    if output.as_json:
        print_json({"documents": made.documents, "out": str(out), "statement": json.loads(made.statement.to_json())})
