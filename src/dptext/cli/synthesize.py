"""``dptext synthesize``: describe people's texts by one noisy release, and make a synthetic corpus from it."""

from __future__ import annotations

import json
import textwrap
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dptext.cli import options
from dptext.cli.console import Bar, can_ask, confirm, print_json, progress_bar, stopped_with_notes
from dptext.cli.outputs import as_input, begin
from dptext.errors import DataError, ParameterError, StorageError
from dptext.features.features import DEFAULT_IN_WORDS, NAMES
from dptext.features.pool import Pool
from dptext.io.batches import Batch, as_lists
from dptext.io.documents import DocumentReader, canonical_label, find_files, read_documents
from dptext.methods.questions import LABELS
from dptext.privacy.budgets import DeltaWarning, delta_too_large
from dptext.privacy.guarantee import as_approx
from dptext.privacy.wording import before_synthesis, cautioned_of
from dptext.release.release import Release, rejects_path, statement_path
from dptext.synthesis.density import VARIETY
from dptext.synthesis.distribution import Shares
from dptext.synthesis.moments import OUTSIDE, Labels
from dptext.synthesis.planning import COVERED, Expected, expected_quality, pool_warnings
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
from dptext.synthesis.synthesizer import MOST_DOCUMENTS, Synthesizer


class LabelCheck:
    """Count the rows that have one of the public labels, and decide whether to go on."""

    def __init__(self, labels: Labels, *, yes: bool, output: options.Output, bar: Bar) -> None:
        self._labels, self._yes, self._output, self._bar = labels, yes, output, bar
        self._is_done = not labels.columns
        self._rows = self._labelled = 0
        self._known = dict(zip(labels.columns, map(frozenset, labels.values), strict=True))
        self._in_column = dict.fromkeys(labels.columns, 0)
        self._by_folded = [{_folded(label): label for label in values} for values in labels.values]
        self._spellings: dict[str, str] = {}  # public label: how the private rows spell it

    def watch(self, reader: DocumentReader) -> None:

        def add(block: Batch) -> None:
            if not self._is_done:
                columns = as_lists(block.columns)
                for values in zip(*(columns[name] for name in self._labels.columns), strict=True):
                    self.add(values)

        reader.watch(add, at_end=self.decide)

    def add(self, values: Sequence[object], rows: int = 1) -> None:
        """Count rows that have these values in the label columns."""
        self._rows += rows
        self._labelled += rows * (self._labels.code(values) != OUTSIDE)
        for column, folded, value in zip(self._labels.columns, self._by_folded, values, strict=True):
            label = canonical_label(value)
            if label in self._known[column]:
                self._in_column[column] += rows
            elif label is not None and _folded(label) in folded:
                self._spellings.setdefault(folded[_folded(label)], label)

    def decide(self) -> None:
        if self._is_done:
            return
        self._is_done = True
        is_terminal = can_ask()
        if not self._labelled:
            raise ParameterError(self._problem(is_terminal))
        if not is_terminal or self._output.quiet:
            return
        with self._bar.away():
            self._output.say("\n".join(["For you alone (it is in no output):", *self._counts()]))
            if not confirm("Release with these labels?", yes=self._yes, quiet=False):
                self._output.say("Nothing was released.")
                raise typer.Exit(1)

    def _problem(self, is_terminal: bool) -> str:
        missing = [column for column, rows in self._in_column.items() if not rows]
        where = f"of {', '.join(map(repr, missing))}" if missing else "combinations"
        hint = ""
        if self._spellings:  # a script's messages are kept in logs, which must not hold values of private rows
            spellings = "; ".join(self._respelled())
            hint = f" ({spellings if is_terminal else 'some values differ in case or punctuation only'})"
        return (
            f"no row of IN has one of the --labels {where}{hint}. Nothing was released or charged. Correct --label or "
            "--labels, or add --labels-as-given to release all the same"
        )

    def _counts(self) -> Iterable[str]:
        yield f"  {self._labelled:,} of {self._rows:,} rows have one of the --labels."
        if len(self._in_column) > 1:
            yield from (f"  {column}: {rows:,} rows" for column, rows in self._in_column.items())
        yield from (f"  {each}" for each in self._respelled())

    def _respelled(self) -> Iterable[str]:
        return (f"the file writes {spelling!r} for {label!r}" for label, spelling in self._spellings.items())


def _folded(label: str) -> str:
    """The letters and digits of a label, without case; the label itself if it has none."""
    return "".join(each for each in unicodedata.normalize("NFKC", label).casefold() if each.isalnum()) or label


_PLACEHOLDERS = LABELS.split(",")
_SEED = 0  # of the noise that a prediction draws: the same in every run; it is of public numbers alone


@dataclass(frozen=True, kw_only=True)
class PrivateTexts:
    """Whose documents are described.

    Attributes:
        user (COLUMN): The column that says who wrote a text: who is protected.
        unit: What is protected: a user; or a document, no promise to a person with several.
        on_error: A row that cannot be read: stop, or leave it out.
        most_documents (N): Of a user, this many documents are looked at: the first ones (Spark: those of the smallest
            digests).
    """

    sources: Annotated[
        tuple[str, ...] | None,
        typer.Argument(metavar="IN", help="Private files, folders or patterns; none with --distribution."),
    ] = None
    text: options.Text = "text"
    in_format: options.InFormat = None
    encoding: options.Encoding = None
    separator: options.Separator = None
    user: str | None = None
    unit: Literal["user", "document"] = "user"
    on_error: Literal["fail", "skip"] = "fail"
    most_documents: int = MOST_DOCUMENTS
    engine: options.Engine = "local"

    def rows(
        self, labels: Sequence[str], watch: Callable[[DocumentReader], None], check: LabelCheck | None
    ) -> PrivateRows:
        return self._files(watch, check) if self.engine == "local" else self._frame(labels)

    def check(self) -> None:
        if not self.sources:
            raise ParameterError(
                "name private files, IN, to describe; or draw from an earlier description: --distribution FOLDER"
            )
        options.check_user(self.unit, self.user)

    def _files(self, watch: Callable[[DocumentReader], None], check: LabelCheck | None) -> PrivateFiles:
        found = [path for path, _ in find_files(self.sources or (), any_format=self.in_format is not None)]
        layout = {"suffix": self.in_format, "encoding": self.encoding, "separator": self.separator}
        reading: dict[str, Any] = {"text": self.text, "user": self.user, "on_error": self.on_error, **layout}
        return _CheckedFiles(paths=found, watch=(watch,), check=check, **reading)

    def _frame(self, labels: Sequence[str]) -> PrivateRows:
        sources = self.sources or ()
        if self.on_error == "skip":
            raise ParameterError("Spark has no --on-error skip: leave it out, and repair the rows")
        if self.encoding is not None or self.separator is not None:
            raise ParameterError("Spark reads UTF-8 and commas only: leave --encoding and --separator out")
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
    """What is promised."""

    epsilon: Annotated[float | None, typer.Option(help="Nats: what a user may lose, labels and all.")] = None
    delta: Annotated[float, typer.Option(help="Delta: added to the bound on every probability.")] = 1e-6
    public_users: Annotated[
        int | None,
        typer.Option(metavar="N", help="A public number that the users do not exceed, to check delta. Never a count."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """The public classes.

    Attributes:
        label (COLUMN): A column of labels (repeat it for several: their combinations).
        labels (A,B,...): The public labels of that column, never read from IN (one list per --label); A=TEXT,B=TEXT
            adds a public description of each. Before the release, a terminal shows you alone how many rows have one of
            them, and asks. The command fails if no row has one, so its exit status depends on private rows.
        labels_file (FILE): The public labels as JSON, in place of --labels: {"A": "a description", ...} or ["A", "B",
            ...]; for several columns {"COLUMN": {...}, ...}, without --label.
        labels_as_given: Do not compare --labels with the rows of IN.
    """

    label: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    labels_file: Path | None = None
    labels_as_given: bool = False

    def found(self) -> Labels:
        if self.labels_file is not None:
            if self.labels or len(self.label) > 1:
                raise ParameterError(
                    "--labels-file holds all labels: leave out --labels, and give --label at most once"
                )
            return _labels_of_file(self.labels_file, *self.label)
        if len(self.label) != len(self.labels):
            raise ParameterError(
                "each --label COLUMN needs its public labels, --labels A,B,...: they are never read from the private "
                f"file, because that would tell; got {len(self.label)} columns and {len(self.labels)} lists"
            )
        if len(set(self.label)) < len(self.label):
            raise ParameterError("each --label must be another column, got one twice: give all its labels in one list")
        lists = [[each.strip() for each in given.split(",") if each.strip()] for given in self.labels]
        if not self.labels_as_given and any(each in _PLACEHOLDERS for labels in lists for each in labels):
            raise ParameterError(
                f"--labels {','.join(_PLACEHOLDERS)} is a placeholder: replace it by the public labels of the column"
            )
        return Labels.of({name: _described(labels) for name, labels in zip(self.label, lists, strict=True)} or None)


def _described(labels: list[str]) -> list[str] | dict[str, str]:
    """Return labels, with their descriptions if every one is written as A=TEXT."""
    pairs = [label.split("=", 1) for label in labels]
    if all(len(pair) == 1 for pair in pairs):
        return labels
    described = {pair[0].strip(): pair[-1].strip() for pair in pairs}
    if len(described) < len(pairs) or any(len(pair) == 1 for pair in pairs):
        raise ParameterError(
            "--labels A=TEXT,B=TEXT must describe each label once, and a label without '=' or a second one of the same "
            "name was found. A description that holds a comma, or a label that holds '=', needs --labels-file FILE.json"
        )
    return described


def _labels_of_file(file: Path, column: str | None = None) -> Labels:
    """Return the labels of a JSON file: those of one column if the column is named."""
    try:
        labels = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise DataError(
            f'{file} is not JSON: write {{"A": "a description of A", "B": "a description of B"}} as UTF-8'
        ) from None
    return Labels.of(labels if column is None else {column: labels})


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """What is made of the description.

    Attributes:
        public (POOL): Public texts, chosen without regard to IN (may be repeated): features, and what is chosen from.
        public_label (COLUMN): For --plan: the column of POOL with public labels, to predict accuracy.
    """

    public: tuple[str, ...] = ()
    public_text: options.PublicText = "text"
    public_label: str | None = None
    public_name: Annotated[str | None, typer.Option(metavar="NAME", help="What statement and card call POOL.")] = None
    licence: options.Licence = None
    count: Annotated[int | None, typer.Option("-n", "--count", metavar="N", help="How many texts to make.")] = None
    variety: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="0: the most typical texts; 1: any that is likely at all.")
    ] = VARIETY
    shares: Annotated[Shares, typer.Option(help="Of the labels: as released, or the same for all.")] = "released"
    features: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|PATH",
            help=f"Public features: {', '.join(NAMES)}, or the path of word vectors or of a sentence model. Default: "
            f"{DEFAULT_IN_WORDS}.",
        ),
    ] = None

    def pool(self) -> Pool | None:
        if not self.public:
            return None
        return Pool(
            [Path(each) for each in self.public], text=self.public_text, name=self.public_name, licence=self.licence
        )


@dataclass(frozen=True, kw_only=True)
class GeneratorOptions:
    """A language model that writes the texts.

    Attributes:
        generator (URL): Let an OpenAI-compatible server write the texts, which are then weighed.
        model (NAME): Of the server; without one, the folder of a local model that writes.
        key (VARIABLE): The environment variable that holds the server's key.
        about (WORDS): What texts are wanted, in public words, for the model.
    """

    generator: str | None = None
    model: str | None = None
    key: str | None = None
    about: str = ""
    rounds: Annotated[int, typer.Option(help="How often texts are written and weighed; no further cost.")] = 3
    max_calls: Annotated[int, typer.Option(metavar="N", help="Ask the server so often at most.")] = 10_000

    def source(self, out: Path) -> Source | None:
        """What writes, if anything does; answers of a server are kept beside the output until it is written."""
        if self.generator is not None:
            from dptext.synthesis.chat import ChatEndpoint

            if self.model is None:
                raise ParameterError("say which model the server has: --model NAME")
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
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="OUT", help="The synthetic file.")] = None,
    budget: Budget,
    labels: LabelOptions,
    corpus: CorpusOptions,
    generator: GeneratorOptions,
    distribution: Path | None = None,
    plan: options.Plan = False,
    people: options.People = None,
    run: options.Run,
    ledger: options.Ledger = None,
    yes: options.Yes = False,
    output: options.Output,
) -> None:
    """Describe people's texts by one noisy release, and make a corpus from it that people can read.

    All files of IN together make one release. Texts come from public ones (--public), or a language model writes them
    (--generator): whichever are likely among the described ones. That costs nothing more, however often it is done.

    Args:
        distribution (FOLDER): The description, which is the release (default: OUT.distribution). Without IN: draw from
            that of an earlier run, for nothing.
    """
    pool = corpus.pool()
    if plan:
        _plan(pool, budget, labels.found(), corpus, private.unit, people, output)
        return
    if out is None:
        raise ParameterError("say where the corpus goes: -o OUT (.jsonl, .csv, .parquet, ...)")
    if corpus.count is None:
        raise ParameterError("say how many texts to make: -n 5000 (a public number, not a count of IN)")
    with stopped_with_notes(), progress_bar("public texts", quiet=output.quiet) as bar:
        is_draw = distribution is not None and not private.sources
        if is_draw:
            _check_is_a_draw(private, budget, labels, corpus, run, ledger)
        else:
            private.check()
            if pool is None:
                raise ParameterError("features are fitted on public texts: --public POOL, chosen without regard to IN")
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
        *options.given_flags(private, "user", "unit", "most_documents"),
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
        rounds=generator.rounds,
        variety=corpus.variety,
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
        raise ParameterError(
            "say what a user may lose: --epsilon 1 (nats); dptext advise FILE says what that would be good for, --plan "
            "how many people it takes"
        )
    return Synthesizer(
        epsilon=budget.epsilon,
        delta=budget.delta,
        labels=labels,
        features=corpus.features,
        unit=private.unit,
        most_documents=private.most_documents,
        public_users=budget.public_users,
        seed=seed,
    )


def _plan(
    pool: Pool | None,
    budget: Budget,
    labels: Labels,
    corpus: CorpusOptions,
    unit: str,
    people: int | None,
    output: options.Output,
) -> None:
    if pool is None or people is None:
        raise ParameterError(
            "--plan needs public texts and a public number of people: --public POOL --people 1000 (never a count of IN)"
        )
    texts: Any = pool
    public_labels = None
    if corpus.public_label is not None:
        documents = list(read_documents(pool.files, text=corpus.public_text, label=corpus.public_label))
        texts, public_labels = [each.text or "" for each in documents], [each.label for each in documents]
        if not labels.columns:
            labels = Labels.of({corpus.public_label: sorted({str(each) for each in public_labels if each is not None})})
    found = expected_quality(
        texts,
        labels=labels,
        public_labels=public_labels,
        people=people,
        epsilon=budget.epsilon,
        delta=budget.delta,
        features=corpus.features,
        seed=_SEED,
    )
    if output.as_json:
        print_json([each.as_dict() for each in found])
    else:
        for line in _table(found, people, unit):
            typer.echo(line)


def _table(found: Sequence[Expected], people: int, unit: str) -> list[str]:
    last = found[-1]
    about = [f"Prediction for {people:,} {unit}s, from public texts alone: no private text was read."]
    if last.accuracy is None:
        about.append(
            "Accuracy is unknown: it takes public labels (--public-label COLUMN). The table has the agreement with the "
            "noise-free labels, not accuracy: labels without noise may be wrong as well."
        )
    else:
        about.append(
            "Accuracy: share of right labels (dptext classify) on public texts that the simulated release did not use; "
            f"{COVERED:.0%} of releases lie in the interval if private texts and their labels are like these. "
            "Agreement: with the noise-free labels, not accuracy."
        )
    if last.descriptions is not None:
        about.append(f"The label descriptions alone, without any release, have an accuracy of {last.descriptions:.0%}.")
    elif last.separation is not None:
        about.append(
            f"Along the directions in which the label descriptions differ, the pool varies {last.separation:.1f} times "
            "as much as along an average direction (about 1: the descriptions do not separate its texts)."
        )
    lines = [line for each in about for line in textwrap.wrap(each, 79)]
    lines += ["", f"  epsilon     sigma   accuracy   agreement   {unit}s until labels stand out"]
    for each in found:
        seen = "never" if each.seen is None else f"{each.seen:,}"
        right = "unknown" if each.accuracy is None else f"{each.accuracy[0]:.2f}-{each.accuracy[1]:.2f}"
        lines.append(f"  {each.epsilon:<8g}{each.sigma:>9.3g}{right:>11}{each.agreement:>12.0%}{seen:>10}")
    for warning in last.warnings:
        lines += ["", *textwrap.wrap(f"Warning: {warning}.", 79)]
    return lines


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
