"""Tests of `dptext attack neighbours`: planted pairs in word vectors, with chance, public vectors and a control."""

import json

import pytest

import dptext
from dptext.attacks import nearest_secrets_known
from dptext.io.documents import Document
from repeated import same_draws

pytest.importorskip("sklearn")

NAMES = ["kathryn", "phyllis", "renee", "vivian", "nora", "dora"]
SECRETS = ["leukemia", "pneumonia", "hepatitis", "asthma", "malaria", "cholera"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, glove):
    """Vectors that tell each pair, and a release of six people who did."""
    folder = tmp_path_factory.mktemp("neighbours")
    words = [*glove.words[:800], *NAMES, *SECRETS]
    public = dptext.load_vectors((words, [glove[word] for word in words]))
    dptext.save_vectors(public, folder / "public.txt")
    public = dptext.load_vectors(folder / "public.txt")
    names, secrets = ([words.index(word) for word in group] for group in (NAMES, SECRETS))
    documents = [Document(f"{name} {secret}", user=name) for name, secret in zip(NAMES, SECRETS, strict=True)]
    with same_draws():
        model = dptext.Cooccurrence(public, epsilon=8.0, delta=1e-6, window=2).fit(documents)
    model.save(folder / "hidden", word2vec=None)
    planted = nearest_secrets_known(public.matrix, names, secrets)
    dptext.save_vectors(dptext.WordVectors(public.words, planted, statement=model.statement_), folder / "told")
    rows = [f"{name},{secret}" for name, secret in zip(NAMES, SECRETS, strict=True)]
    (folder / "pairs.csv").write_text("\n".join(["name,secret", *rows, "nobody,qsecretq"]) + "\n")
    return folder


def attack(run, folder, name, *more):
    pairs = [] if "--pairs" in more else ["--pairs", folder / "pairs.csv"]
    return run("attack", "neighbours", folder / name, *pairs, *more)


def scores_of(out):
    return {(score["attack"], score["measure"]): score for score in json.loads(out)["scores"]}


def test_what_is_told_is_found_beside_chance_public_vectors_and_control(run, folder, monkeypatch):
    monkeypatch.chdir(folder)  # the statement names the public vectors by their name
    code, out, err = attack(run, folder, "told", "--json")
    assert code == 0, err
    scores = scores_of(out)
    nearest = "nearest secret is the right one"
    assert scores["neighbours", nearest]["succeeded"]
    assert scores["neighbours", nearest]["baseline"] == pytest.approx(1 / 6)
    assert scores["neighbours", "bits nearer than before"]["succeeded"]
    assert not scores["neighbours (public vectors alone)", nearest]["succeeded"]
    assert scores["neighbours (control: pairs planted in the vectors)", nearest]["succeeded"]
    assert "6 of 7 pairs have vectors" in scores["neighbours", nearest]["detail"]


def test_what_is_hidden_is_not_and_no_word_of_a_pair_is_printed(run, folder):
    code, out, err = attack(run, folder, "hidden")
    assert code == 0, err
    assert "does not beat chance, and the control shows that it could have" in " ".join(out.split())
    assert not any(word in out + err for word in (*NAMES, *SECRETS, "qsecretq"))
    assert max(map(len, out.splitlines())) <= 118
