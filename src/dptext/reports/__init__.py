"""Reports: the guarantee, attacks and utility of a release on one page."""
