"""Releases from file to file: resumable, charged to a ledger, published with a statement."""
