"""papers/tem on made-up reviews: the quick forms, and mechanisms at one pure budget."""

import io
import tarfile

import numpy as np
import pytest
from papers.sweeps import read_sweep

import dptext
from dptext.errors import RefusedError

PAPERS = ("tem.composed", "tem.corpus", "tem.experiment", "tem.pure", "tem.report", "tem.threshold", "data_sets")
WORDS = [f"word{'abcdefghij'[n % 10]}{'abcdefghij'[n // 10]}" for n in range(80)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An archive of reviews, and vectors: a positive review has more of the first words."""
    folder = tmp_path_factory.mktemp("imdb")
    generator = np.random.default_rng(1)
    (folder / "imdb_acl").mkdir()
    with tarfile.open(folder / "imdb_acl" / "aclImdb_labelled_50k.tar.xz", "w:xz") as archive:
        for part in ("train", "test"):
            for place in range(80):
                positive = place % 2
                rows = np.where(generator.random(15) < 0.4, generator.integers(0, 80, 15), 10 * positive)
                text = " ".join(WORDS[row] for row in rows) + "<br /><br />7 &amp; done."
                member = tarfile.TarInfo(f"aclImdb/{part}/{'pos' if positive else 'neg'}/{place}_7.txt")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        archive.addfile(tarfile.TarInfo("aclImdb/train/unsup/0_0.txt"), io.BytesIO(b""))
    lines = [f"{word} " + " ".join(f"{x:.4f}" for x in generator.normal(size=4)) for word in WORDS]
    (folder / "vectors.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


def rows_of(file):
    return {row.key: row.numbers for row in read_sweep(file).rows}


def test_the_experiment_runs_resumes_and_reports(papers, folder, tmp_path):
    arguments = ["--data", str(folder), "--vectors", str(folder / "vectors.txt"), "--out", str(tmp_path)]
    arguments += ["--trials", "2", "--epsilons", "2", "--shadows", "4"]
    papers.experiment.main(arguments)
    file = tmp_path / "results.jsonl"
    whole, rows = rows_of(file), read_sweep(file).rows
    cells = {(row.seed, row.settings["mechanism"]) for row in rows}
    assert cells == {(trial, name) for trial in (0, 1) for name in ("none", "TEM", "Madlib")}
    assert all(0 <= row.numbers["online_auc"] <= 1 for row in rows)
    none = next(row.numbers for row in rows if row.settings["mechanism"] == "none")
    assert (none["keep"], none["recovered"]) == (1, 1)
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    papers.experiment.main(arguments)
    assert rows_of(file) == whole
    assert "TEM - Madlib" in (tmp_path / "table.md").read_text(encoding="utf-8")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(RefusedError, match="another experiment"):
        papers.experiment.main([*arguments[:-1], "2"])


def test_the_classifier_learns_and_a_seed_repeats_it(papers):
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 2, 600)
    rows = papers.data_sets.Ragged.of([generator.integers(0, 60, 12) + 40 * label for label in labels])
    vectors = dptext.load_vectors(
        ([f"w{'abcdefghij'[n % 10]}{n}" for n in range(100)], generator.normal(size=(100, 8)))
    )
    fit = rows.take(np.arange(400)), labels[:400]
    models = [papers.corpus.FastText(*fit, vectors, seed) for seed in (1, 1, 2)]
    assert models[0].score(rows.take(np.arange(400, 600)), labels[400:]) > 0.9
    shares, repeated, other = (model.predict_proba(rows) for model in models)
    assert np.allclose(shares.sum(axis=1), 1)
    assert (shares == repeated).all() and (shares != other).any()


def test_matched_epsilons_keep_equally_many_words(papers, glove, folder):
    small = dptext.load_vectors((glove.words[:400], glove.matrix[:400]))
    corpus = papers.corpus.read_corpus(papers.data_sets.imdb_reviews(folder), small)
    corpus.ids.values[:] = np.random.default_rng(3).integers(0, 400, corpus.ids.values.size)
    ((madlib, tem),) = papers.experiment.matched_epsilons(corpus, small, [8.0])
    weights = corpus.frequencies(len(small))
    kept = [
        dptext.deniability(mechanism(small, epsilon=epsilon), weights=weights, seed=2).mean("keep")
        for mechanism, epsilon in ((dptext.Madlib, madlib), (dptext.TEM, tem))
    ]
    assert tem < madlib
    assert abs(kept[0] - kept[1]) < 0.02  # 401 words, 200 draws each: standard error below .002


def test_thresholds_and_learned_vectors_run_and_report(papers, folder, tmp_path):
    arguments = ["--data", str(folder), "--vectors", str(folder / "vectors.txt"), "--quick", "--out", str(tmp_path)]
    for part in (papers.threshold, papers.composed):
        part.main(arguments)
        assert "2 trials, 600 reviews per quarter" in (tmp_path / "table.md").read_text("utf-8")
    measured = read_sweep(tmp_path / "threshold.jsonl").rows
    rows = {(row.settings["mechanism"], row.settings["threshold"]): row.numbers for row in measured}
    assert rows["none", None]["stays"] == 1.0
    assert rows["TEM", 0.0]["bound"] == pytest.approx(0.0, abs=1e-4)  # all words equally likely
    assert 1 < rows["TEM", 15.0]["bound"] < 45.1  # 15 epsilon 3
    for row in read_sweep(tmp_path / "composed.jsonl").rows:
        numbers, training = row.numbers, row.settings["training"]
        assert numbers["of the vectors"] == (training or 0.0)
        if training is not None:  # substitution removes one person and adds another
            assert numbers["of both"] >= numbers["of the text"] + 2 * training


# -- one pure budget ---------------------------------------------------------------------------------------------------


@pytest.fixture
def few(papers, monkeypatch, small):
    monkeypatch.setattr(papers.pure, "_word_vectors", lambda: small)
    return small


def test_every_mechanism_has_the_pure_budget(papers, few, check_settings):
    check_settings(list(papers.pure.settings_of(quick=True)))
    settings = list(papers.pure.settings_of(quick=False))
    check_settings(settings)
    for setting in settings:
        if setting["method"] not in ("real", "CusText") and setting["budget"] <= 250.0:
            spent = papers.pure.mechanism_of(setting).document_statement(setting["covered"]).epsilon
            assert setting["budget"] * 0.999 < spent <= setting["budget"] * (1 + 1e-4), setting


def test_the_attacker_is_the_best_one(papers, few):
    """Against enumeration: sentences of one word, each as likely, over all draws."""
    words = np.array(few.words[:40])[:, None]
    mechanism = dptext.SubsetSelection(few, epsilon=3.0, size=4)
    draws = (np.array(mechanism.sample(list(words[:, 0]), seed=seed))[:, None] for seed in range(60))
    rates = [papers.pure.relinked(mechanism, words, draw) for draw in draws]
    sets = mechanism._sets.members(np.array([few.vocabulary.row(word) for word in words[:, 0]]))
    exact = mechanism._selection.relinking(40, union=int(sets.any(axis=0).sum()))
    assert np.mean(rates) == pytest.approx(exact, abs=5.2 * np.std(rates) / np.sqrt(60))  # false alarms below 1e-6
    private = np.array([few.words[row : row + 3] for row in range(0, 60, 3)])
    assert papers.pure.relinked(dptext.Madlib(few, epsilon=1e6), private, private) == 1.0
    nothing = dptext.SubsetSelection(few, epsilon=1e-30)
    assert papers.pure.relinked(nothing, private, private[::-1]) == pytest.approx(1 / 20)
