"""`dptext calibrate --bank`: the table, the epsilon that keeps a target, and what is not for a bank."""

import json

import pytest

import dptext
from sentences.banks import bank, documents


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bank")
    bank().save(folder / "bank")
    (folder / "public.txt").write_text("\n".join(documents(200, most=1)[0]) + "\n")
    return folder


def test_the_epsilon_that_keeps_a_target_is_named_with_what_holds(run, folder):
    code, out, err = run(*("calibrate", "--bank", folder / "bank", "--relinking", 0.1, "--people", 60))
    assert code == 0, err
    said = " ".join(out.split())
    found = dptext.calibrate(bank(), relinking=0.1, people=60)
    assert f"Use --epsilon {found.epsilon:.4g}: an adversary who knows the texts of 60 people" in said
    assert "with probability at most 10% (chance level 1.7%). This is proved for any texts." in said
    assert f"Every mechanism of pure epsilon meets 10% at epsilon {found.pure:.4g}. With fewer candidates" in said
    assert f"{found.epsilon:.4g} " in said
    assert max(map(len, out.splitlines())) <= 80
    assert not any(text in out for text in bank().texts)


def test_the_same_as_json_and_epsilons_that_are_named(run, folder):
    asked = ("calibrate", "--bank", folder / "bank", "--unit", "document", "--json", "-q")
    code, out, _ = run(*asked, "--relinking", 0.1, "--people", 60)
    assert code == 0
    found = json.loads(out)
    assert found["found"]["epsilon"] == dptext.calibrate(bank(), relinking=0.1, people=60, unit="document").epsilon
    assert found["bank"]["bank_sha256"] == bank().fingerprint
    code, out, _ = run(*asked, "--epsilon", 3, "--epsilon", 2)
    assert [each["epsilon"] for each in json.loads(out)["epsilons"]] == [2.0, 3.0]
    assert json.loads(out)["found"] is None
