"""What an epsilon does to words, and the epsilon that does what is wanted."""
