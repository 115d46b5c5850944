"""The experiment of papers/synthesis: its settings, its tables, and vectors that are kept."""

import numpy as np
import pytest
from papers.sweeps import sweep

PAPERS = ("synthesis.cells", "synthesis.experiment", "synthesis.kept", "synthesis.report")


@pytest.mark.parametrize("quick", [False, True])
def test_every_part_has_distinct_settings_of_the_same_names(papers, check_settings, quick):
    for part in papers.experiment.PARTS:
        settings = list(papers.experiment.settings_of(part, quick=quick))
        check_settings(settings)
        assert {"described", "real", "random labels"} <= {setting["method"] for setting in settings}


def measured(settings, seed):
    result = 0.7 + 0.02 * np.log2(settings["epsilon"]) + 0.001 * seed
    return {"words": result, "sentences": result, "spread": 0.5, "distinct words": 9.0, "right": 0.8}


def test_tables_and_figure_come_from_the_rows_that_are_there(papers, tmp_path):
    settings = list(papers.experiment.settings_of("news", quick=False))
    sweep(measured, settings, (1, 2), path=tmp_path / "news.jsonl", name="synthesis news")
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{papers.report.START}\n{papers.report.END}\nafter\n", encoding="utf-8")
    papers.report.write_report(tmp_path, readme=readme)
    text = readme.read_text(encoding="utf-8")
    assert "| synthetic, epsilon 1 (2 seeds) | 0.702 ± 0.006 | 0.702 ± 0.006 | 0.80 | 0.50 |" in text
    assert "synthetic, epsilon 1, pool: no news" in text
    assert "one label has 100 of them" in text
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_kept_vectors_need_no_model(papers, tmp_path):
    digest = papers.kept._digest
    vectors = np.arange(768.0).reshape(2, 384)
    np.savez(tmp_path / "sentences-64.npz", digests=np.array([digest("one"), digest("two")]), vectors=vectors)
    encoder = papers.kept.KeptSentences(tmp_path, tokens=64)
    np.testing.assert_array_equal(encoder.encode(["two", "one", "two"]), vectors[[1, 0, 1]])
    assert encoder.encode([]).shape == (0, 384)
