"""Speed and power of the audits, compared with the targets of the design.

    .venv/bin/python benchmarks/audits.py

Prints a Markdown table; tests/known_broken supplies the mechanisms.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import dptext
from dptext.audits.losses import sampled_loss
from known_broken import noises, published

HELD_OUT = 100_000
SEEDS = 5
ERROR = 0.05  # 97.5 per cent a side
REFERENCE = {"DPNR, d=64, nominal 1": 10.19, "OME, r=50, l=10, nominal 1": 10.20, "DPText's sampler, d=64": None}


def bounds() -> dict[str, tuple[Any, Any, Any]]:
    """Draws at the two inputs and the score, for each mechanism."""
    ome, dpnr = published.PAPER, published.MANY
    return {
        "DPNR, d=64, nominal 1": (partial(copies, dpnr), dpnr.witness, published.distance_score(dpnr)),
        "OME, r=50, l=10, nominal 1": (partial(copies, ome), ome.witness, published.bit_score(ome)),
        "DPText's sampler, d=64": (noises.dptext_paper, (noises.LOW, noises.HIGH), noises.below_the_other),
    }


def copies(channel: Any, x: Any, count: int, bits: Any) -> Any:
    """Return this many private vectors of one text."""
    return channel.sample(np.tile(x, (count, 1)), bits)


def main() -> None:
    print("| audit | seconds | lower bound | reference at the same n |\n|---|---|---|---|")
    vectors = dptext.load_vectors("glove-6b-50d", limit=2_000)
    start = time.perf_counter()
    verdict = dptext.audit(dptext.TEM(vectors, epsilon=5.0))
    seconds = time.perf_counter() - start
    print(f"| exact, TEM, all 1,999,000 pairs of 2,000 words | {seconds:.1f} | {verdict.outcome} | - |")
    for name, (draw, pair, score) in bounds().items():
        show(f"sampled, {name}, {HELD_OUT:,} held out", draw, pair, score, HELD_OUT, REFERENCE[name])
    draw, pair, score = bounds()["DPNR, d=64, nominal 1"]
    show("sampled, DPNR, d=64, a million draws in all", draw, pair, score, 250_000, None)
    show(f"black box (learnt score), DPNR, d=64, {HELD_OUT:,} held out", draw, pair, None, HELD_OUT, 10.19)


def show(name: str, draw: Any, pair: Any, score: Any, samples: int, reference: float | None) -> None:
    """One row: the median of five seeds, and their range."""
    start = time.perf_counter()
    draws = [lambda count, bits, x=x: draw(x, count, bits) for x in pair]
    losses = sorted(
        sampled_loss(*draws, samples=samples, error=ERROR, score=score, seed=seed).loss for seed in range(1, SEEDS + 1)
    )
    seconds = (time.perf_counter() - start) / SEEDS
    text = f"{losses[SEEDS // 2]:.2f} ({losses[0]:.2f} to {losses[-1]:.2f})"
    print(f"| {name} | {seconds:.1f} | {text} | {'-' if reference is None else reference} |")


if __name__ == "__main__":
    main()
