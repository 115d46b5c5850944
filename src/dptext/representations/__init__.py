"""Private vectors: encoders, bounds, randomizers, device encoders, and classifiers for the server."""
