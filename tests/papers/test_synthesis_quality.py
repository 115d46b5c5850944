"""The quality table of papers/synthesis: its settings, and a report from the rows that are there."""

import numpy as np
from papers.sweeps import sweep

PAPERS = ("synthesis.quality",)


def test_every_data_set_has_a_ceiling_and_a_floor(papers, check_settings):
    settings = list(papers.quality._settings())
    check_settings(settings)
    for data in papers.quality.DATA:
        corpora = {setting["corpus"] for setting in settings if setting["data"] == data}
        assert corpora >= {"real texts", "dptext", "random pool"}
    assert ("AG News", "label names") in [tuple(setting.values()) for setting in settings]


def test_the_table_comes_from_the_rows_that_are_there(papers, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{papers.quality.START}\n{papers.quality.END}\nafter\n", encoding="utf-8")
    papers.quality.write_report(tmp_path, readme=readme)
    assert "|" not in readme.read_text(encoding="utf-8")
    sweep(
        lambda _settings, seed: {"precision": 0.7 + 0.01 * seed, "of the domain": 0.5},
        list(papers.quality._settings())[:2],
        (1, 2, 3),
        path=tmp_path / "quality.jsonl",
        name="synthesis quality",
    )
    papers.quality.write_report(tmp_path, readme=readme)
    text = readme.read_text(encoding="utf-8")
    assert "| data | corpus | precision | of the domain |" in text
    assert "| AG News | real texts (the best to expect) | 0.720 ± 0.025 | 0.500 ± 0.000 |" in text
    assert text.endswith("after\n")


def test_a_random_pool_is_drawn_by_the_seed(papers):
    problem = papers.quality.Problem(None, None, (), [], tuple(map(str, range(1500))), np.ones(1500, bool), (), None)
    first, repeated, other = (papers.quality._chosen("random pool", problem, seed) for seed in (1, 1, 2))
    assert first.tolist() == repeated.tolist() != other.tolist()
    assert len(set(first.tolist())) == papers.quality.SIZE
