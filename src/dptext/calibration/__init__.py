"""Effect of an epsilon on words, and the epsilon that reaches a target."""
