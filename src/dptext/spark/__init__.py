"""The same work on many machines: nothing here promises anything that one machine does not."""
