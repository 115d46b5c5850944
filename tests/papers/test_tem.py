"""The experiment of papers/tem on made-up reviews: it runs, goes on where it stopped, and says what it found."""

import csv
import io
import tarfile

import numpy as np
import pytest
from papers.sweeps import read_sweep

import dptext
from dptext.errors import DataError, ParameterError

PAPERS = ("tem.cells", "tem.composed", "tem.corpus", "tem.experiment", "tem.report", "tem.threshold")
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
        skipped = tarfile.TarInfo("aclImdb/train/unsup/0_0.txt")
        archive.addfile(skipped, io.BytesIO(b""))
    lines = [f"{word} " + " ".join(f"{x:.4f}" for x in generator.normal(size=4)) for word in WORDS]
    (folder / "vectors.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


def _rows(file):
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_run_is_gone_on_with_and_reported(papers, folder, monkeypatch, capsys):
    paths = []
    monkeypatch.setattr(papers.report, "draw", lambda found, path: paths.append(path))
    out = folder / "out"
    arguments = ["--data", str(folder), "--vectors", str(folder / "vectors.txt"), "--out", str(out)]
    arguments += ["--processes", "1", "--trials", "2", "--epsilons", "2", "--shadows", "4", "--epochs", "3"]
    papers.experiment.main([*arguments, "--no-matched"])
    whole = _rows(out / "results.csv")
    assert sorted((row["trial"], row["mechanism"]) for row in whole) == sorted(
        (trial, entry) for trial in "01" for entry in ("none", "TEM", "Madlib")
    )
    assert all(0 <= float(row["online_auc"]) <= 1 for row in whole)
    none = next(row for row in whole if row["mechanism"] == "none")
    assert (none["keep"], none["recovered"]) == ("1", "1")
    # cut the last row off, as if the run had been stopped: only that one is made again, and it is the same
    text = (out / "results.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (out / "results.csv").write_text("".join(text[:-1]), encoding="utf-8")
    papers.experiment.main([*arguments, "--no-matched"])
    repeated = _rows(out / "results.csv")
    assert len(repeated) == len(whole)
    assert {k: v for k, v in repeated[-1].items() if "seconds" not in k} == {
        k: v for k, v in whole[-1].items() if "seconds" not in k
    }
    table = (out / "table.md").read_text(encoding="utf-8")
    assert "TEM - Madlib" in table
    assert len(paths) == 2
    capsys.readouterr()
    with pytest.raises(ParameterError, match="other settings"):
        papers.experiment.main([*arguments[:-1], "4", "--no-matched"])


def test_the_adaptive_attacker_and_the_quarters(papers, folder):
    from papers.imdb import reviews

    cells, corpora = papers.cells, papers.corpus
    vectors = dptext.load_vectors(folder / "vectors.txt")
    corpus = corpora.read_corpus(reviews(folder), vectors)
    assert len(corpus.ids) == 160  # without those that have no label
    unknown = vectors.vocabulary.unknown_row
    assert set(corpus.ids.lengths) == {16}  # "br", "amp" and the number are gone, "done" is a word
    assert (corpus.ids.values == unknown).mean() == pytest.approx(1 / 16)
    settings = cells.Settings(reviews=None, shadows=4, epochs=2)
    trial = cells.prepared_trial(0, corpus, vectors, settings, folder / "work")
    parts = trial.parts
    everyone = np.concatenate([parts.tr1, parts.tr2, parts.te1, parts.te2])
    assert sorted(everyone) == list(range(160))
    assert corpus.train[np.concatenate([parts.tr1, parts.tr2])].all()
    assert all(corpus.positive[entry].mean() == 0.5 for entry in (parts.tr1, parts.tr2, parts.te1, parts.te2))
    stored = cells.prepared_trial(0, corpus, vectors, settings, folder / "work")
    assert (stored.outputs == trial.outputs).all()
    assert (stored.parts.tr1 == parts.tr1).all()
    row = cells.run_cell(cells.Cell(0, "TEM", 3.0, "epsilon", adaptive=True), trial, corpus, vectors, settings)
    assert 0 <= row["adaptive_auc"] <= 1


def test_what_is_guessed_is_learnt_on_the_other_half(papers):
    recovered = papers.cells.recovered
    words = np.random.default_rng(2).integers(0, 50, 20_000)
    assert recovered(words, words, 50) == 1.0
    assert recovered(words, (words + 7) % 50, 50) == 1.0  # a secret permutation hides nothing
    constant = np.zeros_like(words)
    assert recovered(words, constant, 50) < 0.03  # one in 50; standard error .0014


def test_a_missing_archive_is_named(papers, tmp_path):
    from papers.imdb import reviews

    with pytest.raises(DataError, match="--data"):
        next(reviews(tmp_path))


def test_matched_epsilons_keep_equally_many_words(papers, glove, folder):
    from papers.imdb import reviews

    small = dptext.load_vectors((glove.words[:400], glove.matrix[:400]))
    corpus = papers.corpus.read_corpus(reviews(folder), small)
    corpus.ids.values[:] = np.random.default_rng(3).integers(0, 400, corpus.ids.values.size)
    ((madlib, tem),) = papers.experiment.matched_epsilons(corpus, small, [8.0])
    weights = corpus.frequencies(len(small))
    kept = [
        dptext.deniability(mechanism(small, epsilon=epsilon), weights=weights, seed=2).mean("keep")
        for mechanism, epsilon in ((dptext.Madlib, madlib), (dptext.TEM, tem))
    ]
    assert tem < madlib
    assert abs(kept[0] - kept[1]) < 0.02  # 401 words, 200 draws each: standard error below .002


def test_the_figure(papers, folder, tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        {"mechanism": m, "epsilon": e, "arm": "epsilon", "trial": t, "accuracy": ".8", "keep": ".5", "shadow_auc": ".6"}
        for m, e in (("none", "0"), ("TEM", "2"), ("TEM", "4"), ("Madlib", "2"))
        for t in "012"
    ]
    results = papers.report.Results(rows)  # a run without likelihood ratios has no such columns
    assert "| TEM | 2 |" in results.attacks()
    papers.report.draw(results, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_threshold_and_the_trained_vectors_are_run_and_reported(papers, folder, tmp_path, monkeypatch):
    paths = []
    monkeypatch.setattr(papers.threshold, "draw", lambda rows, path: paths.append(path))
    arguments = ["--data", str(folder), "--vectors", str(folder / "vectors.txt"), "--quick", "--out", str(tmp_path)]
    for part in (papers.threshold, papers.composed):
        part.main(arguments)
        part.main([*arguments, "--report"])
        assert "2 trials, 600 reviews a quarter" in (tmp_path / "table.md").read_text("utf-8")
    assert paths == [tmp_path / "figure.png"] * 2
    rows = {
        (row.settings["mechanism"], row.settings["threshold"]): row.numbers for row in _sweep(tmp_path, "threshold")
    }
    assert rows["none", None]["stays"] == 1.0
    assert rows["TEM", 0.0]["bound"] == pytest.approx(0.0, abs=1e-4)  # all words equally likely
    assert 1 < rows["TEM", 15.0]["bound"] < 45.1  # of words that are so far from one another
    for row in _sweep(tmp_path, "composed"):
        numbers, training = row.numbers, row.settings["training"]
        assert numbers["of the vectors"] == (training or 0.0)
        if training is not None:  # under substitution a person is taken out and another put in
            assert numbers["of both"] >= numbers["of the text"] + 2 * training


def _sweep(folder, name):
    return read_sweep(folder / f"{name}.jsonl").rows
