"""Public pools from the Hugging Face Hub (``hf://``): read by the real `datasets`, from a Hub on this machine."""

import json

import pytest

import dptext
from dptext.errors import MissingExtraError, ParameterError
from dptext.features.pool import HubDataset, local_files, public_sources
from features.fake_hub import COMMIT, hub, parquet, run_python

pytest.importorskip("datasets")
WORDS = ["music", "weather", "law", "football", "doctor", "train", "garden", "market"]
PAIRS = [f"{first} and {second}" for first in WORDS for second in WORDS]
NEWS = [{"text": f"about {pair}", "title": pair, "topic": "ab"[row % 2]} for row, pair in enumerate(PAIRS)]
CARD = b"---\nlicense: cc-by-4.0\n---\n# News\n"
CONFIGS = (
    b"---\nconfigs:\n- config_name: en\n  data_files: en.parquet\n- config_name: de\n  data_files: de.parquet\n---\n"
)
REPOSITORIES = {
    "acme/news": {
        "README.md": CARD,
        "data/train-00000-of-00001.parquet": parquet(NEWS),
        "data/test-00000-of-00001.parquet": parquet(NEWS[:3]),
    },
    "acme/bare": {"train.csv": b"text\na line\nanother line\n"},
    "acme/languages": {"README.md": CONFIGS, "en.parquet": parquet(NEWS[:4]), "de.parquet": parquet(NEWS[:2])},
    "acme/gated": {},
}
READ = """
import json
import sys
import dptext

for address in {addresses!r}:
    try:
        pool = dptext.Pool(address)
        print(json.dumps([len(pool), pool.texts[0], pool.name, pool.licence]))
    except dptext.DptextError as error:
        print(json.dumps([type(error).__name__, str(error)]))
"""
AT = f"@{COMMIT}"
NEWS_AT, LICENCE = f"hf://datasets/acme/news{AT}", "cc-by-4.0"
READABLE = {
    "hf://datasets/acme/news": [64, "about music and music", NEWS_AT, LICENCE],
    "hf://datasets/acme/news@main/test:title": [3, "music and music", f"{NEWS_AT}/test:title", LICENCE],
    "hf://datasets/acme/news/train[5:7]": [2, "about music and train", f"{NEWS_AT}/train[5:7]", LICENCE],
    "hf://datasets/acme/bare": [2, "a line", f"hf://datasets/acme/bare{AT}", None],
    "hf://datasets/acme/languages?config=de:title": [
        2, "music and music", f"hf://datasets/acme/languages{AT}?config=de:title", None,
    ],
}  # fmt: skip
UNREADABLE = {
    "hf://datasets/acme/nothing": "the Hub has no such data set, or it is private. Correct OWNER/NAME",
    "hf://datasets/acme/gated": "it is open after consent. Give yours at https://huggingface.co/datasets/acme/gated",
    "hf://datasets/acme/news@old": "it has no such revision. Correct or omit @REVISION",
    "hf://datasets/acme/news/dev": "Unknown split \"dev\". Should be one of ['train', 'test']",
    "hf://datasets/acme/languages": "available configs: ['en', 'de']",
    "hf://datasets/acme/news?config=fr": "'fr' not found. Available: ['default']",
    "hf://datasets/acme/news:body": "expected a column 'body', the table has",
}


def read(addresses, home, endpoint, **options):
    done = run_python(READ.format(addresses=list(addresses)), home, endpoint, **options)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_pool_is_read_from_the_hub_and_then_from_its_cache(tmp_path):
    home = tmp_path / "home"
    with hub(REPOSITORIES, gated=["acme/gated"]) as endpoint:
        results, log = read([*READABLE, *UNREADABLE], home, endpoint)
    pools, errors = results[: len(READABLE)], results[len(READABLE) :]
    assert dict(zip(READABLE, pools, strict=True)) == READABLE
    for address, (kind, message) in zip(UNREADABLE, errors, strict=True):
        assert kind in ("StorageError", "ParameterError")
        assert UNREADABLE[address] in message, address
    assert log == ""  # no bars and no warnings outside a terminal
    pinned = [expected[2] for expected in READABLE.values() if expected[3] is not None]
    cached, log = read(pinned, home, "http://127.0.0.1:9", offline=True)  # the address in a statement finds it again
    assert cached == [expected for expected in READABLE.values() if expected[3] is not None]
    assert log == ""
    for folder in (home, tmp_path / "empty"):
        [(kind, message)], _ = read(["hf://datasets/acme/other"], folder, "http://127.0.0.1:9", offline=True)
        assert kind == "StorageError"
        assert "the Hub cannot be reached, and the local cache does not have it. Connect once" in message


def test_another_commit_in_the_cache_is_refused(tmp_path):
    home = tmp_path / "home"
    with hub(REPOSITORIES) as endpoint:
        read(["hf://datasets/acme/news"], home, endpoint)
    cards = home / "hub" / "datasets--acme--news"
    (cards / "snapshots" / ("b2" * 20)).mkdir()
    (cards / "snapshots" / ("b2" * 20) / "README.md").write_bytes(CARD)
    (cards / "refs" / "main").write_text("b2" * 20)
    [(kind, message)], _ = read(["hf://datasets/acme/news"], home, "http://127.0.0.1:9", offline=True)
    assert kind == "StorageError"
    assert f"the local cache has another commit than {'b2' * 20}" in message


COMMANDS = """
import sys
from dptext.cli import main

for arguments in {commands!r}:
    code = main([*arguments.split(), *(["--json"] if arguments.startswith("advise") else ["--quiet"])])
    print(code)
"""


@pytest.mark.slow
def test_commands_read_public_texts_from_the_hub(tmp_path):
    rows = [{"note": f"{WORDS[row % 8]} today", "who": f"user {row}", "topic": "ab"[row % 2]} for row in range(80)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "local.jsonl").write_text('{"text": "a local text"}\n{"text": "and one more"}\n')
    news = "hf://datasets/acme/news"
    private, public = "in.jsonl --text note --epsilon 1", f"--public {news}:title"
    commands = [
        f"synthesize {private} -o out.jsonl --user who --label topic --labels a,b --features static {public} -n 40",
        f"synthesize --plan --people 500 --features static --public {news} --public-label topic",
        "explain out.jsonl",
        f"audit out.jsonl {public}",
        f"audit out.jsonl --public {news}:text",
        f"report out.jsonl -o page.html --card card.md {public}",
        f"bank {news}:text local.jsonl -o bank --encoder static",
        f"bank {news}:text -o licensed --encoder static",
        f"encode {private} -o out.parquet --public {news} --yes",
        f"encode --compare 2,8 --public {news} --public-label topic",
        f"advise in.jsonl --public {news} --public-label topic --purpose classify",
        f"embed --plan --people 100 --user topic --public {news}",
        f"synthesize {private} -o new.jsonl --user who --public hf://datasets/acme/nothing -n 5",
        f"synthesize {private} -o new.jsonl --user who --public hf://acme -n 5",
    ]
    with hub(REPOSITORIES) as endpoint:
        done = run_python(COMMANDS.format(commands=commands), tmp_path / "home", endpoint, cwd=tmp_path)
    codes = [line for line in done.stdout.splitlines() if line.isdigit()]
    assert codes == [*"00002", *"0000000", "4", "2"], done.stdout + done.stderr
    statement = json.loads((tmp_path / "out.jsonl.privacy.json").read_text())
    pinned = {"pool": f"{news}{AT}:title", "pool_licence": "cc-by-4.0", "features_fitted_on": f"{news}{AT}:title"}
    assert pinned.items() <= statement["parameters"].items()
    assert "cc-by-4.0" in (tmp_path / "card.md").read_text()
    sources = {"bank": (f"files, {news}{AT}:text", None), "licensed": (f"{news}{AT}:text", "cc-by-4.0")}
    for name, (source, licence) in sources.items():
        config = json.loads((tmp_path / name / "config.json").read_text())
        assert (config["name"], config["licence"]) == (source, licence)
    vectors = json.loads((tmp_path / "out.parquet.privacy.json").read_text())
    assert f"{news}{AT}" in json.dumps(vectors["parameters"])
    assert f"dptext bank {news} -o bank --licence cc-by-4.0" in done.stdout  # by advise
    assert not (tmp_path / "new.jsonl").exists()
    assert "write hf://datasets/OWNER/NAME[@REVISION][/SPLIT][?config=CONFIG][:COLUMN]" in done.stderr


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("hf://datasets/imdb", HubDataset("imdb")),
        ("hf://datasets/a/b:c:d", HubDataset("a/b", column="c:d")),
        ("hf://datasets/a/b@v1/test?config=en:text", HubDataset("a/b", "v1", "test", "en", "text")),
        ("hf://datasets/a/b/train[:10%]:text", HubDataset("a/b", split="train[:10%]", column="text")),
    ],
)
def test_an_address_is_parsed_and_written_alike(address, expected, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("a text")
    assert public_sources([str(file), address]) == [file, expected]
    assert public_sources(address) == public_sources(expected) == [expected]
    assert str(expected) == address
    assert local_files([file, expected]) == [file]


@pytest.mark.parametrize("address", ["hf://acme/news", "hf://datasets/", "hf://datasets/a/b/c/d", "hf://datasets/a/b@"])
def test_another_address_is_refused(address):
    with pytest.raises(ParameterError, match=r"is not the address of a data set: write hf://datasets/OWNER/NAME"):
        dptext.Pool(address)


def test_without_datasets_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r'hf:// needs the package \'datasets\'.*"dptext\[hub\]"'):
        dptext.Pool("hf://datasets/acme/news")


def test_a_text_that_looks_like_an_address_is_a_text():
    assert dptext.Pool(["hf://datasets/acme/news", "another text"]).texts == ("hf://datasets/acme/news", "another text")
