"""The release methods behind one interface, and the comparison of all of them (`advise`)."""
