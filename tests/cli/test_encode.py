"""``dptext encode`` and what reads its files, in a shell as a user has it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dptext
from dptext.io.artifacts import file_digest
from dptext.ledger.ledger import Ledger
from dptext.representations.device import vectors_in
from dptext.representations.registry import PUBLISHED_ONLY
from stopping import held

pytest.importorskip("sklearn")

MARKER = "qsecretq"


@pytest.fixture(scope="module")
def vectors(tmp_path_factory, glove):
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    dptext.save_vectors(dptext.load_vectors(glove, limit=500), path)
    return str(path)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("in.jsonl", 6)
    write("public.jsonl", 40, start=1000)
    return tmp_path


def write(name, count, start=0, word=""):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    known = ["the", "man", "of", "city", "war", "music", "water", "year"]
    with open(name, "w") as stream:
        for n in range(start, start + count):
            text = f"{known[n % 8]} {known[n // 8 % 8]} of {MARKER} said that {n} {word}".strip()
            stream.write(json.dumps({"text": text, "id": n, "author": f"a{n % 2}", "label": n % 2}) + "\n")


def statement_of(name):
    return dptext.PrivacyStatement.from_json(Path(f"{name}.privacy.json").read_text())


def change(name, **fields):
    Path(f"{name}.privacy.json").write_text(statement_of(name).replace(**fields).to_json())


@pytest.fixture
def encode(run, vectors):
    def call(*arguments):
        options = list(map(str, arguments))
        if "--encoder" not in options:
            options += ["--encoder", vectors]
            options += [] if "--epsilon" in options else ["--epsilon", "8"]
        return run("encode", *options)

    return call


# -- output ---------------------------------------------------------------------------------------------------


def test_a_file_of_vectors_with_ids_and_a_statement(work, encode):
    code, out, err = encode("in.jsonl", "-o", "out.parquet", "--keep", "id!")
    assert (code, out) == (0, "")
    assert "unit      document (one text); relation: substitution by any other text; local" in err
    assert "guarantee 8-differential privacy (pure)" in err
    assert "8 times the number of their texts for a person" in " ".join(err.split())
    assert "Projection to 16 dimensions (chosen for this epsilon)" in err
    assert "Public texts like yours (--public FILE) leave more" in " ".join(err.split())
    assert "Wrote 6 private vectors of 16 numbers to out.parquet" in err
    table = pq.read_table("out.parquet")
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 16)
    assert table["id"].to_pylist() == list(range(6))
    statement = statement_of("out.parquet")
    assert statement.data_sha256 == file_digest("out.parquet")
    assert statement.parameters["public_data"] == "texts made up of public words by their rank"
    assert (statement.parameters["projection"], statement.parameters["dimension"]) == ("pca", 16)
    assert MARKER not in err + Path("out.parquet.privacy.json").read_text()
    assert MARKER.encode() not in Path("out.parquet").read_bytes()
    assert sorted(os.listdir()) == ["in.jsonl", "out.parquet", "out.parquet.privacy.json", "public.jsonl"]


def test_a_saved_encoder_makes_vectors_of_the_same_kind(work, encode, run):
    assert encode("in.jsonl", "-o", "a.parquet", "--save", "dev", "--seed", 5, "-q")[0] == 0
    assert encode("in.jsonl", "-o", "b.parquet", "--encoder", "dev", "--seed", 5, "-q")[0] == 0
    assert Path("a.parquet").read_bytes() == Path("b.parquet").read_bytes()
    code, _, err = encode("in.jsonl", "-o", "c.parquet", "--encoder", "dev", "--epsilon", 9)
    assert (code, "has epsilon 8: leave --epsilon out" in err) == (2, True)
    code, _, err = encode(
        "in.jsonl", "-o", "c.parquet", "--encoder", "dev", "--randomizer", "privunit", "--public", "public.jsonl"
    )
    assert code == 2
    assert "leave out --randomizer, --public" in err
    code, _, err = encode("in.jsonl", "-o", "c.parquet", "--save", "dev", "--epsilon", 9)
    assert (code, "is there already" in err) == (2, True)
    Path("mine").mkdir()
    code, _, err = encode("in.jsonl", "-o", "c.parquet", "--save", "mine")
    assert (code, "'mine' exists already" in err) == (2, True)


@pytest.mark.slow
def test_the_saved_folder_needs_no_scikit_learn(work, encode, vectors):
    assert encode("in.jsonl", "-o", "a.parquet", "--save", "dev", "-q")[0] == 0
    script = (
        "import sys; sys.modules['sklearn'] = None; sys.modules['torch'] = None\n"
        "from dptext.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "encode", "in.jsonl", "-o", "b.parquet", "--encoder", "dev", "-q"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    fit = [
        sys.executable,
        "-c",
        script,
        "encode",
        "in.jsonl",
        "-o",
        "c.parquet",
        "--epsilon",
        "8",
        "--encoder",
        vectors,
    ]
    done = subprocess.run(fit, capture_output=True, text=True)
    assert done.returncode != 0
    assert "scikit-learn" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_goes_to_a_folder(work, encode):
    write("texts/a.jsonl", 3)
    write("texts/deep/b.jsonl", 2, start=10)
    assert encode("texts", "-o", "private", "--keep", "id!", "-q")[0] == 0
    assert pq.read_table("private/a.parquet")["id"].to_pylist() == [0, 1, 2]
    assert pq.read_table("private/deep/b.parquet")["id"].to_pylist() == [10, 11]
    os.remove("private/a.parquet")
    os.remove("private/a.parquet.privacy.json")
    before = file_digest("private/deep/b.parquet")
    code, _, err = encode("texts", "-o", "private", "--keep", "id!", "--resume")
    assert code == 0
    assert "deep/b.parquet exists already and is left unchanged" in err
    assert file_digest("private/deep/b.parquet") == before
    os.remove("private/a.parquet")
    code, _, err = encode("texts", "-o", "private", "--keep", "id!", "--resume", "--epsilon", 9)
    assert (code, "from another run" in err) == (2, True)


@pytest.mark.parametrize("name", PUBLISHED_ONLY)
def test_a_protocol_as_published_is_refused(work, encode, name):
    command = ["in.jsonl", "-o", "out.parquet", "--epsilon", "2", "--randomizer", name.lower()]
    code, out, err = encode(*command)
    assert (code, out, sorted(os.listdir())) == (3, "", ["in.jsonl", "public.jsonl"])
    assert "does not keep the epsilon that its paper prints" in err


# -- interruptions and ledgers --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_an_interrupted_run_says_how_to_go_on_and_does(work, vectors):
    write("big.jsonl", 4_000, word="z" * 600)  # several blocks of a million characters
    command = [sys.executable, "-m", "dptext", "encode", "big.jsonl", "-o", "out.parquet", "--seed", "1"]
    command += ["--epsilon", "8", "--encoder", vectors, "--keep", "id!"]
    with held(*command[3:]) as process:
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
    assert process.returncode == 130
    assert "rows are done and kept: run the same command with --resume to continue" in err
    assert "Traceback" not in err
    assert not os.path.exists("out.parquet")
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True)
    assert done.returncode == 0
    assert re.search(r"Resumed after [\d,]+ documents\.", done.stderr)
    assert subprocess.run([*command[:6], "whole.parquet", *command[7:]], capture_output=True).returncode == 0
    assert Path("out.parquet").read_bytes() == Path("whole.parquet").read_bytes()
    assert not [name for name in os.listdir() if name.startswith(".")]


def test_a_ledger_refuses_the_second_release_and_adds_up_a_person(work, encode, run):
    assert run("ledger", "create", "l.db", "--epsilon", 24)[0] == 0
    keyed = ["--ledger", "l.db", "--user", "author", "-q"]
    assert encode("in.jsonl", "-o", "a.parquet", *keyed)[0] == 0
    code, _, err = encode("in.jsonl", "-o", "b.parquet", *keyed)
    assert code == 3
    assert "2 of 2 values of 'author' would be overspent" in err
    assert MARKER not in err
    assert not [name for name in os.listdir() if "b.parquet" in name]
    assert Ledger("l.db").left("a0").left == 0.0


# -- explain and audit ----------------------------------------------------------------------------------------


@pytest.fixture
def release(work, encode):
    def make(*options):
        assert encode("in.jsonl", "-o", "out.parquet", "--force", "-q", *options)[0] == 0
        return "out.parquet"

    return make


@pytest.mark.slow
def test_an_honest_release_stands_its_audit(release, run):
    out = release("--epsilon", 4)
    code, text, err = run("audit", out, "--samples", 20_000)
    assert code == 0, err
    assert "NO " not in text.replace("NOT ", "")
    assert "every vector has 12 finite numbers" in text
    assert "THE GUARANTEE FOR A VECTOR" in text
    assert "No attack was found that distinguishes two vectors" in text
    assert max(map(len, text.splitlines())) <= 100
    code, text, _ = run("audit", out, "--json", "-q", "--samples", 2_000)
    result = json.loads(text)
    assert result["refuted"] is False
    assert [check["passed"] for check in result["checks"]] == [True, True, True]
    code, text, _ = run("audit", out, "--samples", 200)  # few for a score; draws are compared with the stated noise
    assert "The stated noise shows" in " ".join(text.split())


def test_a_promise_that_the_parameters_do_not_keep_is_refuted(release, run):
    out = release()
    change(out, guarantee=dptext.PureDP(4.0))
    code, text, err = run("audit", out, "--samples", 20_000)
    assert code == 3
    assert "NO  the guarantee follows from the parameters" in text
    assert "REFUTED" in text
    assert "refuted" in err
    out = release()
    parameters = dict(statement_of(out).parameters)
    change(out, parameters={**parameters, "cap_chance": 0.5})
    code, text, _ = run("audit", out, "--samples", 1_000)
    assert code == 3
    assert "cap_chance differ" in " ".join(text.split())


def test_changed_data_is_refuted(release, run):
    out = release()
    table = pq.read_table(out)
    pq.write_table(table.slice(1), out)
    code, text, _ = run("audit", out, "--samples", 1_000)
    assert code == 3
    assert "its SHA-256 DIFFERS" in text


def test_vectors_that_no_randomizer_sends_are_refuted(release, run):
    out = release()
    vectors = np.concatenate(list(vectors_in(out)))
    vectors[2, 1] = np.nan
    array = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 16)
    pq.write_table(pa.table({"vector": array}), out)
    change(out, data_sha256=file_digest(out))
    code, text, _ = run("audit", out, "--samples", 1_000)
    assert code == 3
    assert "6 vectors, 1 of them otherwise" in " ".join(text.split())


# -- several epsilons, on public texts alone -----------------------------------------------------------------------


def test_several_epsilons_are_compared_on_public_texts(work, run, vectors):
    command = ["encode", "--encoder", vectors, "--public", "public.jsonl", "--public-label", "label"]
    code, out, err = run(*command, "--compare", "2,30")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["epsilon", "2", "30", "no", "no"]
    assert "No private text was read" in " ".join(err.split())
    assert all(len(line) <= 80 for line in [*out.splitlines(), *err.splitlines()])
    result = json.loads(run(*command, "--compare", "8", "--json")[1])
    assert (result["texts"], result["rows"][0]["epsilon"]) == (40, 8.0)
    assert sorted(os.listdir()) == ["in.jsonl", "public.jsonl"]
