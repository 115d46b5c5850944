"""The experiment of papers/sentences: its settings, its tables, and one small cell of each kind."""

import gzip
import json

import numpy as np
import pytest
from papers.sweeps import sweep

PAPERS = ("sentences.cells", "sentences.corpus", "sentences.experiment", "sentences.report")


@pytest.mark.parametrize("quick", [False, True])
def test_every_part_has_distinct_settings_of_the_same_names(papers, check_settings, quick):
    for part in papers.experiment.PARTS:
        settings = list(papers.experiment.settings_of(part, quick=quick))
        check_settings(settings)
        assert {"bank", "real", "random", "words"} <= {setting["method"] for setting in settings}


def measured(settings, seed):
    result = 0.1 + 0.05 * settings["epsilon"] ** 0.5 + 0.001 * seed
    same = dict.fromkeys(("cosine", "sentiment", "relinked", "relinked at most", "words", "sentences"), result)
    return same | {"words, labelled anew": 0.0, "k": 3.0, "candidates": 20.0, "distinct": 0.5}


def test_tables_and_figure_come_from_the_rows_that_are_there(papers, tmp_path):
    for part in papers.experiment.PARTS:
        settings = list(papers.experiment.settings_of(part, quick=False))
        sweep(measured, settings, (1, 2), path=tmp_path / f"{part}.jsonl", name=f"sentences {part}")
    visible = {"question": "play music", "epsilon 8": "play a song", "same intent, epsilon 8": True}
    (tmp_path / "shown.json").write_text(json.dumps([visible, visible | {"same intent, epsilon 8": False}]))
    readme = tmp_path / "README.md"
    marks = papers.report
    places = f"{marks.START}\n{marks.END}\n{marks.QUESTIONS_START}\n{marks.QUESTIONS_END}\n"
    readme.write_text(f"before\n{places}after\n", encoding="utf-8")
    papers.report.write_report(tmp_path, readme=readme)
    text = readme.read_text(encoding="utf-8")
    result = "0.243 ± 0.006 | 0.243 ± 0.006 |  | 3 of 20 | 0.50 |"
    assert f"| 8 | bank: 9,000 other news, thinned (2 seeds) | {result}" in text
    assert "| 8 | bank: 6,000 other reviews, encoder 'words' (2 seeds) |" in text
    assert "| 250 | words by TEM (2 seeds) |" in text
    assert "| play music | play a song ✗ |" in text
    assert "The same intent: 1 at epsilon 8, of 2." in text
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.fixture
def data(tmp_path, papers, monkeypatch):
    """Sentences of two kinds, in the form of the data set; small samples."""
    folder = tmp_path / "yelp_sentences"
    folder.mkdir()
    things = ("soup", "fish", "bread", "wine", "tea", "rice", "cake", "salad")
    for label, text in (("0", "was cold and bad and we will never come back"), ("1", "is warm and we love it a lot")):
        lines = [f"the {one} with {two} {text} {n}" for one in things for two in things for n in range(8)]
        for part in ("dev", "test"):
            content = "\n".join(lines) if part == "test" else ""
            (folder / f"style_sentiment.{part}.{label}.gz").write_bytes(gzip.compress(content.encode()))
    for name, value in (("_SENTENCES", 30), ("_LEARNED", 200), ("_BANK", 300)):
        monkeypatch.setattr(papers.corpus, name, value)
    for name in ("newswire", "wikipedia"):
        monkeypatch.setattr(papers.corpus, name, lambda _: ("the king was born in the north", "shares fell by a third"))
    return tmp_path


def test_sentences_are_divided_into_three(papers, data):
    split = papers.corpus.split_of(data, "sentences", 1)
    assert len(split.private.texts) == 30
    parts = [set(split.private.texts), set(split.other.texts), set(split.banks["all"].texts)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 1024
    assert split.banks["20,000"].texts == split.banks["all"].texts[:300]
    assert all(10 <= len(text.split()) <= 14 for text in split.private.texts)


def test_a_sentence_from_a_bank_is_nearer_than_one_at_random(papers, data):
    bench = papers.cells.Bench(data, None, False)
    usual = next(papers.experiment.settings_of("sentences", quick=True)) | {"features": "words", "epsilon": 6.0}
    result = {
        name: bench.cell(usual | change, 1)
        for name, change in {
            "bank": {},
            "random": {"method": "random"},
            "real": {"method": "real"},
            "PrivUnit": {"method": "PrivUnit", "directions": 4},
            "TEM": {"method": "TEM on vectors"},
        }.items()
    }
    assert result["real"]["cosine"] == pytest.approx(1.0)
    assert result["bank"]["cosine"] > result["random"]["cosine"] + 0.1
    assert result["bank"]["sentiment"] > 0.7
    assert 0 < result["bank"]["relinked"] <= result["bank"]["relinked at most"] + 0.05
    assert result["bank"]["candidates"] == 300
    assert np.isfinite([result[name]["cosine"] for name in ("PrivUnit", "TEM")]).all()


def test_nothing_is_learned_from_random_labels(papers):
    texts = [f"good {n % 7}" if n % 2 else f"bad {n % 7}" for n in range(200)]
    labels = np.arange(200) % 2
    assert papers.cells.tfidf_accuracy(texts, labels, texts, labels) == 1.0
    assert papers.cells.tfidf_accuracy(texts, np.arange(200) // 2 % 2, texts, labels) < 0.8
    assert papers.cells.tfidf_accuracy(texts, np.zeros(200, dtype=int), texts, labels) == 0.5
