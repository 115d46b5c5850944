"""Guarantees, privacy statements, accounting, and the only source of random bits."""
