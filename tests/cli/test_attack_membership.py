"""`dptext attack membership`: of descriptions an attack beside what the noise allows, of vectors that alone."""

import json

import pytest

import dptext
from dptext.attacks.membership import gaussian_ceiling
from dptext.io.documents import Document
from repeated import same_draws
from reports.corpora import SECRET, make

pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("membership")
    with same_draws():
        make(folder)
        words = dptext.WordVectors(["tea", "cup", "tax", "<unk>"], [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.5, 0.5]])
        documents = [Document("tea cup tax", user=f"u{n}") for n in range(30)]
        dptext.Cooccurrence(words, epsilon=4.0, delta=1e-6, window=2).fit(documents).save(folder / "learned")
    return folder


def attack(run, folder, *more):
    return run("attack", "membership", folder / "made.jsonl.distribution", *more)


def test_a_description_is_attacked_beside_its_ceiling(run, folder):
    files = ["--members", folder / "in.jsonl", "--others", folder / "held.jsonl", "--user", "who"]
    code, out, err = attack(run, folder, *files, "--json")
    assert code == 0, err
    scores = {(score["attack"], score["measure"]): score for score in json.loads(out)["scores"]}
    sigma = dptext.TextDistribution.load(folder / "made.jsonl.distribution").sigma
    best = scores["membership (knows everybody else)", "AUC"]["score"]["value"]
    assert best == gaussian_ceiling(sigma).auc
    assert 0 < scores["membership (guesses the others)", "AUC"]["score"]["value"] < 1
    code, out, _ = attack(run, folder, *files)
    assert code == 0
    assert f"AUC of {best:.3f}" in " ".join(out.split())
    assert SECRET not in out
    assert max(map(len, out.splitlines())) <= 118


def test_of_vectors_the_noise_says_what_is_allowed_and_why_there_is_no_attack(run, folder):
    code, out, err = run("attack", "membership", folder / "learned", "--json")
    assert code == 0, err
    result = json.loads(out)
    statement = dptext.load_vectors(str(folder / "learned")).statement
    assert result["scores"] == []
    assert result["auc_at_most"] == gaussian_ceiling(statement.parameters["sigma"]).auc
    assert result["accuracy_at_most"] <= (1 + 1e-6) / (1 + 2.718281828**-4.0)  # what (epsilon, delta) allows
    code, out, _ = run("attack", "membership", folder / "learned")
    assert code == 0
    assert "dptext audit learned" in out
