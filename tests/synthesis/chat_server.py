"""Server of completions and chat completions in a separate process, with chosen failures; it records all requests.

The path names the behaviours: the first request to ``/NAME/500,cut,ok/v1/chat/completions`` gets the first one, the
second request the second one, and so on; the last one is repeated. ``GET /got/NAME`` returns the recorded requests.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEN_MEGABYTES = 10_000_000
NEVER = threading.Event()
COUNT = re.compile(r"Write (\d+) more texts")


class State:
    """Recorded requests and counts, under one lock."""

    def __init__(self):
        self.lock = threading.Lock()
        self.turns, self.got, self.made = {}, {}, itertools.count()
        self.running, self.most = {}, {}
        self.together = threading.Barrier(3)


class Tee:
    """Stream that records the bytes that are read from it."""

    def __init__(self, stream, kept):
        self.stream, self.kept = stream, kept

    def readline(self, *size):
        self.kept += (line := self.stream.readline(*size))
        return line

    def read(self, *size):
        self.kept += (part := self.stream.read(*size))
        return part

    def __getattr__(self, name):
        return getattr(self.stream, name)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Ignore clients that close the connection."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def setup(self):
        super().setup()
        self.kept = bytearray()
        self.rfile = Tee(self.rfile, self.kept)

    def log_message(self, *_):
        pass

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        with self.state.lock:
            result = {"got": self.state.got.get(name, []), "most": self.state.most.get(name, 0)}
        self.answer(json.dumps(result).encode())

    def do_POST(self):
        name, behaviours = self.path.split("/")[1:3]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        state = self.state
        with state.lock:
            turn = state.turns[self.path] = state.turns.get(self.path, -1) + 1
            state.got.setdefault(name, []).append(bytes(self.kept).decode("latin-1"))
            self.kept.clear()
            state.running[name] = state.running.get(name, 0) + 1
            state.most[name] = max(state.most.get(name, 0), state.running[name])
        behaviours = behaviours.split(",")
        behaviour, colon, value = behaviours[min(turn, len(behaviours) - 1)].partition(":")
        try:
            with suppress(ConnectionError):
                getattr(self, f"do_{behaviour}", self.status)(json.loads(body), value if colon else behaviour)
        finally:
            with state.lock:
                state.running[name] -= 1

    def do_ok(self, body, _):
        count = 10  # a completion is not told how many
        if "messages" in body:
            count = int(COUNT.search(body["messages"][-1]["content"])[1])
        self.complete("\n- ".join(f"Text {next(self.state.made)} of {body['model']}." for _ in range(count)))

    def do_numbered(self, *_):
        numbered = [f"{index}. Text {next(self.state.made)}." for index in range(1, 11)]
        self.complete("\n".join(["Here they are:", *numbered]))

    def do_content(self, _, value):
        self.complete(urllib.request.unquote(value))

    def do_raw(self, _, value):
        self.answer(urllib.request.unquote(value).encode())

    def do_cutoff(self, body, _):
        self.complete("A whole text.\nAnother that is", finish_reason="length")

    def do_many(self, body, _):
        self.complete("\n".join(f"Text {next(self.state.made)}." for _ in range(500)))

    def do_together(self, body, _):
        self.state.together.wait()  # until three requests wait
        self.do_ok(body, _)

    def do_hang(self, *_):
        NEVER.wait()

    def do_trickle(self, *_):
        self.head({"Content-Length": "1000000"})
        while True:
            self.wfile.write(b" ")
            time.sleep(0.01)

    def do_slowhead(self, *_):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while True:
            self.wfile.write(b"a")
            time.sleep(0.01)

    def do_huge(self, *_):
        self.complete("x" * TEN_MEGABYTES)

    def do_endless(self, *_):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        while True:
            self.wfile.write(b"x" * 100_000)

    def do_cut(self, *_):
        self.head({"Content-Length": "1000"})
        self.wfile.write(b'{"choices": [{')
        self.close_connection = True

    def do_drop(self, *_):
        self.close_connection = True

    def do_later(self, _, value):
        self.answer(b"SECRET-OF-THE-ANSWER", 429, {"Retry-After": value})

    def do_moved(self, *_):
        self.answer(b"", 307, {"Location": "/elsewhere/ok/v1/chat/completions"})

    def do_gzip(self, *_):
        self.answer(b"\x1f\x8b", 200, {"Content-Encoding": "gzip"})

    def status(self, _, value):
        self.answer(b'{"error": "SECRET-OF-THE-ANSWER"}', int(value))

    def complete(self, content, finish_reason="stop"):
        is_chat = self.path.endswith("/chat/completions")
        choice = {"message": {"role": "assistant", "content": content}} if is_chat else {"text": content}
        self.answer(json.dumps({"choices": [{"index": 0, **choice, "finish_reason": finish_reason}]}).encode())

    def head(self, headers, status=200):
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def answer(self, body, status=200, headers=None):
        self.head({"Content-Length": str(len(body)), **(headers or {})}, status)
        self.wfile.write(body)


class Running:
    """A running server, for tests."""

    def __init__(self, process, port):
        self.process, self.port, self._names = process, port, itertools.count()

    def url(self, behaviours, name=None):
        """Return an address with these behaviours and a name for its requests."""
        name = name or f"test{next(self._names)}"
        return f"http://127.0.0.1:{self.port}/{name}/{behaviours}/v1"

    def requests(self, url):
        """Return the bytes of each request to an address."""
        return self._state(url)["got"]

    def most_at_once(self, url):
        return self._state(url)["most"]

    def bodies(self, url):
        return [json.loads(entry.partition("\r\n\r\n")[2]) for entry in self.requests(url)]

    def _state(self, url):
        name = url.split("/")[3]
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            f"http://127.0.0.1:{self.port}/got/{name}", timeout=60
        ) as answer:
            return json.load(answer)

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextmanager
def running():
    """Start a server, and kill it at the end."""
    process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
    try:
        yield Running(process, int(process.stdout.readline()))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    Handler.state = State()
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
