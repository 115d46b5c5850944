"""What the proofs of a training take for granted, in the words of a statement."""

__all__ = ["IEEE", "LAZY", "RANKS"]

IEEE = "this machine's arithmetic is that of IEEE 754: each operation and square root is rounded to the nearest number"
"""Of all of them."""

LAZY = (
    "noise comes to a row when the row is next read; that rows are rounded to single precision before it comes, and at "
    "times that hang on the texts, adds nothing"
)
"""Of lazy noise (`dptext.embeddings.dpsgd.tables`)."""

RANKS = (
    "all ranks, and the network between them, belong to whoever holds the texts: sums without noise go from one to the "
    "other"
)
"""Of a training on several ranks (`dptext.embeddings.dpsgd.ranks`)."""
