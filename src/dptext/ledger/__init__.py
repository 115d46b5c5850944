"""Ledger of the privacy budget that each unit has spent over all releases."""
