"""Audit the known-broken mechanisms and their sound counterparts; exit code 1 if a verdict is wrong.

`python -m known_broken [--seeds N] [--only TEXT]`
"""

import argparse
import sys
import time
from importlib import import_module

MODULES = (
    *("selections", "replacements", "redactions", "sentences", "subsets", "samplers", "noises", "published", "caps"),
    *(
        "vectors",
        "vectors_bits",
        "randomizers",
        "releases",
        "synthesis",
        "summaries",
        "levels",
        "trainings",
        "skipgrams",
        "unions",
        "shuffling",
        "servers",
    ),
)
CASES = [case for name in MODULES for case in import_module(f"known_broken.{name}").CASES]
FAMILY_ERROR = 1e-6
"""Some true claim is refuted with at most this probability in one pass (Bonferroni over the cases)."""


def main() -> int:
    """Print the table; 0 when all verdicts are the known ones."""
    parser = argparse.ArgumentParser(prog="python -m known_broken", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how often to repeat, with seeds 1 .. N")
    parser.add_argument("--only", default="", help="the cases whose name or reason holds this")
    arguments = parser.parse_args()
    error = FAMILY_ERROR / len(CASES)
    cases = [case for case in CASES if arguments.only in f"{case.name} {case.why}"]
    print("| mechanism | claim is | verdict | shown | allowed | could show | seconds | why |\n" + "|---" * 8 + "|")
    wrong = 0
    for case in cases:
        start = time.perf_counter()
        verdicts = [case.run(seed, error) for seed in range(1, arguments.seeds + 1)]
        seconds = (time.perf_counter() - start) / arguments.seeds
        right = sum(verdict.refuted == case.broken for verdict in verdicts)
        wrong += right < len(verdicts)
        worst = min(verdicts, key=lambda verdict: verdict.loss if case.broken else -verdict.loss)
        outcome = str(worst.outcome) + (f" {right}/{len(verdicts)}" if len(verdicts) > 1 else "")
        line = (
            f"| {case.name} | {'false' if case.broken else 'true'} | {outcome} | {worst.loss:.3g} "
            f"| {worst.allowed:.3g} | {worst.strongest:.3g} | {seconds:.1f} | {case.why} |"
        )
        print(line, "" if right == len(verdicts) else "  <-- NOT the known answer", flush=True)
    print(
        f"\n{len(cases)} audits, {arguments.seeds} seed(s), {len(cases) - wrong} as known, {wrong} not. In one pass "
        f"all true claims stand with probability at least 1 - {FAMILY_ERROR:g} ({error:.1g} an audit). With several "
        "seeds the row shows the weakest refutation of a false claim and the largest loss shown of a true one."
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
