"""Word to word, text to text: mechanisms on a public vocabulary, and the rewriter of whole corpora."""
