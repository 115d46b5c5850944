"""Documents grouped by user, and words and labels learned from users."""
