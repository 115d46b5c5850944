"""Text source for servers with an OpenAI-compatible chat completions API."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dptext import validation
from dptext.errors import DataError, ParameterError, SourceError, StorageError, extra
from dptext.io.atomic import file_lock, open_own
from dptext.io.documents import PathLike
from dptext.privacy.statement import Parameter
from dptext.synthesis.prompts import (
    PROMPTS_SHA256,
    Request,
    batches,
    model_assumptions,
    proposal,
    texts_of,
    variation,
)

_PATH = "/chat/completions"
_CONNECT_SECONDS = 10.0
_ANSWER_BYTES = 1_000_000
_RETRIED_STATUSES = {408, 425, 429}  # besides all from 500
_FINAL_STATUSES = {401, 402, 403, 404, 405}  # besides redirects


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds per call and between retries, and maximum numbers of retries and of consecutive failures."""

    timeout: float = 300.0
    retries: int = 4
    backoff: float = 1.0
    longest_pause: float = 60.0
    failures: int = 5


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
        max_tokens: maximum length of a response in tokens; None leaves it to the server (some accept no such setting).
        seed: sampling seed, for servers that support one; every call gets a different one.
        connections: maximum number of simultaneous calls.
        max_calls: maximum number of calls of this object, retries included. Stored answers do not count.
        answers: file that stores the answers, so that an interrupted run continues without repeating requests. It
            contains texts that the model wrote, and digests of the requests.
        limits: timeouts, retries and consecutive failures.

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
        self._address, self.host, self._is_local = _check_address(url)
        if key is not None and key_variable is not None:
            raise ParameterError("give a key or the variable that holds it, not both")
        variable = None if key_variable is None else validation.check_text("key_variable", key_variable)
        self._key = None if key is None and variable is None else _Key(key, variable)
        if self._key is not None and not self._is_local and not self._address.startswith("https:"):
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
        self._answers = None if answers is None else validation.check_path("answers", answers)
        with _stored_answers(self._answers):
            pass  # report an unusable file before the first paid call
        self._requests: Counter[str] = Counter()
        self.calls = self._answered = self._failed = self._failed_in_a_row = 0
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
        return model_assumptions(self.model)

    def exposed(self) -> tuple[str, ...]:
        return (
            f"to the operator of the model's server ({self._operator}): names of the labels, hints of the release, "
            "instructions, and texts of the model",
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
        return _httpx().create_ssl_context()  # slow, so created once

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_tls"}

    def _request_texts(self, queries: Sequence[tuple[tuple[str, str], int]]) -> list[str]:
        """Return the texts of (system and user message, number of texts) queries, in their order."""
        calls = []
        for (system, user), count in queries:
            body: dict[str, Any] = {
                "model": self.model,
                "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
                "temperature": self.temperature,
                "stream": False,
                **({} if self.max_tokens is None else {"max_tokens": self.max_tokens}),
            }
            digest = _digest(body)
            turn = self._requests[digest]  # a repeated request gets a new answer
            self._requests[digest] += 1
            if self.seed is not None:
                body["seed"] = (self.seed + turn) % 2**31
            calls.append(_Call(body, _digest([digest, self.seed, turn]), count))
        with _stored_answers(self._answers) as stored:
            for call in calls:
                call.texts = stored.texts.get(call.digest, ())
            _run_in_thread(self._run([call for call in calls if not call.texts], stored))
        return [text for call in calls for text in call.texts[: call.count]]

    async def _run(self, calls: Iterable[_Call], stored: _StoredAnswers) -> None:
        """Make the calls, several at a time, and store their answers."""
        todo = iter(calls)
        httpx = _httpx()
        async with httpx.AsyncClient(
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "dptext"},
            timeout=httpx.Timeout(self.limits.timeout, connect=_CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(max_connections=self.connections, max_keepalive_connections=self.connections),
            trust_env=not self._is_local,
            verify=self._tls,
        ) as client:

            async def work() -> None:
                for call in todo:
                    call.texts = await self._call(client, call)
                    if call.texts:
                        stored.add(call.digest, call.texts)

            workers = [asyncio.create_task(work()) for _ in range(self.connections)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _call(self, client: Any, call: _Call) -> tuple[str, ...]:
        """Return the texts of one call; none if it failed or no call is left."""
        for index in range(self.limits.retries + 1):
            if self.calls >= self.max_calls:
                return ()
            self.calls += 1
            try:
                texts = _read_answer(await self._post(client, call.body), call.count)
            except _CallError as failure:
                if failure.is_final:
                    raise SourceError(f"the server at {self.host} refuses to answer: {failure.kind}") from None
                if not failure.can_pass or index == self.limits.retries:
                    self._count_failure(failure)
                    return ()
                pause = self.limits.backoff * 2.0**index if failure.wait is None else failure.wait
                await asyncio.sleep(min(pause, self.limits.longest_pause))
            else:
                self._failed_in_a_row = 0
                self._answered += 1
                return texts
        return ()

    async def _post(self, client: Any, body: dict[str, Any]) -> bytes:
        httpx = _httpx()
        headers = {"Content-Type": "application/json", **({} if self._key is None else self._key.headers())}
        answer = bytearray()
        try:
            async with (
                asyncio.timeout(self.limits.timeout),  # limits servers that send byte by byte, too
                client.stream("POST", self._address, content=json.dumps(body).encode(), headers=headers) as response,
            ):
                if not response.is_success:
                    raise _status_error(httpx, response)
                async for part in response.aiter_raw():
                    answer += part
                    if len(answer) > _ANSWER_BYTES:
                        raise _CallError(f"an answer of more than {_ANSWER_BYTES:,} bytes")
        except (TimeoutError, httpx.TimeoutException):
            raise _CallError("no whole answer in time", can_pass=True) from None
        except httpx.HTTPError as error:  # its message may contain parts of the answer
            raise _CallError(f"the connection failed ({type(error).__name__})", can_pass=True) from None
        return bytes(answer)

    def _count_failure(self, failure: _CallError) -> None:
        self._failed_in_a_row += 1
        self._failed += 1
        self._last_failure = failure.kind
        if self._failed_in_a_row < self.limits.failures:
            return
        count, self._failed_in_a_row = self._failed_in_a_row, 0
        stored = "" if self._answers is None else "; their answers are stored, and the same run continues from there"
        raise SourceError(
            f"{count} consecutive calls to the server at {self.host} failed, the last one with: {failure.kind} "
            f"({self._answered:,} calls were answered before{stored})"
        )


def _httpx() -> Any:
    return extra("httpx", "generators", "ChatEndpoint")


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
    can_pass: bool = False
    is_final: bool = False
    wait: float | None = None


def _status_error(httpx: Any, response: Any) -> _CallError:
    status, wait = int(response.status_code), None
    with suppress(ValueError):  # a date, which is not read
        seconds = float(response.headers.get("retry-after", ""))
        wait = seconds if math.isfinite(seconds) and seconds >= 0 else None
    return _CallError(
        f"status {status} {httpx.codes.get_reason_phrase(status)}".strip(),
        can_pass=status in _RETRIED_STATUSES or status >= 500,
        is_final=status in _FINAL_STATUSES or 300 <= status < 400,
        wait=wait,
    )


def _read_answer(answer: bytes, limit: int) -> tuple[str, ...]:
    try:
        choice = json.loads(answer)["choices"][0]
        content = choice["message"]["content"]
        is_cut = choice.get("finish_reason") == "length"
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise _CallError("an answer that is no chat completion") from None
    texts = texts_of(content, limit, is_cut=is_cut) if isinstance(content, str) else []
    if not texts:
        raise _CallError("an answer without a text")
    return tuple(texts)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _run_in_thread(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a new thread, since a notebook already runs an event loop; an interrupt cancels it."""
    with closing(asyncio.new_event_loop()) as loop, ThreadPoolExecutor(1) as pool:
        task = loop.create_task(work)
        try:
            pool.submit(loop.run_until_complete, task).result()
        except BaseException:
            loop.call_soon_threadsafe(task.cancel)
            raise


def _check_address(url: object) -> tuple[str, str, bool]:
    """Return the address of the completions, the host with its port, and whether it is this machine."""
    httpx, text = _httpx(), validation.check_text("url", url)
    try:
        address = httpx.URL(text)
        urlsplit(text).port  # noqa: B018  raises for brackets and ports that are none
    except (ValueError, httpx.InvalidURL):
        address = httpx.URL("")
    if address.scheme not in ("http", "https") or not address.host or not text.isascii() or "%" in address.host:
        raise ParameterError("url must be an address as in http://localhost:8080/v1 or https://api.example.org/v1")
    if address.userinfo:
        raise ParameterError("url must be without a user and a password: give a key as key= or key_variable=")
    path, mark, query = address.raw_path.decode().partition("?")
    path = path.rstrip("/").removesuffix(_PATH) + _PATH
    address = address.copy_with(raw_path=f"{path}{mark}{query}".encode(), fragment=None)
    is_local = address.host == "localhost" or address.host.endswith(".localhost")
    with suppress(ValueError):
        is_local = ipaddress.ip_address(address.host).is_loopback
    return str(address), address.netloc.decode(), is_local


class _Key:
    """API key that never appears in a repr, a pickle or a copy."""

    def __init__(self, value: str | None, variable: str | None) -> None:
        self._value, self._variable = value, variable
        self.headers()  # raises if there is no key

    def headers(self) -> dict[str, str]:
        name, key = "key", self._value
        if self._variable is not None:
            name = f"the environment variable {validation.display_value(self._variable)} (key_variable)"
            key = os.environ.get(self._variable)
        if not isinstance(key, str) or not key or not key.isascii() or not key.isprintable() or " " in key:
            kind = "something else" if key else "nothing"
            raise ParameterError(f"{name} must hold a key of printable ASCII characters without spaces, got {kind}")
        return {"Authorization": f"Bearer {key}"}

    def __repr__(self) -> str:
        return "a key"

    def __reduce__(self) -> Any:
        if self._value is None:
            return (_Key, (None, self._variable))
        raise TypeError("an endpoint with a key is never pickled or copied: name the variable that holds it instead")


_HEAD = b'{"dptext": "kept answers", "version": 1}\n'


@dataclass
class _StoredAnswers:
    """Texts of earlier answers by the digest of their request, and a function that writes a line."""

    texts: dict[str, tuple[str, ...]]
    write: Callable[[bytes], object]

    def add(self, digest: str, texts: tuple[str, ...]) -> None:
        self.write(json.dumps({"request": digest, "texts": texts}).encode() + b"\n")


@contextmanager
def _stored_answers(path: Path | None) -> Iterator[_StoredAnswers]:
    """Lock and read a JSON Lines file of answers, and keep it open for appending; without a file, store nothing."""
    if path is None:
        yield _StoredAnswers({}, len)
        return
    with file_lock(path):
        try:
            with open_own(path) as stream:

                def write(line: bytes) -> None:
                    stream.write(line)
                    stream.flush()

                data = stream.read()
                if data and not data.startswith(_HEAD):
                    raise DataError(f"{path.name} is no file of stored answers: choose another name for answers")
                if not data.endswith(b"\n"):
                    write(b"\n" if data else _HEAD)
                texts = {}
                for line in data[len(_HEAD) :].splitlines():
                    with suppress(ValueError):  # an incomplete last line
                        entry = json.loads(line)
                        texts[entry["request"]] = tuple(entry["texts"])
                yield _StoredAnswers(texts, write)
        except StorageError:
            raise
        except OSError as error:
            raise StorageError.of("write", path, error) from None
