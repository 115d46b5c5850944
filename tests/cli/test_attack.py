"""``dptext attack``: success on weak releases, chance on strong ones, and no private text in the output."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import dptext
from cli.conftest import SECRET, plain, scores_of
from dptext.attacks import nearest_secrets_known
from dptext.attacks.base import ATTACKERS
from dptext.attacks.membership import gaussian_ceiling
from dptext.io.documents import Document
from repeated import same_draws
from reports.corpora import make
from sentences.banks import bank, documents

pytest.importorskip("sklearn")

FIRST = "share linked at first guess"
RECOVERED = "share of words recovered"


@pytest.fixture
def release(run, work, vectors, glove):
    """60 texts of 12 authors, private at an epsilon."""
    generator = np.random.default_rng(1)
    with open("in.jsonl", "w") as stream:
        for n in range(60):
            words = [glove.words[place] for place in generator.choice(280, size=8)]
            row = {"text": f"{words[0].title()} {SECRET}, {' '.join(words[1:])} 7.", "author": f"a{n % 12}"}
            stream.write(json.dumps(row | {"side": "left" if n % 2 else "right"}) + "\n")

    def call(epsilon, *options):
        # a seed: one score in forty of a release without anything to find lies above chance by chance alone
        usual = ("--vectors", vectors, "--keep", "author!", "--keep", "side", "--force", "-q", "--seed", 1)
        assert run("privatize", "in.jsonl", "-o", "out.jsonl", "--epsilon", epsilon, *usual, *options)[0] == 0
        return "in.jsonl", "out.jsonl", "--vectors", vectors

    return call


def test_linkage_succeeds_on_a_weak_release_and_fails_on_a_strong_one(release, run):
    code, out, err = run("attack", "linkage", *release(40), "--json")
    assert code == 0, err
    scores = scores_of(out)
    assert scores["linkage (shared words)", FIRST]["score"]["value"] > 0.9
    layout = scores["linkage (layout alone)", FIRST]
    assert (layout["baseline"], layout["succeeded"]) == (1 / 60, False)  # all texts have one layout
    strong = scores_of(run("attack", "linkage", *release(0.01), "--json")[1])
    assert strong.keys() == scores.keys()
    assert all(score["score"]["value"] < 0.3 for score in strong.values())


def test_recovery_reports_the_best_possible_attack(release, run):
    best = ("word recovery (Bayes-optimal)", RECOVERED)
    scores = scores_of(run("attack", "recovery", *release(3), "--json")[1])
    assert (scores[best]["score"]["of"], scores[best]["score"]["count"]) == ("people", 60)
    assert 0 < scores["word recovery (nearest vector)", RECOVERED]["score"]["value"] < 1
    assert scores_of(run("attack", "recovery", *release(40), "--json")[1])[best]["score"]["value"] > 0.99
    scores = scores_of(run("attack", "recovery", *release(0.01), "--json")[1])
    assert not any(score["succeeded"] for score in scores.values())
    scores = scores_of(run("attack", "recovery", *release(5), "--user", "author", "--json")[1])
    assert {score["score"]["count"] for score in scores.values()} == {12}
    code, out, _ = run("attack", "recovery", *release(10, "--mechanism", "madlib"))
    assert (code, "has no formula" in plain(out), "Bayes-optimal" in out) == (0, True, False)
    for arguments in (("recovery", "in.jsonl", "in.jsonl"), ("attribute", "in.jsonl", "--label", "text")):
        assert run("attack", *arguments)[0] != 0  # and no text is shown


@pytest.mark.usefixtures("same_draws", "work")
def test_attributes_are_inferred_from_texts_and_from_vectors(run):
    arrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    side, who = ["left", "right"] * 40, [n // 4 for n in range(80)]
    rows = [{"text": f"cat dog {word} {n}", "side": word} for n, word in enumerate(side)]
    Path("texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = run("attack", "attribute", "texts.jsonl", "--label", "side", "--json")
    assert code == 0, err
    scores = json.loads(out)["scores"]
    assert [score["measure"] for score in scores] == ["accuracy", "macro-F1", "AUC"] * len(ATTACKERS)
    assert all(score["succeeded"] for score in scores if "linear" in score["attack"])
    generator = np.random.default_rng(2)
    points = generator.normal(size=(80, 5)) + 2 * (np.arange(80)[:, None] % 2 == 0)
    parquet.write_table(arrow.table({"vector": points.tolist(), "side": side, "who": who}), "vectors.parquet")
    attack = ("attack", "attribute", "vectors.parquet", "--label", "side")
    accuracy = json.loads(run(*attack, "--user", "who", "--json")[1])["scores"][0]
    assert (accuracy["succeeded"], accuracy["score"]["count"]) == (True, 20)
    _, out, err = run(*attack)
    assert "empirical privacy" in plain(out) and "their private vectors" in plain(out)
    noise = arrow.table({"vector": generator.normal(size=(80, 5)).tolist(), "side": side})
    parquet.write_table(noise, "vectors.parquet")
    code, out, _ = run(*attack)
    assert (code, "No attack is right more often" in out) == (0, True)


# -- sentences -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("same_draws")
def test_linkage_of_sentences_is_the_best_possible_attack(run, work):
    bank().save("bank")
    texts, about = documents(120)
    rows = [json.dumps({"text": f"{text} {SECRET}.", "about": kind}) for text, kind in zip(texts, about, strict=True)]
    Path("in.jsonl").write_text("\n".join(rows) + "\n")
    Path("moved.jsonl").write_text("\n".join(rows[3:] + rows[:3]) + "\n")
    for name, options in {
        "open": {"epsilon": 20.0, "size": 1},
        "closed": {"epsilon": 1e-4, "unit": "document"},
        "some": {"epsilon": 8.0, "unit": "document"},
    }.items():
        dptext.privatize_file("in.jsonl", f"{name}.jsonl", dptext.BankRewriter(bank(), **options))

    def linked(name, *options, original="in.jsonl"):
        code, out, err = run("attack", "linkage", original, f"{name}.jsonl", "--bank", "bank", *options)
        assert (code, any(text in out for text in bank().texts)) == (0, False), err
        return out

    scores = scores_of(linked("open", "--json"))
    likelihood = scores["linkage (likelihood)", FIRST]["score"]["value"]
    assert likelihood > 0.8
    assert ("linkage (layout alone)", FIRST) not in scores
    scores = scores_of(linked("closed", "--json"))
    # 1 of 120 by chance: more than 12 in less than one case of 10^6
    assert scores["linkage (likelihood)", FIRST]["score"]["value"] <= 12 / 120
    text = plain(linked("open"))
    assert "by shared words, and by likelihood" in text and "this is the best possible attack" in text
    assert "otherwise the statement is false" in plain(linked("some", original="moved.jsonl"))
    for name, original in (("some", "in.jsonl"), ("closed", "moved.jsonl")):  # nothing can tell at a small epsilon
        assert "the statement says" not in plain(linked(name, original=original))


# -- distributions and word vectors --------------------------------------------------------------------------------


@pytest.mark.usefixtures("same_draws")
def test_membership_is_compared_with_the_bound_set_by_the_noise(run, work):
    make(work)
    files = ["--members", "in.jsonl", "--others", "held.jsonl", "--user", "who"]
    attack = ("attack", "membership", "made.jsonl.distribution", *files)
    scores = scores_of(run(*attack, "--json")[1])
    best = scores["membership (knows everybody else)", "AUC"]["score"]["value"]
    assert best == gaussian_ceiling(dptext.TextDistribution.load("made.jsonl.distribution").sigma).auc
    assert 0 < scores["membership (guesses the others)", "AUC"]["score"]["value"] < 1
    code, out, _ = run(*attack)
    assert (code, f"AUC of {best:.3f}" in plain(out), "zebulon" in out) == (0, True, False)
    words = dptext.WordVectors(["tea", "cup", "tax", "<unk>"], [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.5, 0.5]])
    rows = [Document("tea cup tax", user=f"u{n}") for n in range(30)]
    dptext.Cooccurrence(words, epsilon=4.0, delta=1e-6, window=2).fit(rows).save("learned")
    result = json.loads(run("attack", "membership", "learned", "--json")[1])
    sigma = dptext.load_vectors("learned").statement.parameters["sigma"]
    assert (result["scores"], result["auc_at_most"]) == ([], gaussian_ceiling(sigma).auc)
    assert result["accuracy_at_most"] <= (1 + 1e-6) / (1 + math.exp(-4.0))  # what (epsilon, delta) allows
    assert "dptext audit learned" in run("attack", "membership", "learned")[1]


def test_secrets_are_found_in_vectors_that_tell_them_and_not_in_private_ones(run, work, glove):
    people = ["kathryn", "phyllis", "renee", "vivian", "nora", "dora"]
    secrets = ["leukemia", "pneumonia", "hepatitis", "asthma", "malaria", "cholera"]
    words = [*glove.words[:800], *people, *secrets]
    dptext.save_vectors(dptext.load_vectors((words, [glove[word] for word in words])), Path("public.txt"))
    public = dptext.load_vectors("public.txt")
    pairs = [*zip(people, secrets, strict=True)]
    with same_draws():
        rows = [Document(f"{name} {secret}", user=name) for name, secret in pairs]
        model = dptext.Cooccurrence(public, epsilon=8.0, delta=1e-6, window=2).fit(rows)
    model.save("private")
    planted = nearest_secrets_known(
        public.matrix, *([words.index(word) for word in group] for group in (people, secrets))
    )
    dptext.save_vectors(dptext.WordVectors(public.words, planted, statement=model.statement_), Path("telling"))
    lines = [f"{name},{secret}" for name, secret in pairs]
    Path("pairs.csv").write_text("\n".join(["name,secret", *lines, f"nobody,{SECRET}"]) + "\n")
    scores = scores_of(run("attack", "neighbours", "telling", "--pairs", "pairs.csv", "--json")[1])
    nearest = "nearest secret is the right one"
    assert scores["neighbours", nearest]["succeeded"]
    assert scores["neighbours", nearest]["baseline"] == pytest.approx(1 / 6)
    assert scores["neighbours", "bits nearer than before"]["succeeded"]
    assert not scores["neighbours (public vectors alone)", nearest]["succeeded"]
    assert scores["neighbours (control: pairs planted in the vectors)", nearest]["succeeded"]
    assert "6 of 7 pairs have vectors" in scores["neighbours", nearest]["detail"]
    code, out, err = run("attack", "neighbours", "private", "--pairs", "pairs.csv")
    assert (code, any(word in out + err for word in (*people, *secrets))) == (0, False)
    assert "does not beat chance, and the control shows that it could have" in plain(out)
