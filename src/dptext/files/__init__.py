"""Files and tables of texts: read in blocks, and written whole or not at all."""
