"""``dptext advise`` as the owner of some rows has it."""

import json
import os
import pty
import select
import shlex
import subprocess
import time
from functools import lru_cache
from shutil import which

import pytest
import typer

from dptext.cli.app import program
from dptext.methods import advise as advice
from dptext.vectors.formats import load_vectors
from methods.conftest import SECRET, made_up_rows
from warm import folders_of_programs

ANSWERS = [
    ("--purpose", "read", "--recipient", "public", "--trust", "central"),
    ("--purpose", "read", "--recipient", "public", "--trust", "local"),
    ("--purpose", "devices", "--recipient", "partner", "--trust", "local"),
    ("--purpose", "classify", "--recipient", "colleagues", "--trust", "local"),
    ("--purpose", "classify", "--recipient", "partner", "--trust", "central"),
]


_load_once = lru_cache(load_vectors)


@pytest.fixture(autouse=True)
def public_vectors_are_read_once(monkeypatch):
    def load(source, **options):
        return (_load_once if isinstance(source, str) else load_vectors)(source, **options)

    monkeypatch.setattr("dptext.methods.base.load_vectors", load)


@pytest.fixture
def notes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in made_up_rows(people=200, texts=1)))
    return path


@pytest.fixture
def public(tmp_path):
    path = tmp_path / "open texts.jsonl"
    words = ["we", "went", "home", "and", "spoke", "about", "visit", "long", "music", "rain"]
    texts = [" ".join(words[(n * 3 + step * (1 + n % 4)) % 10] for step in range(6)) + f" {n}" for n in range(300)]
    path.write_text("".join(json.dumps({"said": text}) + "\n" for text in texts))
    return path


def parsed(command):
    """What the parser of a command says of a line to paste, before it does anything."""
    first, *words = shlex.split(command.replace("\\\n", " ").replace("LICENCE", "CC0-1.0"))
    assert first == "dptext"
    group = typer.main.get_command(program(words))
    return group.commands[words[0]].make_context(words[0], words[1:])


@pytest.fixture
def advised_once(monkeypatch):
    """Equal questions are answered once: JSON and page are two forms of one advice."""
    real, results = advice.advise, {}

    def advise(*sources, **settings):
        key = repr((sources, sorted(settings.items())))
        if key not in results:
            results[key] = real(*sources, **settings)
        return results[key]

    monkeypatch.setattr(advice, "advise", advise)
    yield
    assert len(results) == 1


@pytest.mark.slow
@pytest.mark.parametrize("answers", [(), *ANSWERS])
@pytest.mark.usefixtures("advised_once")
def test_every_command_parses_and_no_value_is_printed(notes, run, answers):
    code, out, err = run("advise", "notes.jsonl", "--json", *answers)
    assert code == 0
    results = json.loads(out)
    assert results["for_the_owner_only"]
    for way in results["methods"]:
        for command in way["commands"]:
            assert parsed(command).params
    assert SECRET not in out + err
    code, out, err = run("advise", "notes.jsonl", *answers)
    assert code == 0
    assert max(map(len, (out + err).split("\n"))) <= 80
    assert SECRET not in out + err
    assert sorted(path.name for path in notes.parent.iterdir()) == ["notes.jsonl"]  # it writes nothing


@pytest.mark.slow
@pytest.mark.parametrize("answers", ANSWERS)
def test_the_recommended_commands_run_as_they_are_pasted(notes, public, run, answers):
    code, out, _ = run("advise", "notes.jsonl", "--json", "--public", public.name, "--public-text", "said", *answers)
    assert code == 0
    results = json.loads(out)
    [way] = [method for method in results["methods"] if method["fit"] == "recommended"]
    assert way["name"] == results["recommended"]
    for command in way["commands"]:
        assert "PUBLIC" not in command
        filled = command.replace("LABEL1,LABEL2", ",".join(SECRET + letter for letter in "ABC"))
        filled = filled.replace("LICENCE", "CC0-1.0").replace("NEW.jsonl", "notes.jsonl")
        _, *words = shlex.split(filled.replace("\\\n", " "))
        code, out, err = run(*words, *(["--features", "static"] if words[0] == "synthesize" else []))
        assert code == 0, err
    outputs = [path for path in notes.parent.iterdir() if path.name.startswith("notes.") and path != notes]
    assert outputs


# -- a terminal ----------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path_factory):
    return os.pathsep.join([folders_of_programs(tmp_path_factory), os.environ["PATH"]])


def on_a_terminal(arguments, typed, folder, path):
    """What the program prints where standard input, output and error are a terminal."""
    main, side = pty.openpty()
    environment = os.environ | {"COLUMNS": "80", "TERM": "dumb", "PATH": path}
    command = [which("dptext", path=path), *arguments]
    process = subprocess.Popen(command, stdin=side, stdout=side, stderr=side, cwd=folder, env=environment)
    os.close(side)
    for line in typed:
        os.write(main, line.encode())
    output, until = b"", time.monotonic() + 120
    while time.monotonic() < until:
        if select.select([main], [], [], 0.2)[0]:
            try:
                read = os.read(main, 65536)
            except OSError:
                break
            if not read:
                break
            output += read
        elif process.poll() is not None:
            break
    os.close(main)
    return process.wait(timeout=60), output.decode().replace("\r", "")


@pytest.mark.slow
def test_a_terminal_is_asked_and_an_empty_line_decides_nothing(notes, path):
    code, output = on_a_terminal(["advise", "notes.jsonl"], ["1\n", "\n", "nonsense\n", "local\n"], notes.parent, path)
    assert code == 0
    assert "Who receives it?" in output
    assert "texts of a bank" in output
    assert "Answer --recipient too: the recommendation may change." in " ".join(output.split())


@pytest.mark.slow
def test_without_a_terminal_or_with_json_nothing_is_asked(notes, path):
    done = subprocess.run(
        [which("dptext", path=path), "advise", "notes.jsonl"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=notes.parent, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "Who receives it?" not in done.stdout
    code, output = on_a_terminal(["advise", "notes.jsonl", "--json"], [], notes.parent, path)
    assert code == 0
    assert "Who receives it?" not in output
