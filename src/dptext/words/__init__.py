"""Word mechanisms on a public vocabulary, and replacement of the words of texts."""
