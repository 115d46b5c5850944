"""A private file out of files: resumable, charged, its statement beside it."""
