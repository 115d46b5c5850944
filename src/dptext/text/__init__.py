"""Tokens of a text, and the vocabulary in which they are looked up."""
