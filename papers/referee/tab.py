"""Recall of identifiers in court cases (TAB): word replacement, redaction, the sentence bank, Presidio, baselines.

Command: ``python -m papers.referee.tab --tab echr_test.json [--spacy MODEL] [--data FOLDER]``; the extra ``presidio``
and a spaCy model for Presidio. Without ``--tab``, ``--quick`` uses four invented documents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from papers.reports import Rows, group_by_settings, interval, mean_of, parse_options, run_command, table, write_between
from papers.sweeps import sweep
from papers.synthesis.corpus import newswire, shuffled, wikipedia
from papers.tem.corpus import GLOVE, load_public

from dptext import TEM, BankRewriter, TextBank, privatize
from dptext.errors import DataError, extra
from dptext.evaluation.standard import tab_scores
from dptext.intervals import Estimate
from dptext.io.artifacts import file_digest
from dptext.methods.data import utterances
from dptext.release.redaction import Redaction
from dptext.text.tokens import Kind, fold, sentences, split

HERE = Path(__file__).resolve().parent
START, END = "<!-- tab: written by papers.referee.tab -->", "<!-- end of tab -->"
EPSILONS, SENTENCE_EPSILONS = (1.0, 2.0, 4.0, 6.0, 10.0), (4.0, 8.0)
SEEDS = 2
TYPES = ("PERSON", "CODE", "LOC", "ORG", "DEM", "DATETIME", "QUANTITY", "MISC")
SCORES = (
    *(f"recall_{name}_entities" for name in ("direct", "quasi", *TYPES)),
    "token_recall",
    "token_precision",
)
_SOURCE = (
    "--tab is required: name a file in the layout of TAB, such as echr_test.json of the repository "
    "NorskRegnesentral/text-anonymization-benchmark"
)
Masks = list[tuple[int, int]]


def main(arguments: Sequence[str] | None = None) -> None:
    more: dict[str, Mapping[str, Any]] = {
        "tab": {"type": Path, "help": "file in the layout of TAB (echr_*.json)"},
        "spacy": {"help": "spaCy model for Presidio and for TAB's function words: a name or a folder"},
    }
    options = parse_options("Recall of identifiers on TAB.", HERE, arguments, part="tab", **more)
    if not options.report:
        if options.tab is None and not options.quick:
            raise DataError(_SOURCE)
        file = options.tab or HERE / "invented.json"
        bench = Bench(json.loads(file.read_text("utf-8")), options.spacy, options.data, is_quick=options.quick)
        constants = {"tab": file_digest(file), "documents": len(bench.documents), **bench.versions}
        for settings in bench.settings():
            is_random = settings["epsilon"] is not None and "chance" not in settings["method"]
            seeds = range(1, (1 if options.quick or not is_random else SEEDS) + 1)
            sweep(bench.cell, [settings], seeds, path=options.out / "tab.jsonl", name="tab", constants=constants)
    write_report(options.out, readme=options.readme)


class Bench:
    """Documents, and the parts of them that each method masks."""

    def __init__(self, documents: list[dict[str, Any]], model: str | None, data: Path, *, is_quick: bool) -> None:
        self.documents, self._data, self._is_quick = documents, data, is_quick
        self.texts = [document["text"] for document in documents]
        self._nlp: Any = None
        self._engine: Any = None
        self.versions = {"spacy": "", "presidio": ""}
        if model is not None:
            providers = extra("presidio_analyzer.nlp_engine", "presidio", "Presidio")
            engine = providers.SpacyNlpEngine(models=[{"lang_code": "en", "model_name": model}])
            engine.load()
            engine.process_text = cache(engine.process_text)  # each text is tagged once
            self._nlp = lambda text: engine.process_text(text, "en").tokens
            self._engine = extra("presidio_analyzer", "presidio", "Presidio").AnalyzerEngine(nlp_engine=engine)
            meta = engine.nlp["en"].meta
            self.versions = {"spacy": f"{meta['name']} {meta['version']}", "presidio": version("presidio-analyzer")}

    def settings(self) -> Iterator[dict[str, Any]]:
        names = ["nothing", "everything", "capitals and digits", "redaction"]
        if self._engine is not None:
            names += ["Presidio", "Presidio with organisations", "redaction and Presidio"]
        yield from ({"method": name, "epsilon": None} for name in names)
        for epsilon in EPSILONS[2:3] if self._is_quick else EPSILONS:
            yield from ({"method": name, "epsilon": epsilon} for name in ("TEM", "redaction and TEM", "TEM, chance"))
        for epsilon in SENTENCE_EPSILONS[:1] if self._is_quick else SENTENCE_EPSILONS:
            yield from ({"method": name, "epsilon": epsilon} for name in ("bank", "bank, chance"))

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        method, epsilon = settings["method"], settings["epsilon"]
        costs: dict[str, float] = {}
        if "TEM" in method:
            mechanism = TEM(self._vectors, epsilon=epsilon)
            masks = self._after_tem(mechanism, seed, is_chance="chance" in method)
            if method.startswith("redaction"):
                masks = [[*one, *other] for one, other in zip(masks, self._redacted("redaction"), strict=True)]
            of_word = epsilon * mechanism.threshold
            words = [sum(kind is Kind.WORD for _, kind in split(text)) for text in self.texts]
            costs = {"epsilon of a part": of_word, "epsilon of a document": of_word * float(np.mean(words))}
        elif "bank" in method:
            masks = self._after_bank(epsilon, seed, is_chance="chance" in method)
            parts = [len(sentences(text)) for text in self.texts]
            costs = {"epsilon of a part": epsilon, "epsilon of a document": epsilon * float(np.mean(parts))}
        else:
            masks = self._redacted(method)
        chosen = {document["doc_id"]: spans for document, spans in zip(self.documents, masks, strict=True)}
        scores = tab_scores(self.documents, chosen, nlp=self._nlp)
        numbers = dict(costs)
        for name in SCORES:
            if name in scores:
                score = scores[name]
                numbers |= {name: score.value, f"{name} low": score.low, f"{name} high": score.high}
        return numbers

    def _redacted(self, method: str) -> list[Masks]:
        """Return the parts that a recogniser or a baseline masks."""
        find: Callable[[str], Any]
        if method == "nothing":
            find = lambda _: ()  # noqa: E731
        elif method == "everything":
            find = lambda text: [(0, len(text))]  # noqa: E731
        elif method == "capitals and digits":
            find = lambda text: [match.span() for match in re.finditer(r"\b[A-Z0-9][\w,/]*", text)]  # noqa: E731
        elif method == "redaction":
            find = Redaction().spans
        elif method == "redaction and Presidio":
            find = Redaction(analyzer=self._engine).spans
        else:
            entities = [*self._engine.get_supported_entities(language="en")]
            if method == "Presidio":  # its default configuration ignores organisations
                entities.remove("ORGANIZATION")
            find = Redaction(kinds=(), analyzer=self._engine, entities=entities).spans
        return [[tuple(span[:2]) for span in find(text)] for text in self.texts]

    def _after_tem(self, mechanism: TEM, seed: int, *, is_chance: bool) -> list[Masks]:
        """Return the words that another word replaced, and all numbers and addresses, which become placeholders.

        ``is_chance``: each output is the replacement of a random word of all documents.
        """
        tokens = [split(text) for text in self.texts]
        words = [token.text for text in tokens for token in text if token.kind is Kind.WORD]
        outputs = privatize(words, mechanism, seed=seed).texts
        order = shuffled(len(words), seed) if is_chance else np.arange(len(words))
        stays = iter([fold(outputs[row]) == fold(word) for row, word in zip(order.tolist(), words, strict=True)])
        masks: list[Masks] = []
        for text in tokens:
            place, spans = 0, list[tuple[int, int]]()
            for part, kind in text:
                is_masked = not next(stays) if kind is Kind.WORD else kind not in (Kind.SPACE, Kind.PUNCTUATION)
                spans += [(place, place + len(part))] * is_masked
                place += len(part)
            masks.append(spans)
        return masks

    def _after_bank(self, epsilon: float, seed: int, *, is_chance: bool) -> list[Masks]:
        """Return the words and numbers that the text replacing their sentence does not contain.

        ``is_chance``: the text replaces a random other sentence.
        """
        parts = [(number, part) for number, text in enumerate(self.texts) for part in sentences(text)]
        outputs = BankRewriter(self._bank, epsilon=epsilon).sample([part for _, part in parts], seed=seed)
        order = shuffled(len(parts), seed) if is_chance else np.arange(len(parts))
        masks: list[Masks] = [[] for _ in self.texts]
        places = [0] * len(self.texts)
        for (number, part), row in zip(parts, order.tolist(), strict=True):
            known = {fold(token.text) for token in split(outputs[row])}
            for piece, kind in split(part):
                if kind is Kind.SPACE:
                    continue
                start = self.texts[number].index(piece, places[number])  # a sentence has single spaces
                places[number] = start + len(piece)
                if kind is not Kind.PUNCTUATION and fold(piece) not in known:
                    masks[number].append((start, places[number]))
        return masks

    @cached_property
    def _vectors(self) -> Any:
        return load_public(GLOVE)

    @cached_property
    def _bank(self) -> TextBank:
        """Return sentences of newswire and Wikipedia; the quick form takes utterances that dptext includes."""
        if self._is_quick:
            return TextBank([text for text, _ in utterances("test")], encoder="static", cache=False)
        return TextBank([*newswire(self._data), *wikipedia(self._data)], encoder="static", cache=False)


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write the tables of all rows into the README."""
    groups = list(group_by_settings(Rows(out / "tab.jsonl").rows))
    sections = []
    for title, names in (
        (
            "**Entities of which every mention is masked**, and tokens",
            ("direct", "quasi", "token_recall", "token_precision"),
        ),
        ("**Entities by type**", TYPES),
    ):
        lines = []
        for settings, runs in groups:
            method, epsilon = settings["method"], settings["epsilon"]
            cells = [method if epsilon is None else f"{method}, epsilon {epsilon:g}"]
            if names is not TYPES:
                has_bound = "epsilon of a part" in runs[0].numbers and "chance" not in method
                costs = ("epsilon of a part", "epsilon of a document") if has_bound else ()
                cells += [f"{mean_of(runs, cost):,.1f}" for cost in costs] or ["none", "none"]
            lines.append([*cells, *(_cell(runs, name if "_" in name else f"recall_{name}_entities") for name in names)])
        head = ["method", *(() if names is TYPES else ("epsilon of a part", "of a document")), *names]
        sections += [f"{title} (share; 95% intervals over documents).", table(head, lines)]
    write_between(readme, START, END, "\n\n".join(sections).replace("token_", "token "))


def _cell(runs: Sequence[Any], name: str) -> str:
    """Return the mean over seeds of a share and of the ends of its interval."""
    if name not in runs[0].numbers:
        return ""
    value, low, high = (mean_of(runs, f"{name}{end}") for end in ("", " low", " high"))
    return interval(Estimate(value, low, high, 0, ""), 2)


if __name__ == "__main__":
    run_command(main)
