"""What people write about: topics, phrases and trends, counted with a guarantee per person."""
