"""What redaction finds in the generated sentences of presidio-evaluator, by kind of entity.

Command: ``python benchmarks/redaction.py [--sentences 1500] [--seed 7] [--model en_core_web_sm]`` (presidio-analyzer,
presidio-evaluator and a spaCy model). An entity counts as found if all of its letters and digits are redacted.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable

from presidio_analyzer import AnalyzerEngine
from presidio_analyzer.nlp_engine import NlpEngineProvider
from presidio_evaluator.data_generator import PresidioSentenceFaker

from dptext.text.patterns import find

NAMES = ("patterns", "Presidio", "both")


def covered(text: str, spans: Iterable[tuple[int, int]]) -> bytearray:
    letters = bytearray(len(text))
    for start, end in spans:
        letters[start:end] = b"\1" * (end - start)
    return letters


def interval(hits: int, count: int) -> str:
    """Wilson's 95% interval."""
    z, share = 1.96, hits / count
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    low, high = ((middle + sign * half) / (1 + z * z / count) for sign in (-1, 1))
    return f"{share:.0%} ({max(low, 0):.0%} to {high:.0%})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall of redaction.")
    parser.add_argument("--sentences", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--model", default="en_core_web_sm")
    options = parser.parse_args()
    models = [{"lang_code": "en", "model_name": options.model}]
    provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models})
    analyzer = AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=["en"])
    faker = PresidioSentenceFaker("en_US", lower_case_ratio=0.05, random_seed=options.seed)
    hits: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    counts: dict[str, int] = defaultdict(int)
    others, redacted = 0, dict.fromkeys(NAMES, 0)
    for record in faker.generate_new_fake_sentences(options.sentences):
        # templates hold a backslash and an n for the end of a line
        text = record.full_text.replace("\\n", " \n")
        entities = [(span.start_position, span.end_position, span.entity_type) for span in record.spans]
        patterns = [(span.start, span.end) for span in find(text)]
        presidio = [(result.start, result.end) for result in analyzer.analyze(text=text, language="en")]
        truth = covered(text, [(start, end) for start, end, _ in entities])
        outside = [place for place, letter in enumerate(text) if letter.isalnum() and not truth[place]]
        others += len(outside)
        for _, _, kind in entities:
            counts[kind] += 1
        for name, spans in zip(NAMES, (patterns, presidio, patterns + presidio), strict=True):
            results = covered(text, spans)
            redacted[name] += sum(results[place] for place in outside)
            for start, end, kind in entities:
                hits[kind][name] += all(results[place] for place in range(start, end) if text[place].isalnum())
    print(f"| entity | number | {' | '.join(NAMES)} |\n|---|---:|---:|---:|---:|")
    for kind, count in sorted(counts.items(), key=lambda item: -item[1]):
        print(f"| {kind} | {count} | {' | '.join(interval(hits[kind][name], count) for name in NAMES)} |")
    shares = " | ".join(f"{redacted[name] / others:.1%}" for name in NAMES)
    print(f"| *other letters, redacted by mistake* | {others:,} | {shares} |")


if __name__ == "__main__":
    main()
