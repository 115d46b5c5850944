"""Utility of private texts and vectors compared with a baseline; fairness; quality of a corpus."""
