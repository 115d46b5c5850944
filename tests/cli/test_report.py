"""`dptext report` as a user meets it: a page that is whole or not there, exit codes, no text of anybody."""

import html
import json
import os
from html.parser import HTMLParser

import numpy as np
import pytest

import dptext
from dptext.cli import main

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

SECRET = "Zebulon"


@pytest.fixture
def run(capsys, tmp_path, monkeypatch, glove):
    monkeypatch.chdir(tmp_path)
    rows = (f"{word} {' '.join(f'{x:.5f}' for x in glove[word])}" for word in glove.words[:300])
    (tmp_path / "small.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def release(run, tmp_path, glove):
    generator = np.random.default_rng(1)
    with (tmp_path / "in.jsonl").open("w") as stream:
        for n in range(60):
            text = f"{SECRET} {' '.join(glove.words[place] for place in generator.choice(280, size=6))}"
            stream.write(json.dumps({"text": text, "side": "left" if n % 2 else "right"}) + "\n")
    arguments = ("privatize", "in.jsonl", "-o", "out.jsonl", "--vectors", "small.txt", "--epsilon", 4, "-q")
    assert run(*arguments, "--keep", "side")[0] == 0


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.sources = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href")]
        if tag not in {"meta", "img", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.slow
@pytest.mark.usefixtures("same_draws")  # letters of any case can stand by chance in the code of a picture
def test_a_page_and_a_card(release, run, tmp_path):
    name = "out.jsonl" if os.name == "nt" else "<b>ours.jsonl"
    for ending in ("", ".privacy.json"):
        (tmp_path / f"out.jsonl{ending}").rename(tmp_path / f"{name}{ending}")
    code, out, err = run(
        *("report", name, "-o", "page.html", "--original", "in.jsonl", "--label", "side", "--attribute", "side"),
        *("--card", "README.md", "--json"),
    )
    assert code == 0, err
    assert "for the owner of the data" in err
    result = json.loads(out)
    assert (result["out"], result["card"], result["refuted"]) == ("page.html", "README.md", False)
    assert result["attacks"] and result["owner_attacks"]
    page, card = (tmp_path / "page.html").read_text(), (tmp_path / "README.md").read_text()
    reader = _Reader()
    reader.feed(page)
    assert reader.open == []
    assert "script" not in reader.seen
    assert all(source.startswith("data:image/png;base64,") for source in reader.sources)
    assert "<b>ours" not in page
    assert f"{html.escape(name)}</title>" in page
    assert not any(SECRET.lower() in output.lower() for output in (page, card, out, err))
    assert not list(tmp_path.glob(".*part*"))
    if os.name != "nt":  # numbers from the originals are for their owner, a card is for everybody
        assert {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("page.html", "README.md")} == {
            "page.html": 0o600,
            "README.md": usual_mode(tmp_path),
        }


def usual_mode(folder):
    (folder / "usual").touch()
    return (folder / "usual").stat().st_mode & 0o777


def test_no_folder_is_named_on_what_is_shared(release, run, tmp_path):
    secret = tmp_path / "of-somebody"
    secret.mkdir()
    options = ("-o", secret / "page.html", "--card", secret / "CARD.md", "--label", "side", "--rows", 50, "-q")
    assert run("report", tmp_path / "out.jsonl", *options) == (0, "", "")
    for name in ("page.html", "CARD.md"):
        text = (secret / name).read_text()
        assert ("dptext report out.jsonl -o page.html" in text) == (name == "page.html")
        assert "of-somebody" not in text
        assert str(tmp_path) not in text


def test_a_refuted_promise_is_exit_code_3_and_the_page_says_so(release, run, tmp_path):
    statement_file = tmp_path / "out.jsonl.privacy.json"
    statement = dptext.PrivacyStatement.from_json(statement_file.read_text())
    statement_file.write_text(statement.replace(guarantee=dptext.PureDP(1.0)).to_json())
    code, out, err = run("report", "out.jsonl", "-o", "page.html", "-q")
    assert (code, out) == (3, "")
    assert "refuted: the guarantee of out.jsonl" in err
    assert "was refuted" in (tmp_path / "page.html").read_text()


def test_nothing_is_overwritten_and_nothing_half_is_left(release, run, tmp_path, monkeypatch):
    (tmp_path / "page.html").write_text("mine")
    code, _, err = run("report", "out.jsonl", "-o", "page.html")
    assert code == 2
    assert "--force" in err
    assert (tmp_path / "page.html").read_text() == "mine"
    monkeypatch.setattr("dptext.methods.words.deniability", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    assert run("report", "out.jsonl", "-o", "page.html", "--force", "-q")[0] == 130
    assert (tmp_path / "page.html").read_text() == "mine"
    assert not list(tmp_path.glob(".*part*"))
