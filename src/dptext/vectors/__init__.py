"""Word vectors: loading and saving, distances, and exact search."""
