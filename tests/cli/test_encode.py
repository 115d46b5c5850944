"""``dptext encode``: private vectors, saved encoders, ``--compare``, and audits of the files."""

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
from cli.conftest import SECRET, change_statement, command, names, plain, statement_of, write_rows
from dptext.io.artifacts import file_digest
from dptext.ledger.ledger import Ledger
from dptext.representations.device import vectors_in
from dptext.representations.registry import PUBLISHED_ONLY
from stopping import held

pytest.importorskip("sklearn")


@pytest.fixture
def encode(run, work, vectors):
    write_rows("in.jsonl", 6)
    write_rows("public.jsonl", 40, start=1000)

    def call(*arguments):
        usual = [] if "--encoder" in arguments else ["--encoder", vectors]
        usual += [] if "--encoder" in arguments or "--epsilon" in arguments else ["--epsilon", 8]
        return run("encode", *arguments, *usual)

    return call


def test_encode_writes_vectors_with_kept_columns_and_a_statement(encode):
    code, out, err = encode("in.jsonl", "-o", "out.parquet", "--keep", "id!")
    assert (code, out) == (0, "")
    for line in (
        "unit document (one text); relation: substitution by any other text; local",
        "guarantee 8-differential privacy (pure)",
        "8 times the number of their texts for a person",
        "Projection to 16 dimensions, chosen for this epsilon",
        "Public texts like yours (--public FILE) make it better",
        "Wrote 6 private vectors of 16 numbers to out.parquet",
    ):
        assert line in plain(err)
    table = pq.read_table("out.parquet")
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 16)
    assert table["id"].to_pylist() == list(range(6))
    statement = statement_of("out.parquet")
    assert statement.data_sha256 == file_digest("out.parquet")
    assert statement.parameters["public_data"] == "texts made up of public words by their rank"
    assert (statement.parameters["projection"], statement.parameters["dimension"]) == ("pca", 16)
    assert not any(SECRET.encode() in Path(name).read_bytes() for name in names() if name.startswith("out"))
    assert names() == ["in.jsonl", "out.parquet", "out.parquet.privacy.json", "public.jsonl"]


def test_a_saved_encoder_makes_the_same_vectors_and_takes_no_other_settings(encode):
    assert encode("in.jsonl", "-o", "a.parquet", "--save", "dev", "--seed", 5, "-q")[0] == 0
    assert encode("in.jsonl", "-o", "b.parquet", "--encoder", "dev", "--seed", 5, "-q")[0] == 0
    assert Path("a.parquet").read_bytes() == Path("b.parquet").read_bytes()
    Path("mine").mkdir()
    for options, message in (
        (["--encoder", "dev", "--epsilon", 9], "has epsilon 8: omit --epsilon"),
        (["--encoder", "dev", "--randomizer", "privunit", "--public", "public.jsonl"], "omit --randomizer, --public"),
        (["--save", "dev", "--epsilon", 9], "already exists"),
        (["--save", "mine"], "'mine' already exists"),
        (["--public", "in.jsonl"], "is also an input"),
    ):
        code, _, err = encode("in.jsonl", "-o", "c.parquet", *options)
        assert (code, message in err, Path("c.parquet").exists()) == (2, True, False), err


@pytest.mark.slow
def test_a_saved_encoder_needs_no_scikit_learn(encode, vectors):
    assert encode("in.jsonl", "-o", "a.parquet", "--save", "dev", "-q")[0] == 0
    script = (
        "import sys; sys.modules['sklearn'] = None; sys.modules['torch'] = None\n"
        "from dptext.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    start = [sys.executable, "-c", script, "encode", "in.jsonl", "-q", "-o"]
    done = subprocess.run([*start, "b.parquet", "--encoder", "dev"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    fit = [*start, "c.parquet", "--epsilon", "8", "--encoder", vectors]
    done = subprocess.run(fit, capture_output=True, text=True)
    assert (done.returncode == 0, "scikit-learn" in done.stderr, "Traceback" in done.stderr) == (False, True, False)


def test_protocols_as_published_are_refused(encode):
    for name in PUBLISHED_ONLY:
        code, out, err = encode("in.jsonl", "-o", "out.parquet", "--randomizer", name.lower())
        assert (code, out, names()) == (3, "", ["in.jsonl", "public.jsonl"])
        assert "does not satisfy the epsilon of its paper" in err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_an_interrupted_run_is_resumed_with_the_same_vectors(encode, vectors):
    write_rows("big.jsonl", 4_000, word="z" * 600)  # several blocks of a million characters
    usual = ("--seed", "1", "--epsilon", "8", "--encoder", vectors, "--keep", "id!")
    with held("encode", "big.jsonl", "-o", "out.parquet", *usual) as process:
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
    assert (process.returncode, Path("out.parquet").exists(), "Traceback" in err) == (130, False, False)
    assert "rows are done and kept: run the same command with --resume to continue" in err
    arguments = command("encode", "big.jsonl", "-o", "out.parquet", *usual, "--resume")
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0 and re.search(r"Resumed after [\d,]+ documents\.", done.stderr)
    assert encode("big.jsonl", "-o", "whole.parquet", *usual)[0] == 0
    assert Path("out.parquet").read_bytes() == Path("whole.parquet").read_bytes()
    assert not [name for name in names() if name.startswith(".")]


def test_a_ledger_charges_all_texts_of_an_author(encode):
    Ledger.create("l.db", epsilon=24)
    keyed = ["--ledger", "l.db", "--user", "author", "-q"]
    assert encode("in.jsonl", "-o", "a.parquet", *keyed)[0] == 0
    code, _, err = encode("in.jsonl", "-o", "b.parquet", *keyed)
    assert (code, "2 of 2 values of 'author' would be overspent" in err) == (3, True)
    assert not [name for name in names() if "b.parquet" in name]
    assert Ledger("l.db").left("a0").left == 0.0


def test_several_epsilons_are_compared_on_public_texts(encode, run, vectors):
    usual = ["encode", "--encoder", vectors, "--public", "public.jsonl", "--public-label", "label"]
    code, out, err = run(*usual, "--compare", "2,30")
    assert (code, [line.split()[0] for line in out.splitlines()]) == (0, ["epsilon", "2", "30", "no", "no"])
    assert "No private text was read" in plain(err)
    assert all(len(line) <= 80 for line in [*out.splitlines(), *err.splitlines()])
    result = json.loads(run(*usual, "--compare", "8", "--json")[1])
    assert (result["texts"], result["rows"][0]["epsilon"]) == (40, 8.0)
    code, _, err = run(*usual, "--compare", "8", "in.jsonl")
    assert (code, "uses public texts only" in err, names()) == (2, True, ["in.jsonl", "public.jsonl"])


# -- audit ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_honest_release_is_not_refuted(encode, run):
    assert encode("in.jsonl", "-o", "out.parquet", "--epsilon", 4, "-q")[0] == 0
    code, text, err = run("audit", "out.parquet", "--samples", 20_000)
    assert (code, "NO " in text.replace("NOT ", "")) == (0, False), err
    assert "all vectors have 12 finite numbers" in text and "THE GUARANTEE FOR A VECTOR" in text
    assert "No attack was found that distinguishes two vectors" in text
    result = json.loads(run("audit", "out.parquet", "--json", "-q", "--samples", 2_000)[1])
    assert (result["refuted"], [check["passed"] for check in result["checks"]]) == (False, [True, True, True])
    # few for a score; draws are compared with the stated noise
    assert "The stated noise shows" in plain(run("audit", "out.parquet", "--samples", 200)[1])


def test_a_false_statement_and_changed_vectors_are_refuted(encode, run):
    def audited(message, samples=1_000):
        code, text, err = run("audit", "out.parquet", "--samples", samples)
        assert (code, message in plain(text), "refuted" in err) == (3, True, True), text
        assert encode("in.jsonl", "-o", "out.parquet", "--force", "-q")[0] == 0

    assert encode("in.jsonl", "-o", "out.parquet", "-q")[0] == 0
    change_statement("out.parquet", guarantee=dptext.PureDP(4.0))
    audited("NO the guarantee follows from the parameters", 20_000)
    change_statement("out.parquet", parameters={"cap_chance": 0.5})
    audited("cap_chance differ")
    pq.write_table(pq.read_table("out.parquet").slice(1), "out.parquet")
    audited("its SHA-256 DIFFERS")
    vectors = np.concatenate(list(vectors_in("out.parquet")))
    vectors[2, 1] = np.nan
    array = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 16)
    pq.write_table(pa.table({"vector": array}), "out.parquet")
    change_statement("out.parquet", data_sha256=file_digest("out.parquet"))
    audited("6 vectors, 1 of them do not")
