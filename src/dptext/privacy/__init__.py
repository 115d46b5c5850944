"""What is promised: units, guarantees, statements, and the one source of random bits."""
