"""Models that are trained on private rows: linear, a small neural network (scikit-learn), or the caller's own.

A model is built anew for each fold, by a function of a seed. It is given class codes 0 .. c - 1, all of them present,
or numbers of mean 0 and spread 1 (their scale is taken out before and put back after).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.files.formats import extra

__all__ = ["Builder", "builder_of", "trained"]

Builder: TypeAlias = Callable[[int], Any]
"""A seed -> a model with ``fit(features, targets)`` and ``predict(features)`` or ``predict_proba(features)``."""

HIDDEN = 128
EPOCHS = 100


def builder_of(model: str | Builder, *, classes: bool) -> tuple[str, Builder]:
    """The name and the builder of a model.

    Args:
        model: ``"linear"`` (logistic or ridge regression, penalty 1), ``"mlp"`` (one hidden layer of 128, Adam, at
            most 100 epochs), or a builder.
        classes: whether it has to tell classes apart.

    Raises:
        ParameterError: something else.
        MissingExtraError: scikit-learn is not installed.
    """
    if callable(model):
        return getattr(model, "__name__", type(model).__name__), model
    if model == "linear":
        linear = extra("sklearn.linear_model", "sklearn", "a linear model")
        if classes:
            return "logistic regression", lambda _seed: linear.LogisticRegression(C=1.0, max_iter=1000)
        return "ridge regression", lambda _seed: linear.Ridge(alpha=1.0)
    if model == "mlp":
        network = extra("sklearn.neural_network", "sklearn", "a neural network")
        kind = network.MLPClassifier if classes else network.MLPRegressor
        return f"MLP ({HIDDEN} hidden units)", lambda seed: kind(
            hidden_layer_sizes=(HIDDEN,), max_iter=EPOCHS, random_state=seed
        )
    raise ParameterError(f"model must be 'linear', 'mlp' or a function that builds one from a seed, got {model!r}")


def trained(
    build: Builder, features: Any, targets: npt.NDArray[Any], *, classes: int, seed: int
) -> Callable[[Any], npt.NDArray[Any]]:
    """Train a model; returns what predicts codes or numbers from features.

    Args:
        build: of the model.
        features: of the rows that train.
        targets: codes 0 .. classes - 1, or numbers.
        classes: how many; 0 for numbers.
        seed: of the model.
    """
    middle, spread = (0.0, 1.0) if classes else (float(targets.mean()), float(targets.std()) or 1.0)
    model = build(seed)
    with warnings.catch_warnings():
        # a fit that stops after the stated number of steps is what was asked for; the score says how good it is
        warnings.filterwarnings("ignore", message=".*(onverge|maximum iterations).*")
        model.fit(features, targets if classes else (targets - middle) / spread)

    def predict(rows: Any) -> npt.NDArray[Any]:
        if hasattr(model, "predict"):
            answers = np.asarray(model.predict(rows))
            return answers if classes else answers * spread + middle
        shares = np.asarray(model.predict_proba(rows))
        if shares.ndim != 2 or shares.shape[1] != classes:
            raise ParameterError(f"model: predict_proba must give one column for each of {classes} classes")
        likeliest: npt.NDArray[Any] = shares.argmax(axis=1)
        return likeliest

    return predict
