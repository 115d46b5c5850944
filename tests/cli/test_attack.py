"""Tests of `dptext attack`: success rates beside their baselines, and no private text in the output."""

import json

import numpy as np
import pytest

from dptext.attacks.base import ATTACKERS
from dptext.cli import main

SECRET = "Zebulon"


@pytest.fixture(scope="module")
def vectors(tmp_path_factory, glove):
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    rows = (f"{word} {' '.join(f'{x:.5f}' for x in glove[word])}" for word in glove.words[:400])
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path.read_text(encoding="utf-8")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch, vectors):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.txt").write_text(vectors, encoding="utf-8")

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def release(run, tmp_path, glove):
    """60 texts of 12 authors, private at an epsilon."""
    generator = np.random.default_rng(1)
    rows = []
    for n in range(60):
        words = [glove.words[place] for place in generator.choice(380, size=8)]
        text = f"{words[0].title()} {SECRET}, {' '.join(words[1:])} 7."
        rows.append({"text": text, "author": f"a{n % 12}", "side": "left" if n % 2 else "right"})
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def make(epsilon, *options):
        code, _, err = run(
            *("privatize", "in.jsonl", "-o", "out.jsonl", "--vectors", "small.txt", "--epsilon", epsilon),
            # a seed: one score in forty of a release without anything to find lies above chance by chance alone
            *("--keep", "author!", "--keep", "side", "--force", "-q", "--seed", 1, *options),
        )
        assert code == 0, err
        return "in.jsonl", "out.jsonl"

    return make


def scores_of(text):
    return {(score["attack"], score["measure"]): score for score in json.loads(text)["scores"]}


def test_linkage_of_a_weak_release_succeeds_and_of_a_strong_one_fails(release, run):
    code, out, err = run("attack", "linkage", *release(40), "--json")
    assert code == 0, err
    scores = scores_of(out)
    first = "share linked at first guess"
    assert scores["linkage (shared words)", first]["score"]["value"] > 0.9
    layout = scores["linkage (layout alone)", first]
    assert layout["baseline"] == 1 / 60
    assert not layout["succeeded"]  # all texts have one layout
    code, out, _ = run("attack", "linkage", *release(0.01), "--json")
    for score in json.loads(out)["scores"]:
        assert score["score"]["value"] < 0.3
    assert scores.keys() == scores_of(out).keys()


def test_recovery_says_what_the_best_attacker_gets(release, run):
    code, out, err = run("attack", "recovery", *release(3), "--json")
    assert code == 0, err
    scores = scores_of(out)
    best, trusting = (
        scores[f"word recovery ({name})", "share of words recovered"] for name in ("Bayes-optimal", "nearest vector")
    )
    assert best["score"]["of"] == "people"
    assert best["score"]["count"] == 60
    assert 0 < trusting["score"]["value"] < 1
    code, out, _ = run("attack", "recovery", *release(40), "--json")
    assert scores_of(out)["word recovery (Bayes-optimal)", "share of words recovered"]["score"]["value"] > 0.99
    code, out, _ = run("attack", "recovery", *release(0.01), "--json")
    assert not any(score["succeeded"] for score in json.loads(out)["scores"])
    code, out, _ = run("attack", "recovery", *release(5), "--user", "author", "--json")
    assert {score["score"]["count"] for score in json.loads(out)["scores"]} == {12}


def test_madlib_has_no_formula_and_says_so(release, run):
    files = release(10, "--mechanism", "madlib")
    code, out, _ = run("attack", "recovery", *files)
    assert code == 0
    assert "has no formula" in " ".join(out.split())
    assert "Bayes-optimal" not in out
    assert run("attack", "linkage", *files)[0] == 0


@pytest.mark.usefixtures("same_draws")
def test_an_attribute_of_texts_and_of_vectors(run, tmp_path):
    arrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    generator = np.random.default_rng(2)
    side = ["left", "right"] * 40
    rows = [{"text": f"cat dog {word} {n}", "side": word, "who": n // 4} for n, word in enumerate(side)]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = run("attack", "attribute", "texts.jsonl", "--label", "side", "--json")
    assert code == 0, err
    scores = json.loads(out)["scores"]
    assert [score["measure"] for score in scores] == ["accuracy", "macro-F1", "AUC"] * len(ATTACKERS)
    assert all(score["succeeded"] for score in scores if "linear" in score["attack"])
    points = generator.normal(size=(80, 5))
    points[::2] += 2
    table = arrow.table({"vector": points.tolist(), "side": side, "who": [n // 4 for n in range(80)]})
    parquet.write_table(table, tmp_path / "vectors.parquet")
    command = ("attack", "attribute", "vectors.parquet", "--label", "side")
    code, out, err = run(*command, "--user", "who", "--json")
    assert code == 0, err
    accuracy = json.loads(out)["scores"][0]
    assert accuracy["succeeded"]
    assert accuracy["score"]["count"] == 20
    code, out, err = run(*command)
    assert "empirical privacy" in " ".join(out.split())
    assert "private vectors" in err
    noise = arrow.table({"vector": generator.normal(size=(80, 5)).tolist(), "side": side})
    parquet.write_table(noise, tmp_path / "vectors.parquet")
    code, out, _ = run(*command)
    assert code == 0
    assert "No attack is right more often" in out


def test_no_text_is_ever_shown(release, run):
    outputs = []
    for arguments in (
        ("linkage", *release(3)),
        ("recovery", *release(3)),
        ("attribute", "out.jsonl", "--label", "side"),
        ("recovery", "in.jsonl", "in.jsonl"),
        ("attribute", "in.jsonl", "--label", "text"),
    ):
        _, out, err = run("attack", *arguments)
        outputs.append(out + err)
    assert not any(SECRET in output or SECRET.lower() in output for output in outputs)
