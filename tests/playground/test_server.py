"""The server of the playground: access, responses, and no private text in messages."""

import asyncio
import dataclasses
import json
import socket
import sys
import threading
from html.parser import HTMLParser
from importlib.resources import files

import httpx
import pytest

from dptext.errors import MissingExtraError, ParameterError, StorageError
from dptext.methods.preview import AttackPreview, Neighbours, Piece, TextPreview
from dptext.playground.server import HEADERS, MAX_BYTES, PREVIEWERS, Server, app
from serving import in_background

TOKEN = "0123456789abcdef"
ORIGIN = "http://127.0.0.1:8123"
SECRET = "zebulon"
REQUEST = {"method": "words", "text": SECRET, "epsilon": 2.0}


class Fake:
    """A model that remembers the epsilons of its requests, and waits if a test tells it to."""

    samples = (("A title", "a text"),)

    def __init__(self):
        self.requests, self.may_continue = [], threading.Event()
        self.may_continue.set()

    def show(self, method, text, epsilon):
        self.requests.append(epsilon)
        self.may_continue.wait(10)
        if epsilon == 13:
            raise ParameterError("epsilon must not be 13")
        if epsilon == 14:
            raise RuntimeError(text)
        return TextPreview(
            method=method,
            epsilon=epsilon,
            guarantee="g",
            strength="s",
            protects=True,
            pieces=(Piece(text, 0.5, (("a", 0.5),)),),
            draws=("a",),
            attack=AttackPreview("x", 0.5, 0.1),
            neighbours=Neighbours("a", "b", 0.5, "x"),
        )


@pytest.fixture
def model():
    return Fake()


@pytest.fixture
def ask(model):
    """``ask(method, path, ...)``: one request to the application, without a network."""
    served = serve_at(app(model, TOKEN), 8123)

    def send(method, path, **options):
        async def go():
            transport = httpx.ASGITransport(served)
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
                return await client.request(method, path, **options)

        return asyncio.run(go())

    return send


def serve_at(served, port):
    async def wrapped(scope, receive, send):
        await served({**scope, "server": ("127.0.0.1", port)}, receive, send)

    return wrapped


def test_the_page_its_parts_and_a_preview_are_served(ask, model):
    for path, kind in (("", "text/html"), ("style.css", "text/css"), ("playground.js", "text/javascript")):
        answer = ask("GET", f"/{TOKEN}/{path}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
    offered = ask("GET", f"/{TOKEN}/methods").json()
    assert [entry["name"] for entry in offered["methods"]] == list(PREVIEWERS)
    assert offered["samples"] == [{"title": "A title", "text": "a text"}]
    answer = ask("POST", f"/{TOKEN}/show", json=REQUEST)
    assert answer.status_code == 200
    assert answer.json() == json.loads(json.dumps(dataclasses.asdict(model.show(**REQUEST))))


def test_the_page_loads_nothing_from_elsewhere():
    class References(HTMLParser):
        def __init__(self):
            super().__init__()
            self.references = []

        def handle_starttag(self, tag, attributes):
            self.references += [value for name, value in attributes if name in ("src", "href")]
            assert not any(name.startswith("on") or name == "style" for name, _ in attributes)

    static = files("dptext.playground") / "static"
    parser = References()
    parser.feed((static / "index.html").read_text("utf-8"))
    assert sorted(parser.references) == ["data:,", "playground.js", "style.css"]
    script = (static / "playground.js").read_text("utf-8")
    for word in ("innerHTML", "insertAdjacent", "document.write", "eval(", "localStorage", "sessionStorage", ".cookie"):
        assert word not in script
    assert "url(" not in (static / "style.css").read_text("utf-8")


def test_requests_without_the_token_or_from_elsewhere_are_refused(ask, model):
    for path, headers, status in [
        ("/", {}, 404),
        (f"/{TOKEN}", {}, 404),
        (f"/{TOKEN}0/", {}, 404),
        ("/%e2%82%ac/", {}, 404),
        (f"/{TOKEN}/methods/", {}, 404),
        (f"/{TOKEN}/../server.py", {}, 404),
        (f"/{TOKEN}/show", {}, 405),
        (f"/{TOKEN}/", {"host": "elsewhere.test:8123"}, 403),
        (f"/{TOKEN}/", {"host": "127.0.0.1:8124"}, 403),
        (f"/{TOKEN}/", {"origin": "http://elsewhere.test"}, 403),
        (f"/{TOKEN}/", {"origin": "http://127.0.0.1:9"}, 403),
        (f"/{TOKEN}/", {"sec-fetch-site": "cross-site"}, 403),
        (f"/{TOKEN}/", {"sec-fetch-site": "same-site"}, 403),
        (f"/{TOKEN}/", {"sec-fetch-site": "none"}, 200),
        (f"/{TOKEN}/", {"host": "localhost:8123", "origin": "http://localhost:8123"}, 200),
    ]:
        answer = ask("GET", path, headers=headers)
        assert answer.status_code == status, (path, headers)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert "set-cookie" not in answer.headers
        assert status == 200 or not (TOKEN in answer.text or "<" in answer.text)
        if status == 403:
            assert ask("POST", f"/{TOKEN}/show", json=REQUEST, headers=headers).status_code == 403
    plain = {"content": json.dumps(REQUEST), "headers": {"content-type": "text/plain"}}
    assert ask("POST", f"/{TOKEN}/show", **plain).status_code == 415
    assert model.requests == []


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (SECRET, 422, "must be JSON"),
        ("[" * 20_000, 422, "must be JSON"),
        (json.dumps([SECRET]), 422, "must be a JSON object"),
        (json.dumps({**REQUEST, SECRET: 1}), 422, "text only"),
        (json.dumps({"text": SECRET}), 422, "with epsilon, method, text"),
        (json.dumps({**REQUEST, "epsilon": 13}), 422, "epsilon must not be 13"),
        (json.dumps({**REQUEST, "epsilon": 14}), 500, "internal error: RuntimeError"),
        (json.dumps({**REQUEST, "text": SECRET * MAX_BYTES}), 413, f"at most {MAX_BYTES:,} bytes"),
    ],
)
def test_error_messages_do_not_contain_the_text(ask, caplog, capfd, content, status, message):
    answer = ask("POST", f"/{TOKEN}/show", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert message in answer.json()["error"]
    assert SECRET not in answer.text + caplog.text + "".join(capfd.readouterr())


def test_the_page_is_served_while_a_preview_is_computed(model):
    model.may_continue.clear()
    served = serve_at(app(model, TOKEN), 8123)

    async def go():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url=ORIGIN) as client:
            request = asyncio.create_task(client.post(f"/{TOKEN}/show", json=REQUEST))
            await asyncio.sleep(0.05)
            page = await client.get(f"/{TOKEN}/")
            model.may_continue.set()
            return page.status_code, (await request).status_code

    assert asyncio.run(go()) == (200, 200)


def test_the_server_listens_on_this_machine_only_and_logs_nothing(model, caplog, capfd):
    server = Server(model)
    other = Server(model)
    assert server.address.startswith(f"http://127.0.0.1:{server.port}/")
    assert len(server.address.split("/")[3]) == 48 and server.address.split("/")[3] != other.address.split("/")[3]
    other._socket.close()
    with in_background(server) as address:
        assert httpx.post(address + "show", json=REQUEST, trust_env=False).status_code == 200
        assert httpx.post(address + "show", json={**REQUEST, "epsilon": 14}, trust_env=False).status_code == 500
        with pytest.raises(StorageError, match=r"cannot listen on '127.0.0.1"):
            Server(model, port=server.port)
        assert server._socket.getsockname() == ("127.0.0.1", server.port)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)
    assert "".join(capfd.readouterr()) == "" and caplog.text == ""


def test_a_bad_port_or_a_missing_extra_is_refused(model, monkeypatch):
    with pytest.raises(ParameterError, match="port must be from 1024 to 65535, got 0"):
        Server(model, port=0)
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[playground\]"'):
        Server(model)
