"""Both endpoints with a server in another process, which answers or fails in many ways, and with a real model.

No test measures time: where a call must end, the server would never end it.
"""

import asyncio
import json
import logging
import os
import pickle
import signal
import sys
import threading
import time
from urllib.parse import quote

import pytest

from dptext.errors import DataError, MissingExtraError, ParameterError, SourceError, StorageError
from dptext.io.atomic import file_lock
from dptext.synthesis.chat import ChatEndpoint, CompletionEndpoint, Limits
from dptext.synthesis.local_model import SMALL_MODEL, LocalModel
from dptext.synthesis.prompts import Request, Source, list_prompt, text_of_line
from synthesis.chat_server import running

KEY = "key-that-nobody-may-see-7f3a"
REQUEST = Request({"topic": "sports"}, ("game", "season"), 30, ("An example.",))
PATIENT = Limits(timeout=60, backoff=0)
NO_RETRIES = Limits(timeout=60, retries=0, failures=1)
NO_SERVER = "http://127.0.0.1:9/v1"
BOTH = pytest.mark.parametrize("kind", [ChatEndpoint, CompletionEndpoint])


@pytest.fixture(scope="module")
def server():
    with running() as started:
        yield started


@pytest.fixture(autouse=True)
def _no_waiting_and_a_key(monkeypatch):
    monkeypatch.setattr("dptext.synthesis.chat._LONGEST_PAUSE", 0.0)
    monkeypatch.setenv("THE_KEY", KEY)


def endpoint(url, kind=ChatEndpoint, **options):
    return kind(url, **{"model": "tiny", "limits": PATIENT} | options)


# -- addresses ------------------------------------------------------------------------------------------------


def test_short_addresses_are_those_of_ollama_and_openai(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for address, model, host, key in [
        ("ollama:qwen3:4b", "qwen3:4b", "localhost:11434", {}),
        ("openai:gpt-5-mini", "gpt-5-mini", "api.openai.com", {"Authorization": f"Bearer {KEY}"}),
    ]:
        source = ChatEndpoint(address)
        assert (source.model, source.host, source._authorization()) == (model, host, key)
        assert source._address.endswith(f"{host}/v1/chat/completions")
    assert CompletionEndpoint("ollama:qwen3")._address == "http://localhost:11434/v1/completions"
    for arguments in (["ollama:"], [NO_SERVER], ["ollama:qwen3", "tiny"]):
        with pytest.raises(ParameterError, match="one model is required"):
            ChatEndpoint(arguments[0], model=arguments[1] if len(arguments) > 1 else None)
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ParameterError, match="OPENAI_API_KEY"):
        ChatEndpoint("openai:gpt-5-mini")


# -- answers --------------------------------------------------------------------------------------------------


@BOTH
def test_texts_come_in_the_order_of_the_calls(server, kind):
    for behaviour in ("ok", "numbered"):
        url = server.url(behaviour)
        texts = endpoint(url, kind, connections=1).propose(REQUEST)
        assert len(set(texts)) == 30
        assert texts == sorted(texts, key=lambda text: int(text.split()[1].rstrip(".")))
        assert len(server.requests(url)) == 3
    assert endpoint(server.url("cutoff"), kind).propose(Request({}, (), 10)) == ["A whole text."]


@BOTH
def test_the_endpoint_is_a_source_that_names_its_operator(server, kind):
    source = endpoint("https://api.example.org/v1", kind, about="short news")
    assert isinstance(source, Source)
    parameters = source.parameters()
    assert parameters.items() >= {"generator_model": "tiny", "generator_about": "short news"}.items()
    assert parameters["generator_host"] == "api.example.org"
    assert any("no private text" in line for line in source.assumptions())
    assert any("not trained on the private texts" in line for line in source.assumptions())
    [exposed] = source.exposed()
    for part in ("(api.example.org)", "descriptions of the labels", "hints", "public examples", "texts of the model"):
        assert part in exposed
    assert endpoint(server.url("ok"), kind).parameters()["generator_host"] == "on the curator's machine"


@BOTH
def test_requests_contain_the_settings_and_the_list(server, monkeypatch, kind):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # a local address bypasses proxies
    url = server.url("many")
    hints = tuple(f"hint{index:02d}" for index in range(20))
    request = Request({"topic": "sports"}, hints, 25, tuple(f"example{index}" for index in range(10)), "matches")
    options = {"temperature": 0.5, "max_tokens": 100, "seed": 5, "about": "short news", "connections": 1}
    assert len(endpoint(url, kind, **options).propose(request)) == 25  # the server sends more texts than requested
    bodies = server.bodies(url)
    settings = {"model": "tiny", "temperature": 0.5, "max_tokens": 100, "stream": False, "seed": 5}
    for turn, (body, count) in enumerate(zip(bodies, (10, 10, 5), strict=True)):
        prompt = list_prompt(request, about="short news", turn=turn)
        if kind is ChatEndpoint:
            [message] = body.pop("messages")
            wanted = f"Write {count} more texts for this list, each on a line of its own, and nothing else."
            assert message == {"role": "user", "content": f"{prompt.removesuffix('-')}\n{wanted}"}
        else:
            assert (body.pop("prompt"), body.pop("stop")) == (prompt, ["\n\n"])
        assert body == settings
    url = server.url("ok")
    source = endpoint(url, kind, max_tokens=None)
    assert source.propose(Request({}, (), 0)) == []
    source.propose(Request({}, (), 1))
    [body] = server.bodies(url)
    assert {"max_tokens", "seed"}.isdisjoint(body)
    endpoint(url, kind, seed=5).propose(REQUEST)  # few hints and examples are in each prompt
    assert sorted(body["seed"] for body in server.bodies(url)[1:]) == [5, 6, 7]
    assert "authorization" not in server.requests(url)[0].lower()


@pytest.mark.slow
@BOTH
def test_a_real_server_writes_texts(kind):
    llama = pytest.importorskip("xllamacpp")
    try:
        path = LocalModel(SMALL_MODEL).path
    except MissingExtraError as error:
        pytest.skip(str(error))
    parameters = llama.CommonParams()
    parameters.model.path, parameters.n_ctx, parameters.cpuparams.n_threads = str(path), 2048, 1
    server = llama.Server(parameters)  # until the test ends
    options = {"about": "Questions to an assistant", "seed": 1, "max_tokens": 300, "limits": Limits(failures=99)}
    source = endpoint(f"{server.listening_address}/v1", kind, **options)
    request = Request({"intent": "weather"}, ("rain", "snow"), 60, ("will it rain tomorrow", "is it cold in paris"))
    texts = source.propose(request)
    assert source.calls == 6
    assert len(texts) >= 6
    assert all(text_of_line(text) == text for text in texts)
    assert sum("rain" in text or "weather" in text or "snow" in text for text in texts) > 0


def test_connections_limit_the_calls_at_one_time(server):
    url = server.url("together")  # answers when three calls wait
    assert len(endpoint(url, connections=3).propose(Request({}, (), 90))) == 90
    assert server.most_at_once(url) == 3


def test_calls_work_within_a_running_event_loop_and_before_pickling(server):
    source = endpoint(server.url("ok"))

    async def notebook():
        return source.propose(REQUEST)

    assert len(asyncio.run(notebook())) == 30
    assert len(pickle.loads(pickle.dumps(source)).propose(REQUEST)) == 30


# -- failures -------------------------------------------------------------------------------------------------


@BOTH
def test_temporary_failures_are_retried(server, kind):
    for behaviours in ("500,503,ok", "drop,cut,drop,ok", "429,later:0,later:100000,later:soon,ok", "408,425,529,ok"):
        url = server.url(behaviours)
        source = endpoint(url, kind, connections=1)
        assert len(source.propose(Request({}, (), 10))) == 10
        assert len(server.requests(url)) == source.calls == behaviours.count(",") + 1


@BOTH
def test_too_many_failures_raise_one_error_without_the_answer(server, kind):
    answers = ["[]", '{"choices": 3}', '{"choices": [null]}', '{"choices": [{"message": "SECRET-OF-THE-ANSWER"}]}']
    answers = [answer.replace("message", "message" if kind is ChatEndpoint else "texts") for answer in answers]
    no_text = ['{"choices": [{"message": {"content": ["SECRET-OF-THE-ANSWER"]}, "text": ["SECRET-OF-THE-ANSWER"]}]}']
    for behaviour, expected in [
        *((never, "the answer was not complete in time") for never in ("hang", "trickle", "slowhead")),
        ("later:0", "status 429"),
        ("400", "status 400 Bad Request"),
        *((broken, "the connection failed (RemoteProtocolError)") for broken in ("drop", "cut")),
        *((large, "the answer exceeds 1,000,000 bytes") for large in ("huge", "endless")),
        *((f"raw:{quote(answer)}", "not a completion") for answer in ("", "not JSON", "[" * 10_000, *answers)),
        ("gzip", "not a completion"),
        *((f"raw:{quote(answer)}", "the answer has no text") for answer in no_text),
        *(
            (f"content:{quote(text)}", "the answer has no text")
            for text in ("", " \n \n", "[]", "I cannot write that.")
        ),
    ]:
        never_ends = behaviour in ("hang", "trickle", "slowhead")
        limits = Limits(timeout=0.3 if never_ends else 60, retries=0, failures=1)
        url = server.url(behaviour.replace(",", "%2C").replace("/", "%2F"))
        with pytest.raises(SourceError) as caught:
            endpoint(url, kind, connections=1, limits=limits).propose(Request({}, (), 30))
        message = str(caught.value)
        assert expected in message, behaviour
        assert f"the server at 127.0.0.1:{server.port} failed" in message
        assert "0 calls were answered before" in message
        assert "SECRET" not in message
        assert "\n" not in message


def test_final_refusals_are_not_retried(server):
    for behaviour, expected in [("401", "401 Unauthorized"), ("404", "404 Not Found"), ("moved", "307 Temporary")]:
        url = server.url(behaviour)
        with pytest.raises(SourceError, match=expected):
            endpoint(url, connections=1, key_variable="THE_KEY").propose(REQUEST)
        assert len(server.requests(url)) == 1
    assert server.requests("http://x/elsewhere") == []  # the target of the redirect


def test_some_failures_leave_the_other_texts(server):
    url = server.url("400,400,ok,400,400,ok")
    source = endpoint(url, connections=1, limits=Limits(retries=0, failures=3))
    assert len(source.propose(Request({}, (), 60))) == 20
    assert source.calls == 6
    assert source.trouble.startswith("4 of 6 calls failed, the last one with: status 400 Bad Request")


def test_max_calls_includes_retries(server):
    url = server.url("500,ok,500,ok,500,ok")
    source = endpoint(url, connections=1, max_calls=5)
    assert len(source.propose(Request({}, (), 40))) == 20
    assert source.trouble == "the maximum of 5 calls was reached (max_calls)"
    assert source.propose(REQUEST) == []
    assert len(server.requests(url)) == source.calls == 5


def test_an_interrupt_ends_the_calls(server):
    url = server.url("hang")

    def interrupt():
        while not server.requests(url):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    helper = threading.Thread(target=interrupt)
    helper.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            endpoint(url, limits=Limits(timeout=600)).propose(REQUEST)
    finally:
        helper.join()
        signal.signal(signal.SIGINT, before)


# -- stored answers -------------------------------------------------------------------------------------------


def test_an_interrupted_run_continues_from_stored_answers(server, tmp_path):
    stored = tmp_path / "answers.jsonl"
    options = {
        "connections": 1,
        "answers": stored,
        "limits": NO_RETRIES,
        "key_variable": "THE_KEY",
        "about": "short news",
    }
    with pytest.raises(SourceError, match=r"2 calls were answered before; the answers are stored"):
        endpoint(server.url("ok,ok,500"), **options).propose(REQUEST)
    before = stored.read_bytes()
    url = server.url("ok,content:,ok")
    source = endpoint(url, **options | {"limits": Limits(retries=0, failures=9)})
    texts = source.propose(REQUEST)
    assert len(set(texts)) == 30
    assert len(server.requests(url)) == source.calls == 1
    assert len(source.propose(REQUEST)) == 20  # a repeated request is another call, and one of these fails
    assert stored.read_bytes().startswith(before)
    repeated = endpoint(NO_SERVER, **{name: options[name] for name in ("answers", "about")})
    assert repeated.propose(REQUEST) == texts
    assert repeated.calls == 0
    head, *lines = stored.read_text().splitlines()
    assert json.loads(head) == {"dptext": "kept answers", "version": 1}
    assert len(lines) == 5
    assert all(json.loads(line).keys() == {"request", "texts"} for line in lines)
    for unwanted in (KEY, "sports", "season", "An example", "short news"):
        assert unwanted not in stored.read_text()
    assert stored.stat().st_mode & 0o077 == 0


def test_a_server_that_restarts_at_another_address_repeats_nothing(tmp_path):
    stored = tmp_path / "answers.jsonl"
    with running() as first:
        source = endpoint(first.url("ok"), answers=stored, limits=Limits(retries=1, backoff=0, failures=1))
        texts = source.propose(REQUEST)
        first.kill()
        with pytest.raises(SourceError, match=r"the connection failed \(ConnectError\)"):
            source.propose(Request({}, (), 5))
    with running() as second:
        url = second.url("ok")
        source = endpoint(url, answers=stored)
        assert source.propose(REQUEST) == texts
        assert len(source.propose(Request({}, (), 5))) == 5
        assert len(second.requests(url)) == 1


def test_every_setting_of_a_request_identifies_its_answer(server, tmp_path):
    stored = tmp_path / "answers.jsonl"
    endpoint(server.url("ok"), answers=stored).propose(REQUEST)
    for other in [{"model": "larger"}, {"temperature": 0.1}, {"max_tokens": 7}, {"about": "else"}, {"seed": 3}]:
        url = server.url("ok")
        endpoint(url, answers=stored, **other).propose(REQUEST)
        assert len(server.requests(url)) == 3, other


def test_an_incomplete_last_line_is_ignored(server, tmp_path):
    for lost in (1, 10, 200):
        stored = tmp_path / f"answers{lost}.jsonl"
        texts = endpoint(server.url("ok"), answers=stored, connections=1).propose(REQUEST)
        stored.write_bytes(stored.read_bytes()[:-lost])
        url = server.url("ok")
        repeated = endpoint(url, answers=stored, connections=1).propose(REQUEST)
        assert len(server.requests(url)) == (1 if lost > 1 else 0)
        assert repeated[:20] == texts[:20]
        assert endpoint(NO_SERVER, answers=stored).propose(REQUEST) == repeated


def test_foreign_files_and_locked_files_are_not_written(server, tmp_path):
    stored = tmp_path / "notes.txt"
    for content in (b"my own notes\n", b"{}\n", b"notes without an end"):
        stored.write_bytes(content)
        with pytest.raises(DataError, match=r"notes\.txt is not a file of stored answers"):
            endpoint(NO_SERVER, answers=stored)
        assert stored.read_bytes() == content
    for place in (tmp_path / "nowhere" / "answers.jsonl", tmp_path):
        with pytest.raises(StorageError):
            endpoint(NO_SERVER, answers=place)
    source = endpoint(server.url("ok"), answers=tmp_path / "answers.jsonl")
    with file_lock(tmp_path / "answers.jsonl"), pytest.raises(StorageError, match="another process is writing"):
        source.propose(REQUEST)
    assert len(source.propose(REQUEST)) == 30


# -- the key, arguments ---------------------------------------------------------------------------------------


def test_the_key_is_sent_in_the_header_and_shown_nowhere(server, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    url = server.url("ok,500")
    source = endpoint(url, connections=1, limits=NO_RETRIES, key_variable="THE_KEY")
    with pytest.raises(SourceError) as caught:
        source.propose(REQUEST)
    request = server.requests(url)[0]
    assert request.count(KEY) == 1
    assert f"\r\nauthorization: bearer {KEY}\r\n" in request.lower()
    lines = [repr(source), str(vars(source)), str(caught.value), str(source.parameters()), str(pickle.dumps(source))]
    lines += [*source.assumptions(), *source.exposed(), caplog.text, *capfd.readouterr()]
    assert KEY not in "\n".join(lines)


def test_a_key_needs_https_or_this_machine():
    for url in ["http://api.example.org/v1", "http://10.0.0.7:8080/v1", "http://localhost.example.org"]:
        with pytest.raises(ParameterError, match="unencrypted: use https"):
            endpoint(url, key_variable="THE_KEY")
        assert endpoint(url)
        assert endpoint(url.replace("http:", "https:"), key_variable="THE_KEY")
    for url in ["http://localhost:8080/v1", "http://127.0.0.1/v1/", "http://[::1]:80", "http://a.localhost"]:
        assert endpoint(url, key_variable="THE_KEY")


@BOTH
def test_the_path_of_the_api_is_appended(kind):
    for argument, address in [
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://localhost:8080/v1/", "http://localhost:8080/v1"),
        ("http://localhost/v1/chat/completions", "http://localhost/v1"),
        ("http://localhost/v1/completions/", "http://localhost/v1"),
        ("https://x.example/a?api-version=2#part", "https://x.example/a"),
    ]:
        path, query = kind.path, "?api-version=2" if "?" in argument else ""
        assert endpoint(argument, kind)._address == f"{address}{path}{query}"


def test_invalid_arguments_are_refused(monkeypatch):
    monkeypatch.setenv("SPACED_KEY", f"{KEY} ")
    addresses = ["localhost:8080", "ftp://x/v1", "http://", "http://x:99999/v1", "http://x y/v1", "http://[x/v1"]
    for options, expected in [
        *(({"url": url}, "must be an address") for url in addresses),
        ({"url": f"http://user:{KEY}@x/v1"}, "must not contain a user or password"),
        ({"url": 3}, "url must be text"),
        ({"model": ""}, "one model is required"),
        ({"key_variable": "NOBODY_SET_THIS"}, "must contain a key of printable"),
        ({"key_variable": "SPACED_KEY"}, "must contain a key of printable"),
        ({"about": 3}, "about must be text"),
        ({"texts_per_call": 0}, "texts_per_call"),
        ({"temperature": -1}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"seed": 0.5}, "seed"),
        ({"connections": 0}, "connections"),
        ({"max_calls": -1}, "max_calls"),
        ({"answers": ""}, "answers must be a (valid )?path"),
    ]:
        with pytest.raises(ParameterError, match=expected) as caught:
            endpoint(**{"url": "http://localhost/v1"} | options)
        assert KEY not in str(caught.value)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[generators\]"'):
        endpoint("http://localhost/v1")
