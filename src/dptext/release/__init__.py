"""One release: read rows, charge the ledger, replace texts, publish the data with its statement."""
