"""The command line as a user has it: one run of a command, a folder to work in, and small public vectors."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import dptext
from dptext.cli import main
from synthesis.conftest import tiny_model_folder as tiny_model_folder

SECRET = "qsecretq"
"""A word of the private texts. No command prints it."""
WORDS = ("the", "man", "of", "city", "war", "music", "water", "year")


@pytest.fixture(scope="session")
def vectors(tmp_path_factory, glove):
    """A file of 300 public words."""
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    dptext.save_vectors(dptext.load_vectors(glove, limit=300), path)
    return str(path)


@pytest.fixture
def work(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path.with_name(f"{tmp_path.name}-cache")))
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run a command and return its exit code and its output."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert SECRET not in (captured.out + captured.err).lower()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return call


def command(*arguments):
    """Return a command for a separate process."""
    return [sys.executable, "-m", "dptext", *map(str, arguments)]


def write_rows(name, count, *, start=0, people=2, word=""):
    """Write rows of a private file: texts with known words, the secret and a number."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        for number in range(start, start + count):
            known = " ".join(WORDS[(number + place) % 8] for place in range(9))
            level = ["strict", "open", None][number % people % 3]
            row = {"text": f"{known} {SECRET} {number} {word}".strip(), "id": number, "label": number % 2}
            stream.write(json.dumps(row | {"author": f"a{number % people}", "level": level}) + "\n")


def read_rows(name):
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]


def statement_of(name):
    """Return the statement next to a file, or in a folder or file of its own."""
    path = Path(name)
    path = path / "privacy.json" if path.is_dir() else path
    path = path if path.suffix == ".json" else path.with_name(f"{path.name}.privacy.json")
    return dptext.PrivacyStatement.from_json(path.read_text())


def change_statement(name, **fields):
    statement = statement_of(name)
    parameters = {**statement.parameters, **fields.pop("parameters", {})}
    path = Path(f"{name}.privacy.json")
    path.write_text(replace(statement, parameters=parameters, **fields).to_json())


def names(folder="."):
    """Return the sorted names in a folder."""
    return sorted(path.name for path in Path(folder).iterdir())


def scores_of(text):
    """Return the scores that an attack prints as JSON, by attack and measure."""
    return {(score["attack"], score["measure"]): score for score in json.loads(text)["scores"]}


def plain(text):
    """Return a text on one line."""
    return " ".join(text.split())
