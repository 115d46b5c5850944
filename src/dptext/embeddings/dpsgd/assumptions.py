"""What the proofs of a training take for granted, in the words of a statement."""

__all__ = ["IEEE", "LAZY"]

IEEE = "this machine's arithmetic is that of IEEE 754: each operation and square root is rounded to the nearest number"
"""Of all of them."""

LAZY = (
    "noise of rows that no gradient touched is added when they are next read; that such rows are rounded to single "
    "precision at times that hang on the texts adds nothing"
)
"""Of lazy noise (`dptext.embeddings.dpsgd.tables`)."""
