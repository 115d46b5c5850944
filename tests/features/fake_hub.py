"""A Hugging Face Hub on this machine, for the real `datasets` and `huggingface_hub`; tests have no network."""

import hashlib
import io
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

COMMIT = "a1" * 20


def parquet(rows):
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), stream)
    return stream.getvalue()


class Hub(BaseHTTPRequestHandler):
    """The part of the Hub's API that reading a data set uses: its card, its files and their list."""

    protocol_version = "HTTP/1.1"
    repositories: dict[str, dict[str, bytes]]
    gated: frozenset[str]

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.reply(404, b"{}", True)

    def reply(self, code, content, has_body, **headers):
        self.send_response(code)
        for name, value in {"content-length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if has_body:
            self.wfile.write(content)

    def answer(self, has_body):
        path = unquote(self.path.partition("?")[0]).removeprefix("/api").removeprefix("/datasets/")
        name = "/".join(path.split("/")[:2])
        files, rest = self.repositories.get(name), path.split("/")[2:]
        if name in self.gated:
            self.reply(403, b"", has_body, x_error_code="GatedRepo")
        elif files is None:
            self.reply(401, b"", has_body, x_error_code="RepoNotFound")
        elif len(rest) > 1 and rest[1] not in ("main", COMMIT):
            self.reply(404, b"", has_body, x_error_code="RevisionNotFound")
        elif rest[:1] == ["resolve"] and (content := files.get("/".join(rest[2:]))) is not None:
            self.reply(200, content, has_body, x_repo_commit=COMMIT, etag=f'"{hashlib.sha1(content).hexdigest()}"')
        elif rest[:1] == ["tree"] and (listed := list(entries(files, "/".join(rest[2:])))):
            self.reply(200, json.dumps(listed).encode(), has_body)
        elif rest[:1] in ([], ["revision"]):
            self.reply(200, json.dumps({"id": name, "sha": COMMIT}).encode(), has_body)
        else:
            self.reply(404, b"", has_body, x_error_code="EntryNotFound")


def entries(files, folder):
    """Files and folders that are directly in a folder."""
    start = f"{folder}/" if folder else ""
    inside = [path for path in files if path.startswith(start)]
    for first in sorted({path.removeprefix(start).partition("/")[0] for path in inside}):
        content = files.get(start + first)
        kind = "directory" if content is None else "file"
        yield {"type": kind, "path": start + first, "size": len(content or b""), "oid": "0" * 40}


@contextmanager
def hub(repositories, gated=()):
    """Serve data sets, each with its files; yield the address."""
    handler = type("Handler", (Hub,), {"repositories": repositories, "gated": frozenset(gated)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def run_python(code, home, endpoint, *, offline=False, cwd=None):
    """Run code in a process that has the Hub at this address; return its output."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))},
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "HF_HOME": str(home),
        "HF_ENDPOINT": endpoint,
        "HF_HUB_OFFLINE": "1" if offline else "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    return subprocess.run([sys.executable, "-c", code], env=environment, cwd=cwd, capture_output=True, text=True)
