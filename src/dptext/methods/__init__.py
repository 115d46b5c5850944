"""The release methods behind one interface, and what is built on all of them: `advise`."""
