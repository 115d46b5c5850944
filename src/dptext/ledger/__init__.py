"""Ledger of the privacy budget that units have spent over all releases."""
