"""Files and tables of texts: reading in batches, and writing completely or not at all."""
