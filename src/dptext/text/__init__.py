"""Tokens, sentences, vocabularies, and identifiers in texts and tables."""
