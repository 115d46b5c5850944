"""The commands of the README and of the first pages of the documentation work."""

import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

import dptext
from demo_folder import place_demo
from dptext.cli import main
from dptext.representations import published
from dptext.representations.published_protocols import OME
from warm import folders_of_programs

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
INSTALL = (DOCS / "start" / "install.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])


def fences(page):
    return re.findall(r"^```([^\n]*)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def typed(page):
    """The lines after a prompt, with those that a trailing backslash continues."""
    blocks = [block for kind, block in fences(page) if kind == "console"]
    return re.findall(r"^\$ ((?:.*\\\n)*.*)$", "\n".join(blocks), re.MULTILINE)


def texts_in(file):
    return [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the example is for a POSIX shell")
def test_the_shell_example_runs_from_top_to_bottom(tmp_path, tmp_path_factory):
    lines = typed(README)
    assert "dptext demo" in lines
    place_demo(tmp_path_factory, tmp_path)
    path = os.pathsep.join([folders_of_programs(tmp_path_factory), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(line for line in lines if line != "dptext demo")],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Make a synthetic corpus (dptext synthesize)." in done.stdout.split("texts of a bank")[0]  # by advise
    assert done.stdout.count("verified, its SHA-256") == 2
    assert "CONSISTENT: the stated noise is sufficient" in done.stdout  # by audit
    assert "A bound of this size says little on its own" in done.stderr  # of the bank at epsilon 6
    assert "NOT PROTECTED" in done.stderr  # of words alone
    pool = set(texts_in(tmp_path / "dptext-demo" / "pool.jsonl"))
    for name, number in ("shared.jsonl", 3000), ("sentences.jsonl", 6542):
        output = texts_in(tmp_path / name)
        assert (len(output), set(output) <= pool) == (number, True)
    promised = {
        name: dptext.PrivacyStatement.from_json((tmp_path / f"{name}.privacy.json").read_text())
        for name in ("shared.jsonl", "sentences.jsonl", "vectors.parquet", "words.jsonl")
    }
    assert {name: entry.epsilon for name, entry in promised.items() if name != "words.jsonl"} == {
        "shared.jsonl": 1.0,
        "sentences.jsonl": 6.0,
        "vectors.parquet": 3.0,
    }
    assert promised["shared.jsonl"].unit == "user"
    assert "the column 'intent', unchanged" in promised["words.jsonl"].exposed


@pytest.mark.slow
def test_the_tables_of_input_and_output_are_real(tmp_path, tmp_path_factory, monkeypatch):
    place_demo(tmp_path_factory, tmp_path)
    monkeypatch.chdir(tmp_path)
    rows = re.findall(r"^\| (user \d+) \| (\w+) \| (.+) \|$", README, re.MULTILINE)
    private = [json.loads(line) for line in Path("dptext-demo/people.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 3
    assert [dict(zip(("user", "intent", "text"), row, strict=True)) in private for row in rows] == [True] * 3
    (command,) = [line for line in typed(README) if line.startswith("dptext synthesize ")]
    # noise and selection with a seed, as the command draws them without
    assert main([*shlex.split(command.replace("\\\n", " "))[1:], "--seed", "1", "--quiet"]) == 0
    distribution = dptext.TextDistribution.load("shared.jsonl.distribution")
    public = texts_in(Path("dptext-demo/pool.jsonl"))
    output = distribution.sample(public, 3000, seed=4)
    first: dict[str, str] = {}
    for intent, text in zip(output.labels, output.texts, strict=True):
        first.setdefault(intent, text)
    assert len(texts_in(Path("shared.jsonl"))) == 3000
    written = dict(re.findall(r"^\| (\w+) \| ([^|]+) \|$", README.partition("**Out:**")[2], re.MULTILINE)[1:])
    assert written == {intent: first[intent] for _, intent, _ in rows}
    page = (DOCS / "start" / "readable.md").read_text(encoding="utf-8")
    assert all(f"| {intent} | {text} |" in page for intent, text in written.items())


@pytest.mark.parametrize("page", [README, INSTALL], ids=["README", "install"])
def test_what_is_installed_has_these_extras_and_this_name(page):
    lines = re.findall(r'pip install "([^"]+)"', page)
    if page is INSTALL:
        lines.remove("dptext[playground]")  # as errors say it; the page says what to do then
    assert {re.sub(r"\[.*", "", line) for line in lines} >= {"./dptext", "."}
    for line in lines:
        assert set(re.search(r"\[(.*)\]", line)[1].split(",")) <= EXTRAS, line
    floor = PROJECT["requires-python"].removeprefix(">=")
    assert f"Python {floor} or newer" in page


def test_the_page_on_installing_has_all_extras():
    rows = re.findall(r"^\| (`.*?) \|", INSTALL, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert named == EXTRAS - {"dev", "docs", "browser"}
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert set(re.search(r"\[(.*)\]", everything)[1].split(",")) == named - {"all", "presidio"}
    assert "all of these but `presidio`" in INSTALL


def test_the_papers_stand_there_with_their_true_epsilon():
    ome = OME(epsilon=1.0, lambda_=100, dimension=50, bits=10, unsafe_as_published=True).statement(50)
    dpnr = published.DPNR(epsilon=1.0, unsafe_as_published=True).statement(64)
    dptext_as_printed = published.DPText(epsilon=1.0, unsafe_as_published=True).statement(64)
    assert (ome.claimed_epsilon, dpnr.claimed_epsilon, dptext_as_printed.claimed_epsilon) == (1.0, 1.0, 1.0)
    assert dpnr.epsilon == 64
    assert dptext_as_printed.epsilon == float("inf")
    vectors = dptext.load_vectors("glove-6b-50d", limit=50_000)
    worst = dptext.TEM(vectors, epsilon=5.0).statement.guarantee
    assert "never more than 35.46 for a pair" in str(worst)
    (row,) = re.findall(r"^\| \[Towards Differentially Private Text Representations\].*$", README, re.MULTILINE)
    assert f"{ome.epsilon:,.0f}" in row
    (row,) = re.findall(r"^\| \[Differentially Private Representation for NLP.*$", README, re.MULTILINE)
    assert "times the dimension" in row
    (row,) = re.findall(r"^\| \[Privacy Preserving Text Representation Learning\].*$", README, re.MULTILINE)
    assert "infinite" in row
    papers = (DOCS / "papers" / "index.md").read_text(encoding="utf-8").replace("**", "")
    for wording in (
        "as printed, per unit of distance; for any two words up to 35.5 (50,000 words) |",
        "| 3,451 at every printed one (lambda 100, r = 50) |",
        "| the printed one times the dimension",
        "of its code infinite |",
        "| infinite: its noise is never negative |",
        "| 46.2 for a user where its account says 5.7; with its code's noise 294 or more for one pair of words |",
    ):  # in both tables the same
        assert all(wording in page for page in (README, papers)), wording


def test_files_and_packages_in_the_contributing_guide_exist():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    source = Path(dptext.__file__).parent
    paths = sorted(set(re.findall(r"`(?:dptext/)?([a-z_]+(?:/[a-z_]+)*\.py)\b", guide)))
    assert [path for path in paths if not ((source / path).is_file() or (ROOT / path).is_file())] == []
    packages = {path.name for path in source.iterdir() if path.is_dir() and path.name != "__pycache__"}
    picture = guide.split("```")[1]
    assert [name for name in sorted(packages) if name not in picture.split() and f"{name}," not in picture] == []
