"""Public feature spaces that tests make up, and people who write in them."""

import hashlib

import numpy as np


class HashedWords:
    """Each word is a fixed random direction; a text is the mean of its words, at most 1 long."""

    def __init__(self, dimension=6):
        self.dimension = dimension

    def units(self, texts):
        result = np.zeros((len(texts), self.dimension))
        for row, text in enumerate(texts):
            for word in text.split():
                seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()[:8], "big")
                result[row] += np.random.default_rng(seed).normal(size=self.dimension)
        length = np.linalg.norm(result, axis=1, keepdims=True)
        result = np.divide(result, length, out=np.zeros_like(result), where=length > 0)
        return np.trunc(result * 2**15 * (1 - 1e-9)).astype(np.int32)


class Someone:
    """A person with (text, class) documents, in chunks of so many."""

    def __init__(self, *documents, chunk=100):
        self._documents, self._chunk = documents, chunk

    def chunks(self):
        for start in range(0, len(self._documents), self._chunk):
            part = self._documents[start : start + self._chunk]
            yield [text for text, _ in part], np.array([code for _, code in part], dtype=np.int32)
