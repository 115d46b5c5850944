"""Effect of an epsilon on words, and the epsilon for a target."""
