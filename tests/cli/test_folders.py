"""Tests of folders as inputs of `audit`, `explain` and `report`."""

import json
import shutil

import pytest

import dptext
from dptext.io.artifacts import folder_digest
from dptext.io.documents import Document
from dptext.vectors.formats import write_folder
from sentences.banks import bank

SECRET = "qsecretq"
WORDS = ["tea", "cup", "cake", "tax", "law", "judge", "rain", "sun"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One folder of each kind."""
    folder = tmp_path_factory.mktemp("folders")
    points = [[float(n % 3), float(n % 5), float(n == 2), 1.0] for n in range(len(WORDS) + 1)]
    words = dptext.WordVectors([*WORDS, "<unk>"], points)
    documents = [
        Document(
            f"{WORDS[n % 8]} {WORDS[n % 7]} {SECRET}", user=f"u{n}", attributes={"wish": ("open", "strict")[n % 2]}
        )
        for n in range(40)
    ]
    levels = {"strict": 1.0, "open": 8.0}
    model = dptext.Cooccurrence(words, epsilon=levels, delta=1e-6, level="wish", window=2)
    model.fit(documents).save(folder / "learned")
    dptext.save_vectors(words, folder / "public")
    bank().save(folder / "bank")
    texts = " ".join(WORDS)
    dptext.PrivateEncoder(words, dptext.PrivUnit(epsilon=4.0), dimension=3).fit([texts, "tea cup", "tax", "sun"]).save(
        folder / "device"
    )
    (folder / "outs").mkdir()
    rows = "".join(json.dumps({"text": document.text}) + "\n" for document in documents)
    (folder / "in.jsonl").write_text(rows)
    mechanism = dptext.TEM(dptext.load_vectors(str(folder / "public")), epsilon=3.0)
    for name in ("a", "b"):
        dptext.privatize_file(folder / "in.jsonl", folder / "outs" / f"{name}.jsonl", mechanism)
    (folder / "outs" / "notes.md").write_text("no release\n")
    (folder / "empty").mkdir()
    return folder


@pytest.fixture
def copies(folders, tmp_path):
    """Folders to change."""
    shutil.copytree(folders, tmp_path / "own")
    return tmp_path / "own"


def restated(folder, name, **fields):
    """The folder with another statement, announced as if it had been written so: what a forger would do."""
    words = dptext.load_vectors(str(folder))
    statement = words.statement
    fields = {key: value for key, value in fields.items() if key != "parameters"} | {
        "parameters": {**statement.parameters, **fields.get("parameters", {})}
    }
    out = folder.with_name(name)
    bare = dptext.WordVectors(list(words.words), words.matrix, source=words.source)
    write_folder(bare.attach_statement(statement.replace(**fields)), out)
    return out


def test_vectors_that_were_learned_are_checked_and_their_account_is_computed_again(folders, run):
    code, out, err = run("audit", folders / "learned", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert {check["passed"] for check in result["checks"]} == {True}
    assert {
        "vectors.bin is a copy of these vectors",
        "the guarantee for users of the level 'strict' follows from the parameters",
        "the guarantee for everybody follows from the parameters",
    } <= {check["name"] for check in result["checks"]}
    assert (result["refuted"], result["verdict"]["outcome"], result["verdict"]["allowed"]) == (False, "exact", 8.0)
    code, out, _ = run("audit", folders / "learned" / "privacy.json")
    assert code == 0
    assert "cannot show that this noise was really drawn" in " ".join(out.split())
    assert SECRET not in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"guarantee": dptext.ApproxDP(4.0, 1e-6)}, "NO  the guarantee covers this release"),  # less than what it cost
        ({"guarantee": dptext.ApproxDP(4.0, 1e-6), "parameters": {"epsilon": 4.0}}, "NO  the guarantee for everybody"),
        ({"parameters": {"sigma": 0.4}}, "NO  the guarantee for everybody"),
        ({"parameters": {"words": 8}}, "NO  there are as many words"),
    ],
)
def test_a_statement_that_promises_more_than_its_noise_keeps_is_refuted(copies, run, fields, message):
    code, out, err = run("audit", restated(copies / "learned", "forged", **fields))
    assert code == 3, err
    assert message in out
    assert "refuted: the guarantee of privacy.json does not hold" in err


def test_a_folder_that_was_changed_and_a_copy_that_is_another_are_found(copies, run):
    copy = copies / "learned" / "vectors.bin"
    copy.write_bytes(copy.read_bytes()[:-1] + b"x")
    code, out, _ = run("audit", copies / "learned")
    assert code == 3
    assert "NO  vectors.bin is a copy of these vectors (it holds others)" in out
    words = copies / "learned" / "words.txt"
    words.write_text(words.read_text().replace("tea", "tee"))
    code, _, err = run("audit", copies / "learned")
    assert (code, "words.txt is not the file that" in err) == (1, True)


def test_an_encoder_for_devices_is_audited_as_its_vectors_are(copies, run):
    code, out, err = run("audit", copies / "device", "--samples", 4000)
    assert code == 0, err
    assert "yes all files are those that config.json announces" in out
    code, out, _ = run("explain", copies / "device")
    assert code == 0
    assert "device: verified, all files of the folder match its config.json" in " ".join(out.split())
    (copies / "device" / "privacy.json").write_text("{}")
    for command in ("audit", "explain"):
        assert run(command, copies / "device")[0] == 1


def test_a_release_that_is_a_folder_of_parts_is_verified_by_its_digest(copies, run):
    parts = copies / "parts.parquet"  # as Spark writes one
    parts.mkdir()
    shutil.copy(copies / "outs" / "a.jsonl", parts / "part-0.jsonl")
    statement = dptext.PrivacyStatement.from_json((copies / "outs" / "a.jsonl.privacy.json").read_text())
    (copies / "parts.parquet.privacy.json").write_text(statement.replace(data_sha256=folder_digest(parts)).to_json())
    code, out, err = run("explain", parts)
    assert code == 0, err
    assert "parts.parquet: verified, its SHA-256 digest is in the statement" in " ".join(out.split())


def test_private_files_of_a_folder_are_audited_and_explained_one_by_one(copies, run):
    code, out, err = run("audit", copies / "outs", "--vectors", copies / "public")
    assert code == 0, err
    assert [line for line in out.splitlines() if line.endswith(".jsonl")] == ["a.jsonl", "b.jsonl"]
    code, out, _ = run("explain", copies / "outs")
    assert code == 0
    assert out.count("verified, its SHA-256") == 2
    changed = copies / "outs" / "b.jsonl"
    changed.write_text(changed.read_text() + '{"text": "tea"}\n')
    code, _, err = run("audit", copies / "outs", "--vectors", copies / "public", "-q")
    assert (code, "refuted: the guarantee of b.jsonl.privacy.json" in err) == (3, True)
    code, _, err = run("explain", copies / "outs", "-q")
    assert (code, "b.jsonl does not match its statement" in err) == (1, True)


def test_a_file_that_cannot_be_audited_keeps_no_other_from_it(copies, run):
    (copies / "outs" / "a.jsonl.privacy.json").write_text("{}")
    code, out, err = run("audit", copies / "outs", "--vectors", copies / "public", "--json")
    assert (code, "1 of 2 files could not be audited; a.jsonl" in err) == (1, True)
    assert [result["refuted"] for result in json.loads(out).values()] == [None, False]
