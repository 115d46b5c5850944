"""Words as points: loading public word vectors, distances between them, exact search."""
