"""``dptext encode`` and what reads its files, in a shell as a user has it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dptext
from dptext.errors import DataError, StorageError
from dptext.io.artifacts import file_digest
from dptext.ledger.ledger import Ledger
from dptext.representations.files import vectors_in
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
        given = list(map(str, arguments))
        if "--encoder" not in given:
            given += ["--encoder", vectors]
            given += [] if "--epsilon" in given else ["--epsilon", "8"]
        return run("encode", *given)

    return call


# -- what it writes -------------------------------------------------------------------------------------------


def test_a_file_of_vectors_with_ids_and_a_statement(work, encode):
    code, out, err = encode("in.jsonl", "-o", "out.parquet", "--keep", "id!")
    assert (code, out) == (0, "")
    assert "unit      document (one text); relation: substitution by any other text; local" in err
    assert "promise   8-differential privacy (pure)" in err
    assert "8 times the number of their texts for a person" in " ".join(err.split())
    assert "Projection to 16 dimensions (chosen for this epsilon)" in err
    assert "made up of public words. Texts of your kind that are public" in " ".join(err.split())
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


def test_public_texts_fit_the_projection_and_are_named(work, encode):
    options = ["--public", "public.jsonl", "--public-label", "label", "--projection", "supervised", "--dimension", 2]
    code, out, err = encode("in.jsonl", "-o", "out.parquet", *options, "--json")
    assert code == 0
    assert "Fitting centre and projection on 40 public texts" in err
    found = json.loads(out)
    assert found["documents"] == 6
    statement = dptext.PrivacyStatement.from_json(json.dumps(found["statement"]))
    assert (statement.parameters["projection"], statement.parameters["width"]) == ("supervised", 2)
    assert (statement.parameters["public_data"], statement.parameters["public_texts"]) == ("public.jsonl", 40)
    assert any("'public.jsonl' (40 texts and their labels)" in each for each in statement.assumptions)
    assert encode("in.jsonl", "-o", "pca.parquet", "--public", "public.jsonl", "--dimension", 4, "-q")[0] == 0
    assert statement_of("pca.parquet").parameters["projection"] == "pca"


def test_a_saved_encoder_makes_vectors_of_the_same_kind(work, encode, run):
    assert encode("in.jsonl", "-o", "a.parquet", "--dimension", 4, "--save", "dev", "--seed", 5, "-q")[0] == 0
    assert encode("in.jsonl", "-o", "b.parquet", "--encoder", "dev", "--seed", 5, "-q")[0] == 0
    assert Path("a.parquet").read_bytes() == Path("b.parquet").read_bytes()
    code, _, err = encode("in.jsonl", "-o", "c.parquet", "--encoder", "dev", "--epsilon", 9)
    assert (code, "has epsilon 8, not 9" in err) == (2, True)
    code, _, err = encode(
        "in.jsonl", "-o", "c.parquet", "--encoder", "dev", "--dimension", 9, "--public", "public.jsonl"
    )
    assert code == 2
    assert "what --dimension, --public would say is decided in it" in err
    code, _, err = encode("in.jsonl", "-o", "c.parquet", "--save", "dev", "--dimension", 5)
    assert (code, "is there already" in err) == (2, True)
    Path("mine").mkdir()
    code, _, err = encode("in.jsonl", "-o", "c.parquet", "--save", "mine")
    assert (code, "'mine' is there already" in err) == (2, True)


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
    assert "deep/b.parquet is there already: left as it is" in err
    assert file_digest("private/deep/b.parquet") == before
    os.remove("private/a.parquet")
    code, _, err = encode("texts", "-o", "private", "--keep", "id!", "--resume", "--epsilon", 9)
    assert (code, "is of another run" in err) == (2, True)


@pytest.mark.slow
def test_standard_input_and_other_formats(work, vectors):
    command = [sys.executable, "-m", "dptext", "encode", "-", "-o", "out.parquet", "--format", ".jsonl", "-q"]
    with open("in.jsonl", "rb") as stream:
        done = subprocess.run(
            [*command, "--epsilon", "8", "--encoder", vectors, "--keep", "id!"], stdin=stream, capture_output=True
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert pq.read_table("out.parquet").num_rows == 6


def test_options_may_stand_in_a_file(work, run, vectors):
    Path("run.toml").write_text(f'[encode]\nepsilon = 4\nencoder = "{vectors}"\nkeep = ["id!"]\ndimension = 3\n')
    assert run("encode", "in.jsonl", "-o", "out.parquet", "--config", "run.toml", "-q")[0] == 0
    assert statement_of("out.parquet").epsilon == 4.0
    assert pq.read_schema("out.parquet").names == ["vector", "id"]


def test_a_seed_is_said(work, encode):
    encode("in.jsonl", "-o", "a.parquet", "--seed", 3, "-q")
    encode("in.jsonl", "-o", "b.parquet", "--seed", 3, "-q")
    assert Path("a.parquet").read_bytes() == Path("b.parquet").read_bytes()
    assert statement_of("a.parquet").seeded


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["in.jsonl", "-o", "out.jsonl"], 2, "expected a name that ends in .parquet"),
        (["in.jsonl", "-o", "-"], 2, "which no pipe can hold"),
        (["in.jsonl", "-o", "o.parquet", "--epsilon", "0"], 2, "epsilon must be a number above 0"),
        (["in.jsonl", "-o", "o.parquet", "--epsilon", "nan"], 2, "epsilon must be a number above 0"),
        (["in.jsonl", "-o", "o.parquet", "--dimension", "0"], 2, "dimension must be an integer of at least 1"),
        (["in.jsonl", "-o", "o.parquet", "--randomizer", "gauss"], 2, "expected a randomizer (PrivUnit"),
        (["in.jsonl", "-o", "o.parquet", "--randomizer", "privunti"], 2, "did you mean 'PrivUnit'?"),
        (["in.jsonl", "-o", "o.parquet", "--randomizer", "ome"], 3, "add --unsafe-as-published"),
        (["in.jsonl", "-o", "o.parquet", "--unsafe-as-published"], 2, "PrivUnit keeps what it promises"),
        (
            ["in.jsonl", "-o", "o.parquet", "--randomizer", "OME", "--set", "rate=2"],
            2,
            "OME has no option rate to set: besides --epsilon, bits, code, integer_bits, lambda_, scores",
        ),
        (
            ["in.jsonl", "-o", "o.parquet", "--randomizer", "DPNR", "--unsafe-as-published", "--save", "device"],
            2,
            "leave --save out",
        ),
        (["in.jsonl", "-o", "o.parquet", "--delta", "1e-5"], 2, "PrivUnit has no option delta to set"),
        (["in.jsonl", "-o", "o.parquet", "--set", "sigma=1"], 2, "PrivUnit has no option sigma to set"),
        (["in.jsonl", "-o", "o.parquet", "--set", "epsilon=1"], 2, "PrivUnit has no option epsilon to set"),
        (["in.jsonl", "-o", "o.parquet", "--set", "sigma"], 2, "--set expects NAME=VALUE"),
        (["in.jsonl", "-o", "o.parquet", "--projection", "supervised"], 2, "belong together"),
        (["in.jsonl", "-o", "o.parquet", "--public-label", "label"], 2, "give these too, with --public FILE"),
        (
            ["in.jsonl", "-o", "o.parquet", "--public", "public.jsonl", "--public-label", "label"],
            2,
            "belong together",
        ),
        (["in.jsonl", "-o", "o.parquet", "--public", "in.jsonl"], 2, "'in.jsonl' is among the inputs"),
        (["in.jsonl", "-o", "o.parquet", "--public", "none.jsonl"], 4, "none.jsonl"),
        (["in.jsonl", "-o", "o.parquet", "--public", "public.jsonl", "--public-text", "t"], 1, "expected a column 't'"),
        (["in.jsonl", "-o", "o.parquet", "--keep", "text"], 2, "keeping it would release it unchanged"),
        (["in.jsonl", "-o", "o.parquet", "--keep", "vector"], 2, "cannot be named 'vector'"),
        (["in.jsonl", "-o", "o.parquet", "--keep", "stars"], 1, "expected a column 'stars'"),
        (["in.jsonl", "-o", "o.parquet", "--encoder", "no-such", "--epsilon", "8"], 2, "no-such"),
        (["in.jsonl", "-o", "o.parquet", "--encoder", "no-such"], 2, "'no-such' is no folder that --save wrote"),
        (["in.jsonl", "-o", "o.parquet", "--user", "who"], 1, "expected a column 'who'"),
        (["-", "--format", ".jsonl", "-o", "o.parquet", "--ledger", "l"], 2, "a ledger reads the input twice"),
        (["in.jsonl", "-o", "o.parquet", "--bound", "clip"], 2, "choose another bound"),
    ],
)
def test_bad_usage_gets_one_line(work, encode, arguments, code, message):
    found, out, err = encode(*arguments, "-q")
    assert (found, out) == (code, ""), err
    assert message in err
    assert err.count("\n") == 1
    assert MARKER not in err
    assert sorted(os.listdir()) == ["in.jsonl", "public.jsonl"]


@pytest.mark.parametrize("name", PUBLISHED_ONLY)
def test_a_protocol_as_published_is_refused_with_its_true_epsilon_and_runs_when_it_is_asked_for(work, encode, name):
    command = ["in.jsonl", "-o", "out.parquet", "--epsilon", "2", "--dimension", "4", "--randomizer", name.lower()]
    code, out, err = encode(*command)
    assert (code, out, sorted(os.listdir())) == (3, "", ["in.jsonl", "public.jsonl"])
    true = PUBLISHED_ONLY[name](epsilon=2.0, unsafe_as_published=True).statement(4).epsilon
    amount = f"{true:,.4g}" if np.isfinite(true) else "infinite"
    assert f"At --epsilon 2 and 4 dimensions the true one is {amount}. Use " in err
    code, _, err = encode(*command, "--unsafe-as-published")
    assert code == 0, err
    assert "paper     prints epsilon 2, which is " in err
    statement = statement_of("out.parquet")
    assert (statement.claimed_epsilon, statement.epsilon) == (2.0, true)
    assert statement.parameters["unsafe_as_published"] is True


def test_a_setting_of_a_published_protocol_may_have_the_name_of_the_paper(work, encode):
    command = ["in.jsonl", "-o", "out.parquet", "--randomizer", "OME", "--unsafe-as-published", "--dimension", "4"]
    assert encode(*command, "--epsilon", "1", "--set", "lambda=7", "--set", "bits=8")[0] == 0
    statement = statement_of("out.parquet")
    assert (statement.parameters["lambda_"], statement.parameters["bits"]) == (7, 8)


def test_no_epsilon_is_asked_for(work, run, vectors):
    code, _, err = run("encode", "in.jsonl", "-o", "out.parquet", "--encoder", vectors)
    assert (code, "--epsilon 8" in err) == (2, True)


def test_an_output_is_not_overwritten_without_force(work, encode):
    assert encode("in.jsonl", "-o", "out.parquet", "-q")[0] == 0
    before = file_digest("out.parquet")
    code, _, err = encode("in.jsonl", "-o", "out.parquet")
    assert (code, "is there already" in err) == (2, True)
    assert file_digest("out.parquet") == before
    assert encode("in.jsonl", "-o", "out.parquet", "--force", "-q")[0] == 0
    assert file_digest("out.parquet") != before


def test_bad_rows_are_told_and_listed(work, encode):
    with open("in.jsonl", "a") as stream:
        stream.write(f'{{"text": "{MARKER}\n')
    code, _, err = encode("in.jsonl", "-o", "out.parquet")
    assert code == 1
    assert "row 7: expected a JSON object" in err
    code, out, err = encode("in.jsonl", "-o", "out.parquet", "--on-error", "skip", "--json")
    assert code == 0
    assert "Left out 1 rows" in err
    assert json.loads(out)["skipped"] == 1
    assert MARKER not in err + out + Path("out.parquet.rejects.jsonl").read_text()


# -- interruptions and ledgers --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_an_interrupted_run_says_how_to_go_on_and_does(work, vectors):
    write("big.jsonl", 4_000, word="z" * 600)  # several blocks of a million characters
    command = [sys.executable, "-m", "dptext", "encode", "big.jsonl", "-o", "out.parquet", "--seed", "1"]
    command += ["--epsilon", "8", "--encoder", vectors, "--keep", "id!", "--dimension", "4"]
    with held(*command[3:]) as process:
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
    assert process.returncode == 130
    assert "rows are done and kept: run the same command with --resume to go on" in err
    assert "Traceback" not in err
    assert not os.path.exists("out.parquet")
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "documents that were done already" in done.stderr
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
        assert encode("in.jsonl", "-o", "out.parquet", "--dimension", 4, "--force", "-q", *options)[0] == 0
        return "out.parquet"

    return make


def test_the_statement_is_explained(release, run):
    out = release("--keep", "id!")
    code, text, _ = run("explain", out)
    assert code == 0
    assert "Neighbours are any two texts" in " ".join(text.split())
    assert "the number of texts, and their order" in text
    assert "the column 'id', as it was" in text
    assert "verified" in text
    assert "None" not in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.slow
def test_an_honest_release_stands_its_audit(release, run):
    out = release("--epsilon", 4)
    code, text, err = run("audit", out, "--samples", 20_000, "--seed", 1)
    assert code == 0, err
    assert "NO " not in text.replace("NOT ", "")
    assert "every vector has 4 finite numbers" in text
    assert "THE PROMISE FOR A VECTOR" in text
    assert "No way was found to tell two vectors apart" in text
    assert max(map(len, text.splitlines())) <= 100
    code, text, _ = run("audit", out, "--json", "-q", "--samples", 2_000)
    found = json.loads(text)
    assert found["refuted"] is False
    assert [each["held"] for each in found["checks"]] == [True, True, True]
    code, text, _ = run("audit", out, "--samples", 200)  # few for a score; draws are compared with the stated noise
    assert "Exactly the stated noise shows" in " ".join(text.split())


def test_a_promise_that_the_parameters_do_not_keep_is_refuted(release, run):
    out = release()
    change(out, guarantee=dptext.PureDP(4.0))
    code, text, err = run("audit", out, "--samples", 20_000, "--seed", 1)
    assert code == 3
    assert "NO  the promise follows from the parameters" in text
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
    array = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 4)
    pq.write_table(pa.table({"vector": array}), out)
    change(out, data_sha256=file_digest(out))
    code, text, _ = run("audit", out, "--samples", 1_000)
    assert code == 3
    assert "6 vectors, 1 of them otherwise" in " ".join(text.split())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"other": [1]}, "expected a column 'vector'"),
        ({"vector": [[1.0], [1.0, 2.0]]}, "expected a column 'vector'"),
        ({"vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2))}, "a vector is missing"),
    ],
)
def test_what_holds_no_vectors_is_said(work, table, message):
    pq.write_table(pa.table(table), "x.parquet")
    with pytest.raises(DataError, match=message):
        list(vectors_in("x.parquet"))
    Path("y.parquet").write_bytes(b"PAR1 no more PAR1")
    with pytest.raises(DataError):
        list(vectors_in("y.parquet"))
    with pytest.raises(StorageError):
        list(vectors_in("none.parquet"))


def test_options_for_words_are_refused_for_vectors(release, run):
    out = release()
    code, _, err = run("audit", out, "--word", "the")
    assert (code, "leave --word and --vectors out" in err) == (2, True)


def test_a_statement_without_its_parameters_is_named(release, run):
    out = release()
    change(out, parameters={"epsilon": 8.0})
    code, _, err = run("audit", out)
    assert (code, "lacks the width of its vectors" in err) == (1, True)
    change(out, parameters={"epsilon": "8", "dimension": 4})
    assert run("audit", out)[0] == 1
    change(out, parameters={"dimension": 4})
    assert run("audit", out)[0] == 1


# -- several epsilons, on public texts alone -----------------------------------------------------------------------


def test_several_epsilons_are_compared_on_public_texts(work, run, vectors):
    command = ["encode", "--encoder", vectors, "--public", "public.jsonl", "--public-label", "label"]
    code, out, err = run(*command, "--compare", "2,30")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["epsilon", "2", "30", "no", "no"]
    assert "Nothing private was read" in err
    assert all(len(line) <= 80 for line in [*out.splitlines(), *err.splitlines()])
    found = json.loads(run(*command, "--compare", "8", "--json")[1])
    assert (found["texts"], found["rows"][0]["epsilon"]) == (40, 8.0)
    assert sorted(os.listdir()) == ["in.jsonl", "public.jsonl"]


@pytest.mark.parametrize(
    ("further", "said"),
    [
        (["in.jsonl"], "leave out IN"),
        (["public.jsonl"], "leave out IN"),
        (["-o", "out.parquet"], "leave out IN"),
        (["--epsilon", "3"], "leave out IN"),
        (["--compare", "a"], "expects numbers with commas"),
        (["--compare", "0"], "epsilon must be"),
        (["--compare", "2,2"], "epsilons must be different"),
    ],
)
def test_a_comparison_takes_no_private_file(work, run, vectors, further, said):
    command = ["encode", "--encoder", vectors, "--public", "public.jsonl", "--public-label", "label", "--compare", "2"]
    code, _, err = run(*command, *further)
    assert (code, said in err) == (2, True)


def test_a_comparison_needs_labels_and_an_encoding_texts(work, run):
    code, _, err = run("encode", "--compare", "2", "--public", "public.jsonl")
    assert (code, "--public-label COLUMN" in err) == (2, True)
    code, _, err = run("encode", "--epsilon", "2")
    assert (code, "dptext encode IN -o OUT.parquet" in err) == (2, True)
    code, _, err = run("encode", "in.jsonl", "-o", "o.parquet")
    assert (code, "dptext advise FILE" in err) == (2, True)
