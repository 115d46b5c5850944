"""Shared by the tests of the formats: files with one secret word, and the form of a refusal."""

import gzip

import numpy as np
import pyarrow
import pytest

import dptext
from dptext.errors import DataError
from dptext.vectors import formats


@pytest.fixture
def file(tmp_path):
    """Write a file; ``.gz`` and ``.zst`` names are compressed."""

    def write(content, name="vectors.txt"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        if name.endswith(".gz"):
            data = gzip.compress(data)
        elif name.endswith(".zst"):
            data = pyarrow.compress(data, "zstd", asbytes=True)
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def refused():
    """Load, and expect an error of one line with this text; nothing in or behind it may hold the secret."""

    def check(source, message, error=DataError, limit=None):
        with pytest.raises(error) as caught:
            dptext.load_vectors(source, limit=limit)
        assert message in str(caught.value) and "\n" not in str(caught.value)
        behind = caught.value
        while behind is not None:
            assert "secret" not in repr(behind)
            assert "7.25" not in repr(behind)
            behind = None if behind.__suppress_context__ else behind.__context__

    return check


@pytest.fixture
def word2vec():
    """The bytes of word2vec's binary format."""

    def write(words, matrix, *, end=b"\n", header=None):
        matrix = np.asarray(matrix, dtype="<f4")
        rows = b"".join(
            (word if isinstance(word, bytes) else word.encode()) + b" " + row.tobytes() + end
            for word, row in zip(words, matrix, strict=True)
        )
        return (header or b"%d %d\n" % matrix.shape) + rows

    return write


@pytest.fixture
def small_blocks(monkeypatch):
    """Files are read in blocks of this many bytes, and in batches of 64 rows."""
    monkeypatch.setattr(formats, "_BLOCK", 4096)
    monkeypatch.setattr(formats, "_ROWS_AT_ONCE", 64)
    return 4096
