"""What the estimators for scikit-learn have in common (extra ``sklearn``): texts in, noise out, labels in codes.

Only modules of estimators import this module, on first use of their names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, MissingExtraError
from dptext.io.documents import check_one_column, is_missing
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import warn_unprotected
from dptext.release.mechanism import Rewriter, TextMechanism

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
        "estimators need the package 'scikit-learn'; install it with: pip install \"dptext[sklearn]\" (a device does "
        "without: DeviceEncoder.load)"
    ) from None


class TextEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator of texts that draws fresh noise whenever it is asked.

    The constructor only stores its arguments. There is no random state to pickle, clone or fork: each process draws
    fresh noise.
    """

    def __sklearn_tags__(self) -> Any:
        """Texts in, one column; no two calls alike."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.no_validation = True
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def coded(labels: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """The classes of labels, sorted, and the labels as codes of these."""
    targets: npt.NDArray[Any] = np.asarray(labels)
    check_classification_targets(targets)
    classes, codes = np.unique(targets, return_inverse=True)
    if len(classes) < 2:
        raise DataError("a classifier needs labels of two classes or more, got one class")
    return classes, codes


def validated(estimator: Any, *arrays: npt.ArrayLike, reset: bool) -> Any:
    """Vectors as float64, and labels where they are given."""
    return validate_data(estimator, *arrays, dtype=np.float64, reset=reset)


class TextPrivatizer(TransformerMixin, TextEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A transformer whose ``fit`` builds a mechanism and looks at no text, and whose ``transform`` is a release.

    ``transform`` draws fresh noise in each call. There is no random state to pickle, clone or fork. A subclass stores
    ``seed`` and sets ``mechanism_``.

    Attributes:
        mechanism_: the mechanism, frozen.
        statement_: the statement of the *last* call of ``transform`` for a document.
    """

    seed: int | None
    mechanism_: TextMechanism
    statement_: PrivacyStatement

    def transform(self, texts: Iterable[str | None]) -> npt.NDArray[np.object_]:
        """One private text for each text, with fresh noise: a new release.

        Args:
            texts: a list, an array or a pandas Series of strings. A missing one (None, NaN, NA) counts as the empty
                text: the steps that follow need a string for each row, and which texts are empty is shown anyway.

        Returns:
            (n,) array of str.

        Raises:
            ParameterError: one string, or something with columns.
            DataError: an entry that is no string; its place is named.
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
