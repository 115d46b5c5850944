"""papers/referee/tab: what each method masks in the invented documents."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dptext
from dptext import TEM
from dptext.errors import DataError

pytest.importorskip("sklearn")
pytest.importorskip("scipy")

PAPERS = ("referee.tab",)
DOCUMENTS = json.loads((Path(__file__).parents[2] / "papers" / "referee" / "invented.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def vectors():
    return dptext.load_vectors("minilm-words-128d", limit=5000)


@pytest.fixture
def bench(papers, monkeypatch, vectors):
    monkeypatch.setattr(papers.tab, "load_public", lambda _: vectors)
    return papers.tab.Bench(DOCUMENTS, None, Path("nowhere"), is_quick=True)


def masked(bench, masks):
    return [[text[start:end] for start, end in spans] for text, spans in zip(bench.texts, masks, strict=True)]


def test_word_replacement_masks_numbers_and_the_words_that_changed(bench, vectors):
    changed = masked(bench, bench._after_tem(TEM(vectors, epsilon=0.01, threshold=1.0), 1, is_chance=False))
    words = "Mr B Holm lives in Bergen Holm was born in 1950 and works for the Bank of Bergen"
    assert " ".join(changed[1]) == words
    kept = masked(bench, bench._after_tem(TEM(vectors, epsilon=200.0, threshold=0.2), 1, is_chance=False))
    known = {word for word in changed[1] if word in vectors.vocabulary}
    assert "1950" in kept[1] and not known & set(kept[1])
    assert set(kept[1]) >= {word for word in changed[1] if word not in vectors.vocabulary}
    chance = masked(bench, bench._after_tem(TEM(vectors, epsilon=200.0, threshold=0.2), 1, is_chance=True))
    assert len(chance[1]) > len(kept[1])


def test_a_bank_masks_the_words_that_the_new_sentence_lacks(bench, monkeypatch, papers):
    outputs = ["The bank of Oslo.", "Mrs Lind."]
    monkeypatch.setattr(bench, "_bank", "a bank", raising=False)
    sampler = SimpleNamespace(sample=lambda parts, seed: [outputs[place % 2] for place in range(len(parts))])
    monkeypatch.setattr(papers.tab, "BankRewriter", lambda bank, epsilon: sampler)
    bench.texts = ["Ada Lind,  of Oslo. Mrs Lind and Ada left.", "Mrs Ada Lind is here. The bank paid her."]
    words = masked(bench, bench._after_bank(4.0, 1, is_chance=False))
    assert words == [
        ["Ada", "Lind", "and", "Ada", "left"],
        ["Mrs", "Ada", "Lind", "is", "here", "The", "bank", "paid", "her"],
    ]
    order = np.array([1, 0, 3, 2])
    monkeypatch.setattr(papers.tab, "shuffled", lambda count, seed: order[:count])
    words = masked(bench, bench._after_bank(4.0, 1, is_chance=True))
    assert words[0] == ["Ada", "of", "Oslo", "Mrs", "Lind", "and", "Ada", "left"]


def test_the_quick_form_measures_every_method_and_baselines_have_the_scores_that_they_must_have(bench):
    rows = {settings["method"]: bench.cell(settings, 1) for settings in bench.settings()}
    assert rows["nothing"]["recall_direct_entities"] == rows["nothing"]["recall_quasi_entities"] == 0
    assert 0 < rows["nothing"]["token_recall"] < 0.3  # TAB counts function words in mentions as masked
    assert rows["everything"]["recall_quasi_entities"] == 1 and rows["everything"]["token_precision"] < 0.5
    assert rows["redaction"]["recall_PERSON_entities"] == 0 and rows["redaction"]["recall_DATETIME_entities"] > 0.5
    assert rows["redaction and TEM"]["token_recall"] >= rows["TEM"]["token_recall"]
    assert rows["TEM, chance"]["recall_direct_entities"] == rows["bank, chance"]["recall_direct_entities"] == 1
    assert rows["TEM"]["epsilon of a part"] > 10 and rows["bank"]["epsilon of a document"] == 4 * 13 / 4
    low, value, high = (rows["bank"][f"token_recall{end}"] for end in (" low", "", " high"))
    assert low <= value <= high


def test_the_full_form_needs_the_file_of_tab(papers, tmp_path):
    with pytest.raises(DataError, match="--tab is required"):
        papers.tab.main(["--out", str(tmp_path)])
