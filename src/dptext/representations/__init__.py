"""Text to private vector: encoders, bounds, randomizers, what goes to the device, and a server that learns from it."""
