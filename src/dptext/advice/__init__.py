"""Which way suits somebody's texts: what each would promise, be good for and give away here, and the command for it."""
