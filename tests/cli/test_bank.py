"""``dptext bank``: public texts in, a folder out that ``dptext privatize --mechanism bank`` takes."""

import json

import pytest

import dptext
from dptext.io.artifacts import file_digest

PUBLIC = [
    f"The {noun} was {quality}. It is {quality} now."
    for noun in ("tea", "room", "staff")
    for quality in ("good", "bad", "late")
]
USED = "--encoder", "words"


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("pool.jsonl", [*PUBLIC, PUBLIC[0], " "])
    return tmp_path


def write(name, texts, column="text"):
    with open(name, "w") as stream:
        stream.writelines(json.dumps({column: text}) + "\n" for text in texts)


def test_a_bank_of_documents_is_the_library_s(work, run):
    named = "--name", "hotels", "--licence", "CC0-1.0"
    code, _, err = run("bank", "pool.jsonl", "-o", "bank", *named, *USED)
    assert code == 0
    bank = dptext.TextBank.load("bank")
    assert list(bank.texts) == PUBLIC
    assert bank.fingerprint == dptext.TextBank(PUBLIC, encoder="words", cache=False).fingerprint
    assert (bank.name, bank.licence, bank.files) == ("hotels", "CC0-1.0", (file_digest("pool.jsonl"),))
    assert "Wrote a bank of 9 texts (words, 5 dimensions) to bank." in err
    assert "Left out 1 repeated and 1 empty texts." in err
    assert "licence" not in err
    assert "dptext privatize IN -o OUT --mechanism bank --bank bank --epsilon 8" in err
    assert max(map(len, err.splitlines())) <= 100
    write("in.jsonl", ["The tea was dear."])
    assert (
        run("privatize", "in.jsonl", "-o", "out.jsonl", "--mechanism", "bank", "--bank", "bank", "--epsilon", 8)[0] == 0
    )


def test_bank_prints_the_effect_of_epsilon_as_calibrate_does(work, run):
    _, out, _ = run("bank", "pool.jsonl", "-o", "bank", "--json", *USED)
    _, calibrated, _ = run("calibrate", "--bank", "bank", "--json")
    assert json.loads(out)["epsilons"] == json.loads(calibrated)["epsilons"]
    _, out, _ = run("bank", "pool.jsonl", "-o", "bank", "--force", *USED)
    assert out == run("calibrate", "--bank", "bank")[1]
    assert "-0.00" not in out


def test_a_bank_does_not_take_the_place_of_what_it_is_made_of(work, run):
    assert run("bank", "pool.jsonl", "-o", "bank", "-q", *USED)[0] == 0
    code, _, err = run("bank", "bank/texts.txt", "-o", "bank", "--force", *USED)
    assert (code, "holds a file of POOL" in err) == (2, True)
    assert list(dptext.TextBank.load("bank").texts) == PUBLIC
