"""The experiment of papers/sentences: its settings, its tables, and one small cell of each kind."""

import gzip

import numpy as np
import pytest

PAPERS = ("sentences.experiment", "sentences.report")


@pytest.mark.parametrize("quick", [False, True])
def test_every_part_has_distinct_settings_of_the_same_names(papers, check_settings, quick):
    for part in papers.experiment.PARTS:
        settings = list(papers.experiment.settings_of(part, quick=quick))
        check_settings(settings)
        assert {"bank", "real", "random", "words"} <= {setting["method"] for setting in settings}


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
        monkeypatch.setattr(papers.experiment, name, value)
    for name in ("newswire", "wikipedia"):
        monkeypatch.setattr(
            papers.experiment, name, lambda _: ("the king was born in the north", "shares fell by a third")
        )
    return tmp_path


def test_a_sentence_from_a_bank_is_nearer_than_one_at_random(papers, data):
    bench = papers.experiment.Bench(data, None, False)
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
