"""Opacus on the same model, pair by pair: ghost clipping, and per-sample gradients from hooks.

Arguments: a folder with opacus, words, dimension, negatives, pairs of ghost clipping, pairs of hooks. The last line of
output is JSON: CPU milliseconds a step of each. Noise and the step are counted, the drawing of pairs is not.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable

sys.path.append(sys.argv[1])
warnings.simplefilter("ignore")

import opacus  # noqa: E402
import torch  # noqa: E402
from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping  # noqa: E402
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping  # noqa: E402
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping  # noqa: E402

torch.set_num_threads(1)
torch.manual_seed(1)


class SkipGram(torch.nn.Module):
    def __init__(self, words: int, dimension: int) -> None:
        super().__init__()
        self.words, self.contexts = (torch.nn.Embedding(words, dimension) for _ in range(2))

    def forward(self, word: torch.Tensor, contexts: torch.Tensor) -> torch.Tensor:
        return (self.contexts(contexts) * self.words(word)).sum(dim=2)


class Loss(torch.nn.Module):
    reduction = "mean"

    def forward(self, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        entry = torch.nn.functional.binary_cross_entropy_with_logits(scores, target, reduction="none").sum(dim=1)
        return entry if self.reduction == "none" else entry.mean()


def timed(step: Callable[[], None], repeats: int) -> float:
    step()
    best = float("inf")
    for _ in range(repeats):
        before = time.process_time()
        step()
        best = min(best, time.process_time() - before)
    return best * 1000


def main() -> None:
    words, dimension, negatives, ghost_pairs, hook_pairs = map(int, sys.argv[2:7])

    def batch(size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        target = torch.zeros(size, 1 + negatives)
        target[:, 0] = 1
        return torch.randint(words, (size, 1)), torch.randint(words, (size, 1 + negatives)), target

    settings = {"noise_multiplier": 1.3, "max_grad_norm": 1.0}
    model = GradSampleModuleFastGradientClipping(SkipGram(words, dimension), max_grad_norm=1.0, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(model.parameters(), lr=0.1), expected_batch_size=ghost_pairs, **settings
    )
    criterion = DPLossFastGradientClipping(model, optimizer, Loss())

    def ghost() -> None:
        word, contexts, target = batch(ghost_pairs)
        optimizer.zero_grad()
        criterion(model(word, contexts), target).backward()
        optimizer.step()

    result = {"ghost": timed(ghost, 5), "version": opacus.__version__, "torch": torch.__version__}
    hooked = GradSampleModule(SkipGram(words, dimension))
    descent = DPOptimizer(torch.optim.SGD(hooked.parameters(), lr=0.1), expected_batch_size=hook_pairs, **settings)

    def hooks() -> None:
        word, contexts, target = batch(hook_pairs)
        descent.zero_grad()
        Loss()(hooked(word, contexts), target).backward()
        descent.step()

    print(json.dumps(result | {"hooks": timed(hooks, 2)}))


if __name__ == "__main__":
    main()
