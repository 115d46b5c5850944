"""Audit the known-broken mechanisms and their sound counterparts; exit code 1 if a verdict is wrong.

`python -m known_broken [--seeds N] [--only TEXT] [--markdown FILE]`
"""

import argparse
import sys
import time
from pathlib import Path

from known_broken import (
    caps,
    levels,
    noises,
    published,
    randomizers,
    redactions,
    releases,
    replacements,
    samplers,
    selections,
    sentences,
    skipgrams,
    subsets,
    synthesis,
    trainings,
    vectors,
    vectors_bits,
)

CASES = [
    *selections.CASES,
    *replacements.CASES,
    *redactions.CASES,
    *sentences.CASES,
    *subsets.CASES,
    *samplers.CASES,
    *noises.CASES,
    *published.CASES,
    *caps.CASES,
    *vectors.CASES,
    *vectors_bits.CASES,
    *randomizers.CASES,
    *releases.CASES,
    *synthesis.CASES,
    *levels.CASES,
    *trainings.CASES,
    *skipgrams.CASES,
]
FAMILY_ERROR = 1e-6
"""Some true claim is refuted with at most this probability in one pass (Bonferroni over the cases)."""


def main() -> int:
    """Print the table; 0 when all verdicts are the known ones."""
    parser = argparse.ArgumentParser(prog="python -m known_broken", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how often to repeat, with seeds 1 .. N")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    parser.add_argument("--only", default="", help="the cases whose name or reason holds this")
    arguments = parser.parse_args()
    error = FAMILY_ERROR / len(CASES)
    cases = [case for case in CASES if arguments.only in f"{case.name} {case.why}"]
    lines = [
        "| mechanism | claim is | verdict | shown | allowed | could show | seconds | why |",
        "|---|---|---|---|---|---|---|---|",
    ]
    wrong = 0
    for case in cases:
        start = time.perf_counter()
        verdicts = [case.run(seed, error) for seed in range(1, arguments.seeds + 1)]
        seconds = (time.perf_counter() - start) / arguments.seeds
        right = sum(verdict.refuted == case.broken for verdict in verdicts)
        wrong += right < len(verdicts)
        worst = min(verdicts, key=lambda verdict: verdict.loss if case.broken else -verdict.loss)
        outcome = str(worst.outcome) + (f" {right}/{len(verdicts)}" if len(verdicts) > 1 else "")
        lines.append(
            f"| {case.name} | {'false' if case.broken else 'true'} | {outcome} | {worst.loss:.3g} "
            f"| {worst.allowed:.3g} | {worst.strongest:.3g} | {seconds:.1f} | {case.why.replace('|', chr(92) + '|')} |"
        )
        print(lines[-1], "" if right == len(verdicts) else "  <-- NOT the known answer", flush=True)
    summary = (
        f"\n{len(cases)} audits, {arguments.seeds} seed(s), {len(cases) - wrong} as known, {wrong} not. In one pass "
        f"all true claims stand with probability at least 1 - {FAMILY_ERROR:g} ({error:.1g} an audit). With several "
        "seeds the row shows the weakest refutation of a false claim and the largest loss shown of a true one."
    )
    print(summary)
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n" + summary + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
