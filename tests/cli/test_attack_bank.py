"""`dptext attack` and `dptext report` on texts of a bank, as a user meets them."""

import json

import pytest

import dptext
from repeated import same_draws
from sentences.banks import bank, documents

SECRET = "Zebulon"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bank")
    bank().save(folder / "bank")
    texts, about = documents(120)
    rows = [{"text": f"{text} {SECRET}.", "about": topic} for text, topic in zip(texts, about, strict=True)]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, options in {
        "open": {"epsilon": 20.0, "size": 1},
        "closed": {"epsilon": 1e-4, "unit": "document"},
    }.items():
        rewriter = dptext.BankRewriter(bank(), **options)
        with same_draws():
            dptext.privatize_file(folder / "in.jsonl", folder / f"{name}.jsonl", rewriter, keep=("about",))
    return folder


def scores_of(text):
    return {(score["attack"], score["measure"]): score for score in json.loads(text)["scores"]}


def linkage(run, folder, name, *options, original="in.jsonl"):
    files = [folder / original, folder / f"{name}.jsonl"]
    return run("attack", "linkage", *files, "--bank", folder / "bank", *options)


def test_relinking_succeeds_on_an_open_release_and_not_on_a_closed_one(run, folder):
    first = "share linked at first guess"
    code, out, err = linkage(run, folder, "open", "--json")
    assert code == 0, err
    scores = scores_of(out)
    assert scores["linkage (likelihood)", first]["score"]["value"] > 0.8
    expected = scores["linkage (likelihood)", "share linked, expected"]["score"]["value"]
    assert abs(expected - scores["linkage (likelihood)", first]["score"]["value"]) < 0.1
    assert scores["linkage (number of sentences alone)", first]["score"]["value"] < 0.2
    assert ("linkage (layout alone)", first) not in scores
    code, out, _ = linkage(run, folder, "closed", "--json")
    scores = scores_of(out)
    # 1 of 120 by chance: more than 12 in less than one case of 10^6
    assert scores["linkage (likelihood)", first]["score"]["value"] <= 12 / 120
    assert ("linkage (number of sentences alone)", first) not in scores


def test_what_it_means_is_said_without_any_text(run, folder):
    code, out, _ = linkage(run, folder, "open")
    text = " ".join(out.split())
    assert code == 0
    assert "by the number of sentences, by shared words" in text
    assert "this is the best possible attack" in text
    assert "A stronger adversary may do better" not in text
    assert SECRET not in out
    assert not any(text in out for text in bank().texts)
    assert max(map(len, out.splitlines())) <= 110


@pytest.mark.usefixtures("same_draws")
def test_originals_in_another_order_are_noticed(run, folder):
    lines = (folder / "in.jsonl").read_text().splitlines()
    (folder / "other.jsonl").write_text("\n".join(lines[3:] + lines[:3]) + "\n")
    code, out, _ = linkage(run, folder, "closed", original="other.jsonl")
    assert code == 0
    assert "the statement says" not in " ".join(out.split())  # nothing tells, at this epsilon
    rewriter = dptext.BankRewriter(bank(), epsilon=8.0, unit="document")
    if not (folder / "some.jsonl").exists():
        dptext.privatize_file(folder / "in.jsonl", folder / "some.jsonl", rewriter)
    _, out, _ = linkage(run, folder, "some", original="other.jsonl")
    assert "otherwise the statement is false" in " ".join(out.split())
    _, out, _ = linkage(run, folder, "some")
    assert "the statement says" not in " ".join(out.split())
