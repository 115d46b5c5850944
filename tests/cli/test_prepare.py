"""``dptext bank`` and ``dptext calibrate``."""

import json
import re
from pathlib import Path

import pytest

import dptext
from cli.conftest import plain
from dptext.io.artifacts import file_digest
from sentences.banks import bank

PUBLIC = [f"The {noun} was {kind}." for noun in ("tea", "room", "staff") for kind in ("good", "bad", "late")]


def test_bank_saves_the_texts_and_prints_the_effect_of_epsilon(work, run):
    rows = [*PUBLIC[:4], " ".join(PUBLIC[4:]), PUBLIC[0], ""]
    Path("pool.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in rows))
    usual = ("bank", "pool.jsonl", "-o", "bank", "--pool-unit", "sentence", "--encoder", "words")
    code, out, err = run(*usual, "--name", "hotels", "--licence", "CC0-1.0")
    assert code == 0
    saved = dptext.TextBank.load("bank")
    assert list(saved.texts) == PUBLIC
    assert saved.fingerprint == dptext.TextBank(PUBLIC, encoder="words", cache=False).fingerprint
    assert (saved.name, saved.licence, saved.files) == ("hotels", "CC0-1.0", (file_digest("pool.jsonl"),))
    assert "Wrote a bank of 9 texts (words, " in err and "Left out 1 repeated and 1 empty texts." in err
    assert "dptext privatize IN -o OUT --mechanism bank --bank bank --epsilon 8" in err and "licence" not in err
    assert out == run("calibrate", "--bank", "bank")[1] and "-0.00" not in out
    code, out, err = run(*usual, "--force", "--json")
    assert json.loads(out)["epsilons"] == json.loads(run("calibrate", "--bank", "bank", "--json")[1])["epsilons"]
    assert "--licence is missing" in err
    code, _, err = run("bank", "bank/texts.txt", "-o", "bank", "--force", "--encoder", "words")
    assert (code, "contains a file of POOL" in err, list(dptext.TextBank.load("bank").texts)) == (2, True, PUBLIC)


def test_calibrate_shows_the_effect_of_epsilon_on_words_and_finds_a_target(run, vectors):
    usual = ("calibrate", "--vectors", vectors, "--keep-rate")
    code, out, err = run(*usual, 0.4, "--word", "government", "--word", "zebulon", "--word", "[bold]")
    assert (code, "Measuring TEM on small.txt (300 words)" in err) == (0, True)
    assert max(map(len, (out + err).splitlines())) <= 80
    assert re.search(r"Use --epsilon [\d.]+: on average 0\.(40|39[5-9])", out)
    for part in ("government", "zebulon", "(unknown)", "[bold]", "stays", "95%", "This is a measurement"):
        assert part in out
    code, out, err = run(*usual, 0.3, "--json", "--quiet")
    answer = json.loads(out)
    assert (code, err, set(answer)) == (0, "", {"vectors", "found", "epsilons", "words"})
    target = answer["found"]
    assert (target["goal"], answer["vectors"]["words"]) == (0.3, 300)
    assert target["reached"] == pytest.approx(0.3, abs=0.005)
    assert [row["epsilon"] for row in answer["epsilons"]] == sorted(row["epsilon"] for row in answer["epsilons"])
    assert {"keep", "support", "replacement_distance", "median_rank"} <= set(answer["epsilons"][0]["mean"])
    assert set(answer["words"][0]) >= {"word", "known", "epsilon", "keep", "support", "likeliest"}


def test_calibrate_finds_the_epsilon_of_a_re_identification_rate(run, work):
    bank().save("bank")
    code, out, err = run("calibrate", "--bank", "bank", "--relinking", 0.1, "--people", 60)
    target, text = dptext.calibrate(bank(), relinking=0.1, people=60), plain(out)
    assert code == 0, err
    assert f"Use --epsilon {target.epsilon:.4g}: an adversary who knows the texts of 60 people" in text
    assert "with probability at most 10% (chance level 1.7%). This is proved for any texts." in text
    assert f"Any pure epsilon-DP mechanism meets 10% at epsilon {target.pure:.4g}. With fewer candidates" in text
    assert max(map(len, out.splitlines())) <= 80 and not any(entry in out for entry in bank().texts)
    usual = ("calibrate", "--bank", "bank", "--unit", "document", "--json", "-q")
    answer = json.loads(run(*usual, "--relinking", 0.1, "--people", 60)[1])
    assert answer["found"]["epsilon"] == dptext.calibrate(bank(), relinking=0.1, people=60, unit="document").epsilon
    assert answer["bank"]["bank_sha256"] == bank().fingerprint
    answer = json.loads(run(*usual, "--epsilon", 3, "--epsilon", 2)[1])
    assert ([row["epsilon"] for row in answer["epsilons"]], answer["found"]) == ([2.0, 3.0], None)
    for options, message in (
        (["--mechanism", "tem"], None),  # the default
        (["--bank", "bank", "--word", "tea"], "is for word replacement"),
        (["--relinking", 0.1], "is for a bank"),
        (["--epsilon", 1, "--keep-rate", 0.1], "give either --epsilon or a target"),
    ):
        if message:
            code, _, err = run("calibrate", *options)
            assert (code, message in err) == (2, True)
