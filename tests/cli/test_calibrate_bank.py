"""Tests of `dptext calibrate --bank`: the table, the epsilon that reaches a target, and unsuitable options."""

import json

import pytest

import dptext
from sentences.banks import bank, documents


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bank")
    bank().save(folder / "bank")
    (folder / "public.txt").write_text("\n".join(documents(200, max_sentences=1)[0]) + "\n")
    return folder


def test_the_epsilon_that_keeps_a_target_is_named_with_what_holds(run, folder):
    code, out, err = run(*("calibrate", "--bank", folder / "bank", "--relinking", 0.1, "--people", 60))
    assert code == 0, err
    text = " ".join(out.split())
    target = dptext.calibrate(bank(), relinking=0.1, people=60)
    assert f"Use --epsilon {target.epsilon:.4g}: an adversary who knows the texts of 60 people" in text
    assert "with probability at most 10% (chance level 1.7%). This is proved for any texts." in text
    assert f"Every mechanism of pure epsilon meets 10% at epsilon {target.pure:.4g}. With fewer candidates" in text
    assert f"{target.epsilon:.4g} " in text
    assert max(map(len, out.splitlines())) <= 80
    assert not any(text in out for text in bank().texts)


def test_the_same_as_json_and_epsilons_that_are_named(run, folder):
    command = ("calibrate", "--bank", folder / "bank", "--unit", "document", "--json", "-q")
    code, out, _ = run(*command, "--relinking", 0.1, "--people", 60)
    assert code == 0
    target = json.loads(out)
    assert target["found"]["epsilon"] == dptext.calibrate(bank(), relinking=0.1, people=60, unit="document").epsilon
    assert target["bank"]["bank_sha256"] == bank().fingerprint
    code, out, _ = run(*command, "--epsilon", 3, "--epsilon", 2)
    assert [row["epsilon"] for row in json.loads(out)["epsilons"]] == [2.0, 3.0]
    assert json.loads(out)["found"] is None
