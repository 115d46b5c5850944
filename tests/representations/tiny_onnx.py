"""A tiny sentence model in ONNX format, written without the package ``onnx``.

An ONNX file is a protocol buffer: `_field` encodes one field of a message. The model has one operation, which looks up
the vector of every token in a table.
"""

import numpy as np

WORDS = 30522  # the vocabulary of all-MiniLM-L6-v2
TABLE = np.random.default_rng(3).normal(size=(WORDS, 5)).astype(np.float32)
_FLOAT, _INT64 = 1, 7
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def tiny_model(table=TABLE, inputs=_INPUTS) -> bytes:
    """The content of ``model.onnx``: token ids of the shape (1, T) to vectors of the shape (1, T, D)."""
    node = _field(1, "table") + _field(1, "input_ids") + _field(2, "tokens") + _field(4, "Gather")
    tensor = b"".join(_field(1, size) for size in table.shape)
    tensor += _field(2, _FLOAT) + _field(8, "table") + _field(9, table.tobytes())
    graph = _field(1, node) + _field(2, "tiny") + _field(5, tensor)
    graph += b"".join(_field(11, _value(name, _INT64, 2)) for name in inputs) + _field(12, _value("tokens", _FLOAT, 3))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 17))


def tiny_vector(*ids, table=TABLE):
    """The vector of a text with these tokens: their mean, scaled to length 1."""
    mean = table[list(ids)].mean(axis=0, dtype=np.float64)
    return mean / np.linalg.norm(mean)


def _value(name: str, kind: int, axes: int) -> bytes:
    shape = b"".join(_field(1, _field(2, f"axis {axis}")) for axis in range(axes))
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    octets = []
    while value > 127:
        octets.append(value & 127 | 128)
        value >>= 7
    return bytes([*octets, value])
