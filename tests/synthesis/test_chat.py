"""A language model behind an address, asked over a real connection: a server in another process, which behaves or not.

No test measures time: where something must end, the server would never end it.
"""

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
from dptext.synthesis.chat import ChatEndpoint, Limits
from dptext.synthesis.prompts import Request, Source
from synthesis.chat_server import running

KEY = "key-that-nobody-may-see-7f3a"
REQUEST = Request({"topic": "sports"}, ("game", "season"), 30, ("An example.",))
PATIENT = Limits(timeout=60, backoff=0, longest_pause=0)
HASTY = Limits(timeout=0.3, retries=0, failures=1)


@pytest.fixture(scope="module")
def server():
    with running() as started:
        yield started


def endpoint(url, **options):
    return ChatEndpoint(url, **{"model": "tiny", "limits": PATIENT} | options)


# -- it answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", ["ok", "numbered", "lines"])
def test_texts_are_read_out_of_answers_of_any_form(server, behaviour):
    url = server.url(behaviour)
    texts = endpoint(url).propose(REQUEST)
    assert len(set(texts)) == len(texts) == 30
    assert all(text.startswith("Text ") for text in texts)
    assert len(server.asked(url)) == 3


def test_it_is_a_source_and_says_who_saw_what(server):
    source = endpoint("https://api.example.org/v1", about="short news")
    assert isinstance(source, Source)
    text = source.parameters()
    assert (text["generator_model"], text["generator_host"], text["generator_about"]) == (
        "tiny", "api.example.org", "short news",
    )  # fmt: skip
    assert any("no private text" in line for line in source.assumptions())
    assert any("not trained on the private texts" in line for line in source.assumptions())
    assert "api.example.org" in source.exposed()[0]
    assert endpoint(server.url("ok")).parameters()["generator_host"] == "on the curator's machine"


def test_the_last_call_asks_for_what_is_missing_and_more_than_asked_is_not_taken(server):
    url = server.url("many")
    assert len(endpoint(url).propose(Request({}, (), 25))) == 25
    counted = [body["messages"][1]["content"].partition("How many: ")[2].split()[0] for body in server.bodies(url)]
    assert sorted(counted) == ["10", "10", "5"]
    assert endpoint(url).propose(Request({}, (), 0)) == []


def test_variations_show_the_texts_and_come_back_to_the_first(server):
    url = server.url("ok")
    values = ["First own text.", 'Second, with "quotes".']
    assert len(endpoint(url, texts_per_call=3).vary(values, Request({"topic": "sports"}, (), 6))) == 6
    visible = [body["messages"][1]["content"] for body in server.bodies(url)]
    assert len(visible) == 2
    assert all("First own text." in entry and r"\"quotes\"" in entry and "topic: sports" in entry for entry in visible)
    assert endpoint(url).vary([], REQUEST) == []


def test_what_is_sent(server):
    url = server.url("ok")
    endpoint(url, temperature=0.5, max_tokens=100, seed=5, about="short news").propose(Request({}, ("game",), 20))
    first, second = server.bodies(url)
    assert (first["model"], first["temperature"], first["max_tokens"], first["stream"]) == ("tiny", 0.5, 100, False)
    assert [entry["role"] for entry in first["messages"]] == ["system", "user"]
    assert "What they are: short news" in first["messages"][1]["content"]
    assert "game" in first["messages"][1]["content"]
    assert "label" not in first["messages"][1]["content"]
    assert {first["seed"], second["seed"]} == {5, 6}
    url = server.url("ok")
    endpoint(url, max_tokens=None).propose(Request({}, (), 1))
    assert {"max_tokens", "seed"}.isdisjoint(server.bodies(url)[0])


def test_one_call_after_the_other_shows_other_hints_and_examples(server):
    url = server.url("ok")
    hints = tuple(f"hint{index:02d}" for index in range(20))
    endpoint(url, connections=1).propose(Request({}, hints, 20, tuple(f"example{index}" for index in range(10))))
    first, second = (body["messages"][1]["content"] for body in server.bodies(url))
    assert ("hint00" in first, "hint00" in second, "hint10" in second) == (True, False, True)
    assert ("example0" in first, "example5" in first, "example5" in second) == (True, False, True)


def test_several_calls_run_at_one_time_and_never_more_than_asked_for(server):
    url = server.url("together")  # which answers nobody before three have asked
    assert len(endpoint(url, connections=3).propose(Request({}, (), 90))) == 90
    assert server.most_at_once(url) == 3


def test_texts_come_in_the_order_of_the_calls(server):
    texts = endpoint(server.url("ok"), connections=1).propose(REQUEST)
    numbers = [int(text.split()[1]) for text in texts]
    assert numbers == sorted(numbers)


def test_an_answer_that_was_cut_at_its_length_loses_the_text_that_was_cut(server):
    assert endpoint(server.url("cutoff")).propose(Request({}, (), 10)) == ["A whole text."]


def test_a_local_address_is_not_asked_through_a_proxy(server, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert len(endpoint(server.url("ok")).propose(REQUEST)) == 30


def test_it_works_where_a_loop_runs_already(server):
    import asyncio

    async def notebook():
        return endpoint(server.url("ok")).propose(REQUEST)

    assert len(asyncio.run(notebook())) == 30


@pytest.mark.slow
def test_a_server_with_a_real_model(tiny_model_folder):
    with running(str(tiny_model_folder)) as started:
        texts = endpoint(started.url("model"), limits=Limits(timeout=600)).propose(Request({}, (), 12))
    assert texts
    assert all(isinstance(text, str) and text.strip() for text in texts)


# -- it does not answer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "behaviours",
    ["500,503,ok", "cut,ok", "drop,cut,drop,ok", "429,later:0,ok", "later:100000,ok", "408,425,529,502,ok"],
)
def test_what_may_pass_is_tried_again(server, behaviours):
    url = server.url(behaviours)
    source = endpoint(url, connections=1)
    assert len(source.propose(Request({}, (), 10))) == 10
    assert len(server.asked(url)) == source.calls == behaviours.count(",") + 1


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        ("hang", "no whole answer in time"),
        ("trickle", "no whole answer in time"),
        ("slowhead", "no whole answer in time"),
        ("500", "status 500"),
        ("later:0", "status 429"),
        ("drop", "the connection failed (RemoteProtocolError)"),
        ("cut", "the connection failed (RemoteProtocolError)"),
        ("400", "status 400 Bad Request"),
        ("huge", "an answer of more than 1,000,000 bytes"),
        ("endless", "an answer of more than 1,000,000 bytes"),
        ("gzip", "no chat completion"),
        ("raw:", "no chat completion"),
        ("raw:not-JSON", "no chat completion"),
        ("raw:[]", "no chat completion"),
        ("raw:" + quote('{"choices": []}'), "no chat completion"),
        ("raw:" + quote('{"choices": 3}'), "no chat completion"),
        ("raw:" + quote('{"choices": [null]}'), "no chat completion"),
        ("raw:" + quote('{"choices": [{"message": "SECRET-OF-THE-ANSWER"}]}'), "no chat completion"),
        ("raw:" + quote("[" * 100_00), "no chat completion"),
        ("raw:" + quote('{"choices": [{"message": {"content": null}}]}'), "without a text"),
        ("raw:" + quote('{"choices": [{"message": {"content": ["SECRET-OF-THE-ANSWER"]}}]}'), "without a text"),
        ("content:", "without a text"),
        ("content:" + quote(" \n \n"), "without a text"),
        ("content:[]", "without a text"),
        ("content:" + quote("[1, 2, null, {}]"), "without a text"),
        ("content:" + quote('{"error": 1}'), "without a text"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)  # fmt: skip
def test_too_many_failures_are_one_clear_error_without_the_answer(server, behaviour, expected):
    never_ends = behaviour in ("hang", "trickle", "slowhead")
    limits = HASTY if never_ends else Limits(timeout=60, retries=1, backoff=0, longest_pause=0, failures=2)
    url = server.url(behaviour.replace(",", "%2C").replace("/", "%2F"))
    with pytest.raises(SourceError) as caught:
        endpoint(url, connections=1, limits=limits).propose(Request({}, (), 30))
    message = str(caught.value)
    assert expected in message
    assert f"the server at 127.0.0.1:{server.port} failed" in message
    assert "0 calls were answered before" in message
    assert "SECRET" not in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        ("401", "401 Unauthorized"),
        ("403", "403 Forbidden"),
        ("402", "402 Payment Required"),
        ("404", "404 Not Found"),
        ("moved", "307 Temporary Redirect"),
    ],
)
def test_a_refusal_for_good_is_not_tried_again(server, behaviour, expected):
    url = server.url(behaviour)
    with pytest.raises(SourceError, match=expected):
        endpoint(url, connections=1, key=KEY).propose(REQUEST)
    assert len(server.asked(url)) == 1
    assert server.asked("http://x/elsewhere") == []  # where the redirect leads


def test_some_failures_are_no_end(server):
    url = server.url("400,400,ok,400,400,ok")
    source = endpoint(url, connections=1, limits=Limits(retries=0, backoff=0, failures=3))
    assert len(source.propose(Request({}, (), 60))) == 20
    assert source.calls == 6
    assert source.trouble.startswith("4 of 6 calls failed, the last one with: status 400 Bad Request")


def test_a_server_that_is_not_there(server):
    with running() as other:
        url = other.url("ok")
    with pytest.raises(SourceError, match="the connection failed"):
        endpoint(url, limits=Limits(retries=1, backoff=0, failures=1)).propose(REQUEST)


def test_there_are_no_more_calls_than_asked_for(server):
    url = server.url("500,ok,500,ok,500,ok")
    source = endpoint(url, connections=1, max_calls=5)
    assert len(source.propose(Request({}, (), 40))) == 20
    assert len(server.asked(url)) == source.calls == 5
    assert source.trouble == "all 5 calls are made (max_calls)"
    assert source.propose(REQUEST) == []
    assert len(server.asked(url)) == 5


def test_an_interrupt_ends_the_calls(server):
    url = server.url("hang")

    def interrupt():
        while not server.asked(url):
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


# -- kept answers ---------------------------------------------------------------------------------------------


def test_a_run_that_stopped_goes_on_where_it_was(server, tmp_path):
    kept = tmp_path / "answers.jsonl"
    stopped = server.url("ok,ok,500")
    options = {"connections": 1, "answers": kept, "limits": Limits(retries=0, failures=1, backoff=0)}
    with pytest.raises(SourceError, match=r"2 calls were answered before; their answers are stored"):
        endpoint(stopped, **options).propose(Request({}, (), 50))
    before = kept.read_bytes()
    url = server.url("ok")
    source = endpoint(url, **options)
    texts = source.propose(Request({}, (), 50))
    assert len(set(texts)) == 50
    assert len(server.asked(url)) == source.calls == 3
    assert kept.read_bytes().startswith(before)
    repeated = endpoint("http://127.0.0.1:9/v1", **options)  # where nobody is
    assert repeated.propose(Request({}, (), 50)) == texts
    assert repeated.calls == 0


def test_a_server_that_dies_and_comes_back_elsewhere(tmp_path):
    kept = tmp_path / "answers.jsonl"
    with running() as first:
        source = endpoint(first.url("ok"), answers=kept, limits=Limits(retries=1, backoff=0, failures=1))
        texts = source.propose(REQUEST)
        first.kill()
        with pytest.raises(SourceError, match="the connection failed"):
            source.propose(Request({}, (), 5))
    with running() as second:
        url = second.url("ok")
        source = endpoint(url, answers=kept)
        assert source.propose(REQUEST) == texts
        assert len(source.propose(Request({}, (), 5))) == 5
        assert len(second.asked(url)) == 1


def test_the_same_request_again_is_another_call(server, tmp_path):
    url, kept = server.url("ok"), tmp_path / "answers.jsonl"
    source = endpoint(url, answers=kept, seed=1)
    first, second = source.propose(REQUEST), source.propose(REQUEST)
    assert set(first).isdisjoint(second)
    repeated = endpoint(url, answers=kept, seed=1)
    assert (repeated.propose(REQUEST), repeated.propose(REQUEST)) == (first, second)
    assert len(server.asked(url)) == 6


@pytest.mark.parametrize(
    "other",
    [
        {"model": "larger"},
        {"temperature": 0.1},
        {"max_tokens": 7},
        {"about": "else"},
        {"seed": 3},
        {"texts_per_call": 5},
    ],
    ids=str,
)
def test_another_request_has_another_answer(server, tmp_path, other):
    kept = tmp_path / "answers.jsonl"
    endpoint(server.url("ok"), answers=kept).propose(REQUEST)
    url = server.url("ok")
    endpoint(url, answers=kept, **other).propose(REQUEST)
    assert len(server.asked(url)) == 30 // other.get("texts_per_call", 10)


@pytest.mark.parametrize("lost", [1, 10, 200])
def test_a_last_line_that_is_cut_does_not_count(server, tmp_path, lost):
    kept = tmp_path / "answers.jsonl"
    texts = endpoint(server.url("ok"), answers=kept, connections=1).propose(REQUEST)
    kept.write_bytes(kept.read_bytes()[:-lost])
    url = server.url("ok")
    repeated = endpoint(url, answers=kept, connections=1).propose(REQUEST)
    requested = len(server.asked(url))
    assert requested == 1 if lost > 1 else requested <= 1
    assert repeated[:20] == texts[:20]
    assert endpoint("http://127.0.0.1:9/v1", answers=kept).propose(REQUEST) == repeated


def test_failed_calls_are_not_kept(server, tmp_path):
    kept = tmp_path / "answers.jsonl"
    options = {"connections": 1, "answers": kept, "limits": Limits(retries=0, failures=9, backoff=0)}
    assert len(endpoint(server.url("content:,ok"), **options).propose(REQUEST)) == 20
    url = server.url("ok")
    assert len(endpoint(url, **options).propose(REQUEST)) == 30
    assert len(server.asked(url)) == 1


def test_kept_answers_hold_digests_and_texts_of_the_model_alone(server, tmp_path):
    kept = tmp_path / "answers.jsonl"
    endpoint(server.url("ok"), answers=kept, key=KEY, about="short news").propose(REQUEST)
    head, *lines = kept.read_text().splitlines()
    assert json.loads(head) == {"dptext": "kept answers", "version": 1}
    assert all(json.loads(line).keys() == {"request", "texts"} for line in lines)
    for unwanted in (KEY, "sports", "season", "An example", "short news"):
        assert unwanted not in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"my own notes\n", b"{}\n", b"notes without an end"])
def test_a_file_of_somebody_is_not_written_to(tmp_path, content):
    kept = tmp_path / "notes.txt"
    kept.write_bytes(content)
    with pytest.raises(DataError, match=r"notes\.txt is no file of stored answers"):
        endpoint("http://localhost/v1", answers=kept)
    assert kept.read_bytes() == content


def test_kept_answers_that_cannot_be_opened(tmp_path):
    with pytest.raises(StorageError):
        endpoint("http://localhost/v1", answers=tmp_path / "nowhere" / "answers.jsonl")
    with pytest.raises(StorageError):
        endpoint("http://localhost/v1", answers=tmp_path)


def test_two_processes_do_not_write_one_file(server, tmp_path):
    kept = tmp_path / "answers.jsonl"
    source = endpoint(server.url("ok"), answers=kept)
    with file_lock(kept), pytest.raises(StorageError, match="another process is writing"):
        source.propose(REQUEST)
    assert len(source.propose(REQUEST)) == 30


# -- the key --------------------------------------------------------------------------------------------------


def test_the_key_goes_into_the_header_and_nowhere_else(server, monkeypatch, caplog, capfd):
    monkeypatch.setenv("THE_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    for values in ({"key": KEY}, {"key_variable": "THE_KEY"}):
        url = server.url("ok,500")
        source = endpoint(url, connections=1, limits=Limits(retries=0, failures=1), **values)
        with pytest.raises(SourceError) as caught:
            source.propose(REQUEST)
        got = server.asked(url)[0]
        assert got.count(KEY) == 1
        assert f"\r\nauthorization: bearer {KEY}\r\n" in got.lower()
        lines = [repr(source), str(vars(source)), str(caught.value), str(source.parameters()), repr(source._key)]
        assert KEY not in "\n".join(
            [*lines, *source.assumptions(), *source.exposed(), caplog.text, *capfd.readouterr()]
        )


def test_without_a_key_there_is_no_header(server):
    url = server.url("ok")
    endpoint(url).propose(REQUEST)
    assert "authorization" not in server.asked(url)[0].lower()


def test_it_can_be_pickled_after_calls(server):
    source = endpoint(server.url("ok"))
    source.propose(REQUEST)
    assert len(pickle.loads(pickle.dumps(source)).propose(REQUEST)) == 30


def test_a_key_is_never_pickled_and_the_name_of_its_variable_is(monkeypatch):
    monkeypatch.setenv("THE_KEY", KEY)
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(endpoint("https://api.example.org/v1", key=KEY))
    content = pickle.dumps(endpoint("https://api.example.org/v1", key_variable="THE_KEY"))
    assert KEY.encode() not in content
    assert pickle.loads(content)._key.headers() == {"Authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize(
    "url", ["http://api.example.org/v1", "http://10.0.0.7:8080/v1", "http://localhost.example.org"]
)
def test_a_key_does_not_go_to_another_machine_in_the_clear(url):
    with pytest.raises(ParameterError, match="in the clear: use https"):
        endpoint(url, key=KEY)
    assert endpoint(url)
    assert endpoint(url.replace("http:", "https:"), key=KEY)


def test_a_key_may_go_to_this_machine():
    for url in ["http://localhost:8080/v1", "http://127.0.0.1/v1/", "http://[::1]:80", "http://a.localhost"]:
        assert endpoint(url, key=KEY)


# -- arguments ------------------------------------------------------------------------------------------------


def test_the_address_of_the_completions():
    for argument, address in [
        ("http://localhost:8080", "http://localhost:8080/chat/completions"),
        ("http://localhost:8080/v1/", "http://localhost:8080/v1/chat/completions"),
        ("http://localhost/v1/chat/completions", "http://localhost/v1/chat/completions"),
        ("https://x.example/a?api-version=2#part", "https://x.example/a/chat/completions?api-version=2"),
    ]:
        assert endpoint(argument)._address == address


def test_arguments_are_checked():
    for options, expected in [
        ({"url": "localhost:8080"}, "must be an address"),
        ({"url": "ftp://x/v1"}, "must be an address"),
        ({"url": "http://"}, "must be an address"),
        ({"url": "http://x:99999/v1"}, "must be an address"),
        ({"url": "http://x y/v1"}, "must be an address"),
        ({"url": "http://[x/v1"}, "must be an address"),
        ({"url": f"http://user:{KEY}@x/v1"}, "without a user and a password"),
        ({"url": 3}, "url must be text"),
        ({"model": ""}, "model must be text"),
        ({"key": ""}, "got nothing"),
        ({"key": f"{KEY}\n"}, "got something else"),
        ({"key": 7}, "got something else"),
        ({"key": KEY, "key_variable": "THE_KEY"}, "not both"),
        ({"key_variable": "NOBODY_SET_THIS"}, "got nothing"),
        ({"about": 3}, "about must be text"),
        ({"texts_per_call": 0}, "texts_per_call"),
        ({"temperature": -1}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"seed": 0.5}, "seed"),
        ({"connections": 0}, "connections"),
        ({"max_calls": -1}, "max_calls"),
        ({"answers": ""}, "answers must be a path"),
    ]:
        with pytest.raises(ParameterError, match=expected) as caught:
            endpoint(**{"url": "http://localhost/v1"} | options)
        assert KEY not in str(caught.value)


def test_without_httpx_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[generators\]"'):
        endpoint("http://localhost/v1")
