"""A word mechanism as a function of batches, for ``datasets.Dataset.map`` and whatever else maps over columns.

Such a function is pickled, hashed and run in processes that nobody told us about. So it keeps no random state: every
batch draws with a key of its own, fresh from the operating system of whichever process it lands in. And as no process
sees all batches, the statement is not kept along the way but made from the private texts, once they are together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.files.blocks import Block
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import with_columns
from dptext.text.tokens import letters_between
from dptext.words.mechanism import WordMechanism
from dptext.words.rewriter import Rewriter

__all__ = ["BatchPrivatizer", "batch_privatizer"]

_CARRIED = (
    "what datasets.map carries over from the original (sizes in bytes, splits, builder, description, names of "
    "classes), unless dptext.strip_metadata was applied to its result"
)


def batch_privatizer(mechanism: WordMechanism, *, text: str = "text") -> BatchPrivatizer:
    """A function that replaces every word in a column of a batch, for ``datasets.Dataset.map(..., batched=True)``.

    Args:
        mechanism: a word mechanism.
        text: the column that holds the text. A missing one (None) stays missing.

    **Guarantee** (unit document, substitution among documents of equal layout, local): as
    `BatchPrivatizer.statement` says, for one run of ``map``. Processes (``num_proc``) never share noise.

    What to know about ``map``:

    - Columns that are not removed (``remove_columns``) stay as they are: they are exposed, and `statement` has to be
      told (``keep``).
    - It keeps results on disk. A second ``map`` with *the same* privatizer over the same data finds them: the same
      texts, the same release, no further loss. With another privatizer, or after a change of the data, it runs anew: a
      release that costs again. The folder of the cache holds the original texts too: never hand it on.
    - It carries over what the dataset says of where it came from, above all the sizes of its splits in bytes, and the
      names of all classes, and ``save_to_disk`` writes it: the bytes of the original texts give away which of two
      diagnoses stood there. Hand on what `dptext.strip_metadata` made of the result, after the last ``map``.
    - It names a dataset by a hash of the data it was made from, which ``save_to_disk`` writes out. Every privatizer
      holds 128 random bits (they are no part of the noise) that go into this hash, so nobody can test a guess of the
      original texts against it.

    >>> from dptext import TEM, load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> privatizer = batch_privatizer(TEM(vectors, epsilon=200.0, threshold=0.2))
    >>> batch = privatizer({"text": ["my cat", None], "stars": [5, 1]})
    >>> batch
    {'text': ['<unk> cat', None]}
    >>> privatizer.statement(batch["text"], keep=["stars"]).parameters["words_counted"]
    2
    """
    return BatchPrivatizer(mechanism, text=text)


class BatchPrivatizer:
    """See `batch_privatizer`."""

    def __init__(self, mechanism: WordMechanism, *, text: str = "text") -> None:
        Rewriter(mechanism)  # refuses what is no mechanism
        self.mechanism = mechanism
        self.text = text
        self._salt = RandomBits().take(16)

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[str | None]]:
        """The private texts of a batch, with fresh noise.

        Raises:
            ParameterError: a single row (``map`` without ``batched=True``), or no such column.
            DataError: an entry of the column is not a string; its place in the batch is named.
        """
        if self.text not in batch:
            raise ParameterError(f"expected a column {self.text!r}, the batch has none among its {len(batch)}")
        texts = batch[self.text]
        if texts is None or isinstance(texts, str):
            raise ParameterError("expected a batch of rows, got one row: use map(..., batched=True)")
        return {self.text: list(Rewriter(self.mechanism).rewrite(texts))}

    def statement(self, private_texts: Iterable[str | None], *, keep: Sequence[str] = ()) -> PrivacyStatement:
        """What was promised for a document, from the private texts of all batches.

        How many words a document had is exposed, but a private text does not show it exactly: a word may hold
        punctuation, and a placeholder looks like a word. So runs of letters are counted, of which there are never fewer
        than words: each replacement holds one at least, and kept characters stand between any two. The worst case of a
        metric guarantee and the slack then come out larger than need be, by no more than placeholders and such words
        account for; the loss per unit of distance, and a document budget, are exact.

        Args:
            private_texts: all that ``map`` gave, in order; its texts and nothing else.
            keep: columns that were not removed.

        Raises:
            RefusedError: the vocabulary has a word without a letter, which nobody can tell from punctuation.
            DataError: an entry is neither a string nor None.
        """
        if not all(letters_between(word) for word in self.mechanism.vectors.words):
            raise RefusedError(
                "a word of the vocabulary has no letter, so words cannot be counted: use dptext.privatize"
            )
        texts = list(private_texts)
        longest = 0
        for place, text in enumerate(texts, 1):
            if text is not None and not isinstance(text, str):
                raise DataError(f"private texts must be strings, entry {place} is {type(text).__name__}")
            longest = max(longest, len(letters_between(text or "")))
        if self.mechanism.max_words is not None:
            longest = min(longest, self.mechanism.max_words)
        missing = ("which rows had no text (null)",) if None in texts else ()
        statement = self.mechanism.document_statement(longest)
        statement = statement.replace(
            exposed=(*statement.exposed, *missing, _CARRIED),
            # the same texts are the same release, however often they are asked about
            release_id=Block(texts, {}).digest().hex()[:32],
        )
        return with_columns(statement, keep)
