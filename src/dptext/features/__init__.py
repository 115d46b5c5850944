"""Public features of texts: one text, one vector of bounded length, from that text and public numbers alone."""
