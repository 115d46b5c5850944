"""The server of the playground in another thread."""

import threading
from contextlib import contextmanager


@contextmanager
def in_background(server):
    """Run a server; yield its address."""
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server.address
    finally:
        server._server.should_exit = True
        thread.join()
