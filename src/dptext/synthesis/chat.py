"""Text sources for servers with an OpenAI-compatible API: chat completions and completions."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import math
import os
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

from dptext import validation
from dptext.errors import DataError, ParameterError, SourceError, StorageError, extra
from dptext.io.atomic import file_lock, open_own
from dptext.io.documents import PathLike
from dptext.privacy.statement import Parameter
from dptext.synthesis.prompts import LanguageModel, texts_of

_SERVICES = {"ollama": ("http://localhost:11434/v1", None), "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY")}
_CONNECT_SECONDS = 10.0
_LONGEST_PAUSE = 60.0
_ANSWER_BYTES = 1_000_000
_RETRIED_STATUSES = {408, 425, 429}  # besides 500 and above
_FINAL_STATUSES = {401, 402, 403, 404, 405}  # besides redirects


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds per call and before the first retry, and maximum numbers of retries and of consecutive failures."""

    timeout: float = 300.0
    retries: int = 4
    backoff: float = 1.0
    failures: int = 5


class _Endpoint(LanguageModel):
    """Language model behind an OpenAI-compatible API; subclasses define the path, the body and the answer."""

    path: ClassVar[str]

    name = "a language model behind an address"

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
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
        service, _, name = validation.check_text("url", url).partition(":")
        if service in _SERVICES:
            url, default_key = _SERVICES[service]
            key_variable = key_variable or default_key
        models = [part for part in (model, name if service in _SERVICES else None) if part]
        if len(models) != 1:
            raise ParameterError("one model is required: pass model= (--model NAME), or an address like ollama:qwen3")
        self._address, self.host, self._is_local = _parse_address(url, self.path)
        extra("httpx", "generators", type(self).__name__)
        self._key_variable = None if key_variable is None else validation.check_text("key_variable", key_variable)
        if self._authorization() and not self._is_local and not self._address.startswith("https:"):
            raise ParameterError(
                f"the key would be sent to {self.host} unencrypted: use https://, or a tunnel to an address on this "
                "machine"
            )
        self.model = validation.check_text("model", models[0])
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

    def parameters(self) -> dict[str, Parameter]:
        return super().parameters() | {
            "generator_host": self._operator,
            "generator_temperature": self.temperature,
            "generator_texts_per_call": self.texts_per_call,
            "generator_max_tokens": self.max_tokens,
        }

    def exposed(self) -> tuple[str, ...]:
        return (
            f"to the operator of the model's server ({self._operator}): the description of the texts (about), names "
            "and descriptions of the labels, hints of the release, public examples, and texts of the model",
        )

    @property
    def trouble(self) -> str:
        """Reason why texts are missing; empty if no call failed."""
        if self.calls >= self.max_calls:
            return f"the maximum of {self.max_calls:,} calls was reached (max_calls)"
        if not self._failed:
            return ""
        ended = self._failed + self._answered
        return f"{self._failed:,} of {ended:,} calls failed, the last one with: {self._last_failure}"

    @property
    def _operator(self) -> str:
        return "on the curator's machine" if self._is_local else self.host

    def __repr__(self) -> str:
        address = f"{self._address.partition('://')[0]}://{self.host}"
        return f"{type(self).__name__}({address!r}, model={self.model!r})"

    def _authorization(self) -> dict[str, str]:
        """Return the header with the API key, which is read again for each call."""
        if self._key_variable is None:
            return {}
        key = os.environ.get(self._key_variable, "")
        if not re.fullmatch("[!-~]+", key):
            raise ParameterError(
                f"the environment variable {validation.display_value(self._key_variable)} (key_variable) must contain "
                "a key of printable ASCII characters without spaces"
            )
        return {"Authorization": f"Bearer {key}"}

    @abstractmethod
    def _body(self, prompt: str, count: int) -> dict[str, Any]:
        """Return the part of a request that contains the prompt."""

    @abstractmethod
    def _content(self, choice: Any) -> Any:
        """Return the text of the first choice of an answer."""

    def _write(self, prompts: Sequence[tuple[str, int]]) -> list[str]:
        calls = []
        for prompt, count in prompts:
            body: dict[str, Any] = {
                "model": self.model,
                **self._body(prompt, count),
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
        with _stored_answers(self._answers) as (stored, store):
            for call in calls:
                call.texts = stored.get(call.digest, [])
            _run_in_thread(self._run([call for call in calls if not call.texts], store))
        return [text for call in calls for text in call.texts[: call.count]]

    async def _run(self, calls: Iterable[_Call], store: Callable[[_Call], None]) -> None:
        """Make the calls concurrently, and store their answers."""
        todo = iter(calls)
        httpx = extra("httpx", "generators", type(self).__name__)
        async with httpx.AsyncClient(
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "dptext"},
            timeout=httpx.Timeout(self.limits.timeout, connect=_CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(max_connections=self.connections, max_keepalive_connections=self.connections),
            trust_env=not self._is_local,
        ) as client:

            async def work() -> None:
                for call in todo:
                    call.texts = await self._call(client, call)
                    if call.texts:
                        store(call)

            workers = [asyncio.create_task(work()) for _ in range(self.connections)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _call(self, client: Any, call: _Call) -> list[str]:
        """Return the texts of one call; an empty list if it failed or the limit of calls is reached."""
        for index in range(self.limits.retries + 1):
            if self.calls >= self.max_calls:
                break
            self.calls += 1
            try:
                texts = self._read_answer(await self._post(client, call.body), call.count)
            except _CallError as failure:
                if failure.is_final:
                    raise SourceError(f"the server at {self.host} refuses to answer: {failure.kind}") from None
                if not failure.can_pass or index == self.limits.retries:
                    self._count_failure(failure)
                    break
                pause = self.limits.backoff * 2.0**index if failure.wait is None else failure.wait
                await asyncio.sleep(min(pause, _LONGEST_PAUSE))
            else:
                self._failed_in_a_row = 0
                self._answered += 1
                return texts
        return []

    async def _post(self, client: Any, body: dict[str, Any]) -> bytes:
        httpx = extra("httpx", "generators", type(self).__name__)
        headers = {"Content-Type": "application/json", **self._authorization()}
        answer = bytearray()
        try:
            async with (
                asyncio.timeout(self.limits.timeout),  # also limits servers that send single bytes slowly
                client.stream("POST", self._address, content=json.dumps(body).encode(), headers=headers) as response,
            ):
                if not response.is_success:
                    raise _status_error(httpx, response)
                async for part in response.aiter_raw():
                    answer += part
                    if len(answer) > _ANSWER_BYTES:
                        raise _CallError(f"the answer exceeds {_ANSWER_BYTES:,} bytes")
        except (TimeoutError, httpx.TimeoutException):
            raise _CallError("the answer was not complete in time", can_pass=True) from None
        except httpx.HTTPError as error:  # its message may contain parts of the answer
            raise _CallError(f"the connection failed ({type(error).__name__})", can_pass=True) from None
        return bytes(answer)

    def _read_answer(self, answer: bytes, limit: int) -> list[str]:
        try:
            choice = json.loads(answer)["choices"][0]
            content = self._content(choice)
            is_cut = choice.get("finish_reason") == "length"
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            raise _CallError("the answer is not a completion") from None
        texts = texts_of(content, limit, is_cut=is_cut) if isinstance(content, str) else []
        if not texts:
            raise _CallError("the answer has no text")
        return texts

    def _count_failure(self, failure: _CallError) -> None:
        self._failed_in_a_row += 1
        self._failed += 1
        self._last_failure = failure.kind
        if self._failed_in_a_row < self.limits.failures:
            return
        count, self._failed_in_a_row = self._failed_in_a_row, 0
        stored = "" if self._answers is None else "; the answers are stored, and the same command continues from there"
        raise SourceError(
            f"{count} consecutive calls to the server at {self.host} failed, the last one with: {failure.kind} "
            f"({self._answered:,} calls were answered before{stored})"
        )


class CompletionEndpoint(_Endpoint):
    """Language model behind a completions API, which continues a list of texts (extra ``generators``).

    Servers such as llama.cpp, Ollama and vLLM have this API, and small models write better with it than with
    `ChatEndpoint`.

    **Guarantee.** The texts are post-processing of the release, so they spend no privacy budget: the server receives
    only public instructions and examples, names and descriptions of the labels, hints from the release and its own
    earlier texts. The operator of the server sees these, and the statement says so. Assumption: the model was not
    trained on the private texts.

    Args:
        url: address of the server, such as ``"http://localhost:8080/v1"``; ``/completions`` is appended if it is
            missing. Redirects are not followed, and local addresses bypass proxies. ``"ollama:MODEL"`` is Ollama on
            this machine, ``"openai:MODEL"`` OpenAI with the key in ``OPENAI_API_KEY``.
        model: name of the model on the server, unless ``url`` names it.
        key_variable: name of the environment variable that holds the API key. The key is sent only to this address and
            never stored. Plain http is allowed only to this machine.
        about: public description of the texts, such as ``"questions to a bank's assistant, one sentence each"``.
        texts_per_call: number of texts requested per call.
        temperature: sampling temperature.
        max_tokens: maximum length of a response in tokens; None omits the setting, which some servers reject.
        seed: sampling seed, for servers that support one; every call gets a different one.
        connections: maximum number of simultaneous calls.
        max_calls: maximum number of calls of this object, retries included. Stored answers do not count.
        answers: file that stores the answers, so that an interrupted run continues without repeating requests. It
            contains texts that the model wrote, and digests of the requests.
        limits: timeouts, retries and consecutive failures.

    Attributes:
        calls: number of calls so far.

    Raises:
        ParameterError: an address, key or number is invalid, or a key would be sent to another machine over http.
        MissingExtraError: httpx is not installed.

    >>> source = CompletionEndpoint("http://localhost:8080/v1", model="tiny", about="short news")
    >>> source
    CompletionEndpoint('http://localhost:8080', model='tiny')
    """

    path = "/completions"

    def _body(self, prompt: str, count: int) -> dict[str, Any]:  # noqa: ARG002
        return {"prompt": prompt, "stop": ["\n\n"]}

    def _content(self, choice: Any) -> Any:
        return choice["text"]


class ChatEndpoint(_Endpoint):
    """Language model behind a chat completions API: llama.cpp, Ollama, vLLM or a vendor (extra ``generators``).

    The arguments, guarantee and errors are those of `CompletionEndpoint`; ``/chat/completions`` is appended to the
    address.

    >>> ChatEndpoint("http://localhost:8080/v1", model="tiny", about="short news")
    ChatEndpoint('http://localhost:8080', model='tiny')
    """

    path = "/chat/completions"

    def _body(self, prompt: str, count: int) -> dict[str, Any]:
        request = f"Write {count:,} more texts for this list, each on a line of its own, and nothing else."
        return {"messages": [{"role": "user", "content": f"{prompt.removesuffix('-')}\n{request}"}]}

    def _content(self, choice: Any) -> Any:
        return choice["message"]["content"]


@dataclass
class _Call:
    body: dict[str, Any]
    digest: str
    count: int
    texts: list[str] = field(default_factory=list)


@dataclass(eq=False)
class _CallError(Exception):
    """Failure of one call. ``wait`` is the number of seconds after which the server accepts a retry."""

    kind: str
    can_pass: bool = False
    is_final: bool = False
    wait: float | None = None


def _status_error(httpx: Any, response: Any) -> _CallError:
    status, wait = int(response.status_code), None
    with suppress(ValueError):  # dates are ignored
        seconds = float(response.headers.get("retry-after", ""))
        wait = seconds if math.isfinite(seconds) and seconds >= 0 else None
    return _CallError(
        f"status {status} {httpx.codes.get_reason_phrase(status)}".strip(),
        can_pass=status in _RETRIED_STATUSES or status >= 500,
        is_final=status in _FINAL_STATUSES or 300 <= status < 400,
        wait=wait,
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _run_in_thread(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a new thread, because notebooks already run an event loop; an interrupt cancels it."""
    with closing(asyncio.new_event_loop()) as loop, ThreadPoolExecutor(1) as pool:
        task = loop.create_task(work)
        try:
            pool.submit(loop.run_until_complete, task).result()
        except BaseException:
            loop.call_soon_threadsafe(task.cancel)
            raise


def _parse_address(url: object, end: str) -> tuple[str, str, bool]:
    """Return the completions address, the host with its port, and whether the host is this machine."""
    text = validation.check_text("url", url)
    host: str | None = None
    with suppress(ValueError):  # invalid brackets or ports
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and parts.port != 0 and text.isascii()
        host = parts.hostname if is_valid else None
    if host is None or not re.fullmatch(r"[\w.:-]+", host):
        raise ParameterError("url must be an address such as http://localhost:8080/v1 or https://api.example.org/v1")
    if "@" in parts.netloc:
        raise ParameterError("url must not contain a user or password: pass the key with key_variable=")
    path = re.sub("(/chat)?/completions$", "", parts.path.rstrip("/")) + end
    is_local = host == "localhost" or host.endswith(".localhost")
    with suppress(ValueError):
        is_local = ipaddress.ip_address(host).is_loopback
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, "")), parts.netloc, is_local


_HEAD = b'{"dptext": "kept answers", "version": 1}\n'


@contextmanager
def _stored_answers(path: Path | None) -> Iterator[tuple[dict[str, list[str]], Callable[[_Call], None]]]:
    """Lock a file of answers; yield the stored texts by request digest, and a function that stores those of a call."""
    if path is None:
        yield {}, lambda _: None
        return
    with file_lock(path):
        try:
            with open_own(path) as stream:

                def write(line: bytes) -> None:
                    stream.write(line)
                    stream.flush()

                def store(call: _Call) -> None:
                    write(json.dumps({"request": call.digest, "texts": call.texts}).encode() + b"\n")

                content = stream.read()
                if content and not content.startswith(_HEAD):
                    raise DataError(f"{path.name} is not a file of stored answers: choose another name for answers")
                if not content.endswith(b"\n"):
                    write(b"\n" if content else _HEAD)
                stored = {}
                for line in content[len(_HEAD) :].splitlines():
                    with suppress(ValueError):  # an incomplete last line
                        entry = json.loads(line)
                        stored[entry["request"]] = entry["texts"]
                yield stored, store
        except StorageError:
            raise
        except OSError as error:
            raise StorageError.of("write", path, error) from None
