"""Texts as texts of a public bank: sentence for sentence, or a document as a whole, under a pure local promise."""
