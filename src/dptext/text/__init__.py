"""What comes in and goes out: tokens, vocabularies, documents and their files."""
