"""Text source for servers with an OpenAI-compatible chat completions API."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit, urlunsplit

from dptext import validation
from dptext.errors import DataError, ParameterError, SourceError, StorageError, extra
from dptext.io.atomic import file_lock, open_own
from dptext.io.documents import PathLike
from dptext.privacy.statement import Parameter
from dptext.synthesis.prompts import PROMPTS_SHA256, Request, batches, proposal, texts_of, variation

T = TypeVar("T")
Messages = tuple[str, str]

_PATH = "/chat/completions"
_RETRIED_STATUSES = {408, 425, 429}  # besides all from 500
_FINAL_STATUSES = {
    401: "it does not accept the key",
    402: "it asks for payment",
    403: "it does not accept the key",
    404: "there is no such address there, or no such model",
    405: "there are no chat completions at this address",
}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Timeouts in seconds, and limits on retries, consecutive failures and the size of a response."""

    connect: float = 10.0
    read: float = 300.0
    call: float = 300.0
    retries: int = 4
    backoff: float = 1.0
    wait: float = 60.0
    failures: int = 5
    answer_bytes: int = 1_000_000

    def __post_init__(self) -> None:
        for name in ("connect", "read", "call"):
            validation.check_float(name, getattr(self, name), above=0)
        for name in ("backoff", "wait"):
            validation.check_float(name, getattr(self, name), minimum=0)
        for name, minimum in (("retries", 0), ("failures", 1), ("answer_bytes", 1)):
            validation.check_int(name, getattr(self, name), minimum=minimum)


class ChatEndpoint:
    """Language model behind a chat completions API: llama.cpp, Ollama, vLLM or a vendor (extra ``generators``).

    **Guarantee.** The texts are post-processing of the release, so they spend no privacy budget: the server receives
    only public instructions, label names, hints from the release and its own earlier texts. The operator of the server
    sees these, and the statement says so. Assumption: the model was not trained on the private texts.

    Args:
        url: address of the server, such as ``"http://localhost:8080/v1"``; ``/chat/completions`` is appended if it is
            missing. Redirects are not followed, and local addresses bypass proxies.
        model: name of the model on the server.
        key: API key. It is sent only to this address and never stored. Plain http is allowed only to this machine.
        key_variable: name of an environment variable that holds the key, instead of ``key``.
        about: public description of the texts, such as ``"questions to a bank's assistant, one sentence each"``.
        texts_per_call: number of texts requested per call.
        temperature: sampling temperature.
        max_tokens: maximum length of a response in tokens; None uses the server's default.
        seed: sampling seed, for servers that support one; every call gets a different one.
        connections: maximum number of simultaneous calls.
        max_calls: maximum number of calls of this object, retries included. Stored answers do not count.
        answers: file that stores the answers, so that an interrupted run continues without repeating requests. It
            contains texts that the model wrote, and digests of the requests.
        limits: timeouts, retries and sizes.

    Attributes:
        calls: number of calls so far.

    Raises:
        ParameterError: an invalid address, key or number; a key over http to another machine.
        MissingExtraError: httpx is not installed.

    >>> source = ChatEndpoint("http://localhost:8080/v1", model="tiny", about="short news")
    >>> source
    ChatEndpoint('http://localhost:8080', model='tiny')
    """

    name = "a language model behind an address"

    def __init__(
        self,
        url: str,
        *,
        model: str,
        key: str | None = None,
        key_variable: str | None = None,
        about: str = "",
        texts_per_call: int = 10,
        temperature: float = 1.0,
        max_tokens: int | None = 4096,
        seed: int | None = None,
        connections: int = 4,
        max_calls: int = 10_000,
        answers: PathLike | None = None,
        limits: Limits | None = None,
    ) -> None:
        httpx = extra("httpx", "generators", "ChatEndpoint")
        self._address, self.host, self._is_local = _check_address(url, httpx)
        self._key = _Key(key, key_variable)
        if self._key.is_there and not self._is_local and not self._address.startswith("https:"):
            raise ParameterError(
                f"a key would go to {self.host} in the clear: use https://, or a tunnel to an address on this machine"
            )
        self.model = validation.check_text("model", model)
        self.about = validation.check_text("about", about) if about != "" else ""
        self.texts_per_call = validation.check_int("texts_per_call", texts_per_call, minimum=1, maximum=1000)
        self.temperature = validation.check_float("temperature", temperature, minimum=0)
        self.max_tokens = None if max_tokens is None else validation.check_int("max_tokens", max_tokens, minimum=1)
        self.seed = None if seed is None else validation.check_int("seed", seed)
        self.connections = validation.check_int("connections", connections, minimum=1, maximum=1000)
        self.max_calls = validation.check_int("max_calls", max_calls, minimum=0)
        self.limits = Limits() if limits is None else limits
        self._kept = None if answers is None else _KeptAnswers(validation.check_path("answers", answers))
        self._read_request: Counter[str] = Counter()
        self._failed_in_a_row = self._failed = self._answered = 0
        self.calls = 0
        self._last_failure = ""

    def propose(self, request: Request) -> list[str]:
        """Return up to ``request.count`` new texts of a label; fewer if calls fail.

        Raises:
            SourceError: the server refused, or too many consecutive calls failed.
            StorageError: the file of stored answers cannot be used.
        """
        size = self.texts_per_call
        counts = [min(size, request.count - start) for start in range(0, request.count, size)]
        return self._request_texts(
            [(proposal(request, count, about=self.about, turn=turn), count) for turn, count in enumerate(counts)]
        )

    def vary(self, texts: Iterable[str], request: Request) -> list[str]:
        """Return variations of texts; raises the same errors as `propose`."""
        parts = batches(texts, request.count, self.texts_per_call)
        return self._request_texts(
            [(variation(part, request, about=self.about, turn=turn), len(part)) for turn, part in enumerate(parts)]
        )

    def parameters(self) -> dict[str, Parameter]:
        return {
            "generator": self.name,
            "generator_model": self.model,
            "generator_host": self._operator,
            "generator_about": self.about,
            "generator_temperature": self.temperature,
            "generator_texts_per_call": self.texts_per_call,
            "generator_max_tokens": self.max_tokens,
            "generator_prompts_sha256": PROMPTS_SHA256,
        }

    def assumptions(self) -> tuple[str, ...]:
        return (
            f"the model '{self.model}' is public: it was not trained on the private texts",
            "what was sent to the model: names of the labels, hints of the release, public instructions, and what it "
            "had written itself; no private text",
            "the texts were written by a language model: what they assert may be false",
        )

    def exposed(self) -> tuple[str, ...]:
        return (
            f"to who runs the model's server ({self._operator}): the names of the labels, hints of the release, the "
            "instructions, and what the model wrote",
        )

    @property
    def trouble(self) -> str:
        """Reason why texts are missing; empty if no call failed."""
        if self.calls >= self.max_calls:
            return f"all {self.max_calls:,} calls are made (max_calls)"
        if not self._failed:
            return ""
        ended = self._failed + self._answered
        return f"{self._failed:,} of {ended:,} calls failed, the last one with: {self._last_failure}"

    @property
    def _operator(self) -> str:
        return "on the curator's machine" if self._is_local else self.host

    def __repr__(self) -> str:
        return f"ChatEndpoint({self._address.partition('://')[0] + '://' + self.host!r}, model={self.model!r})"

    @cached_property
    def _tls(self) -> Any:
        return extra("httpx", "generators", "ChatEndpoint").create_ssl_context()  # slow, so created once

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_tls"}

    def _request_texts(self, queries: Sequence[tuple[Messages, int]]) -> list[str]:
        calls = []
        for messages, count in queries:
            body = self._body(messages)
            digest = _digest(body)
            turn = self._read_request[digest]  # a repeated request gets a new answer
            self._read_request[digest] += 1
            if self.seed is not None:
                body["seed"] = (self.seed + turn) % 2**31
            calls.append(_Call(body, _digest([digest, self.seed, turn]), count))
        if self._kept is None:
            _run_in_thread(lambda: self._call_all(calls, None))
        else:
            with self._kept.opened() as kept:
                for call in calls:
                    call.texts = kept.known.get(call.digest, ())
                _run_in_thread(lambda: self._call_all(calls, kept))
        return [text for call in calls for text in call.texts[: call.count]]

    def _body(self, messages: Messages) -> dict[str, Any]:
        system, user = messages
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": self.temperature,
            "stream": False,
        }
        return body if self.max_tokens is None else body | {"max_tokens": self.max_tokens}

    async def _call_all(self, calls: Sequence[_Call], kept: _KeptAnswers | None) -> None:
        todo = iter([call for call in calls if not call.texts])
        httpx = extra("httpx", "generators", "ChatEndpoint")
        limits = self.limits
        error: BaseException | None = None
        async with httpx.AsyncClient(
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "dptext"},
            timeout=httpx.Timeout(limits.read, connect=limits.connect, pool=None),
            limits=httpx.Limits(max_connections=self.connections, max_keepalive_connections=self.connections),
            follow_redirects=False,
            trust_env=not self._is_local,
            verify=self._tls,
        ) as client:

            async def work() -> None:
                for call in todo:
                    call.texts = await self._call(client, call)
                    if kept is not None and call.texts:
                        kept.add(call.digest, call.texts)

            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(self.connections):
                        group.create_task(work())
            except BaseExceptionGroup as errors:
                error = errors.exceptions[0]
        if error is not None:
            raise error

    async def _call(self, client: Any, call: _Call) -> tuple[str, ...]:
        """Return the texts of one call; none if it failed or no call is left."""
        limits = self.limits
        for index in range(limits.retries + 1):
            if self.calls >= self.max_calls:
                return ()
            self.calls += 1
            try:
                texts = tuple(_read_answer(await self._post(client, call.body), call.count))
            except _CallError as failure:
                if failure.is_final:
                    raise SourceError(f"the server at {self.host} refuses to answer: {failure.kind}") from None
                if not failure.is_passing or index == limits.retries:
                    self._count_failure(failure)
                    return ()
                pause = limits.backoff * 2.0**index if failure.wait is None else failure.wait
                await asyncio.sleep(min(pause, limits.wait))
            else:
                self._failed_in_a_row = 0
                self._answered += 1
                return texts
        return ()

    async def _post(self, client: Any, body: dict[str, Any]) -> bytes:
        httpx = extra("httpx", "generators", "ChatEndpoint")
        limits = self.limits
        headers = {"Content-Type": "application/json", **self._key.headers()}
        answer = bytearray()
        try:
            async with (
                asyncio.timeout(limits.call),  # limits servers that send byte by byte, too
                client.stream("POST", self._address, content=json.dumps(body).encode(), headers=headers) as response,
            ):
                if not response.is_success:
                    raise _status_error(response)
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise _CallError("an answer in a compressed form, which was not asked for")
                async for part in response.aiter_raw():
                    answer += part
                    if len(answer) > limits.answer_bytes:
                        raise _CallError(f"an answer of more than {limits.answer_bytes:,} bytes")
        except (TimeoutError, httpx.TimeoutException) as error:
            text = "no connection" if isinstance(error, httpx.ConnectTimeout) else "no whole answer"
            raise _CallError(f"{text} in time", is_passing=True) from None
        except httpx.ConnectError as error:
            raise _CallError(f"no connection ({error})", is_passing=True) from None
        except httpx.HTTPError as error:  # its message may contain parts of the answer
            raise _CallError(f"the connection broke ({type(error).__name__})", is_passing=True) from None
        return bytes(answer)

    def _count_failure(self, failure: _CallError) -> None:
        self._failed_in_a_row, self._failed = self._failed_in_a_row + 1, self._failed + 1
        self._last_failure = failure.kind
        if self._failed_in_a_row < self.limits.failures:
            return
        count, self._failed_in_a_row = self._failed_in_a_row, 0
        kept = "" if self._kept is None else "; the answers so far are kept, so that the same run goes on from there"
        raise SourceError(
            f"{count} {'call' if count == 1 else 'calls one after the other'} to the server at {self.host} failed, the "
            f"last one with: {failure.kind} ({self._answered:,} were answered before{kept})"
        )


@dataclass
class _Call:
    body: dict[str, Any]
    digest: str
    count: int
    texts: tuple[str, ...] = ()


@dataclass(eq=False)
class _CallError(Exception):
    """Failure of one call. ``wait`` is the number of seconds after which the server accepts a retry."""

    kind: str
    is_passing: bool = False
    is_final: bool = False
    wait: float | None = None


def _status_error(response: Any) -> _CallError:
    status = int(response.status_code)
    if 300 <= status < 400:
        return _CallError(f"status {status}, a redirect: give the address that it leads to", is_final=True)
    if status in _FINAL_STATUSES:
        return _CallError(f"status {status}, {_FINAL_STATUSES[status]}", is_final=True)
    if status in _RETRIED_STATUSES or status >= 500:
        return _CallError(
            f"status {status}", is_passing=True, wait=_retry_after(response.headers.get("retry-after", ""))
        )
    return _CallError(f"status {status}, it does not accept the request (some know no max_tokens: None leaves it out)")


def _retry_after(value: str) -> float | None:
    """Return the seconds of a Retry-After header, which holds a number or a date."""
    with suppress(ValueError):
        seconds = float(value)
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    return None


def _read_answer(answer: bytes, limit: int) -> list[str]:
    try:
        choice = json.loads(answer)["choices"][0]
        content = choice["message"]["content"]
        is_cut = choice.get("finish_reason") == "length"
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise _CallError("an answer that is no chat completion") from None
    texts = texts_of(content, limit, is_cut=is_cut) if isinstance(content, str) else []
    if not texts:
        raise _CallError("an answer without a text")
    return texts


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _run_in_thread(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a new thread, since a notebook already runs an event loop; an interrupt cancels it."""
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def run_registered() -> T:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await main()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: asyncio.run(run_registered()))
        try:
            return future.result()
        except BaseException:
            for loop, task in running:
                if task is not None:
                    with suppress(RuntimeError):  # the loop has ended
                        loop.call_soon_threadsafe(task.cancel)
            raise


def _check_address(url: object, httpx: Any) -> tuple[str, str, bool]:
    text = validation.check_text("url", url)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
        httpx.URL(text)
    except (ValueError, httpx.InvalidURL):
        parts, host, port = SplitResult("", "", "", "", ""), None, None
    if parts.scheme not in ("http", "https") or not host or not text.isascii() or any(entry <= " " for entry in text):
        raise ParameterError("url must be an address as in http://localhost:8080/v1 or https://api.example.org/v1")
    if "@" in parts.netloc:
        raise ParameterError("url must be without a user and a password: give a key as key= or key_variable=")
    path = parts.path.rstrip("/")
    path = path if path.endswith(_PATH) else path + _PATH
    named = f"[{host}]" if ":" in host else host
    return (
        urlunsplit((parts.scheme, parts.netloc, path, parts.query, "")),
        named if port is None else f"{named}:{port}",
        _is_this_machine(host),
    )


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


class _Key:
    """API key that never appears in a repr, a pickle or a copy."""

    def __init__(self, value: object, variable: object) -> None:
        if value is not None and variable is not None:
            raise ParameterError("give a key or the variable that holds it, not both")
        self._variable = None if variable is None else validation.check_text("key_variable", variable)
        self._value = None if value is None else _check_key("key", value)
        if self._variable is not None:
            self.headers()  # raises now if the variable holds no key

    @property
    def is_there(self) -> bool:
        return self._value is not None or self._variable is not None

    def headers(self) -> dict[str, str]:
        if self._variable is not None:
            name = f"the environment variable {validation.display_value(self._variable)} (key_variable)"
            return {"Authorization": f"Bearer {_check_key(name, os.environ.get(self._variable))}"}
        return {} if self._value is None else {"Authorization": f"Bearer {self._value}"}

    def __repr__(self) -> str:
        return "a key" if self.is_there else "no key"

    def __reduce__(self) -> Any:
        if self._value is None:
            return (_Key, (None, self._variable))
        raise TypeError("an endpoint with a key is never pickled or copied: name the variable that holds it instead")


def _check_key(name: str, value: object) -> str:
    if not isinstance(value, str) or not value or not value.isascii() or not value.isprintable() or " " in value:
        text = "nothing" if value is None or value == "" else "something else"
        raise ParameterError(f"{name} must hold a key of printable ASCII characters without spaces, got {text}")
    return value


_HEAD = b'{"dptext": "kept answers", "version": 1}\n'


class _KeptAnswers:
    """JSON Lines file of answers by the digest of their request."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.known: dict[str, tuple[str, ...]] = {}
        self._stream: Any = None
        with self.opened():
            pass  # report an unusable file before the first paid call

    @contextmanager
    def opened(self) -> Iterator[_KeptAnswers]:
        """Lock and read the file, and keep it open for appending."""
        with file_lock(self._path):
            try:
                self._stream = open_own(self._path)
            except StorageError:
                raise
            except OSError as error:
                raise StorageError.of("open", self._path, error) from None
            with self._stream:
                self._read()
                yield self

    def _read(self) -> None:
        data = self._stream.read() or self._write(_HEAD)
        if not data.startswith(_HEAD):
            raise DataError(f"{self._path.name} is no file of kept answers: choose another name for answers")
        for line in data[len(_HEAD) :].splitlines():
            with suppress(ValueError):  # an incomplete last line
                entry = json.loads(line)
                self.known[entry["request"]] = tuple(entry["texts"])
        if not data.endswith(b"\n"):
            self._write(b"\n")

    def add(self, digest: str, texts: tuple[str, ...]) -> None:
        self._write(json.dumps({"request": digest, "texts": texts}).encode() + b"\n")

    def _write(self, line: bytes) -> bytes:
        try:
            self._stream.write(line)
            self._stream.flush()
        except OSError as error:
            raise StorageError.of("write", self._path, error) from None
        return line
