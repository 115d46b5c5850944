"""Promise, attack and utility, to be looked at."""
