"""Files and tables of texts: read in batches, written completely or not at all."""
