"""A corpus of users -> word vectors that may be shared."""
