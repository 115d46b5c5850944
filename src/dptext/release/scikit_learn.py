"""Base classes of the scikit-learn estimators (extra ``sklearn``), and validation of their labels and vectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, MissingExtraError
from dptext.io.documents import check_one_column
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import warn_unprotected
from dptext.release.mechanism import Rewriter, TextMechanism
from dptext.validation import is_missing

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "TextEstimator",
    "TextPrivatizer",
    "TransformerMixin",
    "check_X_y",
    "check_is_fitted",
    "coded",
    "validated",
]


try:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data
except ImportError:
    raise MissingExtraError(
        "estimators need the package 'scikit-learn'; install it with: pip install \"dptext[sklearn]\" (not needed on a "
        "device: DeviceEncoder.load)"
    ) from None


class TextEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator of texts that draws fresh noise in every call, without a random state to pickle, clone or fork."""

    def __sklearn_tags__(self) -> Any:
        """Declare a non-deterministic estimator of one column of texts."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.no_validation = True
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def coded(labels: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return the sorted classes of labels, and the labels as indices of their classes."""
    targets: npt.NDArray[Any] = np.asarray(labels)
    check_classification_targets(targets)
    classes, codes = np.unique(targets, return_inverse=True)
    if len(classes) < 2:
        raise DataError("labels must have at least two classes, got one class")
    return classes, codes


def validated(estimator: Any, *arrays: npt.ArrayLike, reset: bool) -> Any:
    """Return the validated vectors as float64, and the labels if there are any."""
    return validate_data(estimator, *arrays, dtype=np.float64, reset=reset)


class TextPrivatizer(TransformerMixin, TextEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A transformer whose ``fit`` builds a mechanism without reading a text, and whose ``transform`` is a release.

    Each call of ``transform`` draws fresh, independent noise. A subclass stores ``seed`` and sets ``mechanism_``.

    Attributes:
        mechanism_: the mechanism, frozen.
        statement_: the statement for a document of the *last* call of ``transform``; set by the first call.
    """

    seed: int | None
    mechanism_: TextMechanism
    statement_: PrivacyStatement

    def transform(self, texts: Iterable[str | None]) -> npt.NDArray[np.object_]:
        """Return one private text per text, with fresh noise: a new release.

        Args:
            texts: a list, an array or a pandas Series of strings. A missing text (None, NaN, NA) counts as the empty
                text, because later steps need a string in each row and empty texts are visible anyway.

        Returns:
            (n,) array of str.

        Raises:
            ParameterError: texts is a string, or has several columns.
            DataError: an entry is not a string; its position is named.
            NotFittedError: ``fit`` was not called.
        """
        check_is_fitted(self, "mechanism_")
        rewriter = Rewriter(self.mechanism_, seed=self.seed)
        private = list(rewriter.rewrite("" if is_missing(text) else text for text in check_one_column(texts)))
        self.statement_ = rewriter.statement()
        warn_unprotected(self.statement_)
        result = np.empty(len(private), dtype=object)
        result[:] = private
        return result
