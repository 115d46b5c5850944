"""Sentence replacement: replace sentences or documents by texts of a public bank, with pure local DP."""
