"""Synthetic corpora: one noisy release about all users, and public or generated texts selected by it."""
