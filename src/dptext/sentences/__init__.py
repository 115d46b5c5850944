"""Sentence replacement: replace sentences or documents with texts of a public bank, under pure local DP."""
