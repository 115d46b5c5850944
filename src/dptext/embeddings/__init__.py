"""Word vectors that may be shared, learned from the texts of users."""
