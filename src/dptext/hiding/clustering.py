"""Two defences of Coavoux, Narayan and Cohen 2018 as aims of the training (torch).

*Multidetasking* (``aim="deny"``): the encoder wants every adversary to find the true class unlikely,

    H_t = -ln(1 - p_t(true class)),                                                                     (deny)

which for two classes asks for the wrong one, and for more leaves open which. *Declustering* (``aim="decluster"``) has
no adversary and looks at no attribute: people who are alike lie close together, so documents are pushed apart,

    H = -||v - v'||^2    of two documents drawn at random, before the noise.                             (decluster)

(There over hidden states of a recurrent network, with a constant added; here over bounded vectors, so the push ends.)
Neither promises anything; the noise does. Source: *Privacy-preserving Neural Representations of Text* (EMNLP 2018).
"""

from __future__ import annotations

from typing import Any

__all__ = ["denial", "pushed_apart"]


def denial(torch: Any, answers: Any, labels: Any, weights: Any) -> Any:
    """The weighted mean of -ln(1 - p(label)) over a batch, equation (deny).

    Args:
        torch: the module.
        answers: (n, classes) before softmax.
        labels: (n,) classes; whatever where the weight is 0.
        weights: (n,) of the rows.
    """
    true = torch.nn.functional.one_hot(labels, answers.shape[1]).bool()
    others = answers.masked_fill(true, float("-inf")).logsumexp(dim=1)
    return ((answers.logsumexp(dim=1) - others) * weights).sum() / weights.sum().clamp(min=1e-12)


def pushed_apart(vectors: Any) -> Any:
    """Minus the mean squared distance of neighbours in a batch, whose order is random: equation (decluster)."""
    return -((vectors - vectors.roll(1, 0)) ** 2).sum(dim=1).mean()
