"""What scikit-learn transformers that replace texts have in common (extra ``sklearn``): `TextPrivatizer`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from dptext.io.documents import check_one_column, is_missing
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import warn_unprotected
from dptext.release.mechanism import TextMechanism
from dptext.release.rewriting import Rewriter
from dptext.release.scikit_learn import TextEstimator, TransformerMixin, check_is_fitted

__all__ = ["TextPrivatizer"]


class TextPrivatizer(TransformerMixin, TextEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A transformer whose ``fit`` builds a mechanism and looks at no text, and whose ``transform`` is a release.

    ``transform`` draws fresh noise in whichever process calls it: no random state is kept, so none is pickled, cloned
    or forked, and the noise of two calls is independent. A subclass stores ``seed`` and sets ``mechanism_``.

    Attributes:
        mechanism_: the mechanism, frozen.
        statement_: what the *last* call of ``transform`` promised for a document. It is there after the first call.
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
