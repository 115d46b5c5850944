"""Word mechanisms at one pure budget: the settings, the best attacker, the table."""

import numpy as np
import pytest
from papers.sweeps import sweep

import dptext

PAPERS = ("tem.pure",)


@pytest.fixture(scope="module")
def pure(papers):
    return papers.pure


@pytest.mark.parametrize("quick", [False, True])
def test_settings_are_distinct_and_have_the_same_names(pure, check_settings, quick):
    settings = list(pure.settings_of(quick=quick))
    check_settings(settings)


@pytest.fixture
def few(monkeypatch, pure, small):
    monkeypatch.setattr(pure, "_word_vectors", lambda: small)
    return small


def test_every_mechanism_costs_its_budget_and_no_more(pure, few):
    for settings in pure.settings_of(quick=False):
        if settings["method"] in ("real", "CusText") or settings["budget"] > 250.0:
            continue
        mechanism = pure.mechanism_of(settings)
        spent = mechanism.document_statement(settings["covered"]).epsilon
        assert settings["budget"] * 0.999 < spent <= settings["budget"] * (1 + 1e-4), settings


def test_the_attacker_is_the_best_one(pure, few):
    """Against enumeration: sentences of one word, each as likely, over all draws."""
    words = np.array(few.words[:40])[:, None]
    mechanism = dptext.SubsetSelection(few, epsilon=3.0, size=4)
    rates = [
        pure.relinked(mechanism, words, np.array(mechanism.sample(list(words[:, 0]), seed=seed))[:, None])
        for seed in range(60)
    ]
    sets = mechanism._sets.members(np.array([few.vocabulary.row(word) for word in words[:, 0]]))
    exact = mechanism._selection.relinking(40, union=int(sets.any(axis=0).sum()))
    assert np.mean(rates) == pytest.approx(exact, abs=5.2 * np.std(rates) / np.sqrt(60))  # false alarms below 1e-6


def test_an_attacker_of_the_words_themselves_names_all_and_one_of_nothing_none(pure, few):
    private = np.array([few.words[row : row + 3] for row in range(0, 60, 3)])
    madlib = dptext.Madlib(few, epsilon=1e6)
    assert pure.relinked(madlib, private, private) == 1.0
    nothing = dptext.SubsetSelection(few, epsilon=1e-30)
    assert pure.relinked(nothing, private, private[::-1]) == pytest.approx(1 / 20)


def test_the_table_comes_from_the_rows_that_are_there(pure, tmp_path):
    def measured(settings, seed):
        result = 0.2 + settings["rate"] / 100 + seed / 1000
        return {"stays": 0.1, "relinked": 0.5, "k": 7.0, "cosine": result, "sentiment": 0.6}

    settings = [setting for setting in pure.settings_of(quick=False) if setting["budget"] in (0.0, 50.0)]
    sweep(measured, settings, (1, 2), path=tmp_path / "pure.jsonl", name="words at a pure budget")
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{pure.START}\n{pure.END}\nafter\n", encoding="utf-8")
    pure.write_report(tmp_path, readme=readme)
    text = readme.read_text(encoding="utf-8")
    assert "| 50 | TEM, epsilon 8 | 7 | 0.100 ± 0.000 | 0.282 ± 0.006 | 0.600 ± 0.000 | 0.500 ± 0.000 |" in text
    assert "TEM, epsilon 4" not in text
    assert text.count("the sentences themselves") == 2
    assert text.startswith("before")
    assert text.endswith("after\n")
