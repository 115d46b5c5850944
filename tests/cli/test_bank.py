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


def test_how_near_texts_come_is_said_of_the_bank(work, run):
    _, out, _ = run("bank", "pool.jsonl", "-o", "bank", "--json", *USED)
    result = json.loads(out)["similarity"]
    bank = dptext.TextBank.load("bank")
    assert list(result) == ["texts_like_the_bank"]
    (similarity,), profile = result.values(), bank.profile
    assert similarity["nearest"] == pytest.approx(profile.cumulative[0])
    assert similarity["any"] == pytest.approx(profile.cumulative[-1] / profile.candidates)
    assert [draw["epsilon"] for draw in similarity["draws"]] == [4, 8, 12]
    for draw in similarity["draws"]:
        rewriter = dptext.BankRewriter(bank, epsilon=draw["epsilon"])
        assert draw["size"] == rewriter.size
        assert draw["share"] == rewriter.statement.parameters["chance_of_the_set"]
    expected = [profile.expected(draw["size"], draw["epsilon"]) for draw in similarity["draws"]]
    assert [draw["similarity"] for draw in similarity["draws"]] == expected
    _, out, _ = run("bank", "pool.jsonl", "-o", "bank", "--force", *USED)
    assert all(name in out for name in ("any text", "nearest text", "epsilon 4", "epsilon 8", "epsilon 12"))
    assert "-0.00" not in out


def test_a_bank_does_not_take_the_place_of_what_it_is_made_of(work, run):
    assert run("bank", "pool.jsonl", "-o", "bank", "-q", *USED)[0] == 0
    code, _, err = run("bank", "bank/texts.txt", "-o", "bank", "--force", *USED)
    assert (code, "holds a file of POOL" in err) == (2, True)
    assert list(dptext.TextBank.load("bank").texts) == PUBLIC
