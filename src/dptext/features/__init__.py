"""Bounded text features: the vector of a text depends on this text and public parameters only."""
