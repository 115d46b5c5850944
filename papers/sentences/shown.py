"""Fifty questions of SNIPS (public domain) and what they become, to be read by eye."""

from __future__ import annotations

import json
from pathlib import Path

from papers.sentences import corpus
from papers.sentences.cells import Bench

from dptext import BankRewriter, TextBank

EPSILONS = (4.0, 8.0, 12.0)
_COUNT, _SEED = 50, 1


def write_shown(bench: Bench, path: Path) -> None:
    """A JSON file: each question, what came out at each epsilon, and whether that asks for the same kind of thing."""
    requested, others = corpus.questions(bench.data, _COUNT)
    bank = TextBank(others.texts, encoder=bench.spec("news", "sentences"), name="SNIPS", licence="CC0", cache=False)
    intents = {" ".join(text.split()): label for text, label in zip(others.texts, others.labels.tolist(), strict=True)}
    results: list[dict[str, object]] = [{"question": text.strip()} for text in requested.texts]
    for epsilon in EPSILONS:
        sample = BankRewriter(bank, epsilon=epsilon).sample(requested.texts, seed=_SEED)
        for row, text, intent in zip(results, sample, requested.labels.tolist(), strict=True):
            row[f"epsilon {epsilon:g}"] = text
            row[f"same intent, epsilon {epsilon:g}"] = intents[text] == intent
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
