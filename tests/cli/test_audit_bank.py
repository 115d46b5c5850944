"""`dptext audit` of texts of a bank: the file, its statement, and forged ones."""

import dataclasses
import json

import pytest

import dptext
from dptext.io.artifacts import file_digest
from dptext.privacy.guarantee import PureDP
from sentences.banks import bank, documents


@pytest.fixture(scope="module")
def release_folder(tmp_path_factory):
    """The folder of a bank, and releases through it."""
    folder = tmp_path_factory.mktemp("bank")
    bank().save(folder / "bank")
    rows = [json.dumps({"text": text}) for text in [*documents(30)[0], ""]]
    (folder / "in.jsonl").write_text("\n".join([*rows, '{"text": null}']) + "\n")

    def make(name="out.jsonl", **options):
        out = folder / name
        if not out.exists():
            rewriter = dptext.BankRewriter(bank(), **{"epsilon": 6.0} | options)
            dptext.privatize_file(folder / "in.jsonl", out, rewriter)
        return out

    make.folder = folder
    return make


@pytest.fixture
def audited(release_folder, run):
    def call(out, *options):
        return run("audit", out, "--bank", release_folder.folder / "bank", "--samples", "1000", *options)

    return call


def forged(out, name, **fields):
    """Copy a release and change its statement; the digest is that of the copy."""
    copy = out.with_name(name)
    copy.write_bytes(out.read_bytes())
    statement_file = out.with_name(f"{out.name}.privacy.json")
    statement = dptext.PrivacyStatement.from_json(statement_file.read_text())
    parameters = {**statement.parameters, **fields.pop("parameters", {})}
    statement = dataclasses.replace(statement, parameters=parameters, **fields)
    copy.with_name(f"{name}.privacy.json").write_text(statement.to_json())
    return copy


OPTIONS = {
    "sentences.jsonl": {},
    "some.jsonl": {"max_sentences": 2},
    "whole.jsonl": {"unit": "document"},
    "three.jsonl": {"unit": "document", "max_sentences": 3},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_honest_release_is_kept(release_folder, audited, name):
    code, text, err = audited(release_folder(name, **OPTIONS[name]))
    assert code == 0, err
    assert "KEPT: the guarantee holds" in text
    assert "NO " not in text
    assert "every text is made of texts of the bank (32 texts, 0 of them otherwise)" in text
    assert "THE GUARANTEE FOR A DOCUMENT" in text if name == "whole.jsonl" else "THE GUARANTEE FOR A SENTENCE" in text
    assert not any(sentence in text for sentence in bank().texts)
    assert max(map(len, text.splitlines())) <= 100
    code, text, _ = audited(release_folder(name), "--json", "-q")
    assert json.loads(text)["refuted"] is False


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("three.jsonl", {"guarantee": PureDP(1.0)}, "guarantee differ"),
        ("three.jsonl", {"parameters": {"epsilon": 1.0}}, "guarantee, pure_epsilon_of_a_sentence"),
        ("three.jsonl", {"parameters": {"size": 7}}, "chance_of_the_set, relinking_among_300 differ"),
        ("three.jsonl", {"parameters": {"bank_texts": 9}}, "bank_texts differ"),
        ("three.jsonl", {"parameters": {"relinking_among_300": 0.01}}, "relinking_among_300 differ"),
        ("three.jsonl", {"parameters": {"max_sentences": 2}}, "of another number, the first in row"),
        ("sentences.jsonl", {"parameters": {"sentences_counted": 1}}, "of another number, the first in row"),
        ("sentences.jsonl", {"condition": "any two documents"}, "condition differ"),
        ("sentences.jsonl", {"exposed": ()}, "exposed differ"),
        ("whole.jsonl", {"assumptions": ()}, "assumptions differ"),
        ("whole.jsonl", {"data_sha256": "0" * 64}, "its SHA-256 DIFFERS"),
    ],
)
def test_a_forged_statement_is_refuted(release_folder, audited, name, fields, message):
    out = forged(release_folder(name, **OPTIONS[name]), "forged.jsonl", **fields)
    code, text, err = audited(out)
    assert code == 3
    assert message in " ".join(text.split())
    assert "refuted" in err


@pytest.mark.parametrize(
    "change", [lambda text: text + " ", lambda _text: "A sentence of its own.", lambda text: text.replace(" ", "  ", 1)]
)
def test_a_text_of_another_origin_refutes_the_file_and_is_named_by_its_row_alone(release_folder, audited, change):
    out = release_folder("sentences.jsonl")
    rows = [json.loads(line)["text"] for line in out.read_text().splitlines()]
    place = next(row for row, text in enumerate(rows) if text and row > 3)
    rows[place] = change(rows[place])
    copy = forged(out, "foreign.jsonl")
    copy.write_text("".join(json.dumps({"text": text}) + "\n" for text in rows))
    forged_beside = copy.with_name("foreign.jsonl.privacy.json")
    statement = dptext.PrivacyStatement.from_json(forged_beside.read_text())
    forged_beside.write_text(dataclasses.replace(statement, data_sha256=file_digest(copy)).to_json())
    code, text, err = audited(copy)
    assert code == 3
    assert f"1 of them otherwise, the first in row {place + 1}" in " ".join(text.split())
    assert "sentence of its own" not in text + err
